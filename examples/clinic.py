"""Run it: python examples/clinic.py. Written from docs/clinic.md."""

# %% [markdown]
# # Tutorial: tested patients
#
# A clinic orders a blood test for some of its patients. What is the mean level of the marker among
# *all* patients? The data are simulated, so the truth is known.

# %%
import numpy as np
import pandas as pd
import heckesel as hk

rng = np.random.default_rng(7)
n = 1500
clinician = rng.integers(30, size=n)              # patients see whoever is on duty
strictness = rng.normal(size=30)[clinician]       # clinicians differ in how often they order tests
age, symptoms = rng.uniform(20, 80, n), rng.normal(size=n)
worry = rng.normal(size=n)                        # known to the clinician, not recorded
marker = 2 + 0.02 * (age - 50) + 0.5 * symptoms + 0.6 * worry + 0.5 * rng.normal(size=n)
tested = 0.6 * symptoms + 0.7 * strictness + worry > 0.3

patients = pd.DataFrame({"age": age, "symptoms": symptoms, "clinician": clinician})
patients["marker"] = np.where(tested, marker, np.nan)
patients["marker"].mean(), marker.mean()          # 2.60, 1.99

# %% [markdown]
# The mean among tested patients is too high. A regression can adjust for age and symptoms, which are
# recorded. It cannot adjust for the clinician's worry, which is not.
#
# ## An instrument: how often the clinician orders tests
#
# The clinician on duty affects whether a patient is tested, but not the marker. The instrument is the
# share of tested patients among the clinician's *other* patients. If it included the patient's own
# test, it would depend on the decision that it is meant to explain.

# %%
done = patients["marker"].notna()
by_clinician = done.groupby(patients["clinician"])
patients["habit"] = (by_clinician.transform("sum") - done) / (by_clinician.transform("count") - 1)

X, y = patients[["age", "symptoms", "habit"]], patients["marker"]
model = hk.HeckmanRegressor(instruments=["habit"], method="ml").fit(X, y)
model.identification_.verdict                     # 'supported by the instrument'
model.rho_                                        # 0.76
model.predict(X).mean()                           # 1.97

# %% [markdown]
# The true mean is 1.99 and the true ρ is .77. The model also predicts the marker of untested
# patients:

# %%
untested = model.predict_distribution(X[~done], target="unselected")
untested.mean.mean(), marker[~done].mean()        # 1.53, 1.56
low, high = untested.interval(0.9).T
np.mean((low < marker[~done]) & (marker[~done] < high))           # 0.90

# %%
from sklearn.linear_model import LinearRegression

regression = LinearRegression().fit(X[done], y[done])
ax = hk.plots.effect(model, X, "symptoms", naive=regression)
line = ax.plot([-2, 2], [1, 3], color="black", ls=":", label="truth")
legend = ax.legend()

# %% [markdown]
# *The regression on tested patients is too high, most of all for patients with few symptoms.*
#
# ## Cluster-robust standard errors
#
# Patients of the same clinician share an instrument value, so their selection is not independent:

# %%
fit = hk.heckman("marker ~ age + symptoms", "~ age + symptoms + habit", patients,
                 groups="clinician")
print(fit.summary())
fit.params["outcome", "symptoms"], fit.se["outcome", "symptoms"]  # 0.502, 0.034

# %% [markdown]
# ## Without the instrument

# %%
blind = hk.heckman("marker ~ age + symptoms", "~ age + symptoms", patients)
blind.rho                                         # 0.50
blind.interval("rho", method="profile")           # -0.79, 0.77
curve = hk.sensitivity(blind)
curve.breakdown("mean", threshold=2.0)            # 0.61

# %% [markdown]
# The data reject no ρ between −.79 and .77, and a warning says so. The estimate of .50 is therefore
# not informative. The sensitivity analysis still gives a conclusion: the mean of all patients is
# above 2 unless ρ exceeds .61.
#
# ## Threats to validity
#
# - Sicker patients are sent to particular clinicians.
# - Clinicians treat patients before the sample is taken, so that they affect the marker directly.
# - There are only two or three clinicians, so their testing rates cannot be distinguished from chance.
