"""Models: what they bring for the functions of a model, and how those are found in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.derived import Inputs
from pboost.losses import logistic
from pboost.models.stored import Arrays, Header, Parts, Stored, TrainingRecord
from pboost.values import FloatArray, IntArray, shown

#: Relative difference up to which probabilities count as equal.
ROUNDING = 1e-15
#: The models that can be stored, by their kinds in files.
KINDS: dict[str, type[Model]] = {}


class Model(Stored):
    """Base of models: the functions of a model call its methods of the same names.

    A model that has no answer says why. `file_kind` is its kind in files, empty where it cannot be
    stored; `file_order` the arrays that come first in a file, where they are not in the order of
    the fields; `file_stop` stands for the stop reason where there is none.
    """

    __slots__ = ()
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
    #: It reads the columns of X as they are.
    inputs: Inputs | None = None
    sigma: FloatArray | None = None
    #: A certificate, if there is one, is that of the predictions.
    certificate_note = ""
    labels: NDArray[Any] | None
    n_features: int
    feature_names: tuple[str, ...] | None

    def __init_subclass__(cls) -> None:
        if "file_kind" in vars(cls):
            KINDS[cls.file_kind] = cls

    @property
    def n_inputs(self) -> int:
        """Number of different numbers that are read of a row."""
        return self.n_features

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row."""
        return self.labels_of(self.decision_function(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each label for each row."""
        return self.probabilities(self.decision_function(X))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities that go with decision values: their half log odds, if no other.

        See `two_probabilities`.
        """
        if score.ndim > 1:
            self.refuse_votes("the probability")
        return two_probabilities(score)

    def labels_of(self, score: FloatArray) -> NDArray[Any]:
        """Return the predictions that go with decision values: by their signs, if no others."""
        if score.ndim > 1:
            self.refuse_votes("the prediction")
        assert self.labels is not None
        return one_of_two(self.labels, score)

    def refuse_votes(self, what: str) -> None:
        """Raise NotImplementedError if it has several decision values."""

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision value of each row."""
        raise NotImplementedError

    def score_by_route(self, route: str, X: Any, rng: Any, draws: int, sigma: Any) -> FloatArray:
        """Return the decision value of each row by a route that is not the hard one."""
        raise self.is_no_graph(f"route={route!r}")

    def prefix(self, n_nodes: int) -> Any:
        """Return the model with its first nodes only."""
        raise self.is_no_graph("prefix")

    def is_no_graph(self, function: str = "") -> TypeError:
        """Return what to raise where a decision graph is expected, for a function of graphs."""
        asked = f" for {function}" if function else ""
        hint = f": {self.instead[function]}" if function in self.instead else ""
        return TypeError(
            f"model: expected a DecisionGraph{asked}, got a {type(self).__name__}, "
            f"{self.no_graph}{hint}"
        )

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the decision values at the stages of growth."""
        raise NotImplementedError(f"model: a {type(self).__name__} has no stages")

    def evaluation_cost(self, X: Any, unit: str) -> FloatArray:
        """Return what evaluating each row costs, in "nodes" or "features"."""
        raise NotImplementedError

    def equations(self) -> tuple[FloatArray, FloatArray, IntArray | None]:
        """Return coefficients (leaves, K, 1 + d) and the share of the weight in each leaf.

        Then the class of each leaf, where leaves are of one class, or None.
        """
        raise TypeError(f"model: a {type(self).__name__} {self.no_functions}")

    def describe(self) -> str:
        """Return the model as text."""
        raise NotImplementedError

    def members(self) -> Parts:
        """Return the fields of a file's header and its arrays."""
        header, arrays = self.parts()
        first = {name: arrays[name] for name in self.file_order if name in arrays}
        return {"stop_reason": self.file_stop, **header}, {**first, **arrays}

    @classmethod
    def from_members(cls, header: Header, arrays: Arrays) -> Any:
        """Return the model of a file; ValueError or TypeError where it is none."""
        return cls.from_parts(header, arrays)

    @classmethod
    def from_models(cls, header: Header, arrays: Arrays, models: tuple[Model, ...]) -> Any:
        """Return the model of a file and of the files in it; ValueError where it is none."""
        return cls.from_members({**header, "models": models}, arrays)


class TwoClassModel(Model):
    """Base of those of two classes that bound the error of the sign of their values.

    `labels`, `bias`, `settings` and `record` are those of a `DecisionGraph`.
    """

    __slots__ = ()

    labels: NDArray[Any]
    bias: float
    settings: Mapping[str, Any]
    record: TrainingRecord
    is_exact, is_estimated = True, False


class Averaged(Model):
    """Base of those that answer with a mean: of the shares of the classes, or of numbers."""

    __slots__ = ()
    #: What models of several classes, and of numbers, are called.
    of_classes: ClassVar[str] = ""
    of_numbers: ClassVar[str] = ""

    def mean(self, X: Any) -> FloatArray:
        """Return the shares (n, J) of the classes, or the numbers (n,)."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of largest share, the first among equals, or the number."""
        mean = self.mean(X)
        return mean if self.labels is None else self.labels[np.argmax(mean, axis=1)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the share of each label."""
        if self.labels is None:
            raise TypeError(f"model: {self.of_numbers} no probabilities")
        return self.mean(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the number, or by how much the second label has the larger share."""
        if self.labels is None:
            return self.predict(X)
        if len(self.labels) > 2:
            raise TypeError(
                f"model: {self.of_classes} of {len(self.labels)} classes has no decision value; "
                "see predict_proba"
            )
        return lead_of_second(self.mean(X))


def one_of_two(labels: NDArray[Any], score: FloatArray) -> NDArray[Any]:
    """Return the second of two labels where a decision value is positive, else the first."""
    found: NDArray[Any] = labels[(score > 0).astype(np.intp)]
    return found


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


def check_model(model: Any) -> None:
    """Raise TypeError if this is no model."""
    if not isinstance(model, Model):
        raise TypeError(f"model: expected a model such as fit_adaboost returns, got {shown(model)}")
