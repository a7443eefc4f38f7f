r"""Random numbers as R draws them, so that data simulated in R can be drawn without R.

`set.seed` fills the state of the Mersenne Twister from a linear congruential generator, whose first
50 values are skipped; `rnorm` inverts the normal distribution function at a 53-bit number that
combines numbers of 27 and 32 bits.
"""

import numpy as np
from scipy.special import ndtri

SKIPPED, STATE, MULTIPLIER = 50, 624, 69069
TO_UNIT = 2.3283064365386963e-10  # 1 / (2^32 - 1), as in R
BIG = 2.0**27


class RRandom:
    """The generator after set.seed(seed)."""

    def __init__(self, seed: int):
        state, value = np.empty(SKIPPED + 1 + STATE, dtype=np.uint32), seed
        for place in range(len(state)):
            value = (MULTIPLIER * value + 1) % 2**32
            state[place] = value
        self._twister = np.random.RandomState()
        self._twister.set_state(("MT19937", state[SKIPPED + 1 :], STATE))

    def uniform(self, n: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """runif(n, low, high)."""
        words = self._twister.randint(0, 2**32, size=n, dtype=np.uint64)
        return low + (high - low) * words * TO_UNIT

    def normal(self, n: int) -> np.ndarray:
        """rnorm(n)."""
        pairs = self.uniform(2 * n)
        return ndtri((np.floor(BIG * pairs[::2]) + pairs[1::2]) / BIG)

    def mvtnorm(self, n: int, covariance: np.ndarray) -> np.ndarray:
        """mvtnorm::rmvnorm(n, 0, covariance): rows times the symmetric square root."""
        values, vectors = np.linalg.eigh(covariance)
        root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
        return self.normal(n * len(covariance)).reshape(n, -1) @ root

    def mass(self, n: int, rho: float) -> np.ndarray:
        """MASS::mvrnorm(n, 0, [[1, rho], [rho, 1]]): columns times eigenvectors, of which R's have
        the sign of [[1, -1], [1, 1]]."""
        vectors = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
        scaled = self.normal(2 * n).reshape(2, n) * np.sqrt([[1 + rho], [1 - rho]])
        return scaled.T @ vectors.T
