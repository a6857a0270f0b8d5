"""The steps of a C file for each kind of model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.functions import Oracles
from pboost.data.indicators import indicators_of
from pboost.data.projections import Projections
from pboost.data.separators import Separators
from pboost.data.subsets import HALF, Subsets
from pboost.data.table import Table, column_label, first_unlike
from pboost.export.c_parts import (
    Leaving,
    Levels,
    Line,
    Linear,
    LinearLeaves,
    Maps,
    Members,
    Part,
    Tests,
    Walk,
)
from pboost.models.base import Averaged, Model
from pboost.models.calibrated import MOST_HALF, MOST_LINE, CalibratedModel
from pboost.models.early_exit import EarlyExitModel
from pboost.models.ensembles import Bagging, OneVsRest, WeightedVote
from pboost.models.forest import Forest
from pboost.models.graph import DecisionGraph
from pboost.models.linear import CONSTANT, HypothesisSum, LinearModel, ProbitModel
from pboost.models.members import is_foreign
from pboost.models.nodes import joints_of
from pboost.models.probit_trees import NO_ROW, ProbitTree, means_of
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees import LEAF, Trees
from pboost.models.trees_of import link_of
from pboost.values import FloatArray, IntArray

#: Of more labels sums of shares are not in the order of the labels.
MOST_SHARES = 7
#: Links of sums of trees of which C files have the function.
LINKS = ("half log odds", "log odds", "probit", "softmax")


def part_of(model: Any) -> Part:
    """Return what a model does to a row; NotImplementedError where a C file cannot do it."""
    if isinstance(model, DecisionGraph):
        return _of_graph(model)
    if isinstance(model, Trees):
        return _of_means(model)
    if isinstance(model, StagewiseModel):
        return _of_stagewise(model)
    if isinstance(model, LinearModel | ProbitModel):
        return _of_sum(model)
    if isinstance(model, ProbitTree):
        return _of_probit_tree(model)
    if isinstance(model, OneVsRest):
        return _of_rest(model)
    if isinstance(model, WeightedVote):
        return _of_votes(model)
    if isinstance(model, Bagging):
        return _of_bags(model)
    if isinstance(model, SubaggedProbitTrees):
        return _of_subagged(model)
    if isinstance(model, EarlyExitModel):
        return _of_exits(model)
    if isinstance(model, CalibratedModel):
        return _of_maps(model)
    if isinstance(model, HypothesisSum):
        raise NotImplementedError(
            "model: a HypothesisSum holds Python functions, which no format but a pickle has"
        )
    raise NotImplementedError(f"model: a {type(model).__name__} is not exported to C")


def _levels_of(model: Any) -> Levels | None:
    """Return what stands for the levels of categories where columns are added up."""
    found = indicators_of(model.table)
    return None if found is None else Levels(found.column, found.level)


# Graphs


def _of_graph(graph: DecisionGraph) -> Walk:
    """Return the walk through a graph: its nodes as they are, so that joins stay joins."""
    n, k = graph.n_nodes, graph.n_votes
    return Walk(
        _graph_tests(graph),
        graph.next,
        np.array([0 if n else -1], dtype=np.int32),
        graph.vote.reshape(n, 2, k),
        None,
        np.atleast_1d(np.asarray(graph.bias, dtype=np.float64)),
    )


def _graph_tests(graph: DecisionGraph) -> Tests:
    n, inputs = graph.n_nodes, graph.inputs
    if isinstance(inputs, Oracles):
        raise NotImplementedError(
            "model: its nodes ask oracles, Python functions, which no format but a pickle has"
        )
    sides = graph.sides
    above = np.zeros(n, dtype=np.bool_) if sides is None else np.asarray(sides > HALF)
    column, number = graph.feature.copy(), np.full(n, -1, dtype=np.int32)
    member = np.zeros((0, 1), dtype=np.uint8)
    if isinstance(inputs, Subsets):
        is_set = column >= graph.n_features
        number[is_set] = column[is_set] - graph.n_features
        column[is_set] = inputs.column[number[is_set]]
        member = _bytes_of(inputs.member)
    elif inputs is not None and not isinstance(inputs, Projections | Separators):
        raise NotImplementedError(
            f"model: nodes that compare {type(inputs).__name__} are not exported to C"
        )
    made = inputs if isinstance(inputs, Projections | Separators) else None
    levels = None if made is None else _levels_of(graph)
    return Tests(column, graph.threshold, above, number, member, made, levels)


def _bytes_of(member: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return sets of levels (k, 4 words) as bytes, no more than their largest level needs."""
    found = member.astype("<u8").view(np.uint8).reshape(len(member), -1)
    used = np.flatnonzero(found.any(axis=0))
    return found[:, : used[-1] + 1 if len(used) else 1].copy()


# Trees


def _of_trees(trees: Trees, start: FloatArray, **end: Any) -> Walk:
    """Return the walks through trees: inner nodes and leaves numbered apart."""
    is_leaf = trees.feature == LEAF
    number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1).astype(np.int32)
    offset = np.repeat(trees.root[:-1], np.diff(trees.root))
    inner = np.flatnonzero(~is_leaf)
    missing = np.zeros(trees.n_nodes) if trees.missing is None else trees.missing
    is_set = trees.feature[inner] >= trees.n_features
    member = np.zeros((0, 1), dtype=np.uint8)
    if trees.subset is not None:
        member = _bytes_of(trees.subset)
    tests = Tests(
        trees.column[inner],
        trees.threshold[inner],
        missing[inner] == 1,
        np.where(is_set, trees.feature[inner] - trees.n_features, -1).astype(np.int32),
        member,
    )
    return Walk(
        tests,
        number[trees.children[inner] + offset[inner, None]],
        number[trees.root[:-1]],
        None,
        trees.value[is_leaf].reshape(int(is_leaf.sum()), -1),
        start,
        **end,
    )


def _of_means(trees: Trees) -> Walk:
    """Return the mean over trees of shares or numbers; of two labels the lead of the second."""
    n_values = trees.value.reshape(trees.n_nodes, -1).shape[1]
    n_trees = len(trees.root) - 1 if isinstance(trees, Forest) else 1
    is_lead = trees.labels is not None and len(trees.labels) == 2
    return _of_trees(trees, np.zeros(n_values), divisor=n_trees, lead=is_lead)


def _of_stagewise(model: StagewiseModel) -> Walk:
    if _predicts_otherwise(model) and link_of(model) != "exp":
        raise NotImplementedError(
            f"model: what the {model.loss} loss predicts by decision values is not known in C"
        )
    return _of_trees(model.trees, np.zeros(model.n_votes), after=np.atleast_1d(model.bias))


# Models around one model


def _of_exits(model: EarlyExitModel) -> Leaving:
    """Return the walk with its joints where rows can leave."""
    if model.item is not None:
        raise NotImplementedError(
            "model: early exits within a price, where rows leave only where they would pay, are "
            "not exported to C; model.model can be exported as a whole"
        )
    walk, can = part_of(model.model), np.isfinite(model.threshold)
    if not isinstance(walk, Walk):
        raise NotImplementedError(
            "model: early exits are exported to C of graphs, forests and sums of trees; "
            f"model.model, a {type(model.model).__name__}, can be exported as a whole"
        )
    is_share = isinstance(model.model, Averaged)
    if is_share and model.n_votes > MOST_SHARES:
        raise NotImplementedError(
            f"model: early exits of shares of more than {MOST_SHARES} labels are not exported to "
            "C; model.model can be exported as a whole"
        )
    if walk.vote is None:
        each = len(walk.root) // model.model.n_joints
        joints = each * np.arange(model.model.n_joints)
    else:
        each, joints = 0, np.append(0, joints_of(model.model.next))
    at = joints[can].astype(np.int32)
    return Leaving(walk, each, at, model.threshold[can], model.slope[can], is_share)


def _of_maps(model: CalibratedModel) -> Line | Maps:
    """Return the part with its maps; Platt's of two labels is a line, without logarithms."""
    part = part_of(model.model)
    if model.slope is not None and model.n_votes == 1:
        return Line(part, float(model.slope[0]), float(model.intercept[0]), MOST_LINE)
    return Maps(
        part,
        model.slope,
        model.intercept,
        model.knot,
        model.share,
        model.start,
        MOST_LINE,
        MOST_HALF,
    )


# Sums


def _of_sum(model: LinearModel | ProbitModel) -> Linear:
    center = scale = None
    used = np.flatnonzero(model.weights if isinstance(model, LinearModel) else model.slopes)
    if isinstance(model, LinearModel):
        factor, fill = model.weights[used], model.center[used]
        center, scale = fill, model.scale[used]
        constant = model.bias + float(model.step[model.feature == CONSTANT].sum())
    else:
        factor, constant = model.slopes[used], model.intercept
        fill = np.zeros(len(used)) if model.mean is None else model.mean[used]
    column = used.astype(np.int32)
    return Linear(constant, column, factor, fill, center, scale, _levels_of(model))


def _of_probit_tree(tree: ProbitTree) -> LinearLeaves:
    means = means_of(tree)
    fill = np.zeros((1, tree.n_added)) if means is None else means
    absent = (tree.taken == NO_ROW) & (tree.n_functions > 1)
    walk = _of_trees(tree.partition, np.zeros(0))
    return LinearLeaves(walk, tree.coefficient, absent, fill, _levels_of(tree))


# Models of models


def _members(models: Any) -> tuple[Part, ...]:
    for member in models:
        if isinstance(member, EarlyExitModel):
            raise NotImplementedError(
                "model: a member is an EarlyExitModel, which is exported to C by itself only"
            )
        if is_foreign(member):
            raise NotImplementedError(
                f"model: a member is a {type(member).__name__} of another package, which no format "
                "but a pickle has"
            )
    _check_categories([member.row_table for member in models], models[0])
    return tuple(part_of(member) for member in models)


def _check_categories(tables: list[Table | None], first: Model) -> None:
    """Raise NotImplementedError if members have other numbers of the same categories."""
    column = first_unlike(tables, first.n_features)
    if column is not None:
        label = column_label(first.feature_names, column)
        raise NotImplementedError(
            f"model: its members number the categories of {label} in different ways, and a C file "
            "reads one number; export the members, model.models, or merge rare categories, so that "
            "no column has more than 255"
        )


def _link(model: Model) -> str:
    """Return how decision values become probabilities; empty where they tell none."""
    if isinstance(model, StagewiseModel):
        return link.replace(" ", "_") if (link := link_of(model)) in LINKS else ""
    if isinstance(model, ProbitModel | ProbitTree):
        return "probit"
    if isinstance(model, OneVsRest):
        is_probit = all(isinstance(m, ProbitModel | ProbitTree) for m in model.models)
        return "probit" if is_probit else ""
    if isinstance(model, Trees | Bagging | SubaggedProbitTrees):
        return "shares"
    if isinstance(model, DecisionGraph | LinearModel | CalibratedModel):
        return "half_log_odds" if model.n_votes == 1 else "softmax"
    return "softmax" if isinstance(model, WeightedVote) else ""


def _with_shares(model: Any) -> tuple[Part, str]:
    """Return a member that says its probabilities, and its link."""
    part, link = part_of(model), _link(model)
    if not link:
        raise NotImplementedError(
            f"model: the probabilities of a member, a {type(model).__name__}, are not exported to C"
        )
    if isinstance(part, Walk | Members) and link == "shares":
        return replace(part, lead=False), link
    if isinstance(model, DecisionGraph) and link == "softmax" and not model.n_nodes:
        assert isinstance(part, Walk)
        return replace(part, start=model.probabilities(part.start[None])[0]), "shares"
    return part, link


def _averages(
    models: Any, weight: FloatArray, place: tuple[IntArray, ...], j: int, total: float, lead: bool
) -> Members:
    """Return the weighted mean of the probabilities of members."""
    members, links = zip(*map(_with_shares, models), strict=True)
    return Members(members, "shares", weight, place, np.zeros(j), total, lead, links)


def _of_rest(model: OneVsRest) -> Members:
    links = {_link(member) for member in model.models}
    if len(links) > 1 or "" in links:
        raise NotImplementedError(
            "model: the decision values of its members are of different kinds, and only their "
            "probabilities can be compared, which is not exported to C"
        )
    parts, n = _members(model.models), len(model.models)
    if any(part.n_scores > 1 for part in parts):
        raise NotImplementedError(
            "model: members with several decision values are not exported to C"
        )
    return Members(parts, "values", np.ones(n), (), np.zeros(n))


def _places(labels: NDArray[Any], models: Any) -> tuple[IntArray, ...]:
    return tuple(np.searchsorted(labels, m.labels).astype(np.int32) for m in models)


def _of_votes(model: WeightedVote) -> Members:
    parts = _members(model.models)
    return Members(parts, "votes", model.alpha, _places(model.labels, model.models), model.bias)


def _of_bags(model: Bagging) -> Members:
    parts, n = _members(model.models), len(model.models)
    if model.labels is None:
        for member in model.models:
            if member.labels is not None or _predicts_otherwise(member):
                raise NotImplementedError(
                    "model: bagged regressions are exported to C where what their members predict "
                    "is their decision value"
                )
        return Members(parts, "sum", np.ones(n), (), np.zeros(1), n)
    if model.vote == "average":
        place = _places(model.labels, model.models)
        j = len(model.labels)
        return _averages(model.models, np.ones(n), place, j, n, j == 2)
    start, is_lead = np.zeros(len(model.labels)), len(model.labels) == 2
    return Members(
        parts, "votes", np.ones(n), _places(model.labels, model.models), start, n, is_lead
    )


def _predicts_otherwise(model: Any) -> bool:
    is_sum = isinstance(model, StagewiseModel) and model.labels is None
    return is_sum and not model.loss.predicts_scores


def _of_subagged(model: SubaggedProbitTrees) -> Members:
    n, j = len(model), len(model.labels)
    place, members = np.arange(j, dtype=np.int32), list(model)
    if model.vote == "average":
        means: list[Part] = []
        for member in members:
            places, total = (place,) * len(member.models), float(member.alpha.sum())
            means.append(_averages(member.models, member.alpha, places, j, total, False))
        links = ("shares",) * n
        return Members(
            tuple(means), "shares", np.ones(n), (place,) * n, np.zeros(j), n, j == 2, links
        )
    parts = tuple(part_of(member) for member in members)
    return Members(parts, "votes", np.ones(n), (place,) * n, np.zeros(j), n, j == 2)
