"""Sessions that return queries for many rows and receive the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from pboost.values import shown

#: Reason for the end of an acquisition.
BUDGET = "the next query would exceed the budget"
#: Source of a query: a feature name, a feature index if there are no names, or a group name.
Name: TypeAlias = str | int


class AcquiredValue(NamedTuple):
    """An acquired value and its cost.

    Attributes
    ----------
    source : str or int
        A feature name (an index if features have no names) or the name of a group.
    value : object
        The value.
    cost : float
        The cost; 0 for a feature whose group was acquired before.
    calls : int
        Number of queries.
    """

    source: Name
    value: object
    cost: float
    calls: int = 1


class AcquisitionError(RuntimeError):
    """An error raised if a query fails or returns an invalid value.

    Attributes
    ----------
    source : str or int
        The source of the query, see `AcquiredValue`.
    acquired : tuple of AcquiredValue
        The values acquired before.
    """

    def __init__(self, message: str, source: Name, acquired: tuple[AcquiredValue, ...]) -> None:
        super().__init__(message)
        self.source, self.acquired = source, acquired

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.source, self.acquired)


class Query(NamedTuple):
    """A query of an `AcquisitionSession` or `AnnotationSession`.

    Attributes
    ----------
    row : int
        Index of the row.
    source : str or int
        A feature name (an index if features have no names), the name of a group, or the name of an
        annotator.
    cost : float
        The cost of the query.
    """

    row: int
    source: Name
    cost: float


def plain(value: object) -> Any:
    """Convert a NumPy scalar to a Python object; return other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def called(
    function: Callable[[], object], source: Name, acquired: Iterable[AcquiredValue]
) -> object:
    """Return the result of a function; raise AcquisitionError if it raises an error."""
    try:
        return function()
    except Exception as error:
        message = f"{source!r}: the function raised {error!r}"
        raise AcquisitionError(message, source, tuple(acquired)) from error


R = TypeVar("R")
D = TypeVar("D")


class Session(Generic[R, D]):
    """Rows with open queries. Subclasses determine the next queries of a row in `_go_on`.

    R is the type of the state of a row, and D is the type of its decision. The state has a method
    `tell`, which adds a result, and an attribute `decision`, which the last result sets.
    """

    def __init__(self) -> None:
        self._rows: list[Any] = []
        self._new: list[Query] = []
        self._waiting: list[set[Name]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> D | None:
        decision: D | None = self._rows[row].decision
        return decision

    def __iter__(self) -> Iterator[D | None]:
        return (row.decision for row in self._rows)

    @property
    def is_done(self) -> bool:
        """Return whether all rows are decided."""
        return all(row.decision is not None for row in self._rows)

    def ask(self) -> list[Query]:
        """Return the queries that were added since the last call."""
        pending, self._new = self._new, []
        return pending

    def _join(self, row: R) -> int:
        """Add a row and its first queries, and return its index."""
        self._rows.append(row)
        self._waiting.append(set())
        self._go_on(len(self) - 1)
        return len(self) - 1

    def _put(self, question: Query) -> None:
        """Add a query, unless the same query is already open."""
        if question.source not in self._waiting[question.row]:
            self._waiting[question.row].add(question.source)
            self._new.append(question)

    def tell(self, question: Query, answer: object) -> None:
        """Set the result of a query. For a group, pass a mapping of features to values.

        Raises
        ------
        AcquisitionError
            If the result is invalid. The query stays open, and another result can be passed.
        ValueError
            If the query is not open.
        """
        row, source, _ = question
        if not 0 <= row < len(self) or source not in self._waiting[row]:
            raise ValueError(f"question: expected an open query, got {shown(question)}")
        self._rows[row].tell(source, answer)
        self._waiting[row].remove(source)
        if not self._waiting[row]:
            self._go_on(row)

    def _go_on(self, row: int) -> None:
        raise NotImplementedError
