"""Log loss before and after calibration, of models of every kind on real data.

Run as ``python calibration.py --data folder``, or with the folder in the environment variable
PBOOST_DATA; it holds files as the module ``published_table`` describes them. Of each set at most
4,000 rows are drawn, and labels of fewer than 40 of them left out. Half of the rows of each label
are there to fit, a quarter to calibrate and a quarter to test; three times, divided anew. Whoever
does not calibrate can fit to the calibration rows, too: that model stands beside. Prints tables, in
the form of reStructuredText; ``--rst file`` writes them to a file, too.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from many_classes import read
from numpy.typing import NDArray
from oblique_trees import table
from table_command import arguments, each_timed, publish

import pboost as pb

SETS = (
    "pima",
    "banknote",
    "spambase",
    "magic04",
    "adult_census",
    "electricity",
    "biodegradation",
    "tic_tac_toe",
    "satimage",
    "obesity",
    "waveform_noise",
    "nursery",
)
MOST_ROWS, SPLITS, FEWEST = 4000, 3, 40
QUICK_SETS, QUICK_ROWS = 2, 300
SMALL = {"max_depth": 3, "learning_rate": 0.1}
MODELS = {
    "stumps, 100 rounds": partial(pb.fit_adaboost, n_estimators=100),
    "stumps, 1000 rounds": partial(pb.fit_adaboost, n_estimators=1000),
    "soft tree, 30 nodes": partial(
        pb.fit_boosted_tree, max_nodes=30, observation=pb.observation.adatree2()
    ),
    "chain of trees": partial(pb.fit_matryoshka, shape=(7, 30), join="all", learning_rate=0.3),
    "gradient boosting, 100 steps": partial(pb.fit_gradient_boosting, n_estimators=100, **SMALL),
    "gradient boosting, 1000 steps": partial(pb.fit_gradient_boosting, n_estimators=1000, **SMALL),
    "forest, 100 trees": partial(pb.fit_random_forest, n_estimators=100, rng=0),
    "tree, pruned": partial(pb.fit_pruned_cart, rng=0),
    "probit trees": partial(pb.fit_sbpmt, n_estimators=5, rng=0),
}
SEEN = "of 3/4"
WAYS = ("of 1/2", "Platt", "isotonic", SEEN)
#: Probabilities are held at this distance from 0 and 1, as cross_validate holds them.
LEAST = 2.0**-52


class Data(NamedTuple):
    """The name of a set, its file and how many of its rows are read."""

    name: str
    path: Path
    most: int


def fitted(kind: str, X: Any, y: Any, categories: tuple[int, ...]) -> Any:
    """Return a model; of several labels by the loss, or one against the rest, as they need."""
    options: dict[str, Any] = {"categorical_features": list(categories)} if categories else {}
    if MODELS[kind].func is pb.fit_gradient_boosting:
        options["loss"] = "log_loss" if len(np.unique(y)) == 2 else "softmax"
    return MODELS[kind](X, y, **options)


def quarters(y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return a quarter of each row, 0 to 3, label by label."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    quarter = np.empty(len(y), dtype=np.int64)
    quarter[order] = np.arange(len(y)) % 4
    return quarter


def log_loss(model: Any, X: Any, y: Any) -> float:
    """Return the mean of -log of the probabilities of the labels."""
    share = pb.predict_proba(model, X)[np.arange(len(y)), np.searchsorted(model.classes, y)]
    return float(-np.log(share.clip(LEAST, 1 - LEAST)).mean())


def losses(kind: str, X: Any, y: Any, categories: tuple[int, ...], seed: int) -> list[float]:
    """Return the log losses on the test rows, and the errors in %, by the ways."""
    quarter = quarters(y, seed)
    fit, cal, test = quarter < 2, quarter == 2, quarter == 3
    plain = fitted(kind, X[fit], y[fit], categories)
    ways = [plain]
    ways += [pb.calibrate(plain, X[cal], y[cal], method=way) for way in ("platt", "isotonic")]
    ways += [fitted(kind, X[~test], y[~test], categories)]
    errors = [100 * float(np.mean(pb.predict(model, X[test]) != y[test])) for model in ways]
    return [log_loss(model, X[test], y[test]) for model in ways] + errors


def outcome(data: Data) -> tuple[str, dict[str, NDArray[np.float64]]]:
    """Return for each model the means over divisions."""
    X, y, categories = read(data.path, data.most)
    kept = np.bincount(y)[y] >= FEWEST
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    return data.name, {
        kind: np.mean([losses(kind, X, y, categories, seed) for seed in range(SPLITS)], axis=0)
        for kind in MODELS
    }


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> str:
    """Return the mean of differences between sets, its standard error, and how many are below 0."""
    by = a - b
    error = by.std(ddof=1) / np.sqrt(len(by)) if len(by) > 1 else np.nan
    return f"{by.mean():+.3f} ± {error:.3f} ({np.count_nonzero(by < 0)}/{len(by)})"


def tables(results: list[tuple[str, dict[str, NDArray[np.float64]]]]) -> str:
    """Return the tables: means over the sets, then each set for one model."""
    ways = len(WAYS)
    rows = [["model", *WAYS, f"Platt - {WAYS[0]}", f"isotonic - {WAYS[0]}", f"Platt - {SEEN}"]]
    wrong = [["model", *WAYS]]
    for kind in MODELS:
        of = np.array([item[kind] for _, item in results])
        plain, platt, isotonic, seen = of[:, :ways].T
        pairs = (platt, plain), (isotonic, plain), (platt, seen)
        said = [difference(*pair) for pair in pairs]
        rows.append([kind, *(f"{x:.3f}" for x in of[:, :ways].mean(axis=0)), *said])
        wrong.append([kind, *(f"{x:.2f}" for x in of[:, ways:].mean(axis=0))])
    parts = [table("Log loss, means over the sets", rows), table("Error in %", wrong)]
    for kind in list(MODELS)[:2]:
        each = [["set", *WAYS]]
        each += [[name, *(f"{x:.3f}" for x in item[kind][:ways])] for name, item in results]
        parts.append(table(f"Log loss, {kind}", each))
    return "\n".join(parts)


def main(argv: list[str] | None = None) -> None:
    """Run the comparison."""
    quick = f"the first {QUICK_SETS} sets of {QUICK_ROWS} rows"
    parser, options, folder = arguments(__doc__, quick, argv)
    result = [
        Data(name, folder / f"{name}.csv.gz", QUICK_ROWS if options.quick else MOST_ROWS)
        for name in (SETS[:QUICK_SETS] if options.quick else SETS)
        if (folder / f"{name}.csv.gz").exists()
    ]
    if not result:
        parser.error(f"no data: {folder} has no file of a data set")
    publish(tables(each_timed(result, outcome)), options.rst)


if __name__ == "__main__":
    main()
