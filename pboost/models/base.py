"""Models that are not one decision graph: what they bring for the functions of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.losses import logistic
from pboost.models.graph import DecisionGraph, TrainingRecord
from pboost.values import FloatArray, IntArray

#: Array members of the files of two-class models, and their dtypes; labels choose theirs.
TWO_CLASS_MEMBERS: dict[str, np.dtype[Any] | None] = {
    "labels": None,
    "certificate": np.dtype("<f8"),
    "cost": np.dtype("<f8"),
}
#: Those of the training record that only some models have; a reader can do without.
OF_RECORD: dict[str, np.dtype[Any] | None] = {"validation": np.dtype("<f8")}
#: Of models without `equations`.
NO_FUNCTIONS = (
    "has no linear functions, as a ProbitModel, ProbitTree, SubaggedProbitTrees or LinearModel has"
)
#: Relative difference up to which probabilities count as equal.
ROUNDING = 1e-15


class Predictor:
    """Base of the models that evaluate themselves.

    `predict`, `predict_proba`, `decision_function`, `staged_decision_function`, `evaluation_cost`
    and `describe` of the package call the methods of the same names; a model that has no answer
    says why. `file_kind` is its kind in files, empty where it cannot be stored; `file_members` and
    `file_optional` are the arrays of every file and of some, with their dtypes (None: that of
    labels).
    """

    __slots__ = ()
    file_kind: ClassVar[str] = ""
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {}
    file_optional: ClassVar[Mapping[str, np.dtype[Any] | None]] = {}
    #: Why it is no decision graph.
    no_graph: ClassVar[str] = "which has no nodes"
    #: What to call in place of functions of graphs, by these.
    instead: ClassVar[Mapping[str, str]] = {}
    #: It reads the columns of X as they are.
    inputs, sigma = None, None
    #: A certificate, if there is one, is that of the predictions.
    certificate_note = ""
    labels: NDArray[Any] | None
    n_features: int
    feature_names: tuple[str, ...] | None

    @property
    def n_inputs(self) -> int:
        """Number of different numbers that are read of a row."""
        return self.n_features

    def check_route(self, route: str, X: Any, sigma: Any) -> None:
        """Raise if the decision values by this route are not defined."""
        if route != "hard":
            raise TypeError(
                f"model: expected a DecisionGraph for route={route!r}, got a "
                f"{type(self).__name__}, {self.no_graph}"
            )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each label for each row."""
        raise TypeError(f"model: a {type(self).__name__} has no probabilities")

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities that go with decision values."""
        raise TypeError(f"model: a {type(self).__name__} has no probabilities")

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision value of each row."""
        raise TypeError(f"model: a {type(self).__name__} has no decision values")

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the decision values at the stages of growth."""
        raise NotImplementedError(f"model: a {type(self).__name__} has no stages")

    def labels_of(self, score: FloatArray) -> NDArray[Any]:
        """Return the predictions that go with decision values."""
        raise TypeError(f"model: a {type(self).__name__} has no decision values")

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return what evaluating each row costs, in "nodes" or "features"."""
        raise TypeError(f"model: the evaluation cost of a {type(self).__name__} is not known")

    def equations(self) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Return coefficients (leaves, K, 1 + d) and the share of the weight in each leaf.

        Then the class of each leaf, where leaves are of one class, or None.
        """
        raise TypeError(f"model: a {type(self).__name__} {NO_FUNCTIONS}")

    def describe(self) -> str:
        """Return the model as text."""
        raise TypeError(f"model: a {type(self).__name__} cannot be described")

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays."""
        raise TypeError(f"model: a {type(self).__name__} cannot be stored")

    @classmethod
    def from_members(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> Predictor:
        """Return the model of a file; ValueError or TypeError where it is none."""
        raise NotImplementedError


class TwoClassPredictor(Predictor):
    """Base of those that, like a decision graph, bound the error of the sign of their values.

    `labels`, `bias`, `settings` and `record` are those of a `DecisionGraph`; answers are exact.
    """

    __slots__ = ()

    labels: NDArray[Any]
    bias: float
    settings: Mapping[str, Any]
    record: TrainingRecord
    is_exact, is_estimated = True, False

    @property
    def n_nodes(self) -> int:
        """Number of rounds: weak hypotheses, with repetitions."""
        return len(self.record.certificate) - 1

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the second label where the decision value is positive, else the first."""
        return self.labels_of(self.decision_function(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities whose half log odds are the decision values."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities whose half log odds are decision values."""
        return two_probabilities(score)

    def labels_of(self, score: FloatArray) -> NDArray[Any]:
        """Return the second label where the decision value is positive, else the first."""
        return one_of_two(self.labels, score)


#: Whatever the functions of a model take.
Model: TypeAlias = DecisionGraph | Predictor
#: Those of two classes that have a certificate.
TwoClassModel: TypeAlias = DecisionGraph | TwoClassPredictor


def one_of_two(labels: NDArray[Any], score: FloatArray) -> NDArray[Any]:
    """Return the second of two labels where a decision value is positive, else the first."""
    found: NDArray[Any] = labels[(score > 0).astype(np.intp)]
    return found


def check_two_labels(model: str, labels: NDArray[Any]) -> None:
    """Refuse decision values of more than two labels; `model` is a noun with its article."""
    if len(labels) > 2:
        raise TypeError(
            f"model: {model} of {len(labels)} classes has no decision value; see predict_proba"
        )


def lead_of_second(share: FloatArray) -> FloatArray:
    """Return by how much the second of two labels is more probable than the first."""
    return share[:, 1] - share[:, 0]


def two_probabilities(score: FloatArray) -> FloatArray:
    """Return the probabilities (n, 2) whose half log odds are decision values (n,)."""
    with np.errstate(over="ignore"):  # an infinite one is right
        twice = 2 * score
    return settled(np.column_stack([logistic(-twice), logistic(twice)]), score > 0)


def settled(share: FloatArray, chosen: NDArray[Any]) -> FloatArray:
    """Return probabilities (n, J), changed in place, of which that of the class chosen is largest.

    Where another is equal in float64 though the decision values are not, that of the class chosen
    is made larger by one unit in the last place.
    """
    found = share[:, 1] > share[:, 0] if share.shape[1] == 2 else np.argmax(share, axis=1)
    rows = np.flatnonzero(chosen != found)
    column, most = chosen[rows].astype(np.intp), share[rows].max(axis=1)
    # What differs by more is the link of a user's loss, which need not be 1/2 at 0.
    equal = share[rows, column] >= most * (1 - ROUNDING)
    share[rows[equal], column[equal]] = np.nextafter(most[equal], 2.0)
    return share


def two_class_members(model: TwoClassModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the fields of the header and the arrays that the files of two-class models share."""
    header = {
        "settings": model.settings,
        "n_features": int(model.n_features),
        "feature_names": model.feature_names,
        "bias": float(model.bias),
        "stop_reason": str(model.record.stop_reason),
    }
    record = model.record
    arrays = {"labels": model.labels, "certificate": record.certificate, "cost": record.cost}
    if record.validation is not None:
        arrays["validation"] = record.validation
    return header, arrays


def two_class_fields(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """Return the fields of a two-class model that `two_class_members` has stored."""
    names = header.get("feature_names")
    return {
        "labels": arrays["labels"],
        "n_features": header["n_features"],
        "feature_names": None if names is None else tuple(names),
        "bias": header["bias"],
        "settings": header["settings"],
        "record": TrainingRecord(
            arrays["certificate"],
            arrays["cost"],
            header["stop_reason"],
            arrays.get("stages"),
            arrays.get("validation"),
        ),
    }
