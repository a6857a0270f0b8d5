"""Presets: builders that are other builders with some options chosen, under names of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from numpy.typing import ArrayLike

from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.boosting.fit import GrowthOptions
from pboost.data.columns.prebuilt import LEVEL_SMOOTHING
from pboost.data.row_source import RowOptions
from pboost.data.targets import CRITERIA, ClassCriterion
from pboost.growth.impurity_search import Impurity, by_impurity
from pboost.growth.step import GrowthOrder
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.values import (
    check_choice,
    check_instance,
    check_integer,
)
from pboost.values.options import RunOptions, builder
from pboost.weak import separator, stump

_EXACT = Exact()


class TopdownOptions(RowOptions, RunOptions, total=False):
    """The options of `fit_topdown_tree` that other builders have, too."""


@builder
def fit_oblique_tree(
    X: object,
    y: ArrayLike | None = None,
    *,
    max_nodes: int | None = None,
    max_depth: int | None = 4,
    n_stumps: int = 50,
    growth: GrowthOrder = "breadth_first",
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    **options: Unpack[GrowthOptions],
) -> DecisionGraph:
    """Fit an oblique tree, BoostODT: each node is the sign of a sum of boosted stumps.

    It is `fit_boosted_tree` with ``weak_learner=pboost.weak.separator(n_stumps)``, which has more
    options.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features. The stumps of a separator send rows whose value is missing to the side that lowers
        the criterion most, else to that of larger weight; a category is a column for each level.
    y : array_like of shape (n,), optional
        Labels, any two values.
    max_nodes : int or None
        Greatest number of nodes; None: as many as the depth allows.
    max_depth : int or None
        Greatest number of separators evaluated for a row.
    n_stumps : int
        Greatest number of stumps in a separator.
    growth : {"breadth_first", "largest_bound", "largest_error", "look_ahead"}
        Which open exit is split next, see `fit_boosted_tree`.
    observation : Observation
        How sure the answers of separators are, from `pboost.observation`; not gaussian.
    smoothing : float
        Share of the mass at the node that is added to each class mass before an exit's vote is
        taken. Stumps in separators have a smoothing of their own, 1e-3.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of randomness for rows held out and for ``observation=sampled()``.
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen, see `fit_boosted_tree`.
    **options
        Those of `GrowthOptions`.

    Returns
    -------
    DecisionGraph
        As `fit_boosted_tree` returns it.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.

    Notes
    -----
    The source has T2 = 4, "as an observation is classified by 5 nodes (including leaves)". This is
    read as a tree of depth 4, of up to 15 separators, since only then errors come out as printed;
    see the page *Errata of the sources*. ``max_nodes=4, max_depth=None`` is the other reading.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
       boosting oblique decision trees", IJCAI 2007, sections 4.3 and 5.

    Examples
    --------
    The second monk's problem: exactly two of six attributes have their first value.

    >>> import pboost as pb
    >>> X, y = pb.datasets.monks(2)
    >>> columns, _ = pb.data.one_hot(X, range(6))
    >>> model = pb.fit_oblique_tree(columns, y)
    >>> model.n_nodes, bool((pb.predict(model, columns) == y).all())
    (3, True)
    """
    max_nodes = None if max_nodes is None else check_integer("max_nodes", max_nodes, min_value=1)
    check_instance("observation", Observation, observation)
    if max_nodes is None and max_depth is None and not observation.is_exact:
        raise ValueError(
            "max_nodes: expected a number, got None: a tree of uncertain answers has always an "
            "exit that can be split; or give max_depth"
        )
    model = fit_boosted_tree(
        X,
        y,
        max_nodes=max_nodes,
        weak_learner=separator(n_stumps),
        observation=observation,
        growth=growth,
        max_depth=max_depth,
        smoothing=smoothing,
        **options,
    )
    return replace(model, settings={**model.settings, "builder": "fit_oblique_tree"})


@builder
def fit_topdown_tree(
    X: object,
    y: ArrayLike | None = None,
    *,
    max_nodes: int | None = 31,
    impurity: ClassCriterion | Impurity = "kearns_mansour",
    growth: GrowthOrder = "largest_bound",
    target_certificate: float | None = None,
    max_depth: int | None = None,
    min_weight_fraction: float = 0.0,
    min_samples_leaf: int = 1,
    categorical_smoothing: float = LEVEL_SMOOTHING,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    **options: Unpack[TopdownOptions],
) -> DecisionGraph:
    """Fit a decision tree top down: every split minimises an impurity, a permissible function.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels.
    y : array_like of shape (n,), optional
        Labels, any two values.
    max_nodes : int or None
        Greatest number of splits; None grows until no leaf can be split.
    impurity : {"kearns_mansour", "gini", "entropy", "error"} or callable
        A function f of the share z of one class at a leaf: ``2 sqrt(z (1 - z))``, ``4 z (1 - z)``,
        the entropy in bits, ``2 min(z, 1 - z)``, or one of your own, which takes and returns an
        array. It must be concave and symmetric about 1/2 with f(0) = f(1) = 0 and f(1/2) = 1. A
        split minimises f over its two sides, weighted by their sample weights. A function of your
        own is evaluated in Python, on all cuts of a leaf at once: several times slower.
    growth : {"largest_bound", "largest_error", "look_ahead", "breadth_first"}
        Which leaf is split next; see `fit_boosted_tree`.
    target_certificate : float, optional
        Stop as soon as the certificate is not above this, in (0, 1).
    max_depth : int or None
        Greatest number of splits on a path.
    min_weight_fraction : float
        Least share, 0 to 0.5, of the leaf's weight on either side of a cut.
    min_samples_leaf : int
        Least number of training rows on either side.
    categorical_smoothing : float
        How far chance is taken from what levels of a category differ by, see `weak.stump`.
    smoothing : float
        See `fit_boosted_tree`. With 0 a leaf's decision value is half the log odds of its rows
        whatever splits lead there (Theorem 2 of the source); clipped where it holds one class.
    learning_rate : float
        Factor in (0, 1] of every vote.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    callback : callable, optional
        Called as ``callback(step, record)`` after each split with their number so far and a
        `pboost.growth.step.StepRecord`; returning True stops.
    **options
        Those of `TopdownOptions`.

    Returns
    -------
    DecisionGraph
        Nodes in the order in which they were opened. With "kearns_mansour" it is the tree of
        `fit_boosted_tree`, whose certificate is this impurity of its leaves.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument, and for an
        impurity that is not permissible the condition and the place.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), equation 3 and Theorem 2.
    .. [2] M. Kearns and Y. Mansour, "On the boosting ability of top-down decision tree learning
       algorithms", J. Comput. Syst. Sci. 58 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 1, 0]
    >>> model = pb.fit_topdown_tree(X, y, max_nodes=3, impurity=lambda z: (4 * z * (1 - z)) ** 0.75)
    >>> pb.predict(model, X).tolist()
    [0, 1, 1, 0]
    """
    weak = stump(
        min_weight_fraction=min_weight_fraction,
        min_samples_leaf=min_samples_leaf,
        categorical_smoothing=categorical_smoothing,
    )
    if callable(impurity):
        name = getattr(impurity, "__qualname__", type(impurity).__qualname__)
        weak = by_impurity(weak, impurity)
    else:
        name = check_choice("impurity", impurity, CRITERIA)
        weak = replace(weak, criterion=name)
    model = fit_boosted_tree(
        X,
        y,
        max_nodes=max_nodes,
        weak_learner=weak,
        growth=growth,
        target_certificate=target_certificate,
        max_depth=max_depth,
        smoothing=smoothing,
        learning_rate=learning_rate,
        **options,
    )
    settings = {**model.settings, "builder": "fit_topdown_tree", "impurity": name}
    if callable(impurity):
        del settings["observation"]
    return replace(model, settings=settings)
