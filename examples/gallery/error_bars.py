"""Measurements with error bars
============================

*My features are measured, and each value has a known error. How can the model use the errors?*

Stars and quasars have different colors, but faint objects are measured badly. Here 4,000 objects
have two colors, each with its own standard deviation, as in a sky survey.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
n = 4000
is_quasar = rng.random(n) < 0.5
angle = rng.uniform(0, np.pi, n)
star = np.column_stack([np.cos(angle), np.sin(angle)])
quasar = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
color = np.where(is_quasar[:, None], quasar, star) + 0.08 * rng.normal(size=(n, 2))
sigma = np.repeat(rng.choice([0.02, 0.1, 0.4], size=(n, 1)), 2, axis=1)  # bright, middle, faint
X = color + sigma * rng.normal(size=(n, 2))
y = np.where(is_quasar, "quasar", "star")
train, test = slice(0, 2000), slice(2000, n)

# %%
# Pass the standard deviation of each cell to ``gaussian``. In training, each row is divided between
# both sides of a threshold, with the probabilities that its true value is on either side. With
# ``route="expected"``, predictions do the same with the standard deviations of the new rows.
noise = pb.observation.gaussian(sigma[train])
model = pb.fit_adaboost(X[train], y[train], n_estimators=100, observation=noise)
plain = pb.fit_adaboost(X[train], y[train], n_estimators=100)

# %%
# A model that ignores the errors is as confident for faint objects as for bright ones, which
# increases its log loss. The model that uses the errors is less confident for all objects, because
# most of its training values are inaccurate:
value = pb.decision_function(model, X[test], route="expected", sigma=sigma[test])
plain_value = pb.decision_function(plain, X[test])
sign = np.where(y[test] == "star", 1, -1)  # "star" is the second class in sorted order


def log_loss(decision, sign):
    """Return the mean log loss, where decision values are half the log odds."""
    return np.logaddexp(0, -2 * sign * decision).mean()


print("            test error           log loss")
print("sigma   gaussian   plain    gaussian   plain")
for size in np.unique(sigma):
    rows = sigma[test][:, 0] == size
    error = [np.mean(np.sign(v[rows]) != sign[rows]) for v in (value, plain_value)]
    loss = [log_loss(v[rows], sign[rows]) for v in (value, plain_value)]
    print(f"{size:5.2f}  {error[0]:9.1%} {error[1]:7.1%} {loss[0]:11.2f} {loss[1]:7.2f}")

# %%
# Predicted probabilities and some test objects, for the smallest and the largest error:
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
east, north = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1.2, 1.6, 120))
grid = np.column_stack([east.ravel(), north.ravel()])
for ax, size in zip(axes, (0.02, 0.4), strict=True):
    rows = np.flatnonzero(sigma[test][:, 0] == size)[:80]
    decision = pb.decision_function(model, grid, route="expected", sigma=size)
    probability = 1 / (1 + np.exp(2 * decision))
    contours = ax.contourf(
        east, north, probability.reshape(east.shape), np.linspace(0, 1, 11), cmap="RdBu", alpha=0.7
    )
    for label, style in (("star", "C3*"), ("quasar", "C0o")):
        points = X[test][rows[y[test][rows] == label]]
        ax.errorbar(*points.T, xerr=size, yerr=size, fmt=style, ms=4, lw=0.4, label=label)
    ax.set(title=f"sigma = {size}", xlabel="color 1", xlim=(-1.5, 2.5), ylim=(-1.2, 1.6))
axes[0].set_ylabel("color 2")
axes[0].legend()
fig.colorbar(contours, ax=axes, label="probability of a quasar")
plt.show()
