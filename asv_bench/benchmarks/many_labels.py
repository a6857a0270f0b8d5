"""Decision graphs with one vote for each of many classes: fits, memory, and predictions."""

import numpy as np

import pboost as pb

N_ROWS, N_FEATURES, FEW_ROWS = 100_000, 20, 5_000
N_LABELS = [7, 26]
CHAIN = {"shape": (15, 4), "join": "all"}


def greatest(n_labels):
    """Return rows and classes: the argmax of sums of sines and noise."""
    random = np.random.default_rng(0)
    X = random.standard_normal((N_ROWS, N_FEATURES), dtype=np.float32)
    slope = random.normal(size=(n_labels, N_FEATURES))
    return X, (np.sin(1.5 * X) @ slope.T + random.gumbel(size=(N_ROWS, n_labels))).argmax(axis=1)


class ManyLabels:
    params = (N_LABELS, ["binned", "exact"], [1, 2])
    param_names = ("n_labels", "search", "n_threads")

    def setup_cache(self):
        return {n_labels: greatest(n_labels) for n_labels in N_LABELS}

    def setup(self, data, n_labels, search, n_threads):
        self.X, self.y = data[n_labels]
        self.options = {"weak_learner": pb.weak.stump(search=search), "n_threads": n_threads}

    def time_fit_adaboost(self, data, n_labels, search, n_threads):
        pb.fit_adaboost(self.X, self.y, n_estimators=20, **self.options)

    def time_fit_matryoshka(self, data, n_labels, search, n_threads):
        pb.fit_matryoshka(self.X, self.y, **CHAIN, **self.options)


class ManyLabelsOnce:
    params = (N_LABELS,)
    param_names = ("n_labels",)
    setup_cache = ManyLabels.setup_cache

    def setup(self, data, n_labels):
        self.X, self.y = data[n_labels]
        self.model = pb.fit_matryoshka(self.X[:FEW_ROWS], self.y[:FEW_ROWS], **CHAIN)

    def peakmem_fit_matryoshka(self, data, n_labels):
        pb.fit_matryoshka(self.X, self.y, **CHAIN, n_threads=1)

    def time_decision_function(self, data, n_labels):
        pb.decision_function(self.model, self.X)

    def time_predict(self, data, n_labels):
        """Predict one row."""
        pb.predict(self.model, self.X[:1])


class ManyLabelsOfLevels:
    """A few rows with categorical features, whose splits are searched at each node."""

    params = (N_LABELS,)
    param_names = ("n_labels",)
    setup_cache = ManyLabels.setup_cache

    def setup(self, data, n_labels):
        X, y = data[n_labels]
        n_levels = np.linspace(2, 50, N_FEATURES)
        self.X = np.floor(n_levels / (1 + np.exp(-X[:FEW_ROWS])))
        self.y, self.columns = y[:FEW_ROWS], list(range(N_FEATURES))

    def time_fit_matryoshka(self, data, n_labels):
        pb.fit_matryoshka(self.X, self.y, **CHAIN, categorical_features=self.columns, n_threads=1)

    def time_fit_gradient_boosting(self, data, n_labels):
        options = {
            "loss": "softmax",
            "multi_strategy": "multi_output_tree",
            "n_estimators": 10,
            "max_leaf_nodes": 8,
        }
        pb.fit_gradient_boosting(
            self.X, self.y, **options, categorical_features=self.columns, n_threads=1
        )
