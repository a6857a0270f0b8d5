"""Models of two or more classes whose members are trained one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost.data.array_checks import (
    check_dimensions,
    check_finite_arrays,
    check_labels,
    check_not_negative,
    check_settings,
    check_shape,
    check_sum,
)
from pboost.data.held import held
from pboost.data.rows import as_rows
from pboost.models._archive import FILES
from pboost.models.base import Model, lead_of_second
from pboost.models.ensembles import Ensemble, check_known, check_members, is_foreign
from pboost.models.new_rows import table_for
from pboost.models.predict import decision_function, evaluation_cost, predict, predict_proba
from pboost.models.probit import ProbitModel
from pboost.models.probit_trees import ProbitTree
from pboost.models.probit_values import probabilities
from pboost.values import FloatArray, freeze

#: Labels of the members of a one-versus-rest model.
REST_OR_CLASS = np.array([False, True])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneVsRest(Ensemble):
    """One two-class model per class, each telling its class from the rest.

    Attributes
    ----------
    models : tuple
        Two-class models in the order of `labels`, of the labels False and True.
    labels : ndarray, shape (J,)
        The label values, sorted.
    settings : mapping
        The options it was fitted with; those of the models are with them.
    """

    models: tuple[Any, ...]
    labels: NDArray[Any]
    settings: Mapping[str, Any]

    file_kind: ClassVar[str] = "one-vs-rest"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {**FILES, "labels": None}

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        check_labels(self.labels)
        check_settings(self.settings, "builder")
        if not len(self.models) == len(self.labels) >= 2:
            raise ValueError(
                f"models: expected one per label, at least two, got {len(self.models)} models and "
                f"{len(self.labels)} labels"
            )
        for label, model in zip(self.labels.tolist(), self.models, strict=True):
            if not np.array_equal(getattr(model, "labels", ()), REST_OR_CLASS):
                raise ValueError(
                    f"models: expected a two-class model of labels False and True for {label!r}, "
                    f"got {model!r}"
                )
        check_members(self.models, REST_OR_CLASS)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of the models, (n, J)."""
        X = table_for(self, X)
        with held(X):
            found = [decision_function(model, X) for model in self.models]
        # An ensemble of two classes has a value for each.
        return np.column_stack([lead_of_second(one) if one.ndim > 1 else one for one in found])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the models, divided by their sum, (n, J)."""
        if all(isinstance(model, ProbitTree | ProbitModel) for model in self.models):
            # Probabilities of 1 are soon equal where the functions are not.
            return probabilities(self.decision_function(X))
        X = table_for(self, X)
        with held(X):
            found = np.column_stack([predict_proba(model, X)[:, 1] for model in self.models])
        none = np.flatnonzero(~found.any(axis=1))
        if len(none):
            # All are below the least positive number: the largest stands out from the others.
            score = self.decision_function(X if len(none) == len(found) else as_rows(X).take(none))
            found[none] = score == score.max(axis=1, keepdims=True)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def count_nodes(self, X: Any) -> FloatArray:
        """Return the number of weak classifiers that are evaluated for each row, (n,)."""
        X = table_for(self, X)
        with held(X):
            return np.sum([evaluation_cost(model, X) for model in self.models], axis=0)

    def titles(self) -> list[str]:
        """Return what is said of the whole, and then of each member."""
        whole = f"fit_one_vs_rest: {len(self.models)} models, one per label"
        return [whole, *(f"{label!r} against the rest:" for label in self.labels.tolist())]

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays, but for the models."""
        header = {"settings": self.settings, "stop_reason": "all models are there"}
        return header, {"labels": self.labels}

    @classmethod
    def from_models(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        models: tuple[Model, ...],
    ) -> OneVsRest:
        """Return the model of a file and of its members; ValueError where it is none."""
        return cls(models, arrays["labels"], header["settings"])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedVote(Ensemble):
    """Classifiers of J classes that vote for their answers, each with its own weight.

    Attributes
    ----------
    models : tuple
        The members: models of this package, or objects with ``predict``.
    alpha : ndarray of float64, shape (len(models),)
        Weight of each vote.
    labels : ndarray, shape (J,)
        The label values, sorted.
    bias : ndarray of float64, shape (J,)
        Votes at the start: 0, or, where there are no members, the logarithms of the shares of the
        classes.
    settings : mapping
        The options it was fitted with.
    error : ndarray of float64, shape (rounds,)
        Weighted error of the classifier of each round; one more than there are members where the
        last was left out.
    stop_reason : str
        Why boosting ended, as a sentence.
    """

    models: tuple[Any, ...]
    alpha: FloatArray
    labels: NDArray[Any]
    bias: FloatArray
    settings: Mapping[str, Any]
    error: FloatArray
    stop_reason: str

    file_kind: ClassVar[str] = "weighted-vote"
    file_members: ClassVar[Mapping[str, np.dtype[Any] | None]] = {
        **FILES,
        "labels": None,
        **dict.fromkeys(("alpha", "bias", "error"), np.dtype("<f8")),
    }

    def __post_init__(self) -> None:
        for name in ("alpha", "bias", "error"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64))
        check_finite_arrays(self, "alpha", "bias", "error")
        object.__setattr__(self, "labels", freeze(self.labels))
        object.__setattr__(self, "settings", dict(self.settings))
        check_labels(self.labels)
        check_settings(self.settings, "builder")
        check_shape(self, {"alpha": (len(self.models),), "bias": (len(self.labels),)})
        check_dimensions(self, {"error": 1})
        check_not_negative(self, "error")
        check_sum("alpha, bias", self.alpha, float(np.abs(self.bias).max()))
        if not isinstance(self.stop_reason, str):
            raise ValueError(f"stop_reason: expected a string, got {self.stop_reason!r}")
        check_members(self.models, self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the sum of the votes for each class, (n, J)."""
        score = np.tile(self.bias, (as_rows(table_for(self, X)).n_rows, 1))
        for later in self._votes(X):
            score = later
        return score

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities (n, J) that go with sums of votes: their softmax."""
        with np.errstate(over="ignore"):  # minus infinity is right
            odds = np.exp(score - score.max(axis=1, keepdims=True))
        found: FloatArray = odds / odds.sum(axis=1, keepdims=True)
        return found

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Yield the sums of the votes (n, J) of the first 1, 2, ... members."""
        return (score.copy() for score in self._votes(X))

    def count_nodes(self, X: Any) -> FloatArray:
        """Return the number of weak classifiers that are evaluated for each row, (n,)."""
        X = table_for(self, X)
        cost = np.zeros(as_rows(X).n_rows)
        with held(X):
            for member in self.models:
                cost += evaluation_cost(check_known(member), X)
        return cost

    def titles(self) -> list[str]:
        """Return what is said of the whole, and then of each member."""
        named = ", ".join(map(repr, self.labels.tolist()))
        builder = self.settings.get("builder", "weighted vote")
        whole = f"{builder}: {len(self.models)} members, labels {named}\nstopped: "
        return [
            whole + self.stop_reason,
            *(f"member {t}, vote {alpha:.4f}:" for t, alpha in enumerate(self.alpha)),
        ]

    def members(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fields of a file's header and its arrays, but for the models."""
        header = {"settings": self.settings, "stop_reason": self.stop_reason}
        return header, {name: getattr(self, name) for name in ("labels", "alpha", "bias", "error")}

    @classmethod
    def from_models(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        models: tuple[Model, ...],
    ) -> WeightedVote:
        """Return the model of a file and of its members; ValueError where it is none."""
        return cls(
            models, arrays["alpha"], arrays["labels"], arrays["bias"], header["settings"],
            arrays["error"], header["stop_reason"],
        )  # fmt: skip

    def _votes(self, X: Any) -> Iterator[FloatArray]:
        """Yield one array of sums of votes after each member, the same each time."""
        X = table_for(self, X)
        n, read_once = as_rows(X).n_rows, held(X)
        score, every = np.tile(self.bias, (n, 1)), np.arange(n)
        for member, alpha in zip(self.models, self.alpha, strict=True):
            with read_once:  # not while the caller has the votes
                found = answers(member, X, n, self.labels)
            score[every, found] += alpha
            yield score


def answers(member: Any, X: Any, n: int, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions among `labels` of what a classifier answers to the n rows X."""
    found = np.asarray(member.predict(X) if is_foreign(member) else predict(member, X))
    if found.shape != (n,):
        raise ValueError(f"base: expected {n} predictions, got shape {found.shape}")
    if found.dtype.kind == "O":
        found = found.astype(labels.dtype)
    codes = np.searchsorted(labels, found).clip(0, len(labels) - 1)
    wrong = np.flatnonzero(labels[codes] != found)
    if len(wrong):
        raise ValueError(
            f"base: expected predictions among the labels {labels.tolist()}, got "
            f"{found[wrong[0]].item()!r}"
        )
    return codes


def chance(n_classes: int) -> float:
    """Return the error of guessing."""
    return 1 - 1 / n_classes
