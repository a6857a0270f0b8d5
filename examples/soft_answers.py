"""Uncertain answers where exits have J votes, at equal comparisons per row, on real data.

Run as ``python soft_answers.py --data folder``, or with the folder in the environment variable
PBOOST_DATA; it holds files as the module ``published_table`` describes them. Of each set at most
1,400 rows are drawn, 7 in 10 of each label to train with. Trees and chains of trees of exact
answers and of ``adatree2`` are compared by their first nodes whose mean comparisons of a training
row are within a budget. Of exact answers the Hamming loss and the training error are held against
their bounds after each node. Prints a table of mean test errors in %; ``--rst file`` writes it,
too.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oblique_trees import as_it_is, table
from table_command import arguments, publish

import pboost as pb

BUDGETS = (5, 10, 20, 50, 100)
SETS = (
    "iris",
    "glass",
    "balance_scale",
    "bhp",
    "obesity",
    "waveform_noise",
    "satimage",
    "pendigits",
    "nursery",
    "letter",
    "shuttle",
    "fars",
)
MOST_ROWS, QUICK_SETS, QUICK_ROWS = 1400, 2, 200
EXACT, WHOLE, PART = pb.observation.exact(), pb.observation.adatree2(), pb.observation.adatree2(0.3)
CHAIN = partial(pb.fit_matryoshka, join="all", learning_rate=0.5)
TREE = partial(pb.fit_boosted_tree, max_nodes=255, max_depth=24)
#: Fits, and the fits of exact answers that those of others are compared with.
FITS = {
    "tree": (TREE, "tree"),
    "tree, adatree2": (partial(TREE, observation=WHOLE), "tree"),
    "tree, adatree2(0.3)": (partial(TREE, observation=PART), "tree"),
    "chain, 16 leaves": (partial(CHAIN, shape=(15, 28)), "chain, 16 leaves"),
    "chain, 16 leaves, adatree2": (
        partial(CHAIN, shape=(15, 28), observation=WHOLE),
        "chain, 16 leaves",
    ),
    "chain, 16 leaves, adatree2(0.3)": (
        partial(CHAIN, shape=(15, 28), observation=PART),
        "chain, 16 leaves",
    ),
    "chain, 64 leaves": (partial(CHAIN, shape=(63, 18)), "chain, 64 leaves"),
    "chain, 64 leaves, adatree2(0.3)": (
        partial(CHAIN, shape=(63, 18), observation=PART),
        "chain, 64 leaves",
    ),
    "chain, 4 leaves": (partial(CHAIN, shape=(3, 60)), "chain, 4 leaves"),
    "stumps": (partial(pb.fit_adaboost, n_estimators=110), "stumps"),
}


def divided(path: Path, most: int) -> tuple[Any, ...]:
    """Return rows and labels to train with and to test with, and the columns of categories."""
    X, categories, target = as_it_is(path, most)
    _, label, counts = np.unique(target, return_inverse=True, return_counts=True)
    kept = counts[label] >= 10
    X, y = X[kept], np.unique(label[kept], return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    train = np.arange(len(y)) % 10 < 7
    return X[order[train]], y[order[train]], X[order[~train]], y[order[~train]], categories


def errors(model: Any, X: Any, X_test: Any, y_test: Any) -> list[float]:
    """Return the test error of the first nodes within each budget."""
    result = []
    for budget in BUDGETS:
        low, high = 1, model.n_nodes + 1
        while high - low > 1:
            middle = (low + high) // 2
            is_within = pb.prediction_cost(pb.models.truncate(model, middle), X).mean() <= budget
            low, high = (middle, high) if is_within else (low, middle)
        result.append(
            100 * float(np.mean(pb.predict(pb.models.truncate(model, low), X_test) != y_test))
        )
    return result


def violations(model: Any, X: Any, y: NDArray[np.intp]) -> int:
    """Return after how many nodes a training error is above its bound."""
    n_labels = len(model.classes)
    sign, count = 2 * np.eye(n_labels)[y] - 1, 0
    stages = pb.staged_decision_function(model, X)
    for score, bound in zip(stages, model.record.certificate[1:] * (1 + 1e-9), strict=True):
        hamming, error = (sign * score <= 0).mean(), (score.argmax(axis=1) != y).mean()
        count += bool(hamming > bound or error > n_labels / 2 * bound)
    return count


def tables(results: dict[str, list[list[float]]], stages: list[int]) -> str:
    """Return the table, and how the bounds did."""
    rows = [["", *map(str, BUDGETS)]]
    for name, (_, exact) in FITS.items():
        result = np.array(results[name])
        cells = [f"{mean:.1f}" for mean in result.mean(axis=0)]
        if exact != name and len(result) > 1:
            more = result - results[exact]
            spread = more.std(axis=0, ddof=1) / np.sqrt(len(more))
            pairs = zip(cells, more.mean(axis=0), spread, strict=True)
            cells = [f"{cell} ({mean:+.1f} ± {error:.1f})" for cell, mean, error in pairs]
        rows.append([name, *cells])
    title = f"Test error in %, {len(result)} sets; in brackets: more than with exact answers"
    text = f"Bounds: {len(stages)} models of exact answers, {sum(stages)} violations."
    return table(title, rows) + "\n" + text + "\n"


def main(argv: list[str] | None = None) -> None:
    """Fit all models, print the table and write it if wanted."""
    quick = f"the first {QUICK_SETS} sets, {QUICK_ROWS} rows"
    parser, options, folder = arguments(__doc__, quick, argv)
    names, maximum = (SETS[:QUICK_SETS], QUICK_ROWS) if options.quick else (SETS, MOST_ROWS)
    paths = [folder / f"{name}.csv.gz" for name in names]
    results: dict[str, list[list[float]]] = {name: [] for name in FITS}
    stages = []
    for path in filter(Path.exists, paths):
        X, y, X_test, y_test, categories = divided(path, maximum)
        for name, (fit, exact) in FITS.items():
            model = fit(X, y, categorical_features=categories, n_threads=1)
            results[name].append(errors(model, X, X_test, y_test))
            if exact == name:
                stages.append(violations(model, X, y))
    if not stages:
        parser.error(f"no data: {folder} has no file of a data set")
    publish(tables(results, stages), options.rst)


if __name__ == "__main__":
    main()
