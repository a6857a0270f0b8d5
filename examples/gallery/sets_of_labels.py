"""Several labels where one is not sure
====================================

*May I say "it is 4 or 9" where the model is unsure, and promise that the truth is among them?*

Yes: ``prediction_sets`` gives each row as many labels as it takes for the true one to be among them
with a probability that you choose.
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
print(f"wrong on new rows: {np.mean(pb.predict(model, X[new]) != y[new]):.1%}")

# %%
# The promise rests on rows that the model has not seen, and on nothing else: neither on the model
# nor on its probabilities.
for alpha in (0.05, 0.02, 0.01):
    sets = pb.prediction_sets(model, X[cal], y[cal], alpha=alpha, ties="random").predict(
        X[new], rng=0
    )
    among = np.mean([label in item for label, item in zip(y[new].tolist(), sets, strict=True)])
    sizes = np.bincount([len(item) for item in sets], minlength=6)
    print(f"promised {1 - alpha:.0%}, measured {among:.1%}; rows with 0, 1, 2, ... labels:", sizes)

# %%
# The promise is one in the mean over draws of the calibration rows. The most doubtful of the last:
unsure = sorted(range(len(sets)), key=lambda k: -len(sets[k]))[:6]
fig, axes = plt.subplots(1, 6, figsize=(9, 2), layout="constrained")
for ax, k in zip(axes, unsure, strict=True):
    ax.imshow(X[new][k].reshape(8, 8), cmap="gray_r")
    ax.set_title(" or ".join(map(str, sets[k])), fontsize=8)
    ax.axis("off")
plt.show()
