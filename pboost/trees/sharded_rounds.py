"""Rounds of boosting whose rows lie in several places: trees grow here, of what places send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pboost._core import round_shard as kernel
from pboost.data.columns import MAX_BINS
from pboost.data.engines import Engine
from pboost.data.training import Problem
from pboost.growth.shard_trees import Answer
from pboost.growth.tree import CartLimits, Grown
from pboost.losses import Loss
from pboost.models.trees import Tree
from pboost.threads import Workers
from pboost.trees.restraints import Restraints
from pboost.trees.round_shards import (
    Added,
    Asked,
    At,
    Farthest,
    Fitted,
    Gathered,
    Looked,
    Packed,
    Parted,
    RoundShard,
    Sizes,
    Slopes,
)
from pboost.trees.rounds import Rounds
from pboost.trees.steps import Steps
from pboost.trees.weights import Weights
from pboost.values import FloatArray, IntArray

#: What is known of the step of a leaf.
STEP = np.asarray(kernel.STEP).dtype
_Method = TypeVar("_Method", bound=Callable[..., Any])


class RowParts(Protocol):
    """Rows of a sum of trees that lie in parts, wherever these are."""

    def problem(self) -> Problem:
        """Return the problem, whose columns have no rows."""

    def values(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return rows, numbered through all parts, or what is on the same side of edges of bins."""

    def scanned(self, weights: Weights) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
        """Return rows that tell how trees grow, see `pboost.trees.pairs`, and their codes."""

    def rounds(
        self,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weights: Weights,
        bias: Any,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints,
    ) -> ShardedRounds:
        """Return what grows one tree a round."""


class ShardedRounds(Rounds):
    """Rounds of a fit whose rows an engine has; parameters as of `Rounds`."""

    shares_lanes = False

    def __init__(
        self,
        engine: Engine,
        problem: Problem,
        y: FloatArray,
        loss: Loss,
        weight: Weights,
        limits: CartLimits,
        steps: Steps,
        restraints: Restraints,
    ) -> None:
        self._engine, self._told = engine, list[Any]()
        self.elsewhere = Elsewhere(self)
        self._sign = -1.0 if loss.name in kernel.OF_MARGIN else 1.0
        super().__init__(
            problem, y, loss, weight, np.empty(0), limits, steps, restraints, Workers(1)
        )

    def ask(self, told: Any) -> Answer:
        """Tell all places, and return what they answer together."""
        self._told.append(told)
        return RoundShard.merge(self._engine.masses(self._told))

    def look(self) -> None:
        """Have the derivatives of the decision values made, and find the mean loss."""
        u, y, size = self.ask(Farthest()).most.tolist()
        scale, most = kernel.loss_scale(self, self._sign * u, y, size)
        found = self.ask(Slopes(scale))
        self.steepest, self.most_curved = found.most.tolist()
        total = float(found.total[0]) / scale if np.isfinite(most) else most
        self.mean_loss = self.loss.reported * (total + self.more_loss) / self.total

    def list_rows(self, rows: IntArray) -> None:
        """Places grow trees on all rows that take part."""

    def is_uneven(self) -> bool:
        """Return whether words leave too little of most gradients."""
        large, some = self.ask(Sizes(self.steepest)).total.tolist()
        return bool(100 * large < some)

    def grown(self, rows: IntArray) -> Grown | None:
        """Return a tree of all rows; None where derivatives are no numbers."""
        try:
            return super().grown(rows)
        finally:
            self.elsewhere.check()

    def at(self, node: int) -> At:
        """Return what places are told of a node."""
        if node == 0:
            return At(0, -1, False)
        parent = int(self.node["parent"][node])
        return At(node, parent, node != int(self.node["child"][parent]))

    def _find_steps(self, grown: Grown, unit: float) -> None:
        self.elsewhere.check()
        nodes, steps = grown.nodes, self.steps
        made = np.flatnonzero(nodes["feature"][self.place] < 0)  # leaves, as nodes were made
        leaf = self.place[made]
        found = self.ask(Gathered([self.at(int(node)) for node in made]))
        step = np.zeros(len(leaf), dtype=STEP)
        step["u"], step["y"], step["size"], step["heaviest"] = found.most.T
        step["u"] *= self._sign
        step["n_copies"] = found.total
        guess = -unit * nodes["gradient"][leaf] / (nodes["curvature"][leaf] + self.node_l2)
        most = min(steps.most, self.loss.limit)
        kernel.begin_steps(self, step, guess, steps.l2, most, steps.solved)
        is_open, sums = np.ones(len(leaf), dtype=np.uint8), np.zeros((len(leaf), 2))
        while is_open.any():
            some = np.flatnonzero(is_open).astype(np.int32)
            scale = np.column_stack([step["slope_scale"][some], step["bend_scale"][some]])
            raised = step["is_raised"][some] > 0
            sums[some] = self.ask(Looked(some, step["at"][some], raised, scale)).total
            kernel.take_looks(self, step, sums, is_open)
        nodes["mean"][leaf] = steps.rate * step["at"]
        self._leaf = leaf

    def add(self, grown: Grown, rows: IntArray) -> None:
        """Have the tree just grown added to the decision values."""
        self._told.append(Added(grown.nodes["mean"][self._leaf]))

    def add_fitted(self, tree: Tree) -> None:
        """Have a tree of an earlier fit added to the decision values."""
        self._told.append(Fitted.of(tree))


def _kept(method: _Method) -> _Method:
    """Keep what a method raises, and return nothing after it: its caller is compiled."""

    @wraps(method)
    def guarded(there: Elsewhere, *arguments: Any) -> Any:
        if there.error is None:
            try:
                return method(there, *arguments)
            except BaseException as error:  # Ctrl-C too: raised by `check`
                there.error = error
        return there.NOTHING[method.__name__]

    return guarded  # type: ignore[return-value]


class Elsewhere:
    """What the compiled round asks in place of rows; see ``_core/_boost_elsewhere.pxd``."""

    #: What is answered once something has gone wrong.
    NOTHING: ClassVar[Mapping[str, Any]] = {
        "pack": None,
        "is_pure": True,
        "count": None,
        "squares": 0.0,
        "part": 0,
        "rows_by_bin": np.zeros(MAX_BINS, dtype=np.int32),
    }

    def __init__(self, rounds: ShardedRounds) -> None:
        self._rounds = rounds
        self.error: BaseException | None = None
        #: What was answered last: it is borrowed.
        self._latest: NDArray[Any] = np.empty(0)

    def check(self) -> None:
        """Raise what has gone wrong."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def _ask(self, node: int, what: str, *numbers: float) -> Answer:
        rounds = self._rounds
        return rounds.ask(Asked(rounds.at(node), what, numbers))

    @_kept
    def pack(self, gradient: float, curvature: float) -> None:
        """Have derivatives packed."""
        rounds = self._rounds
        rounds.ask(Packed(gradient, curvature, rounds.is_wide))

    @_kept
    def is_pure(self, node: int, gradient: float, curvature: float) -> bool:
        """Return whether the Newton steps of all rows of a node are equal."""
        return not self._ask(node, "are_mixed", gradient, curvature).most[0]

    @_kept
    def count(self, node: int) -> NDArray[np.float64]:
        """Return the masses of a node by bin, (d, 256, 2)."""
        self._latest = np.ascontiguousarray(self._ask(node, "count").total)
        return self._latest

    @_kept
    def squares(self, node: int) -> float:
        """Return the sum of the squares of the Newton steps of the rows of a node."""
        return float(self._ask(node, "squares").total[0])

    @_kept
    def rows_by_bin(self, node: int, feature: int) -> NDArray[np.int32]:
        """Return the number of rows of a node by bin, (256,)."""
        self._latest = self._ask(node, "rows_by_bin", feature).total.astype(np.int32)
        return self._latest

    @_kept
    def part(self, node: int, feature: int, side: bytes, with_words: bool) -> int:
        """Part the rows of a node by the side of each code; returns how many are below."""
        rounds = self._rounds
        told = Parted(rounds.at(node), feature, np.frombuffer(side, dtype=np.uint8), with_words)
        return int(rounds.ask(told).total[0])
