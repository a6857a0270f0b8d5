"""A table that is read from files: what it takes to bin it, and what a round over it costs.

    python -m asv_bench.peers.on_disk --rows 1e5
    python -m asv_bench.peers.on_disk --rows 1e8 --folder FOLDER

Run it from the root of a checkout in which pboost is built; pyarrow and a POSIX system are needed.
Rows of 20 columns of float32, half of them rounded to hundredths, are drawn and written to Parquet
files of a million rows. Then processes of their own, which may have no more than ``--gigabytes`` of
address space beside the codes, bin them and fit stumps. Up to 1e7 rows the model is
compared with that of the table in memory, byte for byte. Files are left in the folder, so that a
second call begins with binning; without ``--folder`` they are gone at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pboost as pb
from asv_bench.peers.report import Table, number
from asv_bench.peers.tables import cpu

COLUMNS, ROWS_OF_A_FILE = 20, 1_000_000
MOST_COMPARED = 10_000_000
ROUNDS_COMPARED = 20


def make(folder: Path, rows: int) -> list[Path]:
    """Write the files of rows that are not there, and return all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    coefficients = np.random.default_rng(1).normal(size=COLUMNS)
    paths = []
    for k, start in enumerate(range(0, rows, ROWS_OF_A_FILE)):
        n = min(ROWS_OF_A_FILE, rows - start)
        paths.append(folder / f"{k:04d}-{n}.parquet")
        if paths[-1].exists():
            continue
        rng = np.random.default_rng(k)
        X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
        X[:, COLUMNS // 2 :] = np.round(X[:, COLUMNS // 2 :], 2)
        y = (X @ coefficients + 3 * rng.normal(size=n) > 0).astype(np.int8)
        columns = {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y}
        pq.write_table(pa.table(columns), paths[-1].with_suffix(".part"))
        paths[-1].with_suffix(".part").rename(paths[-1])
    return paths


def limit(rows: int, gigabytes: float) -> None:
    """Let this process have no more address space than this beside the codes."""
    import resource

    maximum = int(gigabytes * 2**30) + rows * COLUMNS
    resource.setrlimit(resource.RLIMIT_AS, (maximum, maximum))


def peak() -> float:
    """Return the most memory that this process held, in gigabytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def encode(paths: list[Path], codes: Path, threads: int, edges: str) -> dict[str, float]:
    """Bin the files."""
    start = time.perf_counter()
    seconds, _ = cpu(
        lambda: pb.data.bin_files(paths, codes, target="y", bin_edges=edges, n_threads=threads)
    )
    return {"cpu": seconds, "wall": time.perf_counter() - start, "memory": peak()}


def fit(codes: Path, rounds: int, threads: int) -> dict[str, float]:
    """Fit one stump, and one more than `rounds`, each twice: the first time maps the codes."""
    columns, y, weight = pb.data.open_columns(codes)
    result: dict[str, float] = {}
    for when in ("first", ""):
        for n in (1, 1 + rounds):
            start = time.perf_counter()
            seconds, _ = cpu(
                lambda n=n: pb.fit_adaboost(
                    columns, y, sample_weight=weight, n_estimators=n, n_threads=threads
                )
            )
            result[f"{when}cpu{min(n, 2)}"] = seconds
            result[f"{when}wall{min(n, 2)}"] = time.perf_counter() - start
    return result | {"memory": peak()}


def same(paths: list[Path], codes: Path, edges: str) -> dict[str, bool]:
    """Compare a model with that of the same rows in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables([pq.read_table(path) for path in paths])
    X, y = table.drop_columns("y"), table["y"].to_numpy()
    columns, labels, weight = pb.data.open_columns(codes, check=True)
    models = [
        pb.fit_adaboost(columns, labels, sample_weight=weight, n_estimators=ROUNDS_COMPARED),
        pb.fit_adaboost(pb.data.bin_columns(X, bin_edges=edges), y, n_estimators=ROUNDS_COMPARED),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for k, model in enumerate(models):
            pb.save(model, f"{folder}/{k}")
        first, second = (Path(f"{folder}/{k}").read_bytes() for k in range(2))
    return {"same": first == second}


def child(stage: str, options: argparse.Namespace) -> dict[str, float]:
    """Run a stage in a process of its own, and return what it measured."""
    command = [sys.executable, "-m", "asv_bench.peers.on_disk", "--stage", stage]
    for name in ("rows", "folder", "gigabytes", "rounds", "threads", "edges"):
        command += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def run_stage(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Run one stage in this process."""
    codes, rows = folder / "codes", int(options.rows)
    if options.stage == "make":
        make(folder, rows)
        return {}
    paths = make(folder, rows)
    if options.stage == "same":
        return same(paths, codes, options.edges)
    limit(rows, options.gigabytes)
    if options.stage == "fit":
        return fit(codes, options.rounds, options.threads)
    shutil.rmtree(codes, ignore_errors=True)
    return encode(paths, codes, options.threads, options.edges)


def measure(options: argparse.Namespace) -> Table:
    """Return the table of what was measured."""
    rows = int(options.rows)
    child("make", options)
    binned, cold = child("encode", options), child("fit", options)
    fitted = child("fit", options)  # the codes have been read
    cells, lines = rows * COLUMNS, []
    lines.append(["binning, CPU seconds", number(binned["cpu"])])
    lines.append(["binning, seconds", number(binned["wall"])])
    lines.append(["binning, GB held at most", number(binned["memory"])])
    for clock, of in (("cpu", "CPU"), ("wall", "wall")):
        single, many = fitted[f"{clock}1"], fitted[f"{clock}2"]
        per = (many - single) / options.rounds
        lines.append([f"a round, ns per cell, {of}", number(per / cells * 1e9)])
        lines.append([f"setting up, in rounds, {of}", number(single / per - 1)])
        for what, first in (("the first time", fitted), ("where nobody has read the codes", cold)):
            rounds = number(first[f"first{clock}1"] / per - 1)
            lines.append([f"setting up {what}, in rounds, {of}", rounds])
    lines.append(["fits, GB held at most, codes among them", number(fitted["memory"])])
    if rows <= MOST_COMPARED:
        lines.append(["the model of the table in memory", str(child("same", options)["same"])])
    title = f"{rows:,} rows of {COLUMNS} columns, {options.threads} threads"
    return Table(title, ["", ""], lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser("python -m asv_bench.peers.on_disk", description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--folder", help="where files are kept; default: a temporary one")
    parser.add_argument("--gigabytes", type=float, default=6.0, help="of address space")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--edges", choices=("sample", "exact"), default="sample")
    parser.add_argument("--stage", choices=("make", "encode", "fit", "same"))
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or temporary
        os.makedirs(options.folder, exist_ok=True)
        if options.stage:
            json.dump(run_stage(options, Path(options.folder)), sys.stdout)
        else:
            print(measure(options).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
