"""Fitting goes on: `continue_fit`, for all models that can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from pboost.boosting.continuation import continue_graph
from pboost.data.row_source import rows_of_fit
from pboost.growth.fit_state import FitState
from pboost.growth.step import Callback
from pboost.models.base import Model, check_model
from pboost.models.forest import Forest
from pboost.models.graph import DecisionGraph
from pboost.models.tree_sum import StagewiseModel
from pboost.observation.answers import Observation
from pboost.trees.continuation import continue_forest, continue_sum
from pboost.values import Progress, Seed, check_callback, with_bar
from pboost.values.options import builder
from pboost.weak.base import Weak

M = TypeVar("M", DecisionGraph, Forest, StagewiseModel)
#: The options of graphs only.
OF_GRAPHS = (
    "rounds",
    "nodes",
    "weak",
    "observation",
    "growth",
    "smoothing",
    "learning_rate",
    "state",
)
#: By which function each kind of model goes on, and with which options; others are for all.
KINDS: Mapping[type, tuple[Callable[..., Any], tuple[str, ...]]] = {
    DecisionGraph: (continue_graph, OF_GRAPHS),
    Forest: (continue_forest, ("members",)),
    StagewiseModel: (continue_sum, ("steps", "validation", "state")),
}


@builder
def continue_fit(
    model: M,
    X: Any,
    y: ArrayLike | None = None,
    *,
    rounds: int | None = None,
    nodes: int | None = None,
    members: int | None = None,
    steps: int | None = None,
    weak: Weak | None = None,
    observation: Observation | None = None,
    growth: str | None = None,
    smoothing: float | None = None,
    learning_rate: float | None = None,
    y_proba: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    validation: tuple[Any, ...] | None = None,
    state: FitState | None = None,
    rng: Seed = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
    progress: Progress = False,
) -> M:
    """Add nodes to a fitted graph, or trees to a fitted forest or stagewise model.

    Parameters
    ----------
    model : DecisionGraph, Forest or StagewiseModel
        A fitted model; it is not changed. Any graph will do.
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features: those of the fit, or other rows with the same columns; of a forest those of the
        fit.
    y : array_like of shape (n,), optional
        Labels, all values of ``model.labels``; of a regression, numbers.
    rounds : int, optional
        Add a chain of at most so many weak classifiers, to which all open exits of a graph lead.
    nodes : int, optional
        Add at most so many weak classifiers, each at one open exit of a graph. Of a graph exactly
        one of `rounds` and `nodes` must be given.
    members : int, optional
        Add so many trees to a forest.
    steps : int, optional
        Add at most so many trees to a stagewise model.
    weak, observation, smoothing, learning_rate : optional
        Of a graph: as the builders take them, for the new nodes; None: those of the model.
    growth : {"largest-bound", "largest-error", "look-ahead", "breadth-first"}, optional
        With `nodes`: which open exit is split next. None: that of the model, if it is a tree, else
        the one of largest bound; where exits join there is no other.
    y_proba : array_like of shape (n, J) or (n,), or data frame, optional
        In place of `y`: the probability of each label in each row, which then stands for each of
        them with its weight times its probability; one dimension: that of the second of two labels.
    labels : array_like of shape (J,), optional
        With `y_proba`: the labels of its columns; default ``model.labels``.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; a model does not keep those of its fit.
    validation : tuple, optional
        Of a stagewise model that was fitted with ``validation=(X, y)``: the same once more, since a
        model does not keep it. A share of the rows is held out again without being given.
    state : FitState, optional
        For a series of calls with the same data, each with the model of the call before: pass the
        same `FitState` to all of them, and each call starts where the call before ended. For
        stagewise models, and for chains of two classes with `rounds`.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Of a graph: source of randomness for weak learners that draw; stumps draw nothing. Forests
        and stagewise models keep the state of the generator with which their fit began; if `rng`
        was a generator other than NumPy's PCG64, pass it again.
    n_threads : int or None
        Threads, -1 for all; None: as many as the work is worth. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each new node or tree with the number of all and
        what the builder of the model tells; returning True stops.
    progress : bool or callable
        True shows a bar of tqdm (extra ``progress``) on standard error; or what makes a bar, as
        ``tqdm.tqdm`` does.

    Returns
    -------
    DecisionGraph, Forest or StagewiseModel
        What was there as it was, and what is new. The record is that of the whole on the data given
        here: on other data than those of the fit, certificate, cost and losses are those of the
        other data throughout.

    Raises
    ------
    ValueError, TypeError
        If the data are not such as the model was fitted to, or an option is not as described, or
        belongs to another kind of model; if the nodes compare directions that `weak` does not make
        of X; if gaussian answers are to be mixed with others, or each cell had its own error in
        training and no `observation` is given; if votes of the model are larger than those of any
        builder; if a forest or stagewise model was fitted to rows or columns that were drawn, and
        it is not known from what state.
    NotImplementedError
        If weak classifiers of the model, or the new ones, are functions (`pboost.weak.oracle`,
        `from_estimator`), or their answers are sampled: what was drawn in training is not kept; if
        they are separators or linear (`pboost.weak.separator`, `linear`), trained at the nodes.

    Notes
    -----
    On the data of the fit, ``rounds`` more for a chain, ``nodes`` more for a tree, with any of the
    growths, ``members`` more for a forest and ``steps`` more for a stagewise model give the model
    that one fit with the sum of both would have given, bit for bit. A limit on the depth is kept; a
    target certificate is not. Of graphs where neither is the case, the weights and reach masses of
    all rows are kept for each open exit: 16 bytes times rows times open exits.

    A forest takes its out-of-bag record from all trees anew, and so the rows of its fit, in their
    order. With validation rows a stagewise model has the trees up to the best; those after it are
    fitted again, and `steps` counts from the last that was tried.

    Affine weak classifiers of more than two columns are made in units of the standard deviations of
    the data, so that models of them can only be continued on data of the same standard deviations
    (to 9 digits): those of the fit. On two columns any data will do, and any multiple of the
    model's number of directions. Models of stumps can be continued with affine weak classifiers
    (on two columns, of an even number of directions); from then on `weak` must be given.

    Gaussian answers follow from the values and errors of the rows given here, also at the nodes of
    `model`. Where each cell had its own error, or these rows have other errors than those of the
    fit, pass them as ``observation=gaussian(sigma)``; the new model then keeps these.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> y = [0, 1, 1, 0, 1, 0, 0, 1]
    >>> model = pb.fit_adaboost(X, y, rounds=5)
    >>> longer = pb.continue_fit(model, X, y, rounds=5)
    >>> at_once = pb.fit_adaboost(X, y, rounds=10)
    >>> bool((longer.vote == at_once.vote).all())
    True
    >>> forest = pb.fit_forest(X, y, members=20, rng=0)
    >>> len(pb.continue_fit(forest, X, y, members=30))
    50
    """
    check_callback(callback, progress)
    go_on, own = kind_of(
        model,
        {
            "rounds": rounds,
            "nodes": nodes,
            "members": members,
            "steps": steps,
            "weak": weak,
            "observation": observation,
            "growth": growth,
            "smoothing": smoothing,
            "learning_rate": learning_rate,
            "validation": validation,
            "state": state,
        },
    )
    if y_proba is not None and labels is None:
        labels = model.labels
    X, y, sample_weight = rows_of_fit(X, y, sample_weight, y_proba, labels)
    return go_on(
        model,
        X,
        y,
        **own,
        sample_weight=sample_weight,
        rng=rng,
        n_threads=n_threads,
        bar=partial(with_bar, callback, progress),
    )


def kind_of(model: Model, given: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function by which a kind of model goes on, and its options of those given."""
    check_model(model)
    if type(model) not in KINDS:
        error = model.is_no_graph("continue_fit")
        raise TypeError(f"{error}; a Forest and a StagewiseModel go on, too")
    go_on, names = KINDS[type(model)]
    for name, value in given.items():
        if name not in names and value is not None:
            kind = next(kind for kind, (_, options) in KINDS.items() if name in options)
            raise TypeError(
                f"{name}, model: expected a {kind.__name__} for continue_fit, got a "
                f"{type(model).__name__}, which goes on with {', '.join(names)} and not with {name}"
            )
    return go_on, {name: given[name] for name in names if name in given}
