"""The verdict on a fit of `HeckmanRegressor`: what the instrument said, and what the prior added."""
from types import SimpleNamespace
from heckesel.correction.rho import NORMAL
def verdict_of(data, evidence, rho, prior):
    if evidence is None:
        return SimpleNamespace(verdict="nothing to correct", caveat=None)
    r, se = evidence.rho(NORMAL)
    return SimpleNamespace(verdict="mostly prior", caveat=None, evidence={"rho_hat": r, "rho_se": se})
