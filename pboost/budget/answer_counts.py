"""How oracles err: what they answered about rows whose labels are known, and what follows of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.values import FloatArray, check_number, freeze, shown

#: Answers of this many rows are taken for certain: those of an oracle whose errors are known.
CERTAIN = math.inf


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

    labels: tuple[Any, ...]
    answers: tuple[Any, ...]
    counts: FloatArray
    strength: float = math.inf

    def __post_init__(self) -> None:
        for name in ("labels", "answers"):
            values = tuple(_plain(value) for value in getattr(self, name))
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
    labels: Sequence[Any] | None = None,
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
    given, known = [_plain(one) for one in answers], [_plain(one) for one in y]
    if len(given) != len(known):
        raise ValueError(
            f"answers: expected one for each label, got {len(given)} and {len(known)} labels"
        )
    if before is not None and not isinstance(before, AnswerCounts):
        raise TypeError(f"before: expected AnswerCounts or None, got {shown(before)}")
    if labels is None:
        labels = sorted(set(known)) if before is None else before.labels
    labels = [_plain(label) for label in labels]
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


class AnswerLaw:
    """What an oracle is expected to answer about a row of each label, given what it answered.

    An urn for each label: it holds what was counted, one ball of each answer, and those drawn.

    Parameters
    ----------
    answers : tuple of length K
        The answers.
    probability : ndarray of float64, shape (J, K)
        Those of a first answer.
    strength : ndarray of float64, shape (J,)
        How many answers these count for; infinite where they are known.
    """

    def __init__(self, answers: tuple[Any, ...], probability: ArrayLike, strength: ArrayLike):
        self.answers = answers
        self.probability = np.asarray(probability, dtype=np.float64)
        self.strength = np.asarray(strength, dtype=np.float64)

    def next(self, told: FloatArray) -> FloatArray:
        """Return the probabilities (J, K) of the next answer, after `told` (K,) of each."""
        total = told.sum()
        if total == 0:
            return self.probability
        # The share of what was counted: 1 where that is known for certain.
        share = 1.0 / (1.0 + total / self.strength)
        share = share[:, None]
        found: FloatArray = share * self.probability + (1.0 - share) * (told / total)
        return found


def law_of(name: str, errors: Any, labels: tuple[Any, ...]) -> AnswerLaw:
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


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
