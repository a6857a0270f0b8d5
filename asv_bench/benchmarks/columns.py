"""Sorting and binning of columns, once per data set."""

import pboost as pb

from .common import median_cpu, problems

#: For the largest size, bin edges come from a subsample of the rows.
N_ROWS = [10_000, 100_000, 1_000_000]
N_FEATURES = [20]


class Columns:
    params = (N_ROWS, N_FEATURES, [1, 2])
    param_names = ("n_rows", "n_features", "n_threads")

    def setup_cache(self):
        return problems(N_ROWS, N_FEATURES)

    def setup(self, data, n_rows, n_features, n_threads):
        self.X, _ = data[n_rows, n_features]

    def time_sort_columns(self, data, n_rows, n_features, n_threads):
        pb.data.sort_columns(self.X, n_threads=n_threads)

    def time_bin_columns(self, data, n_rows, n_features, n_threads):
        pb.data.bin_columns(self.X, n_threads=n_threads)


class ColumnsPerCell:
    params = (N_ROWS, N_FEATURES)
    param_names = ("n_rows", "n_features")
    setup_cache = Columns.setup_cache

    def setup(self, data, n_rows, n_features):
        self.X, _ = data[n_rows, n_features]

    def track_sort_columns(self, data, n_rows, n_features):
        return median_cpu(pb.data.sort_columns, self.X, n_threads=1) / self.X.size * 1e9

    def track_bin_columns(self, data, n_rows, n_features):
        return median_cpu(pb.data.bin_columns, self.X, n_threads=1) / self.X.size * 1e9

    track_sort_columns.unit = track_bin_columns.unit = "ns per row and feature (CPU, one thread)"
