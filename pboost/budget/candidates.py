"""Families of candidate models for a cost budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from pboost.boosting.adaboost import fit_adaboost
from pboost.boosting.boosted_tree import fit_boosted_tree
from pboost.boosting.matryoshka import fit_matryoshka
from pboost.budget.distill import distill, held_back
from pboost.budget.leaf_smoothing import smoothed
from pboost.budget.model_choice import REACH, by_weight, first_part
from pboost.data.feature_costs import FeatureCosts
from pboost.data.read.convert import Features
from pboost.data.targets import SoftLabels
from pboost.export.c_file import c_size
from pboost.models.early_exit_model import Trajectory, feature_cost_trajectory, trajectory
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.models.random_forest import RandomForest, join_trees
from pboost.models.tree_ensemble import LEAF
from pboost.trees.gradient_boosting import fit_gradient_boosting
from pboost.trees.random_forest import fit_random_forest
from pboost.values import FloatArray, IntArray

#: Absolute decision value of a forest whose trees all predict the same class.
CERTAIN = 4.0


def with_forest(
    chain: GradientBoostingModel, forest: RandomForest, share: float
) -> GradientBoostingModel:
    """Mix a gradient boosting model and a forest with weights ``1 - share`` and `share`.

    For classification, the leaves of the forest contribute in proportion to their class shares.
    Training losses of the mixture are not computed and are set to infinity.
    """
    first = _scaled(chain.trees, (1 - share) * chain.trees.value)
    last = _scaled(forest, share / len(forest) * _scores(forest, chain))
    trees = join_trees([first, last], chain.trees.settings, None)
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
    """Return the leaf values of a forest on the scale of decision values."""
    value = forest.value
    if chain.classes is not None:
        scale = CERTAIN if value.shape[1] == 2 else 2 * CERTAIN
        value = scale * (value - value.mean(axis=1, keepdims=True))
        if chain.n_votes == 1:
            value = 2 * value[:, 1]
    is_leaf = forest.feature == LEAF
    return np.where(is_leaf if value.ndim == 1 else is_leaf[:, None], value, 0.0)


def _scaled(trees: RandomForest, value: FloatArray) -> RandomForest:
    """Return the trees as regression trees with leaf values `value`."""
    return replace(trees, value=value, classes=None, oob=None)


# Families of models, each fitted to the size that the budget requires

FamilyModel: TypeAlias = DecisionGraph | GradientBoostingModel
#: Gradient boosting with small steps has LONG trees. A mixture contains at most MOST_MIXED of these
#: trees and a forest with FOREST trees.
LONG, MOST_MIXED, FOREST = 200, 150, 30
#: Maximum number of trees in gradient boosting with large steps, and in a chain.
SHORT, DEEP = 150, 60
#: Number of trees of cost-aware models.
COST_AWARE = 100
#: Large trees need at least MANY_ROWS rows and have ROWS_OF_LEAF rows per leaf. There are at most
#: LARGE trees, with at most MOST_LEAVES leaves each.
MANY_ROWS, ROWS_OF_LEAF, LARGE, MOST_LEAVES = 6000, 48, 60, 2048
#: The first four values are bytes in int16 files: a node in a chain, a node in a tree, a vote and a
#: root. The last two values are the maximum numbers of trees and of stumps.
NODE_OF_CHAIN, NODE, VOTE, ROOT, MOST_SMALL, MOST_STUMPS = 3, 5, 4, 1, 200, 600
#: Weight of the forest in a mixture.
SHARE = 0.5
#: Number of trees of a teacher, and number of synthetic rows for its student.
TEACHER, SYNTHETIC = 100, 5000
#: Options of `fit_gradient_boosting` that a family can replace.
PLAIN: Mapping[str, Any] = MappingProxyType(
    {"max_depth": None, "leaf_shrinkage": 0.0, "random_strength": 0.0, "subsample": None}
)
#: Numbers of nodes of candidate subtrees.
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Fits:
    """Models of all families for a set of rows. A model is fitted when it is first needed.

    `task` is "two" or "many" (the number of classes) or "regression". `budget` is the largest
    budget. `n_rows` also counts rows that are not in X, such as the test rows of a fold. `rng`
    returns the random generator of a fit. With a feature cost budget, `feature_costs` contains the
    costs, and `cost_options` contains the corresponding options of fit functions. If `is_device` is
    True, budgets are bytes on a small device.
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
            # Decision values are calibrated later, by cross-validation.
            self.made[family] = FAMILIES[family].fit(self, family).without_temperature()
        return self.made[family]

    @property
    def unit(self) -> str:
        """Return the unit of budgets."""
        if self.is_device:
            return "max_bytes"
        return "mean_comparisons" if self.feature_costs is None else "mean_feature_cost"

    @property
    def options(self) -> dict[str, Any]:
        """Return the options that all fit functions receive."""
        return {"sample_weight": self.weight, "n_threads": self.n_threads}

    @property
    def task_of_builders(self) -> Literal["classification", "regression"]:
        """Return the value of the parameter `task` of fit functions."""
        return "regression" if self.task == "regression" else "classification"

    def class_masses(self, model: FamilyModel) -> FloatArray:
        """Return the weight of each row in each class of a model, (n, J)."""
        assert model.classes is not None
        share = self.y.share if isinstance(self.y, SoftLabels) else self.y[:, None] == model.classes
        return share * (1.0 if self.weight is None else self.weight[:, None])

    def sum_of_trees(self, number: int, **options: Any) -> GradientBoostingModel:
        """Fit gradient boosting. With feature costs, the model has one tree per class."""
        has_one = self.task == "many" and "feature_costs" not in options
        return fit_gradient_boosting(
            self.X,
            self.y,
            task=self.task_of_builders,
            multi_strategy="multi_output_tree" if has_one else "one_output_per_tree",
            rng=self.rng(number),
            **self.options,
            **{**PLAIN, **options},
        )

    def shrunk(self, strength: float) -> dict[str, float]:
        """Return the leaf shrinkage for two classes; it did not help regression."""
        return {"leaf_shrinkage": strength} if self.task == "two" else {}

    def rounds(self, family: str, per_round: float, max_rounds: int) -> int:
        """Return the maximum number of iterations, given the comparisons of one iteration."""
        budget = min(self.budget, FAMILIES[family].max_budget)
        return min(math.ceil(REACH * budget / per_round) + 1, max_rounds)


def _mixture(fits: Fits, family: str) -> GradientBoostingModel:
    """Fit a mixture of gradient boosting and a forest.

    The trees of the forest are fully grown on all rows, with few features at each node.
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
    """Fit gradient boosting with many small steps and random subsamples of rows and features."""
    leaves = 16 if fits.task == "many" else 8
    return fits.sum_of_trees(
        0,
        max_leaf_nodes=leaves,
        learning_rate=0.1,
        subsample=0.6,
        max_features_per_tree=0.7,
        n_estimators=LONG,
    )


def _teacher(fits: Fits, family: str) -> GradientBoostingModel:
    """Fit gradient boosting with its default options. Its trees find interactions."""
    options = dict.fromkeys(("leaf_shrinkage", "random_strength", "subsample"), "auto")
    return fits.sum_of_trees(10, max_depth=6, n_estimators=TEACHER, **options)


def _short(
    fits: Fits,
    family: str,
    *,
    number: int,
    leaves: int,
    rate: float,
    per_round: float,
    shrinkage: float = 0.0,
) -> GradientBoostingModel:
    """Fit gradient boosting with large steps. `number` selects the random stream.

    `shrinkage` is the leaf shrinkage for two classes.
    """
    return fits.sum_of_trees(
        number,
        max_leaf_nodes=leaves,
        learning_rate=rate,
        n_estimators=fits.rounds(family, per_round, SHORT),
        **fits.shrunk(shrinkage),
    )


def _large(fits: Fits, family: str) -> GradientBoostingModel:
    """Fit gradient boosting with trees as large as the number of rows allows."""
    leaves = min(fits.n_rows // ROWS_OF_LEAF, MOST_LEAVES)
    steps = fits.rounds(family, 0.8 * np.log2(leaves), LARGE)
    held = held_back(fits.task)
    return fits.sum_of_trees(
        7, max_leaf_nodes=leaves, learning_rate=0.3, min_child_weight=held, n_estimators=steps
    )


def _saving(fits: Fits, family: str, *, first: float) -> GradientBoostingModel:
    """Fit gradient boosting with trees that grow by gain per comparison.

    `first` is the mean cost of the first tree. The other trees are larger if there are many rows.
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
    """Fit a chain of deep trees, which can find interactions between features."""
    shape = max_nodes, fits.rounds(family, per_round, DEEP)
    return fit_matryoshka(
        fits.X, fits.y, shape=shape, join="all", learning_rate=rate, **fits.options
    )


def _tree(fits: Fits, family: str) -> DecisionGraph:
    """Fit a tree with smoothed leaves. Its first nodes are candidates for smaller models."""
    tree = fit_boosted_tree(
        fits.X, fits.y, max_nodes=SIZES[-1], growth="look_ahead", **fits.options
    )
    return smoothed(tree, fits.X, fits.class_masses(tree))


def _distilled(
    fits: Fits, family: str, *, teacher: str, rate: float, n_synthetic: int | None = None
) -> GradientBoostingModel:
    """Fit a shorter gradient boosting model that imitates a longer one."""
    mean_comparisons = REACH * min(fits.budget, FAMILIES[family].max_budget)
    X = fits.X
    if fits.weight is not None:
        X = X.take(by_weight(fits.weight, X.n_rows))
    return distill(
        fits.of(teacher),
        X,
        mean_comparisons=mean_comparisons,
        learning_rate=rate,
        n_synthetic=n_synthetic,
        rng=fits.rng(3),
        n_threads=fits.n_threads,
    )


def _cost_aware(
    fits: Fits, family: str, *, leaves: int = 8, comparison_cost: float | None = None
) -> GradientBoostingModel:
    """Fit gradient boosting with large steps and feature costs.

    `comparison_cost` is relative to the mean cost of a feature. The larger it is, the less feature
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


def _small(
    fits: Fits, family: str, *, leaves: int, shrinkage: float = 0.0
) -> GradientBoostingModel:
    """Fit gradient boosting with small trees, limited by a budget of bytes."""
    added = leaves * (3 if fits.task == "many" else 1)  # at least
    per_tree = NODE * (leaves - 1) + VOTE * added + ROOT
    steps = fits.rounds(family, per_tree * REACH, MOST_SMALL)
    return fits.sum_of_trees(
        9,
        max_leaf_nodes=leaves,
        learning_rate=0.3,
        n_estimators=steps,
        **fits.shrunk(shrinkage),
    )


def _small_stumps(fits: Fits, family: str) -> DecisionGraph:
    """Fit AdaBoost with stumps. A stump stores a feature, a threshold and a vote."""
    rounds = fits.rounds(family, (NODE_OF_CHAIN + VOTE) * REACH, MOST_STUMPS)
    return fit_adaboost(fits.X, fits.y, n_estimators=rounds, **fits.options)


class Family(NamedTuple):
    """A family of models: its fit function, tasks, range of budgets and minimum number of rows."""

    fit: Callable[[Fits, str], FamilyModel]
    tasks: tuple[str, ...] = ("two", "many", "regression")
    min_budget: float = 0.0
    max_budget: float = math.inf
    unit: str = "mean_comparisons"
    rows: int = 0


def _deep(leaves: int) -> Callable[[Fits, str], DecisionGraph]:
    """Return the fit function for a chain of trees with `leaves` leaves each."""
    return partial(_chain, max_nodes=leaves - 1, per_round=0.8 * np.log2(leaves))


_BYTES_OF_SEVEN = 7 * (NODE + 2 * VOTE)
_LABELS = ("two", "many")
#: Families by name. The names appear in ``settings``.
FAMILIES = {
    "mixture": Family(_mixture, min_budget=160),
    "distilled gradient boosting": Family(
        partial(_distilled, teacher="gradient boosting", rate=0.5, n_synthetic=SYNTHETIC),
        ("two",),
        min_budget=4.5,
        max_budget=60,
    ),
    "distilled mixture": Family(
        partial(_distilled, teacher="mixture", rate=0.25), ("two",), min_budget=60, max_budget=150
    ),
    "chain": Family(_deep(32), ("many",)),
    "chain of two classes": Family(_deep(32), ("two",), min_budget=60),
    "chain of smaller trees": Family(_deep(16), ("many",), min_budget=30),
    "chain of larger trees": Family(_deep(128), ("many",), min_budget=4.5),
    "short sum of trees": Family(
        partial(_short, number=2, leaves=8, rate=0.3, per_round=2.5, shrinkage=2.0), max_budget=150
    ),
    "long sum of trees": Family(_long, min_budget=60),
    "sum of larger trees": Family(
        partial(_short, number=6, leaves=16, rate=0.6, per_round=3.0, shrinkage=1.0),
        ("two",),
        min_budget=8,
        max_budget=60,
    ),
    "sum of deep trees": Family(
        partial(_short, number=11, leaves=32, rate=0.3, per_round=4.0, shrinkage=2.0),
        ("two",),
        min_budget=15,
        max_budget=60,
    ),
    "sum of saving trees": Family(
        partial(_saving, first=4.6), ("many",), min_budget=4.5, max_budget=8
    ),
    "sum of large saving trees": Family(
        partial(_saving, first=8.0), _LABELS, min_budget=8, max_budget=15, rows=MANY_ROWS
    ),
    "sum of large trees": Family(_large, min_budget=12, rows=MANY_ROWS),
    "tree": Family(_tree, _LABELS, max_budget=15),
    "gradient boosting": Family(_teacher, ("two",), min_budget=60),
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
    "small trees": Family(partial(_small, leaves=4, shrinkage=2.0), unit="max_bytes"),
    "small larger trees": Family(partial(_small, leaves=8, shrinkage=2.0), unit="max_bytes"),
    "small tree": Family(_tree, _LABELS, unit="max_bytes"),
}


def families(
    task: str, budget: float, n_rows: int = 0, unit: str = "mean_comparisons"
) -> list[str]:
    """Return the families that are tried for a budget and a number of rows."""
    return [
        name
        for name, family in FAMILIES.items()
        if task in family.tasks
        and family.unit == unit
        and family.min_budget <= budget <= family.max_budget
        and family.rows <= n_rows
    ]


# Models and their first stages


def joints_of(model: FamilyModel) -> int:
    """Return the number of stages of a model, or the number of candidate subtrees of a tree."""
    sizes = sizes_of(model)
    return model.n_stages if sizes is None else len(sizes)


def sizes_of(model: FamilyModel) -> IntArray | None:
    """Return the sizes of the candidate subtrees of a tree, or None for other models."""
    if model.settings["builder"] != "fit_boosted_tree":
        return None
    return np.array([*(size for size in SIZES if size < model.n_nodes), model.n_nodes])


def first(model: FamilyModel, joints: int) -> FamilyModel:
    """Return the first stages of a model, or a subtree of a tree."""
    sizes = sizes_of(model)
    if sizes is not None:
        return model.truncate(int(sizes[min(joints, len(sizes)) - 1]))
    return model.first(min(joints, model.n_stages))


def path_of(
    model: FamilyModel, X: Features, feature_costs: FeatureCosts | None = None
) -> Trajectory:
    """Return the scores and costs of rows after each stage of a model, or in each subtree."""
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
    """Return the maximum number of comparisons in the first 0, 1, ... stages of a model."""
    sizes = sizes_of(model)
    if sizes is None:
        return model.longest_costs()
    return np.array([0.0, *(model.truncate(int(size)).longest_costs()[-1] for size in sizes)])


# Bytes on a small device

#: Maximum number of stages whose size is computed. All other sizes are interpolated.
COUNTED = 64


def bytes_of(model: FamilyModel) -> FloatArray:
    """Return the approximate size in bytes of the first 0, 1, ... stages of a model."""
    joints = joints_of(model)
    counted = np.unique(np.linspace(1, joints, min(COUNTED, joints)).round().astype(np.intp))
    sizes = [c_size(first(model, int(joint))) for joint in counted]
    return np.interp(np.arange(joints + 1), [0, *counted], [0, *sizes])


def costly_path(fits: Fits, model: FamilyModel, X: Features) -> Trajectory:
    """Return the scores and costs of rows after each stage, in the unit of the budget."""
    path = path_of(model, X, fits.feature_costs)
    if not fits.is_device:
        return path
    return path._replace(cost=np.repeat(bytes_of(model)[:, None], X.n_rows, axis=1))


def fitted_in_bytes(
    full_fits: Fits, family: str, joints: int, max_bytes: float
) -> FamilyModel | None:
    """Return the first stages of a model that fit in `max_bytes`, at most `joints` stages.

    The model of the family is fitted to all rows. The result is None if the first stage is too
    large.
    """
    model = full_fits.of(family)
    fits = np.flatnonzero(bytes_of(model)[: joints + 1] <= max_bytes)
    for joint in range(int(fits[-1]), 0, -1):
        part = first(model, joint)
        if c_size(part) <= max_bytes:
            return part
    return None
