"""Rows to train on that are not one table of this process: what builders take as `X`, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

from numpy.typing import ArrayLike

from pboost._version import __version__
from pboost.data.columns.columns import BinnedColumns
from pboost.data.read.check_xy import with_categories
from pboost.data.read.table import Categorical
from pboost.data.targets import labels_of_rows
from pboost.data.training import Problem
from pboost.values import Array, FloatArray, TableLike, Task, shown
from pboost.values.options import Option

T = TypeVar("T")
#: The release of pboost that all processes with rows of a source must have.
RELEASE = __version__
#: What builders say that have no method for partitions.
IN_ONE_PLACE = "{} needs all rows in one place: pass rows.gather()"


class LabelOptions(TypedDict, total=False):
    """Labels and weights of the rows.

    Parameters
    ----------
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    classes : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default 0, 1, ..., or the names of its columns.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows.
    """

    y_proba: Annotated[ArrayLike | None, Option(None)]
    classes: Annotated[ArrayLike | None, Option(None)]
    sample_weight: Annotated[ArrayLike | None, Option(None)]


class RowOptions(LabelOptions, total=False):
    """Labels, weights and categories of the rows.

    Parameters
    ----------
    categorical_features : sequence of str or int, optional
        Names or positions of columns that hold categories, besides those of a data frame that hold
        text or whose type says so.
    """

    categorical_features: Annotated[Categorical, Option(None)]


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
    def apply(self, function: Callable[..., T], *arguments: object) -> list[T]:
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
    def task(self, task: Task | None) -> Task:
        """Return the task that is passed, or that of which the targets are."""

    @abstractmethod
    def trees(self, task: str, search: str) -> Problem:
        """Return the problem of one fit of trees, which has no rows but knows who has them."""

    @abstractmethod
    def default_loss(self, task: Task | None) -> Any:
        """Return the loss of gradient boosting that such targets have by default."""

    @abstractmethod
    def sums(
        self, loss: Any, options: Mapping[str, Any], n_threads: int | None, ends: ExitStack
    ) -> Any:
        """Return the rows of one fit of gradient boosting, which `ends` lets go of."""


def rows_of_fit(X: TableLike, y: object, options: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return X, y and the weights of a builder that takes any source of rows.

    `options` are those of `RowOptions`, among others.
    """
    row_options = {name: options.get(name) for name in RowOptions.__annotations__}
    if not isinstance(X, RowSource | OneTable):
        y = labels_of_rows(y, row_options["y_proba"], row_options["classes"])
        return (
            with_categories(X, row_options["categorical_features"]),
            y,
            row_options["sample_weight"],
        )
    for name, value in {"y": y, **row_options}.items():
        if value is not None:
            raise ValueError(
                f"{name}: expected None, since X is a source of rows that has its own, got "
                f"{shown(value)}"
            )
    return (X.X, X.y, X.sample_weight) if isinstance(X, OneTable) else (X, None, None)


def rows_here(
    builder: str, X: TableLike, y: object, options: Mapping[str, Any]
) -> tuple[Any, Any, Any]:
    """Return what `rows_of_fit` does, of a builder that needs all rows in one place."""
    if isinstance(X, RowSource):
        raise NotImplementedError(IN_ONE_PLACE.format(builder))
    return rows_of_fit(X, y, options)
