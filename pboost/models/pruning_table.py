"""The record of what cross-validation found of a pruned tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pboost.models import stored
from pboost.models.stored import Stored, is_integer
from pboost.values import FloatArray, IntArray


def _subtrees(table: Any) -> tuple[int, ...]:
    return table.lam.shape[:1]


@dataclass(frozen=True, slots=True, eq=False)
class PruningTable(Stored):
    """The subtrees among which cross-validation chose, the largest first.

    Attributes
    ----------
    lam : ndarray of float64, shape (k,)
        Price of a leaf from which on each subtree is the best, increasing.
    n_leaves : ndarray of int32, shape (k,)
        Their numbers of leaves.
    error : ndarray of float64, shape (k,)
        Cross-validated error: the share of rows misclassified, or the mean squared error.
    standard_error : ndarray of float64, shape (k,)
        Its standard error.
    chosen : int
        The place of the subtree that was chosen.
    """

    called, file_prefix = "pruning.", "pruning_"

    lam: FloatArray = stored.column(np.float64, _subtrees, finite=False, positive=True)
    n_leaves: IntArray = stored.column(np.int32, _subtrees)
    error: FloatArray = stored.column(np.float64, _subtrees, finite=False, positive=True)
    standard_error: FloatArray = stored.column(np.float64, _subtrees, finite=False, positive=True)
    chosen: int = stored.header(
        lambda value: type(value) is int, refusal="pruning: the table is not complete"
    )

    def check_whole(self) -> None:
        """Check the leaves and the choice."""
        if not (self.n_leaves >= 1).all():
            raise ValueError("pruning.n_leaves: expected positive numbers")
        if not (is_integer(self.chosen) and 0 <= self.chosen < len(self.lam)):
            raise ValueError(f"pruning.chosen: expected a place in the table, got {self.chosen}")

    def __str__(self) -> str:
        lines = ["     lambda  leaves  error"]
        for i in range(len(self.lam)):
            mark = "  chosen" if i == self.chosen else ""
            lines.append(
                f"{self.lam[i]:11.5g} {self.n_leaves[i]:7d}  {self.error[i]:.5g} "
                f"± {self.standard_error[i]:.2g}{mark}"
            )
        return "\n".join(lines)
