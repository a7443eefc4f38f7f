"""`python -m reproduction.audit`: fit every published model again, write `results/audit.json`."""

import json
from pathlib import Path

from threadpoolctl import threadpool_limits

from heckesel.io import write_atomically
from reproduction.audit.refit import PUBLISHED_FITS, audit_row

RESULTS = Path("results/audit.json")

if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        rows = [audit_row(published) for published in PUBLISHED_FITS]
    write_atomically(RESULTS, json.dumps(rows, indent=1) + "\n")
    print(f"{len(rows)} fits, in {RESULTS}")
