"""The model of an early exit, and what models say, and have compared, at their joints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from pboost.data.prices import FeatureCosts, items_of
from pboost.data.read.convert import as_rows
from pboost.data.read.table import Table, column_label
from pboost.data.row_digest import Digest
from pboost.models import stored
from pboost.models.base import CostUnit, Model, Walks, check_model, with_joints
from pboost.models.evaluate.exits import Exits, Left, NodeExits, exits_of, joints_left, sizes
from pboost.models.evaluate.known_values import LeavingEvaluator
from pboost.models.evaluate.new_rows import match_columns, read_rows, reads_columns, table_for
from pboost.models.stored import Arrays, Header, ModelFileError, Models, Settings
from pboost.models.text import counted
from pboost.values import Array, FloatArray, IntArray, TableLike

#: Values of trajectories that are held at a time.
BLOCK_VALUES = 1 << 22
#: Gives of rows at which joints they may leave, (T, n); None: at all.
May: TypeAlias = Callable[[TableLike], NDArray[np.bool_] | None]
#: How many joints a text shows.
MOST_LINES = 12


class Trajectory(NamedTuple):
    """Decision values and comparisons after 0, 1, ..., T joints, see `trajectory`.

    Attributes
    ----------
    score : ndarray of float64, shape (T + 1, n), or (T + 1, n, J)
        The decision value of each row; of J labels those of all.
    cost : ndarray of float64, shape (T + 1, n)
        Comparisons made by then.
    """

    score: FloatArray
    cost: FloatArray


def trajectory(model: Model, X: TableLike) -> Trajectory:
    """Return the decision values of rows, and what they have cost, at each joint of a model.

    A joint is where all paths of a row meet: every node of a chain, the root of every tree whose
    exits all join the next, every round of a `GradientBoostingModel`, every tree of a
    `RandomForest`, every member of models that vote or are averaged. There the decision value so
    far is that of a model by itself: of sums the sum, of means the mean. Models without joints have
    T = 1. The last values are those of `decision_function` to the last bit, but of averages,
    `SubaggedProbitTrees` and `Bagging`, whose sums are added in another order; where more than two
    labels have shares and no decision values they are the shares.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model.
    X : array_like of shape (n, d), or data frame
        See `decision_function`.

    Returns
    -------
    Trajectory
        Of T + 1 states; T rows of memory for each row of X.

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
    """Return `trajectory` with what rows have paid by then for its costs."""
    X = read_rows(model, X)
    score, cost = model.trajectory(X)
    paid = [feature_costs.of_columns(read) for read in model.reads(X)]
    return Trajectory(score, np.array([np.zeros(cost.shape[1]), *paid]))


def where_left(
    states: Trajectory, threshold: FloatArray, counts_feature_costs: bool
) -> NDArray[np.intp]:
    """Return the joint (n,) at which rows leave, given thresholds (T,); see `EarlyExitModel`.

    With `counts_feature_costs` costs are what rows have paid, and they leave where they would pay
    more.
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
    """Return what rows have when they leave a model; `compiled` is what `node_exits` returns.

    `may` tells at which joints rows may leave, if not at all.
    """
    if compiled is not None:  # only models that walk have these
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
    """Return what rows have when they leave, of all of whose states one is taken."""
    states = trajectory(model, X)
    at = joints_left(states.score, exits, None if may is None else may(X))
    rows = np.arange(len(at))
    return Left(states.score[at, rows], at, states.cost[at, rows])


class Inner(Models):
    """One model within a model."""

    def kept(self, value: object) -> Any:
        """Return the model as it is."""
        return value

    def read(self, name: str, header: Header, arrays: Arrays) -> Any:
        """Return the only model of a file."""
        models = header["models"]
        if len(models) != 1:
            raise ModelFileError(f"{name}: expected one model, got {len(models)}")
        return models[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Around(Model):
    """Base of models around one other, `model`, whose labels, columns and nodes they have."""

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
        """The table of the model."""
        return self.model.row_table

    @property
    def models(self) -> tuple[Model]:
        """The model, as the only one that is stored with it."""
        return (self.model,)

    def digests(self) -> list[Digest]:
        """Return the digests of the rows of the model, and of those of the calibration."""
        return [*self.model.digests(), *Model.digests(self)]

    @property
    def n_nodes(self) -> int:
        """Number of nodes of the model."""
        return self.model.n_nodes

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons of the model's training rows."""
        return self.model.mean_prediction_cost

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return those of the model."""
        return self.model.importances(X)

    def around(self, lines: list[str]) -> str:
        """Return lines of text, and below them the model in words."""
        return "\n".join([*lines, *(f"  {line}" for line in self.model.describe().splitlines())])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EarlyExitModel(Around):
    """A model that rows leave as soon as their values are sure enough, made by `early_exit`.

    ``model.model`` is the whole model. Its functions are those of the values with which rows leave;
    :func:`~pboost.prediction_cost` counts what they have compared by then.

    Attributes
    ----------
    model : DecisionGraph, GradientBoostingModel, RandomForest or another model with joints
        The whole model. A joint is where all paths meet: every node of a chain, every tree of a sum
        or a forest, every member of models that vote; there are T, with its end.
    threshold : ndarray of float64, shape (T,)
        A row leaves after t joints, t = 0, ..., T - 1, where the size of its decision value, of
        several the lead of the largest over the second, is at least ``threshold[t]``; infinity:
        none leaves; 0: all do.
    slope : ndarray of float64, shape (T,)
        By what decision values are multiplied with which rows leave there, see `early_exit`.
    budget : float
        The budget, in comparisons per row; with `item` in costs of features.
    cost : float
        What the rows took that it was calibrated on, on average.
    settings : mapping
        The options it was made with.
    curve : ndarray of float64, shape (k, 4), or None
        What was found when the model was chosen: budget, comparisons, error and its standard error.
    leaving : ndarray of float64, shape (T + 1,), or None
        Share of the calibration rows that left after 0, 1, ..., T joints.
    item : ndarray of int32, shape (d, 2), or None
        Of exits within a cost the items that each column needs, each paid once by a row: its own,
        and that of its group; -1: none. A row that is sure enough after t joints then leaves only
        where it would pay on its way to joint t + 1: if the columns read on that way need an item
        that those read before do not. Where the threshold is 0 all leave all the same. None: rows
        leave as soon as they are sure.
    labels, n_features, feature_names, table
        Those of the model.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the calibration rows, :doc:`/how_to/error_bounds_and_prediction_sets`; ``model.seen`` that of the
        model's.
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
    #: The slopes, with that of the end.
    slopes: FloatArray = stored.made(lambda exit_model: np.append(exit_model.slope, 1.0))
    #: When rows leave; and as the compiled walk of the model takes it.
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

    no_graph = "whose rows leave early; model.model is the whole model"
    no_trees = "whose rows leave early: model.model is the whole model, which may be one"
    file_kind, file_stop = "early-exit", "thresholds are set"

    def check_whole(self) -> None:
        """Check that rows can leave the model, and the numbers."""
        if self.classes is None or self.model.n_stages < 2:
            raise ValueError("model: expected one of labels with joints at which rows can leave")
        if not (self.slope > 0).all():
            raise ValueError("slope: expected numbers > 0")
        if self.curve is not None and self.curve.shape[1] != 4:
            raise ValueError(f"curve: expected shape (k, 4), got {self.curve.shape}")
        if self.item is not None and not (
            self.item.min() >= -1 and self.item.max() < self.item.size
        ):
            raise ValueError(f"item: expected values in [-1, {self.item.size})")

    def __repr__(self) -> str:
        return f"<early_exit: {self._per('row')}, of {self.model!r}>"

    def _per(self, row: str) -> str:
        """Return in words what a row takes."""
        if self.item is None:
            return f"{self.cost:.4g} comparisons per {row}"
        return f"a feature cost of {self.cost:.4g} per {row}"

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons of the rows on which exits were set."""
        return self.cost

    @property
    def n_votes(self) -> int:
        """Number of decision values of a row."""
        return self.model.n_votes

    def left(self, X: TableLike) -> Left:
        """Return the values with which rows leave, after how many joints, and the comparisons."""
        if self.item is None:
            return leave(self.model, X, self.exits, self.compiled)
        return leave(self.model, read_rows(self, X), self.exits, None, self.may_leave)

    def may_leave(self, X: TableLike) -> NDArray[np.bool_] | None:
        """Return at which joints rows may leave that are sure, (T, n); None: at all.

        Where they would pay to go on, and where all leave.
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
        """Return which of some columns the one row X still pays for after so many joints."""
        assert self.item is not None
        read = np.zeros((1, self.n_features), dtype=np.bool_)
        read[0, self._read_by(X, joint)] = True
        paid = items_of(self.item, read, self.item.size)[0]
        return [c for c in columns if any(k >= 0 and not paid[k] for k in self.item[c].tolist())]

    def _read_by(self, X: TableLike, joint: int) -> Sequence[int]:
        """Return the columns that the one row X has read after so many joints."""
        for t, read in enumerate(self.model.reads(X) if joint else (), start=1):
            if t == joint:
                return np.flatnonzero(read[0]).tolist()
        return []

    def predict(self, X: TableLike) -> Array:
        """Return the label of the value with which each row leaves."""
        return self.labels_of(self.left(X)[0])

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the values with which rows leave, times the slopes there."""
        score, joint, _ = self.left(X)
        return self.scaled_at(score, joint)

    def scaled_at(self, score: FloatArray, joint: NDArray[np.integer]) -> FloatArray:
        """Return decision values times the slopes of the joints at which rows leave."""
        slope = self.slopes[joint]
        return self.model.scaled(score, slope if score.ndim == 1 else slope[:, None])

    def labels_of(self, score: FloatArray) -> Array:
        """Return the labels that go with decision values."""
        return self.model.labels_of(score)

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities that go with decision values."""
        return self.model.probabilities(score)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each joint; rows that have left keep theirs."""
        X = read_rows(self, X)
        score = trajectory(self.model, X).score
        left = joints_left(score, self.exits, self.may_leave(X))
        rows = np.arange(len(left))
        for t in range(1, len(score)):
            at = np.minimum(left, t)
            yield self.scaled_at(score[at, rows], at)

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return decision values and comparisons at the joints; rows that have left keep theirs."""
        score, cost = self.model.trajectory(X)
        left = joints_left(score, self.exits, self.may_leave(X))
        at = np.minimum(left, np.arange(len(score))[:, None])
        rows = np.arange(len(left))
        return np.stack([self.scaled_at(score[t, rows], t) for t in at]), cost[at, rows]

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return what each row costs until it leaves."""
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
        """Yield which columns are read of each row by joint 1, 2, ...; no more once it has left."""
        X = read_rows(self, X)
        joint = self.left(X).joint
        read = np.zeros((len(joint), self.n_features), dtype=np.bool_)
        for t, by_then in enumerate(self.model.reads(X), start=1):
            read[joint >= t] = by_then[joint >= t]
            yield read

    @property
    def without_exits(self) -> Model:
        """The whole model."""
        return self.model

    def leave_proven(self, X: TableLike) -> Left:
        """Return what rows have in the whole model when their labels cannot change any more."""
        return self.model.leave_proven(X)

    def left_after(self, X: TableLike) -> tuple[Model, str]:
        """Return the model of the joints that one row passes, and in words why it leaves there."""
        X = table_for(self, X)
        score, (joint,), (cost,) = self.left(X)
        end = self.model.n_stages
        if joint == end:
            return self.model, f"went to the end, after {cost:.4g} comparisons"
        size = float(sizes(score)[0])
        called = "size of the value" if score.ndim == 1 else "lead over the second label"
        why = f"{called} {size:.4g} >= {self.threshold[joint]:.4g}"
        if self.threshold[joint] == 0:
            why = "all rows leave here"
        elif self.item is not None:
            ahead = self.unpaid(X, joint, self._read_by(X, joint + 1))
            names = ", ".join(str(column_label(self.feature_names, c)) for c in ahead)
            why += f", and to go on it would pay for {names}"
        slope = f"; the decision value is {self.slope[joint]:.4g} times this one"
        reason = f"left after {joint} of {end} joints and {cost:.4g} comparisons: {why}{slope}"
        return with_joints(self.model).first(int(joint)), reason

    def inquiry(self, settles: bool) -> LeavingEvaluator:
        """Return what the model asks of a row until it leaves."""
        return LeavingEvaluator(self, self.model.inquiry(settles))

    def describe(self) -> str:
        """Return what is set at the joints, the curve if there is one, and the whole model."""
        lines = [
            f"early_exit: {self._per('calibration row')}, budget "
            f"{self.budget:.4g}, {self.model.n_stages} joints"
        ]
        max_comparisons = self.settings.get("max_comparisons")
        if max_comparisons is not None:
            lines.append(f"no row takes more than {max_comparisons:.4g}")
        lines += self._joint_lines()
        if self.curve is not None:
            unit = "comparisons" if self.item is None else "feature cost"
            lines.append(f"budget, {unit}, error and its standard error:")
            lines += [f"  {b:.4g}  {c:.4g}  {e:.4g} +- {s:.2g}" for b, c, e, s in self.curve]
        return self.around(lines)

    def _joint_lines(self) -> list[str]:
        """Return where rows leave: some of the joints, if there are many."""
        open_ = np.flatnonzero(np.isfinite(self.threshold))
        every = open_[self.threshold[open_] == 0]
        open_ = open_[open_ <= every.min(initial=self.model.n_stages)]
        if not len(open_):
            return ["no row leaves before the end"]
        shown = np.unique(np.linspace(0, len(open_) - 1, MOST_LINES).round().astype(int))
        lines = []
        for t in open_[shown].tolist():
            share = ""
            if self.leaving is not None:
                share = f", {100 * self.leaving[: t + 1].sum():.3g} % have left"
            lines.append(f"after {counted(t, 'joint')}: from {self.threshold[t]:.4g} on{share}")
        return lines
