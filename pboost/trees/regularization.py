"""Regularization and constraints of gradient-boosted trees, except limits on their size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from pboost.data.feature_costs import COST_OPTIONS, FeatureCosts, read_feature_costs
from pboost.data.read.table import column_label, named_columns, positions
from pboost.data.training_data import Problem
from pboost.models.single_tree import columns_on_way
from pboost.trees.cart import resolve_features
from pboost.values import (
    Auto,
    IntArray,
    check_choice,
    check_integer,
    draw_key,
    shown,
)

#: Options with the default "auto" that are 0 with an exact search.
AUTOMATIC = ("l2_regularization", "leaf_shrinkage", "random_strength")
#: The options that constrain trees, with default values that set no constraints.
RESTRAINTS: dict[str, Any] = {
    "min_child_weight": 0.0,
    "min_split_gain": 0.0,
    "max_features_per_tree": None,
    "max_features": None,
    "monotonic_cst": None,
    "interaction_cst": None,
    **COST_OPTIONS,
    "cost_tradeoff": None,
}


@dataclass(frozen=True, slots=True, eq=False)
class Restraints:
    """Options of `fit_gradient_boosting` that only a binned search supports.

    Attributes
    ----------
    min_child_weight, min_split_gain : float
        Minimum Hessian of a child and minimum gain of a split, after scaling of the weights.
    per_tree, per_split : int or None
        Number of features that a tree can use, and number that a node considers. None for all.
    key : int
        Seed of the random selection of features.
    random_strength, jitter_key : float, int
        Strength of the jitter of split scores, and its seed.
    direction : ndarray of int32, shape (d,), or None
        Sign of the monotonic constraint of each feature: 1, -1, or 0 for none.
    together : ndarray of uint64, shape (d, words), or None
        Interaction groups of each feature, as bits. All features on a path have a group in common.
    feature_costs : FeatureCosts or None
        Costs of the features.
    """

    min_child_weight: float = 0.0
    min_split_gain: float = 0.0
    per_tree: int | None = None
    per_split: int | None = None
    key: int = 0
    random_strength: float = 0.0
    jitter_key: int = 0
    direction: IntArray | None = None
    together: NDArray[np.uint64] | None = None
    feature_costs: FeatureCosts | None = None

    def of_unit(self, unit: float) -> Restraints:
        """Return the options for weights that are divided by `unit`."""
        return replace(
            self,
            min_child_weight=self.min_child_weight / unit,
            min_split_gain=self.min_split_gain / unit,
        )


def check_or_auto(name: str, option: Any, *, of: Callable[..., Any], **limits: Any) -> Any:
    """Return the option if it is "auto", and otherwise the result of the check `of`."""
    if isinstance(option, str):
        return check_choice(name, option, get_args(Auto))
    return of(name, option, **limits)


def l2_of(option: float | str, rows: float, of_row: float) -> float:
    """Return `l2_regularization`; "auto" is `rows` times the weight of a row, `of_row`."""
    if not isinstance(option, str):
        return option
    return rows * of_row if rows else 0.0


def draws_columns(options: Mapping[str, object]) -> bool:
    """Return whether a fit with these options selects features at random."""
    return options["max_features_per_tree"] is not None or options["max_features"] is not None


def refuse_restraints(options: Mapping[str, object]) -> None:
    """Raise NotImplementedError for options that need a binned search."""
    for name, default in {**dict.fromkeys(AUTOMATIC, 0.0), **RESTRAINTS}.items():
        value = options[name]
        if isinstance(value, str) and value == "auto":
            continue
        if value is not None if default is None else value != default:
            raise NotImplementedError(
                f'{name}: expected {default} with search="exact", got {shown(value)}; use '
                'search="binned"'
            )


def read_restraints(
    options: Mapping[str, Any], problem: Problem, generator: np.random.Generator
) -> Restraints:
    """Return the checked options, with a seed if features are selected at random."""
    strength = options["random_strength"]
    restraints = Restraints(
        options["min_child_weight"],
        options["min_split_gain"],
        random_strength=strength,
        jitter_key=draw_key(generator) if strength else 0,
        direction=_directions(options["monotonic_cst"], problem),
        together=_groups(options["interaction_cst"], problem),
        feature_costs=read_feature_costs(options, problem.names, problem.n_features),
    )
    if not draws_columns(options):
        every = None if restraints.together is None else problem.n_features
        return replace(restraints, per_tree=every, per_split=every)
    name, d = "max_features_per_tree", problem.n_features
    per_tree = resolve_features(options[name], d, name)
    per_split = resolve_features(options["max_features"], per_tree)
    return replace(restraints, per_tree=per_tree, per_split=per_split, key=draw_key(generator))


def plain_monotone(name: str, monotonic_cst: Any) -> Any:
    """Return the stored form of the option: pairs (feature, direction), or directions."""
    if monotonic_cst is None:
        return None
    if isinstance(monotonic_cst, Mapping):
        pairs = list(monotonic_cst.items())
    else:
        try:
            items = list(monotonic_cst)
            is_per_feature = bool(items) and all(isinstance(w, int | np.integer) for w in items)
            pairs = [] if is_per_feature else [(column, way) for column, way in items]
        except (TypeError, ValueError):
            raise TypeError(
                f"{name}: expected a mapping from names or positions of features to 1 (increasing) "
                f"or -1 (decreasing), or 1, 0 or -1 for each feature, got {shown(monotonic_cst)}"
            ) from None
        if is_per_feature:
            return [check_integer(name, way, min_value=-1, max_value=1) for way in items]
    return [
        [
            str(column) if isinstance(column, str) else check_integer(name, column, min_value=0),
            check_integer(name, way, min_value=-1, max_value=1),
        ]
        for column, way in pairs
    ]


def _directions(monotonic_cst: Any, problem: Problem) -> IntArray | None:
    """Return the direction of each feature, or None without constraints."""
    if not monotonic_cst:
        return None
    direction = np.zeros(problem.n_features, dtype=np.int32)
    if isinstance(monotonic_cst[0], int):
        if len(monotonic_cst) != len(direction):
            raise ValueError(
                f"monotonic_cst: expected a direction for each of {len(direction)} features, got "
                f"{len(monotonic_cst)}"
            )
        monotonic_cst = list(enumerate(monotonic_cst))
    positions(
        "monotonic_cst", [column for column, _ in monotonic_cst], problem.names, len(direction)
    )
    for column, way in monotonic_cst:
        (j,) = positions("monotonic_cst", [column], problem.names, len(direction))
        if way and problem.table is not None and problem.table.values_of(j) is not None:
            raise ValueError(
                "monotonic_cst: expected numerical features, got "
                f"{column_label(problem.names, j)}, which is categorical"
            )
        direction[j] = way
    return direction if direction.any() else None


def plain_interactions(name: str, interaction_cst: object) -> list[list[str | int]] | None:
    """Return the stored form of the option: lists of names or positions, or None."""
    if interaction_cst is None:
        return None
    if isinstance(interaction_cst, str) or not isinstance(interaction_cst, Iterable):
        raise TypeError(
            f"{name}: expected groups of features such as [[0, 1], [2]], got "
            f"{shown(interaction_cst)}"
        )
    return [list(named_columns(name, group)) for group in interaction_cst]


def _groups(interaction_cst: Any, problem: Problem) -> NDArray[np.uint64] | None:
    """Return the groups of each feature as bits. Features in no group form a further group."""
    if interaction_cst is None:
        return None
    d = problem.n_features
    groups = [positions("interaction_cst", group, problem.names, d) for group in interaction_cst]
    if not all(groups):
        raise ValueError("interaction_cst: expected groups of features, got an empty group")
    rest = set(range(d)).difference(*groups)
    member = np.zeros((d, 64 * -(-(len(groups) + 1) // 64)), dtype=np.uint8)
    for number, group in enumerate([*groups, rest]):
        member[list(group), number] = 1
    return np.packbits(member, axis=1).view(np.uint64)


#: State of a feature or a cost group: no row, all rows or some rows have paid for it.
NO_ROW, ALL_ROWS, SOME_ROWS = 0, 1, 2

#: If `tradeoff` has this value, gains are divided by costs.
RATIO = -1.0


class Payments:
    """Arrays of the features that each row has already paid for; see ``_boost_costs.pxd``.

    Parameters
    ----------
    feature_costs : FeatureCosts
    n_rows, n_threads : int
    """

    def __init__(self, feature_costs: FeatureCosts, n_rows: int, n_threads: int) -> None:
        self.feature_costs, self.cost, self.item = (
            feature_costs,
            feature_costs.cost,
            feature_costs.item,
        )
        self.comparison, self.tradeoff = feature_costs.comparison, RATIO
        n_items = len(feature_costs.cost)
        self.paid = np.zeros((n_items, n_rows), dtype=np.uint8)
        self.payers = np.full(n_items, NO_ROW, dtype=np.uint8)
        self.to_pay = np.empty((n_threads, n_items))

    def count_in(self, unit: float) -> None:
        """Set the factor `unit` that converts reductions of the reported loss to gains."""
        if self.feature_costs.tradeoff is not None:
            self.tradeoff = self.feature_costs.tradeoff * unit

    def pay(self, column: IntArray, children: IntArray, leaf: NDArray[np.intp]) -> None:
        """Record the features on the path of each row to its leaf (n,) as paid."""
        on_way = columns_on_way(column, children, len(self.item))
        items = self.feature_costs.items_of(on_way)
        for k in np.flatnonzero(items.any(axis=0)).tolist():
            if self.payers[k] != ALL_ROWS:
                self.paid[k] |= items[leaf, k]
                self.payers[k] = ALL_ROWS if self.paid[k].all() else SOME_ROWS
