"""Whole fits from an array, and the test errors of the models."""

import numpy as np

import pboost as pb

from .common import TEST_ROWS, additive, problems, row_weights, test_error

N_ROWS = [10_000, 100_000]
N_FEATURES = [20]
SEARCHES = ["exact", "binned"]
N_THREADS = [1, 2]
ROUNDS = 100


class AdaBoost:
    params = (N_ROWS, N_FEATURES, SEARCHES, N_THREADS)
    param_names = ("n_rows", "n_features", "search", "n_threads")

    def setup_cache(self):
        return problems(N_ROWS, N_FEATURES)

    def setup(self, data, n_rows, n_features, search, n_threads):
        self.X, self.y = data[n_rows, n_features]
        self.weak = pb.weak.stump(search=search)

    def time_fit_adaboost(self, data, n_rows, n_features, search, n_threads):
        pb.fit_adaboost(
            self.X, self.y, n_estimators=ROUNDS, weak_learner=self.weak, n_threads=n_threads
        )


class BoostedTree:
    """A tree grown until no exit can be split."""

    params = (N_ROWS, N_FEATURES, SEARCHES, N_THREADS)
    param_names = ("n_rows", "n_features", "search", "n_threads")
    setup_cache = AdaBoost.setup_cache

    def setup(self, data, n_rows, n_features, search, n_threads):
        self.X, self.y = data[n_rows, n_features]
        self.options = {
            "weak_learner": pb.weak.stump(search=search),
            "sample_weight": row_weights(n_rows),
            "n_threads": n_threads,
        }

    def time_fit_boosted_tree(self, data, n_rows, n_features, search, n_threads):
        pb.fit_boosted_tree(self.X, self.y, max_nodes=None, **self.options)


class ShallowTree:
    params = ([100_000], SEARCHES)
    param_names = ("n_rows", "search")
    setup_cache = AdaBoost.setup_cache

    def setup(self, data, n_rows, search):
        self.X, self.y = data[n_rows, N_FEATURES[0]]
        self.weak = pb.weak.stump(search=search)

    def time_fit_boosted_tree(self, data, n_rows, search):
        pb.fit_boosted_tree(
            self.X, self.y, max_nodes=None, max_depth=6, weak_learner=self.weak, n_threads=1
        )


class Affine:
    params = ([10_000], SEARCHES, N_THREADS)
    param_names = ("n_rows", "search", "n_threads")
    setup_cache = AdaBoost.setup_cache

    def setup(self, data, n_rows, search, n_threads):
        self.X, self.y = data[n_rows, N_FEATURES[0]]
        self.options = {
            "weak_learner": pb.weak.affine(search=search, n_directions=100),
            "n_threads": n_threads,
        }

    def time_fit_adaboost(self, data, n_rows, search, n_threads):
        pb.fit_adaboost(self.X, self.y, n_estimators=ROUNDS, **self.options)

    def time_fit_boosted_tree(self, data, n_rows, search, n_threads):
        pb.fit_boosted_tree(self.X, self.y, max_nodes=100, **self.options)


class GaussianChain:
    """Features with a measurement error, which is the same for all features or varies by cell."""

    params = ([100_000], ["scalar", "per cell"])
    param_names = ("n_rows", "sigma")
    setup_cache = AdaBoost.setup_cache

    def setup(self, data, n_rows, sigma):
        self.X, self.y = data[n_rows, N_FEATURES[0]]
        of_cells = 0.3 * np.exp(0.5 * np.random.default_rng(4).standard_normal(self.X.shape))
        self.noise = pb.observation.gaussian(0.3 if sigma == "scalar" else of_cells)

    def time_fit_adaboost(self, data, n_rows, sigma):
        pb.fit_adaboost(self.X, self.y, n_estimators=ROUNDS, observation=self.noise, n_threads=1)


class TestError:
    """Test error; the Bayes error is about 0.20."""

    __test__ = False
    params = ([10_000], SEARCHES)
    param_names = ("n_rows", "search")
    n_features = 20

    def setup_cache(self):
        return {
            "train": problems([10_000], [self.n_features]),
            "test": additive(TEST_ROWS, self.n_features, seed=1),
        }

    def setup(self, data, n_rows, search):
        self.train = data["train"][n_rows, self.n_features]
        self.weak = pb.weak.stump(search=search)

    def track_fit_adaboost(self, data, n_rows, search):
        return self._error(
            pb.fit_adaboost(*self.train, n_estimators=ROUNDS, weak_learner=self.weak), data
        )

    def track_fit_boosted_tree(self, data, n_rows, search):
        return self._error(
            pb.fit_boosted_tree(*self.train, max_nodes=100, weak_learner=self.weak), data
        )

    track_fit_adaboost.unit = track_fit_boosted_tree.unit = "share of test rows"

    def _error(self, model, data):
        X, y = data["test"]
        return test_error(pb.decision_function(model, X), y)
