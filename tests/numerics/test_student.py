"""The distribution function of Student's t."""

import numpy as np
from scipy.special import stdtr

from heckesel.numerics import student


def test_the_closed_form_for_four_degrees_of_freedom_is_the_distribution_function():
    t = np.concatenate([np.linspace(-40, 40, 801), [-1e8, 1e8]])
    np.testing.assert_allclose(student.cdf(t, 4.0), stdtr(4.0, t), rtol=1e-10)
    np.testing.assert_array_equal(student.cdf(t, 5.0), stdtr(5.0, t))
