"""Makes lee_statspai.json: Lee's trimming bounds by StatsPAI 1.40.2.

    python lee_statspai.py      # with statspai==1.40.2 and heckesel's data importable

StatsPAI stays out of the test environment: it brings its own versions of much else. Its rule
"exact" keeps fractions of units, as heckesel does.
"""

import json
import warnings
from pathlib import Path

import statspai

from heckesel.datasets import load_mroz

CASES = {
    "city": {},
    "city, swapped": {"swapped": True},
    "city, weights": {"weights": "weight"},
    "city, college": {"covariates": ["college"]},
    "no young children": {"treatment": "childless"},
    "no young children, college": {"treatment": "childless", "covariates": ["college"]},
}


def frame(swapped=False):
    women = load_mroz()
    women = women.assign(
        college=(women["educ"] > 12).astype(int),
        childless=(women["kidslt6"] == 0).astype(int),
        weight=0.25 + women["age"] / 30,
    )
    return women.assign(city=1 - women["city"]) if swapped else women


def lee_bounds(treatment="city", swapped=False, covariates=None, weights=None):
    found = statspai.lee_bounds(
        frame(swapped),
        "lwage",
        treatment,
        covariates=covariates,
        weights=weights,
        trimming="exact",
        se_method="bootstrap" if covariates else "analytic",
        n_bootstrap=20,  # its standard errors are not used
    )
    names = ["lower_bound", "upper_bound"]
    if not covariates and not weights:  # whose variance follows analytic weights there
        names += ["se_lower", "se_upper", "imbens_manski_cn"]
    return {name: found.model_info[name] for name in names}


def main():
    warnings.simplefilter("ignore")
    result = {"statspai": statspai.__version__}
    for name, options in CASES.items():
        result[name] = {"options": options, **lee_bounds(**options)}
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(result, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
