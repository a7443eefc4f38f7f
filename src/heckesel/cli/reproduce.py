"""`heckesel reproduce`: run the experiments of a checkout."""

import os
import subprocess
import sys
from pathlib import Path

import click

import heckesel
from heckesel.errors import DataError

PASS_THROUGH = {"ignore_unknown_options": True, "help_option_names": []}


@click.command(context_settings=PASS_THROUGH, short_help="Run the experiments (in a checkout).")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def reproduce(arguments: tuple[str, ...]) -> None:
    """Run the experiments of the paper and of this project: `python -m reproduction`."""
    root = Path(heckesel.__file__).parents[2]
    if not (root / "reproduction" / "__main__.py").exists():
        raise DataError(
            "the experiments are not part of the installed package: clone the repository and run "
            "`make reproduce` or `heckesel reproduce` there"
        )
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "reproduction", *arguments]
    sys.exit(subprocess.run(command, env=os.environ | {"PYTHONPATH": path}).returncode)
