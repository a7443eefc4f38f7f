"""The command line: parse, call, print."""

from __future__ import annotations

import sys
import warnings

import click

from heckesel import __version__
from heckesel.cli.demo import demo
from heckesel.cli.reproduce import reproduce
from heckesel.errors import DataError, HeckeselError, IdentificationWarning


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="heckesel")
def cli() -> None:
    """Prediction and uncertainty when the data was selected."""


cli.add_command(demo)
cli.add_command(reproduce)


def main() -> None:
    """Exit 0 done, 1 could not be computed, 2 wrong usage or wrong data; no traceback."""
    # every command prints the verdict, so a warning would say it twice
    warnings.simplefilter("ignore", IdentificationWarning)
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        print("stopped", file=sys.stderr)
        sys.exit(1)
    except DataError as error:
        print(f"heckesel: {error}", file=sys.stderr)
        sys.exit(2)
    except HeckeselError as error:
        print(f"heckesel: {error}", file=sys.stderr)
        sys.exit(1)
