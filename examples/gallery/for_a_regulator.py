"""A model for a regulator
=======================

*I must justify every decision and state how often the model is wrong. What can I show?*

Show the structure of the model, the explanation of a decision, a reproducible bound on the training
error, and an exact confidence bound on the error for new customers.
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
# A higher income must not be a reason for refusal. ``monotonic_cst`` enforces this constraint, and
# :func:`~pboost.inspection.is_monotone` verifies it for any model:
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
# Why was this customer refused? The contributions of the features add up to the decision value:
refused = customers[held_out][pb.predict(model, customers[held_out]) == "default"]
print(pb.explain(model, refused.iloc[[0]]))

# %%
# With 95 % confidence, the error on new rows is at most ``upper``. This is the exact
# Clopper-Pearson bound, computed from rows that were not used for training.
print(pb.error_bound(model, customers[held_out], y[held_out]))

# %%
# A boosted decision graph also has a certificate: an upper bound on the training error, which an
# auditor can recompute from the model file and the data.
graph = pb.fit_boosted_tree(customers[train], y[train], max_nodes=7)
with tempfile.TemporaryDirectory() as folder:
    pb.save(graph, Path(folder) / "model.npz")
    received = pb.load(Path(folder) / "model.npz")
error = np.mean(pb.predict(received, customers[train]) != y[train])
print(f"stored certificate:     {pb.certificate(graph):.4f}")
print(f"recomputed certificate: {pb.certificate(received, customers[train], y[train]):.4f}")
print(f"training error:         {error:.4f}")
print(pb.describe(received))

# %%
# Permutation importance shows which features matter for new customers:
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
importance = pb.inspection.permutation_importance(model, customers[held_out], y[held_out], rng=0)
increase = 100 * importance.reshape(4, -1)
ax.barh(customers.columns, increase.mean(axis=1), xerr=increase.std(axis=1))
ax.set(xlabel="increase of the error (percentage points)")
plt.show()
