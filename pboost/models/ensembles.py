"""Models that are made of other models, which may be objects of other packages."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.check_xy import plain_values
from pboost.data.read.convert import as_rows
from pboost.data.read.table import Table, united
from pboost.data.row_digest import Digest, merged
from pboost.models import stored
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
from pboost.models.evaluate.known_values import (
    MemberEvaluator,
    PartialEvaluator,
    RestEvaluator,
    mean_of,
    sum_of_votes,
)
from pboost.models.evaluate.new_rows import MemberRows, table_for
from pboost.models.linear import ProbitModel, probabilities
from pboost.models.probit_trees import ProbitTree
from pboost.models.shares import (
    among,
    costs_by_then,
    lead_of_second,
    mean_of_shares,
    means_by_then,
    shared_out,
)
from pboost.models.stored import (
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
from pboost.models.text import counted, headline, named_labels, of_bags
from pboost.values import Array, FloatArray, TableLike, as_generator, check_position

#: What is not known of members that are no models of this package.
READING = "which columns a {} reads"
#: Labels of the members of a one-versus-rest model.
REST_OR_CLASS = np.array([False, True])


def is_foreign(member: object) -> bool:
    """Return whether a member is no model of this package but an object with ``predict``."""
    return not isinstance(member, Model)


def check_known(member: object, what: str = "what evaluating a {} costs") -> Model:
    """Return a member that is a model of this package; of others this is not known."""
    if not isinstance(member, Model):
        raise NotImplementedError(f"model: {what.format(type(member).__name__)} is not known")
    return member


def answers(member: Any, X: TableLike, n: int, classes: Array) -> NDArray[np.intp]:
    """Return the positions among `classes` of what a classifier answers to the n rows X."""
    predicted = np.asarray(member.predict(X) if is_foreign(member) else predict(member, X))
    if predicted.shape != (n,):
        raise ValueError(f"base_learner: expected {n} predictions, got shape {predicted.shape}")
    if predicted.dtype.kind == "O":
        predicted = plain_values(predicted, "base_learner: expected predictions")
    codes = np.searchsorted(classes, predicted).clip(0, len(classes) - 1)
    wrong = np.flatnonzero(classes[codes] != predicted)
    if len(wrong):
        raise ValueError(
            f"base_learner: expected predictions among the labels {classes.tolist()}, got "
            f"{predicted[wrong[0]].item()!r}"
        )
    return codes


def said_by(model: Any, X: TableLike, classes: Array | None, voting: str) -> FloatArray:
    """Return what a member says (n, J) of each row, or its number.

    Its probabilities, where these are asked for and it has any; else 1 for its answer.
    """
    if classes is not None and voting == "soft" and not is_foreign(model):
        try:
            share = predict_proba(model, X)
            _codes(classes, model.classes)
            return among(share, classes, model.classes)
        except NotImplementedError:  # of a loss without probabilities
            pass
    predicted = np.asarray(model.predict(X) if is_foreign(model) else predict(model, X))
    if classes is None:
        return predicted.astype(np.float64)
    code = _codes(classes, predicted)
    return (code[:, None] == np.arange(len(classes))).astype(np.float64)


def _codes(classes: Array, predicted: Array) -> NDArray[np.intp]:
    """Return the positions of labels among all."""
    code = np.minimum(np.searchsorted(classes, predicted), len(classes) - 1)
    if not (classes[code] == predicted).all():
        raise ValueError(f"fit: its models must predict the labels {classes.tolist()!r}")
    return code


#: The number of columns, and their names, if they have any.
Columns: TypeAlias = tuple[int, tuple[str, ...] | None]


class Composite(Model):
    """Base of models that are made of other models, which are stored with them.

    ``model[i]`` is member i.
    """

    __slots__ = ()

    no_graph = "whose members, model.models, are models by themselves"
    #: The members.
    models: tuple[Any, ...]

    def __getitem__(self, member: int | slice) -> Any:
        if isinstance(member, slice):
            raise TypeError(
                f"model: a {type(self).__name__} cannot be cut, since what it keeps of its fit is "
                "of all its members; model.models is a tuple of them, which can"
            )
        return self.models[check_position("member", member, len(self.models))]

    no_functions = "is no linear function; see coefficients(model[i]) of its members"

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return what evaluating each row costs, the sum over the members."""
        rows = MemberRows(self, X)
        cost = np.zeros(as_rows(rows.input_table).n_rows)
        for member in self.models:
            cost += prediction_cost(check_known(member), rows(member), unit)
        return cost

    @property
    def row_table(self) -> Table | None:
        """The table by whose numbers all members can tell their categories apart."""
        known = [member for member in self.models if not is_foreign(member)]
        return united([member.row_table for member in known], self.n_features)

    @property
    def mean_prediction_cost(self) -> float:
        """Mean number of comparisons of the rows that each member was fitted to, added up."""
        return float(sum(check_known(member).mean_prediction_cost for member in self.models))

    def digests(self) -> list[Digest]:
        """Return the digest of the rows of all members, which are of one table."""
        known = [digest for m in self.models if isinstance(m, Model) for digest in m.digests()]
        joined = merged(self.seen, *known)
        return [] if joined is None else [joined]

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield which columns are read of each row by the first 1, 2, ... members."""
        rows = MemberRows(self, X)
        each = (deque(check_known(m).reads(rows(m)), 1)[0] for m in self.models)
        return accumulate(each, np.logical_or)

    def costs_by_then(self, X: TableLike) -> FloatArray:
        """Return what the first 0, 1, ... members cost, (T + 1, n)."""
        return costs_by_then(np.array([prediction_cost(check_known(m), X) for m in self.models]))

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean of those of the members."""
        return self.mean_importances(np.ones(len(self.models)), X)

    def mean_importances(self, weight: FloatArray, X: TableLike | None) -> FloatArray:
        """Return the weighted mean of those of the members."""
        each = (check_known(member, READING).importances(X) for member in self.models)
        return mean_of_shares(self.n_features, zip(weight.tolist(), each, strict=True))

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether no member is known to refuse rows with missing values."""
        return all(is_foreign(member) or member.takes_missing for member in self.models)

    def inquiries(self, settles: bool) -> list[PartialEvaluator]:
        """Return what the members ask of a row."""
        return [check_known(member, READING).inquiry(settles) for member in self.models]

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all members together."""
        return sum(check_known(member).n_nodes for member in self.models)


class Ensemble(Composite):
    """Base of models of J >= 2 classes; what the functions of a model ask of them.

    The label predicted is always the first of those of the largest probability.
    """

    __slots__ = ()

    #: Label values, sorted, (J,).
    classes: Array

    @property
    def n_votes(self) -> int:
        """Number of decision values of a row, one for each label also where there are two."""
        return len(self.classes)

    def __repr__(self) -> str:
        builder = self.settings.get("builder", type(self).__name__)
        return f"<{builder}: {len(self.models)} models, {len(self.classes)} classes>"

    @property
    def feature_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the columns that the members were trained on, where they have any."""
        return next((member.feature_names for member in self._known()), None)

    @property
    def table(self) -> Table | None:  # type: ignore[override]
        """What the columns were that the members were trained on."""
        return next((member.table for member in self._known()), None)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """Number of columns that the members were trained on; 0 where it is not known."""
        return next((member.n_features for member in self._known()), 0)

    def _known(self) -> Iterator[Model]:
        return (member for member in self.models if not is_foreign(member))

    def predict(self, X: TableLike) -> Array:
        """Return the label of largest probability of each row."""
        return self.most_probable(self.predict_proba(X))

    def labels_of(self, score: FloatArray) -> Array:
        """Return the label of largest probability of each row, given its decision values."""
        return self.most_probable(self.probabilities(score))

    def most_probable(self, probabilities: FloatArray) -> Array:
        """Return the label of largest probability, the first of several."""
        return self.classes[np.argmax(probabilities, axis=1)]

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return what evaluating each row costs, in "nodes"."""
        if unit != "nodes":
            raise NotImplementedError('unit: expected "nodes" for a model of several members')
        return Composite.prediction_cost(self, X, "nodes")

    def titles(self) -> list[str]:
        """Return what is said of the whole, and then of each member."""
        raise NotImplementedError

    def describe(self) -> str:
        """Return the model as text: what is said of the whole, then each member, indented."""
        first_title, *titles = self.titles()
        lines = [first_title]
        for title, member in zip(titles, self.models, strict=True):
            text = repr(member) if is_foreign(member) else describe(member)
            lines += [title, *(f"  {line}" for line in text.splitlines())]
        return "\n".join(lines)


def check_members(
    models: tuple[Any, ...], classes: Array | None, columns: Columns | None = None
) -> None:
    """Raise ValueError unless the members of a model agree on columns and labels.

    `classes` of the whole, or None of a regression; `columns`: its number of columns and their
    names, where it says them. Of objects that are no models of this package nothing is known.
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
                f"models: expected models of the same columns, got {_columns(columns)}, and "
                f"{_columns(member_columns)} of models[{k}]"
            )
        if classes is None:
            agree = member.classes is None or member.classes.dtype.kind in "biuf"
        else:
            # A member need not know every class.
            agree = member.classes is not None and bool(
                (member.classes.dtype.kind == "U") == (classes.dtype.kind == "U")
                and np.isin(member.classes, classes).all()
            )
        if not agree:
            member_labels = None if member.classes is None else member.classes.tolist()
            expected = "numbers" if classes is None else f"labels among {classes.tolist()}"
            raise ValueError(
                f"models: expected models that predict {expected}, got labels {member_labels} of "
                f"models[{k}]"
            )


def _columns(columns: Columns) -> str:
    n, names = columns
    return f"{n} columns" + ("" if names is None else f" named {', '.join(map(repr, names))}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneVsRest(Ensemble):
    """One two-class model per class, each telling its class from the rest.

    Attributes
    ----------
    models : tuple
        Two-class models in the order of `classes`, of the labels False and True.
    classes : ndarray, shape (J,)
        The label values, sorted.
    settings : mapping
        The options it was fitted with; those of the models are with them.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the rows that it was fitted to, :doc:`/how_to/error_bounds_and_prediction_sets`; None where it
        is not known.
    """

    models: tuple[Any, ...] = stored.kept_as(Models())
    classes: Array = stored.classes()
    settings: Settings = stored.settings("builder")

    file_kind, file_stop = "one-vs-rest", "all models are there"

    def check_whole(self) -> None:
        """Check that there is a member for each label."""
        if not len(self.models) == len(self.classes) >= 2:
            raise ValueError(
                f"models: expected one per label, at least two, got {len(self.models)} models and "
                f"{len(self.classes)} labels"
            )
        for label, model in zip(self.classes.tolist(), self.models, strict=True):
            if not np.array_equal(getattr(model, "classes", ()), REST_OR_CLASS):
                raise ValueError(
                    f"models: expected a two-class model of labels False and True for {label!r}, "
                    f"got {model!r}"
                )
        check_members(self.models, REST_OR_CLASS)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return the decision values of the models, (n, J)."""
        rows = MemberRows(self, X)
        return leads(decision_function(model, rows(model)) for model in self.models)

    def contributions(self, X: TableLike) -> FloatArray:
        """Return the parts (1 + d, J) of the decision values of the models."""
        return leads(check_known(model, READING).contributions(X) for model in self.models)

    def vote_parts(self, X: TableLike) -> FloatArray:
        """Return those of the models."""
        return leads(check_known(model, READING).vote_parts(X) for model in self.models)

    def predict_proba(self, X: TableLike) -> FloatArray:
        """Return the probabilities of the models, divided by their sum, (n, J)."""
        if all(isinstance(model, ProbitTree | ProbitModel) for model in self.models):
            # Probabilities of 1 are soon equal where the functions are not.
            return probabilities(self.decision_function(X))
        rows = MemberRows(self, X)
        shares = np.column_stack([predict_proba(m, rows(m))[:, 1] for m in self.models])
        none = np.flatnonzero(~shares.any(axis=1))
        if len(none):
            # All are below the least positive number: the largest stands out from the others.
            X = rows.input_table
            score = self.decision_function(X if len(none) == len(shares) else as_rows(X).take(none))
            shares[none] = score == score.max(axis=1, keepdims=True)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities (n, J) that go with decision values, as in `predict_proba`."""
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
        """Return the decision values of the models by a route that is not the hard one, (n, J)."""
        route = route._replace(rng=as_generator(route.rng))
        return leads(score_by_route(model, X, route) for model in self.models)

    def inquiry(self, settles: bool) -> RestEvaluator:
        """Return what the models ask of a row, one after the other."""
        return RestEvaluator(self, self.inquiries(settles), self.classes)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values (n, J) at the stages of the models; those done keep theirs."""
        stages = [staged_decision_function(model, X) for model in self.models]
        latest = list(self.decision_function(X).T)  # of a model that has no stage, either

        def all_stages() -> Iterator[FloatArray]:
            for scores in zip_longest(*stages):
                latest[:] = [a if b is None else b for a, b in zip(latest, scores, strict=True)]
                yield leads(latest)

        return all_stages()

    def titles(self) -> list[str]:
        """Return what is said of the whole, and then of each member."""
        title = f"fit_one_vs_rest: {len(self.models)} models, one per label"
        return [title, *(f"{label!r} against the rest:" for label in self.classes.tolist())]


def leads(values: Iterable[FloatArray]) -> FloatArray:
    """Return values of two classes as columns; an ensemble of two classes has one for each."""
    return np.column_stack([lead_of_second(value) if value.ndim > 1 else value for value in values])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedVote(Ensemble):
    """Classifiers of J classes that vote for their answers, each with its own weight.

    Attributes
    ----------
    models : tuple
        The members: models of this package, or objects with ``predict``.
    alpha : ndarray of float64, shape (len(models),)
        Weight of each vote.
    classes : ndarray, shape (J,)
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
    seen : ndarray of uint64, shape (k,), or None
        Digest of the rows that it was fitted to, :doc:`/how_to/error_bounds_and_prediction_sets`; None where it
        is not known.
    """

    models: tuple[Any, ...] = stored.kept_as(Models())
    alpha: FloatArray = stored.column(np.float64, lambda model: (len(model.models),))
    classes: Array = stored.classes()
    bias: FloatArray = stored.column(np.float64, lambda model: (len(model.classes),))
    settings: Settings = stored.settings("builder")
    error: FloatArray = stored.column(np.float64, ndim=1, positive=True)
    stop_reason: str = stored.text()

    file_kind = "weighted-vote"
    file_order = ("classes", "alpha", "bias", "error")

    def check_whole(self) -> None:
        """Check that votes have finite sums, and that the members go together."""
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
        """Return the parts (1 + d, J) of the sums of the votes, see `parts_of_vote`."""
        total = np.zeros((1 + as_rows(X).n_features, len(self.classes)))
        total[0] = self.bias
        for member, alpha in zip(self.models, self.alpha.tolist(), strict=True):
            total += alpha * parts_of_vote(member, X, self.classes)
        return total

    def importances(self, X: TableLike | None) -> FloatArray:
        """Return the mean of those of the members, by the sizes of their votes."""
        return self.mean_importances(np.abs(self.alpha), X)

    def probabilities(self, score: FloatArray) -> FloatArray:
        """Return the probabilities (n, J) that go with sums of votes: their softmax."""
        with np.errstate(over="ignore"):  # minus infinity is right
            odds = np.exp(score - score.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the sums of the votes (n, J) of the first 1, 2, ... members."""
        return (score.copy() for score in self._votes(X))

    @property
    def n_stages(self) -> int:
        """Number of members, and 1 where there is none."""
        return max(1, len(self.models))

    def proven(self) -> Exits | None:
        """Return when labels cannot change any more at the members; None if there are none."""
        if not self.models:
            return None
        alpha = np.repeat(self.alpha[:, None], len(self.classes), axis=1)
        rest = rest_of(np.minimum(alpha, 0.0), np.maximum(alpha, 0.0), self.bias)
        # The label is that of the largest softmax, which has rounding errors of its own.
        return proven_exits(rest._replace(size=rest.size + 1))

    def first(self, n_stages: int) -> WeightedVote:
        """Return the vote of the first members."""
        return replace(self, models=self.models[:n_stages], alpha=self.alpha[:n_stages])

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the votes of the first 0, 1, ... members, and what they cost."""
        if not self.models:
            return Model.trajectory(self, X)
        votes = [score.copy() for score in self._votes(X)]
        start = np.broadcast_to(self.bias, votes[0].shape)
        return np.stack([start, *votes]), self.costs_by_then(X)

    def inquiry(self, settles: bool) -> MemberEvaluator:
        """Return what the members ask of a row, one after the other."""
        return sum_of_votes(self, self.inquiries(settles), settles)

    def titles(self) -> list[str]:
        """Return what is said of the whole, and then of each member."""
        builder = self.settings.get("builder", "weighted vote")
        named = named_labels(self.classes)
        title = f"{builder}: {len(self.models)} members, labels {named}\nstopped: "
        return [
            title + self.stop_reason,
            *(f"member {t}, vote {alpha:.4f}:" for t, alpha in enumerate(self.alpha)),
        ]

    def _votes(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield one array of sums of votes after each member, the same each time."""
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
    """Return the parts (1 + d, J) of what a member says of one row, see `said_by`.

    Those of means of shares; else as `shared_out` says, by the parts of its values.
    """
    known = check_known(member, READING)
    assert known.classes is not None
    if voting == "soft" and isinstance(known, Averaged):
        return among(known.mean_parts(X), classes, known.classes)
    votes = said_by(known, X, classes, voting)[0, np.searchsorted(classes, known.classes)]
    return among(shared_out(votes, known.vote_parts(X)), classes, known.classes)


def chance(n_classes: int) -> float:
    """Return the error of guessing."""
    return 1 - 1 / n_classes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bagging(Composite, Averaged):
    """Models fitted to different bags of rows, and averaged; made by `fit_bagging`.

    Attributes
    ----------
    models : tuple
        The members.
    classes : ndarray, shape (J,), or None
        The label values, sorted; None of a regression.
    n_features : int
        Number of columns the members were trained on.
    feature_names : tuple of str or None
        Their names, where the training data had names.
    settings : mapping
        The options of the fit.
    oob : OutOfBag
        The training record: what members say of rows that they have not seen.
    voting : {"hard", "soft"}
        What `predict_proba` averages over the members: the labels they predict, or their
        probabilities. Of a regression nothing.
    table : Table or None
        What the columns were in training: levels of categories, and which had missing values; see
        `pboost.data.read.table`. None where all were numbers and none was missing.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the rows that it was fitted to, :doc:`/how_to/error_bounds_and_prediction_sets`; None where it
        is not known.
    """

    models: tuple[Any, ...] = stored.kept_as(Models())
    classes: Array | None = stored.classes(optional=True)
    n_features: int = stored.n_features()
    feature_names: tuple[str, ...] | None = stored.names()
    settings: Settings = stored.settings("builder")
    oob: OutOfBag = stored.part(OutOfBag)
    voting: Voting = stored.kept_as(Vote(), default=VOTES[0])
    table: Table | None = table_field()

    file_kind, file_stop = "bagging", "all models are there"
    file_order = ("oob_n_estimators", "oob_prediction")
    of_classes, of_numbers = "an ensemble", "bagged regressions have"

    def check_whole(self) -> None:
        """Check that the members go together, and the record."""
        if not self.models:
            raise ValueError("models: expected one or more, got none")
        check_members(self.models, self.classes, (self.n_features, self.feature_names))
        self.oob.check(self.classes)

    def __repr__(self) -> str:
        return f"<fit_bagging: {len(self.models)} members, {self.n_features} features>"

    def __len__(self) -> int:
        return len(self.models)

    def describe(self) -> str:
        """Return a summary of the ensemble."""
        fit, members = self.settings.get("fit", "models"), counted(len(self), "member")
        is_average = self.classes is not None and self.voting == "soft"
        lines = [
            headline(self, f"fit_bagging of {fit}: {members}"),
            *(["probabilities are the average of those of the members"] if is_average else []),
            *of_bags(self.oob),
        ]
        return "\n".join(lines)

    def mean_parts(self, X: TableLike) -> FloatArray:
        """Return the parts of the mean of what the members say, see `parts_of_vote`."""
        return reduce(np.add, (self._said_parts(model, X) / len(self) for model in self.models))

    def _said_parts(self, model: object, X: TableLike) -> FloatArray:
        """Return the parts of what a member says of one row."""
        if self.classes is not None:
            return parts_of_vote(model, X, self.classes, self.voting)
        known = check_known(model, READING)
        if known.classes is None:
            return known.contributions(X)
        # Its labels are numbers.
        return parts_of_vote(known, X, known.classes) @ known.classes.astype(np.float64)

    def mean(self, X: TableLike) -> FloatArray:
        """Return the means (n, J) of what the members say of the labels, or of their numbers."""
        rows, n = MemberRows(self, X), len(self.models)

        def member_answer(model: Any) -> FloatArray:
            return said_by(model, rows(model), self.classes, self.voting)

        total = member_answer(self.models[0])
        for model in self.models[1:]:
            with np.errstate(over="ignore", invalid="ignore"):
                total += member_answer(model)
        if np.isfinite(total).all():
            return total / n
        # The mean is a number even where the sum is none.
        return reduce(np.add, (member_answer(model) / n for model in self.models))

    @property
    def n_stages(self) -> int:
        """Number of members."""
        return len(self)

    def proven(self) -> Exits:
        """Return when labels cannot change any more at the members."""
        return voting_exits(len(self), self.n_votes)

    def first(self, n_stages: int) -> Bagging:
        """Return the mean of the first members."""
        return replace(self, models=self.models[:n_stages])

    def trajectory(self, X: TableLike) -> tuple[FloatArray, FloatArray]:
        """Return the means of what the first 0, 1, ... members say, and what they cost."""
        answers = np.array([said_by(model, X, self.classes, self.voting) for model in self.models])
        return self.values_of_mean(means_by_then(answers)), self.costs_by_then(X)

    def inquiry(self, settles: bool) -> MemberEvaluator:
        """Return what the members ask of a row, one after the other."""
        return mean_of(self, self.inquiries(settles), self.voting, settles)

    def parts(self) -> HeaderAndArrays:
        """Return the fields of a file's header and its arrays; numbers are averaged in any case."""
        header, arrays = Composite.parts(self)
        if self.classes is None:
            arrays.pop("voting", None)
        return header, arrays
