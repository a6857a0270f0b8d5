"""Frozen records whose fields define how they are checked, pickled and stored in files.

Records that several models share are defined here as well: training records and out-of-bag
predictions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias, TypeVar, get_args

import numpy as np

from pboost.data.read.table import Table
from pboost.values import Array, FloatArray, IntArray, freeze, shown

#: Largest accepted sum of absolute values, with a margin for rounding errors.
MOST_SUM = float(np.finfo(np.float64).max) * (1 - 2.0**-20)
#: Largest accepted probability. It exceeds 1 because of rounding errors.
MOST_SHARE = 1 + 1e-6
#: Largest number of features. It limits the memory that a small file can request.
MOST_FEATURES = 2**25 - 1
R = TypeVar("R", bound="Keeps")
T = TypeVar("T")
#: The vote of a base learner for a row: its predicted class, or its class probabilities.
Voting: TypeAlias = Literal["hard", "soft"]
VOTES: tuple[Voting, ...] = get_args(Voting)


def check_offsets(name: str, start: Array, end: int) -> None:
    """Check that offsets increase from 0 to `end`."""
    # Values are compared, because differences of int32 values could overflow.
    if not (
        start.ndim == 1
        and len(start) > 1
        and start[0] == 0
        and start[-1] == end
        and (start[:-1] < start[1:]).all()
    ):
        raise ValueError(f"{name}: expected numbers that increase from 0 to {end}")


def check_shares(name: str, shares: Any, are_whole: bool = False) -> None:
    """Check that numbers are in [0, 1] or NaN and, if `are_whole`, that rows sum to 1."""
    if (np.less(shares, 0) | np.greater(shares, MOST_SHARE)).any():
        raise ValueError(f"{name}: expected numbers from 0 to 1, or NaN")
    if are_whole and (np.abs(shares.sum(axis=1) - 1) > MOST_SHARE - 1).any():
        raise ValueError(f"{name}: expected numbers that sum to 1 in each row, or NaN")


def check_sum(name: str, terms: FloatArray, start: float | FloatArray = 0.0) -> None:
    """Check that the absolute values of each column have a finite sum."""
    with np.errstate(over="ignore"):
        total = np.abs(terms).sum(axis=0) + abs(start)
    if not (total <= MOST_SUM).all():
        raise ValueError(f"{name}: expected numbers whose absolute values have a finite sum")


#: The options of the fit, by name.
Settings: TypeAlias = Mapping[str, Any]
#: The header fields of a file, and its arrays by name.
Header: TypeAlias = Mapping[str, Any]
Arrays: TypeAlias = Mapping[str, Array]
HeaderAndArrays: TypeAlias = tuple[dict[str, Any], dict[str, Array]]
#: The dtype of each array in files (None for class labels), and whether it is optional.
Dtypes: TypeAlias = dict[str, tuple[np.dtype[Any] | tuple[np.dtype[Any], ...] | None, bool]]


class ModelFileError(ValueError):
    """A file is damaged, or is not a model that this version of pboost can read."""


class Kind:
    """Base class for the kinds of fields: how a value is converted, checked and stored."""

    #: Whether the value may be None; None is not checked.
    optional = False

    def kept(self, value: Any) -> Any:
        """Return the value to keep in the record; never called with None."""
        return value

    def check(self, record: Any, name: str) -> None:
        """Raise ValueError if the value is invalid."""

    def check_array(self, record: Any, name: str) -> None:
        """Raise ValueError if an array has an invalid shape or invalid values."""

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtypes of the arrays in files."""
        return {}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the header fields and arrays to store."""
        return {}, {}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the value from the header and arrays of a file."""
        return header[name]


@dataclass(frozen=True, slots=True)
class Column(Kind):
    """An array with a given dtype, and a given shape or number of dimensions."""

    dtype: Any
    #: Length of each dimension: an integer, an attribute name, or a function that returns a tuple.
    shape: tuple[Any, ...] = ()
    ndim: int | None = None
    finite: bool = True
    positive: bool = False
    #: Lower bound, and the name of the attribute that is the exclusive upper bound.
    within: tuple[int, str] | None = None
    optional: bool = False

    def kept(self, value: Any) -> Array:
        """Return a read-only array."""
        return freeze(value, self.dtype)

    def check(self, record: Any, name: str) -> None:
        """Check the number of dimensions."""
        if self.ndim is not None and getattr(record, name).ndim != self.ndim:
            shape = getattr(record, name).shape
            raise ValueError(
                f"{record.called}{name}: expected {self.ndim} dimensions, got shape {shape}"
            )

    def check_array(self, record: Any, name: str) -> None:
        """Check the shape and the range of the values."""
        values, called = getattr(record, name), record.called + name
        if self.shape:
            expected: tuple[int, ...] = ()
            for part in self.shape:
                if isinstance(part, str):
                    part = getattr(record, part)
                expected += part(record) if callable(part) else (part,)
            if values.shape != expected:
                raise ValueError(f"{called}: expected shape {expected}, got {values.shape}")
        if self.finite and self.dtype is np.float64 and not np.isfinite(values).all():
            raise ValueError(f"{called}: expected finite numbers")
        if self.positive and not (values >= 0).all():
            raise ValueError(f"{called}: expected numbers >= 0")
        if self.within is not None and values.size:
            low, high = self.within[0], getattr(record, self.within[1])
            if not (values.min() >= low and values.max() < high):
                raise ValueError(f"{called}: expected values in [{low}, {high})")

    def in_file(self) -> np.dtype[Any]:
        """Return the dtype in files."""
        return np.dtype(self.dtype).newbyteorder("<")

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtype in files, None for class labels."""
        return {name: (None if self.dtype is None else self.in_file(), self.optional)}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the array, unless the value is None."""
        return {}, {} if value is None else {name: value}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the array, or None if the file does not contain it."""
        return arrays.get(name)


@dataclass(frozen=True, slots=True)
class InHeader(Column):
    """An array that is stored in the header of a file, as hexadecimal digits."""

    dtype: Any = np.float64
    optional: bool = True

    dtypes = Kind.dtypes

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the array as a header field, unless the value is None."""
        return {} if value is None else {name: value.astype(self.in_file()).tobytes().hex()}, {}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the array, or None if the file does not contain it."""
        digits = header.get(name)
        return None if digits is None else np.frombuffer(bytes.fromhex(digits), self.in_file())


@dataclass(frozen=True, slots=True)
class Labels(Column):
    """Sorted class labels; if `count` is None, there are at least two."""

    dtype: Any = None
    count: int | Callable[[Any], int] | None = None

    def check(self, record: Any, name: str) -> None:
        """Check number and order."""
        classes = getattr(record, name)
        count = self.count(record) if callable(self.count) else self.count
        if count is not None and classes.shape != (count,):
            raise ValueError(f"classes: expected shape ({count},), got {classes.shape}")
        if classes.dtype.kind == "b" and classes.view(np.uint8).max(initial=0) > 1:
            raise ValueError("classes: expected booleans, got bytes other than 0 and 1")
        if classes.dtype.kind == "U":
            points = classes.astype(classes.dtype.newbyteorder("=")).view(np.uint32)
            if points.max(initial=0) > sys.maxunicode:
                raise ValueError("classes: expected strings, got invalid characters")
        if classes.ndim != 1 or len(classes) < 2 or not (classes[:-1] < classes[1:]).all():
            expected = "sorted values, two or more" if count is None else "two sorted values"
            actual = classes.tolist() if classes.size <= 10 else classes
            raise ValueError(f"classes: expected {expected}, got {shown(actual)}")

    check_array = Kind.check_array


@dataclass(frozen=True, slots=True)
class Field(Kind):
    """A field that is stored in the header; `is_right` checks the value in a file."""

    is_right: Callable[[Any], bool]
    checked: Callable[[Any, str], None] | None = None
    keep: Callable[[Any], Any] | None = None
    to_file: Callable[[Any], Any] | None = None
    from_file: Callable[[Any], Any] | None = None
    #: Error message for an invalid value in a file; empty for the default message.
    refusal: str = ""
    own_name: str = ""

    def kept(self, value: Any) -> Any:
        """Return the value to keep in the record."""
        return value if self.keep is None else self.keep(value)

    def check(self, record: Any, name: str) -> None:
        """Check the value in a record."""
        if self.checked is not None:
            self.checked(record, name)

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the header field."""
        return {self.own_name or name: value if self.to_file is None else self.to_file(value)}, {}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the value of the header field; raise an error if it is invalid."""
        value = header.get(self.own_name or name)
        if not self.is_right(value):
            if self.refusal:
                raise ValueError(self.refusal.format(value))
            raise ModelFileError(f"header: bad value of {name!r}: {shown(value)}")
        return value if self.from_file is None else self.from_file(value)


@dataclass(frozen=True, slots=True)
class NestedRecord(Kind):
    """A record inside another record. It is optional if `description` is not empty.

    If `more` is a tuple, files must contain the arrays in `more`. They may contain the arrays in
    `some` and of tables, but no other optional arrays. `fields` are fixed header fields, which
    are not stored.
    """

    of: type[Stored]
    description: str = ""
    more: tuple[str, ...] | None = None
    some: tuple[str, ...] = ()
    fields: Header = field(default_factory=dict)

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtypes of the arrays of the nested record."""
        known, more = layout_of(self.of).known.items(), self.more
        if more is None:
            return {key: (dtype, some or bool(self.description)) for key, (dtype, some) in known}
        perhaps = (*self.some, *Table.stored)
        return {
            key: (dtype, key in perhaps)
            for key, (dtype, some) in known
            if key in (*more, *perhaps) or not some
        }

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the header fields and arrays of the nested record, unless it is None."""
        return ({}, {}) if value is None else value.parts()

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the nested record, or None if its arrays are absent."""
        expected = {key for key, (_, some) in layout_of(self.of).known.items() if not some}
        if self.description and not expected & arrays.keys():
            return None
        if not expected <= arrays.keys():
            raise ValueError(
                f"{name}: expected all arrays of the {self.description}, but some are missing"
            )
        of_part = self.dtypes(name)
        part_arrays = {member: array for member, array in arrays.items() if member in of_part}
        # The digest of the training rows is stored with the outer record.
        return self.of.from_parts({**header, "seen": None, **self.fields}, part_arrays)


class Models(Kind):
    """Nested models, whose files are stored inside the file of the outer model."""

    def kept(self, value: Any) -> tuple[Any, ...]:
        """Return the models as a tuple."""
        return tuple(value)

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtypes of the arrays that contain nested files."""
        return {"models": (np.dtype("|u1"), False), "model_start": (np.dtype("<i8"), False)}


@dataclass(frozen=True, slots=True)
class DerivedField(Kind):
    """A field computed from other fields, after the checks if `late`, else before them."""

    make: Callable[[Any], Any]
    late: bool = True

    def kept(self, value: Any) -> Any:
        """Return the value; arrays become read-only."""
        return freeze(value) if isinstance(value, np.ndarray) else value


class Stored:
    """Base class of frozen dataclasses that are checked, pickled and stored in files.

    Each field has a `Kind`. Subclasses override `check_whole` to check that their fields are
    compatible.
    """

    __slots__ = ()
    #: Prefixes of field names in error messages, and of array names in files.
    called: ClassVar[str] = ""
    file_prefix: ClassVar[str] = ""

    def __post_init__(self, is_right: bool = False) -> None:
        layout, keep = layout_of(type(self)), object.__setattr__
        for name, kept in layout.kept:
            value = getattr(self, name)
            if value is not None:
                keep(self, name, kept(value))
        for name, kind in layout.early.items():
            keep(self, name, kind.kept(kind.make(self)))
        if not is_right:
            self.validate()
        for name, kind in layout.late.items():
            keep(self, name, kind.kept(kind.make(self)))

    @classmethod
    def grown(cls, **values: Any) -> Self:
        """Build a record from the results of training, without checks."""
        record = object.__new__(cls)
        for name in layout_of(cls).field_kinds:
            object.__setattr__(record, name, values.pop(name, None))
        assert not values, f"no fields: {sorted(values)}"
        record.__post_init__(is_right=True)
        return record

    def validate(self) -> None:
        """Check shapes, ranges and topology.

        Raises
        ------
        ValueError
            If an array is invalid; the message names the array. A valid record can be evaluated
            without reading out of bounds and without an endless loop.
        """
        for name, optional, check in layout_of(type(self)).checks:
            if not (optional and getattr(self, name) is None):
                check(self, name)
        self.check_whole()

    def check_whole(self) -> None:
        """Raise ValueError if the fields are not compatible; the message names a field."""

    def __reduce__(self) -> tuple[Any, ...]:
        cls: Any = type(self)
        values = {name: getattr(self, name) for name in layout_of(cls).field_kinds}
        named = {f.name: values.pop(f.name) for f in fields(cls) if f.init and f.kw_only}
        make = partial(cls, **named) if any(v is not None for v in named.values()) else None
        return make or cls, tuple(values.values())

    def parts(self) -> HeaderAndArrays:
        """Return the header fields and the arrays of the record in a file."""
        header: dict[str, Any] = {}
        arrays: dict[str, Array] = {}
        for name, kind in layout_of(type(self)).field_kinds.items():
            fields_, columns = kind.store(name, getattr(self, name))
            header |= fields_
            arrays |= {self.file_prefix + key: array for key, array in columns.items()}
        return header, arrays

    @classmethod
    def from_parts(cls, header: Header, arrays: Arrays) -> Any:
        """Build the record from a file; raise ValueError or TypeError if it is invalid."""
        size = len(cls.file_prefix)
        record_arrays = {
            name[size:]: array for name, array in arrays.items() if name.startswith(cls.file_prefix)
        }
        return cls(
            **{
                name: kind.read(name, header, record_arrays)
                for name, kind in layout_of(cls).field_kinds.items()
            }
        )


class Keeps(Protocol):
    """A record that caches values computed on first use."""

    @property
    def memo(self) -> dict[str, Any]:
        """Cached values, by the name of the function that computes them."""


def once(make: Callable[[R], T]) -> Callable[[R], T]:
    """Cache the result of a method. Concurrent threads may compute it more than once."""
    name = make.__name__

    @wraps(make)
    def made_once(record: R) -> T:
        if name not in record.memo:
            record.memo[name] = make(record)
        return record.memo[name]

    return made_once


class RecordLayout(NamedTuple):
    """The fields of a record with their kinds, and the arrays in its files."""

    field_kinds: dict[str, Kind]
    #: Name of each field, and the function that converts its value.
    kept: tuple[tuple[str, Callable[[Any], Any]], ...]
    #: Name of each field, whether it is optional, and its check.
    checks: tuple[tuple[str, bool, Callable[[Any, str], None]], ...]
    early: dict[str, DerivedField]
    late: dict[str, DerivedField]
    known: Dtypes


_LAYOUTS: dict[type, RecordLayout] = {}


def layout_of(record: type[Any]) -> RecordLayout:
    """Return the layout of a record class."""
    if record not in _LAYOUTS:
        kinds = {f.name: f.metadata.get("kind", Kind()) for f in fields(record)}
        field_kinds = {f.name: kinds[f.name] for f in fields(record) if f.init}
        made = {name: kind for name, kind in kinds.items() if isinstance(kind, DerivedField)}
        dtypes = [kind.dtypes(name).items() for name, kind in field_kinds.items()]
        _LAYOUTS[record] = RecordLayout(
            field_kinds,
            tuple(
                (name, k.kept) for name, k in field_kinds.items() if type(k).kept is not Kind.kept
            ),
            tuple(
                (name, kind.optional, getattr(kind, check))
                for check in ("check", "check_array")
                for name, kind in field_kinds.items()
                if getattr(type(kind), check) is not getattr(Kind, check)
            ),
            {name: kind for name, kind in made.items() if not kind.late},
            {name: kind for name, kind in made.items() if kind.late},
            {record.file_prefix + name: entry for part in dtypes for name, entry in part},
        )
    return _LAYOUTS[record]


def kept_as(kind: Kind, **options: Any) -> Any:
    """Return a dataclass field of the given kind."""
    return field(metadata={"kind": kind}, **options)


def column(dtype: Any, *shape: Any, optional: bool = False, **options: Any) -> Any:
    """Return an array field, see `Column`; if optional, its default is None."""
    kind = Column(dtype, shape, optional=optional, **options)
    return kept_as(kind, default=None) if optional else kept_as(kind)


def in_header(*shape: Any) -> Any:
    """Return a field for an optional array in the header, see `InHeader`."""
    return kept_as(InHeader(shape=shape), default=None)


def classes(count: Any = None, optional: bool = False) -> Any:
    """Return a field for class labels, see `Labels`."""
    return kept_as(Labels(optional=optional, count=count))


def part(of: type[Stored], description: str = "", **options: Any) -> Any:
    """Return a field for a nested record, see `NestedRecord`; if optional, its default is None."""
    kind = NestedRecord(of, description, **options)
    return kept_as(kind, default=None) if description else kept_as(kind)


def made(make: Callable[[Any], Any], late: bool = True) -> Any:
    """Return a field that is computed from others, see `DerivedField`."""
    return kept_as(DerivedField(make, late), init=False, repr=False)


def numbers_kept(value: Any) -> Any:
    """Return a number unchanged, and an array as a read-only float64 array."""
    return freeze(value, np.float64) if not isinstance(value, float) and np.ndim(value) else value


def of_part(part: str, name: str) -> Any:
    """Return a field that copies an attribute of a nested record."""
    return made(attrgetter(f"{part}.{name}"), late=False)


def memo() -> Any:
    """Return the field for cached values, see `once`."""
    return made(lambda record: {})


def header(is_right: Callable[[Any], bool], **options: Any) -> Any:
    """Return a field in the header, see `Field`."""
    return kept_as(Field(is_right, **options))


def check_text(record: Any, name: str, called: str = "") -> None:
    """Raise ValueError unless a field is a string."""
    if not isinstance(getattr(record, name), str):
        raise ValueError(f"{called}{name}: expected a string, got {shown(getattr(record, name))}")


def check_number(record: Any, name: str) -> None:
    """Raise ValueError unless a field is a finite number."""
    if not is_number(getattr(record, name)):
        raise ValueError(f"{name}: expected a finite number, got {shown(getattr(record, name))}")


def number(refusal: str = "") -> Any:
    """Return a field for a finite number; `refusal` is the error message for files."""
    return header(_is(float), checked=check_number, to_file=float, refusal=refusal)


class Temperature(Kind):
    """A finite divisor >= 1 of decision values. It is stored in the header unless it is 1."""

    def check(self, record: Any, name: str) -> None:
        """Check that the value is a number >= 1."""
        value = getattr(record, name)
        if not is_number(value) or value < 1:
            raise ValueError(f"{name}: expected a finite number >= 1, got {shown(value)}")

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the header field."""
        return {} if value == 1 else {name: float(value)}, {}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the header field; 1 if there is none."""
        return header.get(name, 1.0)


def temperature() -> Any:
    """Return a field for the temperature of probabilities, see `Temperature`."""
    return kept_as(Temperature(), default=1.0)


def settings(*names: str) -> Any:
    """Return the field for settings; if `names` are passed, only these settings are checked."""
    return header(
        _is(dict), checked=lambda record, name: check_settings(record.settings, *names), keep=dict
    )


def flag() -> Any:
    """Return a boolean field."""
    return kept_as(Field(lambda value: isinstance(value, bool)), default=False)


def text() -> Any:
    """Return a field for a string."""
    return kept_as(TEXT)


def n_features() -> Any:
    """Return the field for the number of features."""
    return header(lambda value: type(value) is int)


def names() -> Any:
    """Return the field for feature names, which are checked together with their number."""
    return header(
        _are_names,
        checked=check_columns,
        from_file=lambda value: None if value is None else tuple(value),
    )


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _are_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(v, str) for v in value))


TEXT = Field(_is(str), checked=check_text)


def is_integer(value: Any) -> bool:
    """Return whether the value is an integer, but not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether the value is a finite real number, but not a boolean."""
    is_real = isinstance(value, float | np.floating) or is_integer(value)
    return is_real and bool(abs(value) <= sys.float_info.max)


def check_columns(record: Any, name: str) -> None:
    """Check the number of features and their names, if there are any."""
    n_features, names = record.n_features, getattr(record, name)
    if not (is_integer(n_features) and 1 <= n_features <= MOST_FEATURES):
        raise ValueError(
            f"n_features: expected an integer from 1 to {MOST_FEATURES}, got {shown(n_features)}"
        )
    if names is None:
        return
    if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names: expected a tuple of strings or None, got {shown(names)}")
    if len(names) != n_features:
        raise ValueError(f"feature_names: expected {n_features} names, got {len(names)}")


#: The settings that models read, each with the expected type as text and a check.
_SETTINGS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("builder", "votes", "growth", "criterion"), ("a string", _is(str))),
    **dict.fromkeys(("observation", "weak_learner", "rng"), ("a table", _is(Mapping))),
    **dict.fromkeys(("smoothing", "learning_rate"), ("a number", is_number)),
    "max_depth": (
        "an integer >= 0, or null",
        lambda value: value is None or (is_integer(value) and value >= 0),
    ),
    "continued": (
        "a list of tables",
        lambda value: (
            isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)
        ),
    ),
}


def check_settings(settings: Settings, *names: str) -> None:
    """Check the types of the settings that models read; by default, all of them."""
    for name in names or _SETTINGS:
        expected, is_right = _SETTINGS[name]
        if name in settings and not is_right(settings[name]):
            raise ValueError(
                f"settings[{name!r}]: expected {expected}, got {shown(settings[name])}"
            )


def check_error(record: Any, name: str) -> None:
    """Check that an error is a number >= 0, or NaN if unknown."""
    error = getattr(record, name)
    is_unknown = isinstance(error, float) and math.isnan(error)
    if not (is_unknown or (is_number(error) and error >= 0)):
        raise ValueError(
            f"{record.called}{name}: expected a number >= 0, or NaN, got {shown(error)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRecord(Stored):
    """Certificate, cost and errors recorded during training.

    Attributes
    ----------
    certificate : ndarray of float64, shape (n_nodes + 1,)
        The certificate before the first node and after each node.
    cost : ndarray of float64, shape (n_nodes + 1,)
        Weighted mean number of weak classifiers evaluated per training row, before the first
        node and after each node.
    stop_reason : str
        Why growth ended, as a sentence.
    stages : ndarray of int32, shape (n_stages,), or None
        Numbers of nodes to which the model can be truncated, in increasing order; the last is
        `n_nodes`. None if every number is possible. Collecting votes by sign limits the numbers,
        because it changes the votes of earlier nodes.
    validation : ndarray of float64, shape (n_grown + 1,), or None
        Weighted error rate on the validation set with the first 0, 1, 2, ... nodes, including
        nodes that were grown but not kept. None without a validation set.
    """

    certificate: FloatArray = column(np.float64, ndim=1, finite=False)
    cost: FloatArray = column(np.float64, finite=False)
    stop_reason: str = header(_is(str))
    stages: IntArray | None = column(np.int32, optional=True)
    validation: FloatArray | None = column(np.float64, finite=False, optional=True)

    def check(self, n: int) -> None:
        """Raise ValueError unless the record fits a model with `n` nodes."""
        check_text(self, "stop_reason", "record.")
        for name in ("certificate", "cost"):
            values = getattr(self, name)
            if values.shape != (n + 1,):
                raise ValueError(f"record.{name}: expected shape ({n + 1},), got {values.shape}")
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise ValueError(f"record.{name}: expected finite numbers >= 0")
        errors = self.validation
        if errors is not None and not (
            errors.ndim == 1 and len(errors) > n and ((errors >= 0) & (errors <= 1)).all()
        ):
            raise ValueError(f"record.validation: expected at least {n + 1} numbers from 0 to 1")
        stages = self.stages
        if stages is None:
            return
        if not (stages.ndim == 1 and len(stages) and stages[0] >= 1 and stages[-1] == n):
            raise ValueError(f"record.stages: expected numbers of nodes that end with {n}")
        if not (stages[:-1] < stages[1:]).all():
            raise ValueError("record.stages: expected increasing numbers")


@dataclass(frozen=True, slots=True, eq=False)
class OutOfBag(Stored):
    """Predictions of each training row by the base learners that were not fitted to it.

    Attributes
    ----------
    n_estimators : ndarray of int32, shape (n,)
        Number of base learners whose sample did not contain the row.
    prediction : ndarray of float64, shape (n, J) or (n,)
        Mean class probabilities or mean predicted value of these base learners; NaN if there
        are none.
    error : float
        Weighted error rate or mean squared error of these predictions. Rows without a prediction
        are ignored. NaN if no row has a prediction.
    """

    called, file_prefix = "oob.", "oob_"

    n_estimators: IntArray = column(np.int32, positive=True)
    prediction: FloatArray = column(np.float64, finite=False)
    error: float = header(
        lambda value: True,
        own_name="oob_error",
        checked=check_error,
        to_file=lambda value: None if np.isnan(value) else float(value),
        from_file=lambda value: np.nan if value is None else value,
        keep=lambda value: float(value) if is_number(value) else value,
    )

    def check_whole(self) -> None:
        """Check the shapes and the values of the predictions."""
        if self.n_estimators.ndim != 1 or self.prediction.shape[:1] != self.n_estimators.shape:
            raise ValueError("oob: expected one prediction per row")
        if np.isinf(self.prediction).any():
            raise ValueError("oob.prediction: expected finite numbers, or NaN")

    def check(self, classes: Array | None) -> None:
        """Check the predictions for these classes, or for regression if `classes` is None."""
        shape = () if classes is None else (len(classes),)
        if self.prediction.shape[1:] != shape:
            expected = "(n,)" if classes is None else f"(n, {len(classes)})"
            raise ValueError(
                f"oob.prediction: expected shape {expected}, got {self.prediction.shape}"
            )
        if classes is not None:
            check_shares("oob.error", self.error)
            check_shares("oob.prediction", self.prediction, are_whole=True)


def check_vote(record: Any, name: str) -> None:
    """Raise ValueError unless a field is "hard" or "soft"."""
    if getattr(record, name) not in VOTES:
        raise ValueError(f"{name}: expected one of {VOTES}, got {getattr(record, name)!r}")


class Vote(Kind):
    """The field `voting`, which is stored unless it is "hard"."""

    def check(self, record: Any, name: str) -> None:
        """Check that the value is valid."""
        check_vote(record, name)

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtype of the array that contains the text."""
        return {name: (None, True)}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return an array that contains the text, unless the value is the default."""
        return {}, {} if value == VOTES[0] else {name: np.array([value])}

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the value; "hard" if the file does not contain it."""
        return " ".join(arrays[name].astype(str).ravel()) if name in arrays else VOTES[0]


class OfTable(Kind):
    """The field `table`: types and categories of the features, or None."""

    optional = True

    def check(self, record: Any, name: str) -> None:
        """Check that the table fits the number of features."""
        getattr(record, name).validate(record.n_features)

    def dtypes(self, name: str) -> Dtypes:
        """Return the dtypes of the arrays of tables."""
        return {member: (dtype, True) for member, dtype in Table.stored.items()}

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the arrays of the table, unless the value is None."""
        return {}, {} if value is None else value.members()

    def read(self, name: str, header: Header, arrays: Arrays) -> Table | None:
        """Return the table, or None if the file does not contain it."""
        return Table.from_members(arrays)


def table_field() -> Any:
    """Return the field for the table of features, None by default."""
    return kept_as(OfTable(), default=None, kw_only=True)


def _subtrees(table: Any) -> tuple[int, ...]:
    return table.ccp_alpha.shape[:1]


@dataclass(frozen=True, slots=True, eq=False)
class PruningTable(Stored):
    """The subtrees that cross-validation compared, the largest first.

    Attributes
    ----------
    ccp_alpha : ndarray of float64, shape (k,)
        Smallest ``ccp_alpha`` for which each subtree is optimal, in increasing order.
    n_leaves : ndarray of int32, shape (k,)
        Number of leaves of each subtree.
    error : ndarray of float64, shape (k,)
        Cross-validated error of each subtree: error rate, or mean squared error.
    standard_error : ndarray of float64, shape (k,)
        Standard error of the cross-validated error.
    chosen : int
        Index of the selected subtree.
    """

    called, file_prefix = "pruning.", "pruning_"

    ccp_alpha: FloatArray = column(np.float64, _subtrees, finite=False, positive=True)
    n_leaves: IntArray = column(np.int32, _subtrees)
    error: FloatArray = column(np.float64, _subtrees, finite=False, positive=True)
    standard_error: FloatArray = column(np.float64, _subtrees, finite=False, positive=True)
    chosen: int = header(
        lambda value: type(value) is int, refusal="pruning.chosen: expected an integer, got {}"
    )

    def check_whole(self) -> None:
        """Check the leaves and the selected index."""
        if not (self.n_leaves >= 1).all():
            raise ValueError("pruning.n_leaves: expected positive numbers")
        if not (is_integer(self.chosen) and 0 <= self.chosen < len(self.ccp_alpha)):
            raise ValueError(
                f"pruning.chosen: expected an index < {len(self.ccp_alpha)}, got {self.chosen}"
            )

    def __str__(self) -> str:
        lines = ["     lambda  leaves  error"]
        for i in range(len(self.ccp_alpha)):
            mark = "  chosen" if i == self.chosen else ""
            lines.append(
                f"{self.ccp_alpha[i]:11.5g} {self.n_leaves[i]:7d}  {self.error[i]:.5g} "
                f"± {self.standard_error[i]:.2g}{mark}"
            )
        return "\n".join(lines)
