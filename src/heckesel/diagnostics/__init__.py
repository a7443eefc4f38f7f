"""Whether the data support a correction: instruments, profile likelihood, verdict, sensitivity."""
