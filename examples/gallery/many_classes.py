"""Many classes in one model
=========================

*I have ten classes. Do I need ten models?*

No: each exit of a decision graph has one vote per class, so one graph separates all classes.
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
    "one graph per class": lambda: pb.fit_one_vs_rest(
        pb.fit_matryoshka, X_train, y_train, shape=(8, 25), join="all"
    ),
    "random forest": lambda: pb.fit_random_forest(X_train, y_train, n_estimators=100, rng=0),
}
models = {name: fit() for name, fit in fits.items()}
for name, model in models.items():
    error = np.mean(pb.predict(model, X_test) != y_test)
    cost = pb.prediction_cost(model, X_test).mean()
    print(f"{name:19s} test error {error:5.1%}, {cost:5.0f} comparisons per row")

# %%
# Left: which digits are confused. Right: which pixels are important.
model = models["one graph"]
confused = np.zeros((10, 10))
np.add.at(confused, (y_test, pb.predict(model, X_test)), 1)
np.fill_diagonal(confused, 0)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
axes[0].imshow(confused, cmap="Reds")
axes[0].set(xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
axes[1].imshow(pb.feature_importances(model).reshape(8, 8), cmap="Blues")
axes[1].set_title("feature importance of the pixels", fontsize=10)
axes[1].axis("off")
plt.show()
