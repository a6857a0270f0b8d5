"""The answers of one weak classifier to all training rows, and what they make of the weights.

An observation model, bound to training data, is an `Observer`; asked about a cut, it returns
`Answers`. They come in two kinds: the same for all rows of a side and class, or one for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from pboost._core import reweight
from pboost.data.training import TrainingData
from pboost.models.graph import CERTAIN
from pboost.threads import Workers
from pboost.values import FloatArray, shown, uncalled
from pboost.weak.base import Cut, Weak, WeakSearch, Weights, check_weak
from pboost.weak.real import RealLearner

#: Tables of the nodes of a model, None where answers are no table.
Tables: TypeAlias = Sequence[FloatArray | None]
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

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by the sum over exits of probability times coefficient (exit, class).

        Written to `target` as in `WeakSearch.reweight`.
        """
        raise NotImplementedError

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        raise NotImplementedError

    def forget(self) -> None:
        """Free what can be computed anew."""


class TableAnswers(Answers):
    """Answers that depend on the side on which a row lies, and on its class."""

    def __init__(self, search: WeakSearch, cut: Cut, by_side: FloatArray, table: FloatArray):
        self._search, self._cut = search, cut
        self.masses, self.table = split_masses(by_side, table), table

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by factors of side and class."""
        assert self.table is not None
        below, above = coefficients
        factors = (1 - self.table) * below + self.table * above
        self._search.reweight(self._cut, factors, source, target)

    def above(self) -> FloatArray:
        """Return the probability of exit 1 of each row, (n,)."""
        assert self.table is not None
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
        self.masses = exit_masses(self._above, weights.real, search.data.n_negative)

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Multiply weights by factors of each row."""
        above = self.above()
        work = partial(
            reweight.reweight_rows, above, self._search.data.n_negative, coefficients,
            target.scale, source, target.real, target.fixed,
        )  # fmt: skip
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

    def given(self, cut: Any, weights: Weights, table: FloatArray | None) -> Answers:
        """Return the answers of a stored weak classifier, with the table that the model keeps."""
        raise NotImplementedError("observation: these answers cannot be given again")

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the fields of a model that say how its nodes answer."""
        raise NotImplementedError


def stacked(tables: Tables) -> FloatArray:
    """Return the tables of all nodes as one array."""
    return np.array(list(tables), dtype=np.float64).reshape(len(tables), *CERTAIN.shape)


def side_masses(cut: Cut, weights: Weights) -> FloatArray:
    """Return the masses (side, class) of a cut in units of the real weights."""
    return np.array(cut.masses, dtype=np.float64) / weights.scale


def split_masses(by_side: FloatArray, table: FloatArray) -> FloatArray:
    """Return the class masses (exit, class) that a table of answers makes of (side, class)."""
    return np.stack([(by_side * (1 - table)).sum(axis=0), (by_side * table).sum(axis=0)])


def exit_masses(above: FloatArray, weight: FloatArray, n_negative: int) -> FloatArray:
    """Return the masses (exit, class) of rows that take exit 1 with probability `above`.

    Where it is negative it is that of exit 0 with a minus sign.
    """
    masses = np.empty((2, 2))
    reweight.exit_masses(above, weight, n_negative, masses)
    return masses


def only_exit(exit_: int, by_class: FloatArray) -> FloatArray:
    """Return coefficients (exit, class) that send weights to one exit alone."""
    coefficients = np.zeros((2, 2))
    coefficients[exit_] = by_class
    return coefficients


@dataclass(frozen=True, slots=True)
class Observation:
    """Base of the observation models.

    Attributes
    ----------
    kind : str
        Name of the model: that of the function that makes it.
    is_exact : bool
        Whether every answer is certain.
    needs_class : bool
        Whether answers depend on the row's class, which is unknown at prediction.
    """

    kind: ClassVar[str]
    is_exact: ClassVar[bool] = False
    needs_class: ClassVar[bool] = False

    def settings(self) -> dict[str, Any]:
        """Return the model as plain values, for the record of how a classifier was made."""
        return {"kind": self.kind, **asdict(self)}

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
KINDS: dict[str, Callable[..., Observation]] = {}
M = TypeVar("M", bound=Callable[..., Observation])


def maker(make: M) -> M:
    """Register the function that makes the observation models of the kind of its name."""
    KINDS[make.__name__] = make
    return make


def check_observation(observation: Any) -> Observation:
    """Return `observation` if it is an observation model."""
    if not isinstance(observation, Observation):
        raise TypeError(
            f"observation: expected one of pboost.observation, got {shown(observation)}"
            + uncalled(observation)
        )
    return observation


def check_pair(weak: Any, observation: Any, *, is_chain: bool = False) -> Weak:
    """Return the weak learner as it is trained with the answers of an observation model.

    Raises TypeError or ValueError if they are no such or cannot be trained together. `is_chain`
    says that the builder has one next classifier at any time.
    """
    check_weak(weak)
    check_observation(observation)
    if isinstance(weak, RealLearner):
        raise ValueError(
            f"weak: expected a weak learner with two exits, got {weak!r}, whose answers are real "
            "numbers: that is for fit_adaboost_real"
        )
    found: Weak = observation.pair(weak, is_chain=is_chain)
    return found
