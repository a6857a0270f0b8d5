"""A budget of comparisons
=======================

*A prediction may take at most 20 comparisons on average. Which model is the most accurate?*

The answer depends on the data and on the budget. ``fit_within_budget`` tries several kinds of
models on the training rows, and adds early exits to the best one.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

X, y = pb.datasets.waveform(4000, rng=0)
X_train, y_train, X_test, y_test = X[:2000], y[:2000], X[2000:], y[2000:]
model = pb.fit_within_budget(X_train, y_train, mean_comparisons=20, rng=0)
cost = pb.prediction_cost(model, X_test)
print(pb.describe(model).splitlines()[0])
print(f"comparisons per row: mean {cost.mean():.1f}, maximum {cost.max():.0f}")
print(f"test error: {np.mean(pb.predict(model, X_test) != y_test):.1%}")

# %%
# Left: the cross-validated error for each budget, which shows whether more comparisons would help.
# Right: the number of comparisons varies by row, because prediction stops early for easy rows.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
pb.plot.budget_curve(model, ax=axes[0])
correct = pb.predict(model, X_test) == y_test
bins = np.arange(0, cost.max() + 2) - 0.5
axes[1].hist([cost[correct], cost[~correct]], bins, stacked=True, label=["correct", "wrong"])
axes[1].set(xlabel="comparisons per row", ylabel="test rows")
axes[1].legend()
plt.show()
