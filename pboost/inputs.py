"""What the nodes of a model compare with thresholds, where it is not columns of X."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Inputs:
    """Numbers made of a row; node ``i`` of a model compares number ``feature[i]``."""

    @property
    def n_inputs(self) -> int:
        """Number of numbers per row."""
        raise NotImplementedError

    def values(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers of rows X (n, d) as (n, n_inputs)."""
        raise NotImplementedError

    def names(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return how each number is written, given the names of the columns."""
        raise NotImplementedError

    def select(self, kept: NDArray[np.int32]) -> Inputs:
        """Return some of the numbers only."""
        raise NotImplementedError
