r"""Checks before a fit: constant, collinear and separating columns, and too few rows."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.optimize import linprog

from heckesel.classical.probit import ProbitFit, fit_probit
from heckesel.classical.rows import column_scale, slices, threads_of_blocks
from heckesel.data import MISSING_INDICATOR, SelectionData, check_complete
from heckesel.errors import ColumnError, DataError, warn_user
from heckesel.math.moments import dependent_in

# A density is unsuitable if one value has more than this share of the outcomes, or if there are at
# most this many values. An age in years, for example, has no value with a share of a tenth.
SPIKE, FEW_VALUES = 0.1, 12


def unsuited_to_density(y: np.ndarray, weight: np.ndarray) -> str | None:
    """Why the outcome has no smooth density, or None."""
    values, place = np.unique(y, return_inverse=True)
    share = np.bincount(place, weight) / weight.sum()
    if len(values) <= FEW_VALUES:
        return f"the outcome has only {len(values)} distinct values"
    if share.max() > SPIKE:
        return f"{share.max():.0%} of the outcomes equal {values[share.argmax()]:g}"
    return None


GLANCE_ROWS = 2048
# The information about a standardised coefficient at a standard error of 30. A probit whose
# coefficients diverge is reported as converged once the likelihood hardly increases.
LEAST_INFORMATION = 1e-3


def check_estimable(data: SelectionData) -> None:
    """Raise a `DataError` for constant, collinear or separating columns and too few rows.

    A problem of all rows is also one of any part of them. A long table is therefore checked on a
    part, and on all rows only if the part has a problem.
    """
    part = slice(0, GLANCE_ROWS)
    if data.n > 4 * GLANCE_ROWS and (data.s.all() or not data.s[part].all()):
        try:
            return check_rows(data, part)
        except DataError:
            pass
    return check_rows(data, slice(None))


def check_rows(data: SelectionData, rows: slice) -> None:
    """Whether these rows determine every coefficient."""
    chosen, weight = data.s[rows], data.weight[rows]
    w, s, x, y = data.w[rows], chosen, data.x[rows][chosen], data.y[rows][chosen]
    if not weight.all():
        used = weight > 0
        x, y, w, s = x[used[chosen]], y[used[chosen]], w[used], s[used]
    if len(x) <= x.shape[1]:
        raise DataError(
            f"{len(x)} selected rows cannot determine {x.shape[1]} outcome coefficients "
            "and a variance; use fewer columns or more rows"
        )
    check_columns(x, data.x_names, f"among the {len(x)} selected rows")
    if s.all():  # least squares can fit an exact outcome
        return
    if y.min() == y.max() or dependent_columns(np.column_stack([x, y]))[0] == x.shape[1]:
        raise exact_outcome(data.y_name, len(x))
    check_columns(w, data.w_names, f"over all {len(w)} rows")
    refuse(separating_column(w, s, data.w_names))


def exact_outcome(y_name: str, rows: int) -> DataError:
    """The error for an outcome without errors, whose correlation with selection is undefined."""
    return DataError(
        f"the outcome {y_name!r} is an exact linear function of its columns among the {rows} "
        "selected rows, so there is no error to correct; check the columns"
    )


def check_scale(data: SelectionData) -> None:
    """Refuse columns of log sigma(x) that the selected rows do not determine."""
    if data.scale is None:
        return
    check_complete(data.scale, data.scale_names, np.flatnonzero(data.s))
    values = data.scale[data.s & (data.weight > 0)]
    where = f"among the {len(values)} selected rows"
    columns = np.column_stack([np.ones(len(values)), values])
    check_columns(columns, ("Intercept", *data.scale_names), where)


def warn_without_density(data: SelectionData) -> None:
    """Warn of an outcome with few values or a spike, for which the density of errors='shape' is
    wrong."""
    reason = unsuited_to_density(data.y[data.s], data.weight[data.s])
    if reason is not None:
        warn_user(
            f"errors='shape' needs a continuous outcome, but in {data.y_name!r} {reason}; use "
            "method='two-step', whose slopes do not depend on the error distribution, or "
            "HeckmanClassifier if there are two values"
        )


def check_columns(values, names, where: str) -> None:
    """Constant columns (one intercept apart) and linear combinations."""
    check_constant(values.min(axis=0), values.max(axis=0), names, where)
    column, others = dependent_columns(values)
    if len(others) == 1 and np.array_equal(values[:, column], values[:, others[0]]):
        raise ColumnError(
            f"columns {names[others[0]]!r} and {names[column]!r} are equal {where}; drop one",
            (names[column],),
            f"equals {names[others[0]]}",
        )
    refuse_dependent(column, others, names, where)


def refuse_dependent(column: int | None, others, names, where: str) -> None:
    """Raise an error for the columns that `first_dependent` found, if any."""
    if column is not None:
        shown = ", ".join(names[j] for j in others[:3]) + ", ..." * (len(others) > 3)
        raise ColumnError(
            f"column {names[column]!r} is a linear combination of "
            f"{', '.join(repr(names[j]) for j in others)} {where}; drop one of them",
            (names[column],),
            f"is a linear combination of {shown}",
        )


def check_constant(low, high, names, where: str) -> None:
    constants = [j for j in np.flatnonzero(low == high) if names[j] != "Intercept"]
    if constants:
        name, value = names[constants[0]], low[constants[0]]
        if name.endswith(MISSING_INDICATOR):
            column = name.removesuffix(MISSING_INDICATOR)
            raise ColumnError(
                f"column {column!r} is {'always' if value else 'never'} missing {where}, so its "
                f"missing indicator {name!r} is constant; impute {column!r} or drop it",
                (name,),
                f"is constant {where}",
            )
        raise ColumnError(
            f"column {name!r} is constant ({value:g}) {where}, so its effect cannot be "
            "distinguished from the intercept; drop it",
            (name,),
            f"is constant {where}",
        )


def dependent_columns(values) -> tuple[int | None, list[int]]:
    """The first column that is explained by earlier ones, and these; None if there is none."""
    scaling = column_scale(values)
    gram = np.zeros((values.shape[1],) * 2)
    with threads_of_blocks(len(values)):
        for block in slices(len(values)):
            rows = scaling.apply(values[block])
            gram += rows.T @ rows
    return first_dependent(gram)


def first_dependent(gram) -> tuple[int | None, list[int]]:
    """The same from the cross products of standardised columns."""
    return next(iter(dependent_in(gram)), (None, []))


class Event(NamedTuple):
    """The event that a probit explains, in the words of its messages."""

    name: str
    yes: str
    no: str


SELECTION = Event("selection", "selected", "unselected")


def separation(
    w, s, names, where: str, event: Event = SELECTION, weight=None
) -> tuple[ProbitFit | None, ColumnError | None]:
    """A probit of s on w, or an error that says why it has no finite estimate.

    Constant and collinear columns are refused. A combination of columns that separates is searched
    for if the data contain almost no information about a coefficient.
    """
    check_columns(w, names, where)
    found = separating_column(w, s, names, event)
    if found is not None:
        return None, found
    probit, back = fit_probit(w, s, weight), column_scale(w).back
    if np.linalg.eigvalsh(-back.T @ probit.hessian @ back).min() < LEAST_INFORMATION:
        found = separating_combination(w, s, names, event)
    return probit, found


def checked_probit(w, s, names, weight=None) -> ProbitFit:
    """The probit of selection; columns that predict it perfectly raise an error."""
    probit, found = separation(w, s, names, f"over all {len(w)} rows", weight=weight)
    refuse(found)
    assert probit is not None
    return probit


def refuse(error: ColumnError | None) -> None:
    """Raise the error, if there is one."""
    if error is not None:
        raise error


def separating_column(w, s, names, event: Event = SELECTION) -> ColumnError | None:
    """One column that predicts the event perfectly, at a level or beyond a threshold."""
    inside, outside = w[s], w[~s]

    def two_values(j, low, high):
        glance = w[:64, j]
        here = ((glance == low) | (glance == high)).all()
        return here and ((w[:, j] == low) | (w[:, j] == high)).all()

    ends = inside.min(axis=0), inside.max(axis=0), outside.min(axis=0), outside.max(axis=0)
    return separating_range(*ends, names, two_values, event)


def separating_range(
    low_in, high_in, low_out, high_out, names, two_values, event: Event = SELECTION
) -> ColumnError | None:
    """The same from the smallest and largest value among selected and unselected rows.

    two_values : (column, low, high) -> whether it takes these two values only
    """
    low, high = np.minimum(low_in, low_out), np.maximum(high_in, high_out)
    for j, name in enumerate(names):
        if low[j] == high[j]:
            continue
        if two_values(j, low[j], high[j]):
            for value, here_in, here_out in (
                (low[j], low_in[j] == low[j], low_out[j] == low[j]),
                (high[j], high_in[j] == high[j], high_out[j] == high[j]),
            ):
                if here_in != here_out:
                    return _separated(name, value, here_in, event)
        elif high_in[j] <= low_out[j] or high_out[j] <= low_in[j]:
            above = low_in[j] >= high_out[j]
            cut = high_out[j] if above else high_in[j]
            return _separated(name, cut, above, event, "on one side of")
    return None


def _separated(name, value, happened, event: Event, where: str = "with") -> ColumnError:
    state = event.yes if happened else event.no
    reason = f"predicts {event.name} perfectly"
    if not name.endswith(MISSING_INDICATOR):
        message = (
            f"column {name!r} {reason} (every row {where} {name} = {value:g} is {state}), so its "
            "coefficient has no finite estimate; drop the column or merge its levels"
        )
        return ColumnError(message, (name,), reason)
    column = name.removesuffix(MISSING_INDICATOR)
    message = (
        f"every row in which {column!r} is {'missing' if value else 'not missing'} is {state}, so "
        f"the missing indicator {name!r} has no finite coefficient; impute {column!r} or drop it"
    )
    return ColumnError(message, (name,), reason)


class Direction(NamedTuple):
    """weights : (q,) of the standardised columns; margins : (n,) sign_i w_i'g, none negative"""

    weights: np.ndarray
    margins: np.ndarray


def separating_direction(w, s) -> Direction | None:
    """g with sign_i w_i'g >= 0 for all i and > 0 for some, which is a linear program."""
    signed = np.where(s, 1.0, -1.0)[:, None] * column_scale(w).apply(w)
    program = linprog(
        -signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(s)), bounds=(-1, 1), method="highs"
    )
    if program.status == 0 and -program.fun > 1e-7 * len(s):
        return Direction(program.x, signed @ program.x)
    return None


def separating_combination(w, s, names, event: Event = SELECTION) -> ColumnError | None:
    """After a probit whose coefficients diverged: whether a combination of columns separates the
    rows."""
    found = separating_direction(w, s)
    if found is not None:
        part = np.flatnonzero(np.abs(found.weights) > 1e-7)
        columns = [names[j] for j in part if names[j] != "Intercept"]
        return ColumnError(
            f"columns {', '.join(map(repr, columns))} together predict {event.name} perfectly "
            "for some rows, so the probit has no finite estimate; drop one of them",
            tuple(columns),
            f"predicts {event.name} perfectly for some rows, together with other columns",
        )
    return None


# At the last one a coefficient of a thousand costs .005 log-units: rows more than a hundredth of an
# sd apart get their class with a probability near one. The others are stations on the way there,
# since Newton would start too far away.
RIDGES = (1e-2, 1e-4, 1e-6, 1e-8)
RIDGE = RIDGES[-1]
# Scaled columns depend on one another below this share of their size: collinear columns leave
# 1e-16, and those that a fit accepts 3e-6 (`COLLINEAR_BELOW` is its square).
DEPENDENT_BELOW = 1e-8
STRICTLY = 1e-6  # margin of a separated row; the linear program has tolerances of 1e-7


def fit_separated(x, happened, weight=None) -> ProbitFit:
    """The probit under `RIDGE`; `loglik` is that of the data alone. status: `separated`."""
    found = None
    for ridge in RIDGES:
        found = fit_probit(
            x, happened, weight, start=None if found is None else found.gamma, ridge=ridge
        )
    assert found is not None
    standardised = np.linalg.solve(column_scale(x).back, found.gamma)
    paid = 0.5 * RIDGE * float(standardised @ standardised)
    return replace(found, loglik=found.loglik + paid, status="separated")


@dataclass(frozen=True)
class Overlap:
    """rows : (n,) that no direction separates; columns : positions of independent columns among
    them; determined : (p,) coefficients that these rows determine"""

    rows: np.ndarray
    columns: np.ndarray
    determined: np.ndarray


def overlap_of(x, happened) -> Overlap | None:
    """The overlap of classes that columns separate; None if they separate all rows.

    x : (n, p) with its constant; happened : (n,) bool
    """
    rows = np.ones(len(x), dtype=bool)
    while True:
        inside, event = x[rows], happened[rows]
        if event.all() or not event.any():
            return None
        columns, determined = _independent(inside)
        apart = _separated_rows(inside[:, columns], event)
        if not apart.any():
            return Overlap(rows, columns, determined)
        rows[np.flatnonzero(rows)[apart]] = False


def _independent(x) -> tuple[np.ndarray, np.ndarray]:
    """Positions of columns that span all of x, and which coefficients every choice agrees on."""
    size = np.abs(x).max(axis=0)
    triangle = np.linalg.qr(x / np.where(size > 0, size, 1.0), mode="r")
    _, singular, directions = np.linalg.svd(triangle)
    rank = int((singular >= DEPENDENT_BELOW * singular[0]).sum())
    determined = (np.abs(directions[rank:]) < DEPENDENT_BELOW).all(axis=0)
    pivots = qr(triangle, mode="r", pivoting=True)[1]
    return np.sort(pivots[:rank]), determined


def _separated_rows(x, happened) -> np.ndarray:
    """(n,) rows that a level of a column, or else a combination of columns, separates."""
    low, high = x.min(axis=0), x.max(axis=0)
    two_values = ((x == low) | (x == high)).all(axis=0) & (low < high)
    apart = np.zeros(len(x), dtype=bool)
    for j in np.flatnonzero(two_values):
        for value in (low[j], high[j]):
            level = x[:, j] == value
            apart |= level & (happened[level].all() or not happened[level].any())
    if apart.any():
        return apart
    back = column_scale(x).back
    hessian = fit_probit(x, happened).hessian
    if np.linalg.eigvalsh(-back.T @ hessian @ back).min() >= LEAST_INFORMATION:
        return apart
    direction = separating_direction(x, happened)
    return apart if direction is None else direction.margins > STRICTLY


def residual(columns, values, weight) -> np.ndarray:
    """(n,) of a weighted regression on a constant and the columns."""
    root, design = np.sqrt(weight), np.column_stack([np.ones(len(values)), columns])
    return values - design @ np.linalg.lstsq(root[:, None] * design, root * values, rcond=None)[0]


def unexplained_share(columns, values, weight) -> float:
    """1 - R2 of a weighted regression on a constant and the columns."""
    centred = values - np.average(values, weights=weight)
    total = float(weight @ centred**2)
    return float(weight @ residual(columns, centred, weight) ** 2) / total if total else 0.0
