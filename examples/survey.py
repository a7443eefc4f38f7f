"""Run it: python examples/survey.py. Written from docs/survey.md."""

# %% [markdown]
# # Tutorial: a survey with randomised incentives
#
# Thornton (2008) tested people in rural Malawi for HIV and offered them a random amount of money to collect
# the result at a centre, which was put up at a random place. A survey with incentives has the same design:
# money and distance move who answers, and nothing else. Suppose that age, schooling and the test result
# were known only for those who came. They are known for all, so that every step can be checked.
#
# The file is in the Python package `statspai` 1.40.2. This page reads it from the folder `HECKESEL_DATA`.

# %%
import os
from pathlib import Path

import pandas as pd
import heckesel as hk

table = pd.read_csv(Path(os.environ["HECKESEL_DATA"]) / "thornton" / "thornton_hiv.csv")
people = table.dropna(subset=["got", "any", "tinc", "distvct", "age", "male", "educ2004", "villnum"])
came = people["got"] == 1
float(came.mean())                                   # 0.71
people.groupby("any")["got"].mean().tolist()         # 0.34, 0.81

# %% [markdown]
# One in three came without an incentive, and four of five with one.
#
# ## Schooling of those who did not come

# %%
instruments = ["any", "tinc", "distvct"]
X = people[["age", "male", "rumphi", "balaka", *instruments]]
y = people["educ2004"].where(came)
village = people["villnum"].astype(str)

model = hk.HeckmanRegressor(instruments).fit(X, y, groups=village)
model.identification_.verdict                        # 'supported by the instrument'
naive = hk.HeckmanRegressor(instruments, rho_prior=1e-6).fit(X, y, groups=village)
both = [each.average(X[~came], "unselected", level=0.9) for each in (naive, model)]

float(y.mean())                                      # 3.3 years, of those who came
both[0][["mean", "low", "high"]]                     # about 4.2, 4.1, 4.3; adjusted for columns
both[1][["mean", "low", "high"]]                     # about 4.3, 3.9, 4.7; corrected
float(people["educ2004"][~came].mean())              # 4.4, the truth

# %% [markdown]
# Distance was drawn by village, so `groups=` names the villages. Columns explain most of the difference here.
# The correction adds little to the mean, as the instrument says that ρ is small; but the naive interval is too
# narrow by a factor of four and misses the truth, and the corrected one contains it. On real data this is
# what a correction is usually worth: an interval that is true.
#
# ## Is the incentive an instrument?
#
# It was randomised, so it is unrelated to who the people are. It must also not change the *answer*. A large
# incentive can: people may say what they think is wanted. Here outcomes were recorded before the offer.

# %%
tested = hk.test_instruments(X, y, instruments=instruments, groups=village)
print(tested)
placebo = hk.placebo(X, y, instruments=instruments)
ax = hk.plots.placebo(placebo)

# %% [markdown]
# The placebo hides each column that is known for everybody, and predicts its mean among those who did not
# come. The intervals of sex and of one region contain the truth; that of age just misses it, and that of the other
# region does by far. The places of the centres were drawn *within* regions, so that distance is no valid
# instrument for the region itself, only for outcomes given the region, which is therefore among the columns of X.
#
# ## Bounds, and what to plan

# %%
worst = hk.bounds(y, low=0, high=12)                 # schooling is between 0 and 12 years
low, high = worst
low, high                                            # 2.3, 5.9; the mean of all people

# %% [markdown]
# When you plan a survey, randomise part of the incentive or the number of calls, and log it. That costs little, and
# it is the only part of the correction that does not rest on somebody's judgement.
#
# Thornton, R. L. (2008). The demand for, and impact of, learning HIV status. *American Economic Review* 98,
# 1829–1863.
