"""Whether processes of partitions that are killed at random moments change a model: they must not.

``python tests/killed_processes.py --times 50`` fits on partitions so often, kills one process of
them at a random moment of the time that a fit takes, and compares the bytes of the model with those
of a fit on one table. ``--interrupt`` sends Ctrl-C to the fit instead, in a process of its own, and
measures how soon no process of it is left. ``--builder`` chooses another than `fit_adaboost`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import pboost as pb

#: Builders, and their options for so many rounds.
BUILDERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "fit_adaboost": lambda rounds: {"rounds": rounds},
    "fit_boosted_tree": lambda rounds: {"nodes": rounds},
    "fit_matryoshka": lambda rounds: {"growth": "greedy", "nodes": rounds},
    "fit_cart": lambda rounds: {"max_leaves": rounds + 1},
    "fit_forest": lambda rounds: {"members": rounds // 20, "max_leaves": 21, "rng": 0},
    "fit_sbpmt": lambda rounds: {"members": rounds // 25, "rounds": 2, "steps": 20, "rng": 0},
    "fit_adaboost, gaussian": lambda rounds: {
        "rounds": rounds // 4,
        "observation": pb.observation.gaussian(0.3),
    },
    "fit_stagewise": lambda rounds: {"steps": rounds // 4, "loss": "logistic"},
}
#: Those that read values.
READ_VALUES = ("fit_sbpmt", "fit_adaboost, gaussian")
#: Seconds in which processes must have ended after Ctrl-C.
LIMIT = 2.0


def problem(n: int = 20_000, d: int = 10) -> tuple[Any, Any, Any]:
    """Return a table with holes, labels and weights."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] * X[:, 1]) > rng.normal(size=n)).astype(int)
    return X, y, rng.random(n)


def contents(model: Any) -> bytes:
    with TemporaryDirectory() as folder:
        pb.save(model, Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def fit_parts(rounds: int, builder: str = "fit_adaboost", n_parts: int = 5) -> Any:
    X, y, weight = problem()
    at = np.sort(np.random.default_rng(n_parts).integers(0, len(y), n_parts - 1))
    parts, labels, weights = (np.split(a, at) for a in (X, y, weight))
    columns = pb.shards.bin_columns(parts, values=builder in READ_VALUES)
    return getattr(pb.shards, builder.split(",")[0])(
        columns, labels, sample_weight=weights, n_processes=2, **BUILDERS[builder](rounds)
    )


def kill_one(seconds: float, draw: random.Random, killed: list[int]) -> None:
    """Kill one of the children in so many seconds, or as soon as there is one."""
    time.sleep(seconds)
    while not (running := [child.pid for child in multiprocessing.active_children()]):
        time.sleep(0.01)
    killed.append(draw.choice(running))
    os.kill(killed[-1], signal.SIGKILL)


def kill(times: int, rounds: int, seed: int, builder: str) -> int:
    """Return how many models differ."""
    X, y, weight = problem()
    columns = pb.bin_columns(X, values=builder in READ_VALUES)
    fit = getattr(pb, builder.split(",")[0])
    want = contents(fit(columns, y, sample_weight=weight, **BUILDERS[builder](rounds)))
    begun = time.monotonic()
    fit_parts(rounds, builder)
    usual = time.monotonic() - begun
    draw, wrong, taken = random.Random(seed), 0, []
    for _ in range(times):
        killed: list[int] = []
        wait = draw.random() * usual
        killer = threading.Thread(target=kill_one, args=[wait, draw, killed], daemon=True)
        begun = time.monotonic()
        killer.start()
        model = fit_parts(rounds, builder)
        taken.append(time.monotonic() - begun)
        if killed:
            killer.join()
        wrong += contents(model) != want
    most = max(taken)
    print(
        f"{times} times {builder} of {rounds} rounds, one killed in each: {wrong} models differ; "
        f"{usual:.1f} s without, {np.median(taken):.1f} s (median) with, {most:.1f} s at most"
    )
    return wrong


def group(number: int) -> list[int]:
    """Return the processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == number and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def interrupt(times: int, rounds: int, seed: int) -> int:
    """Return how often a process was left, or anything but KeyboardInterrupt was said."""
    draw, wrong, taken = random.Random(seed), 0, []
    for _ in range(times):
        command = [sys.executable, __file__, "--child", "--rounds", str(rounds)]
        child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
        while len(group(child.pid)) < 3:  # the coordinator, what tracks resources, a process
            time.sleep(0.01)
        time.sleep(draw.random() * 5)
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        begun = time.monotonic()
        while group(child.pid) and time.monotonic() - begun < 10 * LIMIT:
            time.sleep(0.01)
        taken.append(time.monotonic() - begun)
        said = child.communicate()[1].decode()
        wrong += taken[-1] > LIMIT or said.count("Traceback") != 1
    print(
        f"{times} times Ctrl-C: no process left after {np.median(taken):.2f} s (median), "
        f"{max(taken):.2f} s at most; {wrong} late, or with more than one traceback"
    )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--builder", choices=BUILDERS, default="fit_adaboost")
    parser.add_argument("--interrupt", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        while True:
            fit_parts(10**6)
    own = options.times, options.rounds, options.seed
    return (interrupt(*own) if options.interrupt else kill(*own, options.builder)) > 0


if __name__ == "__main__":
    sys.exit(main())
