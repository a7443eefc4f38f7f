"""Every method x covariance x weight kind: autodiff, repeated rows and a bootstrap as witnesses."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch

import heckesel as hk

N = 600


def draw(seed=4):
    rng = np.random.default_rng(seed)
    x, z, u, v = rng.standard_normal((4, N))
    group = rng.integers(0, 40, N)
    shared = rng.standard_normal(40)[group]
    y = 1 + 0.8 * x + 0.6 * u + 0.7 * v + 0.3 * shared
    s = 0.2 + 0.5 * x + 0.9 * z + u > 0
    return pd.DataFrame(
        {
            "y": np.where(s, y, np.nan),
            "s": s.astype(float),
            "x": x,
            "z": z,
            "group": group,
            "frequency": rng.integers(1, 4, N),
            "probability": rng.uniform(0.3, 3.0, N),
        }
    )


FRAME = draw()
WEIGHTS = {"none": {}, "frequency": {"weights": "frequency"}} | {
    "probability": {"weights": "probability", "weight_kind": "probability"}
}
ALLOWED = [
    (kind, weights)
    for kind, weights in itertools.product(("information", "opg", "robust", "cluster"), WEIGHTS)
    if not (weights == "probability" and kind in ("information", "opg"))
]


def options(kind, weights):
    clusters = {"groups": "group"} if kind == "cluster" else {}
    return {"covariance": kind} | clusters | WEIGHTS[weights]


def sandwich(bread, scores, weight, kind, weights):
    """The definition, written out unit by unit (or cluster by cluster)."""
    if kind == "cluster":
        sums = [
            (weight[group == FRAME.group, None] * scores[group == FRAME.group]).sum(0)
            for group in np.unique(FRAME.group)
        ]
        meat = sum(np.outer(v, v) for v in sums)
        factor = len(sums) / (len(sums) - 1)
    else:
        power = 2 if weights == "probability" else 1
        meat = sum(f**power * np.outer(v, v) for f, v in zip(weight, scores, strict=True))
        units = weight.sum() if weights != "probability" else N
        factor = units / (units - 1)
    return factor * bread @ meat @ bread.T


def weight_of(weights):
    return np.ones(N) if weights == "none" else FRAME[weights].to_numpy(float)


def torch_columns():
    one = torch.ones(N, dtype=torch.float64)
    x, z = (torch.tensor(FRAME[c].to_numpy()) for c in "xz")
    y = torch.tensor(np.nan_to_num(FRAME.y.to_numpy()))
    s = torch.tensor(FRAME.s.to_numpy() == 1)
    return torch.stack([one, x], 1), torch.stack([one, x, z], 1), y, s


def textbook_units(parameters):
    """Log-likelihood of each unit in the user's own parameters, straight from the model."""
    x, w, y, s = torch_columns()
    rho, sigma = torch.tanh(parameters[5]), torch.exp(parameters[6])
    index = w @ parameters[2:5]
    e = (y - x @ parameters[:2]) / sigma
    normal = torch.distributions.Normal(0.0, 1.0)
    inside = torch.special.log_ndtr((index + rho * e) / torch.sqrt(1 - rho**2))
    return torch.where(
        s, normal.log_prob(e) - torch.log(sigma) + inside, torch.special.log_ndtr(-index)
    )


@pytest.mark.parametrize(("kind", "weights"), ALLOWED)
def test_ml_covariance_equals_autodiff(kind, weights):
    fit = hk.heckman("y ~ x", "~ x + z", FRAME, **options(kind, weights))
    weight = weight_of(weights)
    at = torch.tensor(fit.params.to_numpy())
    mass = torch.tensor(weight)
    hessian = torch.autograd.functional.hessian(lambda p: (mass * textbook_units(p)).sum(), at)
    scores = torch.autograd.functional.jacobian(textbook_units, at).numpy()
    assert np.abs((weight[:, None] * scores).sum(0)).max() < 1e-6  # it is an optimum
    bread = np.linalg.inv(-hessian.numpy())
    if kind == "information":
        expected = bread
    elif kind == "opg":
        expected = np.linalg.inv((scores * weight[:, None]).T @ scores)
    else:
        expected = sandwich(bread, scores, weight, kind, weights)
    np.testing.assert_allclose(fit.cov.to_numpy(), expected, rtol=1e-6, atol=1e-12)


def two_step_moments(parameters):
    """Probit scores and x* r of each unit, as functions of (beta, gamma, lambda)."""
    x, w, y, s = torch_columns()
    index = w @ parameters[2:5]
    normal = torch.distributions.Normal(0.0, 1.0)

    def mills(t):
        return torch.exp(normal.log_prob(t) - torch.special.log_ndtr(t))

    slope = torch.where(s, mills(index), -mills(-index))
    residual = y - x @ parameters[:2] - parameters[5] * mills(index)
    outcome = torch.where(s, residual, torch.zeros_like(residual))
    return torch.cat(
        [x * outcome[:, None], w * slope[:, None], (mills(index) * outcome)[:, None]], 1
    )


@pytest.mark.parametrize(("kind", "weights"), [a for a in ALLOWED if a[0] in ("robust", "cluster")])
def test_two_step_sandwich_equals_autodiff(kind, weights):
    fit = hk.heckman("y ~ x", "~ x + z", FRAME, method="two-step", **options(kind, weights))
    weight = weight_of(weights)
    mass = torch.tensor(weight)
    at = torch.tensor(fit.params.to_numpy())
    moments = two_step_moments(at).numpy()
    assert np.abs(weight @ moments).max() < 1e-7
    slope = torch.autograd.functional.jacobian(lambda p: mass @ two_step_moments(p), at).numpy()
    expected = sandwich(np.linalg.inv(-slope), moments, weight, kind, weights)
    np.testing.assert_allclose(fit.cov.to_numpy(), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.slow
def test_two_step_model_covariance_equals_its_sampling_covariance():
    """Under the model, over 400 fresh samples; blocks between the equations included."""
    fits = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x, z, u, v = rng.standard_normal((4, 400))
        y = np.where(0.2 + 0.5 * x + z + u > 0, 1 + x + 0.8 * u + 0.6 * v, np.nan)
        frame = pd.DataFrame({"x": x, "z": z, "y": y})
        fits.append(hk.heckman("y ~ x", "~ x + z", frame, method="two-step"))
    estimates = np.array([fit.params.to_numpy() for fit in fits])
    sampling = np.cov(estimates.T)
    claimed = np.mean([fit.cov.to_numpy() for fit in fits], axis=0)
    scale = np.sqrt(np.outer(np.diag(sampling), np.diag(sampling)))
    # an entry of a correlation-scaled covariance of 400 draws has Monte Carlo error
    # sqrt((1 + r^2)/400) < .071; four of those, and skewness of the estimates, fit in .3
    np.testing.assert_allclose(claimed / scale, sampling / scale, atol=0.3)
    beta, gamma = slice(0, 2), slice(2, 5)
    cross = (claimed / scale)[beta, gamma]
    assert np.abs(cross).max() > 0.2  # so that a wrong sign would be seen
    assert np.corrcoef(cross.ravel(), (sampling / scale)[beta, gamma].ravel())[0, 1] > 0.9


@pytest.mark.parametrize(
    ("weights", "clustered"), [("none", False), ("frequency", True), ("probability", False)]
)
def test_bootstrap_agrees_with_the_sandwich(weights, clustered):
    kind = "cluster" if clustered else "robust"
    fit = hk.heckman("y ~ x", "~ x + z", FRAME, method="two-step", **options(kind, weights))
    draws = fit.bootstrap(800, seed=2)
    ratio = draws.std()[fit.params.index] / fit.se
    # 800 draws fix a standard deviation to 2.5 %; the rest is that both are asymptotic
    assert ratio.between(0.8, 1.25).all(), ratio.to_string()
    assert draws["derived", "rho"].mean() == pytest.approx(fit.rho, abs=0.1)
    assert draws["derived", "sigma"].mean() == pytest.approx(fit.sigma, abs=0.1)


@pytest.mark.parametrize("kind", ["information", "robust", "cluster"])
def test_probit_equals_statsmodels(kind):
    fit = hk.probit("s ~ x + z", FRAME, **options(kind, "none"))
    design = sm.add_constant(FRAME[["x", "z"]].to_numpy())
    model = sm.Probit(FRAME.s.to_numpy(), design)
    if kind == "information":
        peer, factor = model.fit(disp=0, tol=1e-12), 1.0
    elif kind == "robust":
        peer, factor = model.fit(disp=0, tol=1e-12, cov_type="HC0"), np.sqrt(N / (N - 1))
    else:
        peer = model.fit(
            disp=0, tol=1e-12, cov_type="cluster", cov_kwds={"groups": FRAME.group.to_numpy()}
        )
        factor = np.sqrt((N - 3) / (N - 1))  # statsmodels adds (N-1)/(N-k) to G/(G-1)
    np.testing.assert_allclose(fit.params, peer.params, rtol=1e-8)
    np.testing.assert_allclose(fit.se, peer.bse * factor, rtol=1e-6)
    assert fit.loglik == pytest.approx(peer.llf, rel=1e-12)


def test_without_selection_it_is_least_squares():
    full = FRAME.assign(y=1 + FRAME.x + FRAME.z).drop(columns="s")
    full["y"] += np.random.default_rng(0).standard_normal(N)
    with pytest.warns(hk.IdentificationWarning, match="every unit was selected"):
        fit = hk.heckman("y ~ x", "~ x + z", full, covariance="robust")
    peer = sm.OLS(full.y, sm.add_constant(full[["x"]])).fit(cov_type="HC1")
    np.testing.assert_allclose(fit.params, peer.params, rtol=1e-10)
    np.testing.assert_allclose(fit.se, peer.bse, rtol=1e-10)
    assert fit.identification.verdict == "nothing to correct"
    assert "nothing to correct" in fit.summary()
    assert "Linear model, every unit selected" in fit.summary()
    with pytest.raises(hk.DataError, match="every unit was selected, so there is no rho"):
        fit.test_rho_zero()
    with pytest.raises(hk.DataError, match="every unit was selected"):
        fit.predict(full, target="unselected")
