"""The smallest direct effects of an instrument that a test can detect."""

import math
from collections.abc import Callable

POWER = 0.8
LARGEST_EFFECT = 1.0  # sd of y per sd of the instrument; the search ends here
HALVINGS = 6  # of the range from 0 to the largest effect, to 1/64


def smallest_effects(power: Callable[[float], float]) -> tuple[float, float]:
    """The negative and the positive effect at which the power reaches 80 %; infinite beyond 1.

    power : of an effect with its sign
    """
    return -_smallest(lambda effect: power(-effect)), _smallest(power)


def _smallest(power: Callable[[float], float]) -> float:
    """By bisection, as the power increases with the effect."""
    if not power(LARGEST_EFFECT) >= POWER:  # NaN if the test has no covariance there
        return math.inf
    low, high = 0.0, LARGEST_EFFECT
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
