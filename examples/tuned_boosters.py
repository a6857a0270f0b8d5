"""Gradient boosting tuned by a random search, compared with other libraries.

Run as ``python tuned_boosters.py --data folder``, or set the environment variable PBOOST_DATA to
the folder; see ``default_boosters.py`` for its files. Each set is divided into stratified folds, of
which the first ``--folds`` are test sets. A quarter of the training rows is held out. The first
setting of each library is its defaults, the others are drawn at random. The best setting on the
rows that are held out is fitted to all training rows and tested. "Equal time" means that a library
tries settings until it has used the CPU time of the settings of LightGBM. "All settings" ends after
``--times`` times that time.

Prints reStructuredText tables; ``--rst file`` also writes them to a file. With ``--results file``
outcomes are stored, and the next run continues.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from default_boosters import (
    LEAST_LOSS,
    LIBRARIES,
    TASKS,
    DataSet,
    Library,
    data_sets,
    folds_of,
    installed,
    loss,
)
from oblique_trees import table
from table_command import Results, arguments, publish, stored, write

import pboost as pb
from pboost.inspection import SearchRange

#: Every peer's time is compared with the time of this library.
CLOCK = "LightGBM"
FEWEST_ROWS, SETS = 200, 25
QUICK_ROWS, QUICK_SETS, QUICK_SETTINGS = 250, 1, 3
RATE = SearchRange(0.01, 0.3, log=True)
TREES = SearchRange(50, 500, log=True, integer=True)
L2 = SearchRange(0.001, 10.0, log=True)
SHARE = SearchRange(0.5, 1.0)
SPACES = {
    "LightGBM": {
        "learning_rate": RATE,
        "n_estimators": TREES,
        "num_leaves": SearchRange(4, 128, log=True, integer=True),
        "min_child_samples": SearchRange(1, 100, log=True, integer=True),
        "reg_lambda": L2,
        "subsample": SHARE,
        "colsample_bytree": SearchRange(0.3, 1.0),
    },
    "XGBoost": {
        "learning_rate": RATE,
        "n_estimators": TREES,
        "max_depth": SearchRange(2, 8, integer=True),
        "min_child_weight": SearchRange(0.1, 20.0, log=True),
        "reg_lambda": L2,
        "subsample": SHARE,
        "colsample_bytree": SearchRange(0.3, 1.0),
    },
    "HistGradientBoosting": {
        "learning_rate": RATE,
        "max_iter": TREES,
        "max_leaf_nodes": SearchRange(4, 128, log=True, integer=True),
        "min_samples_leaf": SearchRange(1, 100, log=True, integer=True),
        "l2_regularization": L2,
        "max_features": SearchRange(0.3, 1.0),
    },
    "CatBoost": {
        "learning_rate": RATE,
        "n_estimators": SearchRange(100, 1000, log=True, integer=True),
        "depth": SearchRange(3, 8, integer=True),
        "l2_leaf_reg": SearchRange(1.0, 10.0, log=True),
        "random_strength": SearchRange(0.0, 2.0),
    },
    "ChimeraBoost": {
        "learning_rate": SearchRange(0.03, 0.3, log=True),
        "depth": SearchRange(3, 8, integer=True),
        "l2_leaf_reg": SearchRange(0.3, 10.0, log=True),
    },
}
#: Options without which others have no effect.
FIXED = {"LightGBM": {"subsample_freq": 1}, "HistGradientBoosting": {"early_stopping": False}}


def settings_of(name: str, data: DataSet, n_rows: int, n_settings: int) -> list[dict[str, Any]]:
    """Return the defaults and random settings of a library."""
    task: Any = "regression" if data.task == "regression" else "classification"
    space = SPACES.get(name) or pb.search_space("gradient_boosting", n_rows, task)
    rng, fixed = np.random.default_rng(7), FIXED.get(name, {})
    drawn = [
        {option: values.rvs(rng) for option, values in space.items()} | fixed
        for _ in range(n_settings - 1)
    ]
    return [{}, *drawn]


def searched(
    data: DataSet, name: str, is_test: Any, n_settings: int, most_time: tuple[float, float]
) -> list[float]:
    """Return the test losses for equal time and all settings, the CPU time, and the settings tried.

    `most_time` has the limits of the CPU time in both cases.
    """
    library, train = LIBRARIES[name], np.flatnonzero(~is_test)
    is_held = np.random.default_rng(5).permutation(len(train)) % 4 == 0
    inner = np.ones(len(data.y), dtype=bool)
    inner[train[~is_held]] = False
    settings, losses, spent = settings_of(name, data, (~inner).sum(), n_settings), [], [0.0]
    for options in settings:
        start = time.process_time()
        losses.append(tested(data, library, options, inner, train[is_held]))
        spent.append(spent[-1] + time.process_time() - start)
        if spent[-1] > most_time[1]:
            break
    n_in_time = max(1, sum(total <= most_time[0] for total in spent[1:]))
    best = [int(np.argmin(losses[:n])) for n in (n_in_time, len(losses))]
    final = {k: tested(data, library, settings[k], is_test, np.flatnonzero(is_test)) for k in best}
    return [*(final[k] for k in best), spent[-1], len(losses)]


def tested(data: DataSet, library: Library, options: Any, left_out: Any, test: Any) -> float:
    """Return the loss of a fit without some rows on the test rows; infinity if it fails."""
    try:
        predict = library.fit(data, data.X[~left_out], data.y[~left_out], options)
        value = loss(data.task, data.y[test], np.asarray(predict(data.X[test])))
    except (ValueError, IndexError):  # a class has too few rows for the library
        return np.inf
    return value if np.isfinite(value) else np.inf


def ranks(results: Results, names: dict[str, list[str]], peers: list[str], at: int) -> list[Any]:
    """Return the rows of a table: the mean rank of each library, and its loss against pboost's."""
    from scipy.stats import rankdata

    rows = []
    for peer in peers:
        of_peer = [peer]
        for task in TASKS:
            losses = np.array(
                [
                    [results[key][name][at] for name in peers]
                    for key in names[task]
                    if set(peers) <= results.get(key, {}).keys()
                ]
            )
            if not len(losses):
                of_peer += ["", ""]
                continue
            losses = np.clip(losses, LEAST_LOSS, 1e3)
            rank = rankdata(losses, axis=1)[:, peers.index(peer)]
            ratio = np.log(losses[:, peers.index("pboost")] / losses[:, peers.index(peer)])
            # Folds of a set are not independent: they count as one.
            sets = [key.rsplit(", fold", 1)[0] for key in names[task]][: len(ratio)]
            mean = np.array([ratio[[s == of for s in sets]].mean() for of in dict.fromkeys(sets)])
            error = mean.std(ddof=1) / len(mean) ** 0.5 if len(mean) > 1 else np.nan
            said = "" if peer == "pboost" else f"{100 * mean.mean():+.1f} ± {100 * error:.1f} %"
            of_peer += [f"{rank.mean():.2f}", said]
        rows.append(of_peer)
    return rows


def tables(results: Results, names: dict[str, list[str]], peers: list[str]) -> str:
    """Return the tables of ranks and losses."""
    header = ["library", *(f"{task}, {what}" for task in TASKS for what in ("rank", "pboost"))]
    titles = "Equal time", "All settings"
    parts = [
        table(f"{title}: mean rank, and loss of pboost relative to the library", [header, *rows])
        for at, title in enumerate(titles)
        for rows in [ranks(results, names, peers, at)]
    ]
    return "\n".join(parts) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Search and compare on all sets of the folder."""
    warnings.filterwarnings("ignore")
    parser, options, folder = arguments(
        __doc__,
        "one small set of each task, a single fold, three settings",
        argv,
        results="file with the outcomes of earlier runs",
        rows=(3000, "largest number of rows of a set"),
        folds=(3, "number of test folds, 1 to 5"),
        settings=(30, "settings of each library"),
        times=(3, "multiple of LightGBM's time after which a search ends"),
    )
    n_folds, n_settings, most_rows = options.folds, options.settings, options.rows
    if options.quick:
        n_folds, n_settings, most_rows = 1, QUICK_SETTINGS, QUICK_ROWS
    results, libraries = stored(options.results), installed()
    if CLOCK not in libraries:
        parser.error(f"{CLOCK} is not installed; its CPU time limits the other searches")
    names: dict[str, list[str]] = {task: [] for task in TASKS}
    for data in data_sets(Path(folder), most_rows):
        n_before = len({key.split(",")[0] for key in names[data.task]})
        if len(data.y) < FEWEST_ROWS or n_before == (QUICK_SETS if options.quick else SETS):
            continue
        for fold in range(n_folds):
            key = f"{data.name}, {data.task}, {most_rows} rows, fold {fold}"
            names[data.task].append(key)
            compare(results.setdefault(key, {}), libraries, data, fold, n_settings, options.times)
            write(options.results, results)
        print(data.name, file=sys.stderr)
    peers = [libraries[name] for name in LIBRARIES if name in libraries]
    publish(tables(results, names, peers), options.rst)


def compare(
    of_set: dict[str, Any],
    libraries: dict[str, str],
    data: DataSet,
    fold: int,
    n_settings: int,
    times: int,
) -> None:
    """Measure each library that has no outcome yet, LightGBM first."""
    is_test, clock = folds_of(data) == fold, libraries[CLOCK]
    for name in sorted(libraries, key=lambda name: name != CLOCK):
        if libraries[name] not in of_set:
            total = np.inf if name == CLOCK else of_set[clock][2]
            limits = total, times * total
            of_set[libraries[name]] = searched(data, name, is_test, n_settings, limits)


if __name__ == "__main__":
    main()
