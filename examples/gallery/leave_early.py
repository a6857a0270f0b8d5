"""Early exit
==========

*My model is accurate but too slow, and most rows are easy. Must each row use all trees?*

No. In an ensemble of trees, prediction can stop early for a row, once the sum of the trees so far
is large enough.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

X, y = pb.datasets.twonorm(8000, rng=0)
X_train, y_train, X_cal, X_test, y_test = X[:2000], y[:2000], X[2000:4000], X[4000:], y[4000:]
model = pb.fit_gradient_boosting(X_train, y_train, loss="log_loss", n_estimators=150, max_depth=2)

# %%
# ``early_exit`` finds the stopping thresholds for a mean number of comparisons. It needs rows that
# were not used for training, but no targets.
budgets = [5, 10, 20, 40, 80]
early = [pb.early_exit(model, X_cal, mean_comparisons=budget) for budget in budgets]
cost = [pb.prediction_cost(item, X_test).mean() for item in early]
error = [100 * np.mean(pb.predict(item, X_test) != y_test) for item in early]
for budget, c, e in zip(budgets, cost, error, strict=True):
    print(f"budget {budget:3d}: {c:6.1f} comparisons, test error {e:5.2f} %")
full_cost = pb.prediction_cost(model, X_test).mean()
full_error = 100 * np.mean(pb.predict(model, X_test) != y_test)
print(f"full model: {full_cost:5.1f} comparisons, test error {full_error:5.2f} %")

# %%
# Prediction can also stop without any loss, when the remaining trees cannot change the class:
proven = pb.prediction_cost(model, X_test, exit="proven").mean()
print(f"the class is certain after {proven:.1f} comparisons on average")

# %%
# Without early exits, the cost can only be reduced by truncating the model to its first trees:
fewer = [pb.models.truncate(model, n) for n in (2, 5, 10, 20, 40, 75)]
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(cost, error, "o-", label="early exit")
ax.plot(
    [pb.prediction_cost(item, X_test).mean() for item in fewer],
    [100 * np.mean(pb.predict(item, X_test) != y_test) for item in fewer],
    "s--",
    label="first trees only",
)
ax.set(xlabel="mean comparisons per row", ylabel="test error (%)", ylim=(0, None), xscale="log")
ax.legend()
plt.show()
