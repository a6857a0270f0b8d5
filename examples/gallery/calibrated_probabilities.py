"""Probabilities that can be believed
==================================

*The model says 99 %. Is it right 99 times out of a hundred?*

After many rounds of boosting it is not. ``calibrate`` finds out, on rows that the model was not
fitted to, what its values mean.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 5))
y = X[:, 0] - X[:, 1] + rng.normal(size=6000) > 0
train, cal, new = slice(0, 1500), slice(1500, 3000), slice(3000, None)
model = pb.fit_adaboost(X[train], y[train], n_estimators=500)

# %%
models = {
    "as it is": model,
    "Platt": pb.calibrate(model, X[cal], y[cal]),
    "isotonic": pb.calibrate(model, X[cal], y[cal], method="isotonic"),
}
share = {name: pb.predict_proba(m, X[new])[:, 1] for name, m in models.items()}
for name, p in share.items():
    sure = np.maximum(p, 1 - p) > 0.95
    right = np.mean((p > 0.5)[sure] == y[new][sure])
    print(f"{name:9s} is sure (95 %) of {sure.mean():4.0%} of the rows, {right:.1%} of these right")

# %%
# What was said and what came true, for ten groups of rows:
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="grey", lw=0.8)
for (name, p), style in zip(share.items(), ("s-", "o-", "^-"), strict=True):
    group = np.minimum((10 * p).astype(int), 9)
    some = [k for k in range(10) if (group == k).any()]
    said, true = ([of[group == k].mean() for k in some] for of in (p, y[new]))
    ax.plot(said, true, style, ms=4, label=name)
ax.set(xlabel="probability that was said", ylabel="share of rows of which it was true")
ax.legend()
plt.show()
