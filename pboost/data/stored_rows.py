"""What a folder of columns holds of its rows, checked: labels, targets, weights and values."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pboost.data.blocks import blocks
from pboost.data.check_xy import MOST_TARGET
from pboost.data.special_columns import HOLES
from pboost.threads import check_stop
from pboost.values import Array, IntArray


def check_rows(arrays: Mapping[str, Array], n: int) -> None:
    """Raise ValueError unless n rows have labels or targets, and positive weights if any."""
    labels, count = arrays["labels"], arrays["label_count"]
    targets, weights = arrays.get("targets"), arrays.get("weights")
    _check_labels(labels)
    in_classes = n if targets is None else 0
    is_count = count.shape == labels.shape and ((count >= 1) & (count <= n)).all()
    if not is_count or count.sum() != in_classes:
        raise ValueError("label_count: expected the numbers of rows of the labels")
    if targets is not None and not _are_of_rows(targets, n, np.abs(targets) <= MOST_TARGET):
        raise ValueError("targets: expected a finite number for each row")
    if weights is not None and not _are_of_rows(weights, n, (weights > 0) & (weights < np.inf)):
        raise ValueError("weights: expected a positive number for each row")


def _are_of_rows(values: Array, n: int, are_right: NDArray[np.bool_]) -> bool:
    return values.shape == (n,) and bool(are_right.all())


def _check_labels(labels: Array) -> None:
    """Raise ValueError unless these are the sorted labels of a folder."""
    if labels.dtype.kind not in "biufU" or labels.ndim != 1:
        raise ValueError(f"labels: expected numbers or strings, got {labels.dtype}")
    if labels.dtype.kind == "U" and labels.view(np.uint32).max(initial=0) > sys.maxunicode:
        raise ValueError("labels: expected strings, got numbers that are no characters")
    if not (labels[:-1] < labels[1:]).all():
        raise ValueError("labels: expected different ones, sorted")


def check_values(
    values: Array, codes: NDArray[np.uint8], n_bins: IntArray, special: Array | None
) -> None:
    """Raise ValueError for infinite values, and for NaN that does not stand for a missing one."""
    if values.shape != codes.shape:
        raise ValueError("values: expected a number for each code")
    for j, bins in enumerate(n_bins.tolist()):
        can_miss = special is not None and bool(special[j] & HOLES)
        for here in blocks(values[j]):
            check_stop()
            known = np.isfinite(values[j, here])
            if not can_miss:
                is_right = known.all()
            else:
                is_missing = codes[j, here] == bins
                is_right = (known != is_missing).all()
                is_right = is_right and np.isnan(values[j, here][is_missing]).all()
            if not is_right:
                raise ValueError(
                    f"values: expected finite numbers, or missing values, in column {j}"
                )
