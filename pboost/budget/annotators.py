"""Class labels from annotators with known error rates and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pboost.budget.sessions import (
    BUDGET,
    AcquiredValue,
    AcquisitionError,
    Query,
    Session,
    called,
    plain,
)
from pboost.data.targets import IMPURITIES, ClassCriterion, class_criteria
from pboost.values import FloatArray, check_choice, check_integer, check_number, freeze, shown

#: Number of counted answers that represents a known error rate.
CERTAIN = math.inf
#: Class probabilities before any answer.
Prior: TypeAlias = Sequence[float] | Mapping[Any, float] | ArrayLike | None


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorModel:
    """Response counts of an annotator for rows of each class, see `fit_annotators`.

    Attributes
    ----------
    classes : tuple of length J >= 2
        The classes.
    answers : tuple of length K >= 2
        The possible responses.
    counts : ndarray of float64, shape (J, K)
        Number of responses k for rows of class j.
    max_count : float
        Maximum total weight of the counts of a class. A new response for a row has weight 1.
    """

    classes: tuple[object, ...]
    answers: tuple[object, ...]
    counts: FloatArray
    max_count: float = math.inf

    def __post_init__(self) -> None:
        for name in ("classes", "answers"):
            values = tuple(plain(value) for value in getattr(self, name))
            if len(values) < 2 or len(set(values)) < len(values):
                raise ValueError(
                    f"{name}: expected two or more distinct values, got {shown(values)}"
                )
            object.__setattr__(self, name, values)
        counts = np.asarray(self.counts, dtype=np.float64)
        shape = (len(self.classes), len(self.answers))
        if counts.shape != shape:
            raise ValueError(
                f"counts: expected shape {shape} (classes, answers), got {counts.shape}"
            )
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise ValueError("counts: expected finite numbers >= 0")
        max_count = self.max_count
        if max_count != math.inf:
            max_count = check_number("max_count", max_count, min_value=0.0, open_min=True)
        object.__setattr__(self, "counts", freeze(counts))
        object.__setattr__(self, "max_count", float(max_count))

    @property
    def probability(self) -> FloatArray:
        """Return response probabilities (J, K), estimated as (1 + count) / (total + K)."""
        urn = self.counts + 1.0
        estimate: FloatArray = urn / urn.sum(axis=1, keepdims=True)
        return estimate


def fit_annotators(
    answers: Iterable[Any],
    y: Iterable[Any],
    *,
    classes: Sequence[object] | None = None,
    init: AnnotatorModel | None = None,
    max_count: float | None = None,
) -> AnnotatorModel:
    """Fit an error model of an annotator to its responses for rows of known class.

    Parameters
    ----------
    answers : iterable of length n
        The responses of the annotator: classes, or other values such as None for "I do not know".
    y : iterable of length n
        The classes of the rows. A row with several responses is repeated.
    classes : sequence of length J, optional
        All classes. By default, the classes of `init`, else the sorted distinct values of `y`.
    init : AnnotatorModel, optional
        A model whose counts are added.
    max_count : float > 0, optional
        Maximum total weight of the counts of a class. A new response for a row has weight 1. With a
        small value, an annotator is expected to repeat its response for a row, right or wrong, so
        that repeated queries provide little information. By default, the value of `init`, else no
        limit.

    Returns
    -------
    AnnotatorModel
        A model that can be passed to `query_annotators`.

    Raises
    ------
    ValueError, TypeError
        If lengths differ, a class is not in `classes`, or there are fewer than two classes.

    Examples
    --------
    >>> import pboost as pb
    >>> model = pb.acquisition.fit_annotators(list("nnyynyy"), list("nnnyyyy"))
    >>> model.classes, model.counts.tolist()
    (('n', 'y'), [[2.0, 1.0], [1.0, 3.0]])
    >>> model.probability[0].tolist()
    [0.6, 0.4]
    """
    answered, known = [plain(value) for value in answers], [plain(value) for value in y]
    if len(answered) != len(known):
        raise ValueError(
            f"answers: expected the same length as y, {len(known)}, got {len(answered)}"
        )
    if init is not None and not isinstance(init, AnnotatorModel):
        raise TypeError(f"init: expected AnnotatorModel or None, got {shown(init)}")
    if classes is None:
        classes = sorted(set(known)) if init is None else init.classes
    classes = [plain(label) for label in classes]
    if init is not None and tuple(classes) != init.classes:
        raise ValueError(
            f"classes: expected the classes of init, {init.classes}, got {shown(classes)}"
        )
    if strange := [label for label in known if label not in classes]:
        raise ValueError(f"y: expected classes in {shown(classes)}, got {shown(strange[0])}")
    columns = list(dict.fromkeys([*(init.answers if init else classes), *answered]))
    counts = np.zeros((len(classes), len(columns)))
    if init is not None:
        counts[:, : len(init.answers)] = init.counts
    for answer, label in zip(answered, known, strict=True):
        counts[classes.index(label), columns.index(answer)] += 1.0
    if max_count is None:
        max_count = math.inf if init is None else init.max_count
    return AnnotatorModel(tuple(classes), tuple(columns), counts, max_count)


#: Errors of an annotator: a known error rate or a fitted model.
Errors: TypeAlias = float | AnnotatorModel


class AnswerLaw(NamedTuple):
    """Distribution of an annotator's next response, given the class and previous responses.

    This is an urn model with one urn per class. An urn starts with one ball per possible response
    and one per counted response. Each new response adds a ball.

    Attributes
    ----------
    answers : tuple of length K
        The possible responses.
    probability : ndarray of float64, shape (J, K)
        Probabilities of the first response.
    max_count : ndarray of float64, shape (J,)
        Number of responses that the probabilities are based on; infinite for known probabilities.
    """

    answers: tuple[object, ...]
    probability: FloatArray
    max_count: FloatArray

    def next(self, counts: FloatArray) -> FloatArray:
        """Return the probabilities (J, K) of the next response, given response counts (K,)."""
        total = counts.sum()
        if total == 0:
            return self.probability
        # Weight of the prior probabilities; it is 1 for a known error rate.
        share = 1.0 / (1.0 + total / self.max_count[:, None])
        mixture: FloatArray = share * self.probability + (1.0 - share) * (counts / total)
        return mixture


def law_of(name: str, errors: object, classes: tuple[object, ...]) -> AnswerLaw:
    """Return the response distribution of an annotator model or of a known error rate."""
    J = len(classes)
    if isinstance(errors, AnnotatorModel):
        if errors.classes != classes:
            raise ValueError(
                f"errors[{name!r}]: expected counts for the classes {classes}, got {errors.classes}"
            )
        max_count = np.minimum((errors.counts + 1.0).sum(axis=1), errors.max_count)
        return AnswerLaw(errors.answers, errors.probability, max_count)
    rate = check_number(f"errors[{name!r}]", errors, min_value=0.0, max_value=1.0)
    table = np.full((J, J), rate / (J - 1))
    np.fill_diagonal(table, 1.0 - rate)
    return AnswerLaw(classes, table, np.full(J, CERTAIN))


# Choice of the next annotator

#: Differences below this are rounding errors.
ROUNDING = 1e-12
#: Reasons to stop, other than the budget.
SURE, OFTEN, VAIN = (
    "the expected error is small enough",
    "every annotator was queried n_repeats times",
    "no answer is expected to lower the criterion",
)


@dataclass(frozen=True, slots=True)
class AnnotationResult:
    """Class of a row determined by annotators, see `query_annotators`.

    Attributes
    ----------
    label : object
        The most probable class, the first one if there are ties.
    classes : tuple of length J
        All classes.
    probability : ndarray of float64, shape (J,)
        Class probabilities, given the responses.
    acquired : tuple of AcquiredValue
        The responses, in order.
    cost : float
        The total cost of the responses.
    reason : str
        Why no more responses were acquired.
    """

    label: object
    classes: tuple[object, ...]
    probability: FloatArray
    acquired: tuple[AcquiredValue, ...]
    cost: float
    reason: str

    @property
    def error(self) -> float:
        """Return the probability that the class is wrong."""
        return float(1.0 - self.probability.max())

    @property
    def calls(self) -> int:
        """Return the number of queries."""
        return sum(entry.calls for entry in self.acquired)


class OracleOptions(NamedTuple):
    """The options of `query_annotators`."""

    classes: Sequence[object] | None = None
    prior: Prior = None
    query_costs: float | Mapping[str, float] | None = None
    budget: float | None = None
    max_error: float | None = None
    n_repeats: int | Mapping[str, int] | None = None
    criterion: ClassCriterion = "entropy"


class OracleCase:
    """Annotators with their error models and options, shared by all rows."""

    def __init__(
        self, names: Sequence[str] | None, errors: Mapping[str, Errors], options: OracleOptions
    ) -> None:
        errors = _by_name("errors", errors, names)
        if not errors:
            raise ValueError("errors: expected at least one annotator, got none")
        self.names = tuple(errors if names is None else names)
        self.classes = _labels(options.classes, errors)
        self.laws = {name: law_of(name, errors[name], self.classes) for name in self.names}
        self.prior = _prior(options.prior, self.classes)
        self.query_costs = {
            name: check_number(f"query_costs[{name!r}]", cost, min_value=0.0, open_min=True)
            for name, cost in self._of_each("query_costs", options.query_costs, 1.0).items()
        }
        self.n_repeats = {
            name: math.inf
            if limit is None
            else check_integer(f"n_repeats[{name!r}]", limit, min_value=1)
            for name, limit in self._of_each("n_repeats", options.n_repeats, None).items()
        }
        budget, max_error = options.budget, options.max_error
        self.budget = math.inf if budget is None else check_number("budget", budget, min_value=0.0)
        self.max_error = (
            0.0
            if max_error is None
            else check_number("max_error", max_error, min_value=0.0, max_value=1)
        )
        if self.budget == math.inf and math.inf in self.n_repeats.values():
            raise ValueError(
                "budget: expected a number unless n_repeats limits each annotator, got None; pass "
                "budget or n_repeats"
            )
        check_choice("criterion", options.criterion, class_criteria(len(self.classes)))
        self.criterion = IMPURITIES[options.criterion]

    def _of_each(self, option: str, value: object, default: object) -> dict[str, Any]:
        """Return a mapping of annotators to the values of an option."""
        if isinstance(value, Mapping):
            return _by_name(option, value, self.names)
        return dict.fromkeys(self.names, default if value is None else value)

    def decrease(self, probability: FloatArray, law: AnswerLaw, counts: FloatArray) -> float:
        """Return the expected decrease of the criterion by one more response."""
        joint = (probability[:, None] * law.next(counts)).T
        mass = joint.sum(axis=1)
        joint, mass = joint[mass > 0], mass[mass > 0]
        after = self.criterion(joint / mass[:, None])
        return float(self.criterion(probability[None])[0] - mass @ after)


class OracleInquiry:
    """Responses for a row and, at the end, the decision."""

    def __init__(self, case: OracleCase, prior: object = None) -> None:
        self.case = case
        start = case.prior if prior is None else _prior(prior, case.classes)
        with np.errstate(divide="ignore"):
            self._log = np.log(start)
        self.answer_counts = {name: np.zeros(len(law.answers)) for name, law in case.laws.items()}
        self.acquired: list[AcquiredValue] = []
        self.spent = 0.0
        self.decision: AnnotationResult | None = None

    @property
    def probability(self) -> FloatArray:
        """Return the class probabilities, given the responses."""
        share: FloatArray = np.exp(self._log - self._log.max())
        return share / share.sum()

    def wants(self) -> str | None:
        """Return the annotator to query next, or None if the row is decided."""
        case, now = self.case, self.probability
        reason = SURE if 1.0 - now.max() <= case.max_error + ROUNDING else ""
        if not reason:
            open_ = [n for n in case.names if self.answer_counts[n].sum() < case.n_repeats[n]]
            paid = [n for n in open_ if self.spent + case.query_costs[n] <= case.budget]
            lowers = {n: case.decrease(now, case.laws[n], self.answer_counts[n]) for n in paid}
            useful = [n for n in paid if lowers[n] > ROUNDING]
            if useful:
                return max(useful, key=lambda n: lowers[n] / case.query_costs[n])
            # If unaffordable annotators remain, the budget is the reason.
            reason = OFTEN if not open_ else BUDGET if len(paid) < len(open_) else VAIN
        label = case.classes[int(now.argmax())]
        self.decision = AnnotationResult(
            label, case.classes, now, tuple(self.acquired), self.spent, reason
        )
        return None

    def tell(self, name: str, answer: object) -> None:
        """Add a response; raise AcquisitionError if it is invalid."""
        law, acquired = self.case.laws[name], tuple(self.acquired)
        answer = plain(answer)
        if not isinstance(answer, Hashable) or answer not in law.answers:
            message = (
                f"{name!r}: expected an answer among {shown(law.answers)}, got {shown(answer)}"
            )
            raise AcquisitionError(message, name, acquired)
        k, counts = law.answers.index(answer), self.answer_counts[name]
        with np.errstate(divide="ignore"):
            after = self._log + np.log(law.next(counts)[:, k])
        if after.max() == -math.inf:
            message = (
                f"{name!r}: expected an answer that is possible for some class, got {answer!r}, "
                "which has probability 0 for every class"
            )
            raise AcquisitionError(message, name, acquired)
        # The normalization prevents underflow after many answers.
        self._log = after - after.max()
        counts[k] += 1.0
        cost = self.case.query_costs[name]
        self.spent += cost
        self.acquired.append(AcquiredValue(name, answer, cost))


class AnnotationSession(Session[OracleInquiry, AnnotationResult]):
    """Annotation of many rows at the same time, so that annotators can respond in batches.

    Use `annotation_session` to create a session. ``session.ask()`` returns queries, and
    ``session.tell(query, answer)`` sets their responses in any order. ``session[i]`` is the result
    for row i, or None while row i is undecided. ``len(session)`` is the number of rows.

    Attributes
    ----------
    is_done : bool
        Whether all rows are decided.
    """

    def __init__(self, case: OracleCase) -> None:
        super().__init__()
        self._case = case

    def add(self, prior: Prior = None) -> int:
        """Add a row and return its index.

        Parameters
        ----------
        prior : sequence of float, or mapping, optional
            Class probabilities of the row before any response. By default, the prior of the
            session.
        """
        return self._join(OracleInquiry(self._case, prior))

    def _go_on(self, row: int) -> None:
        """Add the next query for a row."""
        name = self._rows[row].wants()
        if name is not None:
            self._put(Query(row, name, self._case.query_costs[name]))


def query_annotators(
    annotators: Mapping[str, Callable[[], object]],
    errors: Mapping[str, Errors],
    *,
    classes: Sequence[object] | None = None,
    prior: Prior = None,
    query_costs: float | Mapping[str, float] | None = None,
    budget: float | None = None,
    max_error: float | None = None,
    n_repeats: int | Mapping[str, int] | None = None,
    criterion: ClassCriterion = "entropy",
) -> AnnotationResult:
    """Determine the class of a row from the responses of annotators with known errors and costs.

    The next query is always the query with the largest expected decrease of the criterion per cost.
    An annotator can be queried more than once.

    Parameters
    ----------
    annotators : mapping of names to callables
        Annotators, such as people or diagnostic tests. Each is a function without arguments that
        returns a response for the row. It is called once per query.
    errors : mapping of names to float or AnnotatorModel
        Errors of each annotator: the probability of a wrong response, from 0 to 1, or a model
        fitted by `fit_annotators`. With a probability, all wrong classes are equally likely.
    classes : sequence of length J, optional
        The classes. By default, the classes of the annotator models.
    prior : sequence of float, shape (J,), or mapping of classes to float, optional
        Class probabilities before any response, such as a row of `predict_proba`. By default, all
        classes are equally probable.
    query_costs : float, or mapping of names to float, optional
        Cost of a response, above 0: one value for all annotators, or one per annotator. By default
        1.
    budget : float, optional
        Maximum total cost.
    max_error : float, optional
        Stop as soon as the probability that the class is wrong is at most this value.
    n_repeats : int, or mapping of names to int, optional
        Maximum number of queries for each annotator. By default, only the budget limits it.
    criterion : {"entropy", "gini", "error", "kearns_mansour"}
        The function of the class probabilities that queries minimize. "kearns_mansour" requires two
        classes. "error" stops if no single response lowers the expected error, although several
        responses together often would.

    Returns
    -------
    AnnotationResult
        Class, class probabilities, and the acquired responses.

    Raises
    ------
    AcquisitionError
        If a function raises an error or returns a response that is not possible. The attribute
        ``acquired`` contains the responses acquired before.
    ValueError, TypeError
        If an option is invalid, or neither `budget` nor `n_repeats` limits the number of queries.

    See Also
    --------
    annotation_session : Annotate many rows at a time.
    predict_with_acquisition : Acquire feature values instead of classes.

    Notes
    -----
    Given the class, annotators respond independently of each other, as in [2]_. There are K
    possible responses. Suppose an annotator has given R responses for a row, and k of them are
    equal to r. Suppose also that C responses were counted for rows of the class, and c of them are
    equal to r. Then the next response is r with probability ``(1 + c + k) / (K + C + R)``. Without
    counts, this is the estimate "map" of `observation.sampled`, see [1]_. With few counts, a
    response provides little information, and a repeated response even less.

    The class probabilities p are updated by Bayes' rule. The expected decrease is the criterion at
    p minus its mean after the possible responses. For the entropy, it is the information in [3]_.
    All criteria are concave, so the decrease is never negative. Only queries within the remaining
    budget are considered, and only one response at a time. If several queries are equally good, the
    first annotator is selected.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       arXiv:cs/0607110, sections 2 and 3.2.
    .. [2] A. P. Dawid, A. M. Skene, "Maximum likelihood estimation of observer error-rates using
       the EM algorithm", Applied Statistics 28 (1979).
    .. [3] D. V. Lindley, "On a measure of the information provided by an experiment", Annals of
       Mathematical Statistics 27 (1956).

    Examples
    --------
    >>> import pboost as pb
    >>> answers = iter(["ill", "well", "ill"])
    >>> annotators = {"nurse": lambda: next(answers), "doctor": lambda: "ill"}
    >>> result = pb.acquisition.query_annotators(
    ...     annotators, {"nurse": 0.3, "doctor": 0.05}, classes=["ill", "well"],
    ...     query_costs={"nurse": 1, "doctor": 6}, budget=8,
    ... )
    >>> [(entry.source, entry.value, entry.cost) for entry in result.acquired]
    [('doctor', 'ill', 6.0), ('nurse', 'ill', 1.0), ('nurse', 'well', 1.0)]
    >>> result.label, round(result.error, 3), result.reason
    ('ill', 0.05, 'the next query would exceed the budget')
    """
    if not isinstance(annotators, Mapping) or not all(map(callable, annotators.values())):
        raise TypeError(
            f"annotators: expected a mapping of names to functions, got {shown(annotators)}"
        )
    options = OracleOptions(classes, prior, query_costs, budget, max_error, n_repeats, criterion)
    case = OracleCase(list(annotators), errors, options)
    inquiry = OracleInquiry(case)
    while (name := inquiry.wants()) is not None:
        inquiry.tell(name, called(annotators[name], name, inquiry.acquired))
    assert inquiry.decision is not None
    return inquiry.decision


def annotation_session(
    errors: Mapping[str, Errors],
    priors: Iterable[Any] = (),
    *,
    classes: Sequence[object] | None = None,
    prior: Prior = None,
    query_costs: float | Mapping[str, float] | None = None,
    budget: float | None = None,
    max_error: float | None = None,
    n_repeats: int | Mapping[str, int] | None = None,
    criterion: ClassCriterion = "entropy",
) -> AnnotationSession:
    """Start a session that determines the classes of many rows from annotator responses.

    Parameters
    ----------
    errors : mapping of names to float or AnnotatorModel
        The errors of each annotator, see `query_annotators`.
    priors : iterable of length n, optional
        For each row, the class probabilities before any response, such as the rows of
        `predict_proba`. None stands for `prior`. Use ``session.add`` to add more rows.
    classes : sequence of length J, optional
        See `query_annotators`.
    prior : sequence of float, shape (J,), or mapping of classes to float, optional
        Class probabilities of rows without an entry in `priors`. By default, all classes are
        equally probable.
    query_costs : float, or mapping of names to float, optional
        See `query_annotators`.
    budget : float, optional
        Maximum cost for each row.
    max_error : float, optional
        See `query_annotators`.
    n_repeats : int, or mapping of names to int, optional
        Maximum number of queries for each annotator and row.
    criterion : {"entropy", "gini", "error", "kearns_mansour"}
        See `query_annotators`.

    Returns
    -------
    AnnotationSession
        The session, with methods ``ask`` and ``tell``. A row has one open query at a time, because
        the next query depends on its response.

    Raises
    ------
    ValueError, TypeError
        See `query_annotators`.

    Examples
    --------
    >>> import pboost as pb
    >>> session = pb.acquisition.annotation_session(
    ...     {"crowd": 0.3}, [[0.5, 0.5], [0.95, 0.05]], classes=["cat", "dog"],
    ...     budget=5, max_error=0.1,
    ... )
    >>> while queries := session.ask():
    ...     print(queries)
    ...     for query in queries:
    ...         session.tell(query, "dog")
    [Query(row=0, source='crowd', cost=1.0)]
    [Query(row=0, source='crowd', cost=1.0)]
    [Query(row=0, source='crowd', cost=1.0)]
    >>> [(result.label, result.calls) for result in session]
    [('dog', 3), ('cat', 0)]
    """
    options = OracleOptions(classes, prior, query_costs, budget, max_error, n_repeats, criterion)
    session = AnnotationSession(OracleCase(None, errors, options))
    for row_prior in priors:
        session.add(row_prior)
    return session


def _by_name(option: str, values: object, names: Sequence[str] | None) -> dict[str, Any]:
    """Return a checked mapping of annotators to values."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{option}: expected a mapping of annotator names, got {shown(values)}")
    keys = list(values) if names is None else list(names)
    if strange := [name for name in keys if not isinstance(name, str)]:
        raise TypeError(f"annotators: expected names as strings, got {shown(strange[0])}")
    if set(values) != set(keys):
        raise ValueError(f"{option}: expected the annotators {keys}, got {list(values)}")
    return {name: values[name] for name in keys}


def _labels(classes: object, errors: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the classes, or the classes of the annotator models if `classes` is None."""
    if classes is None:
        counted = [
            counts.classes for counts in errors.values() if isinstance(counts, AnnotatorModel)
        ]
        if not counted:
            raise ValueError(
                "classes: expected two or more classes, got None; pass classes or an AnnotatorModel"
            )
        return tuple(counted[0])
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise TypeError(f"classes: expected a sequence, got {shown(classes)}")
    plain_labels = tuple(map(plain, classes))
    if len(plain_labels) < 2 or len(set(plain_labels)) < len(plain_labels):
        raise ValueError(f"classes: expected two or more distinct values, got {shown(classes)}")
    return plain_labels


def _prior(prior: object, classes: tuple[object, ...]) -> FloatArray:
    """Return the class probabilities before any response."""
    if prior is None:
        return np.full(len(classes), 1.0 / len(classes))
    if isinstance(prior, Mapping):
        if set(prior) != set(classes):
            raise ValueError(f"prior: expected the classes {classes}, got {list(prior)}")
        prior = [prior[label] for label in classes]
    probabilities = np.asarray(prior, dtype=np.float64)
    if probabilities.shape != (len(classes),):
        raise ValueError(
            f"prior: expected {len(classes)} probabilities, got shape {probabilities.shape}"
        )
    if not ((probabilities >= 0).all() and abs(probabilities.sum() - 1.0) <= 1e-6):
        raise ValueError(f"prior: expected numbers >= 0 that sum to 1, got {shown(prior)}")
    return probabilities / probabilities.sum()
