"""Boosting rounds on sparse features; see ``pboost/_core/sparse.pyx``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pboost import threads
from pboost._core import sparse
from pboost.data.columns.columns import BinnedColumns
from pboost.data.columns.sparse_columns import SparseColumns, SparseFeatures, ranges_of_cost
from pboost.data.training_data import Problem
from pboost.growth.tree import Grown
from pboost.models.single_tree import Tree
from pboost.trees.tree_rounds import SLOT_BYTES, Rounds
from pboost.values import FloatArray, IntArray, shown

#: Number of cells that are prefetched after those of a row.
BEHIND = 128
#: Options that need other values with a sparse matrix, and the hint of the error message.
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "random_strength": ("auto", 0.0),
    "max_features": (None,),
    "max_features_per_tree": (None,),
    "monotonic_cst": (None,),
    "interaction_cst": (None,),
    "feature_costs": (None,),
    "cost_tradeoff": (None,),
    "multi_strategy": ("one_output_per_tree",),
    "growth": ("auto", "independent"),
    "tree_comparisons": (None,),
    "search": ("auto", "binned"),
    "categorical_features": (None,),
    "y_proba": (None,),
}


def sparse_options(options: Mapping[str, Any]) -> Any:
    """Return the options of a fit to a sparse matrix; raise NotImplementedError for others."""
    for name, supported in UNSUPPORTED.items():
        value = options[name]
        is_plain = value is None or isinstance(value, str | int | float)
        if not is_plain or value not in supported:
            raise NotImplementedError(
                f"{name}: expected {' or '.join(map(shown, supported))} with a sparse matrix, got "
                f"{shown(value)}; pass X.toarray()"
            )
    return {**options, "random_strength": 0.0, "growth": "independent", "search": "binned"}


class SparseTable(NamedTuple):
    """The cells of each row, and the lanes; see ``pboost/_core/boost_sparse.h``.

    Attributes
    ----------
    row_start : ndarray of int64, shape (n + 1,)
        Position of the first cell of each row.
    cells : ndarray of uint32
        The cells of all rows.
    place : ndarray of int64, shape (n_groups + 1,)
        First cell of each group of lanes.
    bins : ndarray of int32, shape (n_groups,)
        Number of bins of each group.
    feature, edge, is_above : ndarray, shape (8 * n_groups,)
        Feature of each lane, the bin left of its innermost split, and its side of 0.
    list_start, list_stop : ndarray of int64, shape (n_lanes,)
        Range of the rows of each lane.
    list_rows, list_bins : ndarray
        As in `SparseColumns`.
    n_heavy : int
        Number of groups whose sums are float64 numbers.
    lane_of : ndarray of int32, shape (2 * d,)
        Lane of each list, or -1.
    """

    row_start: NDArray[np.int64]
    cells: NDArray[np.uint32]
    place: NDArray[np.int64]
    bins: IntArray
    feature: IntArray
    edge: IntArray
    is_above: NDArray[np.uint8]
    list_start: NDArray[np.int64]
    list_stop: NDArray[np.int64]
    list_rows: IntArray
    list_bins: NDArray[np.uint8]
    n_heavy: int
    lane_of: IntArray


def sparse_table(columns: SparseColumns, block: int, min_samples_leaf: int) -> SparseTable:
    """Arrange the lists of the features in lanes.

    Lists with fewer than `min_samples_leaf` rows are left out. A packed sum has at most `block`
    rows.
    """
    n_rows = np.diff(columns.list_start)
    n_bins = np.empty(len(n_rows), dtype=np.int32)
    n_bins[::2] = columns.zero
    n_bins[1::2] = np.diff(columns.first_bin) - columns.zero - columns.has_zero
    lists = np.flatnonzero((n_rows >= max(min_samples_leaf, 1)) & (n_bins > 0))
    is_heavy = columns.largest[lists] > block
    lists = lists[np.lexsort((-n_rows[lists], -n_bins[lists], ~is_heavy))]
    n_groups = -(-len(lists) // sparse.LANES)
    first = np.arange(0, len(lists), sparse.LANES)
    bins = np.maximum.reduceat(n_bins[lists], first) if n_groups else np.empty(0, np.int32)
    place = np.concatenate([[0], np.cumsum(sparse.LANES * bins.astype(np.int64))])
    if place[-1] >= 1 << 32:
        raise NotImplementedError(
            f"X: expected fewer than 2**32 bins, got {place[-1]}; increase min_samples_in_bin"
        )
    feature, edge = np.zeros((2, sparse.LANES * n_groups), dtype=np.int32)
    is_above = np.zeros(len(feature), dtype=np.uint8)
    feature[: len(lists)], is_above[: len(lists)] = lists // 2, lists % 2
    below = columns.zero[lists // 2] - 1
    edge[: len(lists)] = below + (lists % 2) * columns.has_zero[lists // 2]
    lane_of = np.full(len(n_rows), -1, dtype=np.int32)
    lane_of[lists] = np.arange(len(lists), dtype=np.int32)
    start, stop = columns.list_start[lists], columns.list_start[lists + 1]
    row_start = np.zeros(columns.n_rows + 1, dtype=np.int64)
    cells = np.zeros(int((stop - start).sum()) + BEHIND, dtype=np.uint32)
    rows = columns.list_rows, columns.list_bins
    for part in ranges_of_cost(stop - start):
        sparse.count_cells(*part, start, stop, columns.list_rows, row_start[1:])
    np.cumsum(row_start, out=row_start)
    at = row_start[:-1].copy()
    for part in ranges_of_cost(stop - start):
        sparse.fill_cells(*part, start, stop, *rows, place, at, cells)
    lanes = bins.astype(np.int32), feature, edge, is_above
    n_heavy = -(-int(is_heavy.sum()) // sparse.LANES)
    return SparseTable(row_start, cells, place, *lanes, start, stop, *rows, n_heavy, lane_of)


class SparseRounds(Rounds):
    """The arrays of a fit with trees on sparse features; for the parameters see `Rounds`.

    Only histograms, splits and partitions differ from those of dense features. Methods of `Rounds`
    that need codes of features read a single constant feature.
    """

    shares_roots = False
    grows_on_drawn = False
    #: Largest level of SIMD instructions to use: 0 for baseline, 1 for AVX2 or 2 for AVX-512.
    simd_level = 2

    def __init__(self, problem: Problem, y: Any, *others: Any) -> None:
        columns = problem.columns
        assert isinstance(columns, SparseColumns)
        codes, ends = np.zeros((1, len(y)), dtype=np.uint8), np.zeros((1, 1))
        one_bin = BinnedColumns(codes, np.ones(1, np.int32), ends, ends, None)
        self.table: SparseTable | None = None
        super().__init__(replace(problem, columns=one_bin), y, *others)
        self.problem = problem
        self.table = sparse_table(columns, self.block, self.min_samples_leaf)
        self.mark = np.zeros(len(y), dtype=np.uint8)
        n_cells = int(self.table.place[-1])
        self.counts = np.empty(n_cells if self.min_samples_leaf > 1 else 0, dtype=np.int32)
        heavy = int(self.table.place[self.table.n_heavy])
        self._make_slots(n_cells + 2 * heavy)

    def _make_slots(self, cells: int) -> None:
        """Allocate histograms of this number of float64 or int64 numbers for open nodes."""
        self.fixed = None  # it has pointers to the former arrays
        n = len(self.y)
        slots = 3 + min(self.max_depth, n.bit_length())
        if self.max_leaf_nodes:
            kept = SLOT_BYTES // (8 * max(cells, 1))
            slots = max(3, min(min(self.max_leaf_nodes, n) + 2, kept))
        self.n_slots = slots
        self.masses = np.empty((slots, max(cells, 1)))
        self.free = np.empty(slots, dtype=np.int32)
        places = max(slots, self.max_leaf_nodes and min(self.max_leaf_nodes, n)) + 3
        self.open = np.empty((1, places), dtype=self.open.dtype)
        self.slot_of = np.zeros((1, slots), dtype=np.int32)

    def _make_root(self) -> None:
        """Create the root from the packed gradients of the listed rows."""
        assert self.table is not None
        if self.is_wide and self.masses.shape[1] < 2 * self.table.place[-1]:
            self._make_slots(2 * int(self.table.place[-1]))
        sparse.begin(self)

    def _grow_nodes(self) -> None:
        """Split nodes until no open node is left."""
        while not sparse.grow(self, threads.CELLS_PER_CALL):
            threads.check_stop()

    def add_to(self, grown: Grown, others: NDArray[np.intp]) -> None:
        """Add a tree to the decision values of rows that it was not grown on."""
        if len(others) and self.table is not None:
            sparse.add_others(self, grown.nodes, grown.children, self.table.lane_of, others, self.f)


def sparse_predictions(tree: Tree, features: SparseFeatures) -> FloatArray:
    """Return the value of a tree for each row of a sparse matrix."""
    narrow = tree.of_features_read()
    assert narrow is not None
    read, on_these = narrow
    values = np.zeros((features.n_rows, len(read)))
    for place, column in enumerate(read.tolist()):
        entries = slice(*features.start[column : column + 2].tolist())
        values[features.rows[entries], place] = features.data[entries]
    return on_these.predict(values).T
