"""Rows that are asked about side by side: questions handed out, and taken back answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from pboost.values import shown

#: Why nothing more is asked.
BUDGET = "the budget ends here"
#: What is asked: a column by its name, or its position where it has none, or a group.
Name: TypeAlias = str | int


class AcquiredValue(NamedTuple):
    """A value that was acquired, and what was paid for it.

    Attributes
    ----------
    source : str or int
        A column, by its name, or its position where columns have no names; or the name of a group.
    value : object
        What was answered.
    cost : float
        What was paid; 0 of a column whose group was paid before.
    calls : int
        How often it was asked.
    """

    source: Name
    value: object
    cost: float
    calls: int = 1


class AcquisitionError(RuntimeError):
    """A question that was not answered, or not by a value of its column.

    Attributes
    ----------
    source : str or int
        What was asked, see `AcquiredValue`.
    acquired : tuple of AcquiredValue
        What was asked and answered before.
    """

    def __init__(self, message: str, source: Name, acquired: tuple[AcquiredValue, ...]) -> None:
        super().__init__(message)
        self.source, self.acquired = source, acquired

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.source, self.acquired)


class Query(NamedTuple):
    """What a session of rows asks, see `AcquisitionSession` and `AnnotationSession`.

    Attributes
    ----------
    row : int
        Number of the row.
    source : str or int
        A column, by its name, or its position where columns have no names; the name of a group; or
        the name of an oracle.
    cost : float
        What the answer costs.
    """

    row: int
    source: Name
    cost: float


def plain(value: object) -> Any:
    """Return a scalar of NumPy as one of Python; other values as they are."""
    return value.item() if isinstance(value, np.generic) else value


def called(
    function: Callable[[], object], source: Name, acquired: Iterable[AcquiredValue]
) -> object:
    """Return what a function answers; AcquisitionError if it raises."""
    try:
        return function()
    except Exception as error:
        message = f"{source!r}: its function raised {error!r}"
        raise AcquisitionError(message, source, tuple(acquired)) from error


R = TypeVar("R")
D = TypeVar("D")


class Session(Generic[R, D]):
    """Rows with open questions. A subclass finds what a row is asked next, in `_go_on`.

    R is what is known of a row: it takes answers by `tell`, and has a `decision` D in the end.
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
        """Whether all rows are decided."""
        return all(row.decision is not None for row in self._rows)

    def ask(self) -> list[Query]:
        """Return the questions that have come up since it was called last."""
        pending, self._new = self._new, []
        return pending

    def _join(self, row: R) -> int:
        """Take a row, find what it is asked first, and return its number."""
        self._rows.append(row)
        self._waiting.append(set())
        self._go_on(len(self) - 1)
        return len(self) - 1

    def _put(self, question: Query) -> None:
        """Hand out a question, unless it is open."""
        if question.source not in self._waiting[question.row]:
            self._waiting[question.row].add(question.source)
            self._new.append(question)

    def tell(self, question: Query, answer: object) -> None:
        """Take the answer to a question; of a group of columns a mapping of their values.

        Raises
        ------
        AcquisitionError
            If it is no answer to the question, which stays open, and can be answered again.
        ValueError
            If the question is not open.
        """
        row, source, _ = question
        if not 0 <= row < len(self) or source not in self._waiting[row]:
            raise ValueError(f"question: expected one that is open, got {shown(question)}")
        self._rows[row].tell(source, answer)
        self._waiting[row].remove(source)
        if not self._waiting[row]:
            self._go_on(row)

    def _go_on(self, row: int) -> None:
        raise NotImplementedError
