"""Ensembles: models that combine base learners, which may come from other packages."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, zip_longest
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import plain_values
from pboost.data.read.convert import as_rows
from pboost.data.read.table import Table, united
from pboost.data.row_fingerprint import Digest, merged
from pboost.models import schema as stored
from pboost.models.base import (
    Averaged,
    CostUnit,
    Model,
    Route,
    decision_function,
    describe,
    predict,
    predict_proba,
    prediction_cost,
    score_by_route,
    staged_decision_function,
)
from pboost.models.evaluate.exits import Exits, proven_exits, rest_of, voting_exits
from pboost.models.evaluate.match_input import MemberRows, table_for
from pboost.models.evaluate.partial_evaluation import (
    MemberEvaluator,
    PartialEvaluator,
    RestEvaluator,
    mean_of,
    sum_of_votes,
)
from pboost.models.linear import ProbitModel, probabilities
from pboost.models.probit_trees import ProbitTree
from pboost.models.schema import (
    VOTES,
    HeaderAndArrays,
    Models,
    OutOfBag,
    Settings,
    Vote,
    Voting,
    check_shares,
    check_sum,
    table_field,
)
from pboost.models.shares import (
    among,
    costs_by_then,
    lead_of_second,
    mean_of_shares,
    means_by_then,
    settled,
    shared_out,
    softmax,
)
from pboost.models.text import counted, headline, named_labels, of_bags
from pboost.values import Array, FloatArray, TableLike, as_generator, check_position

#: Start of the error message for base learners from other packages.
READING = "feature information of a {}"
#: Log odds of a class that all base learners of a `WeightedVote` predict, if none makes an error.
MOST_LOG_ODDS = 4.0
#: Classes of the base learners of a one-versus-rest model.
REST_OR_CLASS = np.array([False, True])


def is_foreign(member: object) -> bool:
    """Return whether a base learner is not a pboost model, but an object with ``predict``."""
    return not isinstance(member, Model)


def check_known(member: object, what: str = "the prediction cost of a {}") -> Model:
    """Return the base learner if it is a pboost model, else raise NotImplementedError."""
    if not isinstance(member, Model):
        raise NotImplementedError(
            f"model: {what.format(type(member).__name__)} is not available, because it is not a "
            "pboost model"
        )
    return member


def answers(member: Any, X: TableLike, n: int, classes: Array) -> NDArray[np.intp]:
    """Return the positions in `classes` of the classes predicted for the n rows of X."""
    predicted = np.asarray(member.predict(X) if is_foreign(member) else predict(member, X))
    if predicted.shape != (n,):
        raise ValueError(f"base_learner: expected {n} predictions, got shape {predicted.shape}")
    if predicted.dtype.kind == "O":
        predicted = plain_values(predicted, "base_learner: expected predictions")
    codes = np.searchsorted(classes, predicted).clip(0, len(classes) - 1)
    wrong = np.flatnonzero(classes[codes] != predicted)
    if len(wrong):
        raise ValueError(
            f"base_learner: expected predictions among the classes {classes.tolist()}, got "
            f"{predicted[wrong[0]].item()!r}"
        )
    return codes


class BaseLearners(Models):
    """The base learners of an ensemble, whose probabilities have the temperature 1."""

    def kept(self, value: Any) -> tuple[Any, ...]:
        """Return the models as a tuple."""
        return tuple(m if is_foreign(m) else m.without_temperature() for m in value)


def said_by(model: Any, X: TableLike, classes: Array | None, voting: str) -> FloatArray:
    """Return the votes (n, J) of a base learner, or for regression its predictions (n,).

    With soft voting, the votes are class probabilities, if available. Otherwise the predicted
    class receives one vote.
    """
    if classes is not None and voting == "soft" and not is_foreign(model):
        try:
            share = predict_proba(model.without_temperature(), X)
            _codes(classes, model.classes)
            return among(share, classes, model.classes)
        except NotImplementedError:  # a loss without probabilities
            pass
    predicted = np.asarray(model.predict(X) if is_foreign(model) else predict(model, X))
    if classes is None:
        return predicted.astype(np.float64)
    code = _codes(classes, predicted)
    return (code[:, None] == np.arange(len(classes))).astype(np.float64)


def _codes(classes: Array, predicted: Array) -> NDArray[np.intp]:
    """Return the positions of predicted classes in `classes`."""
    code = np.minimum(np.searchsorted(classes, predicted), len(classes) - 1)
    if not (classes[code] == predicted).all():
        raise ValueError(
            f"fit: expected models that predict the classes {classes.tolist()!r}, got other classes"
        )
    return code


#: The number of features, and the feature names or None.
Columns: TypeAlias = tuple[int, tuple[str, ...] | None]


class Composite(Model):
    """Base class of models that contain base learners, and are stored together with them.

    ``model[i]`` is base learner i.
    """

    __slots__ = ()

    no_graph = "whose base learners are in model.models"
    #: The base learners.
    models: tuple[Any, ...]

    def __getitem__(self, member: int | slice) -> Any:
        if isinstance(member, slice):
            raise TypeError(
                f"model: a {type(self).__name__} cannot be sliced, because its training record "
                "covers all base learners; slice the tuple model.models instead"
            )
        return self.models[check_position("member", member, len(self.models))]

    no_functions = "has no linear function; call coefficients on a base learner, model[i]"

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of each row, summed over the base learners."""
        rows = MemberRows(self, X)
        cost = np.zeros(as_rows(rows.input_table).n_rows)
        for member in self.models:
            cost += prediction_cost(check_known(member), rows(member), unit)
        return cost

    @property
    def row_table(self) -> Table | None:
        """The table with the categories that occur in any base learner."""
        known = [member for member in self.models if not is_foreign(member)]
        return united([member.row_table for member in known], self.n_features)

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons per training row, summed over the base learners."""
        return float(sum(check_known(member).mean_prediction_cost for member in self.models))

    def digests(self) -> list[Digest]:
        """Return the combined digest of the training rows of all base learners."""
        known = [digest for m in self.models if isinstance(m, Model) for digest in m.digests()]
        joined = merged(self.seen, *known)
        return [] if joined is None else [joined]

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features read by the first 1, 2, ... base learners."""
        rows = MemberRows(self, X)
        each = (deque(check_known(m).reads(rows(m)), 1)[0] for m in self.models)
        return accumulate(each, np.logical_or)

    def costs_by_then(self, X: TableLike) -> FloatArray:
        """Return the cost (T + 1, n) of the first 0, 1, ... base learners."""
        return costs_by_then(np.array([prediction_cost(check_known(m), X) for m in self.models]))

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean feature importances of the base learners."""
        return self.mean_importances(np.ones(len(self.models)), X)

    def mean_importances(self, weight: FloatArray, X: TableLike | None) -> FloatArray:
        """Return the weighted mean of the feature importances of the base learners."""
        each = (check_known(member, READING).importances(X) for member in self.models)
        return mean_of_shares(self.n_features, zip(weight.tolist(), each, strict=True))

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether all base learners from pboost accept missing values."""
        return all(is_foreign(member) or member.takes_missing for member in self.models)

    def inquiries(self, settles: bool) -> list[PartialEvaluator]:
        """Return the partial evaluators of the base learners, for feature acquisition."""
        return [check_known(member, READING).inquiry(settles) for member in self.models]

    @property
    def n_nodes(self) -> int:
        """Total number of nodes of the base learners."""
        return sum(check_known(member).n_nodes for member in self.models)


class Ensemble(Composite):
    """Base class of classifiers with J >= 2 classes that combine base learners.

    The class with the largest probability is predicted; the first class wins ties.
    """

    __slots__ = ()

    #: Sorted class labels, (J,).
    classes: Array

    @property
    def n_votes(self) -> int:
        """Number of decision values per row: one per class, also in the binary case."""
        return len(self.classes)

    def __repr__(self) -> str:
        builder = self.settings.get("builder", type(self).__name__)
        return f"<{builder}: {len(self.models)} models, {len(self.classes)} classes>"

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the training features, or None."""
        return next((member.feature_names for member in self._known()), None)

    @property
    def table(self) -> Table | None:  # type: ignore[override]
        """Types and categories of the training features."""
        return next((member.table for member in self._known()), None)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of training features; 0 if unknown."""
        return next((member.n_features for member in self._known()), 0)

    def _known(self) -> Iterator[Model]:
        return (member for member in self.models if not is_foreign(member))

    def predict(self, X: TableLike) -> Array:
        """Return the most probable class of each row."""
        return self.most_probable(self.predict_proba(X))

    def labels_of(self, score: FloatArray) -> Array:
        """Return the most probable class of each row from its decision values."""
        return self.most_probable(self.probabilities(score))

    def most_probable(self, probabilities: FloatArray) -> Array:
        """Return the class with the largest probability; the first class wins ties."""
        return self.classes[np.argmax(probabilities, axis=1)]

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of each row in "nodes", the only supported unit."""
        if unit != "nodes":
            raise NotImplementedError(
                f'unit: expected "nodes" for a model with several base learners, got {unit!r}'
            )
        return Composite.prediction_cost(self, X, "nodes")

    def titles(self) -> list[str]:
        """Return the titles of the ensemble and of each base learner."""
        raise NotImplementedError

    def describe(self) -> str:
        """Describe the ensemble and, indented, its base learners as text."""
        first_title, *titles = self.titles()
        lines = [first_title]
        for title, member in zip(titles, self.models, strict=True):
            text = repr(member) if is_foreign(member) else describe(member)
            lines += [title, *(f"  {line}" for line in text.splitlines())]
        return "\n".join(lines)


def check_members(
    models: tuple[Any, ...], classes: Array | None, columns: Columns | None = None
) -> None:
    """Raise ValueError unless the base learners agree on features and classes.

    `classes` is None for regression. `columns` are the features of the ensemble, if known. Models
    from other packages are not checked.
    """
    for k, member in enumerate(models):
        if is_foreign(member):
            continue
        member_columns = (member.n_features, member.feature_names)
        columns = member_columns if columns is None else columns
        if member_columns[0] != columns[0] or (
            None not in (member_columns[1], columns[1]) and member_columns[1] != columns[1]
        ):
            raise ValueError(
                f"models: expected models with the same features, got {_columns(columns)}, and "
                f"{_columns(member_columns)} in models[{k}]"
            )
        if classes is None:
            agree = member.classes is None or member.classes.dtype.kind in "biuf"
        else:
            # The training rows of a base learner may lack some classes.
            agree = member.classes is not None and bool(
                (member.classes.dtype.kind == "U") == (classes.dtype.kind == "U")
                and np.isin(member.classes, classes).all()
            )
        if not agree:
            member_labels = None if member.classes is None else member.classes.tolist()
            expected = "numbers" if classes is None else f"classes among {classes.tolist()}"
            raise ValueError(
                f"models: expected models that predict {expected}, got classes {member_labels} in "
                f"models[{k}]"
            )


def _columns(columns: Columns) -> str:
    n, names = columns
    return f"{n} features" + ("" if names is None else f" named {', '.join(map(repr, names))}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneVsRest(Ensemble):
    """One binary model per class, each separating its class from the rest.

    Attributes
    ----------
    models : tuple
        Binary models with the classes False and True, in the order of `classes`.
    classes : ndarray, shape (J,)
        The sorted class labels.
    settings : mapping
        The options of the fit. Each model has its own settings as well.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    models: tuple[Any, ...] = stored.kept_as(BaseLearners())
    classes: Array = stored.classes()
    settings: Settings = stored.settings("builder")
    memo: dict[str, Any] = stored.memo()

    file_kind, file_stop = "one-vs-rest", "all models are there"

    def check_whole(self) -> None:
        """Check that there is one binary model per class."""
        if not len(self.models) == len(self.classes) >= 2:
            raise ValueError(
                "models: expected one model per class, and at least two classes, got "
                f"{len(self.models)} models and {len(self.classes)} classes"
            )
        for label, model in zip(self.classes.tolist(), self.models, strict=True):
            if not np.array_equal(getattr(model, "classes", ()), REST_OR_CLASS):
                raise ValueError(
                    f"models: expected a binary model with classes False and True for {label!r}, "
                    f"got {model!r}"
                )
        check_members(self.models, REST_OR_CLASS)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision values (n, J) of the binary models."""
        rows = MemberRows(self, X)
        return leads(decision_function(model, rows(model)) for model in self.models)

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the contributions (1 + d, J) to the decision values of the binary models."""
        return leads(check_known(model, READING).contributions(X) for model in self.models)

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return the `vote_parts` (1 + d, J) of the binary models."""
        return leads(check_known(model, READING).vote_parts(X) for model in self.models)

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probabilities (n, J) of the binary models, divided by their sum."""
        if all(isinstance(model, ProbitTree | ProbitModel) for model in self.models):
            # Use decision values, because probabilities can round to 1 for several classes.
            return probabilities(self.decision_function(X))
        rows = MemberRows(self, X)
        shares = np.column_stack([predict_proba(m, rows(m))[:, 1] for m in self.models])
        none = np.flatnonzero(~shares.any(axis=1))
        if len(none):
            # If all probabilities are zero, the largest decision value gets probability 1.
            X = rows.input_table
            score = self.decision_function(X if len(none) == len(shares) else as_rows(X).take(none))
            shares[none] = score == score.max(axis=1, keepdims=True)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities (n, J) for decision values, as in `predict_proba`."""
        if all(isinstance(model, ProbitTree | ProbitModel) for model in self.models):
            return probabilities(score)
        pairs = zip(self.models, score.T, strict=True)
        shares = np.column_stack(
            [model.probabilities(member_score)[:, 1] for model, member_score in pairs]
        )
        none = ~shares.any(axis=1)
        shares[none] = score[none] == score[none].max(axis=1, keepdims=True)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return the decision values (n, J) for a route other than "hard"."""
        route = route._replace(rng=as_generator(route.rng))
        return leads(score_by_route(model, X, route) for model in self.models)

    def inquiry(self, settles: bool) -> RestEvaluator:
        """Return an evaluator for feature acquisition that evaluates the models in turn."""
        return RestEvaluator(self, self.inquiries(settles), self.classes)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values (n, J) at each stage; a finished model keeps its last value."""
        stages = [staged_decision_function(model, X) for model in self.models]
        latest = list(self.decision_function(X).T)  # a model without stages keeps these values

        def all_stages() -> Iterator[FloatArray]:
            for scores in zip_longest(*stages):
                latest[:] = [a if b is None else b for a, b in zip(latest, scores, strict=True)]
                yield leads(latest)

        return all_stages()

    def titles(self) -> list[str]:
        """Return the titles of the ensemble and of each base learner."""
        title = f"fit_one_vs_rest: {len(self.models)} models, one per class"
        return [title, *(f"{label!r} against the rest:" for label in self.classes.tolist())]


def leads(values: Iterable[FloatArray]) -> FloatArray:
    """Stack decision values as columns; two values per row are replaced by their difference."""
    return np.column_stack([lead_of_second(value) if value.ndim > 1 else value for value in values])


def temperature_of_votes(alpha: FloatArray, error: FloatArray, n_classes: int) -> float:
    """Return the temperature of base learners with the given votes and weighted errors (T,).

    L is the negative logarithm of the exponential loss of the training rows. It is at most (J - 1)
    / J times the sum of the votes, if no base learner makes an error. The temperature then limits
    log odds to `MOST_LOG_ODDS`. A single base learner with errors has the temperature 1, because
    its vote is its log odds.
    """
    if not len(alpha) or (len(alpha) == 1 and error[0] > 0):
        return 1.0
    right, fall = (n_classes - 1) / n_classes, 0.0
    for vote, wrong in zip(alpha.tolist(), error.tolist(), strict=True):
        # The vote of a base learner without errors may be too large for exp.
        fall += right * vote
        if wrong > 0:
            fall -= math.log(1 - wrong + wrong * math.exp(vote))
    return 1.0 + max(fall, 0.0) / right / (MOST_LOG_ODDS + math.log(n_classes - 1))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedVote(Ensemble):
    """A weighted majority vote of classifiers with J classes.

    Attributes
    ----------
    models : tuple
        The base learners: pboost models, or objects with ``predict``.
    alpha : ndarray of float64, shape (len(models),)
        Weight of the vote of each base learner.
    classes : ndarray, shape (J,)
        The sorted class labels.
    bias : ndarray of float64, shape (J,)
        Initial votes: 0, or without base learners the logarithms of the class frequencies.
    settings : mapping
        The options of the fit.
    error : ndarray of float64, shape (n_rounds,)
        Weighted training error of the classifier of each round. If the last classifier was
        rejected, there is one entry more than there are base learners.
    stop_reason : str
        Why boosting ended, as a sentence.
    temperature : float
        Number >= 1 by which `predict_proba` divides sums of votes; see `fit_samme`. It does not
        change predictions.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    models: tuple[Any, ...] = stored.kept_as(BaseLearners())
    alpha: FloatArray = stored.column(np.float64, lambda model: (len(model.models),))
    classes: Array = stored.classes()
    bias: FloatArray = stored.column(np.float64, lambda model: (len(model.classes),))
    settings: Settings = stored.settings("builder")
    error: FloatArray = stored.column(np.float64, ndim=1, positive=True)
    stop_reason: str = stored.text()
    temperature: float = stored.temperature()
    memo: dict[str, Any] = stored.memo()

    file_kind = "weighted-vote"
    file_order = ("classes", "alpha", "bias", "error")

    def check_whole(self) -> None:
        """Check that sums of votes are finite and that the base learners are compatible."""
        check_sum("alpha, bias", self.alpha, float(np.abs(self.bias).max()))
        check_shares("error", self.error)
        check_members(self.models, self.classes)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the sum of the votes for each class, (n, J)."""
        score = np.tile(self.bias, (as_rows(table_for(self, X)).n_rows, 1))
        for later in self._votes(X):
            score = later
        return score

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the contributions (1 + d, J) to the sums of votes; see `parts_of_vote`."""
        total = np.zeros((1 + as_rows(X).n_features, len(self.classes)))
        total[0] = self.bias
        for member, alpha in zip(self.models, self.alpha.tolist(), strict=True):
            total += alpha * parts_of_vote(member, X, self.classes)
        return total

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean importances of the base learners, weighted by abs(alpha)."""
        return self.mean_importances(np.abs(self.alpha), X)

    def predict(self, X: TableLike) -> Array:
        """Return the class with the largest sum of votes."""
        return self.labels_of(self.decision_function(X))

    def labels_of(self, score: FloatArray) -> Array:
        """Return the predicted classes for sums of votes."""
        return self.most_probable(softmax(score, 1.0))

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the softmax (n, J) of sums of votes divided by the temperature."""
        return self._shares(score, self.temperature)

    def staged_probabilities(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the probabilities of the first 1, 2, ... base learners."""
        scores = self.staged_decision_function(X)
        return (self._shares(each, self._temperature_after(n)) for n, each in enumerate(scores, 1))

    def without_temperature(self) -> Self:
        """Return the ensemble with the temperature 1."""
        return self if self.temperature == 1 else replace(self, temperature=1.0)

    def _shares(self, score: FloatArray, temperature: float) -> FloatArray:
        """Return the probabilities for a temperature; the predicted class has the largest."""
        plain = softmax(score, 1.0)
        if temperature == 1:
            return plain
        return settled(softmax(score, temperature), np.argmax(plain, axis=1))

    def _temperature_after(self, n: int) -> float:
        """Return the temperature of the first n base learners."""
        if self.temperature == 1 or n == len(self.alpha):
            return self.temperature
        return temperature_of_votes(self.alpha[:n], self.error[:n], len(self.classes))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the sums of votes (n, J) of the first 1, 2, ... base learners."""
        return (score.copy() for score in self._votes(X))

    @property
    def n_stages(self) -> int:
        """Number of base learners, at least 1."""
        return max(1, len(self.models))

    def proven(self) -> Exits | None:
        """Return early exits for rows whose class is final; None without base learners."""
        if not self.models:
            return None
        alpha = np.repeat(self.alpha[:, None], len(self.classes), axis=1)
        rest = rest_of(np.minimum(alpha, 0.0), np.maximum(alpha, 0.0), self.bias)
        # The softmax can add one more rounding error.
        return proven_exits(rest._replace(size=rest.size + 1))

    def first(self, n_stages: int) -> WeightedVote:
        """Return a model with only the first base learners."""
        return replace(
            self,
            models=self.models[:n_stages],
            alpha=self.alpha[:n_stages],
            temperature=self._temperature_after(n_stages),
        )

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the sums of votes of the first 0, 1, ... base learners, and their costs."""
        if not self.models:
            return Model.trajectory(self, X)
        votes = [score.copy() for score in self._votes(X)]
        start = np.broadcast_to(self.bias, votes[0].shape)
        return np.stack([start, *votes]), self.costs_by_then(X)

    def inquiry(self, settles: bool) -> MemberEvaluator:
        """Return an evaluator for feature acquisition that evaluates the base learners in turn."""
        return sum_of_votes(self, self.inquiries(settles), settles)

    def titles(self) -> list[str]:
        """Return the titles of the ensemble and of each base learner."""
        builder = self.settings.get("builder", "weighted vote")
        named = named_labels(self.classes)
        title = f"{builder}: {len(self.models)} base learners, classes {named}\nstopped: "
        return [
            title + self.stop_reason,
            *(f"base learner {t}, vote {alpha:.4f}:" for t, alpha in enumerate(self.alpha)),
        ]

    def _votes(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the sums of votes after each base learner; the same array is reused."""
        rows = MemberRows(self, X)
        n = as_rows(rows.input_table).n_rows
        score, every = np.tile(self.bias, (n, 1)), np.arange(n)
        for member, alpha in zip(self.models, self.alpha, strict=True):
            predicted = answers(member, rows(member), n, self.classes)
            score[every, predicted] += alpha
            yield score


def parts_of_vote(
    member: object, X: TableLike, classes: Array, voting: str = VOTES[0]
) -> FloatArray:
    """Return the contributions (1 + d, J) to the votes of a base learner for one row.

    `said_by` returns the votes. The contributions to averaged probabilities are exact. Other votes
    are divided among the features in proportion to the contributions to the decision value.
    """
    known = check_known(member, READING)
    assert known.classes is not None
    if voting == "soft" and isinstance(known, Averaged):
        return among(known.mean_parts(X), classes, known.classes)
    votes = said_by(known, X, classes, voting)[0, np.searchsorted(classes, known.classes)]
    return among(shared_out(votes, known.vote_parts(X)), classes, known.classes)


def chance(n_classes: int) -> float:
    """Return the error rate of random guessing."""
    return 1 - 1 / n_classes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bagging(Composite, Averaged):
    """An average of models fitted to different bootstrap samples; see `fit_bagging`.

    Attributes
    ----------
    models : tuple
        The base learners.
    classes : ndarray, shape (J,), or None
        The sorted class labels; None for regression.
    n_features : int
        Number of training features.
    feature_names : tuple of str or None
        Names of the training features, or None.
    settings : mapping
        The options of the fit.
    oob : OutOfBag
        Out-of-bag predictions of the training rows, from base learners not fitted to the row.
    voting : {"hard", "soft"}
        The votes that `predict_proba` averages: predicted classes ("hard") or probabilities
        ("soft"). Not used for regression.
    table : Table or None
        Type and categories of each training feature, and whether it had missing values; see
        `pboost.data.read.table`. None if all features were numeric without missing values.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the training rows, see :doc:`/how_to/error_bounds_and_prediction_sets`; None if
        unknown.
    """

    models: tuple[Any, ...] = stored.kept_as(BaseLearners())
    classes: Array | None = stored.classes(optional=True)
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    settings: Settings = stored.settings("builder")
    oob: OutOfBag = stored.part(OutOfBag)
    voting: Voting = stored.kept_as(Vote(), default=VOTES[0])
    table: Table | None = table_field()
    memo: dict[str, Any] = stored.memo()

    file_kind, file_stop = "bagging", "all models are there"
    file_order = ("oob_n_estimators", "oob_prediction")
    of_classes, of_numbers = "an ensemble", "bagged regressions have"

    def check_whole(self) -> None:
        """Check that the base learners and the out-of-bag record are compatible."""
        if not self.models:
            raise ValueError("models: expected at least one model, got none")
        check_members(self.models, self.classes, (self.n_features, self.feature_names))
        self.oob.check(self.classes)

    def __repr__(self) -> str:
        return f"<fit_bagging: {len(self.models)} base learners, {self.n_features} features>"

    def __len__(self) -> int:
        return len(self.models)

    def describe(self) -> str:
        """Return a summary of the ensemble."""
        fit, members = self.settings.get("fit", "models"), counted(len(self), "base learner")
        is_average = self.classes is not None and self.voting == "soft"
        lines = [
            headline(self, f"fit_bagging of {fit}: {members}"),
            *(["probabilities are averaged over the base learners"] if is_average else []),
            *of_bags(self.oob),
        ]
        return "\n".join(lines)

    def mean_parts(self, X: TableLike) -> FloatArray:
        """Return the contributions to the mean vote; see `parts_of_vote`."""
        return reduce(np.add, (self._said_parts(model, X) / len(self) for model in self.models))

    def _said_parts(self, model: object, X: TableLike) -> FloatArray:
        """Return the contributions to the vote of a base learner for one row."""
        if self.classes is not None:
            return parts_of_vote(model, X, self.classes, self.voting)
        known = check_known(model, READING)
        if known.classes is None:
            return known.contributions(X)
        # Average the class labels as numbers, because the ensemble is a regression model.
        return parts_of_vote(known, X, known.classes) @ known.classes.astype(np.float64)

    def mean(self, X: TableLike) -> FloatArray:
        """Return the mean votes (n, J) of the base learners, or the mean predictions (n,)."""
        rows, n = MemberRows(self, X), len(self.models)

        def member_answer(model: Any) -> FloatArray:
            return said_by(model, rows(model), self.classes, self.voting)

        total = member_answer(self.models[0])
        for model in self.models[1:]:
            with np.errstate(over="ignore", invalid="ignore"):
                total += member_answer(model)
        if np.isfinite(total).all():
            return total / n
        # The sum overflowed, but the mean can be finite.
        return reduce(np.add, (member_answer(model) / n for model in self.models))

    @property
    def n_stages(self) -> int:
        """Number of base learners."""
        return len(self)

    def proven(self) -> Exits:
        """Return early exits for rows whose class can no longer change."""
        return voting_exits(len(self), self.n_votes)

    def first(self, n_stages: int) -> Bagging:
        """Return a model with only the first base learners."""
        return replace(self, models=self.models[:n_stages])

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the means of the first 0, 1, ... base learners, and their costs."""
        answers = np.array([said_by(model, X, self.classes, self.voting) for model in self.models])
        return self.values_of_mean(means_by_then(answers)), self.costs_by_then(X)

    def inquiry(self, settles: bool) -> MemberEvaluator:
        """Return an evaluator for feature acquisition that evaluates the base learners in turn."""
        return mean_of(self, self.inquiries(settles), self.voting, settles)

    def parts(self) -> HeaderAndArrays:
        """Return the header fields and arrays to store; a regression model has no `voting`."""
        header, arrays = Composite.parts(self)
        if self.classes is None:
            arrays.pop("voting", None)
        return header, arrays
