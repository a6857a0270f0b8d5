"""Prediction of single rows, given as dictionaries, lists, tuples or arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from pboost.data.read.convert import Features
from pboost.data.read.table import Table, listed
from pboost.models.base import Model, check_model
from pboost.models.evaluate.match_input import reads_columns
from pboost.values import Array, check_choice, shown

RowMethod: TypeAlias = Literal["predict_proba", "predict", "decision_function"]
MissingKeys: TypeAlias = Literal["error", "missing"]
ExtraKeys: TypeAlias = Literal["error", "ignore"]
#: Types of values that convert to float64 as in a data frame; None is a missing value.
_NUMBERS = {float, int, bool, type(None), np.float64}
#: float64 represents all integers up to this one. Larger integers are read by the general route.
_LARGEST = 2**53
#: The types of a value that can be looked up among categories, by the kind of the categories.
_TYPES: dict[str, frozenset[type]] = {
    "U": frozenset({str}),
    "f": frozenset({float, int}),
    "b": frozenset({bool}),
}


class _Categories(NamedTuple):
    """The category numbers of a feature: number by value, and the number of unknown categories."""

    place: int
    types: frozenset[type]
    number: dict[Any, float]
    unknown: float


class RowPredictor:
    """Prediction of single rows; see `row_predictor`. Has no state that calls change."""

    def __init__(
        self, model: Model, method: RowMethod, missing_keys: MissingKeys, extra_keys: ExtraKeys
    ) -> None:
        self._options = model, method, missing_keys, extra_keys
        self._predict: Callable[[Any], Any] = getattr(model, method)
        self._names, self._n_features = model.feature_names, model.n_features
        self._table = table = model.row_table
        self._reads_columns = reads_columns(model)
        self._categories = [] if table is None else _categories_of(table)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowPredictor, self._options

    def __repr__(self) -> str:
        model, method, _, _ = self._options
        return f"<row predictor: {method} of {model!r}>"

    def __call__(self, row: Mapping[str, Any] | Sequence[Any] | Array) -> Any:
        """Return the prediction for one row.

        Parameters
        ----------
        row : mapping, list, tuple, or ndarray of shape (d,)
            The features by name, or in the order of training.

        Returns
        -------
        ndarray of shape (J,), or scalar
            The first row of the result of the public function.
        """
        if type(row) is dict or isinstance(row, Mapping):
            by_name: list[Any] = self._by_name(row)
            rows = self._encoded(by_name)
            return self._predict(self._frame(by_name) if rows is None else rows)[0]
        if not self._reads_columns:  # a row may be any object
            return self._predict(row[None] if isinstance(row, np.ndarray) else [row])[0]
        if isinstance(row, np.ndarray):
            self._check_length(row.shape, row.shape == (self._n_features,))
            is_read = type(row) is np.ndarray and row.dtype == np.float64 and not self._categories
            return self._predict(self._features(row[None]) if is_read else row[None])[0]
        if not isinstance(row, list | tuple):
            raise TypeError(
                f"row: expected a dict, list, tuple or one-dimensional array, got {shown(row)}; "
                "for a data frame call the function of the same name, such as pb.predict"
            )
        self._check_length((len(row),), len(row) == self._n_features)
        rows = self._encoded(row)
        return self._predict([row] if rows is None else rows)[0]

    def _check_length(self, shape: tuple[int, ...], is_right: bool) -> None:
        if not is_right:
            raise ValueError(
                f"row: expected {self._n_features} values in one dimension, got shape {shape}"
            )

    def _by_name(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the values of a mapping in the order of training."""
        names, (_, _, missing_keys, extra_keys) = self._names, self._options
        if names is None:
            raise ValueError(
                "row: expected a list, tuple or array, because the model has no feature names; fit "
                "it to a data frame to predict dicts"
            )
        if type(row) is dict:  # other mappings may create keys when they are read
            try:
                values = [row[name] for name in names]
                if len(row) == len(names):
                    return values
            except KeyError:
                pass
        values_by_name = {str(key): value for key, value in row.items()}
        if len(values_by_name) < len(row):
            raise ValueError("row: expected keys with distinct names")
        missing = [name for name in names if name not in values_by_name]
        if missing and missing_keys == "error":
            raise ValueError(
                f"row: expected all features, got no {listed(missing, 'features')}; add the keys, "
                'or pass missing_keys="missing" to treat their values as missing'
            )
        extra = sorted(values_by_name.keys() - set(names))
        if extra and extra_keys == "error":
            raise ValueError(
                f"row: expected the features of training, got the keys {listed(extra, 'keys')}; "
                'remove the keys, or pass extra_keys="ignore"'
            )
        return [values_by_name.get(name) for name in names]

    def _encoded(self, row: Sequence[Any]) -> Features | None:
        """Return the values of a row as features; None if the general route must read them."""
        if not self._reads_columns:
            return None
        values = list(row)
        for place, types, number, unknown in self._categories:
            value = values[place]
            if type(value) in types:
                code = number.get(value)
                if code is None and not _is_plain(value):
                    return None
                values[place] = unknown if code is None else code
            elif value is not None:
                return None
        kinds = set(map(type, values))
        if not kinds <= _NUMBERS:
            return None
        if int in kinds and any(type(v) is int and not -_LARGEST <= v <= _LARGEST for v in values):
            return None
        return self._features(np.array([values], dtype=np.float64))

    def _features(self, values: Array) -> Features:
        return Features(values, self._names, self._table)

    def _frame(self, values: list[Any]) -> Any:
        """Return the values of a mapping as rows that the model can read."""
        if self._reads_columns:
            rows = np.empty((1, len(values)), dtype=object)
            rows[0] = values
            return rows
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ImportError(
                "row: a dict requires pandas, because the weak learner reads data frames; install "
                "it, or pass a list"
            ) from None
        return pandas.DataFrame(dict(zip(self._names or (), ([v] for v in values), strict=True)))


def row_predictor(
    model: Model,
    method: RowMethod = "predict_proba",
    *,
    missing_keys: MissingKeys = "error",
    extra_keys: ExtraKeys = "error",
) -> RowPredictor:
    """Return a function that predicts single rows with low latency.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    method : {"predict_proba", "predict", "decision_function"}
        The function to evaluate.
    missing_keys : {"error", "missing"}
        If a dict has no key for a feature: raise an error, or treat the value as missing.
    extra_keys : {"error", "ignore"}
        If a dict has keys that are not features: raise an error, or ignore them.

    Returns
    -------
    callable
        A function of one row, which is a dict (or another mapping) of values by feature name, or
        a list, tuple or one-dimensional array in the order of training. Categories are given by
        value; None and NaN are missing values. The result is bit-identical to the first row of
        the result of the public function for a data frame or matrix with this row: an array of
        shape (J,) for "predict_proba", a NumPy scalar for "predict". The function can be pickled,
        and several threads can call it at the same time.

    Raises
    ------
    TypeError
        If `method` is "predict_proba" and the model predicts numbers.

    Notes
    -----
    The function raises ValueError for a row with a wrong number of values, wrong keys or values
    that the public function would reject. Types other than float, int, bool, str and None, such
    as dates, are converted as in a data frame, which is slower.

    Examples
    --------
    >>> import pandas as pd
    >>> import pboost as pb
    >>> X = pd.DataFrame({"amount": [10.0, 20.0, 30.0, 40.0], "kind": ["a", "a", "b", "b"]})
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], max_nodes=1)
    >>> predict = pb.row_predictor(model, "predict", extra_keys="ignore")
    >>> str(predict({"kind": "b", "amount": 35, "id": 17}))
    'yes'
    >>> str(predict([15.0, "a"]))
    'no'
    """
    check_model(model)
    check_choice("method", method, get_args(RowMethod))
    check_choice("missing_keys", missing_keys, get_args(MissingKeys))
    check_choice("extra_keys", extra_keys, get_args(ExtraKeys))
    if method == "predict_proba" and model.classes is None:
        raise TypeError(
            'method: expected "predict" for regression, got "predict_proba"; a regression model '
            "has no probabilities"
        )
    return RowPredictor(model, method, missing_keys, extra_keys)


def _categories_of(table: Table) -> list[_Categories]:
    """Return the category numbers of all categorical features."""
    every = []
    for j in table.categorical:
        values = table.values_of(j)
        assert values is not None
        numbers = dict(zip(values.tolist(), table.numbers(j, values).tolist(), strict=True))
        every.append(_Categories(j, _TYPES[values.dtype.kind], numbers, table.unknown_number(j)))
    return every


def _is_plain(value: Any) -> bool:
    """Return whether an unknown category can be replaced without the checks for data frames."""
    return "\0" not in value if isinstance(value, str) else abs(value) <= _LARGEST
