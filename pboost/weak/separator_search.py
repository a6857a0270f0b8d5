"""Separators: weak classifiers that are boosted stumps, trained at each node of a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pboost._core.voting import NO_VOTE, VoteRule
from pboost.data.columns.columns import SearchKind, SortedColumns
from pboost.data.node_inputs.sums import Separators
from pboost.data.read.table import Takes
from pboost.data.targets import ClassCriterion
from pboost.data.training_data import Problem, TrainingData
from pboost.values import FloatArray, VoteKind, check_integer, vote_rule
from pboost.weak.base import GrownSearch, Weak, Weights, maker
from pboost.weak.stump_search import Stump, StumpCut, StumpSearch, checked_columns

#: Votes of stumps are multiples of 2**VOTE_BITS, so sums are exact in any order.
VOTE_BITS = -32


class SeparatorSearch(GrownSearch):
    """Search that trains a separator on the rows at a node."""

    weak: Separator

    def train(self, rows: NDArray[np.intp], real: FloatArray) -> tuple[Separators, float] | None:
        """Train a separator on weighted rows; return the separator and a threshold."""
        trained = self._boosted(self._part(rows, real))
        return None if trained is None else (trained, 0.0)

    def _part(self, rows: NDArray[np.intp], real: FloatArray) -> TrainingData:
        """Return the training data of some rows, with new weights."""
        # Scaling by a power of two causes no rounding error.
        weight = np.ldexp(real, -int(np.frexp(real.max())[1]))
        data, columns = self.data.part(rows, weight), self.data.columns
        if len(rows) == self.data.n_rows:
            return data
        listed = rows.astype(np.int32)
        if isinstance(columns, SortedColumns):
            columns = columns.select(listed, self.weak.stump.max_bins, self.workers.n_threads)
        else:
            columns = columns.select(listed, self.workers.n_threads)
        return data.with_columns(columns, data.exact)

    def _boosted(self, data: TrainingData) -> Separators | None:
        """Fit AdaBoost with stumps on these data."""
        weights = Weights(data.weight, data.fixed, data.scale, data.class_masses())
        if min(weights.masses) <= 0:
            return None
        weak, search = self.weak, StumpSearch(data, self.weak.stump, self.workers)
        rule = VoteRule(weak.votes, weak.smoothing, weak.learning_rate)
        start: StartingMasses | None = None
        cuts: list[StumpCut] = []
        votes: list[tuple[float, float]] = []
        certificate = 1.0
        for left in reversed(range(weak.n_stumps)):
            cut = search.best(weights)
            if cut is None:
                break
            start = start or StartingMasses(search, weights)
            step = rule.step(cut.masses)
            if max(map(abs, step.votes)) < NO_VOTE:
                break
            cuts.append(cut)
            votes.append(step.votes)
            certificate *= step.shrink
            if step.perfect or not certificate or not left:
                break
            search.reweight(cut, step.factors, weights.real, weights)
        if start is None or not cuts:
            return None
        vote = np.ldexp(np.rint(np.ldexp(votes, -VOTE_BITS)), VOTE_BITS)
        feature = [cut.feature for cut in cuts]
        sides = [start.heavier(cut) if cut.side < 0 else cut.side for cut in cuts]
        result = Separators.of_terms([feature], [search.thresholds(cuts)], [vote])
        return replace(result, missing=np.array(sides))


class StartingMasses:
    """Sums of the initial weights of a separator's rows below each bin edge.

    The sums are available after the search for the first stump.
    """

    def __init__(self, search: StumpSearch, weights: Weights) -> None:
        self.search, self.fixed = search, weights.fixed.copy()
        self.edge, self.total = search.edge_masses(), sum(weights.masses)

    def heavier(self, cut: StumpCut) -> int:
        """Return the side of a stump with the larger weight; 0 in case of a tie."""
        low, high = self.edge[cut.feature, cut.cut_bin : cut.cut_bin + 2].tolist()
        rows, below = self.search.rows_in_bin(cut), high
        if len(rows) and 2 * high >= self.total:
            below = low if 2 * low >= self.total else low + int(self.fixed[rows].sum())
        return int(2 * below < self.total)


@dataclass(frozen=True, slots=True)
class Separator(Weak):
    """The sign of a sum of stumps; made by `separator`."""

    kind: ClassVar[str] = "separator"
    searches: ClassVar = SeparatorSearch
    takes: ClassVar[Takes] = Takes(holes=True, levels=True)

    n_stumps: int
    smoothing: float
    learning_rate: float
    votes: str
    stump: Stump

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the training data in the form that the search reads."""
        data = self.stump.arrange(problem.in_sums(), n_threads)
        return replace(data.growing(Separators.joined), problem=problem)


@maker
def separator(
    n_stumps: int = 50,
    *,
    smoothing: float = 1e-3,
    learning_rate: float = 1.0,
    votes: VoteKind = "domain",
    criterion: ClassCriterion = "kearns_mansour",
    search: SearchKind = "auto",
    max_bins: int = 256,
) -> Separator:
    """Create a weak learner that splits a node by the sign of a sum of boosted stumps.

    AdaBoost is fitted on the rows at each node, which gives a curved decision boundary in all
    features. Rows with a positive sum of votes take exit 1, and all other rows take exit 0. If all
    rows are on one side, there is no split.

    Parameters
    ----------
    n_stumps : int
        Largest number of stumps in a separator.
    smoothing : float
        Smoothing of the votes of the stumps, see `fit_adaboost`.
    learning_rate : float
        Factor that multiplies the votes of the stumps.
    votes : {"domain", "symmetric"}
        Kind of votes of the stumps, see `fit_adaboost`.
    criterion : {"kearns_mansour", "gini", "entropy", "error"}
        Criterion that the stumps minimize, see `stump`.
    search : {"auto", "exact", "binned"}
        Split search of the stumps, see `stump`.
    max_bins : int
        Number of bins of the binned search, 2 to 256.

    Returns
    -------
    Separator
        A weak learner for the option ``weak_learner`` of a fit function. X must be an array, a data
        frame or `SortedColumns`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    In a tree with exact exits, a separator is trained with the sample weights on the rows that
    reach its node. In all other models it is trained with the boosted weights.

    Each stump handles missing values as in `stump`. Categorical features are one-hot encoded.

    The votes of the stumps are rounded to multiples of 2**-32, so sums are exact. For prediction
    the stumps are collapsed to one lookup table per feature.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting a la carte with an application to
       boosting oblique decision trees", IJCAI 2007, section 4.3.

    Examples
    --------
    A square of 16 points, with one class on each side of the diagonal:

    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.indices((4, 4)).reshape(2, 16).T
    >>> y = X.sum(axis=1) > 3
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.separator(20))
    >>> float((pb.predict(model, X) == y).mean())
    1.0
    >>> print(pb.describe(model).splitlines()[-1])
    node 0: separator 0 (20 stumps, 2 columns) <= 0: vote -4.3702, out; else vote +4.1149, out
    """
    rule = vote_rule(votes, smoothing, learning_rate)
    return Separator(
        check_integer("n_stumps", n_stumps, min_value=1),
        rule.smoothing,
        rule.learning_rate,
        rule.kind,
        Stump(*checked_columns(criterion, search, max_bins, 0.0, 1), categorical_smoothing=0.0),
    )
