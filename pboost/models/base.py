"""Models, and the functions of a model, which call the methods of the same names."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import (
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    get_args,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.node_inputs.inputs import Inputs, indicators_of
from pboost.data.prices import (
    COST_OPTIONS,
    CostGroupOption,
    FeatureCostOption,
    FeatureCosts,
    read_feature_costs,
)
from pboost.data.read.table import Table
from pboost.data.row_digest import Digest
from pboost.models import stored
from pboost.models.evaluate.exits import Exits, Left, NodeExits, joints_left
from pboost.models.shares import (
    at_ends,
    lead_of_second,
    many_probabilities,
    one_of_two,
    scaled_shares,
    shares_of_leads,
    two_probabilities,
)
from pboost.models.stored import Arrays, Header, HeaderAndArrays, Settings, Stored, TrainingRecord
from pboost.values import (
    Array,
    FloatArray,
    IntArray,
    Seed,
    TableLike,
    check_choice,
    check_integer,
    check_number,
    shown,
)

CostUnit: TypeAlias = Literal["nodes", "features", "stumps", "feature_cost"]
UNITS: tuple[CostUnit, ...] = get_args(CostUnit)

#: Where rows leave a model: at its end, or where their labels cannot change any more.
ExitRule: TypeAlias = Literal["none", "proven"]
EXITS: tuple[ExitRule, ...] = get_args(ExitRule)

RouteName: TypeAlias = Literal["hard", "expected", "sample"]
ROUTES: tuple[RouteName, ...] = get_args(RouteName)
#: Those for which there are probabilities.
ProbabilityRoute: TypeAlias = Literal["hard", "expected"]

#: The models that can be stored, by their kinds in files.
KINDS: dict[str, type[Model]] = {}


#: Standard deviations of the errors of rows: one, or those of columns or cells; None: the model's.
Sigma: TypeAlias = float | ArrayLike | None
#: Besides fields, of the kinds that have them; a class adds its own in `_public`.
PUBLIC = (
    "predict",
    "predict_proba",
    "decision_function",
    "staged_decision_function",
    "prediction_cost",
    "truncate",
    "describe",
    "classes",
    "n_features",
    "feature_names",
    "table",
    "n_nodes",
    "mean_prediction_cost",
    "n_stages",
    "n_leaves",
    "leaf",
    "depth",
    "column",
)


class Route(NamedTuple):
    """Which exits rows take, one of `ROUTES`, and its options; see `decision_function`."""

    name: str
    rng: Seed = None
    draws: int = 1
    sigma: Sigma = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fitted(Stored):
    """What is fitted to rows, which it remembers: `seen` is their digest, None if not known."""

    _: KW_ONLY
    seen: Digest | None = stored.kept_as(
        stored.InHeader(np.uint64, ndim=1), default=None, repr=False
    )


class Model(Fitted):
    """Base of models: the functions of a model call its methods of the same names.

    A model that has no answer says why. `file_kind` is its kind in files, empty where it cannot be
    stored; `file_order` the arrays that come first in a file, where they are not in the order of
    the fields; `file_stop` stands for the stop reason where there is none.
    """

    __slots__ = ()
    #: What users can rely on of this kind alone, besides fields; see `public_names`.
    _public: ClassVar[tuple[str, ...]] = ()
    file_kind: ClassVar[str] = ""
    file_order: ClassVar[tuple[str, ...]] = ()
    file_stop: ClassVar[str] = ""
    #: Why it is no decision graph.
    no_graph: ClassVar[str] = "which has no nodes"
    #: What to call in place of functions of graphs, by these.
    instead: ClassVar[Mapping[str, str]] = {}
    #: Why it has no `equations`.
    no_functions: ClassVar[str] = (
        "has no linear functions, as a ProbitModel, ProbitTree, SubaggedProbitTrees or LinearModel "
        "has"
    )
    #: Why it is no sum of trees, and what can be used instead; see `as_tree_ensemble`.
    no_trees: ClassVar[str] = "which does not say what trees it is made of"
    #: It reads the columns of X as they are.
    inputs: Inputs | None = None
    sigma: FloatArray | None = None
    #: Where its nodes send missing values, see `DecisionGraph`.
    missing: Array | None = None
    #: Whether rows may have missing values; else they are refused.
    takes_missing: bool = False
    #: Whether it adds up columns: each level of a category is then a column of its own.
    sums_features: bool = False
    #: What the columns were in training; None where they were numbers and none was missing.
    table: Table | None = None
    #: A certificate, if there is one, is that of the predictions.
    certificate_note = ""
    classes: Array | None
    n_features: int
    feature_names: tuple[str, ...] | None
    settings: Settings

    def __init_subclass__(cls) -> None:
        if "file_kind" in vars(cls):
            KINDS[cls.file_kind] = cls

    def __dir__(self) -> list[str]:
        hidden = (name for name in super().__dir__() if name.startswith("_"))
        return [*hidden, *public_names(type(self))]

    @property
    def row_table(self) -> Table | None:
        """The table by whose numbers of categories rows are passed to the model."""
        return self.table

    @property
    def n_inputs(self) -> int:
        """Number of different numbers that are read of a row."""
        return self.n_features

    @property
    def n_added(self) -> int:
        """Number of columns where they are added up."""
        indicators = indicators_of(self.table)
        return self.n_features if indicators is None else len(indicators.column)

    def by_column(self, amounts: FloatArray) -> FloatArray:
        """Return amounts (n_added, ...) of what is added up by columns of X, (n_features, ...)."""
        indicators = indicators_of(self.table)
        return amounts if indicators is None else indicators.by_column(amounts)

    def digests(self) -> list[Digest]:
        """Return the digests of rows that were fitted to, each of one table."""
        return [] if self.seen is None else [self.seen]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        raise NotImplementedError

    def predict(self, X: TableLike) -> Array:
        """Return the prediction for each row."""
        return self.labels_of(self.decision_function(X))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probability of each label for each row."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities that go with decision values: their half log odds, if no other.

        See `two_probabilities`, and of several values of a row `many_probabilities`.
        """
        return two_probabilities(score) if score.ndim == 1 else many_probabilities(score)

    def labels_of(self, score: FloatArray) -> Array:
        """Return the predictions that go with decision values: by their signs, or the largest."""
        if self.classes is None:
            return score
        if score.ndim == 1:
            return one_of_two(self.classes, score)
        return self.classes[np.argmax(score, axis=1)]

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision value of each row."""
        raise NotImplementedError

    def values_at_end(self, X: TableLike) -> FloatArray:
        """Return the decision values of each row, or shares where it has no others."""
        return self.decision_function(X)

    def truncate(self, n_nodes: int) -> Any:
        """Return the model with its first nodes only."""
        raise self.is_no_graph("truncate")

    def is_no_graph(self, function: str = "") -> TypeError:
        """Return what to raise where a decision graph is expected, for a function of graphs."""
        asked = f" for {function}" if function else ""
        hint = f": {self.instead[function]}" if function in self.instead else ""
        return TypeError(
            f"model: expected a DecisionGraph{asked}, got a {type(self).__name__}, "
            f"{self.no_graph}{hint}"
        )

    @property
    def n_votes(self) -> int:
        """Number of decision values of a row, or of its shares where it has no others."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons of the rows it was fitted to, as far as it keeps them."""
        raise NotImplementedError(
            f"model: what training rows cost a {type(self).__name__} is not kept; see "
            "prediction_cost"
        )

    @property
    def n_stages(self) -> int:
        """Number of places where all paths meet, with the end; see `trajectory`."""
        return 1

    def leave_proven(self, X: TableLike) -> Left:
        """Return what rows have when their labels cannot change any more."""
        if self.classes is None:
            raise NotImplementedError(
                'exit: expected "none" for a regression: no number is settled before the end'
            )
        if isinstance(self, Walks) and (nodes := self.proven_nodes()) is not None:
            return self.leave(X, nodes)
        (score, cost), exits = self.trajectory(X), None
        if isinstance(self, HasJoints):
            exits = self.proven()
        end = np.full(cost.shape[1], len(cost) - 1)
        joint = end if exits is None else joints_left(score, exits)
        rows = np.arange(len(joint))
        return Left(score[joint, rows], joint, cost[joint, rows])

    @property
    def without_exits(self) -> Model:
        """The model without exits of its own."""
        return self

    def scaled(self, score: FloatArray, slope: FloatArray) -> FloatArray:
        """Return decision values times factors."""
        return score * slope

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the decision values (T + 1, n, ...) and the comparisons (T + 1, n) at the joints.

        Before the first node and after the last, where there are no joints.
        """
        return at_ends(self.decision_function(X), self.prediction_cost(X, "nodes"))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values at the stages of growth."""
        raise NotImplementedError(f"model: a {type(self).__name__} has no stages")

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return what evaluating each row costs, in "nodes" or "features"."""
        raise NotImplementedError

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield which columns are read of each row by then, (n, d), at joint 1, 2, ... of a model.

        The last is that of the whole model. It may be the same array each time.
        """
        raise NotImplementedError(
            f'unit: expected another than "feature_cost": which columns a {type(self).__name__} reads of '
            "a row is not known"
        )

    def inquiry(self, settles: bool) -> Any:
        """Return what the model asks of a row of which not all is known, see `known_values`.

        `settles`: whether members are not asked on whose label is settled.
        """
        raise NotImplementedError(
            f"model: which columns a {type(self).__name__} reads of a row is not known before; see "
            "predict"
        )

    @property
    def explained(self) -> str:
        """What the contributions of columns add up to."""
        return "prediction" if self.classes is None else "decision value"

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the parts (1 + d,) or (1 + d, J) of what is explained of one row.

        First the part that no column has, then that of each column.
        """
        raise NotImplementedError(
            f"model: the parts of columns in the values of a {type(self).__name__} are not known"
        )

    def goes_with(self, X: TableLike) -> Mapping[int, str]:
        """Return with which values a row goes, in words, by the columns where its own is missing.

        Of those columns only of which it is one place of the model that says so.
        """
        return {}

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return parts like those of `contributions`, by which its vote for a row is divided.

        Others where those would depend on where the zero of a column lies.
        """
        return self.contributions(X)

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the shares (d,) of the columns in what was learnt, all 0 where that is nothing.

        `X`: rows whose standard deviations are the spreads of the columns, None for spreads that
        the model knows.
        """
        raise NotImplementedError(
            f"model: how much columns matter to a {type(self).__name__} is not known"
        )

    def describe(self) -> str:
        """Return the model as text."""
        raise NotImplementedError

    def members(self) -> HeaderAndArrays:
        """Return the fields of a file's header and its arrays."""
        header, arrays = self.parts()
        first = {name: arrays[name] for name in self.file_order if name in arrays}
        return {"stop_reason": self.file_stop, **header}, {**first, **arrays}

    @classmethod
    def from_models(cls, header: Header, arrays: Arrays, models: tuple[Model, ...]) -> Any:
        """Return the model of a file and of the files in it; ValueError where it is none."""
        return cls.from_parts({**header, "models": models}, arrays)


@runtime_checkable
class HasRoutes(Protocol):
    """A model through which rows can take other routes than the hard one."""

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return the decision value of each row by a route that is not the hard one."""


@runtime_checkable
class HasEquations(Protocol):
    """A model that has linear functions."""

    def equations(self) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Return coefficients (leaves, K, 1 + d) and the share of the weight in each leaf.

        Then the class of each leaf, where leaves are of one class, or None.
        """


@runtime_checkable
class HasJoints(Protocol):
    """A model that can end at joints, places where all paths of a row meet; see `trajectory`."""

    def first(self, n_stages: int) -> Model:
        """Return the model that ends after so many joints."""

    def proven(self) -> Exits | None:
        """Return when the labels of rows cannot change any more; None if there are no joints."""


@runtime_checkable
class Walks(HasJoints, Protocol):
    """A model with joints that a kernel walks, whose rows may leave at nodes or trees."""

    def longest_costs(self) -> FloatArray:
        """Return the comparisons (T + 1,) that a row has made at most at each joint."""

    def node_exits(self, exits: Exits) -> NodeExits | None:
        """Return when rows leave, as the kernel takes it; None if no kernel walks this model."""

    def proven_nodes(self) -> NodeExits | None:
        """Return when labels cannot change any more, likewise."""

    def leave(self, X: TableLike, exits: NodeExits) -> Left:
        """Return what rows have when they leave."""


def score_by_route(model: Model, X: TableLike, route: Route) -> FloatArray:
    """Return the decision values of a model by a route that is not the hard one, if it has any."""
    if not isinstance(model, HasRoutes):
        raise model.is_no_graph(f"route={route.name!r}")
    return model.score_by_route(X, route)


def with_joints(model: Model) -> HasJoints:
    """Return a model that has joints."""
    if not isinstance(model, HasJoints):
        raise NotImplementedError(f"model: a {type(model).__name__} has no joints")
    return model


class TwoClassModel(Model):
    """Base of those of two classes that bound the error of the sign of their values.

    `classes`, `bias`, `settings` and `record` are those of a `DecisionGraph`.
    """

    __slots__ = ()

    classes: Array
    bias: float
    record: TrainingRecord
    is_exact, is_estimated = True, False

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons of the training rows, by weight."""
        return float(self.record.cost[-1])

    #: What it is a sum of, and what a row costs is counted in.
    counted_in: ClassVar[tuple[str, str]] = "round", "answers"

    def __repr__(self) -> str:
        kind = self.settings.get("builder", type(self).__name__)
        note = f" ({self.certificate_note})" if self.certificate_note else ""
        return (
            f"<{kind}: {self.n_nodes} {self.counted_in[0]}s, {self.n_features} features, "
            f"certificate {self.record.certificate[-1]:.4g}{note}>"
        )


class Averaged(Model):
    """Base of those that answer with a mean: of the shares of the classes, or of numbers."""

    __slots__ = ()
    #: What models of several classes, and of numbers, are called.
    of_classes: ClassVar[str] = ""
    of_numbers: ClassVar[str] = ""

    def mean(self, X: TableLike) -> FloatArray:
        """Return the shares (n, J) of the classes, or the numbers (n,)."""
        raise NotImplementedError

    def mean_parts(self, X: TableLike) -> FloatArray:
        """Return the parts (1 + d, J) or (1 + d,) of the mean of one row, see `contributions`."""
        raise NotImplementedError

    @property
    def explained(self) -> str:
        """What the contributions of columns add up to."""
        many = self.classes is not None and len(self.classes) > 2
        return "probability" if many else super().explained

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the parts of the number, of the lead of the second label, or of the shares."""
        parts = self.mean_parts(X)
        return parts if self.classes is None or len(self.classes) > 2 else lead_of_second(parts)

    def predict(self, X: TableLike) -> Array:
        """Return the label of largest share, the first among equals, or the number."""
        return self.labels_of(self.mean(X))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the share of each label."""
        if self.classes is None:
            raise TypeError(f"model: {self.of_numbers} no probabilities")
        return self.mean(X)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the number, or by how much the second label has the larger share."""
        if self.classes is None:
            return self.predict(X)
        self._check_two()
        return lead_of_second(self.mean(X))

    def values_at_end(self, X: TableLike) -> FloatArray:
        """Return the decision value of each row; of J > 2 labels shares."""
        return self.values_of_mean(self.mean(X))

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return what is said before the first node and after the last; of J > 2 labels shares."""
        return at_ends(self.values_at_end(X), self.prediction_cost(X, "nodes"))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the shares that go with leads of the second of two labels; others are shares."""
        if self.classes is None:
            raise TypeError(f"model: {self.of_numbers} no probabilities")
        return shares_of_leads(score)

    def scaled(self, score: FloatArray, slope: FloatArray) -> FloatArray:
        """Return leads times factors, and shares that differ so many times from equal ones."""
        return scaled_shares(score, slope)

    def values_of_mean(self, mean: FloatArray) -> FloatArray:
        """Return the numbers or shares (..., J) of a mean, of two labels leads (...) of one."""
        return lead_of_second(mean) if self.classes is not None and len(self.classes) == 2 else mean

    def _check_two(self) -> None:
        if self.classes is not None and len(self.classes) > 2:
            raise TypeError(
                f"model: {self.of_classes} of {len(self.classes)} classes has no decision value; "
                "see predict_proba"
            )


def check_model(model: object) -> Model:
    """Return this if it is a model."""
    if not isinstance(model, Model):
        hint = "; its model is .model_" if hasattr(model, "model_") else ""
        raise TypeError(
            f"model: expected a model such as fit_adaboost returns, got {shown(model)}{hint}"
        )
    return model


def decision_function(
    model: Model,
    X: TableLike,
    route: RouteName = "hard",
    *,
    rng: Seed = None,
    draws: int = 1,
    sigma: Sigma = None,
) -> FloatArray:
    """Return the decision value of each row: the sum of the votes of the exits it takes.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        Numbers, of which NaN are missing values; see `DecisionGraph` for where they go. A frame
        whose columns are named as in training, in any order, is put in the training order.
    route : {"hard", "expected", "sample"}
        "hard": each row takes the exits on whose side it lies. "expected": the expectation under
        the answers assumed in training. "sample": the mean over random walks with those answers;
        oracles are asked anew in each.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        For ``route="sample"``, the only one that draws; the same seed gives the same answers for
        any number of threads.
    draws : int
        For ``route="sample"``: walks per row; other routes take 1 only.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        For gaussian models and routes other than "hard": standard deviations of the errors of
        these rows, by the columns of X as given. Default: those of the training data, unless
        there each cell had its own.

    Returns
    -------
    ndarray of float64, shape (n,)
        Half log odds of ``model.classes[1]`` under the exponential loss; the second label is
        predicted where positive. (n, J) for graphs of J > 2 labels, of which that of the largest
        value is predicted, and models of `fit_one_vs_rest` and `fit_samme`. Other
        models say in their method of this name what it is.

    Raises
    ------
    ValueError
        If X has other columns than the training data, or reads a value that is infinite, or missing
        and the model does not take missing values; or if the
        route is not hard and the model's answers depend on the class of a row; or if `sigma` is
        given where nothing depends on it, or missing where the model knows none; or if the route
        is "expected" and the model asks oracles, of which only answers are known.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], max_nodes=1)
    >>> (pb.decision_function(model, X) > 0).tolist()
    [False, False, True, True]
    """
    is_plain = isinstance(route, str) and route == "hard" and type(draws) is int and draws == 1
    # At once: for one row the checks take longer.
    if is_plain and sigma is None and isinstance(model, Model):
        return model.decision_function(X)
    check_model(model)
    check_choice("route", route, ROUTES)
    if route == "hard" and sigma is not None:
        raise ValueError('sigma: route="hard" does not depend on it; see route="expected"')
    if check_integer("draws", draws, min_value=1) > 1 and route != "sample":
        raise ValueError(f'draws: expected 1 with route={route!r}; random walks are route="sample"')
    if route == "hard":
        return model.decision_function(X)
    return score_by_route(model, X, Route(route, rng, draws, sigma))


def predict(model: Model, X: TableLike, *, threshold: float | None = None) -> Array:
    """Return the predicted label of each row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    threshold : float, optional
        Of two labels: predict the second where its probability, see `predict_proba`, is larger than
        this number in [0, 1].

    Returns
    -------
    ndarray, shape (n,)
        ``model.classes[1]`` where the decision value is positive, else ``model.classes[0]``; of
        more classes the first label of largest probability, or decision value; of a regression the
        number.

    Raises
    ------
    ValueError, TypeError
        If X is not as described, or `threshold` is given to a model of other than two labels.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], max_nodes=1)
    >>> pb.predict(model, [[0.5], [2.5]]).tolist()
    ['no', 'yes']
    >>> pb.predict(model, [[0.5], [2.5]], threshold=0.9999).tolist()
    ['no', 'no']
    """
    check_model(model)
    if threshold is None:
        return model.predict(X)
    cutoff = check_number("threshold", threshold, min_value=0.0, max_value=1.0)
    classes = model.classes
    if classes is None or len(classes) != 2:
        actual = "a regression" if classes is None else f"{len(classes)} labels"
        raise ValueError(f"threshold: expected None unless there are two labels, got {actual}")
    return one_of_two(classes, model.predict_proba(X)[:, 1] - cutoff)


def predict_proba(model: Model, X: TableLike, *, route: ProbabilityRoute = "hard") -> FloatArray:
    """Return the probability of each label for each row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    route : {"hard", "expected"}
        Which exits rows take, see `decision_function`.

    Returns
    -------
    ndarray of float64, shape (n, 2), or (n, J) of J classes
        Columns in the order of ``model.classes``; with the decision value H of a graph the second
        is ``1 / (1 + exp(-2 H))``, the population minimiser of the exponential loss; with J > 2
        decision values these numbers, divided by their sum. The other
        builders say what it is of their models. That of the label predicted is largest: where
        rounding leaves both 1/2, by one unit in the last place.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 1, 1], max_nodes=1, smoothing=0.1)
    >>> pb.predict_proba(model, X).round(2).tolist()
    [[0.78, 0.22], [0.11, 0.89], [0.11, 0.89], [0.11, 0.89]]
    """
    # At once: for one row the checks take longer.
    if isinstance(route, str) and route == "hard" and isinstance(model, Model):
        return model.predict_proba(X)
    check_model(model)
    check_choice("route", route, get_args(ProbabilityRoute))
    return model.probabilities(score_by_route(model, X, Route(route)))


def staged_decision_function(model: Model, X: TableLike) -> Iterator[FloatArray]:
    """Yield the decision values of the model at the stages of its growth.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`. It must not change before the last stage has been taken.

    Yields
    ------
    ndarray of float64, shape (n,)
        After each node in the order in which they were opened; the last equals
        `decision_function`. Of a matryoshka collected by sign, only after those nodes at which its
        votes were what they are now, ``model.record.stages``: after each classifier of the
        outermost level, or, grown greedily, wherever no later sub-tree holds an earlier node.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 0, 1], max_nodes=3)
    >>> [int((values > 0).sum()) for values in pb.staged_decision_function(model, X)]
    [3, 3, 2]
    """
    check_model(model)
    return model.staged_decision_function(X)


def staged_predict(model: Model, X: TableLike) -> Iterator[Array]:
    """Yield the labels that the model predicts at the stages of its growth.

    Parameters
    ----------
    model : DecisionGraph, or another model that is a sum
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`. It must not change before the last stage has been taken.

    Yields
    ------
    ndarray, shape (n,)
        At the stages of `staged_decision_function`; the last equals `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=3)
    >>> [int((labels != y).sum()) for labels in pb.staged_predict(model, X)]
    [1, 1, 0]
    """
    for score in staged_decision_function(model, X):
        yield model.labels_of(score)


def staged_predict_proba(model: Model, X: TableLike) -> Iterator[FloatArray]:
    """Yield the probabilities that the model gives the labels at the stages of its growth.

    Parameters
    ----------
    model : DecisionGraph, or another model that is a sum
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`. It must not change before the last stage has been taken.

    Yields
    ------
    ndarray of float64, shape (n, J)
        At the stages of `staged_decision_function`; the last equals `predict_proba`, of two labels
        of `fit_sbpmt` but for rounding.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> model = pb.fit_gradient_boosting(X, X[:, 0] > 29, loss="log_loss", n_estimators=3, max_depth=1)
    >>> [round(float(share[39, 1]), 2) for share in pb.staged_predict_proba(model, X)]
    [0.28, 0.32, 0.35]
    """
    for score in staged_decision_function(model, X):
        yield model.probabilities(score)


def truncate(model: Any, n_nodes: int) -> Any:
    """Return the model with its first nodes only; of a stagewise model its first trees.

    Parameters
    ----------
    model : DecisionGraph or GradientBoostingModel
        A fitted model.
    n_nodes : int
        Number of nodes to keep, 1 to ``model.n_nodes``. Exits that led to others lead out. Of a
        stagewise model the number of trees, 1 to ``len(model)``.

    Returns
    -------
    DecisionGraph or GradientBoostingModel
        The model as it was when so many nodes had been opened. Its record is that of these nodes,
        and ``record.stop_reason`` says that it was cut.

    Raises
    ------
    ValueError, TypeError
        If `n_nodes` is not as described, or is none of the stages of a model collected by sign
        (``record.stages``): between them votes were replaced when a tree was finished.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = pb.fit_adaboost(X, [0, 1, 1, 0, 1, 0, 0, 1], n_estimators=20)
    >>> pb.models.truncate(model, 5).n_nodes
    5
    """
    check_model(model)
    return model.truncate(n_nodes)


def prediction_cost(
    model: Model,
    X: TableLike,
    unit: CostUnit = "nodes",
    *,
    exit: ExitRule | None = None,
    feature_costs: FeatureCostOption = None,
    cost_groups: CostGroupOption = None,
) -> FloatArray:
    """Return what evaluating each row costs.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.
    unit : {"nodes", "features", "stumps", "feature_cost"}
        Count the weak classifiers evaluated (comparisons), or the distinct features read, or the
        weak classifiers evaluated with the stumps of each separator counted one by one; or add up
        the costs of the features read, each group once.
    exit : {"none", "proven"}, optional
        Where rows leave. "none": at the end. "proven": at the first joint (of a graph, node) where
        no vote that is left can change the label, counted in nodes; it is the label that `predict`
        returns. Default: "none", and of an `EarlyExitModel` its own exits; of its whole model
        speak the two others.
    feature_costs, cost_groups : optional
        With ``unit="feature_cost"``: what columns cost, see `fit_gradient_boosting`. Default: the
        costs that the model was fitted with.

    Returns
    -------
    ndarray of float64, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 1, 1], max_nodes=2)
    >>> pb.prediction_cost(model, X).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> chain = pb.fit_adaboost(X, [0, 1, 0, 1], n_estimators=9)
    >>> pb.prediction_cost(chain, X, exit="proven").tolist()
    [7.0, 7.0, 8.0, 7.0]
    """
    check_choice("unit", unit, UNITS)
    check_model(model)
    if exit is not None and check_choice("exit", exit, EXITS) == "proven":
        if unit != UNITS[0]:
            raise NotImplementedError(
                f'unit: expected "nodes" with exit="proven", got {unit!r}: what else rows have '
                "read by then is not counted"
            )
        return model.leave_proven(X).cost
    model = model if exit is None else model.without_exits
    if unit == "feature_cost":
        return feature_costs_for(model, feature_costs, cost_groups).of_columns(
            deque(model.reads(X), 1)[0]
        )
    if feature_costs is not None or cost_groups is not None:
        raise ValueError(
            f'feature_costs, cost_groups: expected None with unit={unit!r}; unit="feature_cost" is paid'
        )
    return model.prediction_cost(X, unit)


def describe(model: Model) -> str:
    """Return the model as text: a summary, then one line per weak classifier.

    Parameters
    ----------
    model : DecisionGraph
        A fitted model.

    Returns
    -------
    str
        For each node its test and, for either exit, the vote and where it leads. Of a model of
        several members, each of them, indented.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, ["no", "no", "yes", "yes"], max_nodes=1)
    >>> print(pb.describe(model))
    fit_boosted_tree: 1 node, 1 feature, labels 'no' (-) and 'yes' (+)
    certificate 0.01414, mean cost 1 comparisons per training row
    stopped: no exit can be split
    node 0: x[0] <= 1.5: vote -4.2587, out; else vote +4.2587, out
    """
    check_model(model)
    return model.describe()


def public_names(cls: type[Any]) -> list[str]:
    """Return the names of a kind of model that users can rely on, which `dir` lists.

    Other names are for functions of the package.
    """
    listed = {name for base in cls.__mro__ for name in vars(base).get("_public", ())}
    listed |= {*PUBLIC, *(field.name for field in fields(cls) if field.init)}
    return sorted(name for name in listed if hasattr(cls, name))


def feature_costs_for(
    model: Model, feature_costs: FeatureCostOption, cost_groups: CostGroupOption
) -> FeatureCosts:
    """Return the costs that are given, or those that a model or one of its members knows."""
    if feature_costs is None and cost_groups is None:
        options = known_options(model)
    else:
        options = {**COST_OPTIONS, "feature_costs": feature_costs, "cost_groups": cost_groups}
    if options is None:
        raise ValueError(
            'feature_costs: expected costs of features with unit="feature_cost" for a model that was fitted '
            "without"
        )
    cost_table = read_feature_costs(options, model.feature_names, model.n_features)
    assert cost_table is not None
    return cost_table


def known_options(model: object) -> Settings | None:
    """Return the settings of a model, or of one of its members, that has costs."""
    settings = getattr(model, "settings", {})
    if settings.get("feature_costs") is not None:
        return {**COST_OPTIONS, **settings}
    inner = getattr(model, "model", None)
    for member in (*getattr(model, "models", ()), *([] if inner is None else [inner])):
        member_settings = known_options(member)
        if member_settings is not None:
            return member_settings
    return None
