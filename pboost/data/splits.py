"""Rows dealt to parts, class by class: validation rows and folds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.blocks import as_codes
from pboost.data.check_xy import AbsentClassError
from pboost.values import FloatArray, IntArray

#: What builders take as `validation`.
Validation: TypeAlias = tuple[Any, ...] | float | None


def assign_folds(
    labels: NDArray[Any], weight: FloatArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """The fold that tests each row: classes dealt out in turn, each in random order.

    Warns where a class is too rare to be in each fold.
    """
    values, code = as_codes(labels)
    # A row of weight 0 trains and tests nothing, so it must not stand for its class.
    idle = np.zeros(len(labels), bool) if weight is None else weight == 0
    classes = range(len(values))
    strata = [np.flatnonzero((code == k) & (idle == i)) for i in (False, True) for k in classes]
    sizes = [len(strata[k]) for k in classes]
    rarest, weighed = min(sizes), "" if weight is None else " of positive weight"
    name = repr(values[sizes.index(rarest)].item())
    if rarest < (2 if len(sizes) == 2 else 1):
        raise ValueError(
            f"y: expected rows{weighed} of two classes outside of each fold, got {rarest} with "
            f"label {name}"
        )
    if folds > max(sizes):
        raise ValueError(
            f"folds: expected at most {max(sizes)}, the number of rows{weighed} with the most "
            f"frequent label, got {folds}"
        )
    if folds > rarest:
        warnings.warn(
            f"y: class {name} has {rarest} row{'s' * (rarest != 1)}{weighed}, fewer than the "
            f"{folds} folds, so that not all of them test it",
            UserWarning,
            stacklevel=4,  # who calls the decorated function
        )
    return deal(strata, folds, rng)


def any_folds(
    code: IntArray, weight: FloatArray | None, folds: int, rng: np.random.Generator
) -> IntArray:
    """The fold that tests each row: the classes dealt out in turn, rows that weigh nothing last."""
    idle = np.zeros(len(code), bool) if weight is None else weight == 0
    n_rows = len(code) - int(np.count_nonzero(idle))
    if n_rows < 2:
        raise ValueError(
            "X: expected at least two rows of positive weight for a cross-validation, got one "
            "sample"
        )
    if folds > n_rows:
        raise ValueError(
            f"folds: expected at most {n_rows}, the number of rows of positive weight, got {folds}"
        )
    strata = [np.flatnonzero((code == k) & ~idle) for k in range(int(code.max()) + 1)]
    return deal([*strata, np.flatnonzero(idle)], folds, rng)


def deal(strata: Sequence[NDArray[np.intp]], folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of each row: rows dealt out in turn, each stratum in random order."""
    order = np.concatenate([rng.permutation(rows) for rows in strata])
    test_fold = np.empty(len(order), np.int32)
    test_fold[order] = np.arange(len(order)) % folds
    return test_fold


def hold_out(
    classes: Sequence[NDArray[np.intp]], share: float, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Return a random part of the rows of every class, in ascending order.

    Rows of a regression are of one class.
    """
    return np.sort(np.concatenate(held_of_classes(classes, share, generator)))


def held_of_classes(
    classes: Sequence[NDArray[Any]], share: float, generator: np.random.Generator
) -> list[NDArray[Any]]:
    """Return a random part of the rows of every class; it does not depend on their numbers."""
    if len(classes) == 1 and len(classes[0]) < 2:
        raise ValueError(
            "validation: expected at least two rows of positive weight, one to train and one to "
            "hold out, got one sample; or give validation data"
        )
    return [_draw(rows, share, generator) for rows in classes]


def _draw(rows: NDArray[Any], share: float, generator: np.random.Generator) -> NDArray[Any]:
    """Return a random part of the rows of one class, at least one and not all."""
    if len(rows) < 2:
        raise AbsentClassError(
            "validation: expected at least two rows of each class, one to train and one to hold "
            "out; or give validation data",
            least=2,
        )
    n = min(max(round(share * len(rows)), 1), len(rows) - 1)
    return generator.permutation(rows)[:n]
