"""`hk.identify` and `hk.test_instruments`: the verdict and tests of instruments without a model."""

# ruff: noqa: PT028
# `test_instruments` is not a test of pytest, so that its parameters may have defaults.

from dataclasses import replace
from functools import wraps
from types import SimpleNamespace

from heckesel.column_checks import check_fit, plan_of
from heckesel.data import SelectionData
from heckesel.errors import ColumnError, DataError, is_share, is_whole
from heckesel.tables.fit_input import read_table
from heckesel.verdict.fitted import identify_data
from heckesel.verdict.identify import Identification
from heckesel.verdict.validity import LEVEL, InstrumentValidity, validity_of


def listing_problems(fit):
    """A `fit` whose error about one column also lists the other problems of the table."""

    @wraps(fit)
    def listed(self, X, y=None, **options):
        try:
            return fit(self, X, y, **options)
        except ColumnError as error:
            raise ColumnError(
                _with_all(error, self, X, y, options), error.terms, error.reason
            ) from None

    return listed


def _with_all(error: ColumnError, model, X, y, options: dict) -> str:
    sides = {name: options.get(name) for name in ("selected", "sample_weight", "groups")}
    try:
        sides |= {"instruments": model.instruments, "unobserved": model.unobserved}
        plan, _ = plan_of(X, y, **sides)
    except (DataError, TypeError, ValueError):  # the columns are not the only problem
        return str(error)
    if len(plan.actions) < 2:
        which = plan.actions and str(error).endswith("drop one of them")  # and not clear which
        return f"{error}, or set on_problem='fix'" if which else str(error)
    return f"{error}. on_problem='fix' would act on {len(plan.actions)} columns. " + ". ".join(
        plan.actions
    )


def identify(
    X,
    y,
    *,
    instruments=None,
    selected=None,
    sample_weight=None,
    groups=None,
    missing: str = "error",
    on_problem: str = "error",
    target_transform=None,
    unobserved=None,
) -> Identification:
    """Report whether the data support a correction for selection.

    The verdict is on the instruments: how much they say about the correlation of the errors, and
    whether they contradict each other. It needs no model of the outcome beyond sums of smooth
    functions of its columns.

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
    missing : {"error", "indicator"}
        ``"indicator"`` imputes the mean of a missing x and adds a missing indicator.
    on_problem : {"error", "fix"}
        ``"fix"`` omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : None, str or (forward, inverse)
        Scale on which the outcome is modelled, as in `HeckmanRegressor`.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.

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
    table = SimpleNamespace(
        instruments=instruments,
        missing=missing,
        on_problem=on_problem,
        target_transform=target_transform,
        unobserved=unobserved,
    )
    sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
    return _verdict(table, _read(table, X, y, **sides))


@listing_problems
def _read(table, X, y, **sides) -> SelectionData:
    return read_table(table, X, y, **sides, check=check_fit)


def _verdict(table, data: SelectionData) -> Identification:
    found = identify_data(data)
    if table.transform_ is None:
        return found
    return replace(found, evidence=found.evidence | {"scale": data.y_name})


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
        For the bootstrap, the simulated power and, beyond 10,000 rows, the random rows in use.

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
    data = _read(SimpleNamespace(**options), X, y, **sides)
    if not data.instruments:
        raise DataError("there is nothing to test: name at least one column of X as an instrument")
    return validity_of(data, level=float(level), seed=int(seed))


test_instruments.__test__ = False  # type: ignore[attr-defined]  # not a test for pytest
