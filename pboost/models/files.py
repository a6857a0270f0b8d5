"""Saving and loading models: ``.npz`` files with a JSON header and no pickles.

The format is described on the page *File format* of the development documentation.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pboost._version import __version__
from pboost.data.derived import Inputs
from pboost.data.functions import Oracles
from pboost.data.projections import Projections
from pboost.data.separators import Separators
from pboost.models._archive import (
    ModelFileError,
    from_npy,
    join_files,
    list_members,
    read_member,
    split_files,
    to_npy,
)
from pboost.models._header import MAX_NESTING, digest, is_nested_deeper, plain, to_json
from pboost.models._replace import check_path, check_regular, replace_file
from pboost.models.base import (
    OF_RECORD,
    TWO_CLASS_MEMBERS,
    Model,
    Predictor,
    TwoClassPredictor,
    two_class_fields,
    two_class_members,
)
from pboost.models.committee import OneVsRest, WeightedVote
from pboost.models.ensembles import Bagging, Composite, Ensemble
from pboost.models.forest import Forest
from pboost.models.graph import COLUMNS, DecisionGraph
from pboost.models.linear import LinearModel
from pboost.models.probit import ProbitModel
from pboost.models.probit_trees import ProbitTree
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees import Tree
from pboost.values import shown

__all__ = ["load", "save"]

FORMAT = "pboost-model"
VERSION = (1, 0)
#: The kind of decision graphs.
GRAPH = "decision-graph"
_SINGLE = (LinearModel, Tree, Forest, StagewiseModel)
_PROBIT = (ProbitModel, ProbitTree, SubaggedProbitTrees)
_COMPOSITE = (OneVsRest, WeightedVote, Bagging)
#: The other kinds of model, which say themselves what is in their files.
KINDS: dict[str, type[Predictor]] = {
    kind.file_kind: kind for kind in _SINGLE + _PROBIT + _COMPOSITE
}
#: How deep models can lie within models.
MAX_DEPTH = 8

#: Array members of the file of every graph, and the dtype each must have.
_MEMBERS: dict[str, np.dtype[Any] | None] = {
    **{name: np.dtype(dtype).newbyteorder("<") for name, dtype in COLUMNS.items()},
    **TWO_CLASS_MEMBERS,
}
#: Those of some graphs.
_OPTIONAL: dict[str, np.dtype[Any] | None] = {
    "answer": np.dtype("<f8"),
    "sigma": np.dtype("<f8"),
    "stages": np.dtype("<i4"),
    **{member: dtype for member, (_, dtype) in Projections.stored.items()},
    **{member: dtype for member, (_, dtype) in Separators.stored.items()},
    **OF_RECORD,
}

_LABEL_KINDS = "biufU"
_MAX_NUMBER_BYTES = 8


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to a file.

    The file is written beside `path` under a temporary name, flushed to disk and renamed, so that
    `path` holds at every moment either what it held before or the whole new model. Saving the same
    model twice gives the same bytes.

    Parameters
    ----------
    model : DecisionGraph, LinearModel, Tree, Forest, StagewiseModel, OneVsRest or others
        Any model of this package but a HypothesisSum. OneVsRest, WeightedVote and Bagging are
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
    >>> model = pb.fit_adaboost([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"], rounds=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "model.npz")
    ...     pb.save(model, file)
    ...     pb.predict(pb.load(file), [[0.2], [2.5]]).tolist()
    ['no', 'yes']
    """
    replace_file(check_path(path), _pack(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that `save` wrote.

    Nothing in the file is executed, and everything that is read is checked: digests, shapes,
    ranges and topology.

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
    if not isinstance(model, DecisionGraph | Predictor):
        raise TypeError(f"model: expected a model such as fit_adaboost returns, got {shown(model)}")
    if isinstance(model, DecisionGraph) and isinstance(model.inputs, Oracles):
        raise TypeError(
            "model: its weak classifiers are functions, which cannot be stored without pickling; "
            "pickle the model, or fit it again"
        )
    fields, arrays = _graph_members(model) if isinstance(model, DecisionGraph) else model.members()
    if isinstance(model, Composite):
        arrays = {**arrays, **join_files(_pack_models(model, depth + 1))}
    members: dict[str, bytes] = {}
    columns: dict[str, dict[str, Any]] = {}
    for name, array in _little_endian(arrays).items():
        members[name] = to_npy(array)
        columns[name] = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "sha256": hashlib.sha256(members[name]).hexdigest(),
            **({"optional": True} if name in OF_RECORD else {}),
        }
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": list(VERSION),
        "kind": GRAPH if isinstance(model, DecisionGraph) else model.file_kind,
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


def _pack_models(model: Composite, depth: int) -> list[bytes]:
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


def _graph_members(model: DecisionGraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The fields of a graph's header, and its arrays under their names in the file."""
    header, shared = two_class_members(model)
    arrays = {name: getattr(model, name) for name in COLUMNS}
    optional = {"answer": model.answer, "sigma": model.sigma, "stages": model.record.stages}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    if model.inputs is not None:
        arrays |= model.inputs.members()
    return header, {**arrays, **shared}


def _little_endian(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    labels = arrays.get("labels")
    if labels is not None and not _storable_labels(labels.dtype):
        raise TypeError(
            f"model.labels: only integer, float, boolean and string labels can be stored, "
            f"got dtype {labels.dtype}"
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
    kind = KINDS.get(header["kind"])
    if kind is None or not issubclass(kind, Composite):
        return _build(header, arrays)
    return _build(header, arrays, tuple(_unpack_models(arrays, depth + 1)))


def _unpack_models(arrays: Mapping[str, NDArray[Any]], depth: int) -> Iterator[Model]:
    """The members of a model."""
    if depth > MAX_DEPTH:
        raise ModelFileError(f"models within models are read at most {MAX_DEPTH} deep")
    for k, content in enumerate(split_files(arrays)):
        try:
            yield _unpack(io.BytesIO(content), len(content), depth)
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
        header = json.loads(text.tobytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"header: not JSON: {error}") from error
    if is_nested_deeper(header):
        raise ModelFileError(f"header: is nested more than {MAX_NESTING} deep")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"header: expected format {FORMAT!r}: not a model of this package")
    version = header.get("version")
    if not (isinstance(version, list) and len(version) == 2 and all(map(_is_int, version))):
        raise ModelFileError(f"header: expected version [major, minor], got {version!r}")
    if version[0] != VERSION[0]:
        raise ModelFileError(
            f"header: format version {version[0]}.{version[1]}, written by pboost "
            f"{header.get('pboost')}; pboost {__version__} reads versions {VERSION[0]}.x"
        )
    try:
        intact = header.get("digest") == digest(header)
    except (ValueError, RecursionError):  # NaN is no JSON
        intact = False
    if not intact:
        raise ModelFileError("header: was changed after it was written (digest differs)")
    if header.get("kind") not in (GRAPH, *KINDS):
        known = " or ".join(map(repr, (GRAPH, *KINDS)))
        raise ModelFileError(f"header: expected kind {known}, got {header.get('kind')!r}")
    return header


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_columns(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], header: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """Arrays that this version knows, each checked against what the header says of it."""
    columns = header.get("columns")
    if not isinstance(columns, dict) or not all(isinstance(c, dict) for c in columns.values()):
        raise ModelFileError("header: 'columns' is missing or not a table")
    kind = KINDS.get(header["kind"])
    every: Mapping[str, np.dtype[Any] | None] = kind.file_members if kind else _MEMBERS
    some: Mapping[str, np.dtype[Any] | None] = kind.file_optional if kind else _OPTIONAL
    known = {**every, **{name: some[name] for name in some.keys() & columns.keys()}}
    for name in columns.keys() - known.keys():
        newer = tuple(header["version"]) > VERSION
        if not (newer and columns[name].get("optional") is True):
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
        expected = _storable_labels(array.dtype) if dtype is None else array.dtype == dtype
        if not expected:
            raise ModelFileError(f"column {name!r}: unexpected dtype {array.dtype}")
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
    return arrays


def _inputs(arrays: Mapping[str, NDArray[Any]]) -> Inputs | None:
    """What nodes compare, where it is not columns."""
    found = [kind.from_members(arrays) for kind in (Projections, Separators)]
    if None not in found:
        raise ValueError("expected projections or separators, got both")
    return found[0] or found[1]


def _build(
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    models: tuple[Model, ...] = (),
) -> Model:
    """The model; every field of the header must have the type it was written with."""
    kind, names = KINDS.get(header["kind"]), header.get("feature_names")
    has_bias = kind is None or issubclass(kind, TwoClassPredictor)
    typed = {
        "settings": isinstance(header.get("settings"), dict),
        "n_features": (kind is not None and issubclass(kind, Ensemble))
        or _is_int(header.get("n_features")),
        "feature_names": names is None
        or (isinstance(names, list) and all(isinstance(name, str) for name in names)),
        "bias": not has_bias or isinstance(header.get("bias"), float),
        "stop_reason": isinstance(header.get("stop_reason"), str),
    }
    for field, right in typed.items():
        if not right:
            raise ModelFileError(f"header: bad value of {field!r}: {header.get(field)!r}")
    try:
        if kind is not None and issubclass(kind, Composite):
            return kind.from_models(header, arrays, models)
        if kind is not None:
            return kind.from_members(header, arrays)
        own: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
        own |= {name: arrays.get(name) for name in ("answer", "sigma")}
        own["inputs"] = _inputs(arrays)
        return DecisionGraph(**own, **two_class_fields(header, arrays))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"not a valid model: {error}") from error
