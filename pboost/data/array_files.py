"""Arrays in files from anywhere: ``.npy`` files that are what they say, and archives of such."""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray


def from_npy(content: bytes) -> NDArray[Any]:
    """Return the array of a file of ``.npy`` version 1.0, not copied; never objects.

    ValueError unless the size that it declares is the size that is there.
    """
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"expected .npy version 1.0, got {version}")
        shape, fortran_order, dtype = npy.read_array_header_1_0(stream)
    except Exception as error:  # what a crafted header can raise is not a closed list
        raise ValueError(f"bad array header: {str(error)[:200]}") from error
    start = stream.tell()
    if dtype.hasobject or fortran_order or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(
            f"expected plain values in C order, got dtype {dtype}, shape {shape}"[:200]
        )
    size = math.prod(shape) * dtype.itemsize
    if size != len(content) - start:
        raise ValueError(
            f"shape {shape} of {dtype} needs {size} bytes, but there are {len(content) - start}"
        )
    try:
        return np.frombuffer(content, dtype, offset=start).reshape(shape)
    except (TypeError, ValueError, OverflowError) as error:  # of lengths that no array has
        raise ValueError(f"bad array header: {error}") from error


def from_npz(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive that ``numpy.savez`` has written; ValueError for others."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            # What is not compressed unfolds into no more than there is, unless twice.
            if sum(one.file_size for one in members) > len(content) or any(
                one.compress_type != zipfile.ZIP_STORED for one in members
            ):
                raise ValueError("expected members that are not compressed")
            return {
                one.filename.removesuffix(".npy"): from_npy(archive.read(one)) for one in members
            }
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ValueError(f"no archive of arrays: {error}") from error
