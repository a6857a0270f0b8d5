"""Fits on rows that lie in partitions: builders whose models do not depend on how rows are divided.

See `pboost.boosting.shards`, `shard_trees` and `shard_matryoshka` beside it, and
`pboost.trees.shards`, `forest_shards` and `sum_shards`, `pboost.probit.shards`, and
`shard_continuation` here.
"""

from pboost.boosting.shard_matryoshka import fit_matryoshka
from pboost.boosting.shard_trees import fit_boosted_tree
from pboost.boosting.shards import bin_columns, fit_adaboost
from pboost.ensembles.shard_continuation import continue_fit
from pboost.probit.shards import fit_sbpmt
from pboost.trees.forest_shards import fit_forest
from pboost.trees.shards import fit_cart
from pboost.trees.sum_shards import fit_stagewise

__all__ = [
    "bin_columns",
    "continue_fit",
    "fit_adaboost",
    "fit_boosted_tree",
    "fit_cart",
    "fit_forest",
    "fit_matryoshka",
    "fit_sbpmt",
    "fit_stagewise",
]
