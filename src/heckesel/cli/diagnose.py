"""`heckesel diagnose`: whether a table supports a correction, before any model is fitted."""

from __future__ import annotations

import json

import click

from heckesel.cli.terminal import say
from heckesel.cli.training_data import DATA_OPTIONS, read_training_data, with_options
from heckesel.cli.verdict_output import as_plain, verdict_of


@click.command()
@with_options(DATA_OPTIONS)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def diagnose(as_json, **data):
    """Check whether DATA (CSV or Parquet) support a correction.

    The verdict says whether an instrument identifies the correlation between selection and
    outcome, or only the assumed functional form. It needs no fitted model.

    \b
    heckesel diagnose loans.csv --outcome repaid --instruments branch
    heckesel diagnose loans.csv --outcome repaid --instruments branch --json
    """
    from heckesel.cli.waiting import notes, waiting
    from heckesel.diagnostics.verdict import VERDICTS

    given = read_training_data(**data)
    with waiting("checking identification"), notes(said=(*VERDICTS, "all ")):
        verdict = verdict_of(given)
    if as_json:
        say(json.dumps(as_plain(verdict), indent=1))
        return
    if given.rule is not None:
        say(given.rule)
    say(f"Identification: {verdict}")
    for line in verdict.details():
        say(f"  {line}")
