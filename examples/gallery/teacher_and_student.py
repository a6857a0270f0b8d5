"""A small model that learns from a large one
==========================================

*The good model is too large for where it has to run. Can a small one take over what it knows?*

``distill`` lets the large model, or any function that returns probabilities, label synthetic rows,
as many as one likes, and fits a small sum of trees to them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

import pboost as pb

rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 5))
score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=5000)
y = np.where(score > 0, "yes", "no")
X_train, y_train, X_test, y_test = X[:700], y[:700], X[700:], y[700:]

# %%
# The teacher is the mean of two models that have hundreds of trees each. One is scikit-learn's.
forest = RandomForestClassifier(200, random_state=0).fit(X_train, y_train)
boosted = pb.fit_gradient_boosting(
    X_train,
    y_train,
    loss="log_loss",
    n_estimators=150,
    max_leaf_nodes=8,
    max_depth=None,
    subsample=0.6,
    rng=0,
)


def teacher(rows):
    """Return the probabilities of "no" and of "yes"."""
    return (forest.predict_proba(rows) + pb.predict_proba(boosted, rows)) / 2


of_teacher = 100 * np.mean(forest.classes_[teacher(X_test).argmax(axis=1)] != y_test)
print(f"teacher: {of_teacher:.1f} % wrong")

# %%
# Beside the students, models of their size that were fitted to the labels. As long as comparisons
# are few, students are better; with many, labels do as well.
budgets = [10, 20, 40, 80]
students = [
    pb.distill(teacher, X_train, classes=forest.classes_, mean_comparisons=c, rng=0)
    for c in budgets
]
alone = [
    pb.fit_gradient_boosting(
        X_train,
        y_train,
        loss="log_loss",
        learning_rate=0.3,
        n_estimators=c // 3,
        max_leaf_nodes=8,
        max_depth=None,
    )
    for c in budgets
]


def cost_and_error(model):
    """Return the comparisons and the percentage of errors on new rows."""
    wrong = np.mean(pb.predict(model, X_test) != y_test)
    return pb.prediction_cost(model, X_test).mean(), 100 * wrong


fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, style, models in (("fitted to the labels", "s--", alone), ("student", "o-", students)):
    found = [cost_and_error(model) for model in models]
    ax.plot(*np.transpose(found), style, label=name)
    print(
        name, *(f"{cost:.0f} comparisons, {error:.1f} % wrong" for cost, error in found), sep="\n  "
    )
ax.axhline(of_teacher, color="grey", lw=0.8, label="teacher")
ax.set(xlabel="comparisons for a row", ylabel="wrong on new rows (%)", ylim=(0, None))
ax.legend()
plt.show()
