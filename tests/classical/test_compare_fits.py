"""Fits side by side: every format holds the same numbers, whole names and nothing else."""

import re

import numpy as np
import pytest

import heckesel as hk
from heckesel.errors import DataError

WOMEN = hk.datasets.load_mroz().rename(columns={"kidslt6": "kids_<6 & under|6*"})
ODD = "`kids_<6 & under|6*`"
SELECT = f"~ nwifeinc + educ + exper + age + {ODD}"


@pytest.fixture(scope="module")
def fits():
    return [
        hk.heckman("lwage ~ educ + exper", SELECT, WOMEN),
        hk.heckman(f"lwage ~ educ + {ODD}", SELECT, WOMEN, method="two-step"),
        hk.probit(f"inlf ~ educ + {ODD}", WOMEN),
    ]


@pytest.fixture(scope="module")
def compared(fits):
    return hk.compare_fits(fits, names=["ML", "two_step", "<b>probit</b>"])


def test_the_text_has_every_estimate_with_its_standard_error(compared, fits):
    lines = [re.split(r"\s{2,}", line.strip()) for line in str(compared).splitlines()]
    for label in fits[0].params.index.union(fits[2].params.index):
        found = [fit for fit in fits if label in fit.params.index]
        assert [label[1], *(f"{fit.params[label]:.4f}" for fit in found)] in lines
        assert [f"({fit.se[label]:.4f})" for fit in found] in lines
    assert ["Units", "753", "753", "753"] in lines
    assert ["Selected", "428", "428"] in lines
    assert ["rho", f"{fits[0].rho:.4f}", f"{fits[1].rho:.4f}"] in lines
    verdicts = [fit.identification.verdict for fit in fits[:2]]
    assert verdicts == ["contradicted", "supported by the instrument"]
    assert ["Verdict", "contradicted", "supported by the"] in lines
    assert ["instrument"] in lines
    assert max(map(len, str(compared).splitlines())) == len(str(compared).splitlines()[0])


def test_latex_rows_have_one_entry_for_each_fit(compared):
    text = compared.to_latex(stars=True)
    assert text.startswith(r"\begin{tabular}{lccc}" + "\n" + r"\toprule")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    for row in rows:
        bare = re.sub(r"\\&", "", row)
        assert bare.count("&") == (0 if bare.startswith(r"\multicolumn") else 3), row
    assert r"kids\_\textless{}6 \& under\textbar{}6*" in text
    assert r"\textless{}b\textgreater{}probit" in text
    assert not re.search(r"\de-\d", text)
    assert "***" not in compared.to_latex()


def test_the_frame_holds_the_numbers(compared, fits):
    frame = compared.to_frame(0.9)
    for name, fit in zip(compared.names, fits, strict=True):
        own = frame[name].loc[list(fit.params.index)]
        np.testing.assert_array_equal(own["estimate"], fit.params)
        np.testing.assert_array_equal(own["p_value"], fit.pvalues)
        np.testing.assert_array_equal(own[["low", "high"]], fit.conf_int(0.9))
        assert frame[name].notna().any(axis=1).sum() == len(fit.params)
    assert list(compared.glance().index) == list(compared.names)


def test_estimators_are_compared_by_their_fits(fits):
    rows = WOMEN[["educ", "age"]], WOMEN["lwage"]
    model = hk.HeckmanRegressor(["age"], method="ml").fit(*rows)
    compared = hk.compare_fits([model, fits[0]])
    assert compared.names == ("(1)", "(2)")
    assert compared.fits[0] is model.result_


def test_compare_fits_refuses_wrong_arguments(fits):
    for wrong, said in (
        (fits[0], "needs a list of fits"),
        ([], "needs a list of fits"),
        ([hk.HeckmanRegressor(method="ml")], "HeckmanRegressor has no table of coefficients"),
        ([1], "int has no table"),
    ):
        with pytest.raises(DataError, match=said):
            hk.compare_fits(wrong)
    with pytest.raises(DataError, match="3 fits but 1 names"):
        hk.compare_fits(fits, names="a")
    with pytest.raises(DataError, match="'a' appears twice"):
        hk.compare_fits(fits[:2], names=["a", "a"])
