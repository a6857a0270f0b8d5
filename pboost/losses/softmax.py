"""The loss of several classes, which have a score each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pboost.losses.base import LOG_LOSS, Loss, named
from pboost.losses.row_sums import RowSums, TableSums
from pboost.values import FloatArray

__all__ = ["Softmax"]


@named
@dataclass(frozen=True, slots=True)
class Softmax(Loss):
    """-ln p of a row's class, of two or more; p are the exponentials of its scores over their sum.

    y is the number of the class, from 0 on, and f (n, J) has a score for each; gradient and
    curvature are those in each score while the others stay.
    """

    name: ClassVar[str] = "softmax"
    link: ClassVar[str] = "softmax"
    is_multiclass: ClassVar[bool] = True
    held: ClassVar[float] = 1.0
    elsewhere: ClassVar[str] = (
        "multiclass multi:softmax multi:softprob multi_logloss multinomial categorical_crossentropy"
        + LOG_LOSS
    )
    use: ClassVar[str] = "more labels"

    def value(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return ln(sum of exp(f)) - f of the class."""
        most = f.max(axis=-1)
        total = np.exp(f - most[..., None]).sum(axis=-1)
        own = np.take_along_axis(f, y.astype(np.intp)[..., None], axis=-1)[..., 0]
        return np.log(total) + (most - own)

    def gradient(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return p less 1 for the class."""
        return self.probability(f) - (np.arange(f.shape[-1]) == y[..., None])

    def curvature(self, y: FloatArray, f: FloatArray) -> FloatArray:
        """Return p (1 - p)."""
        share = self.probability(f)
        return share * (1 - share)

    def probability(self, f: FloatArray) -> FloatArray:
        """Return exp(f) divided by the sum over the classes."""
        share = np.exp(f - f.max(axis=-1, keepdims=True))
        found: FloatArray = share / share.sum(axis=-1, keepdims=True)
        return found

    def constant(self, y: FloatArray, weight: FloatArray) -> Any:
        """Return the logarithms of the shares of classes 0 to the largest, -`limit` at least."""
        return self.constant_of(TableSums(y, weight, int(y.max()) + 1))

    def constant_of(self, sums: RowSums) -> Any:
        """Return the logarithms of the shares of classes, -`limit` at least."""
        total = np.array([sums.exact(str(k)) for k in range(sums.n_classes)])
        return np.log(np.maximum(total / total.sum(), np.exp(-self.limit)))

    def leaf_value(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        direction: FloatArray | None = None,
    ) -> float:
        """Raise NotImplementedError: there are several scores to step along."""
        raise NotImplementedError(
            "the softmax loss has no step along one line; along the score of one class it is the "
            "logistic loss of that class against the others"
        )
