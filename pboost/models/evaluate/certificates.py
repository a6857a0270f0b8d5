"""The certificate of a model: what it is, and what it is on other rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.columns.columns import BinnedColumns, values_of
from pboost.data.read.check_xy import as_weights, check_has_rows, class_codes
from pboost.data.row_source import RowSource, rows_of_fit
from pboost.data.targets import SoftLabels, labels_of_rows, shares_of
from pboost.data.training import check_values
from pboost.models.base import Model, Sigma, TwoClassModel, decision_function
from pboost.models.evaluate.graph_walk import expectation, refuse_oracles
from pboost.models.evaluate.new_rows import (
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
    """Return the model's bound on its training error, or recompute it from data.

    Of J > 2 labels it bounds the Hamming loss, the share of pairs of a row and a label of which the
    sign of the label's decision value is wrong; J / 2 times it bounds the training error.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.
    X : array_like of shape (n, d), or data frame, optional
        With `y` or `y_proba`: recompute the certificate on these data. On the training data, with
        their weights, it equals the stored one.
    y : array_like of shape (n,), optional
        Labels, of the values in ``model.classes``.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probabilities of ``model.classes`` in each row, in their order, or by
        the names of the columns of a data frame; one dimension: that of the second.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        With `X`: standard deviations of these rows, see `decision_function`.

    Returns
    -------
    float
        The weighted mean of exp(-H y), with y as -1 or +1, under the answers assumed in training;
        of J > 2 labels its mean over the labels, y being +1 for the row's own; with `y_proba` that
        of its expectation. With exact answers it is, of two labels, at least the weighted share of
        rows on which the model errs, each with the probability of the labels that it does not
        predict; else it bounds the expected error of the model that answers at random as assumed,
        not that of the hard route.

    Raises
    ------
    ValueError
        If only one of X and y is given, or X has no rows, or y holds other labels than the model,
        or `sigma` is given for a model that is not gaussian, or missing where the model knows
        none; or if answers were drawn in training (`pboost.observation.sampled`,
        `pboost.weak.oracle`).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=1)
    >>> bool(abs(pb.certificate(model) - pb.certificate(model, X, y)) < 1e-12)
    True
    """
    model = as_two_class(model)
    if X is None and y is None and y_proba is None:
        for name, value in (("sample_weight", sample_weight), ("sigma", sigma)):
            if value is not None:
                raise ValueError(f"{name}: given without X and y")
        return float(model.record.certificate[-1])
    if isinstance(X, RowSource):
        rows_of_fit(X, y, {"y_proba": y_proba, "sample_weight": sample_weight})
        check_values(X.bins)
        parts = X.apply(_losses_of_part, model, sigma)
        weighed = [weight for _, weight in parts if weight is not None]
        all_weights = np.concatenate(weighed) if weighed else None
        return _mean(np.concatenate([losses for losses, _ in parts]), all_weights)
    if X is None or (y is None and y_proba is None):
        raise ValueError("certificate: X and y must be given together")
    truth = truth_for(model, y, y_proba)
    if model.is_estimated:
        raise ValueError(
            "model: its certificate is an estimate from answers drawn in training, which cannot "
            "be computed anew"
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
    # Scaled, since the sum of the weights need not be a finite number.
    importance = None if weights is None else weights / weights.max()
    if importance is not None and not np.isfinite(loss).all():
        loss, importance = loss[importance > 0], importance[importance > 0]
    return float(np.average(loss, weights=importance))


def truth_for(
    model: TwoClassModel, y: ArrayLike | None, y_proba: ArrayLike | None
) -> ArrayLike | SoftLabels:
    """Return what a model is compared with: `y`, or `SoftLabels` in its place."""
    if y_proba is None or y is not None:
        return labels_of_rows(y, y_proba)
    return shares_of(y_proba, model.classes)


def _shares(model: TwoClassModel, truth: ArrayLike | SoftLabels, n: int) -> FloatArray:
    """Return the probabilities (n, J) of the labels of rows, 1 for a label that is known."""
    if isinstance(truth, SoftLabels):
        truth.check_rows(n)
        return truth.share
    return np.eye(len(model.classes))[class_codes(model.classes, truth, n)]


def _losses(model: TwoClassModel, X: TableLike, share: FloatArray, sigma: Sigma) -> FloatArray:
    """Return the expectation of exp(-H y), of several values the mean over the labels of these.

    For rows whose labels have these probabilities (n, J).
    """
    if not model.is_exact:
        graph, total = as_graph(model), np.zeros(len(share))
        if (share.max(axis=1, initial=0.0) == 1).all():
            return expectation(graph, X, share.argmax(axis=1), sigma)[1]
        for k, of_label in enumerate(share.T):
            rows = np.full(len(share), k)
            total += _times(of_label, expectation(graph, X, rows, sigma)[1])
        return total
    match_sigma(model, X, sigma)  # raises if one is given
    score = decision_function(model, X)
    values = np.column_stack([-score, score]) if score.ndim == 1 else score
    with np.errstate(over="ignore"):  # an infinite one is right
        for_it, against = np.exp(-values), np.exp(values)
    loss = _times(share, for_it)
    if score.ndim == 1:
        return loss.sum(axis=1)
    return (loss + _times(1 - share, against)).mean(axis=1)


def _times(share: FloatArray, loss: FloatArray) -> FloatArray:
    """Return the product, which is 0 where a share is 0 and the loss infinite."""
    product: FloatArray = np.multiply(share, loss, out=np.zeros_like(share), where=share > 0)
    return product
