"""Validation sets for early stopping, passed by the user or split off the training data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import to_fixed_point, values_of
from pboost.data.columns.prebuilt import MAX_BINS
from pboost.data.columns.sparse_columns import SparseColumns, SparseFeatures, read_sparse
from pboost.data.node_inputs.inputs import GrownInputs, in_set, in_sums
from pboost.data.read.check_xy import (
    as_targets,
    as_weights,
    check_finite,
    check_has_rows,
    class_codes,
)
from pboost.data.read.convert import Features, RowTable, is_sparse
from pboost.data.resampling import HoldOut, Validation
from pboost.data.row_fingerprint import digest_of_rows, merged
from pboost.data.row_source import RowSource
from pboost.data.targets import soft_validation
from pboost.data.training_data import Problem, TrainingData, check_values
from pboost.growth.graph_growth import StepRecord
from pboost.models.base import staged_decision_function
from pboost.models.evaluate.graph_walk import goes_right
from pboost.models.evaluate.match_input import is_second, match_names
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import ABOVE, BELOW
from pboost.values import Array, FloatArray, Seed, as_generator, check_integer, check_number, shown
from pboost.values.options import Option

#: Returns values that node k compares, for some rows.
Value: TypeAlias = Callable[[int, NDArray[np.intp]], Array]
#: Default of `n_iter_no_change`.
PATIENCE = 50
#: Stored value of `validation` if the user passed the rows.
GIVEN = "given"


class ValidationOptions(TypedDict, total=False):
    """The options of early stopping.

    Parameters
    ----------
    validation : tuple or float, optional
        Validation set for early stopping: ``(X, y)``, ``(X, y, sample_weight)``, or a fraction in
        (0, 0.5] of the training rows, stratified by class and drawn with `rng`. The first model
        with the lowest validation error is returned. ``record.validation`` contains the errors
        after each node.
    n_iter_no_change : int, optional
        With `validation`: stop after this number of nodes without improvement. Default: 50.
    """

    validation: Annotated[Validation, Option(None)]
    n_iter_no_change: Annotated[int | None, Option(None)]


@dataclass(frozen=True, slots=True, eq=False)
class ValidationRows:
    """The validation rows of one fit, from the options `validation` and `n_iter_no_change`.

    Attributes
    ----------
    problem : Problem
        Training data; validation rows have weight 0.
    drawn : ndarray of int, shape (n,)
        Validation rows drawn from the training data; empty if the user passed a validation set.
    X : ndarray, shape (n, d), SparseFeatures or None
        Values of a validation set, or of drawn rows that cannot be binned.
    y : ndarray, shape (n,)
        Target of each row. In binary classification, whether the row has the second class; in
        multiclass classification, the class number.
    weight : ndarray of float64, shape (n,)
        Weights of the rows.
    n_iter_no_change : int
        Number of nodes or rounds without improvement after which growth ends.
    settings : dict
        The options, as stored in the settings of the model.
    elsewhere : object, or None
        Object that contains the validation rows of a row source; the arrays are then empty.
    """

    problem: Problem
    drawn: NDArray[np.intp]
    X: Any
    y: Array
    weight: FloatArray
    n_iter_no_change: int
    settings: Mapping[str, Any]
    elsewhere: Any = None


def held_share(validation: object, rng: Seed, keeps_levels: bool = False) -> HoldOut | None:
    """Return the fraction of rows to draw for validation before X is read, or None."""
    if validation is None or isinstance(validation, tuple | list | RowSource):
        return None
    share = check_number("validation", validation, min_value=0.0, max_value=0.5, open_min=True)
    return HoldOut(share, as_generator(rng), keeps_levels)


def validation_rows(
    validation: object, n_iter_no_change: object, problem: Problem, rng: Seed, *, holes: bool = True
) -> ValidationRows | None:
    """Return the validation rows, or None without `validation`.

    Drawn rows get weight 0 in `problem`, unless they were removed earlier (see `held_share`).
    Missing values are allowed by default.
    """
    if validation is None:
        if n_iter_no_change is not None:
            raise ValueError(
                f"n_iter_no_change: expected None without validation, got {shown(n_iter_no_change)}"
                "; also pass validation=0.2 or validation=(X_val, y_val)"
            )
        return None
    n_iter_no_change = (
        PATIENCE
        if n_iter_no_change is None
        else check_integer("n_iter_no_change", n_iter_no_change, min_value=1)
    )
    if isinstance(problem.columns, RowTable):
        raise NotImplementedError(
            "validation: expected None with oracles and estimators, since early stopping needs "
            "splits that compare numbers with thresholds"
        )
    hold = held_share(validation, rng)
    if hold is None:
        settings, none = (
            {"validation": GIVEN, "n_iter_no_change": n_iter_no_change},
            np.empty(0, dtype=np.intp),
        )
        user_set = rows_given("validation", validation, problem, holes)
        if not isinstance(user_set["X"], SparseFeatures):
            problem = replace(problem, seen=merged(problem.seen, digest_of_rows(user_set["X"])))
        return ValidationRows(
            problem, none, **user_set, n_iter_no_change=n_iter_no_change, settings=settings
        )
    if problem.held is None:
        problem = problem.hold_out(hold)
    held = problem.held
    assert held is not None
    classes = problem.classes
    y = held.y if classes is None else _of_two(classes, held.y)
    settings = {"validation": hold.share, "n_iter_no_change": n_iter_no_change}
    arrays = held.rows, held.values, y, held.weight
    return ValidationRows(problem, *arrays, n_iter_no_change, settings, held.elsewhere)


def rows_given(
    argument: str, validation: Any, problem: Problem, holes: bool = True
) -> dict[str, Any]:
    """Return `X`, `y` and `weight` of a validation set passed by the user as `argument`."""
    if isinstance(validation, RowSource):
        X, *more = validation.gather()
        check_values(X, "to validate with")
        validation = values_of(X), *more
    if len(validation) not in (2, 3):
        raise ValueError(
            f"{argument}: expected (X, y), (X, y, sample_weight) or a fraction of the rows, got "
            f"{len(validation)} items"
        )
    X, y, sample_weight = (*validation, None)[:3]
    try:
        features = _features_of(X, problem, holes)
        values = features if isinstance(features, SparseFeatures) else features.values
        n, classes = features.n_rows, problem.classes
        check_has_rows(n)
        soft = None if classes is None else soft_validation(y, classes)
        if soft is not None:
            if isinstance(features, SparseFeatures):
                raise NotImplementedError(
                    "y: expected classes with a sparse matrix, got soft labels"
                )
            soft.check_rows(n)
            shares = soft.expanded(as_weights(sample_weight, n))
            rows = np.arange(n) if shares.entries is None else shares.entries.rows
            weight = shares.weights
            codes = _of_two(soft.classes, shares.label)
            return {"X": features.values[rows], "y": codes, "weight": _ones(weight, len(rows))}
        weight = as_weights(sample_weight, n)
        if classes is None:
            codes = as_targets(y, n)
        elif len(classes) > 2:
            codes = class_codes(classes, y, n)
        else:
            codes = is_second(classes, y, n)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise type(error)(f"{argument}: {error}") from None
    return {"X": values, "y": codes, "weight": _ones(weight, n)}


def _features_of(X: Any, problem: Problem, holes: bool) -> Features | SparseFeatures:
    """Return the rows of a validation set in the order of the training features."""
    if is_sparse(X) and isinstance(problem.columns, SparseColumns):
        features = read_sparse(X)
        if features.n_features != problem.n_features:
            raise ValueError(f"X: expected {problem.n_features} columns, got {features.n_features}")
        return features
    dense = match_names(problem.names, problem.n_features, X, problem.table)
    check_finite(dense, holes)
    return dense


def _of_two(classes: Array, label: Array) -> Array:
    """Return class numbers; with two classes, whether each row has the second class."""
    return label if len(classes) > 2 else label == 1


def _ones(weight: FloatArray | None, n: int) -> FloatArray:
    """Return the weights; None becomes n weights of 1."""
    return np.ones(n) if weight is None else weight


# While a graph grows, the validation rows at each open exit are stored. A new node then only
# evaluates the rows that reach it.


class EarlyStoppingRows(Protocol):
    """Validation rows of a growing graph, in one table or in partitions.

    Attributes
    ----------
    total, wrong : int
        Weight of all rows, and weight of the rows that a model without nodes predicts wrongly. Both
        are integers, so that equal errors compare equal.
    """

    total: int
    wrong: int

    def taken(self, records: Sequence[StepRecord]) -> Sequence[int]:
        """Add nodes; return the weight of wrong predictions after each node.

        The result ends before a node that a missing value reaches, if its exit for missing values
        is not yet decided.
        """

    def stages(self, model: DecisionGraph) -> Iterable[int]:
        """Return the weight of wrong predictions at each stage of a model."""

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of wrong predictions if all rows have the same decision values."""

    def close(self) -> None:
        """Free the rows."""


class WatchedRows:
    """Validation rows in one table; see `EarlyStoppingRows`.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Values of the rows.
    value : callable
        Returns the values that a node compares with its threshold, given (feature, rows).
    label : ndarray, shape (n,)
        Class number of each row; with two classes, whether the row has the second class.
    weight : ndarray of int64, shape (n,)
        Weights in fixed point.
    n_labels : int
        Number of classes.
    has_sides : bool
        Whether values that nodes compare can be missing.
    """

    def __init__(
        self,
        X: Array,
        value: Value,
        label: Array,
        weight: NDArray[np.int64],
        n_labels: int,
        *,
        has_sides: bool = True,
    ) -> None:
        self._X, self._value, self._label, self._has_sides = X, value, label, has_sides
        self._weight, self.total = weight, int(weight.sum())
        n = len(label)
        self._score = np.zeros((n, n_labels) if n_labels > 2 else n)
        self._at: dict[tuple[int, int], NDArray[np.intp]] = {}
        self.wrong = self._wrong = self._mass_wrong(np.arange(n))

    def taken(self, records: Sequence[StepRecord]) -> list[int]:
        """Add nodes; see `EarlyStoppingRows`."""
        wrong_weights = []
        for record in records:
            rows = [self._at.pop(exit_) for exit_ in record.parents]
            at_node = np.concatenate(rows) if rows else np.arange(len(self._score))
            # Thresholds are compared in float64 wherever a model is evaluated.
            above = self._above(record, self._value(record.feature, at_node).astype(np.float64))
            if above is None:
                break
            self._wrong -= self._mass_wrong(at_node)
            taken = above if self._score.ndim == 1 else above[:, None]
            self._score[at_node] += np.where(taken, record.votes[ABOVE], record.votes[BELOW])
            self._wrong += self._mass_wrong(at_node)
            self._at[record.node, BELOW] = at_node[~above]
            self._at[record.node, ABOVE] = at_node[above]
            wrong_weights.append(self._wrong)
        return wrong_weights

    def _above(self, record: StepRecord, value: Array) -> NDArray[np.bool_] | None:
        """Return a mask of the rows that take exit 1 of a node; None if this is not decided."""
        if record.levels:
            words = np.frombuffer(record.levels.to_bytes(MAX_BINS // 8, "little"), dtype=np.uint8)
            value = in_set(value, np.unpackbits(words, bitorder="little"))
        above: NDArray[np.bool_] = goes_right(value, record.threshold)
        is_missing = np.isnan(value)
        if not self._has_sides or not is_missing.any():
            return above
        if record.missing is None:
            return None
        return above | (is_missing & (record.missing == ABOVE))

    def stages(self, model: DecisionGraph) -> Iterator[int]:
        """Yield the weight of wrong predictions at each stage of a model."""
        if len(self._X):
            for score in staged_decision_function(model, Features(self._X, None, model.table)):
                yield int(self._weight[_said(score) != self._label].sum())

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of wrong predictions if all rows have the same decision values."""
        predicted = _said(np.broadcast_to(score, self._score.shape))
        return int(self._weight[self._label != predicted].sum())

    def _mass_wrong(self, rows: NDArray[np.intp]) -> int:
        wrong = _said(self._score[rows]) != self._label[rows]
        return int(self._weight[rows[wrong]].sum())

    def close(self) -> None:
        """Do nothing, since there is nothing to free."""


def _said(score: FloatArray) -> Array:
    """Return predictions: class numbers, or booleans if there are two classes."""
    return np.asarray(score > 0) if score.ndim == 1 else score.argmax(axis=1)


def values_read(data: TrainingData, X: Array) -> Value:
    """Return a function that computes the values of X that nodes compare with thresholds."""
    inputs = data.inputs
    if inputs is not None:
        X = in_sums(X, data.problem.table)
    if isinstance(inputs, GrownInputs):
        # The nodes do not exist yet, so values are computed on request.
        return lambda number, rows: inputs.value(number, X, rows.astype(np.int32))
    values = X if inputs is None else inputs.values(X)
    return lambda number, rows: values[rows, number]


def watched_rows(data: TrainingData, rows: ValidationRows) -> WatchedRows:
    """Return validation rows in one table for a graph that grows on `data`."""
    X = rows.problem.values(rows.drawn) if rows.X is None else rows.X
    weight, classes = to_fixed_point(rows.weight)[1], rows.problem.classes
    n_labels = 0 if classes is None else len(classes)
    has_sides = data.inputs is None
    return WatchedRows(X, values_read(data, X), rows.y, weight, n_labels, has_sides=has_sides)
