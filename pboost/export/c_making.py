"""What is known of a C file while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pboost.data.convert import Features
from pboost.export.c_fixed import Fixed, Grid
from pboost.export.c_parts import Leaving, Line, LinearLeaves, Maps, Members, Part, Tests, Walk
from pboost.export.c_text import TYPES
from pboost.models.base import Averaged
from pboost.values import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Making:
    """A model and what of it a C file has.

    Attributes
    ----------
    model : Model
        The model.
    prefix : str
        What names begin with.
    exact, part : Part
        The steps of the model, and those in the numbers of the file.
    dtype, votes : str
        The numbers of rows and of votes.
    grid, fixed : Grid and Fixed, or None
        Of int16.
    uncertain : int or None
        How many rows that were given are within the bound.
    rows : ndarray or None
        Rows that were given.
    """

    model: Any
    prefix: str
    exact: Part
    part: Part
    dtype: str
    votes: str
    grid: Grid | None = None
    fixed: Fixed | None = None
    uncertain: int | None = None
    rows: FloatArray | None = None

    @property
    def value(self) -> str:
        """The C type of the values of a row."""
        return TYPES[self.dtype]

    @property
    def total(self) -> str:
        """The C type of decision values."""
        return TYPES["int32" if self.fixed is not None else self.votes]


def tests_of(part: Part) -> Iterator[Tests]:
    """Yield the questions of all nodes."""
    if isinstance(part, Walk):
        yield part.tests
    elif isinstance(part, LinearLeaves | Leaving):
        yield part.walk.tests
    elif isinstance(part, Line | Maps):
        yield from tests_of(part.part)
    elif isinstance(part, Members):
        for member in part.members:
            yield from tests_of(member)


def scores_of(model: Any, rows: FloatArray) -> FloatArray:
    """Return the decision values (n, J) of rows of numbers and level numbers, or shares."""
    X: Any = rows
    if model.table is not None:
        X = Features(rows, model.feature_names, model.table)
    if isinstance(model, Averaged):
        found = model.values_of_mean(model.mean(X))
    else:
        found = model.decision_function(X)
    return found.reshape(len(rows), -1)
