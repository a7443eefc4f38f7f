"""`HeckmanRegressor`: any learner for the selected, and rho from the instrument alone."""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from heckesel.classical.linear_model import LinearModel
from heckesel.classical.results import keep_result
from heckesel.classical.spline_profile import fit_profile
from heckesel.column_checks import check_errors, check_fit, check_selection, listing_problems
from heckesel.correction.corrected import Corrected
from heckesel.correction.law import fit_law
from heckesel.correction.prior import rho_prior
from heckesel.correction.rho import nothing_said, posterior, what_the_instrument_says
from heckesel.correction.selection import fit_selection
from heckesel.data import SelectionData, kind_of_weights, scaled_weight, seed_of
from heckesel.errors import DataError, IdentificationWarning, is_one_of, is_whole
from heckesel.estimators.fitted_model import SelectionRegressor
from heckesel.io import announce
from heckesel.learners.crossfit import draw_folds, fit_outcome, fold_count
from heckesel.learners.splines import FoldedRows, learn_basis
from heckesel.selection_model import check_model, fit_checked
from heckesel.tables.fit_input import read_table
from heckesel.tables.formula import with_constants
from heckesel.verdict.identify import Identification, conclude, verdict_of, warned

LEARNERS = ("auto", "linear", "splines", "boosting")
METHODS = ("auto", "profile", "two-step", "ml")
FEW_HIDDEN = 20_000  # unselected rows on which the difference of the readings is averaged
FEWEST_OF_A_CLASS = 10  # selected rows; with fewer, moments are far from normal
FEWEST = 4  # selected rows, so that two folds have two each


@dataclass(eq=False, repr=False)
class HeckmanRegressor(SelectionRegressor):
    """Predictions and intervals for everyone, when outcomes are seen only for the selected.

    Parameters
    ----------
    instruments : list of str or int, optional
        Columns of X that affect selection but not the outcome, by name or position.
    learner : {"auto", "linear", "splines", "boosting"} or estimator, default="auto"
        Learner of the outcome of the selected. ``"auto"`` is the built-in one with the lowest
        held-out loss. Any scikit-learn regressor can be given, also a pipeline or
        `heckesel.Networks`.
    method : {"auto", "profile", "two-step", "ml"}, default="auto"
        ``"auto"`` takes rho from the instrument and a prior calibrated on real data. ``"profile"``
        averages the likelihood over rho (splines). ``"two-step"`` and ``"ml"`` are the classical
        estimators with a linear outcome.
    rho_prior : float, "uniform" or callable, optional
        Prior of rho for ``"auto"`` and ``"profile"``: the scale of a t distribution with 3 degrees
        of freedom around 0, or a density. The default is calibrated on real outcomes with known
        truth.
    errors : {"normal", "t", "shape"}, default="normal"
        Error distribution of ``"profile"`` and ``"ml"``.
    scale : str, int or list of these, optional
        Columns on which sigma depends, for ``"ml"``.
    cv : int, splitter, iterable or "auto", default="auto"
        Folds of the learner and of selection, as in scikit-learn. ``"auto"`` is 10, 5 or 3 folds
        by the number of selected rows.
    missing : {"error", "indicator"}
        ``"indicator"`` imputes the mean of a missing x and adds a missing indicator.
    on_problem : {"error", "fix"}
        ``"fix"`` omits or transforms unusable columns; see `heckesel.column_report`.
    target_transform : {None, "log", "log1p", "sqrt", "yeo-johnson", "auto"} or (forward, inverse)
        Scale on which the model is fitted. Predictions are on the scale of y.
    unobserved : number or list of numbers, optional
        Values of y that stand for a missing outcome, such as 0 or 999.
    random_state : int, RandomState or None, default=0
        Seed of folds and learners.
    n_jobs : int, optional
        Workers for the folds of the learner, through joblib.
    verbose : bool, default=False
        Whether to print the stages of the fit.

    Attributes
    ----------
    identification_ : Identification
        The verdict: how far the correction can be trusted, why, and what to do.
    rho_ : float
        Posterior mean of the correlation of the errors, or its estimate for classical methods.
    rho_interval_ : tuple of float
        90 % interval of rho, for ``"auto"``.
    evidence_ : Evidence or None
        What the instrument says about rho, before the prior; None if every unit was selected.
    learner_ : str
        The learner that was used, for ``"auto"``.
    losses_ : dict
        Held-out squared error of each learner, as a share of the variance of y.
    result_ : HeckmanFit
        The linear fit with standard errors, for ``"two-step"`` and ``"ml"``.

    Notes
    -----
    With g(x) the mean of the selected, m(x) the mean of the selection error among them and
    theta = rho sigma, the population mean is g(x) - theta m(x), and that of the unselected is
    g(x) + theta (h0 - m(x)). Only the instrument informs rho. What it does not say, the prior says.

    Examples
    --------
    >>> import heckesel as hk
    >>> frame = hk.datasets.make_controlled(2000, rho=0.9, alpha=1.0, seed=0).frame
    >>> model = hk.HeckmanRegressor(instruments=["z"]).fit(frame[["x", "z"]], frame["y"])
    >>> model.identification_.verdict
    'supported by the instrument'
    >>> model.predict(frame[["x", "z"]]).shape
    (2000,)
    """

    instruments: Any = None
    _: KW_ONLY
    learner: Any = "auto"
    method: str = "auto"
    rho_prior: Any = None
    errors: str = "normal"
    scale: Any = None
    cv: Any = "auto"
    missing: str = "error"
    on_problem: str = "error"
    target_transform: Any = None
    unobserved: Any = None
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: bool = False

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Rounded, the codes of scikit-learn make constant columns, which linear models refuse."""
        return self.method not in ("two-step", "ml")

    @listing_problems
    def fit(self, X, y, *, selected=None, sample_weight=None, groups=None):
        """Fit the model.

        Parameters
        ----------
        X : frame or array-like of shape (n, columns)
            Columns of both equations, instruments included.
        y : array-like of shape (n,)
            The outcome, NaN where it was not observed.
        selected : array-like of shape (n,), optional
            0/1 indicator of selection.
        sample_weight : array-like of shape (n,), optional
            Row weights.
        groups : str or array-like of shape (n,), optional
            Groups of dependent rows, such as the visits of one patient: the name of a column of
            X, which is then not used as a regressor, or one label per row.

        Returns
        -------
        HeckmanRegressor
            The fitted estimator.

        Raises
        ------
        DataError
            If the data or the options cannot be used.
        """
        check_options(self)
        sides = {"selected": selected, "sample_weight": sample_weight, "groups": groups}
        if self.method != "auto":
            return self._fit_classical(X, y, sides)
        # as in linear models a category has no column for its first level, in x as in w
        data = read_table(self, X, y, **sides, check=check_enough, linear=True)
        learn(self, data)
        return self

    def _facts(self) -> list[tuple[str, str]]:
        return facts_of_learner(self)

    def _fit_classical(self, X, y, sides):
        """Linear two-step and maximum likelihood, and splines averaged over rho."""
        linear = self.method != "profile"
        data = read_table(self, X, y, **sides, check=check_fit, linear=linear)
        if not linear:
            self.identification_ = identify_data(data)
            prior = None if self.rho_prior is None else rho_prior(self.rho_prior).density
            named = () if self.scale is None else self.columns_.x_names_of(self.scale, "scale")
            scale = [data.x_names.index(name) for name in named]
            self.fitted_ = fit_profile(data, errors=self.errors, scale=scale, prior=prior)
            self.rho_ = float(
                np.average(
                    self.fitted_.info.rho, weights=[mode.weight for mode in self.fitted_.info.modes]
                )
            )
            return self

        weight_kind = kind_of_weights(None, data.weight)
        names = () if self.scale is None else self.columns_.x_names_of(self.scale, "scale")
        checked, design = with_constants(data, names)
        result = fit_checked(
            checked,
            design,
            method=self.method,
            errors=self.errors,
            clusters=data.groups,
            weight_kind=weight_kind,
        )
        keep_result(self, result)
        self.fitted_ = LinearModel(result)
        self.identification_ = result.identification
        return self


def learn(model, data: SelectionData) -> None:
    """The whole method: what `fit` does with the data of a table.

    model : has learner, cv, rho_prior, random_state and n_jobs; what was learned is set on it
    """
    prior, seed = rho_prior(model.rho_prior), seed_of(model.random_state)

    def say(stage: str) -> None:
        announce(stage, verbose=model.verbose)

    check_enough(data)
    kind = kind_of_weights(None, data.weight)
    data = replace(data, weight=scaled_weight(data.weight, kind))
    x, z, places = outcome_columns(data)
    s, groups = data.s, data.groups

    # Folds are drawn once. Groups stay together; the selected are spread evenly.
    folds = folds_of(model.cv, s, groups, seed)
    if not data.weight.all():
        data, folds = data.take(data.weight > 0), folds[data.weight > 0]
        x, z, places = outcome_columns(data)
        s, groups = data.s, data.groups

    # E[y | x, s = 1], out of fold
    say(f"learning the outcome of {s.sum():,} selected rows on {folds.max() + 1} folds")
    mine, y = FoldedRows(x[s], data.weight[s], folds[s]), data.y[s]
    outcome, held_out = fit_outcome(model.learner, mine, y, seed=seed, n_jobs=model.n_jobs)
    law = fit_law(mine, y, held_out)

    selection = rho = evidence = None
    if data.has_selection:
        # P(s = 1 | x, z), out of fold, and its averages over z
        say(f"learning the selection of {data.n:,} rows")
        selection, index, averages, columns = fit_selection(x, z, s, data.weight, folds, groups)
        some = np.flatnonzero(~s)[:: max(1, (~s).sum() // FEW_HIDDEN)]
        mean_p, mean_phi, _, _ = selection.averages(x[some])
        sd = law.local_sd(outcome.predict_members(x[some]).mean(axis=0))
        contrast = np.average(
            mean_phi / mean_p / np.maximum(1 - mean_p, 1e-12), weights=data.weight[some] * sd
        )
        # the likelihood of rho, and nothing else informs it
        say("estimating rho from the instrument")
        curved = len(y) > 10 * x.shape[1] + 100
        partial = learn_basis(mine.x, mine.weight, curved=curved)
        evidence = what_the_instrument_says(
            y - held_out,
            law.local_sd(held_out),
            index[s],
            averages[:, s],
            columns,
            partial(mine.x),
            mine.weight,
            None if groups is None else groups[s],
            selection.covariance,
            contrast,
            values=selection.distinct,
        )
        of_class = [np.count_nonzero(y == value) for value in law.values]
        if len(of_class) == 2 and min(of_class) < FEWEST_OF_A_CLASS:
            evidence = nothing_said(evidence.rms, evidence.curvature, contrast)
        rho = posterior(evidence, prior)
        model.rho_, model.rho_interval_ = rho.rho, rho.rho_interval()

    model.evidence_ = evidence
    model.fitted_ = Corrected(outcome, law, selection, rho, places)
    model.learner_, model.losses_ = outcome.name, outcome.losses
    model.identification_ = warned(verdict_of(data, evidence, rho, prior), data)


def identify_data(data: SelectionData, *, exact: bool = False) -> Identification:
    """The verdict for models without a prior on rho, by what the default method with splines learns
    from the instrument; exact : whether columns may explain the outcome or selection exactly"""
    if not (exact or data.s.all()):
        check_errors(data)
        check_selection(data)
    asked = SimpleNamespace(learner="splines", cv="auto", rho_prior=None, random_state=0)
    asked.n_jobs, asked.verbose = None, False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)
        learn(asked, data)
    found = asked.identification_
    if not data.has_selection:
        return warned(found, data)
    of_prior = ("prior", "normal_share", "posterior_rho", "posterior_rho_low", "posterior_rho_high")
    evidence = {name: value for name, value in found.evidence.items() if name not in of_prior}
    return warned(conclude(evidence), data)


def facts_of_learner(model) -> list[tuple[str, str]]:
    """The learner of a fitted model and its competitors, for the summary."""
    if not hasattr(model, "learner_"):
        return []
    losses = ", ".join(f"{name} {loss:.3f}" for name, loss in model.losses_.items())
    return [("learner", f"{model.learner_} (held-out loss: {losses})")]


def outcome_columns(data: SelectionData):
    """x (n, p) of everyone, z (n, d), and the places of the instruments among the columns of w."""
    places = np.array([j for j, name in enumerate(data.w_names) if name in data.instruments], int)
    others = [j for j in range(data.w.shape[1]) if j not in set(places)]
    return data.w[:, others], data.w[:, places], places


def folds_of(cv, s, groups, seed: int) -> np.ndarray:
    """(n,) folds; without groups each has its share of the selected.

    cv : as in scikit-learn; groups stay together only in folds that are drawn here
    """
    selected = int(s.sum())
    if not (is_one_of(cv, ("auto",)) or is_whole(cv)):
        splits = cv.split(np.zeros((len(s), 1)), s, groups) if hasattr(cv, "split") else cv
        folds = np.zeros(len(s), dtype=int)
        for k, (_, out) in enumerate(splits):
            folds[out] = k
        return folds
    count = min(fold_count(cv, selected), max(2, selected // 2))
    if groups is not None:
        return draw_folds(len(s), groups, min(count, groups.max() + 1), seed)
    folds = np.empty(len(s), dtype=int)
    folds[s] = draw_folds(selected, None, count, seed)
    folds[~s] = draw_folds(len(s) - selected, None, count, seed + 1)
    return folds


def check_enough(data: SelectionData) -> None:
    selected = int(data.s.sum())
    if selected < FEWEST:
        raise DataError(
            f"{selected} rows have an outcome; at least {FEWEST} are needed to learn from them"
        )


def check_options(model) -> None:
    if not is_one_of(model.method, METHODS):
        raise DataError(f"method must be one of {', '.join(METHODS)}, got {model.method!r}")
    if model.method in ("two-step", "ml") and hasattr(model, "errors"):
        check_model(model.method, model.errors, model.scale)
    if isinstance(model.learner, str) and model.learner not in LEARNERS:
        raise DataError(
            f"learner must be one of {', '.join(LEARNERS)} or a scikit-learn regressor, got "
            f"{model.learner!r}"
        )
    if not (isinstance(model.learner, str) or hasattr(model.learner, "fit")):
        raise DataError(f"learner must have a method fit, got {model.learner!r}")
    whole = is_whole(model.cv) and model.cv >= 2
    splits = hasattr(model.cv, "split") or hasattr(model.cv, "__iter__")
    if not (is_one_of(model.cv, ("auto",)) or whole or (splits and not isinstance(model.cv, str))):
        raise DataError(
            f"cv must be 'auto', a whole number from 2 on or a splitter, got {model.cv!r}"
        )
