"""`hk.identify`: the verdict without a model."""

from __future__ import annotations

from types import SimpleNamespace

from heckesel.diagnostics.evidence import identify as identify_data
from heckesel.diagnostics.verdict import Identification, nothing_selected
from heckesel.tables.fit_input import read_table


def identify(
    X, y, *, instruments=None, selected=None, sample_weight=None, missing: str = "error"
) -> Identification:
    """Report whether the data support a correction for selection.

    No model is fitted for later use. The outcome is modelled as a sum of smooth functions of its
    columns, and the likelihood over rho uses at most 10,000 random rows.

    Parameters
    ----------
    X : frame or array-like of shape (n, columns)
        Columns of both equations, instruments included.
    y : array-like of shape (n,)
        The outcome, NaN where it was not observed.
    instruments : list of str or int, optional
        Columns of X that affect selection but not the outcome, by name or position.
    selected : array-like of shape (n,), optional
        0/1 indicator of selection.
    sample_weight : array-like of shape (n,), optional
        Row weights.
    missing : {"error", "indicator"}
        ``"indicator"`` imputes the mean of a missing x and adds a missing indicator.

    Returns
    -------
    Identification
        ``verdict``, ``sentence``, ``evidence``, ``profile`` and ``details()``.

    Raises
    ------
    DataError
        If the data cannot be used.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=1.0, seed=0).frame
    >>> hk.identify(frame[["x", "z"]], frame["y"], instruments=["z"]).verdict
    'identified by an instrument'
    """
    table = SimpleNamespace(instruments=instruments, missing=missing, target_transform=None)
    data = read_table(table, X, y, selected=selected, sample_weight=sample_weight)
    if data.s.all():
        return nothing_selected()
    return identify_data(data, forms=True)
