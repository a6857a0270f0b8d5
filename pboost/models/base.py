"""The base class of models, and the public functions that call its methods."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Never,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
    runtime_checkable,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.feature_costs import (
    COST_OPTIONS,
    CostGroupOption,
    FeatureCostOption,
    FeatureCosts,
    read_feature_costs,
)
from pboost.data.node_inputs.inputs import Inputs, indicators_of
from pboost.data.read.convert import is_sparse
from pboost.data.read.table import Table
from pboost.data.row_fingerprint import Digest
from pboost.models import schema as stored
from pboost.models.evaluate.exits import Exits, Left, NodeExits, joints_left
from pboost.models.evaluate.sparse_rows import by_blocks
from pboost.models.schema import Arrays, Header, HeaderAndArrays, Settings, Stored, TrainingRecord
from pboost.models.shares import (
    at_ends,
    lead_of_second,
    many_probabilities,
    one_of_two,
    scaled_shares,
    shares_of_leads,
    two_probabilities,
)
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
from pboost.values.options import option_names, refuse_unknown
from pboost.values.parameter_aliases import method_hint

F = TypeVar("F", bound=Callable[..., Any])
CostUnit: TypeAlias = Literal["nodes", "features", "stumps", "feature_cost"]
UNITS: tuple[CostUnit, ...] = get_args(CostUnit)

#: Values of `exit`: predict with the whole model, or stop once the predicted class is final.
ExitRule: TypeAlias = Literal["none", "proven"]
EXITS: tuple[ExitRule, ...] = get_args(ExitRule)

RouteName: TypeAlias = Literal["hard", "expected", "sample"]
ROUTES: tuple[RouteName, ...] = get_args(RouteName)
#: The routes for which probabilities are defined.
ProbabilityRoute: TypeAlias = Literal["hard", "expected"]

#: Model classes by `file_kind`, for loading.
KINDS: dict[str, type[Model]] = {}


#: Standard deviations of measurement errors: one number, or one per feature or per cell. With None,
#: the values of the model are used.
Sigma: TypeAlias = float | ArrayLike | None
#: Public names that any model may have, besides its fields. Classes add their own in `_public`.
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
    """How the branch of a row is chosen at each node: one of `ROUTES`, with its options."""

    name: str
    rng: Seed = None
    draws: int = 1
    sigma: Sigma = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fitted(Stored):
    """Base of objects fitted to rows; `seen` is the digest of the training rows, or None."""

    _: KW_ONLY
    seen: Digest | None = stored.kept_as(
        stored.InHeader(np.uint64, ndim=1), default=None, repr=False
    )


class Model(Fitted):
    """Base class of all models.

    `file_kind` identifies the class in files; it is empty if the class cannot be stored.
    `file_order` names the arrays to store first in a file; by default they have the order of the
    fields. `file_stop` is the stop reason that files contain if the model has none. Methods that
    do not apply to a class raise an error that gives the reason.
    """

    __slots__ = ()
    #: Public names of this class only, besides its fields; see `public_names`.
    _public: ClassVar[tuple[str, ...]] = ()
    file_kind: ClassVar[str] = ""
    file_order: ClassVar[tuple[str, ...]] = ()
    file_stop: ClassVar[str] = ""
    #: End of the error message if a decision graph is required.
    no_graph: ClassVar[str] = "which has no nodes"
    #: Alternatives to graph functions, which error messages recommend.
    instead: ClassVar[Mapping[str, str]] = {}
    #: End of the error message if linear functions are required.
    no_functions: ClassVar[str] = (
        "has no linear functions; expected a ProbitModel, ProbitTree, SubaggedProbitTrees or "
        "LinearModel"
    )
    #: End of the error message if an ensemble of trees is required; see `as_tree_ensemble`.
    no_trees: ClassVar[str] = "which cannot be written as a sum of trees"
    #: Preprocessing of X; None if the model reads X as it is.
    inputs: Inputs | None = None
    sigma: FloatArray | None = None
    #: Branch of missing values at each node; see `DecisionGraph`.
    missing: Array | None = None
    #: Whether the model accepts missing values; otherwise, missing values raise an error.
    takes_missing: bool = False
    #: Whether decision values can be computed from `SparseRows`.
    takes_sparse_rows: bool = False
    #: Whether the model is linear in the features; each category then has an indicator column.
    sums_features: bool = False
    #: Types and categories of the training features; None if all were numeric without NaN.
    table: Table | None = None
    #: Note in a summary for a certificate that does not bound the error of `predict`.
    certificate_note = ""
    classes: Array | None
    n_features: int
    feature_names: tuple[str, ...] | None
    settings: Settings

    def __init_subclass__(cls) -> None:
        if "file_kind" in vars(cls):
            KINDS[cls.file_kind] = cls

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            # Called only for attributes that the model does not have.
            if hasattr(type(self), name):  # a property raised the error: raise it again
                return object.__getattribute__(self, name)
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message + method_hint(name), name=name, obj=self)

    def __dir__(self) -> list[str]:
        hidden = (name for name in super().__dir__() if name.startswith("_"))
        return [*hidden, *public_names(type(self))]

    @property
    def row_table(self) -> Table | None:
        """The table that determines the category codes of rows in prediction."""
        return self.table

    @property
    def n_inputs(self) -> int:
        """Number of inputs that the model can read."""
        return self.n_features

    @property
    def n_added(self) -> int:
        """Number of terms of a linear function; a categorical feature has one term per category."""
        indicators = indicators_of(self.table)
        return self.n_features if indicators is None else len(indicators.column)

    def by_column(self, amounts: FloatArray) -> FloatArray:
        """Return the sum (n_features, ...) of amounts (n_added, ...) by feature."""
        indicators = indicators_of(self.table)
        return amounts if indicators is None else indicators.by_column(amounts)

    def digests(self) -> list[Digest]:
        """Return the digests of the training tables."""
        return [] if self.seen is None else [self.seen]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        raise NotImplementedError

    def predict(self, X: TableLike) -> Array:
        """Return the prediction for each row."""
        return self.labels_of(self.decision_function(X))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probability of each class for each row."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return class probabilities for decision values, by the logistic function or softmax."""
        return two_probabilities(score) if score.ndim == 1 else many_probabilities(score)

    def of_features_read(self) -> tuple[IntArray, Any] | None:
        """Return the features that the model reads, and the model for a table of these features.

        Return None if the model needs all features.
        """
        return None

    def without_temperature(self) -> Self:
        """Return the model with the temperature 1; see `DecisionGraph`."""
        return self

    def labels_of(self, score: FloatArray) -> Array:
        """Return the predicted classes for decision values, by the sign or the largest value."""
        if self.classes is None:
            return score
        if score.ndim == 1:
            return one_of_two(self.classes, score)
        return self.classes[np.argmax(score, axis=1)]

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision value of each row."""
        raise NotImplementedError

    def values_at_end(self, X: TableLike) -> FloatArray:
        """Return decision values, or class probabilities for a model without decision values."""
        return self.decision_function(X)

    def truncate(self, n_nodes: int) -> Any:
        """Return a model with only the first nodes."""
        raise self.is_no_graph("truncate")

    def is_no_graph(self, function: str = "") -> TypeError:
        """Return the error to raise if a graph function receives this model."""
        asked = f" for {function}" if function else ""
        hint = f": {self.instead[function]}" if function in self.instead else ""
        return TypeError(
            f"model: expected a DecisionGraph{asked}, got a {type(self).__name__}, "
            f"{self.no_graph}{hint}"
        )

    @property
    def n_votes(self) -> int:
        """Number of values per row that `values_at_end` returns."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons per training row, if the model stores it."""
        raise NotImplementedError(
            f"model: a {type(self).__name__} does not store the mean cost of its training rows; "
            "call prediction_cost"
        )

    @property
    def n_stages(self) -> int:
        """Number of stages, including the whole model; see `trajectory`."""
        return 1

    def leave_proven(self, X: TableLike) -> Left:
        """Evaluate rows until their predicted classes cannot change."""
        if self.classes is None:
            raise NotImplementedError(
                'exit: expected "none" for regression: a prediction is final only at the last stage'
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
        """The model without its early exits."""
        return self

    def scaled(self, score: FloatArray, slope: FloatArray) -> FloatArray:
        """Return decision values multiplied by factors."""
        return score * slope

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the decision values (T + 1, n, ...) and comparison counts (T + 1, n) at each
        stage.

        For a model without stages, T is 1: before its first node, and after its last node.
        """
        return at_ends(self.decision_function(X), self.prediction_cost(X, "nodes"))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values at the stages of training."""
        raise NotImplementedError(f"model: a {type(self).__name__} has no stages")

    def staged_probabilities(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the class probabilities at the stages of training."""
        return map(self.probabilities, self.staged_decision_function(X))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of each row; `unit` is "nodes" or "features"."""
        raise NotImplementedError

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask (n, d) of the features read so far, for each stage of the model.

        The last mask is for the whole model. The same array may be reused for all stages.
        """
        raise NotImplementedError(
            f'unit: "feature_cost" is not available for a {type(self).__name__}, which does not '
            "record which features a row uses"
        )

    def inquiry(self, settles: bool) -> Any:
        """Return the queries for unknown features of a row; see `known_values`.

        With `settles`, base learners that can no longer change the class are skipped.
        """
        raise NotImplementedError(
            f"model: feature acquisition is not available for a {type(self).__name__}; call "
            "predict with all features"
        )

    @property
    def explained(self) -> str:
        """Name of the quantity that is the sum of the contributions."""
        return "prediction" if self.classes is None else "decision value"

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the contributions (1 + d,) or (1 + d, J) to the explained value of one row.

        The first element is the constant, followed by the contribution of each feature.
        """
        raise NotImplementedError(
            f"model: feature contributions are not available for a {type(self).__name__}"
        )

    def goes_with(self, X: TableLike) -> Mapping[int, str]:
        """Describe how missing values of a row are treated, as text by feature index."""
        return {}

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return the contributions by which an ensemble divides the vote of this model."""
        return self.contributions(X)

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return normalized importances (d,) of the features; all are 0 for a constant model.

        The standard deviations of the features come from `X`, or from the model if `X` is None.
        """
        raise NotImplementedError(
            f"model: feature importances are not available for a {type(self).__name__}"
        )

    def describe(self) -> str:
        """Return the model as text."""
        raise NotImplementedError

    def members(self) -> HeaderAndArrays:
        """Return the header fields and the arrays to store in a file."""
        header, arrays = self.parts()
        first = {name: arrays[name] for name in self.file_order if name in arrays}
        return {"stop_reason": self.file_stop, **header}, {**first, **arrays}

    @classmethod
    def from_models(cls, header: Header, arrays: Arrays, models: tuple[Model, ...]) -> Any:
        """Build the model from a file and nested models; raise ValueError if they are invalid."""
        return cls.from_parts({**header, "models": models}, arrays)


@runtime_checkable
class HasRoutes(Protocol):
    """A model that supports routes other than "hard"."""

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return the decision value of each row for a route other than "hard"."""


@runtime_checkable
class HasEquations(Protocol):
    """A model that has linear functions."""

    def equations(self) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Return the coefficients, weight share and class of each leaf.

        The coefficients have shape (leaves, K, 1 + d). The classes are None if the leaves do not
        belong to classes.
        """


@runtime_checkable
class HasJoints(Protocol):
    """A model whose prediction can stop after each of its stages; see `trajectory`."""

    def first(self, n_stages: int) -> Model:
        """Return a model with only the first `n_stages` stages."""

    def proven(self) -> Exits | None:
        """Return early exits for rows whose class is final; None for a model without stages."""


@runtime_checkable
class Walks(HasJoints, Protocol):
    """A model with stages for which a kernel supports early exits, after nodes or trees."""

    def longest_costs(self) -> FloatArray:
        """Return the largest number of comparisons (T + 1,) of a row up to each stage."""

    def node_exits(self, exits: Exits) -> NodeExits | None:
        """Convert early exits to the form that the kernel reads; None without a kernel."""

    def proven_nodes(self) -> NodeExits | None:
        """Return the result of `proven` in the form that the kernel reads."""

    def leave(self, X: TableLike, exits: NodeExits) -> Left:
        """Evaluate rows until they reach an early exit."""


def score_by_route(model: Model, X: TableLike, route: Route) -> FloatArray:
    """Return the decision values of a model for a route other than "hard"."""
    if not isinstance(model, HasRoutes):
        raise model.is_no_graph(f"route={route.name!r}")
    return model.score_by_route(X, route)


def with_joints(model: Model) -> HasJoints:
    """Return the model if it has stages, else raise an error."""
    if not isinstance(model, HasJoints):
        raise NotImplementedError(f"model: a {type(model).__name__} has no stages")
    return model


class TwoClassModel(Model):
    """Base class of binary models with a certificate, an upper bound on the training error.

    `classes`, `bias`, `settings` and `record` have the same meaning as for a `DecisionGraph`.
    """

    __slots__ = ()

    classes: Array
    bias: float
    record: TrainingRecord
    is_exact, is_estimated = True, False

    @property
    def mean_prediction_cost(self) -> float:
        """Weighted mean number of comparisons per training row."""
        return float(self.record.cost[-1])

    #: Names in summaries for a term of the model and for the unit of its cost.
    counted_in: ClassVar[tuple[str, str]] = "round", "answers"

    def __repr__(self) -> str:
        kind = self.settings.get("builder", type(self).__name__)
        note = f" ({self.certificate_note})" if self.certificate_note else ""
        return (
            f"<{kind}: {self.n_nodes} {self.counted_in[0]}s, {self.n_features} features, "
            f"certificate {self.record.certificate[-1]:.4g}{note}>"
        )


class Averaged(Model):
    """Base class of models that average class probabilities, or predictions for regression."""

    __slots__ = ()
    #: Names of models for classification and for regression in error messages.
    of_classes: ClassVar[str] = ""
    of_numbers: ClassVar[str] = ""

    def mean(self, X: TableLike) -> FloatArray:
        """Return the class probabilities (n, J), or the predicted numbers (n,)."""
        raise NotImplementedError

    def mean_parts(self, X: TableLike) -> FloatArray:
        """Return the contributions (1 + d, J) or (1 + d,) to the mean prediction of one row."""
        raise NotImplementedError

    @property
    def explained(self) -> str:
        """Name of the quantity that is the sum of the contributions."""
        many = self.classes is not None and len(self.classes) > 2
        return "probability" if many else super().explained

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the contributions to the decision value, or to the class probabilities."""
        parts = self.mean_parts(X)
        return parts if self.classes is None or len(self.classes) > 2 else lead_of_second(parts)

    def predict(self, X: TableLike) -> Array:
        """Return the most probable class of each row, or the predicted number."""
        return self.labels_of(self.mean(X))

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probability of each class."""
        if self.classes is None:
            raise TypeError(f"model: {self.of_numbers} no probabilities")
        return self.mean(X)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the prediction for regression, or the difference of the two probabilities."""
        if self.classes is None:
            return self.predict(X)
        self._check_two()
        return lead_of_second(self.mean(X))

    def values_at_end(self, X: TableLike) -> FloatArray:
        """Return decision values, or class probabilities with more than two classes."""
        return self.values_of_mean(self.mean(X))

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the values before the first node and after the last node; see `values_at_end`."""
        return at_ends(self.values_at_end(X), self.prediction_cost(X, "nodes"))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return class probabilities for the values that `values_at_end` returns."""
        if self.classes is None:
            raise TypeError(f"model: {self.of_numbers} no probabilities")
        return shares_of_leads(score)

    def scaled(self, score: FloatArray, slope: FloatArray) -> FloatArray:
        """Multiply decision values, or deviations from equal probabilities, by factors."""
        return scaled_shares(score, slope)

    def values_of_mean(self, mean: FloatArray) -> FloatArray:
        """Return the mean; in the binary case, return the difference of the two probabilities."""
        return lead_of_second(mean) if self.classes is not None and len(self.classes) == 2 else mean

    def _check_two(self) -> None:
        if self.classes is not None and len(self.classes) > 2:
            raise TypeError(
                f"model: {self.of_classes} of {len(self.classes)} classes has no decision value; "
                "call predict_proba"
            )


def _without_unknown(function: F) -> F:
    """Remove ``**_unknown`` from the signature of a function, which explains unknown options.

    The decorator `builder` would take a tenth of the time of a prediction for one row.
    """
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    del function.__annotations__["_unknown"]
    return function


def check_model(model: object) -> Model:
    """Return the argument if it is a model, else raise TypeError."""
    if not isinstance(model, Model):
        hint = "; pass its attribute model_" if hasattr(model, "model_") else ""
        if isinstance(model, str | os.PathLike):
            hint = "; load it first, with pb.load(path)"
        raise TypeError(
            f"model: expected a model, such as fit_adaboost returns, got {shown(model)}{hint}"
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
    """Return the decision value of each row: the sum of the votes on its path.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        The rows to evaluate; NaN is a missing value, see `DecisionGraph`. The columns of a data
        frame may be in any order if they have the names of the training features. Sparse matrices
        and arrays of SciPy are supported with ``route="hard"``; entries that are not stored are 0.
    route : {"hard", "expected", "sample"}
        How the branch of a row is chosen at each node of a graph. "hard": by the threshold.
        "expected": the expected value under the observation model of training. "sample": the mean
        of random walks under the observation model. If the model has annotators, each walk
        queries them again.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Random state of ``route="sample"``. The result does not depend on the number of threads.
    draws : int
        Number of random walks per row with ``route="sample"``; 1 for other routes.
    sigma : float, or array_like of shape (d,) or (n, d), optional
        Standard deviations of the measurement errors of these rows, for models with a gaussian
        observation model and routes other than "hard". Default: the values used in training.
        Required if training used a value for each cell.

    Returns
    -------
    ndarray of float64, shape (n,) or (n, J)
        A positive value predicts ``model.classes[1]``. Under the exponential loss it is half the
        log odds of this class. Graphs with J > 2 classes and models of `fit_one_vs_rest` and
        `fit_samme` return one value per class; the largest value determines the predicted class.
        For other models see their method `decision_function`.

    Raises
    ------
    ValueError
        If the number or names of the features differ from training; if X has infinite values, or
        has missing values that the model does not support; if `route` is not available for the
        observation model; or if `sigma` is required, or is passed but not used.

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
    # Skip the checks below, which take longer than a prediction for one row.
    if is_plain and sigma is None and isinstance(model, Model):
        if is_sparse(X):
            return by_blocks(decision_function, model, X, walks=True)
        return model.decision_function(X)
    check_model(model)
    _check_hard(X, route)
    check_choice("route", route, ROUTES)
    if route == "hard" and sigma is not None:
        raise ValueError('sigma: expected None with route="hard"; use route="expected"')
    if check_integer("draws", draws, min_value=1) > 1 and route != "sample":
        raise ValueError(f'draws: expected 1 with route={route!r}, got {draws}; use route="sample"')
    if route == "hard":
        return model.decision_function(X)
    return score_by_route(model, X, Route(route, rng, draws, sigma))


def _check_hard(X: TableLike, route: object) -> None:
    """Raise NotImplementedError for a sparse matrix with another route than "hard"."""
    if is_sparse(X) and route != "hard":
        raise NotImplementedError(
            f'route: expected "hard" with a sparse matrix, got {shown(route)}; pass X.toarray()'
        )


@_without_unknown
def predict(
    model: Model, X: TableLike, *, threshold: float | None = None, **_unknown: Never
) -> Array:
    """Return the predicted class of each row, or the predicted number for regression.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        See `decision_function`.
    threshold : float, optional
        For binary classification: predict ``model.classes[1]`` if its probability is larger than
        this number in [0, 1]. Default: predict by the sign of the decision value.

    Returns
    -------
    ndarray, shape (n,)
        With two classes, ``model.classes[1]`` if the decision value is positive, else
        ``model.classes[0]``. With more than two classes, the class with the largest probability
        or decision value; the first class wins ties. For regression, the predicted number.

    Raises
    ------
    ValueError, TypeError
        If X is invalid, or if `threshold` is passed for a model that is not binary.

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
    if _unknown:
        refuse_unknown(_unknown, option_names(predict), "predict")
    check_model(model)
    if is_sparse(X):
        return by_blocks(partial(predict, threshold=threshold), model, X, walks=True)
    if threshold is None:
        return model.predict(X)
    cutoff = check_number("threshold", threshold, min_value=0.0, max_value=1.0)
    classes = model.classes
    if classes is None or len(classes) != 2:
        actual = "regression" if classes is None else f"{len(classes)} classes"
        raise ValueError(f"threshold: expected None for a model that is not binary, got {actual}")
    return one_of_two(classes, model.predict_proba(X)[:, 1] - cutoff)


@_without_unknown
def predict_proba(
    model: Model, X: TableLike, *, route: ProbabilityRoute = "hard", **_unknown: Never
) -> FloatArray:
    """Return the probability of each class for each row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        See `decision_function`.
    route : {"hard", "expected"}
        How the branch of a row is chosen at each node; see `decision_function`.

    Returns
    -------
    ndarray of float64, shape (n, 2) or (n, J)
        One column per class, in the order of ``model.classes``. For a graph with decision value H
        the second column is ``1 / (1 + exp(-2 H / T))``. With J > 2 classes, the probabilities are
        the softmax of the decision values divided by T. T is ``model.temperature``: 1 for a tree,
        and larger for chains, whose votes are overconfident; see `fit_adaboost`. For other models
        see the function that fits them. The predicted class always has the largest
        probability, even if rounding would make two of them equal.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_boosted_tree(X, [0, 1, 1, 1], max_nodes=1, smoothing=0.1)
    >>> pb.predict_proba(model, X).round(2).tolist()
    [[0.78, 0.22], [0.11, 0.89], [0.11, 0.89], [0.11, 0.89]]
    """
    if _unknown:
        refuse_unknown(_unknown, option_names(predict_proba), "predict_proba")
    # Skip the checks below, which take longer than a prediction for one row.
    if isinstance(route, str) and route == "hard" and isinstance(model, Model):
        if is_sparse(X):
            return by_blocks(predict_proba, model, X, walks=True)
        return model.predict_proba(X)
    check_model(model)
    _check_hard(X, route)
    check_choice("route", route, get_args(ProbabilityRoute))
    return model.probabilities(score_by_route(model, X, Route(route)))


def staged_decision_function(model: Model, X: TableLike) -> Iterator[FloatArray]:
    """Yield the decision values of the model at the stages of its training.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        See `decision_function`. Do not change it before the last stage has been read.

    Yields
    ------
    ndarray of float64, shape (n,)
        The values after each node, in the order in which nodes were added. The last array equals
        `decision_function`. A matryoshka with votes collected by sign replaces votes during
        training, and yields values only at the stages in ``model.record.stages``.

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
    if is_sparse(X):
        return by_blocks(staged_decision_function, model, X)
    return model.staged_decision_function(X)


def staged_predict(model: Model, X: TableLike) -> Iterator[Array]:
    """Yield the predictions of the model at the stages of its training.

    Parameters
    ----------
    model : DecisionGraph, or another model that is a sum
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        See `decision_function`. Do not change it before the last stage has been read.

    Yields
    ------
    ndarray, shape (n,)
        The predictions at the stages of `staged_decision_function`. The last array equals
        `predict`.

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
    """Yield the class probabilities of the model at the stages of its training.

    Parameters
    ----------
    model : DecisionGraph, or another model that is a sum
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        See `decision_function`. Do not change it before the last stage has been read.

    Yields
    ------
    ndarray of float64, shape (n, J)
        The probabilities at the stages of `staged_decision_function`. The last array equals
        `predict_proba`, except for rounding errors in binary models of `fit_sbpmt`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> model = pb.fit_gradient_boosting(
    ...     X, X[:, 0] > 29, loss="log_loss", n_estimators=3, max_depth=1
    ... )
    >>> [round(float(share[39, 1]), 2) for share in pb.staged_predict_proba(model, X)]
    [0.28, 0.32, 0.35]
    """
    check_model(model)
    if is_sparse(X):
        return by_blocks(staged_predict_proba, model, X)
    return model.staged_probabilities(X)


def truncate(model: Any, n_nodes: int) -> Any:
    """Return a model with only the first nodes, or for gradient boosting the first trees.

    Parameters
    ----------
    model : DecisionGraph or GradientBoostingModel
        A fitted model.
    n_nodes : int
        Number of nodes to keep, 1 to ``model.n_nodes``; for gradient boosting the number of
        rounds to keep, 1 to ``len(model)``. Prediction ends at branches to removed nodes.

    Returns
    -------
    DecisionGraph or GradientBoostingModel
        The model as it was after this number of nodes. Its record is shortened accordingly, and
        ``record.stop_reason`` notes the truncation.

    Raises
    ------
    ValueError, TypeError
        If `n_nodes` is out of range. A model with votes collected by sign can only be truncated
        to one of ``record.stages``.

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
    """Return the prediction cost of each row.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), data frame or sparse matrix
        See `decision_function`.
    unit : {"nodes", "features", "stumps", "feature_cost"}
        The unit of the cost. "nodes": the number of weak classifiers (comparisons) evaluated.
        "features": the number of distinct features read. "stumps": like "nodes", but each stump
        of a separator counts. "feature_cost": the total cost of the features read; each cost
        group is paid once.
    exit : {"none", "proven"}, optional
        When prediction stops. "none": after the whole model. "proven": at the first stage after
        which the predicted class cannot change; this requires ``unit="nodes"``. Default: "none",
        except that an `EarlyExitModel` uses its early exits.
    feature_costs, cost_groups : optional
        The costs for ``unit="feature_cost"``, see `fit_gradient_boosting`. Default: the costs
        that the model was fitted with.

    Returns
    -------
    ndarray of float64, shape (n,)
        Cost of predicting each row.

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
    if is_sparse(X):
        cost = partial(
            prediction_cost,
            unit=unit,
            exit=exit,
            feature_costs=feature_costs,
            cost_groups=cost_groups,
        )
        return by_blocks(cost, model, X, all_features=unit == "feature_cost")
    if exit is not None and check_choice("exit", exit, EXITS) == "proven":
        if unit != UNITS[0]:
            raise NotImplementedError(
                f'unit: expected "nodes" with exit="proven", got {unit!r}; use exit="none" for '
                "other units"
            )
        return model.leave_proven(X).cost
    model = model if exit is None else model.without_exits
    if unit == "feature_cost":
        return feature_costs_for(model, feature_costs, cost_groups).of_columns(
            deque(model.reads(X), 1)[0]
        )
    if feature_costs is not None or cost_groups is not None:
        raise ValueError(
            "feature_costs, cost_groups: expected None unless "
            f'unit="feature_cost", got unit={unit!r}'
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
        One line per node: its split and, for each branch, the vote and the next node. Base
        learners of an ensemble are indented.

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
    """Return the public attributes of a model class, which `dir` lists."""
    listed = {name for base in cls.__mro__ for name in vars(base).get("_public", ())}
    listed |= {*PUBLIC, *(field.name for field in fields(cls) if field.init)}
    return sorted(name for name in listed if hasattr(cls, name))


def feature_costs_for(
    model: Model, feature_costs: FeatureCostOption, cost_groups: CostGroupOption
) -> FeatureCosts:
    """Return the costs passed by the caller, else the costs stored in the model."""
    if feature_costs is None and cost_groups is None:
        options = known_options(model)
    else:
        options = {**COST_OPTIONS, "feature_costs": feature_costs, "cost_groups": cost_groups}
    if options is None:
        raise ValueError(
            'feature_costs: expected feature costs with unit="feature_cost", because the model was '
            "fitted without costs"
        )
    cost_table = read_feature_costs(options, model.feature_names, model.n_features)
    assert cost_table is not None
    return cost_table


def known_options(model: object) -> Settings | None:
    """Return the settings with feature costs, from the model or a base learner, or None."""
    settings = getattr(model, "settings", {})
    if settings.get("feature_costs") is not None:
        return {**COST_OPTIONS, **settings}
    inner = getattr(model, "model", None)
    for member in (*getattr(model, "models", ()), *([] if inner is None else [inner])):
        member_settings = known_options(member)
        if member_settings is not None:
            return member_settings
    return None
