r"""Last hidden layers as columns of a linear model; members that held out the same fold form a set.

The activations A (n, d) of a set have hundreds of columns, which are almost collinear. They are
rotated to their principal axes, A R, and axes with little information are dropped. With residuals
of variance one, the information about a coefficient is the sum of squares along its axis. If that
is below `LEAST_INFORMATION`, the ridge, which is about one or more and invariant under rotation,
determines the coefficient.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heckesel.networks.member_graphs import last_hidden
from heckesel.networks.training.batches import Batch
from heckesel.networks.training.ensemble_training import Members
from heckesel.on_disk import on_disk

LEAST_INFORMATION = 1e-3


@dataclass(frozen=True)
class LastLayer:
    """Columns from the last layers of k members; member j belongs to set j mod `len(axes)`.

    axes : (sets, d, h) rotation from the activations of a set to its columns; zero where a set has
    fewer members or axes than others
    """

    members: Members = field(metadata=on_disk(inputs="p"))
    axes: np.ndarray = field(metadata=on_disk("sets", "d", "h"))

    @property
    def membership(self) -> np.ndarray:
        """(h + 1, 1): one ridge on all columns but the constant."""
        return np.append(np.ones(self.axes.shape[2]), 0.0)[:, None]

    def columns(self, x: np.ndarray) -> np.ndarray:
        """(sets, m, h + 1), a constant last."""
        turned = side_by_side(self.members.last_layer(x), len(self.axes)) @ self.axes
        return np.concatenate([turned, np.ones((*turned.shape[:2], 1))], axis=2)

    def graph(self, graph, x: str) -> str:
        """`columns` in an ONNX graph: the sum over members of a set of their activations times
        their rows of the axes; a constant last."""
        hidden, sets = last_hidden(graph, self.members, x), len(self.axes)
        k, width = len(self.members.parameters), self.members.sizes[-2]
        parts = []
        for first in range(0, k, sets):
            chosen = np.minimum(np.arange(first, first + sets), k - 1)  # beyond k the axes are zero
            rows = slice(first // sets * width, (first // sets + 1) * width)
            own = graph.call("Gather", hidden, chosen, axis=0)
            parts.append(graph.call("MatMul", own, self.axes[:, rows]))
        return graph.call("Pad", graph.call("Sum", *parts), np.array([0] * 5 + [1]), np.float32(1))


def side_by_side(activations: np.ndarray, sets: int) -> np.ndarray:
    """(sets, m, d) from activations (k, m, width + 1), whose last column is constant."""
    k, m, width = activations.shape
    rounds = -(-k // sets)
    padded = np.zeros((rounds * sets, m, width - 1))
    padded[:k] = activations[:, :, :-1]
    by_set = padded.reshape(rounds, sets, m, width - 1).transpose(1, 2, 0, 3)
    return by_set.reshape(sets, m, rounds * (width - 1))


def last_layers(
    trained: Sequence[Members], datasets: Sequence[Batch], totals: Sequence[float], sets: int
) -> list[LastLayer]:
    """One basis for each dataset, all of one width; totals : the number of units in each."""
    found = [_axes(*each, sets) for each in zip(trained, datasets, totals, strict=True)]
    width = max(one.shape[1] for axes in found for one in axes)
    return [
        LastLayer(
            replace(members, parameters=members.parameters.astype(float)),
            np.stack([np.pad(one, ((0, 0), (0, width - one.shape[1]))) for one in axes]),
        )
        for members, axes in zip(trained, found, strict=True)
    ]


def _axes(members: Members, dataset: Batch, total: float, sets: int) -> list[np.ndarray]:
    """(d, h) of each set, the most informative axis first."""
    activations = side_by_side(members.last_layer(dataset.x[:, :-1]), sets)
    gram = activations.transpose(0, 2, 1) @ (activations * (total * dataset.weight)[:, None])
    information, axes = np.linalg.eigh(gram)
    return [
        each[:, known > LEAST_INFORMATION][:, ::-1]
        for each, known in zip(axes, information, strict=True)
    ]
