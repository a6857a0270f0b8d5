"""The certificate of a model, on its training data or on other rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns, values_of
from pboost.data.read.check_xy import as_weights, check_has_rows, class_codes
from pboost.data.row_source import RowSource, rows_of_fit
from pboost.data.targets import SoftLabels, labels_of_rows, shares_of
from pboost.data.training_data import check_values
from pboost.models.base import Model, Sigma, TwoClassModel, decision_function
from pboost.models.evaluate.graph_walk import expectation, refuse_oracles
from pboost.models.evaluate.match_input import (
    as_graph,
    as_two_class,
    count_rows,
    match_sigma,
    ordered_sigma,
    read_rows,
)
from pboost.values import Array, FloatArray, TableLike


def certificate(
    model: Model,
    X: TableLike | RowSource | None = None,
    y: ArrayLike | None = None,
    *,
    y_proba: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    sigma: float | ArrayLike | None = None,
) -> float:
    """Return the certificate, an upper bound on the training error, or compute it from data.

    With J > 2 classes, the certificate bounds the Hamming loss: the fraction of decision values
    with the wrong sign. J / 2 times the certificate bounds the training error.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.
    X : array_like of shape (n, d), or data frame, optional
        With `y` or `y_proba`: compute the certificate for these data. For the training data and
        their sample weights it equals the stored value.
    y : array_like of shape (n,), optional
        Class labels, from ``model.classes``.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        Instead of `y`: the probabilities of ``model.classes`` for each row, in this order or by
        the column names of a data frame. A one-dimensional array is for the second class.
    sample_weight : array_like of shape (n,), optional
        Sample weights. Default: all are equal.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        With `X`: standard deviations of the measurement errors, see `decision_function`.

    Returns
    -------
    float
        The weighted mean of exp(-H y), with y = -1 or +1, under the observation model of
        training. With J > 2 classes it is also averaged over the classes, with y = +1 for the
        class of the row; with `y_proba` it is the expectation over the classes. If the
        observation model is exact, the binary certificate bounds the weighted error rate of
        `predict`. Otherwise it bounds the expected error under the observation model, not the
        error of the hard route.

    Raises
    ------
    ValueError
        If only one of X and y is passed; if X has no rows; if y contains a class that the model
        does not have; if `sigma` is passed without a gaussian observation model, or is required and
        not passed; or if the certificate was estimated from samples (`pboost.observation.sampled`,
        `pboost.weak.oracle`).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=1)
    >>> round(pb.certificate(model), 4), round(pb.certificate(model, X, y), 4)
    (0.7121, 0.7121)
    """
    model = as_two_class(model)
    if X is None and y is None and y_proba is None:
        for name, value in (("sample_weight", sample_weight), ("sigma", sigma)):
            if value is not None:
                raise ValueError(f"{name}: expected None without X and y")
        return float(model.record.certificate[-1])
    if isinstance(X, RowSource):
        rows_of_fit(X, y, {"y_proba": y_proba, "sample_weight": sample_weight})
        check_values(X.bins)
        parts = X.apply(_losses_of_part, model, sigma)
        weighed = [weight for _, weight in parts if weight is not None]
        all_weights = np.concatenate(weighed) if weighed else None
        return _mean(np.concatenate([losses for losses, _ in parts]), all_weights)
    if X is None or (y is None and y_proba is None):
        raise ValueError("certificate: expected X together with y or y_proba, got one of them")
    truth = truth_for(model, y, y_proba)
    if model.is_estimated:
        raise ValueError(
            "model: cannot compute the certificate for other data, because it is an estimate from "
            "samples drawn in training"
        )
    refuse_oracles(model, "the certificate")
    if sigma is not None and model.sigma is not None:
        sigma = ordered_sigma(model, X, sigma)
    X = read_rows(model, X)
    n = count_rows(model, X)
    check_has_rows(n)
    weights = as_weights(sample_weight, n)
    loss = _losses(model, X, _shares(model, truth, n), sigma)
    return _mean(loss, weights)


def _losses_of_part(
    X: BinnedColumns, y: Array, weights: FloatArray | None, model: TwoClassModel, sigma: Sigma
) -> tuple[FloatArray, FloatArray | None]:
    """Return the losses and the weights of the rows of a partition."""
    share = _shares(model, y, X.n_rows)
    return _losses(model, values_of(X), share, sigma), weights


def _mean(loss: FloatArray, weights: FloatArray | None) -> float:
    # Scale the weights, because their sum can overflow.
    importance = None if weights is None else weights / weights.max()
    if importance is not None and not np.isfinite(loss).all():
        loss, importance = loss[importance > 0], importance[importance > 0]
    return float(np.average(loss, weights=importance))


def truth_for(
    model: TwoClassModel, y: ArrayLike | None, y_proba: ArrayLike | None
) -> ArrayLike | SoftLabels:
    """Return `y`, or `SoftLabels` if probabilities are passed instead."""
    if y_proba is None or y is not None:
        return labels_of_rows(y, y_proba)
    return shares_of(y_proba, model.classes)


def _shares(model: TwoClassModel, truth: ArrayLike | SoftLabels, n: int) -> FloatArray:
    """Return class probabilities (n, J); they are 0 or 1 for known classes."""
    if isinstance(truth, SoftLabels):
        truth.check_rows(n)
        return truth.share
    return np.eye(len(model.classes))[class_codes(model.classes, truth, n)]


def _losses(model: TwoClassModel, X: TableLike, share: FloatArray, sigma: Sigma) -> FloatArray:
    """Return the expected exponential loss of rows with class probabilities (n, J).

    Multiclass losses are averaged over the classes.
    """
    if not model.is_exact:
        graph, total = as_graph(model), np.zeros(len(share))
        if (share.max(axis=1, initial=0.0) == 1).all():
            return expectation(graph, X, share.argmax(axis=1), sigma)[1]
        for k, of_label in enumerate(share.T):
            rows = np.full(len(share), k)
            total += _times(of_label, expectation(graph, X, rows, sigma)[1])
        return total
    match_sigma(model, X, sigma)  # this raises an error if sigma is passed
    score = decision_function(model, X)
    values = np.column_stack([-score, score]) if score.ndim == 1 else score
    with np.errstate(over="ignore"):  # an infinite loss is correct
        for_it, against = np.exp(-values), np.exp(values)
    loss = _times(share, for_it)
    if score.ndim == 1:
        return loss.sum(axis=1)
    return (loss + _times(1 - share, against)).mean(axis=1)


def _times(share: FloatArray, loss: FloatArray) -> FloatArray:
    """Return share times loss; it is 0 if the share is 0, even if the loss is infinite."""
    product: FloatArray = np.multiply(share, loss, out=np.zeros_like(share), where=share > 0)
    return product
