"""Observation models that estimate probabilities from drawn answers."""

import pboost as pb

from .common import median_cpu, problems

N_ROWS = [10_000, 100_000]
#: Draws of one stump; the difference of two fits excludes everything but the draws.
FEW, MANY = 10, 110


class Draws:
    params = (N_ROWS,)
    param_names = ("n_rows",)

    def setup_cache(self):
        return problems(N_ROWS, [2])

    def setup(self, data, n_rows):
        X, self.y = data[n_rows, 2]
        self.columns = pb.data.sort_columns(X)

    def seconds(self, draws):
        observation = pb.observation.sampled(draws, base=pb.observation.flip(0.2))
        return median_cpu(
            pb.fit_adaboost,
            self.columns,
            self.y,
            n_estimators=1,
            observation=observation,
            rng=0,
            n_threads=1,
        )

    def track_fit_adaboost(self, data, n_rows):
        return (self.seconds(MANY) - self.seconds(FEW)) / (n_rows * (MANY - FEW)) * 1e9

    track_fit_adaboost.unit = "ns per row and draw (CPU, one thread)"


class FirstIncrease:
    params = (N_ROWS, [1, 2])
    param_names = ("n_rows", "n_threads")
    setup_cache = Draws.setup_cache

    def setup(self, data, n_rows, n_threads):
        Draws.setup(self, data, n_rows)
        self.options = {
            "observation": pb.observation.sampled(base=pb.observation.flip(0.2)),
            "rng": 0,
            "n_threads": n_threads,
        }

    def time_fit_adaboost(self, data, n_rows, n_threads):
        pb.fit_adaboost(self.columns, self.y, n_estimators=10, **self.options)
