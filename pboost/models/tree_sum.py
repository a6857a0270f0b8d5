"""The model of forward stagewise fitting: a constant and a sum of regression trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import check_labels, check_settings, check_sum, is_number
from pboost.losses import LOSSES, Loss
from pboost.models.base import Predictor, one_of_two, settled
from pboost.models.forest import Forest
from pboost.models.trees import TREE_COLUMNS
from pboost.values import FloatArray, freeze


@dataclass(frozen=True, slots=True, eq=False)
class StagewiseModel(Predictor):
    """A constant and a sum of regression trees, made by `fit_stagewise`.

    Attributes
    ----------
    trees : Forest
        The trees, as regression trees; ``value`` is what each leaf adds to the decision value,
        0 at other nodes, and ``weight`` is counted in the largest weight of a row in its step.
    bias : float
        Decision value before the first tree.
    loss : Loss
        What the sum minimises.
    labels : ndarray, shape (2,), or None
        The two label values, sorted, -1 and +1 to the loss; None of a regression.
    settings : mapping
        The options the model was fitted with.
    stop_reason : str
        Why fitting ended, as a sentence.
    training_loss : ndarray of float64, shape (n_trees + 1,)
        Weighted mean loss on the training rows before the first tree and after each.
    validation_loss : ndarray of float64, shape (k,), or None
        Weighted mean loss on the validation rows before the first tree and after each that was
        tried, which can be more than the model has.
    n_features, feature_names
        Number of columns the model was trained on, and their names or None.
    """

    trees: Forest
    bias: float
    loss: Loss
    labels: NDArray[Any] | None
    settings: Mapping[str, Any]
    stop_reason: str
    training_loss: FloatArray
    validation_loss: FloatArray | None = None
    n_features: int = field(init=False)
    feature_names: tuple[str, ...] | None = field(init=False)

    no_graph: ClassVar[str] = "whose trees have no votes"
    instead: ClassVar[Mapping[str, str]] = {
        "reach": "apply(model.trees, X) tells the leaf of each row in each tree",
        "explain": "staged_decision_function has the values after each tree",
    }
    file_kind: ClassVar[str] = "stagewise"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        **Forest.file_members,
        "training_loss": np.dtype("<f8"),
    }
    file_optional: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        "labels": None,
        "validation_loss": np.dtype("<f8"),
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "training_loss", freeze(self.training_loss, np.float64))
        if self.validation_loss is not None:
            object.__setattr__(self, "validation_loss", freeze(self.validation_loss, np.float64))
        if self.labels is not None:
            object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        object.__setattr__(self, "n_features", self.trees.n_features)
        object.__setattr__(self, "feature_names", self.trees.feature_names)
        self.validate()

    def validate(self) -> None:
        """Check the arrays beside the trees; ValueError names the one that is wrong."""
        if self.trees.labels is not None:
            raise ValueError("trees: expected regression trees")
        if not is_number(self.bias):
            raise ValueError(f"bias: expected a finite number, got {self.bias}")
        check_sum("value, bias", self.trees.largest_values(), self.bias)
        check_settings(self.settings)
        if not isinstance(self.stop_reason, str):
            raise ValueError(f"stop_reason: expected a string, got {self.stop_reason!r}")
        labels = self.labels
        if labels is None and not self.loss.is_regression:
            raise ValueError(f"labels: expected two for the {self.loss.name} loss, got None")
        if labels is not None:
            check_labels(labels, 2)
        if self.training_loss.shape != (len(self) + 1,):
            found = self.training_loss.shape
            raise ValueError(f"training_loss: expected shape ({len(self) + 1},), got {found}")
        tried = self.validation_loss
        if tried is not None and (tried.ndim != 1 or len(tried) <= len(self)):
            raise ValueError("validation_loss: expected a number for each tree and one more")
        for name in ("training_loss", "validation_loss"):
            losses = getattr(self, name)
            if losses is not None and np.isnan(losses).any():
                raise ValueError(f"{name}: expected numbers, got NaN")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def __repr__(self) -> str:
        trees = f"{len(self)} tree{'s' * (len(self) != 1)}"
        return f"<fit_stagewise: {trees}, {self.n_features} features, {self._loss_name} loss>"

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def n_nodes(self) -> int:
        """Number of comparisons in all trees."""
        return len(self.trees.feature) // 2

    @property
    def _loss_name(self) -> str:
        return self.loss.name or type(self.loss).__name__

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision value of each row; of a regression the predicted number."""
        return self.bias + self.trees.total(X)[:, 0]

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the decision values after each tree."""
        node = self.trees.nodes_of(X)
        roots = self.trees.root[:-1].tolist()
        terms = (self.trees.value[root + node[:, t]] for t, root in enumerate(roots))
        return (self.bias + total for total in accumulate(terms))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the second label where the decision value is positive, or the number."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, score: FloatArray) -> NDArray[Any]:
        """Return the predictions that go with decision values."""
        return score if self.labels is None else one_of_two(self.labels, score)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each label by the link of the loss."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probability of each label that goes with decision values."""
        if self.labels is None:
            raise TypeError("model: a regression has no probabilities")
        second = self.loss.probability(score)
        return settled(np.column_stack([1 - second, second]), score > 0)

    def prefix(self, n_trees: int) -> StagewiseModel:
        """Return the model with its first trees only, 1 or more."""
        n_nodes = int(self.trees.root[n_trees])
        columns: dict[str, Any] = {
            name: getattr(self.trees, name)[:n_nodes] for name in TREE_COLUMNS
        }
        return replace(
            self,
            trees=replace(self.trees, root=self.trees.root[: n_trees + 1], **columns),
            stop_reason=f"cut to the first {n_trees} of {len(self)} trees",
            training_loss=self.training_loss[: n_trees + 1],
        )

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return the number of comparisons, or of columns read tree by tree, for each row."""
        return self.trees.evaluation_cost(X, unit)

    def describe(self) -> str:
        """Return the model as text: a summary, then each tree."""
        of = "numbers" if self.labels is None else f"labels {self.labels.tolist()!r}"
        lines = [
            f"fit_stagewise: {len(self)} tree{'s' * (len(self) != 1)}, {self.n_features} "
            f"feature{'s' * (self.n_features != 1)}, {of}",
            f"{self._loss_name} loss {self.training_loss[-1]:.6g}",
            f"stopped: {self.stop_reason}",
            f"constant {self.bias:+.6g}",
        ]
        for t, tree in enumerate(self.trees):
            # A tree's own first lines say how it was made.
            lines += [f"tree {t + 1}", *(f"  {line}" for line in tree.describe().splitlines()[2:])]
        return "\n".join(lines)

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        if LOSSES.get(self.loss.name) != self.loss:
            raise TypeError(
                f"model: its loss {self._loss_name!r} is a function, which cannot be stored "
                "without pickling; pickle the model"
            )
        header, arrays = self.trees.members()
        header |= {
            "settings": self.settings,
            "stop_reason": self.stop_reason,
            "bias": float(self.bias),
            "loss": self.loss.name,
        }
        arrays["training_loss"] = self.training_loss
        if self.validation_loss is not None:
            arrays["validation_loss"] = self.validation_loss
        if self.labels is not None:
            arrays["labels"] = self.labels
        return header, arrays

    @classmethod
    def from_members(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> StagewiseModel:
        """Return the model of a file; ValueError or TypeError where it is none."""
        name, bias = header.get("loss"), header.get("bias")
        if not isinstance(name, str) or name not in LOSSES:
            raise ValueError(f"loss: expected one of {list(LOSSES)}, got {name!r}")
        if not isinstance(bias, float):
            raise ValueError(f"bias: expected a number, got {bias!r}")
        trees = {key: array for key, array in arrays.items() if key != "labels"}
        return cls(
            Forest.from_members({**header, "settings": {"builder": "fit_stagewise"}}, trees),
            bias, LOSSES[name], arrays.get("labels"), header["settings"],
            header["stop_reason"], arrays["training_loss"], arrays.get("validation_loss"),
        )  # fmt: skip
