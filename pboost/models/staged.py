"""Predictions at the stages of a model's growth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from pboost.models.base import Model, Predictor, one_of_two, two_probabilities
from pboost.models.predict import staged_decision_function
from pboost.values import FloatArray


def staged_predict(model: Model, X: Any) -> Iterator[NDArray[Any]]:
    """Yield the labels that the model predicts at the stages of its growth.

    Parameters
    ----------
    model : DecisionGraph, or another model that is a sum
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`. It must not change before the last stage has been taken.

    Yields
    ------
    ndarray, shape (n,)
        At the stages of `staged_decision_function`; the last equals `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> model = pb.fit_boosted_tree(X, y, nodes=3)
    >>> [int((labels != y).sum()) for labels in pb.staged_predict(model, X)]
    [1, 1, 0]
    """
    for score in staged_decision_function(model, X):
        if isinstance(model, Predictor):
            yield model.labels_of(score)
        else:
            yield one_of_two(model.labels, score)


def staged_predict_proba(model: Model, X: Any) -> Iterator[FloatArray]:
    """Yield the probabilities that the model gives the labels at the stages of its growth.

    Parameters
    ----------
    model : DecisionGraph, or another model that is a sum
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`. It must not change before the last stage has been taken.

    Yields
    ------
    ndarray of float64, shape (n, J)
        At the stages of `staged_decision_function`; the last equals `predict_proba`, of two labels
        of `fit_sbpmt` but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 0, 1])
    >>> model = pb.fit_stagewise(X, y, loss="logistic", steps=3, max_depth=1)
    >>> [round(float(share[3, 1]), 2) for share in pb.staged_predict_proba(model, X)]
    [0.33, 0.43, 0.53]
    """
    for score in staged_decision_function(model, X):
        if isinstance(model, Predictor):
            yield model.probabilities(score)
        else:
            yield two_probabilities(score)
