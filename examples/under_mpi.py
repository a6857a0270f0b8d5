"""Rows that lie with the ranks of an MPI program: the protocol of partitions on mpi4py.

Run as ``mpiexec -n 4 python under_mpi.py``, with ``pip install mpi4py`` and an MPI. Rank 0 bins a
table into a folder that all ranks see; each maps it and answers for its share of the rows. The
model is that of all rows in one process, bit for bit. A rank that is lost ends the program, as MPI
does: where that matters there is `pboost.dask`.

What is imported from rooms of pboost is not part of its interface, and may change.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import pboost as pb
from pboost.distributed.partitions import LocalPlace
from pboost.threads import Workers

ROWS, BATCH, COLUMNS, ROUNDS = 400_000, 50_000, 20, 100


class Ranks:
    """The engine of rank 0: it asks all ranks, itself among them, and gathers their answers."""

    def __init__(self, world: Any, shard: Any) -> None:
        self.workers, self._world, self._shard = shard.workers, world, shard
        self._log: list[Any] = []
        self._n_sent = 0

    def close(self) -> None:
        """End what the other ranks do."""
        self._world.bcast(None)

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return the answer of a method of every shard."""
        if what == "begin":  # what was logged before counts no more
            self._n_sent = 0
        return self._told(what, arguments)

    def masses(self, log: Sequence[Any]) -> list[Any]:
        """Return the answers of `masses` of every shard; only what is new of the log is sent."""
        first, self._n_sent = self._n_sent, len(log)
        return self._told("masses", (first, list(log[first:])))

    def _told(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the answers of all ranks, or raise the first error."""
        self._world.bcast((what, arguments))
        answers = self._world.gather(self._answer(what, arguments))
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def serve(self) -> None:
        """Answer until told to end; what the other ranks do."""
        while (told := self._world.bcast(None)) is not None:
            self._world.gather(self._answer(*told))

    def _answer(self, what: str, arguments: tuple[Any, ...]) -> Any:
        if what == "masses":
            first, new = arguments
            self._log[first:] = new
            arguments = (self._log,)
        try:
            return getattr(self._shard, what)(*arguments)
        except Exception as error:  # raised by rank 0
            return error


class AllRanks(LocalPlace):
    """Partitions of all ranks: each has its share of one table, which all ranks can read."""

    def __init__(self, world: Any) -> None:
        self._world = world

    def engine(self, given: Mapping[int, Any], kind: type[Any], n_threads: int | None) -> Ranks:
        """Return an engine whose shards are of a kind; the other ranks never return from here."""
        columns, y, weights, *more = given[0]
        mine = np.arange(len(y))[self._world.rank :: self._world.size]
        weights = None if weights is None else weights[mine]
        shard = kind(columns.select(mine), y[mine], weights, *more, Workers(1))
        ranks = Ranks(self._world, shard)
        if self._world.rank:
            ranks.serve()
            sys.exit()
        return ranks


def batches() -> Iterator[tuple[Any, Any]]:
    """Yield rows and labels; a table that need not fit into memory."""
    for k in range(ROWS // BATCH):
        rng = np.random.default_rng(k)
        X = rng.normal(size=(BATCH, COLUMNS)).astype(np.float32)
        yield X, X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=BATCH) > 0


def main() -> None:
    """Fit with all ranks, then on rank 0 alone, and compare."""
    world = MPI.COMM_WORLD
    folder = world.bcast(tempfile.mkdtemp() if world.rank == 0 else None)
    if world.rank == 0:
        pb.data.bin_files(batches, Path(folder))
    world.Barrier()
    columns, y, _ = pb.data.open_columns(folder)
    rows = pb.partitions([columns], [y])
    rows.place = AllRanks(world)
    start = time.perf_counter()
    model = pb.fit_adaboost(rows, n_estimators=ROUNDS)
    taken = time.perf_counter() - start
    full_model = pb.fit_adaboost(columns, y, n_estimators=ROUNDS)
    same = all(
        (getattr(model, name) == getattr(full_model, name)).all()
        for name in ("feature", "threshold", "vote")
    )
    print(f"{world.size} ranks, {taken:.2f} s; the same model as in one process: {same}")


if __name__ == "__main__":
    main()
