"""Problems of the columns of a table: the checks that find them, and the plan that fixes them."""

from dataclasses import replace
from functools import wraps
from types import SimpleNamespace

import numpy as np

from heckesel.classical.checks import (
    COLLINEAR_BELOW,
    check_estimable,
    checked_probit,
    exact_outcome,
    unexplained_share,
)
from heckesel.data import SelectionData
from heckesel.errors import ColumnError, DataError
from heckesel.tables.columns import Columns
from heckesel.tables.fit_input import fixed_columns, outcome_column, split_groups


def check_fit(data: SelectionData) -> None:
    """Raise a `ColumnError` for columns that are constant, collinear or predict selection."""
    one = np.ones((data.n, 1))
    shared = [j for j, name in enumerate(data.w_names) if name not in data.instruments]
    names = tuple(data.w_names[j] for j in shared)
    w = np.hstack([one, data.w])
    whole = replace(
        data,
        x=np.hstack([one, data.w[:, shared]]),
        x_names=("Intercept", *names),
        w=w,
        w_names=("Intercept", *data.w_names),
        excluded=data.instruments,
    )
    check_estimable(whole)
    if not data.s.all():
        checked_probit(w, data.s, whole.w_names, data.weight)


def check_errors(data: SelectionData) -> None:
    """Refuse an outcome that is an exact linear function of x, since all errors are then zero."""
    seen = data.take(data.s & (data.weight > 0))
    if seen.n <= seen.x.shape[1] + 1 or np.ptp(seen.y) == 0:
        return
    if unexplained_share(seen.x, seen.y, seen.weight) < COLLINEAR_BELOW:
        raise exact_outcome(data.y_name, seen.n)


def plan_of(
    X, y, *, instruments, selected, sample_weight, groups=None, strict: bool, unobserved=None
) -> Columns:
    """The columns of on_problem="fix"; y : numbers. strict : as in `fixed_columns`."""
    table = SimpleNamespace(instruments=instruments)
    X, found = split_groups(X, groups, table)
    name = str(getattr(y, "name", None) or "y")
    sides = {"selected": selected, "weight": sample_weight, "y_name": name}
    columns, _ = fixed_columns(
        table,
        X,
        outcome_column(y, unobserved),
        sides,
        groups=None if found is None else found.codes,
        check=check_fit,
        strict=strict,
    )
    return columns


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
        plan = plan_of(X, y, **sides, strict=False)
    except (DataError, TypeError, ValueError):  # the columns are not the only problem
        return str(error)
    if len(plan.actions) < 2:
        which = plan.actions and str(error).endswith("drop one of them")  # and not clear which
        return f"{error}, or set on_problem='fix'" if which else str(error)
    return f"{error}. on_problem='fix' would act on {len(plan.actions)} columns. " + ". ".join(
        plan.actions
    )
