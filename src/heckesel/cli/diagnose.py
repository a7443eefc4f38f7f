"""`heckesel diagnose`: whether a table supports a correction, before any model is fitted."""

import json

import click

from heckesel.cli.models import as_plain, examined
from heckesel.cli.terminal import notes, say, waiting
from heckesel.cli.training_data import data_options, read_training_data, transform_option


@click.command()
@data_options
@transform_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def diagnose(target_transform, as_json, **data):
    """Report whether the table DATA supports a correction.

    The first part lists each column with its kind and what --on-problem fix does with it. The
    verdict states whether an instrument identifies the correlation between selection and outcome,
    or only the assumed functional form. It needs no fitted model. Instruments are also tested for
    a direct effect on the outcome.

    \b
    heckesel diagnose loans.csv --outcome repaid --instruments branch
    heckesel diagnose loans.csv --outcome repaid --instruments branch --json
    """
    from dataclasses import asdict

    from heckesel.diagnostics.verdict import VERDICTS

    given = read_training_data(**data)
    with waiting("checking identification"), notes(said=(*VERDICTS, "all ", "column ")):
        report, verdict, validity = examined(given, target_transform)
    if as_json:
        tested = {} if validity is None else {"validity": validity.to_dict()}
        entries = {"columns": [asdict(entry) for entry in report.entries]}
        say(json.dumps(as_plain(verdict) | tested | entries, indent=1))
        return
    if given.rule is not None:
        say(given.rule)
    say(str(report))
    if "scale" in verdict.evidence:
        say(f"Scale: {verdict.evidence['scale']}")
    say(f"Identification: {verdict}")
    for line in verdict.details():
        say(f"  {line}")
    if validity is not None:
        say(f"Validity of the instruments: {validity.verdict}: {validity.sentence}")
        for line in validity.details():
            say(f"  {line}")
