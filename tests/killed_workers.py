"""Whether workers of Dask that are killed at random moments change a model: they must not.

``python tests/killed_workers.py --times 50`` starts a cluster of two workers and fits on it until
so many workers have been killed. In each fit one is, at a random moment of the time that a fit
takes, and the bytes of the model are compared with those of a fit on one table. ``--both`` kills
the other one, too, at another random moment.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import pboost as pb

#: Builders, and their options for so many steps.
BUILDERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "fit_adaboost": lambda steps: {"n_estimators": steps},
    "fit_boosted_tree": lambda steps: {"max_nodes": steps},
    "fit_cart": lambda steps: {"max_leaf_nodes": steps + 1},
    "fit_gradient_boosting": lambda steps: {"n_estimators": steps // 4, "loss": "log_loss"},
    "fit_random_forest": lambda steps: {
        "n_estimators": steps // 20,
        "max_leaf_nodes": 21,
        "rng": 0,
    },
    "fit_matryoshka": lambda steps: {"growth": "greedy", "max_nodes": steps},
}
#: A cluster looks so long after each loss whether the worker is back, and gives it up if not, also
#: where it has been back and is lost again.
PATIENT = {"distributed.deploy.lost-worker-timeout": "10h"}


def problem(n: int, d: int) -> tuple[Any, Any, Any]:
    """Return a table with missing values, labels and weights."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] * X[:, 1]) > rng.normal(size=n)).astype(int)
    return X, y, rng.random(n)


def contents(model: Any) -> bytes:
    """Return the bytes of the file of a model."""
    with TemporaryDirectory() as folder:
        pb.save(model, Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


class Killed(NamedTuple):
    """What came of a fit in which workers were killed."""

    n_wrong: int
    n_killed: int
    seconds: float


@contextmanager
def started(n_workers: int = 2) -> Iterator[Any]:
    """Start a cluster of processes with one thread each."""
    import dask
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(PATIENT), LocalCluster(n_workers=n_workers, **options) as cluster:
        yield cluster


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


class Fits:
    """Fits of one builder to one table on a cluster, in five partitions."""

    def __init__(self, cluster: Any, builder: str, steps: int, n: int, d: int = 10) -> None:
        import dask.array as da

        import pboost.dask

        X, y, weight = problem(n, d)
        options = BUILDERS[builder](steps)
        self._fit, self._options = getattr(pb, builder), options
        fitted = self._fit(pb.data.bin_columns(X), y, sample_weight=weight, **options)
        self.want, self._cluster = contents(fitted), cluster
        self._given = [da.from_array(a, chunks=(n // 5, d)[: a.ndim]) for a in (X, y, weight)]
        self._read = pboost.dask.rows

    def fit(self, callback: Callable[..., Any] | None = None) -> bytes:
        """Return the bytes of the model of the cluster."""
        options = self._options if callback is None else {**self._options, "callback": callback}
        X, y, weight = self._given
        return contents(self._fit(self._read(X, y, sample_weight=weight), **options))

    def pids(self) -> list[int]:
        """Return the processes of the workers, 0 of one that is being started."""
        return [nanny.pid or 0 for nanny in self._cluster.workers.values()]

    def usual(self) -> float:
        """Return the time that a fit takes if nobody is killed."""
        begun = time.monotonic()
        self.fit()
        return time.monotonic() - begun

    def killed(self, waits: list[float], draw: random.Random) -> Killed:
        """Fit once, and kill another worker after each of the waits."""
        pids, done = draw.sample(self.pids(), len(waits)), []

        def run() -> None:
            for pid, wait in zip(pids, np.diff([0.0, *sorted(waits)]), strict=True):
                if is_over.wait(float(wait)):
                    return
                kill(pid)
                done.append(pid)

        is_over, begun = threading.Event(), time.monotonic()
        killer = threading.Thread(target=run, daemon=True)
        killer.start()
        try:
            n_wrong = int(self.fit() != self.want)
        finally:
            taken = time.monotonic() - begun
            is_over.set()
            killer.join()
        return Killed(n_wrong, len(done), taken)

    def wait_for_workers(self, client: Any, limit: float = 300.0) -> None:
        """Return when all workers are there, RuntimeError if they do not come back."""
        n = len(self._cluster.workers)
        until = time.monotonic() + limit
        while len(client.nthreads()) < n or not all(self.pids()):
            if time.monotonic() > until:
                raise RuntimeError(f"workers have not come back within {limit:g} seconds")
            time.sleep(0.05)


def main() -> int:
    from distributed import Client

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=50, help="workers to be killed")
    parser.add_argument("--builder", choices=BUILDERS, default="fit_adaboost")
    parser.add_argument("--steps", type=int, default=100, help="rounds, nodes or splits")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--both", action="store_true", help="kill both workers in each fit")
    options = parser.parse_args()
    draw, actual = random.Random(options.seed), []
    with started() as cluster, Client(cluster) as client:
        fits = Fits(cluster, options.builder, options.steps, options.rows)
        fits.usual()  # what is imported first
        usual = fits.usual()
        while sum(item.n_killed for item in actual) < options.times:
            waits = [draw.random() * usual for _ in range(1 + options.both)]
            actual.append(fits.killed(waits, draw))
            fits.wait_for_workers(client)
    seconds = [item.seconds for item in actual if item.n_killed]
    wrong = sum(item.n_wrong for item in actual)
    print(
        f"{len(actual)} times {options.builder} of {options.steps} steps, "
        f"{sum(item.n_killed for item in actual)} workers killed: {wrong} models differ; "
        f"{usual:.1f} s without, {np.median(seconds):.1f} s (median) with, {max(seconds):.1f} s at "
        "most"
    )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
