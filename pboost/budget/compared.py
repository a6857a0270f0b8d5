"""The rows on which models are compared, by their weights, with labels by their probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import as_classes, as_targets, as_weights
from pboost.data.targets import REGRESSION, SoftLabels, labels_of_rows, task_of
from pboost.values import FloatArray

Rows = NDArray[np.intp]
#: Its multiples are spread evenly over [0, 1).
GOLDEN = (5**0.5 - 1) / 2


def by_weight(weight: FloatArray | None, count: int) -> Rows:
    """Return `count` places, each about as often as its weight says, in their order.

    One is taken in each of `count` equal parts of the total weight (stratified sampling), at a
    point that no period of the rows goes with: places of equal weights are there once.
    """
    if weight is None:
        return np.arange(count)
    total, part = np.cumsum(weight), np.arange(count)
    points = (part + (part + 1) * GOLDEN % 1) * (total[-1] / count)
    return np.minimum(np.searchsorted(total, points), len(weight) - 1)


class Data(NamedTuple):
    """What is to be predicted, as it was given and as what it is compared with; which task it is.

    `truth` are the numbers of labels, of soft labels of the likeliest, or numbers; `weight` those
    of the rows, None where all are equal; `n_labels` 0 of a regression.
    """

    y: Any
    truth: NDArray[Any]
    task: str
    weight: FloatArray | None
    n_labels: int

    def part(self, rows: Rows) -> Data:
        """Return what is to be predicted of some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(y=self.y[rows], truth=self.truth[rows], weight=weight)

    def numbered(self) -> Any:
        """Return labels as their numbers, without those that no row has."""
        if not isinstance(self.y, SoftLabels):
            return self.truth
        known = np.flatnonzero(self.y.share.any(axis=0))
        return SoftLabels(known, self.y.share[:, known])

    def often(self, rows: Rows) -> Rows:
        """Return some rows, each about as often as its weight says."""
        return rows if self.weight is None else rows[by_weight(self.weight[rows], len(rows))]

    def compared(self, rows: Rows) -> tuple[Rows, NDArray[Any]]:
        """Return as many rows, as often as their weights say, and what is true of each.

        Of soft labels each of a row is true as often as is probable.
        """
        if not isinstance(self.y, SoftLabels):
            rows = self.often(rows)
            return rows, self.truth[rows]
        share = self.y.share[rows]
        if self.weight is not None:
            share = share * self.weight[rows, None]
        place, label = np.divmod(by_weight(share.ravel(), len(rows)), share.shape[1])
        return rows[place], label


def read_data(
    y: Any, y_proba: Any, labels: Any, sample_weight: Any, n: int, task: str | None
) -> tuple[Data, Rows | None]:
    """Return what is to be predicted of n rows, and which of them weigh anything; None: all."""
    if y is None and y_proba is None:
        raise TypeError("y: expected labels or numbers, got None")
    y, weight = labels_of_rows(y, y_proba, labels), as_weights(sample_weight, n)
    found = _data(y, n, task)
    if weight is None:
        return found, None
    rows = np.flatnonzero(weight)
    known = weight[rows]
    if (known == known[0]).all():
        weight = None
    else:  # of mean one, as options of builders count
        weight = weight / known.max() / (known / known.max()).mean()
    found = found._replace(weight=weight).part(rows)
    return found, None if len(rows) == n else rows


def _data(y: Any, n: int, task: str | None) -> Data:
    """Return what is to be predicted, of rows of equal weights."""
    task = task_of(y, task)
    if isinstance(y, SoftLabels):
        y.check_rows(n)
        y.check_present()
        if task == REGRESSION:
            raise ValueError("y_proba: expected y, numbers, of a regression")
        j = len(y.labels)
        return Data(y, y.likeliest.astype(np.int64), "two" if j == 2 else "many", None, j)
    if task == REGRESSION:
        targets = as_targets(y, n)
        return Data(targets, targets, task, None, 0)
    labels, code = as_classes(y, n)
    which = "two" if len(labels) == 2 else "many"
    return Data(labels[code], code.astype(np.int64), which, None, len(labels))
