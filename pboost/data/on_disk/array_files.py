"""Read and validate arrays from untrusted files."""

from __future__ import annotations

import io
import math
import sys
import zipfile
from collections.abc import Mapping

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pboost.data.columns.prebuilt import HOLES
from pboost.data.read.check_xy import MOST_TARGET
from pboost.data.read.codes import blocks
from pboost.threads import check_stop
from pboost.values import Array, IntArray


def from_npy(content: bytes) -> Array:
    """Read an array from ``.npy`` version 1.0 content; do not copy it, and refuse object arrays.

    Raises ValueError if the declared size differs from the actual size.
    """
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"expected .npy version 1.0, got {version}")
        shape, fortran_order, dtype = npy.read_array_header_1_0(stream)
    except Exception as error:  # a crafted header can cause any exception
        raise ValueError(f"bad array header: {str(error)[:200]}") from error
    start = stream.tell()
    if dtype.hasobject or fortran_order or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(
            f"expected numbers or strings in C order, got dtype {dtype}, shape {shape}"[:200]
        )
    size = math.prod(shape) * dtype.itemsize
    if size != len(content) - start:
        raise ValueError(f"shape {shape} of {dtype} needs {size} bytes, got {len(content) - start}")
    try:
        return np.frombuffer(content, dtype, offset=start).reshape(shape)
    except (TypeError, ValueError, OverflowError) as error:  # impossible shapes
        raise ValueError(f"bad array header: {error}") from error


def from_npz(content: bytes) -> dict[str, Array]:
    """Read an archive written by ``numpy.savez``; raise ValueError for other content."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            # Reject compressed and overlapping files, which could exhaust the memory.
            if sum(entry.file_size for entry in members) > len(content) or any(
                entry.compress_type != zipfile.ZIP_STORED for entry in members
            ):
                raise ValueError(
                    "expected uncompressed members, got compressed or overlapping members"
                )
            return {
                entry.filename.removesuffix(".npy"): from_npy(archive.read(entry))
                for entry in members
            }
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ValueError(f"not an archive of arrays: {error}") from error


def check_rows(arrays: Mapping[str, Array], n: int) -> None:
    """Raise ValueError unless the classes, targets and weights of n rows are valid."""
    classes, count = arrays["classes"], arrays["class_count"]
    targets, weights = arrays.get("targets"), arrays.get("weights")
    _check_labels(classes)
    in_classes = n if targets is None else 0
    is_count = count.shape == classes.shape and ((count >= 1) & (count <= n)).all()
    if not is_count or count.sum() != in_classes:
        raise ValueError("class_count: expected the number of rows of each class")
    if targets is not None and not _are_of_rows(targets, n, np.abs(targets) <= MOST_TARGET):
        raise ValueError("targets: expected a finite number for each row")
    if weights is not None and not _are_of_rows(weights, n, (weights > 0) & (weights < np.inf)):
        raise ValueError("weights: expected a positive number for each row")


def _are_of_rows(values: Array, n: int, are_right: NDArray[np.bool_]) -> bool:
    return values.shape == (n,) and bool(are_right.all())


def _check_labels(classes: Array) -> None:
    """Raise ValueError unless the class labels are valid and sorted."""
    if classes.dtype.kind not in "biufU" or classes.ndim != 1:
        raise ValueError(f"classes: expected numbers or strings, got {classes.dtype}")
    if classes.dtype.kind == "U" and classes.view(np.uint32).max(initial=0) > sys.maxunicode:
        raise ValueError("classes: expected strings, got invalid code points")
    if not (classes[:-1] < classes[1:]).all():
        raise ValueError("classes: expected distinct class labels in increasing order")


def check_values(
    values: Array, codes: NDArray[np.uint8], n_bins: IntArray, special: Array | None
) -> None:
    """Raise ValueError for infinite values, or if NaN values and missing codes do not match."""
    if values.shape != codes.shape:
        raise ValueError("values: expected one number for each code")
    for j, bins in enumerate(n_bins.tolist()):
        can_miss = special is not None and bool(special[j] & HOLES)
        for block in blocks(values[j]):
            check_stop()
            known = np.isfinite(values[j, block])
            if not can_miss:
                is_right = known.all()
            else:
                is_missing = codes[j, block] == bins
                is_right = (known != is_missing).all()
                is_right = is_right and np.isnan(values[j, block][is_missing]).all()
            if not is_right:
                raise ValueError(f"values: expected finite numbers or missing values in column {j}")
