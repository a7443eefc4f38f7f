"""`heckesel demo`: a first look in a few seconds."""

from __future__ import annotations

import click


@click.command()
def demo() -> None:
    """Fit the RAND health insurance data and print the table and its verdict."""
    from heckesel.experiments.e0_gate import fit_rand_hie

    click.echo(
        "RAND Health Insurance Experiment: log medical spending, seen only for the 4,281 of 5,574\n"
        "people who had any. Heckman's model corrects for who they are.\n"
    )
    fit = fit_rand_hie("ml")
    click.echo(fit.summary())
    low, high = fit.interval("rho", method="profile")
    click.echo(f"\nProfile-likelihood interval of rho: {low:.3f} to {high:.3f}")
    click.echo(
        "Next: hk.heckman in the README, or `heckesel reproduce e0` for the reference digits."
    )
