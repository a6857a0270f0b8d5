"""Measurements with error bars
============================

*My columns are measured, and I know how large the error of each value is. What do I do with that?*

Stars and quasars differ in colour, and faint objects are measured badly. Here 4,000 objects have
two colours, each with a standard deviation of its own, as a survey reports them.
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
colour = np.where(is_quasar[:, None], quasar, star) + 0.08 * rng.normal(size=(n, 2))
sigma = np.repeat(rng.choice([0.02, 0.1, 0.4], size=(n, 1)), 2, axis=1)  # bright, middle, faint
X = colour + sigma * rng.normal(size=(n, 2))
y = np.where(is_quasar, "quasar", "star")
train, test = slice(0, 2000), slice(2000, n)

# %%
# ``gaussian(sigma)`` takes the standard deviation of each cell. A row then goes both ways at a
# threshold, in parts, with the probability that its true value is on either side. Predictions by
# ``route="expected"`` do the same for new rows, with the standard deviations of those.
noise = pb.observation.gaussian(sigma[train])
model = pb.fit_adaboost(X[train], y[train], n_estimators=100, observation=noise)
plain = pb.fit_adaboost(X[train], y[train], n_estimators=100)

# %%
# A model that knows nothing of the errors is as sure of faint objects as of bright ones, and pays
# for it in log loss. The one that knows them is less sure of all, as most of what it learnt from
# was measured badly:
value = pb.decision_function(model, X[test], route="expected", sigma=sigma[test])
without = pb.decision_function(plain, X[test])
sign = np.where(y[test] == "star", 1, -1)  # labels are sorted: the second is the positive one


def log_loss(decision, sign):
    """Return the mean loss: decision values are half the log odds."""
    return np.logaddexp(0, -2 * sign * decision).mean()


print("                 wrong             log loss")
print("sigma   knowing it  without   knowing it  without")
for size in np.unique(sigma):
    rows = sigma[test][:, 0] == size
    wrong = [np.mean(np.sign(v[rows]) != sign[rows]) for v in (value, without)]
    loss = [log_loss(v[rows], sign[rows]) for v in (value, without)]
    print(f"{size:5.2f}  {wrong[0]:10.1%} {wrong[1]:8.1%} {loss[0]:12.2f} {loss[1]:8.2f}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
east, north = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1.2, 1.6, 120))
grid = np.column_stack([east.ravel(), north.ravel()])
for ax, size in zip(axes, (0.02, 0.4), strict=True):
    rows = np.flatnonzero(sigma[test][:, 0] == size)[:80]
    share = pb.decision_function(model, grid, route="expected", sigma=size)
    share = 1 / (1 + np.exp(2 * share))
    drawn = ax.contourf(
        east, north, share.reshape(east.shape), np.linspace(0, 1, 11), cmap="RdBu", alpha=0.7
    )
    for label, style in (("star", "C3*"), ("quasar", "C0o")):
        some = X[test][rows[y[test][rows] == label]]
        ax.errorbar(*some.T, xerr=size, yerr=size, fmt=style, ms=4, lw=0.4, label=label)
    ax.set(title=f"sigma = {size}", xlabel="colour 1", xlim=(-1.5, 2.5), ylim=(-1.2, 1.6))
axes[0].set_ylabel("colour 2")
axes[0].legend()
fig.colorbar(drawn, ax=axes, label="probability of a quasar")
plt.show()
