"""Oblique decision boundaries
===========================

*A tree needs many nodes for an oblique boundary. Can a node compare several features at once?*

Yes: ``affine`` uses random linear combinations of features, ``linear`` searches them at each node.
"""

import matplotlib.pyplot as plt
import numpy as np

import pboost as pb

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (3000, 2))
inside = (np.abs(X[:, 0] + X[:, 1]) < 0.6) & (X[:, 0] - X[:, 1] > -0.8)
y = np.where(inside ^ (rng.random(3000) < 0.05), "in", "out")
train, test = slice(0, 1000), slice(1000, None)

# %%
# Compare three weak learners:
trees = {
    "one feature": pb.fit_boosted_tree(X[train], y[train], max_nodes=15),
    "affine": pb.fit_boosted_tree(
        X[train], y[train], max_nodes=15, weak_learner=pb.weak.affine(n_directions=60)
    ),
    "linear": pb.fit_boosted_tree(X[train], y[train], max_nodes=15, weak_learner=pb.weak.linear()),
}
for name, tree in trees.items():
    error = np.mean(pb.predict(tree, X[test]) != np.where(inside[test], "in", "out"))
    print(f"{name:11s} {tree.n_nodes:2d} nodes, test error {error:5.1%}")
print()
print(pb.explain(trees["linear"], [0.1, 0.2]))

# %%
# The predicted probabilities:
east, north = np.meshgrid(np.linspace(-1, 1, 200), np.linspace(-1, 1, 200))
grid = np.column_stack([east.ravel(), north.ravel()])
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, (name, tree) in zip(axes, trees.items(), strict=True):
    probability = pb.predict_proba(tree, grid)[:, 1].reshape(east.shape)
    ax.imshow(probability, cmap="RdBu", vmin=0, vmax=1, origin="lower", extent=(-1, 1, -1, 1))
    ax.set(title=name)
plt.show()
