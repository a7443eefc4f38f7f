"""Comparisons over pairs: two methods on the same draws, or two programs on the same cells."""

import numpy as np
from scipy.stats import wilcoxon


def signed_rank(first: np.ndarray, second: np.ndarray, alternative: str = "two-sided") -> float:
    """p of the exact Wilcoxon signed-rank test.

    Asked for by name: at a tie, and rows rounded to six digits have one, scipy would change to
    the normal approximation, ten times off this far out. No difference at all is p = 1.
    """
    if np.array_equal(first, second):
        return 1.0
    return float(wilcoxon(first, second, alternative=alternative, method="exact").pvalue)


def standard_error(difference: np.ndarray) -> float:
    """Of the mean of independent differences: sd with divisor n - 1, over the root of n."""
    return float(np.std(difference, ddof=1) / np.sqrt(len(difference)))
