"""`heckesel reproduce`: run experiments and write their results."""

from __future__ import annotations

from pathlib import Path

import click

from heckesel.errors import DataError, HeckeselError
from heckesel.experiments import EXPERIMENTS


@click.command()
@click.argument("experiments", nargs=-1)
@click.option("--out", default="results", show_default=True, help="Folder for the JSON files.")
def reproduce(experiments: tuple[str, ...], out: str) -> None:
    """Run EXPERIMENTS (default: all) and write one JSON file each.

    \b
    heckesel reproduce e0      the faithfulness gate against Stata and R
    heckesel reproduce all
    """
    from heckesel.experiments.runner import failed, run

    names = list(EXPERIMENTS) if not experiments or "all" in experiments else list(experiments)
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise DataError(f"there is no experiment {unknown[0]!r}; known: {', '.join(EXPERIMENTS)}")
    for name in names:
        rows = run(name, Path(out), report=click.echo)
        bad = failed(rows)
        if bad:
            raise HeckeselError(f"{len(bad)} of {len(rows)} cells of {name} failed")
        click.echo(f"{name}: {len(rows)} of {len(rows)} cells passed")
