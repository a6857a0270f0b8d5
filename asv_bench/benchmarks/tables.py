"""Matrices with missing values or categories, compared with complete numeric matrices."""

import numpy as np

import pboost as pb

from .common import additive

N_ROWS = [10_000, 100_000]
N_FEATURES, LEVELS = 20, 12
MISSING = 0.2
TABLES = ["complete", "holes", "categories"]


class Fits:
    """Complete numbers; a fifth of the cells missing; all features categorical."""

    params = (N_ROWS, TABLES)
    param_names = ("n_rows", "table")

    def setup_cache(self):
        X, y = additive(N_ROWS[-1], N_FEATURES)
        gone = np.random.default_rng(2).random(X.shape) < MISSING
        levels = np.clip(np.floor(2 * X + LEVELS / 2), 0, LEVELS - 1)
        return {
            "complete": (X, y, None),
            "holes": (np.where(gone, np.nan, X), y, None),
            "categories": (levels, y, list(range(N_FEATURES))),
        }

    def setup(self, data, n_rows, table):
        X, y, categorical_features = data[table]
        self.X, self.y = X[:n_rows], y[:n_rows]
        self.options = {"categorical_features": categorical_features, "n_threads": 1}

    def time_fit_adaboost(self, data, n_rows, table):
        pb.fit_adaboost(self.X, self.y, n_estimators=100, **self.options)

    def time_fit_boosted_tree(self, data, n_rows, table):
        pb.fit_boosted_tree(self.X, self.y, **self.options)

    def time_fit_cart(self, data, n_rows, table):
        pb.fit_cart(self.X, self.y, **self.options)

    def time_fit_random_forest(self, data, n_rows, table):
        pb.fit_random_forest(self.X, self.y, n_estimators=10, rng=0, **self.options)


class Answers:
    """Prediction of rows of such tables, by models fitted to 10,000 of them."""

    params = (N_ROWS, TABLES, ["stumps", "trees"])
    param_names = ("n_rows", "table", "model")
    setup_cache = Fits.setup_cache

    def setup(self, data, n_rows, table, model):
        X, y, categorical_features = data[table]
        self.X = X[:n_rows]
        train, labels = X[: N_ROWS[0]], y[: N_ROWS[0]]
        options = {"categorical_features": categorical_features, "n_threads": 1}
        if model == "stumps":
            self.model = pb.fit_adaboost(train, labels, n_estimators=100, **options)
        else:
            self.model = pb.fit_gradient_boosting(
                train, labels, loss="log_loss", n_estimators=100, max_depth=6, **options
            )

    def time_decision_function(self, data, n_rows, table, model):
        pb.decision_function(self.model, self.X)
