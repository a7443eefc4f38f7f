r"""The paper's macros, computed from committed rows: `\newcommand{\CovAgEnsHi}{64.4\%}`.

MACROS holds the definition of each. Names are composed of parts:

* A-E1: metric in the selected-against region, method, rho (`Hi` .9, `Mid` .6), `NoInstr` for
  alpha = 0 instead of 1, `SD` for the standard deviation over seeds (divisor n), not the mean
* A-E2: `Real`, metric, dataset, method, at rho = .8, or at 0 with `Zero`; `Well` is the
  well-sampled region
* `P...` Wilcoxon signed-rank tests over seeds, `EZero...` and `MrozRhoMLE` the classic fits,
  `Vig...` the benchmark panels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, product

import numpy as np

from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, Row, matching, only, over_seeds

METHOD_PARTS = {
    "Blind": "blind_two_head",
    "Drop": "mc_dropout",
    "Ens": "deep_ensemble",
    "GP": "gp",
    "Heck": "heckman_joint",
    "HeckTS": "heckman_two_step",
    "IW": "weighted_ensemble",
    "Oracle": "oracle",
    "Sky": "skyline",
}
DATASET_PARTS = {"Cal": "california", "Wine": "wine"}
NOT_AVAILABLE = "--"
# The main table of A-E4, without the instrument that the paper only proposes.
PANELS = {"source": "by_paper_2022", "instrument": ""}

FORMS: dict[str, Callable[[float], str]] = {
    "percent": lambda value: fixed(100 * value, 1) + r"\%",
    "whole percent": lambda value: fixed(100 * value, 0) + r"\%",
    "integer": lambda value: fixed(value, 0),
    "two decimals": lambda value: fixed(value, 2),
    "three decimals": lambda value: fixed(value, 3),
    "four decimals": lambda value: fixed(value, 4),
    "power": lambda value: "${}\\times10^{{{}}}$".format(*_mantissa_and_exponent(value)),
}


@dataclass(frozen=True)
class Macro:
    """One published number.

    seeds : the values over seeds that `value` summarises, where there are seeds.
    """

    name: str
    form: str
    value: Callable[[Results], float | None]
    seeds: Callable[[Results], np.ndarray] | None = None

    def printed(self, results: Results) -> str:
        value = self.value(results)
        return NOT_AVAILABLE if value is None else FORMS[self.form](value)


def numbers_tex(results: Results) -> str:
    lines = ["% Generated from results/*.json; do not edit."]
    lines += [
        f"\\newcommand{{\\{name}}}{{{macro.printed(results)}}}" for name, macro in MACROS.items()
    ]
    return "\n".join(lines) + "\n"


def pooled_pvalue(results: Results, method: str) -> float:
    """One-sided Wilcoxon over both datasets at rho = .8: is the two-step's selected-against ECE
    below that of `method`?"""
    ours, theirs = (
        np.concatenate(
            [
                over_seeds(results.e2, "ece_against", dataset=dataset, method=name, rho=0.8)
                for dataset in DATASET_PARTS.values()
            ]
        )
        for name in ("heckman_two_step", method)
    )
    return signed_rank(ours, theirs, alternative="less")


def coverage_pvalue(results: Results, method: str) -> float:
    """Two-sided Wilcoxon over seeds at rho = .9 with the instrument: selected-against coverage of
    `method` against that of the two-step."""
    other, two_step = (
        over_seeds(results.e1, "coverage90_against", method=name, rho=0.9, alpha=1.0)
        for name in (method, "heckman_two_step")
    )
    return signed_rank(other, two_step)


def _seeded(name: str, form: str, experiment: str, metric: str, summary=np.mean, **cell) -> Macro:
    def seeds(results: Results) -> np.ndarray:
        return over_seeds(getattr(results, experiment), metric, **cell)

    return Macro(name, form, lambda results: float(summary(seeds(results))), seeds)


def _controlled() -> Iterator[Macro]:
    coverage = ("percent", "e1", "coverage90_against")
    bias, ece = (("three decimals", "e1", f"{metric}_against") for metric in ("bias_f0", "ece"))
    levels, instruments = {"Hi": 0.9, "Mid": 0.6}, {"": 1.0, "NoInstr": 0.0}
    for part, level, suffix in product(METHOD_PARTS, levels, instruments):
        if part != "Sky":
            tail, cell = f"{part}{level}{suffix}", {"method": METHOD_PARTS[part]}
            cell |= {"rho": levels[level], "alpha": instruments[suffix]}
            yield _seeded(f"CovAg{tail}", *coverage, **cell)
            yield _seeded(f"CovAg{tail}SD", *coverage, np.std, **cell)
            yield _seeded(f"BiasAg{tail}", *bias, **cell)
    for part in ("Ens", "Heck", "HeckTS", "IW", "Oracle"):
        yield _seeded(f"ECEAg{part}Hi", *ece, method=METHOD_PARTS[part], rho=0.9, alpha=1.0)
    for tail, rho, alpha, summary in (
        ("Hi", 0.9, 1.0, np.mean),
        ("HiSD", 0.9, 1.0, np.std),
        ("HiNoInstr", 0.9, 0.0, np.mean),
        ("Mid", 0.6, 1.0, np.mean),
    ):
        estimate = ("two decimals", "e1", "rho_hat", summary)
        yield _seeded(f"RhoHat{tail}", *estimate, method="heckman_joint", rho=rho, alpha=alpha)


def _semireal() -> Iterator[Macro]:
    against, well = ("percent", "e2", "coverage90_against"), ("percent", "e2", "coverage90_well")
    for dataset, part in product(DATASET_PARTS, METHOD_PARTS):
        cell = {"dataset": DATASET_PARTS[dataset], "method": METHOD_PARTS[part]}
        tail = f"{dataset}{part}"
        if part != "Oracle":
            yield _seeded(f"RealCov{tail}", *against, rho=0.8, **cell)
            yield _seeded(f"RealCov{tail}SD", *against, np.std, rho=0.8, **cell)
            yield _seeded(f"RealCovWell{tail}", *well, rho=0.8, **cell)
            yield _seeded(f"RealECE{tail}", "three decimals", "e2", "ece_against", rho=0.8, **cell)
        if part in ("Ens", "HeckTS"):
            yield _seeded(f"RealCovZero{tail}", *against, rho=0.0, **cell)


def _classic_fits() -> Iterator[Macro]:
    for name, form, data, method, metric in (
        ("EZeroN", "integer", "rand_hie", "ml", "n"),
        ("EZeroNSel", "integer", "rand_hie", "ml", "n_selected"),
        ("EZeroRhoMLE", "four decimals", "rand_hie", "ml", "rho"),
        ("EZeroSigmaMLE", "four decimals", "rand_hie", "ml", "sigma"),
        ("EZeroRhoTS", "four decimals", "rand_hie", "two-step", "rho"),
        ("EZeroLLDev", "three decimals", "rand_hie", "ml", "loglik_printed_deviation"),
        ("EZeroDevMLE", "power", "rand_hie", "ml", "macro_deviation"),
        ("EZeroDevTS", "power", "rand_hie", "two-step", "macro_deviation"),
        # the paper's figure is a local mode, the global one lies at .993
        ("MrozRhoMLE", "three decimals", "mroz_greene", "ml", "printed_mode_rho"),
    ):
        yield Macro(name, form, partial(_classic, data=data, method=method, metric=metric))


def _classic(results: Results, data: str, method: str, metric: str) -> float:
    return only(results.e0, data=data, method=method)[metric]


def _tests() -> Iterator[Macro]:
    for name, part in (("PKillIWvsHeck", "IW"), ("PEnsVsHeck", "Ens")):
        yield Macro(name, "three decimals", partial(coverage_pvalue, method=METHOD_PARTS[part]))
    for part in ("Drop", "Ens", "IW"):
        value = partial(pooled_pvalue, method=METHOD_PARTS[part])
        yield Macro(f"PRealHeckVs{part}", "four decimals", value)


def main_panels(results: Results) -> list[Row]:
    """Fits of the main table: whole panels, where `target` is empty, and pairs."""
    return matching(results.e4, **PANELS)


def _panels() -> Iterator[Macro]:
    def counted(count: Callable[[list[Row]], float]) -> Callable[[Results], float | None]:
        return lambda results: float(count(main_panels(results))) if results.e4 else None

    yield Macro("VigNTotal", "integer", counted(len))
    yield Macro("VigNBoundary", "integer", counted(lambda rows: sum(r["boundary"] for r in rows)))
    real = {"task": "Image Classification", "target": "ImageNet ReaL"}
    for name, metric, cell in (
        ("VigMTRho", "rho", {"task": "Machine Translation", "target": ""}),
        ("VigImageNetReaLRho", "rho", real),
        ("VigImageNetReaLSE", "rho_se", real),
    ):
        yield Macro(name, "two decimals", partial(_panel_value, metric=metric, **cell))


def _panel_value(results: Results, metric: str, **cell) -> float | None:
    """None where the dump has no such fit, or where the fit has no such number."""
    found = matching(main_panels(results), **cell)
    return found[0].get(metric) if found else None


def fixed(value: float, digits: int) -> str:
    """With so many decimals; what rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _mantissa_and_exponent(value: float) -> tuple[str, int]:
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return mantissa, int(exponent)


_SHARE = Macro(
    "EOneSelFrac",
    "whole percent",
    lambda results: float(np.mean([row["selected_share"] for row in results.e1])),
)
_ALL = chain(_controlled(), _semireal(), _classic_fits(), _tests(), _panels(), [_SHARE])
MACROS = {macro.name: macro for macro in sorted(_ALL, key=lambda macro: macro.name)}
