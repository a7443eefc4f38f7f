"""Multiple imputation of the unselected: completed tables and Rubin's rules."""
