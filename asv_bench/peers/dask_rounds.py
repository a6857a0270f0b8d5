"""Boosting rounds on a Dask cluster: overhead beyond the kernels, and other libraries on Dask.

    python -m asv_bench.peers.dask_rounds --quick
    python -m asv_bench.peers.dask_rounds --rst docs/benchmarks/dask_rounds_table.rst

Run it from the root of a checkout with a built pboost, on an otherwise idle machine. Clusters are
local, with one or two workers of one thread each. xgboost and lightgbm are used if installed. Each
fit of the last table is repeated once, and one of its workers is killed during the fit.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

import pboost as pb
from asv_bench.benchmarks.common import additive
from asv_bench.peers.__main__ import ROOT, _load, as_rst, machine
from asv_bench.peers.report import NOTHING, Table, number
from asv_bench.peers.worker import RESULT

N_FEATURES, BLOCK = 20, 500_000
SIZE, LARGE, QUICK = 200_000, 10_000_000, 20_000
#: Rounds of two fits, whose difference excludes the work before the first round.
FEW, MANY = 5, 205
#: A worker is killed during a fit of at least LONG seconds, or of MOST rounds; the fit is then
#: limited to LIMIT seconds.
LONG, MOST, LIMIT = 4.0, 20_000, 120.0
SHAPES = {"stumps": 1, "depth 3": 3, "depth 6": 6}
#: Housekeeping of Dask processes, which by default runs 2 to 100 times a second. Workers also
#: profile the threads that compute.
USUAL, RARE = "usual", "rare"
RARELY = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}


@contextlib.contextmanager
def cluster(n_workers, upkeep=USUAL):
    """Start a scheduler and workers of one thread each; yield the client."""
    import dask
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    # A busy machine may need more than 15 seconds to restart a process.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10h"})
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with dask.config.set(RARELY if upkeep == RARE else {}):
        os.environ["DASK_INTERNAL_INHERIT_CONFIG"] = dask.config.serialize(
            dask.config.global_config
        )
        with (
            SubprocessCluster(n_workers=n_workers, **options) as workers,
            Client(workers) as client,
        ):
            client.wait_for_workers(n_workers)
            yield client


def block(number, n, what):
    """Return X or y of some rows, independently of the partitions."""
    return additive(n, N_FEATURES, number)[what]


def collections(n, n_parts):
    """Return X and y, created by the workers."""
    import dask
    import dask.array as da

    size = min(BLOCK, n)
    made = dask.delayed(block)
    X, y = (
        da.concatenate(
            [
                da.from_delayed(made(k, size, what), (size, N_FEATURES)[: 2 - what], dtype)
                for k in range(n // size)
            ]
        )
        for what, dtype in enumerate((np.float32, np.int32))
    )
    rows = -(-n // n_parts)
    return X.rechunk((rows, N_FEATURES)), y.rechunk(rows)


def kept(client, n, n_parts):
    """Return X and y, persisted on the workers with alternating partitions."""
    import dask.array as da
    from distributed import wait

    X, y = collections(n, n_parts)
    workers, parts = sorted(client.scheduler_info()["workers"]), []
    for k in range(n_parts):
        of = workers[k % len(workers)]
        parts.append(client.persist((X.blocks[k], y.blocks[k]), workers=of))
    wait(parts)
    return tuple(da.concatenate(blocks) for blocks in zip(*parts, strict=True))


def watch_masses():
    """Measure the compute time of partitions; runs on the workers."""
    from pboost.distributed.graph_partitions import Shard

    if hasattr(Shard, "seconds"):
        return
    masses, Shard.seconds = Shard.masses, []

    def timed(shard, cuts):
        wall, cpu = time.perf_counter(), time.thread_time()
        result = masses(shard, cuts)
        Shard.seconds.append((time.perf_counter() - wall, time.thread_time() - cpu))
        return result

    Shard.masses = timed


def taken_seconds():
    """Return and reset the measurements of this worker."""
    from pboost.distributed.graph_partitions import Shard

    result, Shard.seconds[:] = list(Shard.seconds), []
    return result


class Clock:
    """A callback that records the end of rounds, and CPU seconds after some and after the last.

    Attributes
    ----------
    ends : list of float
        Wall seconds at the ends of rounds.
    here, there : list
        CPU seconds of this process and of each worker, at both times.
    """

    first = 5

    def __init__(self, client, rounds):
        self.client, self.rounds = client, rounds
        self.ends, self.here, self.there = [], [], []

    def __call__(self, step, record):
        self.ends.append(time.perf_counter())
        if step in (self.first, self.rounds):
            self.here.append(time.process_time())
            self.there.append(self.client.run(time.process_time))
            if step == self.first:
                self.here[0] = time.process_time()

    def processor(self, answers):
        """Return CPU seconds per round of this process, and of the busiest worker.

        The computations of partitions are excluded.
        """
        n = self.rounds - self.first
        spent = [
            self.there[1][name] - self.there[0][name] - sum(cpu for _, cpu in of[-n:])
            for name, of in answers.items()
            if of
        ]
        return (self.here[1] - self.here[0] + max(spent)) / n


def rounds_of(client, data, n_parts, rounds):
    """Return the times of a round in milliseconds.

    These are the medians of: the round; the kernels of the slower worker, and their CPU time; and
    the round minus the kernels. Then follow the first decile of that difference, which is most
    reliable on a busy machine, and the CPU time of this process and of a worker beyond kernels.
    """
    import pboost.dask

    X, y = data
    client.run(watch_masses)
    client.run(taken_seconds)
    clock = Clock(client, rounds)
    pb.fit_adaboost(pboost.dask.rows(X, y), n_estimators=rounds, callback=clock)
    answers = client.run(taken_seconds)
    result = np.array([of for of in answers.values() if of])
    # If one worker has both partitions, it computes them in turn, and the other has none.
    if result.shape[:2] != (n_parts, rounds):
        raise RuntimeError(f"expected a partition on each of {n_parts} workers; run it again")
    wall = np.delete([after - before for before, after in pairwise(clock.ends)], clock.first - 1)
    slower, cpu = np.delete(result[:, 1:], clock.first - 1, axis=1).max(axis=0).T
    medians = [np.median(part) for part in (wall, slower, cpu, wall - slower)]
    lowest = np.quantile(wall - slower, 0.1)
    return [1e3 * float(item) for item in (*medians, lowest, clock.processor(answers))]


def overhead(sizes, reps, large_rounds):
    """Return the table of rounds, alternating between one and two workers."""
    rows = []
    for n in sizes:
        rounds = 400 if n < 10**6 else large_rounds
        result = {(upkeep, n_workers): [] for upkeep in (USUAL, RARE) for n_workers in (1, 2)}
        for _ in range(reps):
            for (upkeep, n_workers), of in result.items():
                with cluster(n_workers, upkeep) as client:
                    data = collections(n, n_workers)
                    of.append(rounds_of(client, data, n_workers, rounds))
                print(n, upkeep, n_workers, *map(number, of[-1]), file=sys.stderr)
        minimum = {key: np.min(of, axis=0) for key, of in result.items()}
        for (upkeep, n_workers), figures in minimum.items():
            first, ratios = minimum[upkeep, 1], [NOTHING, NOTHING]
            if n_workers == 2:
                ratios = [f"{first[0] / figures[0]:.2f}", f"{first[2] / figures[2]:.2f}"]
            rows.append([f"{n:,}", upkeep, str(n_workers), *map(number, figures), *ratios])
    header = [
        "rows",
        "Dask's upkeep",
        "workers",
        "ms per round",
        "slower worker",
        "its CPU time",
        "beyond it",
        "lowest tenth",
        "CPU time beyond it",
        "speed-up",
        "of kernels' CPU time",
    ]
    return Table(f"Rounds of pb.fit_adaboost on Dask, {N_FEATURES} columns", header, rows)


def median_of(ratios, draws=10_000):
    """Return the median of ratios with its bootstrapped 95 % interval."""
    drawn = np.random.default_rng(0).choice(ratios, (draws, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return f"{np.median(ratios):.2f} ({low:.2f} to {high:.2f})"


def by_turns(n, pairs, rounds):
    """Return the table of speedups by a second worker, from alternating fits.

    Both fits use one cluster of two workers with rare housekeeping. It is restarted after every
    tenth pair, so that the memory layout does not affect the result.
    """
    result = []
    while len(result) < pairs:
        with cluster(2, RARE) as client:
            both = [(kept(client, n, n_parts), n_parts, rounds) for n_parts in (1, 2)]
            for _ in range(min(10, pairs - len(result))):
                result.append([rounds_of(client, *item) for item in both])
                print(n, RARE, *(number(of[0]) for of in result[-1]), file=sys.stderr, flush=True)
            del both
    times = np.array(result)  # (pairs, workers, figures)
    first, two = np.median(times, axis=0)
    ratios = times[:, 0] / times[:, 1]
    row = [
        f"{n:,}",
        str(pairs),
        number(first[0]),
        number(two[0]),
        number(two[3]),
        median_of(ratios[:, 0]),
        median_of(ratios[:, 2]),
    ]
    header = [
        "rows",
        "pairs",
        "one worker, ms per round",
        "two",
        "beyond the slower",
        "speed-up (95 % interval)",
        "of kernels' CPU time",
    ]
    return Table("Two workers beside one, fits by turns, rare upkeep: medians", header, [row])


class Ours:
    """AdaBoost with stumps, and gradient boosting with deeper trees."""

    def __init__(self, client, n, n_parts, shape):
        self._data, self._depth = collections(n, n_parts), SHAPES[shape]

    def fit(self, rounds, callback=None):
        import pboost.dask

        rows = pboost.dask.rows(*self._data)
        if self._depth == 1:
            return pb.fit_adaboost(rows, n_estimators=rounds, callback=callback)
        return pb.fit_gradient_boosting(
            rows,
            n_estimators=rounds,
            max_depth=self._depth,
            growth="independent",
            callback=callback,
        )

    @staticmethod
    def predict(model, rows):
        return pb.predict_proba(model, rows)[:, 1]


class XGBoost:
    """Trees of xgboost with histograms."""

    def __init__(self, client, n, n_parts, shape):
        from xgboost import dask as xgboost_dask

        self._dask, self._client = xgboost_dask, client
        self._data = xgboost_dask.DaskQuantileDMatrix(client, *kept(client, n, n_parts))
        self._options = {
            "max_depth": SHAPES[shape],
            "tree_method": "hist",
            "nthread": 1,
            "objective": "binary:logistic",
        }

    def fit(self, rounds):
        return self._dask.train(self._client, self._options, self._data, num_boost_round=rounds)[
            "booster"
        ]

    @staticmethod
    def predict(model, rows):
        import xgboost

        return model.predict(xgboost.DMatrix(rows))


class LightGBM:
    """Trees of lightgbm with as many leaves as the depth allows."""

    def __init__(self, client, n, n_parts, shape):
        self._client, self._data, self._depth = client, kept(client, n, n_parts), SHAPES[shape]

    def fit(self, rounds):
        import lightgbm

        learner = lightgbm.DaskLGBMClassifier(
            client=self._client,
            n_estimators=rounds,
            num_leaves=2**self._depth,
            max_depth=self._depth,
            verbosity=-1,
        )
        return learner.fit(*self._data).booster_

    @staticmethod
    def predict(model, rows):
        return model.predict(rows)


LIBRARIES = {"pboost": Ours, "xgboost": XGBoost, "lightgbm": LightGBM}


def installed():
    return [name for name in LIBRARIES if importlib.util.find_spec(name)]


def seconds(fit, rounds):
    start = time.perf_counter()
    model = fit(rounds)
    return time.perf_counter() - start, model


def peers(n, reps):
    """Return the table of the fits of pboost and other libraries."""
    rows, test = [], additive(5000, N_FEATURES, 10**6)[0]
    for shape in SHAPES:
        costs = {name: {FEW: [], MANY: []} for name in installed()}
        spread = {}
        with cluster(2) as client:
            for name, cost in costs.items():
                library = LIBRARIES[name](client, n, 2, shape)
                library.fit(FEW)  # excludes imports and compilation
                for rounds in [FEW, MANY] * reps:
                    taken, model = seconds(library.fit, rounds)
                    cost[rounds].append(taken)
                other = LIBRARIES[name](client, n, 5, shape).fit(MANY)
                result = [library.predict(item, test) for item in (model, other)]
                spread[name] = float(np.abs(result[0] - result[1]).max())
                print(shape, name, cost, spread[name], file=sys.stderr)
        for name in costs:
            said = killed(name, shape, n)
            minimum = {rounds: min(taken) for rounds, taken in costs[name].items()}
            ms = number(1e3 * (minimum[MANY] - minimum[FEW]) / (MANY - FEW))
            rows.append([f"{name}, {shape}", ms, f"{spread[name]:.2g}", said])
    header = ["fit", "ms per tree", "most that probabilities differ", "one of two workers killed"]
    title = f"{n:,} rows, {N_FEATURES} columns, two workers; partitions: 2 beside 5"
    return Table(title, header, rows)


def killed(name, shape, n):
    """Return the result of a fit in a separate process, one of whose workers was killed."""
    command = [sys.executable, "-m", __spec__.name, "--killed", name, shape, str(n)]
    with TemporaryFile("w+") as said:  # workers print, too
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=said, stderr=subprocess.DEVNULL, start_new_session=True
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(4 * LIMIT)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # remaining workers
        process.wait()
        said.seek(0)
        lines = [line for line in said.read().splitlines() if line.startswith(RESULT)]
    result = lines[-1].removeprefix(RESULT) if lines else "the process did not end"
    print(name, shape, result, file=sys.stderr)
    return result


def kill_one(name, shape, n):
    """Fit, kill a worker meanwhile, print the result, and end the process."""
    warnings.simplefilter("ignore")
    with cluster(2) as client:
        library = LIBRARIES[name](client, n, 2, shape)
        rounds, usual = MANY, 0.0
        while usual < LONG and rounds < MOST:
            usual, want = seconds(library.fit, rounds)
            rounds = min(MOST, int(rounds * np.clip(1.5 * LONG / usual, 1.0, 8.0)))
        usual, want = seconds(library.fit, rounds)
        result = []
        pids = list(client.run(os.getpid).values())

        def fit():
            try:
                taken, model = seconds(library.fit, rounds)
            except BaseException as error:
                after = time.perf_counter() - begun - usual / 2
                result.append(f"{type(error).__name__}, {after:.1f} s after the kill")
                return
            test = additive(5000, N_FEATURES, 10**6)[0]
            first, other = (library.predict(m, test) for m in (want, model))
            same = "the same model" if (first == other).all() else "another model"
            result.append(f"{same}, {taken:.1f} s in place of {usual:.1f}")

        thread, begun = threading.Thread(target=fit, daemon=True), time.perf_counter()
        thread.start()
        time.sleep(usual / 2)
        os.kill(pids[0], signal.SIGKILL)
        thread.join(LIMIT)
        print(RESULT, result[0] if result else f"no end within {LIMIT:g} s", sep="", flush=True)
        os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--rows", type=int, default=LARGE, help="rows of the large table")
    parser.add_argument("--rounds", type=int, default=30, help="rounds on the large table")
    parser.add_argument("--pairs", type=int, default=30, help="of fits by one worker and by two")
    parser.add_argument("--only", choices=["rounds", "pairs", "peers"], help="one of the tables")
    parser.add_argument("--quick", action="store_true", help="few rows, once: to see that it works")
    parser.add_argument("--rst", type=Path)
    parser.add_argument("--killed", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.killed:
        name, shape, n = options.killed
        kill_one(name, shape, int(n))
    sizes = [QUICK] if options.quick else [SIZE, options.rows]
    before, reps, tables = _load(), 1 if options.quick else options.reps, []
    if options.only in (None, "rounds"):
        tables.append(overhead(sizes, reps, options.rounds))
    if options.only in (None, "pairs"):
        pairs = 2 if options.quick else options.pairs
        tables.append(by_turns(sizes[-1], pairs, 400 if options.quick else options.rounds))
    if options.only in (None, "peers"):
        tables.append(peers(sizes[0], reps))
    print("\n\n".join(table.text() for table in tables))
    remarks = [
        f"Times are the minimum of {reps} runs. In the last table, the time per tree is computed "
        f"from fits of {FEW} and {MANY} rounds. {machine([*before, *_load()])}"
    ]
    if options.rst:
        options.rst.write_text(as_rst(tables, remarks), encoding="utf-8")


if __name__ == "__main__":
    main()
