"""The command line: parse, call, print."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import click

import heckesel
from heckesel import __version__
from heckesel.cli.demo import demo
from heckesel.cli.fitting import compare, diagnose, fit
from heckesel.cli.scoring import predict
from heckesel.cli.terminal import discard_output, prepare_streams, say
from heckesel.errors import DataError, HeckeselError, IdentificationWarning

# parameters of estimators that commands have as options
PARAMETER = re.compile(r"\b(method|errors|missing|on_problem)='([\w-]+)'")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="heckesel")
def cli() -> None:
    """Fit selection models and predict outcomes that are observed only for selected units.

    \b
    heckesel diagnose loans.csv --outcome repaid --instruments branch
    heckesel fit loans.csv --outcome repaid --instruments branch --out loans.heckesel
    heckesel predict loans.heckesel applicants.csv --out predicted.csv

    \b
    To complete commands in bash: eval "$(_HECKESEL_COMPLETE=bash_source heckesel)"
    """


@cli.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Run the experiments (in a checkout).",
)
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


for command in (fit, predict, diagnose, compare, demo):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command `heckesel`."""
    run_command(cli, "heckesel", arguments)


def run_command(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 1 could not be computed, 2 wrong usage or wrong data.

    Errors are one sentence on standard error, never a traceback.
    """
    # every command prints the verdict, so the warning would repeat it
    warnings.simplefilter("ignore", IdentificationWarning)
    prepare_streams()
    try:
        code = command.main(
            None if arguments is None else list(arguments), name, standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _stop(_usage(error), 2)
    except (click.Abort, KeyboardInterrupt):
        _stop("stopped", 1)
    except DataError as error:
        _stop(PARAMETER.sub(lambda m: f"--{m[1].replace('_', '-')} {m[2]}", str(error)), 2)
    except HeckeselError as error:
        _stop(str(error), 1)
    except BrokenPipeError:  # the reader closed the pipe, such as head
        discard_output()
        sys.exit(1)
    except OSError as error:
        discard_output()
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}", 1)
    except MemoryError:
        _stop("this machine has too little memory for this table", 1)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f"; see {context.command_path} --help" if context is not None else ""
    return " ".join(error.format_message().split()).removesuffix(".") + hint


def _stop(sentence: str, code: int) -> None:
    """Print the sentence as one line on stderr and exit."""
    say(f"heckesel: {' '.join(sentence.split())}", err=True)
    sys.exit(code)
