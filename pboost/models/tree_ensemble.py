"""Tree ensembles as plain arrays, for evaluation and export without the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import WORDS
from pboost.data.read.check_xy import check_finite
from pboost.data.read.table import MOST_LEVELS, Table
from pboost.models import schema as stored
from pboost.models.evaluate.match_input import match_names
from pboost.models.schema import Stored, check_offsets, table_field
from pboost.models.text import counted
from pboost.values import Array, FloatArray, IntArray, TableLike

#: Marks leaves in `feature` and `children`, and nodes without a set in `category_set`.
LEAF = NO_SET = -1
AGGREGATIONS = ("sum", "mean")
#: Values of `link`, see `TreeEnsemble`.
LINKS = (
    "half log odds",
    "log odds",
    "probit",
    "lead",
    "softmax",
    "shares",
    "identity",
    "exp",
    "none",
)
#: Rows whose value equals the threshold go to the first child.
COMPARISON = "<="
#: Minimum weight of a node, relative to its tree. TreeSHAP does not accept empty leaves.
MIN_WEIGHT = 2.0**-30


class TreeNodes:
    """Base class of trees that are stored one after another in the same arrays.

    The nodes of tree t are ``root[t]`` to ``root[t + 1] - 1``, parents before children.
    `children` are relative to ``root[t]``.
    """

    __slots__ = ()
    root: IntArray
    feature: IntArray
    children: IntArray
    #: The child for rows with a missing value; None if missing values raise an error.
    missing: NDArray[np.uint8] | None

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, including leaves."""
        return len(self.feature)

    @property
    def start(self) -> IntArray:
        """For each node, the root of its tree."""
        return self.by_node(self.root[:-1])

    def by_node(self, of_trees: Array) -> Array:
        """Repeat the value of each tree for the nodes of the tree."""
        return np.asarray(of_trees).repeat(np.diff(self.root))

    def inner(self) -> tuple[NDArray[np.intp], IntArray]:
        """Return the inner nodes (m,) and their children (m, 2), as indices into all nodes."""
        inner = np.flatnonzero(self.feature != LEAF)
        return inner, self.children[inner] + self.start[inner, None]

    def node_depth(self) -> IntArray:
        """Return the depth of each node."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        level, start = np.asarray(self.root[:-1]), self.start
        below = 0
        while len(level):
            depth[level] = below
            level = level[self.feature[level] != LEAF]
            level = (self.children[level] + start[level, None]).ravel()
            below += 1
        return depth

    def check_links(self) -> None:
        """Check that nodes and children form trees, and that `missing` contains 0 or 1."""
        is_leaf = self.feature == LEAF
        if not (self.children[is_leaf] == LEAF).all():
            raise ValueError("children: expected -1 for leaves")
        inner, below = self.inner()
        stop = self.by_node(self.root[1:])[inner]
        if not ((below > inner[:, None]) & (below < stop[:, None])).all():
            raise ValueError("children: expected later nodes of the same tree")
        reached = np.concatenate([below.ravel(), self.root[:-1]])
        if not (np.bincount(reached, minlength=self.n_nodes) == 1).all():
            raise ValueError(
                "children: expected each node except the root to be the child of one node"
            )
        if self.missing is not None and (self.missing > ~is_leaf).any():
            raise ValueError("missing: expected 0 or 1 for each node, and 0 for leaves")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeEnsemble(TreeNodes, Stored):
    """The trees of a model as read-only arrays, see `as_tree_ensemble`.

    A row starts at the first node of each tree. At a node with a threshold, the row goes to the
    first child if ``x[feature] <= threshold`` in float64, else to the second. At a node with a
    category set, it goes to the second child if its category is in the set, else to the first.
    If the value is missing, it goes to the child in `missing`. The J decision values of a row are
    `bias` plus the sum, or the mean, of the leaf values of all trees.

    Attributes
    ----------
    root : ndarray of int32, shape (n_trees + 1,)
        Index of the first node of each tree, followed by the number of nodes.
    feature : ndarray of int32, shape (n_nodes,)
        Feature that is compared; -1 for leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        Threshold of the feature; 0 for leaves and for nodes with a category set.
    children : ndarray of int32, shape (n_nodes, 2)
        The two children, relative to the root of the tree; -1 for leaves.
    missing : ndarray of uint8, shape (n_nodes,), or None
        The child, 0 or 1, for rows with a missing value (NaN); 0 for leaves. None if the model
        does not accept missing values.
    category_set : ndarray of int32, shape (n_nodes,)
        Index in `sets` of the category set of the node; -1 if it has none.
    sets : ndarray of uint64, shape (n_sets, 4)
        The category sets: bit ``b % 64`` of word ``b // 64`` is 1 if category b is in the set.
    value : ndarray of float64, shape (n_nodes, K)
        Values of the leaves; K is J, or 1 if each tree adds to one decision value. Values of
        inner nodes do not affect predictions.
    bias : ndarray of float64, shape (J,)
        Initial decision values of all rows.
    classes : ndarray, shape (n_classes,), or None
        The sorted class labels; None for regression. A single decision value predicts the
        second class if it is positive. Several decision values predict the class of the largest
        value, and the first of these classes if values are tied.
    n_features : int
        Number of features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    aggregation : {"sum", "mean"}
        Whether the leaf values of the trees are added or averaged.
    link : str
        Function that converts decision values v to probabilities: "half log odds" means
        ``1 / (1 + exp(-2 v))``, "log odds" ``1 / (1 + exp(-v))``, "probit" ``Phi(v)``, and "lead"
        ``(1 + v) / 2`` clipped to [0, 1]. A single decision value gives the probability of the
        second class. Several probabilities are divided by their sum, and are equal if it is 0.
        "softmax" means ``exp(v)`` divided by the sum, and "shares" means v itself. For regression,
        the link is "identity" or "exp". "none" means that the model has no probabilities.
        Divide v by `temperature` first.
    builder : str
        The function that fitted the model.
    weight : ndarray of float64, shape (n_nodes,), or None
        Number of rows or sum of sample weights at each node; None if unknown. See
        `as_tree_ensemble`.
    target : ndarray of int32, shape (n_trees,), or None
        Index of the decision value to which each tree adds, if K is 1 and J > 1; else None.
    comparison : str
        Always "<=".
    table : Table or None
        Types and categories of the training features, and which features had missing values.
        None if all features were numeric without missing values.
    temperature : float
        Number by which the link divides decision values; see `DecisionGraph`. Usually 1.
    """

    root: IntArray = stored.column(np.int32, ndim=1)
    feature: IntArray = stored.column(np.int32, "n_nodes", within=(LEAF, "n_features"))
    threshold: FloatArray = stored.column(np.float64, "n_nodes")
    children: IntArray = stored.column(np.int32, "n_nodes", 2)
    missing: NDArray[np.uint8] | None = stored.kept_as(
        stored.Column(np.uint8, ("n_nodes",), optional=True)
    )
    category_set: IntArray = stored.column(np.int32, "n_nodes", within=(NO_SET, "n_sets"))
    sets: NDArray[np.uint64] = stored.column(np.uint64, "n_sets", WORDS)
    value: FloatArray = stored.column(np.float64, "n_nodes", "n_added")
    bias: FloatArray = stored.column(np.float64, ndim=1)
    classes: Array | None = stored.classes(optional=True)
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    aggregation: str = stored.text()
    link: str = stored.text()
    builder: str = stored.text()
    weight: FloatArray | None = stored.column(np.float64, "n_nodes", positive=True, optional=True)
    target: IntArray | None = stored.column(
        np.int32, "n_trees", within=(0, "n_values"), optional=True
    )
    comparison: str = stored.kept_as(stored.TEXT, default=COMPARISON)
    table: Table | None = table_field()
    temperature: float = stored.temperature()

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.root) - 1

    @property
    def n_sets(self) -> int:
        """Number of category sets."""
        return len(self.sets)

    @property
    def n_values(self) -> int:
        """Number J of decision values per row."""
        return len(self.bias)

    @property
    def n_added(self) -> int:
        """Number K of values per node."""
        return self.n_values if self.target is None else 1

    @property
    def depths(self) -> IntArray:
        """Depth of each tree."""
        return np.maximum.reduceat(self.node_depth(), self.root[:-1])

    def categories(self, number: int) -> IntArray:
        """Return the codes of the categories in a set."""
        bits = np.unpackbits(self.sets[number].astype("<u8").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.int32)

    def rows(self, X: TableLike) -> FloatArray:
        """Convert rows of X to the numeric features that the trees compare.

        Parameters
        ----------
        X : array_like of shape (n, d), or data frame
            See `decision_function`.

        Returns
        -------
        ndarray of float64, shape (n, n_features)
            The features in training order. Categories are converted to their codes; missing
            values are NaN. Unknown categories are NaN or, with more than 255 categories in
            training, have the code of the rare categories.
        """
        features = match_names(self.feature_names, self.n_features, X, self.table)
        check_finite(features, self.missing is not None)
        return np.array(features.values, dtype=np.float64, order="C")

    def __repr__(self) -> str:
        trees = counted(self.n_trees, "tree")
        return f"<trees of {self.builder}: {trees}, {counted(self.n_nodes, 'node')}>"

    def check_whole(self) -> None:
        """Check that the arrays and options are compatible."""
        check_offsets("root", self.root, self.n_nodes)
        for name, known in (
            ("aggregation", AGGREGATIONS),
            ("link", LINKS),
            ("comparison", (COMPARISON,)),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: expected one of {known}, got {getattr(self, name)!r}")
        if not self.n_values or (self.target is not None and self.n_values == 1):
            raise ValueError(
                "bias: expected at least one number; target: expected None if bias has only one"
            )
        expected = (1, self.n_values) if self.classes is None else (1, len(self.classes))
        is_of_many = self.classes is not None and len(self.classes) > 2
        if self.n_values not in expected or (self.n_values == 1 and is_of_many):
            raise ValueError(f"bias: expected one number per class, got {self.n_values}")
        self.check_links()
        self._check_nodes()

    def _check_nodes(self) -> None:
        """Check the category sets and thresholds of nodes."""
        is_leaf = self.feature == LEAF
        has_set = self.category_set != NO_SET
        if (has_set & is_leaf).any() or (has_set.any() and self.missing is None):
            raise ValueError(
                "category_set: expected -1 for leaves, and -1 for all nodes if missing is None"
            )
        if (self.threshold[is_leaf | has_set] != 0).any():
            raise ValueError("threshold: expected 0 for leaves and nodes with a category set")
        if self.n_sets and (self.sets[:, -1] >> np.uint64(MOST_LEVELS % 64)).any():
            raise ValueError(f"sets: expected category codes below {MOST_LEVELS}")


def values_of_sum(trees: TreeEnsemble) -> FloatArray:
    """Return the contribution of each node to the J decision values, shape (n_nodes, J)."""
    value = trees.value
    if trees.target is not None:
        of = trees.by_node(trees.target)
        value = np.where(of[:, None] == np.arange(trees.n_values), value, 0.0)
    return value / trees.n_trees if trees.aggregation == "mean" else value


def positive_weights(trees: TreeEnsemble) -> FloatArray:
    """Return positive node weights. Each weight is the sum of the weights of the children."""
    assert trees.weight is not None
    weight = np.maximum(
        trees.weight, MIN_WEIGHT * np.maximum(trees.weight[trees.start], MIN_WEIGHT)
    )
    inner, children = trees.inner()
    for level in levels_of(trees, inner)[::-1]:  # children first
        weight[inner[level]] = weight[children[level]].sum(axis=1)
    return weight


def levels_of(trees: TreeNodes, inner: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the positions in `inner` of the nodes of each depth, roots first."""
    depth = trees.node_depth()[inner]
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
