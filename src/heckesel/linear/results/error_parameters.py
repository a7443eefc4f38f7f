"""Tests and intervals of the parameters of the error distribution."""

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from heckesel.errors import DataError, is_one_of
from heckesel.linear.forms.form_inference import FormScan, restricted
from heckesel.linear.ols import fit_least_squares
from heckesel.linear.probit import fit_probit
from heckesel.linear.results.inference import Test, critical_value, likelihood_ratio
from heckesel.linear.results.resampling import rows_of
from heckesel.linear.rho_scan import Scan
from heckesel.linear.sample.sample import ALL_ROWS_UP_TO
from heckesel.linear.sample.stream import StreamedData, loglik_at_zero
from heckesel.numeric_input import check_level

# parameters of the errors besides rho and sigma
EXTRA: dict[str, tuple[str, ...]] = {"normal": (), "t": ("df",), "shape": ("skewness", "tail")}
# each parameter: how it is estimated, and the function from that to the parameter
ESTIMATED_AS: dict[str, tuple[str, Callable]] = {
    "rho": ("atanh_rho", np.tanh),
    "sigma": ("log_sigma", np.exp),
    "df": ("log_df", np.exp),
    "skewness": ("skewness", float),
    "tail": ("log_tail", np.exp),
}

MOST_TERMS = 60  # parameters beyond which the default interval of rho is not searched for


def _wald_interval(fit, parameter: str, level: float) -> tuple[float, float]:
    label, back = ESTIMATED_AS[parameter]
    term = ("ancillary", label)
    half = critical_value(level, fit.freedom) * fit.se[term]
    return float(back(fit.params[term] - half)), float(back(fit.params[term] + half))


def _restricted_loglik(fit, *names: str) -> float:
    """The log-likelihood if these parameters are zero."""
    assert isinstance(fit.scan, FormScan)
    with threadpool_limits(1, user_api="blas"):
        rows, _, _ = rows_of(fit.data, None)
        return fit.loglik + restricted(fit.scan, fit.scan.modes[fit.selected], rows, names)


def _hypotheses(fit) -> dict[str, list]:
    """The terms that are zero if the errors are normal with a constant sigma."""
    tested: dict[str, list] = {}
    if fit.errors == "shape":
        skewness, tail = ("ancillary", "skewness"), ("ancillary", "log_tail")
        tested = {"no skewness": [skewness], "normal tails": [tail]}
        tested["normal errors"] = [skewness, tail]
    if "scale" in fit.params.index.get_level_values(0):
        tested["constant sigma"] = [term for term in fit.params.index if term[0] == "scale"]
    return tested


def error_tests(fit, kind: str) -> dict[str, Test]:
    """Each of the hypotheses; `lr` fits the smaller models."""
    if not is_one_of(kind, ("wald", "lr")):
        raise DataError(f"kind must be 'wald' or 'lr', got {kind!r}")
    if kind == "wald":
        return {name: fit.wald_test(terms) for name, terms in _hypotheses(fit).items()}
    _needs_independent_rows(fit, "likelihood ratio")
    tests = {}
    for name, terms in _hypotheses(fit).items():
        zero = dict.fromkeys("scale" if term[0] == "scale" else term[1] for term in terms)
        smaller = _restricted_loglik(fit, *zero)
        tests[name] = likelihood_ratio(fit.loglik, smaller, fit.weight_kind, len(terms))
    return tests


def rho_test(fit, kind: str | None) -> Test:
    """`score`: of the Mills ratio in the outcome equation; `wald`: of atanh rho, for two-step of
    lambda; `lr`: likelihood ratio."""
    if not fit.has_selection:
        raise DataError("every unit was selected, so there is no rho to test")
    if kind is not None and not is_one_of(kind, ("score", "wald", "lr")):
        raise DataError(f"kind must be 'score', 'wald' or 'lr', got {kind!r}")
    if kind is None:
        kind = _default_test(fit)
    if kind == "score":
        if not has_score_test(fit):
            raise DataError(
                "the score test needs normal errors with a constant sigma; use 'lr' or 'wald'"
            )
        with threadpool_limits(1, user_api="blas"):
            return fit.score_test()
    if kind == "wald":
        term = ("mills", "lambda") if fit.method == "two-step" else ("ancillary", "atanh_rho")
        return fit.wald_test([term])
    _needs_ml(fit, "the likelihood-ratio test")
    _needs_independent_rows(fit, "likelihood ratio")
    return likelihood_ratio(fit.loglik, fit.loglik_independent, fit.weight_kind)


def has_score_test(fit) -> bool:
    """Whether the fit has normal errors with a constant sigma."""
    return fit.method == "two-step" or isinstance(fit.scan, Scan)


def prefers_score(fit) -> bool:
    """Whether the score test is the default: not for files, which it reads some six more times,
    unless other tests do not hold."""
    return has_score_test(fit) and not (isinstance(fit.data, StreamedData) and fit.wald_holds)


def _default_test(fit) -> str:
    if prefers_score(fit):
        return "score"
    independent = fit.clusters is None and fit.weight_kind == "frequency"
    return "lr" if independent and fit.method == "ml" else "wald"


def loglik_independent(fit) -> float:
    """The log-likelihood at rho = 0: probit plus least squares, if errors are normal."""
    data = fit.data
    if isinstance(fit.scan, FormScan):
        return _restricted_loglik(fit, "atanh_rho")
    if isinstance(data, StreamedData):
        return loglik_at_zero(data, fit.scan.modes[0].v)
    s = data.s
    outcome = fit_least_squares(data.x[s], data.y[s], data.weight[s]).loglik
    return outcome + fit_probit(data.w, s, data.weight).loglik


def error_interval(
    fit, parameter: str, level: float, method: str | None, profile: Callable
) -> tuple[float, float]:
    """A Wald or profile interval, after checking that the fit has one; by default the one that
    the fit's other inference is.

    profile : (parameter, level) -> the profile interval
    """
    check_level(level)
    _needs_ml(fit, f"an interval of {parameter}", "for the two-step, use bootstrap()")
    if not is_one_of(parameter, fit.error_parameters):
        *most, last = map(repr, fit.error_parameters)
        raise DataError(f"parameter must be {', '.join(most)} or {last}, got {parameter!r}")
    if method is not None and not is_one_of(method, ("wald", "profile")):
        raise DataError(f"method must be 'wald' or 'profile', got {method!r}")
    if method is None:
        method = fit.inference if parameter in ("rho", "sigma") else "wald"
        # a search for the ends takes hundreds of fits for sigma, a dozen for rho
        slow = parameter == "sigma" or fit.n > ALL_ROWS_UP_TO or len(fit.params) > MOST_TERMS
        if method == "profile" and slow:
            return _interval_over_rho(fit, parameter, level)
    if method == "wald":
        return _wald_interval(fit, parameter, level)
    if fit.weight_kind == "probability":
        raise DataError("with probability weights there is no profile likelihood; use 'wald'")
    _needs_independent_rows(fit, "profile likelihood")
    if not isinstance(fit.scan, Scan):
        raise DataError(
            "profile intervals need normal errors with a constant sigma; use method='wald'"
        )
    return profile(parameter, level)


def _interval_over_rho(fit, parameter: str, level: float) -> tuple[float, float]:
    """The interval between the fits with rho held, which exist already; a search for its ends takes
    hundreds of further fits."""
    if parameter == "rho":
        low, high = np.tanh(fit.over_rho.interval_of_rho(level))
    else:
        place = fit.params.index.get_loc(("ancillary", "log_sigma"))
        low, high = np.exp(fit.over_rho.interval_of_params(level)[place])
    return float(low), float(high)


def _needs_independent_rows(fit, what: str) -> None:
    if fit.clusters is not None:
        raise DataError(f"with clustered rows there is no {what}; use 'wald'")


def _needs_ml(fit, what: str, way_out: str = "fit with method='ml'") -> None:
    if fit.method != "ml":
        raise DataError(f"{what} needs maximum likelihood, but this fit is {fit.method}; {way_out}")
