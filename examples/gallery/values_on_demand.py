"""Features that cost money
========================

*Every examination of a patient costs money. Which ones does this patient need?*

Only the features on the patient's path through the model, which is fitted to your budget.
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
# ``fit_within_budget`` also supports a budget of feature costs: the mean cost per patient. Its
# models compare expensive features late, and stop early for patients who are easy to classify.
budgets = [10, 30, 60, 90]
models = pb.fit_within_budget(
    patients[train], y[train], mean_feature_cost=budgets, feature_costs=feature_costs, rng=0
)
costs = [pb.prediction_cost(m, patients[test], unit="feature_cost").mean() for m in models]
error = [100 * np.mean(pb.predict(m, patients[test]) != y[test]) for m in models]
for budget, c, e in zip(budgets, costs, error, strict=True):
    print(f"budget {budget}: mean cost {c:5.1f}, test error {e:4.1f} %")

# %%
# ``predict_with_acquisition`` accepts functions instead of values. It calls each function at most
# once, when its value is needed:
model = models[2]


def diagnose(patient, verbose=False):
    """Predict the class of a patient, with as few examinations as possible."""

    def examine(name):
        if verbose:
            print(f"  {name}: cost {feature_costs[name]}")
        return patient[name]

    values = {name: partial(examine, name) for name in feature_costs}
    return pb.acquisition.predict_with_acquisition(model, values, feature_costs=feature_costs)


for k in (0, 4):
    result = diagnose(patients[test].iloc[k], verbose=True)
    print(f"{result.label}: cost {result.cost:g}, {result.reason}")

# %%
# The costs for 300 patients:
amounts = [diagnose(patients[test].iloc[k]).cost for k in range(300)]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(costs, error, "o-")
axes[0].set(xlabel="mean cost per patient", ylabel="test error (%)", ylim=(0, None))
values, counts = np.unique(amounts, return_counts=True)
axes[1].bar([f"{value:g}" for value in values], counts)
axes[1].set(xlabel="cost of the decision", ylabel="patients")
plt.show()
