"""Tests of the validity of instruments: their results, and the effects that they can detect."""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.data import SelectionData
from heckesel.display import block, box, p_equation, plain
from heckesel.errors import printable
from heckesel.verdict.identify import named_instruments
from heckesel.verdict.validity.exclusion_inequalities import (
    Pair,
    inequality_test,
    pairs_of,
    regress,
)
from heckesel.verdict.validity.inequality_power import detectable_effects
from heckesel.verdict.validity.overidentification import (
    ALL,
    JustIdentified,
    detectable_by,
    just_identified,
    overidentification_test,
)
from heckesel.verdict.validity.validity_sample import ValiditySample, validity_sample

REJECTED = "rejected"
NOT_REJECTED = "not rejected"
WITHOUT_POWER = "not rejected, with little power"
NOT_TESTED = "not tested"
# How it is coloured.
TONES = {REJECTED: "bad", NOT_REJECTED: "good", WITHOUT_POWER: "caution", NOT_TESTED: "plain"}
OVERIDENTIFICATION, INEQUALITIES = "overidentification", "inequalities"
LEVEL = 0.05
EXACT = 1e-10  # unexplained share of the variance of y below which it is rounding error


@dataclass(frozen=True)
class ValidityTest:
    """One test of the validity of instruments.

    Attributes
    ----------
    name : str
        ``"overidentification"`` or ``"inequalities"``.
    statistic : float
        A Wald statistic; or the largest violation of an inequality in standard errors, which is
        negative if all inequalities hold in the data.
    degrees_of_freedom : int or None
        Of the Wald statistic.
    p_value : float
    detectable : dict of str to tuple of float
        For each instrument, the smallest negative and positive direct effect on y that the test
        detects with a probability of 80 %, in standard deviations of y per standard deviation of
        the instrument. An infinite value means that no effect up to 1 is detectable. Empty if it
        was not computed, as for an outcome with two values.
    """

    __test__ = False  # not a test class for pytest

    name: str
    statistic: float
    degrees_of_freedom: int | None
    p_value: float
    detectable: dict[str, tuple[float, float]]


@dataclass(frozen=True, repr=False)
class InstrumentValidity:
    """Whether the data contradict the validity of the instruments.

    Attributes
    ----------
    verdict : str
        ``"rejected"``, ``"not rejected"``, ``"not rejected, with little power"`` or
        ``"not tested"``.
    sentence : str
        The reason for the verdict.
    p_value : float
        The smallest p-value times the number of tests; NaN if there is none.
    level : float
        Probability of rejecting valid instruments.
    instruments : tuple of str
    tests : tuple of ValidityTest
    fits : tuple of JustIdentified
        For two or more instruments: the estimates with each of them as the only excluded column,
        and those with all of them.
    rows, rows_used : int
        Rows of positive weight, and how many of them the tests used.

    Notes
    -----
    ``print(result)`` shows the verdict with all tests; `to_frame` and `to_dict` return them.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(500, rho=0.5, alpha=0.3, seed=0).frame
    >>> invalid = frame["y"] + 0.5 * frame["z"]
    >>> hk.test_instruments(frame[["x", "z"]], invalid, instruments=["z"]).verdict
    'rejected'
    """

    verdict: str
    sentence: str
    p_value: float
    level: float
    instruments: tuple[str, ...]
    tests: tuple[ValidityTest, ...]
    fits: tuple[JustIdentified, ...]
    rows: int
    rows_used: int

    def __str__(self) -> str:
        return printable("\n".join([f"{self.verdict}: {self.sentence}", *self.details()]))

    def __repr__(self) -> str:
        return f"<InstrumentValidity {self}>"

    def _repr_html_(self) -> str:
        return block(box(TONES[self.verdict], self.verdict, self.sentence, self.details()))

    def details(self) -> list[str]:
        """List the tests in words.

        Returns
        -------
        list of str
        """
        lines = [line for test in self.tests for line in _test_lines(test)]
        if self.fits:
            lines.append("coefficient of the inverse Mills ratio with each instrument alone:")
            width = max(len(fit.instrument) for fit in self.fits)
            lines += [
                f"  {fit.instrument:<{width}}  {fit.lambda_coef:8.3f}  (standard error "
                f"{fit.se:.3f}; rho {fit.rho:.2f})"
                for fit in self.fits
            ]
        if self.rows_used < self.rows:
            lines.append(f"rows used: {self.rows_used:,} of {self.rows:,}, at random")
        return lines

    def to_frame(self):
        """Return one row per test and instrument as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            The columns are ``test``, ``instrument``, ``statistic``, ``degrees_of_freedom``,
            ``p_value``, ``detectable_negative`` and ``detectable_positive``.
        """
        import pandas as pd

        rows = [
            (test.name, name, test.statistic, test.degrees_of_freedom, test.p_value, *ends)
            for test in self.tests
            for name, ends in (test.detectable or {ALL: (math.nan, math.nan)}).items()
        ]
        names = ["test", "instrument", "statistic", "degrees_of_freedom", "p_value"]
        names += ["detectable_negative", "detectable_positive"]
        return pd.DataFrame(rows, columns=names).astype({"degrees_of_freedom": "Int64"})

    def to_dict(self) -> dict:
        """Return everything as a dict that is safe to write as JSON.

        Returns
        -------
        dict
            A number that is not finite is None: a detectable effect beyond 1, or the p-value of
            instruments that were not tested.
        """
        return plain(asdict(self))


def validity_of(
    data: SelectionData, *, level: float = LEVEL, seed: int = 0, power: bool = True
) -> InstrumentValidity:
    """All tests that the data allow; x and w may have a constant column or not.

    power : whether to compute the detectable effects, which take most of the time
    """
    data = data.take(data.weight > 0)
    if data.s.all():
        return _untested(data, level, "every unit has an outcome, so no instrument is needed.")
    if not data.instruments:
        return _untested(data, level, "there is no instrument.")
    with threadpool_limits(1, user_api="blas"):
        sample = validity_sample(data, seed)
        found = [] if _explained(sample) else _tests(sample, level, seed, power)
        agree = any(test.name == OVERIDENTIFICATION for test in found)
        fits = tuple(just_identified(sample)) if agree else ()
    if not found:
        why = (
            "there are too few selected units, or other columns explain the outcome or the "
            "instrument."
        )
        return replace(_untested(data, level, why), rows=sample.units)
    p = min(1.0, len(found) * min(test.p_value for test in found))
    verdict, sentence = _verdict(found, p, level, sample.instruments)
    return InstrumentValidity(
        verdict=verdict,
        sentence=sentence,
        p_value=p,
        level=level,
        instruments=sample.instruments,
        tests=tuple(found),
        fits=fits,
        rows=sample.units,
        rows_used=sample.n,
    )


def _untested(data: SelectionData, level: float, sentence: str) -> InstrumentValidity:
    names = tuple(data.instruments)
    return InstrumentValidity(NOT_TESTED, sentence, math.nan, level, names, (), (), data.n, 0)


def _explained(sample: ValiditySample) -> bool:
    """Whether x explains the outcome exactly, so that there is no error to compare."""
    y = sample.y[sample.s]
    r = regress(sample.covariates, sample.s, sample.weight, sample.y)[sample.s]
    return bool(y.min() == y.max() or np.mean(r**2) <= EXACT * sample.y_sd**2)


def _tests(sample: ValiditySample, level: float, seed: int, power: bool) -> list[ValidityTest]:
    several = len(sample.instruments) > 1
    # A mean of zeros and ones is not a smooth function of x plus a function of the index.
    two_values = len(np.unique(sample.y[sample.s])) <= 2
    pairs = pairs_of(sample)
    of_both = several and not two_values
    level = level / 2 if of_both and pairs else level
    found = [_overidentification(sample, level, power)] if of_both else []
    if pairs:
        found.append(_inequalities(sample, pairs, level, seed, power and not two_values))
    return [test for test in found if test is not None]


def _overidentification(sample: ValiditySample, level: float, power: bool) -> ValidityTest | None:
    found = overidentification_test(sample)
    if found is None:
        return None
    ends = detectable_by(found, sample, level) if power else []
    detectable = dict(zip(sample.instruments, ends, strict=power))
    numbers = (found.statistic, found.degrees_of_freedom, found.p_value)
    return ValidityTest(OVERIDENTIFICATION, *numbers, detectable)


def _inequalities(
    sample: ValiditySample, pairs: list[Pair], level: float, seed: int, power: bool
) -> ValidityTest:
    found = inequality_test(sample, pairs, seed)
    detectable = {}
    # the power is that of a normal model, which takes some units to fit
    if power and sample.s.sum() > 2 * sample.covariates.shape[1]:
        low, high = detectable_effects(sample, pairs, level, seed)
        if len(sample.instruments) > 1:
            detectable = {ALL: (low, high)}
        else:  # the effects are along the index, in which the instrument may have a minus sign
            along = sample.effects[0] > 0
            detectable = {sample.instruments[0]: (low, high) if along else (-high, -low)}
    return ValidityTest(INEQUALITIES, found.statistic, None, found.p_value, detectable)


def _verdict(tests, p: float, level: float, instruments) -> tuple[str, str]:
    named, one = named_instruments(instruments)
    if p <= level:
        least = min(tests, key=lambda test: test.p_value)
        if least.name == OVERIDENTIFICATION:
            why = (
                f"the levels of {named} contradict one another, so it affects the outcome directly"
                if one
                else f"{named} cannot all be valid: at least one affects the outcome directly"
            )
        else:
            why = (
                f"{named} {'affects' if one else 'affect'} the outcome directly, or "
                f"{'does' if one else 'do'} not shift the selection of all units in the same "
                "direction"
            )
        advice = f"do not use {'it as an instrument' if one else 'them as instruments'}"
        return REJECTED, f"{why} ({p_equation(p)}); {advice}."
    known = [ends for test in tests for ends in test.detectable.values()]
    if known and not np.isfinite(known).any():
        return WITHOUT_POWER, (
            f"the data do not contradict the validity of {named} ({p_equation(p)}), but the tests "
            "have little power even against a direct effect of one standard deviation of the "
            "outcome per standard deviation of the instrument."
        )
    unnoticed = "smaller direct effects than those listed" if known else "direct effects"
    return NOT_REJECTED, (
        f"the data do not contradict the validity of {named} ({p_equation(p)}); {unnoticed} may "
        "have gone unnoticed."
    )


def _test_lines(test: ValidityTest) -> list[str]:
    if test.degrees_of_freedom is None:
        size = f"largest violation {test.statistic:.2f} standard errors"
    else:
        size = f"chi2({test.degrees_of_freedom}) = {test.statistic:.1f}"
    lines = [f"{test.name}: {size}, {p_equation(test.p_value)}"]
    for name, (low, high) in test.detectable.items():
        caught = [f"{end:+.2f}" for end in (low, high) if math.isfinite(end)]
        if len(caught) == 2:
            what = f"beyond {caught[0]} or {caught[1]}"
        elif caught:
            sign = "positive" if math.isfinite(low) else "negative"
            what = f"beyond {caught[0]}, but no {sign} effect up to 1"
        else:
            what = "none up to 1"
        lines.append(f"  {name}: detectable direct effects: {what} (sd of y per sd, power 80 %)")
    return lines
