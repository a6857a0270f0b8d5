"""Conversion of X and y for a fitted model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.columns.sparse_columns import SparseFeatures, read_sparse
from pboost.data.node_inputs.functions import Oracles
from pboost.data.node_inputs.imputation import (
    as_sigma,
    check_sigma_shape,
    column_spread,
    known_sigma,
)
from pboost.data.node_inputs.inputs import in_sums, indicators_of
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.check_xy import (
    as_features,
    check_finite,
    class_codes,
    features_as_trained,
    label_array,
)
from pboost.data.read.codes import copied
from pboost.data.read.convert import (
    Features,
    RowTable,
    Trained,
    as_rows,
    as_table,
    column_names,
    is_frame,
    is_series,
    is_sparse,
    pick_columns,
)
from pboost.data.read.table import Table, column_order
from pboost.data.row_source import RowSource
from pboost.models.base import Model, Sigma, TwoClassModel, check_model
from pboost.models.graph_arrays import Graph
from pboost.values import Array, FloatArray, TableLike


def as_graph(model: object, function: str = "") -> Graph:
    """Return `model` if it is a decision graph, else raise an error that names `function`."""
    if not isinstance(model, Graph):
        raise check_model(model).is_no_graph(function)
    return model


def as_two_class(model: object) -> TwoClassModel:
    """Return `model` if it is binary and has a certificate, else raise TypeError."""
    return model if isinstance(model, TwoClassModel) else as_graph(model)


def table_for(model: object, X: TableLike) -> Any:
    """Return X; convert a series to a frame of one row, unless rows may be single values."""
    return as_table(X) if is_series(X) and reads_columns(model, or_rows=True) else X


def reads_columns(model: object, or_rows: bool = False) -> bool:
    """Return whether a model reads columns or, with `or_rows`, rows of several values."""
    if not isinstance(model, Model):
        return False
    members = getattr(model, "models", ())
    if members:
        return all(reads_columns(member, or_rows) for member in members)
    inputs = model.inputs
    return not isinstance(inputs, Oracles) or (or_rows and inputs.row_shape != ())


def match_columns(model: Model, X: TableLike) -> Features:
    """Return X as features in the order of training, with the category codes of the model.

    Missing values are NaN, and so are unknown categories of features without "other".
    """
    table = model.row_table
    # The general case below takes longer than a prediction for one row.
    if (
        type(X) is Features
        and X.table is table
        and X.names is model.feature_names
        and X.n_features == model.n_features
    ):
        return X
    if type(X) is np.ndarray and table is None and X.dtype.kind in "biuf":
        features = as_features(X)
        if features.n_features == model.n_features:
            return features
    return match_names(model.feature_names, model.n_features, X, table)


def finite_columns(model: Model, X: TableLike) -> Features:
    """Call `match_columns`; raise ValueError for infinite or unsupported missing values."""
    features = match_columns(model, X)
    check_finite(features, model.takes_missing)
    return features


def read_rows(model: Model, X: object) -> Any:
    """Convert X once for several functions of a model, if all its parts read columns."""
    if is_sparse(X):
        return X
    X = table_for(model, X)
    return match_columns(model, X) if reads_columns(model) else X


class MemberRows:
    """Rows for the base learners of a model, converted once for all base learners.

    Base learners that do not read columns receive X unchanged. A float matrix is not converted.
    """

    def __init__(self, model: Model, X: object) -> None:
        self._model, self.input_table = model, table_for(model, X)
        is_read = type(self.input_table) is np.ndarray and self.input_table.dtype.kind == "f"
        self._read = self.input_table if is_read else None

    def __call__(self, member: object) -> Any:
        """Return the rows for a base learner."""
        if not reads_columns(member):
            return self.input_table
        if self._read is None:
            self._read = match_columns(self._model, self.input_table)
        return self._read


def columns_to_fit(
    model: Model, X: TableLike | RowSource | SortedColumns | BinnedColumns
) -> Features | RowSource | SortedColumns | BinnedColumns | SparseFeatures:
    """Return X for continued training, as prepared columns or as features of the model."""
    if isinstance(X, RowSource):
        columns_to_fit(model, X.bins)
        return X
    if is_sparse(X) and "min_samples_in_bin" in model.settings:
        min_samples = model.settings["min_samples_in_bin"]
        X = read_sparse(X, None if isinstance(min_samples, str) else min_samples)
        if X.n_features != model.n_features:
            raise ValueError(f"X: expected {model.n_features} columns, got {X.n_features}")
        return X
    if not isinstance(X, SortedColumns | BinnedColumns):
        return match_columns(model, X)
    if X.n_features != model.n_features:
        raise ValueError(f"X: expected {model.n_features} features, got {X.n_features}")
    if None not in (X.names, model.feature_names) and X.names != model.feature_names:
        raise ValueError("X: expected the features in the order of training")
    return X


def match_names(
    names: tuple[str, ...] | None, n_features: int, X: TableLike, table: Table | None = None
) -> Features:
    """Return X as features, with the columns and the order of training."""
    if not isinstance(X, np.ndarray) and is_series(X):
        try:
            return match_names(names, n_features, as_table(X), table)
        except ValueError as error:
            raise ValueError(
                f"{error}; a Series is one row with feature names as index; for a column use "
                "X.to_frame()"
            ) from None
    return features_as_trained(X, Trained(names, n_features, table))


def match_rows(model: Model, X: TableLike) -> RowTable:
    """Return X as rows of any objects, with the features in the order of the model."""
    rows = as_rows(table_for(model, X))
    order = column_order(model.feature_names, rows.names)
    if order is not None:
        rows = as_rows(pick_columns(rows.source, order))
    if rows.n_features != model.n_features:
        raise ValueError(f"X: expected {model.n_features} features, got {rows.n_features}")
    shape = model.inputs.row_shape if isinstance(model.inputs, Oracles) else None
    if shape is not None and rows.row_shape is not None and rows.row_shape != shape:
        raise ValueError(f"X: expected rows of shape {shape}, got {rows.row_shape}")
    return rows


def count_rows(model: Model, X: TableLike) -> int:
    """Return the number of rows of X after checking that the model accepts them."""
    if isinstance(model.inputs, Oracles):
        return match_rows(model, X).n_rows
    return len(match_columns(model, X).values)


def input_values(model: Model, X: TableLike) -> FloatArray:
    """Return the inputs (n, n_inputs) that the nodes of a model compare.

    They are finite, except for NaN if missing values are accepted.
    """
    if isinstance(model.inputs, Oracles):
        return model.inputs.values(match_rows(model, X))
    features = finite_columns(model, X)
    if model.sums_features:
        features = Features(in_sums(features.values, model.table), None)
    if model.inputs is None:
        plain = features.values.dtype == np.float64 and features.values.flags.c_contiguous
        return features.values if plain else copied(features.values, np.float64)
    return model.inputs.values(features.values)


def spread_of(model: Model, X: TableLike, sums_features: bool = True) -> FloatArray:
    """Return the standard deviations of the inputs of a model for rows X.

    With `sums_features` each category has an indicator column.
    """
    values = match_columns(model, X).values
    added = in_sums(values, model.table) if sums_features else values
    return column_spread(added, np.ones(len(added)))


def match_sigma(model: Model, X: TableLike, sigma: Sigma) -> FloatArray:
    """Return the standard deviations of the inputs of nodes for the rows of X.

    `sigma` are standard deviations of features or cells; None uses those of the model. The result
    has shape (1, n_inputs) or (n, n_inputs), or (0, n_inputs) without a gaussian observation model.
    """
    if model.sigma is None:
        if sigma is not None:
            raise ValueError("sigma: expected None for a model that was not fitted with sigma")
        return np.empty((0, model.n_inputs))
    if sigma is None:
        if np.isnan(model.sigma).any():
            raise ValueError(
                "sigma: expected the standard deviations of these rows, because training used one "
                "per cell"
            )
        deviations = model.sigma[None]
    else:
        ordered, d = ordered_sigma(model, X, sigma), model.n_features
        values = partial(_values, model, X)
        deviations = np.atleast_2d(
            known_sigma(ordered, values, model.feature_names, d, model.table)
        )
        if not len(deviations):
            deviations = np.ones((1, d))  # kernels take an empty array for exact values
    if isinstance(model.inputs, Projections):
        levels = indicators_of(model.table)
        if levels is not None:
            deviations = deviations[:, levels.column]
        holes = np.isnan(in_sums(_values(model, X), model.table))
        if holes.any():  # a replaced missing value has no measurement error
            deviations = np.where(holes, 0.0, deviations)
    if model.inputs is not None:
        deviations = model.inputs.projected(deviations)
    return np.ascontiguousarray(deviations)


def _values(model: Model, X: TableLike) -> Array:
    return match_columns(model, X).values


def ordered_sigma(model: Model, X: TableLike, sigma: Sigma) -> FloatArray:
    """Return standard deviations of features or cells in the order of the model."""
    deviations, table = as_sigma(sigma), as_table(X)
    check_sigma_shape(deviations, as_rows(table).n_rows, model.n_features)
    order = column_order(model.feature_names, column_names(table) if is_frame(table) else None)
    return deviations if order is None or not deviations.ndim else deviations[..., order]


def classes_of_labels(model: TwoClassModel, y: ArrayLike, n: int) -> Array:
    """Return class codes; for a single decision value, a mask of the labels of the second class."""
    one_vote = np.ndim(model.bias) == 0
    return is_second(model.classes, y, n) if one_vote else class_codes(model.classes, y, n)


def leads_of(score: FloatArray, truth: Array) -> FloatArray:
    """Return the margin by which decision values favor the true class of each row.

    The margin of a single decision value is the value, or its negative for the first class. With
    several values, the margin is half the difference between the value of the true class and the
    largest other value.
    """
    if score.ndim == 1:
        return np.where(truth, score, -score)
    rows = np.arange(len(score))
    others = score.copy()
    others[rows, truth] = -np.inf
    return 0.5 * score[rows, truth] - 0.5 * others.max(axis=1)


def is_second(values: Array, y: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Return whether each label is the second of the two classes of training."""
    labels = label_array(y)
    if labels.shape != (n,):
        raise ValueError(f"y: expected {n} labels, one per row of X, got shape {labels.shape}")
    second = np.asarray(labels == values[1], dtype=bool)
    if not (second | np.asarray(labels == values[0], dtype=bool)).all():
        class_codes(values, labels, n)  # raises an error
    return second
