"""Subagged boosted probit trees: fitting and predicting."""

import numpy as np

import pboost as pb

from .common import additive

N_ROWS, N_FEATURES = 700, 8
PAPER = {
    "min_samples_leaf": 20,
    "min_samples_split": 2,
    "complexity": 0.0,
    "tol": None,
    "safeguard": True,
    "voting": "hard",
    "one_vs_rest": "leaf",
}
OPTIONS = {"as in the paper": PAPER, "as its code": pb.models.published_sbpmt_options()}


class SubaggedProbitTrees:
    params = (list(OPTIONS), [2, 4])
    param_names = ("options", "n_classes")

    def setup_cache(self):
        return additive(N_ROWS, N_FEATURES)

    def setup(self, data, options, n_classes):
        self.X, y = data
        value = y + np.random.default_rng(5).standard_normal(len(y))
        self.y = np.digitize(value, np.quantile(value, np.arange(1, n_classes) / n_classes))
        self.options = {**OPTIONS[options], "rng": 0, "n_threads": 1}
        self.model = pb.fit_sbpmt(self.X, self.y, **self.options)

    def time_fit_sbpmt(self, data, options, n_classes):
        pb.fit_sbpmt(self.X, self.y, **self.options)

    def time_predict(self, data, options, n_classes):
        pb.predict(self.model, self.X)
