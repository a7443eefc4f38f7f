"""Draw the pictures of the README and of the tutorials into `docs/_static`.

python scripts/docs_pictures.py            all of them
python scripts/docs_pictures.py clinic     one of them

Each picture shows the variables that the page's own code blocks create, so it always agrees with
the page. Run the script again after changing the code of a page, and commit the PNG files.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from PIL import Image

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "_static"
# Okabe and Ito's palette, which colour-blind readers can distinguish.
TRUTH, NAIVE, CORRECTED, POINTS = "#000000", "#D55E00", "#0072B2", "#999999"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}
LEVEL = 0.9


def run_page(page: str, until: str) -> dict:
    """The variables of the page's Python blocks, run in order until `until` exists."""
    scope: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.chdir(folder)  # pages save models
        try:
            for block in blocks:
                if until not in scope:
                    exec(compile(block, page, "exec"), scope)
        finally:
            os.chdir(here)
    return scope


def naive_and_corrected() -> plt.Figure:
    """The two fits of the README, over the function that generated the data."""
    from heckesel.datasets.simulated import controlled_f0

    scope = run_page("README.md", "model")
    draw, x = scope["draw"], np.linspace(-3, 3, 121)
    grid = pd.DataFrame({"x": x, "z": 0.0})
    figure, axes = plt.subplots(figsize=(7.4, 3.9), layout="constrained")
    seen = draw.frame.dropna()
    axes.scatter(seen["x"], seen["y"], s=7, color=POINTS, alpha=0.5, lw=0, label="observed y")
    _fit(axes, x, scope["naive"], grid, NAIVE, "naive ensemble, 90% interval", "--")
    _fit(axes, x, scope["model"], grid, CORRECTED, "corrected ensemble, 90% interval")
    axes.plot(x, controlled_f0(x), color=TRUTH, lw=1.6, ls=":", label="true E[y | x]", zorder=5)
    start = draw.frame["x"][scope["rare"]].min()
    axes.axvspan(start, 3, color=POINTS, alpha=0.15, lw=0, label="under 30% are selected")
    axes.set(xlabel="x", ylabel="y", xlim=(-3, 3), ylim=(-3.2, 4.1))
    axes.legend(loc="upper left", ncols=2, fontsize=9)
    return figure


def loans() -> plt.Figure:
    """Default rates of rejected applicants, by tenths of the corrected probability."""
    scope = run_page("docs/loans.md", "true_rate")
    rejected = scope["X"][~scope["granted"]]
    corrected = scope["model"].predict_proba(rejected, target="unselected")[:, 1]
    naive = np.asarray(scope["naive"].predict(rejected))
    truth = scope["loans"].truth.y[~scope["granted"]]
    tenth = pd.qcut(corrected, 10, labels=False)
    means = pd.DataFrame({"naive": naive, "corrected": corrected, "truth": truth}).groupby(tenth)
    mean, count = means.mean(), means.size()
    error = 1.645 * np.sqrt(mean["truth"] * (1 - mean["truth"]) / count)
    figure, axes = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
    at = np.arange(1, 11)
    axes.errorbar(
        at, mean["truth"], error, color=TRUTH, fmt="o", ms=4, lw=1, label="true rate, 90% interval"
    )
    axes.plot(at, mean["corrected"], color=CORRECTED, marker="s", ms=4, label="corrected")
    axes.plot(at, mean["naive"], color=NAIVE, marker="^", ms=4, ls="--", label="naive probit")
    axes.set(xlabel="rejected applicants, by tenth of predicted risk", ylabel="default rate")
    axes.set(xticks=at, ylim=(0, None))
    axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0))
    axes.legend(loc="upper left", fontsize=9)
    return figure


def clinic() -> plt.Figure:
    """The marker over symptoms: tested and untested patients, and both predictions."""
    scope = run_page("docs/clinic.md", "untested")
    X, tested, marker = scope["X"], scope["tested"], scope["marker"]
    naive = np.polynomial.Polynomial.fit(X["symptoms"][tested], marker[tested], 1)
    s = np.linspace(-2.5, 2.5, 51)
    grid = pd.DataFrame({"age": X["age"].mean(), "symptoms": s, "habit": X["habit"].mean()})
    figure, axes = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
    for rows, marker_style, label in ((tested, "o", "tested"), (~tested, "x", "not tested")):
        axes.scatter(
            X["symptoms"][rows][:400],
            marker[rows][:400],
            s=9,
            lw=0.6,
            marker=marker_style,
            color=POINTS,
            alpha=0.55,
            label=label,
        )
    axes.plot(s, naive(s), color=NAIVE, ls="--", lw=2, label="regression on tested patients")
    _fit(axes, s, scope["model"], grid, CORRECTED, "corrected, 90% interval")
    axes.plot(s, 2 + 0.02 * (X["age"].mean() - 50) + 0.5 * s, color=TRUTH, ls=":", label="truth")
    axes.set(xlabel="symptoms", ylabel="marker", xlim=(-2.5, 2.5), ylim=(-1, 6))
    axes.legend(loc="upper left", ncols=2, fontsize=9)
    return figure


def reject_inference() -> plt.Figure:
    """Calibration of two scores over all applicants, from the bins of the page."""
    from heckesel.metrics import calibration_table

    scope = run_page("docs/reject_inference.md", "within")
    figure, axes = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
    looks = {"ignoring": (NAIVE, "^"), "heckesel": (CORRECTED, "s")}
    for name, (colour, marker) in looks.items():
        bins = calibration_table(scope["truth"], scope["found"][name], bins=10)
        ends = np.abs(bins[["low", "high"]].to_numpy().T - bins["observed"].to_numpy())
        axes.errorbar(
            bins["predicted"], bins["observed"], ends, color=colour, marker=marker, ms=5, label=name
        )
    axes.plot((0, 0.7), (0, 0.7), color=TRUTH, lw=1, ls=":", label="perfect calibration")
    axes.set(xlabel="predicted default rate", ylabel="true default rate")
    axes.set(xlim=(0, 0.7), ylim=(0, 0.7), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0))
    axes.legend(loc="lower right", fontsize=9)
    return figure


def simulation() -> plt.Figure:
    """The four surrogates of the page, each with its interval and the true response."""
    scope = run_page("docs/simulation.md", "signed")
    speed = np.linspace(-3, 3, 81)
    grid = pd.DataFrame({"speed": speed, "lottery": 0.0})
    titles = {
        "plain": "ignores selection",
        "model": "corrected, with the lottery",
        "open_ended": "no instrument",
        "signed": "no instrument, sign of ρ known",
    }
    figure, panels = plt.subplots(
        2, 2, figsize=(7, 4.4), sharex=True, sharey=True, layout="constrained"
    )
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=True):
        columns = ["speed", "lottery"] if name == "model" else ["speed"]
        colour, style = (NAIVE, "--") if name == "plain" else (CORRECTED, "-")
        _fit(axes, speed, scope[name], grid[columns], colour, "prediction, 90% interval", style)
        response = np.sin(1.5 * speed) + speed / 2
        axes.plot(speed, response, color=TRUTH, ls=":", label="true response")
        axes.axvspan(1.5, 3, color=POINTS, alpha=0.15, lw=0)
        axes.set(title=title, xlim=(-3, 3))
    panels[0, 0].legend(loc="upper left", fontsize=8)
    figure.supxlabel("speed (few designs were run in the shaded region)", fontsize=10)
    figure.supylabel("outcome", fontsize=10)
    return figure


def deep() -> plt.Figure:
    """Error on the test bottles of the page by the chance of selection, for two ensembles."""
    import heckesel as hk

    scope = run_page("docs/deep.md", "model")
    pool, new = scope["pool"], scope["pool"].test_frame.drop(columns="y")
    X, y = scope["X"], pool.frame["y"]
    naive = hk.DeepEnsembleRegressor(instruments=["z"]).fit(X, y)
    chance, truth = pool.test_truth.propensity_x, pool.test_truth.y
    fifth = pd.qcut(chance, 5, labels=False)
    middle = pd.Series(chance).groupby(fifth).mean()
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    looks = {"naive": (naive, NAIVE, "^", "--"), "corrected": (scope["model"], CORRECTED, "s", "-")}
    for shift, (label, (model, colour, marker, style)) in zip(
        (-0.006, 0.006), looks.items(), strict=True
    ):
        error = pd.Series(np.asarray(model.predict(new)) - truth).groupby(fifth)
        bars = 1.645 * error.std() / np.sqrt(error.size())
        axes.errorbar(
            middle + shift,
            error.mean(),
            bars,
            color=colour,
            marker=marker,
            ms=5,
            ls=style,
            label=label + " ensemble",
        )
    axes.axhline(0, color=TRUTH, lw=1, ls=":")
    axes.set(
        xlabel="probability of selection, mean of each fifth of the test bottles",
        ylabel="mean error of prediction",
    )
    axes.legend(fontsize=9)
    return figure


def gallery() -> dict[str, plt.Figure]:
    """The axes `ax` that the blocks of the gallery have made above each of its pictures."""
    scope: dict = {}
    found = {}
    page = (ROOT / "docs" / "gallery.md").read_text()
    for part in re.finditer(r"```python\n(.*?)```|_static/(gallery_\w+)\.png", page, re.DOTALL):
        block, name = part.groups()
        if block:
            exec(compile(block, "docs/gallery.md", "exec"), scope)
        else:
            found[name] = scope["ax"].figure
    return found


def _fit(axes, x, model, grid, colour: str, label: str, style: str = "-") -> None:
    low, high = np.asarray(model.predict_interval(grid, level=LEVEL)).T
    axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    axes.plot(x, np.asarray(model.predict(grid)), color=colour, lw=2, ls=style, label=label)


# A function makes one figure with its name, or several by name.
PICTURES: dict[str, Callable[[], plt.Figure | dict[str, plt.Figure]]] = {
    "naive_and_corrected": naive_and_corrected,
    "loans": loans,
    "clinic": clinic,
    "reject_inference": reject_inference,
    "simulation": simulation,
    "deep": deep,
    "gallery": gallery,
}


def main(names: list[str]) -> None:
    unknown = set(names) - set(PICTURES)
    if unknown:
        sys.exit(f"no picture is called {', '.join(sorted(unknown))}: choose from {[*PICTURES]}")
    for name in names or PICTURES:
        with plt.rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a page may show a fit that warns
            drawn = PICTURES[name]()
            figures = drawn if isinstance(drawn, dict) else {name: drawn}
            for each, figure in figures.items():
                _write(each, figure)


def _write(name: str, figure: plt.Figure) -> None:
    figure.savefig(drawn := io.BytesIO(), dpi=120)
    # A palette makes the file three times smaller, and nobody sees the difference.
    Image.open(drawn).convert("RGB").quantize(128).save(OUT / f"{name}.png", optimize=True)
    print(OUT.relative_to(ROOT) / f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
