"""`heckesel demo`: the bias of a naive fit under selection, and the corrected fit."""

import importlib.util
import textwrap
from pathlib import Path

import click

from heckesel.errors import HeckeselError

RHO, ALPHA, SEED = 0.9, 1.0, 0
UNITS, TEST_UNITS = 2000, 3000
# Early stopping ends most members well before this.
NETWORKS: dict = {"epochs": 400, "folds": 5, "random_state": 0}
REGIONS = {"against": "selected against", "mid": "in between", "well": "well covered"}
SHOWN_POINTS = 300
WIDTH = 78


@click.command()
@click.option(
    "--out", default="heckesel-demo.html", show_default=True, help="HTML report to write."
)
def demo(out: str) -> None:
    """Compare naive and corrected fits on two datasets.

    The first dataset is simulated, so that the truth is known: the demo prints the bias and the
    coverage of both fits and writes a report. The second is the RAND Health Insurance Experiment,
    to which it fits the linear model. It takes about a minute.
    """
    from rich.console import Console

    _check_extras()
    console = Console(highlight=False, soft_wrap=True)
    path = _known_truth(console, Path(out))
    _rand_hie(console)
    console.print(
        f"\nThe report on the first fit, with figures: {path}\n"
        f"To open it in a browser: {path.resolve().as_uri()}\n"
        "Next, try hk.heckman as shown in the README, or run `heckesel reproduce e0` to compare "
        "estimates with those of Stata and R."
    )


def _check_extras() -> None:
    extras = {"torch": "deep", "jinja2": "report", "matplotlib": "report"}
    lacking = [name for name in extras if importlib.util.find_spec(name) is None]
    if lacking:
        named = ",".join(dict.fromkeys(extras[name] for name in lacking))
        raise HeckeselError(
            f"the demo needs {' and '.join(lacking)}: pip install 'heckesel[{named}]'"
        )


def _known_truth(console, out: Path) -> Path:
    """Fit two ensembles to simulated data; write a report on the corrected one."""
    import heckesel as hk
    from heckesel.report import write_report

    draw = hk.datasets.make_controlled(UNITS, rho=RHO, alpha=ALPHA, seed=SEED)
    X, y = draw.frame[["x", "z"]], draw.frame["y"]
    console.print(
        f"1. Simulated data: {UNITS:,} units, y is observed for {y.notna().sum():,} of them. The\n"
        f"   errors of selection and outcome have correlation {RHO:g}. The instrument z affects\n"
        "   selection but not y.\n"
    )
    naive = hk.DeepEnsembleRegressor(["z"], **NETWORKS).fit(X, y)
    model = hk.DeepHeckmanRegressor(["z"], **NETWORKS).fit(X, y)
    console.print(_evaluated({"naive ensemble": naive, "corrected ensemble": model}))
    low, high = model.rho_.min(), model.rho_.max()
    console.print(f"rho: {model.rho_.mean():.2f}, members {low:.2f} to {high:.2f}; truth {RHO:g}")
    console.print(textwrap.fill(f"Verdict: {model.identification_}", WIDTH), "\n")
    return write_report(
        model,
        X,
        y,
        out,
        title="heckesel demo: simulated data with known truth",
        baseline=naive,
        pictures=[_picture(draw, naive, model)],
    )


def _evaluated(models: dict):
    """Coverage and bias of each model on new units of the population, by region."""
    from rich.table import Table

    from heckesel.datasets import make_controlled
    from heckesel.metrics import evaluate

    # the test set that the published experiment pairs with this seed
    test = make_controlled(TEST_UNITS, rho=RHO, alpha=ALPHA, seed=10_000 + SEED)
    table = Table(title=f"On {TEST_UNITS:,} new units, selected or not", title_justify="left")
    table.add_column("region of x")
    for name in models:
        table.add_column(f"{name}:\n90 % intervals cover", justify="right")
        table.add_column("bias", justify="right", vertical="bottom")
    rows = [
        evaluate(
            test.truth.y,
            model.predict_distribution(test.frame[["x", "z"]]),
            f0=test.truth.f0,
            propensity_x=test.truth.propensity_x,
        )
        for model in models.values()
    ]
    for region, words in REGIONS.items():
        shown = [
            text
            for row in rows
            for text in (f"{row[f'coverage90_{region}']:.1%}", f"{row[f'bias_f0_{region}']:+.2f}")
        ]
        table.add_row(words, *shown)
    return table


def _picture(draw, naive, model):
    """The truth, both fits and some of the observed outcomes, against x."""
    import numpy as np
    import pandas as pd

    from heckesel.datasets.simulated import controlled_f0
    from heckesel.plots import BAND, CORRECTED, INK, NAIVE, SOFT, tidy

    grid = pd.DataFrame({"x": np.linspace(-3, 3, 61), "z": 0.0})
    seen, x = draw.frame.dropna().iloc[:SHOWN_POINTS], grid["x"].to_numpy()

    def drawn(ax):
        ax.plot(seen["x"], seen["y"], "o", color=SOFT, ms=2.5, alpha=0.5, zorder=1)
        band = model.predict_interval(grid).T
        ax.fill_between(x, *band, color=BAND, alpha=0.8, lw=0, label="corrected 90 % interval")
        for values, label, colour, dashes in (
            (controlled_f0(x), "truth", INK, ":"),
            (naive.predict(grid), "naive", NAIVE, "--"),
            (model.predict(grid), "corrected", CORRECTED, "-"),
        ):
            ax.plot(x, values, color=colour, ls=dashes, lw=2, label=label)
        tidy(ax, "x", "y")

    described = "The small points are observed outcomes; the band is that of single outcomes."
    return "y over x: truth, naive fit and corrected fit", described, drawn


def _rand_hie(console) -> None:
    from heckesel.datasets.shipped import REGRESSORS, load_rand_hie
    from heckesel.selection_model import heckman

    console.print(
        "2. RAND Health Insurance Experiment: log medical spending, which is observed only for\n"
        "   the 4,281 of 5,574 people who had any. Heckman's model corrects for this.\n"
    )
    right = " + ".join(REGRESSORS)
    fit = heckman(f"lnmeddol ~ {right}", f"~ {right}", load_rand_hie("cameron_trivedi"))
    console.print(fit.summary(), markup=False)
    low, high = fit.interval("rho", 0.95, method="profile")
    console.print(f"\n95 % profile-likelihood interval of rho: {low:.3f} to {high:.3f}")
    forms = fit.functional_form()
    turned = (
        "Coefficients that change sign under other error models that fit no worse: "
        f"{', '.join(forms.flips) or 'none'}. The best of these models is {forms.forms[0].name}."
    )
    console.print(textwrap.fill(turned, WIDTH))
