"""Gradient boosting on rows in partitions: what its fit asks in place of a table."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from pboost.data.engines import Engine
from pboost.distributed.trees import TreeRows
from pboost.trees.round_shards import RoundShard


class SumParts(TreeRows):
    """Rows in partitions as one fit of gradient boosting has them, see `RowParts`."""

    def __init__(self, source: Any, task: str, n_threads: int | None, ends: ExitStack) -> None:
        super().__init__(source, source.targets(task))
        self._n_threads, self._ends = n_threads, ends

    def is_weighed(self) -> bool:
        """Return whether rows have weights."""
        return bool(self.source.is_weighed)

    def engine(self) -> Engine:
        """Return what asks a `RoundShard` of each partition."""
        sizes, values = self.source.sizes, self.values
        exponent = values if isinstance(values, int) else None
        each = [(exponent, start) for start in np.cumsum([0, *sizes[:-1]]).tolist()]
        engine: Engine = self.source.shards(RoundShard, values, self._n_threads, each=each)
        self._ends.enter_context(closing(engine))
        self._ends.enter_context(engine.workers)
        return engine
