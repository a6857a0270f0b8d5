"""Small sums of trees that imitate a larger one, beside such that are fitted to the labels.

Run as ``python distilled.py --data folder``, or with the folder in the environment variable
PBOOST_DATA. Sets of two labels are those of the module ``boosted_sets``, at most 2,500 rows; three
fifths of the rows train, a fifth, without labels, says where rows leave for each budget, and a
fifth tests, two times. The teacher is the mean of a sum of 150 trees and of a forest. Options are
the same for all sets. Prints a table, in the form of reStructuredText; ``--rst file`` writes it to
a file, too.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from boosted_sets import SETS, TWO, folds_of, of_file
from oblique_trees import table
from table_command import arguments, publish

import pboost as pb
from pboost.budget.candidates import with_forest

BUDGETS = (5, 10, 20, 50, 100)
#: Comparisons of the students, and the budgets that they are for.
LENGTHS = {60: (5, 10, 20), 300: (50, 100)}
TESTED, MOST_ROWS, QUICK_ROWS = 2, 2500, 200
TEACHER = {
    "n_estimators": 150,
    "max_leaf_nodes": 8,
    "max_depth": None,
    "learning_rate": 0.1,
    "subsample": 0.6,
    "max_features_per_tree": 0.7,
    "rng": 0,
}
PLAIN, STUDENT = "plain", "distilled"


def within(model: Any, X_cal: Any, budget: int) -> Any:
    """Return the model that rows leave within a budget, or its first tree."""
    try:
        return pb.early_exit(model, X_cal, mean_comparisons=budget)
    except ValueError:
        return pb.models.truncate(model, 1)


def tried(X: Any, y: Any, categories: tuple[int, ...], fold: Any, k: int) -> dict[str, Any]:
    """Return error in % and comparisons of both, at each budget (2, n_budgets)."""
    parts = fold == k, fold == (k + 1) % 5
    test, cal, train = *parts, ~(parts[0] | parts[1])
    options = {"categorical_features": categories}
    teacher = pb.fit_gradient_boosting(X[train], y[train], **TEACHER, **options)
    forest = pb.fit_random_forest(
        X[train], y[train], n_estimators=60, bootstrap=False, rng=0, **options
    )
    teacher = with_forest(teacher, forest, 0.5)
    plain = pb.fit_gradient_boosting(
        X[train],
        y[train],
        max_leaf_nodes=8,
        max_depth=None,
        learning_rate=0.3,
        n_estimators=100,
        **options,
    )
    result: dict[str, Any] = {PLAIN: [], STUDENT: []}
    for length, budgets in LENGTHS.items():
        student = pb.distill(teacher, X[train], mean_comparisons=length, rng=0, **options)
        for budget in budgets:
            for name, model in ((PLAIN, plain), (STUDENT, student)):
                small = within(model, X[cal], budget)
                error = 100 * np.mean(pb.predict(small, X[test]) != y[test])
                result[name].append((error, pb.prediction_cost(small, X[test]).mean()))
    return {name: np.transpose(of) for name, of in result.items()}


def outcomes(folder: Path, quick: bool) -> dict[str, dict[str, Any]]:
    """Return the means of each set whose file is there."""
    result = {}
    names = [name for names in SETS[TWO] for name in names[: 1 if quick else None]]
    for name in names:
        path = folder / f"{name.partition('/')[0]}.csv.gz"
        if path.exists():
            start = time.perf_counter()
            X, categories, y = of_file(path, name, TWO, QUICK_ROWS if quick else MOST_ROWS)
            (fold,) = folds_of(y, TWO, 1)
            each = [tried(X, y, categories, fold, k) for k in range(1 if quick else TESTED)]
            result[name] = {key: np.mean([of[key] for of in each], axis=0) for key in each[0]}
            print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return result


def written(found: dict[str, dict[str, Any]]) -> str:
    """Return the table."""
    head = [
        "comparisons",
        PLAIN,
        STUDENT,
        "distilled - plain",
        "sets won, lost",
        "cost, plain",
        "cost, distilled",
    ]
    rows = [head]
    of = {name: np.array([each[name] for each in found.values()]) for name in (PLAIN, STUDENT)}
    for k, budget in enumerate(BUDGETS):
        errors = [of[name][:, 0, k] for name in (PLAIN, STUDENT)]
        less = errors[1] - errors[0]
        spread = less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
        cells = [f"{each.mean():.2f}" for each in errors]
        cells += [f"{less.mean():+.2f} ± {spread:.2f}", f"{sum(less < 0)}, {sum(less > 0)}"]
        cells += [f"{of[name][:, 1, k].mean():.1f}" for name in (PLAIN, STUDENT)]
        rows.append([str(budget), *cells])
    return table(f"Mean error in % of {len(found)} sets within a budget", rows)


def main(argv: list[str] | None = None) -> None:
    """Fit, print the table and write it if wanted."""
    parser, options, folder = arguments(__doc__, "two sets, few rows, once", argv)
    result = outcomes(folder, options.quick)
    if not result:
        parser.error(f"no data: {folder} has none of the sets")
    publish(written(result), options.rst)


if __name__ == "__main__":
    main()
