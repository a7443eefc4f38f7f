r"""Other packages on the truth table: what each predicts for the mean of the hidden outcomes.

The estimators are functions for `reproduction.truth.judge`. The packages are optional::

    pip install --no-deps statspai==1.40.2 doubleml==0.11.4 mapie==1.6.0 statsmodels

* *StatsPAI ML*: its `heckman(method="ml")`, clustered where there are clusters. It has no
  prediction for the unselected, so E[y | s = 0] = x'b - rho sigma phi/(1 - Phi) is averaged over
  them, with a delta-method interval from the covariance that the result stores.
* *statsmodels two-step*: its Probit and OLS with the inverse Mills ratio, and the percentiles of a
  bootstrap over units or clusters.
* *DoubleML MAR*: its sample-selection model, which has no instrument under the score
  "missing-at-random". Its estimand is a treatment effect: every unit enters twice, as treated with
  its outcome and as untreated with the outcome 0, so that the effect is the mean of y. The score
  "nonignorable" uses an instrument but assumes that the *effect* does not depend on selection,
  which says nothing about a mean; it does not fit.
* *MAPIE conformal*: its `CrossConformalRegressor` around scikit-learn's boosting, fitted to the
  selected. It has intervals of rows, and none of a mean.
"""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
from scipy.optimize import approx_fprime
from scipy.stats import norm

from heckesel.errors import DataError
from reproduction import x6_truth
from reproduction.runner import attempt
from reproduction.truth.judge import HALF_WIDTH, LEVEL, design_matrix, judge_outcome
from reproduction.truth.sources import FILES, OUTCOMES
from reproduction.x6_truth import Cell, some_rows

DATA_HASHES = FILES
PACKAGES = ("statspai", "doubleml", "mapie", "statsmodels", "scikit-learn")
REPLICATIONS = 100  # of the bootstrap
chunk_of = "{0.source}".format


def cells(quick: bool = False) -> list[Cell]:
    if quick:  # the table that ships
        return [Cell("health insurance", "disea", "statsmodels two-step")]
    return [Cell(*key, method) for key in OUTCOMES for method in METHODS]


def check_data() -> None:
    """Raise an error that says how to get the packages or tables if they are missing."""
    if missing := [name for name in PACKAGES[:-1] if find_spec(name) is None]:
        raise DataError(f"x6 of other packages needs them: pip install {' '.join(missing)}")
    x6_truth.check_data()


def run_chunk(cells: list[Cell], device: str = "cpu") -> list:
    return [attempt(run_cell, cell) for cell in cells]


def run_cell(cell: Cell) -> dict:
    """`judge_outcome`; a fit that fails has the row `refused`, a missing package raises."""
    row = judge_outcome(METHODS[cell.method], cell.source, cell.outcome)
    if failure := row.pop("failed", None):
        if failure.startswith("ModuleNotFoundError"):
            raise ModuleNotFoundError(failure)
        row["refused"] = 1.0
    return {name: float(value) for name, value in row.items()}


def designs(x, y, instruments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns of the outcome, those of selection, and who is selected."""
    covariates = design_matrix(x.drop(columns=instruments))
    both = np.column_stack([covariates, design_matrix(x[instruments])[:, 1:]])
    return covariates, both, y.notna().to_numpy()


def statspai_ml(x, y, instruments, groups):
    import statspai

    covariates, both, s = designs(x, y, instruments)
    names = [f"x{column}" for column in range(both.shape[1])]
    rows = some_rows(len(y))
    data = pd.DataFrame(both, columns=names).assign(y=y.to_numpy())
    data["cluster"] = np.arange(len(y)) if groups is None else pd.factorize(groups)[0]
    equations = {"x": names[1 : covariates.shape[1]], "z": names[1:]}
    vce = {} if groups is None else {"vce": "cluster", "cluster": "cluster"}
    result = statspai.heckman(data.iloc[rows], y="y", method="ml", **equations, **vce)
    theta, cov = result._ml_state["theta"], result._ml_state["vcov"]
    p = covariates.shape[1]

    def mean(theta):
        index = both[~s] @ theta[p:-2]
        mills = np.exp(norm.logpdf(index) - norm.logsf(index)).mean()
        return (
            covariates[~s].mean(axis=0) @ theta[:p] - np.tanh(theta[-2]) * np.exp(theta[-1]) * mills
        )

    slope = approx_fprime(theta, mean, 1e-6)
    return _normal_interval(mean(theta), np.sqrt(slope @ cov @ slope))


def statsmodels_two_step(x, y, instruments, groups):
    from statsmodels.api import OLS, Probit

    covariates, both, s = designs(x, y, instruments)
    values = y.to_numpy()

    start = Probit(s.astype(float), both).fit(disp=0).params

    def mean(rows):
        chosen, w, of = covariates[rows], both[rows], s[rows]
        index = w @ Probit(of.astype(float), w).fit(start, disp=0).params
        mills = np.exp(norm.logpdf(index) - norm.logcdf(index))
        fit = OLS(values[rows][of], np.column_stack([chosen, mills])[of]).fit()
        other = -np.exp(norm.logpdf(index) - norm.logsf(index))
        return (np.column_stack([chosen, other])[~of] @ fit.params).mean()

    labels = np.arange(len(y)) if groups is None else pd.factorize(groups)[0]
    members = pd.Series(np.arange(len(y))).groupby(labels).apply(np.asarray).to_numpy()
    rng, draws = np.random.default_rng(0), []
    for _ in range(REPLICATIONS):
        drawn = rng.integers(len(members), size=len(members))
        found = attempt(mean, np.concatenate(members[drawn]))
        draws += [] if isinstance(found, Exception) or not np.isfinite(found) else [found]
    if len(draws) < REPLICATIONS / 2:
        return mean(np.arange(len(y)))
    return mean(np.arange(len(y))), *np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])


def doubleml_mar(x, y, instruments, groups):
    from doubleml import DoubleMLSSM, DoubleMLSSMData
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    covariates = design_matrix(x.drop(columns=instruments))[:, 1:]
    n, s = len(y), y.notna().to_numpy()
    values = y.fillna(0.0).to_numpy()
    twice = np.tile(covariates, (2, 1))
    d, both_s = np.repeat([1, 0], n), np.r_[s, np.ones(n)].astype(int)
    data = DoubleMLSSMData.from_arrays(twice, np.r_[values, np.zeros(n)], d, s=both_s)
    learn = partial(HistGradientBoostingClassifier, max_iter=50, random_state=0)
    rng = np.random.default_rng(0)
    labels = np.arange(n) if groups is None else pd.factorize(groups)[0]
    fold = np.tile(rng.permutation(np.arange(labels.max() + 1) % 5)[labels], 2)
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    learner = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    model = DoubleMLSSM(data, learner, learn(), learn(), draw_sample_splitting=False)
    model.set_sample_splitting(splits).fit()
    total, share = float(model.coef[0]), s.mean()
    # copies of a unit are averaged and units of a cluster added before they are squared
    influence = model.psi[:, 0, 0].reshape(2, n).mean(axis=0)
    mean = (total - values.mean()) / (1 - share)
    influence = influence - (values - values.mean()) + mean * (s - share)
    influence = np.bincount(labels, influence / (1 - share))
    return _normal_interval(mean, np.sqrt(np.sum(influence**2)) / n)


def mapie_conformal(x, y, instruments, groups):
    from mapie.regression import CrossConformalRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor

    design, s = design_matrix(x.drop(columns=instruments))[:, 1:], y.notna().to_numpy()
    learner = HistGradientBoostingRegressor(random_state=0)
    at = np.flatnonzero(s)[some_rows(s.sum())]
    model = CrossConformalRegressor(learner, confidence_level=LEVEL, method="plus", random_state=0)
    model.fit_conformalize(design[at], y.to_numpy()[at])
    hidden = design[~s]
    scored = some_rows(len(hidden), seed=1)
    rows = np.full((len(hidden), 2), np.nan)
    means, intervals = model.predict_interval(hidden[scored])
    rows[scored] = intervals[:, :, 0]
    return means.mean(), np.nan, np.nan, rows


def _normal_interval(mean, se):
    return mean, mean - HALF_WIDTH * se, mean + HALF_WIDTH * se


METHODS = {
    "StatsPAI ML": statspai_ml,
    "statsmodels two-step": statsmodels_two_step,
    "DoubleML MAR": doubleml_mar,
    "MAPIE conformal": mapie_conformal,
}
