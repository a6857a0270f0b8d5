"""A budget of comparisons
=======================

*A decision may cost twenty comparisons. Which model is the best for that?*

Which family is best depends on the data and on the budget. ``fit_within_budget`` tries several on
the training rows, and lets rows leave the best one early.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

X, y = pb.datasets.waveform(4000, rng=0)
X_train, y_train, X_test, y_test = X[:2000], y[:2000], X[2000:], y[2000:]
model = pb.fit_within_budget(X_train, y_train, mean_comparisons=20, rng=0)
cost = pb.prediction_cost(model, X_test)
print(pb.describe(model).splitlines()[0])
print(f"comparisons of a new row: {cost.mean():.1f} in the mean, {cost.max():.0f} at most")
print(f"wrong on new rows: {np.mean(pb.predict(model, X_test) != y_test):.1%}")

# %%
# What it found on the way is the curve of error against budget, estimated by cross-validation of
# the training rows, on the left: it says whether more comparisons would be worth their price. Rows
# differ in what they cost: the easy ones leave after the first comparisons, on the right.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
pb.plot.budget_curve(model, ax=axes[0])
right = pb.predict(model, X_test) == y_test
bins = np.arange(0, cost.max() + 2) - 0.5
axes[1].hist([cost[right], cost[~right]], bins, stacked=True, label=["right", "wrong"])
axes[1].set(xlabel="comparisons of a row", ylabel="new rows")
axes[1].legend()
plt.show()
