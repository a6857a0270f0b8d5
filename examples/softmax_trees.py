"""One tree a round for all labels, beside one for each: losses at equal rounds and at equal cost.

Run as ``python softmax_trees.py --data folder``, or with the folder in the environment variable
PBOOST_DATA; it holds files as the module ``published_table`` describes them. Every set has at most
2,000 rows, drawn once, with its holes and categories, and is divided into five folds. Trees have 8
leaves and Newton steps. A row is compared as often as the trees of its rounds do; with so many
comparisons on the average, or fewer, the most rounds that fit are taken, at least one. Prints
tables, in the form of reStructuredText; ``--rst file`` writes them to a file, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from boosted_sets import FOLDS, MANY, QUICK_ROWS, SETS, folds_of, losses, of_file, spread
from numpy.typing import NDArray
from oblique_trees import table
from table_command import arguments, each_timed, publish

import pboost as pb

NAMES = (*SETS[MANY][0], "shuttle", "covertype")
MOST_ROWS, LEAVES, ROUNDS = 2000, 8, 100
#: Numbers of rounds, and of comparisons of a row.
STAGES, BUDGETS = (10, 30, ROUNDS), (5, 10, 20, 50, 100, 200)
#: By their names the kinds of trees and the learning rates; the second is compared with the first.
LEARNERS = {
    "one each": ("one_output_per_tree", 0.1),
    "one each, 0.3": ("one_output_per_tree", 0.3),
    "one for all": ("multi_output_tree", 0.1),
    "one for all, 0.3": ("multi_output_tree", 0.3),
}
QUICK_SETS = 2


class DataSet(NamedTuple):
    """A set, and the fold in which each row is tested."""

    name: str
    X: NDArray[Any]
    categories: tuple[int, ...]
    y: NDArray[Any]
    fold: NDArray[np.intp]


#: Log losses and errors in %, by learner: at the stages, then at the budgets.
Outcome = dict[str, NDArray[np.float64]]


def data_sets(folder: Path, quick: bool) -> Iterator[DataSet]:
    """Yield the sets whose files are there."""
    for name in NAMES[: QUICK_SETS if quick else None]:
        path = folder / f"{name}.csv.gz"
        if path.exists():
            X, categories, y = of_file(path, name, MANY, QUICK_ROWS if quick else MOST_ROWS)
            yield DataSet(name, X, categories, y, folds_of(y, MANY, 1)[0])


def costs(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean number of comparisons of a row after each round."""
    trees = model.trees
    depth = trees.node_depth()[trees.root[:-1] + trees.nodes_of(X)]
    of_rounds = depth.mean(axis=0).reshape(len(model), -1).sum(axis=1)
    result: NDArray[np.float64] = of_rounds.cumsum()
    return result


def curve(data: DataSet, k: int, trees: str, rate: float) -> NDArray[np.float64]:
    """Return what is compared, of fold k: (stages and budgets, log loss and error)."""
    train, test = data.fold != k, data.fold == k
    model = pb.fit_gradient_boosting(
        data.X[train],
        data.y[train],
        loss="softmax",
        multi_strategy=trees,
        n_estimators=ROUNDS,
        max_depth=None,
        max_leaf_nodes=LEAVES,
        learning_rate=rate,
        leaf_update="newton",
        categorical_features=data.categories,
        n_threads=1,
    )
    shares = pb.staged_predict_proba(model, data.X[test])
    each = np.array([losses(share, data.y[test]) for share in shares])
    cost = costs(model, data.X[test])
    rounds = [min(stage, len(each)) for stage in STAGES]
    rounds += [max(1, int(np.searchsorted(cost, limit, side="right"))) for limit in BUDGETS]
    return each[np.array(rounds) - 1]


def run(data: DataSet) -> Outcome:
    """Return the means over the folds."""
    result = {}
    for name, (trees, rate) in LEARNERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes with few rows
            each = [curve(data, k, trees, rate) for k in range(FOLDS)]
        result[name] = np.mean(each, axis=0)
    return result


def comparison(outcomes: list[Outcome], sets: list[DataSet], what: int) -> str:
    """Return the table of means of log losses (0) or errors (1), and of differences."""
    head = [f"{n} rounds" for n in STAGES] + [f"{n} comparisons" for n in BUDGETS]
    rows, digits = [["", *head]], 4 - 3 * what
    for name in LEARNERS:
        means = np.mean([of[name][:, what] for of in outcomes], axis=0)
        rows.append([name, *(f"{mean:.{digits}f}" for mean in means)])
    for rate in ("", ", 0.3"):
        pairs = [
            (of[f"one for all{rate}"][:, what], of[f"one each{rate}"][:, what]) for of in outcomes
        ]
        apart = np.array([item - each for item, each in pairs])
        rows.append([f"difference{rate}", *(spread(of, 3 - 2 * what) for of in apart.T)])
        rows.append(["less on", *(f"{int((of < 0).sum())} of {len(of)}" for of in apart.T)])
    name = ["Log losses", "Errors in %"][what]
    return table(f"{name} of softmax, {len(sets)} sets", rows)


def by_set(outcomes: list[Outcome], sets: list[DataSet]) -> str:
    """Return the table of the errors on each set with 50 comparisons and with all rounds."""
    stages = {"100 rounds": len(STAGES) - 1, "50 comparisons": len(STAGES) + BUDGETS.index(50)}
    head = [f"{name}, {stage}" for stage in stages for name in ("one each", "one for all")]
    rows = [["set", "labels", *head]]
    for data, of in zip(sets, outcomes, strict=True):
        cells = [
            f"{of[f'{name}, 0.3'][place, 1]:.1f}"
            for place in stages.values()
            for name in ("one each", "one for all")
        ]
        rows.append([data.name, str(len(np.unique(data.y))), *cells])
    return table("Errors in %, learning rate 0.3", rows)


def main(argv: list[str] | None = None) -> None:
    """Cross-validate, print the tables and write them if wanted."""
    parser, options, folder = arguments(
        __doc__, f"the first {QUICK_SETS} sets, {QUICK_ROWS} rows", argv
    )
    sets = list(data_sets(folder, options.quick))
    if not sets:
        parser.error(f"no data: {folder} has no file of a data set")
    outcomes = each_timed(sets, run)
    tables = [comparison(outcomes, sets, 0), comparison(outcomes, sets, 1), by_set(outcomes, sets)]
    publish("\n".join(tables), options.rst)


if __name__ == "__main__":
    main()
