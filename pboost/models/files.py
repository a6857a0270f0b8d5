"""Save and load models: ``.npz`` files with a JSON header and without pickles.

The format is documented on the page *File format* of the developer documentation.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from pboost._version import __version__
from pboost.data.on_disk import array_files
from pboost.data.on_disk.column_folder import flush_folder
from pboost.models.base import KINDS, Model, check_model
from pboost.models.schema import TEXT, ModelFileError, layout_of
from pboost.values import Array, shown
from pboost.values.json_texts import MAX_NESTING, TIMES, parse

__all__ = ["load", "save"]

FORMAT = "pboost-model"

VERSION = (1, 1)

#: Maximum depth of nested models.
MAX_DEPTH = 8

#: Largest number of members of a zip file.
MOST_MEMBERS = 1000

_LABEL_KINDS = "biufU"

_MAX_NUMBER_BYTES = 8


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file.

    The content is written to a temporary file beside `path`, flushed to disk and renamed. Hence
    `path` always contains either the previous content or the complete new model. Saving the same
    model twice writes the same bytes.

    Parameters
    ----------
    model : DecisionGraph, LinearModel, Tree, RandomForest or another model
        Any pboost model except a FunctionEnsemble. OneVsRest, WeightedVote and Bagging are saved
        with their base learners, which may be nested up to eight levels deep.
    path : str or path-like
        The file name. No suffix is appended. Symbolic links are followed.

    Raises
    ------
    TypeError
        If `model` or a base learner is not a pboost model, or contains functions (from
        `pboost.weak.oracle`, `from_estimator` or `hypothesis`), class labels or settings that
        cannot be stored without pickling.
    OSError
        If the file cannot be written. The previous content of `path` then remains, unless the
        error occurs at the end, when the directory is flushed to disk.

    See Also
    --------
    load : Read a model from a file.

    Examples
    --------
    >>> import os, tempfile
    >>> import pboost as pb
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = pb.fit_adaboost(X, y, n_estimators=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.npz")
    ...     pb.save(model, file)
    ...     pb.predict(pb.load(file), [[0.2], [2.5]]).tolist()
    ['no', 'yes']
    """
    replace_file(check_path(path), _pack(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that `save` wrote.

    Nothing in the file is executed. The arrays are checked, so that an invalid file raises an
    error. Digests detect damage, but not a deliberate change: a file can contain a model that
    pboost did not fit, with any votes and any certificate. Memory use is at most ten times the
    file size plus 16 MB.

    Parameters
    ----------
    path : str or path-like
        The file name.

    Returns
    -------
    DecisionGraph or another model
        The saved model, bit-identical except that tuples in `settings` become lists.

    Raises
    ------
    ModelFileError
        If the file is not a model file, was damaged or changed, or has a version that this
        release of pboost cannot read, or if `path` is a pipe or a device.
    OSError
        If the file cannot be read (FileNotFoundError, IsADirectoryError, PermissionError, ...).

    See Also
    --------
    save : Write a model to a file, with an example.
    """
    where = os.fsdecode(check_path(path))
    check_regular(where)
    with open(where, "rb") as file:
        try:
            return _unpack(file, os.fstat(file.fileno()).st_size)
        except ModelFileError as error:
            raise ModelFileError(f"{where}: {error}") from error.__cause__
        except OSError as error:
            # With a damaged offset, zipfile seeks before the start of the file. Any other OSError
            # comes from the disk.
            if error.errno != errno.EINVAL:
                raise
            raise ModelFileError(f"{where}: damaged zip archive: {error}") from error


# Writing
def _pack(model: Model, depth: int = 0) -> bytes:
    """Return the content of a model file; the same model gives the same bytes."""
    check_model(model)
    fields, arrays = model.members()
    if "models" in layout_of(type(model)).known:
        arrays = {**arrays, **join_files(_pack_models(model, depth + 1))}
    members: dict[str, bytes] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, array in _little_endian(arrays).items():
        members[name] = to_npy(array)
        columns[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(members[name]).hexdigest(),
        }
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": list(VERSION),
        "kind": model.file_kind,
        "pboost": __version__,
        **{name: plain(value, name) for name, value in fields.items()},
        "columns": columns,
    }
    header["digest"] = digest(header)
    text = to_json(header)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {"header": to_npy(np.frombuffer(text, np.uint8)), **members}.items():
            # A ZipInfo with only a name has a constant date, so the same model gives the same
            # bytes.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    return buffer.getvalue()


def _pack_models(model: Any, depth: int) -> list[bytes]:
    """Return the content of one model file per nested model."""
    if depth > MAX_DEPTH:
        raise TypeError(f"model: expected models nested at most {MAX_DEPTH} levels deep")
    files = []
    for k, member in enumerate(model.models):
        try:
            files.append(_pack(member, depth))
        except TypeError as error:
            where = str(error).removeprefix("model")
            raise TypeError(f"model.models[{k}]{where}") from error
    return files


def _little_endian(arrays: Mapping[str, Array]) -> dict[str, Array]:
    classes = arrays.get("classes")
    if classes is not None and not _storable_labels(classes.dtype):
        raise TypeError(
            f"model.classes: expected integer, float, boolean or string labels, got dtype "
            f"{classes.dtype}, which cannot be saved"
        )
    return {name: a.astype(a.dtype.newbyteorder("<"), copy=False) for name, a in arrays.items()}


def _storable_labels(dtype: np.dtype[Any]) -> bool:
    small = dtype.kind == "U" or dtype.itemsize <= _MAX_NUMBER_BYTES
    return dtype.kind in _LABEL_KINDS and dtype.itemsize > 0 and small


# Reading
def _unpack(file: BinaryIO, size: int, depth: int = 0) -> Model:
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise ModelFileError(
            f"expected a zip archive, got a damaged file or another type of file: {error}"
        ) from error
    with archive:
        members = list_members(archive, size)
        header = _read_header(archive, members)
        arrays = _read_columns(archive, members, header)
    if depth:
        file.close()  # release the bytes of a nested model
    models = tuple(_unpack_models(arrays, depth + 1)) if "model_start" in arrays else ()
    TEXT.read("stop_reason", header, arrays)  # every file must contain a stop reason
    try:
        return KINDS[header["kind"]].from_models(header, arrays, models)
    except ModelFileError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"not a valid model: {error}") from error


def _unpack_models(arrays: dict[str, Array], depth: int) -> Iterator[Model]:
    """Yield the nested models; release the bytes of each model when it has been read."""
    if depth > MAX_DEPTH:
        raise ModelFileError(f"expected models nested at most {MAX_DEPTH} levels deep")
    contents = split_files(arrays)
    for k in range(len(contents)):
        size = len(contents[-1])
        try:
            yield _unpack(io.BytesIO(contents.pop()), size, depth)
        except ModelFileError as error:
            raise ModelFileError(f"model {k}: {error}") from error.__cause__


def _read_header(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    if "header" not in members:
        raise ModelFileError("member 'header.npy' is missing; the file is not a pboost model")
    text = from_npy(read_member(archive, members, "header"), "header")
    if text.dtype != np.uint8:
        raise ModelFileError(f"header: expected the bytes of a JSON text, got dtype {text.dtype}")
    try:
        header = parse(text.reshape(-1).data, TIMES)
    except ValueError as error:
        raise ModelFileError(f"header: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"header: expected format {FORMAT!r}; the file is not a pboost model")
    version = header.get("version")
    if version != list(VERSION):
        raise ModelFileError(
            f"header: expected format version {list(VERSION)}, got {shown(version)}, written by "
            f"pboost {shown(header.get('pboost'))}; fit the model again, or load it with that "
            "release"
        )
    try:
        intact = header.get("digest") == digest(header)
    except ValueError:  # NaN is not valid JSON
        intact = False
    if not intact:
        raise ModelFileError("header: was changed after it was written (digest differs)")
    if header.get("kind") not in list(KINDS):
        known = " or ".join(map(repr, sorted(KINDS)))
        raise ModelFileError(f"header: expected kind {known}, got {header.get('kind')!r}")
    return header


def _read_columns(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], header: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the arrays of the model class, each checked against the header."""
    columns = header.get("columns")
    if not isinstance(columns, dict) or not all(isinstance(c, dict) for c in columns.values()):
        raise ModelFileError("header: 'columns' is missing or not a JSON object")
    every = layout_of(KINDS[header["kind"]]).known.items()
    known = {name: dtype for name, (dtype, some) in every if name in columns or not some}
    for name in columns.keys() - known.keys():
        raise ModelFileError(f"column {name!r} is unknown to pboost {__version__}")
    for name in members.keys() - columns.keys() - {"header"}:
        raise ModelFileError(f"member {members[name].filename!r} is not listed in the header")
    arrays = {}
    for name, dtype in known.items():
        if name not in columns:
            raise ModelFileError(f"column {name!r} is missing")
        content = read_member(archive, members, name)
        if hashlib.sha256(content).hexdigest() != columns[name].get("sha256"):
            raise ModelFileError(f"column {name!r} was changed after it was written")
        array = from_npy(content, name)
        if not (_storable_labels(array.dtype) if dtype is None else _is_any(array.dtype, dtype)):
            raise ModelFileError(f"column {name!r}: unexpected dtype {array.dtype}")
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    return arrays


def _is_any(dtype: np.dtype[Any], expected: np.dtype[Any] | tuple[np.dtype[Any], ...]) -> bool:
    """Return whether a dtype is the expected dtype or one of several expected dtypes."""
    return dtype in (expected if isinstance(expected, tuple) else (expected,))


# Headers: JSON
def plain(value: object, where: str, depth: int = 1) -> Any:
    """Convert `value` to JSON types; a TypeError names an item that cannot be converted."""
    if depth > MAX_NESTING:
        raise TypeError(f"model.{where}: expected at most {MAX_NESTING} levels of nesting")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(item, f"{where}[{key!r}]", depth + 1) for key, item in value.items()}
    raise TypeError(f"model.{where}: expected a value that JSON can represent, got {value!r}")


def to_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(header: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the header without its ``digest`` field."""
    rest = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.sha256(to_json(rest)).hexdigest()


# Archives: zip files of arrays. Sizes and types that a file declares are never trusted.
def to_npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    npy.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def list_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members of a zip file by name, after checking their sizes."""
    members: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > MOST_MEMBERS:
        raise ModelFileError(f"expected at most {MOST_MEMBERS} members")
    # If the end of the file is damaged, zipfile would read a nested file instead.
    if min((info.header_offset for info in archive.infolist()), default=0) != 0:
        raise ModelFileError(
            "damaged zip archive: the first member is not at the start of the file"
        )
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise ModelFileError(f"member {info.filename!r} occurs twice")
        # Uncompressed members cannot expand to more memory than the size of the file.
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileError(f"member {info.filename!r}: expected an uncompressed member")
        if info.header_offset + info.file_size > size:
            raise ModelFileError(f"member {info.filename!r}: extends beyond the end of the file")
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


def from_npy(content: bytes, name: str) -> Array:
    """Return an array. Its size must match the declared size, and it must not contain objects."""
    try:
        return array_files.from_npy(content)
    except ValueError as error:
        raise ModelFileError(f"member '{name}.npy': {error}") from error


def join_files(contents: Sequence[bytes]) -> dict[str, Array]:
    """Concatenate files to one array, and return this array and the file offsets."""
    start = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    return {"models": np.frombuffer(b"".join(contents), np.uint8), "model_start": start}


def split_files(arrays: dict[str, Array]) -> list[bytes]:
    """Remove the arrays made by `join_files`, and return the files in reverse order."""
    joined, start = arrays.pop("models"), arrays.pop("model_start")
    if joined.ndim != 1 or start.ndim != 1 or len(start) == 0:
        raise ModelFileError("column 'model_start': expected the offset of each model")
    if start[0] != 0 or start[-1] != len(joined) or not (start[:-1] < start[1:]).all():
        raise ModelFileError(
            f"column 'model_start': expected increasing numbers from 0 to {len(joined)}"
        )
    places = start.tolist()
    return [joined[a:b].tobytes() for a, b in itertools.pairwise(places)][::-1]


def check_regular(where: str) -> None:
    """Reject pipes and devices, because reading from them could block forever."""
    mode = os.stat(where).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # open raises an error for a directory
        return
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
    raise ModelFileError(f"{where}: expected a file, got {kind}")


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the content of a file atomically.

    Parameters
    ----------
    path : str or path-like
        Symbolic links are followed. An existing file keeps its permissions; a new file has the
        default permissions of ``open``. A device or a pipe is written directly.
    content : bytes
        The new content of the file.

    Raises
    ------
    OSError
        If writing failed. The temporary file is removed, and the old content remains.
    """
    where = os.fsdecode(path)
    target = os.path.realpath(where)
    mode = _mode_of(target, where)
    is_file = mode is None or stat.S_ISREG(mode)
    if not (is_file and os.path.basename(where)):
        with open(where, "wb") as file:  # this raises an error for a directory
            file.write(content)
        return
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".pboost-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            # Report the path that the caller passed, not the temporary one.
            raise OSError(error.errno, error.strerror, where) from error
        raise
    flush_folder(folder)


def _mode_of(target: str, where: str) -> int | None:
    """Return the mode of a file, or None if it does not exist; check write permission."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) and not os.access(target, os.W_OK):
        # Renaming would succeed without write permission, which users do not expect.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)
    return mode


def check_path(path: object) -> Any:
    """Return `path` if it is a valid type for a file name."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"path: expected a file name, a str or path-like, got {shown(path)}")
    return path
