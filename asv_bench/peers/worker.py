"""One measurement in a process of its own: ``python -m asv_bench.peers.worker CASE``."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
import warnings
from statistics import median
from typing import Any

import numpy as np

from asv_bench.benchmarks.common import TEST_ROWS, additive, row_weights, test_error
from asv_bench.peers import floor
from asv_bench.peers.jobs import LIBRARIES, NOT_INSTALLED, ROUNDS, Case
from asv_bench.peers.libraries import Library
from asv_bench.peers.measure import run

RESULT = "RESULT "
WARM_UP_ROWS = 1_000
#: Repeated measurements within one process end after so many, or after so many seconds.
REPEATS, SECONDS = 5, 2.0
TRAINING_ROWS = 10_000  # of the models that predict
SINGLE_ROWS, LEAST_CALLS = 200, 20


def rounds_of(library: Library, cells: int, quick: bool) -> tuple[int, int]:
    """Return two numbers of rounds whose difference takes about a second."""
    per_round = library.cell_ns * cells * 1e-9
    few = 2 if library.cell_ns > 100 else 10
    maximum = 20 if quick else 100
    low = 10 if per_round < 0.1 else 2 if per_round < 1 else 1
    return low, low + int(np.clip(1 / per_round, few, maximum))


def stumps(case: Case, quick: bool) -> dict[str, Any]:
    """Fit with a low and a high number of rounds; the difference is free of the set-up."""
    library = LIBRARIES[case.kind][case.library]
    X, y = additive(case.n, case.d)
    rows, labels = additive(TEST_ROWS, case.d, seed=1)
    low, high = rounds_of(library, case.n * case.d, quick)
    library.fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], 2, case.threads)
    costs, peaks = [], []
    start = time.perf_counter()
    while not costs or (len(costs) < REPEATS and time.perf_counter() - start < SECONDS):
        pair = []
        for rounds in (low, high):
            cost, scorer = run(
                lambda rounds=rounds: library.fit(X, y, rounds, case.threads), memory=True
            )
            pair.append(cost)
            peaks.append(cost.peak_mb)
        costs.append(pair)
    result: dict[str, Any] = {"low": low, "high": high, "error": test_error(scorer(rows), labels)}
    # Only the first fit starts from memory that no fit has touched.
    result["peak_mb"] = peaks[0]
    for clock in ("cpu", "wall"):
        at_low, at_high = (median(getattr(pair[k], clock) for pair in costs) for k in (0, 1))
        per_round = (at_high - at_low) / (high - low)
        result[f"{clock}_ns"] = per_round / (case.n * case.d) * 1e9
        result[f"{clock}_setup"] = max(0.0, at_low - low * per_round)
        result[f"{clock}_all"] = result[f"{clock}_setup"] + ROUNDS * per_round
    return result


def tree(case: Case, quick: bool) -> dict[str, Any]:
    """Fit one weighted tree."""
    library = LIBRARIES[case.kind][case.library]
    X, y = additive(case.n, case.d)
    rows, labels = additive(TEST_ROWS, case.d, seed=1)
    weight = row_weights(case.n)
    warm = slice(WARM_UP_ROWS)
    library.fit(X[warm], y[warm], 3, case.threads, weight[warm])
    costs = []
    start = time.perf_counter()
    while not costs or (len(costs) < REPEATS and time.perf_counter() - start < SECONDS):
        cost, scorer = run(lambda: library.fit(X, y, case.depth, case.threads, weight))
        costs.append(cost)
    return {
        "cpu": median(cost.cpu for cost in costs),
        "wall": median(cost.wall for cost in costs),
        "error": test_error(scorer(rows), labels),
    }


def predict(case: Case, quick: bool) -> dict[str, Any]:
    """Score many rows at once, and rows one by one."""
    X, y = additive(TRAINING_ROWS, case.d)
    rows, _ = additive(case.n, case.d, seed=1)
    scorer = LIBRARIES[case.kind][case.library].fit(X, y, ROUNDS, case.threads)
    scorer(rows[:WARM_UP_ROWS])
    costs = []
    start = time.perf_counter()
    while not costs or (len(costs) < 4 * REPEATS and time.perf_counter() - start < SECONDS):
        costs.append(run(lambda: scorer(rows))[0])
    single = [np.ascontiguousarray(rows[i : i + 1]) for i in range(SINGLE_ROWS)]
    calls: list[int] = []
    start = time.perf_counter()
    while len(calls) < LEAST_CALLS or time.perf_counter() - start < (0.2 if quick else 1.0):
        row = single[len(calls) % SINGLE_ROWS]
        before = time.perf_counter_ns()
        scorer(row)
        calls.append(time.perf_counter_ns() - before)
    return {
        "cpu_rate": case.n / median(cost.cpu for cost in costs) / 1e6,
        "wall_rate": case.n / median(cost.wall for cost in costs) / 1e6,
        "row_us": median(calls) / 1e3,
    }


def floors(case: Case, quick: bool) -> dict[str, Any]:
    """Time the C loops."""
    return dict(floor.measure(case.n, case.d, 2 if quick else 5))


MEASURES = {"stumps": stumps, "full tree": tree, "tree": tree, "predict": predict, "floor": floors}


def missing(case: Case) -> str | None:
    """Return why a case cannot be measured here; None if it can."""
    if case.kind == "floor":
        return None if floor.compiler() else "no C compiler"
    module = LIBRARIES[case.kind][case.library].module
    return None if importlib.util.find_spec(module) else NOT_INSTALLED


def main(arguments: list[str]) -> int:
    """Measure the case given as JSON, and print the result as JSON."""
    options = json.loads(arguments[0])
    quick = options.pop("quick")
    case = Case(**options)
    reason = missing(case)
    if reason is None:
        warnings.filterwarnings("ignore")
        result = MEASURES[case.kind](case, quick)
    else:
        result = {"skipped": reason}
    print(RESULT + json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
