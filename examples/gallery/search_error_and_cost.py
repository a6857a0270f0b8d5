"""A grid search over error and cost
=================================

*I search settings with scikit-learn. Can the search weigh what predictions cost?*

Estimators of ``pboost.sklearn`` have a second score, the mean number of comparisons, and
``refit=`` can choose by both.
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
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)  # its rng
search = GridSearchCV(
    GradientBoostingClassifier(),
    {"n_estimators": [3, 10, 30, 100], "max_depth": [1, 2, 4]},
    scoring={"score": "neg_log_loss", "cost": cost_scorer},
    refit=cheapest_within_standard_error(),
    cv=5,
)

# %%
# The cheapest setting that is as good as the best, up to one standard error; and the best within
# 20 comparisons:
results = search.fit(X, y).cv_results_
found = search.best_estimator_
print("as good as the best:", search.best_params_)
print(
    f"  {found.prediction_cost_:.0f} comparisons, {1 - found.score(X_test, y_test):.1%} of new "
    f"rows wrong"
)
print("within 20 comparisons:", results["params"][best_within_budget(20)(results)])

# %%
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for depth in (1, 2, 4):
    those = [k for k, p in enumerate(results["params"]) if p["max_depth"] == depth]
    ax.plot(
        -results["mean_test_cost"][those],
        -results["mean_test_score"][those],
        "o-",
        label=f"depth {depth}",
    )
ax.axvline(20, color="grey", lw=0.8)
ax.set(xscale="log", xlabel="comparisons for a row", ylabel="log loss (cross-validation)")
ax.legend()
plt.show()
