"""Claims on the classic fits (A-E0), on the protocol, and on reporting panels (A-E4), from another
dump than the paper's."""

from itertools import product

import numpy as np

from heckesel.classical.ml import NEAR_BOUNDARY
from reproduction import e4_timm
from reproduction.pages.claims.claim import RHOS, SIGNIFICANT, UNTESTED, graded, listed, number
from reproduction.pages.macros import PANELS, main_panels
from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, matching, members, only, over_seeds

PRINT_ROUNDING = 5e-6  # half a unit of rho, which Stata's log gives with five decimals
NO_ROWS = "the panels have not been run, because their data are not in the repository"
METHODS = {"least squares": "least squares", "two-step": "two-step", "ml": "maximum likelihood"}


def _printed_digits(results: Results, method: str) -> tuple[dict, bool, str]:
    """The row of RAND HIE, whether it agrees with what was printed, and the deviations."""
    row = only(results.e0, data="rand_hie", method=method)
    good = row["passed"] == 1 and row["macro_deviation"] <= PRINT_ROUNDING
    numbers = (
        f"largest deviation {row['macro_deviation']:.1e}; of {row['printed_figures']:.0f} printed "
        f"coefficients and standard errors {row['printed_beyond_0.6_unit']:.0f} differ by more "
        f"than 0.6 units of the last place, the largest by {row['largest_printed_deviation']:.1f}; "
        f"against R's full precision {row['largest_full_deviation']:.1e}"
    )
    return row, good, numbers


def two_step_digits(results):
    _, good, numbers = _printed_digits(results, "two-step")
    return graded(holds=good), numbers


def ml_digits(results):
    row, good, numbers = _printed_digits(results, "ml")
    off = row["loglik_printed_deviation"]
    good &= round(off, 3) == 0
    return graded(holds=bool(good)), f"{numbers}; log-likelihood off by {off:.4f}"


def synthetic_truth(results):
    parts, good = [], True
    for data in ("synthetic_rho_0.6", "synthetic_rho_0.0"):
        rows = [only(results.e0, data=data, method=method) for method in ("two-step", "ml")]
        good &= all(row["passed"] == 1 for row in rows)
        parts.append(
            f"ρ = {data.removeprefix('synthetic_rho_')}: ρ̂ {rows[0]['rho']:.3f} and "
            f"{rows[1]['rho']:.3f}, largest |z| {max(row['largest_z'] for row in rows):.1f}, least "
            f"squares off by {rows[0]['least_squares_bias']:.3f}"
        )
    return graded(holds=bool(good)), "; ".join(parts)


def rand_hie_rho(results):
    row = only(results.e0, data="rand_hie", method="ml")
    numbers = f"ρ̂ {row['rho']:.4f}, likelihood ratio against ρ = 0 {row['lr_rho_zero']:.1f}"
    return graded(holds=round(row["rho"], 4) == 0.7356), numbers


def greene_mode(results):
    row = only(results.e0, data="mroz_greene", method="ml")
    gap = row["loglik"] - row["printed_mode_loglik"]
    return graded(holds=gap < 1e-6), (
        f"the printed mode has log-likelihood {row['printed_mode_loglik']:.2f}; at ρ = "
        f"{row['rho']:.3f} it is {row['loglik']:.2f}, {gap:.1f} higher"
    )


def both_conditions(results):
    alphas = sorted({row["alpha"] for row in results.e1})
    varies = any("alpha" in row for row in results.e2)
    return graded(holds=len(alphas) > 1 and varies, partly=len(alphas) > 1), (
        f"A-E1: α in {alphas}; A-E2: {'varies' if varies else 'always present'}; RAND HIE and "
        "the panels of the paper never have one"
    )


def most_on_boundary(results):
    rows = main_panels(results)
    if not rows:
        return UNTESTED, NO_ROWS
    count = int(sum(row["boundary"] for row in rows))
    other = [row for row in matching(results.e4, instrument="") if row not in rows]
    second = int(sum(row["boundary"] for row in other))
    numbers = f"{count} of {len(rows)}; in the second table {second} of {len(other)}"
    return graded(holds=count > len(rows) / 2, partly=count > 0), numbers


def signs_unstable(results):
    rows = main_panels(results)
    if not rows:
        return UNTESTED, NO_ROWS
    interior, edge = ([r["rho"] for r in rows if r["boundary"] == at] for at in (0.0, 1.0))
    numbers = f"interior: {_signs(interior)}; on the boundary: {_signs(edge)}"
    both = any(rho > 0 for rho in interior) and any(rho < 0 for rho in interior)
    return graded(holds=both, partly=len({rho > 0 for rho in interior + edge}) == 2), numbers


def imagenet_real(results):
    rows = matching(results.e4, task="Image Classification", target="ImageNet ReaL", instrument="")
    if not rows:
        reason = "the available dumps have no such pair" if results.e4 else NO_ROWS
        return UNTESTED, reason
    rho, se = rows[0]["rho"], rows[0].get("rho_se")
    if se is None:
        return graded(holds=False), f"ρ̂ {rho:.2f}, on the boundary, where it has no standard error"
    return graded(holds=rho - 2 * se > 0), f"ρ̂ {rho:.2f}, standard error {se:.2f}"


def predicted_by_controlled(results: Results):
    cell = {"method": "heckman_joint", "alpha": 0.0}
    size = np.abs([members(results.e1, rho=rho, **cell) for rho in (0.0, *RHOS)])
    count = int(np.sum(size > NEAR_BOUNDARY))
    return graded(holds=count > 0), (
        f"{count} of {size.size} joint members; the largest |ρ| is {size.max():.2f}: with "
        "2000 units the fits converge to interior modes of either sign"
    )


def dates_as_instrument(results):
    rows = matching(results.e4, source=PANELS["source"], instrument="age")
    if not rows:
        return UNTESTED, NO_ROWS
    with_age = int(sum(row["boundary"] for row in rows))
    without = int(sum(row["boundary_without"] for row in rows))
    numbers = f"{with_age} of {len(rows)} with it, {without} without"
    return graded(holds=2 * with_age < without, partly=with_age < without), numbers


def complete_panel(results):
    if not results.e4_timm:
        return UNTESTED, NO_ROWS
    parts, shares = [], []
    for words, alpha, side, rhos in (
        ("further off without it", 0.0, "greater", e4_timm.RHOS),
        ("nearer with it", 1.0, "less", e4_timm.RHOS[1:]),
    ):
        counts = dict.fromkeys(list(METHODS.values())[1:], 0)
        for ability, rho in product(e4_timm.ABILITIES, rhos):
            cell = {"ability": ability, "rho": rho, "alpha": alpha}
            off = {  # distance of predicted from true mean of the hidden scores, over seeds
                name: np.abs(over_seeds(results.e4_timm, "bias", method=method, **cell))
                for method, name in METHODS.items()
            }
            for name in counts:
                counts[name] += signed_rank(off[name], off["least squares"], side) <= SIGNIFICANT
        tried = len(e4_timm.ABILITIES) * len(rhos)
        shares.append(np.mean(list(counts.values())) / tried)
        found, last = listed(counts, f"{{}} of {tried}".format), listed(off, number)
        parts.append(f"{words}: {found} (ρ = .8, ability as reported: {last})")
    return graded(holds=min(shares) == 1, partly=min(shares) > 0.5), "; ".join(parts)


def _signs(values: list[float]) -> str:
    return f"{sum(v > 0 for v in values)} positive, {sum(v < 0 for v in values)} negative"
