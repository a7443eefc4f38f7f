"""A `Predictive` as a frame, and as HTML."""

import importlib
from dataclasses import replace

import numpy as np

from heckesel import display as web
from heckesel.display import number_text

SHOWN = 10  # points in the HTML table


def predictive_frame(predictive, level: float):
    """One row per point: mean, standard deviation, both variances and the interval."""
    low, high = predictive.interval(level).T
    names = ("mean", "std", "epistemic", "aleatoric")
    columns = {name: getattr(predictive, name) for name in names}
    columns |= {"low": low, "high": high}
    if predictive.library is not None:
        import narwhals.stable.v1 as nw

        library = importlib.import_module(predictive.library)
        return nw.from_dict(columns, native_namespace=library).to_native()
    import pandas as pd

    return pd.DataFrame(columns, index=predictive.index)


def predictive_html(predictive) -> str:
    """The first points, with a 90 % interval."""
    count = len(predictive)
    shown = replace(predictive.take(np.arange(min(count, SHOWN))), library=None)
    frame = shown.to_frame()
    rows = [(str(label), *map(number_text, row)) for label, *row in frame.itertuples()]
    head = ("", "mean", "std", "epistemic", "aleatoric", "90% low", "90% high")
    first = f" (first {SHOWN} of {count:,} points)" if count > SHOWN else ""
    caption = f"Predictive distribution{first}; epistemic and aleatoric are variances"
    return web.block(web.html_table(head, rows, caption=caption))
