"""The figures of the page, from the numbers of its contents."""

import numpy as np

from heckesel.report.comparison import Comparison, Group
from heckesel.report.formatting import Digits, minus, percent, significant
from heckesel.report.held_out_check import Calibration
from heckesel.report.rho_section import RhoCurve, RhoValues
from heckesel.report.shapes import (
    WIDTH,
    Drawing,
    Line,
    Mark,
    Scale,
    Text,
    axes,
    band,
    legend,
    path,
    segment,
    span,
    x_axis,
)

LEFT, RIGHT = 52.0, WIDTH - 20.0
LOWEST = -40.0  # log-likelihood units: lower values have no weight
NAIVE, CORRECTED = ("diamond", "naive", "naive"), ("circle", "corrected", "corrected")
MEANS = ("naive mean", "corrected mean", "90 % interval")


def regions_figure(comparison: Comparison, outcome: str, digits: Digits) -> Drawing:
    """For each group the naive mean, the corrected mean and the mean interval of its cases."""
    groups = (*comparison.regions, comparison.everyone)
    x = Scale(*_range_of(groups), 16, RIGHT)
    top, step = 34.0, 50.0
    bottom = top + step * len(groups)
    shapes = x_axis(x, bottom, f"predicted {outcome}", top=top)
    for row, group in enumerate(groups):
        label, at = top + step * row + 18, top + step * row + 35
        shapes += [
            Text(4, label, f"{group.name}: {group.cases:,} cases", style="name"),
            segment(x(group.interval[0]), at, x(group.interval[1]), at, "range"),
            Mark("diamond", x(group.naive), at, "naive", 6.5),
            Mark("circle", x(group.corrected), at, "corrected", 5.5),
        ]
    shapes += legend(16, NAIVE, CORRECTED, ("line", "range", "90 % interval"))
    return Drawing(
        "regions",
        f"Predicted {outcome} by probability of selection, naive and corrected",
        f"One row per group. {_means(comparison.regions, digits)}",
        bottom + 44,
        tuple(shapes),
        ("group", "cases", "with an outcome", *MEANS),
        tuple((g.name, f"{g.cases:,}", f"{g.observed:,}", *_row(g, digits)) for g in groups),
    )


def strips_figure(comparison: Comparison, outcome: str, digits: Digits) -> Drawing:
    """Means and intervals over strips of equal size, from the least to the most likely."""
    strips = comparison.strips
    y, x = Scale(*_range_of(strips), 232, 52), Scale(0, 1, LEFT, RIGHT, percent)
    at = [x(sum(g.probability) / 2) for g in strips]
    shapes = axes(x, y, "estimated probability of selection", f"predicted {outcome}")
    shapes.append(band(at, *([y(g.interval[end]) for g in strips] for end in (0, 1))))
    for tag, style, _ in (NAIVE, CORRECTED):
        heights = [y(getattr(g, style)) for g in strips]
        shapes.append(Line(path(at, heights), f"{style} stroke"))
        shapes += [Mark(tag, a, h, style, 4) for a, h in zip(at, heights, strict=True)]
    shapes += legend(14, NAIVE, CORRECTED, ("line", "band-key", "90 % interval"))
    return Drawing(
        "strips",
        f"Predicted {outcome} over the probability of selection",
        f"Cases in {len(strips)} strips of equal size. {_means((strips[0], strips[-1]), digits)}"
        " The first strip holds the cases least likely to be selected, the last the most likely.",
        276,
        tuple(shapes),
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


def _range_of(groups) -> tuple[float, float]:
    return span([value for g in groups for value in (*g.interval, g.naive, g.corrected)])


def _row(group: Group, digits: Digits) -> tuple[str, str, str]:
    return digits(group.naive), digits(group.corrected), digits.interval(group.interval)


def _means(groups: tuple[Group, ...], digits: Digits) -> str:
    return " ".join(
        f"{g.name.capitalize()}: naive {digits(g.naive)}, corrected {digits(g.corrected)}."
        for g in groups
    )


def rho_figure(curve: RhoCurve) -> Drawing:
    """The curve over rho with its modes and interval, cut off far below the best."""
    rho, height = curve.rho, curve.height
    first, last = np.flatnonzero(height >= LOWEST)[[0, -1]]  # it may dip below in between
    rho, height = rho[first : last + 1], height[first : last + 1].clip(LOWEST)
    x, y = Scale(-1, 1, LEFT, RIGHT), Scale(*span([height.min(), 0.0]), 220, 32)
    shapes: list = []
    if curve.interval is not None:
        ends = [x(float(np.clip(end, -1, 1))) for end in curve.interval]
        shapes.append(band(ends, [y.start] * 2, [y.end] * 2))
    label = "ρ, correlation of the errors of selection and outcome"
    shapes += axes(x, y, label, f"{curve.kind} below its best")
    shapes.append(segment(x(0), y.start, x(0), y.end, "zero"))
    shapes.append(Line(path([x(r) for r in rho], [y(h) for h in height]), "corrected stroke"))
    for mode in curve.modes:
        if mode.drop >= LOWEST:
            shapes.append(Mark("circle", x(mode.rho), y(mode.drop), "corrected", 5.5))
    return Drawing(
        "rho",
        f"The {curve.kind} over rho{' of a spline model' if curve.whose else ''}",
        f"{_modes(curve)} {_interval(curve)} Values more than {-LOWEST:.0f} below are cut off.",
        264,
        tuple(shapes),
        ("ρ", f"{curve.kind} below its best"),
        tuple(
            (significant(rho[j], 3), significant(height[j], 3))
            for j in range(0, len(rho), max(1, len(rho) // 24))
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
    x = Scale(*span([-1.0, 1.0, *values.rho], 0.02), LEFT, RIGHT)
    shapes = x_axis(x, 52, "ρ, correlation of the errors", top=20)
    shapes += [Mark("circle", x(rho), 36, "corrected", 5.5) for rho in values.rho]
    return Drawing(
        "rho",
        "Estimates of rho",
        f"The estimates: {', '.join(significant(rho, 3) for rho in values.rho)}.",
        94,
        tuple(shapes),
        ("estimate", "ρ", "σ"),
        tuple(
            (str(j + 1), significant(rho, 3), significant(sigma, 3))
            for j, (rho, sigma) in enumerate(zip(values.rho, values.sigma, strict=True))
        ),
    )


def calibration_figure(found: Calibration) -> Drawing:
    """Share of outcomes below each predicted quantile, on the diagonal if the model is right."""
    x, y = Scale(0, 1, LEFT, 352, percent), Scale(0, 1, 332, 32, percent)
    shapes = axes(x, y, "predicted probability that the outcome is below", "observed share below")
    level = [x(p) for p in found.level]
    shapes += [
        band(level, *([y(v) for v in edge] for edge in (found.low, found.high))),
        segment(x(0), y(0), x(1), y(1), "zero"),
    ]
    shapes += [
        Mark("circle", at, y(share), "corrected", 4.5)
        for at, share in zip(level, found.share, strict=True)
    ]
    points = zip(found.level, found.share, found.low, found.high, strict=True)
    return Drawing(
        "calibration",
        "Predicted probabilities against observed shares, for held-out cases",
        f"{found.cases:,} outcomes. On average the share differs from the prediction by "
        f"{percent(found.error, 1)}. The band contains all shares of 99 of 100 correct models; "
        f"{found.outside} of {len(found.level)} shares are outside.",
        376,
        tuple(shapes),
        ("predicted", "observed", "band"),
        tuple(
            (percent(p), percent(share, 1), f"{percent(low, 1)} to {percent(high, 1)}")
            for p, share, low, high in points
        ),
    )


def truth_figure(x, truth, naive, corrected, interval, *, seen, column: str, outcome: str):
    """The true function, two fits and some observed outcomes, if the truth is known.

    x, truth, naive, corrected : (m,) ordered by x; interval : (m, 2); seen : ((j,), (j,)) points
    """
    across = Scale(float(x[0]), float(x[-1]), LEFT, RIGHT)
    up = Scale(*span([*interval.ravel(), *truth, *seen[1]]), 300, 70)  # below two rows of legend
    at = [across(v) for v in x]
    shapes = axes(across, up, column, outcome)
    shapes.append(band(at, *([up(v) for v in interval[:, end]] for end in (0, 1))))
    shapes += [Mark("circle", across(a), up(b), "seen", 1.6) for a, b in zip(*seen, strict=True)]
    curves = {"truth": truth, "naive": naive, "corrected": corrected}
    for style, values in curves.items():
        shapes.append(Line(path(at, [up(v) for v in values]), f"{style} stroke"))
    shapes += legend(14, *(("line", f"{style} stroke", style) for style in curves))
    shapes += legend(
        32, ("circle", "seen", "observed"), ("line", "band-key", "corrected 90 % interval")
    )
    last = {style: significant(values[-1], 3) for style, values in curves.items()}
    return Drawing(
        "truth",
        f"{outcome} over {column}: truth, naive fit and corrected fit",
        "The small points are observed outcomes; the band is the corrected 90 % interval of single "
        f"outcomes. At the largest {column} the truth is {last['truth']}, the naive prediction "
        f"{last['naive']} and the corrected prediction {last['corrected']}.",
        344,
        tuple(shapes),
        (column, *curves),
        tuple(
            tuple(significant(v[j], 3) for v in (x, *curves.values()))
            for j in range(0, len(x), max(1, len(x) // 20))
        ),
    )
