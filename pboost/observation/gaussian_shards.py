"""Features measured with a known error, of rows in several places: answers of the rows' own values.

Stumps are searched in the masses that shards have by bin. What their answers make of weights shards
compute from the values that they keep; they send masses at the exits, as sums of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost._core import noisy_split, reweight
from pboost.data.binned_values import BinnedValues
from pboost.data.columns import BinnedColumns
from pboost.data.engines import merge
from pboost.data.fill import known_sigma
from pboost.data.sigma import check_sigma_shape
from pboost.data.special_columns import levels_among
from pboost.data.table import column_label
from pboost.data.training import TrainingData
from pboost.observation.answers import (
    Answers,
    Observation,
    Observer,
    Reach,
    exit_masses,
    exit_sums,
)
from pboost.observation.gaussian_search import (
    Gaussian,
    GaussianObserver,
    Noise,
    NoisyStumpSearch,
    probabilities,
)
from pboost.threads import Workers
from pboost.values import FloatArray
from pboost.weak.base import Weights
from pboost.weak.port_shards import PortSearch, PortShard, PortStump
from pboost.weak.shards import (
    PathSearch,
    PathStump,
    PathWeights,
    Shard,
    ShardedSearch,
    ShardedStump,
)
from pboost.weak.stump_search import StumpCut


class SentNoise(NamedTuple):
    """A cut as shards are told of it that compares values measured with an error.

    Weights are multiplied by the sum over exits of probability times coefficient (exit, class). Of
    a column of levels `side` says where the rows of each code lie, for certain.
    """

    feature: int
    threshold: float
    sigma: float
    missing: int
    side: NDArray[np.uint8] | None
    coefficients: FloatArray


class AskedExits(NamedTuple):
    """The masses at the exits of a cut are asked for, those at the edges of bins without one."""

    cut: SentNoise | None = None


class _Values(Shard):
    """Rows of one place with their values; parameters are those of `Shard`."""

    #: The newest cut, and what its answers are.
    _answered: tuple[Any, FloatArray] | None = None

    def _above(self, cut: SentNoise) -> FloatArray:
        """Return the probability of exit 1 of each row, as `RowAnswers` takes it."""
        name = cut[:4]
        if self._answered is None or self._answered[0] != name or cut.side is not None:
            if cut.side is not None:
                above: FloatArray = cut.side[self._codes[cut.feature]].astype(np.float64)
            else:
                assert isinstance(self._columns, BinnedValues)
                value, sigma = self._columns.values(cut.feature), np.array([cut.sigma])
                above = probabilities(value, cut.threshold, sigma, cut.missing, self.workers)
            self._answered = name, above
        return self._answered[1]

    def _sent(
        self,
        cut: Any,
        source: FloatArray,
        weight: FloatArray,
        scale: float,
        fixed: NDArray[np.int64],
    ) -> tuple[int, int]:
        """Write what a cut makes of weights; return the masses of the classes."""
        if not isinstance(cut, SentNoise):
            return super()._sent(cut, source, weight, scale, fixed)
        if not self._n:
            return 0, 0
        work = partial(
            reweight.reweight_rows,
            self._above(cut),
            self._n_class[0],
            cut.coefficients,
            scale,
            source,
            weight,
            fixed,
        )
        parts = self.workers.run(work, self._n)
        return sum(p[0] for p in parts), sum(p[1] for p in parts)

    def _exits(self, cut: SentNoise, weight: FloatArray, scale: float) -> NDArray[np.int64]:
        """Return what `exit_sums` does, of these weights."""
        if not self._n:
            return np.zeros((2, 2, 2), dtype=np.int64)
        return exit_sums(self._above(cut), weight, self._n_class[0], scale, self.workers)

    def first_exits(self, cut: SentNoise) -> NDArray[np.int64]:
        """Return the masses of the starting weights at the exits of a cut."""
        assert self._start is not None
        return self._exits(cut, self._start, self._scale)

    def exits_at(
        self, path: Sequence[Any], total: float, scale: float, cut: SentNoise
    ) -> NDArray[np.int64]:
        """Return the masses at the exits of a cut, of the weights at the end of a path."""
        return self._exits(cut, self._at(path, total, scale)[0], scale)


class NoisyShard(_Values):
    """Rows of one place whose values are measured with errors."""

    def masses(self, told: Sequence[Any]) -> NDArray[np.int64]:
        """Take the cuts that have not been taken, of all so far; answer the last question."""
        asked = told[-1] if told else AskedExits()
        cuts = [one for one in told[self._seen :] if isinstance(one, SentNoise)]
        for cut in cuts:
            self._mass = self._sent(cut, self._weight, self._weight, self._scale, self._fixed)
        self._seen = len(told)
        if isinstance(asked, AskedExits) and asked.cut is not None:
            return self._exits(asked.cut, self._weight, self._scale)
        return self._edges(self._fixed, self._mass)


class NoisyPortShard(_Values, PortShard):
    """Rows of one place whose values are measured with errors, with weights at ports."""

    def _answer(self, asked: Any) -> NDArray[np.int64]:
        if asked.what == "exits":
            return self._exits(asked.cut, self._ports[asked.number], asked.scale)
        return super()._answer(asked)


class NoiseOfParts(Noise):
    """Standard deviations of columns whose rows are elsewhere."""

    def checked(self, sigma: FloatArray) -> FloatArray:
        """Return the standard deviations of the columns of X, 0 where there is no value."""
        problem, columns = self.data.problem, self.data.columns
        d = problem.n_features
        if sigma.ndim == 2:
            raise NotImplementedError(
                "sigma: a standard deviation for each cell is not implemented for partitions; "
                "expected one for all columns, or one for each"
            )
        check_sigma_shape(sigma, 0, d)
        n_known = columns.bin_start[np.arange(d), columns.n_bins]  # type: ignore[index]
        unknown = np.flatnonzero(np.isnan(np.broadcast_to(sigma, d)) & (n_known > 0))
        of_levels = levels_among(columns.special, 0, d)
        if len(unknown := np.setdiff1d(unknown, of_levels)):
            raise ValueError(
                "sigma: expected a number where X has one, got nan in "
                f"{column_label(problem.names, int(unknown[0]))}"
            )
        nowhere = np.full((1, d), np.nan)
        return known_sigma(sigma, lambda: nowhere, problem.names, d, problem.table)


class NoisyChainSearch(NoisyStumpSearch, ShardedSearch):
    """The search for stumps of least expected criterion, of the masses that shards send."""

    def edges(self, weights: Weights) -> NDArray[np.int64]:
        """Return the masses of all shards at the edges of bins."""
        self._cuts.append(AskedExits())
        return super().edges(weights)

    def exits(self, cut: SentNoise, weights: Weights) -> NDArray[np.int64]:
        """Return the masses of all shards at the exits of a cut."""
        self._cuts.append(AskedExits(cut))
        return merge(self._engine.masses(self._cuts))

    def best(self, weights: Weights) -> StumpCut | None:
        """Return the stump of least expected criterion, None where no cut is legal."""
        self._found = self.edges(weights)
        weights.masses = self.whole(self._found)
        return super().best(weights)

    def _weighed(self, cut: StumpCut, weights: Weights) -> StumpCut:
        """Return the cut: exits, not sides, have masses."""
        return cut

    def _judge(self, weights: Weights, limits: Any) -> None:
        noisy_split.search_edges(
            self._found,
            self._bin_start,
            self._columns.n_bins,
            limits,
            self._slice_start,
            self._span,
            self._offset,
            self._crossing,
            self._mass,
            self._score,
            self._special,
        )

    def _best_of_levels(self, weights: Weights, limits: Any) -> StumpCut | None:
        listed = levels_among(self._special, 0, len(self._columns.n_bins))
        if not listed:
            return None
        return self.found(self.choose(self._found, listed)[0], weights)

    def sent(self, cut: StumpCut, coefficients: FloatArray) -> SentNoise:
        """Return a cut as shards are told of it."""
        side, sigma = None, 0.0
        if cut.levels is not None:
            side = self._side_of_codes(cut)
        else:
            sigma = float(self.noise.column(cut.feature)[0])
        threshold = float(self.thresholds([cut])[0])
        return SentNoise(
            int(cut.feature), threshold, sigma, int(cut.side), side, np.array(coefficients)
        )

    def above(self, cut: StumpCut) -> Any:
        """Return the masses of the starting weights at the exits, all that is known of answers."""
        return merge(self._engine.ask("first_exits", self.sent(cut, np.ones((2, 2)))))

    def note(self, cut: StumpCut, above: Any) -> int:
        """Return the exit that more of the starting weight takes, given what `above` returns."""
        below, above = exit_masses(above, self.data.scale).sum(axis=1)
        return self.note_masses(cut, below, above)


class NoisyPathSearch(NoisyChainSearch, PathSearch):
    """The search at the end of any path."""

    def edges(self, weights: Weights) -> NDArray[np.int64]:
        """Return the masses at the edges of bins that shards have said."""
        return PathSearch.edges(self, weights)

    def exits(self, cut: SentNoise, weights: Weights) -> NDArray[np.int64]:
        """Return the masses of all shards at the exits of a cut."""
        assert isinstance(weights, PathWeights)
        at = weights.path, weights.total, weights.scale
        return merge(self._engine.ask("exits_at", *at, cut))


class NoisyPortSearch(NoisyPathSearch, PortSearch):
    """The search at any port."""

    def exits(self, cut: SentNoise, weights: Weights) -> NDArray[np.int64]:
        """Return the masses of all shards at the exits of a cut."""
        at: Any = weights.real
        found: NDArray[np.int64] = at.ports.ask("exits", at.number, weights.scale, cut)
        return found


class ShardAnswers(Answers):
    """Answers of rows that shards have."""

    def __init__(self, search: NoisyChainSearch, cut: StumpCut, weights: Weights) -> None:
        self._search, self._cut, self.table = search, cut, None
        sums = search.exits(search.sent(cut, np.ones((2, 2))), weights)
        self.masses = exit_masses(sums, weights.scale)

    def send(self, coefficients: FloatArray, source: FloatArray, target: Weights) -> None:
        """Have shards multiply weights."""
        self._search.send(self._search.sent(self._cut, coefficients), source, target)


class ShardedGaussian(GaussianObserver):
    """Answers of features that are measured with error, of rows that shards have."""

    search: NoisyChainSearch

    def given(self, cut: StumpCut, weights: Weights, table: FloatArray | None) -> Any:
        """Return the answers of a stump: they follow from the values and their errors."""
        answers = ShardAnswers(self.search, cut, weights)
        if cut.side < 0:
            self.search.noted(cut)
        return answers

    def ask(self, cut: StumpCut, weights: Weights, reach: Reach) -> Any:
        """Return the answers of a stump to rows of these weights."""
        return self.given(cut, weights, None)


_SEARCHES: dict[type[ShardedStump], type[NoisyChainSearch]] = {
    ShardedStump: NoisyChainSearch,
    PathStump: NoisyPathSearch,
    PortStump: NoisyPortSearch,
}


def observer_of(
    observation: Observation, data: TrainingData, weak: ShardedStump, workers: Workers
) -> Observer:
    """Return what finds stumps of rows that shards have, and what answers they give."""
    if not isinstance(observation, Gaussian):
        # No observation model of partitions draws.
        return observation.bind(data, weak, workers, np.random.default_rng(0))
    noise = NoiseOfParts(data, observation)
    return ShardedGaussian(_SEARCHES[type(weak)](data, weak, noise, workers))


def shard_of(observation: Observation, kind: type[Shard]) -> type[Shard]:
    """Return what has the rows of a place, of `kind` where answers have a table."""
    if not isinstance(observation, Gaussian):
        return kind
    return NoisyPortShard if kind is PortShard else NoisyShard


def reads_values(observation: Observation) -> bool:
    """Return whether answers are of the values of rows."""
    return isinstance(observation, Gaussian)


def check_kept(observation: Observation, columns: Sequence[BinnedColumns]) -> None:
    """Raise ValueError where answers are of values that partitions do not keep."""
    if not reads_values(observation):
        return
    for k, part in enumerate(columns):
        if not isinstance(part, BinnedValues):
            raise ValueError(
                "X: gaussian answers need the values of X, got BinnedColumns, which hold none, in "
                f"partition {k}; pass values=True to pb.shards.bin_columns or pb.bin_files"
            )
