"""The boosted tree of exact answers as the compiled grower leaves it, read as a decision graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import grow
from pboost._core.voting import VoteRule
from pboost.data.columns import ROW_MASK, SortedColumns, midpoint
from pboost.data.special_columns import LEVELS, has, is_heavier
from pboost.data.subsets import Subsets
from pboost.data.training import TrainingData
from pboost.growth.step import SURE, StepRecord, TreeLimits, constant_vote, cost_after, sure
from pboost.growth.tree import CartLimits, TreeArrays, thresholds_of
from pboost.models.graph import DecisionGraph
from pboost.models.nodes import OUT
from pboost.models.stored import TrainingRecord
from pboost.values import MOST_NODES, FloatArray, IntArray
from pboost.weak.stump_search import ColumnLearner


class BoostedArrays(TreeArrays):
    """The arrays of a boosted tree: its splits are nodes of the model, all other nodes exits.

    The first splits, `given` at most, are not searched for but made by `replay`.
    """

    rule: VoteRule
    reasons: ClassVar = {
        "target": "the target certificate is reached",
        "all leaves": "all nodes are opened",
        "done": "no exit can be split",
    }

    def __init__(
        self,
        data: TrainingData,
        weak: ColumnLearner,
        rule: VoteRule,
        limits: TreeLimits,
        given: int = 0,
    ) -> None:
        n = data.n_rows
        own = limits_of(weak, limits, n, len(data.order), given)
        rows = np.arange(n, dtype=np.int32)
        label = (rows >= data.n_negative).astype(np.int32)
        super().__init__(data, rows, label, own.leaves, own, rule)
        # Thresholds of the splits that were not searched for, and the sides of missing rows there.
        self.given: FloatArray = np.empty(0)
        self.given_missing: FloatArray | None = None

    def replay(self, model: DecisionGraph) -> None:
        """Open the nodes of a tree as they are."""
        entrance = {int(next_): 1 + at for at, next_ in enumerate(model.next.ravel())}
        for split in range(model.n_nodes):
            node = entrance[split] if split else 0
            test = self.test_of(model, split, node, self.subset)
            grow.split_given(self, node, *test, *model.vote[split])
        self.given, self.given_missing = model.threshold, model.missing

    def test_of(
        self, model: DecisionGraph, split: int, node: int, subset: NDArray[np.uint64]
    ) -> tuple[int, int, int]:
        """Return column, place, and side of missing rows of a split of a model.

        The levels of a set are written where those of the node are.
        """
        feature, missing = int(model.feature[split]), -1
        if model.missing is not None:
            missing = int(model.missing[split])
        if isinstance(model.inputs, Subsets) and feature >= model.n_features:
            subset[node] = model.inputs.member[feature - model.n_features]
            return int(model.inputs.column[feature - model.n_features]), 0, missing
        if has(self.special, LEVELS, feature):
            subset[node] = 0  # "is it missing?" is a cut above all levels
            return feature, 0, missing
        return feature, self._place(node, feature, float(model.threshold[split])), missing

    def _place(self, node: int, feature: int, threshold: float) -> int:
        """Return the place of a cut of a node: rows, or the bin, at or below the threshold."""
        columns = self.data.columns
        if not (isinstance(columns, SortedColumns) and self.exact):
            return columns.bin_below(feature, threshold)
        start, stop = self.node["start"][node], self.node["stop"][node]
        return columns.n_below(feature, self.order[feature, start:stop], threshold)

    def thresholds(self, nodes: NDArray[np.int64]) -> FloatArray:
        """Return the thresholds of nodes that were searched for."""
        feature, low, high = (self.node[name][nodes] for name in ("feature", "low", "high"))
        return thresholds_of(feature, low, high, self._between, self.special)

    def _between(self, feature: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """Return the thresholds of columns between rows, or between bins."""
        columns = self.data.columns
        if not isinstance(columns, SortedColumns):
            return np.asarray(columns.threshold(feature, low, None))
        if not self.exact:
            return np.asarray(columns.threshold(feature, low, columns.bin_start[feature, high]))
        # The kernel names the two rows between which it cut: positions have moved since.
        return np.asarray(midpoint(columns.values(feature, low), columns.values(feature, high)))

    def newest(self) -> StepRecord:
        """Return the record of the node opened last."""
        at = self.at
        child = self.node["child"][at]
        below, above = self.vote["own"][child : child + 2].tolist()
        parents = (((at - 1) // 2, (at - 1) % 2),) if at else ()
        side, levels = int(self._missing(np.array([at]))[0]), 0
        if len(self.subset) and self.node["low"][at] < 0:
            levels = int.from_bytes(self.subset[at].astype("<u8").tobytes(), "little")
        return StepRecord(
            self.n_splits - 1,
            int(self.node["feature"][at]),
            float(self.thresholds(np.array([at]))[0]),
            (below, above),
            float(self.vote["bound"][at]),
            float(self.vote["certificate"][at]),
            parents,
            side,
            levels,
        )

    def _mass_at(self, node: NDArray[np.int64]) -> FloatArray:
        """Return the reach masses of nodes."""
        negative, positive = np.ldexp(self.mass[node].T, -self.node["shift"][node])
        return np.asarray(negative + positive)

    def _missing(self, split: NDArray[np.int64]) -> FloatArray:
        """Return the exits of missing rows of nodes: of larger reach where there were none."""
        child = self.node["child"][split]
        heavier = np.asarray(is_heavier(self._mass_at(child + 1), self._mass_at(child)))
        if self.special is None:
            return heavier.astype(np.float64)
        side = self.node["missing"][split]
        return np.where(side >= 0, side, heavier).astype(np.float64)

    def class_sums(self) -> tuple[float, float]:
        """Return the sums of the weights of the classes, each rounded once."""
        return self.data.class_sums()

    def real_sums(self, nodes: Sequence[int]) -> FloatArray:
        """Return the sums of the weights of the classes at nodes, each rounded once, (nodes, 2)."""
        return np.array([self._real_sums_at(node) for node in nodes])

    def _real_sums_at(self, node: int) -> tuple[float, float]:
        start, stop = (int(self.node[name][node]) for name in ("start", "stop"))
        if self.exact and node:
            # The column by which the parent is split is always partitioned.
            parent = int(self.node["parent"][node])
            rows = self.order[int(self.node["feature"][parent]), start:stop] & ROW_MASK
        else:
            rows = self.order[0] & ROW_MASK if self.exact else self.rows[start:stop]
        weight, second = self.weight[rows], self.label[rows] == 1
        return math.fsum(weight[~second]), math.fsum(weight[second])

    def sure(self, certificate: FloatArray, split: NDArray[np.int64]) -> FloatArray:
        """Return certificates, from sums of the real weights where rounding may have changed them.

        `split` are the nodes that were split, in their order.
        """
        n = 2 * len(split) + 1
        nodes, gathered = self.node[:n], self.vote["gathered"][:n]
        unit = np.ldexp(1.0, -nodes["shift"])
        factor = np.exp(np.stack([gathered, -gathered], axis=1))
        bound = (self.mass[:n] * unit[:, None] * factor).sum(axis=1)
        rounding = 0.5 * (nodes["stop"] - nodes["start"]) * unit * factor.sum(axis=1)
        unsure = np.flatnonzero(rounding > SURE * bound).tolist()
        if not unsure:
            return certificate
        for node, sums in zip(unsure, self.real_sums(unsure), strict=True):
            bound[node] = self.scale * float(factor[node] @ sums)
        bound /= self.whole
        found, total = certificate.copy(), (float(bound[0]), 0.0)
        for k, node in enumerate(split.tolist(), 1):
            child = int(nodes["child"][node])
            changes = [*total, -bound[node], bound[child], bound[child + 1]]
            total = (exact := math.fsum(changes)), math.fsum([*changes, -exact])
            found[k] = sure(float(certificate[k]), exact)
        return found

    def model(self, settings: Mapping[str, Any], stop_reason: str) -> DecisionGraph:
        """Return the tree grown so far."""
        n, problem = self.n_splits, self.data.problem
        assert problem.labels is not None
        nodes, votes = self.node[: 2 * n + 1], self.vote[: 2 * n + 1]
        next_ = (nodes["child"] - 1) >> 1  # OUT of exits that are open
        is_open = next_ == OUT
        opened = (~is_open).nonzero()[0]
        split = np.empty(n, dtype=np.int64)
        split[next_[opened]] = opened
        bias, start = 0.0, 1.0
        if not n:
            bias, start = constant_vote(self.data, self.rule, self.class_sums())
        certificate = np.empty(n + 1)
        certificate[0], certificate[1:] = start, votes["certificate"][split]
        negative, positive = np.ldexp(self.mass[: 2 * n + 1].T, -nodes["shift"])
        if n:
            # A small certificate is the difference of large masses: here it is a plain sum.
            gathered = votes["gathered"]
            terms = negative * np.exp(gathered) + positive * np.exp(-gathered)
            certificate[-1] = math.fsum(terms[is_open].tolist()) / self.whole
            certificate = self.sure(certificate, split)
        reach = (negative + positive)[split] * (1.0 / self.whole)
        missing = self._missing(split)
        inputs = self.data.model_columns(nodes["feature"][split])
        if self.special is not None:
            inputs = self._tests(split)
        if self.given_missing is not None:
            missing[: len(self.given_missing)] = self.given_missing
        return DecisionGraph.grown(
            threshold=np.concatenate([self.given, self.thresholds(split[len(self.given) :])]),
            next=next_[1:].reshape(n, 2),
            vote=votes["own"][1:].reshape(n, 2),
            labels=problem.labels,
            n_features=problem.n_features,
            feature_names=problem.names,
            table=problem.table,
            seen=problem.seen,
            bias=bias,
            settings=settings,
            record=TrainingRecord(certificate, cost_after(reach), stop_reason),
            missing=missing,
            **inputs,
        )

    def _tests(self, split: NDArray[np.int64]) -> dict[str, Any]:
        """Return the fields of a model that say what its nodes read: columns, or sets of levels."""
        column, is_set = self.node["feature"][split], self.node["low"][split] < 0
        if not len(self.subset):
            return self.data.model_columns(column)
        member = np.where(is_set[:, None], self.subset[split], np.uint64(0))
        feature, sets = Subsets.of_tests(self.data.problem.n_features, column, member)
        return {"feature": feature, "inputs": sets}


def limits_of(
    weak: ColumnLearner, limits: TreeLimits, n: int, n_columns: int, given: int = 0
) -> CartLimits:
    """Return the limits of a tree of n rows as the grower takes them, `given` splits made first."""
    leaves = 1 + min(limits.nodes, given + max(n - 1, 1), MOST_NODES)
    return CartLimits(
        weak.criterion,
        limits.depth,
        leaves,
        weak.min_leaf,
        0,
        n_columns,
        limits.growth,
        min_weight=weak.min_weight,
        target=limits.target,
        level_smoothing=weak.level_smoothing,
    )
