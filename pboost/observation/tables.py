"""Observation models that are a table: how sure an answer is depends on side and class alone.

The side is that on which the row lies (0: below the threshold, 1: above), the class the row's
(0: the first label, 1: the second). So a soft node costs as much as a weighted stump.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pboost.data.training import TrainingData
from pboost.models.graph import CERTAIN
from pboost.observation.answers import (
    Observation,
    Observer,
    Reach,
    TableAnswers,
    Tables,
    maker,
    side_masses,
    stacked,
)
from pboost.threads import Workers
from pboost.values import FloatArray, check_number
from pboost.weak.base import Cut, Weak, WeakSearch, Weights


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

    def given(self, cut: Cut, weights: Weights, table: FloatArray | None) -> TableAnswers:
        """Return the answers of a stored weak classifier, with the table that the model keeps."""
        assert table is not None
        return TableAnswers(self.search, cut, side_masses(cut, weights), table)

    def model_columns(self, tables: Tables) -> dict[str, Any]:
        """Return the tables of all nodes, unless they are certain."""
        return {} if self.is_exact else {"answer": stacked(tables)}


@dataclass(frozen=True, slots=True)
class TableObservation(Observation):
    """Base of the observation models whose answers are a table for each node."""

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the probability of exit 1, (side, class), at one node.

        Parameters
        ----------
        reach : ndarray of float64, shape (2, 2)
            Reach mass at the node, by side and class: starting weight times the probability of
            arriving there.
        """
        raise NotImplementedError

    def pair(self, weak: Weak, *, is_chain: bool) -> Weak:
        """Return the weak learner: any can be trained with these answers."""
        return weak

    def bind(
        self, data: TrainingData, weak: Weak, workers: Workers, generator: np.random.Generator
    ) -> TableObserver:
        """Return the search and what answers its weak classifiers give."""
        return TableObserver(self, weak.bind(data, workers, generator))


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

    rate: float
    kind: ClassVar[str] = "flip"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the same table for every node."""
        return np.array([[self.rate, self.rate], [1 - self.rate, 1 - self.rate]])


@maker
def flip(rate: float) -> Flip:
    """Answers that are wrong with a known probability: a noisy oracle.

    Parameters
    ----------
    rate : float
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
    Flip(rate=0.1)
    """
    return Flip(check_number("rate", rate, least=0.0, most=0.5, open_most=True))


@dataclass(frozen=True, slots=True)
class Half(TableObservation):
    """Answers that say nothing; made by `half`."""

    kind: ClassVar[str] = "half"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return one half everywhere."""
        return np.full((2, 2), 0.5)


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

    kind: ClassVar[str] = "adatree2"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return more certain answers on the side that holds more of a row's class."""
        below, above = (1 + np.sqrt(side_shares(reach))) / 2
        return np.stack([1 - below, above])


@maker
def adatree2() -> AdaTree2:
    """AdaTree 2: a row takes its side's exit with probability ``(1 + sqrt(V)) / 2``.

    V is the share of the row's class, by reach mass, that lies on its side of the threshold. So
    every node is trained on all rows, those on the other side with less weight. At prediction
    rows take the exit on whose side they lie.

    Returns
    -------
    AdaTree2
        To be passed as ``observation=`` to a builder.

    Notes
    -----
    AdaTree 1 is ``exact()``; AdaTree 2 as published is ``adatree2()`` with
    ``growth="largest-error"``.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2", 2004, equation 6.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.observation.adatree2()
    AdaTree2()
    """
    return AdaTree2()


def side_shares(reach: FloatArray) -> FloatArray:
    """Return V(side, class): the share of each class's reach mass on either side.

    One half where no mass of a class arrives.
    """
    total = reach.sum(axis=0)
    return np.where(total > 0, reach / np.where(total > 0, total, 1.0), 0.5)
