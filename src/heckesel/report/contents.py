"""What the page says: every number is computed here, before anything is drawn."""

import math
import platform
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from heckesel import __version__
from heckesel.data import selected_rows
from heckesel.display import number, p_text
from heckesel.errors import DataError
from heckesel.margins import frame_of_rows
from heckesel.metrics import AGAINST_BELOW, WELL_FROM, regions
from heckesel.plots import group_averages, outcome_of, selection_probability
from heckesel.tables.fit_input import (
    class_codes,
    label_column,
    outcome_column,
    split_groups,
    without_unobserved,
)
from heckesel.verdict.bounds import bounds
from heckesel.verdict.identify import NOTHING_TO_CORRECT, TONES
from heckesel.verdict.sensitivity import sensitivity

LEVEL = 0.9
WIDE = f"{100 * LEVEL:.0f} %"
NONE = "–"
REGIONS = {
    "against": f"seldom selected (below {100 * AGAINST_BELOW:.0f} %)",
    "mid": f"sometimes selected ({100 * AGAINST_BELOW:.0f} % to {100 * WELL_FROM:.0f} %)",
    "well": f"mostly selected ({100 * WELL_FROM:.0f} % or more)",
}
MOST_ROWS = 20_000  # to average over for each prior
PRIORS = (0.05, 0.3)  # scales of t distributions with three degrees of freedom
SCALES = (0.02, 0.05, 0.2, 0.5)  # among which the conclusion may turn
RHO_SHOWN = (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9)


@dataclass(frozen=True)
class Table:
    """Strings of a table; `words` are the columns that hold text."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """means, changes : None if every case has an outcome
    digits : writes a number with as many decimals as suit the outcome
    data : X as a frame, y, and whether it is observed; naive : the model without a correction
    """

    model: Any
    naive: Any
    data: tuple[pd.DataFrame, np.ndarray, np.ndarray]
    outcome: str
    event: bool
    method: str
    tone: str
    evidence: tuple[str, ...]
    digits: Callable[[float], str]
    headline: str
    means: Table | None
    changes: Table | None
    sensitivity: Any
    scenarios: Table | None
    turn: str
    bounds: Table | None
    coefficients: tuple[Table, ...]
    columns: Table
    actions: tuple[str, ...]
    options: Table
    versions: str

    @property
    def usable(self) -> bool:
        """Whether the page may show the correction as a result."""
        return self.tone != "bad"


def report_contents(
    model, X, y, *, baseline=None, selected=None, sample_weight=None, groups=None
) -> Contents:
    """The numbers of the page. The only fit is that of the naive model, to the selected rows."""
    X, found = split_groups(X, groups, model)
    clustered = getattr(getattr(model, "result_", None), "covariance", None) == "cluster"
    if found is None and (clustered or getattr(model, "groups_name_", None) is not None):
        raise DataError("the model was fitted with groups, so give the report these groups")
    frame = frame_of_rows(X, model.columns_.given_names).reset_index(drop=True)
    lacking = [name for name in model.columns_.given_names if name not in frame.columns]
    if lacking:
        raise DataError(f"X has no column {lacking[0]!r}; the report needs every column of the fit")
    frame = frame[list(model.columns_.given_names)]
    event, name = hasattr(model, "classes_"), model.outcome_name_
    if event:
        labels = without_unobserved(label_column(y), model.unobserved)
        values = class_codes(labels, model.classes_, selected, name)
    else:
        labels = values = outcome_column(y, model.unobserved)
    rows = _rows_of_fit(model, weighted=sample_weight is not None)
    if len(values) != len(frame):
        raise DataError(f"X has {len(frame)} rows but y has {len(values)}")
    if rows is not None and rows != len(frame):  # every count on the page would be wrong
        raise DataError(
            f"X has {len(frame):,} rows but the model was fitted to {rows:,}; give the report the "
            "rows of the fit, or fit the model to these rows"
        )
    s, verdict = selected_rows(values, selected, name), model.identification_
    sd = float(np.nanstd(values[s]))
    decimals = 2 - math.floor(math.log10(sd)) if 0 < sd < math.inf else 2
    digits = _digits(min(max(decimals, 0), 12))
    corrects = verdict.verdict != NOTHING_TO_CORRECT and not s.all()
    sides = {"sample_weight": sample_weight, "groups": None if found is None else found.codes}
    with warnings.catch_warnings():  # those of the fit, again
        warnings.simplefilter("ignore")
        naive = baseline or (_naive(model, frame, labels, s, sides) if corrects else None)
        means, changes, headline = None, None, f"Every case has {name}, so nothing is corrected."
        if corrects:
            usable = TONES[verdict.verdict] != "bad"
            means, changes, headline = _comparison(model, naive, frame, s, digits, usable=usable)
        curves = _sensitivity(model, frame) if corrects and not event else None
        scenarios, turn = None if curves is None else _scenarios(curves, digits), ""
        if corrects and has_posterior(model):
            scenarios, turn = _priors(model, naive, frame, s, digits)
    packages = ("numpy", "scipy", "pandas", "scikit-learn")
    return Contents(
        model=model,
        naive=naive,
        data=(frame, values, s),
        outcome=outcome_of(model),
        event=event,
        method=_method(model),
        tone=TONES[verdict.verdict],
        evidence=tuple(number(line) for line in verdict.evidence_lines()),
        digits=digits,
        headline=headline,
        means=means,
        changes=changes,
        sensitivity=curves,
        scenarios=scenarios,
        turn=turn,
        bounds=_bounds(values, s, name, event, digits, sides) if corrects else None,
        coefficients=tuple(_coefficients(model, naive)) if hasattr(model, "result_") else (),
        columns=_columns(model, frame, s),
        actions=model.columns_.actions,
        options=Table(
            "Options of the model",
            ("option", "value"),
            [(each, _shown(value)) for each, value in model.get_params().items()],
            words=("value",),
        ),
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
    return hasattr(getattr(model.fitted_, "rho", None), "interval")


def _naive(model, frame, labels, s, sides):
    """The same model of the selected rows alone, which is what ignoring selection means."""
    if has_posterior(model):  # its outcome model is that of the selected
        twin = copy(model)
        twin.fitted_ = replace(model.fitted_, selection=None, rho=None)
        return twin
    twin, chosen = clone(model), np.flatnonzero(s)
    given = {"on_problem": "fix", "progress": False, "scale": None, "errors": "normal"}
    twin.set_params(**{name: given[name] for name in given if name in twin.get_params()})
    sides = {k: None if side is None else np.asarray(side)[chosen] for k, side in sides.items()}
    y = pd.Series(labels[chosen], name=model.outcome_name_)
    try:
        return twin.fit(frame.iloc[chosen], y, **sides)
    except DataError:  # such as a column that is constant among the selected
        return None


def _comparison(model, naive, frame, s, digits, *, usable: bool):
    """The three means, the changes by probability of selection, and the first sentence."""

    def average(rows, target="population", groups=None):
        """cases, mean, low and high of both models, and the change"""
        groups, cases = (np.zeros(len(rows), int) if groups is None else groups), frame.iloc[rows]
        plain = pd.DataFrame(np.nan, range(groups.max() + 1), ["mean", "low", "high"])
        if naive is not None:
            plain = group_averages(naive, cases, groups, LEVEL)
        found = group_averages(model, cases, groups, LEVEL, target).join(plain, rsuffix="_naive")
        return found.assign(change=found["mean"] - found["mean_naive"], n=np.bincount(groups))

    everyone, found = np.arange(len(s)), regions(selection_probability(model, frame))
    rows = [
        ("selected", average(everyone[s], "selected").iloc[0]),
        ("unselected", average(everyone[~s], "unselected").iloc[0]),
        ("all", average(everyone).iloc[0]),
    ]
    changed = pd.DataFrame()
    if found:  # at least ten cases each
        codes = np.repeat(np.arange(len(found)), [len(each) for each in found.values()])
        changed = average(np.concatenate([*found.values()]), groups=codes)
    suffix = "" if usable else " (do not use)"
    header = ("cases", "naive", "corrected" + suffix)
    means = Table(
        f"Means with {WIDE} intervals",
        ("", *header),
        [
            (name, f"{row['n']:,.0f}", _estimate(digits, row, "_naive"), _estimate(digits, row))
            for name, row in rows
        ],
    )
    changes = Table(
        "Mean by probability of selection: everyone with these columns, selected or not",
        ("group", *header, "change", "in words"),
        [
            (
                REGIONS[name],
                f"{row['n']:,.0f}",
                digits(row["mean_naive"]),
                _estimate(digits, row),
                digits(row["change"], signed=True),
                _in_words(row) if usable else "do not use",
            )
            for name, (_, row) in zip(found, changed.iterrows(), strict=True)
        ],
        words=("in words",),
    )
    row, unit = rows[-1][1], outcome_of(model)
    if not usable:
        return means, changes, "Do not use the corrected means: they only show what would change."
    words = {
        "no clear difference": f"the naive mean is inside the {WIDE} interval, so the "
        "difference is not clear",
        "uncertainty unknown": "its uncertainty is unknown",
    }.get(_in_words(row), f"{_in_words(row)}, and the naive mean is outside its interval")
    return (
        means,
        changes,
        f"Over all {len(s):,} cases, the mean {unit} is {digits(row['mean'])} with the correction "
        f"and {digits(row['mean_naive'])} without; {words}.",
    )


def _in_words(row) -> str:
    """The direction of a change, if the naive mean is outside the corrected interval."""
    if not np.isfinite([row["low"], row["high"], row["mean_naive"]]).all():
        return "uncertainty unknown"
    if row["low"] <= row["mean_naive"] <= row["high"]:
        return "no clear difference"
    return "corrected is lower" if row["change"] < 0 else "corrected is higher"


def _estimate(digits, row, suffix: str = "") -> str:
    mean, low, high = (row[f"{each}{suffix}"] for each in ("mean", "low", "high"))
    if not np.isfinite([low, high]).all():
        return digits(mean)
    return f"{digits(mean)} ({digits(low)} to {digits(high)})"


def _sensitivity(model, frame):
    """None if there is no likelihood over rho for normal errors and a constant sigma."""
    if model.get_params().get("scale") is not None:
        return None
    try:
        found = sensitivity(model, frame)
        return getattr(found, "curve", found)
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


def _priors(model, naive, frame, s, digits) -> tuple[Table, str]:
    """The means under other priors of rho, and the scale at which the conclusion turns."""
    from heckesel.correction.prior import rho_prior

    rows = np.unique(np.linspace(0, len(s) - 1, MOST_ROWS).round().astype(int))
    cases, unseen = frame.iloc[rows], frame.iloc[rows[~s[rows]]]
    was, posterior = rho_prior(model.rho_prior), model.fitted_.rho
    plain = group_averages(naive, cases, np.zeros(len(cases), int), LEVEL)["mean"].iloc[0]

    def under(given, who, target="population"):
        """The prior times the likelihood, which is the posterior over the prior of the fit."""
        prior, twin = rho_prior(given), copy(model)
        weights = {
            each: getattr(posterior, each) / getattr(was, each) * getattr(prior, each)
            for each in ("point", "interval")
        }
        weights = {each: weight / weight.sum() for each, weight in weights.items()}
        twin.fitted_ = replace(model.fitted_, rho=replace(posterior, **weights))
        found = group_averages(twin, who, np.zeros(len(who), int), LEVEL, target).iloc[0]
        return twin.fitted_.rho.rho, found

    def clear(given) -> bool:
        row = under(given, cases)[1]
        return not row["low"] <= plain <= row["high"]

    shown = []
    for label, given in {
        f"scale {PRIORS[0]:g}": PRIORS[0],
        "of this fit": model.rho_prior,
        f"scale {PRIORS[1]:g}": PRIORS[1],
        "uniform": "uniform",
    }.items():
        rho, everyone = under(given, cases)
        columns = [
            digits(everyone["mean"])
            if not np.isfinite(everyone["low"])
            else _estimate(digits, everyone)
        ]
        if len(unseen):
            columns.insert(0, _estimate(digits, under(given, unseen, "unselected")[1]))
        shown.append((label, significant(rho, 2), *columns))
    head = ("prior of ρ", "ρ", *(("mean of the unselected",) if len(unseen) else ()), "mean of all")
    turned = next((scale for scale in SCALES if clear(scale)), None)
    sentence = "Under no prior is the difference from the naive mean of all clear."
    if turned == SCALES[0]:
        sentence = "The difference from the naive mean of all is clear under every prior."
    elif turned is not None:
        sentence = (
            "The difference from the naive mean of all is clear if the prior of ρ has a scale of "
            f"{turned:g} or more."
        )
    caption = f"The answer for several priors, with {WIDE} intervals"
    if len(cases) < len(frame):
        caption += f", over {len(cases):,} of the cases"
    return Table(caption, head, shown), sentence


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
            row.name,
            f"{digits(row.lower)} to {digits(row.upper)}"
            if row.lower != row.upper
            else digits(row.lower),
            f"{digits(row.ci_low)} to {digits(row.ci_high)}",
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
            values = pd.Series(np.where(filled.absent & step.strict, np.nan, filled.values[:, 0]))
            means = significant(values[s].mean(), 3), significant(values[~s].mean(), 3)
            kind = "number"
        role = both[step.instrument]
        missing = f"{int(frame[name].isna().sum()) if name in frame else 0:,}"
        rows.append((str(name), role, kind, missing, *means))
    header = ("column", "role", "kind", "missing", "mean, with outcome", "mean, without")
    return Table("Columns", header, rows, words=("role", "kind"))


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
