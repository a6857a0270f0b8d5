"""Sums of columns, found at the nodes of a graph, each with its best threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.making import sorted_columns
from pboost.data.node_inputs.fill import column_means, filled
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.convert import Features
from pboost.data.read.table import Takes
from pboost.data.targets import ClassCriterion
from pboost.data.training import Problem, TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray, check_integer, check_number
from pboost.weak import directions
from pboost.weak.base import GrownSearch, Weak, Weights, maker
from pboost.weak.stump_search import Stump, StumpSearch, checked_columns

#: Bits of a coefficient that are kept; more say nothing of a direction that was searched for.
BITS = 24


#: The criterion at the best cut of a direction, the direction, and the threshold.
Candidate: TypeAlias = tuple[float, Projections, float]


class LinearSearch(GrownSearch):
    """Trains directions on the rows that arrive."""

    weak: Linear

    def __init__(
        self, data: TrainingData, weak: Linear, workers: Workers, generator: object = None
    ) -> None:
        super().__init__(data, weak, workers)
        self._pairs = listed_pairs(data.source.shape[1], weak.max_pairs, weak.seed)
        self._fill = column_means(data.source, data.source_rows, data.weight)

    def train(self, rows: NDArray[np.intp], real: FloatArray) -> tuple[Projections, float] | None:
        """Return a direction trained on rows with these weights, and its threshold."""
        chosen = self._chosen(self.data.part(rows, real / real.max()))
        return None if chosen is None else chosen[1:]

    def _chosen(self, part: TrainingData) -> Candidate | None:
        """Return the best direction of one or two columns, or of all if that is much better."""
        X = filled(part.source[part.source_rows].astype(np.float64), self._fill)
        weight = part.weight / part.weight.sum()
        scale, centred = in_units(X, weight)
        varying = np.flatnonzero(scale)
        if not len(varying) or min(part.class_masses()) <= 0:
            return None
        rows = directions.NodeRows(centred, weight, part.n_negative)
        varies = scale > 0
        listed = self._pairs[varies[self._pairs].all(axis=1)]
        place = np.cumsum(varies) - 1
        sparse = (
            self._candidate(
                part, varying[columns], in_own_units(coefficient, scale[varying[columns]])
            )
            for columns, coefficient in directions.pairs(rows, place[listed].astype(np.int32))
        )
        # The first of equal ones.
        best = min(filter(None, sparse), key=itemgetter(0), default=None)
        if len(varying) <= 2 or self.weak.dense_gain == math.inf:
            return best
        coefficient = directions.all_columns(rows)
        dense = self._candidate(part, varying, in_own_units(coefficient, scale[varying]))
        if best is None or dense is None:
            return best or dense
        negative, positive = part.class_masses()
        start = 2 * math.sqrt(negative) * math.sqrt(positive)
        gain = self.weak.dense_gain * (start - best[0])
        return dense if start - dense[0] > gain else best

    def _candidate(
        self, part: TrainingData, columns: NDArray[np.intp], coefficient: FloatArray
    ) -> Candidate | None:
        """Return a direction with its best cut, None if it has none."""
        projection = replace(Projections.of_terms([columns], [coefficient]), fill=self._fill)
        values = Features(part.source, None)
        sorted_ = sorted_columns(values, part.source_rows, 256, self.workers.n_threads, projection)
        data = part.with_columns(sorted_, exact=True)
        search = StumpSearch(data, self.weak.stump, self.workers)
        weights = Weights(part.weight, part.fixed, part.scale, part.class_masses())
        cut = search.best(weights)
        if cut is None:
            return None
        score = sum(2 * math.sqrt(n) * math.sqrt(p) for n, p in cut.masses)
        return score, projection, float(search.thresholds([cut])[0])


def listed_pairs(n_columns: int, limit: int, seed: int) -> NDArray[np.int32]:
    """Return all pairs of columns, or so many drawn ones, as (m, 2)."""
    if n_columns * (n_columns - 1) // 2 <= limit:
        pairs = list(combinations(range(n_columns), 2))
    else:
        generator = np.random.default_rng(seed)
        drawn = (generator.choice(n_columns, 2, replace=False) for _ in range(limit))
        pairs = sorted({(int(min(pair)), int(max(pair))) for pair in drawn})
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def in_units(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the standard deviations of columns, 0 of constant ones; and the others, in them."""
    scale, columns = np.zeros(X.shape[1]), []
    for j, column in enumerate(X.T):
        # In units of the largest number, whose square need not be finite.
        unit = float(np.abs(column).max())
        centred = column / unit if unit else column
        centred = centred - centred @ weight
        deviation = math.sqrt(float(centred**2 @ weight))
        if deviation * unit > np.finfo(np.float64).tiny and deviation > 1e-12:
            scale[j] = deviation * unit
            columns.append(centred / deviation)
    return scale, np.ascontiguousarray(columns).reshape(len(columns), len(X))


def in_own_units(coefficient: FloatArray, scale: FloatArray) -> FloatArray:
    """Return coefficients of columns, given those in units of standard deviations, rounded there.

    A single column is left as it is.
    """
    if len(coefficient) == 1:
        return np.ones(1)
    largest = coefficient[np.argmax(np.abs(coefficient))]
    return np.ldexp(np.rint(np.ldexp(coefficient / largest, BITS)), -BITS) / scale


@dataclass(frozen=True, slots=True)
class Linear(Weak):
    """A weak classifier that compares a sum of columns, found at the node; made by `linear`."""

    kind: ClassVar[str] = "linear"
    searches: ClassVar = LinearSearch
    takes: ClassVar[Takes] = Takes(holes=True, levels=True)

    dense_gain: float
    max_pairs: int
    seed: int
    stump: Stump

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the data that the learner's search reads."""
        data = self.stump.arrange(problem.in_sums(), n_threads)
        return replace(data.growing(Projections.joined), problem=problem)


@maker
def linear(
    criterion: ClassCriterion = "kearns_mansour",
    *,
    dense_gain: float | None = 1.0,
    max_pairs: int = 200,
    seed: int = 0,
    min_weight_fraction: float = 0.0,
    min_samples_leaf: int = 1,
) -> Linear:
    """Sums of columns that are found at each node by descending a smoothed criterion.

    A direction stands for coefficients of columns. The best single column, good pairs of columns,
    and directions of all columns are candidates; the coefficients minimise the Kearns-Mansour
    criterion of answers that are sure far from the threshold only. Then the best threshold is
    found, as that of a stump is.

    Parameters
    ----------
    criterion : {"kearns_mansour", "gini", "entropy", "error"}
        What the threshold minimises, see `stump`. Directions are compared by "kearns_mansour".
    dense_gain : float or None
        A direction of all columns is taken if it lowers the criterion more than so many times as
        much as the best one of one or two columns; at least 0. None: directions of all columns
        are not looked for.
    max_pairs : int
        Greatest number of pairs of columns that are looked at; if there are more, so many are
        drawn, the same for all nodes.
    seed : int
        Seed of this draw, at least 0.
    min_weight_fraction : float
        Least share, 0 to 0.5, of the node's weight on either side of the cut.
    min_samples_leaf : int
        Least number of training rows on either side.

    Returns
    -------
    Linear
        To be passed as ``weak_learner=`` to a builder, which takes X as a matrix, a data frame or
        `SortedColumns`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range. The builder raises ValueError if more than 8192
        columns vary and `dense_gain` is not None.

    Notes
    -----
    Directions of all of k columns are found with eight matrices of k by k numbers: 64 k**2 bytes,
    and time in proportion to k**3, at each node.

    A missing value counts as the weighted mean of the others of its column in training; a category
    is a column of zeros and ones for each of its levels.

    Units of columns do not matter. Answers are those of a projection with an error that has
    Student's t distribution with two degrees of freedom, whose width falls from 0.5 to 0.1 standard
    deviations (pairs: 0.2 and 0.05). The descent starts from linear discriminant analysis and from
    the two directions along which the variances of the classes differ most. Where more than 2,000
    rows arrive (pairs: 4,000), it looks at every second, or third, or ... row at first. The model
    then depends on the order of the rows, and copies of a row are not the same as weights.

    With two columns or fewer there are no directions of all columns apart from the pair.

    Examples
    --------
    A corner that is turned by a third of a right angle:

    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> a, b = X @ [0.87, 0.5], X @ [-0.5, 0.87]
    >>> y = (a > -0.5) & (b > -0.5)
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=2, weak_learner=pb.weak.linear())
    >>> bool(np.mean(pb.predict(model, X) == y) > 0.99)
    True
    """
    gain = math.inf if dense_gain is None else check_number("dense_gain", dense_gain, min_value=0.0)
    return Linear(
        gain,
        check_integer("max_pairs", max_pairs, min_value=1),
        check_integer("seed", seed, min_value=0),
        Stump(
            *checked_columns(criterion, "auto", 256, min_weight_fraction, min_samples_leaf),
            categorical_smoothing=0.0,
        ),
    )
