"""Run it: python examples/simulation.py. Written from docs/simulation.md."""

# %% [markdown]
# # Tutorial: a simulation campaign
#
# Simulations are expensive, so an engineer ran only some of the designs. The engineer preferred
# promising designs, partly for reasons that were not recorded. A surrogate model fitted to the completed runs
# is too optimistic where few designs were run. The data below are simulated, so the truth is known.

# %%
import numpy as np
import pandas as pd
import heckesel as hk

rng = np.random.default_rng(3)
n = 1200
speed = rng.uniform(-3, 3, n)                     # the design parameter, centred
hunch = rng.normal(size=n)                        # the engineer's judgement, not recorded
response = np.sin(1.5 * speed) + speed / 2
outcome = response + 0.4 * hunch + 0.3 * rng.normal(size=n)       # the true rho is .8
lottery = rng.normal(size=n)                      # random priority points, logged
run = -0.6 * speed + lottery + hunch > 0

X = pd.DataFrame({"speed": speed, "lottery": lottery})
y = np.where(run, outcome, np.nan)
rare = speed > 1.5                                # region where one design in six was run
run[rare].mean()                                  # 0.17

def evaluate(model, columns):
    """Bias of the surrogate and coverage of its 90 % interval, where few designs were run."""
    error = (model.predict(X[columns]) - response)[rare].mean()
    low, high = model.predict_interval(X[columns])[rare].T
    return error, np.mean((low < outcome[rare]) & (outcome[rare] < high))

# %% [markdown]
# ## A surrogate that ignores selection

# %%
plain = hk.HeckmanRegressor(rho_prior=1e-6).fit(X[["speed"]], y)   # no correlation allowed
evaluate(plain, ["speed"])                        # about 0.4, 0.7

# %% [markdown]
# ## A lottery as the instrument
#
# The scheduler added random points to the priority of each design and logged them. They affect which
# designs were run, but not the physics.

# %%
model = hk.HeckmanRegressor(instruments=["lottery"]).fit(X, y)
model.identification_.verdict                     # 'supported by the instrument'
evaluate(model, ["speed", "lottery"])             # about 0.2, 0.9

# %% [markdown]
# The bias falls to less than half, with 50 runs in the region. It does not vanish, because the default prior
# expects a smaller correlation than the true one. When you plan a campaign, randomise
# part of the selection and log the random numbers. This costs a few runs.
#
# ## Without the lottery
#
# If the lottery was not logged, the data say nothing about ρ. The mean is not corrected, and the verdict
# says so:

# %%
open_ended = hk.HeckmanRegressor().fit(X[["speed"]], y)
open_ended.identification_.verdict                # 'mostly prior'
evaluate(open_ended, ["speed"])                   # about 0.4, 0.7

# %% [markdown]
# The engineer preferred promising designs, so ρ is positive. This can be stated as a prior, a density of ρ:

# %%
signed = hk.HeckmanRegressor(rho_prior=lambda rho: float(rho > 0)).fit(X[["speed"]], y)
signed.rho_interval_                              # about 0.05, 0.94
evaluate(signed, ["speed"])                       # about 0.1, 1.0

# %%
from matplotlib.figure import Figure

axes = Figure(figsize=(7, 4.4), layout="constrained").subplots(2, 2, sharex=True, sharey=True)
grid = pd.DataFrame({"speed": np.linspace(-3, 3, 81), "lottery": 0.0})
surrogates = {"ignores selection": plain, "with the lottery": model,
              "no instrument": open_ended, "no instrument, sign known": signed}
for ax, (title, each) in zip(axes.flat, surrogates.items()):
    known = grid if each is model else grid[["speed"]]
    low, high = each.predict_interval(known, level=0.9).T
    ax.fill_between(grid["speed"], low, high, color="#0072B2", alpha=0.15, lw=0)
    ax.plot(grid["speed"], each.predict(known), color="#0072B2")
    ax.plot(grid["speed"], np.sin(1.5 * grid["speed"]) + grid["speed"] / 2, color="black", ls=":")
    ax.set(title=title, xlim=(-3, 3))

# %% [markdown]
# The prior improves the prediction as much as the lottery did. It is an assumption, however, and not
# evidence from the data: if the engineer had avoided promising designs, the same prior would have
# increased the error.
