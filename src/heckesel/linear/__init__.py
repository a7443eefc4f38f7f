"""Linear estimators on arrays; `heckesel.estimators` has the public functions.

Files here compute with standardised rows (`sample`), in memory or read from files: probit,
two-step, maximum likelihood and their covariance. What users see of a fit is in `results`.
"""
