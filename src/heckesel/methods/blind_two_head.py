"""The joint model with rho fixed at zero, to separate the second head from the correlation."""

from functools import partial

from heckesel.methods import heckman_joint
from heckesel.networks.losses.normal import BLIND

fit_many = partial(heckman_joint.fit_many, loss=BLIND)
