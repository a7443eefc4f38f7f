"""`hk.identify`: the verdict alone, in seconds."""

from __future__ import annotations

from types import SimpleNamespace

from heckesel.diagnostics.evidence import identify as identify_data
from heckesel.diagnostics.verdict import Identification, nothing_selected
from heckesel.tables.fit_input import read_table


def identify(
    X, y, *, instruments=None, selected=None, sample_weight=None, missing: str = "error"
) -> Identification:
    """Can these data carry a correction for selection?

    y is missing (NaN) where it was not observed, or `selected` says so; `instruments` are columns
    of X, by name or position, that moved selection and not the outcome. The result has `verdict`,
    `sentence`, `evidence` (a dict), `profile` (the likelihood over rho, with `plot()`) and
    `details()`. No model is fitted for use: outcomes are taken as smooth in each column, and the
    likelihood over rho is that of at most 10,000 random rows.
    """
    table = SimpleNamespace(instruments=instruments, missing=missing, target_transform=None)
    data = read_table(table, X, y, selected=selected, sample_weight=sample_weight)
    if data.s.all():
        return nothing_selected()
    return identify_data(data, forms=True)
