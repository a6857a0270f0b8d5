"""File format of a folder of binned features, which are memory-mapped during a fit.

A folder contains ``.npy`` files and ``header.json``, which lists them with their digests. Each file
is written under a temporary name, flushed and renamed. The header comes last, so that a folder
without a header is incomplete.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pboost._version import __version__
from pboost.data.columns.columns import BinnedColumns, made, valued
from pboost.data.columns.prebuilt import (
    check_bins,
    check_dimensions,
    check_shapes,
    checked_names,
    most_bins,
)
from pboost.data.on_disk.array_files import check_rows, check_values, from_npy, from_npz
from pboost.data.read.codes import RowLabels, rows_of
from pboost.data.read.table import Table
from pboost.threads import check_stop
from pboost.values import Array, FloatArray, check_flag, shown
from pboost.values.json_texts import TIMES, parse

FORMAT = "pboost-columns"
VERSION = 1
HEADER = "header.json"
#: Files with one entry per row and feature, which are memory-mapped: codes and optional values.
CODES, VALUES = "codes", "values"
#: File with the progress of an interrupted writer.
STATE = "state.npz"
#: Suffix of files that are being written.
UNFINISHED = ".part"
#: Dtypes of the arrays other than codes and values. None allows any dtype of class labels.
_DTYPES: dict[str, str | None] = {
    "classes": None,
    "class_count": "<i8",
    "targets": "<f8",
    "weights": "<f8",
    "n_bins": "<i4",
    "lower": "<f8",
    "upper": "<f8",
    "bin_start": "<i4",
    "special": "|u1",
}
_OPTIONAL = frozenset({"targets", "weights", "special", *Table.stored})
#: Allowed dtypes of the memory-mapped files.
_OF_ROWS = {CODES: ("|u1",), VALUES: ("<f8", "<f4")}
#: Bytes per read when a digest is computed.
_CHUNK = 1 << 22


class FolderError(ValueError):
    """Raised if a folder does not contain columns that this version can read."""


class StoredColumns(NamedTuple):
    """Binned features on disk, with the targets and the sample weights of their rows.

    Attributes
    ----------
    columns : BinnedColumns
        Pass it to a fit function in place of X. Codes and values are memory-mapped. If the
        folder contains values, the object is a `BinnedValues`.
    y : ndarray, or RowLabels if the classes are text, shape (n,)
        Class of each row, sorted by class, or the regression targets in the order of the table.
        Text is stored as codes; ``numpy.asarray(y)`` returns an array of strings.
    weight : ndarray of float64, shape (n,), or None
        Sample weights, all positive. None if all rows have equal weight.
    """

    columns: BinnedColumns
    y: Array | RowLabels
    weight: FloatArray | None

    def __repr__(self) -> str:
        return f"<StoredColumns: {self.columns.n_rows} rows, {self.columns.n_features} features>"


class Writer:
    """Write the files of a folder. The context manager removes them after an exception.

    Raises
    ------
    FileExistsError
        If the folder contains columns already, or unrelated files.
    OSError
        If a file cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = _as_path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(os.listdir(self.folder)):
            if name == HEADER:
                raise FileExistsError(
                    f"folder: expected a new or empty folder, {self.folder} contains {HEADER}"
                )
            if not _is_own(name):
                raise FileExistsError(
                    f"folder: expected a new or empty folder, {self.folder} contains {name!r}"
                )
        self._left = (self.folder / STATE).is_file()
        if not self._left:
            self._discard()  # files of a writer that was killed before it saved its progress
        self._written: dict[str, dict[str, Any]] = {}
        self._files: dict[str, RowsFile] = {}

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *raised: object) -> None:
        self._close()
        # KeyboardInterrupt is not an Exception: keep the files, so that the call can be resumed.
        if isinstance(kind, type) and issubclass(kind, Exception):
            self._discard()

    def _close(self) -> None:
        for file in self._files.values():
            file.discard()

    def _discard(self) -> None:
        for name in os.listdir(self.folder):
            if _is_own(name):
                os.unlink(self.folder / name)

    def forget(self) -> None:
        """Delete the files of an interrupted writer."""
        self._close()
        self._discard()
        self._left = False

    def state(self, key: str) -> dict[str, Array] | None:
        """Return the progress that an interrupted writer saved under this key, or None.

        Damaged files are deleted.
        """
        if not self._left:
            return None
        try:
            file_bytes = (self.folder / STATE).read_bytes()
            digest, content = file_bytes[:32], file_bytes[32:]
            if hashlib.sha256(content).digest() != digest:
                raise ValueError("damaged")
            state = from_npz(content)
            if state.pop("key").item() != key:
                raise ValueError("saved with other options")
            shape = len(state["n_bins"]), int(state["count"].sum())
            for name, dtype in ((CODES, "|u1"), (VALUES, state["value_dtype"].item())):
                if dtype and os.path.getsize(self._unfinished(name)) != _size(dtype, shape):
                    raise ValueError(f"{name}: missing or has the wrong size")
        except (OSError, ArithmeticError, LookupError, TypeError, ValueError):
            self.forget()
            return None
        return state

    def save(self, key: str, state: Mapping[str, Array]) -> None:
        """Flush the codes to disk, and save the progress of the writer."""
        buffer = io.BytesIO()
        every: dict[str, Any] = {"key": np.array(key), **state}
        every = {name: np.asarray(array, order="C") for name, array in every.items()}
        np.savez(buffer, **every)
        content = buffer.getvalue()
        with _naming(self.folder / (STATE + UNFINISHED)) as path:
            with open(path, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
                _flush(file)
            os.replace(path, self.folder / STATE)

    def rows(
        self, name: str, dtype: str, shape: tuple[int, int], is_kept: bool = False
    ) -> RowsFile:
        """Create the file of codes or values (d, n), or open the existing file if `is_kept`."""
        self._files[name] = RowsFile(self._unfinished(name), dtype, shape, is_kept)
        return self._files[name]

    def keep(self) -> None:
        """Finish the files of codes and values, and give them their final names."""
        for name, file in self._files.items():
            file.close()
            self._renamed(name, file.dtype, file.shape)

    def array(self, name: str, array: Array) -> None:
        """Write an array."""
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        with _naming(self._unfinished(name)) as path, open(path, "wb") as file:
            npy.write_array(file, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
            _flush(file)
        self._renamed(name, array.dtype, array.shape)

    def _unfinished(self, name: str) -> Path:
        return self.folder / f"{name}.npy{UNFINISHED}"

    def _renamed(self, name: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> None:
        path = self._unfinished(name)
        with _naming(path):
            self._written[name] = {
                "dtype": dtype.str,
                "shape": list(shape),
                "bytes": path.stat().st_size,
                "sha256": _sha256(path),
            }
            os.replace(path, path.with_suffix(""))

    def header(self, **more: Any) -> None:
        """Write the header, which marks the folder as complete."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "pboost": __version__,
            **more,
            "arrays": self._written,
        }
        header["digest"] = _digest(header)
        with _naming(self.folder / (HEADER + UNFINISHED)) as path:
            with open(path, "wb") as file:
                file.write(json.dumps(header, indent=1).encode())
                _flush(file)
            os.replace(path, self.folder / HEADER)
        (self.folder / STATE).unlink(missing_ok=True)
        flush_folder(str(self.folder))


class RowsFile:
    """File of the codes or values (d, n) of a folder. Its parts can be written in any order."""

    def __init__(
        self, path: Path, dtype: str, shape: tuple[int, int], is_kept: bool = False
    ) -> None:
        self.dtype, self.shape, self._path = np.dtype(dtype), shape, path
        layout = _layout(dtype, shape)
        self._offset = len(layout)
        with _naming(path):
            mode = "r+b" if is_kept else "w+b"
            self._file = open(path, mode, buffering=0)  # noqa: SIM115  # closed by `close`
            if is_kept:
                return
            self._file.write(layout)
            size = _size(dtype, shape)
            if hasattr(os, "posix_fallocate"):  # raise an error now if the disk is too small
                os.posix_fallocate(self._file.fileno(), 0, size)
            else:
                self._file.truncate(size)

    def put(self, column: int, start: int, numbers: Array) -> None:
        """Write consecutive entries of a column, starting at row `start`."""
        buffer: Any = np.ascontiguousarray(numbers, dtype=self.dtype)
        left = memoryview(buffer).cast("B")
        with _naming(self._path):
            place = column * self.shape[1] + start
            self._file.seek(self._offset + place * self.dtype.itemsize)
            while left:
                left = left[self._file.write(left) :]

    def flush(self) -> None:
        """Flush written data to disk."""
        with _naming(self._path):
            _flush(self._file)

    def close(self) -> None:
        """Flush the file to disk and close it."""
        with _naming(self._path):
            _flush(self._file)
            self._file.close()

    def discard(self) -> None:
        """Close the file without flushing it."""
        self._file.close()


def _layout(dtype: str, shape: tuple[int, int]) -> bytes:
    """Return the header of a file of codes or values."""
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _size(dtype: str, shape: tuple[int, int]) -> int:
    """Return the size in bytes of a file of codes or values."""
    return len(_layout(dtype, shape)) + shape[0] * shape[1] * np.dtype(dtype).itemsize


def open_columns(folder: str | os.PathLike[str], *, check: bool = False) -> StoredColumns:
    """Open a folder written by `bin_files`, without loading the codes into memory.

    Parameters
    ----------
    folder : str or path-like
        Folder to open.
    check : bool
        Whether to verify the digests of codes and values too, which reads these files completely.
        All other files are always verified, and codes and values are always checked for their
        size and range.

    Returns
    -------
    StoredColumns
        The tuple ``columns, y, weight``. A fit does not copy the codes. Do not change the folder
        while the columns are in use.

    Raises
    ------
    FolderError
        If the folder is incomplete, has been changed, or was written by an incompatible version.
    OSError
        If the folder cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1, 0, 0, 1, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pb.data.bin_files([(X[:3], y[:3]), (X[3:], y[3:])], os.path.join(folder, "columns"))
    ...     columns, y, weight = pb.data.open_columns(os.path.join(folder, "columns"))
    ...     model = pb.fit_adaboost(columns, y, n_estimators=5)
    >>> y.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    where = _as_path(folder)
    check = check_flag("check", check)
    try:
        header = _read_header(where)
        arrays = {name: _read_array(where, name, entry) for name, entry in _small(header)}
        mapped = {
            name: _mapped(where, name, header["arrays"].get(name), check)
            for name in _OF_ROWS
            if name == CODES or name in header["arrays"]
        }
        return _assembled(header, arrays, mapped[CODES], mapped.get(VALUES))
    except FolderError as error:
        raise FolderError(f"{where}: {error}") from error.__cause__
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise FolderError(f"{where}: damaged: {error}") from error


def _read_header(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise FileNotFoundError(f"folder: expected an existing folder, got {str(folder)!r}")
    path = folder / HEADER
    if not path.is_file():
        if any(name.endswith(UNFINISHED) for name in os.listdir(folder)):
            raise FolderError(
                "incomplete: bin_files was interrupted; call it again with this folder"
            )
        raise FolderError(f"not a folder of pb.data.bin_files: {HEADER} is missing")
    try:
        header = parse(path.read_bytes(), TIMES)
    except ValueError as error:
        raise FolderError(f"damaged {HEADER}: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FolderError(f"{HEADER}: expected format {FORMAT!r}")
    if header.get("version") != VERSION:
        raise FolderError(
            f"expected version {VERSION} of the format, got {shown(header.get('version'))}, "
            f"written by pboost {shown(header.get('pboost'))}; call bin_files again"
        )
    if header.get("digest") != _digest(header):
        raise FolderError(f"{HEADER} has been changed")
    return header


def _small(header: Mapping[str, object]) -> list[tuple[str, Any]]:
    """Return the names and header entries of all arrays except codes and values."""
    known = {**_DTYPES, **{name: d and d.str for name, d in Table.stored.items()}}
    entries = header.get("arrays")
    if not isinstance(entries, dict) or not all(
        isinstance(entry, dict) for entry in entries.values()
    ):
        raise FolderError(f"{HEADER}: 'arrays' is missing or not an object")
    missing = [name for name in known if name not in _OPTIONAL and name not in entries]
    unknown = [name for name in entries if name not in _OF_ROWS and name not in known]
    if missing or unknown:
        more = f"missing: {shown(missing)}, unknown: {shown(unknown)}"
        raise FolderError(f"{HEADER}: unexpected list of arrays; {more}")
    for name, entry in entries.items():
        dtype = known.get(name)
        if dtype is not None and entry["dtype"] != dtype:
            raise FolderError(f"{name}: expected {dtype}, got {shown(entry['dtype'])}")
    return [(name, entry) for name, entry in entries.items() if name not in _OF_ROWS]


def _read_array(folder: Path, name: str, entry: Mapping[str, object]) -> Array:
    """Read an array and check it against its header entry."""
    path = folder / f"{name}.npy"
    _check_size(path, entry)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise FolderError(f"{path.name} has been changed")
    try:
        array = from_npy(content)
    except ValueError as error:
        raise FolderError(f"{path.name}: {error}") from error
    if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
        raise FolderError(f"{path.name} differs from its entry in {HEADER}")
    return array


def _mapped(folder: Path, name: str, entry: object, check: bool) -> Array:
    """Map the file of codes or values into memory, read-only."""
    if not isinstance(entry, dict):
        raise FolderError(f"{HEADER}: no entry for {name}")
    path = folder / f"{name}.npy"
    _check_size(path, entry)
    if check and _sha256(path) != entry["sha256"]:
        raise FolderError(f"{path.name} has been changed")
    shape = entry["shape"]
    if len(shape) != 2 or not all(type(size) is int and size > 0 for size in shape):
        raise FolderError(f"{name}: expected two dimensions, got shape {shown(shape)}")
    if entry["dtype"] not in _OF_ROWS[name]:
        raise FolderError(f"{name}: expected {_OF_ROWS[name][0]}, got {shown(entry['dtype'])}")
    layout = _layout(entry["dtype"], (shape[0], shape[1]))
    with open(path, "rb") as file:
        if file.read(len(layout)) != layout:
            raise FolderError(f"{path.name} differs from its entry in {HEADER}")
    if _size(entry["dtype"], (shape[0], shape[1])) != entry["bytes"]:
        raise FolderError(f"{path.name}: the size does not match the shape")
    return np.memmap(path, entry["dtype"], "r", len(layout), tuple(shape))


def _check_size(path: Path, entry: Mapping[str, object]) -> None:
    if not path.is_file():
        raise FolderError(f"{path.name} is missing")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise FolderError(f"{path.name} has {size} bytes, expected {entry['bytes']}")


def _assembled(
    header: Mapping[str, object],
    arrays: dict[str, Array],
    codes: NDArray[np.uint8],
    values: Array | None,
) -> StoredColumns:
    """Build the columns, targets and weights, and check that the arrays are consistent."""
    d, n = codes.shape
    table = Table.from_members(arrays)
    if table is not None:
        table.validate(d)
    special = arrays.get("special")
    columns = made(
        BinnedColumns,
        codes,
        arrays["n_bins"],
        arrays["lower"],
        arrays["upper"],
        checked_names(header["names"], d),
        special,
        table,
        arrays["bin_start"],
    )
    check_dimensions(columns, {"lower": 2, "bin_start": 2})
    bins = most_bins(columns.n_bins, special)
    check_shapes(
        columns,
        {"n_bins": (d,), "lower": (d, bins), "upper": (d, bins), "bin_start": (d, bins + 1)},
    )
    check_bins(columns, bins)
    start = columns.bin_start
    assert start is not None
    if (np.diff(start, axis=1) < 0).any() or (start[:, 0] != 0).any() or (start[:, -1] != n).any():
        raise FolderError("bin_start: expected the number of rows below each bin")
    check_rows(arrays, n)
    if values is not None:
        check_values(values, codes, columns.n_bins, special)
        columns = valued(columns, values.T)
    is_regression = "targets" in arrays
    y = arrays["targets"] if is_regression else rows_of(arrays["classes"], arrays["class_count"])
    return StoredColumns(columns, y, arrays.get("weights"))


def flush_folder(folder: str) -> None:
    """Make a rename durable after a power failure, if the system supports it."""
    if os.name == "nt":
        return  # Windows cannot open a directory
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # the directory may be writable but not readable
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not supported by this file system
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[Path]:
    """Add the path of this file to an OSError that has no path."""
    try:
        yield path
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    hasher = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
            check_stop()
    return hasher.hexdigest()


def _digest(header: Mapping[str, object]) -> str:
    """Return the digest of a header, without its digest entry."""
    text = json.dumps({k: v for k, v in header.items() if k != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _is_own(name: str) -> bool:
    """Return whether a file may have been written by an interrupted writer."""
    known = (*_OF_ROWS, *_DTYPES, *Table.stored)
    return name.removesuffix(UNFINISHED) in {
        HEADER,
        STATE,
        *(f"{array_name}.npy" for array_name in known),
    }


def _as_path(folder: object) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder: expected a str or path-like, got {shown(folder)}")
    return Path(folder)
