"""Rows to train on that are not one table of this process: what builders take as `X`, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns
from pboost.data.read.check_xy import with_categories
from pboost.data.read.table import Categorical
from pboost.data.splits import HoldOut
from pboost.data.targets import labels_of_rows
from pboost.data.training import Problem
from pboost.values import Array, FloatArray, TableLike, shown

T = TypeVar("T")
#: What builders say that have no method for partitions.
IN_ONE_PLACE = "{} needs all rows in one place: pass rows.gather()"


class OneTable(NamedTuple):
    """All rows of a row source in one table, with their targets; builders take it as `X`.

    Attributes
    ----------
    X : BinnedColumns
        Rows in bins, partition after partition, with their values if the source keeps these.
    y : ndarray of shape (n,)
        Labels or targets.
    sample_weight : ndarray of shape (n,), or None
        Weights.
    """

    X: BinnedColumns
    y: Array
    sample_weight: FloatArray | None


class RowSource(ABC):
    """Rows in partitions, with their targets and weights.

    Builders ask a source these questions, and never where the rows are.

    Attributes
    ----------
    bins : BinnedColumns
        The bins that all rows share; its own rows mean nothing.
    n_rows : int
        Number of rows.
    """

    bins: BinnedColumns
    n_rows: int

    @abstractmethod
    def gather(self) -> OneTable:
        """Return all rows in one table of this process."""

    @abstractmethod
    def take(self, rows: Array) -> Any:
        """Return a source of some rows, numbered in ascending order, in the same bins."""

    @abstractmethod
    def apply(self, function: Callable[..., T], *given: object) -> list[T]:
        """Return what a function returns of columns, targets and weights of each partition."""

    @abstractmethod
    def targets_here(self, task: str) -> tuple[Array, FloatArray | None]:
        """Return labels or targets, and weights, of all rows in this process."""

    @abstractmethod
    def graph(self, learner: object, observation: object, growth: type) -> Any:
        """Return the weak learner of one fit whose `growth` is that of these rows."""

    @abstractmethod
    def growth(self, kind: type[T]) -> type[T]:
        """Return the growth of this kind whose rows are those of a source."""

    @abstractmethod
    def task(self, task: str | None) -> str:
        """Return the task that is passed, or that of which the targets are."""

    @abstractmethod
    def trees(self, task: str, search: str, hold: HoldOut | None = None) -> Problem:
        """Return the problem of one fit of trees, which has no rows but knows who has them."""

    @abstractmethod
    def default_loss(self, task: str | None) -> str:
        """Return the loss of gradient boosting that such targets have by default."""

    @abstractmethod
    def sums(self, task: str, n_threads: int | None, ends: ExitStack) -> Any:
        """Return the rows of one fit of gradient boosting, which `ends` lets go of."""


def rows_of_fit(
    X: TableLike,
    y: object,
    sample_weight: object,
    y_proba: ArrayLike | None = None,
    labels: object = None,
    categorical: Categorical = None,
) -> tuple[Any, Any, Any]:
    """Return X, y and the weights of a builder that takes any source of rows."""
    if not isinstance(X, RowSource | OneTable):
        y = labels_of_rows(y, y_proba, labels)
        return with_categories(X, categorical), y, sample_weight
    given = {"y": y, "sample_weight": sample_weight, "y_proba": y_proba, "labels": labels}
    for name, value in {**given, "categorical": categorical}.items():
        if value is not None:
            raise ValueError(
                f"{name}: expected None, since X is a source of rows that has its own, got "
                f"{shown(value)}"
            )
    return (X.X, X.y, X.sample_weight) if isinstance(X, OneTable) else (X, None, None)


def rows_here(builder: str, X: TableLike, *given: Any) -> tuple[Any, Any, Any]:
    """Return what `rows_of_fit` does, of a builder that needs all rows in one place."""
    if isinstance(X, RowSource):
        raise NotImplementedError(IN_ONE_PLACE.format(builder))
    return rows_of_fit(X, *given)
