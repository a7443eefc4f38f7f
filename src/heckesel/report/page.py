"""One self-contained HTML file from the contents: no scripts, no fonts, no network access."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from heckesel import plots
from heckesel.display import number
from heckesel.errors import DataError, imported
from heckesel.io import announce, check_output, write_atomically
from heckesel.report.contents import (
    LEVEL,
    WIDE,
    Contents,
    Table,
    report_contents,
    significant,
    some_of,
)

WIDTH = 5.0  # inches, 360 units of SVG: on a phone 400 pixels wide, about one pixel each
MOST_ROWS = 24  # of the table behind a figure
SETTINGS: dict[Any, Any] = {
    "font.size": 11.0,  # at least 10 pixels on a phone
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "heckesel",  # the same figure gives the same bytes
    "text.parse_math": False,  # a name may hold dollar signs
    "figure.constrained_layout.use": True,
}
VARIABLES = {  # colours follow the page into dark mode and print
    plots.CORRECTED: "--corrected",
    plots.NAIVE: "--naive",
    plots.BAND: "--band",
    plots.GRID: "--rule",
    plots.SOFT: "--soft",
    plots.INK: "--ink",
    "#ffffff": "--page",
    "#000000": "--soft",  # matplotlib's axes
}
# Inside an HTML page these are not needed, or would apply to the whole page.
DROPPED = (
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style.*?</style>"
    r'|<clipPath.*?</clipPath>|<!--.*?-->| clip-path="[^"]*"| xmlns(:\w+)?="[^"]*"| version="1.1"'
)


@dataclass(frozen=True)
class Figure:
    """view : the viewBox of `svg`, which is what is inside the element; table : of its lines"""

    name: str
    title: str
    description: str
    view: str
    svg: str
    table: Table | None


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
    pictures: Sequence[tuple[str, str, Callable]] = (),
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
        A fitted model to compare with. By default it is the model itself, fitted to the selected
        rows alone.
    pictures : sequence of (title, description, draw), optional
        More figures, shown after the verdict; ``draw(ax)`` draws on matplotlib axes.
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
    if not hasattr(type(model), "average") or type(model).__name__ == "DeepEnsembleRegressor":
        raise DataError(
            "a report needs a HeckmanRegressor, DeepHeckmanRegressor or HeckmanClassifier, not "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    path = check_output(path)
    for module in ("jinja2", "matplotlib"):
        imported(module, "reports need the report extra", "report")
    sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
    contents = report_contents(model, X, y, baseline=baseline, **sides)
    title = f"Report on {model.outcome_name_}" if title is None else title
    write_atomically(path, render(contents, title=title, pictures=pictures, made=made))
    return path


def render(contents: Contents, *, title: str, pictures=(), made: str | None = None) -> str:
    """The page as a string."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("heckesel.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["minus"] = number
    environment.filters["thousands"] = "{:,}".format
    text = environment.get_template("report.html").render(
        title=title,
        made=made,
        c=contents,
        means=contents.means is not None,
        tables=contents.tables,
        level=WIDE,
        found=contents.model.identification_,
        figures=figures_of(contents),
        pictures=[figure(f"picture-{j}", *each) for j, each in enumerate(pictures, 1)],
    )
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)  # keep "90 %" on one line


def figures_of(contents: Contents) -> dict[str, Figure]:
    """The figures that the model has numbers for."""
    model, naive, (frame, y, s, sides) = contents.model, contents.naive, contents.data
    if contents.means is None:
        return {}
    drawn: dict[str, tuple] = {
        "means": (
            f"The {contents.outcome}, naive and corrected",
            f"Means of the selected, the unselected and all cases, with {WIDE} intervals.",
            lambda ax: draw_means(contents.means, ax),
            2.5,
        ),
        "strips": (
            f"The {contents.outcome} over the probability of selection",
            "Mean predictions for everyone with these columns, in groups of equal size; the cases "
            f"least likely to be selected are on the left. The band is the {WIDE} interval of "
            "the corrected mean.",
            lambda ax: plots.by_selection(model, some_of(frame), naive=naive, level=LEVEL, ax=ax),
        ),
        "strength": (
            "Probability of selection with and without the instruments",
            "Each point is a case. The farther the points lie from the diagonal, the more the "
            "instruments say about selection.",
            lambda ax: plots.instrument_strength(model, frame, y, selected=s, ax=ax),
        ),
        "evidence": (
            "What the instrument says",
            "Groups of equal size of cases that the instrument makes less (left) or more (right) "
            "likely to be selected than others with the same columns. Points: mean residual, with "
            f"{WIDE} intervals. If outcomes are missing at random given the columns, all are "
            "near 0. The lines are the two readings behind the correction. Points on neither "
            "contradict it.",
            lambda ax: plots.instrument_evidence(model, frame, y, selected=s, ax=ax, **sides),
        ),
        "posterior": (
            "What is known about ρ",
            "The posterior is the prior times what the instrument says. Where both agree, the "
            "instrument says little.",
            lambda ax: plots.rho_posterior(model, ax=ax),
        ),
        "rho": (
            "The log-likelihood over ρ",
            "Higher values fit the data better; the curve is cut off 20 below its maximum.",
            lambda ax: plots.rho_likelihood(model, level=LEVEL, ax=ax),
        ),
        "sensitivity": (
            "The mean of all cases over ρ",
            "ρ = 0 is the naive answer. The thick part of the curve has a log-likelihood within 2 "
            "of its maximum.",
            lambda ax: plots.sensitivity(contents.sensitivity, "mean", ax=ax),
        ),
    }
    found = {}
    for done, (name, each) in enumerate(drawn.items()):
        announce("figures", done, len(drawn))
        with suppress(DataError):  # the model has no likelihood over rho, or no instruments
            found[name] = figure(name, *each)
    return found


def draw_means(means: pd.DataFrame, ax) -> None:
    """Both means of the selected, the unselected and all, with their intervals."""
    plain = {"naive": "mean", "naive_low": "low", "naive_high": "high"}
    naive = means[[*plain]].rename(columns=plain)
    series = [("naive", plots.NAIVE, "D", naive), ("corrected", plots.CORRECTED, "o", means)]
    plots.interval_rows(ax, means.index, series)
    plots.tidy(ax, "mean", grid="x")


def figure(name: str, title: str, description: str, draw: Callable, height: float = 4) -> Figure:
    """What `draw` puts on axes as inline SVG, with a table of its lines."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    with rc_context(SETTINGS), StringIO() as written:
        canvas = Canvas(figsize=(WIDTH, height))
        ax: Any = canvas.subplots()
        draw(ax)
        for patch in (canvas.patch, ax.patch):
            patch.set_visible(False)
        canvas.savefig(written, format="svg", metadata={"Date": None})
        text = written.getvalue()
    text = re.sub(DROPPED, "", text, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = re.sub(colour, f"var({variable})", text, flags=re.IGNORECASE)
    text = re.sub(r'(?<= id=")|(?<=href="#)', f"{name}-", text)
    (view,) = re.findall(r'<svg [^>]*?viewBox="([^"]*)"', text)
    inside = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    svg = re.sub(r"\s*\n\s*", "\n", inside).strip()
    lines = {
        str(line.get_label()): pd.Series(line.get_ydata(), index=line.get_xdata())
        for line in ax.lines
        if name != "means" and not str(line.get_label()).startswith("_") and len(line.get_xdata())
    }
    table = None
    if lines:
        values = pd.DataFrame(lines).iloc[:: max(1, len(next(iter(lines.values()))) // MOST_ROWS)]
        rows = [tuple(significant(v, 3) for v in row) for row in values.itertuples()]
        table = Table(title, (ax.get_xlabel(), *lines), rows)
    return Figure(name, title, description, view, svg, table)
