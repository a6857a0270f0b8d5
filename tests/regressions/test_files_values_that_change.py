"""Values on disk that become infinite while columns are used.

A kernel says at which row, or column, it has stopped; where that was not asked, the rows after it
had nodes, or an order, of memory that nobody had written to, by which arrays were indexed.
"""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.data.columns import bin_and_sort as making
from pboost.data.columns import exact_bin_edges as exact_edges
from pboost.threads import Workers
from pboost.trees.random_forest import nodes_of_rows

RNG = np.random.default_rng(6)
N = 3000
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + 0.5 * RNG.normal(size=N) > 0


class Rows:
    """Rows of a problem, one of whose values is infinite."""

    def __init__(self, values):
        self._values = values

    def values(self, rows):
        return self._values[rows]


@pytest.fixture
def stored(tmp_path):
    """Stored columns whose values become infinite after they have been opened."""
    columns, y, _ = pb.data.bin_files([(X, Y)], tmp_path / "columns", keep_values=True)
    values = np.load(tmp_path / "columns" / "values.npy", mmap_mode="r+")
    values[1, 1000::7] = np.inf
    values.flush()
    return columns, y


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: pb.fit_probit_tree(X, y, max_depth=2, max_iter=2),
        lambda X, y: pb.fit_sbpmt(
            X, y, n_estimators=2, n_boosting_rounds=2, max_depth=2, max_iter=2, rng=0
        ),
        lambda X, y: pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=pb.weak.affine()),
        lambda X, y: pb.fit_real_adaboost(X, y, n_estimators=3, weak_learner=pb.weak.feature()),
    ],
    ids=["probit-tree", "sbpmt", "affine", "feature"],
)
def test_fits_refuse_them(stored, fit):
    with pytest.raises(ValueError, match=r"X: .*(finite|inf)"):
        fit(*stored)


@pytest.mark.parametrize("row", [0, 63, 64, N - 1])
def test_leaves_of_rows(row):
    tree = pb.fit_cart(X, Y, max_depth=4)
    bad = X.copy()
    bad[row] = np.inf
    with pytest.raises(ValueError, match="X: expected finite numbers"):
        nodes_of_rows(tree, Rows(bad), np.arange(N))
    assert len(nodes_of_rows(tree, Rows(X), np.arange(N))) == N


def test_what_a_member_says():
    model = pb.fit_sbpmt(X, Y, n_estimators=2, n_boosting_rounds=1, max_depth=1, max_iter=2, rng=0)
    bad = X[:200].copy()
    bad[70] = np.inf
    with pytest.raises(ValueError, match="X: expected finite numbers"):
        model.said_at(0, bad)


@pytest.mark.parametrize("column", range(3))
def test_orders_of_rows(column):
    bad = np.ascontiguousarray(X.T)
    bad[column, 5] = -np.inf
    with pytest.raises(ValueError, match="X: expected finite numbers"):
        exact_edges._order(bad[column])

    def gather(rows, first, block):
        block[:] = bad[first : first + len(block), rows]

    orders, missing = np.empty((3, N), dtype=np.int32), np.zeros(3, dtype=np.int32)
    for counts in (None, missing):
        with pytest.raises(ValueError, match=f"X: expected finite numbers.* in column {column}"):
            making._sort_blocks(
                gather, 3, np.arange(N, dtype=np.int32), orders, None, Workers(1), counts
            )
