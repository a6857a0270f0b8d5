"""Rows that growth does not see, given or held out, which say how large a model is best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.columns import values_of
from pboost.data.read.check_xy import (
    as_targets,
    as_weights,
    check_finite,
    check_has_rows,
    class_codes,
)
from pboost.data.read.convert import Rows
from pboost.data.row_digest import digest_of_rows, merged
from pboost.data.row_source import RowSource
from pboost.data.splits import HoldOut
from pboost.data.targets import soft_validation
from pboost.data.training import Problem, check_values
from pboost.models.evaluate.new_rows import is_second, match_names
from pboost.values import Array, FloatArray, Seed, as_generator, check_integer, check_number, shown

#: Nodes without improvement after which growth ends, where no number is given.
PATIENCE = 50
#: The setting `validation` of fits to which the rows were given.
GIVEN = "given"


@dataclass(frozen=True, slots=True, eq=False)
class ValidationRows:
    """The rows that the options `validation` and `patience` of one fit mean.

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
    patience : int
        Nodes or trees without improvement after which growth ends.
    settings : dict
        The options, for the model's record of how it was made.
    """

    problem: Problem
    drawn: NDArray[np.intp]
    X: Array | None
    y: Array
    weight: FloatArray
    patience: int
    settings: Mapping[str, Any]


def held_share(validation: object, rng: Seed, keeps_levels: bool = False) -> HoldOut | None:
    """Return which rows are to be held out before X is read; None without a share of them."""
    if validation is None or isinstance(validation, tuple | list | RowSource):
        return None
    share = check_number("validation", validation, least=0.0, most=0.5, open_least=True)
    return HoldOut(share, as_generator(rng), keeps_levels)


def validation_rows(
    validation: object, patience: object, problem: Problem, rng: Seed, *, holes: bool = True
) -> ValidationRows | None:
    """Return the rows that `validation` means: data, or a share to hold out; None without.

    A problem whose rows are held out already, see `held_share`, stays as it is. `holes`: whether
    values may be missing.
    """
    if validation is None:
        if patience is not None:
            raise ValueError(f"patience: expected None without validation, got {shown(patience)}")
        return None
    patience = PATIENCE if patience is None else check_integer("patience", patience, least=1)
    if isinstance(problem.columns, Rows):
        raise NotImplementedError(
            "validation: expected None with oracles and estimators, whose answers are not numbers "
            "that are compared with thresholds"
        )
    hold = held_share(validation, rng)
    if hold is None:
        settings, none = {"validation": GIVEN, "patience": patience}, np.empty(0, dtype=np.intp)
        given = _given(validation, problem, holes)
        problem = replace(problem, seen=merged(problem.seen, digest_of_rows(given[0])))
        return ValidationRows(problem, none, *given, patience, settings)
    if problem.held is None:
        problem = problem.hold_out(hold)
    held = problem.held
    assert held is not None
    labels = problem.labels
    y = held.y if labels is None else _of_two(labels, held.y)
    settings = {"validation": hold.share, "patience": patience}
    return ValidationRows(problem, held.rows, held.values, y, held.weight, patience, settings)


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
        n, labels = features.n_rows, problem.labels
        check_has_rows(n)
        check_finite(features, holes)
        soft = None if labels is None else soft_validation(y, labels)
        if soft is not None:
            soft.check_rows(n)
            shares = soft.expanded(as_weights(sample_weight, n))
            rows = np.arange(n) if shares.entries is None else shares.entries.rows
            weight = shares.weights
            found = _of_two(soft.labels, shares.label)
            return features.values[rows], found, _ones(weight, len(rows))
        weight = as_weights(sample_weight, n)
        if labels is None:
            found = as_targets(y, n)
        elif len(labels) > 2:
            found = class_codes(labels, y, n)
        else:
            found = is_second(labels, y, n)
    except (TypeError, ValueError) as error:
        raise type(error)(f"validation: {error}") from None
    return features.values, found, _ones(weight, n)


def _of_two(labels: Array, label: Array) -> Array:
    """Return numbers of labels, of two whether it is the second."""
    return label if len(labels) > 2 else label == 1


def _ones(weight: FloatArray | None, n: int) -> FloatArray:
    """Return weights; None are n ones."""
    return np.ones(n) if weight is None else weight
