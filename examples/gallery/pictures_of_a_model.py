"""Pictures of a model
===================

*How does my model decide, and can I show it to people who do not read code?*

A small model can be drawn completely: its splits, the paths of the rows, and its decision
boundaries. Every plot function returns Matplotlib axes, to which you can add anything.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pboost as pb

rng = np.random.default_rng(0)
n = 1500
offers = pd.DataFrame(
    {
        "area": rng.gamma(9, 9, n).round(),
        "age": rng.integers(0, 90, n),
        "district": rng.choice(["harbour", "hill", "old town", "park", "station"], n),
    }
)
is_quiet = offers["district"].isin(["hill", "park"])
wanted = (offers["area"] > 70) & (is_quiet | (offers["age"] < 15)) | (offers["area"] > 120)
y = np.where(wanted ^ (rng.random(n) < 0.08), "sold", "waiting")
train, new = slice(0, 1000), slice(1000, n)

# %%
# A matryoshka has few nodes, and its paths join again, so every node is trained on many rows. The
# width of an edge shows the number of rows on it, the color the class for which it votes.
graph = pb.fit_matryoshka(offers[train], y[train], shape=(3, 3))
fig, ax = plt.subplots(figsize=(7, 10), layout="constrained")
pb.plot.graph(graph, offers[new], ax=ax)
plt.show()

# %%
# The decision regions for two features at a time. The third feature has its most frequent value,
# and dots are new rows.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
pb.plot.regions(graph, offers[new], y[new], features=("area", "age"), ax=axes[0])
pb.plot.regions(graph, offers[new], y[new], features=("area", "district"), ax=axes[1])
plt.show()

# %%
# Which districts are treated alike? Each row of the plot is a split, each column a district. Dark
# cells are the categories on one side of the split.
trees = pb.fit_gradient_boosting(
    offers[train], y[train], loss="log_loss", n_estimators=30, max_depth=2
)
fig, ax = plt.subplots(figsize=(4, 3.5), layout="constrained")
pb.plot.category_splits(trees, "district", max_nodes=8, ax=ax)
plt.show()

# %%
# Would more boosting rounds help? The training loss always decreases; the test error shows when to
# stop.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
pb.plot.training_curve(
    pb.fit_adaboost(offers[train], y[train], n_estimators=60), offers[new], y[new], ax=axes[0]
)
pruned = pb.fit_pruned_cart(offers[train], y[train], rng=0)
pb.plot.pruning(pruned, ax=axes[1])
plt.show()

# %%
# The pruned tree, with the majority class and its fraction in each leaf:
fig, ax = plt.subplots(figsize=(9, 7), layout="constrained")
pb.plot.tree(pruned, ax=ax)
plt.show()
