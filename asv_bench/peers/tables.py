"""What holes and categories cost, and the census of adults beside lightgbm, interleaved.

    python -m asv_bench.peers.tables --quick
    python -m asv_bench.peers.tables --data folder

Run it from the root of a checkout in which pboost is built. The census takes part if the folder, or
that of the environment variable PBOOST_DATA, has a file ``adult_census.csv.gz`` with a line of
column names, the last of which is ``target``, ``__cat`` in those of categories, and if pandas and
lightgbm are installed. CPU time of one thread; ratios are medians of those of neighbours in time.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np

import pboost as pb
from asv_bench.benchmarks.common import Stopwatch, additive
from asv_bench.peers.report import Table, number

SIZE, QUICK_SIZE = (100_000, 20), (2_000, 5)
ROUNDS, MEMBERS = 100, 100
MISSING = 0.2
FILE = "adult_census.csv.gz"


def cpu(function):
    """Return the CPU seconds of a call, and what it returns."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def builders(quick):
    """Return the fits of the first table, and what predicts by their models."""
    members = 5 if quick else MEMBERS // 10
    scores = pb.decision_function
    return {
        "fit_adaboost, 100 rounds": (
            partial(pb.fit_adaboost, n_estimators=ROUNDS, n_threads=1),
            scores,
        ),
        "fit_boosted_tree, 31 nodes": (partial(pb.fit_boosted_tree, n_threads=1), scores),
        "fit_cart": (partial(pb.fit_cart, n_threads=1), pb.predict),
        "fit_cart, depth 6": (partial(pb.fit_cart, max_depth=6, n_threads=1), pb.predict),
        f"fit_random_forest, {members} trees": (
            partial(pb.fit_random_forest, n_estimators=members, rng=0, n_threads=1),
            pb.predict_proba,
        ),
        "fit_gradient_boosting, 100 trees of depth 6": (
            partial(
                pb.fit_gradient_boosting,
                loss="log_loss",
                n_estimators=ROUNDS // (20 if quick else 1),
                max_depth=6,
                n_threads=1,
            ),
            scores,
        ),
    }


def builders_of_sums(quick):
    """Return those whose models add up columns, and their members."""
    scores, weak = pb.decision_function, pb.weak
    few = 3 if quick else 30
    return {
        f"fit_adaboost, {few} affine": (
            partial(pb.fit_adaboost, n_estimators=few, weak_learner=weak.affine(), n_threads=1),
            scores,
        ),
        "fit_boosted_tree, 31 affine": (
            partial(pb.fit_boosted_tree, max_nodes=31, weak_learner=weak.affine(), n_threads=1),
            scores,
        ),
        "fit_boosted_tree, 7 linear": (
            partial(
                pb.fit_boosted_tree,
                max_nodes=7,
                weak_learner=weak.linear(max_pairs=20),
                n_threads=1,
            ),
            scores,
        ),
        "fit_boosted_tree, 7 separators": (
            partial(pb.fit_boosted_tree, max_nodes=7, weak_learner=weak.separator(), n_threads=1),
            scores,
        ),
        "fit_real_adaboost, 50 columns": (
            partial(
                pb.fit_real_adaboost, n_estimators=50, weak_learner=weak.feature(), n_threads=1
            ),
            scores,
        ),
        "fit_probitboost, 50 steps": (partial(pb.fit_probitboost, max_iter=50), scores),
        "fit_probit_tree": (partial(pb.fit_probit_tree, n_threads=1), pb.predict_proba),
        f"fit_sbpmt, {few // 10 or 1} members": (
            partial(pb.fit_sbpmt, n_estimators=few // 10 or 1, rng=0, n_threads=1),
            pb.predict_proba,
        ),
    }


def holes(size, reps, quick):
    """Return the table of a matrix with holes against the same without."""
    X, y = additive(*size)
    new, _ = additive(*size, seed=1)
    X, new = X.astype(np.float64), new.astype(np.float64)
    random = np.random.default_rng(2)
    with_holes = [np.where(random.random(size) < MISSING, np.nan, item) for item in (X, new)]
    tables = [(X, new), with_holes]
    rows = []
    for name, (fit, predict) in {**builders(quick), **builders_of_sums(quick)}.items():
        seconds = {(what, k): [] for what in ("fit", "predict") for k in (0, 1)}
        for _ in range(reps):
            for k, (train, test) in enumerate(tables):
                spent, model = cpu(partial(fit, train, y))
                seconds["fit", k].append(spent)
                predict(model, test[:10])
                seconds["predict", k].append(cpu(partial(predict, model, test))[0])
        cells = []
        for what in ("fit", "predict"):
            pair = seconds[what, 0], seconds[what, 1]
            cells += [*map(milliseconds, pair), ratio(*reversed(pair))]
        rows.append([name, *cells])
    heads = [f"{what}, {of}" for what in ("fit", "prediction") for of in ("full", "holes", "ratio")]
    title = f"CPU ms at {size}, {MISSING:.0%} of the cells missing, {reps} pairs"
    return Table(title, ["builder", *heads], rows)


def milliseconds(seconds):
    """Return the median in milliseconds."""
    return number(1000 * statistics.median(seconds))


def ratio(ours, base):
    """Return the median ratio of neighbours in time."""
    return f"{statistics.median(a / b for a, b in zip(ours, base, strict=True)):.2f}"


def census(path, reps, quick):
    """Return the table of AdaBoost and lightgbm on the census, from one frame."""
    import lightgbm
    import pandas

    frame = pandas.read_csv(path, nrows=2000 if quick else None)
    y = (frame.pop("target") == ">50K").to_numpy()
    for name in frame:
        if "__cat" in name:
            frame[name] = frame[name].astype("category")
    options = {"objective": "binary", "num_leaves": 2, "num_threads": 1, "verbosity": -1}

    def ours():
        """Return the time of the rounds after the first."""
        watch = Stopwatch()
        pb.fit_adaboost(frame, y, n_estimators=ROUNDS, n_threads=1, callback=watch)
        return (watch.seconds[-1] - watch.seconds[0]) * ROUNDS / (ROUNDS - 1)

    def of_lightgbm():
        """Return the time of the rounds, of data that are made."""
        data = lightgbm.Dataset(frame, y, params=options).construct()
        return cpu(partial(lightgbm.train, options, data, ROUNDS))[0]

    seconds = {(name, what): [] for name in ("pboost", "lightgbm") for what in ("all", "rounds")}
    for _ in range(reps):
        for name, rounds in (("pboost", ours), ("lightgbm", of_lightgbm)):
            spent, alone = cpu(rounds)
            seconds[name, "all"].append(spent)
            seconds[name, "rounds"].append(alone)
    rows = [
        [name, *(milliseconds(seconds[name, what]) for what in ("all", "rounds"))]
        for name in ("pboost", "lightgbm")
    ]
    pairs = [[seconds[name, what] for name in ("pboost", "lightgbm")] for what in ("all", "rounds")]
    rows.append(["ratio", *(ratio(*pair) for pair in pairs)])
    title = f"CPU ms of {ROUNDS} stumps, {len(y)} rows of the census, {reps} pairs"
    return Table(title, ["library", "from the frame to the model", "rounds alone"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, once")
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--data", type=Path, default=os.environ.get("PBOOST_DATA"))
    options = parser.parse_args()
    reps = 1 if options.quick else options.reps
    result = [holes(QUICK_SIZE if options.quick else SIZE, reps, options.quick)]
    path = Path(options.data or ".") / FILE
    if path.exists() and all(map(importlib.util.find_spec, ("pandas", "lightgbm"))):
        result.append(census(path, reps, options.quick))
    print("\n\n".join(table.text() for table in result))


if __name__ == "__main__":
    main()
