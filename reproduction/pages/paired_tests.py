"""Comparisons over pairs: two methods on the same draws, or two programs on the same cells."""

import numpy as np
from scipy.stats import wilcoxon


def signed_rank(first: np.ndarray, second: np.ndarray, alternative: str = "two-sided") -> float:
    """p of the exact Wilcoxon signed-rank test.

    The exact method is requested explicitly. If there are ties, which occur in rows rounded to six
    digits, scipy would use the normal approximation, whose p-values are wrong by a factor of ten
    this far in the tail. If there are no differences, p = 1.
    """
    if np.array_equal(first, second):
        return 1.0
    return float(wilcoxon(first, second, alternative=alternative, method="exact").pvalue)


def standard_error(difference: np.ndarray) -> float:
    """The standard error of the mean of independent differences: sd with divisor n - 1, divided by
    the root of n."""
    return float(np.std(difference, ddof=1) / np.sqrt(len(difference)))
