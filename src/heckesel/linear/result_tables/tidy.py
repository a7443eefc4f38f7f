"""A fit as frames: one row per term, and one row per fit."""

import pandas as pd

# What describes a fit in one row; a fit has the entries that it has a value for.
FACTS = (
    "nobs",
    "n_selected",
    "df_model",
    "df_resid",
    "rho",
    "sigma",
    "loglik",
    "loglik_constant",
    "pseudo_r2",
    "aic",
    "bic",
    "method",
    "errors",
    "covariance",
    "inference",
    "status",
)
TIDY = {
    "coef": "estimate",
    "se": "std_error",
    "z": "statistic",
    "p": "p_value",
    "low": "low",
    "high": "high",
}


def tidy(fit, level: float) -> pd.DataFrame:
    """One row per term, with columns in words."""
    return fit.to_frame(level).rename(columns=TIDY).reset_index()


def glance(fit) -> pd.DataFrame:
    """One row with what describes the fit as a whole."""
    found = {name: getattr(fit, name) for name in FACTS if hasattr(fit, name)}
    if hasattr(fit, "identification"):
        found["verdict"] = fit.identification.verdict
    return pd.DataFrame([found])


def slopes(fit) -> int:
    """Slopes of the outcome equation; of the selection equation in a probit of selection."""
    equation = fit.params.index[0][0]
    return int((fit.params[equation].index != "Intercept").sum())
