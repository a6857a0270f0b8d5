"""Soft trees of noisy features by pboost and by the Probabilistic Random Forest, interleaved.

    python -m asv_bench.peers.prf --quick

Run it from the root of a checkout in which pboost is built. It needs PRF
(https://github.com/ireis/PRF), with numba and joblib, on the path, and says so where it is absent.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time

import numpy as np

import pboost as pb
from asv_bench.benchmarks.common import additive, test_error
from asv_bench.peers.report import Table, number

SIZE, QUICK_SIZE = (10_000, 20), (1_000, 20)
TEST_ROWS = 10_000
SIGMA, SPREAD = 0.3, 0.5  # median and log-normal spread of the errors of cells


def noisy(n, d, seed):
    """Return features measured with error, labels 0/1, and the standard deviation of each cell."""
    X, y = additive(n, d, seed)
    random = np.random.default_rng([seed, 1])
    sigma = SIGMA * np.exp(SPREAD * random.standard_normal((n, d)))
    return X + sigma * random.standard_normal((n, d)), y, sigma


def prf(n_trees):
    """Return a fit with PRF's default settings."""

    def fit(X, y, sigma):
        from PRF import prf as forest

        # It writes into its arguments.
        model = forest(n_estimators=n_trees).fit(X=X.copy(), dX=sigma.copy(), y=y)
        return lambda X, sigma: np.array(model.predict_proba(X.copy(), sigma.copy()))[:, 1] - 0.5

    return fit


def soft(builder, **options):
    """Return a fit of pboost, evaluated by expectation."""

    def fit(X, y, sigma):
        model = builder(X, y, observation=pb.observation.gaussian(sigma), n_threads=1, **options)
        return lambda X, sigma: pb.decision_function(model, X, route="expected", sigma=sigma)

    return fit


#: Bins much narrower than the errors add nothing.
FEW_BINS = pb.weak.stump(max_bins=64)
COMPETITORS = {
    "PRF, 1 tree": prf(1),
    "PRF, 10 trees": prf(10),
    "pboost, soft tree, 31 nodes, 256 bins": soft(pb.fit_boosted_tree, max_nodes=31),
    "pboost, soft tree, 31 nodes": soft(pb.fit_boosted_tree, max_nodes=31, weak_learner=FEW_BINS),
    "pboost, soft tree, 63 nodes": soft(pb.fit_boosted_tree, max_nodes=63, weak_learner=FEW_BINS),
    "pboost, soft tree, 127 nodes": soft(pb.fit_boosted_tree, max_nodes=127, weak_learner=FEW_BINS),
    "pboost, matryoshka (4, 4, 4)": soft(pb.fit_matryoshka, shape=(4, 4, 4), weak_learner=FEW_BINS),
    "pboost, matryoshka (2,) * 7": soft(pb.fit_matryoshka, shape=(2,) * 7, weak_learner=FEW_BINS),
    "pboost, AdaBoost, 127 rounds": soft(pb.fit_adaboost, n_estimators=127, weak_learner=FEW_BINS),
}


def measure(fit, train, test):
    """Return CPU seconds of a fit, CPU µs per row of prediction, and the test error."""
    start = time.process_time()
    score = fit(*train)
    fitted = time.process_time()
    X, y, sigma = test
    error = test_error(score(X, sigma), y)
    return fitted - start, (time.process_time() - fitted) / len(X) * 1e6, error


def compare(size, reps, test_rows):
    """Return the table of medians over data sets, going round the competitors."""
    warm = noisy(300, size[1], 99)
    for fit in COMPETITORS.values():
        measure(fit, warm, warm)
    results = {name: [] for name in COMPETITORS}
    for rep in range(reps):
        train, test = noisy(*size, 2 * rep), noisy(test_rows, size[1], 2 * rep + 1)
        for name, fit in COMPETITORS.items():
            results[name].append(measure(fit, train, test))
    rows = []
    for name, item in results.items():
        seconds, per_row, error = map(statistics.median, zip(*item, strict=True))
        rows.append([name, number(seconds), number(per_row), f"{error:.3f}"])
    title = f"Noisy features, {size[0]:,} x {size[1]}, each cell with an error of its own"
    return Table(title, ["model", "fit, s", "prediction, µs per row", "test error"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--reps", type=int, default=3)
    options = parser.parse_args()
    missing = [name for name in ("PRF", "numba") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"nothing measured: {' and '.join(missing)} cannot be imported")
        return
    quick = options.quick
    table = compare(QUICK_SIZE if quick else SIZE, options.reps, 1_000 if quick else TEST_ROWS)
    print(table.text())


if __name__ == "__main__":
    main()
