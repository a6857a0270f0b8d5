"""The answers of one weak classifier to all training rows, and the observation models of tables.

An observation model, bound to training data, is an `Observer`; asked about a cut, it returns
`Answers`. They come in two kinds: one for each row, or a table by side and class, with which a soft
node costs as much as a weighted stump. The side is that on which a row lies (0: below the
threshold, 1: above), the class the row's (0: the first label, 1: the second).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost._core import voting
from pboost.data.training import TrainingData
from pboost.models.nodes import CERTAIN
from pboost.threads import Workers
from pboost.values import Choice, FloatArray, check_instance, check_number
from pboost.values.options import Kinds
from pboost.weak.base import Cut, Weak, WeakSearch, Weights
from pboost.weak.real import RealLearner

#: Tables of the nodes of a model, None where answers are no table.
Tables: TypeAlias = Sequence[FloatArray | None]
#: As in `_core/voting.pyx`.
FINER = 2.0**30
#: Returns reach masses (side, class), for those observation models that need them.
Reach = Callable[[], FloatArray]


class Answers:
    """How likely every training row takes either exit of one weak classifier.

    Attributes
    ----------
    masses : ndarray of float64, shape (2, 2)
        The weights asked with, by exit and class, in units of the real weights.
    table : ndarray of float64, shape (2, 2), or None
        Probability of exit 1 by side and class, as a model keeps it.
    """

    masses: FloatArray
    table: FloatArray | None
    _cut: Any

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by the sum over exits of probability times coefficient (exit, class).

        Written to `target` as in `WeakSearch.reweight`.
        """
        raise NotImplementedError

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        raise NotImplementedError

    def placed(self, cut: Any) -> Answers:
        """Return the answers of the same weak classifier, in which absent rows lie elsewhere."""
        answers = copy(self)
        answers._cut = cut
        return answers

    def forget(self) -> None:
        """Free what can be computed anew."""


class TableAnswers(Answers):
    """Answers that depend on the side on which a row lies, and on its class."""

    table: FloatArray

    def __init__(self, search: WeakSearch, cut: Cut, by_side: FloatArray, table: FloatArray):
        self._search, self._cut = search, cut
        self.masses, self.table = split_masses(by_side, table), table

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by factors of side and class."""
        below, above = coefficients
        factors = (1 - self.table) * below + self.table * above
        self._search.reweight(self._cut, factors, source, target)

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        side = self._search.sides(self._cut).astype(np.intp)
        is_positive = np.arange(len(side)) >= self._search.data.n_negative
        return np.asarray(self.table[side, is_positive.astype(np.intp)])


class RowAnswers(Answers):
    """Answers that differ from row to row.

    Parameters
    ----------
    search : WeakSearch
        Knows the rows.
    above : callable
        Returns the probability of exit 1 of each row, (n,); or that of exit 0 with a minus sign,
        which is precise also where it is small.
    weights : Weights
        Weights asked with.
    table : ndarray of float64, shape (2, 2), or None
        What a model keeps of them.
    """

    def __init__(
        self,
        search: WeakSearch,
        above: Callable[[], FloatArray],
        weights: Weights,
        table: FloatArray | None = None,
    ) -> None:
        self._search, self._compute, self.table = search, above, table
        self._above: FloatArray | None = above()
        sums = exit_sums(
            self._above, weights.real, search.data.n_negative, weights.scale, search.workers
        )
        self.masses = exit_masses(sums, weights.scale)

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by factors of each row."""
        above = self.above()
        work = partial(
            voting.reweight_rows,
            above,
            self._search.data.n_negative,
            coefficients,
            target.scale,
            source,
            target.real,
            target.fixed,
        )
        parts = self._search.workers.run(work, len(above))
        target.masses = (sum(p[0] for p in parts), sum(p[1] for p in parts))

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        if self._above is None:
            self._above = self._compute()
        return self._above

    def forget(self) -> None:
        """Free the probabilities; they are computed anew if they are needed again."""
        self._above = None


class Observer:
    """Base of the observation models bound to a search.

    Attributes
    ----------
    is_exact : bool
        Whether all answers are certain.
    needs_class : bool
        Whether answers depend on the class of a row.
    find : callable
        Returns the weak classifier for rows of given weights, None where there is none.
    """

    is_exact = False
    needs_class = False

    def __init__(self, search: WeakSearch) -> None:
        self.search = search
        self.find: Callable[[Weights], Any] = search.best

    def ask(self, cut: Any, weights: Weights, reach: Reach) -> Answers:
        """Return the answers of a weak classifier to rows of these weights."""
        raise NotImplementedError

    def stored_answers(self, cut: Any, weights: Weights, table: FloatArray | None) -> Answers:
        """Return the answers of a stored weak classifier, with the table that the model keeps."""
        raise NotImplementedError("observation: these answers cannot be given again")

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the fields of a model that say how its nodes answer."""
        raise NotImplementedError


def stacked(tables: Tables) -> FloatArray:
    """Return the tables of all nodes as one array."""
    array: FloatArray = np.array(list(tables), dtype=np.float64)
    return array.reshape(-1, *array.shape[1:] or CERTAIN.shape)


def side_masses(cut: Cut, weights: Weights) -> FloatArray:
    """Return the masses (side, class) of a cut in units of the real weights."""
    return np.array(cut.masses, dtype=np.float64) / weights.scale


def chain_reach(
    search: WeakSearch,
    cut: Cut,
    weights: Weights,
    start: FloatArray | None,
    unit: FloatArray | None = None,
) -> FloatArray:
    """Return the reach masses (side, class) at the end of a chain, which all rows reach.

    Their starting weights are `start`, or those of now; `unit`: see `WeakSearch.side_masses`.
    """
    if start is None:
        return side_masses(cut, weights)
    scratch = Weights(np.empty_like(start), np.empty_like(weights.fixed), 1.0, (0, 0))
    return search.side_masses(cut, start, scratch, unit)


def split_masses(by_side: FloatArray, table: FloatArray) -> FloatArray:
    """Return the class masses (exit, class) that a table of answers makes of (side, class)."""
    return np.stack([(by_side * (1 - table)).sum(axis=0), (by_side * table).sum(axis=0)])


def exit_sums(
    above: FloatArray, weight: FloatArray, n_negative: int, scale: float, workers: Workers
) -> NDArray[np.int64]:
    """Return the masses (exit, class) of rows that take exit 1 with probability `above`.

    Where it is negative it is that of exit 0 with a minus sign. They are integers (2, 2, 2), in
    units of ``1 / scale`` and of what these leave over, and so the same in any order of the rows.
    """

    def add(start: int, stop: int) -> NDArray[np.int64]:
        sums = np.empty((2, 2, 2), dtype=np.int64)
        voting.exit_sums(above, weight, n_negative, scale, start, stop, sums)
        return sums

    totals: NDArray[np.int64] = np.sum(workers.run(add, len(weight)), axis=0)
    return totals


def exit_masses(sums: NDArray[np.int64], scale: float) -> FloatArray:
    """Return the masses (exit, class) in units of the weights, of what `exit_sums` has found."""
    masses: FloatArray = (sums[..., 0] + sums[..., 1] / FINER) / scale
    return masses


def only_exit(exit_: int, by_class: FloatArray) -> FloatArray:
    """Return coefficients (exit, class) that send weights to one exit alone."""
    coefficients = np.zeros((2, 2))
    coefficients[exit_] = by_class
    return coefficients


@dataclass(frozen=True, slots=True)
class Observation(Choice):
    """Base of the observation models.

    Attributes
    ----------
    is_exact : bool
        Whether every answer is certain.
    needs_class : bool
        Whether answers depend on the row's class, which is unknown at prediction.
    takes_many : bool
        Whether there can be more classes than two.
    """

    is_exact: ClassVar[bool] = False
    needs_class: ClassVar[bool] = False
    takes_many: ClassVar[bool] = False

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner as it is trained with these answers, ValueError if it cannot be.

        `is_chain` says that the builder has one next classifier at any time.
        """
        if weak.has_answers:
            raise ValueError(
                f"observation: {self.kind!r} compares a number with a threshold, which oracles and "
                "estimators do not have"
            )
        return weak

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> Observer:
        """Return what finds weak classifiers for these data, and what answers they give.

        `generator` is the source of randomness of those that draw.
        """
        raise NotImplementedError


#: What makes the observation models, by their kind.
KINDS = Kinds()
maker = KINDS.add


def check_pair(weak: Any, observation: Any, *, is_chain: bool = False) -> Weak:
    """Return the weak learner as it is trained with the answers of an observation model.

    Raises TypeError or ValueError if they are no such or cannot be trained together. `is_chain`
    says that the builder has one next classifier at any time.
    """
    check_instance("weak_learner", Weak, weak)
    check_instance("observation", Observation, observation)
    if isinstance(weak, RealLearner):
        raise ValueError(
            f"weak_learner: expected a weak learner with two exits, got {weak!r}, whose answers are real "
            "numbers: that is for fit_real_adaboost"
        )
    learner: Weak = observation.pair(weak, is_chain=is_chain)
    return learner


class TableObserver(Observer):
    """Observation models whose answers are a table for each node."""

    def __init__(self, observation: TableObservation, search: WeakSearch) -> None:
        super().__init__(search)
        self._observation = observation
        self.is_exact, self.needs_class = observation.is_exact, observation.needs_class

    def ask(self, cut: Cut, weights: Weights, reach: Reach) -> TableAnswers:
        """Return the answers of a weak classifier to rows of these weights."""
        by_side = side_masses(cut, weights)
        table = self._observation.table(reach() if self.needs_class else by_side)
        return TableAnswers(self.search, cut, by_side, table)

    def stored_answers(self, cut: Cut, weights: Weights, table: FloatArray | None) -> TableAnswers:
        """Return the answers of a stored weak classifier, with the table that the model keeps."""
        assert table is not None
        return TableAnswers(self.search, cut, side_masses(cut, weights), table)

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the tables of all nodes, unless they are certain."""
        return {} if self.is_exact else {"answer": stacked(tables)}


@dataclass(frozen=True, slots=True)
class TableObservation(Observation):
    """Base of the observation models whose answers are a table for each node."""

    takes_many: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the probability of exit 1, (side, class), at one node.

        Parameters
        ----------
        reach : ndarray of float64, shape (2, J)
            Reach mass at the node, by side and class: starting weight times the probability of
            arriving there. J is 2 but of exits with a vote for each of more labels.
        """
        raise NotImplementedError

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner: any can be trained with these answers."""
        return weak

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> TableObserver:
        """Return the search and what answers its weak classifiers give."""
        return TableObserver(self, weak.searches(data, weak, workers, generator))


@dataclass(frozen=True, slots=True)
class Exact(TableObservation):
    """Answers without error; made by `exact`."""

    kind: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return certain answers."""
        return CERTAIN


@maker
def exact() -> Exact:
    """Answers without error: every row takes the exit on whose side it lies.

    Returns
    -------
    Exact
        To be passed as ``observation=`` to a builder.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.exact()
    Exact()
    """
    return Exact()


@dataclass(frozen=True, slots=True)
class Flip(TableObservation):
    """Answers that are wrong at a known rate; made by `flip`."""

    flip_rate: float
    kind: ClassVar[str] = "flip"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the same table for every node."""
        return np.stack(
            [np.full(reach.shape[1], self.flip_rate), np.full(reach.shape[1], 1 - self.flip_rate)]
        )


@maker
def flip(flip_rate: float) -> Flip:
    """Answers that are wrong with a known probability: a noisy oracle.

    Parameters
    ----------
    flip_rate : float
        Probability in [0, 0.5) that a row takes the exit of the other side, independently at
        every node.

    Returns
    -------
    Flip
        To be passed as ``observation=`` to a builder.

    Raises
    ------
    ValueError
        If the rate is not in [0, 0.5).

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.flip(0.1)
    Flip(flip_rate=0.1)
    """
    return Flip(check_number("flip_rate", flip_rate, min_value=0.0, max_value=0.5, open_max=True))


@dataclass(frozen=True, slots=True)
class Half(TableObservation):
    """Answers that say nothing; made by `half`."""

    kind: ClassVar[str] = "half"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return one half everywhere."""
        return np.full(reach.shape, 0.5)


@maker
def half() -> Half:
    """Answers that do not depend on the weak classifier; nothing is learnt from them.

    The masses at either exit are the same, and so are the votes: after the first node, which
    learns how frequent the classes are, no node changes anything. Kept to show just that.

    Returns
    -------
    Half
        To be passed as ``observation=`` to a builder.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules", 2004, section 4.1.1, where it is taken for AdaBoost.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.half()
    Half()
    """
    return Half()


@dataclass(frozen=True, slots=True)
class Uniform(TableObservation):
    """Rows of one class spread over the exits alike; made by `uniform`."""

    kind: ClassVar[str] = "uniform"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the share of each class above the threshold, for either side."""
        above = side_shares(reach)[1]
        return np.stack([above, above])


@maker
def uniform() -> Uniform:
    """All rows of a class take an exit with the same probability: their share on that side.

    The certificate of such a model falls towards 0 while the training error of its hard
    evaluation need not fall at all: it certifies the observation, not the hard route.

    Returns
    -------
    Uniform
        To be passed as ``observation=`` to a builder.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2", 2004, equation 5 and section 4.1.3.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.uniform()
    Uniform()
    """
    return Uniform()


@dataclass(frozen=True, slots=True)
class AdaTree2(TableObservation):
    """The rule of AdaTree 2; made by `adatree2`."""

    strength: float = 1.0
    kind: ClassVar[str] = "adatree2"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return more certain answers on the side that holds more of a row's class."""
        stay = (1 - self.strength) + self.strength * ((1 + np.sqrt(side_shares(reach))) / 2)
        return np.stack([1 - stay[0], stay[1]])


@maker
def adatree2(strength: float = 1.0) -> AdaTree2:
    """AdaTree 2: a row takes its side's exit with probability ``1 - strength * (1 - sqrt(V)) / 2``.

    V is the share of the row's class, by reach mass, that lies on its side of the threshold. So
    every node is trained on all rows, those on the other side with less weight. At prediction
    rows take the exit on whose side they lie.

    Parameters
    ----------
    strength : float
        How uncertain answers are, in (0, 1]: 1 as published; near 0 they are nearly exact.

    Returns
    -------
    AdaTree2
        To be passed as ``observation=`` to a builder.

    Raises
    ------
    ValueError
        If the strength is not in (0, 1].

    Notes
    -----
    AdaTree 1 is ``exact()``; AdaTree 2 as published is ``adatree2()`` with
    ``growth="largest_error"``.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2", 2004, equation 6.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.adatree2()
    AdaTree2(strength=1.0)
    """
    return AdaTree2(check_number("strength", strength, min_value=0.0, max_value=1.0, open_min=True))


def side_shares(reach: FloatArray) -> FloatArray:
    """Return V(side, class): the share of each class's reach mass on either side.

    One half where no mass of a class arrives.
    """
    total = reach.sum(axis=0)
    return np.where(total > 0, reach / np.where(total > 0, total, 1.0), 0.5)
