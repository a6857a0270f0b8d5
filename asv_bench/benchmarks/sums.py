"""Gradient boosting: whole fits on binned columns, and memory of a fit."""

import numpy as np

import pboost as pb

from .common import problems

N_ROWS = [10_000, 100_000]
N_FEATURES = [20]
DEPTHS = [3, 6]
STEPS = 100


class Stagewise:
    params = (N_ROWS, DEPTHS, ["line_search", "newton"])
    param_names = ("n_rows", "max_depth", "leaf_update")

    def setup_cache(self):
        return problems(N_ROWS, N_FEATURES)

    def setup(self, data, n_rows, max_depth, leaf_update):
        self.X, self.y = data[n_rows, N_FEATURES[0]]
        self.options = {
            "n_estimators": STEPS,
            "max_depth": max_depth,
            "leaf_update": leaf_update,
            "n_threads": 1,
        }

    def time_fit_gradient_boosting(self, data, n_rows, max_depth, leaf_update):
        pb.fit_gradient_boosting(self.X, self.y, loss="log_loss", **self.options)

    def peakmem_fit_gradient_boosting(self, data, n_rows, max_depth, leaf_update):
        pb.fit_gradient_boosting(self.X, self.y, loss="log_loss", **self.options)


class ShortCalls:
    """A hundred calls that add one tree each; `Stagewise` fits the same trees in one call."""

    params = (["squared_error", "log_loss"],)
    param_names = ("loss",)
    setup_cache = Stagewise.setup_cache

    def setup(self, data, loss):
        self.X, self.y = data[10_000, N_FEATURES[0]]
        self.model = pb.fit_gradient_boosting(
            self.X, self.y, loss=loss, n_estimators=1, n_threads=1
        )

    def time_continue_fit(self, data, loss):
        model, state = self.model, pb.models.FitState()
        for _ in range(STEPS - 1):
            model = pb.continue_fit(model, self.X, self.y, n_estimators=1, state=state, n_threads=1)


class SecondThread:
    params = ([100_000, 1_000_000], [1, 2])
    param_names = ("n_rows", "n_threads")

    def setup_cache(self):
        return problems([100_000, 1_000_000], N_FEATURES)

    def setup(self, data, n_rows, n_threads):
        self.X, self.y = data[n_rows, N_FEATURES[0]]

    def time_fit_gradient_boosting(self, data, n_rows, n_threads):
        pb.fit_gradient_boosting(
            self.X, self.y, loss="log_loss", n_estimators=20, max_depth=6, n_threads=n_threads
        )


class Losses:
    params = (["squared_error", "exponential", "probit", "hinge"],)
    param_names = ("loss",)
    setup_cache = Stagewise.setup_cache

    def setup(self, data, loss):
        self.X, self.y = data[10_000, N_FEATURES[0]]

    def time_fit_gradient_boosting(self, data, loss):
        pb.fit_gradient_boosting(
            self.X,
            self.y,
            loss=loss,
            task="classification",
            n_estimators=STEPS,
            max_depth=6,
            n_threads=1,
        )


class Softmax:
    """Balanced classes that depend on the sum of two features."""

    params = ([3, 7, 26], ["line_search", "newton"], ["one_output_per_tree", "multi_output_tree"])
    param_names = ("n_classes", "leaf_update", "multi_strategy")
    setup_cache = Stagewise.setup_cache

    def setup(self, data, n_classes, leaf_update, trees):
        self.X, _ = data[10_000, N_FEATURES[0]]
        score = self.X[:, 0] + self.X[:, 1]
        edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
        self.y = np.digitize(score, edges)

    def time_fit_gradient_boosting(self, data, n_classes, leaf_update, trees):
        pb.fit_gradient_boosting(
            self.X,
            self.y,
            loss="softmax",
            multi_strategy=trees,
            n_estimators=20,
            max_depth=6,
            leaf_update=leaf_update,
            n_threads=1,
        )

    def peakmem_fit_gradient_boosting(self, data, n_classes, leaf_update, trees):
        self.time_fit_gradient_boosting(data, n_classes, leaf_update, trees)


class Sums:
    """Data with one outlying target, also with missing values and categories."""

    params = (["packed", "wide"], [False, True])
    param_names = ("sums", "special")
    setup_cache = Stagewise.setup_cache

    def setup(self, data, sums, special):
        self.X, self.y = data[10_000, N_FEATURES[0]]
        self.categorical_features = None
        if special:
            rng = np.random.default_rng(0)
            self.X = self.X.copy()
            self.X[rng.random(self.X.shape) < 0.1] = np.nan
            self.X[:, :4] = rng.integers(0, 30, (len(self.X), 4))
            self.categorical_features = [0, 1, 2, 3]

    def time_fit_gradient_boosting(self, data, sums, special):
        pb.fit_gradient_boosting(
            self.X,
            self.y,
            loss="log_loss",
            n_estimators=STEPS,
            max_depth=6,
            histogram_precision=sums,
            categorical_features=self.categorical_features,
            n_threads=1,
        )
