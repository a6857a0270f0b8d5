"""Matryoshki: trees of trees of … of weak classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from pboost.boosting.fit import GraphFit, GraphOptions, Learning
from pboost.data.training import reads_columns
from pboost.growth.matryoshki import COLLECTS, JOINS, Collect, GreedyGrowth, Join, NestedGrowth
from pboost.growth.step import GROWTHS as GROWTHS_OF_TREES
from pboost.growth.step import TreeLimits
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.values import INT32_MAX, check_choice, check_integer, shown, vote_rule
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.stump_search import Stump, stump_search

MatryoshkaGrowth: TypeAlias = Literal["nested", "greedy"]
GROWTHS: tuple[MatryoshkaGrowth, ...] = get_args(MatryoshkaGrowth)
#: By `join`: the shape, and the learning rate.
DEFAULTS = {"sign": ((8, 8), 1.0), "all": ((8, 30), 0.3)}
#: The shape of chains whose exits have votes for more than two labels.
SHAPE_OF_MANY = (31, 30)
#: Number of weak classifiers of greedy growth.
DEFAULT_NODES = 128
#: Levels of a chain of trees, whose exits may have votes for more than two labels.
LEVELS_OF_MANY = 2
#: Levels of a shape, which take three calls each.
MOST_LEVELS = 100
_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@reads_columns(stump_search)
@builder
def fit_matryoshka(
    X: Any,
    y: ArrayLike | None = None,
    *,
    shape: Sequence[int] | None = None,
    growth: MatryoshkaGrowth = "nested",
    max_nodes: int | None = None,
    collect: Collect = "additive",
    join: Join = "sign",
    weak_learner: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float | None = None,
    **options: Unpack[GraphOptions],
) -> DecisionGraph:
    """Fit a matryoshka: a tree whose nodes are trees whose nodes are … weak classifiers.

    A finished inner tree's open exits are collected in two, by the sign of the votes gathered
    inside it, so that what follows is trained on all rows that leave on that side. The model is
    one decision graph with merging edges, between AdaBoost and a tree in accuracy and in cost.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels. For weak learners that are functions: rows of anything.
    y : array_like of shape (n,), optional
        Labels, any two values. With ``join="all"`` and a shape of two levels at most there may be
        more: exits have then a vote for each, see `fit_adaboost`.
    shape : sequence of int, optional
        For ``growth="nested"``: number of nodes of the trees of each level, innermost first, at
        most 100; their product is the greatest number of weak classifiers. None: (8, 8), and
        (8, 30) with ``join="all"``, or (31, 30) of more than two labels.
    growth : {"nested", "greedy"}
        At every level the exit of largest bound is split next. "nested" builds the given shape.
        "greedy" has none: after each weak classifier it collects the outermost sub-tree around it
        whose bound would then fall faster, see Notes.
    max_nodes : int, optional
        For ``growth="greedy"``: greatest number of weak classifiers. None: 128.
    collect : {"additive", "sign"}
        "additive": votes gathered inside an inner tree stay, and the collected exits only merge
        the weights. "sign": an inner tree becomes one weak classifier that answers the sign of
        its votes; they are dropped, and its answer gets two votes.
    join : {"sign", "all"}
        "all": the outermost trees form a chain, all open exits of one leading to the next. Greedy
        growth has no outermost trees, and does not take it.
    weak_learner : Weak
        The weak learner, from `pboost.weak`.
    observation : Observation
        How sure answers are, from `pboost.observation`.
    smoothing : float
        Share of the mass at the node, 0 to 1, that is added to each class mass before the log
        odds are taken. Of J > 2 labels it is a share of 1/J of the mass at the root of the tree;
        chains go on when no training row is wrong, until the certificate is below 1e-9.
    learning_rate : float, optional
        Factor in (0, 1] of every vote. None: 0.3 for ``join="all"``, a chain of trees, else 1.
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen: ``(X, y)``, or ``(X, y,
        sample_weight)``, or a share in (0, 0.5] of the rows of either class, drawn with `rng` and
        held out. The model returned is the first, of those that growth went through, with the
        least error on these rows; ``record.validation`` holds all errors. With
        ``collect="sign"`` the model is chosen among its stages when growth has ended.
    callback : callable, optional
        Called as ``callback(step, record)`` after each weak classifier with their number so far
        and a `pboost.growth.step.StepRecord`; returning True stops. Votes and certificate are those
        before trees of a given shape are collected, but those after greedy collecting.
    **options
        Those of `GraphOptions`.

    Returns
    -------
    DecisionGraph
        Nodes in the order in which they were opened.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or options do not go together; the message
        names the argument.
    NotImplementedError
        If `validation` is given with weak learners that are functions.
    RuntimeError
        If a function of yours fails, a weak learner or an estimator; the message says which weak
        classifier.

    Notes
    -----
    Additive collecting leaves the certificate as it is, so that it is at most
    ``F(T_L, … F(T_1, rho))`` with the tree bound F and rho the worst step seen, as long as at
    every step the largest exit could be split. Where paths with different votes have joined, the
    sign is that of their mean, weighted by reach mass.

    Greedy growth keeps one tree of super-nodes, which are weak classifiers or collected sub-trees.
    A sub-tree is a super-node and all below it. Let it hold T >= 2 weak classifiers (those inside
    super-nodes count) and have at least 3 open exits, C(T) be its certificate as a share of the
    weight that enters it, and C(T - 1) that before the last weak classifier. It is collected if
    ``C(T) - C(T - 1) > bounds.rate_matryoshka(T, C(T))`` by more than 1e-12. The whole is looked
    at first, then the sub-trees around the last weak classifier from the outermost on; at most one
    is collected at a time.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       section 5; 5.4 and equations 12 to 14 for greedy growth.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = pb.fit_matryoshka(X, y, shape=(4, 4), observation=pb.observation.adatree2())
    >>> model.n_nodes
    16
    """
    check_choice("growth", growth, GROWTHS)
    check_choice("join", join, JOINS)
    sizes, size = check_sizes(growth, shape, max_nodes, join)
    check_choice("collect", collect, COLLECTS)
    rate = DEFAULTS[join][1] if learning_rate is None else learning_rate
    rule = vote_rule("domain", smoothing, rate)
    fit = GraphFit(
        X,
        y,
        options,
        Learning(weak_learner, observation, rule),
        growth=NestedGrowth if size is None else GreedyGrowth,
        votes_stay=collect == "additive",
        two=_two(sizes, join, collect),
    )
    if shape is None and fit.data.problem.is_multiclass:
        sizes = SHAPE_OF_MANY
    settings = fit.settings(
        "fit_matryoshka",
        shape=list(sizes) or None,
        growth=growth,
        max_nodes=size,
        collect=collect,
        join=join,
    )
    total = math.prod(sizes) if size is None else size
    with fit.workers() as workers, fit.progress_callback(total, "nodes") as on_step:
        # Of a shape that more labels cannot have, such labels were refused above.
        size_of_tree, rounds = (1, 1, *sizes)[-LEVELS_OF_MANY:]
        limits = TreeLimits(size_of_tree, INT32_MAX, GROWTHS_OF_TREES[0], -1.0)
        trees = fit.label_trees(workers, rounds, limits)
        if trees is not None:
            return fit.grown(trees, settings, on_step)
        observer = fit.observer(workers)
        size_options = (sizes, join) if size is None else (size,)
        return fit.grown(
            fit.growth(fit.data, observer, rule, collect, *size_options), settings, on_step
        )


def _two(sizes: tuple[int, ...], join: str, collect: str) -> str:
    """Return because of which options there can be two labels only."""
    if join != "all":
        return f'with join={join!r} (join="all" takes more)'
    if len(sizes) > LEVELS_OF_MANY:
        return f"with a shape of {len(sizes)} levels (a shape of two takes more)"
    return "" if collect == "additive" else f"with collect={collect!r}"


def check_sizes(
    growth: str, shape: object, max_nodes: object, join: str
) -> tuple[tuple[int, ...], int | None]:
    """Return the shape of nested and the number of nodes of greedy growth."""
    if growth == "nested":
        if max_nodes is not None:
            raise ValueError('max_nodes: belongs to growth="greedy"; growth="nested" has a shape')
        return _check_shape(DEFAULTS[join][0] if shape is None else shape), None
    if shape is not None:
        raise ValueError('shape: belongs to growth="nested"; growth="greedy" has max_nodes')
    if join == "all":
        raise ValueError(
            'join: growth="greedy" has no outermost trees that could be chained, expected "sign"'
        )
    return (), check_integer(
        "max_nodes", DEFAULT_NODES if max_nodes is None else max_nodes, min_value=1
    )


def _check_shape(shape: Any) -> tuple[int, ...]:
    is_array = isinstance(shape, np.ndarray) and shape.ndim > 0
    if not (is_array or isinstance(shape, list | tuple)):
        raise TypeError(
            f"shape: expected a tuple of one size per level such as (4, 4), got {shown(shape)}"
        )
    if not 0 < len(shape) <= MOST_LEVELS:
        raise ValueError(
            f"shape: expected the sizes of 1 to {MOST_LEVELS} levels, got {len(shape)}"
        )
    return tuple(check_integer("shape", size, min_value=1) for size in shape)
