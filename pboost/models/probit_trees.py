"""The model of a probit tree: a partition with linear functions in its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import check_finite_arrays, check_not_negative, check_shape
from pboost.data.derived import ColumnNames
from pboost.models.base import Predictor
from pboost.models.probit_values import Equations, chosen, each_block, probabilities
from pboost.models.text import equation
from pboost.models.tree_nodes import LEAF
from pboost.models.trees import Tree
from pboost.values import FloatArray, IntArray, freeze

#: What the kernel says in place of a number of steps: all rows of the leaf are of the class, or
#: none is.
ONE_CLASS, NO_ROW = -1, -2

#: The arrays beside those of the partition, and the dtype in which they are kept.
LEAF_COLUMNS: dict[str, type[np.generic]] = {
    "coefficient": np.float64,
    "taken": np.int32,
    "risk": np.float64,
    "spread": np.float64,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProbitTree(Predictor):
    """A tree with a linear function f in each leaf, made by `fit_probit_tree`.

    Of two classes Phi(f) is the probability of the second label. Of more each class has its own f
    in each leaf, for it against all others, and the label of the largest is predicted.

    Attributes
    ----------
    partition : Tree
        The splits; its leaves are numbered from left to right.
    coefficient : ndarray of float64, shape (n_leaves, K, 1 + n_features)
        Intercept and slopes of each function; K is 1 of two classes, else their number.
    taken : ndarray of int32, shape (n_leaves, K)
        Steps of ProbitBoost that made it; -1 where all rows of the leaf are of the class, -2 where
        none is. There it is a constant, Phi^-1((n + 1/2) / (n + 1)) of n rows or minus that; but
        of more than two classes one without a row in the leaf is always below those with rows.
    risk : ndarray of float64, shape (n_leaves, K)
        Weighted mean of -ln Phi(Y f) on the training rows of the leaf.
    spread : ndarray of float64, shape (n_features,)
        Standard deviations of the columns on the training rows, by weight.
    labels : ndarray, shape (J,)
        The label values, sorted.
    settings : mapping
        The options the model was fitted with.
    n_features, feature_names
        Number of columns the model was trained on, and their names or None.
    """

    partition: Tree
    coefficient: FloatArray
    taken: IntArray
    risk: FloatArray
    spread: FloatArray
    labels: NDArray[Any] = field(init=False)
    settings: Mapping[str, Any] = field(init=False)
    n_features: int = field(init=False)
    feature_names: tuple[str, ...] | None = field(init=False)

    no_graph: ClassVar[str] = "whose leaves are linear functions"
    instead: ClassVar[Mapping[str, str]] = {
        "prefix": "fit_probit_tree has depth and steps",
        "reach": "apply tells the leaf of each row",
        "explain": "coefficients has the slopes in each leaf",
    }
    file_kind: ClassVar[str] = "probit-tree"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        **Tree.file_members,
        "labels": None,
        **{name: np.dtype(dtype).newbyteorder("<") for name, dtype in LEAF_COLUMNS.items()},
    }

    def __post_init__(self) -> None:
        for name, dtype in LEAF_COLUMNS.items():
            object.__setattr__(self, name, freeze(getattr(self, name), dtype))
        for name in ("labels", "settings", "n_features", "feature_names"):
            object.__setattr__(self, name, getattr(self.partition, name))
        if self.labels is None:
            raise ValueError("labels: expected those of a classification, got None")
        n_classes = len(self.labels)
        check_equations(self, self.partition.n_leaves, 1 if n_classes == 2 else n_classes)
        if not self.partition.weight[0] > 0:
            raise ValueError("weight: expected that of the root to be above 0")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def __repr__(self) -> str:
        leaves = f"{self.n_leaves} " + ("leaf" if self.n_leaves == 1 else "leaves")
        return f"<fit_probit_tree: {leaves}, {self.n_features} features>"

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the partition, leaves included."""
        return self.partition.n_nodes

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.partition.n_leaves

    @property
    def stop_reason(self) -> str:
        """Why the partition ended, as a sentence."""
        return self.partition.stop_reason

    def values(self, X: Any) -> FloatArray:
        """Return the functions (n, K) at the rows, each in its leaf."""
        tree, found = self.partition, []
        at = Equations(
            tree.steps, np.array([0, tree.n_nodes], dtype=np.int32),
            np.array([tree.depth], dtype=np.int32), tree.leaf, self.coefficient, self.taken,
        )  # fmt: skip

        def take(start: int, stop: int, values: FloatArray) -> None:
            found.append((start, values[:, 0].copy()))

        if not each_block(self, at, X, take):
            return np.empty((0, self.coefficient.shape[1]))
        return np.concatenate([values for _, values in sorted(found, key=lambda part: part[0])])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the largest function, the first of equal ones."""
        found: NDArray[Any] = self.labels[chosen(self.values(X))]
        return found

    def predict_proba(self, X: Any) -> FloatArray:
        """Return Phi(-f) and Phi(f); of more classes Phi of each function, divided by the sum."""
        return probabilities(self.values(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Return f of each row, positive for the second label; of J classes all (n, J)."""
        values = self.values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def equations(self) -> tuple[FloatArray, FloatArray, None]:
        """Return the coefficients, and the share of the weight in each leaf."""
        weight = self.partition.weight[self.partition.feature == LEAF]
        return self.coefficient, weight / self.partition.weight[0], None

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return the number of comparisons and of slopes, or of different columns read."""
        tree = self.partition
        at = tree.nodes_of(X)
        has_slope = self.coefficient[:, :, 1:] != 0
        if unit != "features":
            slopes = has_slope.sum(axis=(1, 2))[tree.leaf[at]]
            return np.maximum(tree.node_depth()[at] + slopes, 1.0)
        return np.array(
            [
                max(1, len(read.keys() | set(np.flatnonzero(has_slope[leaf].any(axis=0)).tolist())))
                for read, leaf in zip(tree.columns_read(), tree.leaf.tolist(), strict=True)
            ],
            dtype=np.float64,
        )[at]

    def describe(self) -> str:
        """Return the partition as text, with the equations of the leaves.

        Terms stand in the order of their slopes times the spreads of their columns.
        """
        tree = self.partition
        depth, tests = tree.node_tests()
        classes = self.labels.tolist()
        lines = [
            f"fit_probit_tree: {self.n_leaves} {'leaf' if self.n_leaves == 1 else 'leaves'}, depth "
            f"{tree.depth}, {self.n_features} feature{'s' * (self.n_features != 1)}, labels "
            f"{classes!r}",
            f"stopped: {self.stop_reason}",
        ]
        if len(classes) == 2:
            lines.append(f"P({classes[1]!r}) = Phi(f)")
        for node in range(tree.n_nodes):
            indent = "  " * int(depth[node])
            leaf = int(tree.leaf[node])
            said = [tests[node].strip() or "all rows:"]
            said += [] if leaf == LEAF else [f"leaf {leaf}"]
            lines.append(f"{indent}{' '.join(said)} ({tree.weight[node]:.6g})")
            if leaf != LEAF:
                lines += [f"{indent}  {line}" for line in self.leaf_text(leaf)]
        return "\n".join(lines)

    def leaf_text(self, leaf: int) -> list[str]:
        """Return the equations of a leaf, one line each."""
        names = ColumnNames(self.feature_names, self.n_features)
        lines = []
        for k, (taken, row) in enumerate(
            zip(self.taken[leaf].tolist(), self.coefficient[leaf], strict=True)
        ):
            order = slope_order(row[1:], self.spread)
            said = equation(row[0], row[1:][order], tuple(names[j] for j in order))
            if taken < 0:
                said += f", {'all' if taken == ONE_CLASS else 'no'} rows are of the class"
            many = self.coefficient.shape[1] > 1
            lines.append((f"f({self.labels.tolist()[k]!r}) = " if many else "f = ") + said)
        return lines

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        header, arrays = self.partition.members()
        return header, arrays | {name: getattr(self, name) for name in LEAF_COLUMNS}

    @classmethod
    def from_members(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> ProbitTree:
        """Return the model of a file; ValueError or TypeError where it is none."""
        own: dict[str, Any] = {name: arrays[name] for name in LEAF_COLUMNS}
        return cls(Tree.from_members(header, arrays), **own)


def slope_order(slopes: FloatArray, spread: FloatArray) -> list[int]:
    """Return the columns in falling order of the slopes, in units of their spreads."""
    with np.errstate(over="ignore", under="ignore"):
        size = np.abs(slopes) * np.where(spread > 0, spread, 1.0)
    order: list[int] = np.argsort(-size, kind="stable").tolist()
    return order


def check_equations(model: Any, n_leaves: int, k: int) -> None:
    """Check the arrays of `LEAF_COLUMNS` of a model, of `k` functions in each leaf.

    ValueError names the one that is wrong.
    """
    d = model.n_features
    shapes = {
        "coefficient": (n_leaves, k, 1 + d), "taken": (n_leaves, k), "risk": (n_leaves, k),
        "spread": (d,),
    }  # fmt: skip
    check_shape(model, shapes)
    check_finite_arrays(model, *shapes)
    if not (model.taken >= NO_ROW).all():
        raise ValueError("taken: expected numbers of steps, or -1 or -2")
    check_not_negative(model, "risk", "spread")
