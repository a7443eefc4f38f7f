"""What the page says: every number is computed here, before anything is drawn."""

import math
import platform
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from heckesel import __version__
from heckesel.data import evenly_spaced
from heckesel.diagnose import placebo, test_instruments
from heckesel.display import number, p_text
from heckesel.errors import DataError
from heckesel.io import announce, unannounced
from heckesel.margins import frame_of_rows
from heckesel.metrics import AGAINST_BELOW, WELL_FROM, regions
from heckesel.plots import group_averages, outcome_of, selection_probability
from heckesel.tables.fit_input import observed_values, split_groups
from heckesel.verdict.bounds import bounds
from heckesel.verdict.identify import NOTHING_TO_CORRECT, REJECTED, TONES
from heckesel.verdict.sensitivity import MOST_ROWS, sensitivity

LEVEL = 0.9
WIDE = f"{100 * LEVEL:.0f} %"
NONE = "–"
REGIONS = {
    "against": f"seldom selected (below {100 * AGAINST_BELOW:.0f} %)",
    "mid": f"sometimes selected ({100 * AGAINST_BELOW:.0f} % to {100 * WELL_FROM:.0f} %)",
    "well": f"mostly selected ({100 * WELL_FROM:.0f} % or more)",
}
RHO_SHOWN = (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9)
MOST_CASES = 5_000  # to group by probability of selection
# Each hidden column costs a fit; together they take less time than that of the default model.
HIDDEN_COLUMNS, HIDDEN_ROWS, HIDDEN_FOLDS = 4, 2_000, 3


@dataclass(frozen=True)
class Table:
    """Strings of a table; `words` are the columns that hold text."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """means : of the selected, the unselected and all, by both models; None if every case has an
        outcome
    data : X as a frame, y, whether it is observed, and the weights and groups of `fit`
    naive : the model without a correction
    tables : what the template shows, by name
    sentences : about them, by the same names
    """

    model: Any
    naive: Any
    data: tuple[pd.DataFrame, Any, np.ndarray, dict]
    outcome: str
    method: str
    evidence: tuple[str, ...]
    means: pd.DataFrame | None
    tables: dict[str, Table]
    sentences: dict[str, str]
    coefficients: tuple[Table, ...]
    sensitivity: Any
    versions: str

    @property
    def tone(self) -> str:
        return TONES[self.model.identification_.verdict]


def report_contents(
    model, X, y, *, baseline=None, selected=None, sample_weight=None, groups=None
) -> Contents:
    """The numbers of the page. The model is not fitted again; some columns are hidden and
    predicted."""
    X, found = split_groups(X, groups, model)
    clustered = getattr(getattr(model, "result_", None), "covariance", None) == "cluster"
    if found is None and (clustered or getattr(model, "groups_name_", None) is not None):
        raise DataError("the model was fitted with groups, so give the report these groups")
    frame = frame_of_rows(X, model.columns_.given_names).reset_index(drop=True)
    lacking = [name for name in model.columns_.given_names if name not in frame.columns]
    if lacking:
        raise DataError(f"X has no column {lacking[0]!r}; the report needs every column of the fit")
    frame = frame[list(model.columns_.given_names)]
    values, s = observed_values(model, y, selected)
    rows = _rows_of_fit(model, weighted=sample_weight is not None)
    if len(values) != len(frame):
        raise DataError(f"X has {len(frame)} rows but y has {len(values)}")
    if rows is not None and rows != len(frame):  # every count on the page would be wrong
        raise DataError(
            f"X has {len(frame):,} rows but the model was fitted to {rows:,}; give the report the "
            "rows of the fit, or fit the model to these rows"
        )
    verdict, name, event = model.identification_, model.outcome_name_, hasattr(model, "classes_")
    sd = float(np.nanstd(values[s]))
    decimals = 2 - math.floor(math.log10(sd)) if 0 < sd < math.inf else 2
    digits = _digits(min(max(decimals, 0), 12))
    sides = {"sample_weight": sample_weight, "groups": None if found is None else found.codes}
    corrects = verdict.verdict != NOTHING_TO_CORRECT and not s.all()
    tables: dict[str, Table | None] = {"columns": _columns(model, frame, s)}
    tables["options"], sentences = _options(model), dict[str, str]()
    naive = means = curves = None
    validity: tuple[str, ...] = ()
    with warnings.catch_warnings():  # those of the fit, again
        warnings.simplefilter("ignore")
        if corrects:
            announce("means of both models")
            naive = baseline or _naive(model, frame, y, s, sides)
            means = _three_means(model, naive, frame, s)
            usable = TONES[verdict.verdict] != "bad"
            tables["means"] = _table_of_means(means, digits, usable=usable)
            tables["changes"] = _changes(model, naive, frame, digits, usable=usable)
            sentences["means"] = _headline(means, outcome_of(model), digits, usable=usable)
            announce("tests of the instruments")
            validity = _validity(model, frame, values, s, sides)
            tables["bounds"] = _bounds(values, s, name, event, digits, sides)
            if has_posterior(model):
                announce("several priors of rho, and hidden columns")
                given = {"y": y, "selected": selected, "level": LEVEL, "rho": [0.0]}
                priors = sensitivity(model, frame, **given)
                tables["sensitivity"] = _priors(priors, digits, len(frame))
                sentences["sensitivity"] = _turn(priors, digits)
                tables["placebo"], sentences["placebo"] = _placebo(model, frame, values, s, sides)
            elif not event and (curves := _sensitivity(model, frame)) is not None:
                tables["sensitivity"] = _scenarios(curves, digits)
        else:
            sentences["means"] = f"Every case has {name}, so nothing is corrected."
    packages = ("numpy", "scipy", "pandas", "scikit-learn")
    return Contents(
        model=model,
        naive=naive,
        data=(frame, y, s, sides),
        outcome=outcome_of(model),
        method=_method(model),
        evidence=(*map(number, verdict.evidence_lines()), *validity),
        means=means,
        tables={name: table for name, table in tables.items() if table is not None},
        sentences=sentences,
        coefficients=tuple(_coefficients(model, naive)) if hasattr(model, "result_") else (),
        sensitivity=curves,
        versions=", ".join(
            [f"heckesel {__version__}", f"Python {platform.python_version()}"]
            + [f"{each} {version(each)}" for each in packages]
        ),
    )


def _rows_of_fit(model, *, weighted: bool) -> int | None:
    """None if unknown: a saved model keeps the sum of frequency weights, not the rows."""
    result = getattr(model, "result_", None)
    if result is None:
        return model.identification_.evidence.get("rows")
    if hasattr(result.data, "n"):
        return result.data.n
    return None if weighted else result.n


def has_posterior(model) -> bool:
    """Whether rho has a posterior: prior times what the instrument says."""
    return hasattr(getattr(corrected_of(model), "rho", None), "rho_interval")


def corrected_of(model):
    """What the default method learned, of numbers or of classes."""
    return getattr(model.fitted_, "corrected", model.fitted_)


def _with(model, **changes):
    """A copy of the model with another selection or rho."""
    twin, corrected = copy(model), replace(corrected_of(model), **changes)
    within = hasattr(model.fitted_, "corrected")
    twin.fitted_ = replace(model.fitted_, corrected=corrected) if within else corrected
    return twin


def _naive(model, frame, y, s, sides):
    """The same model of the selected rows alone, which is what ignoring selection means."""
    if has_posterior(model):  # its outcome model is that of the selected
        return _with(model, selection=None, rho=None)
    twin, chosen = clone(model), np.flatnonzero(s)
    given = {"on_problem": "fix", "verbose": False, "scale": None, "errors": "normal"}
    twin.set_params(**{name: given[name] for name in given if name in twin.get_params()})
    sides = {k: None if side is None else np.asarray(side)[chosen] for k, side in sides.items()}
    y = pd.Series(np.asarray(y)[chosen], name=model.outcome_name_)
    try:
        return twin.fit(frame.iloc[chosen], y, **sides)
    except DataError:  # such as a column that is constant among the selected
        return None


def _average(model, naive, cases, target="population", groups=None) -> pd.DataFrame:
    """Mean, low and high of both models, cases and the change, by group."""
    groups = np.zeros(len(cases), int) if groups is None else groups
    plain = pd.DataFrame(np.nan, range(groups.max() + 1), ["mean", "low", "high"])
    if naive is not None:
        plain = group_averages(naive, cases, groups, LEVEL)
    names = {"mean": "naive", "low": "naive_low", "high": "naive_high"}
    found = group_averages(model, cases, groups, LEVEL, target).join(plain.rename(columns=names))
    return found.assign(change=found["mean"] - found["naive"], n=np.bincount(groups))


def _three_means(model, naive, frame, s) -> pd.DataFrame:
    parts = {"selected": s, "unselected": ~s, "population": s | True}
    rows = [_average(model, naive, frame[part], target) for target, part in parts.items()]
    return pd.concat(rows).set_axis(["selected", "unselected", "all"])


def _table_of_means(means: pd.DataFrame, digits, *, usable: bool) -> Table:
    rows = [
        (str(name), f"{row['n']:,.0f}", _estimate(digits, row, "naive"), _estimate(digits, row))
        for name, row in means.iterrows()
    ]
    header = ("", "cases", "naive", "corrected" + ("" if usable else " (do not use)"))
    return Table(f"Means with {WIDE} intervals", header, rows)


def some_of(frame: pd.DataFrame) -> pd.DataFrame:
    """At most 5,000 cases, at even steps."""
    return frame.iloc[evenly_spaced(len(frame), MOST_CASES)]


def _changes(model, naive, frame, digits, *, usable: bool) -> Table | None:
    """The means by probability of selection, in groups of at least ten cases."""
    caption = "Mean by probability of selection: everyone with these columns, selected or not"
    if len(frame) > MOST_CASES:
        caption += f" ({MOST_CASES:,} of the cases)"
    frame = some_of(frame)
    found = regions(selection_probability(model, frame))
    if not found:
        return None
    groups = np.repeat(np.arange(len(found)), [len(each) for each in found.values()])
    cases = frame.iloc[np.concatenate([*found.values()])]
    changed = _average(model, naive, cases, groups=groups)
    rows = [
        (
            REGIONS[name],
            f"{row['n']:,.0f}",
            digits(row["naive"]),
            _estimate(digits, row),
            digits(row["change"], signed=True),
            _in_words(row) if usable else "do not use",
        )
        for name, (_, row) in zip(found, changed.iterrows(), strict=True)
    ]
    corrected = "corrected" + ("" if usable else " (do not use)")
    return Table(
        caption,
        ("group", "cases", "naive", corrected, "change", "in words"),
        rows,
        words=("in words",),
    )


def _headline(means: pd.DataFrame, outcome: str, digits, *, usable: bool) -> str:
    if not usable:
        return "Do not use the corrected means: they only show what would change."
    row = means.loc["all"]
    words = {
        "no clear difference": f"the naive mean is inside the {WIDE} interval, so the "
        "difference is not clear",
        "uncertainty unknown": "its uncertainty is unknown",
    }.get(_in_words(row), f"{_in_words(row)}, and the naive mean is outside its interval")
    return (
        f"Over all {row['n']:,.0f} cases, the mean {outcome} is {digits(row['mean'])} with the "
        f"correction and {digits(row['naive'])} without; {words}."
    )


def _in_words(row) -> str:
    """The direction of a change, if the naive mean is outside the corrected interval."""
    if not np.isfinite([row["low"], row["high"], row["naive"]]).all():
        return "uncertainty unknown"
    if row["low"] <= row["naive"] <= row["high"]:
        return "no clear difference"
    return "corrected is lower" if row["change"] < 0 else "corrected is higher"


def _estimate(digits, row, of: str = "mean") -> str:
    """A mean with its interval, if there is one."""
    end = "" if of == "mean" else f"{of}_"
    low, high = row[f"{end}low"], row[f"{end}high"]
    shown = digits(row[of])
    return f"{shown} ({digits(low)} to {digits(high)})" if np.isfinite(low + high) else shown


def _validity(model, frame, values, s, sides) -> tuple[str, ...]:
    """What tests say about a direct effect of the instruments on the outcome."""
    options = ("instruments", "missing", "on_problem", "target_transform", "unobserved")
    given = {name: getattr(model, name) for name in options if hasattr(model, name)}
    if not model.columns_.instruments:
        return ()
    try:
        y = np.where(s, values, np.nan)
        # at the level of the verdict, so that the two cannot disagree
        found = test_instruments(frame, y, level=REJECTED, **given | sides)
    except DataError:  # such as too few rows
        return ()
    said = f"tests of a direct effect on the outcome: {found.sentence.rstrip('.')}"
    return tuple(number(line.strip()) for line in (said, *found.details()))


def _placebo(model, frame, values, s, sides) -> tuple[Table | None, str]:
    """Columns whose truth is known, hidden where the outcome is hidden: those that are most
    correlated with it."""
    columns = model.columns_
    everything = pd.DataFrame(columns.w(frame), columns=list(columns.w_names))
    names = [
        step.name
        for step, filled in columns.read(frame, columns.steps)
        if not (step.is_category or step.instrument or filled.absent.any())
        and step.name in frame
        and everything[step.name].nunique() > 1
    ]
    instruments = [name for name in columns.w_names if name not in columns.x_names]
    if not (names and instruments and everything.shape[1] > len(instruments) + 1):
        return None, ""
    size = everything.loc[s, names].corrwith(pd.Series(values)[s]).abs().fillna(0.0)
    chosen = list(size.sort_values(ascending=False, kind="stable").index[:HIDDEN_COLUMNS])
    rows = evenly_spaced(len(s), HIDDEN_ROWS)
    groups = None if sides["groups"] is None else np.unique(sides["groups"][rows], False, True)[1]
    given = {"selected": s[rows], "groups": groups, "learner": "linear", "cv": HIDDEN_FOLDS}
    try:
        with unannounced():
            shown = everything.iloc[rows]
            found = placebo(shown, instruments=instruments, columns=chosen, **given).table
    except DataError:  # such as too few selected rows
        return None, ""
    digits = _digits(2)
    lines = [
        (
            str(name),
            digits(row["naive"], signed=True),
            f"{digits(row['corrected'], signed=True)} ({digits(row['low'])} to "
            f"{digits(row['high'])})",
            "yes" if row["covers"] else "no",
            digits(row["rho_implied"]),
        )
        for name, row in found.iterrows()
    ]
    header = (
        "hidden column",
        "naive error",
        f"corrected error, {WIDE} interval",
        "interval contains 0",
        "ρ that gives the truth",
    )
    closer = int((found["corrected"].abs() < found["naive"].abs()).sum())
    sample = "" if len(rows) == len(s) else f", {len(rows):,} of the {len(s):,} cases"
    of = f"{len(found)} of {len(names)} complete numeric columns"
    return Table("Errors in standard deviations of the column", header, lines), (
        f"The corrected mean is closer to the truth than the naive mean for {closer} of "
        f"{len(found)} columns, and its interval contains the truth for {found['covers'].sum()} of "
        f"{len(found)}. Used were {of}, those most correlated with the outcome{sample}, and a "
        "linear learner; hk.placebo takes more."
    )


def _sensitivity(model, frame):
    """None if there is no likelihood over rho for normal errors and a constant sigma."""
    if model.get_params().get("scale") is not None:
        return None
    try:
        return sensitivity(model, frame)
    except DataError:
        return None


def _scenarios(curves, digits) -> Table:
    """The mean at fixed values of rho."""
    values = curves.values["mean"]
    rows = [
        (
            significant(rho, 1),
            digits(float(np.interp(rho, curves.rho, values))),
            significant(float(np.interp(rho, curves.rho, curves.loglik)), 3),
        )
        for rho in RHO_SHOWN
    ]
    return Table(
        "Mean of all cases if ρ were known",
        ("ρ", "mean of all", "log-likelihood below its maximum"),
        rows,
    )


def _priors(found, digits, cases: int) -> Table:
    """found : PriorSensitivity"""
    hidden = "unselected" in found.priors
    rows = [
        (
            str(name),
            significant(row["rho"], 2),
            *([_estimate(digits, row, "unselected")] if hidden else []),
            _estimate(digits, row),
        )
        for name, row in found.priors.drop(index="no assumption", errors="ignore").iterrows()
    ]
    means = (*(("mean of the unselected",) if hidden else ()), "mean of all")
    caption = f"The answer for several priors, with {WIDE} intervals"
    if cases > MOST_ROWS:
        caption += f", over {MOST_ROWS:,} of the cases"
    return Table(caption, ("prior of ρ", "ρ", *means), rows)


def _turn(found, digits) -> str:
    """The prior at which the conclusion turns."""
    what = f"The {WIDE} interval of the mean of all"
    naive = f"the naive mean {digits(found.naive)}"
    if not found.turns_at:
        does = "contains" if found.turns_at is None else "excludes"
        return f"{what} {does} {naive} under every prior of ρ."
    return (
        f"{what} excludes {naive} if the prior of ρ is a t distribution with 3 degrees of freedom "
        f"and a scale of {significant(found.turns_at, 2)} or more; with a narrower one it contains "
        "it."
    )


def _bounds(values, s, name, event: bool, digits, sides) -> Table | None:
    """Worst-case bounds between the smallest and the largest observed outcome."""
    y = np.where(s, values, np.nan)
    ends = (0.0, 1.0) if event else (float(np.nanmin(y)), float(np.nanmax(y)))
    try:
        found = bounds(y, *ends, level=LEVEL, **sides)
    except DataError:
        return None
    rows = [
        (
            row.name.replace("at random", "completely at random"),  # no columns are given
            f"{digits(row.low)} to {digits(row.high)}" if row.low != row.high else digits(row.low),
            f"{digits(row.interval_low)} to {digits(row.interval_high)}",
        )
        for row in found.rows
    ]
    caption = f"Bounds on the mean of {name}, if every outcome lies in the observed range"
    return Table(caption, ("assumption", "bounds", f"{WIDE} interval"), rows)


def _method(model) -> str:
    """The class with its method, and the scale of the fit."""
    method = getattr(model, "method", None)
    said = type(model).__name__ + (f', method "{method}"' if method else "")
    scale = getattr(model, "scale_", model.outcome_name_)
    return said + ("" if scale == model.outcome_name_ else f", fitted on the scale {scale}")


def _coefficients(model, naive):
    """A table for each equation of a linear fit."""
    headings = {
        "outcome": f"Outcome equation: {getattr(model, 'scale_', model.outcome_name_)}",
        "select": "Selection equation (probit)",
        "mills": "Inverse Mills ratio",
        "ancillary": "Errors",
        "scale": "log σ(x)",
    }
    frame = model.result_.to_frame(level=0.95)
    plain = getattr(getattr(naive, "result_", None), "params", {})
    for equation in dict.fromkeys(frame.index.get_level_values(0)):
        compared = equation == "outcome" and len(plain) > 0
        header = (
            "term",
            "coefficient",
            "std. error",
            "p",
            "95 % interval",
        )
        rows = []
        for term, row in frame.loc[equation].iterrows():
            ends = NONE
            if np.isfinite([row.low, row.high]).all():
                ends = f"{significant(row.low, 3)} to {significant(row.high, 3)}"
            p = p_text(row.p) if math.isfinite(row.p) else NONE
            shown = (str(term), significant(row.coef), significant(row.se, 3), p, ends)
            rows.append((*shown, significant(plain.get((equation, term)))) if compared else shown)
        yield Table(headings[equation], (*header, "naive") if compared else header, rows)


def _columns(model, frame, s) -> Table:
    """One row per column of X: its role, kind, missing values and means."""
    both = ("in both equations", "instrument") if not s.all() else ("in the equation", "not used")
    rows = []
    for step, filled in model.columns_.read(frame, model.columns_.steps):
        if (name := step.name) not in model.columns_.names:
            continue
        kind, means = f"category, {len(step.levels)} levels", (NONE, NONE)
        if not step.is_category:  # means of what the model sees
            values = pd.Series(np.where(filled.absent & step.strict, np.nan, filled.values))
            means = significant(values[s].mean(), 3), significant(values[~s].mean(), 3)
            kind = "number"
        role = both[step.instrument]
        rows.append((str(name), role, kind, f"{int(filled.absent.sum()):,}", *means))
    header = ("column", "role", "kind", "missing", "mean, with outcome", "mean, without")
    return Table("Columns of the table", header, rows, words=("role", "kind"))


def _options(model) -> Table:
    """Those that differ from the defaults, and the method."""
    usual = type(model)().get_params(deep=False)
    shown = [
        (name, _shown(value))
        for name, value in model.get_params(deep=False).items()
        if name in ("method", "learner") or _shown(value) != _shown(usual[name])
    ]
    caption = "Options of the model; all others have their defaults"
    return Table(caption, ("option", "value"), shown, words=("value",))


def _shown(value) -> str:
    """The same string in every process: functions by name, not by address."""
    if isinstance(value, tuple | list):
        return ", ".join(_shown(item) for item in value) or "none"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text


def _digits(decimals: int):
    """Writes numbers with as many decimals, so that columns align; NaN as a dash."""

    def write(value: float | None, *, signed: bool = False) -> str:
        if value is None or not math.isfinite(value):
            return NONE
        text = f"{value:{'+' if signed else ''},.{decimals}f}"
        return (text if text.strip("+-0.,") else text.lstrip("+-")).replace("-", "−")

    return write


def significant(value: float | None, digits: int = 4) -> str:
    """With `digits` significant digits, for numbers on different scales."""
    if value is None or not math.isfinite(value):
        return NONE
    size = math.floor(math.log10(abs(value))) if value else 0
    if -5 <= size < 7:
        return _digits(max(0, digits - 1 - size) if value else 0)(value)
    return f"{value:.{digits - 1}e}".replace("-", "−")
