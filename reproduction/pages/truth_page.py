"""`paper/truth.md`: the truth table, outcome by outcome, with other packages beside ours."""

import numpy as np
import pandas as pd

from reproduction.pages.beyond_paper import targets as md
from reproduction.pages.beyond_paper import x6_page as x6
from reproduction.pages.page_text import filled
from reproduction.pages.rows import Results
from reproduction.truth.sources import SOURCES
from reproduction.x6_peers import METHODS as PEERS

SHOWN = ("naive", "ensemble", "two-step", "ml", "profile", x6.OLD, "prior", x6.AUTO, "default")
OUTCOME = ("naive", "ml", "two-step", x6.AUTO, *PEERS)
RANKED = ("naive", x6.AUTO, *(name for name in PEERS if name != "MAPIE conformal"))


def truth_md(results: Results) -> str:
    truth = x6.Truth.of(results)
    keys = truth.wide("truth").index
    return filled(
        "truth",
        n_outcomes=len(keys),
        n_sources=len(keys.unique("source")),
        summary=_summary(truth, (*SHOWN, "classifier")),
        packages=_summary(truth, RANKED, x6.SETS),
        wins=_wins(truth),
        rows=_rows(truth),
        calibration=_calibration(results.x6_calibration),
        outcomes=_outcomes(truth),
    )


def _summary(truth: x6.Truth, methods, sets=(*x6.SETS,)) -> str:
    header = ["sources", "method", "outcomes", "covers", "without allowance", "width"]
    header += ["score over margin", "rms over naive", "worse by > .05 sd", "CRPS over naive"]
    lines, margin = [], truth.margin_scores()
    for chosen in sets:
        for method in methods:
            error = truth.values("error", method, chosen)
            if not len(error):
                continue
            harm = x6.worse(truth, method, chosen)
            naive = truth.values("error", x6.naive_of(method), chosen)
            crps = (truth.values("crps", each, chosen) for each in (method, "naive"))
            numbers = [
                md.PERCENT.value(x6.by_source(truth.values(metric, method, chosen)))
                for metric in ("covers", "covers_exactly")
            ]
            score = x6.ratio(truth.values("interval_score", method, chosen), margin)
            numbers += [
                _number(x6.weighted_quantile(truth.values("width", method, chosen), 0.5)),
                _number(score),
                _number(x6.ratio(error, naive, 2)),
                f"{md.PERCENT.value(x6.by_source(harm))} ({harm.sum():.0f})" if len(harm) else "",
                _number(x6.log_ratio(*crps)[0]),
            ]
            lines.append([chosen, method, str(len(error)), *numbers])
    return md.table(header, lines)


def _wins(truth: x6.Truth) -> str:
    """In which share of the outcomes each package has the lowest interval score and error."""
    lines = []
    for chosen in x6.SETS:
        for says, metric in (("interval score", "interval_score"), ("\\|error\\|", "error")):
            values = {name: truth.values(metric, name, chosen).abs() for name in RANKED}
            table = pd.DataFrame(values)
            if not len(table):
                continue
            best = table.eq(table.min(axis=1), axis=0)
            shares = [md.PERCENT.value(x6.by_source(best[name].astype(float))) for name in RANKED]
            lines.append([chosen, says, str(len(table)), *shares])
    return md.table(["sources", "lowest", "outcomes", *RANKED], lines)


def _rows(truth: x6.Truth) -> str:
    """Hidden rows in 90 % intervals, for outcomes with more than ten values."""
    lines = []
    for chosen in x6.SETS:
        found = {
            name: truth.values("rows_covered", name, chosen)
            for name in ("naive", x6.AUTO, "MAPIE conformal")
        }
        table = pd.DataFrame(found).dropna()
        if len(table):
            each = [md.PERCENT.value(x6.by_source(table[name])) for name in table]
            inside = [
                md.PERCENT.value(x6.by_source(table[n].between(0.8, 0.97) * 1.0)) for n in table
            ]
            lines.append([chosen, str(len(table)), *each, *inside])
    header = ["sources", "outcomes", "naive covers", "auto covers", "MAPIE covers"]
    return md.table([*header, *(f"80–97 %, {name}" for name in ("naive", "auto", "MAPIE"))], lines)


def _outcomes(truth: x6.Truth) -> str:
    """Each outcome: the error of every method in sd, in bold where its interval contains it."""
    header = ["source", "kind", "outcome", "units", "selected", "truth", *OUTCOME, "verdict"]
    lines = []
    errors, covers = truth.wide("error"), truth.wide("covers")
    verdicts = truth.values("verdict", x6.AUTO)
    for source, outcome in truth.wide("truth").index:
        key = (source, outcome)
        known = truth.rows.loc[(*key, "truth")]
        kinds = [name for name, chosen in x6.SETS.items() if chosen(SOURCES[source])]
        line = [source, kinds[-1], f"`{outcome}`"]
        if "n" in known:
            line += [f"{known['n']:.0f}", f"{100 * (1 - known['n_hidden'] / known['n']):.0f} %"]
        else:
            line += ["", ""]
        line.append(f"{known['truth']:.3g}")
        for method in OUTCOME:
            error = errors.loc[key].get(method, np.nan)
            shown = "" if np.isnan(error) else f"{error:+.2f}"
            line.append(f"**{shown}**" if shown and covers.loc[key].get(method) == 1 else shown)
        said = verdicts.get(key, np.nan)
        lines.append(
            [*line, "" if np.isnan(said) else "supported" if said == x6.SUPPORTED else "–"]
        )
    return md.table(header, lines)


def _calibration(found: dict) -> str:
    header = ["constants", "rms over naive", "score over margin", "covers", "worse by > .05 sd"]
    lines, chosen = [], {"all": "chosen_on_all", "the other": "leaving_one_source_out"}
    for which, name in chosen.items() if found else ():
        got = found[name]
        numbers = [md.NUMBER.value(got[key]) for key in ("rms_over_naive", "score_over_margin")]
        numbers += [md.PERCENT.value(got[key]) for key in ("covers", "worse")]
        lines.append([f"chosen on {which} sources", *numbers, md.NUMBER.value(got["width"])])
    return md.table([*header, "mean width"], lines)


def _number(value: float) -> str:
    return "" if np.isnan(value) else md.NUMBER.value(value)
