"""Graphs with a vote for each of many labels: fits, their memory, and predictions."""

import numpy as np

import pboost as pb

N_ROWS, N_FEATURES = 100_000, 20
FITS = {
    "stumps": lambda X, y, **options: pb.fit_adaboost(X, y, rounds=20, **options),
    "trees": lambda X, y, **options: pb.fit_matryoshka(
        X, y, shape=(15, 4), join="all", **options
    ),
}  # fmt: skip


def problem(n_labels):
    """Return rows, and the label of the greatest of sums of sines and noise."""
    random = np.random.default_rng(0)
    X = random.standard_normal((N_ROWS, N_FEATURES), dtype=np.float32)
    slope = random.normal(size=(n_labels, N_FEATURES))
    return X, (np.sin(1.5 * X) @ slope.T + random.gumbel(size=(N_ROWS, n_labels))).argmax(axis=1)


class ManyLabels:
    params = ([7, 26], list(FITS), ["binned", "exact"], [1, 2])
    param_names = ("n_labels", "fit", "search", "n_threads")

    def setup(self, n_labels, fit, search, n_threads):
        self.X, self.y = problem(n_labels)
        self.options = {"weak": pb.weak.stump(search=search), "n_threads": n_threads}

    def time_fit(self, n_labels, fit, search, n_threads):
        FITS[fit](self.X, self.y, **self.options)


class ManyLabelsMemory:
    params = ([7, 26], list(FITS))
    param_names = ("n_labels", "fit")

    def setup(self, n_labels, fit):
        self.X, self.y = problem(n_labels)

    def peakmem_fit(self, n_labels, fit):
        FITS[fit](self.X, self.y, n_threads=1)


class ManyLabelsPrediction:
    params = ([7, 26], list(FITS))
    param_names = ("n_labels", "fit")

    def setup(self, n_labels, fit):
        self.X, y = problem(n_labels)
        self.model = FITS[fit](self.X[:5000], y[:5000])

    def time_decision_function(self, n_labels, fit):
        pb.decision_function(self.model, self.X, n_threads=1)

    def time_one_row(self, n_labels, fit):
        pb.predict(self.model, self.X[:1])
