"""Options of a linear fit: weights, clusters, covariance and instruments."""

import numpy as np

from heckesel.errors import DataError, is_one_of, warn_user
from heckesel.tables.fit_input import group_codes
from heckesel.tables.formula import FormulaDesign, number_column

COVARIANCES = ("information", "opg", "robust", "cluster")
WEIGHT_KINDS = ("frequency", "probability")
FEW_CLUSTERS = 20  # below, even t(G - 1) rejects a true hypothesis too often
# A standard error from n equal rows has itself a relative error of about 1/sqrt(2n): a tenth at 50.
FEW_ROWS = 50


def side_column(values, frame):
    """Weights or clusters: a column's name or the values themselves."""
    if not isinstance(values, str):
        return values
    if values in frame.columns and frame[values].dtype.kind in "OUS":
        return frame[values].to_numpy()
    return number_column(frame, values)


def groups_or_clusters(groups, clusters):
    """The option under either of its names."""
    if groups is not None and clusters is not None:
        raise DataError("groups= and clusters= are two names for the same option; pass only one")
    return clusters if groups is None else groups


def check_instruments(instruments, checked, design) -> None:
    """Refuse instruments that are in the outcome equation or not in the selection equation."""
    if instruments is None:
        return
    if not isinstance(instruments, str | list | tuple):
        raise DataError(f"instruments must be a name or a list of names, got {instruments!r}")
    for name in [instruments] if isinstance(instruments, str) else instruments:
        in_outcome, in_select = checked.x_names, checked.w_names
        if isinstance(design, FormulaDesign):
            in_outcome, in_select = design.outcome.variables, design.select.variables
        if name in in_outcome:
            raise DataError(
                f"the instrument {name!r} is also in the outcome equation, so it is not an "
                "exclusion restriction; remove it from that equation"
            )
        if name not in in_select:
            raise DataError(f"the instrument {name!r} is not in the selection equation; add it")


def covariance_kind(kind, clusters, weight, weight_kind, *, has_likelihood: bool):
    """The covariance to compute and the clusters as integer codes, after checking that they,
    the weights and the method go together."""
    if not is_one_of(weight_kind, WEIGHT_KINDS):
        raise DataError(f"weight_kind must be 'frequency' or 'probability', got {weight_kind!r}")
    fractions = weight != np.round(weight)
    if weight_kind == "frequency" and fractions.any():
        raise DataError(
            f"frequency weights must be whole numbers, but one is {weight[fractions][0]:g}; "
            "use weight_kind='probability'"
        )
    if kind is None:
        kind = "robust" if weight_kind == "probability" else "information"
        kind = "cluster" if clusters is not None else kind
    if not is_one_of(kind, COVARIANCES):
        raise DataError(f"covariance must be one of {', '.join(COVARIANCES)}, got {kind!r}")
    if kind == "opg" and not has_likelihood:
        raise DataError("covariance='opg' needs a likelihood; use covariance='robust'")
    if weight_kind == "probability" and kind in ("information", "opg"):
        raise DataError(f"covariance={kind!r} is not valid with probability weights; use 'robust'")
    if (kind == "cluster") != (clusters is not None):
        raise DataError("groups= and covariance='cluster' go together")
    codes = None if clusters is None else group_codes(clusters, len(weight))
    _warn_of_few(codes, weight, weight_kind)
    return kind, codes


def _warn_of_few(codes, weight, weight_kind: str) -> None:
    """Warn of few clusters, or of a few rows of large weight."""
    clusters = None if codes is None else len(np.unique(codes[weight > 0]))
    if clusters is not None and clusters < FEW_CLUSTERS:
        warn_user(
            f"{clusters} clusters are few for a cluster covariance: standard errors tend to be too "
            f"small; p-values and intervals use t with {clusters - 1} degrees of freedom"
        )
    if weight_kind != "probability" or codes is not None:
        return
    share = weight / weight.sum()
    effective, rows = 1 / (share @ share), np.count_nonzero(weight)
    if effective < min(FEW_ROWS, rows / 2):
        warn_user(
            f"a few large probability weights dominate: {rows} rows are equivalent to "
            f"{effective:.0f} of equal weight, and standard errors tend to be too small; trim the "
            "weights or check them for errors"
        )
