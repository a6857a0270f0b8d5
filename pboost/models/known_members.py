"""What models that are made of models say of a row of which only some values are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.read.convert import Features
from pboost.models.base import Model
from pboost.models.exits import joints_left
from pboost.models.known_values import CLOSE, UNIT, Inquiry, Known, Leads, apart
from pboost.values import FloatArray


class Said(NamedTuple):
    """Bounds (K,) of what a member says, what it says by now, and its `Leads`.

    `is_label`: it is the label that the member predicts.
    """

    low: FloatArray
    high: FloatArray
    value: FloatArray
    leads: Leads
    is_label: bool = False


#: What bounds are at most.
MOST = np.finfo(np.float64).max
#: What a member says, given what is sure of its values.
Says: TypeAlias = Callable[[Inquiry, Known], Said]


def by_label(said: FloatArray, labels: NDArray[Any]) -> Says:
    """Return what members say by the label that they predict: a row (K,) of `said` for each."""

    def says(member: Inquiry, known: Known) -> Said:
        own = places(labels, member)
        options = said[own[member.possible(known)]]
        now = said[np.searchsorted(labels, member.label(known))]
        value = np.clip(now, options.min(axis=0), options.max(axis=0))
        return Said(
            options.min(axis=0),
            options.max(axis=0),
            value,
            lambda k: (options[:, k : k + 1] - options).min(axis=0),
            True,
        )

    return says


def by_share(labels: NDArray[Any]) -> Says:
    """Return what members say by their probabilities, as those (J,) of these labels."""

    def says(member: Inquiry, known: Known) -> Said:
        low, high, value = np.zeros((3, len(labels)))
        own = places(labels, member)
        low[own], high[own], value[own] = member.shares(known)
        if len(own) == len(labels) and member.of_shares:
            return Said(low, high, value, known.leads)
        return Said(low, high, value, apart(low, high))

    return says


def by_number(member: Inquiry, known: Known) -> Said:
    """Return what a member says by the number that it predicts, which rises with its value."""
    labels = member.model.labels
    if labels is not None:
        return by_label(labels.astype(np.float64)[:, None], labels)(member, known)
    ends = np.stack([known.low[-1], known.high[-1], known.value])
    low, high, value = member.model.labels_of(member.scores(ends)).astype(np.float64)[:, None]
    return Said(low, high, value, apart(low, high))


def places(labels: NDArray[Any], member: Inquiry) -> NDArray[np.intp]:
    """Return the places of a member's labels among all."""
    assert member.model.labels is not None
    return np.searchsorted(labels, member.model.labels)


class MemberInquiry(Inquiry):
    """Of a start (K,) and a weighted sum of what members say, or their weighted mean.

    With `settles` members are not asked on whose label is settled, where it is all that counts.
    """

    def __init__(
        self,
        model: Model,
        members: Sequence[Inquiry],
        says: Says,
        weight: FloatArray,
        start: FloatArray,
        is_mean: bool,
        settles: bool,
    ) -> None:
        self.model, self.members, self._says = model, members, says
        self.weight, self._start = weight, start
        self._is_mean, self._settles = is_mean, settles
        self.of_shares = is_mean and model.labels is not None
        self.columns = frozenset().union(*(member.columns for member in members))

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X."""
        found, done = [], 0
        wants: dict[tuple[int, ...], None] = {}
        for member in self.members:
            known = member.known(X, is_known)
            said = self._says(member, known)
            is_settled = self._settles and said.is_label and bool(member.possible(known).sum() == 1)
            if not is_settled:
                wants.update(dict.fromkeys(known.wants))
            done += not wants
            found.append(said)
        low, high, value = (
            np.array([getattr(said, name) for said in found]).reshape(len(found), -1)
            * self.weight[:, None]
            for name in ("low", "high", "value")
        )
        low, high = np.minimum(low, high), np.maximum(low, high)
        now = self._by_joint(value)[-1]
        slack = (len(found) + 2) * UNIT * self._by_joint(np.maximum(np.abs(low), np.abs(high)))
        low, high = self._by_joint(low) - slack, self._by_joint(high) + slack

        def leads(k: int) -> FloatArray:
            if (self.weight < 0).any():
                return low[-1, k] - high[-1]
            each = [w * said.leads(k) for w, said in zip(self.weight, found, strict=True)]
            start = (self._start[k] - self._start)[None]
            whole = self._by_joint(np.array(each), start)[-1]
            return whole - slack[-1] - slack[-1, k]

        return Known(low, high, now, done, tuple(wants), leads)

    def _by_joint(self, terms: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Return the values (T + 1, K) at the joints, given what members add (M, K)."""
        start = self._start[None] if start is None else start
        found = np.concatenate([start, start + np.add.accumulate(terms)])
        if self._is_mean:
            found[1:] /= np.add.accumulate(self.weight)[:, None]
        return found


def sum_of_votes(model: Any, members: Sequence[Inquiry], settles: bool) -> MemberInquiry:
    """Return what a model asks whose members vote for the labels that they predict."""
    says = by_label(np.eye(len(model.labels)), model.labels)
    return MemberInquiry(model, members, says, model.alpha, model.bias, False, settles)


def mean_of(
    model: Model,
    members: Sequence[Inquiry],
    vote: str,
    settles: bool,
    weight: FloatArray | None = None,
) -> MemberInquiry:
    """Return what a model asks that is the mean of its members' labels, probabilities or numbers.

    `vote`: as of `Bagging`.
    """
    says: Says = by_number
    n_values, labels = 1, model.labels
    if labels is not None:
        n_values = len(labels)
        says = by_share(labels) if vote == "average" else by_label(np.eye(n_values), labels)
    weight = np.ones(len(members)) if weight is None else weight
    return MemberInquiry(model, members, says, weight, np.zeros(n_values), True, settles)


class RestInquiry(Inquiry):
    """Of a model for each label, of which the one of largest probability is predicted."""

    def __init__(self, model: Model, members: Sequence[Inquiry], labels: NDArray[Any]) -> None:
        self.model, self.members, self.labels = model, members, labels
        self.columns = frozenset().union(*(member.columns for member in members))

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X; the parts are bounds of the probabilities."""
        found = [member.known(X, is_known) for member in self.members]
        pairs = list(zip(self.members, found, strict=True))
        low, high = np.array([known.lead_of_second() for known in found]).T
        value = np.array([known.value[-1] - known.value[:-1].sum() for known in found])
        wants = tuple(dict.fromkeys(columns for known in found for columns in known.wants))
        shares = np.array([[part[1] for part in member.shares(known)] for member, known in pairs])
        ends = np.stack([low, low]), np.stack([high, high])
        return Known(*ends, value, int(not wants), wants, apart(low, high), shares.T)

    def possible(self, known: Known) -> NDArray[np.bool_]:
        """Return which labels may have the largest probability."""
        low, high, _ = known.parts
        best = int(low.argmax())
        found: NDArray[np.bool_] = high >= low[best] * (1 - CLOSE)
        found[best] = True
        return found

    def label(self, known: Known) -> Any:
        """Return the label of largest probability by what is known."""
        return self.labels[known.parts[2].argmax()]

    def shares(self, known: Known) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds (J,) of the probabilities divided by their sum."""
        low, high, now = known.parts
        least, most = low + high.sum() - high, high + low.sum() - low
        low = np.divide(low, least, out=np.zeros(len(low)), where=least > 0)
        high = np.divide(high, most, out=np.ones(len(high)), where=most > 0)
        return low * (1 - CLOSE), np.minimum(high * (1 + CLOSE), 1.0), now / (now.sum() or 1.0)


class LeavingInquiry(Inquiry):
    """Of a model that rows leave at its joints, given what the whole model asks."""

    _exits: Any

    def __init__(self, model: Any, whole: Inquiry) -> None:
        self.model, self._exits, self._whole, self.columns = model, model, whole, whole.columns
        self.of_shares = whole.of_shares and model.n_votes > 1

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X, wherever it leaves."""
        model, known = self._exits, self._whole.known(X, is_known)
        score, at = model.model.trajectory(X)[0], known.complete
        may = model.may_leave(X)
        if may is not None and known.wants:  # what a row reads beyond is not known
            (columns, *_), can_all = known.wants, model.threshold[at] == 0
            may[at] = can_all or bool(model.unpaid(X, at, columns))
        (joint,) = joints_left(score, model.exits, may)
        wants = known.wants[:1] if joint > at else ()
        at = min(int(joint), at)
        now = score[at].reshape(1, -1)
        if self.of_shares and not at:  # equal ones, before any are known
            now = np.full(now.shape, 1 / now.size)
        value = low = high = self._scaled(now, np.array([at]))[0]
        if wants:
            low, high = self._ends(known, at + (may is None))
            value = np.clip(value, low, high)  # what is settled may differ from what is known
        ends = np.stack([low, low]), np.stack([high, high])
        return Known(*ends, value, int(not wants), wants, apart(low, high))

    def _ends(self, known: Known, first: int) -> tuple[FloatArray, FloatArray]:
        """Return bounds (K,) of the values with which a row leaves, not before joint `first`."""
        low, high = known.low, known.high
        if self._whole.of_shares and not self.of_shares:  # the lead of the second of two
            low, high = low[:, 1:] - high[:, :1], high[:, 1:] - low[:, :1]
        size = high.max(axis=1) - low.min(axis=1)
        if low.shape[1] == 1:
            size = np.maximum(np.abs(low), np.abs(high))[:, 0]
        needed = np.append(self._exits.threshold, 0.0)
        last = first + int(np.argmax(needed[first:] == 0))
        at = np.arange(first, last + 1)
        at = at[size[at] >= needed[at]]
        low, high = low[at], high[at]
        least, most = np.empty((2, low.shape[1]))
        for k in range(low.shape[1]):  # a share rises with itself and falls with others
            is_own = np.arange(low.shape[1]) == k
            with np.errstate(invalid="ignore"):  # such shares need not add up to 1
                below = self._scaled(np.where(is_own, low, high), at)[:, k]
                above = self._scaled(np.where(is_own, high, low), at)[:, k]
            least[k] = np.where(np.isnan(below), 0.0, below).min()
            most[k] = np.where(np.isnan(above), 1.0, above).max()
        return least - UNIT * np.abs(least), most + UNIT * np.abs(most)

    def _scaled(self, value: FloatArray, joint: NDArray[np.intp]) -> FloatArray:
        """Return values (n, K) as the model has them of rows that leave at joints (n,)."""
        score = value[:, 0] if value.shape[1] == 1 else value
        found: FloatArray = self._exits.scaled_at(score, joint)
        return found.reshape(value.shape)


class CalibratedInquiry(Inquiry):
    """Of a model whose values are mapped to probabilities, given what the model itself asks."""

    _maps: Any

    def __init__(self, model: Any, whole: Inquiry) -> None:
        self.model, self._maps, self._whole, self.columns = model, model, whole, whole.columns

    def known(self, X: Features, is_known: NDArray[np.bool_]) -> Known:
        """Return what is sure of the one row X; maps rise or fall, so that ends remain ends."""
        model, known = self._maps, self._whole.known(X, is_known)
        value = model.calibrated(self._whole.scores(known.value[None])).reshape(-1)
        ends = np.stack([known.low[-1], known.high[-1]])
        if len(value) == 1:
            ends = np.array(known.lead_of_second())[:, None]
        ends = np.clip(ends, -MOST, MOST)
        if len(value) == 1:
            low, high = np.sort(model.calibrated(ends[:, 0]))[:, None]
            leads = apart(low, high)
        else:
            least, most = np.sort(model.chances(ends), axis=0)
            low, high = np.log(self._shares_of(least, most))
            leads = apart(least * (1 - CLOSE), most)
        slack = 8 * UNIT * np.maximum(np.maximum(np.abs(low), np.abs(high)), 1.0)
        low, high = np.stack([low, low]) - slack, np.stack([high, high]) + slack
        return Known(low, high, value, int(not known.wants), known.wants, leads)

    def _shares_of(self, least: FloatArray, most: FloatArray) -> FloatArray:
        """Return bounds (2, J) of chances that are divided by their sum, none of them 0."""
        found = least + most.sum() - most, most + least.sum() - least
        low = np.divide(least, found[0], out=np.zeros(len(least)), where=found[0] > 0)
        high = np.divide(most, found[1], out=np.ones(len(most)), where=found[1] > 0)
        return np.maximum(np.stack([low, high]), np.exp(-2 * self._maps.most_half))
