"""Addresses of arrays: items of another size, gaps and read-only arrays are refused."""

import numpy as np
import pytest

import pboost as pb
from pboost._core import boost, grow
from pboost.growth.tree import NODE, TreeArrays


def test_items_of_another_size_are_refused():
    values = np.ones(4)
    assert boost.exact_sum(values, np.full(4, 3.0)) == 12.0
    with pytest.raises(ValueError, match="items of 8 bytes, got 4"):
        boost.exact_sum(values, np.full(4, 3.0, dtype=np.float32))


def test_gaps_are_refused():
    with pytest.raises(ValueError, match="contiguous"):
        boost.exact_sum(np.ones(4), np.full(8, 3.0)[::2])


def test_what_is_written_must_not_be_read_only():
    nodes = np.zeros(1, dtype=NODE)
    nodes["child"] = -1
    actual, place, children = nodes.copy(), np.empty(1, np.int32), np.empty((1, 2), np.int32)
    nodes.flags.writeable = False
    assert grow.preorder(nodes, actual, np.empty(0, np.int32), place, children) == 1
    actual.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        grow.preorder(nodes, actual, np.empty(0, np.int32), place, children)


@pytest.mark.parametrize("kind", [np.ndarray, pb.data.sort_columns])
def test_columns_stay_as_they_are_while_a_tree_partitions_their_orders(kind, monkeypatch):
    kept, init = [], TreeArrays.__init__

    def watch(self, data, *args, **options):
        kept.append((data.columns, data.columns.packed_order.copy()))
        init(self, data, *args, **options)

    monkeypatch.setattr(TreeArrays, "__init__", watch)
    X = np.random.default_rng(0).normal(size=(300, 3))
    rows = pb.data.sort_columns(X) if kind is pb.data.sort_columns else X
    pb.fit_boosted_tree(rows, X[:, 0] * X[:, 1] > 0, max_nodes=9)
    ((columns, order),) = kept
    assert (columns.packed_order == order).all()
