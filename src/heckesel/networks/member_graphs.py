"""Networks as part of an ONNX graph: all members at once, one batched product per layer.

`graph` is the builder (`heckesel.onnx.graph.Graph`), whose values are named by strings.
"""

from itertools import pairwise

import numpy as np

from heckesel.networks.losses.normal import LOG_NOISE_FACTOR_LIMIT
from heckesel.networks.training.batches import DataScale
from heckesel.networks.training.ensemble_training import Members


def tailed(graph, mean: str, variance: str, df: float | None):
    """A normal or, with df, a t."""
    return graph.part(mean, variance, "normal" if df is None else "t", df=df)


def mean_and_doubt(graph, f: str, scaling: DataScale) -> tuple[str, str]:
    """The mean over members in units of y, and their variance around it: (m,) both."""
    centre = graph.mean_over_members(f)
    doubt = graph.mean_over_members(graph.square(graph.call("Sub", f, centre)))
    mean = graph.call("Mul", centre, np.float64(scaling.y_scale))
    return (
        graph.call("Add", mean, np.float64(scaling.y_centre)),
        graph.call("Mul", doubt, np.float64(scaling.y_scale**2)),
    )


def log_factor(graph, g: str) -> str:
    """The log of the factor on sigma that the output g of a network encodes."""
    limit = np.float64(LOG_NOISE_FACTOR_LIMIT)
    return graph.call("Mul", graph.call("Tanh", graph.call("Div", g, limit)), limit)


def scaled(graph, scaling: DataScale, x: str) -> str:
    return graph.centred(x, scaling.x_centre, scaling.x_scale)


def one_output(graph, outputs: str, at: int) -> str:
    """(k, m), one output of every member."""
    return graph.call("Gather", outputs, np.array(at), axis=2)


def member_outputs(graph, members: Members, x: str) -> str:
    """(k, m, out)"""
    return _layer(graph, members, len(members.sizes) - 2, last_hidden(graph, members, x))


def last_hidden(graph, members: Members, x: str) -> str:
    """(k, m, h) of the last hidden layer: SiLU is :math:`a/(1 + e^{-a})`."""
    values = x
    for at in range(len(members.sizes) - 2):
        before = _layer(graph, members, at, values)
        values = graph.call("Mul", before, graph.call("Sigmoid", before))
    return values


def _layer(graph, members: Members, at: int, values: str) -> str:
    ends = np.cumsum([0, *((low + 1) * high for low, high in pairwise(members.sizes))])
    shape = (len(members.parameters), members.sizes[at] + 1, members.sizes[at + 1])
    block = members.parameters[:, ends[at] : ends[at + 1]].reshape(shape)  # the bias last
    return graph.call("Add", graph.call("MatMul", values, block[:, :-1]), block[:, -1:])
