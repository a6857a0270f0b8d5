"""Prediction of many rows and of single rows."""

import pboost as pb

from .common import additive, median_cpu

N_FEATURES = 20
TREES = "100 trees of depth 6"
MODELS = ["100 stumps", TREES, "tree of depth 6", "full tree", "100 affine", "affine tree"]
DTYPES = ["float32", "float64"]


def fitted(kind, X, y):
    if "affine" in kind:
        weak = pb.weak.affine(n_directions=100)
        if kind == "100 affine":
            return pb.fit_adaboost(X, y, n_estimators=100, weak_learner=weak)
        return pb.fit_boosted_tree(X, y, max_nodes=None, weak_learner=weak)
    if kind == TREES:
        return pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=100, max_depth=6)
    if kind == "100 stumps":
        return pb.fit_adaboost(X, y, n_estimators=100)
    return pb.fit_boosted_tree(X, y, max_nodes=None, max_depth=6 if "depth" in kind else None)


class Predictions:
    params = (MODELS, [1_000, 100_000])
    param_names = ("model", "n_rows")

    def setup_cache(self):
        return additive(10_000, N_FEATURES), additive(100_000, N_FEATURES, seed=1)[0]

    def setup(self, data, model, n_rows):
        (X, y), rows = data
        self.rows = rows[:n_rows]
        self.model = fitted(model, X, y)

    def time_decision_function(self, data, model, n_rows):
        pb.decision_function(self.model, self.rows)

    def time_prediction_cost(self, data, model, n_rows):
        pb.prediction_cost(self.model, self.rows)


class PredictionRate:
    """CPU time, which does not depend on the number of threads."""

    params = (MODELS, DTYPES)
    param_names = ("model", "dtype")
    setup_cache = Predictions.setup_cache

    def setup(self, data, model, dtype):
        (X, y), rows = data
        self.rows = rows.astype(dtype)
        self.model = fitted(model, X, y)

    def track_decision_function(self, data, model, dtype):
        return len(self.rows) / median_cpu(pb.decision_function, self.model, self.rows) / 1e6

    track_decision_function.unit = "million rows per second of CPU time"


class Trees:
    """Boosted trees by size, after a first call that builds the lookup tables."""

    params = ([7, 31, 255, 1023], [1_000, 100_000])
    param_names = ("nodes", "n_rows")
    setup_cache = Predictions.setup_cache

    def setup(self, data, nodes, n_rows):
        (X, y), rows = data
        self.rows = rows[:n_rows]
        self.model = pb.fit_boosted_tree(X, y, max_nodes=nodes)

    def time_decision_function(self, data, nodes, n_rows):
        pb.decision_function(self.model, self.rows)


class OneRow:
    params = (MODELS, DTYPES)
    param_names = ("model", "dtype")
    setup_cache = Predictions.setup_cache

    def setup(self, data, model, dtype):
        (X, y), rows = data
        self.row = rows[:1].astype(dtype)
        self.model = fitted(model, X, y)

    def time_decision_function(self, data, model, dtype):
        pb.decision_function(self.model, self.row)
