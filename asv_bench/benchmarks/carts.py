"""Classification and regression trees: growth, pruning, prediction."""

import numpy as np

import pboost as pb

from .common import additive, row_weights

N_ROWS, N_FEATURES = 100_000, 20
TASKS = ["classification", "regression"]
SEARCHES = ["exact", "binned"]


def numbers(y):
    """Return regression targets with the signal of the classes."""
    return y + np.random.default_rng(5).standard_normal(len(y))


class Cart:
    params = (TASKS, SEARCHES, [None, 6], [1, 2])
    param_names = ("task", "search", "max_depth", "n_threads")

    def setup_cache(self):
        return additive(N_ROWS, N_FEATURES)

    def setup(self, data, task, search, max_depth, n_threads):
        self.X, y = data
        self.y = y if task == "classification" else numbers(y)
        self.options = {
            "task": task,
            "search": search,
            "max_depth": max_depth,
            "n_threads": n_threads,
            "sample_weight": row_weights(N_ROWS),
        }

    def time_fit_cart(self, data, task, search, max_depth, n_threads):
        pb.fit_cart(self.X, self.y, **self.options)


class ManyClasses:
    params = (["gini", "entropy"], [4, 26])
    param_names = ("criterion", "n_classes")
    setup_cache = Cart.setup_cache

    def setup(self, data, criterion, n_classes):
        self.X, y = data
        value = numbers(y)
        edges = np.quantile(value, np.arange(1, n_classes) / n_classes)
        self.y = np.digitize(value, edges)

    def time_fit_cart(self, data, criterion, n_classes):
        pb.fit_cart(self.X, self.y, criterion=criterion, n_threads=1)


class TreeOfAForest:
    """One tree of a forest, with bootstrapped rows and random features at each node."""

    params = (SEARCHES,)
    param_names = ("search",)
    setup_cache = Cart.setup_cache

    def setup(self, data, search):
        X, self.y = data
        self.columns = pb.data.sort_columns(X) if search == "exact" else pb.data.bin_columns(X)
        self.weight = np.random.default_rng(6).multinomial(N_ROWS, np.full(N_ROWS, 1 / N_ROWS))

    def time_fit_cart(self, data, search):
        pb.fit_cart(
            self.columns,
            self.y,
            max_features="sqrt",
            sample_weight=self.weight,
            rng=0,
            n_threads=1,
        )


class Pruning:
    """A tree with more than 10,000 leaves."""

    setup_cache = Cart.setup_cache

    def setup(self, data):
        self.X, self.y = data
        self.tree = pb.fit_cart(self.X, self.y)
        self.path = pb.models.cost_complexity_pruning_path(self.tree)

    def time_cost_complexity_pruning_path(self, data):
        pb.models.cost_complexity_pruning_path(self.tree)

    def time_prune(self, data):
        pb.prune(self.tree, self.path.ccp_alpha[len(self.path.ccp_alpha) // 2])

    def time_predict(self, data):
        pb.predict(self.tree, self.X)


class PrunedCart:
    setup_cache = Cart.setup_cache

    def setup(self, data):
        X, y = data
        self.X, self.y = X[:10_000], y[:10_000]

    def time_fit_pruned_cart(self, data):
        pb.fit_pruned_cart(self.X, self.y, rng=0, n_threads=1)
