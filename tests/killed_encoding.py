"""Kill calls of bin_files at random moments: folders are refused, or gone on with, or complete.

    python tests/killed_encoding.py
    python tests/killed_encoding.py --kills 100 --edges exact

Each table is binned by processes that are killed (SIGKILL), one after another, until one ends; a
folder must be refused before, and afterwards be that of a call that was not killed, byte for byte.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pboost as pb
from pboost.data.on_disk import column_folder, encoded_batches

ROWS, BATCHES = 20_000, 40
#: Seconds between two batches, so that there is something to kill.
WAIT = 0.005


def batches(wait=0.0):
    """Yield a table in batches, slowly."""
    for k in range(BATCHES):
        time.sleep(wait)
        rng = np.random.default_rng(k)
        X = rng.normal(size=(ROWS // BATCHES, 5))
        X[:, 1] = np.where(rng.random(len(X)) < 0.1, np.nan, np.round(X[:, 1], 1))
        yield X, X[:, 0] > rng.normal(size=len(X)), rng.integers(0, 3, len(X))


def encode(folder, edges, wait):
    """Bin the table, keeping what is done after every batch."""
    encoded_batches.SECONDS = 0.0
    pb.data.bin_files(lambda: batches(wait), folder, bin_edges=edges, n_threads=1)


def killed(folder, edges, after):
    """Start a call, and kill it after so many seconds; returns whether it was still running."""
    command = [sys.executable, __file__, "--folder", str(folder), "--edges", edges]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()  # it has begun
    time.sleep(after)
    child.kill()
    if (code := child.wait()) not in (0, -signal.SIGKILL):
        raise RuntimeError(f"bin_files ended with {code}")
    return code != 0


def is_refused(folder):
    """Return whether a folder is refused, as half written or as no columns."""
    try:
        pb.data.open_columns(folder, check=True)
    except (pb.data.FolderError, FileNotFoundError):
        return True
    return False


def is_complete(folder, whole):
    """Return whether a folder is that of a call that was not killed."""
    actual = contents(folder)
    actual.pop(column_folder.STATE, None)  # what is removed last
    return actual == whole


def contents(folder):
    """Return what the files of a folder hold."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def main(arguments=None):
    """Kill calls and compare; returns 0 if all is as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--edges", choices=("sample", "exact"), default="sample")
    parser.add_argument("--folder", help=argparse.SUPPRESS)  # of a call to be killed
    options = parser.parse_args(arguments)
    if options.folder:
        print("begun", flush=True)
        encode(options.folder, options.edges, WAIT)
        return 0
    rng, kills, tables, wrong = np.random.default_rng(), 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        encode(Path(temporary) / "whole", options.edges, 0.0)
        full = contents(Path(temporary) / "whole")
        while kills < options.kills:
            folder, is_running, patience = Path(temporary) / str(tables), True, 0.6
            while is_running and (is_refused(folder) or not is_complete(folder, full)):
                is_running = killed(folder, options.edges, rng.uniform(0.0, patience))
                patience += 0.2  # edges must be found between two kills
                kills += is_running
                wrong += not (is_refused(folder) or is_complete(folder, full))
            wrong += not is_complete(folder, full)
            tables += 1
    print(f"{kills} kills, {tables} tables, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
