"""Shares of labels in decision values, and of columns in what a model has learnt or says."""

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
#: Relative difference up to which probabilities count as equal.
ROUNDING = 1e-15


def as_shares(gain: FloatArray) -> FloatArray:
    """Return numbers >= 0 divided by their sum, all 0 where that is 0."""
    with np.errstate(over="ignore"):
        total = gain.sum()
    if not np.isfinite(total):
        gain = gain / gain.max()
        total = gain.sum()
    return gain / total if total > 0 else np.zeros(len(gain))


def portions(size: FloatArray) -> FloatArray:
    """Return numbers (..., d) >= 0 divided by their sums over d, 0 where these are."""
    largest = size.max(axis=-1, keepdims=True)
    size = np.divide(size, largest, out=np.zeros(size.shape), where=largest > 0)
    total = size.sum(axis=-1, keepdims=True)
    return np.divide(size, total, out=size, where=total > 0)


def mean_of_shares(n: int, weighted_shares: Iterable[tuple[float, FloatArray]]) -> FloatArray:
    """Return the weighted mean of shares (n,), of those that are not all 0."""
    mean, total = np.zeros(n), 0.0
    for weight, shares in weighted_shares:
        if shares.any():
            mean += weight * shares
            total += weight
    return mean / total if total else mean


def times_spread(slopes: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the absolute values of slopes (..., d), per standard deviation of their columns."""
    with np.errstate(over="ignore"):
        size: FloatArray = np.abs(slopes) * spread
    return np.minimum(size, _MOST)


def falls(values: FloatArray) -> FloatArray:
    """Return by how much each number is below the one before it, 0 where it is not."""
    half = np.nan_to_num(values, posinf=_MOST) / 2  # the unit does not matter
    return np.maximum(half[:-1] - half[1:], 0.0)


def shared_out(share: FloatArray, parts: FloatArray) -> FloatArray:
    """Divide the shares (J,) that a member gives to classes among the parts of its values.

    `parts` (1 + d, J), the constant first, or (1 + d,) of two classes. The share of a class goes to
    the parts that speak for it more than for the mean of the classes, by how much; where there is
    none, to the constant.
    """
    if parts.ndim == 1:
        parts = np.stack([-parts, parts], axis=1)
    # A class that is never the answer has the least number, which speaks for no other.
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
    """Return parts (1 + d, K) of some labels, as (1 + d, J) of all."""
    result = np.zeros((len(parts), len(classes)))
    result[:, np.searchsorted(classes, member_labels)] = parts
    return result


def one_of_two(classes: Array, score: FloatArray) -> Array:
    """Return the second of two labels where a decision value is positive, else the first."""
    return classes[(score > 0).astype(np.intp)]


def lead_of_second(share: FloatArray) -> FloatArray:
    """Return by how much the second of two labels is more probable than the first."""
    return share[..., 1] - share[..., 0]


def shares_of_leads(score: FloatArray) -> FloatArray:
    """Return the shares (n, 2) of two labels, given the lead of the second; others are shares."""
    if score.ndim > 1:
        return score
    return settled(np.column_stack([(1 - score) / 2, (1 + score) / 2]), score > 0)


def scaled_shares(score: FloatArray, slope: FloatArray) -> FloatArray:
    """Return leads (n,) times factors; of shares (n, J) what they differ from equal ones."""
    if score.ndim == 1:
        return np.clip(score * slope, -1.0, 1.0)
    equal = 1 / score.shape[1]
    scaled = np.clip(equal + slope * (score - equal), 0.0, 1.0)
    scaled /= scaled.sum(axis=1, keepdims=True)
    return scaled


def at_ends(score: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what rows have before they are asked anything, and in the end."""
    return np.stack([np.zeros_like(score), score]), np.stack([np.zeros_like(cost), cost])


def means_by_then(terms: FloatArray) -> FloatArray:
    """Return the means of the first 0, 1, ... of the terms (T, n, ...), 0 of none."""
    means = np.zeros((1 + len(terms), *terms.shape[1:]))
    total = np.add.accumulate(terms)
    np.divide(total, np.arange(1, 1 + len(terms)).reshape(-1, *[1] * (terms.ndim - 1)), means[1:])
    return means


def costs_by_then(cost: FloatArray) -> FloatArray:
    """Return the sums of the first 0, 1, ... of the costs (T, n)."""
    return np.vstack([np.zeros((1, cost.shape[1])), np.add.accumulate(cost, dtype=np.float64)])


def two_probabilities(score: FloatArray) -> FloatArray:
    """Return the probabilities (n, 2) whose half log odds are decision values (n,).

    The same bits on all processors; the smaller one is not below exp(-707).
    """
    shares = np.empty((len(score), 2))
    voting.two_shares(np.ascontiguousarray(score), shares)
    return shares


def many_probabilities(score: FloatArray) -> FloatArray:
    """Return probabilities (n, J) in proportion to exp(F) of the decision values F.

    Of values F and -F of two labels they are those of `two_probabilities`. Half log odds of each
    label against the others together are too sure of themselves after many votes.
    """
    share: FloatArray = np.exp(score - score.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return settled(share, np.argmax(score, axis=1))


def settled(share: FloatArray, chosen: Array) -> FloatArray:
    """Return probabilities (n, J), changed in place, of which that of the class chosen is largest.

    Where another is equal in float64 though the decision values are not, that of the class chosen
    is made larger by one unit in the last place.
    """
    predicted = share[:, 1] > share[:, 0] if share.shape[1] == 2 else np.argmax(share, axis=1)
    rows = np.flatnonzero(chosen != predicted)
    column, largest = chosen[rows].astype(np.intp), share[rows].max(axis=1)
    # What differs by more is the link of a user's loss, which need not be 1/2 at 0.
    equal = share[rows, column] >= largest * (1 - ROUNDING)
    share[rows[equal], column[equal]] = np.nextafter(largest[equal], 2.0)
    return share
