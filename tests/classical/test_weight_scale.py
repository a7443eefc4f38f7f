"""Weights that do not count rows have no scale: nothing but the log-likelihood depends on it."""

import numpy as np
import pytest

import heckesel as hk
from reproduction.e0_gate import draw_linear

FRAME = draw_linear(400, rho=0.5, seed=1)
SHARE = np.random.default_rng(0).uniform(0.5, 2.0, len(FRAME))
SCALES = (1e-12, 1.0, 1000.5)


def _fits(**options):
    return [
        hk.heckman(
            "y ~ x",
            "~ x",
            FRAME.assign(share=scale * SHARE),
            weights="share",
            weight_kind="probability",
            **options,
        )
        for scale in SCALES
    ]


@pytest.mark.parametrize("method", ["ml", "two-step"])
def test_estimates_and_verdict_do_not_depend_on_the_scale_of_the_weights(method):
    tiny, one, large = _fits(method=method)
    for other in (tiny, large):
        np.testing.assert_allclose(other.params, one.params, rtol=1e-9)
        assert other.identification.verdict == one.identification.verdict
    if method == "ml":
        for key in ("rho_low", "rho_high"):
            found = [fit.identification.evidence[key] for fit in (tiny, one, large)]
            assert found == pytest.approx([found[1]] * 3, abs=1e-9)
        # as Stata has it, the log-likelihood is a sum over the weights that were given
        logliks = [
            fit.loglik / scale for fit, scale in zip((tiny, one, large), SCALES, strict=True)
        ]
        assert logliks == pytest.approx([one.loglik] * 3, rel=1e-9)
        assert one.modes[0].loglik == one.loglik
        assert one.loglik_independent < one.loglik
