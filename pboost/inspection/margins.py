"""Margins: how far on the right side of 0 decision values lie, and what bounds them.

Two scales are in use, and their numbers differ for the same model. "half" is tanh(y H / 2), that of
the source and of its Theorem 1. "probability" is tanh(y H): y times the difference of the class
probabilities of `predict_proba`, as H is half the log odds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.features import check_has_rows
from pboost.data.targets import as_weights
from pboost.models.base import Model, TwoClassModel
from pboost.models.graph import DecisionGraph
from pboost.models.linear import HypothesisSum, LinearModel
from pboost.models.new_rows import as_two_class, is_second_label
from pboost.models.nodes import largest_score
from pboost.models.predict import certificate, decision_function
from pboost.values import FloatArray, as_array, check_choice, shown

__all__ = [
    "margin_bound",
    "margin_error",
    "margins",
    "normalised_margins",
]

#: Factor of H inside tanh.
SCALES = {"half": 0.5, "probability": 1.0}


def margins(model: Model, X: Any, y: ArrayLike, *, scale: str = "half") -> FloatArray:
    """Return the margin of each row, ``tanh(y H / 2)``.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or HypothesisSum
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Labels, of the values in ``model.labels``.
    scale : {"half", "probability"}
        "half": ``tanh(y H / 2)``. "probability": ``tanh(y H)``, which is
        ``y (2 p - 1)`` with p the probability of the second label.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [-1, 1], positive where the model is right.

    Raises
    ------
    ValueError
        If y holds other labels than the model.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), equation 7.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 1]
    >>> model = pb.fit_boosted_tree(X, y, nodes=1, smoothing=0.1)
    >>> pb.margins(model, X, y).round(2).tolist()
    [0.3, 0.49, 0.49, 0.49]
    """
    model, factor = as_two_class(model), scale_factor(scale)
    score = decision_function(model, X)
    signed = np.where(is_second_label(model, y, len(score)), score, -score)
    return np.asarray(np.tanh(factor * signed))


def margin_error(
    model: Model,
    X: Any,
    y: ArrayLike,
    theta: ArrayLike,
    *,
    scale: str = "half",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the share of rows whose margin is at most theta.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or HypothesisSum
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Labels, of the values in ``model.labels``.
    theta : float or array_like
        One number or several.
    scale : {"half", "probability"}
        See `margins`.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float, or ndarray of float64 of the shape of `theta`
        At ``theta=0`` the training error, rows of decision value 0 counted as errors.

    Raises
    ------
    ValueError
        If theta is NaN, or X has no rows, or y holds other labels than the model.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), equation 8.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 1]
    >>> model = pb.fit_boosted_tree(X, y, nodes=1, smoothing=0.1)
    >>> pb.margin_error(model, X, y, 0.4)
    0.25
    >>> pb.margin_error(model, X, y, [0.0, 0.9]).tolist()
    [0.0, 1.0]
    """
    at = as_thetas(theta)
    found = margins(model, X, y, scale=scale)
    check_has_rows(len(found))
    share = share_below(found, as_weights(sample_weight, len(found)), at)
    return share if share.ndim else float(share)


def margin_bound(
    model: Model,
    X: Any,
    y: ArrayLike,
    theta: ArrayLike,
    *,
    scale: str = "half",
    sample_weight: ArrayLike | None = None,
) -> Any:
    """Return the bound of Theorem 1 on the margin error.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or HypothesisSum
        A fitted model; its predictions must be those that the certificate is of, so its answers
        exact.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Labels, of the values in ``model.labels``.
    theta : float or array_like
        In (-1, 1), one number or several.
    scale : {"half", "probability"}
        See `margins`.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float, or ndarray of float64 of the shape of `theta`
        ``(1 + theta) / (1 - theta) * C``, on the scale "probability" with the square root of the
        factor. C is the model's certificate on these rows.

    Raises
    ------
    ValueError
        If theta is not in (-1, 1), the answers of the model are uncertain, or y holds other labels
        than the model.

    Notes
    -----
    The source has, in place of C, the sum over the paths p of ``w(S_p) prod(sqrt(1 - mu_t**2))``.
    That is C where hypotheses answer ± the same number, or constants, as in trees and chains with
    symmetric votes, and more than C otherwise; `pboost.generic.GenericGreedy.bound` is that sum.
    The bound holds with C for any votes and any rows.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), Theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_boosted_tree(X, y, nodes=1)
    >>> bool(pb.margin_error(model, X, y, 0.1) <= pb.margin_bound(model, X, y, 0.1))
    True
    """
    at = as_thetas(theta)
    if not (np.abs(at) < 1).all():
        raise ValueError(f"theta: expected numbers in (-1, 1), got {shown(theta)}")
    if isinstance(model, DecisionGraph) and model.certificate_note:
        raise ValueError(
            "model: expected exact answers; the certificate of this one " + model.certificate_note
        )
    factor = 0.5 / scale_factor(scale)
    found = certificate(model, X, y, sample_weight=sample_weight) * ((1 + at) / (1 - at)) ** factor
    return found if np.ndim(found) else float(found)


def normalised_margins(model: Model, X: Any, y: ArrayLike) -> FloatArray:
    """Return ``y H`` divided by the largest decision value that the votes allow.

    Parameters
    ----------
    model : DecisionGraph, LinearModel or HypothesisSum
        A fitted model, not a HypothesisSum whose hypotheses have no bound.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    y : array_like of shape (n,)
        Labels, of the values in ``model.labels``.

    Returns
    -------
    ndarray of float64, shape (n,)
        For a chain ``y sum(alpha_t h_t) / sum(abs(alpha_t))`` with ``alpha_t`` the larger absolute
        vote of node t, in [-1, 1]; in a graph the sum is that of the path on which it is largest,
        so that margins of different rows have one unit. For a linear model answers are in
        [-1, 1] on the training rows; others may go beyond.

    Raises
    ------
    ValueError
        If the model has no votes, or hypotheses of unknown bound; if y holds other labels than
        the model.

    References
    ----------
    .. [1] R. E. Schapire, Y. Freund, P. Bartlett and W. S. Lee, "Boosting the margin: a new
       explanation for the effectiveness of voting methods", Ann. Statist. 26 (1998).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> model = pb.fit_adaboost(X, y, rounds=3, votes="symmetric", smoothing=0)
    >>> pb.normalised_margins(model, X, y).round(2).tolist()
    [0.32, 0.21, 0.46, 0.32]
    """
    model = as_two_class(model)
    score = decision_function(model, X)
    signed = np.where(is_second_label(model, y, len(score)), score, -score)
    largest = _largest_score(model)
    if not largest > 0:
        raise ValueError("model: expected votes, got a model without any")
    return np.asarray(signed / largest)


def as_thetas(theta: Any, name: str = "theta") -> FloatArray:
    """Return margins to look at as numbers, checked."""
    at = as_array(name, theta)
    if at.dtype.kind not in "iuf" or np.isnan(at).any() or at.ndim > 1:
        raise ValueError(f"{name}: expected a number or a list of numbers, got {shown(theta)}")
    return at.astype(np.float64)


def scale_factor(scale: Any) -> float:
    """Return what H is multiplied by inside tanh."""
    return SCALES[check_choice("scale", scale, tuple(SCALES))]


def share_below(margin: FloatArray, weight: FloatArray | None, at: FloatArray) -> FloatArray:
    """Return the weighted share of margins that are at most each of `at`."""
    order = np.argsort(margin, kind="stable")
    weight = np.ones(len(margin)) if weight is None else weight / weight.max()
    mass = np.concatenate([[0.0], np.cumsum(weight[order])])
    found: FloatArray = mass[np.searchsorted(margin[order], at, side="right")] / mass[-1]
    return found


def _largest_score(model: TwoClassModel) -> float:
    """Return the sum of the largest absolute votes on the path where it is largest."""
    if isinstance(model, LinearModel):
        return float(np.abs(model.step).sum()) + abs(model.bias)
    if isinstance(model, HypothesisSum):
        h_max = model.settings.get("weak", {}).get("h_max")
        if h_max is None:
            raise ValueError("model: expected hypotheses of known bound; give h_max in training")
        return float(np.abs(model.alpha).sum()) * h_max + abs(model.bias)
    assert isinstance(model, DecisionGraph)
    return largest_score(model)
