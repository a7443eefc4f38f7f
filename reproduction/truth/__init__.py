"""Real data in which outcomes of the unselected are known."""
