"""`heckesel demo`: the bias of a naive fit under selection, and the corrected fit."""

import textwrap
from pathlib import Path

import click

from heckesel.cli.data import quiet_option
from heckesel.cli.terminal import say, stage
from heckesel.errors import imported

RHO, UNITS, TEST_UNITS, SEED, SHOWN_POINTS = 0.9, 2000, 3000, 0, 300
REGIONS = {"against": "selected against", "mid": "in between", "well": "well covered"}


@click.command()
@click.option(
    "--out", default="heckesel-demo.html", show_default=True, help="HTML report to write."
)
@quiet_option
def demo(out: str) -> None:
    """Compare naive and corrected fits on two datasets.

    The first dataset is simulated, so that the truth is known: the demo prints the bias and the
    coverage of both fits and writes a report. The second is the RAND Health Insurance Experiment,
    to which it fits the linear model.
    """
    for module in ("jinja2", "matplotlib"):
        imported(module, "the demo needs the report extra", "report")
    import numpy as np
    import pandas as pd

    import heckesel as hk
    from heckesel import plots
    from heckesel.datasets.shipped import REGRESSORS, load_rand_hie
    from heckesel.datasets.simulated import controlled_f0, make_controlled
    from heckesel.metrics import evaluate
    from heckesel.report import write_report

    draw = make_controlled(UNITS, rho=RHO, alpha=1.0, seed=SEED)
    X, y = draw.frame[["x", "z"]], draw.frame["y"]
    seen = y.notna()
    say(
        f"1. Simulated data: {UNITS:,} units, y is observed for {seen.sum():,} of them. The\n"
        f"   errors of selection and outcome have correlation {RHO:g}. The instrument z affects\n"
        "   selection but not y.\n"
    )
    with stage("fitting"):
        model = hk.HeckmanRegressor(["z"], learner="splines").fit(X, y)
        naive = hk.HeckmanRegressor(["z"], learner="splines").fit(X[seen], y[seen])
    # the test set that the published experiment pairs with this seed
    test = make_controlled(TEST_UNITS, rho=RHO, alpha=1.0, seed=10_000 + SEED)
    known = {"f0": test.truth.f0, "propensity_x": test.truth.propensity_x}
    found = [
        evaluate(test.truth.y, each.predict_distribution(test.frame[["x", "z"]]), **known)
        for each in (naive, model)
    ]
    say(f"On {TEST_UNITS:,} new units, selected or not, 90 % intervals cover (and the bias is):")
    say(f"{'region of x':<20}{'naive':>20}{'corrected':>20}")
    for region, words in REGIONS.items():
        shown = [
            f"{each[f'coverage90_{region}']:.1%} ({each[f'bias_f0_{region}']:+.2f})"
            for each in found
        ]
        say(f"{words:<20}{shown[0]:>20}{shown[1]:>20}")
    low, high = model.rho_interval_
    say(f"rho: {model.rho_:.2f}, 90 % interval {low:.2f} to {high:.2f}; truth {RHO:g}")
    say(textwrap.fill(f"Verdict: {model.identification_}", 78))

    grid = pd.DataFrame({"x": np.linspace(-3, 3, 61), "z": 0.0})
    x, some = grid["x"].to_numpy(), draw.frame[seen].iloc[:SHOWN_POINTS]

    def picture(ax):
        ax.plot(some["x"], some["y"], "o", color=plots.SOFT, ms=2.5, alpha=0.5, zorder=1)
        look = {"color": plots.BAND, "alpha": 0.8, "lw": 0, "label": "corrected 90 % interval"}
        ax.fill_between(x, *model.predict_interval(grid).T, **look)
        ax.plot(x, controlled_f0(x), color=plots.INK, ls=":", lw=2, label="truth")
        ax.plot(x, naive.predict(grid), color=plots.NAIVE, ls="--", lw=2, label="naive")
        ax.plot(x, model.predict(grid), color=plots.CORRECTED, lw=2, label="corrected")
        plots.tidy(ax, "x", "y")

    described = "The small points are observed outcomes; the band is that of single outcomes."
    title = "heckesel demo: simulated data with known truth"
    pictures = [("y over x: truth, naive fit and corrected fit", described, picture)]
    with stage("writing the report"):
        path = Path(write_report(model, X, y, out, title=title, pictures=pictures))

    say(
        "\n2. RAND Health Insurance Experiment: log medical spending, which is observed only for\n"
        "   the 4,281 of 5,574 people who had any. Heckman's model corrects for this.\n"
    )
    right = " + ".join(REGRESSORS)
    fit = hk.heckman(f"lnmeddol ~ {right}", f"~ {right}", load_rand_hie("cameron_trivedi"))
    say(str(fit.summary()))
    low, high = fit.interval("rho", 0.95, method="profile")
    say(f"\n95 % profile-likelihood interval of rho: {low:.3f} to {high:.3f}")
    say(
        f"\nThe report on the first fit, with figures: {path}\n"
        f"To open it in a browser: {path.resolve().as_uri()}\n"
        "Next, try the example of the README, or run `heckesel reproduce e0` to compare "
        "estimates with those of Stata and R."
    )
