"""The pictures of the page, from the numbers of its contents."""

from __future__ import annotations

import numpy as np

from heckesel.report.changes import Comparison, Group
from heckesel.report.formatting import Digits, minus, percent, significant, ticks_text
from heckesel.report.held_out_check import Calibration
from heckesel.report.rho_section import RhoCurve, RhoValues
from heckesel.report.style import (
    WIDTH,
    Area,
    Drawing,
    Line,
    Mark,
    Scale,
    Text,
    axes,
    path,
    segment,
    span,
    x_axis,
)

LEFT, RIGHT = 52.0, WIDTH - 20.0
LOWEST = -40.0  # log-units: what is this far below the best has no weight left


def legend(y: float, *entries: tuple[str, str, str]) -> list[Mark | Text | Line]:
    """A row of (shape, style, text); shape "line" draws a stroke."""
    parts: list[Mark | Text | Line] = []
    x = 8.0
    for shape, style, text in entries:
        if shape == "line":
            parts.append(segment(x - 4, y - 4, x + 14, y - 4, style))
            x += 10
        else:
            parts.append(Mark(shape, x, y - 4, style))
        parts.append(Text(x + 10, y, text))
        x += 26 + 6.6 * len(text)
    return parts


def regions_figure(comparison: Comparison, outcome: str, digits: Digits) -> Drawing:
    """For each group the naive mean, the corrected one, and the interval of a typical case."""
    groups = (*comparison.regions, comparison.everyone)
    ends = [value for g in groups for value in (*g.interval, g.naive, g.corrected)]
    x = Scale(*span(ends), 16, RIGHT)
    top, step = 34.0, 50.0
    bottom = top + step * len(groups)
    parts: list = x_axis(x, bottom, label=f"predicted {outcome}", text=ticks_text(x.ticks), top=top)
    for row, group in enumerate(groups):
        label, at = top + step * row + 18, top + step * row + 35
        parts.append(Text(4, label, f"{group.name}: {group.cases:,} cases", style="name"))
        parts.append(segment(x(group.interval[0]), at, x(group.interval[1]), at, "range"))
        parts.append(Mark("diamond", x(group.naive), at, "naive", 6.5))
        parts.append(Mark("circle", x(group.corrected), at, "corrected", 5.5))
    parts += legend(
        16,
        ("diamond", "naive", "naive"),
        ("circle", "corrected", "corrected"),
        ("line", "range", "90 % interval"),
    )
    return Drawing(
        "regions",
        f"Predicted {outcome} by how likely selection was, naive and corrected",
        f"One row for each group. {_changes(comparison.regions, digits)}",
        bottom + 44,
        tuple(parts),
        ("group", "cases", "with an outcome", "naive mean", "corrected mean", "90 % interval"),
        tuple(
            (
                g.name,
                f"{g.cases:,}",
                f"{g.observed:,}",
                digits(g.naive),
                digits(g.corrected),
                digits.interval(g.interval),
            )
            for g in groups
        ),
    )


def _changes(groups: tuple[Group, ...], digits: Digits) -> str:
    return " ".join(
        f"{g.name.capitalize()}: naive {digits(g.naive)}, corrected {digits(g.corrected)}."
        for g in groups
    )


def strips_figure(comparison: Comparison, outcome: str, digits: Digits) -> Drawing:
    """Means and intervals over strips of equal size, from the least to the most likely."""
    strips = comparison.strips
    y_values = [v for g in strips for v in (*g.interval, g.naive, g.corrected)]
    y, x = Scale(*span(y_values), 232, 52), Scale(0, 1, LEFT, RIGHT)
    at = [x(sum(g.chance) / 2) for g in strips]
    low, high = ([y(g.interval[end]) for g in strips] for end in (0, 1))
    parts: list = axes(
        x,
        y,
        x_label="estimated chance of selection",
        y_label=f"predicted {outcome}",
        x_text=percent,
        y_text=ticks_text(y.ticks),
    )
    parts.append(Area(path([*at, *at[::-1]], [*low, *high[::-1]]), "band"))
    for style, shape in (("naive", "diamond"), ("corrected", "circle")):
        heights = [y(getattr(g, style)) for g in strips]
        parts.append(Line(path(at, heights), f"{style} stroke"))
        parts += [Mark(shape, a, h, style, 4) for a, h in zip(at, heights, strict=True)]
    parts += legend(
        14,
        ("diamond", "naive", "naive"),
        ("circle", "corrected", "corrected"),
        ("line", "band-key", "90 % interval"),
    )
    return Drawing(
        "strips",
        f"Predicted {outcome} over the chance of selection",
        f"Cases in {len(strips)} strips of equal size. {_changes((strips[0], strips[-1]), digits)}"
        " The first strip holds the cases least likely to be selected, the last the most likely.",
        276,
        tuple(parts),
        ("strip", "chance of selection", "cases", "naive mean", "corrected mean", "90 % interval"),
        tuple(
            (
                g.name,
                f"{percent(g.chance[0])} to {percent(g.chance[1])}",
                f"{g.cases:,}",
                digits(g.naive),
                digits(g.corrected),
                digits.interval(g.interval),
            )
            for g in strips
        ),
    )


def rho_figure(curve: RhoCurve) -> Drawing:
    """The curve over rho with its modes and interval; far below the best it is cut off."""
    rho, height = np.array(curve.rho), np.array(curve.height)
    shown = height >= LOWEST
    first, last = np.flatnonzero(shown)[[0, -1]]  # the curve may dip below and come back
    rho, height = rho[first : last + 1], height[first : last + 1].clip(LOWEST)
    x, y = Scale(-1, 1, LEFT, RIGHT), Scale(*span([height.min(), 0.0]), 220, 32)
    parts: list = []
    if curve.interval is not None:
        ends = [x(float(np.clip(end, -1, 1))) for end in curve.interval]
        parts.append(Area(path([*ends, *ends[::-1]], [y.start] * 2 + [y.end] * 2), "band"))
    parts += axes(
        x,
        y,
        x_label="ρ, correlation of the errors of selection and outcome",
        y_label=f"{curve.kind} below its best",
        x_text=ticks_text(x.ticks),
        y_text=ticks_text(y.ticks),
    )
    parts.append(segment(x(0), y.start, x(0), y.end, "zero"))
    parts.append(Line(path([x(r) for r in rho], [y(h) for h in height]), "corrected stroke"))
    for mode in curve.modes:
        if mode.drop >= LOWEST:
            parts.append(Mark("circle", x(mode.rho), y(mode.drop), "corrected", 5.5))
    return Drawing(
        "rho",
        f"The {curve.kind} over rho{' of a spline model' if curve.whose else ''}",
        f"{_modes(curve)} {_interval(curve)} Values more than {-LOWEST:.0f} below are cut off.",
        264,
        tuple(parts),
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
    """One mark for each estimate."""
    x = Scale(*span([-1.0, 1.0, *values.rho], 0.02), LEFT, RIGHT)
    parts: list = x_axis(
        x, 52, label="ρ, correlation of the errors", text=ticks_text(x.ticks), top=20
    )
    parts += [Mark("circle", x(rho), 36, "corrected", 5.5) for rho in values.rho]
    listed = ", ".join(significant(rho, 3) for rho in values.rho)
    return Drawing(
        "rho",
        "Estimates of rho",
        f"The estimates: {listed}.",
        94,
        tuple(parts),
        ("estimate", "ρ", "σ"),
        tuple(
            (str(j + 1), significant(rho, 3), significant(sigma, 3))
            for j, (rho, sigma) in enumerate(zip(values.rho, values.sigma, strict=True))
        ),
    )


def calibration_figure(found: Calibration) -> Drawing:
    """Share of outcomes below each predicted quantile: on the diagonal for a right model."""
    x, y = Scale(0, 1, LEFT, 352), Scale(0, 1, 332, 32)
    parts: list = axes(
        x,
        y,
        x_label="predicted: chance that the outcome is below",
        y_label="observed: share that was below",
        x_text=percent,
        y_text=percent,
    )
    level = [x(p) for p in found.level]
    edge = [y(v) for v in found.low] + [y(v) for v in reversed(found.high)]
    parts.append(Area(path([*level, *level[::-1]], edge), "band"))
    parts.append(segment(x(0), y(0), x(1), y(1), "zero"))
    parts += [
        Mark("circle", at, y(share), "corrected", 4.5)
        for at, share in zip(level, found.share, strict=True)
    ]
    return Drawing(
        "calibration",
        "Predicted chances against what happened, for cases that were left out",
        f"{found.cases:,} outcomes. On average the share differs from the prediction by "
        f"{percent(found.error, 1)}. The band holds all shares of 99 of 100 right models; "
        f"{found.outside} of {len(found.level)} lie outside.",
        376,
        tuple(parts),
        ("predicted", "observed", "band"),
        tuple(
            (percent(p), percent(share, 1), f"{percent(low, 1)} to {percent(high, 1)}")
            for p, share, low, high in zip(
                found.level, found.share, found.low, found.high, strict=True
            )
        ),
    )


def truth_figure(x, truth, naive, corrected, interval, *, seen, column: str, outcome: str):
    """Where the truth is known: the function, what two fits made of it, and what they saw.

    x, truth, naive, corrected : (m,) ordered by x; interval : (m, 2); seen : ((j,), (j,)) points
    """
    across = Scale(float(x[0]), float(x[-1]), LEFT, RIGHT)
    up = Scale(*span([*interval.ravel(), *truth, *seen[1]]), 300, 70)  # below two rows of legend
    at = [across(v) for v in x]
    low, high = ([up(v) for v in interval[:, end]] for end in (0, 1))
    parts: list = axes(
        across,
        up,
        x_label=column,
        y_label=outcome,
        x_text=ticks_text(across.ticks),
        y_text=ticks_text(up.ticks),
    )
    parts.append(Area(path([*at, *at[::-1]], [*low, *high[::-1]]), "band"))
    parts += [Mark("circle", across(a), up(b), "seen", 1.6) for a, b in zip(*seen, strict=True)]
    for style, values in (("truth", truth), ("naive", naive), ("corrected", corrected)):
        parts.append(Line(path(at, [up(v) for v in values]), f"{style} stroke"))
    parts += legend(
        14,
        ("line", "truth stroke", "truth"),
        ("line", "naive stroke", "naive"),
        ("line", "corrected stroke", "corrected"),
    )
    parts += legend(
        32, ("circle", "seen", "observed"), ("line", "band-key", "corrected 90 % interval")
    )
    step = max(1, len(x) // 20)
    return Drawing(
        "truth",
        f"{outcome} over {column}: the truth, the naive fit and the corrected one",
        "Observed outcomes are the small points; the band is the corrected 90 % interval of single "
        f"outcomes. At the largest {column} the truth is "
        f"{significant(truth[-1], 3)}, the naive fit says {significant(naive[-1], 3)}, the "
        f"corrected one {significant(corrected[-1], 3)}.",
        344,
        tuple(parts),
        (column, "truth", "naive", "corrected"),
        tuple(
            tuple(significant(v[j], 3) for v in (x, truth, naive, corrected))
            for j in range(0, len(x), step)
        ),
    )
