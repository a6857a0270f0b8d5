"""Matryoshki: trees of trees of … of weak classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.binding import bind, check_pair
from pboost.checks import check_choice, check_integer
from pboost.data import prepare
from pboost.graph import DecisionGraph
from pboost.grow import Callback, check_callback, vote_rule
from pboost.nested_growth import COLLECTS, JOINS, NestedGrowth
from pboost.observation import Exact, Observation
from pboost.rng import as_generator
from pboost.threads import Workers, resolve_threads
from pboost.weak import Stump, Weak

GROWTHS = ("nested", "greedy")
_DEFAULT_WEAK = Stump()
_EXACT = Exact()


def fit_matryoshka(
    X: Any,
    y: ArrayLike,
    *,
    shape: Sequence[int] = (8, 8),
    growth: str = "nested",
    collect: str = "additive",
    join: str = "sign",
    weak: Weak = _DEFAULT_WEAK,
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    sample_weight: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> DecisionGraph:
    """Fit a matryoshka: a tree whose nodes are trees whose nodes are … weak classifiers.

    A finished inner tree's open exits are collected in two, by the sign of the votes gathered
    inside it, so that what follows is trained on all rows that leave on that side. The model is
    one decision graph with merging edges, between AdaBoost and a tree in accuracy and in cost.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features, finite numbers.
    y : array_like of shape (n,)
        Labels, any two values.
    shape : sequence of int
        Number of nodes of the trees of each level, innermost first; their product is the greatest
        number of weak classifiers. At every level the exit of largest bound is split next.
    growth : {"nested"}
        "nested" builds the given shape. ("greedy" raises NotImplementedError.)
    collect : {"additive", "sign"}
        "additive": votes gathered inside an inner tree stay, and the collected exits only merge
        the weights. "sign": an inner tree becomes one weak classifier that answers the sign of
        its votes; they are dropped, and its answer gets two votes.
    join : {"sign", "all"}
        "all": the outermost trees form a chain, all open exits of one leading to the next.
    weak : Weak
        The weak learner, from `pboost.weak`.
    observation : Observation
        How sure answers are, from `pboost.observation`.
    smoothing : float
        Share of the mass at the node, 0 to 1, that is added to each class mass before the log
        odds are taken.
    learning_rate : float
        Factor in (0, 1] of every vote.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    rng : None, int or numpy.random.Generator
        Source of randomness for weak learners that draw; stumps draw nothing.
    n_threads : int or None
        Threads; None: as many as the work is worth. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each weak classifier with their number so far
        and a `pboost.grow.StepRecord`; returning True stops.

    Returns
    -------
    DecisionGraph
        Nodes in the order in which they were opened.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.
    NotImplementedError
        For ``growth="greedy"``.

    Notes
    -----
    Additive collecting leaves the certificate as it is, so that it is at most
    ``F(T_L, … F(T_1, rho))`` with the tree bound F and rho the worst step seen, as long as at
    every step the largest exit could be split. Where paths with different votes have joined, the
    sign is that of their mean, weighted by reach mass.

    References
    ----------
    .. [1] E. Grossmann, "Probabilistic boosting and matryoshki", section 5.

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
    if check_choice("growth", growth, GROWTHS) == "greedy":
        raise NotImplementedError('growth="greedy" is not there yet; use growth="nested"')
    sizes = _check_shape(shape)
    check_choice("collect", collect, COLLECTS)
    check_choice("join", join, JOINS)
    check_pair(weak, observation)
    rule = vote_rule("domain", smoothing, learning_rate)
    callback = check_callback(callback)
    generator = as_generator(rng)
    data = prepare(X, y, sample_weight, weak, n_threads)
    settings = {
        "builder": "fit_matryoshka",
        "shape": list(sizes),
        "growth": growth,
        "collect": collect,
        "join": join,
        "observation": observation.settings(),
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak": weak.settings(),
    }
    with Workers(resolve_threads(n_threads, data.cells)) as workers:
        observer = bind(data, weak, observation, workers, generator)
        nested = NestedGrowth(data, observer, rule, sizes, collect)
        return nested.model(settings, nested.grow(join, callback))


def _check_shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list | tuple | np.ndarray) or not len(shape):
        raise ValueError(f"shape: expected the sizes of at least one level, got {shape!r}")
    return tuple(check_integer("shape", size, least=1) for size in shape)
