"""What data say before a model is kept: the verdict, tests of instruments, and a truth table of the
user's own columns, hidden as the outcome is hidden."""

# ruff: noqa: PT028
# `test_instruments` is not a test of pytest, so that its parameters may have defaults.

import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd

from heckesel.column_checks import check_fit
from heckesel.errors import DataError, IdentificationWarning, is_share, is_whole
from heckesel.tables.fit_input import read_table
from heckesel.tables.frames import as_pandas
from heckesel.verdict.identify import Identification
from heckesel.verdict.validity import LEVEL, InstrumentValidity, validity_of

MEDIAN_T3 = 0.7649  # of the absolute value of t with 3 degrees of freedom
FEWEST_VALUES = 2
LEAST_SCALE = 0.02  # of a prior, so that a few lucky columns do not rule selection out


def identify(
    X,
    y,
    *,
    instruments=None,
    selected=None,
    sample_weight=None,
    groups=None,
    **options,
) -> Identification:
    """Report how far a correction for selection can be trusted.

    The verdict is that of a `HeckmanRegressor` with the same options, which is fitted and not kept.

    Parameters
    ----------
    X : frame or array-like of shape (n, columns)
        Columns of both equations, instruments included.
    y : array-like of shape (n,)
        The outcome, NaN where it was not observed.
    instruments : list of str or int, optional
        Columns of X that affect selection but not the outcome, by name or position.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    groups : str or array-like of shape (n,), optional
        Groups of dependent rows: the name of a column of X, or one label per row. Tests allow for
        dependence within a group.
    options : optional
        Other options of `HeckmanRegressor`, such as ``learner``, ``method``, ``missing``,
        ``on_problem``, ``target_transform`` and ``unobserved``.

    Returns
    -------
    Identification
        ``verdict``, ``sentence``, ``action`` and ``evidence``. On another scale
        than that of y, ``evidence["scale"]`` names it, such as "log(wage)".

    Raises
    ------
    DataError
        If the data cannot be used.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> hk.identify(frame[["x", "z"]], frame["y"], instruments=["z"]).verdict
    'supported by the instrument'
    """
    from heckesel.regressor import HeckmanRegressor

    model = HeckmanRegressor(instruments)
    unknown = options.keys() - model.get_params().keys()
    if unknown:
        raise DataError(f"HeckmanRegressor has no option {min(unknown)!r}")
    model.set_params(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # the verdict is returned
        model.fit(X, y, selected=selected, sample_weight=sample_weight, groups=groups)
    found = model.identification_
    if model.transform_ is None:
        return found
    return replace(found, evidence=found.evidence | {"scale": model.scale_})


def test_instruments(
    X,
    y,
    *,
    instruments,
    selected=None,
    sample_weight=None,
    groups=None,
    missing: str = "error",
    on_problem: str = "error",
    target_transform=None,
    unobserved=None,
    level: float = LEVEL,
    seed: int = 0,
) -> InstrumentValidity:
    r"""Test whether instruments affect the outcome only through selection.

    No test can prove this. The result states the direct effects that the tests can detect.

    Parameters
    ----------
    X : frame or array-like of shape (n, columns)
        Columns of both equations, instruments included.
    y : array-like of shape (n,)
        The outcome, NaN where it was not observed.
    instruments : list of str or int
        Columns of X that affect selection but not the outcome, by name or position.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    groups : str or array-like of shape (n,), optional
        Groups of dependent rows: the name of a column of X, or one label per row. Tests allow for
        dependence within a group.
    missing : {"error", "indicator"}
        ``"indicator"`` imputes the mean of a missing x and adds a missing indicator.
    on_problem : {"error", "fix"}
        ``"fix"`` omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : None, str or (forward, inverse)
        Scale on which the outcome is modelled, as in `HeckmanRegressor`.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    level : float, default 0.05
        Probability of rejecting valid instruments, at most 0.5.
    seed : int, default 0
        For the bootstrap and, beyond 10,000 rows, the random rows in use.

    Returns
    -------
    InstrumentValidity
        ``verdict``, ``sentence``, ``p_value``, ``tests``, ``fits``, ``to_frame()`` and
        ``to_dict()``.

    Raises
    ------
    DataError
        If the data cannot be used.

    Notes
    -----
    *Inequalities* (Huber and Mellace, 2014). Consider two groups with equal x, such that more units
    are selected in the second. If the instrument is valid and shifts all units in the
    same direction, the selected of the first group make up the share
    :math:`q = P(s=1|1)/P(s=1|2)` of the selected of the second, so that

    .. math:: E[y \mid \text{lowest } q, 2] \le E[y \mid 1] \le E[y \mid \text{highest } q, 2]

    among the selected. Smooth functions of x are subtracted from y, and overlap weights give the
    groups equal distributions of x. The groups are levels of a discrete instrument, or thirds of
    the part of a continuous one that x does not explain. The p-value of the largest violation comes
    from a bootstrap with generalised moment selection. Several instruments are combined as in the
    probit of selection.

    *Overidentification*, for two or more instruments and an outcome with more than two values. They
    may enter the mean outcome of the selected only through the index. The test adds their other
    directions to a regression on smooth functions of x and of the index, with a covariance that is
    robust to heteroskedasticity and allows for the estimated index.

    With two tests, each one is made at half the level.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(1000, rho=0.5, alpha=0.5, seed=0).frame
    >>> found = hk.test_instruments(frame[["x", "z"]], frame["y"], instruments=["z"])
    >>> found.verdict
    'not rejected'
    """
    if not (is_share(level) and level <= 0.5):
        raise DataError(
            "level is the probability of rejecting valid instruments, a number above 0 and at most "
            f"0.5 such as 0.05, got {level!r}"
        )
    if not (is_whole(seed) and seed >= 0):
        raise DataError(f"seed must be a whole number that is not negative, got {seed!r}")
    options = {"instruments": instruments, "missing": missing, "on_problem": on_problem}
    options |= {"target_transform": target_transform, "unobserved": unobserved}
    sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
    data = read_table(SimpleNamespace(**options), X, y, **sides, check=check_fit)
    if not data.instruments:
        raise DataError("there is nothing to test: name at least one column of X as an instrument")
    return validity_of(data, level=float(level), seed=int(seed))


test_instruments.__test__ = False  # type: ignore[attr-defined]  # not a test for pytest


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
