"""Peak memory of sorting, binning, fitting and predicting, including imports and data."""

import pboost as pb

from .common import additive, problems

N_ROWS = [100_000]
N_FEATURES = 20


class ColumnsMemory:
    params = (N_ROWS,)
    param_names = ("n_rows",)

    def setup_cache(self):
        return problems(N_ROWS, [N_FEATURES])

    def setup(self, data, n_rows):
        self.X, _ = data[n_rows, N_FEATURES]

    def peakmem_sort_columns(self, data, n_rows):
        pb.data.sort_columns(self.X, n_threads=1)

    def peakmem_bin_columns(self, data, n_rows):
        pb.data.bin_columns(self.X, n_threads=1)


class FitMemory:
    params = (N_ROWS, ["exact", "binned"])
    param_names = ("n_rows", "search")
    setup_cache = ColumnsMemory.setup_cache

    def setup(self, data, n_rows, search):
        self.X, self.y = data[n_rows, N_FEATURES]
        self.options = {"weak_learner": pb.weak.stump(search=search), "n_threads": 1}

    def peakmem_fit_adaboost(self, data, n_rows, search):
        pb.fit_adaboost(self.X, self.y, n_estimators=10, **self.options)

    def peakmem_fit_boosted_tree(self, data, n_rows, search):
        pb.fit_boosted_tree(self.X, self.y, max_nodes=None, **self.options)


class PredictionMemory:
    params = (["float32", "float64"],)
    param_names = ("dtype",)

    def setup_cache(self):
        return additive(100_000, N_FEATURES)

    def setup(self, data, dtype):
        X, y = data
        self.rows = X.astype(dtype)
        self.model = pb.fit_adaboost(X[:1000], y[:1000], n_estimators=100)

    def peakmem_decision_function(self, data, dtype):
        pb.decision_function(self.model, self.rows)
