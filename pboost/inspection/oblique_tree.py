"""Oblique decision trees, whose nodes are boosted linear separators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.data.splits import Validation
from pboost.growth.step import Callback
from pboost.models.graph import DecisionGraph
from pboost.observation.models import Exact, Observation, check_observation
from pboost.values import check_size
from pboost.weak import separator

_EXACT = Exact()


def fit_oblique_tree(
    X: Any,
    y: ArrayLike,
    *,
    separators: int | None = None,
    max_depth: int | None = 4,
    stumps: int = 50,
    growth: str = "breadth-first",
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    sample_weight: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    validation: Validation = None,
    patience: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> DecisionGraph:
    """Fit an oblique tree, BoostODT: each node is the sign of a sum of boosted stumps.

    It is `fit_boosted_tree` with ``weak=pboost.weak.separator(stumps)``, which has more options.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features, finite numbers; of categories, see `one_hot`.
    y : array_like of shape (n,)
        Labels, any two values.
    separators : int or None
        Greatest number of nodes; None: as many as the depth allows.
    max_depth : int or None
        Greatest number of separators evaluated for a row.
    stumps : int
        Greatest number of stumps in a separator.
    growth : {"breadth-first", "largest-bound", "largest-error", "look-ahead"}
        Which open exit is split next, see `fit_boosted_tree`.
    observation : Observation
        How sure the answers of separators are, from `pboost.observation`; not gaussian.
    smoothing : float
        Share of the mass at the node that is added to each class mass before an exit's vote is
        taken. Stumps in separators have a smoothing of their own, 1e-3.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    rng : None, int or numpy.random.Generator
        Source of randomness for rows held out and for ``observation=sampled()``.
    validation : tuple or float, optional
        Rows by which growth ends early and the model is chosen, see `fit_boosted_tree`.
    patience : int, optional
        With `validation`: growth ends after so many nodes without a new least error; default 50.
    n_threads : int or None
        Threads; None: as many as the work is worth. The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each node; returning True stops.

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
    see the page *Errata of the sources*. ``separators=4, max_depth=None`` is the other reading.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
       boosting oblique decision trees", IJCAI 2007, sections 4.3 and 5.

    Examples
    --------
    The second monk's problem: exactly two of six attributes have their first value.

    >>> import pboost as pb
    >>> X, y = pb.datasets.monks(2)
    >>> columns, _ = pb.one_hot(X, range(6))
    >>> model = pb.fit_oblique_tree(columns, y)
    >>> model.n_nodes, bool((pb.predict(model, columns) == y).all())
    (3, True)
    """
    nodes = None if separators is None else check_size("separators", separators)
    check_observation(observation)
    if separators is None and max_depth is None and not observation.is_exact:
        raise ValueError(
            "separators: expected a number, got None: a tree of uncertain answers has always an "
            "exit that can be split; or give max_depth"
        )
    model = fit_boosted_tree(
        X,
        y,
        nodes=nodes,
        weak=separator(stumps),
        observation=observation,
        growth=growth,
        max_depth=max_depth,
        smoothing=smoothing,
        sample_weight=sample_weight,
        rng=rng,
        validation=validation,
        patience=patience,
        n_threads=n_threads,
        callback=callback,
    )
    return replace(model, settings={**model.settings, "builder": "fit_oblique_tree"})
