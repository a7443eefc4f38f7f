# Every target sets up what it needs: a virtual environment in .venv, pinned by constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test check-slow portable lint types docs reproduce bench check package locked clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/heckesel demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

# Simulations that take longer than the rest of the tests together.
check-slow: $(READY)
	$(BIN)/python -m pytest -n auto -m slow

# The tests that depend on arithmetic, as other processors and other Pythons compute.
portable: $(READY)
	$(BIN)/python scripts/emulated_processors.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

# FULL=1 runs the whole grids; the default is a small version for two cores.
reproduce: $(READY)
	$(BIN)/python -m reproduction all $(if $(FULL),,--quick)

# HECKESEL_PEERS_PYTHON names the Python of an environment with StatsPAI, which is timed too.
bench: $(READY)
	$(BIN)/python -m benchmarks

# Re-run what is cheap, regenerate what is published, and fail on any difference.
check: $(READY)
	$(BIN)/python -m reproduction.pages.check
	$(BIN)/python -m benchmarks.page --check

# Wheel and sdist, each in an empty environment without torch.
package: $(READY)
	$(BIN)/python scripts/smoke_packages.py

# What requirements.lock names, with hashes, in an empty environment.
locked: $(READY)
	$(BIN)/python scripts/lock.py --try

clean:
	rm -rf .venv build dist docs/_build docs/_generated .pytest_cache .mypy_cache .ruff_cache
