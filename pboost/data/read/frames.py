"""Access to columns of data frames of any library, as blocks of NumPy arrays.

pandas and pyarrow are not imported. Other libraries are read through narwhals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.numbers import PLAIN
from pboost.values import Array, TableLike, install_hint

#: Parts of type names, and descriptions of these unsupported types for messages.
REFUSED = {
    **dict.fromkeys(("datetime", "date", "timestamp", "period"), "dates"),
    **dict.fromkeys(("timedelta", "duration", "time", "interval"), "times or intervals"),
    **dict.fromkeys(("list", "struct", "map<", "array", "union", "object("), "nested values"),
    **dict.fromkeys(("complex", "binary", "bytes"), "non-numeric values"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One column of a table.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    part : callable
        ``part(start, stop)`` returns the values of these rows: objects, or numbers in which missing
        values are masked or NaN.
    is_declared : bool
        Whether the dtype is categorical.
    order : ndarray or None
        Categories in their order, if they are ordered.
    categories : ndarray or None
        Categories. If given, `part` returns positions in it, or -1 for missing values.
    refused : str
        Description of unsupported values; empty if all are supported.
    """

    n_rows: int
    part: Callable[[int, int], Array]
    is_declared: bool = False
    order: Array | None = None
    categories: Array | None = None
    refused: str = ""


def refused_type(name: str) -> str:
    """Return the description of an unsupported type, or "" if it is supported."""
    name = name.lower()
    return next((message for word, message in REFUSED.items() if word in name), "")


def of_array(column: Array) -> Source:
    """Return the source for a column of an array."""
    refusal = "" if column.dtype.kind in "biufOUT" else refused_type(str(column.dtype))
    return Source(len(column), lambda start, stop: column[start:stop], refused=refusal)


def of_frame(X: Any, d: int) -> list[Source]:
    """Return the sources for the columns of a data frame."""
    if hasattr(X, "iloc"):
        return [_of_pandas(X.iloc[:, j]) for j in range(d)]
    if hasattr(X, "num_columns"):  # pyarrow, whose record batches narwhals does not read
        return [_of_arrow(X.column(j)) for j in range(d)]
    return _of_others(X)


def float_frame(X: Any) -> Array | None:
    """Return a pandas frame as a matrix if all columns have the same float dtype, else None."""
    if not hasattr(X, "iloc"):
        return None
    dtypes = set(X.dtypes)
    if len(dtypes) != 1 or dtypes.pop() not in PLAIN:
        return None
    values: Array = X.to_numpy()
    return values


def whole_column(source: Source) -> Array:
    """Return all values of a column, of any type; missing values are None or NaN."""
    values = source.part(0, source.n_rows)
    if source.categories is not None:
        column = source.categories.astype(object)[values]
        column[values < 0] = None
        return column
    if isinstance(values, np.ma.MaskedArray):
        column = np.ma.getdata(values).astype(object)
        column[np.ma.getmaskarray(values)] = None
        return column
    return np.asarray(values)


def masked(values: Array, hidden: NDArray[np.bool_]) -> Array:
    """Return numbers with a mask of missing values."""
    return np.ma.MaskedArray(values, mask=hidden)


# pandas


def _of_pandas(series: Any) -> Source:
    dtype, n = series.dtype, len(series)
    if hasattr(dtype, "categories"):
        values = dtype.categories.to_numpy()
        codes = series.cat.codes

        def part(start: int, stop: int) -> Array:
            values: Array = codes.iloc[start:stop].to_numpy()
            return values

        return Source(n, part, True, values if dtype.ordered else None, values)
    kind = getattr(dtype, "kind", "O")
    is_arrow = hasattr(dtype, "pyarrow_dtype")
    name = str(dtype.pyarrow_dtype if is_arrow else dtype)
    if is_arrow and not isinstance(kind, str):
        kind = "O"
    if is_arrow and (name.startswith("dictionary") or kind not in "biuf"):
        return _of_arrow(series.array.__arrow_array__())
    if kind in "biuf":
        return Source(n, lambda start, stop: _pandas_numbers(series.iloc[start:stop]))
    refused = refused_type(name) if name != "object" else ""
    return Source(n, lambda start, stop: series.iloc[start:stop].to_numpy(object), refused=refused)


def _pandas_numbers(series: Any) -> Array:
    """Return numbers of a pandas or NumPy dtype, with a mask if necessary."""
    if isinstance(series.dtype, np.dtype) or hasattr(series.dtype, "fill_value"):
        plain: Array = series.to_numpy()
        return plain
    hidden = series.isna().to_numpy(dtype=bool)
    if not hidden.any():
        numbers: Array = series.to_numpy()
        return numbers
    return masked(series.fillna(series.dtype.type(0)).to_numpy(), hidden)


# pyarrow


def _of_arrow(column: Any) -> Source:
    name, n = str(column.type), len(column)
    if name.startswith("dictionary"):
        values = _of_arrow(column.slice(0, 0).cast(column.type.value_type))
        order = None
        if column.type.ordered:
            order = _ordered_values(column)
        value_type = column.type.value_type

        def decoded(start: int, stop: int) -> Array:
            return _arrow_values(column.slice(start, stop - start).cast(value_type))

        return Source(n, decoded, True, order, refused=values.refused)
    refused = "" if name.startswith("decimal") else refused_type(name)
    return Source(
        n, lambda start, stop: _arrow_values(column.slice(start, stop - start)), refused=refused
    )


def _ordered_values(column: Any) -> Array:
    """Return the categories of an ordered column, from the lowest to the highest."""
    if hasattr(column, "unify_dictionaries"):
        column = column.unify_dictionaries()
        if not column.num_chunks:
            return np.empty(0, dtype=object)
        column = column.chunk(0)
    return np.array(column.dictionary.to_pylist(), dtype=object)


def _arrow_values(column: Any) -> Array:
    name = str(column.type)
    if name == "null":
        return np.full(len(column), np.nan)
    is_number = name.startswith(("int", "uint", "half", "float", "double", "bool"))
    if not (is_number and column.null_count):
        values: Array = column.to_numpy(zero_copy_only=False)
        return values
    hidden = column.is_null().to_numpy(zero_copy_only=False)
    if name.startswith(("half", "float", "double")):
        return masked(column.to_numpy(zero_copy_only=False), hidden)
    filled = column.fill_null(False if name == "bool" else 0)
    return masked(filled.to_numpy(zero_copy_only=False), hidden)


# Other libraries


def frame_of_stream(X: TableLike) -> Any:
    """Convert an object with ``__arrow_c_stream__`` to a data frame."""
    narwhals = _narwhals(X)
    for library in ("pyarrow", "polars"):
        try:
            return narwhals.from_arrow(X, backend=library).to_native()
        except ImportError:
            pass
        except (TypeError, ValueError, ArithmeticError) as error:
            raise TypeError(f"X: expected a table, got a {type(X).__name__}: {error}") from None
    raise TypeError(f"X: pyarrow or polars is required to read a {type(X).__name__}")


def _narwhals(X: TableLike) -> Any:
    try:
        import narwhals
    except ImportError:
        hint = install_hint("frames", "narwhals")
        raise TypeError(
            f"X: narwhals is required to read a {type(X).__name__} but not installed: {hint}"
        ) from None
    return narwhals


def _of_others(X: TableLike) -> list[Source]:
    narwhals = _narwhals(X)
    try:
        frame = narwhals.from_native(X, eager_only=True)
    except TypeError:
        raise TypeError(
            f"X: expected a data frame in memory, got a {type(X).__name__}; collect it first"
        ) from None
    return [_of_narwhals(frame[name], narwhals) for name in frame.columns]


def _of_narwhals(series: Any, narwhals: Any) -> Source:
    dtype, n = series.dtype, len(series)
    name = str(dtype)
    as_text = name.startswith(("Categorical", "Enum"))
    is_decimal = name.startswith("Decimal")
    is_number = (dtype.is_numeric() and not is_decimal) or name == "Boolean"

    def part(start: int, stop: int) -> Array:
        values = series[start:stop]
        if as_text:
            values = values.cast(narwhals.String)
        if as_text or name == "String":  # NumPy text would drop trailing NULs
            return np.array(values.to_list(), dtype=object)
        if not (is_number and values.null_count()):
            array: Array = values.to_numpy()
            return array
        hidden = values.is_null().to_numpy()
        fill = False if name == "Boolean" else 0
        return masked(values.fill_null(fill).to_numpy(), hidden)

    refused = "" if as_text or is_number or is_decimal else refused_type(name)
    return Source(n, part, as_text, refused=refused)
