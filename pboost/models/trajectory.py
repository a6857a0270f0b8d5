"""What a model says, and has compared, on the way to its answer: at the joints of its paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.prices import Prices
from pboost.models.base import Model, check_model
from pboost.models.exits import Exits, Left, NodeExits, exits_of, joints_left
from pboost.models.new_rows import match_columns, read_rows, reads_columns
from pboost.values import FloatArray

#: Values of trajectories that are held at a time.
BLOCK_VALUES = 1 << 22
#: Gives of rows at which joints they may leave, (T, n); None: at all.
May: TypeAlias = Callable[[Any], NDArray[np.bool_] | None]


class Trajectory(NamedTuple):
    """Decision values and comparisons after 0, 1, ..., T joints, see `trajectory`.

    Attributes
    ----------
    score : ndarray of float64, shape (T + 1, n), or (T + 1, n, J)
        The decision value of each row; of J labels those of all.
    cost : ndarray of float64, shape (T + 1, n)
        Comparisons made by then.
    """

    score: FloatArray
    cost: FloatArray


def trajectory(model: Model, X: Any) -> Trajectory:
    """Return the decision values of rows, and what they have cost, at each joint of a model.

    A joint is where all paths of a row meet: every node of a chain, the root of every tree whose
    exits all join the next, every round of a `StagewiseModel`, every tree of a `Forest`, every
    member of models that vote or are averaged. There the decision value so far is that of a model
    by itself: of sums the sum, of means the mean. Models without joints have T = 1. The last values
    are those of `decision_function` to the last bit, but of averages, `SubaggedProbitTrees` and
    `Bagging`, whose sums are added in another order; where more than two labels have shares and no
    decision values they are the shares.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.

    Returns
    -------
    Trajectory
        Of T + 1 states; T rows of memory for each row of X.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> from pboost.models.trajectory import trajectory
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_adaboost(X, [0, 1, 0, 1], rounds=3)
    >>> score, cost = trajectory(model, X)
    >>> score.shape, cost[:, 0].tolist()
    ((4, 4), [0.0, 1.0, 2.0, 3.0])
    """
    check_model(model)
    return Trajectory(*model.trajectory(read_rows(model, X)))


def priced_trajectory(model: Model, X: Any, prices: Prices) -> Trajectory:
    """Return `trajectory` with what rows have paid by then for its costs."""
    X = read_rows(model, X)
    score, cost = model.trajectory(X)
    paid = [prices.of_columns(read) for read in model.reads(X)]
    return Trajectory(score, np.array([np.zeros(cost.shape[1]), *paid]))


def where_left(states: Trajectory, threshold: FloatArray, is_priced: bool) -> NDArray[np.intp]:
    """Return the joint (n,) at which rows leave, given thresholds (T,); see `EarlyExitModel`.

    With `is_priced` costs are what rows have paid, and they leave where they would pay more.
    """
    score, cost = states
    may = (cost[1:] > cost[:-1]) | (threshold == 0)[:, None] if is_priced else None
    return joints_left(score, exits_of(threshold, 1 if score.ndim == 2 else score.shape[2]), may)


def leave(
    model: Model,
    X: Any,
    exits: Exits,
    compiled: NodeExits | None = None,
    may: May | None = None,
) -> Left:
    """Return what rows have when they leave a model; `compiled` is what `node_exits` returns.

    `may` tells at which joints rows may leave, if not at all.
    """
    if compiled is not None:
        return model.leave(X, compiled)
    if not reads_columns(model):
        return _left(model, X, exits, may)
    features = match_columns(model, X)
    block = max(1, BLOCK_VALUES // (2 * exits.high.size))
    found = [
        _left(model, features.take(slice(i, i + block)), exits, may)
        for i in range(0, max(1, features.n_rows), block)
    ]
    return Left(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _left(model: Model, X: Any, exits: Exits, may: May | None) -> Left:
    """Return what rows have when they leave, of all of whose states one is taken."""
    states = trajectory(model, X)
    at = joints_left(states.score, exits, None if may is None else may(X))
    rows = np.arange(len(at))
    return Left(states.score[at, rows], at, states.cost[at, rows])
