"""Lee's bounds against StatsPAI, a closed form, and repeated rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import heckesel as hk

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "lee_statspai.json").read_text())
CASES = [name for name in REFERENCE if name != "statspai"]


def women(swapped: bool) -> pd.DataFrame:
    """The table of tests/reference/lee_statspai.py."""
    frame = hk.datasets.load_mroz()
    frame = frame.assign(
        college=(frame["educ"] > 12).astype(int),
        childless=(frame["kidslt6"] == 0).astype(int),
        weight=0.25 + frame["age"] / 30,
    )
    return frame.assign(city=1 - frame["city"]) if swapped else frame


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:.*nothing is trimmed there")
def test_trimming_bounds_are_those_of_statspai(case):
    reference = REFERENCE[case]
    options = reference["options"]
    frame = women(options.get("swapped", False))
    covariates = frame[options["covariates"]] if "covariates" in options else None
    found = hk.bounds(
        frame["lwage"],
        -np.inf,
        np.inf,
        treatment=frame[options.get("treatment", "city")],
        covariates=covariates,
        sample_weight=frame[options["weights"]] if "weights" in options else None,
    )
    row = found.to_frame().loc["trimming" if covariates is None else "trimming with covariates"]
    expected = reference["lower_bound"], reference["upper_bound"]
    np.testing.assert_allclose([row.low, row.high], expected, rtol=1e-12)
    if "se_lower" in reference:
        # the critical value there is found to 1e-10
        value = reference["imbens_manski_cn"]
        ends = row.low - value * reference["se_lower"], row.high + value * reference["se_upper"]
        np.testing.assert_allclose([row.interval_low, row.interval_high], ends, rtol=1e-9)


def normal_arms(keep: float, n: int = 4000):
    """Outcomes of the treated are quantiles of a normal; of the others a share `keep` is observed,
    with outcome 0."""
    treated = np.repeat([1, 0], n)
    y = np.r_[ndtri((np.arange(n) + 0.5) / n), np.where(np.arange(n) < keep * n, 0.0, np.nan)]
    return y, treated


@pytest.mark.parametrize("keep", [0.3, 0.75, 1.0])
def test_trimmed_normal_outcomes_have_a_known_mean(keep):
    y, treated = normal_arms(keep)
    found = hk.bounds(y, -9.0, 9.0, treatment=treated).to_frame().loc["trimming"]
    cut = ndtri(1 - keep)
    density = np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi) if keep < 1 else 0.0
    # 4,000 quantiles miss the mean of a tail by less than 1e-3
    np.testing.assert_allclose(
        [found.low, found.high], [-density / keep, density / keep], atol=1e-3
    )


def test_combinations_that_cannot_be_compared_are_refused():
    y, treated = normal_arms(0.6, 50)
    with pytest.raises(hk.DataError, match=r"no observed outcome in one treatment arm; merge"):
        hk.bounds(y, -9.0, 9.0, treatment=treated, covariates=np.arange(100) // 10)
    group = np.where(treated == 1, np.arange(100) % 2, (np.arange(100) - 50) < 25)
    reverse = np.where((group == 1) & (treated == 1) & (np.arange(100) % 4 > 1), np.nan, y)
    with pytest.warns(hk.IdentificationWarning, match="in 1 of 2 combinations"):
        hk.bounds(reverse, -9.0, 9.0, treatment=treated, covariates=group)
