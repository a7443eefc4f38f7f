"""What a fit says about y inside an ONNX graph, and its moments on the scale of y itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heckesel.onnx.graph import Graph


@dataclass(frozen=True)
class Part:
    """mean, variance : values (m,) or, with a weight (j,), (j, m); df : of a t"""

    mean: str
    variance: str
    distribution: str
    df: float | None = None
    weight: np.ndarray | None = None


def exponential(graph: Graph, part: Part) -> Part:
    r"""The moments of :math:`e^z` for a normal z: :math:`M = e^{\mu + \sigma^2/2}` and
    :math:`M^2(e^{\sigma^2} - 1) = 2 M^2 e^{\sigma^2/2} \sinh(\sigma^2/2)`, which never cancels."""
    half = graph.call("Mul", part.variance, np.float32(0.5))
    mean = graph.call("Exp", graph.call("Add", part.mean, half))
    excess = graph.call("Mul", graph.call("Exp", half), graph.call("Sinh", half))
    variance = graph.call("Mul", graph.square(mean), graph.call("Mul", excess, np.float32(2)))
    name = {"normal": "log-normal", "mixture of normals": "mixture of log-normals"}
    return replace(part, mean=mean, variance=variance, distribution=name[part.distribution])


def several(graph: Graph, part: Part) -> Part:
    """`part` with a weight: one that has none is the only one of its kind."""
    if part.weight is not None:
        return part
    first = np.array([0])
    mean, variance = (graph.call("Unsqueeze", at, first) for at in (part.mean, part.variance))
    return replace(part, mean=mean, variance=variance, weight=np.ones(1))


def mixed(graph: Graph, part: Part) -> Part:
    """One mean and variance over the parts: what they differ by, and what each has."""
    if part.weight is None:
        return part
    weight = part.weight[None]  # (1, j)
    over = graph.call("MatMul", weight, part.mean)  # (1, m)
    apart = graph.square(graph.call("Sub", part.mean, over))
    variance = graph.call("MatMul", weight, graph.call("Add", part.variance, apart))
    first = np.array([0])
    mean, variance = graph.call("Squeeze", over, first), graph.call("Squeeze", variance, first)
    return replace(part, mean=mean, variance=variance, weight=None)
