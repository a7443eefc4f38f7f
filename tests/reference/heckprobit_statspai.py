"""Makes heckprobit_statspai.json: probits with sample selection by StatsPAI 1.40.2.

    python heckprobit_statspai.py      # with statspai==1.40.2 and heckesel's data importable

StatsPAI stays out of the test environment: it brings its own versions of much else.
"""

import json
from pathlib import Path

import numpy as np
import statspai

from heckesel.datasets import load_mroz, make_loans

VCE = {"information": None, "robust": "robust"}


def estimates(frame, y, x, z, vce):
    frame = frame.assign(seen=frame[y].notna().astype(int))
    fit = statspai.heckprobit(frame.assign(**{y: frame[y].fillna(0.0)}), y, x, "seen", z, vce=vce)
    loglik = fit.model_info["log_likelihood"]
    return {"params": dict(fit.params), "se": dict(fit.std_errors), "loglik": loglik}


def main():
    women = load_mroz()
    women = women.assign(well_paid=np.where(women.lwage.isna(), np.nan, women.lwage > 1.2))
    outcome = ["educ", "exper"]
    excluded = ["nwifeinc", "age", "kidslt6", "kidsge6"]
    loans = make_loans(1500, rho=-0.6, seed=5).frame
    columns = ["log_income", "debt", "tenure"]
    cases = {
        "mroz": (women, "well_paid", outcome, [*outcome, *excluded]),
        "loans": (loans, "default", columns, [*columns, "leniency"]),
    }
    result = {"statspai": statspai.__version__}
    for name, case in cases.items():
        result[name] = {kind: estimates(*case, vce) for kind, vce in VCE.items()}
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(result, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
