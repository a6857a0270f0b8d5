"""The record of a model that is a sum of trees: all that a stranger needs to evaluate it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import WORDS
from pboost.data.read.check_xy import check_finite
from pboost.data.read.table import MOST_LEVELS, Table
from pboost.models import stored
from pboost.models.evaluate.new_rows import match_names
from pboost.models.stored import Stored, check_offsets, table_field
from pboost.models.text import counted
from pboost.values import Array, FloatArray, IntArray, TableLike

#: ``feature`` and ``children`` of a leaf, and `category_set` of what is no test of a set.
LEAF = NO_SET = -1
AGGREGATIONS = ("sum", "mean")
#: How probabilities, or numbers, follow from the values.
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
#: The only comparison: rows whose value equals the threshold go to the first child.
COMPARISON = "<="


class TreeNodes:
    """Base of trees whose nodes stand in arrays, one tree after another, parents before children.

    The nodes of tree t are ``root[t]`` to ``root[t + 1] - 1``, its `children` counted from there.
    """

    __slots__ = ()
    root: IntArray
    feature: IntArray
    children: IntArray
    #: The child to which rows go whose value is missing; None where these are refused.
    missing: NDArray[np.uint8] | None

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return len(self.feature)

    @property
    def start(self) -> IntArray:
        """The root of each node's tree, (n_nodes,)."""
        return self.by_node(self.root[:-1])

    def by_node(self, of_trees: Array) -> Array:
        """Return what is known of trees (n_trees,) by node, (n_nodes,)."""
        return np.asarray(of_trees).repeat(np.diff(self.root))

    def inner(self) -> tuple[NDArray[np.intp], IntArray]:
        """Return the nodes (m,) that are no leaves, and their children (m, 2) among all nodes."""
        inner = np.flatnonzero(self.feature != LEAF)
        return inner, self.children[inner] + self.start[inner, None]

    def node_depth(self) -> IntArray:
        """Return the number of comparisons on the way to each node."""
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
        """Check that children make trees, and where missing values go."""
        is_leaf = self.feature == LEAF
        if not (self.children[is_leaf] == LEAF).all():
            raise ValueError("children: expected -1 in leaves")
        inner, below = self.inner()
        stop = self.by_node(self.root[1:])[inner]
        if not ((below > inner[:, None]) & (below < stop[:, None])).all():
            raise ValueError("children: expected later nodes of the tree")
        reached = np.concatenate([below.ravel(), self.root[:-1]])
        if not (np.bincount(reached, minlength=self.n_nodes) == 1).all():
            raise ValueError("children: every node but the root must be the child of one")
        if self.missing is not None and (self.missing > ~is_leaf).any():
            raise ValueError("missing: expected the child, 0 or 1, and 0 in leaves")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeEnsemble(TreeNodes, Stored):
    """The trees of a model, made by `as_tree_ensemble`: arrays that cannot change.

    A row starts at the first node of each tree. At a node that has a threshold it goes to the
    first child where ``x[feature] <= threshold``, both float64, else to the second; at one that
    has a set to the second child where its level is in the set, else to the first. Where its
    value is missing it goes to child number `missing`. The values of the leaves are added up,
    tree after tree, divided by the number of trees where `aggregation` is "mean", and added to
    `bias`: these are J values of the row.

    Attributes
    ----------
    root : ndarray of int32, shape (n_trees + 1,)
        Where the nodes of each tree begin, closed by their number.
    feature : ndarray of int32, shape (n_nodes,)
        Column that is compared; -1 in leaves. Nodes of a tree stand parents before children.
    threshold : ndarray of float64, shape (n_nodes,)
        What it is compared with; 0 in leaves and where there is a set.
    children : ndarray of int32, shape (n_nodes, 2)
        The two children, counted from the root of the tree; -1 in leaves.
    missing : ndarray of uint8, shape (n_nodes,), or None
        The child, 0 or 1, to which a row goes whose value is missing (NaN); 0 in leaves. None
        where the model refuses rows with missing values.
    category_set : ndarray of int32, shape (n_nodes,)
        Number of the set among `sets` that is tested, -1 where there is none.
    sets : ndarray of uint64, shape (n_sets, 4)
        The sets: bit ``b % 64`` of word ``b // 64`` says that level number b is in it.
    value : ndarray of float64, shape (n_nodes, K)
        What each node adds; K is J, or 1 where each tree adds to one value. In a graph, the sum of
        the votes on the path from the root; at inner nodes of the trees of a sum, 0.
    bias : ndarray of float64, shape (J,)
        What is added to the values of all rows.
    classes : ndarray, shape (n_labels,), or None
        The label values, sorted; None of a regression. Of one value the second label is predicted
        where it is positive, of several the first label of the largest.
    n_features : int
        Number of columns.
    feature_names : tuple of str or None
        Their names, where the training data had names.
    aggregation : {"sum", "mean"}
        What is made of the values of the leaves.
    link : str
        How probabilities p follow from values v. "half log odds": ``1 / (1 + exp(-2 v))`` of the
        second label; "log odds": ``1 / (1 + exp(-v))``; "probit": ``Phi(v)``; "lead":
        ``(1 + v) / 2``, within [0, 1]; each of several values so for its label, divided by the sum,
        equal ones where that is 0.
        "softmax": ``exp(v)`` divided by the sum; "shares": the values themselves. Of numbers:
        "identity", or "exp", exp(v). "none": nothing is known but the label.
    builder : str
        The function that made the model.
    weight : ndarray of float64, shape (n_nodes,), or None
        Weight of the rows that come to each node, see `as_tree_ensemble`; None where it is not
        known.
    target : ndarray of int32, shape (n_trees,), or None
        To which of J values each tree adds, where K is 1 and J is not; else None.
    comparison : str
        Always "<=".
    table : Table or None
        What the columns were in training: levels of categories, whose numbers the sets hold, and
        which had missing values. None where all were numbers and none was missing.
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

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.root) - 1

    @property
    def n_sets(self) -> int:
        """Number of sets of levels."""
        return len(self.sets)

    @property
    def n_values(self) -> int:
        """Number J of values of a row."""
        return len(self.bias)

    @property
    def n_added(self) -> int:
        """Number K of values of a node."""
        return self.n_values if self.target is None else 1

    @property
    def depths(self) -> IntArray:
        """The greatest number of comparisons for a row, by tree."""
        return np.maximum.reduceat(self.node_depth(), self.root[:-1])

    def categories(self, number: int) -> IntArray:
        """Return the level numbers that are in a set, by its number."""
        bits = np.unpackbits(self.sets[number].astype("<u8").view(np.uint8), bitorder="little")
        return np.flatnonzero(bits).astype(np.int32)

    def rows(self, X: TableLike) -> FloatArray:
        """Return rows as the trees read them, whatever evaluates these.

        Parameters
        ----------
        X : array_like of shape (n, d), or data frame
            See `decision_function`.

        Returns
        -------
        ndarray of float64, shape (n, n_features)
            The columns in the order of training; categories as the numbers of their levels, and
            what is missing, or was not seen in training, as NaN.
        """
        features = match_names(self.feature_names, self.n_features, X, self.table)
        check_finite(features, self.missing is not None)
        return np.array(features.values, dtype=np.float64)

    def __repr__(self) -> str:
        trees = counted(self.n_trees, "tree")
        return f"<trees of {self.builder}: {trees}, {counted(self.n_nodes, 'node')}>"

    def check_whole(self) -> None:
        """Check that the parts go together."""
        check_offsets("root", self.root, self.n_nodes)
        for name, known in (
            ("aggregation", AGGREGATIONS),
            ("link", LINKS),
            ("comparison", (COMPARISON,)),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: expected one of {known}, got {getattr(self, name)!r}")
        if not self.n_values or (self.target is not None and self.n_values == 1):
            raise ValueError("bias, target: expected one or more numbers, and no target of one")
        expected = (1, self.n_values) if self.classes is None else (1, len(self.classes))
        is_of_many = self.classes is not None and len(self.classes) > 2
        if self.n_values not in expected or (self.n_values == 1 and is_of_many):
            raise ValueError(f"bias: expected a number for each label, got {self.n_values}")
        self.check_links()
        self._check_nodes()

    def _check_nodes(self) -> None:
        """Check what inner nodes and leaves have."""
        is_leaf = self.feature == LEAF
        has_set = self.category_set != NO_SET
        if (has_set & is_leaf).any() or (has_set.any() and self.missing is None):
            raise ValueError(
                "category_set: expected -1 in leaves, and missing where there are sets"
            )
        if (self.threshold[is_leaf | has_set] != 0).any():
            raise ValueError("threshold: expected 0 in leaves and where there is a set")
        if self.n_sets and (self.sets[:, -1] >> np.uint64(MOST_LEVELS % 64)).any():
            raise ValueError(f"sets: expected levels below {MOST_LEVELS}")
