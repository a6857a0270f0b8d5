"""Many classes in one model
=========================

*I have ten classes. Do I need ten models?*

No: a node of a decision graph asks one question, and each exit has a vote for every class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import pboost as pb

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
X_train, y_train, X_test, y_test = (
    X[order[:1200]],
    y[order[:1200]],
    X[order[1200:]],
    y[order[1200:]],
)

# %%
fits = {
    "one graph": lambda: pb.fit_matryoshka(X_train, y_train, shape=(8, 25), join="all"),
    "a graph for each": lambda: pb.fit_one_vs_rest(
        pb.fit_matryoshka, X_train, y_train, shape=(8, 25), join="all"
    ),
    "a forest": lambda: pb.fit_random_forest(X_train, y_train, n_estimators=100, rng=0),
}
models = {name: fit() for name, fit in fits.items()}
for name, model in models.items():
    wrong = np.mean(pb.predict(model, X_test) != y_test)
    cost = pb.prediction_cost(model, X_test).mean()
    print(f"{name:17s} {wrong:5.1%} wrong, {cost:5.0f} comparisons for a row")

# %%
# What is mistaken for what, and which pixels are asked:
model = models["one graph"]
confused = np.zeros((10, 10))
np.add.at(confused, (y_test, pb.predict(model, X_test)), 1)
np.fill_diagonal(confused, 0)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
axes[0].imshow(confused, cmap="Reds")
axes[0].set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
axes[1].imshow(pb.feature_importances(model).reshape(8, 8), cmap="Blues")
axes[1].set_title("what the certificate owes to a pixel", fontsize=10)
axes[1].axis("off")
plt.show()
