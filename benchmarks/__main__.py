"""`make bench`: run every benchmark, write `benchmarks/results.json` and the page made from it.

python -m benchmarks classic peers      only these; what was measured before is kept for the others
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path

from benchmarks import classic, default_fits, growth, page, peers, scoring, streamed

BENCHMARKS = {
    "classic": classic.measure,
    "streamed": lambda: [streamed.measure(method=method) for method in ("ml", "two-step")],
    "default": default_fits.measure,
    "workers": default_fits.workers,
    "scoring": scoring.measure,
    "peers": peers.measure,
    "growth": growth.measure,
}
RESULTS = Path("benchmarks/results.json")


def main() -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results["machine"] = {"cores": os.cpu_count(), "python": platform.python_version()}
    for name in sys.argv[1:] or BENCHMARKS:
        results[name] = BENCHMARKS[name]()
        print(name, json.dumps(results[name], indent=1))
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    page.write()


if __name__ == "__main__":
    main()
