"""A `Predictive` as a frame, and as HTML."""

import numpy as np

from heckesel.display import html_table as web
from heckesel.display.number_text import number_text

SHOWN = 10  # points in the HTML table


def predictive_frame(predictive, level: float):
    """One row per point: mean, standard deviation, both variances and the interval."""
    import pandas as pd

    low, high = predictive.interval(level).T
    names = ("mean", "std", "epistemic", "aleatoric")
    columns = {name: getattr(predictive, name) for name in names}
    return pd.DataFrame(columns | {"low": low, "high": high}, index=predictive.index)


def predictive_html(predictive) -> str:
    """The first points, with a 90 % interval."""
    count = len(predictive)
    frame = predictive.take(np.arange(min(count, SHOWN))).to_frame()
    rows = [(str(label), *map(number_text, row)) for label, *row in frame.itertuples()]
    head = ("", "mean", "std", "epistemic", "aleatoric", "90% low", "90% high")
    shown = f" (first {SHOWN} of {count:,} points)" if count > SHOWN else ""
    caption = f"Predictive distribution{shown}; epistemic and aleatoric are variances"
    return web.block(web.html_table(head, rows, caption=caption))
