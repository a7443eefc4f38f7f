"""A truth table of the user's own: always-observed columns, hidden as the outcome is hidden."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heckesel.errors import DataError, IdentificationWarning
from heckesel.tables.frames import as_pandas

MEDIAN_T3 = 0.7649  # of the absolute value of t with 3 degrees of freedom
FEWEST_VALUES = 2
LEAST_SCALE = 0.02  # of a prior, so that a few lucky columns do not rule selection out


@dataclass(frozen=True)
class Placebo:
    """Errors of naive and corrected means of columns whose truth is known.

    Attributes
    ----------
    table : DataFrame
        One row per column: ``truth``, the mean of the unselected; ``naive`` and ``corrected``,
        estimates of it less the truth, in standard deviations of the column; ``low`` and ``high``,
        the ends of the 90 % interval of ``corrected`` less the truth; ``covers``; ``rho``, the
        posterior mean; ``rho_implied``, with which the correction would have been exact.

    Examples
    --------
    >>> import heckesel as hk
    >>> women = hk.datasets.load_mroz()
    >>> columns = ["educ", "age", "exper", "nwifeinc", "kidslt6"]
    >>> found = hk.placebo(women[columns], women["lwage"], instruments=["kidslt6"])
    >>> list(found.table.index)
    ['educ', 'age', 'exper', 'nwifeinc']
    """

    table: pd.DataFrame

    @property
    def rho_prior(self) -> float:
        """Scale of a prior on rho for `HeckmanRegressor`: that with the median |rho_implied|."""
        size = float(np.median(np.abs(self.table["rho_implied"])))
        return max(size / MEDIAN_T3, LEAST_SCALE)

    def __repr__(self) -> str:
        shown = self.table.round(3).to_string()
        return f"{shown}\nscale of the prior that these columns imply: {self.rho_prior:.3f}"

    def _repr_html_(self) -> str:
        return self.table.round(3).to_html()


def placebo(
    X,
    y=None,
    *,
    instruments,
    selected=None,
    groups=None,
    columns=None,
    learner="auto",
    cv="auto",
    n_jobs=None,
) -> Placebo:
    """Hide each column of X where the outcome is hidden, predict it from the others, and compare.

    Parameters
    ----------
    X : frame of shape (n, columns)
        Columns of both equations, instruments included, as in `HeckmanRegressor.fit`.
    y : array-like of shape (n,), optional
        The outcome, NaN where it was not observed. Only whether it was observed is used.
    instruments : list of str
        Columns of X that affect selection but not the others.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection, instead of `y`.
    groups : array-like of shape (n,), optional
        Groups of dependent rows.
    columns : list of str, optional
        Columns to hide; by default all numeric ones that are complete and vary.
    learner, cv : optional
        As in `HeckmanRegressor`.
    n_jobs : int, optional
        Workers for the columns, through joblib.

    Returns
    -------
    Placebo
        The table of errors, which `heckesel.plots.placebo` draws, and the prior it implies.

    Raises
    ------
    DataError
        If no column can be hidden, or the data cannot be used.

    Notes
    -----
    The truth of these columns is known for everyone, and selection is that of the outcome. They
    show whether a correction would have helped here, and which rho is plausible. With rho_implied
    the normal correction moves the naive mean to the truth.
    """
    from joblib import Parallel, delayed

    frame = as_pandas(X, "X").reset_index(drop=True)
    if (y is None) == (selected is None):
        raise DataError("pass y, whose missing values are the unselected rows, or selected=")
    seen = ~pd.isna(np.asarray(y, dtype=object)) if selected is None else np.asarray(selected) == 1
    if len(seen) != len(frame):
        raise DataError(f"X has {len(frame)} rows but there are {len(seen)} outcomes")
    names = list(instruments) if not isinstance(instruments, str) else [instruments]
    chosen = _hidden_columns(frame, names) if columns is None else list(columns)
    unknown = [name for name in [*chosen, *names] if name not in frame.columns]
    if unknown:
        raise DataError(f"X has no column {unknown[0]!r}")
    if not chosen or seen.all():
        why = "every row was selected" if seen.all() else "no numeric column is complete and varies"
        raise DataError(f"there is nothing to hide: {why}")
    jobs = (delayed(_row)(frame, name, names, seen, groups, learner, cv) for name in chosen)
    rows = Parallel(n_jobs=n_jobs)(jobs)
    return Placebo(pd.DataFrame(rows, index=pd.Index(chosen, name="column")))


def _hidden_columns(frame: pd.DataFrame, instruments: list) -> list:
    numeric = frame.select_dtypes(["number", "bool"]).columns
    return [
        name
        for name in numeric
        if name not in instruments
        and frame[name].notna().all()
        and frame[name].nunique() >= FEWEST_VALUES
    ]


def _row(frame, name, instruments, seen, groups, learner, cv) -> dict[str, float]:
    from heckesel.regressor import HeckmanRegressor

    values = frame[name].astype(float)
    others = frame.drop(columns=[name])
    truth, sd = values[~seen].mean(), values.std()
    model = HeckmanRegressor(instruments, learner=learner, cv=cv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        model.fit(others, values.where(seen), groups=groups)
        row = model.average(others[~seen], target="unselected").loc["all"]
    hidden = others[~seen]
    uncorrected = replace(model.fitted_, selection=None, rho=None)
    naive = uncorrected.predict(model.columns_.x(hidden)).mean.mean()
    evidence = model.evidence_
    theta = (naive - truth) / evidence.contrast
    sigma = np.sqrt(max(evidence.rms, 1e-300) ** 2 + theta**2 * evidence.curvature)
    return {
        "truth": truth,
        "naive": (naive - truth) / sd,
        "corrected": (row["mean"] - truth) / sd,
        "low": (row["low"] - truth) / sd,
        "high": (row["high"] - truth) / sd,
        "covers": bool(row["low"] <= truth <= row["high"]),
        "rho": model.rho_,
        "rho_implied": theta / sigma,
    }
