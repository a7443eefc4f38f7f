r"""The paper's macros, computed from committed rows: `\newcommand{\CovAgEnsHi}{64.4\%}`.

MACROS holds the definition of each. Names are composed of parts:

* A-E1: metric in the selected-against region, method, rho (`Hi` .9, `Mid` .6), `NoInstr` for
  alpha = 0 instead of 1, `SD` for the standard deviation over seeds (divisor n), not the mean
* A-E2: `Real`, metric, dataset, method, at rho = .8, or at 0 with `Zero`; `Well` is the
  well-sampled region
* `P...` Wilcoxon signed-rank tests over seeds, `EZero...` and `MrozRhoMLE` the classic fits,
  `Vig...` the benchmark panels
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, product

import numpy as np

from reproduction.pages.paired_tests import signed_rank
from reproduction.pages.rows import Results, Row, matching, only, over_seeds, read_paper_numbers

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
PRINTED = {name: known["printed"] for name, known in read_paper_numbers().items()}


@dataclass(frozen=True)
class Macro:
    """One published number.

    seeds : the values over seeds that `value` summarises, where there are seeds.
    """

    name: str
    value: Callable[[Results], float | None]
    seeds: Callable[[Results], np.ndarray] | None = None

    def printed(self, results: Results) -> str:
        value = self.value(results)
        return NOT_AVAILABLE if value is None else printed_like(PRINTED[self.name], value)


def numbers_tex(results: Results) -> str:
    lines = ["% Generated from results/*.json; do not edit."]
    lines += [f"\\newcommand{{\\{m.name}}}{{{m.printed(results)}}}" for m in MACROS.values()]
    return "\n".join(lines) + "\n"


def pooled_pvalue(results: Results, method: str) -> float:
    """One-sided Wilcoxon over both datasets at rho = .8: is the two-step's selected-against ECE
    below that of `method`?"""
    find = partial(over_seeds, results.e2, "ece_against", rho=0.8)
    ours, theirs = (
        np.concatenate([find(dataset=dataset, method=name) for dataset in DATASET_PARTS.values()])
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


def _over_seeds(name: str, experiment: str, metric: str, *, summary=np.mean, **cell) -> Macro:
    def seeds(results: Results) -> np.ndarray:
        return over_seeds(getattr(results, experiment), metric, **cell)

    return Macro(name, lambda results: float(summary(seeds(results))), seeds)


def _controlled() -> Iterator[Macro]:
    levels, instruments = {"Hi": 0.9, "Mid": 0.6}, {"": 1.0, "NoInstr": 0.0}
    for (part, method), level, suffix in product(METHOD_PARTS.items(), levels, instruments):
        tail, cell = f"{part}{level}{suffix}", {"rho": levels[level], "alpha": instruments[suffix]}
        find = partial(_over_seeds, experiment="e1", method=method, **cell)
        if part != "Sky":
            yield find(f"CovAg{tail}", metric="coverage90_against")
            yield find(f"CovAg{tail}SD", metric="coverage90_against", summary=np.std)
            yield find(f"BiasAg{tail}", metric="bias_f0_against")
        if tail in ("EnsHi", "HeckHi", "HeckTSHi", "IWHi", "OracleHi"):
            yield find(f"ECEAg{tail}", metric="ece_against")
        if tail in ("HeckHi", "HeckHiNoInstr", "HeckMid"):
            yield find(f"RhoHat{level}{suffix}", metric="rho_hat")
        if tail == "HeckHi":
            yield find("RhoHatHiSD", metric="rho_hat", summary=np.std)


def _semireal() -> Iterator[Macro]:
    for (dataset, table), (part, method) in product(DATASET_PARTS.items(), METHOD_PARTS.items()):
        find = partial(_over_seeds, experiment="e2", dataset=table, method=method)
        tail, against = f"{dataset}{part}", partial(find, metric="coverage90_against")
        if part != "Oracle":
            yield against(f"RealCov{tail}", rho=0.8)
            yield against(f"RealCov{tail}SD", rho=0.8, summary=np.std)
            yield find(f"RealCovWell{tail}", metric="coverage90_well", rho=0.8)
            yield find(f"RealECE{tail}", metric="ece_against", rho=0.8)
        if part in ("Ens", "HeckTS"):
            yield against(f"RealCovZero{tail}", rho=0.0)


def _classic_fits() -> Iterator[Macro]:
    def classic(results: Results, metric: str, data: str = "rand_hie", method: str = "ml") -> float:
        return only(results.e0, data=data, method=method)[metric]

    for name, metric, cell in (
        ("EZeroN", "n", {}),
        ("EZeroNSel", "n_selected", {}),
        ("EZeroRhoMLE", "rho", {}),
        ("EZeroSigmaMLE", "sigma", {}),
        ("EZeroRhoTS", "rho", {"method": "two-step"}),
        ("EZeroLLDev", "loglik_printed_deviation", {}),
        ("EZeroDevMLE", "macro_deviation", {}),
        ("EZeroDevTS", "macro_deviation", {"method": "two-step"}),
        # the paper's figure is a local mode, the global one lies at .993
        ("MrozRhoMLE", "printed_mode_rho", {"data": "mroz_greene"}),
    ):
        yield Macro(name, partial(classic, metric=metric, **cell))


def _tests() -> Iterator[Macro]:
    for name, part in (("PKillIWvsHeck", "IW"), ("PEnsVsHeck", "Ens")):
        yield Macro(name, partial(coverage_pvalue, method=METHOD_PARTS[part]))
    for part in ("Drop", "Ens", "IW"):
        yield Macro(f"PRealHeckVs{part}", partial(pooled_pvalue, method=METHOD_PARTS[part]))


def main_panels(results: Results) -> list[Row]:
    """Fits of the main table: whole panels, where `target` is empty, and pairs."""
    return matching(results.e4, **PANELS)


def _panels() -> Iterator[Macro]:
    def counted(count: Callable[[list[Row]], float]) -> Callable[[Results], float | None]:
        return lambda results: float(count(main_panels(results))) if results.e4 else None

    yield Macro("VigNTotal", counted(len))
    yield Macro("VigNBoundary", counted(lambda rows: sum(r["boundary"] for r in rows)))
    real = {"task": "Image Classification", "target": "ImageNet ReaL"}

    def number(results: Results, metric: str, **cell) -> float | None:
        """None if the dump has no such fit, or the fit has no such number."""
        found = matching(main_panels(results), **cell)
        return found[0].get(metric) if found else None

    yield Macro("VigMTRho", partial(number, metric="rho", task="Machine Translation", target=""))
    yield Macro("VigImageNetReaLRho", partial(number, metric="rho", **real))
    yield Macro("VigImageNetReaLSE", partial(number, metric="rho_se", **real))


def fixed(value: float, digits: int) -> str:
    """With this number of decimals; a value that rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def printed_like(sample: str, value: float) -> str:
    """With the decimals, the per cent sign or the power of ten of `sample`."""
    if "times" in sample:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"${mantissa}\\times10^{{{int(exponent)}}}$"
    number, percent, _ = sample.partition(r"\%")
    return fixed(100 * value if percent else value, len(number.partition(".")[2])) + percent


_SHARE = Macro(
    "EOneSelFrac", lambda results: float(np.mean([r["selected_share"] for r in results.e1]))
)
_ALL = chain(_controlled(), _semireal(), _classic_fits(), _tests(), _panels(), [_SHARE])
MACROS = {macro.name: macro for macro in sorted(_ALL, key=lambda macro: macro.name)}
