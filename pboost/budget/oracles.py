"""Annotators that err and have a cost: which of them to ask next, and what their answers say."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pboost.budget.questions import (
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

#: Answers of this many rows are taken for certain: those of an annotator whose errors are known.
CERTAIN = math.inf
#: Probabilities of labels before any answer.
Prior: TypeAlias = Sequence[float] | Mapping[Any, float] | ArrayLike | None


@dataclass(frozen=True, slots=True, eq=False)
class AnnotatorModel:
    """How often an annotator gave each answer about rows of each label, see `fit_annotators`.

    Attributes
    ----------
    classes : tuple of length J >= 2
        The labels.
    answers : tuple of length K >= 2
        The answers.
    counts : ndarray of float64, shape (J, K)
        How often answer k was given about a row of label j.
    max_count : float
        How many answers the table counts for at most, beside the answers about the row in question.
    """

    classes: tuple[object, ...]
    answers: tuple[object, ...]
    counts: FloatArray
    max_count: float = math.inf

    def __post_init__(self) -> None:
        for name in ("classes", "answers"):
            values = tuple(plain(value) for value in getattr(self, name))
            if len(values) < 2 or len(set(values)) < len(values):
                raise ValueError(f"{name}: expected two or more that differ, got {shown(values)}")
            object.__setattr__(self, name, values)
        counts = np.asarray(self.counts, dtype=np.float64)
        shape = (len(self.classes), len(self.answers))
        if counts.shape != shape:
            raise ValueError(
                f"counts: expected shape {shape}, labels by answers, got {counts.shape}"
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
        """Estimates of the answers' probabilities, (J, K): (1 + count) / (total + K)."""
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
    """Count what an annotator answered about rows whose labels are known.

    Parameters
    ----------
    answers : iterable of length n
        What it answered: labels, or others, such as None for "I do not know".
    y : iterable of length n
        The labels of the rows. A row about which it was asked several times is there several times.
    classes : sequence of length J, optional
        All labels. Default: those of `init`, else those in `y`, sorted.
    init : AnnotatorModel, optional
        Counts to which these are added.
    max_count : float > 0, optional
        How many answers the table counts for at most, beside those about the row in question. With
        a small number, what was answered about a row is likely answered again, right or wrong, and
        asking again says little. Default: that of `init`, else all that were counted count.

    Returns
    -------
    AnnotatorModel
        To be passed to `query_annotators`.

    Raises
    ------
    ValueError, TypeError
        If lengths differ, a label is not one of `classes`, or there are fewer than two.

    Examples
    --------
    >>> import pboost as pb
    >>> found = pb.acquisition.fit_annotators(list("nnyynyy"), list("nnnyyyy"))
    >>> found.classes, found.counts.tolist()
    (('n', 'y'), [[2.0, 1.0], [1.0, 3.0]])
    >>> found.probability[0].tolist()
    [0.6, 0.4]
    """
    answered, known = [plain(value) for value in answers], [plain(value) for value in y]
    if len(answered) != len(known):
        raise ValueError(
            f"answers: expected one for each label, got {len(answered)} and {len(known)} labels"
        )
    if init is not None and not isinstance(init, AnnotatorModel):
        raise TypeError(f"init: expected AnnotatorModel or None, got {shown(init)}")
    if classes is None:
        classes = sorted(set(known)) if init is None else init.classes
    classes = [plain(label) for label in classes]
    if init is not None and tuple(classes) != init.classes:
        raise ValueError(f"classes: expected those of init, {init.classes}, got {shown(classes)}")
    if strange := [label for label in known if label not in classes]:
        raise ValueError(f"y: expected labels among {shown(classes)}, got {shown(strange[0])}")
    columns = list(dict.fromkeys([*(init.answers if init else classes), *answered]))
    counts = np.zeros((len(classes), len(columns)))
    if init is not None:
        counts[:, : len(init.answers)] = init.counts
    for answer, label in zip(answered, known, strict=True):
        counts[classes.index(label), columns.index(answer)] += 1.0
    if max_count is None:
        max_count = math.inf if init is None else init.max_count
    return AnnotatorModel(tuple(classes), tuple(columns), counts, max_count)


#: How an annotator errs: a known rate of errors, or what it answered.
Errors: TypeAlias = float | AnnotatorModel


class AnswerLaw(NamedTuple):
    """What an annotator is expected to answer about a row of each label, given what it answered.

    An urn for each label: it holds what was counted, one ball of each answer, and those drawn.

    Attributes
    ----------
    answers : tuple of length K
        The answers.
    probability : ndarray of float64, shape (J, K)
        Those of a first answer.
    max_count : ndarray of float64, shape (J,)
        How many answers these count for; infinite where they are known.
    """

    answers: tuple[object, ...]
    probability: FloatArray
    max_count: FloatArray

    def next(self, counts: FloatArray) -> FloatArray:
        """Return the probabilities (J, K) of the next answer, after `counts` (K,) of each."""
        total = counts.sum()
        if total == 0:
            return self.probability
        # The share of what was counted: 1 where that is known for certain.
        share = 1.0 / (1.0 + total / self.max_count[:, None])
        mixture: FloatArray = share * self.probability + (1.0 - share) * (counts / total)
        return mixture


def law_of(name: str, errors: object, classes: tuple[object, ...]) -> AnswerLaw:
    """Return the law of an annotator, of counts or of a known rate of errors."""
    J = len(classes)
    if isinstance(errors, AnnotatorModel):
        if errors.classes != classes:
            raise ValueError(
                f"errors[{name!r}]: expected counts of the labels {classes}, got {errors.classes}"
            )
        max_count = np.minimum((errors.counts + 1.0).sum(axis=1), errors.max_count)
        return AnswerLaw(errors.answers, errors.probability, max_count)
    rate = check_number(f"errors[{name!r}]", errors, min_value=0.0, max_value=1.0)
    table = np.full((J, J), rate / (J - 1))
    np.fill_diagonal(table, 1.0 - rate)
    return AnswerLaw(classes, table, np.full(J, CERTAIN))


# Which of them to ask next

#: Decreases and differences of probabilities below this are rounding.
ROUNDING = 1e-12
#: Why nothing more is asked, beside the end of the budget.
SURE, OFTEN, VAIN = (
    "the expected error is small enough",
    "all have been asked as often as they may be",
    "no answer is expected to lower the criterion",
)


@dataclass(frozen=True, slots=True)
class AnnotationResult:
    """What the answers of annotators say of a row, see `query_annotators`.

    Attributes
    ----------
    label : object
        The most probable label, the first of several.
    classes : tuple of length J
        All labels.
    probability : ndarray of float64, shape (J,)
        Their probabilities, given the answers.
    acquired : tuple of AcquiredValue
        What was asked, in order.
    cost : float
        What was paid for it.
    reason : str
        Why nothing more was asked, as a sentence.
    """

    label: object
    classes: tuple[object, ...]
    probability: FloatArray
    acquired: tuple[AcquiredValue, ...]
    cost: float
    reason: str

    @property
    def error(self) -> float:
        """The probability that the label is wrong."""
        return float(1.0 - self.probability.max())

    @property
    def calls(self) -> int:
        """How often an annotator was asked."""
        return sum(entry.calls for entry in self.acquired)


class OracleOptions(NamedTuple):
    """The options of `query_annotators`, as they were passed."""

    classes: Sequence[object] | None = None
    prior: Prior = None
    query_costs: float | Mapping[str, float] | None = None
    budget: float | None = None
    max_error: float | None = None
    n_repeats: int | Mapping[str, int] | None = None
    criterion: ClassCriterion = "entropy"


class OracleCase:
    """What is known of annotators before any is asked: the same for all rows."""

    def __init__(
        self, names: Sequence[str] | None, errors: Mapping[str, Errors], options: OracleOptions
    ) -> None:
        errors = _by_name("errors", errors, names)
        if not errors:
            raise ValueError("errors: expected one annotator or more, got none")
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
                "budget: expected a number, or n_repeats of each annotator, as asking need not end "
                "without either"
            )
        check_choice("criterion", options.criterion, class_criteria(len(self.classes)))
        self.criterion = IMPURITIES[options.criterion]

    def _of_each(self, option: str, value: object, default: object) -> dict[str, Any]:
        """Return what an option says of each annotator: one value for all, or a mapping."""
        if isinstance(value, Mapping):
            return _by_name(option, value, self.names)
        return dict.fromkeys(self.names, default if value is None else value)

    def decrease(self, probability: FloatArray, law: AnswerLaw, counts: FloatArray) -> float:
        """Return what one more answer is expected to take from the criterion."""
        joint = (probability[:, None] * law.next(counts)).T
        mass = joint.sum(axis=1)
        joint, mass = joint[mass > 0], mass[mass > 0]
        after = self.criterion(joint / mass[:, None])
        return float(self.criterion(probability[None])[0] - mass @ after)


class OracleInquiry:
    """What annotators have answered about a row, and, at the end, the decision."""

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
        """The probabilities of the labels, given the answers."""
        share: FloatArray = np.exp(self._log - self._log.max())
        return share / share.sum()

    def wants(self) -> str | None:
        """Return the annotator to be asked next; None where the row is decided."""
        case, now = self.case, self.probability
        reason = SURE if 1.0 - now.max() <= case.max_error + ROUNDING else ""
        if not reason:
            open_ = [n for n in case.names if self.answer_counts[n].sum() < case.n_repeats[n]]
            paid = [n for n in open_ if self.spent + case.query_costs[n] <= case.budget]
            lowers = {n: case.decrease(now, case.laws[n], self.answer_counts[n]) for n in paid}
            useful = [n for n in paid if lowers[n] > ROUNDING]
            if useful:
                return max(useful, key=lambda n: lowers[n] / case.query_costs[n])
            # What cannot be paid might have helped.
            reason = OFTEN if not open_ else BUDGET if len(paid) < len(open_) else VAIN
        label = case.classes[int(now.argmax())]
        self.decision = AnnotationResult(
            label, case.classes, now, tuple(self.acquired), self.spent, reason
        )
        return None

    def tell(self, name: str, answer: object) -> None:
        """Take an answer; AcquisitionError where it is none."""
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
                f"{name!r}: expected no answer of probability 0 for every label, got {answer!r}"
            )
            raise AcquisitionError(message, name, acquired)
        # Far from overflow, however many answers there are.
        self._log = after - after.max()
        counts[k] += 1.0
        cost = self.case.query_costs[name]
        self.spent += cost
        self.acquired.append(AcquiredValue(name, answer, cost))


class AnnotationSession(Session[OracleInquiry, AnnotationResult]):
    """Rows about which annotators are asked side by side, so that they can answer in batches.

    Made by `annotation_session`. ``session.ask()`` returns questions, ``session.tell(question,
    answer)`` takes answers, in any order; ``session[i]`` is the decision of row i, None as long as
    it is open; ``len(session)`` is the number of rows.

    Attributes
    ----------
    is_done : bool
        Whether all rows are decided.
    """

    def __init__(self, case: OracleCase) -> None:
        super().__init__()
        self._case = case

    def add(self, prior: Prior = None) -> int:
        """Add a row and return its number.

        Parameters
        ----------
        prior : sequence of float, or mapping, optional
            Probabilities of its labels before any answer. Default: those of the session.
        """
        return self._join(OracleInquiry(self._case, prior))

    def _go_on(self, row: int) -> None:
        """Find whom to ask next about a row."""
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
    """Find the label of a row by asking annotators that err, whose answers have a cost.

    The next question is the one of largest expected decrease of the criterion per cost; an
    annotator can be asked again.

    Parameters
    ----------
    annotators : mapping of names to callables
        People who label, or tests: functions without arguments that return an answer about the row.
        They are called each time they are asked.
    errors : mapping of names to float or AnnotatorModel
        How each of them errs. A number from 0 to 1: the known probability of a wrong answer, each
        wrong label as likely as the others. Or what it answered about rows whose labels are known,
        see `fit_annotators`.
    classes : sequence of length J, optional
        The labels. Default: those of the counts.
    prior : sequence of float, shape (J,), or mapping of labels to float, optional
        Their probabilities before any answer, such as a row of `predict_proba`. Default: all the
        same.
    query_costs : float, or mapping of names to float, optional
        What an answer costs, above 0. Default: 1 each.
    budget : float, optional
        The most that is paid.
    max_error : float, optional
        Nothing more is asked once the probability that the label is wrong is at most this.
    n_repeats : int, or mapping of names to int, optional
        How often each annotator is asked at most. Default: as often as the budget allows.
    criterion : {"entropy", "gini", "error", "kearns_mansour"}
        What is lowered, a function of the probabilities of the labels; the last of two labels only.
        The expected error often falls only by several answers together: "error" stops where no
        single one lowers it.

    Returns
    -------
    AnnotationResult
        Label, probabilities, and what was acquired.

    Raises
    ------
    AcquisitionError
        If a function raises, or returns what is no answer of its. What was asked before is in its
        ``acquired``.
    ValueError, TypeError
        If an option is not as described, or nothing ends the asking.

    See Also
    --------
    annotation_session : Many rows at a time.
    predict_with_acquisition : Values of columns that are asked for, once each, and do not err.

    Notes
    -----
    Given the label, annotators answer independently of each other ([2]_ has tables of their
    errors). If of R answers of an annotator about a row k were a, the next one is a with
    probability ``(1 + c + k) / (K + C + R)``, where c of the C answers that were counted about rows
    of that label were a, of K that are possible. Without counts that is the estimate called "map"
    in `observation.sampled`, after [1]_: the expectation of a probability whose prior is uniform.
    The fewer answers were counted, the less an answer says, and the less one that repeats it.

    An answer multiplies the probabilities p of the labels by its own. The expected decrease is the
    criterion at p less the mean over answers of the criterion after them, for the entropy the
    information of [3]_. All criteria are concave: it is never negative. The rule looks one answer
    ahead, among the questions that the rest of the budget can pay; of several equal ones it takes
    the first.

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
    >>> said = iter(["ill", "well", "ill"])
    >>> annotators = {"nurse": lambda: next(said), "doctor": lambda: "ill"}
    >>> found = pb.acquisition.query_annotators(
    ...     annotators, {"nurse": 0.3, "doctor": 0.05}, classes=["ill", "well"],
    ...     query_costs={"nurse": 1, "doctor": 6}, budget=8,
    ... )
    >>> [(entry.source, entry.value, entry.cost) for entry in found.acquired]
    [('doctor', 'ill', 6.0), ('nurse', 'ill', 1.0), ('nurse', 'well', 1.0)]
    >>> found.label, round(found.error, 3), found.reason
    ('ill', 0.05, 'the budget ends here')
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
    """Find the labels of many rows by annotators that err, whom the caller asks, in batches.

    Parameters
    ----------
    errors : mapping of names to float or AnnotatorModel
        The annotators, and how each of them errs, see `query_annotators`.
    priors : iterable of length n, optional
        Of each row the probabilities of its labels before any answer, such as the rows of
        `predict_proba`, or None for `prior`. ``session.add`` adds further rows.
    classes : sequence of length J, optional
        See `query_annotators`.
    prior : sequence of float, shape (J,), or mapping of labels to float, optional
        Probabilities of the labels of rows that have none of their own. Default: all the same.
    query_costs : float, or mapping of names to float, optional
        See `query_annotators`.
    budget : float, optional
        The most that is paid for each row.
    max_error : float, optional
        See `query_annotators`.
    n_repeats : int, or mapping of names to int, optional
        How often each annotator is asked about each row at most.
    criterion : {"entropy", "gini", "error", "kearns_mansour"}
        See `query_annotators`.

    Returns
    -------
    AnnotationSession
        The session, with methods ``ask`` and ``tell``. A row has one open question at a time, as
        its answer says what to ask next.

    Raises
    ------
    ValueError, TypeError
        As `query_annotators` does.

    Examples
    --------
    >>> import pboost as pb
    >>> session = pb.acquisition.annotation_session(
    ...     {"crowd": 0.3}, [[0.5, 0.5], [0.95, 0.05]], classes=["cat", "dog"],
    ...     budget=5, max_error=0.1,
    ... )
    >>> while questions := session.ask():
    ...     print(questions)
    ...     for question in questions:
    ...         session.tell(question, "dog")
    [Query(row=0, source='crowd', cost=1.0)]
    [Query(row=0, source='crowd', cost=1.0)]
    [Query(row=0, source='crowd', cost=1.0)]
    >>> [(found.label, found.calls) for found in session]
    [('dog', 3), ('cat', 0)]
    """
    options = OracleOptions(classes, prior, query_costs, budget, max_error, n_repeats, criterion)
    session = AnnotationSession(OracleCase(None, errors, options))
    for row_prior in priors:
        session.add(row_prior)
    return session


def _by_name(option: str, values: object, names: Sequence[str] | None) -> dict[str, Any]:
    """Return what a mapping says of each annotator."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{option}: expected a mapping of names, got {shown(values)}")
    keys = list(values) if names is None else list(names)
    if strange := [name for name in keys if not isinstance(name, str)]:
        raise TypeError(f"annotators: expected names as strings, got {shown(strange[0])}")
    if set(values) != set(keys):
        raise ValueError(f"{option}: expected the annotators {keys}, got {list(values)}")
    return {name: values[name] for name in keys}


def _labels(classes: object, errors: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the labels, those of the counts where none are given."""
    if classes is None:
        counted = [
            counts.classes for counts in errors.values() if isinstance(counts, AnnotatorModel)
        ]
        if not counted:
            raise ValueError("classes: expected two or more, as no annotator has counts of any")
        return tuple(counted[0])
    if isinstance(classes, str) or not isinstance(classes, Sequence | np.ndarray):
        raise TypeError(f"classes: expected a sequence, got {shown(classes)}")
    plain_labels = tuple(map(plain, classes))
    if len(plain_labels) < 2 or len(set(plain_labels)) < len(plain_labels):
        raise ValueError(f"classes: expected two or more that differ, got {shown(classes)}")
    return plain_labels


def _prior(prior: object, classes: tuple[object, ...]) -> FloatArray:
    """Return the probabilities of the labels before any answer."""
    if prior is None:
        return np.full(len(classes), 1.0 / len(classes))
    if isinstance(prior, Mapping):
        if set(prior) != set(classes):
            raise ValueError(f"prior: expected the labels {classes}, got {list(prior)}")
        prior = [prior[label] for label in classes]
    probabilities = np.asarray(prior, dtype=np.float64)
    if probabilities.shape != (len(classes),):
        raise ValueError(
            f"prior: expected {len(classes)} probabilities, got shape {probabilities.shape}"
        )
    if not ((probabilities >= 0).all() and abs(probabilities.sum() - 1.0) <= 1e-6):
        raise ValueError(f"prior: expected numbers >= 0 whose sum is 1, got {shown(prior)}")
    return probabilities / probabilities.sum()
