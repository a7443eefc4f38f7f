"""Data whose truth is known: simulated populations, and selection induced on real tables."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr, stdtr

from heckesel.errors import DataError, is_one_of

ERRORS = ("normal", "t", "chi2")
DEGREES = 3
# Of the chi-squared errors, and the default of t errors: 3 is the smallest integer with a finite
# variance of the t, and gives chi-squared errors a skewness of 1.6.

CHOLESKY_JITTER = 1e-12
# Part of the published draws: added to the variances, it changes the last digits of u.
HERMITE_NODES = 96
INDEX_SLOPE = -1.8 / 3
# x ranges up to 3, so without z P(s = 1) falls from Phi(1.8) = .96 to .04.
INTERACTIONS_SLOPE = -1.2  # in x1 and x4: without z P(s = 1) ranges from .99 to .01
# (intercept, slopes) of the probits of a default and of a grant; slopes are per standard deviation
# of (log income, debt, tenure). Lenders grant loans to those less likely to default.
DEFAULT = (-0.9, np.array([-0.35, 0.45, -0.25]))
GRANT = (0.1, np.array([0.45, -0.5, 0.2]))
LENIENCY = 0.7
NO_RESIDUAL = 1e-10
# Residuals of a standardised outcome; an exact linear relation leaves about 1e-15 of rounding.


@dataclass(frozen=True)
class Truth:
    """The truth about simulated units, with one entry per row of the frame.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Outcome of every unit, selected or not.
    f0 : ndarray of shape (n,) or None
        E[y | x]; None if it is unknown.
    propensity : ndarray of shape (n,) or None
        P(s = 1 | x, z); None if no z was drawn.
    propensity_x : ndarray of shape (n,)
        P(s = 1 | x), which defines the regions of the population.

    Examples
    --------
    >>> import heckesel as hk
    >>> truth = hk.datasets.make_controlled(100, rho=0.5, alpha=1.0, seed=0).truth
    >>> truth.y.shape
    (100,)
    """

    y: np.ndarray
    f0: np.ndarray | None
    propensity: np.ndarray | None
    propensity_x: np.ndarray


def check_draw(rho, seed, *, sizes, alpha=0.0, sigma=1.0):
    """Refuse arguments that a generator cannot draw from; sizes : name -> number of rows."""
    for name, size in sizes.items():
        if not (isinstance(size, Integral) and size >= 1):
            raise DataError(f"{name} is {size!r} but must be a positive integer")
    if not (isinstance(rho, Real) and -1 < rho < 1):
        raise DataError(f"rho is {rho!r} but must lie strictly between -1 and 1")
    if not (isinstance(alpha, Real) and np.isfinite(alpha)):
        raise DataError(f"alpha is {alpha!r} but must be a finite number")
    if not (isinstance(sigma, Real) and 0 < sigma < np.inf):
        raise DataError(f"sigma is {sigma!r} but must be a positive number")
    if not (isinstance(seed, Integral) and seed >= 0):
        raise DataError(f"seed is {seed!r} but must be a non-negative integer")


def draw_errors(rng, n: int, *, rho: float, sigma: float, errors: str, df: float = DEGREES):
    r"""(epsilon, u), (n,) each: sd sigma and 1, correlation rho.

    "normal" is bivariate normal. "t" is bivariate t with df > 2 degrees of freedom, scaled to these
    variances. "chi2" has independent :math:`u` and :math:`v`, both :math:`(\chi^2_3 - 3)/\sqrt6`,
    and :math:`\varepsilon = \sigma(\rho u + \sqrt{1-\rho^2}\,v)`.
    """
    if not is_one_of(errors, ERRORS):
        raise DataError(f"errors must be one of {', '.join(ERRORS)}, got {errors!r}")
    if errors == "chi2":
        u, v = (rng.chisquare(DEGREES, size=(2, n)) - DEGREES) / np.sqrt(2 * DEGREES)
        return sigma * (rho * u + np.sqrt(1 - rho**2) * v), u
    covariance = np.array([[sigma**2, rho * sigma], [rho * sigma, 1.0]])
    factor = np.linalg.cholesky(covariance + CHOLESKY_JITTER * np.eye(2))
    epsilon, u = (rng.normal(size=(n, 2)) @ factor.T).T
    if errors == "t":
        shrink = np.sqrt((df - 2) / rng.chisquare(df, size=n))
        epsilon, u = epsilon * shrink, u * shrink
    return epsilon, u


def selection_probability(index, errors: str, df: float = DEGREES):
    """P(u > -index)."""
    if errors == "normal":
        return ndtr(index)
    if errors == "t":
        return stdtr(df, np.asarray(index) * np.sqrt(df / (df - 2)))
    return chdtrc(DEGREES, np.maximum(DEGREES - np.sqrt(2 * DEGREES) * np.asarray(index), 0.0))


def probability_given_x(index, alpha: float, errors: str, df: float = DEGREES):
    """P(alpha z + u > -index) for z standard normal, (n,)."""
    if errors == "normal":
        return ndtr(index / np.sqrt(1 + alpha**2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(HERMITE_NODES)
    at_nodes = selection_probability(np.asarray(index)[:, None] + alpha * nodes, errors, df)
    return at_nodes @ weights / weights.sum()


@dataclass(frozen=True)
class Controlled:
    """A simulated sample and its truth.

    Attributes
    ----------
    frame : pandas.DataFrame
        n rows with the covariates, the instrument ``z`` and ``y``, which is NaN if the unit was not
        selected.
    truth : Truth
        The truth about the same rows.

    Examples
    --------
    >>> import heckesel as hk
    >>> list(hk.datasets.make_controlled(100, rho=0.5, alpha=1.0, seed=0).frame)
    ['x', 'z', 'y']
    """

    frame: pd.DataFrame
    truth: Truth


def make_controlled(
    n: int = 2000,
    *,
    rho: float,
    alpha: float,
    seed: int,
    sigma: float = 0.5,
    errors: str = "normal",
    df: float = DEGREES,
) -> Controlled:
    r"""Simulate units whose selection depends on x, on an instrument z and on the outcome error.

    Parameters
    ----------
    n : int, default 2000
        Number of units.
    rho : float
        Correlation of the two errors, strictly between -1 and 1.
    alpha : float
        Effect of the instrument on selection. With 0 the column ``z`` is irrelevant.
    seed : int
    sigma : float, default 0.5
        Standard deviation of the outcome error.
    errors : {"normal", "t", "chi2"}, default "normal"
        All have the same variances and correlation.
    df : float, default 3
        Degrees of freedom of t errors, above 2.

    Returns
    -------
    Controlled
        The columns of its ``frame`` are ``x``, ``z`` and ``y``.

    Raises
    ------
    DataError
        If an argument is out of range.

    Notes
    -----
    .. math::
        x \sim U[-3, 3], \quad z \sim N(0, 1), \quad
        y = \sin(1.5 x) + x/2 + \varepsilon, \quad
        s = 1[-1.8\,x/3 + \alpha z + u > 0]

    with sd ε = σ, Var u = 1 and corr(ε, u) = ρ. Units with large x are rarely selected.

    ``default_rng(seed)`` draws x, then z, then the (n, 2) standard normals that the Cholesky factor
    of the covariance of (ε, u) turns into errors. This order reproduces the draws of the published
    experiment. Its test set is ``make_controlled(3000, seed=10000 + seed, ...)``, of which it uses
    ``truth.y``.

    Examples
    --------
    >>> import heckesel as hk
    >>> draw = hk.datasets.make_controlled(1000, rho=0.5, alpha=1.0, seed=0)
    >>> int(draw.frame["y"].notna().sum())
    468
    """
    check_draw(rho, seed, sizes={"n": n}, alpha=alpha, sigma=sigma)
    if not (isinstance(df, Real) and df > 2):
        raise DataError(f"df is {df!r} but must exceed 2, so that the errors have a variance")
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, size=n)
    frame, f0, index = pd.DataFrame({"x": x}), controlled_f0(x), INDEX_SLOPE * x
    return draw_sample(
        rng, frame, f0, index, alpha=alpha, rho=rho, sigma=sigma, errors=errors, df=df
    )


def draw_sample(
    rng, frame: pd.DataFrame, f0, index_x, *, alpha, rho, sigma, errors, df=DEGREES
) -> Controlled:
    """Draws z, then the errors, and hides the outcomes of units that are not selected.

    frame : the covariates
    f0, index_x : (n,) the regression function, and the selection index without z
    """
    z = rng.normal(size=len(frame))
    epsilon, u = draw_errors(rng, len(frame), rho=rho, sigma=sigma, errors=errors, df=df)
    y, index = f0 + epsilon, index_x + alpha * z
    propensity = selection_probability(index, errors, df)
    given_x = probability_given_x(index_x, alpha, errors, df)
    frame = frame.assign(z=z, y=np.where(index + u > 0, y, np.nan))
    return Controlled(frame, Truth(y, f0, propensity, given_x))


def controlled_f0(x: np.ndarray) -> np.ndarray:
    """(n,) the regression function at x (n,)."""
    return np.sin(1.5 * x) + x / 2


def make_interactions(
    n: int = 4000,
    *,
    rho: float,
    alpha: float,
    seed: int,
    sigma: float = 0.5,
    errors: str = "normal",
) -> Controlled:
    r"""Simulate units whose outcome is not additive in its five covariates.

    Parameters
    ----------
    n : int, default 4000
        Number of units.
    rho : float
        Correlation of the two errors, strictly between -1 and 1.
    alpha : float
        Effect of the instrument on selection.
    seed : int
    sigma : float, default 0.5
        Standard deviation of the outcome error.
    errors : {"normal", "t", "chi2"}, default "normal"
        As in `make_controlled`.

    Returns
    -------
    Controlled
        The columns of its ``frame`` are ``x1`` to ``x5``, ``z`` and ``y``.

    Raises
    ------
    DataError
        If an argument is out of range.

    Notes
    -----
    .. math::
        x \sim U[-1, 1]^5, \quad
        f_0 = \sin(\pi x_1 x_2) + x_3 x_4 + x_5^2 + x_1/2, \quad
        s = 1[-1.2\,(x_1 + x_4) + \alpha z + u > 0]

    Examples
    --------
    >>> import heckesel as hk
    >>> hk.datasets.make_interactions(100, rho=0.5, alpha=1.0, seed=0).frame.shape
    (100, 7)
    """
    check_draw(rho, seed, sizes={"n": n}, alpha=alpha, sigma=sigma)
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 5))
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(1, 6)])
    f0, index = interactions_f0(x), INTERACTIONS_SLOPE * (x[:, 0] + x[:, 3])
    return draw_sample(rng, frame, f0, index, alpha=alpha, rho=rho, sigma=sigma, errors=errors)


def interactions_f0(x: np.ndarray) -> np.ndarray:
    """(n,) the regression function at x (n, 5)."""
    x1, x2, x3, x4, x5 = x.T
    return np.sin(np.pi * x1 * x2) + x3 * x4 + x5**2 + x1 / 2


def make_loans(n: int = 4000, *, rho: float = -0.6, seed: int = 0) -> Controlled:
    r"""Simulate loan applications, decided by officers who use unrecorded information.

    Parameters
    ----------
    n : int, default 4000
        Number of applications.
    rho : float, default -0.6
        Correlation of the two errors. It is negative if unrecorded information makes loan officers
        reject applicants who would default.
    seed : int, default 0

    Returns
    -------
    Controlled
        The columns of its ``frame`` are ``log_income``, ``debt``, ``tenure``, ``leniency`` and
        ``default``, which is NaN if the loan was not granted. ``truth.y`` is the default of
        every application, granted or not, and ``truth.f0`` its probability given the three
        covariates.

    Raises
    ------
    DataError
        If an argument is out of range.

    Notes
    -----
    .. math::
        \text{default} = 1[-0.9 - 0.35 i + 0.45 d - 0.25 t + \varepsilon > 0], \quad
        \text{granted} = 1[0.1 + 0.45 i - 0.5 d + 0.2 t + 0.7 l + u > 0]

    with i = log_income - log 30, d = (debt - .3)/.1, t = (tenure - 6)/3 and l = leniency. All are
    standard normal, except that t is truncated so that tenure is not negative. Leniency is that of
    the randomly assigned loan officer: an instrument. (ε, u) have variance one and correlation ρ.

    Examples
    --------
    >>> import heckesel as hk
    >>> loans = hk.datasets.make_loans(1000)
    >>> bool(loans.frame["default"].mean() < loans.truth.y.mean())
    True
    """
    check_draw(rho, seed, sizes={"n": n})
    rng = np.random.default_rng(seed)
    i, d, t, leniency = rng.standard_normal((4, n))
    t = np.maximum(t, -2.0)  # so that tenure is not negative
    epsilon, u = draw_errors(rng, n, rho=rho, sigma=1.0, errors="normal", df=np.inf)
    scores = np.column_stack([i, d, t])
    risk = DEFAULT[0] + scores @ DEFAULT[1]
    merit = GRANT[0] + scores @ GRANT[1]
    default = (risk + epsilon > 0).astype(float)
    granted = merit + LENIENCY * leniency + u > 0
    frame = pd.DataFrame(
        {
            "log_income": np.log(30.0) + i,
            "debt": 0.3 + 0.1 * d,
            "tenure": 6 + 3 * t,
            "leniency": leniency,
            "default": np.where(granted, default, np.nan),
        }
    )
    propensity = ndtr(merit + LENIENCY * leniency)
    given_x = probability_given_x(merit, LENIENCY, "normal", np.inf)
    return Controlled(frame, Truth(default, ndtr(risk), propensity, given_x))


@dataclass(frozen=True)
class SemiReal:
    """Real data with induced selection, standardised by the mean and sd of the pool.

    Attributes
    ----------
    frame : pandas.DataFrame
        The pool: ``n_pool`` rows with the covariates, ``z`` and ``y``, which is NaN if the unit was
        not selected.
    truth : Truth
        The truth about the pool.
    test_frame : pandas.DataFrame
        ``n_test`` held-out rows with the covariates and ``y``, which is never missing. They have no
        ``z``.
    test_truth : Truth
        The truth about the test rows, without ``propensity``.

    Examples
    --------
    >>> import heckesel as hk
    >>> wine = hk.datasets.load_wine_quality()
    >>> semi = hk.datasets.induce_selection(
    ...     wine, outcome="quality", rho=0.5, seed=0, n_pool=1000, n_test=500
    ... )
    >>> semi.test_frame.shape
    (500, 12)
    """

    frame: pd.DataFrame
    truth: Truth
    test_frame: pd.DataFrame
    test_truth: Truth


def induce_selection(
    frame: pd.DataFrame, *, outcome: str, rho: float, seed: int, n_pool: int, n_test: int
) -> SemiReal:
    r"""Hide half of the outcomes of a complete table, depending on the outcomes themselves.

    Parameters
    ----------
    frame : pandas.DataFrame
        Numeric columns without missing values.
    outcome : str
        Column of `frame` that becomes ``y``. All other columns are covariates.
    rho : float
        Dependence of selection on the outcome, strictly between -1 and 1.
    seed : int
    n_pool, n_test : int
        Number of rows of the pool and of the test set.

    Returns
    -------
    SemiReal

    Raises
    ------
    DataError
        If an argument is out of range, if a column is constant, not numeric or not complete, or if
        the other columns determine the outcome.

    Notes
    -----
    Let m be the linear prediction of the outcome from all other columns and r its residual, both
    standardised over the pool, and let c be the median of the left-hand side over the pool. Then

    .. math:: s = 1[-m + z + \rho r + \sqrt{1 - \rho^2}\, v > c], \quad z, v \sim N(0, 1)

    so units with a high prediction are less likely to be selected and, if ρ > 0, units with a
    positive residual are more likely. The truth takes ρr + √(1-ρ²)v as standard normal given x:
    P(s=1 | x, z) = Φ(-m + z - c) and P(s=1 | x) = Φ((-m - c)/√2). Both are exact only at ρ = 0.

    ``default_rng(seed).permutation`` orders the rows: the pool first, then the test rows. A new
    ``default_rng(seed)`` draws z, then v. Means, standard deviations (divisor n), the linear fit
    and c are computed on the pool only. These rules reproduce the draws of the published
    experiments.

    Examples
    --------
    >>> import heckesel as hk
    >>> wine = hk.datasets.load_wine_quality()
    >>> semi = hk.datasets.induce_selection(
    ...     wine, outcome="quality", rho=0.5, seed=0, n_pool=1000, n_test=500
    ... )
    >>> int(semi.frame["y"].notna().sum())
    500
    """
    check_draw(rho, seed, sizes={"n_pool": n_pool, "n_test": n_test})
    x_names = _check_frame(frame, outcome, n_pool, n_test)
    order = np.random.default_rng(seed).permutation(len(frame))
    rows = np.split(order[: n_pool + n_test], [n_pool])  # (n_pool,), (n_test,)
    table = frame[[*x_names, outcome]].to_numpy(dtype=float)
    for name, column in zip([*x_names, outcome], table[rows[0]].T, strict=True):
        if np.ptp(column) == 0:
            raise DataError(f"column {name!r} is constant in the pool of seed {seed}; drop it")
    pool, test = _scale_by_first(table[rows[0]], table[rows[1]])
    m, m_test, r = _linear_prediction(pool, test, outcome)

    rng = np.random.default_rng(seed)
    z, v = rng.normal(size=n_pool), rng.normal(size=n_pool)
    index = -m + z + rho * r + np.sqrt(1 - rho**2) * v
    c = np.median(index)

    # copies, so that editing a frame does not change the truth
    y, y_test = pool[:, -1].copy(), test[:, -1].copy()
    observed = np.where(index > c, y, np.nan)
    columns = np.column_stack([pool[:, :-1], z, observed])
    return SemiReal(
        frame=pd.DataFrame(columns, columns=[*x_names, "z", "y"]),
        truth=Truth(y, None, ndtr(-m + z - c), _propensity_given_x(m, c)),
        test_frame=pd.DataFrame(test, columns=[*x_names, "y"]),
        test_truth=Truth(y_test, None, None, _propensity_given_x(m_test, c)),
    )


def _propensity_given_x(m, c):
    """P(s = 1 | x): z and the noise are independent, so their sum has variance 2."""
    return ndtr((-m - c) / np.sqrt(2))


def _scale_by_first(first, *others):
    """Every array less the mean of the first, in units of its standard deviation (divisor n)."""
    mean, sd = first.mean(axis=0), first.std(axis=0)
    return [(values - mean) / sd for values in (first, *others)]


def _linear_prediction(pool, test, outcome):
    """Standardised m on pool and test rows, and the standardised residual r on the pool.

    pool, test : the outcome is the last column; pool columns have mean 0, so the fit has no
        constant
    """
    beta = np.linalg.lstsq(pool[:, :-1], pool[:, -1], rcond=None)[0]
    fitted, fitted_test = pool[:, :-1] @ beta, test[:, :-1] @ beta
    residual = pool[:, -1] - fitted
    if residual.std() < NO_RESIDUAL:
        raise DataError(
            f"{outcome} is an exact linear function of the other columns, so it has no residual "
            "that selection could depend on"
        )
    m, m_test = _scale_by_first(fitted, fitted_test)
    return m, m_test, _scale_by_first(residual)[0]


def _check_frame(frame, outcome, n_pool, n_test):
    """The names of the covariates of a frame that is complete and large enough."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(f"frame is a {type(frame).__name__} but must be a pandas DataFrame")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"column {twice!r} appears twice in frame; rename one")
    if outcome not in frame.columns:
        raise DataError(f"frame has no column {outcome!r}, which is the outcome")
    x_names = [name for name in frame.columns if name != outcome]
    for name in ("y", "z"):
        if name in x_names:
            raise DataError(f"frame has a column {name!r}, a name that the result uses; rename it")
    if n_pool + n_test > len(frame):
        raise DataError(f"n_pool + n_test is {n_pool + n_test} but frame has {len(frame)} rows")
    if not 1 <= len(x_names) < n_pool - 1:
        raise DataError(
            f"frame has {len(x_names)} columns besides {outcome!r}, but there must be at least "
            f"one, and fewer than n_pool - 1 = {n_pool - 1}"
        )
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            raise DataError(f"column {name!r} is not numeric; encode it first")
        if not np.isfinite(frame[name].to_numpy(dtype=float, na_value=np.nan)).all():
            raise DataError(f"column {name!r} has missing or infinite values; drop those rows")
    return x_names
