"""Batched training of many networks: layers, batches, the optimiser and the one training loop."""
