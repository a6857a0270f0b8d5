"""A model for a regulator
=======================

*I have to defend every decision, and say how often the model is wrong. What can I show?*

What the model asks, why it answered as it did, a bound on its training error that anyone can
compute again, and a bound on its error on new customers, which is as exact as statistics allow.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pboost as pb

rng = np.random.default_rng(1)
n = 4000
customers = pd.DataFrame(
    {
        "income": rng.lognormal(10.3, 0.5, n).round(-2),
        "debts": rng.exponential(8000, n).round(-2),
        "years_employed": rng.integers(0, 30, n),
        "late_payments": rng.poisson(0.7, n),
    }
)
score = np.log(customers["income"] / 30000) - customers["debts"] / 15000
score += 0.03 * customers["years_employed"] - 0.6 * customers["late_payments"] + 0.8
y = np.where(score + 0.4 * rng.logistic(size=n) > 0, "repaid", "default")
train, held_out = slice(0, 2000), slice(2000, n)

# %%
# Who earns more must not be refused for it. ``monotonic_cst`` promises that of the model, and
# :func:`~pboost.inspection.is_monotone` checks the promise for a given model, whoever made it:
model = pb.fit_gradient_boosting(
    customers[train],
    y[train],
    loss="log_loss",
    n_estimators=60,
    max_depth=2,
    monotonic_cst={"income": 1, "debts": -1, "years_employed": 1, "late_payments": -1},
)
print({column: pb.inspection.is_monotone(model, column) for column in customers.columns})

# %%
# Why was this customer refused? The contributions of the columns add up to the decision value:
refused = customers[held_out][pb.predict(model, customers[held_out]) == "default"]
print(pb.explain(model, refused.iloc[[0]]))

# %%
# What is certain: from rows that the model has not seen, its error on new ones is at most
# ``upper``, with a probability of 95 % over the draw of those rows. The bound of Clopper and
# Pearson is exact.
print(pb.error_bound(model, customers[held_out], y[held_out]))

# %%
# A boosted decision graph has, in addition, a certificate: a bound on its training error which the
# auditor computes again from the file and the data.
graph = pb.fit_boosted_tree(customers[train], y[train], max_nodes=7)
with tempfile.TemporaryDirectory() as folder:
    pb.save(graph, Path(folder) / "model.npz")
    received = pb.load(Path(folder) / "model.npz")
wrong = np.mean(pb.predict(received, customers[train]) != y[train])
print(f"stated:    at most {pb.certificate(graph):.4f}")
print(f"recounted: at most {pb.certificate(received, customers[train], y[train]):.4f}")
print(f"measured:  {wrong:.4f}")
print(pb.describe(received))

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
importance = pb.inspection.permutation_importance(model, customers[held_out], y[held_out], rng=0)
rise = 100 * importance.reshape(4, -1)
ax.barh(customers.columns, rise.mean(axis=1), xerr=rise.std(axis=1))
ax.set(xlabel="more errors when the column is shuffled (points of a hundred)")
plt.show()
