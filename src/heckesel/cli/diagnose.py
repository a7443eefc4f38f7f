"""`heckesel diagnose`: can this table carry a correction? Answered before anything is fitted."""

from __future__ import annotations

import json

import click

from heckesel.cli.terminal import say
from heckesel.cli.training_data import data_options, read_training_data
from heckesel.cli.verdict_output import as_plain, verdict_of


@click.command()
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diagnose(as_json, **data):
    """Say whether DATA (.csv or .parquet) identifies the selection effect, and by what.

    \b
    heckesel diagnose loans.csv --outcome repaid --instruments branch
    heckesel diagnose loans.csv --outcome repaid --instruments branch --json
    """
    from heckesel.cli.waiting import notes, waiting
    from heckesel.diagnostics.verdict import VERDICTS

    given = read_training_data(**data)
    with waiting("judging"), notes(said=(*VERDICTS, "all ")):
        verdict = verdict_of(given)
    if as_json:
        say(json.dumps(as_plain(verdict), indent=1))
        return
    if given.rule is not None:
        say(given.rule)
    say(f"Identification: {verdict}")
    for line in verdict.details():
        say(f"  {line}")
