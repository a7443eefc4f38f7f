"""Size of tests of rho = 0 and coverage of intervals, by strength of the instrument.

``python -m reproduction.inference_coverage`` writes `results/inference_coverage.json`.
The model is correctly specified in every draw: x and z are standard normal, s = 1[x + strength z +
u > 0], and either y = 1 + x + e or y = 1[x + e > 0], where e and u are normal with correlation rho.
"""

import argparse
import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from heckesel.classical.covariance import f_test
from heckesel.classical.heckman import fit_in_memory
from heckesel.classical.linear_model import LinearProbit
from heckesel.classical.probit_results import fit_binary
from heckesel.classical.rows import standardised_sample
from heckesel.classical.two_step import linear_score_test
from heckesel.data import SelectionData
from heckesel.io import write_atomically
from heckesel.tables.formula import array_design

PATH = Path(__file__).parents[1] / "results" / "inference_coverage.json"
STRENGTHS = {"none": None, "weak": 0.1, "strong": 1.0}  # coefficient of z in the selection equation
RHOS = (0.0, 0.5, 0.9)
SEED = 20
SIZE_DRAWS = 2000  # of the score test alone, which takes milliseconds
POINTS = np.array([-1.0, 0.0, 1.0])  # x at which probabilities are predicted
OPTIONS = {"weight_kind": "frequency", "clusters": None}


@dataclass(frozen=True)
class Setting:
    """outcome : linear or binary; n : rows; instrument : a key of STRENGTHS."""

    outcome: str
    n: int
    instrument: str
    rho: float


SETTINGS = [
    Setting(outcome, n, instrument, rho)
    for outcome, n in (("linear", 300), ("binary", 500), ("linear", 1000))
    for instrument in STRENGTHS
    for rho in RHOS
]


def draw(rng, setting: Setting) -> SelectionData:
    x, z, u, v = rng.standard_normal((4, setting.n))
    e = setting.rho * u + np.sqrt(1 - setting.rho**2) * v
    strength = STRENGTHS[setting.instrument]
    s = x + (strength or 0.0) * z + u > 0
    y = 1 + x + e if setting.outcome == "linear" else (x + e > 0) * 1.0
    columns = [np.ones(setting.n), x] + ([] if strength is None else [z])
    names = ("Intercept", "x", "z")[: len(columns)]
    w = np.column_stack(columns)
    y = np.where(s, y, np.nan)
    return SelectionData(w[:, :2], w, s, y, np.ones(setting.n), names[:2], names, "y")


def run_linear(data: SelectionData, rho: float) -> dict[str, float]:
    """The results of one draw: whether tests reject at 5 % and whether intervals cover."""
    design = array_design(data.x[:, 1:], data.w[:, 1:])
    fit = fit_in_memory(data, design, "information", OPTIONS, "ml", "normal")
    found = {"profile": fit.inference == "profile"}
    for name, method in (("wald", "wald"), ("default", None)):
        frame = fit.to_frame(0.95, method)
        for term, truth in ((("outcome", "x"), 1.0), (("ancillary", "atanh_rho"), np.arctanh(rho))):
            row = frame.loc[term]
            found[f"{name}_{term[1]}"] = row.low <= truth <= row.high
    mean = fit.average(level=0.9)
    # of these rows: x is treated as fixed
    found["default_average90"] = mean.low <= 1 + data.x[:, 1].mean() <= mean.high
    if rho == 0:
        found["lr_rejects"] = fit.test_rho_zero("lr").p_value < 0.05
        found["wald_rejects"] = not fit.test_rho_zero("wald").p_value >= 0.05
    return found


def run_binary(data: SelectionData, rho: float) -> dict[str, float]:
    fit = fit_binary(data, np.array([0, 1]), prefer_interior=True)
    truth = ndtr(POINTS)
    low, high = LinearProbit(fit).interval(POINTS[:, None], None, "population", 0.9).T
    found = {"profile": fit.inference == "profile"}
    found["default_probability90"] = np.mean((low <= truth) & (truth <= high))
    columns = np.column_stack([np.ones(len(POINTS)), POINTS])
    cov = (fit.cov if fit.cov_given_rho is None else fit.cov_given_rho)["outcome"].loc["outcome"]
    half = 1.644854 * np.sqrt(np.einsum("ij,jk,ik->i", columns, cov.to_numpy(), columns))
    z = fit.params["outcome", "Intercept"] + POINTS * fit.params["outcome", "x"]
    found["wald_probability90"] = np.mean(np.abs(z - POINTS) <= half)
    if rho == 0:
        found["score_rejects"] = fit.test_rho_zero("score").p_value < 0.05
    return found


def run_setting(setting: Setting, draws: int) -> dict:
    position = SETTINGS.index(setting)
    run = run_linear if setting.outcome == "linear" else run_binary
    found = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for number in range(draws):
            rng = np.random.default_rng([SEED, position, number])
            found.append(run(draw(rng, setting), setting.rho))
    means = {name: round(float(np.mean([row[name] for row in found])), 4) for name in found[0]}
    if setting.outcome == "linear" and setting.rho == 0:
        rejected = 0
        for number in range(SIZE_DRAWS):
            rng = np.random.default_rng([SEED, position, number])
            rows, scalings = standardised_sample(draw(rng, setting))
            statistic, freedom = linear_score_test(rows, scalings, "information")
            rejected += f_test(statistic, 1, freedom).p_value < 0.05
        means["score_rejects"] = round(rejected / SIZE_DRAWS, 4)
    return {"setting": asdict(setting), "draws": draws, **means}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=150, help="of each setting")
    draws = parser.parse_args().draws
    rows = Parallel(n_jobs=2)(delayed(run_setting)(setting, draws) for setting in SETTINGS)
    content = {"seed": SEED, "size_draws": SIZE_DRAWS, "rows": rows}
    write_atomically(PATH, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
