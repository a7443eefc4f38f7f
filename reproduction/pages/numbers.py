r"""The paper's macros, computed from committed rows: `\newcommand{\CovAgEnsHi}{64.4\%}`.

MACROS holds the definition of each. Names are put together from parts:

* A-E1: metric in the selected-against region, method, rho (`Hi` .9, `Mid` .6), `NoInstr` for
  alpha = 0 instead of 1, `SD` for the standard deviation over seeds (divisor n), not the mean
* A-E2: `Real`, metric, dataset, method, at rho = .8, or at 0 with `Zero`; `Well` is the
  well-sampled region
* `P...` Wilcoxon signed-rank tests over seeds, `EZero...` and `MrozRhoMLE` the classic fits,
  `Vig...` the benchmark panels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from reproduction.pages.paired import signed_rank
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

    def pool(name: str) -> np.ndarray:
        cell = {"method": name, "rho": 0.8}
        parts = [
            over_seeds(results.e2, "ece_against", dataset=dataset, **cell)
            for dataset in DATASET_PARTS.values()
        ]
        return np.concatenate(parts)

    return signed_rank(pool("heckman_two_step"), pool(method), alternative="less")


def coverage_pvalue(results: Results, method: str) -> float:
    """Two-sided Wilcoxon over seeds at rho = .9 with the instrument: selected-against coverage of
    `method` against that of the two-step."""
    cell = {"rho": 0.9, "alpha": 1.0}
    other = over_seeds(results.e1, "coverage90_against", method=method, **cell)
    two_step = over_seeds(results.e1, "coverage90_against", method="heckman_two_step", **cell)
    return signed_rank(other, two_step)


def _seeded(name: str, form: str, experiment: str, metric: str, cell: dict, summary) -> Macro:
    def seeds(results: Results) -> np.ndarray:
        return over_seeds(getattr(results, experiment), metric, **cell)

    return Macro(name, form, lambda results: float(summary(seeds(results))), seeds)


def _controlled() -> list[Macro]:
    found = []
    for part, method in METHOD_PARTS.items():
        if part == "Sky":
            continue
        for level, rho in (("Hi", 0.9), ("Mid", 0.6)):
            for suffix, alpha in (("", 1.0), ("NoInstr", 0.0)):
                cell = {"method": method, "rho": rho, "alpha": alpha}
                tail = f"{part}{level}{suffix}"
                coverage = ("percent", "e1", "coverage90_against", cell)
                bias = ("three decimals", "e1", "bias_f0_against", cell)
                found += [
                    _seeded(f"CovAg{tail}", *coverage, np.mean),
                    _seeded(f"CovAg{tail}SD", *coverage, np.std),
                    _seeded(f"BiasAg{tail}", *bias, np.mean),
                ]
    for part in ("Ens", "Heck", "HeckTS", "IW", "Oracle"):
        cell = {"method": METHOD_PARTS[part], "rho": 0.9, "alpha": 1.0}
        ece = ("three decimals", "e1", "ece_against", cell)
        found.append(_seeded(f"ECEAg{part}Hi", *ece, np.mean))
    for tail, rho, alpha, summary in (
        ("Hi", 0.9, 1.0, np.mean),
        ("HiSD", 0.9, 1.0, np.std),
        ("HiNoInstr", 0.9, 0.0, np.mean),
        ("Mid", 0.6, 1.0, np.mean),
    ):
        cell = {"method": "heckman_joint", "rho": rho, "alpha": alpha}
        found.append(_seeded(f"RhoHat{tail}", "two decimals", "e1", "rho_hat", cell, summary))
    return found


def _semireal() -> list[Macro]:
    found = []
    for dataset_part, dataset in DATASET_PARTS.items():
        for part, method in METHOD_PARTS.items():
            if part == "Oracle":
                continue
            cell = {"dataset": dataset, "method": method, "rho": 0.8}
            tail = f"{dataset_part}{part}"
            against = ("percent", "e2", "coverage90_against", cell)
            well = ("percent", "e2", "coverage90_well", cell)
            ece = ("three decimals", "e2", "ece_against", cell)
            found += [
                _seeded(f"RealCov{tail}", *against, np.mean),
                _seeded(f"RealCov{tail}SD", *against, np.std),
                _seeded(f"RealCovWell{tail}", *well, np.mean),
                _seeded(f"RealECE{tail}", *ece, np.mean),
            ]
        for part in ("Ens", "HeckTS"):
            cell = {"dataset": dataset, "method": METHOD_PARTS[part], "rho": 0.0}
            against = ("percent", "e2", "coverage90_against", cell)
            found.append(_seeded(f"RealCovZero{dataset_part}{part}", *against, np.mean))
    return found


def _classic(results: Results, metric: str, data: str = "rand_hie", method: str = "ml") -> float:
    return only(results.e0, data=data, method=method)[metric]


def _classic_fits() -> list[Macro]:
    two_step = "two-step"
    return [
        Macro("EZeroN", "integer", partial(_classic, metric="n")),
        Macro("EZeroNSel", "integer", partial(_classic, metric="n_selected")),
        Macro("EZeroRhoMLE", "four decimals", partial(_classic, metric="rho")),
        Macro("EZeroSigmaMLE", "four decimals", partial(_classic, metric="sigma")),
        Macro("EZeroRhoTS", "four decimals", partial(_classic, metric="rho", method=two_step)),
        Macro("EZeroLLDev", "three decimals", partial(_classic, metric="loglik_printed_deviation")),
        Macro("EZeroDevMLE", "power", partial(_classic, metric="macro_deviation")),
        Macro("EZeroDevTS", "power", partial(_classic, metric="macro_deviation", method=two_step)),
        Macro(  # the paper's figure is a local mode, the global one lies at .993
            "MrozRhoMLE",
            "three decimals",
            partial(_classic, metric="printed_mode_rho", data="mroz_greene"),
        ),
    ]


def _tests() -> list[Macro]:
    found = []
    for name, part in (("PKillIWvsHeck", "IW"), ("PEnsVsHeck", "Ens")):
        value = partial(coverage_pvalue, method=METHOD_PARTS[part])
        found.append(Macro(name, "three decimals", value))
    for part in ("Drop", "Ens", "IW"):
        value = partial(pooled_pvalue, method=METHOD_PARTS[part])
        found.append(Macro(f"PRealHeckVs{part}", "four decimals", value))
    return found


def main_panels(results: Results) -> list[Row]:
    """Fits of the main table: whole panels, where `target` is empty, and pairs."""
    return matching(results.e4, **PANELS)


def _panel_value(results: Results, metric: str, task: str, target: str) -> float | None:
    """None where the dump has no such fit, or where the fit has no such number."""
    found = matching(main_panels(results), task=task, target=target)
    return found[0].get(metric) if found else None


def _panels() -> list[Macro]:
    def total(results: Results) -> float | None:
        return float(len(main_panels(results))) if results.e4 else None

    def boundary(results: Results) -> float | None:
        return float(sum(row["boundary"] for row in main_panels(results))) if results.e4 else None

    def pair(metric: str) -> Callable[[Results], float | None]:
        task, target = "Image Classification", "ImageNet ReaL"
        return partial(_panel_value, metric=metric, task=task, target=target)

    translation = partial(_panel_value, metric="rho", task="Machine Translation", target="")
    return [
        Macro("VigNTotal", "integer", total),
        Macro("VigNBoundary", "integer", boundary),
        Macro("VigMTRho", "two decimals", translation),
        Macro("VigImageNetReaLRho", "two decimals", pair("rho")),
        Macro("VigImageNetReaLSE", "two decimals", pair("rho_se")),
    ]


def _selected_share(results: Results) -> float:
    return float(np.mean([row["selected_share"] for row in results.e1]))


def _all_macros() -> dict[str, Macro]:
    found = [*_controlled(), *_semireal(), *_classic_fits(), *_tests(), *_panels()]
    found.append(Macro("EOneSelFrac", "whole percent", _selected_share))
    return {macro.name: macro for macro in sorted(found, key=lambda macro: macro.name)}


def fixed(value: float, digits: int) -> str:
    """With so many decimals; what rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _mantissa_and_exponent(value: float) -> tuple[str, int]:
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return mantissa, int(exponent)


MACROS = _all_macros()
