"""The doors: they check, call a plain function, and keep what it returned."""
