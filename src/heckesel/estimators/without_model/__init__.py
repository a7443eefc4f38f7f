"""Public functions that assume no model of selection."""
