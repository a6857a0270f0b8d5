"""Trees and matryoshki with random exits, where each node requires a search of all rows."""

import numpy as np

import pboost as pb

from .common import problems

N_ROWS = [10_000, 100_000]
N_FEATURES = 20
NODES = 256
WEAK = pb.weak.stump(search="binned")
OPTIONS = {"weak_learner": WEAK, "observation": pb.observation.adatree2()}


class Soft:
    params = (N_ROWS, [1, 2])
    param_names = ("n_rows", "n_threads")

    def setup_cache(self):
        return problems(N_ROWS, [N_FEATURES])

    def setup(self, data, n_rows, n_threads):
        X, self.y = data[n_rows, N_FEATURES]
        self.X = pb.data.bin_columns(X)

    def time_fit_boosted_tree(self, data, n_rows, n_threads):
        pb.fit_boosted_tree(self.X, self.y, max_nodes=NODES, n_threads=n_threads, **OPTIONS)

    def time_fit_matryoshka(self, data, n_rows, n_threads):
        pb.fit_matryoshka(self.X, self.y, shape=(16, 16), n_threads=n_threads, **OPTIONS)


class SoftMemory:
    """Peak memory, including imports and data."""

    params = ([100_000], [1, NODES])
    param_names = ("n_rows", "nodes")
    setup_cache = Soft.setup_cache

    def setup(self, data, n_rows, nodes):
        self.X, self.y = data[n_rows, N_FEATURES]

    def peakmem_fit_boosted_tree(self, data, n_rows, nodes):
        pb.fit_boosted_tree(self.X, self.y, max_nodes=nodes, n_threads=1, **OPTIONS)


class SoftRoutes:
    """Prediction with random exits."""

    params = (["hard", "expected", "sample"],)
    param_names = ("route",)
    setup_cache = Soft.setup_cache

    def setup(self, data, route):
        self.X, y = data[N_ROWS[0], N_FEATURES]
        flip = pb.observation.flip(0.1)
        self.model = pb.fit_boosted_tree(self.X, y, max_nodes=NODES, observation=flip)
        self.rng = np.random.default_rng(0) if route == "sample" else None

    def time_decision_function(self, data, route):
        pb.decision_function(self.model, self.X, route, rng=self.rng)
