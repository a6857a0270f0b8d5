"""How good predictions are: measures of probabilities and of numbers, with weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray

#: Within which distance of 0 and 1 a logarithm takes probabilities.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


def weighted_mean(values: NDArray[Any], weight: FloatArray | None = None) -> float:
    """Return the mean of values by weights, whose sum need not be a finite number."""
    return float(np.average(values, weights=None if weight is None else weight / weight.max()))


def auc(share: FloatArray, code: NDArray[Any], weight: FloatArray | None = None) -> float:
    """Return the area under the receiver operating characteristic.

    It is the probability that a row of a class has a larger share (n, J) of that class than a row
    of the others, where equal ones count one half; of two classes that of the second, of more the
    mean over the classes. Classes that have no rows of positive weight, or all, are left out; NaN
    if no class remains, as where all rows are of one class.
    """
    classes = range(1 if share.shape[1] == 2 else 0, share.shape[1])
    areas = [_area(code == k, share[:, k], weight) for k in classes]
    known = [area for area in areas if not np.isnan(area)]
    return float(np.mean(known)) if known else np.nan


def _area(is_one: NDArray[np.bool_], score: FloatArray, weight: FloatArray | None) -> float:
    weight = np.ones(len(score)) if weight is None else weight / weight.max()
    rank = np.unique(score, return_inverse=True)[1]
    ones, others = (np.bincount(rank, weight * of) for of in (is_one, ~is_one))
    below = np.cumsum(others) - others / 2
    pairs = ones.sum() * others.sum()
    return float(ones @ below / pairs) if pairs > 0 else np.nan


def log_loss(share: FloatArray, code: NDArray[Any], weight: FloatArray | None = None) -> float:
    """Return the mean of -log of the shares (n, J) of the true classes.

    Shares are held at a distance of 2**-52 from 0 and 1, so that it is finite.
    """
    of_truth = share[np.arange(len(share)), code]
    return weighted_mean(-np.log(of_truth.clip(LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)), weight)


def brier_score(share: FloatArray, code: NDArray[Any], weight: FloatArray | None = None) -> float:
    """Return the mean squared error of the share of the second of two classes.

    Of more, the sum of those of all classes.
    """
    error = np.square(share - (code[:, None] == np.arange(share.shape[1])))
    return weighted_mean(error[:, 1] if share.shape[1] == 2 else error.sum(axis=1), weight)


def absolute_error(found: FloatArray, truth: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the mean absolute error of numbers."""
    return weighted_mean(np.abs(found - truth), weight)


def r2(found: FloatArray, truth: FloatArray, weight: FloatArray | None = None) -> float:
    """Return by how much the squared error is less than that of the mean, as a share of that.

    NaN where the true numbers are all the same.
    """
    around = truth - weighted_mean(truth, weight)
    scale = np.abs(around).max()  # squares of large numbers are none
    if not scale > 0 or (truth == truth[0]).all():
        return np.nan
    left, whole = (weighted_mean(np.square(of / scale), weight) for of in (found - truth, around))
    return 1 - left / whole if whole > 0 else np.nan
