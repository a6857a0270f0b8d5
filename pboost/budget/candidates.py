"""Families of models that can be taken within a budget, and the paths of rows through them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from pboost.boosting.adaboost import fit_adaboost
from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.boosting.matryoshka import fit_matryoshka
from pboost.budget.choice import REACH, by_weight, first_part
from pboost.budget.distill import distill, held_back
from pboost.data.prices import FeatureCosts
from pboost.data.read.convert import Features
from pboost.export.c_file import c_size
from pboost.models.early_exit_model import Trajectory, feature_cost_trajectory, trajectory
from pboost.models.forest import RandomForest, join_trees
from pboost.models.graph import DecisionGraph
from pboost.models.tree_record import LEAF
from pboost.models.tree_sum import GradientBoostingModel
from pboost.trees.forest import fit_random_forest
from pboost.trees.stagewise import fit_gradient_boosting
from pboost.values import FloatArray, IntArray

#: Log odds by which a forest counts that is certain; those of its shares are cut off there.
CERTAIN = 4.0


def with_forest(
    chain: GradientBoostingModel, forest: RandomForest, share: float
) -> GradientBoostingModel:
    """Return ``1 - share`` times a sum of trees plus `share` times a forest, tree by tree.

    Of labels a forest adds in proportion to the shares of its leaves. Losses in training are not
    known after the trees of the forest: they are given as infinite.
    """
    first = _scaled(chain.trees, (1 - share) * chain.trees.value)
    last = _scaled(forest, share / len(forest) * _scores(forest, chain))
    trees = join_trees([*first, *last], chain.trees.settings, None)
    rounds = len(trees) // chain.n_trees
    loss = np.full(rounds + 1, np.inf)
    bias = (1 - share) * np.asarray(chain.bias)
    return replace(
        chain,
        trees=trees,
        bias=bias if bias.ndim else float(bias),
        training_loss=loss,
        settings={**chain.settings, "forest": len(forest), "share": share},
        validation_loss=None,
        stop_reason="all trees are there",
    )


def _scores(forest: RandomForest, chain: GradientBoostingModel) -> FloatArray:
    """Return what the leaves of a forest say in units of the decision values of a sum."""
    value = forest.value
    if chain.classes is not None:
        scale = CERTAIN if value.shape[1] == 2 else 2 * CERTAIN
        value = scale * (value - value.mean(axis=1, keepdims=True))
        if chain.n_votes == 1:
            value = 2 * value[:, 1]
    is_leaf = forest.feature == LEAF
    return np.where(is_leaf if value.ndim == 1 else is_leaf[:, None], value, 0.0)


def _scaled(trees: RandomForest, value: FloatArray) -> RandomForest:
    """Return trees as regression trees with these values."""
    return replace(trees, value=value, classes=None, oob=None)


# The families: few, each grown as long as a budget asks for

FamilyModel: TypeAlias = DecisionGraph | GradientBoostingModel
#: Trees of the long sum, those of it that are mixed with a forest at most, and those of the forest.
LONG, MOST_MIXED, FOREST = 200, 150, 30
#: Trees of the short sum, and of chains, at most.
SHORT, DEEP = 150, 60
#: Trees of sums that know costs.
COST_AWARE = 100
#: Rows from which on trees are large, for a leaf of them, the trees and their leaves at most.
MANY_ROWS, ROWS_OF_LEAF, LARGE, MOST_LEAVES = 6000, 48, 60, 2048
#: Bytes of a node in int16, in a chain and in a tree with where its exits lead, of a vote, and of
#: the place of a tree; trees and stumps that are grown at most where bytes are counted.
NODE_OF_CHAIN, NODE, VOTE, ROOT, MOST_SMALL, MOST_STUMPS = 3, 5, 4, 1, 200, 600
#: Share of the forest in what it is mixed with.
SHARE = 0.5
#: Nodes of a tree that is a model by itself.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Fits:
    """What is fitted to rows, each model once.

    `task` is "two" or "many" labels, or "regression"; `budget` the largest for which models are
    wanted; `n_rows` the number of all rows, of which these may be a part; `rng` returns the random
    numbers of each fit. Where budgets are feature costs, `feature_costs` are those of the columns
    and `cost_options` the options of builders that say so; `is_device`: they are bytes of a small
    device.
    """

    X: Features
    y: Any
    task: str
    budget: float
    n_rows: int
    rng: Callable[[int], np.random.Generator]
    n_threads: int | None
    feature_costs: FeatureCosts | None = None
    cost_options: Mapping[str, Any] = field(default_factory=dict)
    made: dict[str, FamilyModel] = field(default_factory=dict)
    weight: FloatArray | None = None
    is_device: bool = False

    def of(self, family: str) -> FamilyModel:
        """Return the model of a family."""
        if family not in self.made:
            self.made[family] = FAMILIES[family].fit(self, family)
        return self.made[family]

    @property
    def unit(self) -> str:
        """What budgets are counted in."""
        if self.is_device:
            return "max_bytes"
        return "mean_comparisons" if self.feature_costs is None else "mean_feature_cost"

    @property
    def options(self) -> dict[str, Any]:
        """Options of all builders."""
        return {"sample_weight": self.weight, "n_threads": self.n_threads}

    @property
    def task_of_builders(self) -> Literal["classification", "regression"]:
        """What builders call the task."""
        return "regression" if self.task == "regression" else "classification"

    def sum_of_trees(self, number: int, **options: Any) -> GradientBoostingModel:
        """Return a sum of trees, one a round; where costs are known, one for each label."""
        has_one = self.task == "many" and "feature_costs" not in options
        return fit_gradient_boosting(
            self.X,
            self.y,
            task=self.task_of_builders,
            multi_strategy="multi_output_tree" if has_one else "one_output_per_tree",
            max_depth=None,
            rng=self.rng(number),
            **self.options,
            **options,
        )

    def rounds(self, family: str, per_round: float, max_rounds: int) -> int:
        """Return how many rounds, of so many comparisons, a family needs at most."""
        budget = min(self.budget, FAMILIES[family].max_budget)
        return min(math.ceil(REACH * budget / per_round) + 1, max_rounds)


def _mixture(fits: Fits, family: str) -> GradientBoostingModel:
    """Return a sum of trees and a forest, which err in other places, in one sum.

    Trees of the forest are grown to the end on all rows, in few columns at each node.
    """
    chain = fits.of("long sum of trees")
    assert isinstance(chain, GradientBoostingModel)
    forest = fit_random_forest(
        fits.X,
        fits.y,
        task=fits.task_of_builders,
        n_estimators=FOREST,
        bootstrap=False,
        rng=fits.rng(1),
        **fits.options,
    )
    return with_forest(chain.truncate(min(len(chain), MOST_MIXED)), forest, SHARE)


def _long(fits: Fits, family: str) -> GradientBoostingModel:
    """Return many small steps, each by other rows and columns."""
    leaves = 16 if fits.task == "many" else 8
    return fits.sum_of_trees(
        0,
        max_leaf_nodes=leaves,
        learning_rate=0.1,
        subsample=0.6,
        max_features_per_tree=0.7,
        n_estimators=LONG,
    )


def _short(
    fits: Fits, family: str, *, number: int, leaves: int, rate: float, per_round: float
) -> GradientBoostingModel:
    """Return large steps; `number` is that of its random numbers."""
    steps = fits.rounds(family, per_round, SHORT)
    return fits.sum_of_trees(number, max_leaf_nodes=leaves, learning_rate=rate, n_estimators=steps)


def _large(fits: Fits, family: str) -> GradientBoostingModel:
    """Return trees as large as many rows bear."""
    leaves = min(fits.n_rows // ROWS_OF_LEAF, MOST_LEAVES)
    steps = fits.rounds(family, 0.8 * np.log2(leaves), LARGE)
    held = held_back(fits.task)
    return fits.sum_of_trees(
        7, max_leaf_nodes=leaves, learning_rate=0.3, min_child_weight=held, n_estimators=steps
    )


def _saving(fits: Fits, family: str, *, first: float) -> GradientBoostingModel:
    """Return trees that grow by gain per comparison, the first up to so many of a row.

    The others are twice as large where there are many rows.
    """
    other, held = 8.0 if fits.n_rows >= MANY_ROWS else 4.0, held_back(fits.task)
    return fits.sum_of_trees(
        8,
        growth="cost_efficient",
        tree_comparisons=(first, other),
        learning_rate=0.5,
        min_child_weight=held,
        l2_regularization=held,
        leaf_update="newton",
        n_estimators=fits.rounds(family, 0.75 * other, LARGE),
    )


def _chain(
    fits: Fits, family: str, *, max_nodes: int, per_round: float, rate: float = 0.3
) -> DecisionGraph:
    """Return a chain of deep trees, which find what no single split shows."""
    shape = max_nodes, fits.rounds(family, per_round, DEEP)
    return fit_matryoshka(
        fits.X, fits.y, shape=shape, join="all", learning_rate=rate, **fits.options
    )


def _tree(fits: Fits, family: str) -> DecisionGraph:
    """Return a tree, whose first nodes are small models."""
    return fit_boosted_tree(
        fits.X, fits.y, max_nodes=SIZES[-1], growth="look_ahead", **fits.options
    )


def _distilled(fits: Fits, family: str, *, teacher: str, rate: float) -> GradientBoostingModel:
    """Return a shorter sum of trees that imitates a longer one."""
    mean_comparisons = REACH * min(fits.budget, FAMILIES[family].max_budget)
    X = fits.X
    if fits.weight is not None:
        X = X.take(by_weight(fits.weight, X.n_rows))
    return distill(
        fits.of(teacher),
        X,
        mean_comparisons=mean_comparisons,
        learning_rate=rate,
        rng=fits.rng(3),
        n_threads=fits.n_threads,
    )


def _cost_aware(
    fits: Fits, family: str, *, leaves: int = 8, comparison_cost: float | None = None
) -> GradientBoostingModel:
    """Return large steps whose splits know what is still to be paid.

    `comparison_cost` is that of a comparison, by the mean cost of a column: the larger, the less
    costs matter.
    """
    assert fits.feature_costs is not None
    every = np.ones((1, fits.X.n_features), dtype=np.bool_)
    mean = float(fits.feature_costs.of_columns(every)[0]) / fits.X.n_features
    more = {} if comparison_cost is None else {"comparison_cost": comparison_cost * mean or 1.0}
    return fits.sum_of_trees(
        5,
        max_leaf_nodes=leaves,
        learning_rate=0.3,
        n_estimators=COST_AWARE,
        **fits.cost_options,
        **more,
    )


def _small(fits: Fits, family: str, *, leaves: int) -> GradientBoostingModel:
    """Return trees of so many leaves, as many as there is room for."""
    added = leaves * (3 if fits.task == "many" else 1)  # at least
    per_tree = NODE * (leaves - 1) + VOTE * added + ROOT
    steps = fits.rounds(family, per_tree * REACH, MOST_SMALL)
    return fits.sum_of_trees(9, max_leaf_nodes=leaves, learning_rate=0.3, n_estimators=steps)


def _small_stumps(fits: Fits, family: str) -> DecisionGraph:
    """Return a vote of stumps, of which each takes a column, a threshold and a vote."""
    rounds = fits.rounds(family, (NODE_OF_CHAIN + VOTE) * REACH, MOST_STUMPS)
    return fit_adaboost(fits.X, fits.y, n_estimators=rounds, **fits.options)


class Family(NamedTuple):
    """How models are grown, for which tasks, for what budgets and of how many rows."""

    fit: Callable[[Fits, str], FamilyModel]
    tasks: tuple[str, ...] = ("two", "many", "regression")
    min_budget: float = 0.0
    max_budget: float = math.inf
    unit: str = "mean_comparisons"
    rows: int = 0


def _deep(leaves: int) -> Callable[[Fits, str], DecisionGraph]:
    """Return how a chain of trees of so many leaves is grown."""
    return partial(_chain, max_nodes=leaves - 1, per_round=0.8 * np.log2(leaves))


_BYTES_OF_SEVEN = 7 * (NODE + 2 * VOTE)
_LABELS = ("two", "many")
#: By their names in ``settings``.
FAMILIES = {
    "mixture": Family(_mixture, min_budget=160),
    "distilled sum of trees": Family(
        partial(_distilled, teacher="long sum of trees", rate=0.5),
        ("two",),
        min_budget=4.5,
        max_budget=30,
    ),
    "distilled mixture": Family(
        partial(_distilled, teacher="mixture", rate=0.25), ("two",), min_budget=30, max_budget=150
    ),
    "chain": Family(_deep(32), _LABELS),
    "chain of smaller trees": Family(_deep(16), ("many",), min_budget=30),
    "chain of larger trees": Family(_deep(128), ("many",), min_budget=4.5),
    "short sum of trees": Family(
        partial(_short, number=2, leaves=8, rate=0.3, per_round=2.5), max_budget=150
    ),
    "long sum of trees": Family(_long, min_budget=30),
    "sum of larger trees": Family(
        partial(_short, number=6, leaves=16, rate=0.6, per_round=3.0),
        ("two",),
        min_budget=8,
        max_budget=30,
    ),
    "sum of saving trees": Family(
        partial(_saving, first=4.6), _LABELS, min_budget=4.5, max_budget=8
    ),
    "sum of large saving trees": Family(
        partial(_saving, first=8.0), _LABELS, min_budget=8, max_budget=15, rows=MANY_ROWS
    ),
    "sum of large trees": Family(_large, min_budget=12, rows=MANY_ROWS),
    "tree": Family(_tree, _LABELS, max_budget=15),
    "stumps": Family(
        partial(_short, number=4, leaves=2, rate=0.5, per_round=1.0), ("regression",), max_budget=15
    ),
    "large steps of stumps": Family(
        partial(_short, number=4, leaves=2, rate=1.0, per_round=1.0), ("many",), min_budget=8
    ),
    "cost-aware trees": Family(_cost_aware, unit="mean_feature_cost"),
    "cost-aware trees, mildly": Family(
        partial(_cost_aware, comparison_cost=1.0), unit="mean_feature_cost"
    ),
    "cost-aware stumps": Family(partial(_cost_aware, leaves=2), unit="mean_feature_cost"),
    "trees that ignore costs": Family(
        partial(_cost_aware, comparison_cost=1e6), unit="mean_feature_cost"
    ),
    "votes of stumps": Family(_small_stumps, ("two",), unit="max_bytes"),
    "chain of small trees": Family(
        partial(_chain, max_nodes=7, per_round=_BYTES_OF_SEVEN * REACH, rate=0.5),
        _LABELS,
        unit="max_bytes",
    ),
    "small stumps": Family(partial(_small, leaves=2), unit="max_bytes"),
    "small trees": Family(partial(_small, leaves=4), unit="max_bytes"),
    "small larger trees": Family(partial(_small, leaves=8), unit="max_bytes"),
    "small tree": Family(_tree, _LABELS, unit="max_bytes"),
}


def families(
    task: str, budget: float, n_rows: int = 0, unit: str = "mean_comparisons"
) -> list[str]:
    """Return the families that are tried for a budget and so many rows."""
    return [
        name
        for name, family in FAMILIES.items()
        if task in family.tasks
        and family.unit == unit
        and family.min_budget <= budget <= family.max_budget
        and family.rows <= n_rows
    ]


# Models and their first parts


def joints_of(model: FamilyModel) -> int:
    """Return how many joints a model has, or how many parts a tree."""
    sizes = sizes_of(model)
    return model.n_stages if sizes is None else len(sizes)


def sizes_of(model: FamilyModel) -> IntArray | None:
    """Return how many nodes the parts of a tree have, which are trees; None of models of joints."""
    if model.settings["builder"] != "fit_boosted_tree":
        return None
    return np.array([*(size for size in SIZES if size < model.n_nodes), model.n_nodes])


def first(model: FamilyModel, joints: int) -> FamilyModel:
    """Return a model up to a joint, or a part of a tree."""
    sizes = sizes_of(model)
    if sizes is not None:
        return model.truncate(int(sizes[min(joints, len(sizes)) - 1]))
    return model.first(min(joints, model.n_stages))


def path_of(
    model: FamilyModel, X: Features, feature_costs: FeatureCosts | None = None
) -> Trajectory:
    """Return the path of rows through a model, or through the parts of a tree; what they pay."""
    sizes = sizes_of(model)
    if sizes is None:
        return (
            trajectory(model, X)
            if feature_costs is None
            else feature_cost_trajectory(model, X, feature_costs)
        )
    paths = [trajectory(model.truncate(int(size)), X) for size in sizes]
    paths = [first_part(paths[0], 0), *(Trajectory(*(at[-1:] for at in path)) for path in paths)]
    return Trajectory(*(np.concatenate(parts) for parts in zip(*paths, strict=True)))


def longest(model: FamilyModel) -> FloatArray:
    """Return the most comparisons that a row can need in no part, and in each."""
    sizes = sizes_of(model)
    if sizes is None:
        return model.longest_costs()
    return np.array([0.0, *(model.truncate(int(size)).longest_costs()[-1] for size in sizes)])


# Bytes on a small device

#: Of how many parts of a model bytes are counted; those between them are interpolated.
COUNTED = 64


def bytes_of(model: FamilyModel) -> FloatArray:
    """Return about how many bytes the parts of a model take, of 0, 1, … joints."""
    joints = joints_of(model)
    counted = np.unique(np.linspace(1, joints, min(COUNTED, joints)).round().astype(np.intp))
    sizes = [c_size(first(model, int(joint))) for joint in counted]
    return np.interp(np.arange(joints + 1), [0, *counted], [0, *sizes])


def costly_path(fits: Fits, model: FamilyModel, X: Features) -> Trajectory:
    """Return the path of rows through a model, whose costs are what budgets are counted in."""
    path = path_of(model, X, fits.feature_costs)
    if not fits.is_device:
        return path
    return path._replace(cost=np.repeat(bytes_of(model)[:, None], X.n_rows, axis=1))


def fitted_in_bytes(
    full_fits: Fits, family: str, joints: int, max_bytes: float
) -> FamilyModel | None:
    """Return the longest part of a family's model, fitted to all rows, that takes no more.

    Of at most so many joints; None where there is none.
    """
    model = full_fits.of(family)
    fits = np.flatnonzero(bytes_of(model)[: joints + 1] <= max_bytes)
    for joint in range(int(fits[-1]), 0, -1):
        part = first(model, joint)
        if c_size(part) <= max_bytes:
            return part
    return None
