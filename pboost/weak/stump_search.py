"""Stumps on features or linear combinations: the learners, split search and weight update."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pboost._core import split, voting
from pboost.data.columns.columns import (
    AUTO_BINNED_CELLS,
    GROUP,
    SEARCHES,
    BinnedColumns,
    SearchKind,
    SortedColumns,
    check_summed,
)
from pboost.data.columns.prebuilt import HOLES, LEVEL_SMOOTHING, LEVELS, MAX_BINS, ROW_MASK, has
from pboost.data.feature_costs import FeatureCosts, read_feature_costs
from pboost.data.node_inputs.sums import (
    Projections,
    grid_of_directions,
    random_directions,
    standard_deviations,
)
from pboost.data.read.table import Takes
from pboost.data.targets import CODES, CRITERIA, IMPURITIES, ClassCriterion
from pboost.data.training_data import Problem, Search, TrainingData, is_binned
from pboost.threads import CELLS_PER_CALL, Workers
from pboost.values import Array, FloatArray, IntArray, check_choice, check_integer, check_number
from pboost.weak.base import Cut, Weak, WeakSearch, Weights, maker

#: How missing values are handled.
MissingRule: TypeAlias = Literal["learn", "error"]
MISSING: tuple[MissingRule, ...] = get_args(MissingRule)


@dataclass(frozen=True, slots=True)
class StumpCut(Cut):
    """A stump, whose split is stored as a bin and as a position in the sorted order.

    `threshold` is None unless it was passed by the caller.
    """

    cut_bin: int
    position: int
    threshold: float | None = None


class StumpSearch(WeakSearch):
    """Split search and weight update for one set of columns, with their work arrays."""

    def __init__(
        self, data: TrainingData, weak: ColumnLearner, workers: Workers, generator: object = None
    ) -> None:
        self.data, self.workers, self.model_columns = data, workers, data.model_columns
        self._columns, self._n_rows = data.columns, len(data.rows)
        # Small data are searched in one call, which also checks for Ctrl-C.
        self._at_once = workers.n_threads == 1 and self._n_rows <= CELLS_PER_CALL
        self._criterion, self._smoothing = CODES[weak.criterion], weak.categorical_smoothing
        self._min_weight_fraction, self._min_samples_leaf = (
            weak.min_weight_fraction,
            weak.min_samples_leaf,
        )
        self._order = data.order
        assert data.columns.bin_start is not None
        self._bin_start = data.columns.bin_start
        d, bins = len(self._bin_start), self._bin_start.shape[1] - 1
        self._special = data.columns.special
        # With missing values, each feature is searched twice: missing values above, then below.
        looks = d if self._special is None else 2 * d
        self._edge = np.empty((d, 2, bins + 1), dtype=np.int64)
        self._bound = np.empty((looks, bins))
        self._best, self._least = np.empty(looks), np.full(1, math.inf)

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the best stump for these weights, or None if no split is allowed."""
        negative, positive = weights.masses
        limits = self._limits(negative, positive)
        columns = self._order, self._bin_start, self._columns.n_bins
        self._least[0] = math.inf
        special = self._special, self._smoothing
        work = partial(
            split.search,
            self._columns.codes,
            *columns,
            weights.fixed,
            limits,
            self._edge,
            self._bound,
            self._best,
            self._least,
        )
        if self._special is not None:
            work = partial(work, special=self._special, smoothing=self._smoothing)
            self._best.fill(math.inf)
        self.workers.run_shared(work, len(self._edge), GROUP, self._n_rows)
        located = split.locate(
            *columns, weights.fixed, limits, self._edge, self._bound, self._best, *special
        )
        return self.located_cut(located, weights)

    def located_cut(self, located: Any, weights: Weights) -> StumpCut | None:
        """Convert the split located by the kernel to a `StumpCut`."""
        if located is None:
            return None
        negative, positive = weights.masses
        feature, cut_bin, position, n0, p0, side, levels = located
        masses = (float(n0), float(p0)), (float(negative - n0), float(positive - p0))
        return StumpCut(feature, masses, cut_bin, position, side=side, levels=levels)

    def cut_at(
        self,
        feature: int,
        threshold: float,
        weights: Weights,
        side: int = 0,
        members: int | None = None,
    ) -> StumpCut:
        """Return the split of a stored stump on these rows; a side may be empty."""
        return self._weighed(self.place(feature, threshold, side, members), weights)

    def _weighed(self, cut: StumpCut, weights: Weights) -> StumpCut:
        """Return the split with the class weights of its sides."""
        n, p = weights.masses
        n0, p0 = self.data.by_class(weights.fixed * ~self.sides(cut))
        return replace(cut, masses=((float(n0), float(p0)), (float(n - n0), float(p - p0))))

    def place(
        self, feature: int, threshold: float, side: int = 0, members: int | None = None
    ) -> StumpCut:
        """Return the bin and position of the split of a stored stump, without class weights."""
        columns, starts = self.data.columns, self._bin_start[feature]
        levels = None if members is None else (members, 0)
        if not has(columns.special, HOLES, feature):
            side = -1
        if has(columns.special, LEVELS, feature):
            return StumpCut(feature, (), 0, 0, threshold, side=side, levels=levels or (0, 0))
        if self.data.exact and isinstance(columns, SortedColumns):
            order, n_bins = columns.packed_order[feature], columns.n_bins[feature]
            position = columns.n_below(feature, order, threshold)
            cut_bin = int(np.searchsorted(starts[: n_bins + 1], position)) - 1
            return StumpCut(feature, (), cut_bin, position, threshold, side=side)
        cut_bin = columns.bin_below(feature, threshold)
        return StumpCut(feature, (), cut_bin, int(starts[cut_bin + 1]), threshold, side=side)

    def _limits(self, negative: int, positive: int) -> tuple[int, int, int, int, int, int, int]:
        """Return the limits of the search in the form that the kernels read."""
        return (
            self._criterion,
            self._n_rows,
            self.data.n_negative,
            negative,
            positive,
            math.ceil(self._min_weight_fraction * (negative + positive)),
            self._min_samples_leaf,
        )

    def thresholds(self, cuts: Sequence[StumpCut]) -> FloatArray:
        """Return the thresholds of splits; 0.5 for categorical splits, whose input is 0 or 1."""
        if self._special is not None:
            cuts = [c if c.levels is None else replace(c, threshold=0.5) for c in cuts]
        unresolved = [c for c in cuts if c.threshold is None]
        places = np.array([(c.feature, c.cut_bin, c.position) for c in unresolved], dtype=np.intp)
        feature, cut_bin, position = places.reshape(-1, 3).T
        thresholds = np.array([c.threshold for c in cuts], dtype=np.float64)
        thresholds[np.isnan(thresholds)] = self.data.columns.threshold(feature, cut_bin, position)
        return thresholds

    def reweight(
        self, cut: StumpCut, factors: FloatArray, source: FloatArray, target: Weights
    ) -> None:
        """Multiply the source weight of each row by the factor (side, class) of its side.

        Write the products, their fixed-point values and their sums to `target`. Source and target
        can be the same array.
        """
        n, starts, middle = self._n_rows, self._bin_start[cut.feature], self.data.n_negative
        inside = cut.levels is None and cut.position < int(starts[cut.cut_bin + 1])
        work = partial(
            voting.reweight,
            self._columns.codes[cut.feature],
            cut.cut_bin,
            inside,
            middle,
            factors,
            target.scale,
            source,
            target.real,
            target.fixed,
        )
        if cut.side >= 0 or cut.levels is not None:
            work = partial(work, side=self.side_of_codes(cut))
        parts = [work(0, n)] if self._at_once else self.workers.run_shared(work, n)
        if inside:
            mass = voting.reweight_bin(
                self._order[cut.feature],
                starts[cut.cut_bin],
                cut.position,
                starts[cut.cut_bin + 1],
                middle,
                factors,
                target.scale,
                target.real,
                target.fixed,
            )
            parts.append(mass)
        target.masses = (sum(p[0] for p in parts), sum(p[1] for p in parts))

    def edge_masses(self) -> NDArray[np.int64]:
        """Return the fixed-point weights left of each bin edge (d, b), from the last search."""
        return self._edge.sum(axis=1)

    def rows_in_bin(self, cut: StumpCut) -> IntArray:
        """Return the rows below a split within the bin that it divides, if any."""
        starts = self._bin_start[cut.feature, cut.cut_bin : cut.cut_bin + 2]
        stop = cut.position if cut.position < starts[1] else starts[0]
        return self._order[cut.feature, starts[0] : stop] & ROW_MASK

    def heavier_sides(self, cuts: Sequence[StumpCut]) -> list[int]:
        """Return the side of each split with the larger starting weight; 0 in case of a tie."""
        if self.data.problem.weights is not None:
            return super().heavier_sides(cuts)
        return [int(2 * self._n_below(cut) < self._n_rows) for cut in cuts]

    def is_open(self, cut: StumpCut) -> bool:
        """Return whether a split has no side for missing values, although they may occur."""
        if cut.side >= 0 or self._special is None:
            return False
        return bool(self._special[cut.feature])

    def _n_below(self, cut: StumpCut) -> int:
        """Return the number of rows below a split, if no row has a missing value."""
        if cut.levels is None:
            return cut.position
        (above, _), starts = cut.levels, self._bin_start[cut.feature]
        inside = [k for k in range(above.bit_length()) if above >> k & 1]
        return self._n_rows - int((starts[[k + 1 for k in inside]] - starts[inside]).sum())

    def side_of_codes(self, cut: StumpCut) -> NDArray[np.uint8]:
        """Return an array (256,) with the side of each bin code.

        Categories without weight follow the missing values, as in `WeakSearch.model_nodes`.
        """
        if cut.levels is not None:
            members, absent = cut.levels
            members |= absent if cut.side > 0 else 0
            above = np.frombuffer(members.to_bytes(MAX_BINS // 8, "little"), dtype=np.uint8)
            sides = np.unpackbits(above, bitorder="little")
        else:
            sides = (np.arange(MAX_BINS) > cut.cut_bin).astype(np.uint8)
        sides[self._columns.n_bins[cut.feature] :] = max(cut.side, 0)
        return sides


@dataclass(frozen=True, slots=True)
class ColumnLearner(Weak):
    """Base class of the weak learners that compare a column of numbers with a threshold."""

    searches: ClassVar = StumpSearch
    #: Whether the existing order of sorted columns can be used.
    keeps_order: ClassVar[bool] = True

    criterion: ClassCriterion = "kearns_mansour"
    search: SearchKind = "auto"
    max_bins: int = 256
    min_weight_fraction: float = 0.0
    min_samples_leaf: int = 1
    #: How missing values are handled, and how strongly category frequencies are shrunk.
    missing: ClassVar[str] = "learn"
    categorical_smoothing: ClassVar[float] = 0.0  # linear combinations have no categories

    def resolve_search(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        return "binned" if is_binned(self.search, n_rows) else "exact"

    def is_exact(self, problem: Problem) -> bool:
        """Return whether the search is exact. Multiclass problems use it only on request."""
        X = problem.columns
        if isinstance(X, BinnedColumns):
            if self.search == "exact":
                raise ValueError(
                    'weak_learner: search="exact" requires X or SortedColumns, got BinnedColumns'
                )
            if int(X.n_bins.max(initial=0)) > self.max_bins:
                raise ValueError(
                    f"weak_learner: max_bins={self.max_bins} is less than the number of bins "
                    f"of the BinnedColumns, {int(X.n_bins.max())}"
                )
            return False
        if problem.is_multiclass:
            return self.search == "exact"
        if isinstance(X, SortedColumns) and self.search == "auto" and self.keeps_order:
            return True
        return self.resolve_search(problem.n_rows) == "exact"

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the training data in the form that the search reads."""
        exact = self.is_exact(problem)
        return problem.arranged(n_threads, max_bins=self.max_bins, exact=exact)

    def measured(self) -> ColumnLearner:
        """Return the learner for features with measurement errors, or raise an error."""
        if self.search == "exact":
            raise ValueError(
                "weak_learner: the gaussian observation model computes expected weights at bin "
                'edges and does not support search="exact"; use search="auto" or "binned"'
            )
        return replace(self, search="binned")


@dataclass(frozen=True, slots=True)
class Stump(ColumnLearner):
    """A weak classifier that compares one feature with one threshold; made by `stump`."""

    kind: ClassVar[str] = "stump"
    reads_codes: ClassVar[bool] = True

    @property
    def takes(self) -> Takes:  # type: ignore[override]
        """Whether missing values and categorical features are supported."""
        return Takes(holes=self.missing != "error", levels=True)

    missing: str = "learn"  # type: ignore[misc]
    categorical_smoothing: float = LEVEL_SMOOTHING  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Affine(ColumnLearner):
    """A threshold on a fixed set of linear combinations of features; made by `affine`."""

    kind: ClassVar[str] = "affine"
    takes: ClassVar[Takes] = Takes(holes=True, levels=True)
    keeps_order: ClassVar[bool] = False

    n_directions: int = 180
    n_terms: int = 2
    seed: int = 0

    def resolve_search(self, n_rows: int) -> str:
        """Return "exact" or "binned" for data of `n_rows` rows."""
        cells = n_rows * self.n_directions
        return "binned" if is_binned(self.search, cells, AUTO_BINNED_CELLS) else "exact"

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the training data with projections as columns."""
        exact = self.is_exact(problem)
        check_summed(problem.columns, "that are affine")
        data = problem.in_sums().arranged(
            n_threads, max_bins=self.max_bins, exact=exact, project=self.projections
        )
        return replace(data, problem=problem)

    def projections(self, X: Array, rows: IntArray, weights: FloatArray | None) -> Projections:
        """Return the projections that are compared with thresholds, fitted on rows of X."""
        d = X.shape[1]
        if d == 2:
            return grid_of_directions(self.n_directions)
        scale = standard_deviations(X, rows, weights) if d > 2 else np.zeros(d)
        generator = np.random.default_rng(self.seed)
        return random_directions(scale, self.n_directions, self.n_terms, generator)


def stump_search(options: Mapping[str, object]) -> Search | None:
    """Return the search options of a stump; None for other weak learners."""
    weak = options.get("weak_learner", Stump())
    return Search(weak.search, weak.max_bins) if isinstance(weak, Stump) else None


@maker
def stump(
    criterion: ClassCriterion = "kearns_mansour",
    search: SearchKind = "auto",
    *,
    max_bins: int = 256,
    min_weight_fraction: float = 0.0,
    min_samples_leaf: int = 1,
    missing: MissingRule = "learn",
    categorical_smoothing: float = LEVEL_SMOOTHING,
) -> Stump:
    """Create a decision stump, which splits on one feature: ``x[j] <= threshold``.

    Parameters
    ----------
    criterion : {"kearns_mansour", "gini", "entropy", "error"}
        Criterion that the split minimizes. With class weights L+, L- below and R+, R- above the
        split, "kearns_mansour" is 2√(L+ L-) + 2√(R+ R-), the exponential loss after the split. The
        other criteria are the Gini, entropy (base 2) and error impurities, weighted by the two
        sides.
    search : {"auto", "exact", "binned"}
        "exact" tries every threshold between different values; "binned" tries the edges of
        `max_bins` bins of about equal weight. "auto" is "exact" for binary classification with
        fewer than 1e7 rows, and "binned" otherwise.
    max_bins : int
        Number of bins of the binned search, 2 to 256.
    min_weight_fraction : float
        Minimum fraction of the node's weight on each side of a split, 0 to 0.5.
    min_samples_leaf : int
        Minimum number of training rows on each side of a split.
    missing : {"learn", "error"}
        "learn" sends missing values to the exit that lowers the criterion most, or to the exit with
        the larger reach if no training row at the node had a missing value. A split can also
        separate missing values from all other values. With "error", missing values in the training
        data raise an error.
    categorical_smoothing : float
        Strength of shrinkage for categorical features with more than two categories. The class
        frequencies of each category are shrunk towards the class frequencies of the node, in
        proportion to the variation expected by chance. Larger values prevent overfitting of
        features with many categories; 0 disables shrinkage.

    Returns
    -------
    Stump
        A weak learner for the option ``weak_learner`` of a fit function.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    Splits whose criteria agree to 1e-12 of the node's weight are tied. Ties are broken by the
    lowest feature, then the lowest threshold, then missing values above the split. The threshold is
    the midpoint of the two neighboring values.

    A categorical split divides the categories, ordered by their shrunk class frequencies, into two
    groups, or separates one category from all others. Shrinkage also reduces the gain of the split.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.weak.stump("gini", min_samples_leaf=5).min_samples_leaf
    5
    """
    columns = checked_columns(criterion, search, max_bins, min_weight_fraction, min_samples_leaf)
    return Stump(*columns, **checked_missing(missing, categorical_smoothing))


@maker
def affine(
    criterion: ClassCriterion = "kearns_mansour",
    search: SearchKind = "auto",
    *,
    n_directions: int = 180,
    n_terms: int = 2,
    seed: int = 0,
    max_bins: int = 256,
    min_weight_fraction: float = 0.0,
    min_samples_leaf: int = 1,
) -> Affine:
    """Create a weak learner that splits on random or gridded linear combinations of features.

    The best threshold is searched as for a stump. The directions are the same at all nodes:

    * With two features: a grid of angles ``k * pi / n_directions``, k = 0, 1, …, with the
      coefficients (cos, sin). The features must be in comparable units.
    * With more features: the features themselves, and `n_directions` random sums of `n_terms`
      different features. The coefficients are standard normal, scaled to length 1, and divided by
      the standard deviations of the features. Constant features are not drawn.
    * With one feature: the feature itself.

    Parameters
    ----------
    criterion : {"kearns_mansour", "gini", "entropy", "error"}
        Criterion that the split minimizes, see `stump`.
    search : {"auto", "exact", "binned"}
        See `stump`. "auto" is "exact" if the number of rows times `n_directions` is below 1e8.
    n_directions : int
        Number of directions, at least 1. With two features, an even number includes the features
        themselves.
    n_terms : int
        Number of features in a random sum, at least 2. If there are fewer features, all are used.
        Ignored with two features.
    seed : int
        Seed of the random directions, at least 0.
    max_bins : int
        Number of bins of the binned search, 2 to 256.
    min_weight_fraction : float
        Minimum fraction of the node's weight on each side of a split, 0 to 0.5.
    min_samples_leaf : int
        Minimum number of training rows on each side of a split.

    Returns
    -------
    Affine
        A weak learner for the option ``weak_learner`` of a fit function. X must be an array, a data
        frame or `SortedColumns`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    Missing values are replaced by the weighted training mean of the feature. Categorical features
    are one-hot encoded.

    Training takes the time and memory of stumps with `n_directions` features: 5 bytes per row and
    direction for the exact search, 1 byte for the binned search. The model stores only the
    directions that its nodes use (``model.inputs``) and computes each of them at its node.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules" (2004), section 5: two columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 0.0], [2.0, 1.0]])
    >>> weak = pb.weak.affine(n_directions=4)
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], max_nodes=1, weak_learner=weak)
    >>> print(pb.describe(model).splitlines()[-1])
    node 0: -0.7071*x[0] + 0.7071*x[1] <= 0: vote +4.2587, out; else vote -4.2587, out
    """
    return Affine(
        *checked_columns(criterion, search, max_bins, min_weight_fraction, min_samples_leaf),
        check_integer("n_directions", n_directions, min_value=1),
        check_integer("n_terms", n_terms, min_value=2),
        check_integer("seed", seed, min_value=0),
    )


def checked_missing(missing: str, categorical_smoothing: float) -> dict[str, Any]:
    """Return the checked options for missing values and categorical features."""
    return {
        "missing": check_choice("missing", missing, MISSING),
        "categorical_smoothing": check_number(
            "categorical_smoothing", categorical_smoothing, min_value=0.0
        ),
    }


def checked_columns(
    criterion: ClassCriterion,
    search: SearchKind,
    max_bins: int,
    min_weight_fraction: float,
    min_samples_leaf: int,
) -> tuple[ClassCriterion, SearchKind, int, float, int]:
    """Return the checked options that these weak learners share, in the order of the fields."""
    return (
        check_choice("criterion", criterion, CRITERIA),
        check_choice("search", search, SEARCHES),
        check_integer("max_bins", max_bins, min_value=2, max_value=256),
        check_number("min_weight_fraction", min_weight_fraction, min_value=0.0, max_value=0.5),
        check_integer("min_samples_leaf", min_samples_leaf, min_value=1),
    )


#: Convert scores of the kernel to `IMPURITIES` times the weight.
VALUES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "kearns_mansour": lambda score: 2.0 * np.sqrt(score),
    "gini": lambda score: 0.5 * score,
    "entropy": lambda score: score,
    "error": lambda score: 0.5 * score,
}


class CostSearch(StumpSearch):
    """Stump search that takes feature costs into account.

    Attributes
    ----------
    feature_costs : FeatureCosts
        Costs of the features.
    unpaid : ndarray of float64, shape (n_items,)
        For each item (feature or cost group), the fraction of the starting weight at the node that
        has not yet paid for it. The training loop sets these fractions before each search.
    """

    def __init__(
        self, data: TrainingData, weak: Any, workers: Workers, generator: object = None
    ) -> None:
        super().__init__(data, weak, workers, generator)
        self.feature_costs: FeatureCosts = weak.feature_costs
        self._name = weak.criterion
        self.unpaid = np.ones(len(self.feature_costs.cost))

    def items(self, feature: int) -> list[int]:
        """Return the items (feature, cost group) that must be acquired for a feature."""
        return [item for item in self.feature_costs.item[feature].tolist() if item >= 0]

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the stump with the largest decrease of the criterion per unit of cost."""
        limits, d = self._limits(*weights.masses), len(self._edge)
        columns = self._order, self._bin_start, self._columns.n_bins
        special = self._special, self._smoothing
        work = self._edge, self._bound, self._best
        self._best.fill(np.inf)

        def search(first: int, last: int) -> None:
            for j in range(first, last):  # search one feature at a time to keep all scores
                lowest = np.full(1, np.inf)
                split.search(
                    self._columns.codes,
                    *columns,
                    weights.fixed,
                    limits,
                    *work,
                    lowest,
                    j,
                    j + 1,
                    0,
                    *special,
                )

        self.workers.run(search, d, GROUP, self._n_rows)
        best_values = self._best.reshape(-1, d).min(axis=0)
        able = np.flatnonzero(best_values < np.inf)
        if not len(able):
            return None
        mass = np.array(weights.masses, dtype=np.float64)
        node_value = float(mass.sum() * IMPURITIES[self._name](mass[None] / mass.sum())[0])
        to_pay = np.append(
            self.feature_costs.cost * self.unpaid, 0.0
        )  # the last entry stands for "no item"
        cost = self.feature_costs.comparison + to_pay[self.feature_costs.item[able]].sum(axis=1)
        chosen = able[np.argmax((node_value - VALUES[self._name](best_values[able])) / cost)]
        others = np.arange(len(self._best)) % d != chosen
        self._best[others] = np.inf
        return self.located_cut(
            split.locate(*columns, weights.fixed, limits, *work, *special), weights
        )


@dataclass(frozen=True, slots=True)
class CostStump(Stump):
    """A stump on features that have costs."""

    searches: ClassVar = CostSearch

    feature_costs: FeatureCosts | None = None


def with_feature_costs(weak: Weak, options: Any, problem: Problem) -> Weak:
    """Return the weak learner with feature costs; without costs, return it unchanged.

    Raise NotImplementedError if the learner or the problem does not support costs.
    """
    cost_table = read_feature_costs(options, problem.names, problem.n_features)
    if cost_table is None:
        return weak
    if type(weak) is not Stump:
        raise NotImplementedError(
            f"weak_learner: expected weak.stump() with feature_costs, got {weak!r}"
        )
    if problem.is_multiclass:
        raise NotImplementedError(
            "feature_costs: expected None with more than two classes; use fit_gradient_boosting, "
            "or fit_one_vs_rest, which fits one model per class"
        )
    return CostStump(
        **{f.name: getattr(weak, f.name) for f in fields(weak)}, feature_costs=cost_table
    )
