"""Separators, trained at the nodes of a graph: chains of stumps, whose sums have signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns import SortedColumns
from pboost.data.derived import GrownInputs
from pboost.data.separators import Separators, separator
from pboost.data.sorting import to_fixed_point
from pboost.data.training import TrainingData
from pboost.growth.step import Chain
from pboost.observation.answers import TableObserver
from pboost.observation.models import Exact
from pboost.threads import Workers
from pboost.values import FloatArray
from pboost.weak.learners import Separator
from pboost.weak.search import Weights
from pboost.weak.side_search import SideCut, SideSearch
from pboost.weak.stump_search import StumpSearch
from pboost.weak.votes import VoteRule

#: Votes of stumps are multiples of 2 to this power: sums are exact, in whatever order.
VOTE_BITS = -32


class SeparatorSearch(SideSearch):
    """Trains separators on the rows that arrive.

    Parameters
    ----------
    data : TrainingData
        Columns and classes; its `inputs` take the separators that are trained.
    weak : Separator
        Number of stumps, votes.
    workers : Workers
        Threads.
    """

    def __init__(self, data: TrainingData, weak: Separator, workers: Workers) -> None:
        super().__init__(data, workers)
        self._weak = weak
        self._rule = VoteRule(weak.votes, weak.smoothing, weak.learning_rate)

    def best(self, weights: Weights) -> SideCut | None:
        """Return a separator trained with these weights; None if all rows are on one side of it."""
        return self._train(weights, weights.real)

    def best_by_reach(self, weights: Weights, by_class: FloatArray) -> SideCut | None:
        """Return a separator trained with what weights are times a factor of each class."""
        return self._train(weights, self.by_class(weights, by_class))

    def _train(self, weights: Weights, real: FloatArray) -> SideCut | None:
        if min(weights.masses) <= 0:
            return None
        trained = self._separator(self._part(np.flatnonzero(weights.fixed), real))
        if trained is None:
            return None
        rows, source = self.arriving(weights), self.data.source
        assert source is not None
        value = trained.gather(source, self.data.source_rows[rows], self.workers)[:, 0]
        codes = np.zeros(self.data.n_rows, dtype=np.uint8)
        codes[rows] = value > 0
        masses = self.masses(codes, weights)
        if not all(sum(side) > 0 for side in masses):
            return None
        assert isinstance(self.data.inputs, GrownInputs)
        return SideCut(self.data.inputs.add(trained), masses, codes)

    def _part(self, rows: NDArray[np.intp], real: FloatArray) -> TrainingData:
        """Return the training data of some rows, with other weights."""
        data, columns = self.data, self.data.columns
        if len(rows) < data.n_rows:
            listed = rows.astype(np.int32)
            if isinstance(columns, SortedColumns):
                columns = columns.select(listed, self._weak.stump.max_bins, self.workers.n_threads)
            else:
                columns = columns.select(listed, self.workers.n_threads)
        weight = real[rows]
        # By a power of two: nothing is rounded.
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
        scale, fixed = to_fixed_point(weight)
        return replace(
            data, columns=columns, n_negative=int(np.searchsorted(rows, data.n_negative)),
            weight=weight, fixed=fixed, scale=scale, rows=data.rows[rows],
            source_rows=data.source_rows[rows], inputs=None,
        )  # fmt: skip

    def _separator(self, data: TrainingData) -> Separators | None:
        """Return the stumps of a chain fitted to these data."""
        weights = Weights(data.weight, data.fixed, data.scale, data.class_masses())
        if min(weights.masses) <= 0:
            return None
        search = StumpSearch(data, self._weak.stump, self.workers)
        chain = Chain(TableObserver(Exact(), search), weights, self._rule)
        reason = chain.grow(self._weak.stumps, None)
        stumps = chain.nodes.model(data, self._rule, {}, reason)
        if not stumps.n_nodes:
            return None
        vote = np.ldexp(np.rint(np.ldexp(stumps.vote, -VOTE_BITS)), VOTE_BITS)
        return separator(stumps.feature, stumps.threshold, vote)

    def model_columns(self, cuts: Sequence[SideCut]) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes compare."""
        columns = super().model_columns(cuts)
        return columns | self.data.model_columns(columns["feature"])
