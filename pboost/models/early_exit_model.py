"""Early-exit models, and the decision values and costs of models at their stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pboost.data.feature_costs import FeatureCosts, items_of
from pboost.data.read.convert import as_rows
from pboost.data.read.table import Table, column_label
from pboost.data.row_fingerprint import Digest
from pboost.models import schema as stored
from pboost.models.base import CostUnit, Model, Walks, check_model, with_joints
from pboost.models.evaluate.exits import Exits, Left, NodeExits, exits_of, joints_left, sizes
from pboost.models.evaluate.match_input import match_columns, read_rows, reads_columns, table_for
from pboost.models.evaluate.partial_evaluation import LeavingEvaluator
from pboost.models.schema import Arrays, Header, ModelFileError, Models, Settings
from pboost.models.text import counted
from pboost.values import Array, FloatArray, IntArray, TableLike

#: Largest number of decision values that are in memory at a time.
BLOCK_VALUES = 1 << 22
#: A function that returns a mask (T, n) of the stages at which rows may stop, or None for all.
May: TypeAlias = Callable[[TableLike], NDArray[np.bool_] | None]
#: Largest number of stages that `describe` shows.
MOST_LINES = 12


class Trajectory(NamedTuple):
    """Decision values and comparisons after 0, 1, ..., T stages; see `trajectory`.

    Attributes
    ----------
    score : ndarray of float64, shape (T + 1, n), or (T + 1, n, J)
        The decision values of each row.
    cost : ndarray of float64, shape (T + 1, n)
        Number of comparisons so far.
    """

    score: FloatArray
    cost: FloatArray


def trajectory(model: Model, X: TableLike) -> Trajectory:
    """Return the decision values and the costs of rows at each stage of a model.

    A stage is a node of a chain, a round of a `GradientBoostingModel`, a tree of a `RandomForest`,
    or a base learner of an ensemble. In other graphs, it is a tree whose exits all lead to the
    next tree. The decision value after a stage is the sum, or the mean, of all stages up to this
    one. Models without stages have T = 1. The last values are bit-identical to
    `decision_function`, except for `SubaggedProbitTrees` and `Bagging`, which sum in another
    order. Multiclass models without decision values return class probabilities.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.

    Returns
    -------
    Trajectory
        Values and costs after 0, 1, ..., T stages. Memory is proportional to T times the number of
        rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> from pboost.models.early_exit_model import trajectory
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = pb.fit_adaboost(X, [0, 1, 0, 1], n_estimators=3)
    >>> score, cost = trajectory(model, X)
    >>> score.shape, cost[:, 0].tolist()
    ((4, 4), [0.0, 1.0, 2.0, 3.0])
    """
    check_model(model)
    return Trajectory(*model.trajectory(read_rows(model, X)))


def feature_cost_trajectory(model: Model, X: TableLike, feature_costs: FeatureCosts) -> Trajectory:
    """Return a `trajectory` whose costs are feature costs instead of comparisons."""
    X = read_rows(model, X)
    score, cost = model.trajectory(X)
    paid = [feature_costs.of_columns(read) for read in model.reads(X)]
    return Trajectory(score, np.array([np.zeros(cost.shape[1]), *paid]))


def where_left(
    states: Trajectory, threshold: FloatArray, counts_feature_costs: bool
) -> NDArray[np.intp]:
    """Return the stage (n,) at which each row stops for thresholds (T,).

    With `counts_feature_costs`, a row stops only if the next stage has a cost.
    """
    score, cost = states
    may = (cost[1:] > cost[:-1]) | (threshold == 0)[:, None] if counts_feature_costs else None
    return joints_left(score, exits_of(threshold, 1 if score.ndim == 2 else score.shape[2]), may)


def leave(
    model: Model,
    X: TableLike,
    exits: Exits,
    compiled: NodeExits | None = None,
    may: May | None = None,
) -> Left:
    """Evaluate rows until they reach an early exit.

    `compiled` is the result of `node_exits`. `may` returns the stages at which rows can stop.
    """
    if compiled is not None:  # `compiled` is None if no kernel supports early exits
        return cast(Walks, model).leave(X, compiled)
    if not reads_columns(model):
        return _left(model, X, exits, may)
    features = match_columns(model, X)
    block = max(1, BLOCK_VALUES // (2 * exits.high.size))
    left_parts = [
        _left(model, features.take(slice(i, i + block)), exits, may)
        for i in range(0, max(1, features.n_rows), block)
    ]
    return Left(*(np.concatenate(parts) for parts in zip(*left_parts, strict=True)))


def _left(model: Model, X: TableLike, exits: Exits, may: May | None) -> Left:
    """Evaluate all stages; return the values at the early exit of each row."""
    states = trajectory(model, X)
    at = joints_left(states.score, exits, None if may is None else may(X))
    rows = np.arange(len(at))
    return Left(states.score[at, rows], at, states.cost[at, rows])


class Inner(Models):
    """A field that contains one model, stored as the only nested model of a file."""

    def kept(self, value: object) -> Any:
        """Return the model unchanged."""
        return value

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the nested model; a file with more or fewer models raises an error."""
        models = header["models"]
        if len(models) != 1:
            raise ModelFileError(f"{name}: expected one model, got {len(models)}")
        return models[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Around(Model):
    """Base class of models that wrap one `model` and share its classes, features and nodes."""

    model: Model = stored.kept_as(Inner())
    _: KW_ONLY
    classes: Array = stored.of_part("model", "classes")
    n_features: int = stored.of_part("model", "n_features")
    feature_names: tuple[str, ...] | None = stored.of_part("model", "feature_names")
    table: Table | None = stored.of_part("model", "table")
    takes_missing: bool = stored.of_part("model", "takes_missing")

    _public: ClassVar = ("models",)

    @property
    def row_table(self) -> Table | None:
        """The table of the wrapped model."""
        return self.model.row_table

    @property
    def models(self) -> tuple[Model]:
        """The wrapped model, as a tuple."""
        return (self.model,)

    def digests(self) -> list[Digest]:
        """Return the digests of the training rows and of the calibration rows."""
        return [*self.model.digests(), *Model.digests(self)]

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the wrapped model."""
        return self.model.n_nodes

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons of the wrapped model per training row."""
        return self.model.mean_prediction_cost

    def without_temperature(self) -> Self:
        """Return the same wrapper of the model with the temperature 1."""
        model = self.model.without_temperature()
        return self if model is self.model else replace(self, model=model)

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the feature importances of the wrapped model."""
        return self.model.importances(X)

    def around(self, lines: list[str]) -> str:
        """Append the indented description of the wrapped model to lines of text."""
        return "\n".join([*lines, *(f"  {line}" for line in self.model.describe().splitlines())])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EarlyExitModel(Around):
    """A model whose prediction stops early for confident rows; see `early_exit`.

    ``model.model`` is the full model. Each row stops at a stage, which determines its decision
    value and prediction. :func:`~pboost.prediction_cost` counts the comparisons up to this stage.

    Attributes
    ----------
    model : DecisionGraph, GradientBoostingModel, RandomForest or another model with stages
        The full model. Its T stages are nodes of a chain, trees of a sum or a forest, or base
        learners of an ensemble.
    threshold : ndarray of float64, shape (T,)
        A row stops after t stages, t = 0, ..., T - 1, if its confidence is at least
        ``threshold[t]``. The confidence is the absolute decision value. With one value per class,
        it is the largest minus the second largest value. If the threshold is infinite, no row
        stops; if it is 0, all rows stop.
    slope : ndarray of float64, shape (T,)
        Factor for the decision values of rows that stop at each stage; see `early_exit`.
    budget : float
        The budget, in comparisons per row, or in feature costs if `item` is set.
    cost : float
        Mean cost of the calibration rows.
    settings : mapping
        The options of `early_exit`.
    curve : ndarray of float64, shape (k, 4), or None
        The models that were compared to select a budget. The columns are the budget, the cost,
        the error and the standard error of the error.
    leaving : ndarray of float64, shape (T + 1,), or None
        Fractions of the calibration rows that stopped after 0, 1, ..., T stages.
    item : ndarray of int32, shape (d, 2), or None
        None if the budget is in comparisons. For a budget in feature costs, each feature has two
        cost items: its own and its cost group (-1 for none). A confident row then stops only if the
        next stage needs an item that is not yet paid for, or if the threshold is 0.
    classes, n_features, feature_names, table
        Same as for the full model.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the calibration rows, see :doc:`/how_to/error_bounds_and_prediction_sets`. The
        digest of the training rows is ``model.seen``.
    """

    threshold: FloatArray = stored.column(
        np.float64, lambda exit_model: (exit_model.model.n_stages,), finite=False, positive=True
    )
    slope: FloatArray = stored.column(np.float64, lambda exit_model: (exit_model.model.n_stages,))
    budget: float = stored.number()
    cost: float = stored.number()
    settings: Settings = stored.settings("builder")
    curve: FloatArray | None = stored.column(np.float64, ndim=2, finite=False, optional=True)
    leaving: FloatArray | None = stored.column(
        np.float64,
        lambda exit_model: (exit_model.model.n_stages + 1,),
        positive=True,
        optional=True,
    )
    item: IntArray | None = stored.column(np.int32, "n_features", 2, optional=True)
    #: The slopes, followed by 1 for the last stage.
    slopes: FloatArray = stored.made(lambda exit_model: np.append(exit_model.slope, 1.0))
    #: The early exits, as arrays and in the form that the kernel reads.
    exits: Exits = stored.made(
        lambda exit_model: exits_of(exit_model.threshold, exit_model.model.n_votes)
    )
    compiled: NodeExits | None = stored.made(
        lambda exit_model: (
            exit_model.model.node_exits(exit_model.exits)
            if exit_model.item is None and isinstance(exit_model.model, Walks)
            else None
        )
    )

    no_graph = "which has early exits; pass the full model, model.model"
    no_trees = "which has early exits; pass the full model, model.model"
    file_kind, file_stop = "early-exit", "thresholds are set"

    def check_whole(self) -> None:
        """Check the wrapped model and the arrays."""
        if self.classes is None or self.model.n_stages < 2:
            raise ValueError("model: expected a classifier with at least two stages")
        if not (self.slope > 0).all():
            raise ValueError("slope: expected numbers > 0")
        if self.curve is not None and self.curve.shape[1] != 4:
            raise ValueError(f"curve: expected shape (k, 4), got {self.curve.shape}")
        if self.item is not None and not (
            self.item.min() >= -1 and self.item.max() < self.item.size
        ):
            raise ValueError(f"item: expected values from -1 to {self.item.size - 1}")

    def __repr__(self) -> str:
        return f"<early_exit: {self._per('row')}, of {self.model!r}>"

    def _per(self, row: str) -> str:
        """Return the mean cost as text."""
        if self.item is None:
            return f"{self.cost:.4g} comparisons per {row}"
        return f"a feature cost of {self.cost:.4g} per {row}"

    @property
    def mean_prediction_cost(self) -> float:
        """Mean prediction cost of the calibration rows."""
        return self.cost

    @property
    def n_votes(self) -> int:
        """Number of decision values per row."""
        return self.model.n_votes

    def left(self, X: TableLike) -> Left:
        """Return the decision value, the stage and the number of comparisons at each row's exit."""
        if self.item is None:
            return leave(self.model, X, self.exits, self.compiled)
        return leave(self.model, read_rows(self, X), self.exits, None, self.may_leave)

    def may_leave(self, X: TableLike) -> NDArray[np.bool_] | None:
        """Return a mask (T, n) of the stages at which confident rows may stop; None allows all.

        With feature costs, a row may stop if the next stage has a cost, or if the threshold is 0.
        """
        if self.item is None:
            return None
        may, before = [], None
        for read in self.model.reads(X):
            paid = items_of(self.item, read, self.item.size)
            may.append((paid if before is None else paid > before).any(axis=1))
            before = paid
        return np.array(may) | (self.threshold == 0)[:, None]

    def unpaid(self, X: TableLike, joint: int, columns: Sequence[int]) -> list[int]:
        """Return the features in `columns` that are not paid for at a stage of a single row."""
        assert self.item is not None
        read = np.zeros((1, self.n_features), dtype=np.bool_)
        read[0, self._read_by(X, joint)] = True
        paid = items_of(self.item, read, self.item.size)[0]
        return [c for c in columns if any(k >= 0 and not paid[k] for k in self.item[c].tolist())]

    def _read_by(self, X: TableLike, joint: int) -> Sequence[int]:
        """Return the features that are read up to a stage of a single row."""
        for t, read in enumerate(self.model.reads(X) if joint else (), start=1):
            if t == joint:
                return np.flatnonzero(read[0]).tolist()
        return []

    def predict(self, X: TableLike) -> Array:
        """Return the class predicted at the stage at which each row stops."""
        return self.labels_of(self.left(X)[0])

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision values at which rows stop, multiplied by the slopes."""
        score, joint, _ = self.left(X)
        return self.scaled_at(score, joint)

    def scaled_at(self, score: FloatArray, joint: NDArray[np.integer]) -> FloatArray:
        """Return decision values multiplied by the slopes of the given stages."""
        slope = self.slopes[joint]
        return self.model.scaled(score, slope if score.ndim == 1 else slope[:, None])

    def labels_of(self, score: FloatArray) -> Array:
        """Return the predicted classes for decision values."""
        return self.model.labels_of(score)

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return class probabilities for decision values."""
        return self.model.probabilities(score)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each stage, constant for rows that have stopped."""
        X = read_rows(self, X)
        score = trajectory(self.model, X).score
        left = joints_left(score, self.exits, self.may_leave(X))
        rows = np.arange(len(left))
        for t in range(1, len(score)):
            at = np.minimum(left, t)
            yield self.scaled_at(score[at, rows], at)

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return decision values and costs at each stage, constant for rows that have stopped."""
        score, cost = self.model.trajectory(X)
        left = joints_left(score, self.exits, self.may_leave(X))
        at = np.minimum(left, np.arange(len(score))[:, None])
        rows = np.arange(len(left))
        return np.stack([self.scaled_at(score[t, rows], t) for t in at]), cost[at, rows]

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of each row up to its early exit."""
        X = read_rows(self, X)
        _, joint, cost = self.left(X)
        if unit == "nodes":
            return cost
        rows = as_rows(X)
        cost = np.zeros(rows.n_rows)
        for t in np.unique(joint[joint > 0]).tolist():
            at_joint = np.flatnonzero(joint == t)
            cost[at_joint] = (
                with_joints(self.model).first(t).prediction_cost(rows.take(at_joint), unit)
            )
        return cost

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features that rows have read after each stage."""
        X = read_rows(self, X)
        joint = self.left(X).joint
        read = np.zeros((len(joint), self.n_features), dtype=np.bool_)
        for t, by_then in enumerate(self.model.reads(X), start=1):
            read[joint >= t] = by_then[joint >= t]
            yield read

    @property
    def without_exits(self) -> Model:
        """The full model."""
        return self.model

    def leave_proven(self, X: TableLike) -> Left:
        """Evaluate rows of the full model until their predicted classes cannot change."""
        return self.model.leave_proven(X)

    def left_after(self, X: TableLike) -> tuple[Model, str]:
        """Return a model of the stages that the row passes, and the reason why the row stops."""
        X = table_for(self, X)
        score, (joint,), (cost,) = self.left(X)
        end = self.model.n_stages
        if joint == end:
            return self.model, f"used all stages, with {cost:.4g} comparisons"
        size = float(sizes(score)[0])
        called = "absolute value" if score.ndim == 1 else "difference of the two largest values"
        why = f"{called} {size:.4g} >= {self.threshold[joint]:.4g}"
        if self.threshold[joint] == 0:
            why = "all rows stop here"
        elif self.item is not None:
            ahead = self.unpaid(X, joint, self._read_by(X, joint + 1))
            names = ", ".join(str(column_label(self.feature_names, c)) for c in ahead)
            why += f", and the next stage would need {names}"
        slope = f"; the decision value is multiplied by {self.slope[joint]:.4g}"
        reason = f"stopped after {joint} of {end} stages and {cost:.4g} comparisons: {why}{slope}"
        return with_joints(self.model).first(int(joint)), reason

    def inquiry(self, settles: bool) -> LeavingEvaluator:
        """Return an evaluator for feature acquisition that stops at early exits."""
        return LeavingEvaluator(self, self.model.inquiry(settles))

    def describe(self) -> str:
        """Describe the thresholds, the curve (if stored) and the full model as text."""
        lines = [
            f"early_exit: {self._per('calibration row')}, budget "
            f"{self.budget:.4g}, {self.model.n_stages} stages"
        ]
        max_comparisons = self.settings.get("max_comparisons")
        if max_comparisons is not None:
            lines.append(f"at most {max_comparisons:.4g} comparisons per row")
        lines += self._joint_lines()
        if self.curve is not None:
            unit = "comparisons" if self.item is None else "feature cost"
            lines.append(f"budget, {unit}, error +- standard error:")
            lines += [f"  {b:.4g}  {c:.4g}  {e:.4g} +- {s:.2g}" for b, c, e, s in self.curve]
        return self.around(lines)

    def _joint_lines(self) -> list[str]:
        """Describe the thresholds of up to `MOST_LINES` stages."""
        open_ = np.flatnonzero(np.isfinite(self.threshold))
        every = open_[self.threshold[open_] == 0]
        open_ = open_[open_ <= every.min(initial=self.model.n_stages)]
        if not len(open_):
            return ["no row stops early"]
        shown = np.unique(np.linspace(0, len(open_) - 1, MOST_LINES).round().astype(int))
        lines = []
        for t in open_[shown].tolist():
            share = ""
            if self.leaving is not None:
                share = f"; {100 * self.leaving[: t + 1].sum():.3g} % of the rows have stopped"
            lines.append(f"after {counted(t, 'stage')}: threshold {self.threshold[t]:.4g}{share}")
        return lines
