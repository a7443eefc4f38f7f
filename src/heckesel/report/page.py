"""One self-contained HTML file from the contents: no scripts, no fonts, no network access."""

import re
from collections.abc import Sequence
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from heckesel.atomic_files import check_output, write_atomically
from heckesel.errors import DataError, imported
from heckesel.estimators.deep_heckman_regressor import DeepHeckmanRegressor
from heckesel.estimators.heckman_classifier import HeckmanClassifier
from heckesel.estimators.heckman_regressor import HeckmanRegressor
from heckesel.report import figures
from heckesel.report.contents import COEFFICIENT_LEVEL, Contents, report_contents
from heckesel.report.drawings import Drawing
from heckesel.report.formatting import Digits, ends, minus, p_value, percent, significant
from heckesel.report.held_out_check import HeldOutCheck
from heckesel.report.rho_section import RhoCurve


def write_report(
    model,
    X,
    y,
    path,
    *,
    title: str | None = None,
    selected=None,
    sample_weight=None,
    groups=None,
    baseline=None,
    pictures: Sequence[Drawing] = (),
    made: str | None = None,
) -> Path:
    """Write a self-contained HTML report on a fitted model.

    Parameters
    ----------
    model : HeckmanRegressor, DeepHeckmanRegressor or HeckmanClassifier
        A fitted model.
    X, y : array-like
        The data the model was fitted to.
    path : str or Path
        The file to write.
    title : str, optional
        Title of the page.
    selected, sample_weight, groups : array-like, optional
        As they were given to ``fit``.
    baseline : estimator, optional
        A fitted model to compare with. By default it is least squares (for two classes a probit)
        for a linear model and, for networks, plain networks with the same options, which are fitted
        here.
    pictures : sequence of Drawing, optional
        More figures, shown after the verdict.
    made : str, optional
        The date to print. Without it the same input gives the same bytes.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    DataError
        If the model has no report, if X and y are not the data of the fit, or if the path cannot
        be written.

    Notes
    -----
    Both the model and the naive fit are refitted without each of ten parts of the rows, networks
    without each of five. The refits give the held-out check and the uncertainty of the change from
    naive to corrected predictions. A report takes about five to ten times as long as the fit.

    Examples
    --------
    >>> import heckesel as hk
    >>> from heckesel.report import write_report
    >>> frame = hk.datasets.make_controlled(300, rho=0.5, alpha=1.0, seed=0).frame
    >>> X, y = frame[["x", "z"]], frame["y"]
    >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(X, y)
    >>> write_report(model, X, y, "report.html").name
    'report.html'
    """
    if not isinstance(model, HeckmanRegressor | DeepHeckmanRegressor | HeckmanClassifier):
        raise DataError(
            "a report needs a HeckmanRegressor, DeepHeckmanRegressor or HeckmanClassifier, not "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    path = check_output(path)  # before minutes of refits
    for module in ("jinja2", "matplotlib"):
        imported(module, "reports need the report extra", "report")
    sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
    contents = report_contents(model, X, y, baseline=baseline, **sides)
    title = f"Report on {contents.outcome}" if title is None else title
    write_atomically(path, render(contents, title=title, pictures=pictures, made=made))
    return path


def render(
    contents: Contents, *, title: str, pictures: Sequence[Drawing] = (), made: str | None = None
) -> str:
    """The page as a string."""
    text = _template().render(
        title=title,
        made=made,
        c=contents,
        pictures=pictures,
        figures=page_figures(contents),
        level=COEFFICIENT_LEVEL,
        equations=_equations(contents),
    )
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)  # keep "90 %" on one line


def page_figures(contents: Contents) -> dict[str, Drawing]:
    """The figures that the contents have numbers for."""
    found: dict[str, Drawing] = {}
    if contents.comparison is not None:
        given = contents.comparison, contents.predicted, contents.digits
        usable = contents.verdict_box.usable
        found["regions"] = figures.regions_figure(*given, usable)
        found["strips"] = figures.strips_figure(*given, usable)
    if isinstance(contents.rho, RhoCurve):
        found["rho"] = figures.rho_figure(contents.rho)
    elif contents.rho is not None:
        found["rho"] = figures.rho_values_figure(contents.rho)
    if isinstance(contents.calibration, HeldOutCheck):
        found["calibration"] = figures.calibration_figure(contents.calibration)
    return found


def _equations(contents: Contents) -> list[tuple[str, list]]:
    """(heading, [(term, row), ...]) for each equation of a linear model."""
    if contents.coefficients is None:
        return []
    headings = {
        "outcome": f"{'Class (probit)' if contents.event else 'Outcome'}: {contents.scale}",
        "select": "Selection (probit)",
        "mills": "Inverse Mills ratio",
        "ancillary": "Errors",
        "scale": "log σ(x)",
    }
    frame = contents.coefficients
    return [
        (headings[name], list(frame.loc[name].iterrows()))
        for name in dict.fromkeys(frame.index.get_level_values(0))
    ]


def _template():
    jinja2 = imported("jinja2", "reports need the report extra", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("heckesel.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (significant, ends, minus, percent, p_value):
        environment.filters[function.__name__] = function
    environment.filters["fixed"] = lambda value, decimals: Digits(decimals)(value)
    environment.filters["thousands"] = "{:,}".format
    return environment.get_template("report.html")
