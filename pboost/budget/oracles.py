"""Oracles that err and have a price: which of them to ask next, and what their answers say."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pboost.budget.questions import BUDGET, Asked, AskError, Question, Session, called, plain
from pboost.data.targets import IMPURITIES, ClassCriterion, class_criteria
from pboost.values import FloatArray, check_choice, check_integer, check_number, freeze, shown

#: Answers of this many rows are taken for certain: those of an oracle whose errors are known.
CERTAIN = math.inf
#: Probabilities of labels before any answer.
Prior: TypeAlias = Sequence[float] | Mapping[Any, float] | ArrayLike | None


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCounts:
    """How often an oracle gave each answer about rows of each label, see `count_answers`.

    Attributes
    ----------
    labels : tuple of length J >= 2
        The labels.
    answers : tuple of length K >= 2
        The answers.
    counts : ndarray of float64, shape (J, K)
        How often answer k was given about a row of label j.
    strength : float
        How many answers the table counts for at most, beside the answers about the row in question.
    """

    labels: tuple[object, ...]
    answers: tuple[object, ...]
    counts: FloatArray
    strength: float = math.inf

    def __post_init__(self) -> None:
        for name in ("labels", "answers"):
            values = tuple(plain(value) for value in getattr(self, name))
            if len(values) < 2 or len(set(values)) < len(values):
                raise ValueError(f"{name}: expected two or more that differ, got {shown(values)}")
            object.__setattr__(self, name, values)
        counts = np.asarray(self.counts, dtype=np.float64)
        shape = (len(self.labels), len(self.answers))
        if counts.shape != shape:
            raise ValueError(
                f"counts: expected shape {shape}, labels by answers, got {counts.shape}"
            )
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise ValueError("counts: expected finite numbers >= 0")
        strength = self.strength
        if strength != math.inf:
            strength = check_number("strength", strength, least=0.0, open_least=True)
        object.__setattr__(self, "counts", freeze(counts))
        object.__setattr__(self, "strength", float(strength))

    @property
    def probability(self) -> FloatArray:
        """Estimates of the answers' probabilities, (J, K): (1 + count) / (total + K)."""
        urn = self.counts + 1.0
        found: FloatArray = urn / urn.sum(axis=1, keepdims=True)
        return found


def count_answers(
    answers: Iterable[Any],
    y: Iterable[Any],
    *,
    labels: Sequence[object] | None = None,
    before: AnswerCounts | None = None,
    strength: float | None = None,
) -> AnswerCounts:
    """Count what an oracle answered about rows whose labels are known.

    Parameters
    ----------
    answers : iterable of length n
        What it answered: labels, or others, such as None for "I do not know".
    y : iterable of length n
        The labels of the rows. A row about which it was asked several times is there several times.
    labels : sequence of length J, optional
        All labels. Default: those of `before`, else those in `y`, sorted.
    before : AnswerCounts, optional
        Counts to which these are added.
    strength : float > 0, optional
        How many answers the table counts for at most, beside those about the row in question. With
        a small number, what was answered about a row is likely answered again, right or wrong, and
        asking again says little. Default: that of `before`, else all that were counted count.

    Returns
    -------
    AnswerCounts
        To be passed to `ask_oracles`.

    Raises
    ------
    ValueError, TypeError
        If lengths differ, a label is not one of `labels`, or there are fewer than two.

    Examples
    --------
    >>> import pboost as pb
    >>> found = pb.count_answers(list("nnyynyy"), list("nnnyyyy"))
    >>> found.labels, found.counts.tolist()
    (('n', 'y'), [[2.0, 1.0], [1.0, 3.0]])
    >>> found.probability[0].tolist()
    [0.6, 0.4]
    """
    given, known = [plain(one) for one in answers], [plain(one) for one in y]
    if len(given) != len(known):
        raise ValueError(
            f"answers: expected one for each label, got {len(given)} and {len(known)} labels"
        )
    if before is not None and not isinstance(before, AnswerCounts):
        raise TypeError(f"before: expected AnswerCounts or None, got {shown(before)}")
    if labels is None:
        labels = sorted(set(known)) if before is None else before.labels
    labels = [plain(label) for label in labels]
    if before is not None and tuple(labels) != before.labels:
        raise ValueError(f"labels: expected those of before, {before.labels}, got {shown(labels)}")
    if strange := [label for label in known if label not in labels]:
        raise ValueError(f"y: expected labels among {shown(labels)}, got {shown(strange[0])}")
    columns = list(dict.fromkeys([*(before.answers if before else labels), *given]))
    counts = np.zeros((len(labels), len(columns)))
    if before is not None:
        counts[:, : len(before.answers)] = before.counts
    for answer, label in zip(given, known, strict=True):
        counts[labels.index(label), columns.index(answer)] += 1.0
    if strength is None:
        strength = math.inf if before is None else before.strength
    return AnswerCounts(tuple(labels), tuple(columns), counts, strength)


#: How an oracle errs: a known rate of errors, or what it answered.
Errors: TypeAlias = float | AnswerCounts


class AnswerLaw(NamedTuple):
    """What an oracle is expected to answer about a row of each label, given what it answered.

    An urn for each label: it holds what was counted, one ball of each answer, and those drawn.

    Attributes
    ----------
    answers : tuple of length K
        The answers.
    probability : ndarray of float64, shape (J, K)
        Those of a first answer.
    strength : ndarray of float64, shape (J,)
        How many answers these count for; infinite where they are known.
    """

    answers: tuple[object, ...]
    probability: FloatArray
    strength: FloatArray

    def next(self, told: FloatArray) -> FloatArray:
        """Return the probabilities (J, K) of the next answer, after `told` (K,) of each."""
        total = told.sum()
        if total == 0:
            return self.probability
        # The share of what was counted: 1 where that is known for certain.
        share = 1.0 / (1.0 + total / self.strength[:, None])
        found: FloatArray = share * self.probability + (1.0 - share) * (told / total)
        return found


def law_of(name: str, errors: object, labels: tuple[object, ...]) -> AnswerLaw:
    """Return the law of an oracle, of counts or of a known rate of errors."""
    J = len(labels)
    if isinstance(errors, AnswerCounts):
        if errors.labels != labels:
            raise ValueError(
                f"errors[{name!r}]: expected counts of the labels {labels}, got {errors.labels}"
            )
        strength = np.minimum((errors.counts + 1.0).sum(axis=1), errors.strength)
        return AnswerLaw(errors.answers, errors.probability, strength)
    rate = check_number(f"errors[{name!r}]", errors, least=0.0, most=1.0)
    table = np.full((J, J), rate / (J - 1))
    np.fill_diagonal(table, 1.0 - rate)
    return AnswerLaw(labels, table, np.full(J, CERTAIN))


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
class OracleDecision:
    """What the answers of oracles say of a row, see `ask_oracles`.

    Attributes
    ----------
    label : object
        The most probable label, the first of several.
    labels : tuple of length J
        All labels.
    probability : ndarray of float64, shape (J,)
        Their probabilities, given the answers.
    ledger : tuple of Asked
        What was asked, in order.
    price : float
        What was paid for it.
    reason : str
        Why nothing more was asked, as a sentence.
    """

    label: object
    labels: tuple[object, ...]
    probability: FloatArray
    ledger: tuple[Asked, ...]
    price: float
    reason: str

    @property
    def error(self) -> float:
        """The probability that the label is wrong."""
        return float(1.0 - self.probability.max())

    @property
    def calls(self) -> int:
        """How often an oracle was asked."""
        return sum(entry.calls for entry in self.ledger)


class OracleOptions(NamedTuple):
    """The options of `ask_oracles`, as they were passed."""

    labels: Sequence[object] | None = None
    prior: Prior = None
    prices: float | Mapping[str, float] | None = None
    budget: float | None = None
    most_error: float | None = None
    repeats: int | Mapping[str, int] | None = None
    criterion: ClassCriterion = "entropy"


class OracleCase:
    """What is known of oracles before any is asked: the same for all rows."""

    def __init__(
        self, names: Sequence[str] | None, errors: Mapping[str, Errors], options: OracleOptions
    ) -> None:
        errors = _by_name("errors", errors, names)
        if not errors:
            raise ValueError("errors: expected one oracle or more, got none")
        self.names = tuple(errors if names is None else names)
        self.labels = _labels(options.labels, errors)
        self.laws = {name: law_of(name, errors[name], self.labels) for name in self.names}
        self.prior = _prior(options.prior, self.labels)
        self.prices = {
            name: check_number(f"prices[{name!r}]", price, least=0.0, open_least=True)
            for name, price in self._of_each("prices", options.prices, 1.0).items()
        }
        self.repeats = {
            name: math.inf if most is None else check_integer(f"repeats[{name!r}]", most, least=1)
            for name, most in self._of_each("repeats", options.repeats, None).items()
        }
        budget, most_error = options.budget, options.most_error
        self.budget = math.inf if budget is None else check_number("budget", budget, least=0.0)
        self.most_error = (
            0.0 if most_error is None else check_number("most_error", most_error, least=0.0, most=1)
        )
        if self.budget == math.inf and math.inf in self.repeats.values():
            raise ValueError(
                "budget: expected a number, or repeats of each oracle, as asking need not end "
                "without either"
            )
        check_choice("criterion", options.criterion, class_criteria(len(self.labels)))
        self.criterion = IMPURITIES[options.criterion]

    def _of_each(self, option: str, value: object, default: object) -> dict[str, Any]:
        """Return what an option says of each oracle: one value for all, or a mapping."""
        if isinstance(value, Mapping):
            return _by_name(option, value, self.names)
        return dict.fromkeys(self.names, default if value is None else value)

    def decrease(self, probability: FloatArray, law: AnswerLaw, told: FloatArray) -> float:
        """Return what one more answer is expected to take from the criterion."""
        joint = (probability[:, None] * law.next(told)).T
        mass = joint.sum(axis=1)
        joint, mass = joint[mass > 0], mass[mass > 0]
        after = self.criterion(joint / mass[:, None])
        return float(self.criterion(probability[None])[0] - mass @ after)


class OracleInquiry:
    """What oracles have answered about a row, and, at the end, the decision."""

    def __init__(self, case: OracleCase, prior: object = None) -> None:
        self.case = case
        start = case.prior if prior is None else _prior(prior, case.labels)
        with np.errstate(divide="ignore"):
            self._log = np.log(start)
        self.told = {name: np.zeros(len(law.answers)) for name, law in case.laws.items()}
        self.ledger: list[Asked] = []
        self.spent = 0.0
        self.decision: OracleDecision | None = None

    @property
    def probability(self) -> FloatArray:
        """The probabilities of the labels, given the answers."""
        share: FloatArray = np.exp(self._log - self._log.max())
        return share / share.sum()

    def wants(self) -> str | None:
        """Return the oracle to be asked next; None where the row is decided."""
        case, now = self.case, self.probability
        reason = SURE if 1.0 - now.max() <= case.most_error + ROUNDING else ""
        if not reason:
            open_ = [n for n in case.names if self.told[n].sum() < case.repeats[n]]
            paid = [n for n in open_ if self.spent + case.prices[n] <= case.budget]
            lowers = {n: case.decrease(now, case.laws[n], self.told[n]) for n in paid}
            useful = [n for n in paid if lowers[n] > ROUNDING]
            if useful:
                return max(useful, key=lambda n: lowers[n] / case.prices[n])
            # What cannot be paid might have helped.
            reason = OFTEN if not open_ else BUDGET if len(paid) < len(open_) else VAIN
        label = case.labels[int(now.argmax())]
        self.decision = OracleDecision(
            label, case.labels, now, tuple(self.ledger), self.spent, reason
        )
        return None

    def tell(self, name: str, answer: object) -> None:
        """Take an answer; AskError where it is none."""
        law, ledger = self.case.laws[name], tuple(self.ledger)
        answer = plain(answer)
        if not isinstance(answer, Hashable) or answer not in law.answers:
            said = f"{name!r}: expected an answer among {shown(law.answers)}, got {shown(answer)}"
            raise AskError(said, name, ledger)
        k, told = law.answers.index(answer), self.told[name]
        with np.errstate(divide="ignore"):
            after = self._log + np.log(law.next(told)[:, k])
        if after.max() == -math.inf:
            said = f"{name!r}: expected no answer of probability 0 for every label, got {answer!r}"
            raise AskError(said, name, ledger)
        # Far from overflow, however many answers there are.
        self._log = after - after.max()
        told[k] += 1.0
        price = self.case.prices[name]
        self.spent += price
        self.ledger.append(Asked(name, answer, price))


class OracleDecisions(Session[OracleInquiry, OracleDecision]):
    """Rows about which oracles are asked side by side, so that they can answer in batches.

    Made by `oracle_decisions`. ``session.ask()`` returns questions, ``session.tell(question,
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
            self._put(Question(row, name, self._case.prices[name]))


def ask_oracles(
    oracles: Mapping[str, Callable[[], object]],
    errors: Mapping[str, Errors],
    *,
    labels: Sequence[object] | None = None,
    prior: Prior = None,
    prices: float | Mapping[str, float] | None = None,
    budget: float | None = None,
    most_error: float | None = None,
    repeats: int | Mapping[str, int] | None = None,
    criterion: ClassCriterion = "entropy",
) -> OracleDecision:
    """Find the label of a row by asking oracles that err, whose answers have a price.

    The next question is the one of largest expected decrease of the criterion per price; an oracle
    can be asked again.

    Parameters
    ----------
    oracles : mapping of names to callables
        People who label, or tests: functions without arguments that return an answer about the row.
        They are called each time they are asked.
    errors : mapping of names to float or AnswerCounts
        How each of them errs. A number from 0 to 1: the known probability of a wrong answer, each
        wrong label as likely as the others. Or what it answered about rows whose labels are known,
        see `count_answers`.
    labels : sequence of length J, optional
        The labels. Default: those of the counts.
    prior : sequence of float, shape (J,), or mapping of labels to float, optional
        Their probabilities before any answer, such as a row of `predict_proba`. Default: all the
        same.
    prices : float, or mapping of names to float, optional
        What an answer costs, above 0. Default: 1 each.
    budget : float, optional
        The most that is paid.
    most_error : float, optional
        Nothing more is asked once the probability that the label is wrong is at most this.
    repeats : int, or mapping of names to int, optional
        How often each oracle is asked at most. Default: as often as the budget allows.
    criterion : {"entropy", "gini", "error", "kearns-mansour"}
        What is lowered, a function of the probabilities of the labels; the last of two labels only.
        The expected error often falls only by several answers together: "error" stops where no
        single one lowers it.

    Returns
    -------
    OracleDecision
        Label, probabilities, and the ledger of what was asked.

    Raises
    ------
    AskError
        If a function raises, or returns what is no answer of its. What was asked before is in its
        ``ledger``.
    ValueError, TypeError
        If an option is not as described, or nothing ends the asking.

    See Also
    --------
    oracle_decisions : Many rows at a time.
    decide : Values of columns that are asked for, once each, and do not err.

    Notes
    -----
    Given the label, oracles answer independently of each other ([2]_ has tables of their errors).
    If of R answers of an oracle about a row k were a, the next one is a with probability
    ``(1 + c + k) / (K + C + R)``, where c of the C answers that were counted about rows of that
    label were a, of K that are possible. Without counts that is the estimate called "map" in
    `observation.sampled`, after [1]_: the expectation of a probability whose prior is uniform. The
    fewer answers were counted, the less an answer says, and the less one that repeats it.

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
    >>> oracles = {"nurse": lambda: next(said), "doctor": lambda: "ill"}
    >>> found = pb.ask_oracles(
    ...     oracles, {"nurse": 0.3, "doctor": 0.05}, labels=["ill", "well"],
    ...     prices={"nurse": 1, "doctor": 6}, budget=8,
    ... )
    >>> [(entry.asked, entry.value, entry.price) for entry in found.ledger]
    [('doctor', 'ill', 6.0), ('nurse', 'ill', 1.0), ('nurse', 'well', 1.0)]
    >>> found.label, round(found.error, 3), found.reason
    ('ill', 0.05, 'the budget ends here')
    """
    if not isinstance(oracles, Mapping) or not all(map(callable, oracles.values())):
        raise TypeError(f"oracles: expected a mapping of names to functions, got {shown(oracles)}")
    options = OracleOptions(labels, prior, prices, budget, most_error, repeats, criterion)
    case = OracleCase(list(oracles), errors, options)
    inquiry = OracleInquiry(case)
    while (name := inquiry.wants()) is not None:
        inquiry.tell(name, called(oracles[name], name, inquiry.ledger))
    assert inquiry.decision is not None
    return inquiry.decision


def oracle_decisions(
    errors: Mapping[str, Errors],
    priors: Iterable[Any] = (),
    *,
    labels: Sequence[object] | None = None,
    prior: Prior = None,
    prices: float | Mapping[str, float] | None = None,
    budget: float | None = None,
    most_error: float | None = None,
    repeats: int | Mapping[str, int] | None = None,
    criterion: ClassCriterion = "entropy",
) -> OracleDecisions:
    """Find the labels of many rows by oracles that err, whom the caller asks, in batches.

    Parameters
    ----------
    errors : mapping of names to float or AnswerCounts
        The oracles, and how each of them errs, see `ask_oracles`.
    priors : iterable of length n, optional
        Of each row the probabilities of its labels before any answer, such as the rows of
        `predict_proba`, or None for `prior`. ``session.add`` adds further rows.
    labels : sequence of length J, optional
        See `ask_oracles`.
    prior : sequence of float, shape (J,), or mapping of labels to float, optional
        Probabilities of the labels of rows that have none of their own. Default: all the same.
    prices : float, or mapping of names to float, optional
        See `ask_oracles`.
    budget : float, optional
        The most that is paid for each row.
    most_error : float, optional
        See `ask_oracles`.
    repeats : int, or mapping of names to int, optional
        How often each oracle is asked about each row at most.
    criterion : {"entropy", "gini", "error", "kearns-mansour"}
        See `ask_oracles`.

    Returns
    -------
    OracleDecisions
        The session, with methods ``ask`` and ``tell``. A row has one open question at a time, as
        its answer says what to ask next.

    Raises
    ------
    ValueError, TypeError
        As `ask_oracles` does.

    Examples
    --------
    >>> import pboost as pb
    >>> session = pb.oracle_decisions(
    ...     {"crowd": 0.3}, [[0.5, 0.5], [0.95, 0.05]], labels=["cat", "dog"],
    ...     budget=5, most_error=0.1,
    ... )
    >>> while questions := session.ask():
    ...     print(questions)
    ...     for question in questions:
    ...         session.tell(question, "dog")
    [Question(row=0, asked='crowd', price=1.0)]
    [Question(row=0, asked='crowd', price=1.0)]
    [Question(row=0, asked='crowd', price=1.0)]
    >>> [(found.label, found.calls) for found in session]
    [('dog', 3), ('cat', 0)]
    """
    options = OracleOptions(labels, prior, prices, budget, most_error, repeats, criterion)
    session = OracleDecisions(OracleCase(None, errors, options))
    for one in priors:
        session.add(one)
    return session


def _by_name(option: str, values: object, names: Sequence[str] | None) -> dict[str, Any]:
    """Return what a mapping says of each oracle."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{option}: expected a mapping of names, got {shown(values)}")
    found = list(values) if names is None else list(names)
    if strange := [name for name in found if not isinstance(name, str)]:
        raise TypeError(f"oracles: expected names as strings, got {shown(strange[0])}")
    if set(values) != set(found):
        raise ValueError(f"{option}: expected the oracles {found}, got {list(values)}")
    return {name: values[name] for name in found}


def _labels(labels: object, errors: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the labels, those of the counts where none are given."""
    if labels is None:
        counted = [one.labels for one in errors.values() if isinstance(one, AnswerCounts)]
        if not counted:
            raise ValueError("labels: expected two or more, as no oracle has counts of any")
        return tuple(counted[0])
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        raise TypeError(f"labels: expected a sequence, got {shown(labels)}")
    found = tuple(map(plain, labels))
    if len(found) < 2 or len(set(found)) < len(found):
        raise ValueError(f"labels: expected two or more that differ, got {shown(labels)}")
    return found


def _prior(prior: object, labels: tuple[object, ...]) -> FloatArray:
    """Return the probabilities of the labels before any answer."""
    if prior is None:
        return np.full(len(labels), 1.0 / len(labels))
    if isinstance(prior, Mapping):
        if set(prior) != set(labels):
            raise ValueError(f"prior: expected the labels {labels}, got {list(prior)}")
        prior = [prior[label] for label in labels]
    found = np.asarray(prior, dtype=np.float64)
    if found.shape != (len(labels),):
        raise ValueError(f"prior: expected {len(labels)} probabilities, got shape {found.shape}")
    if not ((found >= 0).all() and abs(found.sum() - 1.0) <= 1e-6):
        raise ValueError(f"prior: expected numbers >= 0 whose sum is 1, got {shown(prior)}")
    return found / found.sum()
