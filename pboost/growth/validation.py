"""Rows that growth does not see, given or held out, which say how large a model is best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import to_fixed_point, values_of
from pboost.data.columns.prebuilt import MAX_BINS
from pboost.data.node_inputs.inputs import GrownInputs, in_set, in_sums
from pboost.data.read.check_xy import (
    as_targets,
    as_weights,
    check_finite,
    check_has_rows,
    class_codes,
)
from pboost.data.read.convert import Features, RowTable
from pboost.data.row_digest import digest_of_rows, merged
from pboost.data.row_source import RowSource
from pboost.data.splits import HoldOut, Validation
from pboost.data.targets import soft_validation
from pboost.data.training import Problem, TrainingData, check_values
from pboost.growth.step import StepRecord
from pboost.models.base import staged_decision_function
from pboost.models.evaluate.graph_walk import goes_right
from pboost.models.evaluate.new_rows import is_second, match_names
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import ABOVE, BELOW
from pboost.values import Array, FloatArray, Seed, as_generator, check_integer, check_number, shown
from pboost.values.options import Option

#: Returns number k of some rows.
Value: TypeAlias = Callable[[int, NDArray[np.intp]], Array]
#: Nodes without improvement after which growth ends, where no number is given.
PATIENCE = 50
#: The setting `validation` of fits to which the rows were given.
GIVEN = "given"


class ValidationOptions(TypedDict, total=False):
    """Rows by which growth ends early.

    Parameters
    ----------
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen: ``(X, y)``, or ``(X, y,
        sample_weight)``, or a share in (0, 0.5] of the rows of either class, drawn with `rng` and
        held out. The model returned is the first, of those that growth went through, with the
        least error on these rows; ``record.validation`` holds all errors.
    n_iter_no_change : int, optional
        With `validation`: growth ends after so many nodes without a new least error; default 50.
    """

    validation: Annotated[Validation, Option(None)]
    n_iter_no_change: Annotated[int | None, Option(None)]


@dataclass(frozen=True, slots=True, eq=False)
class ValidationRows:
    """The rows that the options `validation` and `n_iter_no_change` of one fit mean.

    Attributes
    ----------
    problem : Problem
        What to train with: the rows that are held out have weight 0.
    drawn : ndarray of int, shape (n,)
        The rows held out; none where others are given.
    X : ndarray, shape (n, d), or None
        Values of the rows that are given, and of rows held out that no bin can hold.
    y : ndarray, shape (n,)
        Whether a row has the second label; of more than two the number of its label; numbers of a
        regression.
    weight : ndarray of float64, shape (n,)
        Their weights.
    n_iter_no_change : int
        Nodes or trees without improvement after which growth ends.
    settings : dict
        The options, for the model's record of how it was made.
    elsewhere : object, or None
        What has the rows that a row source holds out; the arrays are then empty.
    """

    problem: Problem
    drawn: NDArray[np.intp]
    X: Array | None
    y: Array
    weight: FloatArray
    n_iter_no_change: int
    settings: Mapping[str, Any]
    elsewhere: Any = None


def held_share(validation: object, rng: Seed, keeps_levels: bool = False) -> HoldOut | None:
    """Return which rows are to be held out before X is read; None without a share of them."""
    if validation is None or isinstance(validation, tuple | list | RowSource):
        return None
    share = check_number("validation", validation, min_value=0.0, max_value=0.5, open_min=True)
    return HoldOut(share, as_generator(rng), keeps_levels)


def validation_rows(
    validation: object, n_iter_no_change: object, problem: Problem, rng: Seed, *, holes: bool = True
) -> ValidationRows | None:
    """Return the rows that `validation` means: data, or a share to hold out; None without.

    A problem whose rows are held out already, see `held_share`, stays as it is. `holes`: whether
    values may be missing.
    """
    if validation is None:
        if n_iter_no_change is not None:
            raise ValueError(
                f"n_iter_no_change: expected None without validation, got {shown(n_iter_no_change)}"
            )
        return None
    n_iter_no_change = (
        PATIENCE
        if n_iter_no_change is None
        else check_integer("n_iter_no_change", n_iter_no_change, min_value=1)
    )
    if isinstance(problem.columns, RowTable):
        raise NotImplementedError(
            "validation: expected None with oracles and estimators, whose answers are not numbers "
            "that are compared with thresholds"
        )
    hold = held_share(validation, rng)
    if hold is None:
        settings, none = (
            {"validation": GIVEN, "n_iter_no_change": n_iter_no_change},
            np.empty(0, dtype=np.intp),
        )
        data = _given(validation, problem, holes)
        problem = replace(problem, seen=merged(problem.seen, digest_of_rows(data[0])))
        return ValidationRows(problem, none, *data, n_iter_no_change, settings)
    if problem.held is None:
        problem = problem.hold_out(hold)
    held = problem.held
    assert held is not None
    classes = problem.classes
    y = held.y if classes is None else _of_two(classes, held.y)
    settings = {"validation": hold.share, "n_iter_no_change": n_iter_no_change}
    arrays = held.rows, held.values, y, held.weight
    return ValidationRows(problem, *arrays, n_iter_no_change, settings, held.elsewhere)


def _given(validation: Any, problem: Problem, holes: bool) -> tuple[Array, Array, FloatArray]:
    """Return X, y and the weights of validation data."""
    if isinstance(validation, RowSource):
        X, *more = validation.gather()
        check_values(X, "to validate with")
        validation = values_of(X), *more
    if len(validation) not in (2, 3):
        raise ValueError(
            "validation: expected (X, y), (X, y, sample_weight) or a share of the rows, got "
            f"{len(validation)} items"
        )
    X, y, sample_weight = (*validation, None)[:3]
    try:
        features = match_names(problem.names, problem.n_features, X, problem.table)
        n, classes = features.n_rows, problem.classes
        check_has_rows(n)
        check_finite(features, holes)
        soft = None if classes is None else soft_validation(y, classes)
        if soft is not None:
            soft.check_rows(n)
            shares = soft.expanded(as_weights(sample_weight, n))
            rows = np.arange(n) if shares.entries is None else shares.entries.rows
            weight = shares.weights
            codes = _of_two(soft.classes, shares.label)
            return features.values[rows], codes, _ones(weight, len(rows))
        weight = as_weights(sample_weight, n)
        if classes is None:
            codes = as_targets(y, n)
        elif len(classes) > 2:
            codes = class_codes(classes, y, n)
        else:
            codes = is_second(classes, y, n)
    except (TypeError, ValueError) as error:
        raise type(error)(f"validation: {error}") from None
    return features.values, codes, _ones(weight, n)


def _of_two(classes: Array, label: Array) -> Array:
    """Return numbers of labels, of two whether it is the second."""
    return label if len(classes) > 2 else label == 1


def _ones(weight: FloatArray | None, n: int) -> FloatArray:
    """Return weights; None are n ones."""
    return np.ones(n) if weight is None else weight


# Rows that are watched while a graph grows: they are kept by the open exit at which they are, so
# that a node costs no more than the rows that arrive at it.


class EarlyStoppingRows(Protocol):
    """Rows by whose predictions growth ends, wherever they are.

    Attributes
    ----------
    total, wrong : int
        Weight of all rows in fixed point, so that equal errors are equal numbers, and of those that
        are predicted wrongly without nodes.
    """

    total: int
    wrong: int

    def taken(self, records: Sequence[StepRecord]) -> Sequence[int]:
        """Take further nodes; returns the weight of the wrong rows after each.

        There are fewer if a row comes to a node of which it is not yet known where missing values
        go.
        """

    def stages(self, model: DecisionGraph) -> Iterable[int]:
        """Return the weight of the wrong rows at each stage of a model."""

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of the wrong rows if all have one decision value, or J."""

    def close(self) -> None:
        """Let go of the rows."""


class WatchedRows:
    """`EarlyStoppingRows` rows that are here.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Their values.
    value : callable
        Returns what a node compares with its threshold: (number, rows) to their values.
    label : ndarray, shape (n,)
        Whether they have the second label, or the number of the label.
    weight : ndarray of int64, shape (n,)
        Their weights in fixed point.
    n_labels : int
        Number of labels.
    has_sides : bool
        Whether what nodes compare can be missing.
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
        """Take further nodes, see `EarlyStoppingRows`."""
        wrong_weights = []
        for record in records:
            rows = [self._at.pop(exit_) for exit_ in record.parents]
            at_node = np.concatenate(rows) if rows else np.arange(len(self._score))
            # In float64, in which thresholds are compared wherever a model is evaluated.
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
        """Return which rows take exit 1 of a node that reads this; None if that is not known."""
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
        """Yield the weight of the wrong rows at each stage of a model."""
        if len(self._X):
            for score in staged_decision_function(model, Features(self._X, None, model.table)):
                yield int(self._weight[_said(score) != self._label].sum())

    def wrong_of(self, score: FloatArray) -> int:
        """Return the weight of the wrong rows if all have one decision value, or J."""
        predicted = _said(np.broadcast_to(score, self._score.shape))
        return int(self._weight[self._label != predicted].sum())

    def _mass_wrong(self, rows: NDArray[np.intp]) -> int:
        wrong = _said(self._score[rows]) != self._label[rows]
        return int(self._weight[rows[wrong]].sum())

    def close(self) -> None:
        """Let go of nothing."""


def _said(score: FloatArray) -> Array:
    """Return whether decision values predict the second label; of several the label predicted."""
    return np.asarray(score > 0) if score.ndim == 1 else score.argmax(axis=1)


def values_read(data: TrainingData, X: Array) -> Value:
    """Return what tells what nodes trained on `data` compare with thresholds, for other rows."""
    inputs = data.inputs
    if inputs is not None:
        X = in_sums(X, data.problem.table)
    if isinstance(inputs, GrownInputs):
        # There are none yet.
        return lambda number, rows: inputs.value(number, X, rows.astype(np.int32))
    values = X if inputs is None else inputs.values(X)
    return lambda number, rows: values[rows, number]


def watched_rows(data: TrainingData, rows: ValidationRows) -> WatchedRows:
    """Return validation rows that are here, as growth on `data` watches them."""
    X = rows.problem.values(rows.drawn) if rows.X is None else rows.X
    weight, classes = to_fixed_point(rows.weight)[1], rows.problem.classes
    n_labels = 0 if classes is None else len(classes)
    has_sides = data.inputs is None
    return WatchedRows(X, values_read(data, X), rows.y, weight, n_labels, has_sides=has_sides)
