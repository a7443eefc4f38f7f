"""Averaging over rho: its prior, its evidence on a grid, and the mixture of fits.

With normal errors and one sigma: `linear_joint` (optima at fixed rho), `rho_held_out` and
`rho_curve` (the evidence), `rho_mixture` (predictions). The files `form_...` do the same for other
error models. A family of error models has one file, such as `form_student`, and its forms are
listed in `fitted_points.FORMS`.
"""
