"""Values of probit trees at rows, and the probabilities that go with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import probit as kernel
from pboost._core import tree_walk
from pboost._core.probit_tree import walk_values
from pboost.models.base import Predictor, settled
from pboost.models.hard_walk import over_tiles
from pboost.models.new_rows import match_columns
from pboost.threads import check_stop
from pboost.values import FloatArray, IntArray

#: Values that are held at once.
BLOCK_VALUES = 1 << 16
#: Beyond this size a value's square overflows.
FAR = 1e150
#: The value of a class that is never the answer.
LEAST = -np.finfo(np.float64).max


class Equations(NamedTuple):
    """Trees with equations in their leaves, as the kernel reads them; see `walk_values`."""

    steps: NDArray[np.uint8]
    root: IntArray
    depth: IntArray
    leaf: IntArray
    coefficient: FloatArray
    taken: IntArray


def each_block(
    model: Predictor,
    trees: Equations,
    X: Any,
    take: Callable[[int, int, FloatArray], None],
) -> int:
    """Call ``take(start, stop, values)`` for blocks of rows, on several threads.

    Parameters
    ----------
    model : Predictor
        Whose columns X must have.
    trees : Equations
        The trees.
    X : array_like of shape (n, d), or data frame
        Finite numbers.
    take : callable
        Is given values (stop - start, n_trees, K), which it must not keep.

    Returns
    -------
    int
        Number of rows.
    """
    values = match_columns(model, X).values
    n, d = values.shape
    shape = len(trees.root) - 1, trees.coefficient.shape[1]
    per_row = math.prod(shape)
    block = tree_walk.TILE_ROWS * max(1, BLOCK_VALUES // (per_row * tree_walk.TILE_ROWS))

    def work(first: int, last: int, tile: FloatArray) -> bool:
        out = np.empty((min(block, last - first), *shape))
        for start in range(first, last, block):
            check_stop()
            stop = min(start + block, last)
            if walk_values(values, *trees, start, stop, tile, out):
                return True
            take(start, stop, out[: stop - start])
        return False

    over_tiles(model, X, n, work, d, 1, n * max(d, per_row))
    return n


def log_probability(values: FloatArray) -> FloatArray:
    """Return ln Phi of values of any shape."""
    flat = np.clip(values, -FAR, FAR).ravel()
    loss = np.empty(len(flat))
    kernel.losses(flat, loss)
    return -loss.reshape(values.shape)


def probabilities(values: FloatArray) -> FloatArray:
    """Return probabilities (n, J) of values (n, K); the class chosen has the largest, alone.

    Two classes have one value, f, and Phi(-f) and Phi(f); more have Phi of their values, divided
    by the sum. Where another probability is equal in float64 though the values are not, that of
    the class chosen is made larger by one unit in the last place.
    """
    if values.shape[1] == 1:
        share = np.exp(log_probability(np.concatenate([-values, values], axis=1)))
    else:
        logs = log_probability(values)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
    return settled(share, chosen(values))


def chosen(values: FloatArray) -> NDArray[np.intp]:
    """Return the class of largest value (n, K), the first of equal ones."""
    if values.shape[1] == 1:
        return (values[:, 0] > 0).astype(np.intp)
    return np.argmax(values, axis=1)


def without(values: FloatArray, lost: NDArray[np.bool_]) -> FloatArray:
    """Return values with the least number where a class is lost."""
    return np.where(lost, LEAST, values) if lost.any() else values
