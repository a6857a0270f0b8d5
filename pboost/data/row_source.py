"""Interface of row sources, such as partitioned rows, that fit functions accept as `X`."""

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
from pboost.data.training_data import Problem
from pboost.values import Array, FloatArray, TableLike, Task, shown
from pboost.values.options import Option

T = TypeVar("T")
#: Version of pboost. All processes that store rows of a source must use the same version.
RELEASE = __version__
#: Message of fit functions that do not support partitions.
IN_ONE_PLACE = "{} needs all rows in one place: pass rows.gather()"


class LabelOptions(TypedDict, total=False):
    """Options for the targets and weights of the rows.

    Parameters
    ----------
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. A row has the weight
        ``probability * sample_weight`` for each class. For two classes, `y_proba` can be
        one-dimensional, with the probability of the second class.
    classes : array_like of shape (J,), optional
        Class labels of the columns of `y_proba`. Default: 0, 1, ..., or the column names.
    sample_weight : array_like of shape (n,), optional
        Nonnegative sample weights. Default: 1.
    """

    y_proba: Annotated[ArrayLike | None, Option(None)]
    classes: Annotated[ArrayLike | None, Option(None)]
    sample_weight: Annotated[ArrayLike | None, Option(None)]


class RowOptions(LabelOptions, total=False):
    """Options for the targets, weights and categorical features of the rows.

    Parameters
    ----------
    categorical_features : sequence of str or int, optional
        Names or positions of categorical features, in addition to text columns and columns of a
        categorical dtype. The rarest of more than 255 categories are merged; see the
        user guide on categorical features.
    """

    categorical_features: Annotated[Categorical, Option(None)]


class OneTable(NamedTuple):
    """All rows of a row source in one table, with their targets. Fit functions accept it as `X`.

    Attributes
    ----------
    X : BinnedColumns
        Binned rows, in the order of the partitions, with values if the source keeps them.
    y : ndarray of shape (n,)
        Class labels or regression targets.
    sample_weight : ndarray of shape (n,), or None
        Sample weights.
    """

    X: BinnedColumns
    y: Array
    sample_weight: FloatArray | None


class RowSource(ABC):
    """Rows in partitions, with their targets and weights.

    Fit functions call these methods and do not depend on the location of the rows.

    Attributes
    ----------
    bins : BinnedColumns
        The bins shared by all rows. The rows of this object are not used.
    n_rows : int
        Number of rows.
    """

    bins: BinnedColumns
    n_rows: int

    @abstractmethod
    def gather(self) -> OneTable:
        """Return all rows in one table in this process."""

    @abstractmethod
    def take(self, rows: Array) -> Any:
        """Return a row source with the selected rows and the same bins."""

    @abstractmethod
    def apply(self, function: Callable[..., T], *arguments: object) -> list[T]:
        """Call a function with the columns, targets and weights of each partition."""

    @abstractmethod
    def targets_here(self, task: str) -> tuple[Array, FloatArray | None]:
        """Return the targets and weights of all rows in this process."""

    @abstractmethod
    def graph(self, learner: object, observation: object, growth: type) -> Any:
        """Return a weak learner for a single fit, with a growth strategy for these rows."""

    @abstractmethod
    def growth(self, kind: type[T]) -> type[T]:
        """Return the class that implements a growth strategy for the rows of this source."""

    @abstractmethod
    def task(self, task: Task | None) -> Task:
        """Return `task`, or the task implied by the targets if `task` is None."""

    @abstractmethod
    def trees(self, task: str, search: str) -> Problem:
        """Return the problem of a tree fit. The problem does not contain the rows."""

    @abstractmethod
    def default_loss(self, task: Task | None) -> Any:
        """Return the default loss of gradient boosting for these targets."""

    @abstractmethod
    def sums(
        self, loss: Any, options: Mapping[str, Any], n_threads: int | None, ends: ExitStack
    ) -> Any:
        """Return the rows of a gradient boosting fit. Closing `ends` releases these rows."""


def refuse_swapped(X: object, y: object) -> None:
    """Raise ValueError if X has the shape of a target and y the shape of a table."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    shape_of_y: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 1 and len(shape_of_y) == 2 and shape_of_y[1] > 1:
        raise ValueError(
            f"X: expected two dimensions (rows, columns), got shape {shape} with y of shape "
            f"{shape_of_y}; pass the features first, as in fit(X, y)"
        )


def rows_of_fit(X: TableLike, y: object, options: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return X, y and the sample weights for a fit function that supports all row sources.

    `options` includes `RowOptions`.
    """
    row_options = {name: options.get(name) for name in RowOptions.__annotations__}
    if not isinstance(X, RowSource | OneTable):
        refuse_swapped(X, y)
        if isinstance(X, tuple) and y is None and hasattr(X, "columns"):
            raise TypeError(
                f"X: expected the parts of {shown(X)}; pass fit(columns, y, sample_weight=weight) "
                "after columns, y, weight = X"
            )
        y = labels_of_rows(y, row_options["y_proba"], row_options["classes"])
        return (
            with_categories(X, row_options["categorical_features"]),
            y,
            row_options["sample_weight"],
        )
    for name, value in {"y": y, **row_options}.items():
        if value is not None:
            raise ValueError(
                f"{name}: expected None, because the row source X contains it, got {shown(value)}"
            )
    return (X.X, X.y, X.sample_weight) if isinstance(X, OneTable) else (X, None, None)


def rows_here(
    builder: str, X: TableLike, y: object, options: Mapping[str, Any]
) -> tuple[Any, Any, Any]:
    """Return the result of `rows_of_fit` for a fit function that needs all rows in one process."""
    if isinstance(X, RowSource):
        raise NotImplementedError(IN_ONE_PLACE.format(builder))
    return rows_of_fit(X, y, options)
