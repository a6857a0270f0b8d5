"""Trees that cut across columns by pboost, obliquetree and ydf, interleaved.

    python -m asv_bench.peers.oblique --quick

Run it from the root of a checkout in which pboost is built. obliquetree, ydf and scikit-learn (for
the breast cancer data) take part if they are installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time

import numpy as np

import pboost as pb
from asv_bench.peers.report import Table, number

SIZE, QUICK_SIZE = (10_000, 20), (1_000, 20)
TEST_ROWS = 20_000
FLIPPED = 0.05  # share of labels
FOLDS = 5


def sparse_oblique(X, random):
    """Three cuts, each along a pair of columns."""
    corner = (X[:, 0] + X[:, 1] > 0) & (X[:, 2] - X[:, 3] > -0.5)
    return flip(corner ^ (X[:, 4] + 2 * X[:, 5] > 1.5), random)


def turned(X):
    """Columns in a turned frame, the same for all data sets."""
    frame, _ = np.linalg.qr(np.random.default_rng(7).standard_normal((X.shape[1],) * 2))
    return X @ frame


def rotated_and(X, random):
    """A corner in a turned frame."""
    Z = turned(X)
    return flip((Z[:, 0] > -0.3) & (Z[:, 1] + 0.5 * Z[:, 2] > -0.6), random)


def rotated(X, random):
    """Two opposite corners in a turned frame, which no single cut improves."""
    Z = turned(X)
    return flip((Z[:, 0] > 0) ^ (Z[:, 1] + 0.5 * Z[:, 2] > 0), random)


def flip(y, random):
    return y ^ (random.random(len(y)) < FLIPPED)


PROBLEMS = {f.__name__: f for f in (sparse_oblique, rotated_and, rotated)}


def generated(problem, size, seed):
    """Return training and test rows."""
    random = np.random.default_rng([seed, 5])
    X = random.standard_normal((size[0] + TEST_ROWS, size[1]))
    y = PROBLEMS[problem](X, random).astype(int)
    return [(X[: size[0]], y[: size[0]], X[size[0] :], y[size[0] :])]


def pima_like(seed):
    """Return folds of 768 rows like those of the Pima data: a logistic rule with a product."""
    random = np.random.default_rng([seed, 6])
    X = random.standard_normal((768, 8))
    linear = np.array([0.42, 1.1, -0.25, 0, -0.14, 0.7, 0.3, 0.2])
    odds = -0.85 + X @ linear + 0.3 * X[:, 1] * X[:, 7]
    return folds(X, (random.random(768) < 1 / (1 + np.exp(-odds))).astype(int), seed)


def breast_cancer(seed):
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return folds(X, y, seed)


def folds(X, y, seed):
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = np.random.default_rng(seed).permutation(len(y))
    tested = [order[k::FOLDS] for k in range(FOLDS)]
    trained = [np.setdiff1d(order, rows) for rows in tested]
    return [(X[a], y[a], X[b], y[b]) for a, b in zip(trained, tested, strict=True)]


def pboost(weak, nodes):
    def fit(X, y):
        model = pb.fit_boosted_tree(X, y, max_nodes=nodes, weak_learner=weak, n_threads=1)
        return lambda rows: pb.predict(model, rows)

    return fit


def pboost_oblique(X, y):
    model = pb.fit_oblique_tree(X, y, n_threads=1)
    return lambda rows: pb.predict(model, rows)


def obliquetree(X, y):
    from obliquetree import Classifier

    model = Classifier(use_oblique=True, random_state=0)
    model.fit(X, y.astype(np.float64))
    return lambda rows: np.asarray(model.predict(rows)).ravel() > 0.5


def ydf_tree(split):
    def fit(X, y):
        import ydf

        ydf.verbose(0)
        learner = ydf.CartLearner(
            label="y",
            split_axis=split,
            validation_ratio=0.0,
            max_depth=-1,
            min_examples=1,
            num_threads=1,
            random_seed=1,
            **({"sparse_oblique_num_projections_exponent": 1.0} if "SPARSE" in split else {}),
        )
        model = learner.train({"X": X, "y": y})
        return lambda rows: np.asarray(model.predict({"X": rows})) > 0.5

    return fit


def competitors():
    """Return the fits of the libraries that are installed."""
    linear = pb.weak.linear
    result = {
        "pboost, linear, 3 nodes": pboost(linear(), 3),
        "pboost, linear, 15 nodes": pboost(linear(), 15),
        "pboost, linear, dense_gain=3, 3 nodes": pboost(linear(dense_gain=3), 3),
        "pboost, linear, dense_gain=3, 15 nodes": pboost(linear(dense_gain=3), 15),
        "pboost, affine, 500 directions, 15 nodes": pboost(pb.weak.affine(n_directions=500), 15),
        "pboost, fit_oblique_tree": pboost_oblique,
    }
    if importlib.util.find_spec("obliquetree"):
        result["obliquetree"] = obliquetree
    if importlib.util.find_spec("ydf"):
        result["ydf, sparse oblique"] = ydf_tree("SPARSE_OBLIQUE")
        result["ydf, MHLD oblique"] = ydf_tree("MHLD_OBLIQUE")
    return result


def measure(fit, data):
    """Return the mean CPU seconds of a fit and the mean accuracy over pairs of rows."""
    seconds, accuracy = [], []
    for X, y, X_test, y_test in data:
        start = time.process_time()
        predict = fit(X, y)
        seconds.append(time.process_time() - start)
        accuracy.append(float(np.mean(predict(X_test) == y_test)))
    return statistics.fmean(seconds), statistics.fmean(accuracy)


def compare(size, reps):
    """Return the table of accuracies and times, going round the competitors in each data set."""
    makers = {name: lambda seed, name=name: generated(name, size, seed) for name in PROBLEMS}
    makers["pima_like"] = pima_like
    if importlib.util.find_spec("sklearn"):
        makers["breast_cancer"] = breast_cancer
    fits, rows = competitors(), []
    warm = generated("rotated_and", (300, 5), 99)
    for fit in fits.values():
        measure(fit, warm)
    results = {name: {problem: [] for problem in makers} for name in fits}
    for problem, maker in makers.items():
        for seed in range(reps):
            data = maker(seed)
            for name, fit in fits.items():
                results[name][problem].append(measure(fit, data))
    for name, item in results.items():
        cells = []
        for pairs in item.values():
            seconds, accuracy = zip(*pairs, strict=True)
            cells.append(f"{statistics.fmean(accuracy):.3f} ({number(statistics.median(seconds))})")
        rows.append([name, *cells])
    title = f"Accuracy (CPU s of a fit), means of {reps} data sets or divisions into folds"
    return Table(title, ["model", *makers], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--reps", type=int, default=3)
    options = parser.parse_args()
    quick = options.quick
    print(compare(QUICK_SIZE if quick else SIZE, 1 if quick else options.reps).text())


if __name__ == "__main__":
    main()
