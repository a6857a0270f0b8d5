"""Gradient boosting by pboost and its peers at the same work, interleaved in one run.

    python -m asv_bench.peers.boosted --quick
    python -m asv_bench.peers.boosted --draws 6 --rst docs/benchmarks/boosted_table.rst
    python -m asv_bench.peers.boosted --rows 1000000 --trees 50 --memory \\
        --rst docs/benchmarks/million_table.rst
    python -m asv_bench.peers.boosted --task "seven classes" --rst
    docs/benchmarks/seven_classes_table.rst python -m asv_bench.peers.boosted --one-hot --data
    folder --rst docs/benchmarks/one_hot_table.rst

Fits 100 trees of each depth, or `--trees`, on normal features; the target is a sum of products,
sines and noise. With `--task "seven classes"` there are 100 rounds, and the class is the largest of
seven sums. With `--one-hot` the data are covertype, which has 44 one-hot encoded and ten numeric
features, as a binary problem and, with 20 rounds, with seven classes. It is read from
``covertype.csv.gz`` in the folder, or simulated with the same columns. All fits use one thread.
Peers use default options except for the learning rate, 0.1, and the size of trees; lightgbm also
runs with row-wise histograms and with quantized gradients. Each measurement runs in a separate
process, with interleaved repetitions, and the minimum CPU time is reported. With `--draws` the
problem is drawn several times, and the table has the mean loss and its difference from pboost with
standard error; times are from the first draw. With `--memory` the table has the peak memory of the
first fit above imports and data. With `--results` outcomes are stored after each measurement and
reused by the next run.
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
#: Number of boosting rounds of each task.
TREES = dict.fromkeys((*TASKS, SEVEN, "covertype, class 2"), 100) | {"covertype, seven classes": 20}
ONE_HOT, ONE_HOT_SIZES = tuple(TREES)[len(TASKS) + 1 :], ((300_000, 6),)
WILDERNESS, SOIL, LEVELS_FROM = 4, 40, 10
POOLED = "pboost, growth='pooled'"
PEERS = {
    "pboost": "pboost",
    "pboost, leaf_update='newton'": "pboost",
    "pboost, growth='independent'": "pboost",
    POOLED: "pboost",
    "pboost, growth='symmetric'": "pboost",
    "pboost, without SIMD": "pboost",
    "lightgbm, by rows": "lightgbm",
    "lightgbm, by columns": "lightgbm",
    "lightgbm, quantised": "lightgbm",
    "xgboost hist": "xgboost",
    "scikit-learn HistGradientBoosting": "sklearn",
    "catboost": "catboost",
}


def problem(n: int, task: str, draw: int = 0) -> tuple[Any, ...]:
    """Return training and test rows with their targets."""
    rng = np.random.default_rng(draw)
    if task in ONE_HOT:
        X, y = covertype(rng, n + TEST_ROWS)
        y = (y == 1).astype(int) if task == ONE_HOT[0] else y
        return X[:n], y[:n], X[n:], y[n:]
    X = np.empty((n + TEST_ROWS, D), dtype=np.float32)
    for start in range(0, len(X), TEST_ROWS):  # in blocks, to limit the memory before the fit
        X[start : start + TEST_ROWS] = rng.normal(size=X[start : start + TEST_ROWS].shape)
    if task == SEVEN:
        y = seven_classes(rng, X)
        return X[:n], y[:n], X[n:], y[n:]
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * X[:, 4] * X[:, 5]
    z += rng.normal(size=len(z))
    y = z if task == "numbers" else (z > 0).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def seven_classes(rng: Any, X: Any) -> Any:
    """Return the argmax of seven random functions of the features, for each row."""
    waves = np.sin(1.5 * X) @ (rng.normal(size=(7, D)) * 0.9 ** np.arange(D)).T
    more = [0.7 * X[:, k] * X[:, k + 7] + 0.5 * X[:, k + 1] ** 2 for k in range(7)]
    return (waves + np.stack(more, axis=1) + 0.7 * rng.gumbel(size=waves.shape)).argmax(axis=1)


def covertype(rng: Any, n: int) -> tuple[Any, Any]:
    """Return shuffled rows of covertype with classes from 0 on, or simulated rows."""
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
    # Class frequencies of covertype.
    bounds = np.quantile(score, np.cumsum([0.365, 0.487, 0.062, 0.005, 0.016, 0.030]))
    return np.hstack(parts).astype(np.float32), np.searchsorted(bounds, score)


def pboost(name: str, X: Any, y: Any, depth: int, trees: int, task: str) -> Any:
    """Fit pboost; return a function from rows to probabilities or numbers."""
    import pboost as pb

    if name.endswith("SIMD"):
        from pboost._core import boost

        boost.use_simd_level(0)
    option, _, value = name.removeprefix("pboost, ").partition("=")
    options: dict[str, Any] = {option: value.strip("'")} if value else {}
    loss = "squared_error" if task == "numbers" else "log_loss" if y.max() == 1 else "softmax"
    model = pb.fit_gradient_boosting(
        X, y, loss=loss, n_estimators=trees, max_depth=depth, n_threads=1, **options
    )
    return partial(pb.predict if task == "numbers" else pb.predict_proba, model)


def lightgbm(name: str, X: Any, y: Any, depth: int, trees: int, task: str) -> Any:
    """Fit lightgbm."""
    import lightgbm as lgb

    objective = "regression" if task == "numbers" else "binary" if y.max() == 1 else "multiclass"
    options = {
        "objective": objective,
        "max_depth": depth,
        "num_class": y.max() + 1 if objective == "multiclass" else 1,
        "num_leaves": 2**depth,
        "learning_rate": RATE,
        "num_threads": 1,
        "verbosity": -1,
        "force_col_wise" if "columns" in name else "force_row_wise": True,
        "use_quantized_grad": "quantised" in name,
    }
    return lgb.train(options, lgb.Dataset(X, y, params=options), trees).predict


def xgboost(name: str, X: Any, y: Any, depth: int, trees: int, task: str) -> Any:
    """Fit xgboost."""
    import xgboost as xgb

    objective = "binary:logistic" if y.max() == 1 else "multi:softprob"
    objective = "reg:squarederror" if task == "numbers" else objective
    options = {
        "objective": objective,
        "max_depth": depth,
        "eta": RATE,
        "nthread": 1,
        "tree_method": "hist",
        "verbosity": 0,
        **({"num_class": y.max() + 1} if objective == "multi:softprob" else {}),
    }
    return xgb.train(options, xgb.QuantileDMatrix(X, y, nthread=1), trees).inplace_predict


def sklearn(name: str, X: Any, y: Any, depth: int, trees: int, task: str) -> Any:
    """Fit scikit-learn."""
    from sklearn import ensemble

    kind = "Regressor" if task == "numbers" else "Classifier"
    model = getattr(ensemble, f"HistGradientBoosting{kind}")(
        max_iter=trees,
        max_depth=depth,
        max_leaf_nodes=2**depth,
        learning_rate=RATE,
        early_stopping=False,
    ).fit(X, y)
    return model.predict if task == "numbers" else model.predict_proba


def catboost(name: str, X: Any, y: Any, depth: int, trees: int, task: str) -> Any:
    """Fit catboost."""
    import catboost as cat

    kind = cat.CatBoostRegressor if task == "numbers" else cat.CatBoostClassifier
    model = kind(
        iterations=trees,
        depth=depth,
        learning_rate=RATE,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ).fit(X, y)
    return model.predict if task == "numbers" else model.predict_proba


FITS = {
    "pboost": pboost,
    "lightgbm": lightgbm,
    "xgboost": xgboost,
    "sklearn": sklearn,
    "catboost": catboost,
}


def measure(
    name: str, n: int, depth: int, task: str, trees: int, fits: int, draws: list[int], memory: bool
) -> dict[str, Any]:
    """Return the minimum CPU time of some fits, the memory, and the test errors by draw."""
    fit, result = FITS[PEERS[name]], {}
    X, y, rows, truth = problem(n, task)
    few = np.concatenate([np.arange(1000), np.unique(y, return_index=True)[1][:10]])
    fit(name, X[few], y[few], depth, trees, task)
    for k in range(fits):
        cost, predict = run(partial(fit, name, X, y, depth, trees, task), memory and k == 0)
        result["cpu"] = min(cost.cpu, result.get("cpu", cost.cpu))
        if cost.peak_mb is not None:
            result["peak"] = cost.peak_mb
    for draw in draws:
        if draw or not fits:
            X, y, rows, truth = problem(n, task, draw)
            predict = fit(name, X, y, depth, trees, task)
        for what, value in errors(np.asarray(predict(rows), np.float64), truth, task).items():
            result.setdefault(what, []).append(value)
    return result


def errors(found: Any, truth: Any, task: str) -> dict[str, float]:
    """Return the error of predictions, and for classes the log loss."""
    if task == "numbers":
        return {"error": float(np.sqrt(np.mean((found - truth) ** 2)))}
    if found.ndim == 1:
        found = np.column_stack([1 - found, found])
    share = np.clip(found[np.arange(len(truth)), truth], 1e-15, 1)
    wrong = found.argmax(axis=1) != truth
    return {"error": float(wrong.mean()), "loss": float(-np.log(share).mean())}


def in_process(*case: Any) -> dict[str, Any] | None:
    """Measure a case in a separate process; return None if the library is not installed."""
    environment = dict(os.environ, **dict.fromkeys(LIMITS, "1"))
    command = [sys.executable, "-m", "asv_bench.peers.boosted", "--case", json.dumps(case)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        print(f"{case}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def measured(task: str, sizes: Any, trees: int, options: Any) -> dict[str, Any]:
    """Return the results of each case, measuring the missing ones."""
    file = options.results
    results = json.loads(file.read_text()) if file and file.exists() else {}
    fits = 3 if task in TASKS and options.rows is None else 1
    for n, depth in sizes:
        for rep in range(max(options.reps, 1)):
            for name in PEERS:
                if "growth" in name and (task not in TASKS or (depth <= 3 and name == POOLED)):
                    continue  # trees this shallow are not pooled
                of = results.setdefault(key(task, n, depth, trees, name), {"reps": 0})
                draws = list(range(options.draws if rep == 0 else 0))
                draws = draws[len(of.get("error", ())) :]
                new = of["reps"] <= rep < options.reps
                memory = options.memory and "peak" not in of
                if of.get("gone") or not (new or draws or memory):
                    continue
                case = name, n, depth, task, trees, fits * (new or memory), draws, memory
                result = in_process(*case)
                if result is None:
                    of["gone"] = True
                    continue
                take(of, result, new)
                if file:
                    file.write_text(json.dumps(results))
    return results


def take(of: dict[str, Any], found: dict[str, Any], new: bool) -> None:
    """Add a measurement to the results of a case."""
    of["reps"] += new
    if "cpu" in found:
        of["cpu"] = min(found["cpu"], of.get("cpu", found["cpu"]))
    of.update({what: found[what] for what in ("peak",) if what in found})
    for what in ("error", "loss"):
        of[what] = of.get(what, []) + found.get(what, [])


def key(task: str, n: int, depth: int, trees: int, name: str) -> str:
    """Return the key of the stored results of a case."""
    return f"{task}, {n} rows, depth {depth}, {trees} trees, {name}"


def table(task: str, sizes: Any, trees: int, options: Any) -> Table:
    """Measure a task, and return the table, empty without times."""
    results, rows = measured(task, sizes, trees, options), []
    for n, depth in sizes:
        of = {name: results.get(key(task, n, depth, trees, name), {}) for name in PEERS}
        base = of["pboost"]
        of = {name: item for name, item in of.items() if "cpu" in item and "cpu" in base}
        for name, result in sorted(of.items(), key=lambda item: item[1]["cpu"]):
            cells = [number(result["cpu"]), number(result["cpu"] / base["cpu"])]
            if options.memory:
                cells.append(number(result.get("peak")))
            rows.append([f"{n:,}", str(depth), name, *cells, *losses(result, base, options.draws)])
    header = ["rows", "depth", "library", "s", "÷ pboost", *(["MB"] if options.memory else [])]
    header += ["RMSE"] if task == "numbers" else ["error", "log loss"]
    header += ["− pboost's"] if options.draws > 1 else []
    if task in ONE_HOT:
        return Table(f"{trees} rounds, 10 numbers and 44 one-hot columns, {task}", header, rows)
    unit = "rounds" if task == SEVEN else "trees"
    return Table(f"{trees} {unit}, {D} features, {task}", header, rows)


def losses(found: dict[str, Any], base: dict[str, Any], draws: int) -> list[str]:
    """Return the mean errors of a library, and the difference of the last from pboost."""
    names = [name for name in ("error", "loss") if found.get(name)]
    cells = [f"{np.mean(found[name][:draws]):.4f}" for name in names]
    if draws > 1:
        above = np.subtract(found[names[-1]][:draws], base[names[-1]][:draws])
        cells.append(f"{above.mean():+.4f} ± {above.std(ddof=1) / len(above) ** 0.5:.4f}")
    return cells


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser("python -m asv_bench.peers.boosted", description=__doc__)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="a small size: to see that it works")
    parser.add_argument(
        "--reps", type=int, default=3, help="repetitions; 0: losses only; default 3"
    )
    parser.add_argument("--one-hot", action="store_true", help="covertype instead")
    parser.add_argument("--rows", type=int, help="of this size only, at depth 6")
    parser.add_argument("--trees", type=int, help="how many trees, or rounds of trees")
    parser.add_argument("--draws", type=int, default=1, help="of which losses are; default 1")
    parser.add_argument("--memory", action="store_true", help="measure the peak of memory, too")
    parser.add_argument("--results", type=Path, metavar="FILE", help="outcomes, to go on with")
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
    if options.rows is not None:
        tasks, sizes = tasks[:1], ((options.rows, 6),)
    options.reps = 1 if options.quick else options.reps
    loads, tables = _load(), []
    for task in tasks:
        trees = options.trees or TREES[task]
        tables.append(table(task, sizes if task == TASKS[0] else sizes[-1:], trees, options))
    fits = options.reps * (3 if tasks[0] in TASKS and options.rows is None else 1)
    minimum = f"the minimum of {fits} fits" if fits > 1 else "from a single fit"
    drawn = f" Losses are means over {options.draws} data sets." if options.draws > 1 else ""
    peak = " Memory does not include imports and data." if options.memory else ""
    times = f"Times are CPU times with one thread, {minimum}.{drawn}{peak}"
    message = f"{times} {machine(loads + _load())}"
    print("\n\n".join([*(part.text() for part in tables), message]))
    if options.rst:
        parts = [part for item in tables for part in (item.rst(), "")]
        text = "\n".join([":orphan:", "", START, "", *parts, message, ""])
        options.rst.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
