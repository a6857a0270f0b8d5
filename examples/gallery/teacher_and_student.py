"""A small model that learns from a large one
==========================================

*My best model is too large to deploy. Can a small model learn from it?*

``distill`` generates synthetic rows, labels them with the large model, and fits a small ensemble of
trees to them. The large model can be any function that returns probabilities.
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
# The teacher averages two models with hundreds of trees each, one of them from scikit-learn:
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
    """Return the probabilities of "no" and "yes"."""
    return (forest.predict_proba(rows) + pb.predict_proba(boosted, rows)) / 2


teacher_error = 100 * np.mean(forest.classes_[teacher(X_test).argmax(axis=1)] != y_test)
print(f"teacher: test error {teacher_error:.1f} %")

# %%
# Compare the students with models of the same size that were fitted to the true classes. Students
# are better if the budget is small; with larger budgets there is no difference.
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
    """Return the mean comparisons per row and the test error in percent."""
    error = np.mean(pb.predict(model, X_test) != y_test)
    return pb.prediction_cost(model, X_test).mean(), 100 * error


fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, style, models in (("fitted to true classes", "s--", alone), ("student", "o-", students)):
    points = [cost_and_error(model) for model in models]
    ax.plot(*np.transpose(points), style, label=name)
    lines = (f"{cost:.0f} comparisons, test error {error:.1f} %" for cost, error in points)
    print(name, *lines, sep="\n  ")
ax.axhline(teacher_error, color="grey", lw=0.8, label="teacher")
ax.set(xlabel="comparisons per row", ylabel="test error (%)", ylim=(0, None))
ax.legend()
plt.show()
