"""Linear estimators on arrays; `heckesel.estimators` has the public functions."""
