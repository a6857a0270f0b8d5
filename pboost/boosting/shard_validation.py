"""Rows that fits on partitions do not see: given, or drawn from those of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.boosting.watch import Watch, values_read
from pboost.data.binned_values import lacks_values
from pboost.data.parts import Parts, values_of_rows
from pboost.data.training import TrainingData
from pboost.growth.step import Callback
from pboost.growth.validation import ValidationRows, validation_rows
from pboost.models.graph import DecisionGraph
from pboost.values import Seed, as_generator
from pboost.weak.base import Weak


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Rows by which growth on partitions ends, and their values."""

    rows: ValidationRows
    X: NDArray[Any]


def held_out(
    parts: Parts, validation: Any, patience: Any, rng: Seed, weak: Weak
) -> tuple[Parts, Held | None]:
    """Return partitions in which rows that are held out have weight 0, and what these are.

    They are drawn by their numbers among all, one partition after another.
    """
    is_share = validation is not None and not isinstance(validation, tuple | list)
    if is_share and any(lacks_values(part) for part in parts.columns):
        raise TypeError(
            "validation: BinnedColumns hold no values to predict from; pass values=True to "
            "pb.shards.bin_columns or pb.bin_files, or validation data"
        )
    generator = as_generator(rng)
    rows = validation_rows(validation, patience, parts.problem(), generator, holes=weak.takes.holes)
    if rows is None:
        return parts, None
    if rows.X is not None:
        return replace(parts, seen=rows.problem.seen), Held(rows, rows.X)
    weights = rows.problem.weights
    assert weights is not None  # 0 of the rows held out
    stops = np.cumsum([part.n_rows for part in parts.columns])[:-1]
    parts = replace(parts, weights=np.split(weights, stops))
    return parts, Held(rows, values_of_rows(parts.columns, rows.drawn))


class Watched:
    """How a fit on partitions is watched, where rows are held out, and which model is kept.

    Attributes
    ----------
    callback : callable or None
        What growth is to tell of its steps.
    settings : mapping
        The model's record of how it was made.
    """

    def __init__(
        self,
        held: Held | None,
        data: TrainingData,
        callback: Callback | None,
        settings: Mapping[str, Any],
        *,
        votes_stay: bool = True,
    ) -> None:
        self.callback, self.settings, self._held = callback, settings, held
        self._votes_stay = votes_stay
        if held is not None:
            self.settings = {**settings, **held.rows.settings}
            value = values_read(data, held.X)
            self._watch = Watch(value, held.rows, callback, has_sides=True)
            if votes_stay:
                self.callback = self._watch

    def kept(self, model: DecisionGraph) -> DecisionGraph:
        """Return the first of the models of least error on the rows held out."""
        if self._held is None:
            return model
        return self._watch.best_of(model, self._held.X, self._votes_stay)
