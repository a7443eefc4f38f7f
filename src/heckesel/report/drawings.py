"""matplotlib figures as inline SVG, whose colours follow the page into dark mode and print."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import Any

from heckesel.plots.canvas import BAND, CORRECTED, GRID, INK, NAIVE, SOFT

WIDTH = 5.0  # inches, 360 units of SVG: on a phone 400 pixels wide, about one pixel each
SETTINGS: dict[Any, Any] = {
    "font.size": 11.0,  # at least 10 pixels on a phone
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "heckesel",  # the same figure gives the same bytes
    "text.parse_math": False,  # a name may hold dollar signs
    "figure.constrained_layout.use": True,
}
VARIABLES = {
    CORRECTED: "--corrected",
    NAIVE: "--naive",
    BAND: "--band",
    GRID: "--rule",
    SOFT: "--soft",
    INK: "--ink",
    "#ffffff": "--page",
    "#000000": "--soft",  # matplotlib's axes
}
# Inside an HTML page these are not needed, or would apply to the whole page.
DROPPED = (
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style.*?</style>"
    r'|<clipPath.*?</clipPath>|<!--.*?-->| clip-path="[^"]*"| xmlns(:\w+)?="[^"]*"| version="1.1"'
)


@dataclass(frozen=True)
class Drawing:
    """view : the viewBox of `svg`, which is what is inside the element; header, rows : a table of
    the numbers behind the figure
    """

    name: str
    title: str
    description: str
    view: str
    svg: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def svg_of(name: str, height: float, draw: Callable) -> tuple[str, str]:
    """The viewBox and the shapes of what `draw` puts on axes, `height` inches high; ids start with
    `name`, and text is escaped."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS), StringIO() as written:
        figure = Figure(figsize=(WIDTH, height))
        ax = figure.subplots()
        draw(ax)
        for patch in (figure.patch, ax.patch):
            patch.set_visible(False)
        figure.savefig(written, format="svg", metadata={"Date": None})
        text = written.getvalue()
    text = re.sub(DROPPED, "", text, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = re.sub(colour, f"var({variable})", text, flags=re.IGNORECASE)
    text = re.sub(r'(?<= id=")|(?<=href="#)', f"{name}-", text)
    (view,) = re.findall(r'<svg [^>]*?viewBox="([^"]*)"', text)
    inside = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    return view, re.sub(r"\s*\n\s*", "\n", inside).strip()
