"""Rows that lie with the ranks of an MPI program: the protocol of partitions on mpi4py.

Run as ``mpiexec -n 4 python under_mpi.py``, with ``pip install mpi4py`` and an MPI. Rank 0 bins a
table into a folder that all ranks see; each maps it and answers for its share of the rows. The
model is that of all rows in one process, bit for bit. A rank that is lost ends the program, as MPI
does: where that matters there is `pboost.dask`.

What is imported from rooms of pboost is not part of its interface, and may change.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import pboost as pb
from pboost.boosting.shards import Options
from pboost.data.parts import read_parts
from pboost.growth.shard_processes import answered
from pboost.threads import Workers
from pboost.weak.shards import Shard

ROWS, BATCH, COLUMNS, ROUNDS = 400_000, 50_000, 20, 100


class Ranks:
    """The engine of rank 0: it asks all ranks, itself among them, and hears what they answer."""

    def __init__(self, world: Any, shard: Shard) -> None:
        self._world, self._shards = world, [shard]
        self._cuts: list[Any] = []
        self._n_told = 0

    def ask(self, what: str, *arguments: Any) -> list[Any]:
        """Return what a method of every shard returns."""
        if what == "begin":  # cuts that were told before count no more
            self._n_told = 0
        return [one for _, found in self.tell(what, arguments) for one in found]

    def masses(self, cuts: Sequence[Any]) -> list[Any]:
        """Return what `masses` returns, of every shard; only new cuts are told."""
        first, self._n_told = self._n_told, len(cuts)
        return [one for _, (one,) in self.tell("masses", (first, list(cuts[first:])))]

    def tell(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the answers of all ranks, or raise what the first raised that could not answer."""
        self._world.bcast((what, arguments))
        answers = self._world.gather(self._answer(what, arguments))
        for kind, found in answers:
            if kind == "error":
                raise found
        return answers

    def serve(self) -> None:
        """Answer until told to end; what the other ranks do."""
        while (told := self._world.bcast(None)) is not None:
            self._world.gather(self._answer(*told))

    def _answer(self, what: str, arguments: Any) -> tuple[str, Any]:
        return answered(self._shards, self._cuts, self._shards[0].workers, what, arguments)


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
        pb.bin_files(batches, Path(folder))
    world.Barrier()
    columns, y, _ = pb.open_columns(folder)
    mine = np.arange(len(y))[world.rank :: world.size]
    with Workers(1) as workers:
        ranks = Ranks(world, Shard(columns.select(mine), y[mine].astype(np.uint8), None, workers))
        if world.rank:
            ranks.serve()
            return
        start = time.perf_counter()
        options = Options.checked(
            ROUNDS, pb.weak.stump(), "domain", pb.observation.exact(), 1e-4, 1.0, None, False
        )
        try:
            model = options.fit(read_parts([columns], [y], None), ranks, workers)
        finally:
            world.bcast(None)
    taken = time.perf_counter() - start
    whole = pb.fit_adaboost(columns, y, rounds=ROUNDS)
    same = all(
        (getattr(model, name) == getattr(whole, name)).all()
        for name in ("feature", "threshold", "vote")
    )
    print(f"{world.size} ranks, {taken:.2f} s; the same model as in one process: {same}")


if __name__ == "__main__":
    main()
