"""Averaging over rho: its prior, its evidence on a grid, and the mixture of fits.

With normal errors and one sigma: `linear_joint` (optima at fixed rho), `rho_held_out` and
`rho_curve` (the evidence), `rho_mixture` (predictions). The files `form_...` are the same steps for
other error models: a family has its file, such as `form_student`, and a line of FORMS.
"""
