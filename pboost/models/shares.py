"""Class probabilities from decision values, and the shares of features in predictions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost.values import (
    Array,
    FloatArray,
)

_MOST = np.finfo(np.float64).max
#: Relative difference up to which probabilities are considered equal.
ROUNDING = 1e-15


def as_shares(gain: FloatArray) -> FloatArray:
    """Divide nonnegative numbers by their sum; return zeros if the sum is 0."""
    with np.errstate(over="ignore"):
        total = gain.sum()
    if not np.isfinite(total):
        gain = gain / gain.max()
        total = gain.sum()
    return gain / total if total > 0 else np.zeros(len(gain))


def portions(size: FloatArray) -> FloatArray:
    """Divide nonnegative numbers by their sums over the last axis; 0 / 0 is 0."""
    largest = size.max(axis=-1, keepdims=True)
    size = np.divide(size, largest, out=np.zeros(size.shape), where=largest > 0)
    total = size.sum(axis=-1, keepdims=True)
    return np.divide(size, total, out=size, where=total > 0)


def mean_of_shares(n: int, weighted_shares: Iterable[tuple[float, FloatArray]]) -> FloatArray:
    """Return the weighted mean of arrays of shape (n,), ignoring arrays of zeros."""
    mean, total = np.zeros(n), 0.0
    for weight, shares in weighted_shares:
        if shares.any():
            mean += weight * shares
            total += weight
    return mean / total if total else mean


def times_spread(slopes: FloatArray, spread: FloatArray) -> FloatArray:
    """Return absolute coefficients (..., d) multiplied by standard deviations."""
    with np.errstate(over="ignore"):
        size: FloatArray = np.abs(slopes) * spread
    return np.minimum(size, _MOST)


def falls(values: FloatArray) -> FloatArray:
    """Return half of each decrease between consecutive numbers, and 0 for an increase."""
    half = np.nan_to_num(values, posinf=_MOST) / 2  # avoids an overflow
    return np.maximum(half[:-1] - half[1:], 0.0)


def shared_out(share: FloatArray, parts: FloatArray) -> FloatArray:
    """Divide the class probabilities (J,) of a base learner among the constant and the features.

    `parts` contains their contributions to the decision values, shape (1 + d, J), or (1 + d,) for
    two classes. The probability of a class is divided in proportion to the contributions that are
    above the mean over all classes. If there are none, the constant receives the probability.
    """
    if parts.ndim == 1:
        parts = np.stack([-parts, parts], axis=1)
    # Classes that are never predicted have the value -_MOST and are excluded.
    possible = parts[0] > -_MOST
    largest = np.abs(parts[:, possible]).max(initial=0.0)
    scaled = np.divide(parts, 2 * len(share), where=possible, out=np.zeros(parts.shape))
    if largest > 0:
        scaled /= largest
    mean = scaled.mean(axis=1, keepdims=True, where=possible)
    apart = np.where(possible, np.maximum(scaled - mean, 0.0), 0.0)
    total = apart.sum(axis=0)
    speaks = total > 0
    divided = np.divide(apart, total, where=speaks, out=np.zeros(parts.shape))
    divided[0, ~speaks] = 1.0
    return divided * share


def among(
    parts: FloatArray, classes: NDArray[np.generic], member_labels: NDArray[np.generic]
) -> FloatArray:
    """Expand values (1 + d, K) for some classes to (1 + d, J) for all, adding zeros."""
    result = np.zeros((len(parts), len(classes)))
    result[:, np.searchsorted(classes, member_labels)] = parts
    return result


def one_of_two(classes: Array, score: FloatArray) -> Array:
    """Return the second of two classes if the decision value is positive, else the first."""
    return classes[(score > 0).astype(np.intp)]


def lead_of_second(share: FloatArray) -> FloatArray:
    """Return the probability of the second of two classes minus the first."""
    return share[..., 1] - share[..., 0]


def shares_of_leads(score: FloatArray) -> FloatArray:
    """Convert differences of two probabilities (n,) to (n, 2); return other arrays unchanged."""
    if score.ndim > 1:
        return score
    return settled(in_two_columns((1 - score) / 2, (1 + score) / 2), score > 0)


def in_two_columns(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return two arrays (n,) as two columns; for few rows faster than `numpy.column_stack`."""
    share = np.empty((len(first), 2))
    share[:, 0], share[:, 1] = first, second
    return share


def scaled_shares(score: FloatArray, slope: FloatArray) -> FloatArray:
    """Multiply differences of two probabilities, or deviations from 1 / J, by factors."""
    if score.ndim == 1:
        return np.clip(score * slope, -1.0, 1.0)
    equal = 1 / score.shape[1]
    scaled = np.clip(equal + slope * (score - equal), 0.0, 1.0)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def at_ends(score: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return decision values and costs at two stages: before the model (zeros) and after it."""
    return np.stack([np.zeros_like(score), score]), np.stack([np.zeros_like(cost), cost])


def means_by_then(terms: FloatArray) -> FloatArray:
    """Return the means of the first 0, 1, ... terms (T, n, ...), starting with 0."""
    means = np.zeros((1 + len(terms), *terms.shape[1:]))
    total = np.add.accumulate(terms)
    np.divide(total, np.arange(1, 1 + len(terms)).reshape(-1, *[1] * (terms.ndim - 1)), means[1:])
    return means


def costs_by_then(cost: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1, ... costs (T, n)."""
    return np.vstack([np.zeros((1, cost.shape[1])), np.add.accumulate(cost, dtype=np.float64)])


def two_probabilities(score: FloatArray) -> FloatArray:
    """Return the probabilities (n, 2) for half log odds (n,).

    The probabilities are bit-identical on all processors, and at least exp(-707).
    """
    shares = np.empty((len(score), 2))
    voting.two_shares(np.ascontiguousarray(score), shares)
    return shares


def many_probabilities(score: FloatArray, temperature: float = 1.0) -> FloatArray:
    """Return the softmax (n, J) of decision values (n, J) divided by the temperature.

    For two classes with the values -F and F, the result equals `two_probabilities` of F. Treating
    each value as half the log odds of its class would be overconfident after many votes. The
    predicted class is the class with the largest value before the division.
    """
    return settled(softmax(score, temperature), np.argmax(score, axis=1))


def softmax(score: FloatArray, temperature: float) -> FloatArray:
    """Return the softmax (n, J) of sums of votes (n, J) divided by the temperature."""
    with np.errstate(over="ignore"):  # exp(-inf) = 0 is the intended result
        share: FloatArray = np.exp((score - score.max(axis=1, keepdims=True)) / temperature)
    share /= share.sum(axis=1, keepdims=True)
    return share


def settled(share: FloatArray, chosen: Array) -> FloatArray:
    """Ensure in place that the predicted class has the largest probability.

    If rounding made two probabilities equal, the predicted class gets the next larger number.
    """
    predicted = share[:, 1] > share[:, 0] if share.shape[1] == 2 else np.argmax(share, axis=1)
    differs = chosen != predicted
    if not differs.any():
        return share
    rows = np.flatnonzero(differs)
    column, largest = chosen[rows].astype(np.intp), share[rows].max(axis=1)
    # Larger differences are kept: a user-defined link function may differ from 1/2 at 0.
    equal = share[rows, column] >= largest * (1 - ROUNDING)
    share[rows[equal], column[equal]] = np.nextafter(largest[equal], 2.0)
    return share
