"""Regression with outliers, and prediction intervals
==================================================

*My target has outliers, and I need a prediction interval. Which loss should I use?*

Gradient boosting with the Huber loss is robust to outliers. With the quantile loss it predicts the
limits of an interval.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 3000))
truth = np.sin(x) * x / 3
y = truth + (0.2 + 0.08 * x) * rng.normal(size=3000)
outlier = rng.random(3000) < 0.05
y[outlier] += rng.normal(0, 15, outlier.sum())
X = x[:, None]
train = rng.random(3000) < 0.5

# %%
# Compare three losses by the mean absolute difference from the true function:
for loss in ("squared_error", "absolute_error", pb.losses.Huber(0.5)):
    model = pb.fit_gradient_boosting(
        X[train], y[train], loss=loss, task="regression", n_estimators=100, max_depth=3
    )
    error = np.abs(pb.predict(model, X[~train]) - truth[~train]).mean()
    print(f"{model.loss!s:14} mean difference {error:.3f}")

# %%
# The quantiles 0.05 and 0.95 should enclose 90 % of the rows. Quantiles near 0 and 1 depend on the
# extreme rows of each leaf, so leaves must be large:
low, middle, high = (
    pb.fit_gradient_boosting(
        X[train],
        y[train],
        loss=pb.losses.Quantile(q),
        n_estimators=40,
        max_depth=3,
        min_samples_leaf=60,
    )
    for q in (0.05, 0.5, 0.95)
)
inside = (pb.predict(low, X[~train]) <= y[~train]) & (y[~train] <= pb.predict(high, X[~train]))
print(f"{inside.mean():.1%} of the test rows are between the quantiles")

# %%
# The predicted median and interval:
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(x[~train], y[~train], ".", ms=2, color="grey", label="test rows")
ax.fill_between(x, pb.predict(low, X), pb.predict(high, X), alpha=0.3, label="5 % to 95 %")
ax.plot(x, pb.predict(middle, X), label="median")
ax.plot(x, truth, "k--", lw=0.8, label="truth")
ax.set(ylim=(-7, 7))
ax.legend(ncols=2)
plt.show()
