"""Pictures of a model
===================

*What does my model do, and can I show it to people who do not read code?*

A small model can be drawn whole: what it asks, which way most rows go, and where it changes its
mind. Every function returns axes of matplotlib, on which anything else can be drawn.
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
# A matryoshka asks few questions and joins its exits again, so that every node has seen many
# rows. Edges are as wide as many rows take them, and have the colour of the label for
# which they vote.
graph = pb.fit_matryoshka(offers[train], y[train], shape=(3, 3))
fig, ax = plt.subplots(figsize=(7, 10), layout="constrained")
pb.plot.graph(graph, offers[new], ax=ax)
plt.show()

# %%
# Where does it change its mind? Two columns are drawn, the third is held where most rows are;
# dots are new rows.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
pb.plot.regions(graph, offers[new], y[new], features=("area", "age"), ax=axes[0])
pb.plot.regions(graph, offers[new], y[new], features=("area", "district"), ax=axes[1])
plt.show()

# %%
# Which districts go together? A row for each node that asks for a set of them, a column for each
# district, dark where it is in the set.
trees = pb.fit_gradient_boosting(
    offers[train], y[train], loss="log_loss", n_estimators=30, max_depth=2
)
fig, ax = plt.subplots(figsize=(4, 3.5), layout="constrained")
pb.plot.category_splits(trees, "district", max_nodes=8, ax=ax)
plt.show()

# %%
# Are more steps of use? The loss on the training rows always falls; the error on new rows says
# when it is enough.
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
pb.plot.training_curve(
    pb.fit_adaboost(offers[train], y[train], n_estimators=60), offers[new], y[new], ax=axes[0]
)
pruned = pb.fit_pruned_cart(offers[train], y[train], rng=0)
pb.plot.pruning(pruned, ax=axes[1])
plt.show()

# %%
# The tree that was chosen, with the label of most training rows in each leaf and their share:
fig, ax = plt.subplots(figsize=(9, 7), layout="constrained")
pb.plot.tree(pruned, ax=ax)
plt.show()
