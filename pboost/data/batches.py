"""Tables that are read in batches of rows: files, data sets of pyarrow, and what yields batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from pboost.data.convert import column_names, is_frame, pick_columns
from pboost.data.frames import of_frame, whole_column
from pboost.values import install_hint, shown

#: Rows that are read from files at a time.
BATCH_ROWS = 131_072
#: Endings of files, and what pyarrow calls what is in them.
FORMATS = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
    ".csv": "csv",
}


class Batch(NamedTuple):
    """Some rows: X, labels, and weights or None, as they were given."""

    X: Any
    y: Any
    weights: Any


#: Starts reading from the first batch.
Batches: TypeAlias = Callable[[], Iterator[Batch]]


def batches_of(source: Any, target: str | None, weight: str | None) -> Batches:
    """Return what reads a table in batches, any number of times.

    Raises
    ------
    TypeError, ValueError
        If this is no such table, or can be read once only, or `target` does not go with it.
    ImportError
        If files are to be read without pyarrow.
    """
    for name, column in (("target", target), ("weight", weight)):
        if column is not None and not isinstance(column, str):
            raise TypeError(f"{name}: expected the name of a column, got {shown(column)}")
    start = _starting(source)

    def read() -> Iterator[Batch]:
        for k, found in enumerate(start()):
            yield _split(found, target, weight, k)

    return read


def _starting(source: Any) -> Callable[[], Iterable[Any]]:
    """Return what starts reading the batches, whatever they are."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, list | tuple) and paths:
        are_paths = [isinstance(path, str | os.PathLike) for path in paths]
        if all(are_paths):
            source = _of_files([os.fspath(path) for path in paths])
        elif any(are_paths):
            raise TypeError("source: expected paths or batches, got both in one list")
    if hasattr(source, "to_batches"):
        return _arrow_reader(source)
    if callable(source):
        return source
    if isinstance(source, Iterator) or hasattr(source, "read_next_batch"):
        raise TypeError(
            f"source: expected batches that can be read twice, got a {type(source).__name__}; pass "
            "a function that starts anew, such as the generator function itself, or a list"
        )
    if not isinstance(source, Iterable) or hasattr(source, "dtype") or is_frame(source):
        raise TypeError(
            "source: expected paths, a data set of pyarrow, or an iterable of batches, got "
            f"{shown(source)}; pb.bin_columns takes a table in memory"
        )
    return lambda: iter(source)


def _of_files(paths: list[str]) -> Any:
    """Return the data set of files, or of one folder of them."""
    try:
        from pyarrow import dataset
    except ImportError:
        hint = install_hint("parquet", "pyarrow")
        raise ImportError(f"source: reading files needs pyarrow: {hint}") from None
    kinds = set()
    for path in paths:
        if not os.path.exists(path):
            raise FileNotFoundError(f"source: no file or folder {path!r}")
        ending = os.path.splitext(path)[1].lower()
        if not os.path.isdir(path) and ending not in FORMATS:
            raise ValueError(
                f"source: expected files ending in {', '.join(FORMATS)}, got {path!r}; others can "
                "be passed as a data set of pyarrow"
            )
        kinds.add("parquet" if os.path.isdir(path) else FORMATS[ending])
    if len(kinds) > 1:
        raise ValueError(f"source: expected files of one kind, got {', '.join(sorted(kinds))}")
    return dataset.dataset(paths[0] if len(paths) == 1 else paths, format=kinds.pop())


def _arrow_reader(source: Any) -> Callable[[], Iterable[Any]]:
    """Return what reads a table or a data set of pyarrow; of the latter few batches are ahead."""
    if not hasattr(source, "get_fragments"):
        return lambda: source.to_batches(max_chunksize=BATCH_ROWS)
    _check_columns(source)
    return lambda: source.to_batches(batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)


def _check_columns(source: Any) -> None:
    """Raise ValueError unless all files of a data set have the columns of its schema.

    pyarrow would leave out further columns, and fill absent ones with missing values.
    """
    from pyarrow.dataset import get_partition_keys

    for k, fragment in enumerate(source.get_fragments()):
        keys = get_partition_keys(fragment.partition_expression)  # values in the names of folders
        expected, found = source.schema.names, [*fragment.physical_schema.names, *keys]
        different = set(expected).symmetric_difference(found)
        name = next((name for name in (*expected, *found) if name in different), None)
        if name is not None:
            file = repr(getattr(fragment, "path", f"fragment {k}"))
            problem = "has no" if name in expected else "has in addition the"
            raise ValueError(
                f"source: expected the columns of the first file (or of the schema) in all files, "
                f"but {file} {problem} column {name!r}; write the files with the same columns, or "
                "pass a function that yields batches with the columns to use"
            )


def _split(found: Any, target: str | None, weight: str | None, k: int) -> Batch:
    """Return what was read as X, labels and weights."""
    if target is None:
        if weight is not None:
            raise ValueError("weight: expected None without target: a batch is (X, y, weights)")
        if not isinstance(found, tuple) or len(found) not in (2, 3):
            raise TypeError(
                f"batch {k}: expected a tuple (X, y) or (X, y, weights), got {shown(found)}; of "
                "batches with named columns pass target="
            )
        X, y, *weights = found
        return Batch(X, y, weights[0] if weights else None)
    if isinstance(found, tuple) or not is_frame(found):
        raise TypeError(
            f"batch {k}: expected a record batch or a data frame with column {target!r}, got "
            f"{shown(found)}"
        )
    names = column_names(found)
    for name, column in (("target", target), ("weight", weight)):
        if column is not None and column not in names:
            raise ValueError(
                f"{name}: expected the name of a column, got {column!r}; batch {k} has "
                f"{', '.join(names)}"
            )
    rest = [j for j, name in enumerate(names) if name not in (target, weight)]
    return Batch(
        pick_columns(found, rest),
        _column(found, names.index(target)),
        None if weight is None else _column(found, names.index(weight)),
    )


def _column(frame: Any, place: int) -> Any:
    return whole_column(of_frame(pick_columns(frame, [place]), 1)[0])
