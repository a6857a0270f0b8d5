"""Rows that leave early
=====================

*My model is good and too slow. Most rows are easy: must they all go through the whole of it?*

No. In a sum of trees a row can leave after any tree, once the value so far is large enough for
what is still to come.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

X, y = pb.datasets.twonorm(8000, rng=0)
X_train, y_train, X_cal, X_test, y_test = X[:2000], y[:2000], X[2000:4000], X[4000:], y[4000:]
model = pb.fit_gradient_boosting(X_train, y_train, loss="log_loss", n_estimators=150, max_depth=2)

# %%
# Where rows leave is found on rows that the model was not fitted to. Labels are not needed for
# that, a budget is: the mean number of comparisons.
budgets = [5, 10, 20, 40, 80]
early = [pb.early_exit(model, X_cal, mean_comparisons=budget) for budget in budgets]
cost = [pb.prediction_cost(item, X_test).mean() for item in early]
error = [100 * np.mean(pb.predict(item, X_test) != y_test) for item in early]
for budget, c, e in zip(budgets, cost, error, strict=True):
    print(f"budget {budget:3d}: {c:6.1f} comparisons, {e:5.2f} % wrong")
whole = pb.prediction_cost(model, X_test).mean()
wrong = 100 * np.mean(pb.predict(model, X_test) != y_test)
print(f"whole model: {whole:5.1f} comparisons, {wrong:5.2f} % wrong")

# %%
# Without any loss, too: a row may leave when nothing that follows can change its label.
proven = pb.prediction_cost(model, X_test, exit="proven").mean()
print(f"labels are settled after {proven:.1f} comparisons")

# %%
# Beside it the first trees of the same model, the only way to spend less without exits:
fewer = [pb.models.truncate(model, n) for n in (2, 5, 10, 20, 40, 75)]
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(cost, error, "o-", label="rows leave early")
ax.plot(
    [pb.prediction_cost(item, X_test).mean() for item in fewer],
    [100 * np.mean(pb.predict(item, X_test) != y_test) for item in fewer],
    "s--",
    label="the first trees only",
)
ax.set(
    xlabel="comparisons of a new row, in the mean", ylabel="wrong (%)", ylim=(0, None), xscale="log"
)
ax.legend()
plt.show()
