"""Names of the equations of a fit in summaries."""

HEADINGS = {
    "select": "selection",
    "mills": "Mills ratio",
    "ancillary": "errors",
    "scale": "log sigma",
}


def heading_of(equation: str, outcome: str) -> str:
    """The heading of an equation; that of the outcome is the name of the outcome."""
    return HEADINGS.get(equation, outcome)
