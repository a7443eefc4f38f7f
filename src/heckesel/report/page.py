"""From contents to one HTML file that needs nothing but itself: no script, no font, no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from heckesel.atomic_files import check_output, write_atomically
from heckesel.errors import DataError, HeckeselError
from heckesel.estimators.deep_heckman_regressor import DeepHeckmanRegressor
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.report import figures
from heckesel.report import formatting as numbers
from heckesel.report.contents import COEFFICIENT_LEVEL, Contents, report_contents
from heckesel.report.held_out_check import Calibration
from heckesel.report.rho_section import RhoCurve
from heckesel.report.style import Area, Drawing, Line, Mark, Text

KINDS = {Line: "line", Area: "area", Mark: "mark", Text: "text"}


def write_report(
    model,
    X,
    y,
    path,
    *,
    title: str | None = None,
    selected=None,
    sample_weight=None,
    baseline=None,
    pictures: Sequence[Drawing] = (),
    made: str | None = None,
) -> Path:
    """Write one self-contained HTML page about a fitted `HeckmanRegressor` or
    `DeepHeckmanRegressor`, and return its path.

    X, y, selected, sample_weight: as they were given to `fit`. The page compares with a naive fit
    and checks held-out cases, so it refits: expect a few times the time of the fit.

    * baseline: a fitted model to compare with; by default least squares, or beside networks a
      `DeepEnsembleRegressor` with the same options, fitted here
    * pictures: further drawings to show after the verdict
    * made: what to print as its date; without it the same input gives the same bytes
    """
    if not isinstance(model, (HeckmanRegressor, DeepHeckmanRegressor)):
        raise DataError(
            "a report needs a HeckmanRegressor or a DeepHeckmanRegressor, not "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    path = check_output(path)  # before minutes of refits
    contents = report_contents(
        model, X, y, selected=selected, sample_weight=sample_weight, baseline=baseline
    )
    title = f"Report on {contents.outcome}" if title is None else title
    write_atomically(path, render(contents, title=title, pictures=pictures, made=made))
    return path


def render(
    contents: Contents,
    *,
    title: str,
    pictures: Sequence[Drawing] = (),
    made: str | None = None,
) -> str:
    """The page as text."""
    text = _template().render(
        title=title,
        made=made,
        c=contents,
        pictures=pictures,
        figures=page_figures(contents),
        level=COEFFICIENT_LEVEL,
        equations=_equations(contents),
    )
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)  # "90 %" never breaks


def page_figures(contents: Contents) -> dict[str, Drawing]:
    """Those that these contents have numbers for."""
    found: dict[str, Drawing] = {}
    digits = contents.digits
    if contents.comparison is not None:
        found["regions"] = figures.regions_figure(contents.comparison, contents.outcome, digits)
        found["strips"] = figures.strips_figure(contents.comparison, contents.outcome, digits)
    if isinstance(contents.rho, RhoCurve):
        found["rho"] = figures.rho_figure(contents.rho)
    elif contents.rho is not None:
        found["rho"] = figures.rho_values_figure(contents.rho)
    if isinstance(contents.calibration, Calibration):
        found["calibration"] = figures.calibration_figure(contents.calibration)
    return found


def _equations(contents: Contents) -> list[tuple[str, list]]:
    """(heading, rows of (term, row)) for each equation of a linear model."""
    if contents.coefficients is None:
        return []
    headings = {
        "outcome": f"Outcome: {contents.outcome}",
        "select": "Selection (probit)",
        "mills": "Mills ratio",
        "ancillary": "Errors",
    }
    frame = contents.coefficients
    return [
        (headings[name], list(frame.loc[name].iterrows()))
        for name in dict.fromkeys(frame.index.get_level_values(0))
    ]


def _template():
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise HeckeselError(
            "reports need the report extra: pip install 'heckesel[report]'"
        ) from None
    environment = Environment(
        loader=PackageLoader("heckesel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "significant": numbers.significant,
        "ends": numbers.ends,
        "minus": numbers.minus,
        "fixed": lambda value, decimals: numbers.Digits(decimals)(value),
        "percent": numbers.percent,
        "p_value": numbers.p_value,
        "kind": lambda part: KINDS[type(part)],
        "thousands": lambda count: f"{count:,}",
    }
    return environment.get_template("report.html")
