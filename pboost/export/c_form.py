"""The form that a C file is printed from, and how each kind of model is put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.functions import Oracles
from pboost.data.node_inputs.inputs import Indicators, Subsets, indicators_of
from pboost.data.node_inputs.sums import Projections, Separators
from pboost.data.read.table import column_label, first_unlike
from pboost.models.base import Averaged, Model
from pboost.models.calibrated import CalibratedModel
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.ensembles import Bagging, OneVsRest, WeightedVote, is_foreign
from pboost.models.graph import DecisionGraph
from pboost.models.linear import CONSTANT, FunctionEnsemble, LinearModel, ProbitModel
from pboost.models.nodes import joints_of
from pboost.models.probit_trees import NO_ROW, ProbitTree, means_of
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_record import LEAF, TreeEnsemble
from pboost.models.tree_sum import GradientBoostingModel
from pboost.models.trees import Trees
from pboost.models.trees_of import as_tree_ensemble, tests_of
from pboost.values import Array, FloatArray, IntArray

#: The links of `TreeEnsemble` of which there is a function; shares are probabilities.
LINKS = ("half log odds", "log odds", "probit", "softmax", "shares")
#: Those that are the decision values themselves.
PLAIN = ("identity", "shares")


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The tests of nodes: whether a number of a row is above a threshold, or in a set.

    Arrays have the names of a `TreeEnsemble`.

    Attributes
    ----------
    feature : ndarray of int32, shape (n,)
        Column of the row that each node reads, or number among `inputs`.
    threshold : ndarray, shape (n,)
        What it is compared with.
    missing : ndarray of bool, shape (n,)
        Whether a row whose value is missing takes exit 1.
    category_set : ndarray of int32, shape (n,)
        Which set a node tests, -1 where it compares.
    sets : ndarray of uint8, shape (n_sets, bytes)
        The sets: level b is in one where bit ``b % 8`` of byte ``b // 8`` is set.
    inputs : Projections or Separators, or None
        The sums of columns that are compared, None where columns are.
    levels : Indicators or None
        The columns that are added up, where they are not those of the row.
    """

    feature: IntArray
    threshold: Array
    missing: NDArray[np.bool_]
    category_set: IntArray
    sets: NDArray[np.uint8]
    inputs: Projections | Separators | None = None
    levels: Indicators | None = None

    def __len__(self) -> int:
        return len(self.feature)


class JointExits(NamedTuple):
    """The joints of a walk at which rows can leave, if their values are sure enough.

    Attributes
    ----------
    each : int
        Trees between one joint and the next; 0 of graphs.
    at : ndarray of int32, shape (m,)
        The joints, in their order: nodes of a graph, or of trees the first after it.
    sure : ndarray of float64, shape (m,)
        Rows leave where the size of the value, of several the lead of the largest, is at least so
        large.
    slope : ndarray of float64, shape (m,)
        What values are multiplied by with which rows leave there.
    is_share : bool
        Whether values are shares, or the lead of one, which no factor takes beyond 0 and 1.
    unit : int
        In whole numbers: those of `slope` are counted in its inverse, a power of two. 0 of others.
    full_share : int
        In whole numbers: a share of 1.
    even : ndarray of int64, shape (m,), or None
        In whole numbers, of several shares: what is added to each after the factor.
    """

    each: int
    at: IntArray
    sure: Array
    slope: Array
    is_share: bool
    unit: int = 0
    full_share: int = 0
    even: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A row's walk through nodes, once for each root, and what is added up on its way.

    Attributes
    ----------
    tests : Tests
        The tests of the nodes.
    next : ndarray of int32, shape (n, 2)
        The node to which each exit leads; below 0 it leads out, in trees to leaf ``-1 - next``.
    root : ndarray of int32, shape (trees,)
        The first node of each walk, or a leaf likewise; -1: there is none.
    added : ndarray, shape (n, 2, K) or (leaves, K)
        What the exits of a graph add, or the leaves of trees.
    start : ndarray, shape (J,)
        The numbers to which this is added. Walk t adds to those from ``K * t mod J`` on.
    after : ndarray of float64, shape (J,), or None
        Added in the end.
    divisor : int
        What the sums are divided by in the end.
    lead : bool
        Whether of two sums the second less the first is all that is wanted, in the end.
    exits : JointExits or None
        Where rows can leave early.
    """

    tests: Tests
    next: IntArray
    root: IntArray
    added: Array
    start: Array
    after: FloatArray | None = None
    divisor: int = 1
    lead: bool = False
    exits: JointExits | None = None

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return 1 if self.lead else len(self.start)

    @property
    def is_graph(self) -> bool:
        """Whether exits add, not leaves."""
        return self.added.ndim == 3

    @property
    def is_chain(self) -> bool:
        """Whether both exits of each node lead to the node after it."""
        n = len(self.tests)
        after = np.append(np.arange(1, n), -1)[:n]
        return self.is_graph and bool((self.next == after[:, None]).all())


@dataclass(frozen=True, slots=True, eq=False)
class AffineMap:
    """K linear functions of a row, or of the leaf of a tree that it reaches.

    Term t of a function is ``factor[t] * (x - center[t]) / scale[t]``, of a missing value that of
    ``fill[t]``.

    Attributes
    ----------
    walk : Walk or None
        The tree, whose leaves add nothing.
    column : ndarray of int32, shape (n,), or None
        Column that each term reads; None where term j reads column j.
    coefficient : ndarray of float64, shape (leaves, K, 1 + n)
        Constants and factors.
    fill : ndarray of float64, shape (leaves, n) or (1, n)
        What missing values count as.
    levels : Indicators or None
        As of `Tests`.
    scaled : tuple of two ndarray of float64, shape (n,), or None
        What is subtracted from a value, and what the difference is divided by.
    absent : ndarray of bool, shape (leaves, K), or None
        Whether a class is always below the others.
    """

    walk: Walk | None
    column: IntArray | None
    coefficient: FloatArray
    fill: FloatArray
    levels: Indicators | None
    scaled: tuple[FloatArray, FloatArray] | None = None
    absent: NDArray[np.bool_] | None = None

    @property
    def n_scores(self) -> int:
        """Number of functions of a leaf."""
        return self.coefficient.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleSum:
    """The decision values of several models, put together.

    Attributes
    ----------
    members : tuple
        The parts of the models.
    link : tuple of str
        What is added up of each: its probabilities by this link, see `TreeEnsemble`; "vote", 1 for
        the label it predicts; "identity", its decision values.
    weight : ndarray of float64, shape (members,)
        What this is multiplied by.
    place : tuple of ndarray of int32
        To which number of the whole each is added.
    start : ndarray of float64, shape (J,)
        The numbers to which this is added.
    divisor, lead
        As of `Walk`; divisors may be sums of weights.
    """

    members: tuple[Part, ...]
    link: tuple[str, ...]
    weight: FloatArray
    place: tuple[IntArray, ...]
    start: FloatArray
    divisor: float = 1
    lead: bool = False

    @property
    def n_scores(self) -> int:
        """Number of decision values."""
        return 1 if self.lead else len(self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """Probabilities that a calibration finds by the decision values of a part, as decision values.

    Of one map half the log odds, of several the logarithms of the shares of their sum.

    Attributes
    ----------
    part : Part
        What has the values; of two of them the lead of the second is mapped, if there is one map.
    model : CalibratedModel
        The lines or the knots of the maps.
    """

    part: Part
    model: CalibratedModel

    @property
    def n_scores(self) -> int:
        """Number of maps."""
        return int(self.model.n_votes)

    @property
    def is_line(self) -> bool:
        """Whether the value is half of a straight line, without logarithms."""
        return self.model.slope is not None and self.n_scores == 1


Part: TypeAlias = Walk | AffineMap | EnsembleSum | Maps


def walks(part: Part | None) -> Iterator[Walk]:
    """Yield all walks of a part."""
    if isinstance(part, Walk):
        yield part
    elif isinstance(part, EnsembleSum):
        for member in part.members:
            yield from walks(member)
    elif part is not None:
        yield from walks(part.walk if isinstance(part, AffineMap) else part.part)


def on_walks(part: Part, change: Callable[[Walk], Walk]) -> Part:
    """Return a part with its walks changed."""
    if isinstance(part, Walk):
        return change(part)
    if isinstance(part, EnsembleSum):
        members = tuple(on_walks(member, change) for member in part.members)
        return replace(part, members=members)
    if isinstance(part, AffineMap):
        return part if part.walk is None else replace(part, walk=change(part.walk))
    return replace(part, part=on_walks(part.part, change))


def is_exact(part: Part) -> bool:
    """Return whether a part has no exponential function and no logarithm in it."""
    if isinstance(part, EnsembleSum):
        plain = set(part.link) <= {"identity", "vote", "shares"}
        return plain and all(map(is_exact, part.members))
    return is_exact(part.part) and part.is_line if isinstance(part, Maps) else True


# The form of each kind of model, and the link of its decision values: graphs and trees

#: With more labels sums of shares are not in the order of the labels.
MOST_SHARES = 7
#: The arrays of a `TreeEnsemble` that are tests of nodes.
TESTS = ("feature", "threshold", "missing", "category_set")


def part_of(model: Model) -> Part:
    """Return the form of a model; NotImplementedError if a C file cannot have it."""
    return _lower(model)[0]


@singledispatch
def _lower(model: object) -> tuple[Part, str]:
    """Return the form of a model, and how its decision values become probabilities."""
    raise NotImplementedError(f"model: a {type(model).__name__} is not exported to C")


@_lower.register
def _(model: FunctionEnsemble) -> tuple[Part, str]:
    raise NotImplementedError(
        "model: a FunctionEnsemble holds Python functions, which no format but a pickle has"
    )


def _tests(
    arrays: dict[str, Any],
    inputs: Projections | Separators | None = None,
    levels: Indicators | None = None,
) -> Tests:
    """Return the tests of nodes, given the arrays of a `TreeEnsemble`."""
    if arrays["missing"] is None:
        missing = np.zeros(len(arrays["feature"]), dtype=np.bool_)
    else:
        missing = arrays["missing"].astype(np.bool_)
    # No more bytes than the largest level needs.
    words = arrays["sets"].astype("<u8")
    sets = words.view(np.uint8).reshape(len(words), 8 * words.shape[1])
    used = np.flatnonzero(sets.any(axis=0))
    sets = sets[:, : used[-1] + 1 if len(used) else 1].copy()
    return Tests(**{**arrays, "missing": missing, "sets": sets}, inputs=inputs, levels=levels)


@_lower.register
def _(graph: DecisionGraph) -> tuple[Part, str]:
    """Return the walk through a graph: its nodes as they are, so that joins stay joins."""
    n, k, inputs = graph.n_nodes, graph.n_votes, graph.inputs
    if isinstance(inputs, Oracles):
        raise NotImplementedError(
            "model: its nodes ask oracles, Python functions, which no format but a pickle has"
        )
    arrays = tests_of(graph, np.arange(n, dtype=np.int32))
    if isinstance(inputs, Projections | Separators):
        tests = _tests(arrays, inputs, indicators_of(graph.table))
    elif inputs is None or isinstance(inputs, Subsets):
        tests = _tests(arrays)
    else:
        raise NotImplementedError(
            f"model: nodes that compare {type(inputs).__name__} are not exported to C"
        )
    root = np.array([0 if n else -1], dtype=np.int32)
    vote, bias = graph.vote.reshape(n, 2, k), np.atleast_1d(np.asarray(graph.bias, np.float64))
    return Walk(tests, graph.next, root, vote, bias), "half log odds" if k == 1 else "softmax"


def walks_of(trees: TreeEnsemble, **end: Any) -> Walk:
    """Return the walks through trees: inner nodes and leaves numbered apart."""
    is_leaf = trees.feature == LEAF
    number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1).astype(np.int32)
    inner = np.flatnonzero(~is_leaf)
    arrays = {name: getattr(trees, name) for name in TESTS}
    inner_arrays = {name: None if array is None else array[inner] for name, array in arrays.items()}
    return Walk(
        _tests({**inner_arrays, "sets": trees.sets}),
        number[trees.children[inner] + trees.start[inner, None]],
        number[trees.root[:-1]],
        trees.value[is_leaf],
        np.zeros(trees.n_values),
        **end,
    )


@_lower.register
def _(model: Trees) -> tuple[Part, str]:
    """Return the mean over trees of shares or numbers; of two labels the lead of the second."""
    trees = as_tree_ensemble(model)
    n = trees.n_trees if trees.aggregation == "mean" else 1
    is_lead = trees.classes is not None and len(trees.classes) == 2
    return walks_of(trees, divisor=n, lead=is_lead), trees.link


@_lower.register
def _(model: GradientBoostingModel) -> tuple[Part, str]:
    trees = as_tree_ensemble(model)
    if _predicts_otherwise(model) and trees.link != "exp":
        raise NotImplementedError(
            f"model: what the loss {model.loss} predicts by decision values is not known in C"
        )
    return walks_of(trees, after=trees.bias), trees.link


def _predicts_otherwise(model: object) -> bool:
    if not isinstance(model, GradientBoostingModel) or model.classes is not None:
        return False
    return not model.loss.predicts_scores


# Models around one model


@_lower.register
def _(model: EarlyExitModel) -> tuple[Part, str]:
    """Return the walk with its joints where rows can leave."""
    if model.item is not None:
        raise NotImplementedError(
            "model: early exits within a feature cost, where rows leave only where they would pay, are "
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
    if isinstance(model.model, DecisionGraph):
        each, joints = 0, np.append(0, joints_of(model.model.next))
    else:
        each = len(walk.root) // model.model.n_stages
        joints = each * np.arange(model.model.n_stages)
    at = joints[can].astype(np.int32)
    exits = JointExits(each, at, model.threshold[can], model.slope[can], is_share)
    return replace(walk, exits=exits), "none"


@_lower.register
def _(model: CalibratedModel) -> tuple[Part, str]:
    return Maps(part_of(model.model), model), "half log odds" if model.n_votes == 1 else "softmax"


# Sums


def _sum(
    model: Any,
    constant: float,
    factor: FloatArray,
    fill: FloatArray | None,
    scale: FloatArray | None = None,
) -> AffineMap:
    """Return a sum of columns; with a scale `fill` is subtracted before."""
    used = np.flatnonzero(factor)
    fill = np.zeros(len(used)) if fill is None else fill[used]
    return AffineMap(
        None,
        used.astype(np.int32),
        np.append(constant, factor[used])[None, None],
        fill[None],
        indicators_of(model.table),
        None if scale is None else (fill, scale[used]),
    )


@_lower.register
def _(model: LinearModel) -> tuple[Part, str]:
    constant = model.bias + float(model.step[model.feature == CONSTANT].sum())
    return _sum(model, constant, model.weights, model.center, model.scale), "half log odds"


@_lower.register
def _(model: ProbitModel) -> tuple[Part, str]:
    return _sum(model, model.intercept, model.slopes, model.mean), "probit"


@_lower.register
def _(model: ProbitTree) -> tuple[Part, str]:
    means, walk = means_of(model), walks_of(as_tree_ensemble(model.partition))
    fill = np.zeros((1, model.n_added)) if means is None else means
    absent = (model.taken == NO_ROW) & (model.n_functions > 1)
    return AffineMap(
        walk, None, model.coefficient, fill, indicators_of(model.table), absent=absent
    ), "probit"


# Models of models


def _members(models: Any) -> list[tuple[Part, str]]:
    """Return the members, if one file can hold them."""
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
    column = first_unlike([member.row_table for member in models], models[0].n_features)
    if column is not None:
        label = column_label(models[0].feature_names, column)
        raise NotImplementedError(
            f"model: its members number the categories of {label} in different ways, and a C file "
            "reads one number; export the members, model.models, or merge rare categories, so that "
            "no column has more than 255"
        )
    return [_lower(member) for member in models]


def _added(models: Any, how: str, classes: Array, weight: FloatArray, **end: Any) -> EnsembleSum:
    """Return the votes of members for their labels, or their probabilities."""
    place = tuple(np.searchsorted(classes, m.classes).astype(np.int32) for m in models)
    of = _members(models)
    if how == "soft":
        of = [_with_shares(*member) for member in zip(models, of, strict=True)]
    parts, links = zip(*of, strict=True)
    links = links if how == "soft" else ("vote",) * len(parts)
    end = {"start": np.zeros(len(classes)), **end}
    return EnsembleSum(parts, links, weight, place, **end)


def _with_shares(model: object, of: tuple[Part, str]) -> tuple[Part, str]:
    """Return a member of which probabilities are added up, and its link."""
    part, link = of
    if link not in LINKS:
        raise NotImplementedError(
            f"model: the probabilities of a member, a {type(model).__name__}, are not exported to C"
        )
    if isinstance(part, Walk | EnsembleSum) and link == "shares":
        return replace(part, lead=False), link
    if isinstance(model, DecisionGraph) and link == "softmax" and not model.n_nodes:
        assert isinstance(part, Walk)
        return replace(part, start=model.probabilities(part.start[None])[0]), "shares"
    return part, link


@_lower.register
def _(model: OneVsRest) -> tuple[Part, str]:
    of, n = _members(model.models), len(model.models)
    parts, links = zip(*of, strict=True)
    if len(set(links)) > 1 or not set(links) <= set(LINKS):
        raise NotImplementedError(
            "model: the decision values of its members are of different kinds, and only their "
            "probabilities can be compared, which is not exported to C"
        )
    if any(part.n_scores > 1 for part in parts):
        raise NotImplementedError(
            "model: members with several decision values are not exported to C"
        )
    place = tuple(np.arange(n, dtype=np.int32)[:, None])
    is_probit = all(isinstance(member, ProbitModel | ProbitTree) for member in model.models)
    link = "probit" if is_probit else "none"
    return EnsembleSum(parts, ("identity",) * n, np.ones(n), place, np.zeros(n)), link


@_lower.register
def _(model: WeightedVote) -> tuple[Part, str]:
    return _added(model.models, "hard", model.classes, model.alpha, start=model.bias), "softmax"


@_lower.register
def _(model: Bagging) -> tuple[Part, str]:
    n, models, classes = len(model.models), model.models, model.classes
    if classes is not None:
        end: dict[str, Any] = {"divisor": n, "lead": len(classes) == 2}
        return _added(models, model.voting, classes, np.ones(n), **end), "shares"
    parts = tuple(part for part, _ in _members(models))
    if any(member.classes is not None or _predicts_otherwise(member) for member in models):
        raise NotImplementedError(
            "model: bagged regressions are exported to C where what their members predict is their "
            "decision value"
        )
    place = (np.zeros(1, dtype=np.int32),) * n
    return EnsembleSum(parts, ("identity",) * n, np.ones(n), place, np.zeros(1), n), "identity"


@_lower.register
def _(model: SubaggedProbitTrees) -> tuple[Part, str]:
    n, classes, members = len(model), model.classes, list(model)
    end: dict[str, Any] = {"divisor": n, "lead": len(classes) == 2}
    if model.voting != "soft":
        return _added(members, "hard", classes, np.ones(n), **end), "shares"
    means = tuple(
        _added(of.models, "soft", classes, of.alpha, divisor=float(of.alpha.sum()))
        for of in members
    )
    place = (np.arange(len(classes), dtype=np.int32),) * n
    return EnsembleSum(
        means, ("shares",) * n, np.ones(n), place, np.zeros(len(classes)), **end
    ), "shares"
