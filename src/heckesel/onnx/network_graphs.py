"""Networks as part of an ONNX graph: all members at once, one batched product a layer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from heckesel.errors import DataError
from heckesel.estimators.network_options import BesideProbit
from heckesel.methods.spline_joint import SplineBasis
from heckesel.networks.ensembles.averaged import AveragedEnsemble
from heckesel.networks.ensembles.outcome_ensemble import OutcomeEnsemble, shape_of
from heckesel.networks.ensembles.selection_ensemble import GaussianEnsemble, SelectionEnsemble
from heckesel.networks.losses.normal import LOG_SPREAD_LIMIT, LOG_VARIANCE_RANGE
from heckesel.networks.rho.last_layer import LastLayer
from heckesel.networks.rho.rho_mixture import Basis, RhoMixture
from heckesel.networks.training.ensemble_training import Members
from heckesel.networks.training.scaling import Scaling
from heckesel.onnx.graph import Graph
from heckesel.onnx.output_moments import Part, several
from heckesel.onnx.spline_graph import spline_columns


def write_fit(graph: Graph, fit, x: str) -> Part:
    """The population prediction of `fit` at x (m, p)."""
    kind = type(fit).__name__
    if kind not in KINDS:
        raise DataError(f"a fit of kind {kind} cannot be exported; known: {', '.join(KINDS)}")
    return KINDS[kind](graph, fit, x)


def _selection(graph: Graph, fit: SelectionEnsemble, x: str) -> Part:
    """As `SelectionEnsemble.predict`: what members differ by, and the mean of their variances."""
    if not isinstance(fit.members, Members):
        raise DataError(
            "networks of your own cannot be exported; torch.onnx.export takes each module"
        )
    x = _scaled(graph, fit.scaling, x)
    outputs = _outputs(graph, fit.members, x)
    f = _output(graph, outputs, 0)
    mean, doubt = _mean_and_doubt(graph, f, fit.scaling)
    local = None
    if fit.spread is not None:
        local = _output(graph, _outputs(graph, fit.spread, x), 0)
    elif fit.members.sizes[-1] == 2:
        local = _output(graph, outputs, 1)
    if fit.df is not None:
        noise = graph.call("Add", doubt, np.mean(fit.sigma**2 * fit.df / (fit.df - 2)))
        return Part(mean, noise, "t", df=2 + float(np.exp(np.mean(np.log(fit.df - 2)))))
    if local is None:
        variance = graph.call("Add", doubt, np.mean(fit.sigma**2))
    else:
        square = graph.call("Mul", _log_spread(graph, local), np.float32(2))
        own = graph.call("Mul", graph.call("Exp", square), fit.sigma[:, None] ** 2)
        variance = graph.call("Add", doubt, graph.mean_over_members(own))
    return _tailed(mean, variance, fit.tail_df)


def _averaged(graph: Graph, fit: AveragedEnsemble, x: str) -> Part:
    """As `AveragedEnsemble.predict`: the parts of all parts side by side."""
    parts = [several(graph, write_fit(graph, part, x)) for part in fit.parts]
    df = fit.two_step.tail_df
    return Part(
        graph.call("Concat", *(part.mean for part in parts), axis=0),
        graph.call("Concat", *(part.variance for part in parts), axis=0),
        "mixture of normals" if df is None else "mixture of normals and a t",
        df=df,
        weight=np.concatenate([part.weight for part in parts]) / len(parts),
    )


def _outcome(graph: Graph, fit: OutcomeEnsemble, x: str) -> Part:
    """As `OutcomeEnsemble.predict`: every part of every member's error, j in all."""
    shape, scaling = shape_of(fit.members), fit.scaling
    k, parts = shape.share.shape
    outputs = _outputs(graph, fit.members, _scaled(graph, scaling, x))
    f, varies = _output(graph, outputs, 0), fit.members.sizes[-1] == 2
    log_spread = _log_spread(graph, _output(graph, outputs, 1)) if varies else None
    spread = graph.call("Exp", log_spread or graph.call("Sub", f, f))
    member = np.repeat(np.arange(k), parts)  # of each of the j
    f, spread = (graph.call("Gather", value, member, axis=0) for value in (f, spread))  # (j, m)
    sigma = scaling.y_scale * shape.sigma[:, None]
    centre = sigma * (shape.mean[:, None] + fit.level * shape.shift)  # (k, parts)
    width = sigma * fit.level * shape.width
    mean = graph.call("Add", graph.call("Mul", f, np.float64(scaling.y_scale)), scaling.y_centre)
    return Part(
        graph.call("Add", mean, graph.call("Mul", spread, centre.reshape(-1, 1))),
        graph.square(graph.call("Mul", spread, width.reshape(-1, 1))),
        "mixture of normals",
        weight=shape.share.ravel() / k,
    )


def _gaussian(graph: Graph, fit: GaussianEnsemble, x: str) -> Part:
    """As `predict_two_outputs`: members with a mean and a log variance."""
    outputs = _outputs(graph, fit.members, _scaled(graph, fit.scaling, x))
    mean, doubt = _mean_and_doubt(graph, _output(graph, outputs, 0), fit.scaling)
    low, high = (np.float64(end) for end in LOG_VARIANCE_RANGE)
    own = graph.call("Exp", graph.call("Clip", _output(graph, outputs, 1), low, high))
    unit = np.float64((fit.level * fit.scaling.y_scale) ** 2)
    noise = graph.call("Mul", graph.mean_over_members(own), unit)
    return _tailed(mean, graph.call("Add", doubt, noise), fit.tail_df)


def _beside(graph: Graph, fit: BesideProbit, x: str) -> Part:
    return write_fit(graph, fit.outcome, x)


def _mixture(graph: Graph, fit: RhoMixture, x: str) -> Part:
    r"""As `RhoMixture.predict`: part j has :math:`f_j = b'\delta_j/\theta_j` with the variance
    :math:`|(b, -f_j) S_j|^2/\theta_j^2` and the noise :math:`1/\theta_j^2`, b its columns."""
    parts, unit = fit.parts, fit.scaling.y_scale
    theta = parts.theta[:, None, None]
    columns = _columns(graph, fit.basis, _scaled(graph, fit.scaling, x))
    columns = graph.call("Gather", columns, parts.model, axis=0)  # (j, m, h)
    spread = parts.spread / theta
    f = graph.call("MatMul", columns, parts.delta[:, :, None] / theta)
    slopes = graph.call(
        "Sub",
        graph.call("MatMul", columns, spread[:, :-1]),
        graph.call("Mul", f, spread[:, -1:]),
    )
    doubt = graph.call("ReduceSum", graph.square(slopes), np.array([2]), keepdims=0)  # (j, m)
    flat = graph.call("Squeeze", f, np.array([2]))
    mean = graph.call("Add", graph.call("Mul", flat, np.float64(unit)), fit.scaling.y_centre)
    variance = graph.call("Mul", graph.call("Add", doubt, theta[:, 0] ** -2), np.float64(unit**2))
    return Part(mean, variance, "mixture of normals", weight=parts.weight)


def _columns(graph: Graph, basis: Basis, x: str) -> str:
    """(sets, m, h), as `basis.columns`."""
    if isinstance(basis, SplineBasis):
        return spline_columns(graph, basis, x)
    if isinstance(basis, LastLayer):
        return _last_layer(graph, basis, x)
    raise DataError(f"a mixture over {type(basis).__name__} cannot be exported")


def _last_layer(graph: Graph, basis: LastLayer, x: str) -> str:
    """(sets, m, h + 1): activations of a set's first members times their rows of the axes, then of
    its second ones, and so on, added up; a constant last."""
    hidden, sets = _hidden(graph, basis.members, x), len(basis.axes)
    k, width = len(basis.members.theta), basis.members.sizes[-2]
    parts = []
    for first in range(0, k, sets):
        chosen = np.minimum(np.arange(first, first + sets), k - 1)  # beyond k the axes are zero
        rows = slice(first // sets * width, (first // sets + 1) * width)
        own = graph.call("Gather", hidden, chosen, axis=0)
        parts.append(graph.call("MatMul", own, basis.axes[:, rows]))
    return graph.call("Pad", graph.call("Sum", *parts), np.array([0] * 5 + [1]), np.float32(1))


def _tailed(mean: str, variance: str, df: float | None) -> Part:
    return Part(mean, variance, "normal" if df is None else "t", df=df)


def _mean_and_doubt(graph: Graph, f: str, scaling: Scaling) -> tuple[str, str]:
    """The mean over members in units of y, and their variance around it: (m,) both."""
    centre = graph.mean_over_members(f)
    doubt = graph.mean_over_members(graph.square(graph.call("Sub", f, centre)))
    mean = graph.call("Mul", centre, np.float64(scaling.y_scale))
    return (
        graph.call("Add", mean, np.float64(scaling.y_centre)),
        graph.call("Mul", doubt, np.float64(scaling.y_scale**2)),
    )


def _log_spread(graph: Graph, g: str) -> str:
    """The log of `local_spread`."""
    limit = np.float64(LOG_SPREAD_LIMIT)
    return graph.call("Mul", graph.call("Tanh", graph.call("Div", g, limit)), limit)


def _scaled(graph: Graph, scaling: Scaling, x: str) -> str:
    return graph.centred(x, scaling.x_centre, scaling.x_scale)


def _output(graph: Graph, outputs: str, at: int) -> str:
    """(k, m), one output of every member."""
    return graph.call("Gather", outputs, np.array(at), axis=2)


def _outputs(graph: Graph, members: Members, x: str) -> str:
    """(k, m, out)"""
    return _layer(graph, members, len(members.sizes) - 2, _hidden(graph, members, x))


def _hidden(graph: Graph, members: Members, x: str) -> str:
    """(k, m, h) of the last hidden layer: SiLU is :math:`a/(1 + e^{-a})`."""
    values = x
    for at in range(len(members.sizes) - 2):
        before = _layer(graph, members, at, values)
        values = graph.call("Mul", before, graph.call("Sigmoid", before))
    return values


def _layer(graph: Graph, members: Members, at: int, values: str) -> str:
    ends = np.cumsum([0, *((low + 1) * high for low, high in pairwise(members.sizes))])
    shape = (len(members.theta), members.sizes[at] + 1, members.sizes[at + 1])
    block = members.theta[:, ends[at] : ends[at + 1]].reshape(shape)  # the bias last
    return graph.call("Add", graph.call("MatMul", values, block[:, :-1]), block[:, -1:])


KINDS: dict[str, Callable[..., Part]] = {
    "SelectionEnsemble": _selection,
    "OutcomeEnsemble": _outcome,
    "AveragedEnsemble": _averaged,
    "GaussianEnsemble": _gaussian,
    "BesideProbit": _beside,
    "RhoMixture": _mixture,
}
