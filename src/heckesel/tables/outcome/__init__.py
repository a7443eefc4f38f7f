"""The outcome column: its scale in the fit, and values that stand for a missing one."""
