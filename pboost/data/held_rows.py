"""Rows that are held out of training before X is read, so that nothing of it depends on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.check_xy import present_levels, training_features
from pboost.data.columns import BinnedColumns
from pboost.data.convert import Features
from pboost.data.labels import Entries
from pboost.data.made_columns import codes_between
from pboost.data.special_columns import HOLES
from pboost.data.splits import hold_out
from pboost.data.table import Takes
from pboost.values import FloatArray


class HoldOut(NamedTuple):
    """Which rows are to be held out: a random share of those of each class.

    Attributes
    ----------
    share : float
        In (0, 0.5].
    generator : numpy.random.Generator
        Source of randomness.
    keeps_levels : bool
        Whether the level numbers of categories are those of a model, so that they must not change.
    """

    share: float
    generator: np.random.Generator
    keeps_levels: bool = False

    def draw(
        self, rows: NDArray[np.intp], labels: Any, label: NDArray[Any], entries: Entries | None
    ) -> NDArray[np.intp]:
        """Return some of the rows of positive weight, or of the entries of soft labels.

        Which these are depends on the generator, on the classes and on which rows there are.
        """
        if entries is not None:
            return entries.held_out(rows, self.share, self.generator)
        if labels is None:
            return hold_out([rows], self.share, self.generator)
        classes = [rows[label[rows] == k] for k in range(len(labels))]
        return hold_out(classes, self.share, self.generator)


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Rows that are held out, to choose the size of a model by them.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Their numbers; of entries, if there are any.
    given : ndarray of int, shape (m,)
        Which rows of X these are.
    weight : ndarray of float64, shape (m,)
        The weights that they were given.
    y : ndarray, shape (m,)
        Targets as given, or classes.
    values : ndarray, shape (m, d), or None
        Their values, if bins of the training rows cannot hold them.
    elsewhere : object, or None
        What has the rows of a row source; the arrays are then empty.
    """

    rows: NDArray[np.intp]
    given: NDArray[np.intp]
    weight: FloatArray
    y: NDArray[Any]
    values: NDArray[Any] | None = None
    elsewhere: Any = None

    def without(self, weights: FloatArray | None, n: int) -> FloatArray:
        """Return the weights of the n rows of X, 0 for the rows held out."""
        weights = np.ones(n) if weights is None else weights.copy()
        weights[self.given] = 0.0
        return weights

    def coded(
        self, columns: BinnedColumns, values: NDArray[Any], n_threads: int | None
    ) -> tuple[HeldRows, BinnedColumns]:
        """Return bins of the training rows with the codes of the rows held out, and these rows.

        `values` are those of all rows. A missing value has no code in a column in which no training
        row misses one; the rows then keep their values.
        """
        rows = np.unique(self.given).astype(np.int32)
        special = columns.special
        has_holes = np.zeros(columns.n_features) if special is None else special & HOLES
        has_no_code = np.isnan(values[rows]).T & (has_holes[:, None] == 0)
        codes = columns.codes.copy()
        codes[:, rows] = np.where(has_no_code, 0, codes_between(columns, values, rows, n_threads))
        held = replace(self, values=values[self.given]) if has_no_code.any() else self
        return held, columns.with_codes(codes, None, rows)


def trained_features(
    features: Features, weights: FloatArray | None, takes: Takes, hold: HoldOut | None
) -> Features:
    """Return features as they are trained on, with these weights of the rows of X.

    Categories that only rows held out have are missing values.
    """
    if hold is not None and not hold.keeps_levels:
        features = present_levels(features, weights)
    return training_features(features, weights, takes)
