"""The picture of sets of levels: which levels of a category nodes send to which side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs import ColumnNames
from pboost.data.subsets import Subsets
from pboost.data.table import column_label, positions
from pboost.inspection.plots import axes_or_new
from pboost.models.base import Model, check_model
from pboost.models.graph import DecisionGraph
from pboost.models.probit_trees import ProbitTree
from pboost.models.shares import falls
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_record import NO_SET
from pboost.models.trees_of import trees_of
from pboost.values import FloatArray, IntArray, check_integer

#: Levels of a column, of which more have no names along the axis.
MOST_LEVELS = 60


class SetTests(NamedTuple):
    """The nodes that ask for sets of levels.

    Columns (m,), whether each level is in the set (m, 256), what they are called, and how much they
    matter (m,).
    """

    column: IntArray
    member: NDArray[np.bool_]
    called: list[str]
    gain: FloatArray


def plot_level_sets(
    model: Model, column: str | int | None = None, *, most: int = 20, ax: Any = None
) -> Any:
    """Draw which levels of a category the nodes of a model send to which side, with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, Tree, Forest, StagewiseModel, ProbitTree or SubaggedProbitTrees
        A fitted model whose nodes ask whether levels are in sets.
    column : str or int, optional
        Name or position of a column of categories. Default: the one whose nodes matter most.
    most : int
        Number of nodes shown, those that matter most: in a graph by what each has lowered the
        certificate, in trees by the weight of the training rows that come there.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each node, the one that matters most on top, and a column for each level; dark
        where the level is in the node's set, so that rows with it take exit 1.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is no graph and no sum of trees.
    ValueError
        If no node asks for a set of levels, or none for one of this column.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 4, (200, 1)).astype(float)
    >>> tree = pb.fit_cart(X, np.isin(X[:, 0], [1, 3]), categorical=[0])
    >>> [label.get_text() for label in pb.plot_level_sets(tree).get_xticklabels()]
    ['0.0', '1.0', '2.0', '3.0']
    """
    check_model(model)
    most = check_integer("most", most, least=1)
    if column is not None:
        (column,) = positions("column", [column], model.feature_names, model.n_features)
    tests = _set_tests(model)
    if not len(tests.column):
        raise ValueError("model: expected one whose nodes ask for sets of levels; no node does")
    if column is None:
        column = int(np.argmax(np.bincount(tests.column, tests.gain + np.finfo(float).tiny)))
    own = np.flatnonzero(tests.column == column)
    if not len(own):
        name = column_label(model.feature_names, column)
        raise ValueError(f"column: expected one that nodes ask for sets of levels, got {name}")
    own = own[np.argsort(-tests.gain[own], kind="stable")][:most]
    names = ColumnNames(model.feature_names, model.n_features, model.table)
    n_levels = 0 if model.table is None else int(model.table.n_levels[column])
    # Of models without a table of levels those that are in sets.
    n_levels = n_levels or int(np.flatnonzero(tests.member[own].any(axis=0)).max()) + 1
    ax = axes_or_new(ax, max(3.0, 1.5 + 0.25 * min(n_levels, MOST_LEVELS)), 1.5 + 0.25 * len(own))
    ax.pcolormesh(
        np.arange(n_levels),
        np.arange(len(own)),
        tests.member[own, :n_levels].astype(float),
        shading="nearest",
        cmap="Blues",
        vmin=0,
        vmax=1.3,
        edgecolors="white",
        linewidth=1,
        gid="sets",
    )
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(own)), [tests.called[k] for k in own])
    if n_levels <= MOST_LEVELS:
        said = [names.level(column, k) for k in range(n_levels)]
        ax.set_xticks(np.arange(n_levels), said, rotation=90)
    ax.set_xlabel(names[column])
    return ax


def _set_tests(model: Model) -> SetTests:
    """Return the nodes of a model that ask for sets of levels."""
    if isinstance(model, DecisionGraph):
        if not isinstance(model.inputs, Subsets):
            return _tests(np.empty(0, int), np.empty((0, 256), bool), [], np.empty(0))
        nodes = np.flatnonzero(model.feature >= model.n_features)
        number = model.feature[nodes] - model.n_features
        called = [f"node {node}" for node in nodes.tolist()]
        gain = falls(model.record.certificate)[nodes]
        return _tests(model.inputs.column[number], model.inputs.bits()[number], called, gain)
    if isinstance(model, ProbitTree):
        model = model.partition
    elif isinstance(model, SubaggedProbitTrees):
        model = model.trees
    trees = trees_of(model)
    nodes = np.flatnonzero(trees.level_set != NO_SET)
    column = trees.feature[nodes]
    tree = np.searchsorted(trees.root, nodes, side="right") - 1
    called = [
        f"node {node}" if trees.n_trees == 1 else f"tree {t}, node {node}"
        for t, node in zip(tree.tolist(), (nodes - trees.root[tree]).tolist(), strict=True)
    ]
    weight = np.ones(trees.n_nodes) if trees.weight is None else trees.weight
    sets = Subsets(trees.n_features, column, trees.sets[trees.level_set[nodes]])
    return _tests(column, sets.bits(), called, weight[nodes])


def _tests(column: Any, member: Any, called: list[str], gain: FloatArray) -> SetTests:
    return SetTests(np.asarray(column, dtype=np.int32), member, called, gain)
