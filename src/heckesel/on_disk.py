"""How a saved model holds a field of a fitted object: metadata for `dataclasses.field`."""

from dataclasses import dataclass

KEY = "on disk"


@dataclass(frozen=True)
class OnDisk:
    """The checks made when a field is read.

    shape : lengths of an array, by name or as numbers: "p" and "q" are the columns of x and w,
        "q+1" one more than that, and any other name stands for the length that is found first,
        which later fields of the object must have, too
    positive, finite, dtype : of its values; above : what all of them exceed
    inputs, outputs : of networks: the columns they read, "p" or "q", and how many outputs they may
        have
    kept : False for what a file does not hold
    """

    shape: tuple[str | int, ...] = ()
    positive: bool = False
    finite: bool = True
    dtype: str = "float64"
    above: float | None = None
    inputs: str | None = None
    outputs: tuple[int, ...] = (1,)
    kept: bool = True


def on_disk(*shape: str | int, **how) -> dict[str, OnDisk]:
    """The metadata of a field; how : as `OnDisk` has it."""
    return {KEY: OnDisk(shape, **how)}
