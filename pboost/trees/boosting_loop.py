"""The training loop of gradient boosting. It can be continued after a model was returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from pboost._core import boost
from pboost.data.columns.columns import BinnedColumns, SortedColumns
from pboost.data.columns.sparse_columns import SparseColumns, SparseFeatures
from pboost.data.read.convert import Features
from pboost.data.row_draws import RowDraws, drawn_share, row_hashes
from pboost.data.targets import weight_of_copy
from pboost.data.training_data import Problem
from pboost.growth.graph_growth import STOPPED, Callback, GradientBoostingStep
from pboost.growth.tree import CartLimits
from pboost.losses import Loss, Softmax, is_of_package
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.random_forest import RandomForest, join_trees
from pboost.models.single_tree import Tree
from pboost.threads import Workers
from pboost.trees import pooled_growth as pooling
from pboost.trees.early_stopping import LossEarlyStopping
from pboost.trees.gradients import RoundWeights, Steps, check_size, targets_of, weights_of
from pboost.trees.multi_output_rounds import VectorRounds
from pboost.trees.pooled_growth import growth_by_pairs
from pboost.trees.random_forest import nodes_of_rows
from pboost.trees.regularization import Restraints, draws_columns
from pboost.trees.softmax_rounds import SoftmaxRounds
from pboost.trees.sparse_rounds import SparseRounds, sparse_predictions
from pboost.trees.tree_rounds import ExactRounds, Rounds
from pboost.values import Array, Bar, FloatArray, draw_key

#: With ``n_estimators="auto"``, the number of rounds times the learning rate.
FEW_ROUNDS = 10.0
#: Larger numbers of rounds, if shrinkage keeps much. Each entry is the round after which a fit may
#: choose it, the least share of the squared leaf values that shrinkage must keep, and the number of
#: rounds. Rounds are multiplied by the learning rate.
MORE_ROUNDS = ((4.0, 0.6, 20.0), (15.0, 0.7, 40.0))
#: Number of rounds, times the learning rate, over which this share is averaged.
DECIDED_BY = 1.0
#: Smaller learning rates do not increase the number of rounds.
LEAST_RATE = 0.01


class Growing(NamedTuple):
    """The loss, limits and options for the growth of trees."""

    loss: Loss
    limits: CartLimits
    steps: Steps
    restraints: Restraints
    has_one_tree: bool


class SumRows(Protocol):
    """The training rows of gradient boosting, in one table or in partitions.

    Attributes
    ----------
    problem : Problem
        Features, targets and validation rows.
    of_row, greatest : float
        Unit of the weights, see `weight_of_copy`, and the largest weight. Both are 1 without
        weights.
    """

    problem: Problem
    of_row: float
    greatest: float

    def take_targets(self, loss: Loss, y: object) -> Array | None:
        """Compute the targets of the loss; return the classes."""

    def sort_once(self) -> None:
        """Sort the features once for all trees."""

    def n_copies(self) -> float:
        """Return the sum of the weights in units of `of_row`."""

    def weights(self, is_binned: bool) -> RoundWeights:
        """Return the weights for the rounds."""

    def bias(self, loss: Loss, is_constant: bool) -> float | FloatArray:
        """Return the initial decision value, or one per class with softmax."""

    def scan(self) -> pooling.Scanned:
        """Return the rows from which `growth` is chosen, see `growth_by_pairs`."""

    def rounds(self, growing: Growing, bias: object, workers: Workers) -> Any:
        """Return the object that grows the trees of a round."""

    def begin_draws(self, share: float, seed: int) -> None:
        """Prepare to draw this fraction of the rows for the trees of each round."""

    def listed(self, number: int) -> Any:
        """Return the rows on which the trees of a round are grown."""

    def given_values(self, tree: Tree) -> FloatArray:
        """Return the values of a tree of an earlier fit for all rows."""

    def refuse_first(self, rounds: object) -> None:
        """Raise ValueError if the first tree cannot be fitted to the derivatives."""


def is_in_bins(problem: Problem) -> bool:
    """Return whether the features are binned, so that sums are exact."""
    return isinstance(problem.columns, BinnedColumns | SparseColumns)


class TableRows:
    """The training rows in a single table, see `SumRows`."""

    def __init__(self, problem: Problem, X: object, n_threads: int | None) -> None:
        self.problem, self._n_threads = problem, n_threads
        self.of_row = weight_of_copy(problem.weights)
        self.greatest = 1.0 if problem.weights is None else float(problem.weights.max())
        self._weight: FloatArray = np.broadcast_to(1.0, problem.n_rows)  # takes no memory
        if problem.weights is not None:
            self._weight = problem.weights / self.greatest  # 0 for validation rows
        self._features = X if isinstance(X, Features | SparseFeatures) else None

    def take_targets(self, loss: Loss, y: object) -> Array | None:
        """Compute the targets of the loss; return the classes."""
        classes, self._y = targets_of(self.problem, loss, y)
        return classes

    def sort_once(self) -> None:
        """Sort the features once for all trees."""
        self.problem = self.problem.sorted_once(self._n_threads)

    def n_copies(self) -> float:
        """Return the sum of the weights in units of `of_row`."""
        weights = self.problem.weights
        return self.problem.n_rows if weights is None else boost.exact_sum(weights) / self.of_row

    def weights(self, is_binned: bool) -> RoundWeights:
        """Return the weights for the rounds."""
        unit = self.of_row / self.greatest if is_binned else None
        self._weights = weights_of(self._weight, unit)
        return self._weights

    def bias(self, loss: Loss, is_constant: bool) -> float | FloatArray:
        """Return the initial decision value, or one per class with softmax."""
        classes, y, weight = self.problem.classes, self._y, self._weight
        if not is_constant:
            return np.zeros(len(classes)) if isinstance(loss, Softmax) else 0.0  # type: ignore[arg-type]
        if self._weights.are_copies and self._weights.of_rows is not None:
            weight = self._weights.of_rows
        if isinstance(loss, Softmax):
            return np.asarray(loss.constant(y, weight))
        used = np.flatnonzero(weight > 0)
        y, weight = y[used], weight[used]
        if not is_of_package(loss):
            check_size(loss, y, np.zeros(len(y)), self.problem.input_rows(used))
        return float(loss.constant(y, weight))

    def scan(self) -> pooling.Scanned:
        """Return the rows from which `growth` is chosen, see `growth_by_pairs`."""
        columns, weights = self.problem.columns, self._weights
        assert isinstance(columns, BinnedColumns)
        used = None if weights.of_rows is None else weights.of_rows > 0
        rows, codes = pooling.scanned_part(columns, used, weights.n_copies)
        few = None if weights.of_rows is None else weights.of_rows[rows]
        return pooling.few_rows(codes, self._y[rows], few, weights.n_copies)

    def rounds(self, growing: Growing, bias: Any, workers: Workers) -> Any:
        """Return the object that grows the trees of a round."""
        self._workers = workers
        f = np.repeat(np.expand_dims(bias, -1), len(self._y), axis=-1)
        make = partial(self._one, growing, workers)
        if not isinstance(growing.loss, Softmax):
            return make(self._y, growing.loss, self._weights, f, growing.steps)
        kind = VectorRounds if growing.has_one_tree else SoftmaxRounds
        return kind(self._y, self._weights, f, growing.steps, make, workers)

    def _one(
        self,
        growing: Growing,
        workers: Workers,
        y: FloatArray,
        loss: Loss,
        weights: RoundWeights,
        f: FloatArray,
        steps: Steps,
    ) -> Rounds | ExactRounds:
        """Return the object that grows a single tree per round."""
        nothing = np.broadcast_to(0.0, len(y))  # takes no memory
        label = np.empty(0, dtype=np.int32)
        problem = replace(self.problem, classes=None, label=label, y=nothing)
        limits = growing.limits
        if isinstance(problem.columns, BinnedColumns | SparseColumns):
            kind = Rounds if isinstance(problem.columns, BinnedColumns) else SparseRounds
            case = problem, y, loss, weights, f, limits, steps
            return kind(*case, growing.restraints, workers)
        weight = np.broadcast_to(1.0, len(y)) if weights.of_rows is None else weights.of_rows
        return ExactRounds(problem, y, loss, weight, f, limits, steps, workers.n_threads)

    def begin_draws(self, share: float, seed: int) -> None:
        """Prepare to draw this fraction of the rows for the trees of each round."""
        self._rows, self._draws = np.flatnonzero(self._weight > 0).astype(np.int32), None
        if share < 1.0:
            columns = self.problem.columns
            assert isinstance(columns, SortedColumns | BinnedColumns | SparseColumns)
            self._draws = RowDraws(row_hashes(columns, self._y), self._rows, share, seed)

    def listed(self, number: int) -> Any:
        """Return the rows on which the trees of a round are grown."""
        if self._draws is None:
            return self._rows
        drawn = self._draws.drawn(number, self._workers.team)
        return drawn if len(drawn) else self._rows

    def given_values(self, tree: Tree) -> FloatArray:
        """Return the values of a tree of an earlier fit for all rows."""
        rows = np.arange(self.problem.n_rows)
        if self._features is None:
            values: FloatArray = tree.value[nodes_of_rows(tree, self.problem, rows)]
            return values
        # The thresholds of an earlier tree may differ from the bin edges of these rows.
        if isinstance(self._features, SparseFeatures):
            return sparse_predictions(tree, self._features)
        values = tree.predict(self._features)[self.problem.input_rows(rows)]
        return values

    def refuse_first(self, rounds: Any) -> None:
        """Raise ValueError if the first tree cannot be fitted to the derivatives."""
        rows = np.flatnonzero(self._weight > 0)
        check_size(rounds.loss, rounds.y[rows], rounds.f[rows], self.problem.input_rows(rows))


class SumFit:
    """The state of a fit: the trees so far, and an object that grows more trees.

    Attributes
    ----------
    trees : list
        The tree of each round. With softmax, the list of trees of each round.
    rounds : Rounds, ExactRounds, SoftmaxRounds, VectorRounds or ShardedRounds
        Object that grows the trees of a round.
    end : str
        Reason why no more trees can be added; empty if trees can be added.
    made, n_made : RandomForest or None, int
        The trees that were already converted to a model, and their number of rounds.
    """

    def __init__(
        self,
        rows: SumRows,
        growing: Growing,
        watch: LossEarlyStopping,
        settings: dict[str, Any],
        classes: Array | None,
        workers: Workers,
        generator: np.random.Generator,
        first_model: GradientBoostingModel | None,
    ) -> None:
        self.loss = loss = growing.loss
        self.rows, self.watch, self.settings = rows, watch, settings
        self.classes, self.workers = classes, workers
        self.trees: list[Any] = []
        self.end = ""
        share = drawn_share(settings["subsample"], rows.n_copies())
        rows.begin_draws(share, draw_key(generator) if share < 1.0 else 0)
        #: Whether each tree uses all rows and features.
        self.is_same = share == 1.0 and not draws_columns(settings)
        weights = rows.weights(is_in_bins(rows.problem))
        is_constant = settings["init"] == "constant"
        self.bias = rows.bias(loss, is_constant) if first_model is None else first_model.bias
        self.first_trees = () if first_model is None else tuple(_by_rounds(first_model))
        self.made, self.n_made = (
            None if first_model is None else first_model.trees,
            len(self.first_trees),
        )
        unit = rows.of_row if weights.are_copies else rows.greatest
        growth = settings["growth"], rows.scan, loss, weights.are_copies, self.bias
        settings["growth"], limits = growth_by_pairs(*growth, growing.limits)
        growing = growing._replace(
            limits=replace(limits, criterion="squared_error"),
            steps=growing.steps._replace(
                l2=growing.steps.l2 / unit,
                row_weight=1.0 if weights.are_copies else rows.of_row / rows.greatest,
            ),
            restraints=growing.restraints.of_unit(unit),
        )
        self.rounds = rows.rounds(growing, self.bias, workers)
        self.training_loss = [self.rounds.mean_loss]
        watch.begin(self.bias)

    def grow(self, bar: Bar, n_reported: int) -> GradientBoostingModel:
        """Add trees and return the model; skip the callback in the first `n_reported` rounds."""
        total = self.settings["n_estimators"]
        total = self._rounds_of(FEW_ROUNDS) if total == "auto" else total
        with self.workers, bar(total, "steps", n_reported) as callback:
            return self._model(self._run(callback, n_reported))

    def go_on(self, n_estimators: int, bar: Bar) -> GradientBoostingModel:
        """Continue training up to a total of `n_estimators` rounds, and return the model."""
        self.settings = {**self.settings, "n_estimators": n_estimators}
        return self.grow(bar, len(self.trees))

    def _run(self, callback: Callback | None, n_reported: int) -> str:
        """Add trees until training ends; return the reason."""
        kept = list[float]()
        while not self.end:
            step = len(self.trees) + 1
            if self.settings["n_estimators"] == "auto":
                self._choose_total(kept)
            total = self.settings["n_estimators"]
            if total != "auto" and step > total:
                break
            record = self._add(step)
            kept.append(self.rounds.kept)
            if callback is None or record is None or step <= n_reported:
                continue
            if callback(step, record):
                return STOPPED
        return self.end or "all trees are there"

    def _rounds_of(self, rate_times_rounds: float) -> int:
        """Return the number of rounds for the learning rate."""
        return round(rate_times_rounds / max(self.settings["learning_rate"], LEAST_RATE))

    def _choose_total(self, kept: list[float]) -> None:
        """Set `n_estimators` once it is known; `kept` is the share that each round kept."""
        total, n_decided_by = FEW_ROUNDS, max(self._rounds_of(DECIDED_BY), 1)
        for decided_after, min_share, more in MORE_ROUNDS:
            n_decided_after = self._rounds_of(decided_after)
            if len(kept) < n_decided_after:
                return
            if np.mean(kept[n_decided_after - n_decided_by : n_decided_after]) < min_share:
                break
            total = more
        self.settings = {**self.settings, "n_estimators": self._rounds_of(total)}

    def _add(self, step: int) -> GradientBoostingStep | None:
        """Add the trees of a round; return None and set `end` if there are none."""
        rounds = self.rounds
        tree = self._next_tree(step)
        if tree is None:
            if not self.trees:
                self.rows.refuse_first(rounds)
                raise ValueError(
                    "loss: expected derivatives with finite Newton steps, got infinite or NaN steps"
                )
            self.end = "the loss of a row is too large to continue"
            return None
        value = rounds.values(tree)
        if step > 1 and self.is_same and not value.any():
            self.end = "no leaf lowers the loss"
            return None
        self.trees.append(tree)
        self.training_loss.append(rounds.mean_loss)
        if self.watch.add(partial(rounds.tree, tree), rounds.f):
            n_rounds = self.watch.settings["n_iter_no_change"]
            unit = "rounds" if self.loss.is_multiclass else "trees"
            self.end = f"no improvement on the validation set for {n_rounds} {unit}"
        n_trees = np.size(self.bias) if value.ndim == 1 else 1
        n_leaves = (len(value) + n_trees) // 2
        return GradientBoostingStep(n_leaves, rounds.mean_loss, self.watch.latest)

    def _model(self, stop_reason: str) -> GradientBoostingModel:
        """Return the model with the rounds up to the lowest validation loss."""
        kept = max(1, self.watch.best) if self.watch.settings else len(self.trees)
        if self.settings["n_estimators"] == "auto":  # training ended before a total was chosen
            totals = map(self._rounds_of, (FEW_ROUNDS, *(more for *_, more in MORE_ROUNDS)))
            total = min(total for total in totals if total >= len(self.trees))
            self.settings = {**self.settings, "n_estimators": total}
        return GradientBoostingModel(
            self._forest(kept),
            self.bias,
            self.loss,
            self.classes,
            self.settings,
            stop_reason,
            np.array(self.training_loss[: kept + 1]),
            np.array(self.watch.losses) if self.watch.settings else None,
            metric_values=self.watch.values,
            seen=self.watch.seen,
        )

    def _forest(self, kept: int) -> RandomForest:
        """Return the trees of the first rounds. Only new trees are converted."""
        made = self.made
        if made is None:
            made = self.rounds.forest(self.trees[:kept])
        elif kept < self.n_made:
            return made[: kept * (len(made) // self.n_made)]
        elif kept > self.n_made:
            parts = made, self.rounds.forest(self.trees[self.n_made : kept])
            made = join_trees(parts, made.settings, None)
        self.made, self.n_made = made, kept
        return made

    def _next_tree(self, step: int) -> Any:
        """Return the tree of a round, from the earlier fit or newly grown; None on overflow."""
        rounds = self.rounds
        if step > len(self.first_trees):
            return rounds.grow(self.rows.listed(step - 1))
        trees = self.first_trees[step - 1]
        rounds.number += len(trees) if isinstance(trees, list) else 1
        if self.settings["feature_costs"] is not None:
            rounds.pay_given(trees if isinstance(trees, list) else [trees])
        rounds.add_fitted(trees, self.rows.given_values)
        rounds.look()
        return trees


def _by_rounds(model: GradientBoostingModel) -> Iterator[Any]:
    """Yield the tree of each round, or a list of trees with softmax."""
    trees, n = list(model.trees), model.n_trees
    for start in range(0, len(trees), n):
        yield trees[start : start + n] if model.loss.is_multiclass else trees[start]
