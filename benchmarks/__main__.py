"""`make bench`: run every benchmark and write `benchmarks/results.json`."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

from benchmarks import classic, network_methods

BENCHMARKS = {"classic": classic.measure, "network_methods": network_methods.measure}

if __name__ == "__main__":
    results = {"machine": {"cores": os.cpu_count(), "python": platform.python_version()}}
    for name, measure in BENCHMARKS.items():
        results[name] = measure()
        print(name, json.dumps(results[name], indent=1))
    Path("benchmarks/results.json").write_text(json.dumps(results, indent=1) + "\n")
