"""Functions of a model: predictions, decision values, evaluation cost, certificate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost._core import walk
from pboost.data.features import check_has_rows
from pboost.data.held import held
from pboost.data.separators import Separators
from pboost.data.targets import as_weights
from pboost.models.base import Model, Predictor, one_of_two, two_probabilities
from pboost.models.graph import DecisionGraph
from pboost.models.hard_walk import MOST_STEPS, walk_rows
from pboost.models.new_rows import (
    as_graph,
    as_two_class,
    check_model,
    count_rows,
    input_values,
    is_second_label,
    match_sigma,
    table_for,
)
from pboost.models.node_walk import Take, asks_functions, hard_exits, passages, refuse_oracles
from pboost.models.soft_walk import expectation, expected_score, sampled_score
from pboost.threads import Workers
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
    if is_plain and sigma is None and type(model) is DecisionGraph:
        return walk_rows(model, X, False)[0]
    check_model(model)
    check_choice("route", route, ROUTES)
    if route == "hard" and sigma is not None:
        raise ValueError('sigma: route="hard" does not depend on it; see route="expected"')
    if check_integer("draws", draws, least=1) > 1 and route != "sample":
        raise ValueError(f'draws: expected 1 with route={route!r}; random walks are route="sample"')
    if isinstance(model, Predictor):
        model.check_route(route, X, sigma)
        return model.decision_function(X)
    if route == "hard":
        return walk_rows(model, X, False)[0]
    if route == "expected":
        return expected_score(model, X, sigma)
    return sampled_score(model, X, rng, draws, sigma)


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
    if isinstance(model, Predictor):
        return model.predict(X)
    return one_of_two(model.labels, decision_function(model, X))


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
    if isinstance(model, Predictor):
        return model.predict_proba(X)
    return two_probabilities(decision_function(model, X))


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
    if isinstance(model, Predictor):
        return model.staged_decision_function(X)
    return _stages(model, *hard_exits(model, X))


def _stages(model: DecisionGraph, n: int, take: Take) -> Iterator[FloatArray]:
    score = np.full(n, model.bias)
    stages = model.record.stages
    is_stage = np.full(model.n_nodes, stages is None)
    if stages is not None:
        is_stage[stages - 1] = True
    for node, (here, above) in enumerate(passages(model, n, take)):
        score[here] += np.where(above, model.vote[node, 1], model.vote[node, 0])
        if is_stage[node]:
            yield score.copy()


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
    if isinstance(model, Predictor):
        return model.evaluation_cost(X, unit)
    is_separated = isinstance(model.inputs, Separators)
    # No two nodes ask the same function.
    if unit == "nodes" or asks_functions(model) or (unit == "stumps" and not is_separated):
        return walk_rows(model, X, True)[1]
    if unit == "stumps":
        return _stumps(model, *hard_exits(model, X))
    values = input_values(model, X)
    columns = np.arange(model.n_features + 1, dtype=np.int32)
    start, index = (columns, columns) if model.inputs is None else model.inputs.columns_read()
    count = np.empty(len(values))

    def work(first: int, last: int) -> None:
        last_row = np.full(model.n_features, -1, dtype=np.int32)
        walk.count_features(
            values[first:last], model.feature, model.threshold, model.next, start, index, last_row,
            count[first:last],
        )  # fmt: skip

    cells = values.shape[1] + min(model.n_nodes, MOST_STEPS)
    Workers(1).run(work, len(values), cells=cells)
    return count


def _stumps(model: DecisionGraph, n: int, take: Take) -> FloatArray:
    """Return how many stumps the separators on the path of each row have."""
    assert isinstance(model.inputs, Separators)
    size, count = model.inputs.stumps[model.feature], np.zeros(n)
    for node, (here, _) in enumerate(passages(model, n, take)):
        count[here] += size[node]
    return count


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
