"""Arrays in uncompressed zip archives, read without trusting what they say of themselves."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

#: The arrays that hold files within a file, and their dtypes.
FILES: dict[str, np.dtype[Any] | None] = {
    "models": np.dtype("|u1"),
    "model_start": np.dtype("<i8"),
}


class ModelFileError(ValueError):
    """A file is not a model that this version of the package can load."""


def to_npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    npy.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def list_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Members by name, none larger than the file itself."""
    members: dict[str, zipfile.ZipInfo] = {}
    # Where the end of a file is damaged, that of the last file within it would be found instead.
    if min((info.header_offset for info in archive.infolist()), default=0) != 0:
        raise ModelFileError("damaged zip archive: does not begin where the file begins")
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise ModelFileError(f"member {info.filename!r} occurs twice")
        # Uncompressed members cannot unfold into more memory than the file takes on disk.
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileError(f"member {info.filename!r}: expected to be uncompressed")
        if info.header_offset + info.file_size > size:
            raise ModelFileError(f"member {info.filename!r}: goes beyond the end of the file")
        members[name] = info
    return members


def read_member(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str
) -> bytes:
    if name not in members:
        raise ModelFileError(f"member '{name}.npy' is missing")
    try:
        return archive.read(members[name])  # checks the CRC
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        raise ModelFileError(f"member '{name}.npy' is damaged: {error}") from error


def from_npy(content: bytes, name: str) -> NDArray[Any]:
    """An array whose declared size is the size that is there; never objects."""
    stream = io.BytesIO(content)
    try:
        version = npy.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"expected .npy version 1.0, got {version}")
        shape, fortran_order, dtype = npy.read_array_header_1_0(stream)
    except Exception as error:  # what a crafted header can raise is not a closed list
        raise ModelFileError(f"member '{name}.npy': bad array header: {error}") from error
    start = stream.tell()
    count = 1
    for length in shape:
        count *= length
    if dtype.hasobject or fortran_order or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ModelFileError(
            f"member '{name}.npy': expected plain values in C order, got dtype {dtype}, "
            f"shape {shape}"
        )
    if count * dtype.itemsize != len(content) - start:
        raise ModelFileError(
            f"member '{name}.npy': shape {shape} of {dtype} needs {count * dtype.itemsize} bytes, "
            f"but there are {len(content) - start}"
        )
    try:
        return np.frombuffer(content, dtype, offset=start).reshape(shape)
    except (TypeError, ValueError, OverflowError) as error:  # of lengths that no array has
        raise ModelFileError(f"member '{name}.npy': bad array header: {error}") from error


def join_files(contents: Sequence[bytes]) -> dict[str, NDArray[Any]]:
    """Files one after another as one array, and where each begins, closed by the end."""
    start = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    return {"models": np.frombuffer(b"".join(contents), np.uint8), "model_start": start}


def split_files(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes]:
    """Yield the files that `join_files` has joined."""
    joined, start = arrays["models"], arrays["model_start"]
    if joined.ndim != 1 or start.ndim != 1 or len(start) == 0:
        raise ModelFileError("column 'model_start': expected the first byte of each model")
    if start[0] != 0 or start[-1] != len(joined) or not (start[:-1] < start[1:]).all():
        raise ModelFileError(
            f"column 'model_start': expected increasing numbers from 0 to {len(joined)}"
        )
    for first, last in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        yield joined[first:last].tobytes()
