"""The local maxima of a likelihood, and why a fit uses one of them."""

from dataclasses import dataclass

import pandas as pd

from heckesel.linear.rho_scan import CLEARLY_BETTER


@dataclass(frozen=True)
class Mode:
    """A local maximum of the likelihood of `hk.heckman`.

    Attributes
    ----------
    rho, sigma : float
        Correlation of the errors, and scale of the outcome error.
    loglik : float
        Log-likelihood.
    status : str
        ``"converged"``, ``"boundary"`` (rho = +-1) or ``"max_iterations"``.
    params : Series
        Estimates by (equation, term).
    near_boundary : bool
        Whether \\|rho\\| > .99.
    """

    rho: float
    sigma: float
    loglik: float
    status: str
    params: pd.Series
    near_boundary: bool


def reason_of(modes: tuple, selected: int) -> str:
    """Why a fit uses this one of its modes, as a sentence; empty without a likelihood."""
    if not modes:
        return ""
    used, best = modes[selected], modes[0]
    if len(modes) == 1:
        return "The likelihood has one maximum."
    if selected:
        gain, sign = best.loglik - used.loglik, "+" if best.rho > 0 else "-"
        return (
            f"It is an interior maximum. The maximum at rho = {sign}1 has a log-likelihood that is "
            f"{gain:.2f} higher, but a maximum there is used only if the difference exceeds "
            f"{CLEARLY_BETTER:g}."
        )
    return f"It is the highest of {len(modes)} maxima of the likelihood."


def explain_modes(fit) -> tuple[str, pd.DataFrame]:
    """The maximum that a probit with selection uses, in words, and one row for each maximum."""
    if fit.has_selection:
        used = f"Maximum likelihood was used, with rho = {fit.rho:.2f}."
        sentence = f"{used} {reason_of(fit.modes, fit.selected)}".strip()
    else:
        sentence = "A plain probit was used, because every unit was selected."
    rows = [
        {
            "estimator": fit.method,
            "rho": mode.rho,
            "loglik": mode.loglik,
            "difference": mode.loglik - fit.modes[0].loglik,
            "status": mode.status,
            "chosen": position == fit.selected,
        }
        for position, mode in enumerate(fit.modes)
    ]
    columns = ["estimator", "rho", "loglik", "difference", "status", "chosen"]
    return sentence, pd.DataFrame(rows, columns=columns)
