"""The model of a classification or regression tree: a partition with a constant in each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.array_checks import is_integer
from pboost.data.derived import ColumnNames
from pboost.models.base import Predictor, check_two_labels, lead_of_second
from pboost.models.hard_walk import over_tiles
from pboost.models.new_rows import match_columns
from pboost.models.tree_nodes import LEAF, check_shapes, check_trees, node_depths, step_bytes
from pboost.values import FloatArray, IntArray, freeze, shown

#: The arrays with one entry per node, and the dtype in which they are kept.
TREE_COLUMNS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.float64,
    "children": np.int32,
    "value": np.float64,
    "impurity": np.float64,
    "weight": np.float64,
    "n_rows": np.int32,
}
#: Those of a pruning table, and their dtypes in files.
PRUNING_COLUMNS = {"lam": "<f8", "n_leaves": "<i4", "error": "<f8", "standard_error": "<f8"}


@dataclass(frozen=True, slots=True, eq=False)
class PruningTable:
    """The subtrees among which cross-validation chose, the largest first.

    Attributes
    ----------
    lam : ndarray of float64, shape (k,)
        Price of a leaf from which on each subtree is the best, increasing.
    n_leaves : ndarray of int32, shape (k,)
        Their numbers of leaves.
    error : ndarray of float64, shape (k,)
        Cross-validated error: the share of rows misclassified, or the mean squared error.
    standard_error : ndarray of float64, shape (k,)
        Its standard error.
    chosen : int
        The place of the subtree that was chosen.
    """

    lam: FloatArray
    n_leaves: IntArray
    error: FloatArray
    standard_error: FloatArray
    chosen: int

    def __post_init__(self) -> None:
        for name, dtype in PRUNING_COLUMNS.items():
            native = np.dtype(dtype).newbyteorder("=")
            object.__setattr__(self, name, freeze(getattr(self, name), native))
            if getattr(self, name).shape != (len(self.lam),):
                raise ValueError(f"pruning.{name}: expected shape ({len(self.lam)},)")
            if not (getattr(self, name) >= 0).all():
                raise ValueError(f"pruning.{name}: expected numbers >= 0")
        if not (self.n_leaves >= 1).all():
            raise ValueError("pruning.n_leaves: expected positive numbers")
        if not (is_integer(self.chosen) and 0 <= self.chosen < len(self.lam)):
            raise ValueError(f"pruning.chosen: expected a place in the table, got {self.chosen}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def __str__(self) -> str:
        lines = ["     lambda  leaves  error"]
        for i in range(len(self.lam)):
            mark = "  chosen" if i == self.chosen else ""
            lines.append(
                f"{self.lam[i]:11.5g} {self.n_leaves[i]:7d}  {self.error[i]:.5g} "
                f"± {self.standard_error[i]:.2g}{mark}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Tree(Predictor):
    """A classification or regression tree, made by `fit_cart`.

    Nodes stand in preorder: node 0 is the root, the first child of a node comes right after it,
    and all nodes below the first child come before the second. A row goes to the first child
    where ``x[feature] <= threshold``, else to the second.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_nodes,)
        Column that is compared; -1 in leaves.
    threshold : ndarray of float64, shape (n_nodes,)
        What it is compared with; 0 in leaves.
    children : ndarray of int32, shape (n_nodes, 2)
        The two children; -1 in leaves.
    value : ndarray of float64, shape (n_nodes, J) or (n_nodes,)
        Share of each class in the weight at the node; of a regression tree, the mean target.
    impurity : ndarray of float64, shape (n_nodes,)
        Impurity by the criterion of the fit; of a regression tree, the mean squared error.
    weight : ndarray of float64, shape (n_nodes,)
        Sum of the weights of the training rows, in the unit of `sample_weight`. Prices of leaves
        (`prune_path`) are in it, too; nothing else depends on the unit.
    n_rows : ndarray of int32, shape (n_nodes,)
        Number of training rows of positive weight.
    labels : ndarray, shape (J,), or None
        The label values, sorted; None of a regression tree.
    n_features : int
        Number of columns the model was trained on.
    feature_names : tuple of str or None
        Their names, where the training data had names.
    settings : mapping
        The options the model was fitted with.
    stop_reason : str
        Why growing ended, as a sentence.
    pruning : PruningTable or None
        What cross-validation found, of a tree made by `fit_pruned_cart`.
    """

    feature: IntArray
    threshold: FloatArray
    children: IntArray
    value: FloatArray
    impurity: FloatArray
    weight: FloatArray
    n_rows: IntArray
    labels: NDArray[Any] | None
    n_features: int
    feature_names: tuple[str, ...] | None
    settings: Mapping[str, Any]
    stop_reason: str
    pruning: PruningTable | None = None
    #: Number of each leaf among the leaves, from left to right; -1 in other nodes.
    leaf: IntArray = field(init=False)
    #: The nodes as the kernel reads them, and the greatest number of comparisons for a row.
    steps: NDArray[np.uint8] = field(init=False, repr=False)
    depth: int = field(init=False)

    no_graph: ClassVar[str] = "whose nodes have no votes"
    instead: ClassVar[Mapping[str, str]] = {
        "prefix": "prune makes trees smaller",
        "reach": "apply and decision_path tell where rows go",
        "explain": "decision_path tells the nodes that a row meets",
    }
    file_kind: ClassVar[str] = "tree"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        name: np.dtype(dtype).newbyteorder("<") for name, dtype in TREE_COLUMNS.items()
    }
    file_optional: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        "labels": None,
        **{f"pruning_{name}": np.dtype(dtype) for name, dtype in PRUNING_COLUMNS.items()},
    }

    def __post_init__(self) -> None:
        for name, dtype in TREE_COLUMNS.items():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))
        if self.labels is not None:
            object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        self.validate()
        is_leaf = self.feature == LEAF
        leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, LEAF)
        object.__setattr__(self, "depth", int(self.node_depth().max()))
        object.__setattr__(self, "leaf", freeze(leaf, np.int32))
        steps = step_bytes(self.feature, self.threshold, self.children)
        object.__setattr__(self, "steps", freeze(steps))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def __repr__(self) -> str:
        kind = self.settings.get("builder", "Tree")
        return f"<{kind}: {self.n_leaves} leaves, {self.n_features} features>"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @property
    def task(self) -> str:
        """What the tree predicts, "classification" or "regression"."""
        return "regression" if self.labels is None else "classification"

    def node_depth(self) -> IntArray:
        """Return the number of comparisons on the way to each node."""
        return node_depths(self._root(), self.children)

    def _root(self) -> IntArray:
        return np.array([0, self.n_nodes], dtype=np.int32)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row, or the predicted number."""
        at = self.nodes_of(X)
        if self.labels is None:
            return self.value[at]
        found: NDArray[Any] = self.labels[np.argmax(self.value, axis=1)[at]]
        return found

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of each class at the leaf of each row."""
        if self.labels is None:
            raise TypeError("model: a regression tree has no probabilities")
        return self.value[self.nodes_of(X)]

    def decision_function(self, X: Any) -> FloatArray:
        """Return the predicted number, or by how much the second class is more probable."""
        if self.labels is None:
            return self.predict(X)
        check_two_labels("a tree", self.labels)
        return lead_of_second(self.predict_proba(X))

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return the number of comparisons, or of different columns read, for each row."""
        at = self.nodes_of(X)
        if unit != "features":
            return self.node_depth()[at].astype(np.float64)
        return np.array([len(columns) for columns in self.columns_read()], dtype=np.float64)[at]

    def columns_read(self) -> Iterator[Counter[int]]:
        """Yield for each node how often each column is compared on the way there.

        It is the same table each time, to be read and not kept: of deep trees there would be many.
        """
        read: Counter[int] = Counter()
        path: list[int] = []
        # Nodes stand in preorder: of the way to the last node the first part is that to the next.
        for feature, depth in zip(self.feature.tolist(), self.node_depth().tolist(), strict=True):
            while len(path) > depth:
                last = path.pop()
                read[last] -= 1
                if not read[last]:
                    del read[last]
            yield read
            path.append(feature)
            read[feature] += 1

    def nodes_of(self, X: Any) -> IntArray:
        """Return the leaf that each row reaches, as the number of its node."""
        depth = np.array([self.depth], np.int32)
        return walk_trees(self.steps, self._root(), depth, self, X)[:, 0]

    def describe(self) -> str:
        """Return the tree as text: a summary, then one line per node, indented by depth."""
        leaves = f"{self.n_leaves} " + ("leaf" if self.n_leaves == 1 else "leaves")
        of = "numbers" if self.labels is None else f"labels {self.labels.tolist()!r}"
        lines = [
            f"{self.settings.get('builder', 'tree')}: {leaves}, depth {self.depth}, "
            f"{self.n_features} feature{'s' * (self.n_features != 1)}, {of}",
            f"stopped: {self.stop_reason}",
        ]
        depth, tests = self.node_tests()
        for node, test in enumerate(tests):
            lines.append(f"{'  ' * int(depth[node])}{test}{self._said(node)}")
        return "\n".join(lines)

    def node_tests(self) -> tuple[IntArray, list[str]]:
        """Return the depth of each node, and in words the comparison that leads to it."""
        names = ColumnNames(self.feature_names, self.n_features)
        text = [""] * self.n_nodes
        for node in np.flatnonzero(self.feature != LEAF).tolist():
            below, above = self.children[node]
            test = f"{names[self.feature[node]]} {{}} {self.threshold[node]:.6g}: "
            text[below], text[above] = test.format("<="), test.format("> ")
        return self.node_depth(), text

    def _said(self, node: int) -> str:
        """What is known of the rows at a node."""
        rows = f"({self.weight[node]:.6g})"
        if self.labels is None:
            return f"{self.value[node]:.6g} {rows}"
        best = int(np.argmax(self.value[node]))
        return f"{self.labels[best].item()!r} {self.value[node, best]:.4f} {rows}"

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        header = {
            name: getattr(self, name)
            for name in ("settings", "n_features", "feature_names", "stop_reason")
        }
        arrays = {name: getattr(self, name) for name in TREE_COLUMNS}
        if self.labels is not None:
            arrays["labels"] = self.labels
        if self.pruning is not None:
            header["chosen"] = self.pruning.chosen
            arrays |= {f"pruning_{name}": getattr(self.pruning, name) for name in PRUNING_COLUMNS}
        return header, arrays

    @classmethod
    def from_members(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Tree:
        """Return the tree of a file; ValueError or TypeError where it is none."""
        table: dict[str, Any] = {
            name: arrays[f"pruning_{name}"]
            for name in PRUNING_COLUMNS
            if f"pruning_{name}" in arrays
        }
        chosen: Any = header.get("chosen")
        if table and (len(table) < len(PRUNING_COLUMNS) or type(chosen) is not int):
            raise ValueError("pruning: the table is not complete")
        names = header.get("feature_names")
        columns: dict[str, Any] = {name: arrays[name] for name in TREE_COLUMNS}
        return cls(
            **columns,
            labels=arrays.get("labels"),
            n_features=header["n_features"],
            feature_names=None if names is None else tuple(names),
            settings=header["settings"],
            stop_reason=header["stop_reason"],
            pruning=PruningTable(**table, chosen=chosen) if table else None,
        )

    def validate(self) -> None:
        """Check shapes, ranges and topology.

        Raises
        ------
        ValueError
            Naming the array that is wrong. A tree that passes can be evaluated without reading
            out of bounds and without an endless loop.
        """
        check_shapes(self, TREE_COLUMNS)
        check_trees(self, self._root())


def walk_trees(
    steps: NDArray[np.uint8], root: IntArray, depth: IntArray, model: Predictor, X: Any
) -> IntArray:
    """Return the leaves (n, n_trees) that rows reach in trees whose nodes stand in one array."""
    values = match_columns(model, X).values
    n, d = values.shape
    leaf = np.empty((n, len(root) - 1), dtype=np.int32)

    def work(start: int, stop: int, tile: FloatArray) -> int:
        return tree_walk.walk_leaves(values, steps, root, depth, start, stop, tile, leaf)

    over_tiles(model, X, n, work, d, d + int(depth.sum()), n * d)
    return leaf


def tree_only(model: Any) -> Tree:
    """Return `model` if it is a `Tree`."""
    if not isinstance(model, Tree):
        raise TypeError(f"tree: expected a tree such as fit_cart returns, got {shown(model)}")
    return model
