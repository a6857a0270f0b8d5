"""What is given to columns: shares in what a model has learnt, parts of what it says of a row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pboost.values import FloatArray

_MOST = np.finfo(np.float64).max


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
    most = size.max(axis=-1, keepdims=True)
    size = np.divide(size, most, out=np.zeros(size.shape), where=most > 0)
    total = size.sum(axis=-1, keepdims=True)
    return np.divide(size, total, out=size, where=total > 0)


def mean_of_shares(n: int, found: Iterable[tuple[float, FloatArray]]) -> FloatArray:
    """Return the weighted mean of shares (n,), of those that are not all 0."""
    mean, total = np.zeros(n), 0.0
    for weight, shares in found:
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
    found = np.divide(apart, total, where=speaks, out=np.zeros(parts.shape))
    found[0, ~speaks] = 1.0
    result: FloatArray = found * share
    return result


def among(parts: FloatArray, labels: NDArray[np.generic], own: NDArray[np.generic]) -> FloatArray:
    """Return parts (1 + d, K) of some labels, as (1 + d, J) of all."""
    found = np.zeros((len(parts), len(labels)))
    found[:, np.searchsorted(labels, own)] = parts
    return found
