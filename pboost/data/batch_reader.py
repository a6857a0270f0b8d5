"""A table in batches, read as rows of the same columns: numbers, and levels of all batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost.data.batches import Batch, Batches
from pboost.data.check_xy import as_numbers, features_as_trained, plain_labels, weights_of_some
from pboost.data.columns import BinnedColumns
from pboost.data.convert import Features, Trained, read_rows
from pboost.data.part_levels import (
    PartLevels,
    has_categories,
    joined_levels,
    part_levels,
    shared_levels,
)
from pboost.values import Array, FloatArray

#: Batches whose levels are joined at a time.
JOINED = 32


class UnreadLevelsError(Exception):
    """A batch holds categories, whose levels have not been found yet."""


class Rows(NamedTuple):
    """Rows of a batch, checked: those of positive weight."""

    values: Array
    y: Array
    weights: FloatArray | None
    batch: int


@dataclass(slots=True)
class Survey:
    """Sum of the weights, from which the scale of the masses follows."""

    total: float = 0.0

    def masses(self, weights: FloatArray) -> NDArray[np.int64]:
        """Return weights in fixed point, as `to_fixed_point` does."""
        mass = np.empty(len(weights), dtype=np.int64)
        voting.to_fixed(weights, math.ldexp(1.0, 61 - math.frexp(self.total)[1]), mass)
        return mass


class Reader:
    """Reads batches as rows of the same columns.

    Attributes
    ----------
    n_known : ndarray of int64, shape (d,), or None
        How many values of columns of categories are known; None where there are none.
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._trained: Trained | None = None
        self._weighs: bool | None = None
        self._is_text: bool | None = None
        self.n_known: NDArray[np.int64] | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns."""
        return self.trained.names

    @property
    def trained(self) -> Trained:
        """What the columns are, once a batch has been read."""
        assert self._trained is not None
        return self._trained

    def is_weighed(self) -> bool:
        """Return whether the first batch has weights; ValueError if there is none."""
        for batch in self._batches():
            return batch.weights is not None
        raise ValueError("source: expected at least one batch, got none")

    def survey(self) -> Survey:
        """Return the sum of the weights of all batches."""
        parts = []
        for k, batch in enumerate(self._batches()):
            try:
                self._check_weighs(batch, True)
                weights = as_numbers("sample_weight", batch.weights)
                parts.append(float(weights_of_some(weights, weights.size).sum()))
            except (TypeError, ValueError) as error:
                raise type(error)(f"batch {k}: {error}") from None
        total = math.fsum(parts)
        if not 0 < total < math.inf:
            raise ValueError(
                f"weights: expected a finite sum, and at least one weight > 0, got the sum {total}"
            )
        return Survey(total)

    def go_on(self, bins: BinnedColumns, weighs: bool) -> None:
        """Take what columns are from bins that were made of them."""
        table = bins.table
        self._trained = Trained(bins.names, bins.n_features, table)
        self._weighs = weighs
        if table is not None and table.categories:
            self.n_known = np.zeros(bins.n_features, dtype=np.int64)

    def forget(self) -> None:
        """Begin anew."""
        self._trained = self._weighs = self._is_text = self.n_known = None

    def find_levels(self, survey: Survey | None) -> None:
        """Find the levels of all batches; `survey` is of the weights, if there are any."""
        found: list[PartLevels] = []
        for k, batch in enumerate(self._batches()):
            try:
                features, undeclared = self._alike(*read_rows(batch.X))
                mass = None
                if survey is not None:
                    weights = weights_of_some(batch.weights, features.n_rows)
                    features, weights = _positive(features, weights)
                    mass = survey.masses(weights)
            except (TypeError, ValueError) as error:
                raise type(error)(f"batch {k}: {error}") from None
            found.append(part_levels(f"batch {k}", features, undeclared, mass))
            if len(found) > JOINED:
                found = [joined_levels(found, self.names, f"batches 0 to {k}")]
        whole = joined_levels(found, self.names, "all batches")
        self._trained = self.trained._replace(table=shared_levels(whole, self.names))
        self.n_known = np.array([counts.sum() for counts in whole.counts], dtype=np.int64)

    def __iter__(self) -> Iterator[Rows]:
        for k, batch in enumerate(self._batches()):
            try:
                rows = self._read(batch, k)
            except (TypeError, ValueError, NotImplementedError) as error:
                raise type(error)(f"batch {k}: {error}") from None
            if len(rows.y):
                yield rows

    def _read(self, batch: Batch, k: int) -> Rows:
        features = self._features(batch.X)
        n = features.n_rows
        if self._weighs is None:
            self._weighs = batch.weights is not None
        self._check_weighs(batch, self._weighs)
        if not n:
            return Rows(features.values, np.empty(0), None, k)
        labels = np.asarray(plain_labels(batch.y, n))
        if self._is_text is None:
            self._is_text = labels.dtype.kind in "UST"
        if self._is_text != (labels.dtype.kind in "UST"):
            raise TypeError(f"y: expected labels of one kind in all batches, got {labels.dtype}")
        if batch.weights is None:
            return Rows(features.values, labels, None, k)
        weights = weights_of_some(batch.weights, n)
        if weights.all():
            return Rows(features.values, labels, weights, k)
        kept = np.flatnonzero(weights)
        return Rows(features.values[kept], labels[kept], weights[kept], k)

    @staticmethod
    def _check_weighs(batch: Batch, weighs: bool) -> None:
        if weighs != (batch.weights is not None):
            raise ValueError("weights: expected them in all batches, or in none")

    def _features(self, X: Any) -> Features:
        features, undeclared = read_rows(X)
        if self.n_known is None:
            if has_categories([features]):
                raise UnreadLevelsError
            return self._alike(features, undeclared)[0]
        self._check_names(features)
        return features_as_trained(features, self.trained)

    def _alike(self, features: Features, undeclared: list[int]) -> tuple[Features, list[int]]:
        """Return rows with the columns of the first batch, in its order."""
        if self._trained is None:
            self._trained = Trained(features.names, features.n_features)
        self._check_names(features)
        places = self.trained.places(features.names, features.n_features)
        if places is None:
            return features, undeclared
        table = None if features.table is None else features.table.select(places)
        place = {found: j for j, found in enumerate(places)}
        return (
            Features(features.values[:, places], self.names, table),
            [place[j] for j in undeclared],
        )

    def _check_names(self, features: Features) -> None:
        if (features.names is None) != (self.names is None):
            raise ValueError("X: expected named columns in all batches, or in none")


def _positive(features: Features, weights: FloatArray) -> tuple[Features, FloatArray]:
    """Return the rows of positive weight."""
    kept = np.flatnonzero(weights)
    return features.take(kept), weights[kept]
