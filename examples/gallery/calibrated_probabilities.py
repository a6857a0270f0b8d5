"""Calibrated probabilities
========================

*The model predicts a probability of 99 %. Is it right 99 times out of 100?*

After many boosting rounds it is not: the votes are overconfident, and the temperature of a chain
corrects them only approximately. ``calibrate`` corrects them with rows that were not used for
training.
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
    "uncalibrated": model,
    "Platt": pb.calibrate(model, X[cal], y[cal]),
    "isotonic": pb.calibrate(model, X[cal], y[cal], method="isotonic"),
}
probabilities = {name: pb.predict_proba(m, X[new])[:, 1] for name, m in models.items()}
for name, p in probabilities.items():
    confident = np.maximum(p, 1 - p) > 0.95
    accuracy = np.mean((p > 0.5)[confident] == y[new][confident])
    print(f"{name:12s} {confident.mean():4.0%} of rows above 95 %, {accuracy:.1%} of these correct")

# %%
# The reliability diagram compares predicted probabilities and class frequencies, in ten bins:
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="grey", lw=0.8)
for (name, p), style in zip(probabilities.items(), ("s-", "o-", "^-"), strict=True):
    bins = np.minimum((10 * p).astype(int), 9)
    used = [k for k in range(10) if (bins == k).any()]
    mean_p, frequency = ([values[bins == k].mean() for k in used] for values in (p, y[new]))
    ax.plot(mean_p, frequency, style, ms=4, label=name)
ax.set(xlabel="predicted probability", ylabel="fraction of positives")
ax.legend()
plt.show()
