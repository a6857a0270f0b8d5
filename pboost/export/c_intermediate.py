"""Intermediate representation of models for C files, and the conversion of each type of model."""

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
from pboost.models.as_trees import as_tree_ensemble, tests_of
from pboost.models.base import Averaged, Model
from pboost.models.calibrated import CalibratedModel
from pboost.models.early_exit_model import EarlyExitModel
from pboost.models.ensembles import Bagging, OneVsRest, WeightedVote, is_foreign
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.models.graph_arrays import joints_of
from pboost.models.linear import CONSTANT, FunctionEnsemble, LinearModel, ProbitModel
from pboost.models.probit_trees import NO_ROW, ProbitTree, means_of
from pboost.models.single_tree import Trees
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_ensemble import LEAF, TreeEnsemble
from pboost.values import Array, FloatArray, IntArray

#: Links of `TreeEnsemble` with a C function; "shares" are already probabilities.
LINKS = ("half log odds", "log odds", "probit", "softmax", "shares")
#: Links that are the identity.
PLAIN = ("identity", "shares")


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The splits of nodes, which have a threshold or a category set.

    Arrays are named as in `TreeEnsemble`.

    Attributes
    ----------
    feature : ndarray of int32, shape (n,)
        Feature of each node, or index of a sum in `inputs`.
    threshold : ndarray, shape (n,)
        Threshold of each node.
    missing : ndarray of bool, shape (n,)
        Whether a missing value goes to branch 1.
    category_set : ndarray of int32, shape (n,)
        Index of the category set, or -1 for a threshold.
    sets : ndarray of uint8, shape (n_sets, bytes)
        Category sets. Category b is in a set if bit ``b % 8`` of byte ``b // 8`` is 1.
    inputs : Projections or Separators, or None
        The sums of features that splits compare, or None if they compare single features.
    levels : Indicators or None
        Indicators of categories that are part of the sums, or None if there are none.
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
    """The positions in a graph or a list of trees at which prediction can stop early.

    Attributes
    ----------
    each : int
        Number of trees between two positions; 0 for graphs.
    at : ndarray of int32, shape (m,)
        The positions in increasing order: nodes of a graph, or indices of the next tree.
    sure : ndarray of float64, shape (m,)
        Thresholds. Prediction stops if the absolute value, or the lead of the largest value over
        the next, is at least the threshold.
    slope : ndarray of float64, shape (m,)
        Factor of the values at each position.
    is_share : bool
        Whether values are class shares or the difference of two shares, which are clipped.
    unit : int
        In fixed point, the power of two by which products with `slope` are divided; otherwise 0.
    full_share : int
        In fixed point, the representation of a share of 1.
    even : ndarray of int64, shape (m,), or None
        In fixed point with several shares, the number that is added to each product. Shares of
        1 / J are then unchanged.
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
    """A graph or several trees. The values on the paths of a row are added up.

    Attributes
    ----------
    tests : Tests
        The splits of the nodes.
    next : ndarray of int32, shape (n, 2)
        Next node of each branch. A negative number ends the walk. In a tree, it stands for leaf
        ``-1 - next``.
    root : ndarray of int32, shape (trees,)
        First node of each walk, or the number of a leaf as in `next`; -1 for a graph without nodes.
    added : ndarray, shape (n, 2, K) or (leaves, K)
        Values of the exits of a graph, or of the leaves of trees.
    start : ndarray, shape (J,)
        Initial values of the sums. The K values of walk t are added to the sums from index ``K * t
        mod J``.
    after : ndarray of float64, shape (J,), or None
        Values that are added to the sums at the end.
    divisor : int
        Divisor of the sums at the end.
    lead : bool
        Whether the result is the second sum minus the first.
    exits : JointExits or None
        Positions at which prediction can stop early.
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
        """Whether values belong to exits of a graph instead of leaves."""
        return self.added.ndim == 3

    @property
    def is_chain(self) -> bool:
        """Whether both branches of each node lead to the next node."""
        n = len(self.tests)
        after = np.append(np.arange(1, n), -1)[:n]
        return self.is_graph and bool((self.next == after[:, None]).all())


@dataclass(frozen=True, slots=True, eq=False)
class AffineMap:
    """K linear functions of a row. With a tree, each leaf has its own functions.

    Term t of a function is ``factor[t] * (x - center[t]) / scale[t]``. A missing value x is
    replaced by ``fill[t]``.

    Attributes
    ----------
    walk : Walk or None
        The tree, without values at its leaves. None for a single leaf.
    column : ndarray of int32, shape (n,), or None
        Feature of each term, or None if term j uses feature j.
    coefficient : ndarray of float64, shape (leaves, K, 1 + n)
        Intercept and factors of the terms, for each leaf and function.
    fill : ndarray of float64, shape (leaves, n) or (1, n)
        Values that replace missing values, for each leaf or for all.
    levels : Indicators or None
        See `Tests`.
    scaled : tuple of two ndarray of float64, shape (n,), or None
        The arrays `center` and `scale`. None stands for centers of 0 and scales of 1.
    absent : ndarray of bool, shape (leaves, K), or None
        Whether a class has no rows in a leaf. Its value is then below the values of other classes.
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
        """Number of functions per leaf."""
        return self.coefficient.shape[1]


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleSum:
    """Combination of the decision values of several models.

    Attributes
    ----------
    members : tuple
        Representations of the base learners.
    link : tuple of str
        For each base learner, the link of `TreeEnsemble` that computes the probabilities to add.
        With "vote", 1 is added to the predicted class. With "identity", decision values are added.
    weight : ndarray of float64, shape (members,)
        Weight of each base learner.
    place : tuple of ndarray of int32
        For each base learner, the indices of the sums to which its values are added.
    start : ndarray of float64, shape (J,)
        Initial values of the sums.
    divisor, lead
        See `Walk`. The divisor may be a sum of weights.
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
    """Calibrated probabilities, expressed as decision values.

    With one calibration map, the result is half the log odds. With several maps, the results are
    the logarithms of the normalized probabilities.

    Attributes
    ----------
    part : Part
        The uncalibrated model. If it has two values and one map, the map is applied to their
        difference.
    model : CalibratedModel
        The calibrated model, with the lines or knots of the maps.
    """

    part: Part
    model: CalibratedModel

    @property
    def n_scores(self) -> int:
        """Number of maps."""
        return int(self.model.n_votes)

    @property
    def is_line(self) -> bool:
        """Whether the only map is a line, so that no logarithm is needed."""
        return self.model.slope is not None and self.n_scores == 1


Part: TypeAlias = Walk | AffineMap | EnsembleSum | Maps


def walks(part: Part | None) -> Iterator[Walk]:
    """Yield all `Walk` objects of a representation."""
    if isinstance(part, Walk):
        yield part
    elif isinstance(part, EnsembleSum):
        for member in part.members:
            yield from walks(member)
    elif part is not None:
        yield from walks(part.walk if isinstance(part, AffineMap) else part.part)


def on_walks(part: Part, change: Callable[[Walk], Walk]) -> Part:
    """Return a representation with `change` applied to each `Walk`."""
    if isinstance(part, Walk):
        return change(part)
    if isinstance(part, EnsembleSum):
        members = tuple(on_walks(member, change) for member in part.members)
        return replace(part, members=members)
    if isinstance(part, AffineMap):
        return part if part.walk is None else replace(part, walk=change(part.walk))
    return replace(part, part=on_walks(part.part, change))


def is_exact(part: Part) -> bool:
    """Return whether the C code needs no exponential function or logarithm."""
    if isinstance(part, EnsembleSum):
        plain = set(part.link) <= {"identity", "vote", "shares"}
        return plain and all(map(is_exact, part.members))
    return is_exact(part.part) and part.is_line if isinstance(part, Maps) else True


# Conversion of graphs and trees

#: Maximum number of class shares that NumPy and the C code add in the same order.
MOST_SHARES = 7
#: Arrays of a `TreeEnsemble` that define splits.
TESTS = ("feature", "threshold", "missing", "category_set")


def part_of(model: Model) -> Part:
    """Return the representation of a model, or raise a NotImplementedError."""
    return _lower(model)[0]


@singledispatch
def _lower(model: object) -> tuple[Part, str]:
    """Return the representation of a model and the link of its decision values."""
    raise NotImplementedError(f"model: a {type(model).__name__} cannot be exported to C")


@_lower.register
def _(model: FunctionEnsemble) -> tuple[Part, str]:
    raise NotImplementedError(
        "model: a FunctionEnsemble contains Python functions and can only be pickled"
    )


def _tests(
    arrays: dict[str, Any],
    inputs: Projections | Separators | None = None,
    levels: Indicators | None = None,
) -> Tests:
    """Return the splits of nodes from the arrays of a `TreeEnsemble`."""
    if arrays["missing"] is None:
        missing = np.zeros(len(arrays["feature"]), dtype=np.bool_)
    else:
        missing = arrays["missing"].astype(np.bool_)
    # Remove the last bytes if they are 0 in all sets.
    words = arrays["sets"].astype("<u8")
    sets = words.view(np.uint8).reshape(len(words), 8 * words.shape[1])
    used = np.flatnonzero(sets.any(axis=0))
    sets = sets[:, : used[-1] + 1 if len(used) else 1].copy()
    return Tests(**{**arrays, "missing": missing, "sets": sets}, inputs=inputs, levels=levels)


@_lower.register
def _(graph: DecisionGraph) -> tuple[Part, str]:
    """Return the `Walk` of a graph. Nodes on several paths are stored once."""
    n, k, inputs = graph.n_nodes, graph.n_votes, graph.inputs
    if isinstance(inputs, Oracles):
        raise NotImplementedError(
            "model: its nodes use oracles, which are Python functions and can only be pickled"
        )
    arrays = tests_of(graph, np.arange(n, dtype=np.int32))
    if isinstance(inputs, Projections | Separators):
        tests = _tests(arrays, inputs, indicators_of(graph.table))
    elif inputs is None or isinstance(inputs, Subsets):
        tests = _tests(arrays)
    else:
        raise NotImplementedError(
            f"model: splits on {type(inputs).__name__} cannot be exported to C"
        )
    root = np.array([0 if n else -1], dtype=np.int32)
    vote, bias = graph.vote.reshape(n, 2, k), np.atleast_1d(np.asarray(graph.bias, np.float64))
    return Walk(tests, graph.next, root, vote, bias), "half log odds" if k == 1 else "softmax"


def walks_of(trees: TreeEnsemble, **end: Any) -> Walk:
    """Return the `Walk` of trees. Inner nodes and leaves are numbered separately."""
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
    """Return a `Walk` that averages class shares or predictions over the trees."""
    trees = as_tree_ensemble(model)
    n = trees.n_trees if trees.aggregation == "mean" else 1
    is_lead = trees.classes is not None and len(trees.classes) == 2
    return walks_of(trees, divisor=n, lead=is_lead), trees.link


@_lower.register
def _(model: GradientBoostingModel) -> tuple[Part, str]:
    trees = as_tree_ensemble(model)
    if _predicts_otherwise(model) and trees.link != "exp":
        raise NotImplementedError(
            f"model: the predictions of the loss {model.loss} cannot be computed in C"
        )
    return walks_of(trees, after=trees.bias), trees.link


def _predicts_otherwise(model: object) -> bool:
    if not isinstance(model, GradientBoostingModel) or model.classes is not None:
        return False
    return not model.loss.predicts_scores


# Models that wrap another model


@_lower.register
def _(model: EarlyExitModel) -> tuple[Part, str]:
    """Return the `Walk` of the model inside, with the positions of early exits."""
    if model.item is not None:
        raise NotImplementedError(
            "model: early exits with a feature cost cannot be exported to C; export model.model "
            "instead"
        )
    walk, can = part_of(model.model), np.isfinite(model.threshold)
    if not isinstance(walk, Walk):
        raise NotImplementedError(
            "model: early exits can only be exported to C for graphs, forests and sums of trees; "
            f"export model.model, a {type(model.model).__name__}, instead"
        )
    is_share = isinstance(model.model, Averaged)
    if is_share and model.n_votes > MOST_SHARES:
        raise NotImplementedError(
            f"model: C files support early exits of forests with at most {MOST_SHARES} classes, "
            f"got {model.n_votes} classes; export model.model instead"
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
    """Return a linear function of the features, which are standardized if `scale` is passed."""
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


# Models that combine other models


def _members(models: Any) -> list[tuple[Part, str]]:
    """Return the representations of base learners, or raise NotImplementedError."""
    for member in models:
        if isinstance(member, EarlyExitModel):
            raise NotImplementedError(
                "model: a base learner is an EarlyExitModel, which can only be exported by itself"
            )
        if is_foreign(member):
            raise NotImplementedError(
                f"model: a base learner is a {type(member).__name__} of another package, which can "
                "only be pickled"
            )
    column = first_unlike([member.row_table for member in models], models[0].n_features)
    if column is not None:
        label = column_label(models[0].feature_names, column)
        raise NotImplementedError(
            f"model: its base learners use different codes for the categories of {label}, but a C "
            "file supports only one code; export the base learners in model.models, or merge rare "
            "categories so that there are at most 255"
        )
    return [_lower(member) for member in models]


def _added(models: Any, how: str, classes: Array, weight: FloatArray, **end: Any) -> EnsembleSum:
    """Return the sum of the votes or probabilities of base learners."""
    place = tuple(np.searchsorted(classes, m.classes).astype(np.int32) for m in models)
    of = _members(models)
    if how == "soft":
        of = [_with_shares(*member) for member in zip(models, of, strict=True)]
    parts, links = zip(*of, strict=True)
    links = links if how == "soft" else ("vote",) * len(parts)
    end = {"start": np.zeros(len(classes)), **end}
    return EnsembleSum(parts, links, weight, place, **end)


def _with_shares(model: object, of: tuple[Part, str]) -> tuple[Part, str]:
    """Return a base learner with a link that computes its probabilities."""
    part, link = of
    if link not in LINKS:
        raise NotImplementedError(
            f"model: the probabilities of a {type(model).__name__}, which is a base learner, "
            "cannot be computed in C"
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
            "model: its base learners have decision values on different scales, which a C file "
            "cannot compare"
        )
    if any(part.n_scores > 1 for part in parts):
        raise NotImplementedError(
            "model: base learners with several decision values cannot be exported to C"
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
            "model: a bagged regression cannot be exported to C if the predictions of its base "
            "learners differ from their decision values"
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
