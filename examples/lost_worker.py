"""Fault tolerance on Dask: a worker is killed during a fit, and the model is the same.

Run as ``python lost_worker.py``, after ``pip install "pboosting[dask]"``. A local cluster with two
workers fits twice; in the second fit, one worker is killed with ``kill -9``. Dask restarts the
worker with its partitions, pboost sends it the splits so far, and the fit continues.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import dask
import dask.array as da
from distributed import Client, LocalCluster

import pboost as pb
import pboost.dask

ROWS, ROUNDS = 1_000_000, 300


def fit(X: da.Array, y: da.Array) -> tuple[pb.models.DecisionGraph, float]:
    """Return a model and the fit time in seconds."""
    start = time.perf_counter()
    model = pb.fit_adaboost(pboost.dask.rows(X, y), n_estimators=ROUNDS)
    return model, time.perf_counter() - start


def as_file(model: pb.models.DecisionGraph) -> bytes:
    """Return the model file as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        pb.save(model, path)
        return path.read_bytes()


def main() -> None:
    """Fit, fit again while a worker is killed, and compare."""
    # A busy machine may need more than 15 seconds to restart a worker.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10m"})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        random = da.random.default_rng(0)
        X = random.normal(size=(ROWS, 10), chunks=(ROWS // 4, 10))
        y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
        undisturbed, seconds = fit(X, y)

        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(seconds / 2, os.kill, (victim, signal.SIGKILL)).start()
        survivor, longer = fit(X, y)

        same = as_file(undisturbed) == as_file(survivor)
        print(f"undisturbed {seconds:.1f} s, with a worker killed {longer:.1f} s")
        print(f"process {victim} is gone: {victim not in client.run(os.getpid).values()}")
        print(f"the same model, bit for bit: {same}")


if __name__ == "__main__":
    main()
