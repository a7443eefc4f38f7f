"""What is wrong with the columns of a table, and the plan that fixes it."""
