"""`hk.column_report`: what columns are, and what on_problem="fix" does with them; and the checks of
columns before a fit."""

from dataclasses import asdict, dataclass, replace
from functools import wraps
from types import SimpleNamespace

import numpy as np
import pandas as pd

from heckesel.classical.checks import (
    check_estimable,
    checked_probit,
    dependent_columns,
    exact_outcome,
    unexplained_share,
)
from heckesel.data import SelectionData
from heckesel.display import block, box, html_table
from heckesel.errors import ColumnError, DataError
from heckesel.math.moments import COLLINEAR_BELOW
from heckesel.tables.columns import ColumnEntry, Columns, named_columns
from heckesel.tables.fit_input import (
    fixed_columns,
    outcome_column,
    split_groups,
    without_unobserved,
)
from heckesel.tables.problems import check_usable, repeated_units


def check_fit(data: SelectionData) -> None:
    """Raise a `ColumnError` for columns that are constant, collinear or predict selection."""
    one = np.ones((data.n, 1))
    shared = [j for j, name in enumerate(data.w_names) if name not in data.instruments]
    w, names = np.hstack([one, data.w]), ("Intercept", *data.w_names)
    x_names = ("Intercept", *(data.w_names[j] for j in shared))
    x = w[:, [0, *(j + 1 for j in shared)]]
    seen = replace(data, x=x, x_names=x_names, excluded=data.instruments).take(data.s)
    check_estimable(seen)
    if data.s.all():
        return
    used = seen.weight > 0
    y = seen.y[used]
    if np.ptp(y) == 0 or dependent_columns(np.column_stack([seen.x[used], y]))[0] == len(x_names):
        raise exact_outcome(data.y_name, len(y))
    checked_probit(w, data.s, names, data.weight)


def check_selection(data: SelectionData) -> None:
    """Refuse columns that are collinear among all rows, or predict selection perfectly."""
    if not data.s.all():
        w = np.column_stack([np.ones(data.n), data.w])
        checked_probit(w, data.s, ("Intercept", *data.w_names), data.weight)


def check_errors(data: SelectionData) -> None:
    """Refuse an outcome that is an exact linear function of x, since all errors are then zero."""
    seen = data.take(data.s & (data.weight > 0))
    if seen.n <= seen.x.shape[1] + 1 or np.ptp(seen.y) == 0:
        return
    if unexplained_share(seen.x, seen.y, seen.weight) < COLLINEAR_BELOW:
        raise exact_outcome(data.y_name, seen.n)


def plan_of(
    X, y, *, instruments, selected, sample_weight, groups=None, unobserved=None
) -> tuple[Columns, DataError | None]:
    """The columns of on_problem="fix", and why they still cannot be used; y : numbers."""
    table = SimpleNamespace(instruments=instruments)
    X, _ = split_groups(X, groups, table)
    name = str(getattr(y, "name", None) or "y")
    sides = {"selected": selected, "weight": sample_weight, "y_name": name}
    return fixed_columns(table, X, outcome_column(y, unobserved), sides, check=check_fit)


@dataclass(frozen=True)
class ColumnReport:
    """The columns of a table.

    Attributes
    ----------
    entries : tuple of ColumnEntry
        One per column, in the order of the table: ``name``, ``role``, ``kind``, ``levels`` (the
        number of different values), ``missing`` (a share), ``action`` (what on_problem="fix" does)
        and ``acted`` (whether it changes the column).
    error : str or None
        Why the table cannot be used even with on_problem="fix".
    question : str
        Asks about repeated units if a column seems to identify them and `groups` was not given.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> report = hk.column_report(frame[["x", "z"]], frame["y"], instruments=["z"])
    >>> report.to_frame()["role"].tolist()
    ['both equations', 'instrument']
    """

    entries: tuple[ColumnEntry, ...]
    error: str | None = None
    question: str = ""

    @property
    def actions(self) -> tuple[str, ...]:
        """One sentence for each column that on_problem="fix" changes or omits."""
        return tuple(str(entry) for entry in self.entries if entry.acted)

    def to_frame(self) -> pd.DataFrame:
        """The entries as a frame.

        Returns
        -------
        DataFrame
            One row per column.
        """
        return pd.DataFrame([asdict(entry) for entry in self.entries]).set_index("name")

    def __str__(self) -> str:
        width = max(len(name) for name in ("column", *(each.name for each in self.entries))) + 2
        lines = [f"{'column':<{width}}{'kind':<12}{'values':>9}{'missing':>9}  action"]
        for each in self.entries:
            lines.append(
                f"{each.name:<{width}}{each.kind:<12}{each.levels:>9,}{each.missing:>9.1%}  "
                f"{each.action}"
            )
        if self.question:
            lines.append(f"Question: {self.question}")
        return "\n".join(lines if self.error is None else [*lines, f"Cannot be used: {self.error}"])

    def _repr_html_(self) -> str:
        rows = [
            (
                each.name,
                each.role,
                each.kind,
                f"{each.levels:,}",
                f"{each.missing:.1%}",
                each.action,
            )
            for each in self.entries
        ]
        names = ("column", "role", "kind", "values", "missing", "action")
        table = html_table(names, rows, left=("role", "kind", "action"))
        wrong = [] if self.error is None else [box("bad", "Cannot be used", self.error)]
        return block(table, *wrong)


def column_report(
    X,
    y,
    *,
    instruments=None,
    selected=None,
    sample_weight=None,
    groups=None,
    unobserved=None,
) -> ColumnReport:
    """Report the kind of each column of a table, and what ``on_problem="fix"`` does with it.

    Parameters
    ----------
    X : frame or array-like of shape (n, columns)
        Columns of both equations, instruments included.
    y : array-like of shape (n,)
        The outcome, a number or a class, NaN or None where it was not observed.
    instruments : list of str or int, optional
        Columns of X that affect selection but not the outcome, by name or position.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    groups : str or array-like of shape (n,), optional
        Groups of dependent rows: the name of a column of X, or one label per row.
    unobserved : value or list of values, optional
        Values of y that stand for a missing outcome, such as 0 or 999.

    Returns
    -------
    ColumnReport
        All columns with their problems. Printed, it is a table.

    Raises
    ------
    DataError
        If X, y or an argument cannot be used.

    Notes
    -----
    ``on_problem="fix"`` does the following.

    - Numbers: missing values are imputed by the mean, with a missing indicator if at least 10
      selected and 10 unselected rows miss the value. Numbers that stand for a missing value count
      as missing: 99, 999, ... or 0 if they are as far from all other values as these are from each
      other, and -1, -9, -99, ... if no other value is negative.
    - Categories: levels with fewer than 10 selected or 10 unselected rows are pooled into
      ``other``, and so are all but the 40 most frequent ones. New levels are treated as ``other``
      or, if there is none, as the average level.
    - Codes are categories: 250 and V57 in one column, 007, and whole numbers in a column that by
      its name holds codes of places, units or kinds, such as ``zip``, ``region`` or ``schoolid``.
    - Dates become a trend in years, the month and the day of the week.
    - Columns are omitted if they are constant, equal to another, a function of others in the rows
      that have all of them (a linear combination of numbers, or a category that another category
      determines), identifiers or free text, or if they predict selection perfectly.
    - Columns are also omitted as consequences of selection if their missing values nearly repeat
      it: missing in no selected row and in more than half of the unselected rows, or in at least
      90 % on one side and at most 10 % on the other.
    - Columns are omitted as leaks if the outcome can be computed from them, alone (in ranks, to
      99.99 %) or from their product or ratio with another column.
    - A column that is missing much more often on one side of selection (by 30 percentage points)
      is kept and questioned.
    - If no instrument is left, an error is raised.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> X = frame[["x", "z"]].assign(double=2 * frame["x"], year=2020)
    >>> for action in hk.column_report(X, frame["y"], instruments=["z"]).actions:
    ...     print(action)
    double: omitted, since it is a linear combination of x
    year: omitted, since it is constant (2020)
    """
    sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
    columns, error = plan_of(X, _numbers(y, unobserved), instruments=instruments, **sides)
    asked = repeated_units(named_columns(X)[0]) if groups is None else ""
    try:
        check_usable(columns)
    except DataError as unusable:
        error = unusable
    return ColumnReport(columns.entries, None if error is None else str(error), asked)


def _numbers(y, unobserved):
    """Classes as 0, 1, ...; other outcomes as they are, without the values `unobserved`."""
    if unobserved is not None:
        values = without_unobserved(np.asarray(y, dtype=object), unobserved)
        y = pd.Series(values, name=getattr(y, "name", None))
    labels = pd.Series(y) if isinstance(y, pd.Series) else pd.Series(list(y), dtype=object)
    if all(isinstance(each, str | bool) for each in labels.dropna()):
        codes = pd.Series(pd.factorize(labels, sort=True)[0], labels.index, name=labels.name)
        return codes.where(codes >= 0).astype(float)
    return y


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
