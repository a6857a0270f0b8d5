"""Gradient boosting models: a constant plus a sum of regression trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.table import Table
from pboost.losses import LOSSES, Loss, is_of_package
from pboost.losses.gradient_functions import GradientLoss, gradient_loss
from pboost.losses.metrics import METRICS
from pboost.models import schema as stored
from pboost.models.base import CostUnit, Model
from pboost.models.evaluate.exits import Exits, Left, NodeExits, proven_exits, rest_of
from pboost.models.evaluate.kernel_walk import leave_trees, of_trees
from pboost.models.evaluate.partial_evaluation import BlockEvaluator, trees_inquiry
from pboost.models.graph_arrays import Bias
from pboost.models.random_forest import RandomForest
from pboost.models.schema import Arrays, Header, HeaderAndArrays, Kind, Settings, check_sum
from pboost.models.shares import (
    as_shares,
    costs_by_then,
    falls,
    in_two_columns,
    mean_of_shares,
    settled,
)
from pboost.models.single_tree import SIDES, TREE_COLUMNS
from pboost.models.text import counted, headline
from pboost.values import Array, FloatArray, IntArray, TableLike, check_integer

#: Start of the stop reason of a truncated model.
CUT = "truncated to the first"
#: Smaller probabilities are computed directly, because 1 - p would lose precision.
LEAST_DIFFERENCE = 1 / 64


class NamedLoss(Kind):
    """A loss, stored by name together with its parameters."""

    def store(self, name: str, value: Any) -> HeaderAndArrays:
        """Return the name and parameters of the loss; raise TypeError if it is user-defined."""
        if isinstance(value, GradientLoss):
            link, start = value.called_link, value.start
            return {name: {"name": value.name, "link": link, "constant": start}}, {}
        if not is_of_package(value):
            raise TypeError(
                f"model: the loss {str(value)!r} is a function, which cannot be saved; pickle the "
                "model instead, if the function can be pickled"
            )
        numbers = value.parameters
        return {name: {"name": value.name, **numbers} if numbers else value.name}, {}

    def read(self, name: str, header: Header, arrays: Arrays) -> Loss:
        """Return the loss with the stored name."""
        stored_loss = header.get(name)
        numbers = dict(stored_loss) if isinstance(stored_loss, dict) else {"name": stored_loss}
        known = numbers.pop("name", None)
        if known == GradientLoss.name and numbers.keys() == {"link", "constant"}:
            link: Any = numbers["link"]
            start: Any = numbers["constant"]
            return gradient_loss(None, link, start)
        if not isinstance(known, str) or known not in LOSSES:
            raise ValueError(f"loss: expected one of {list(LOSSES)}, got {known!r}")
        if numbers.keys() != LOSSES[known].parameters.keys():
            names = list(LOSSES[known].parameters)
            raise ValueError(f"loss: expected the parameters {names}, got {list(numbers)}")
        return type(LOSSES[known])(**numbers)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GradientBoostingModel(Model):
    """A constant plus a sum of regression trees; see `fit_gradient_boosting`.

    With the softmax loss and J classes, there is one sum per class, and a round adds one tree per
    class or one tree with J outputs. With other losses, a round adds one tree. ``len(model)`` is
    the number of rounds.

    Attributes
    ----------
    trees : RandomForest
        The regression trees; tree k of round r is ``trees[r * model.n_trees + k]``. Its ``value``
        contains the leaf values, and 0 for inner nodes; the shape is (n_nodes, J) for trees with
        J outputs. Its ``weight`` is in units of the largest sample weight of the round.
    bias : float, or ndarray of float64, shape (J,)
        Initial decision value; with softmax, one per class.
    loss : Loss
        The loss that was minimized.
    classes : ndarray, shape (2,) or (J,), or None
        The sorted class labels; None for regression. Losses other than softmax use -1 for the
        first of two classes and +1 for the second.
    settings : mapping
        The options of the fit.
    stop_reason : str
        Why fitting ended, as a sentence.
    training_loss : ndarray of float64, shape (n_rounds + 1,)
        Weighted mean loss on the training rows before the first round and after each round.
    validation_loss : ndarray of float64, shape (k,), or None
        Weighted mean loss on the validation set before the first round and after each round,
        including rounds that early stopping removed.
    metric_values : ndarray of float64, shape (n_series, k), or None
        The rows of `metrics`.
    n_features, feature_names
        Number of training features, and their names or None.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    trees: RandomForest = stored.part(
        RandomForest, more=(), some=SIDES, fields={"settings": {"builder": "fit_gradient_boosting"}}
    )
    bias: float | FloatArray = stored.kept_as(
        Bias(
            lambda value: isinstance(value, float),
            keep=stored.numbers_kept,
            refusal="bias: expected a number, got {!r}",
        )
    )
    loss: Loss = stored.kept_as(NamedLoss())
    classes: Array | None = stored.classes(
        lambda model: None if model.loss.is_multiclass else 2, optional=True
    )
    settings: Settings = stored.settings()
    stop_reason: str = stored.text()
    training_loss: FloatArray = stored.column(
        np.float64, lambda model: (len(model) + 1,), finite=False
    )
    validation_loss: FloatArray | None = stored.column(np.float64, finite=False, optional=True)
    metric_values: FloatArray | None = stored.column(np.float64, finite=False, optional=True)
    n_features: int = stored.of_part("trees", "n_features")
    feature_names: tuple[str, ...] | None = stored.of_part("trees", "feature_names")
    table: Table | None = stored.of_part("trees", "table")
    takes_missing: bool = stored.of_part("trees", "takes_missing")
    memo: dict[str, Any] = stored.memo()

    _public: ClassVar = ("n_trees",)
    no_graph = "whose trees have no votes"
    instead: ClassVar = {
        "reach": "apply(model, X) returns the leaf of each row in each tree",
        "plot.graph": "plot.tree draws one tree",
    }
    file_kind = "gradient-boosting"
    file_order = ("root", *TREE_COLUMNS, "training_loss", "validation_loss", "metric_values")

    def check_whole(self) -> None:
        """Check that the parts are compatible."""
        if self.trees.classes is not None:
            raise ValueError("trees: expected regression trees")
        if self.classes is None and not self.loss.is_regression:
            wanted = "class labels" if self.loss.is_multiclass else "two classes"
            raise ValueError(f'classes: expected {wanted} with loss="{self.loss}", got None')
        if self.trees.value.ndim > 1 and (
            not self.loss.is_multiclass or self.trees.value.shape[1] != self.n_votes
        ):
            raise ValueError(
                "trees: expected values of shape (n_nodes,), or (n_nodes, n_classes) with a "
                f"multiclass loss, got {self.trees.value.shape}"
            )
        if len(self.trees) % self.n_trees:
            raise ValueError(
                f"trees: expected one tree for each of {self.n_votes} classes in each round, got "
                f"{len(self.trees)} trees"
            )
        largest = self.trees.largest_values().reshape(-1, self.n_votes)
        check_sum("value, bias", largest, self.bias)
        tried = self.validation_loss
        if tried is not None and (tried.ndim != 1 or len(tried) <= len(self)):
            raise ValueError(
                "validation_loss: expected one number before the first round and one per round"
            )
        if self.metric_values is not None:
            self._check_metrics(self.metric_values.shape)
        for name in ("training_loss", "validation_loss"):
            losses = getattr(self, name)
            if losses is not None and np.isnan(losses).any():
                raise ValueError(f"{name}: expected numbers, got NaN")

    def _check_metrics(self, shape: tuple[int, ...]) -> None:
        """Check that there is one row for each validation set and metric."""
        names, sets = self._series, self.settings.get("validation_names", ["validation"])
        is_text = all(isinstance(name, str) for name in (*names, *sets))
        tried = () if self.validation_loss is None else self.validation_loss.shape
        expected = (len(sets) * len(names), *tried)
        if not is_text or shape != expected:
            raise ValueError(f"metric_values: expected shape {expected}, got {shape}")

    def __repr__(self) -> str:
        return (
            f"<fit_gradient_boosting: {self._size}, {self.n_features} features, loss {self.loss}>"
        )

    def __len__(self) -> int:
        return len(self.trees) // self.n_trees

    @property
    def metrics(self) -> dict[str, dict[str, FloatArray]]:
        """The loss and the metrics of each validation set before the first and after each round.

        A mapping from the name of a set, by default "validation", to a mapping from "loss" and the
        names of the metrics to arrays of the shape of `validation_loss`.
        """
        if self.metric_values is None:
            if self.validation_loss is None:
                return {}
            return {"validation": {"loss": self.validation_loss}}
        names = self._series
        return {
            name: dict(zip(names, values, strict=True))
            for name, values in zip(
                self.settings.get("validation_names", ["validation"]),
                self.metric_values.reshape(-1, len(names), self.metric_values.shape[-1]),
                strict=True,
            )
        }

    @property
    def validation_score(self) -> FloatArray:
        """The first metric of the first validation set, or minus the loss; larger is better."""
        name = self._series[:2][-1]
        values = next(iter(self.metrics.values()))[name]
        if name in METRICS:
            is_greater = METRICS[name].greater_is_better
        else:
            is_greater = self.settings.get("greater_is_better", False)
        return values if is_greater else -values

    @property
    def _series(self) -> list[str]:
        return ["loss", *self.settings.get("metric", ())]

    @property
    def n_votes(self) -> int:
        """Number of decision values per row."""
        return len(self.classes) if self.loss.is_multiclass and self.classes is not None else 1

    @property
    def n_trees(self) -> int:
        """Number of trees per round."""
        return 1 if self.trees.value.ndim > 1 else self.n_votes

    @property
    def _size(self) -> str:
        if self.n_trees > 1:
            return f"{counted(len(self), 'round')} of {self.n_trees} trees"
        if self.n_votes > 1:
            return f"{counted(len(self), 'tree')} for {self.n_votes} classes"
        return counted(len(self), "tree")

    @property
    def n_nodes(self) -> int:
        """Number of inner nodes in all trees."""
        return len(self.trees.feature) // 2

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision value of each row, (n,), or (n, J) with the softmax loss."""
        return self.bias + self._of_labels(self.trees.total(X, self.n_trees))

    @property
    def takes_sparse_rows(self) -> bool:  # type: ignore[override]
        """Whether decision values can be computed from `SparseRows`."""
        return self.trees.takes_sparse_rows

    @stored.once
    def of_features_read(self) -> tuple[IntArray, Any] | None:
        """Return the features that the trees read, and the model for a table of these features."""
        narrow = self.trees.of_features_read()
        return None if narrow is None else (narrow[0], replace(self, trees=narrow[1]))

    def labels_of(self, score: FloatArray) -> Array:
        """Return the predicted classes, or numbers, for decision values."""
        return self.loss.prediction(score) if self.classes is None else Model.labels_of(self, score)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values after each round."""
        node = self.trees.nodes_of(X)
        node += self.trees.root[:-1]
        rounds = np.hsplit(node, len(self))
        terms = (self._of_labels(self.trees.value[nodes]) for nodes in rounds)
        return (self.bias + total for total in accumulate(terms))

    @property
    def n_stages(self) -> int:
        """Number of rounds."""
        return len(self)

    def longest_costs(self) -> FloatArray:
        """Return the maximum number of comparisons (T + 1,) in the first 0, 1, ... rounds."""
        depths = self.trees.depths.reshape(len(self), -1).sum(axis=1)
        return np.cumsum([0, *depths], dtype=np.float64)

    def first(self, n_stages: int) -> GradientBoostingModel:
        """Return a model with only the first rounds."""
        return self.truncate(n_stages)

    def node_exits(self, exits: Exits) -> NodeExits:
        """Convert early exits after rounds to the form that the kernel reads."""
        return of_trees(exits)

    def proven(self) -> Exits:
        """Return early exits for rows whose class can no longer change."""
        low, high = (
            of.reshape(len(self), self.n_votes) for of in self.trees.ranges_of(self.trees.value)
        )
        return proven_exits(rest_of(low, high, self.bias))

    @stored.once
    def proven_nodes(self) -> NodeExits:
        """Return the result of `proven` in the form that the kernel reads."""
        return of_trees(self.proven())

    def leave(self, X: TableLike, exits: NodeExits) -> Left:
        """Evaluate rows until they reach an early exit."""
        bias = np.atleast_1d(np.asarray(self.bias, dtype=np.float64))
        return leave_trees(self, self.trees, X, bias, False, exits)

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the decision values and comparisons after 0, 1, ... rounds."""
        node = (self.trees.nodes_of(X) + self.trees.root[:-1]).T.reshape(
            len(self), self.n_trees, -1
        )
        value, cost = self.trees.value[node], self.trees.node_depth()[node].sum(axis=1)
        terms = value[:, 0] if self.n_trees == 1 else np.moveaxis(value, 1, 2)
        total = np.add.accumulate(terms)
        score = np.empty((1 + len(self), *total.shape[1:]))
        score[0], score[1:] = self.bias, self.bias + total
        return score, costs_by_then(cost)

    def inquiry(self, settles: bool) -> BlockEvaluator:
        """Return an evaluator for feature acquisition that evaluates the rounds in turn."""
        value = self.trees.value.reshape(self.trees.n_nodes, -1)
        if self.n_trees > 1:
            of = self.trees.by_node(np.arange(len(self.trees)) % self.n_trees)
            value = np.where(of[:, None] == np.arange(self.n_trees), value, 0.0)
        return trees_inquiry(
            self, self.trees, value, np.atleast_1d(np.float64(self.bias)), self.n_trees
        )

    def _of_labels(self, values: FloatArray) -> FloatArray:
        """Reshape sums to (n, J), or to (n,) with one decision value per row."""
        return values if self.loss.is_multiclass and values.ndim == 2 else values[:, 0]

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return class probabilities for decision values."""
        if self.classes is None:
            raise TypeError("model: a regression model has no probabilities")
        try:
            return probabilities_of(self.loss, score)
        except NotImplementedError as error:
            raise NotImplementedError(
                f"model: {error}; use pb.predict or pb.decision_function, or pb.calibrate to get "
                "probabilities"
            ) from None

    def truncate(self, n_trees: int) -> GradientBoostingModel:
        """Return a model with only the first rounds."""
        n_trees = check_integer("n_nodes", n_trees, min_value=1, max_value=len(self))
        if n_trees == len(self):
            return self
        unit = "rounds" if self.loss.is_multiclass else "trees"
        return replace(
            self,
            trees=self.trees[: n_trees * self.n_trees],
            stop_reason=f"{CUT} {n_trees} of {len(self)} {unit}",
            training_loss=self.training_loss[: n_trees + 1],
        )

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the contributions to the decision value of a row; see `Trees.path_parts`."""
        numbers = np.arange(len(self.trees)).reshape(-1, self.n_trees)
        each = []
        for k in range(self.n_trees):
            trees = self.trees if self.n_trees == 1 else self.trees.only(numbers[:, k])
            each.append(trees.path_parts(X, trees.expected_values(trees.value)))
        parts = self._of_labels(np.column_stack(each))
        parts[0] += self.bias
        return parts

    def goes_with(self, X: TableLike) -> dict[int, str]:
        """Describe how missing values are treated; see `RandomForest.goes_with`."""
        return self.trees.goes_with(X)

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean importances of the trees, weighted by the decrease of the loss."""
        each = (tree.importances(X) for tree in self.trees)
        # The trees of a round share the decrease of the loss in this round.
        fall = as_shares(falls(self.training_loss)).repeat(self.n_trees).tolist()
        return mean_of_shares(self.n_features, zip(fall, each, strict=True))

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons per training row, summed over the trees."""
        return self.trees.mean_prediction_cost

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the cost of each row, summed over the trees.

        With the unit "features", a tree costs the number of distinct features that the row reads.
        """
        return self.trees.prediction_cost(X, unit)

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features that the first 1, 2, ... rounds read."""
        return islice(self.trees.reads(X), self.n_trees - 1, None, self.n_trees)

    def describe(self) -> str:
        """Return the model as text: a summary, then each tree."""
        lines = [
            headline(self, f"fit_gradient_boosting: {self._size}"),
            f"loss {self.loss} {self.training_loss[-1]:.6g}",
            f"stopped: {self.stop_reason}",
            f"constant {' '.join(f'{bias:+.6g}' for bias in np.atleast_1d(self.bias))}",
        ]
        classes = self.classes if self.n_trees > 1 else None
        for t, tree in enumerate(self.trees):
            called = f"tree {t + 1}"
            if classes is not None:
                number, k = divmod(t, self.n_trees)
                called = f"round {number + 1}, label {classes[k].item()!r}"
            # Skip the header of a tree, which repeats the summary.
            lines += [called, *(f"  {line}" for line in tree.describe().splitlines()[2:])]
        return "\n".join(lines)


def probabilities_of(loss: Loss, score: FloatArray) -> FloatArray:
    """Return the class probabilities (n, J) of a loss for decision values."""
    second = loss.probability(score)
    if loss.is_multiclass:
        return settled(second, np.argmax(score, axis=1))
    if len(score) == 1:
        return _of_one_row(loss, score, float(second[0]))
    first = 1 - second
    if is_of_package(loss):  # in pboost, P(first) = probability(-score)
        small = first < LEAST_DIFFERENCE
        if small.any():
            first[small] = loss.probability(-score[small])
    return settled(in_two_columns(first, second), score > 0)


def _of_one_row(loss: Loss, score: FloatArray, second: float) -> FloatArray:
    """Return the result of `probabilities_of` for one row; Python numbers are faster here."""
    first = 1 - second
    if first < LEAST_DIFFERENCE and is_of_package(loss):
        first = float(loss.probability(-score)[0])
    share = np.array([[first, second]])
    return share if (second > first) == (score[0] > 0) else settled(share, score > 0)
