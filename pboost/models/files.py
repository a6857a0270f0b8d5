"""Saving and loading models: ``.npz`` files with a JSON header and no pickles.

The format is described on the page *File format* of the development documentation.
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
from pboost.models.stored import TEXT, ModelFileError, layout_of
from pboost.values import Array, shown
from pboost.values.json_texts import MAX_NESTING, TIMES, parse

__all__ = ["load", "save"]

FORMAT = "pboost-model"

VERSION = (1, 1)

#: How deep models can lie within models.
MAX_DEPTH = 8

#: The most members of a file.
MOST_MEMBERS = 1000

_LABEL_KINDS = "biufU"

_MAX_NUMBER_BYTES = 8


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file.

    The file is written beside `path` under a temporary name, flushed to disk and renamed, so that
    `path` holds at every moment either what it held before or the whole new model. Saving the same
    model twice gives the same bytes.

    Parameters
    ----------
    model : DecisionGraph, LinearModel, Tree, RandomForest, GradientBoostingModel, OneVsRest or
    others
        Any model of this package but a FunctionEnsemble. OneVsRest, WeightedVote and Bagging are
        stored with their members, and those with theirs, eight deep.
    path : str or path-like
        Used as it stands: no suffix is appended. A symbolic link is followed.

    Raises
    ------
    TypeError
        If `model` or a member of it is not a model of this package, or holds functions (those of
        `pboost.weak.oracle`, `from_estimator` and `hypothesis`), labels or settings that cannot be
        stored without pickling.
    OSError
        If the file cannot be written. What `path` held before is then unchanged, unless it was
        only the directory that could not be flushed after the renaming.

    See Also
    --------
    load : the inverse.

    Examples
    --------
    >>> import os, tempfile
    >>> import pboost as pb
    >>> model = pb.fit_adaboost([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"], n_estimators=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.npz")
    ...     pb.save(model, file)
    ...     pb.predict(pb.load(file), [[0.2], [2.5]]).tolist()
    ['no', 'yes']
    """
    replace_file(check_path(path), _pack(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that `save` wrote.

    Nothing in the file is executed. Digests tell damage, but anyone can make them anew; so all that
    functions of a model rely on is checked: names, types and shapes of what is there, ranges of
    numbers, topology, that sums are finite, and that parts go together. Not checked, because a file
    cannot tell, is whether the model is one that a builder has made: other votes, certificates,
    errors or settings that are in range are taken as they are. A file is refused before more
    memory is taken than ten times its size, and 16 MB.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    DecisionGraph or another model
        Equal to the model that was saved, to the last bit. Tuples in `settings` come back as
        lists.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged or changed, or is of a version that this version of
        the package does not read; or if there is a pipe or a device in place of a file.
    OSError
        If the file cannot be read (FileNotFoundError, IsADirectoryError, PermissionError ...).

    See Also
    --------
    save : the inverse, with an example.
    """
    where = os.fsdecode(check_path(path))
    check_regular(where)
    with open(where, "rb") as file:
        try:
            return _unpack(file, os.fstat(file.fileno()).st_size)
        except ModelFileError as error:
            raise ModelFileError(f"{where}: {error}") from error.__cause__
        except OSError as error:
            # A damaged offset makes zipfile seek before the start of the file; any other OSError
            # is the disk's and not the file's.
            if error.errno != errno.EINVAL:
                raise
            raise ModelFileError(f"{where}: damaged zip archive: {error}") from error


# Writing
def _pack(model: Model, depth: int = 0) -> bytes:
    """The bytes of a model file; the same for the same model."""
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
            # A ZipInfo made from a name alone carries a constant date, hence equal bytes.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    return buffer.getvalue()


def _pack_models(model: Any, depth: int) -> list[bytes]:
    """The files of the members of a model."""
    if depth > MAX_DEPTH:
        raise TypeError(f"model: models within models are stored at most {MAX_DEPTH} deep")
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
            f"model.classes: only integer, float, boolean and string labels can be stored, "
            f"got dtype {classes.dtype}"
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
        raise ModelFileError(f"not a zip archive, or truncated: {error}") from error
    with archive:
        members = list_members(archive, size)
        header = _read_header(archive, members)
        arrays = _read_columns(archive, members, header)
    if depth:
        file.close()  # the bytes within another file
    models = tuple(_unpack_models(arrays, depth + 1)) if "model_start" in arrays else ()
    TEXT.read("stop_reason", header, arrays)  # some models have none of their own
    try:
        return KINDS[header["kind"]].from_models(header, arrays, models)
    except ModelFileError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"not a valid model: {error}") from error


def _unpack_models(arrays: dict[str, Array], depth: int) -> Iterator[Model]:
    """The members of a model, whose bytes are let go of one by one."""
    if depth > MAX_DEPTH:
        raise ModelFileError(f"models within models are read at most {MAX_DEPTH} deep")
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
        raise ModelFileError("member 'header.npy' is missing: not a model of this package")
    text = from_npy(read_member(archive, members, "header"), "header")
    if text.dtype != np.uint8:
        raise ModelFileError(f"header: expected the bytes of a JSON text, got dtype {text.dtype}")
    try:
        header = parse(text.reshape(-1).data, TIMES)
    except ValueError as error:
        raise ModelFileError(f"header: {error}") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"header: expected format {FORMAT!r}: not a model of this package")
    version = header.get("version")
    if version != list(VERSION):
        raise ModelFileError(
            f"header: expected version {list(VERSION)} of the format, got {shown(version)}, "
            f"written by pboost {shown(header.get('pboost'))}; fit the model again, or load it "
            "with that release"
        )
    try:
        intact = header.get("digest") == digest(header)
    except ValueError:  # NaN is no JSON
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
    """Arrays that this version knows, each checked against what the header says of it."""
    columns = header.get("columns")
    if not isinstance(columns, dict) or not all(isinstance(c, dict) for c in columns.values()):
        raise ModelFileError("header: 'columns' is missing or not a table")
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
    """Whether a dtype is one of those expected."""
    return dtype in (expected if isinstance(expected, tuple) else (expected,))


# Headers: JSON
def plain(value: object, where: str, depth: int = 1) -> Any:
    """`value` in JSON's own types; TypeError naming the place of what has none."""
    if depth > MAX_NESTING:
        raise TypeError(f"model.{where}: is nested more than {MAX_NESTING} deep")
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
    raise TypeError(f"model.{where}: cannot be stored: {value!r}")


def to_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(header: Mapping[str, Any]) -> str:
    """SHA-256 of the header without its digest; through it, of all columns."""
    rest = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.sha256(to_json(rest)).hexdigest()


# Archives: zip files of arrays, read without trusting what they say of themselves
def to_npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    npy.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def list_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Members by name, none larger than the file itself."""
    members: dict[str, zipfile.ZipInfo] = {}
    if len(archive.infolist()) > MOST_MEMBERS:
        raise ModelFileError(f"expected at most {MOST_MEMBERS} members")
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


def from_npy(content: bytes, name: str) -> Array:
    """An array whose declared size is the size that is there; never objects."""
    try:
        return array_files.from_npy(content)
    except ValueError as error:
        raise ModelFileError(f"member '{name}.npy': {error}") from error


def join_files(contents: Sequence[bytes]) -> dict[str, Array]:
    """Files one after another as one array, and where each begins, closed by the end."""
    start = np.cumsum([0, *map(len, contents)], dtype=np.int64)
    return {"models": np.frombuffer(b"".join(contents), np.uint8), "model_start": start}


def split_files(arrays: dict[str, Array]) -> list[bytes]:
    """Take the files that `join_files` has joined; the last is that of the first model."""
    joined, start = arrays.pop("models"), arrays.pop("model_start")
    if joined.ndim != 1 or start.ndim != 1 or len(start) == 0:
        raise ModelFileError("column 'model_start': expected the first byte of each model")
    if start[0] != 0 or start[-1] != len(joined) or not (start[:-1] < start[1:]).all():
        raise ModelFileError(
            f"column 'model_start': expected increasing numbers from 0 to {len(joined)}"
        )
    places = start.tolist()
    return [joined[a:b].tobytes() for a, b in itertools.pairwise(places)][::-1]


def check_regular(where: str) -> None:
    """Refuse what is no file of a certain size: opening or reading it could last for ever."""
    mode = os.stat(where).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # a directory cannot be opened
        return
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
    raise ModelFileError(f"{where}: expected a file, got {kind}")


def replace_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Give `path` new content, all of it or none.

    Parameters
    ----------
    path : str or path-like
        Symbolic links are followed. An existing file keeps its permissions, a new one has those
        that ``open`` would give it. A device or a pipe is written to directly.
    content : bytes
        What the file is to hold.

    Raises
    ------
    OSError
        The temporary file is then removed and the old content still there.
    """
    where = os.fsdecode(path)
    target = os.path.realpath(where)
    mode = _mode_of(target, where)
    is_file = mode is None or stat.S_ISREG(mode)
    if not (is_file and os.path.basename(where)):
        with open(where, "wb") as file:  # a device; raises for a directory and for "name/"
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
            # Name the file that the caller knows.
            raise OSError(error.errno, error.strerror, where) from error
        raise
    flush_folder(folder)


def _mode_of(target: str, where: str) -> int | None:
    """Mode of an existing file; PermissionError where ``open`` could not write to it."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode) and not os.access(target, os.W_OK):
        # A renaming needs no permission on the file that it replaces; a user expects it to.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), where)
    return mode


def check_path(path: object) -> Any:
    """Return `path` if a file can have it as its name."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"path: expected a file's name, a str or path-like, got {shown(path)}")
    return path
