"""Values of n units together with their exact first and second derivatives in k coordinates.

A formula written in jets is differentiated by the chain rule as it is computed. Only functions of
one or two numbers need explicit derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Jet:
    """value : (n,), gradient : (k, n), hessian : (k, k, n); n is 1 for a shared number."""

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def chain(self, value, first, second) -> Jet:
        """f of this jet, given f, f' and f'' at its value."""
        outer = self.gradient[:, None] * self.gradient
        return Jet(value, first * self.gradient, second * outer + first * self.hessian)

    def exp(self) -> Jet:
        value = np.exp(self.value)
        return self.chain(value, value, value)

    def log(self) -> Jet:
        return self.chain(np.log(self.value), 1 / self.value, -1 / self.value**2)

    def __add__(self, other) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.gradient, self.hessian)
        return Jet(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )

    def __mul__(self, other) -> Jet:
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.gradient * other, self.hessian * other)
        mixed = self.gradient[:, None] * other.gradient
        return Jet(
            self.value * other.value,
            self.gradient * other.value + self.value * other.gradient,
            self.hessian * other.value
            + self.value * other.hessian
            + mixed
            + mixed.transpose(1, 0, 2),
        )

    def __neg__(self) -> Jet:
        return self * -1.0

    def __sub__(self, other) -> Jet:
        return self + -other

    __radd__, __rmul__ = __add__, __mul__


def coordinates(*values) -> tuple[Jet, ...]:
    """The k coordinates as jets; numbers are shared by all units."""
    size = len(values)
    jets = []
    for position, value in enumerate(values):
        gradient = np.zeros((size, 1))
        gradient[position] = 1.0
        jets.append(Jet(np.atleast_1d(value), gradient, np.zeros((size, size, 1))))
    return tuple(jets)


def chain_two(a: Jet, b: Jet, value, first, second) -> Jet:
    """f(a, b), given the values of f, (f_a, f_b) and (f_aa, f_ab, f_bb)."""
    mixed = a.gradient[:, None] * b.gradient
    hessian = (
        first[0] * a.hessian
        + first[1] * b.hessian
        + second[0] * (a.gradient[:, None] * a.gradient)
        + second[1] * (mixed + mixed.transpose(1, 0, 2))
        + second[2] * (b.gradient[:, None] * b.gradient)
    )
    return Jet(value, first[0] * a.gradient + first[1] * b.gradient, hessian)
