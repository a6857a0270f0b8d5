"""Values that cost money
======================

*Every examination of a patient costs money. Which are needed for this one?*

Those that a model within your budget reads on the way of this patient, and no others.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pboost as pb

rng = np.random.default_rng(0)
n = 4000
patients = pd.DataFrame(rng.normal(size=(n, 5)), columns=["age", "pulse", "blood", "urine", "scan"])
score = patients @ [0.6, 0.6, 1.0, 0.5, 0.8] + 0.5 * rng.normal(size=n)
y = np.where(score > 0.5, "ill", "well")
train, test = slice(0, 2000), slice(2000, n)
feature_costs = {"age": 0, "pulse": 1, "blood": 20, "urine": 8, "scan": 100}

# %%
# ``fit_within_budget`` takes a budget of money as it takes one of comparisons: the mean of what is
# paid. The models compare dear columns late, and let patients leave before whom they can tell
# without.
budgets = [10, 30, 60, 90]
models = pb.fit_within_budget(
    patients[train], y[train], mean_feature_cost=budgets, feature_costs=feature_costs, rng=0
)
paid = [pb.prediction_cost(m, patients[test], unit="feature_cost").mean() for m in models]
error = [100 * np.mean(pb.predict(m, patients[test]) != y[test]) for m in models]
for budget, p, e in zip(budgets, paid, error, strict=True):
    print(f"budget {budget}: {p:5.1f} paid for a new patient, {e:4.1f} % wrong")

# %%
# ``predict_with_acquisition`` takes functions in place of values, and calls each when its value is
# needed, once at most:
model = models[2]


def decided(patient, say=False):
    """Return the decision on a patient, who is examined only where that is needed."""

    def examine(what):
        if say:
            print(f"  {what}: {feature_costs[what]} paid")
        return patient[what]

    asked = {what: partial(examine, what) for what in feature_costs}
    return pb.acquisition.predict_with_acquisition(model, asked, feature_costs=feature_costs)


for k in (0, 4):
    found = decided(patients[test].iloc[k], say=True)
    print(f"{found.label}: {found.cost:g} paid, {found.reason}")

# %%
# What 300 patients paid:
amounts = [decided(patients[test].iloc[k]).cost for k in range(300)]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(paid, error, "o-")
axes[0].set(xlabel="paid for a patient, in the mean", ylabel="wrong (%)", ylim=(0, None))
values, counts = np.unique(amounts, return_counts=True)
axes[1].bar([f"{value:g}" for value in values], counts)
axes[1].set(xlabel="paid until the decision", ylabel="patients")
plt.show()
