"""The page on scikit-learn runs, in order, and says what its comments say."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parent.parent / "docs" / "sklearn.md"


def test_the_page_runs():
    scope: dict = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, "sklearn.md", "exec"), scope)
    assert scope["search"].best_params_["target_transform"] == "log"
    of_log, of_wage = (
        scope[name].predict_distribution(scope["X"]) for name in ("model", "on_logs")
    )
    np.testing.assert_allclose(of_wage.mean, np.exp(of_log.mean + of_log.std**2 / 2), rtol=1e-8)
    np.testing.assert_allclose(of_wage.quantile(0.5), np.exp(of_log.mean), rtol=1e-8)
