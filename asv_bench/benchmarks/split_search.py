"""The search for the best stump, exact and binned, on columns sorted beforehand."""

import pboost as pb

from .common import Stopwatch, additive, median_cpu, problems

N_ROWS = [10_000, 100_000]
N_FEATURES = [20]
SEARCHES = ["exact", "binned"]
#: Enough that the columns' arrangement by class, once per fit, is a small part.
ROUNDS = 30


class SplitSearch:
    params = (N_ROWS, N_FEATURES, SEARCHES, [1, 2])
    param_names = ("n_rows", "n_features", "search", "n_threads")

    def setup_cache(self):
        return problems(N_ROWS, N_FEATURES)

    def setup(self, data, n_rows, n_features, search, n_threads):
        X, self.y = data[n_rows, n_features]
        self.columns = pb.data.sort_columns(X)
        self.options = {
            "n_estimators": ROUNDS,
            "weak_learner": pb.weak.stump(search=search),
            "n_threads": n_threads,
        }

    def time_fit_adaboost(self, data, n_rows, n_features, search, n_threads):
        pb.fit_adaboost(self.columns, self.y, **self.options)


class SplitSearchPerCell:
    params = ([100_000], N_FEATURES, SEARCHES, ["kearns_mansour", "gini", "entropy", "error"])
    param_names = ("n_rows", "n_features", "search", "criterion")
    setup_cache = SplitSearch.setup_cache

    def setup(self, data, n_rows, n_features, search, criterion):
        X, self.y = data[n_rows, n_features]
        self.columns = pb.data.sort_columns(X)
        self.weak = pb.weak.stump(criterion, search)

    def track_fit_adaboost(self, data, n_rows, n_features, search, criterion):
        watch = Stopwatch()
        pb.fit_adaboost(
            self.columns,
            self.y,
            n_estimators=ROUNDS,
            weak_learner=self.weak,
            n_threads=1,
            callback=watch,
        )
        return watch.median_step() / (n_rows * n_features) * 1e9

    track_fit_adaboost.unit = "ns per row, feature and round (CPU, one thread)"


class CostBesideRounds:
    """What a fit on columns costs beside its rounds, in rounds."""

    params = ([(1_000, 20), (10_000, 20), (100_000, 20), (1_000_000, 10)], ["exact", "binned"])
    param_names = ("shape", "search")

    def setup_cache(self):
        return {shape: additive(*shape) for shape in self.params[0]}

    def setup(self, data, shape, search):
        X, self.y = data[shape]
        self.columns = (pb.data.sort_columns if search == "exact" else pb.data.bin_columns)(X)
        self.more = 100 if shape[0] < 1_000_000 else 30

    def _cpu(self, rounds):
        return median_cpu(pb.fit_adaboost, self.columns, self.y, n_estimators=rounds, n_threads=1)

    def track_fit_adaboost(self, data, shape, search):
        first = self._cpu(1)
        of_round = (self._cpu(1 + self.more) - first) / self.more
        return (first - of_round) / of_round

    track_fit_adaboost.unit = "rounds (CPU, one thread)"
