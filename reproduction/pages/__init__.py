"""What is published: numbers, claims, targets, figures and tables made from `results/*.json`."""
