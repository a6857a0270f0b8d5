"""Log loss of all kinds of models before and after calibration, on real data.

Run as ``python calibration.py --data folder``, or set the environment variable PBOOST_DATA to the
folder, with files as described in the module ``published_table``. At most 4,000 rows of each data
set are drawn, and classes with fewer than 40 of them are left out. Half of the rows of each class
are for training, a quarter for calibration and a quarter for testing, in three random divisions.
For comparison, an uncalibrated model is also fitted on training and calibration rows. Prints
reStructuredText tables; ``--rst file`` also writes them to a file.
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
#: Probabilities are clipped at this distance from 0 and 1, as in cross_validate.
LEAST = 2.0**-52


class Data(NamedTuple):
    """The name of a data set, its file and the number of rows to read."""

    name: str
    path: Path
    most: int


def fitted(kind: str, X: Any, y: Any, categories: tuple[int, ...]) -> Any:
    """Fit a model; for multiclass problems with a multiclass loss or one-vs-rest, as required."""
    options: dict[str, Any] = {"categorical_features": list(categories)} if categories else {}
    if MODELS[kind].func is pb.fit_gradient_boosting:
        options["loss"] = "log_loss" if len(np.unique(y)) == 2 else "softmax"
    return MODELS[kind](X, y, **options)


def quarters(y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Assign rows to quarters 0 to 3, stratified by class."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    quarter = np.empty(len(y), dtype=np.int64)
    quarter[order] = np.arange(len(y)) % 4
    return quarter


def log_loss(model: Any, X: Any, y: Any) -> float:
    """Return the mean log loss."""
    share = pb.predict_proba(model, X)[np.arange(len(y)), np.searchsorted(model.classes, y)]
    return float(-np.log(share.clip(LEAST, 1 - LEAST)).mean())


def losses(kind: str, X: Any, y: Any, categories: tuple[int, ...], seed: int) -> list[float]:
    """Return the log losses and the errors in % on test rows, by calibration method."""
    quarter = quarters(y, seed)
    fit, cal, test = quarter < 2, quarter == 2, quarter == 3
    plain = fitted(kind, X[fit], y[fit], categories)
    ways = [plain]
    ways += [pb.calibrate(plain, X[cal], y[cal], method=way) for way in ("platt", "isotonic")]
    ways += [fitted(kind, X[~test], y[~test], categories)]
    errors = [100 * float(np.mean(pb.predict(model, X[test]) != y[test])) for model in ways]
    return [log_loss(model, X[test], y[test]) for model in ways] + errors


def outcome(data: Data) -> tuple[str, dict[str, NDArray[np.float64]]]:
    """Return the means over divisions, for each model."""
    X, y, categories = read(data.path, data.most)
    kept = np.bincount(y)[y] >= FEWEST
    X, y = X[kept], np.unique(y[kept], return_inverse=True)[1]
    return data.name, {
        kind: np.mean([losses(kind, X, y, categories, seed) for seed in range(SPLITS)], axis=0)
        for kind in MODELS
    }


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> str:
    """Return the mean difference, its standard error, and the number of negative differences."""
    by = a - b
    error = by.std(ddof=1) / np.sqrt(len(by)) if len(by) > 1 else np.nan
    return f"{by.mean():+.3f} ± {error:.3f} ({np.count_nonzero(by < 0)}/{len(by)})"


def tables(results: list[tuple[str, dict[str, NDArray[np.float64]]]]) -> str:
    """Return the tables: means over data sets, then each data set for one model."""
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
