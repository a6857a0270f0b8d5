"""Weak learner that compares a linear combination of features, found at each node."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pboost.data.columns.bin_and_sort import sorted_columns
from pboost.data.node_inputs.imputation import column_means, filled
from pboost.data.node_inputs.sums import Projections
from pboost.data.read.convert import Features
from pboost.data.read.table import Takes
from pboost.data.targets import ClassCriterion
from pboost.data.training_data import Problem, TrainingData
from pboost.threads import Workers
from pboost.values import FloatArray, check_integer, check_number
from pboost.weak import directions
from pboost.weak.base import GrownSearch, Weak, Weights, maker
from pboost.weak.stump_search import Stump, StumpSearch, checked_columns

#: Number of bits of each coefficient. More bits would not improve the direction.
BITS = 24


#: The criterion of a direction at its best threshold, the direction, and the threshold.
Candidate: TypeAlias = tuple[float, Projections, float]


class LinearSearch(GrownSearch):
    """Search that trains a direction on the rows at a node."""

    weak: Linear

    def __init__(
        self, data: TrainingData, weak: Linear, workers: Workers, generator: object = None
    ) -> None:
        super().__init__(data, weak, workers)
        self._pairs = listed_pairs(data.source.shape[1], weak.max_pairs, weak.seed)
        self._fill = column_means(data.source, data.source_rows, data.weight)

    def train(self, rows: NDArray[np.intp], real: FloatArray) -> tuple[Projections, float] | None:
        """Train a direction on weighted rows; return the direction and a threshold."""
        chosen = self._chosen(self.data.part(rows, real / real.max()))
        return None if chosen is None else chosen[1:]

    def _chosen(self, part: TrainingData) -> Candidate | None:
        """Return the best sparse direction, or the dense direction if it is clearly better."""
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
        # In case of ties, min() returns the first.
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
        """Return a direction with its best threshold, or None if it allows no split."""
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
    """Return an array (m, 2) of all pairs of columns, or of `limit` randomly drawn pairs."""
    if n_columns * (n_columns - 1) // 2 <= limit:
        pairs = list(combinations(range(n_columns), 2))
    else:
        generator = np.random.default_rng(seed)
        drawn = (generator.choice(n_columns, 2, replace=False) for _ in range(limit))
        pairs = sorted({(int(min(pair)), int(max(pair))) for pair in drawn})
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def in_units(X: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the standard deviation of each column, and the standardized columns."""
    scale, columns = np.zeros(X.shape[1]), []
    for j, column in enumerate(X.T):
        # Divide by the largest absolute value first, because its square may overflow.
        unit = float(np.abs(column).max())
        centred = column / unit if unit else column
        centred = centred - centred @ weight
        deviation = math.sqrt(float(centred**2 @ weight))
        if deviation * unit > np.finfo(np.float64).tiny and deviation > 1e-12:
            scale[j] = deviation * unit
            columns.append(centred / deviation)
    return scale, np.ascontiguousarray(columns).reshape(len(columns), len(X))


def in_own_units(coefficient: FloatArray, scale: FloatArray) -> FloatArray:
    """Round coefficients of standardized columns; return coefficients of the original columns.

    The coefficient of a single column becomes 1.
    """
    if len(coefficient) == 1:
        return np.ones(1)
    largest = coefficient[np.argmax(np.abs(coefficient))]
    return np.ldexp(np.rint(np.ldexp(coefficient / largest, BITS)), -BITS) / scale


@dataclass(frozen=True, slots=True)
class Linear(Weak):
    """A threshold on a linear combination of features; made by `linear`."""

    kind: ClassVar[str] = "linear"
    searches: ClassVar = LinearSearch
    takes: ClassVar[Takes] = Takes(holes=True, levels=True)

    dense_gain: float
    max_pairs: int
    seed: int
    stump: Stump

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the training data in the form that the search reads."""
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
    """Create a weak learner that splits on a linear combination of features.

    The candidates at each node are the best single feature, good pairs of features, and a direction
    of all features. Their coefficients minimize a smoothed Kearns-Mansour criterion, and the
    threshold is then searched as in a stump.

    Parameters
    ----------
    criterion : {"kearns_mansour", "gini", "entropy", "error"}
        Criterion that the threshold minimizes, see `stump`. Directions are always compared by
        "kearns_mansour".
    dense_gain : float or None
        Use a direction of all features only if it lowers the criterion by more than `dense_gain`
        times as much as the best direction of one or two features; at least 0. With None,
        directions of all features are not searched.
    max_pairs : int
        Largest number of pairs of features to search. If there are more pairs, `max_pairs` of them
        are drawn once for all nodes.
    seed : int
        Seed of the drawn pairs, at least 0.
    min_weight_fraction : float
        Minimum fraction of the node's weight on each side of a split, 0 to 0.5.
    min_samples_leaf : int
        Minimum number of training rows on each side of a split.

    Returns
    -------
    Linear
        A weak learner for the option ``weak_learner`` of a fit function. X must be an array, a data
        frame or `SortedColumns`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range. The fit function raises ValueError if more than
        8192 features vary and `dense_gain` is not None.

    Notes
    -----
    The search for a direction of all k features takes 64 k**2 bytes (eight k by k matrices), and
    time proportional to k**3, at each node. With two features or fewer this search is skipped.

    Missing values are replaced by the weighted training mean of the feature. Categorical features
    are one-hot encoded.

    The result does not depend on the units of the features. The smoothed criterion adds noise to
    the projection, from Student's t distribution with two degrees of freedom. The width of this
    noise decreases from 0.5 to 0.1 standard deviations (for pairs, from 0.2 to 0.05). The search
    starts from linear discriminant analysis and from the two directions in which the class
    variances differ most. If more than 2,000 rows reach the node (for pairs, 4,000), the search
    first uses every m-th row. The model then depends on the order of the rows, and repeating a row
    is not the same as weighting it.

    Examples
    --------
    Two classes separated by a rotated corner:

    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> a, b = X @ [0.87, 0.5], X @ [-0.5, 0.87]
    >>> y = (a > -0.5) & (b > -0.5)
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=2, weak_learner=pb.weak.linear())
    >>> round(float(np.mean(pb.predict(model, X) == y)), 2)
    1.0
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
