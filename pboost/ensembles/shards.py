"""Fits on rows that lie in partitions: builders whose models do not depend on how rows are divided.

See `pboost.boosting.shards`.
"""

from pboost.boosting.shards import bin_columns, fit_adaboost

__all__ = ["bin_columns", "fit_adaboost"]
