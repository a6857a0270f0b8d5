"""Equations in the leaves of a tree
=================================

*I want an interpretable equation, but it differs between regions. Is there a model for that?*

A probit tree is a small tree with a linear equation for the probability in each leaf.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pboost as pb

rng = np.random.default_rng(0)
n = 3000
plants = pd.DataFrame(
    {
        "height": rng.uniform(0, 3000, n),
        "rain": rng.normal(800, 200, n),
        "warmth": rng.normal(10, 4, n),
    }
)
low = plants["height"] < 1500
need = np.where(low, (plants["rain"] - 700) / 200, (plants["warmth"] - 13) / 4)
y = np.where(need + 0.4 * rng.normal(size=n) > 0, "yes", "no")
train, test = slice(0, 600), slice(600, n)

# %%
# Predict where a plant grows. In the lowlands it depends on rain, in the mountains on warmth:
tree = pb.fit_probit_tree(plants[train], y[train], max_depth=1, min_samples_leaf=100, max_iter=20)
print(pb.describe(tree))

# %%
# Compare with other models:
models = {
    "probit tree": tree,
    "one equation": pb.fit_probitboost(plants[train], y[train], max_iter=20),
    "pruned tree": pb.fit_pruned_cart(plants[train], y[train], rng=0),
    "random forest": pb.fit_random_forest(plants[train], y[train], n_estimators=100, rng=0),
}
for name, model in models.items():
    print(f"{name:13s} test error {np.mean(pb.predict(model, plants[test]) != y[test]):.1%}")

# %%
# Coefficients per standard deviation of the feature: bars show the mean, dots the leaves.
fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
pb.plot.coefficients(tree, plants[train], ax=ax)
plt.show()
