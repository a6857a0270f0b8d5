"""The model of a random forest: the trees one after another in one set of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from pboost._core import tree_walk
from pboost.data.array_checks import check_offsets, check_sum
from pboost.data.held import held
from pboost.models.base import Predictor, check_two_labels, lead_of_second
from pboost.models.hard_walk import walk_sums
from pboost.models.new_rows import match_columns, table_for
from pboost.models.out_of_bag import OOB_MEMBERS, OutOfBag, check_out_of_bag
from pboost.models.parts import some_trees
from pboost.models.ranked import RankedTrees, rank_trees
from pboost.models.tree_nodes import check_shapes, check_trees, step_bytes, tree_depths
from pboost.models.trees import TREE_COLUMNS, Tree, walk_trees
from pboost.values import FloatArray, IntArray, check_position, freeze


@dataclass(frozen=True, slots=True, eq=False)
class Forest(Predictor):
    """A random forest, made by `fit_forest`.

    ``forest[i]`` is tree i, as a `Tree`; ``len(forest)`` is the number of trees. A slice such as
    ``forest[:20]`` is the forest of these trees, without `oob`.

    Attributes
    ----------
    root : ndarray of int32, shape (n_trees + 1,)
        Where the nodes of each tree begin in the arrays, closed by their number.
    feature, threshold, children, value, impurity, weight, n_rows : ndarray
        Those of the trees, see `Tree`; `children` are counted from the tree's root.
    labels : ndarray, shape (J,), or None
        The label values, sorted; None of a regression.
    n_features : int
        Number of columns the model was trained on.
    feature_names : tuple of str or None
        Their names, where the training data had names.
    settings : mapping
        The options the model was fitted with.
    oob : OutOfBag or None
        The training record: predictions for rows by the trees that have not seen them.
    """

    root: IntArray
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
    oob: OutOfBag | None = None
    #: The nodes as the kernel reads them, and the greatest number of comparisons in each tree.
    steps: NDArray[np.uint8] = field(init=False, repr=False)
    depth: IntArray = field(init=False, repr=False)
    #: See `ranked`; empty until it is asked for.
    found_ranked: list[RankedTrees | None] = field(init=False, repr=False, default_factory=list)

    no_graph: ClassVar[str] = "whose trees, model[i], are models by themselves"
    instead: ClassVar[Mapping[str, str]] = {
        "prefix": "model[:k] has the first k trees",
        "reach": "apply tells the leaf of each row in each tree",
        "explain": "decision_path tells the nodes that a row meets in one of them",
    }
    file_kind: ClassVar[str] = "forest"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        "root": np.dtype("<i4"),
        **Tree.file_members,
    }
    file_optional: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        "labels": None,
        **OOB_MEMBERS,
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", freeze(self.root, np.int32))
        for name, dtype in TREE_COLUMNS.items():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))
        if self.labels is not None:
            object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        self.validate()
        steps = step_bytes(self.feature, self.threshold, self.children)
        object.__setattr__(self, "steps", freeze(steps))
        object.__setattr__(self, "depth", freeze(tree_depths(self.root, self.children), np.int32))

    def validate(self) -> None:
        """Check where the trees begin, and the trees; ValueError names the array."""
        root, n = self.root, len(self.feature)
        check_offsets("root", root, n)
        check_shapes(self, TREE_COLUMNS)
        check_trees(self, root)
        if self.labels is None:
            check_sum("value", self.largest_values())
        if self.oob is not None:
            check_out_of_bag(self.oob, self.labels)

    def largest_values(self) -> FloatArray:
        """Return the largest size of a value in each tree, (n_trees, ...)."""
        found: FloatArray = np.maximum.reduceat(np.abs(self.value), self.root[:-1])
        return found

    @property
    def ranked(self) -> RankedTrees | None:
        """Shallow trees for many rows at a time; None where a walk is faster."""
        if not self.found_ranked:
            self.found_ranked.append(rank_trees(self, self.depth))
        return self.found_ranked[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def __repr__(self) -> str:
        return f"<fit_forest: {len(self)} trees, {self.n_features} features>"

    def __len__(self) -> int:
        return len(self.root) - 1

    @overload
    def __getitem__(self, tree: int) -> Tree: ...
    @overload
    def __getitem__(self, tree: slice) -> Forest: ...
    def __getitem__(self, tree: int | slice) -> Tree | Forest:
        if isinstance(tree, slice):
            return replace(self, **some_trees(self, np.arange(len(self))[tree]))
        place = check_position("tree", tree, len(self))
        start, stop = self.root[place : place + 2].tolist()
        columns: dict[str, Any] = {name: getattr(self, name)[start:stop] for name in TREE_COLUMNS}
        return Tree(
            **columns, labels=self.labels, n_features=self.n_features,
            feature_names=self.feature_names, settings=self.settings,
            stop_reason="a tree of a forest",
        )  # fmt: skip

    def __iter__(self) -> Iterator[Tree]:
        return (self[i] for i in range(len(self)))

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees, leaves included."""
        return len(self.feature)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of largest mean share, or the mean of the trees' numbers."""
        mean = self._mean(X)
        if self.labels is None:
            return mean[:, 0]
        found: NDArray[Any] = self.labels[np.argmax(mean, axis=1)]
        return found

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the mean over the trees of the shares of the classes at the leaf of each row."""
        if self.labels is None:
            raise TypeError("model: a forest of regression trees has no probabilities")
        return self._mean(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the predicted number, or by how much the second class is more probable."""
        if self.labels is None:
            return self.predict(X)
        check_two_labels("a forest", self.labels)
        return lead_of_second(self._mean(X))

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return the number of comparisons, or of columns read tree by tree, for each row."""
        X = table_for(self, X)
        with held(X):
            return reduce(np.add, (tree.evaluation_cost(X, unit) for tree in self))

    def nodes_of(self, X: Any) -> IntArray:
        """Return the leaf (n, n_trees) that each row reaches, as a node of each tree."""
        return walk_trees(self.steps, self.root, self.depth, self, X)

    def leaves_of(self, X: Any) -> IntArray:
        """Return the leaf (n, n_trees) that each row reaches, numbered within each tree."""
        found = self.nodes_of(X)
        for i, tree in enumerate(self):
            found[:, i] = tree.leaf[found[:, i]]
        return found

    def describe(self) -> str:
        """Return a summary of the forest."""
        leaves = (np.diff(self.root) + 1) // 2
        of = "numbers" if self.labels is None else f"labels {self.labels.tolist()!r}"
        lines = [
            f"fit_forest: {len(self)} tree{'s' * (len(self) != 1)}, {leaves.mean():.1f} leaves on "
            f"average, {self.n_features} feature{'s' * (self.n_features != 1)}, {of}"
        ]
        if self.oob is not None and np.isfinite(self.oob.error):
            lines.append(f"out-of-bag error {self.oob.error:.6g}")
        return "\n".join(lines)

    def _mean(self, X: Any) -> FloatArray:
        return self.total(X) / len(self)

    def total(self, X: Any) -> FloatArray:
        """Return the sums (n, J) over the trees of the values of the leaf of each row."""
        values = match_columns(self, X).values
        trees = self.steps, self.root, self.depth, self.value.reshape(len(self.feature), -1)
        ranked = self.ranked if len(values) >= tree_walk.MANY else None
        total = np.zeros((len(values), trees[3].shape[1]))
        steps = int(self.depth.sum())
        walk_sums(self, X, values, trees, total, steps, ranked and ranked.arrays)
        return total

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        header = {name: getattr(self, name) for name in ("settings", "n_features", "feature_names")}
        header["stop_reason"] = "all trees are there"
        arrays = {name: getattr(self, name) for name in ("root", *TREE_COLUMNS)}
        if self.labels is not None:
            arrays["labels"] = self.labels
        if self.oob is not None:
            fields_, record = self.oob.parts()
            header, arrays = header | fields_, arrays | record
        return header, arrays

    @classmethod
    def from_members(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Forest:
        """Return the forest of a file; ValueError or TypeError where it is none."""
        names = header.get("feature_names")
        columns: dict[str, Any] = {name: arrays[name] for name in ("root", *TREE_COLUMNS)}
        return cls(
            **columns, labels=arrays.get("labels"), n_features=header["n_features"],
            feature_names=None if names is None else tuple(names), settings=header["settings"],
            oob=OutOfBag.from_parts(header, arrays),
        )  # fmt: skip


def join_trees(trees: Sequence[Tree], settings: Mapping[str, Any], oob: OutOfBag | None) -> Forest:
    """Return the forest of trees that were fitted to the same columns and labels."""
    root = np.cumsum([0, *(tree.n_nodes for tree in trees)])
    if root[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"members: expected fewer than 2**31 nodes in all trees, got {root[-1]}")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(tree, name) for tree in trees]) for name in TREE_COLUMNS
    }
    first = trees[0]
    return Forest(
        root, **columns, labels=first.labels, n_features=first.n_features,
        feature_names=first.feature_names, settings=settings, oob=oob,
    )  # fmt: skip
