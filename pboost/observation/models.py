"""Observation models as classes: how sure the answer of a weak classifier is.

An observation model gives the probability that a row takes either exit of a weak classifier. Most
give it as a table over the side on which the row lies (0: below the threshold, 1: above) and the
row's class (0: the first label, 1: the second), so that a soft node costs as much as a weighted
stump.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from pboost.models.graph import CERTAIN
from pboost.values import FloatArray, shown, uncalled

#: When the sampling of a weak classifier ends, and what is made of the answers.
STOPS = ("first-increase", "stopwatch")
ESTIMATORS = ("map", "ml")
#: Greatest number of invocations: answers are counted in 16 bits.
MOST_DRAWS = 65_535


@dataclass(frozen=True, slots=True)
class Observation:
    """Base of the observation models.

    Attributes
    ----------
    kind : str
        Name of the model.
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


@dataclass(frozen=True, slots=True)
class Exact(TableObservation):
    """Answers without error; made by `exact`."""

    kind: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return certain answers."""
        return CERTAIN


@dataclass(frozen=True, slots=True)
class Flip(TableObservation):
    """Answers that are wrong at a known rate; made by `flip`."""

    rate: float
    kind: ClassVar[str] = "flip"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the same table for every node."""
        return np.array([[self.rate, self.rate], [1 - self.rate, 1 - self.rate]])


@dataclass(frozen=True, slots=True)
class Half(TableObservation):
    """Answers that say nothing; made by `half`."""

    kind: ClassVar[str] = "half"

    def table(self, reach: FloatArray) -> FloatArray:
        """Return one half everywhere."""
        return np.full((2, 2), 0.5)


@dataclass(frozen=True, slots=True)
class Uniform(TableObservation):
    """Rows of one class spread over the exits alike; made by `uniform`."""

    kind: ClassVar[str] = "uniform"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return the share of each class above the threshold, for either side."""
        above = side_shares(reach)[1]
        return np.stack([above, above])


@dataclass(frozen=True, slots=True)
class AdaTree2(TableObservation):
    """The rule of AdaTree 2; made by `adatree2`."""

    kind: ClassVar[str] = "adatree2"
    needs_class: ClassVar[bool] = True

    def table(self, reach: FloatArray) -> FloatArray:
        """Return more certain answers on the side that holds more of a row's class."""
        below, above = (1 + np.sqrt(side_shares(reach))) / 2
        return np.stack([1 - below, above])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gaussian(Observation):
    """Features measured with a normal error; made by `gaussian`.

    Attributes
    ----------
    sigma : float or ndarray of float64, shape (d,) or (n, d)
        Standard deviation of the error: of all columns, of each, or of each cell.
    """

    sigma: float | FloatArray
    kind: ClassVar[str] = "gaussian"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gaussian) and np.array_equal(self.sigma, other.sigma)

    def __hash__(self) -> int:
        return hash(np.asarray(self.sigma).tobytes())

    def __repr__(self) -> str:
        shape = np.shape(self.sigma)
        return f"Gaussian(sigma={f'<array of shape {shape}>' if shape else self.sigma})"

    def settings(self) -> dict[str, Any]:
        """Return the model as plain values, for the record of how a classifier was made."""
        per_cell = np.ndim(self.sigma) == 2
        sigma = "per cell" if per_cell else np.asarray(self.sigma).tolist()
        return {"kind": self.kind, "sigma": sigma}


@dataclass(frozen=True, slots=True)
class Sampled(Observation):
    """Probabilities estimated from answers drawn in training; made by `sampled`."""

    stop: str | int
    estimator: str
    max_draws: int
    clock: Callable[[], float]
    of: Observation
    kind: ClassVar[str] = "sampled"

    def settings(self) -> dict[str, Any]:
        """Return the model as plain values; the clock is not among them."""
        plain = {name: getattr(self, name) for name in ("stop", "estimator", "max_draws")}
        return {"kind": self.kind, **plain, "of": self.of.settings()}


def split_masses(by_side: FloatArray, table: FloatArray) -> FloatArray:
    """Return the class masses (exit, class) that a table of answers makes of (side, class)."""
    return np.stack([(by_side * (1 - table)).sum(axis=0), (by_side * table).sum(axis=0)])


def side_shares(reach: FloatArray) -> FloatArray:
    """Return V(side, class): the share of each class's reach mass on either side.

    One half where no mass of a class arrives.
    """
    total = reach.sum(axis=0)
    return np.where(total > 0, reach / np.where(total > 0, total, 1.0), 0.5)


def check_observation(observation: Any) -> Observation:
    """Return `observation` if it is an observation model."""
    if not isinstance(observation, Observation):
        raise TypeError(
            f"observation: expected one of pboost.observation, got {shown(observation)}"
            + uncalled(observation)
        )
    return observation
