"""Base classes of observation models and models with one table of probabilities per node.

An `Observer` is an observation model bound to training data. For each split it returns `Answers`:
the probabilities that training rows take exit 1. These probabilities are stored per row, or as a
table by side and class. With a table, a soft node is as fast as a weighted stump. Side 0 is below
the threshold and side 1 above. Class 0 is the first class and class 1 the second.
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
from pboost.data.training_data import TrainingData
from pboost.models.graph_arrays import CERTAIN
from pboost.threads import Workers
from pboost.values import Choice, FloatArray, check_instance, check_number
from pboost.values.options import Kinds
from pboost.weak.base import Cut, Weak, WeakSearch, Weights
from pboost.weak.real import RealLearner

#: Tables of the nodes of a model; None for nodes without a table.
Tables: TypeAlias = Sequence[FloatArray | None]
#: This constant must be equal to `FINER` in `_core/voting.pyx`.
FINER = 2.0**30
#: Function that returns the reach by (side, class). Only some observation models call it.
Reach = Callable[[], FloatArray]


class Answers:
    """The probabilities that training rows take exit 1 of a weak classifier.

    Attributes
    ----------
    masses : ndarray of float64, shape (2, 2)
        Weight by exit and class. The weights are real numbers, not the integers of the search.
    table : ndarray of float64, shape (2, 2), or None
        Probability of exit 1 by side and class, as stored in the model.
    """

    masses: FloatArray
    table: FloatArray | None
    _cut: Any

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by the sum over exits of probability times coefficient (exit, class).

        The result is written to `target`, as in `WeakSearch.reweight`.
        """
        raise NotImplementedError

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        raise NotImplementedError

    def placed(self, cut: Any) -> Answers:
        """Return a copy with a different side for missing values."""
        answers = copy(self)
        answers._cut = cut
        return answers

    def forget(self) -> None:
        """Free memory that can be recomputed."""


class TableAnswers(Answers):
    """Exit probabilities that depend on the side and class of a row."""

    table: FloatArray

    def __init__(self, search: WeakSearch, cut: Cut, by_side: FloatArray, table: FloatArray):
        self._search, self._cut = search, cut
        self.masses, self.table = split_masses(by_side, table), table

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by factors for each side and class."""
        below, above = coefficients
        factors = (1 - self.table) * below + self.table * above
        self._search.reweight(self._cut, factors, source, target)

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        side = self._search.sides(self._cut).astype(np.intp)
        is_positive = np.arange(len(side)) >= self._search.data.n_negative
        return np.asarray(self.table[side, is_positive.astype(np.intp)])


class RowAnswers(Answers):
    """Exit probabilities that differ by row.

    Parameters
    ----------
    search : WeakSearch
        Search with the training rows.
    above : callable
        Returns an array (n,) with the probability of exit 1 of each row. If the probability of exit
        0 is small, the array contains minus this probability, which is more precise.
    weights : Weights
        Weights of the rows at the node.
    table : ndarray of float64, shape (2, 2), or None
        Table that is stored in the model.
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
        """Multiply weights by factors for each row."""
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
        """Free the memory of the probabilities. They are recomputed when needed."""
        self._above = None


class Observer:
    """Base class of the observation models bound to a search.

    Attributes
    ----------
    is_exact : bool
        Whether all probabilities are 0 or 1.
    needs_class : bool
        Whether exit probabilities depend on the class of a row.
    find : callable
        Returns the best weak classifier for weights, or None if there is none.
    """

    is_exact = False
    needs_class = False

    def __init__(self, search: WeakSearch) -> None:
        self.search = search
        self.find: Callable[[Weights], Any] = search.best

    def ask(self, cut: Any, weights: Weights, reach: Reach) -> Answers:
        """Return the exit probabilities of a weak classifier for weighted rows."""
        raise NotImplementedError

    def stored_answers(self, cut: Any, weights: Weights, table: FloatArray | None) -> Answers:
        """Return the exit probabilities of a stored weak classifier with its table."""
        raise NotImplementedError(
            "observation: the exit probabilities of this observation model are not stored"
        )

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the fields of a model that describe its exit probabilities."""
        raise NotImplementedError


def stacked(tables: Tables) -> FloatArray:
    """Return the tables of all nodes as one array."""
    array: FloatArray = np.array(list(tables), dtype=np.float64)
    return array.reshape(-1, *array.shape[1:] or CERTAIN.shape)


def side_masses(cut: Cut, weights: Weights) -> FloatArray:
    """Return the weights (side, class) of a split as real numbers."""
    return np.array(cut.masses, dtype=np.float64) / weights.scale


def chain_reach(
    search: WeakSearch,
    cut: Cut,
    weights: Weights,
    start: FloatArray | None,
    unit: FloatArray | None = None,
) -> FloatArray:
    """Return the reach (side, class) at the end of a chain. All rows reach the end.

    `start` are the starting weights, by default the current weights. For `unit`, see
    `WeakSearch.side_masses`.
    """
    if start is None:
        return side_masses(cut, weights)
    scratch = Weights(np.empty_like(start), np.empty_like(weights.fixed), 1.0, (0, 0))
    return search.side_masses(cut, start, scratch, unit)


def split_masses(by_side: FloatArray, table: FloatArray) -> FloatArray:
    """Return the weights (exit, class) that a table assigns to weights (side, class)."""
    return np.stack([(by_side * (1 - table)).sum(axis=0), (by_side * table).sum(axis=0)])


def exit_sums(
    above: FloatArray, weight: FloatArray, n_negative: int, scale: float, workers: Workers
) -> NDArray[np.int64]:
    """Return the weights (exit, class) of rows that take exit 1 with probability `above`.

    Negative values of `above` are minus the probability of exit 0. The result (2, 2, 2) has two
    integers per sum, in units of ``1 / scale`` and ``1 / (scale * FINER)``, so sums are exact.
    """

    def add(start: int, stop: int) -> NDArray[np.int64]:
        sums = np.empty((2, 2, 2), dtype=np.int64)
        voting.exit_sums(above, weight, n_negative, scale, start, stop, sums)
        return sums

    totals: NDArray[np.int64] = np.sum(workers.run(add, len(weight)), axis=0)
    return totals


def exit_masses(sums: NDArray[np.int64], scale: float) -> FloatArray:
    """Convert the result of `exit_sums` to weights (exit, class)."""
    masses: FloatArray = (sums[..., 0] + sums[..., 1] / FINER) / scale
    return masses


def only_exit(exit_: int, by_class: FloatArray) -> FloatArray:
    """Return coefficients (exit, class) that keep the weights of one exit only."""
    coefficients = np.zeros((2, 2))
    coefficients[exit_] = by_class
    return coefficients


@dataclass(frozen=True, slots=True)
class Observation(Choice):
    """Base class of the observation models.

    Attributes
    ----------
    is_exact : bool
        Whether all probabilities are 0 or 1.
    needs_class : bool
        Whether exit probabilities depend on the class, which is unknown at prediction.
    takes_many : bool
        Whether multiclass problems are supported.
    """

    is_exact: ClassVar[bool] = False
    needs_class: ClassVar[bool] = False
    takes_many: ClassVar[bool] = False

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Adapt a weak learner to this observation model. Raise an error if this is impossible.

        `is_chain` is True if the model is a chain, as in `fit_adaboost`.
        """
        if weak.has_answers:
            raise ValueError(
                f"observation: {self.kind!r} requires a weak learner that compares a number with a "
                "threshold, got an oracle or an estimator; use exact() or sampled()"
            )
        return weak

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> Observer:
        """Return the observer that finds weak classifiers and their exit probabilities.

        `generator` is the source of randomness for models that draw exits.
        """
        raise NotImplementedError


#: Functions that create observation models, by kind.
KINDS = Kinds()
maker = KINDS.add


def check_pair(weak: Any, observation: Any, *, is_chain: bool = False) -> Weak:
    """Return the weak learner adapted to an observation model.

    Raise TypeError or ValueError if an argument has the wrong type, or if the weak learner and the
    observation model cannot be combined. `is_chain` is True if the model is a chain, as in
    `fit_adaboost`.
    """
    check_instance("weak_learner", Weak, weak)
    check_instance("observation", Observation, observation)
    if isinstance(weak, RealLearner):
        raise ValueError(
            f"weak_learner: expected a weak learner with two exits, got {weak!r}; "
            "real-valued weak learners require fit_real_adaboost"
        )
    learner: Weak = observation.pair(weak, is_chain=is_chain)
    return learner


class TableObserver(Observer):
    """Observer of the models that have one table per node."""

    def __init__(self, observation: TableObservation, search: WeakSearch) -> None:
        super().__init__(search)
        self._observation = observation
        self.is_exact, self.needs_class = observation.is_exact, observation.needs_class

    def ask(self, cut: Cut, weights: Weights, reach: Reach) -> TableAnswers:
        """Return the exit probabilities of a weak classifier for weighted rows."""
        by_side = side_masses(cut, weights)
        table = self._observation.table(reach() if self.needs_class else by_side)
        return TableAnswers(self.search, cut, by_side, table)

    def stored_answers(self, cut: Cut, weights: Weights, table: FloatArray | None) -> TableAnswers:
        """Return the exit probabilities of a stored weak classifier with its table."""
        assert table is not None
        return TableAnswers(self.search, cut, side_masses(cut, weights), table)

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the tables of all nodes. Exact observations have no tables."""
        return {} if self.is_exact else {"answer": stacked(tables)}


@dataclass(frozen=True, slots=True)
class TableObservation(Observation):
    """Base class of the observation models that have one table per node."""

    takes_many: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the probability of exit 1 at one node as an array (side, class).

        Parameters
        ----------
        reach : ndarray of float64, shape (2, J)
            Reach by side and class: starting weight times the probability of reaching the node.
            J is the number of classes if exits have one vote per class, otherwise 2.
        """
        raise NotImplementedError

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner. All weak learners are supported."""
        return weak

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> TableObserver:
        """Return the observer of these data."""
        return TableObserver(self, weak.searches(data, weak, workers, generator))


@dataclass(frozen=True, slots=True)
class Exact(TableObservation):
    """Observation model without errors, created by `exact`."""

    kind: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return probabilities 0 and 1."""
        return CERTAIN


@maker
def exact() -> Exact:
    """Create an observation model without errors. Each row takes the exit of its side.

    Returns
    -------
    Exact
        An observation model for the option ``observation`` of a fit function.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.exact()
    Exact()
    """
    return Exact()


@dataclass(frozen=True, slots=True)
class Flip(TableObservation):
    """Observation model with a known error rate, created by `flip`."""

    flip_rate: float
    kind: ClassVar[str] = "flip"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the same table for all nodes."""
        return np.stack(
            [np.full(reach.shape[1], self.flip_rate), np.full(reach.shape[1], 1 - self.flip_rate)]
        )


@maker
def flip(flip_rate: float) -> Flip:
    """Create an observation model that takes the wrong exit with a known probability.

    Parameters
    ----------
    flip_rate : float
        Probability in [0, 0.5) that a row takes the exit of the other side, independently at
        each node.

    Returns
    -------
    Flip
        An observation model for the option ``observation`` of a fit function.

    Raises
    ------
    ValueError
        If `flip_rate` is not in [0, 0.5).

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.flip(0.1)
    Flip(flip_rate=0.1)
    """
    return Flip(check_number("flip_rate", flip_rate, min_value=0.0, max_value=0.5, open_max=True))


@dataclass(frozen=True, slots=True)
class Half(TableObservation):
    """Observation model with random exits, created by `half`."""

    kind: ClassVar[str] = "half"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return probability 0.5 everywhere."""
        return np.full(reach.shape, 0.5)


@maker
def half() -> Half:
    """Create an observation model in which each row takes either exit with probability 0.5.

    This model is for demonstration only. Both exits get the same votes, so the first node fits the
    class frequencies and later nodes have no effect.

    Returns
    -------
    Half
        An observation model for the option ``observation`` of a fit function.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules", 2004, section 4.1.1, where it appears as a form of AdaBoost.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.half()
    Half()
    """
    return Half()


@dataclass(frozen=True, slots=True)
class Uniform(TableObservation):
    """Observation model that only depends on the class, created by `uniform`."""

    kind: ClassVar[str] = "uniform"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return a table with the fraction of each class above the threshold."""
        above = side_shares(reach)[1]
        return np.stack([above, above])


@maker
def uniform() -> Uniform:
    """Create an observation model in which all rows of a class have the same probabilities.

    The probability of an exit is the fraction of the class on the side of this exit. The
    certificate (an upper bound on the training error) of such a model decreases towards 0, but this
    bound applies only to random exits. The training error of hard predictions may stay the same.

    Returns
    -------
    Uniform
        An observation model for the option ``observation`` of a fit function.

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
    """The observation model of AdaTree 2, created by `adatree2`."""

    strength: float = 1.0
    kind: ClassVar[str] = "adatree2"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the table of AdaTree 2. Exits are less random on the side with most of a class."""
        stay = (1 - self.strength) + self.strength * ((1 + np.sqrt(side_shares(reach))) / 2)
        return np.stack([1 - stay[0], stay[1]])


@maker
def adatree2(strength: float = 1.0) -> AdaTree2:
    """Create the observation model of AdaTree 2, which makes exits random in training.

    A row takes the exit of its side with probability ``1 - strength * (1 - sqrt(V)) / 2``. V is the
    fraction of the reach of the row's class on the same side. Every node is therefore trained on
    all rows, with reduced weights for rows of the other side. Predictions take the exit of the
    row's side.

    Parameters
    ----------
    strength : float
        Degree of randomness, in (0, 1]. The default 1 is the published rule; values near 0
        are almost exact.

    Returns
    -------
    AdaTree2
        An observation model for the option ``observation`` of a fit function.

    Raises
    ------
    ValueError
        If `strength` is not in (0, 1].

    Notes
    -----
    AdaTree 1 is ``exact()``. The published AdaTree 2 is ``adatree2()`` with
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
    """Return V(side, class). V is the fraction of a class's reach on each side.

    The fraction is 0.5 for a class without reach.
    """
    total = reach.sum(axis=0)
    return np.where(total > 0, reach / np.where(total > 0, total, 1.0), 0.5)
