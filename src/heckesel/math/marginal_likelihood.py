r"""Marginal likelihood of a Gaussian process with a squared-exponential kernel and white noise.

.. math:: k(x, x') = c \exp\Big(-\tfrac12 \sum_d (x_d - x'_d)^2 / \ell_d^2\Big), \qquad
          K_{ij} = k(x_i, x_j) + (\nu + \text{ridge})\, 1\{i = j\}

theta = (log c, log l_1, ..., log l_p, log nu). Columns of x should be centred: the squared
distances are expanded, and a common offset would cost digits.
"""

import numpy as np
from scipy.linalg import blas, lapack, solve_triangular

# The default of scikit-learn's GaussianProcessRegressor: far below any noise, above rounding of K.
RIDGE = 1e-10
# With one or two columns a smooth kernel has few eigenvalues above rounding: 25 of 1000 over six
# length scales. The factor is complete once no unit has more than this share of its variance left.
LOW_RANK_COLUMNS = 2
LOW_RANK_REST = 1e-14


def kernel(theta: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """k between the rows of a and those of b, (len(a), len(b)); computed in place."""
    a, b = a / np.exp(theta[1:-1]), b / np.exp(theta[1:-1])
    k = a @ b.T
    k *= -2.0
    k += np.einsum("ij,ij->i", a, a)[:, None]
    k += np.einsum("ij,ij->i", b, b)
    np.maximum(k, 0.0, out=k)
    k *= -0.5
    k += theta[0]
    return np.exp(k, out=k)


def noise_with_ridge(theta: np.ndarray) -> float:
    return float(np.exp(theta[-1])) + RIDGE


def log_marginal_likelihood(
    theta: np.ndarray, x: np.ndarray, y: np.ndarray
) -> tuple[float, np.ndarray]:
    """log N(y; 0, K) and its gradient in theta, by the cheaper of the two methods below."""
    if x.shape[1] <= LOW_RANK_COLUMNS and (low_rank := low_rank_factor(theta, x)) is not None:
        return low_rank_likelihood(theta, x, y, low_rank[0])
    return dense_likelihood(theta, x, y)


def dense_likelihood(theta, x, y):
    r"""log N(y; 0, K) by the Cholesky factor L of K, and its gradient by the inverse of K.

    .. math:: -\tfrac12 y'a - \sum_i \log L_{ii} - \tfrac n2 \log 2\pi, \quad a = K^{-1} y; \qquad
              \partial = \tfrac12 \sum_{ij} (aa' - K^{-1})_{ij}\, \partial K_{ij}

    For a log length dK_ij = k_ij (z_i - z_j)^2 with z = x/l. With M_ij = (aa' - K^{-1})_ij k_ij
    the sum is sum_i z_i^2 (M1)_i - z'Mz: two products with M, and no n x n array per column.
    The value is -infinity, with gradient 0, if K is not positive definite in floating point.
    """
    n, z = len(y), x / np.exp(theta[1:-1])
    k = kernel(theta, x, x)
    covariance = k.copy()
    covariance.flat[:: n + 1] += noise_with_ridge(theta)
    # Symmetric, so the transpose is the same matrix in the column order that LAPACK overwrites.
    factor, failed = lapack.dpotrf(covariance.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        return -np.inf, np.zeros_like(theta)
    a = lapack.dpotrs(factor, y, lower=1)[0]
    value = -0.5 * y @ a - np.log(factor.diagonal()).sum() - 0.5 * n * np.log(2 * np.pi)
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]  # its lower triangle only
    trace = inverse.diagonal().sum()
    inverse *= k.T
    ones_and_z = np.column_stack([np.ones(n), z])
    product = a[:, None] * (k @ (a[:, None] * ones_and_z))
    product -= blas.dsymm(1.0, inverse, ones_and_z, lower=1)  # (n, 1 + p): M [1, z]
    lengths = (z**2).T @ product[:, 0] - np.einsum("ij,ij->j", z, product[:, 1:])
    return value, _gradient(theta, lengths, y @ a - n, a @ a - trace)


def low_rank_factor(theta, x):
    """G (r, n) with k = G'G to rounding, and its r pivots; None once r passes n/8.

    Pivoted Cholesky: the next pivot is the unit with most variance left, so no entry is off by
    more than `LOW_RANK_REST` times c. Beyond n/8 the dense way costs less.
    """
    n, c = len(x), np.exp(theta[0])
    rest, g, pivots = np.full(n, c), np.empty((n // 8, n)), []
    for r in range(n // 8):
        pivot = int(rest.argmax())
        if rest[pivot] <= LOW_RANK_REST * c:
            return g[:r], np.array(pivots)
        column = kernel(theta, x[[pivot]], x)[0] - g[:r, pivot] @ g[:r]
        g[r] = column / np.sqrt(rest[pivot])
        rest -= g[r] ** 2
        pivots.append(pivot)
    return None


def low_rank_likelihood(theta, x, y, g):
    r"""log N(y; 0, K) and its gradient in O(n r^2) for k = G'G, with t = nu + ridge.

    .. math:: K^{-1} = (I - H'H)/t, \quad |K| = t^{n-r} |A|, \quad A = tI + GG' = CC', \quad
              H = C^{-1} G

    The sums over M of `dense_likelihood` become sums over the r rows of G.
    """
    (r, n), z, t = g.shape, x / np.exp(theta[1:-1]), noise_with_ridge(theta)
    c = np.linalg.cholesky(t * np.eye(r) + g @ g.T)
    h = solve_triangular(c, g, lower=True, check_finite=False)
    a = (y - h.T @ (h @ y)) / t
    log_det = (n - r) * np.log(t) + 2 * np.log(c.diagonal()).sum()
    value = -0.5 * (y @ a + log_det + n * np.log(2 * np.pi))
    trace = (n - np.sum(h**2)) / t
    applied = np.outer(g @ a, a) - (g - (g @ h.T) @ h) / t  # (r, n): G (aa' - K^{-1})
    lengths = (z**2).T @ np.einsum("rn,rn->n", g, applied)
    for d, column in enumerate(z.T):
        moved = g * column
        within = np.sum(moved**2) - np.sum((h @ moved.T) ** 2)  # t tr(moved K^{-1} moved')
        lengths[d] -= np.sum((moved @ a) ** 2) - within / t
    return value, _gradient(theta, lengths, y @ a - n, a @ a - trace)


def _gradient(theta, lengths, fit_less_n, a_less_trace):
    """For log c dK = k = K - tI: the sum over K is y'a - n, and that over I is a'a - trace."""
    constant = 0.5 * (fit_less_n - noise_with_ridge(theta) * a_less_trace)
    return np.concatenate([[constant], lengths, [0.5 * np.exp(theta[-1]) * a_less_trace]])
