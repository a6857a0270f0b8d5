"""Gradient boosting by pboost and its peers at the same work, interleaved in one run.

    python -m asv_bench.peers.boosted --quick
    python -m asv_bench.peers.boosted --rst docs/user/boosted_table.rst
    python -m asv_bench.peers.boosted --task "seven classes" --rst docs/user/seven_classes_table.rst
    python -m asv_bench.peers.boosted --one-hot --data folder --rst docs/user/one_hot_table.rst

100 trees of each depth on normal features, the target a sum of products, sines and noise; of seven
classes, only run where `--task` says so, the one whose sum is greatest, and 100 rounds; or, with
`--one-hot`, on covertype, which has 44 one-hot columns beside ten of numbers, in two classes and,
20 rounds, in seven. It is read from ``covertype.csv.gz`` in the folder, or else drawn with the same
columns. One thread. Peers have their default settings but for the learning rate, 0.1, and the size
of trees; lightgbm also counts rows in its other order and with quantised gradients. Every
measurement has a process of its own; repetitions go round the competitors, and the least CPU time
is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from asv_bench.peers.__main__ import LIMITS, ROOT, START, _load, machine
from asv_bench.peers.measure import run
from asv_bench.peers.report import Table, number

RATE, D, TEST_ROWS = 0.1, 20, 50_000
SIZES = ((10_000, 3), (10_000, 6), (100_000, 3), (100_000, 6))
QUICK = ((2_000, 3),)
TASKS, SEVEN = ("two classes", "numbers"), "seven classes"
#: Trees, or rounds of trees, of each task.
TREES = dict.fromkeys((*TASKS, SEVEN, "covertype, class 2"), 100) | {"covertype, seven classes": 20}
ONE_HOT, ONE_HOT_SIZES = tuple(TREES)[len(TASKS) + 1 :], ((300_000, 6),)
WILDERNESS, SOIL, LEVELS_FROM = 4, 40, 10
PEERS = {
    "pboost": "pboost", "pboost, leaf_step='newton'": "pboost",
    "pboost, leaf_step='best'": "pboost", "pboost, without SIMD": "pboost",
    "lightgbm, by rows": "lightgbm", "lightgbm, by columns": "lightgbm",
    "lightgbm, quantised": "lightgbm", "xgboost hist": "xgboost",
    "scikit-learn HistGradientBoosting": "sklearn", "catboost": "catboost",
}  # fmt: skip


def problem(n: int, task: str) -> tuple[Any, ...]:
    """Return rows and targets to train with, and others to test with."""
    rng = np.random.default_rng(0)
    if task in ONE_HOT:
        X, y = covertype(rng, n + TEST_ROWS)
        y = (y == 1).astype(int) if task == ONE_HOT[0] else y
        return X[:n], y[:n], X[n:], y[n:]
    X = rng.normal(size=(n + TEST_ROWS, D)).astype(np.float32)
    if task == SEVEN:
        y = seven_classes(rng, X)
        return X[:n], y[:n], X[n:], y[n:]
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * X[:, 4] * X[:, 5]
    z += rng.normal(size=len(z))
    y = z if task == "numbers" else (z > 0).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def seven_classes(rng: Any, X: Any) -> Any:
    """Return the greatest of seven sums of sines, a product, a square and noise, for each row."""
    waves = np.sin(1.5 * X) @ (rng.normal(size=(7, D)) * 0.9 ** np.arange(D)).T
    more = [0.7 * X[:, k] * X[:, k + 7] + 0.5 * X[:, k + 1] ** 2 for k in range(7)]
    return (waves + np.stack(more, axis=1) + 0.7 * rng.gumbel(size=waves.shape)).argmax(axis=1)


def covertype(rng: Any, n: int) -> tuple[Any, Any]:
    """Return rows of covertype in some order, and their classes from 0 on; or rows like them."""
    path = Path(os.environ.get("PBOOST_DATA", "")) / "covertype.csv.gz"
    if path.is_file():
        import pandas

        rows = pandas.read_csv(path, dtype=np.float32).to_numpy()
        rows = rows[rng.permutation(len(rows))[:n]]
        return rows[:, :-1], rows[:, -1].astype(int) - 1
    numbers = rng.normal(size=(n, LEVELS_FROM)).round(2)
    score = numbers[:, 0] * numbers[:, 1] + np.sin(2 * numbers[:, 2]) + numbers[:, 3]
    parts = [numbers]
    for size in (WILDERNESS, SOIL):
        level = rng.choice(size, n, p=rng.dirichlet(np.ones(size)))
        parts.append(level[:, None] == np.arange(size))
        score += rng.normal(size=size)[level]
    score += 0.5 * rng.normal(size=n)
    # The shares of the classes of covertype.
    bounds = np.quantile(score, np.cumsum([0.365, 0.487, 0.062, 0.005, 0.016, 0.030]))
    return np.hstack(parts).astype(np.float32), np.searchsorted(bounds, score)


def pboost(name: str, X: Any, y: Any, depth: int, task: str) -> Any:
    """Return a fit by pboost, as a function of rows: probabilities or numbers."""
    import pboost as pb

    if name.endswith("SIMD"):
        from pboost._core import boost

        boost.use_simd_level(0)
    options = {"leaf_step": name.split("'")[1]} if "leaf_step" in name else {}
    loss = "squared" if task == "numbers" else "logistic" if y.max() == 1 else "softmax"
    model = pb.fit_stagewise(
        X, y, loss=loss, steps=TREES[task], max_depth=depth, n_threads=1, **options
    )
    return partial(pb.predict if task == "numbers" else pb.predict_proba, model)


def lightgbm(name: str, X: Any, y: Any, depth: int, task: str) -> Any:
    """Return a fit by lightgbm."""
    import lightgbm as lgb

    objective = "regression" if task == "numbers" else "binary" if y.max() == 1 else "multiclass"
    options = {
        "objective": objective, "max_depth": depth,
        "num_class": y.max() + 1 if objective == "multiclass" else 1,
        "num_leaves": 2**depth, "learning_rate": RATE, "num_threads": 1, "verbosity": -1,
        "force_col_wise" if "columns" in name else "force_row_wise": True,
        "use_quantized_grad": "quantised" in name,
    }  # fmt: skip
    return lgb.train(options, lgb.Dataset(X, y, params=options), TREES[task]).predict


def xgboost(name: str, X: Any, y: Any, depth: int, task: str) -> Any:
    """Return a fit by xgboost."""
    import xgboost as xgb

    objective = "binary:logistic" if y.max() == 1 else "multi:softprob"
    objective = "reg:squarederror" if task == "numbers" else objective
    options = {
        "objective": objective, "max_depth": depth, "eta": RATE, "nthread": 1,
        "tree_method": "hist", "verbosity": 0,
        **({"num_class": y.max() + 1} if objective == "multi:softprob" else {}),
    }  # fmt: skip
    return xgb.train(options, xgb.QuantileDMatrix(X, y, nthread=1), TREES[task]).inplace_predict


def sklearn(name: str, X: Any, y: Any, depth: int, task: str) -> Any:
    """Return a fit by scikit-learn."""
    from sklearn import ensemble

    kind = "Regressor" if task == "numbers" else "Classifier"
    model = getattr(ensemble, f"HistGradientBoosting{kind}")(
        max_iter=TREES[task], max_depth=depth, max_leaf_nodes=2**depth, learning_rate=RATE,
        early_stopping=False,
    ).fit(X, y)  # fmt: skip
    return model.predict if task == "numbers" else model.predict_proba


def catboost(name: str, X: Any, y: Any, depth: int, task: str) -> Any:
    """Return a fit by catboost."""
    import catboost as cat

    kind = cat.CatBoostRegressor if task == "numbers" else cat.CatBoostClassifier
    model = kind(
        iterations=TREES[task], depth=depth, learning_rate=RATE, thread_count=1, verbose=False,
        allow_writing_files=False,
    ).fit(X, y)  # fmt: skip
    return model.predict if task == "numbers" else model.predict_proba


FITS = {
    "pboost": pboost, "lightgbm": lightgbm, "xgboost": xgboost, "sklearn": sklearn,
    "catboost": catboost,
}  # fmt: skip


def measure(name: str, n: int, depth: int, task: str) -> dict[str, float]:
    """Return the least CPU time of the fits, and the errors on new rows."""
    X, y, rows, truth = problem(n, task)
    fit = FITS[PEERS[name]]
    few = np.concatenate([np.arange(1000), np.unique(y, return_index=True)[1][:10]])
    fit(name, X[few], y[few], depth, task)
    seconds = []
    for _ in range(3 if task in TASKS else 1):
        cost, predict = run(lambda: fit(name, X, y, depth, task))
        seconds.append(cost.cpu)
    found = np.asarray(predict(rows), dtype=np.float64)
    if task == "numbers":
        return {"cpu": min(seconds), "error": float(np.sqrt(np.mean((found - truth) ** 2)))}
    if found.ndim == 1:
        found = np.column_stack([1 - found, found])
    share = np.clip(found[np.arange(len(truth)), truth], 1e-15, 1)
    return {
        "cpu": min(seconds), "error": float((found.argmax(axis=1) != truth).mean()),
        "loss": float(-np.log(share).mean()),
    }  # fmt: skip


def in_process(*case: Any) -> dict[str, float] | None:
    """Measure a case in a process of its own; None where the library is not there."""
    environment = dict(os.environ, **dict.fromkeys(LIMITS, "1"))
    command = [sys.executable, "-m", "asv_bench.peers.boosted", "--case", json.dumps(case)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    found = done.stdout.splitlines()
    if done.returncode or not found:
        print(f"{case}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    result: dict[str, float] = json.loads(found[-1])
    return result


def table(task: str, sizes: Any, reps: int) -> Table:
    """Measure a task, and return the table; of leaf steps that which is not the default."""
    rows, default = [], "best" if task in (*TASKS, ONE_HOT[0]) else "newton"
    names = [name for name in PEERS if default not in name]
    for n, depth in sizes:
        best: dict[str, dict[str, float]] = {}
        for _ in range(reps):
            for name in names:
                found = in_process(name, n, depth, task)
                if found is not None:
                    cpu = min(found["cpu"], best.get(name, found)["cpu"])
                    best[name] = {**found, "cpu": cpu}
        base = best["pboost"]["cpu"]
        for name, of in sorted(best.items(), key=lambda item: item[1]["cpu"]):
            errors = [f"{of['error']:.4f}", *([f"{of['loss']:.4f}"] if "loss" in of else [])]
            cells = [number(of["cpu"]), number(of["cpu"] / base), *errors]
            rows.append([f"{n:,}", str(depth), name, *cells])
    errors = ["RMSE"] if task == "numbers" else ["error", "log loss"]
    header = ["rows", "depth", "library", "s", "÷ pboost", *errors]
    if task in ONE_HOT:
        return Table(
            f"{TREES[task]} rounds, 10 numbers and 44 one-hot columns, {task}", header, rows
        )
    unit = "rounds" if task == SEVEN else "trees"
    return Table(f"{TREES[task]} {unit}, {D} features, {task}", header, rows)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser("python -m asv_bench.peers.boosted", description=__doc__)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a small size: to see that it works")
    parser.add_argument("--reps", type=int, default=3, help="repetitions; default 3")
    parser.add_argument("--one-hot", action="store_true", help="covertype instead")
    parser.add_argument("--task", choices=list(TREES), help="this task only")
    parser.add_argument("--data", help="folder of covertype; default: PBOOST_DATA")
    parser.add_argument("--rst", type=Path, metavar="FILE", help="write the tables, too")
    options = parser.parse_args(arguments)
    if options.case:
        print(json.dumps(measure(*json.loads(options.case))))
        return 0
    if options.data:
        os.environ["PBOOST_DATA"] = options.data
    tasks = (options.task,) if options.task else ONE_HOT if options.one_hot else TASKS
    sizes = QUICK if options.quick else ONE_HOT_SIZES if tasks[0] in ONE_HOT else SIZES
    reps = 1 if options.quick else options.reps
    loads = _load()
    tables = [table(task, sizes if task == TASKS[0] else sizes[-1:], reps) for task in tasks]
    fits = 3 * reps if tasks[0] in TASKS else reps
    least = f"the least of {fits} fits" if fits > 1 else "one fit each"
    said = f"CPU time, one thread, {least}. {machine(loads + _load())}"
    print("\n\n".join([*(part.text() for part in tables), said]))
    if options.rst:
        parts = [part for one in tables for part in (one.rst(), "")]
        text = "\n".join([":orphan:", "", START, "", *parts, said, ""])
        options.rst.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
