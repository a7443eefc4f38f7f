"""Problems of the columns of a table, and the plan that fixes them."""
