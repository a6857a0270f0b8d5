"""Functions of a model: predictions, decision values, evaluation cost, certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.features import check_has_rows
from pboost.data.held import held
from pboost.data.targets import as_weights
from pboost.models.base import Model, check_model
from pboost.models.new_rows import (
    as_graph,
    as_two_class,
    count_rows,
    is_second_label,
    match_sigma,
    table_for,
)
from pboost.models.node_walk import refuse_oracles
from pboost.models.soft_walk import expectation
from pboost.values import FloatArray, Seed, check_choice, check_integer

UNITS = ("nodes", "features", "stumps")
ROUTES = ("hard", "expected", "sample")


def decision_function(
    model: Model,
    X: Any,
    route: str = "hard",
    *,
    rng: Seed = None,
    draws: int = 1,
    sigma: float | ArrayLike | None = None,
) -> FloatArray:
    """Return the decision value of each row: the sum of the votes of the exits it takes.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        Finite numbers. A frame whose columns are named as in training, in any order, is put in
        the training order.
    route : {"hard", "expected", "sample"}
        "hard": each row takes the exits on whose side it lies. "expected": the expectation under
        the answers assumed in training. "sample": the mean over random walks with those answers;
        oracles are asked anew in each.
    rng : None, int or numpy.random.Generator
        For ``route="sample"``, the only one that draws; the same seed gives the same answers for
        any number of threads.
    draws : int
        For ``route="sample"``: walks per row; other routes take 1 only.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        For gaussian models and routes other than "hard": standard deviations of the errors of
        these rows, by the columns of X as given. Default: those of the training data, unless
        there each cell had its own.

    Returns
    -------
    ndarray of float64, shape (n,)
        Half log odds of ``model.labels[1]`` under the exponential loss; the second label is
        predicted where positive. (n, J) for models of `fit_one_vs_rest` and `fit_samme`. Other
        models say in their method of this name what it is.

    Raises
    ------
    ValueError
        If X has other columns than the training data, or a value that is not finite; or if the
        route is not hard and the model's answers depend on the class of a row; or if `sigma` is
        given where nothing depends on it, or missing where the model knows none; or if the route
        is "expected" and the model asks oracles, of which only answers are known.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], nodes=1)
    >>> (pb.decision_function(model, X) > 0).tolist()
    [False, False, True, True]
    """
    is_plain = type(route) is str and route == "hard" and type(draws) is int and draws == 1
    # At once: for one row the checks take longer.
    if is_plain and sigma is None and isinstance(model, Model):
        return model.decision_function(X)
    check_model(model)
    check_choice("route", route, ROUTES)
    if route == "hard" and sigma is not None:
        raise ValueError('sigma: route="hard" does not depend on it; see route="expected"')
    if check_integer("draws", draws, least=1) > 1 and route != "sample":
        raise ValueError(f'draws: expected 1 with route={route!r}; random walks are route="sample"')
    if route == "hard":
        return model.decision_function(X)
    return model.score_by_route(route, X, rng, draws, sigma)


def predict(model: Model, X: Any) -> NDArray[Any]:
    """Return the predicted label of each row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.

    Returns
    -------
    ndarray, shape (n,)
        ``model.labels[1]`` where the decision value is positive, else ``model.labels[0]``; of
        more classes the first label of largest probability; of a regression the number.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], nodes=1)
    >>> pb.predict(model, [[0.5], [2.5]]).tolist()
    ['no', 'yes']
    """
    check_model(model)
    return model.predict(X)


def predict_proba(model: Model, X: Any) -> FloatArray:
    """Return the probability of each label for each row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.

    Returns
    -------
    ndarray of float64, shape (n, 2), or (n, J) of J classes
        Columns in the order of ``model.labels``; with the decision value H of a graph the second
        is ``1 / (1 + exp(-2 H))``, the population minimiser of the exponential loss. The other
        builders say what it is of their models. That of the label predicted is largest: where
        rounding leaves both 1/2, by one unit in the last place.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 1, 1], nodes=1, smoothing=0.1)
    >>> pb.predict_proba(model, X).round(2).tolist()
    [[0.78, 0.22], [0.11, 0.89], [0.11, 0.89], [0.11, 0.89]]
    """
    check_model(model)
    return model.predict_proba(X)


def staged_decision_function(model: Model, X: Any) -> Iterator[FloatArray]:
    """Yield the decision values of the model at the stages of its growth.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`. It must not change before the last stage has been taken.

    Yields
    ------
    ndarray of float64, shape (n,)
        After each node in the order in which they were opened; the last equals
        `decision_function`. Of a matryoshka collected by sign, only after those nodes at which its
        votes were what they are now, ``model.record.stages``: after each classifier of the
        outermost level, or, grown greedily, wherever no later sub-tree holds an earlier node.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 0, 1], nodes=3)
    >>> [int((values > 0).sum()) for values in pb.staged_decision_function(model, X)]
    [3, 3, 2]
    """
    check_model(model)
    return model.staged_decision_function(X)


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
        yield model.labels_of(score)


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
        yield model.probabilities(score)


def prefix(model: Any, n_nodes: int) -> Any:
    """Return the model with its first nodes only; of a stagewise model its first trees.

    Parameters
    ----------
    model : DecisionGraph or StagewiseModel
        A fitted model.
    n_nodes : int
        Number of nodes to keep, 1 to ``model.n_nodes``. Exits that led to others lead out. Of a
        stagewise model the number of trees, 1 to ``len(model)``.

    Returns
    -------
    DecisionGraph or StagewiseModel
        The model as it was when so many nodes had been opened. Its record is that of these nodes,
        and ``record.stop_reason`` says that it was cut.

    Raises
    ------
    ValueError, TypeError
        If `n_nodes` is not as described, or is none of the stages of a model collected by sign
        (``record.stages``): between them votes were replaced when a tree was finished.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = pb.fit_adaboost(X, [0, 1, 1, 0, 1, 0, 0, 1], rounds=20)
    >>> pb.prefix(model, 5).n_nodes
    5
    """
    check_model(model)
    return model.prefix(n_nodes)


def evaluation_cost(model: Model, X: Any, unit: str = "nodes") -> FloatArray:
    """Return what evaluating each row costs.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    unit : {"nodes", "features", "stumps"}
        Count the weak classifiers evaluated (comparisons), or the distinct features read, or the
        weak classifiers evaluated with the stumps of each separator counted one by one.

    Returns
    -------
    ndarray of float64, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 1, 1], nodes=2)
    >>> pb.evaluation_cost(model, X).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    check_choice("unit", unit, UNITS)
    check_model(model)
    return model.evaluation_cost(X, unit)


def certificate(
    model: Model,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    sigma: float | ArrayLike | None = None,
) -> float:
    """Return the model's bound on its training error, or recompute it from data.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.
    X : array_like of shape (n, d), or data frame, optional
        With `y`: recompute the certificate on these data. On the training data, with their
        weights, it equals the stored one.
    y : array_like of shape (n,), optional
        Labels, of the values in ``model.labels``.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        With `X`: standard deviations of these rows, see `decision_function`.

    Returns
    -------
    float
        The weighted mean of exp(-H y), with y as -1 or +1, under the answers assumed in training.
        With exact answers it is at least the weighted share of rows on which the model errs; else
        it bounds the expected error of the model that answers at random as assumed, not that of
        the hard route.

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
    >>> model = pb.fit_boosted_tree(X, y, nodes=1)
    >>> bool(abs(pb.certificate(model) - pb.certificate(model, X, y)) < 1e-12)
    True
    """
    model = as_two_class(model)
    if X is None and y is None:
        for name, value in (("sample_weight", sample_weight), ("sigma", sigma)):
            if value is not None:
                raise ValueError(f"{name}: given without X and y")
        return float(model.record.certificate[-1])
    if X is None or y is None:
        raise ValueError("certificate: X and y must be given together")
    if model.is_estimated:
        raise ValueError(
            "model: its certificate is an estimate from answers drawn in training, which cannot "
            "be computed anew"
        )
    refuse_oracles(model, "the certificate")
    X = table_for(model, X)
    with held(X):
        n = count_rows(model, X)
        check_has_rows(n)
        weights = as_weights(sample_weight, n)
        second = is_second_label(model, y, n)
        if model.is_exact:
            match_sigma(model, X, sigma)  # raises if one is given
            score = decision_function(model, X)
            with np.errstate(over="ignore"):  # an infinite one is right
                loss = np.exp(np.where(second, -score, score))
        else:
            loss = expectation(as_graph(model), X, second, sigma)[1]
    # Scaled, since the sum of the weights need not be a finite number.
    importance = None if weights is None else weights / weights.max()
    if importance is not None and not np.isfinite(loss).all():
        loss, importance = loss[importance > 0], importance[importance > 0]
    return float(np.average(loss, weights=importance))
