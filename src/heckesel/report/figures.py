"""The figures of the page, drawn by `heckesel.plots` from the numbers of its contents."""

import numpy as np

from heckesel.plots.calibration_curve import draw_reliability, label_reliability
from heckesel.plots.canvas import BAND, CORRECTED, INK, NAIVE, SOFT, legend_above, tidy
from heckesel.plots.chance_of_selection import draw_strips
from heckesel.plots.estimates_with_intervals import draw_intervals
from heckesel.plots.pictures_over_rho import LOWEST, draw_over_rho
from heckesel.report.comparison import Comparison, Group
from heckesel.report.drawings import Drawing, svg_of
from heckesel.report.formatting import Digits, minus, percent, significant
from heckesel.report.held_out_check import HeldOutCheck
from heckesel.report.rho_section import RhoCurve, RhoValues

MEANS = ("naive mean", "corrected mean", "90 % interval")
UNUSABLE = "corrected (do not use)"
RHO = "ρ, correlation of the errors"


def regions_figure(comparison: Comparison, predicted: str, digits: Digits, usable: bool) -> Drawing:
    """The mean change of each group with its uncertainty."""
    groups = (*comparison.regions, comparison.everyone)
    change = np.array([group.change for group in groups])
    half = np.array([group.uncertainty for group in groups])

    def draw(ax):
        draw_intervals(
            ax,
            [f"{group.name}\n{group.cases:,} cases" for group in groups],
            change,
            np.column_stack([change - half, change + half]),
            label="mean change" if usable else "mean change (do not use)",
            interval_label="90 % interval of the change",
            colour=CORRECTED if usable else SOFT,
        )
        tidy(ax, f"corrected minus naive\n{predicted}", grid="x")

    return Drawing(
        "regions",
        f"Change of the {predicted} by probability of selection, corrected minus naive",
        f"One row per group. {_means(comparison.regions, digits)}",
        *svg_of("regions", 1.4 + 0.52 * len(groups), draw),
        ("group", "cases", "with an outcome", *MEANS),
        tuple((g.name, f"{g.cases:,}", f"{g.observed:,}", *_row(g, digits)) for g in groups),
    )


def strips_figure(comparison: Comparison, predicted: str, digits: Digits, usable: bool) -> Drawing:
    """Means and intervals over strips of equal size, from the least to the most likely."""
    strips = comparison.strips

    def draw(ax):
        draw_strips(
            ax,
            np.array([group.chance for group in strips]),
            np.array([group.corrected for group in strips]),
            np.array([group.interval for group in strips]),
            np.array([group.naive for group in strips]),
            interval_label="mean 90 % interval",
            label="corrected mean" if usable else UNUSABLE,
            colour=CORRECTED if usable else SOFT,
        )
        tidy(ax, "estimated probability of selection", predicted)

    return Drawing(
        "strips",
        f"The {predicted} over the probability of selection",
        f"Cases in {len(strips)} strips of equal size. {_means((strips[0], strips[-1]), digits)}"
        " The first strip holds the cases least likely to be selected, the last the most likely.",
        *svg_of("strips", 3.7, draw),
        ("strip", "probability of selection", "cases", *MEANS),
        tuple(
            (
                g.name,
                f"{percent(g.probability[0])} to {percent(g.probability[1])}",
                f"{g.cases:,}",
                *_row(g, digits),
            )
            for g in strips
        ),
    )


def _row(group: Group, digits: Digits) -> tuple[str, str, str]:
    return digits(group.naive), digits(group.corrected), digits.interval(group.interval)


def _means(groups: tuple[Group, ...], digits: Digits) -> str:
    return " ".join(
        f"{g.name.capitalize()}: naive {digits(g.naive)}, corrected {digits(g.corrected)}."
        for g in groups
    )


def rho_figure(curve: RhoCurve) -> Drawing:
    """The curve over rho with its modes and interval, cut off far below the best."""
    shown = np.flatnonzero(curve.height >= LOWEST)
    rho, height = curve.rho, curve.height

    def draw(ax):
        draw_over_rho(
            ax,
            rho,
            height,
            [(mode.rho, mode.drop) for mode in curve.modes],
            curve.interval,
            interval_label=curve.interval_kind,
        )
        tidy(ax, RHO, f"{curve.kind}\nbelow its maximum")

    return Drawing(
        "rho",
        f"The {curve.kind} over rho{' of a spline model' if curve.whose else ''}",
        f"{_modes(curve)} {_interval(curve)} Values more than {-LOWEST:.0f} below are cut off.",
        *svg_of("rho", 3.5, draw),
        ("ρ", f"{curve.kind} below its maximum"),
        tuple(
            (significant(rho[j], 3), significant(height[j], 3))
            for j in range(shown[0], shown[-1] + 1, max(1, len(shown) // 24))
        ),
    )


def _modes(curve: RhoCurve) -> str:
    values = ", ".join(significant(mode.rho, 3) for mode in curve.modes)
    return f"{'One maximum' if len(curve.modes) == 1 else 'Maxima, best first,'} at ρ = {values}."


def _interval(curve: RhoCurve) -> str:
    if curve.interval is None:
        return f"There is {minus(curve.interval_kind)}."
    low, high = (significant(end, 3) for end in curve.interval)
    return f"The {curve.interval_kind} is {low} to {high}."


def rho_values_figure(values: RhoValues) -> Drawing:
    """One mark per estimate."""
    rho = np.array(values.rho)

    def draw(ax):
        ax.axvline(0.0, color=SOFT, lw=1, ls=(0, (3, 3)))
        ax.plot(rho, np.zeros(len(rho)), "o", color=CORRECTED, mec="white", ms=8, label="estimate")
        tidy(ax, RHO, grid="x")
        ax.spines["left"].set_visible(False)
        ax.set(yticks=[], ylim=(-1, 1))
        ax.set_xlim(min(-1.05, rho.min() - 0.1), max(1.05, rho.max() + 0.1))
        legend_above(ax)

    return Drawing(
        "rho",
        "Estimates of rho",
        f"The estimates: {', '.join(significant(each, 3) for each in values.rho)}.",
        *svg_of("rho", 1.6, draw),
        ("estimate", "ρ", "σ"),
        tuple(
            (str(j + 1), significant(rho, 3), significant(sigma, 3))
            for j, (rho, sigma) in enumerate(zip(values.rho, values.sigma, strict=True))
        ),
    )


def calibration_figure(found: HeldOutCheck) -> Drawing:
    """Observed over predicted shares, on the diagonal if the model is right."""

    def draw(ax):
        draw_reliability(ax, found.level, found.share, (found.low, found.high))
        label_reliability(ax, classes=found.classes)

    points = zip(found.level, found.share, found.low, found.high, strict=True)
    return Drawing(
        "calibration",
        "Predicted probabilities against observed shares, for held-out cases",
        f"{found.cases:,} outcomes. On average the share differs from the prediction by "
        f"{percent(found.error, 1)}. The band contains all shares of at least 99 of 100 correct "
        f"models; {found.outside} of {len(found.level)} shares are outside.",
        *svg_of("calibration", 5.2, draw),
        ("predicted", "observed", "band"),
        tuple(
            (
                percent(p, int(found.classes)),
                percent(share, 1),
                f"{percent(low, 1)} to {percent(high, 1)}",
            )
            for p, share, low, high in points
        ),
    )


def truth_figure(x, truth, naive, corrected, interval, *, seen, column: str, outcome: str):
    """The true function, two fits and some observed outcomes, if the truth is known.

    x, truth, naive, corrected : (m,) ordered by x; interval : (m, 2); seen : ((j,), (j,)) points
    """
    curves = {"truth": truth, "naive": naive, "corrected": corrected}
    looks = {"truth": (INK, ":"), "naive": (NAIVE, "--"), "corrected": (CORRECTED, "-")}

    def draw(ax):
        ax.plot(*seen, "o", color=SOFT, ms=2.5, alpha=0.5, label="observed", zorder=1)
        ax.fill_between(
            x, *np.asarray(interval).T, color=BAND, alpha=0.8, lw=0, label="corrected 90 % interval"
        )
        for name, values in curves.items():
            colour, style = looks[name]
            ax.plot(x, values, color=colour, ls=style, lw=2, label=name)
        tidy(ax, column, outcome)
        legend_above(ax)

    last = {name: significant(values[-1], 3) for name, values in curves.items()}
    return Drawing(
        "truth",
        f"{outcome} over {column}: truth, naive fit and corrected fit",
        "The small points are observed outcomes; the band is the corrected 90 % interval of single "
        f"outcomes. At the largest {column} the truth is {last['truth']}, the naive prediction "
        f"{last['naive']} and the corrected prediction {last['corrected']}.",
        *svg_of("truth", 4.0, draw),
        (column, *curves),
        tuple(
            tuple(significant(v[j], 3) for v in (x, *curves.values()))
            for j in range(0, len(x), max(1, len(x) // 20))
        ),
    )
