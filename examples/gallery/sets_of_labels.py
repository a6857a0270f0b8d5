"""Conformal prediction sets
=========================

*Can a model that is unsure return "4 or 9", with a guarantee that the true class is included?*

Yes: ``prediction_sets`` returns a set of classes for each row, which contains the true class with a
probability that you choose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import pboost as pb

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X, y = X[order], y[order]
train, cal, new = slice(0, 600), slice(600, 1100), slice(1100, None)
model = pb.fit_random_forest(X[train], y[train], n_estimators=100, rng=0)
print(f"test error: {np.mean(pb.predict(model, X[new]) != y[new]):.1%}")

# %%
# The guarantee requires rows that were not used for training. It does not depend on the quality of
# the model or of its probabilities.
for alpha in (0.05, 0.02, 0.01):
    sets = pb.prediction_sets(model, X[cal], y[cal], alpha=alpha, ties="random").predict(
        X[new], rng=0
    )
    covered = np.mean([label in item for label, item in zip(y[new].tolist(), sets, strict=True)])
    sizes = np.bincount([len(item) for item in sets], minlength=6)
    print(
        f"target {1 - alpha:.0%}, coverage {covered:.1%}; rows by size of the set (0, 1, ...):",
        sizes,
    )

# %%
# The guarantee holds on average over the choice of calibration rows. The largest of the last sets:
unsure = sorted(range(len(sets)), key=lambda k: -len(sets[k]))[:6]
fig, axes = plt.subplots(1, 6, figsize=(9, 2), layout="constrained")
for ax, k in zip(axes, unsure, strict=True):
    ax.imshow(X[new][k].reshape(8, 8), cmap="gray_r")
    ax.set_title(" or ".join(map(str, sets[k])), fontsize=8)
    ax.axis("off")
plt.show()
