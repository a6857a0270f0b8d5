"""How many comparisons is accuracy worth? A grid search over error and cost at once.

Run as ``python grid_of_costs.py``; it takes half a minute and needs scikit-learn. A search over
sums of trees has two scores, log loss and comparisons per row. Printed are the settings that no
other beats in both; the one of least log loss; the cheapest within one standard error of that; the
best within 20 comparisons; and, for the same budget, what `BudgetClassifier` chooses by itself.
Each is then measured on rows that no search has seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split

from pboost.sklearn import (
    BudgetClassifier,
    GradientBoostingClassifier,
    best_within_budget,
    cheapest_within_standard_error,
    cost_scorer,
)

SETS = {"breast cancer": load_breast_cancer, "digits": load_digits}
GRID = {"n_estimators": [10, 30, 100], "max_depth": [1, 3, 5], "learning_rate": [0.1, 0.3]}
QUICK_GRID = {"n_estimators": [3, 10], "max_depth": [1, 2], "learning_rate": [0.3]}
SCORES = {"score": "neg_log_loss", "cost": cost_scorer}
BUDGET, FOLDS = 20.0, 3


def front(results: Mapping[str, Any]) -> list[int]:
    """Return the settings than which no other is both better and cheaper, the cheapest first."""
    score, cost = results["mean_test_score"], -results["mean_test_cost"]
    kept, best = [], -np.inf
    for setting in np.lexsort((-score, cost)).tolist():
        if score[setting] > best:
            kept.append(setting)
            best = score[setting]
    return kept


def measured(name: str, fitted: Any, X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return a line with error, log loss and comparisons of an estimator on new rows."""
    error = 100 * (1 - fitted.score(X, y))
    loss = log_loss(y, fitted.predict_proba(X))
    return f"  {name:<34} {error:6.2f} %  {loss:6.3f}  {-cost_scorer(fitted, X):7.1f}"


def compare(name: str, data: Any, grid: Mapping[str, Any]) -> None:
    """Search, and print the front and what is chosen."""
    X, y = data(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    estimator = GradientBoostingClassifier(
        multi_strategy="multi_output_tree" if len(np.unique(y)) > 2 else "one_output_per_tree"
    )
    search = GridSearchCV(estimator, grid, scoring=SCORES, refit="score", cv=FOLDS).fit(X, y)
    results = search.cv_results_
    print(f"{name}: settings that no other beats, by {FOLDS}-fold cross-validation")
    for k in front(results):
        loss, cost = -results["mean_test_score"][k], -results["mean_test_cost"][k]
        text = ", ".join(f"{key}={value}" for key, value in sorted(results["params"][k].items()))
        print(f"  log loss {loss:.3f}, {cost:7.1f} comparisons: {text}")
    # What a search would refit by, asked of results that are there already.
    choices = {
        "least log loss": search.best_index_,
        "cheapest within 1 standard error": cheapest_within_standard_error()(results),
        f"best within {BUDGET:.0f} comparisons": best_within_budget(BUDGET)(results),
    }
    print(f"  {'on new rows':<34} {'error':>8}  log loss  comparisons")
    for text, k in choices.items():
        chosen = clone(estimator).set_params(**results["params"][k]).fit(X, y)
        print(measured(text, chosen, X_test, y_test))
    within = BudgetClassifier(mean_comparisons=BUDGET, random_state=0).fit(X, y)
    print(measured(f"BudgetClassifier: {within.model_.settings['chosen']}", within, X_test, y_test))


def main(argv: list[str] | None = None) -> None:
    """Run the searches."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small grid of one set")
    options = parser.parse_args(argv)
    sets = dict(list(SETS.items())[:1]) if options.quick else SETS
    for name, data in sets.items():
        compare(name, data, QUICK_GRID if options.quick else GRID)


if __name__ == "__main__":
    main()
