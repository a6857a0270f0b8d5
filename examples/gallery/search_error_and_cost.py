"""A grid search over error and cost
=================================

*I tune hyperparameters with scikit-learn. Can the search take the prediction cost into account?*

Yes: ``cost_scorer`` scores the mean number of comparisons per row, and pboost provides ``refit``
functions that select by error and cost.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split

from pboost.sklearn import (
    GradientBoostingClassifier,
    best_within_budget,
    cheapest_within_standard_error,
    cost_scorer,
)

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)  # sets its rng
search = GridSearchCV(
    GradientBoostingClassifier(),
    {"n_estimators": [3, 10, 30, 100], "max_depth": [1, 2, 4]},
    scoring={"score": "neg_log_loss", "cost": cost_scorer},
    refit=cheapest_within_standard_error(),
    cv=5,
)

# %%
# Select the cheapest candidate within one standard error of the best, and the best candidate with
# at most 20 comparisons:
results = search.fit(X, y).cv_results_
best = search.best_estimator_
print("within one standard error:", search.best_params_)
print(f"  {best.prediction_cost_:.0f} comparisons, test error {1 - best.score(X_test, y_test):.1%}")
print("within 20 comparisons:", results["params"][best_within_budget(20)(results)])

# %%
# Log loss and cost of all candidates:
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for depth in (1, 2, 4):
    indices = [k for k, p in enumerate(results["params"]) if p["max_depth"] == depth]
    ax.plot(
        -results["mean_test_cost"][indices],
        -results["mean_test_score"][indices],
        "o-",
        label=f"depth {depth}",
    )
ax.axvline(20, color="grey", lw=0.8)
ax.set(xscale="log", xlabel="comparisons per row", ylabel="log loss (cross-validation)")
ax.legend()
plt.show()
