"""Test error and prediction cost of chains, trees and matryoshki at equal budgets, on real data.

Run as ``python accuracy_per_comparison.py --data folder``, or set the environment variable
PBOOST_DATA to the folder. The folder contains one ``name.csv.gz`` per data set, whose first line
has the column names. The last column is ``target``, ``__cat`` in a name marks a categorical
feature, and an empty field is a missing value. The benchmark uses all binary problems with numeric
features and without missing values. Prints reStructuredText tables; ``--rst file`` also writes
them to a file.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from table_command import arguments, each_timed, publish

import pboost as pb

BUDGETS = (10, 20, 50, 100)  # mean comparisons per training row
FOLDS, QUICK_FOLDS, QUICK_SETS = 10, 3, 2
MOST_ROWS = 20_000
MOST_NODES, QUICK_MOST_NODES = 1_000, 150
XGBOOST_ROUNDS, XGBOOST_DEPTHS = 200, (1, 3, 6)
#: Leaf counts of scikit-learn's trees; the largest tree within the budget is used.
LEAVES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SEED = 0
#: Model that the others are compared with.
BASELINE = "AdaBoost"


@dataclass(frozen=True)
class DataSet:
    """A data set, with the fold in which each row is tested."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.bool_]
    test_fold: NDArray[np.int32]

    @property
    def title(self) -> str:
        """A one-line description of the data set."""
        rarer = 100 * min(self.y.mean(), 1 - self.y.mean())
        n, d = self.X.shape
        return f"{self.name}: {n:,} rows, {d} columns, {rarer:.1f} % in the rarer class"


@dataclass(frozen=True)
class Fold:
    """Training and test rows of one fold, sorted once for all models."""

    X: NDArray[np.float64]
    y: NDArray[np.bool_]
    columns: pb.data.SortedColumns
    X_test: NDArray[np.float64]
    y_test: NDArray[np.bool_]


@dataclass(frozen=True)
class Outcome:
    """Results of the largest model within a budget, on one fold.

    Attributes
    ----------
    error : float
        Fraction of misclassified test rows.
    cost : float
        Mean number of comparisons per test row.
    training_cost : float
        Mean number of comparisons per training row, which determines the size of the model.
    """

    error: float
    cost: float
    training_cost: float


#: Returns the outcomes on a fold, one per budget.
Model = Callable[[Fold], list[Outcome]]
#: For each model an array (budget, fold, quantity), with the quantities of `Outcome`.
Results = dict[str, NDArray[np.float64]]


# Data


def read(path: Path, folds: int) -> DataSet | None:
    """Read a data set; return None if it is unsuitable."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        names = next(lines, [])
        if names[-1:] != ["target"] or any("__cat" in name for name in names):
            return None
        features, labels, seen = [], [], set()
        for line in lines:
            seen.add(line[-1])
            if len(seen) > 2 or "" in line:
                return None
            features.append(line[:-1])
            labels.append(line[-1])
    try:
        X = np.array(features, dtype=np.float64)
    except ValueError:
        return None
    y = np.array(labels) == max(seen, default="")
    if min(y.sum(), (~y).sum()) < folds or not np.isfinite(X).all():
        return None
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(SEED).choice(len(y), MOST_ROWS, replace=False)
        X, y = X[np.sort(rows)], y[np.sort(rows)]
    # cross_validate defines the folds; the stump that it fits is not used.
    stump = partial(pb.fit_adaboost, n_estimators=1)
    test_fold = pb.cross_validate(stump, X, y, cv=folds, rng=SEED).test_fold
    return DataSet(path.name.removesuffix(".csv.gz"), X, y, test_fold)


def data_sets(folder: Path, quick: bool) -> list[DataSet]:
    """Return the suitable data sets of a folder, sorted by number of rows."""
    folds = QUICK_FOLDS if quick else FOLDS
    result = [data for path in sorted(folder.glob("*.csv.gz")) if (data := read(path, folds))]
    result.sort(key=lambda data: len(data.y))
    return result[:QUICK_SETS] if quick else result


def folds_of(data: DataSet) -> Iterator[Fold]:
    """Yield the folds of a data set."""
    for fold in range(data.test_fold.max() + 1):
        train, test = data.test_fold != fold, data.test_fold == fold
        X = data.X[train]
        columns = pb.data.sort_columns(X, n_threads=1)
        yield Fold(X, data.y[train], columns, data.X[test], data.y[test])


# Models


def cost_of_first_nodes(
    model: pb.models.DecisionGraph, X: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean number of comparisons per row of the first 1, 2, … nodes of a model.

    This is the cost of predictions, which take the exit of the row's side. ``model.record.cost`` is
    the cost under the exit probabilities assumed in training.
    """
    certain = replace(model, answer=None)
    blocks = (X[start : start + 1000] for start in range(0, len(X), 1000))
    arrive = np.sum([pb.inspection.reach(certain, block).sum(axis=0) for block in blocks], axis=0)
    return np.cumsum(arrive) / len(X)


def largest_size(costs: NDArray[np.float64], budget: float) -> int:
    """Return the largest size whose cost is within a budget; costs increase with the size."""
    return int(np.searchsorted(costs, budget, side="right"))


def outcomes_of_graphs(
    fit: Callable[..., pb.models.DecisionGraph], most_nodes: int, fold: Fold
) -> list[Outcome]:
    """Grow a model to its largest size, choose a size for each budget, and test these sizes."""

    def grown_to(size: int) -> pb.models.DecisionGraph:
        return fit(fold.columns, fold.y, n_threads=1, callback=lambda step, _: step >= size)

    costs = cost_of_first_nodes(grown_to(most_nodes), fold.X)
    tested: dict[int, Outcome] = {}
    sizes = [largest_size(costs, budget) for budget in BUDGETS]
    for size in set(sizes):
        # Refit instead of truncating, because collecting by sign changes votes of earlier nodes.
        model = grown_to(size)
        tested[size] = Outcome(
            float(np.mean(pb.predict(model, fold.X_test) != fold.y_test)),
            float(pb.prediction_cost(model, fold.X_test).mean()),
            float(pb.prediction_cost(model, fold.X).mean()),
        )
    return [tested[size] for size in sizes]


def outcomes_of_xgboost(depth: int, fold: Fold) -> list[Outcome]:
    """Test xgboost, whose size is the number of rounds."""
    import xgboost

    train = xgboost.DMatrix(fold.X, label=fold.y)
    test = xgboost.DMatrix(fold.X_test)
    options = {"objective": "binary:logistic", "max_depth": depth, "nthread": 1, "seed": SEED}
    booster = xgboost.train(options, train, num_boost_round=XGBOOST_ROUNDS)
    lengths = [path_lengths(tree) for tree in booster.get_dump()]

    def comparisons(rows: Any) -> NDArray[np.float64]:
        leaves = booster.predict(rows, pred_leaf=True).astype(np.intp).reshape(rows.num_row(), -1)
        by_tree = [length[leaf].mean() for length, leaf in zip(lengths, leaves.T, strict=True)]
        return np.cumsum(by_tree)

    costs, test_costs = comparisons(train), comparisons(test)
    outcomes = []
    for budget in BUDGETS:
        rounds = largest_size(costs, budget)
        positive = booster.predict(test, iteration_range=(0, rounds)) > 0.5
        error = float(np.mean(positive != fold.y_test))
        outcomes.append(Outcome(error, float(test_costs[rounds - 1]), float(costs[rounds - 1])))
    return outcomes


def outcomes_of_scikit_learn(fold: Fold) -> list[Outcome]:
    """Test a tree of scikit-learn, grown best-first so that smaller trees are nested."""
    from sklearn.tree import DecisionTreeClassifier

    fits = (DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=SEED) for leaves in LEAVES)
    trees = [fit.fit(fold.X, fold.y) for fit in fits]

    def comparisons(tree: Any, X: NDArray[np.float64]) -> float:
        return float(tree.decision_path(X).sum() / len(X)) - 1  # a leaf has no comparison

    costs = np.array([comparisons(tree, fold.X) for tree in trees])
    outcomes = []
    for budget in BUDGETS:
        size = largest_size(costs, budget) - 1
        error = float(np.mean(trees[size].predict(fold.X_test) != fold.y_test))
        outcomes.append(Outcome(error, comparisons(trees[size], fold.X_test), float(costs[size])))
    return outcomes


def path_lengths(tree: str) -> NDArray[np.int64]:
    """Return the number of comparisons on the path to each leaf of a tree dumped as text."""
    leaves = [(int(m[2]), len(m[1])) for m in re.finditer(r"^(\t*)(\d+):leaf", tree, re.MULTILINE)]
    lengths = np.zeros(1 + max(leaf for leaf, _ in leaves), dtype=np.int64)
    for leaf, length in leaves:
        lengths[leaf] = length
    return lengths


def models(most_nodes: int) -> dict[str, Model]:
    """Return the compared models, by the names in the tables."""
    soft = pb.observation.adatree2()
    tree = partial(pb.fit_boosted_tree, max_nodes=most_nodes)
    doll = partial(pb.fit_matryoshka, observation=soft)
    # Each link of a chain takes at least one comparison.
    links = max(BUDGETS)
    exact = partial(pb.fit_matryoshka, shape=(4, links), join="all", learning_rate=1.0)
    fits: dict[str, Callable[..., pb.models.DecisionGraph]] = {
        BASELINE: partial(pb.fit_adaboost, n_estimators=links),
        "tree": tree,
        "soft tree": partial(tree, observation=soft),
        "matryoshka 2,2,…": partial(doll, shape=(2,) * 10),
        "matryoshka 4,4,…": partial(doll, shape=(4,) * 5),
        "matryoshka 8,8,…": partial(doll, shape=(8,) * 4),
        "matryoshka 16,16,…": partial(doll, shape=(16,) * 3),
        "4,4,… by sign": partial(doll, shape=(4,) * 5, collect="sign"),
        "chain of 4": partial(doll, shape=(4, links), join="all", learning_rate=1.0),
        "chain of 4, exact": exact,
        "the same, rate 0.3": partial(exact, learning_rate=0.3),
    }
    result: dict[str, Model] = {
        name: partial(outcomes_of_graphs, fit, most_nodes) for name, fit in fits.items()
    }
    if importlib.util.find_spec("xgboost"):
        for depth in XGBOOST_DEPTHS:
            result[f"xgboost, depth {depth}"] = partial(outcomes_of_xgboost, depth)
    if importlib.util.find_spec("sklearn"):
        result["scikit-learn tree"] = outcomes_of_scikit_learn
    return result


def compare(data: DataSet, compared: dict[str, Model]) -> Results:
    """Return the outcomes of all models on a data set, with the same folds."""
    results: dict[str, list[list[list[float]]]] = {name: [] for name in compared}
    for fold in folds_of(data):
        for name, outcomes in compared.items():
            results[name].append([[o.error, o.cost, o.training_cost] for o in outcomes(fold)])
    return {name: np.array(values).transpose(1, 0, 2) for name, values in results.items()}


# Tables


def table(title: str, rows: list[list[str]]) -> str:
    """Return a readable reStructuredText table; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    border = "  ".join("=" * width for width in widths)
    padded = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
    lines = [border, padded[0], border, *padded[1:], border]
    return "\n".join([f".. table:: {title}", "", *(f"   {line.rstrip()}" for line in lines), ""])


def table_by_budget(title: str, cells: dict[str, list[str]]) -> str:
    """Return a table with one row per model and one column per budget."""
    head = ["model", *(f"budget {budget}" for budget in BUDGETS)]
    return table(title, [head, *([name, *row] for name, row in cells.items())])


def error_and_cost(mean: NDArray[np.float64]) -> list[str]:
    """Return the table cells of an array (budget, quantity)."""
    return [f"{100 * error:.1f} ({cost:.1f})" for error, cost, _ in mean]


def ranks_and_wins(results: list[Results]) -> dict[str, list[str]]:
    """Return the mean rank of each model over the data sets, and how often it is best."""
    # (data set, model, budget); rounded so that equal error counts are tied.
    errors = np.array([[r[..., 0].mean(axis=1) for r in of.values()] for of in results]).round(9)
    ranks = rankdata(errors, axis=1).mean(axis=0)
    wins = (errors == errors.min(axis=1, keepdims=True)).sum(axis=0)
    return {
        name: [f"{rank:.1f} ({won})" for rank, won in zip(ranks[k], wins[k], strict=True)]
        for k, name in enumerate(results[0])
    }


def against_baseline(results: list[Results]) -> dict[str, list[str]]:
    """Return the numbers of data sets on which a model is better and worse than the baseline."""
    cells = {}
    for name in (name for name in results[0] if name != BASELINE):
        # (data set, budget, fold)
        more = np.array([of[name][..., 0] - of[BASELINE][..., 0] for of in results])
        mean = more.mean(axis=2).round(9)
        clear = np.abs(mean) > 2 * more.std(axis=2, ddof=1) / np.sqrt(more.shape[2])
        cells[name] = [
            f"{(m < 0).sum()} : {(m > 0).sum()} ({(c & (m < 0)).sum()} : {(c & (m > 0)).sum()})"
            for m, c in zip(mean.T, clear.T, strict=True)
        ]
    return cells


def tables(sets: list[DataSet], results: list[Results]) -> str:
    """Return all tables."""
    folds = sets[0].test_fold.max() + 1
    of_all = {
        name: error_and_cost(np.mean([of[name].mean(axis=1) for of in results], axis=0))
        for name in results[0]
    }
    parts = [
        f"All figures are means over {folds} folds. Cells contain *test error in % (comparisons "
        "per test row)* unless the title says otherwise.\n",
        table_by_budget(f"All {len(sets)} sets: mean error (mean cost)", of_all),
        table_by_budget("Mean rank by error (sets on which best)", ranks_and_wins(results)),
        table_by_budget(
            f"Sets on which better : worse than {BASELINE} (by more than two standard errors)",
            against_baseline(results),
        ),
    ]
    for data, of in zip(sets, results, strict=True):
        cells = {name: error_and_cost(values.mean(axis=1)) for name, values in of.items()}
        parts.append(table_by_budget(data.title, cells))
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Compare the models, print the tables and optionally write them."""
    quick = f"{QUICK_SETS} smallest sets, {QUICK_FOLDS} folds, {QUICK_MOST_NODES} nodes at most"
    parser, options, folder = arguments(__doc__, quick, argv)
    sets = data_sets(folder, options.quick)
    if not sets:
        parser.error(
            f"no data: {folder} has no .csv.gz file of two classes with numeric columns only "
            "and without missing values"
        )
    compared = models(QUICK_MOST_NODES if options.quick else MOST_NODES)
    results = each_timed(sets, lambda data: compare(data, compared))
    text = tables(sets, results)
    publish(text, options.rst)


if __name__ == "__main__":
    main()
