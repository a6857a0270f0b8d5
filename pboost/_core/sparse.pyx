"""Boosted trees on sparse features: bins of the nonzero values, lists of rows, and growth.

A feature has two lists: the rows with negative values and the rows with positive values that are not in the bin of
0. List 2 f + s belongs to feature f, with s = 0 for negative values. Bins in a list are numbered outward from 0. See
boost_sparse.h, `SparseColumns` in data/columns/sparse_columns.py and `SparseRounds` in trees/sparse_rounds.py, whose
arrays are used during one call.
"""
from libc.string cimport memcpy, memset

from pboost._core._address cimport to_read, to_write
from pboost._core._boost_best cimport end_best
from pboost._core._boost_grow cimport make_root
from pboost._core._boost_outer cimport (
    LANES_ABREAST, Growing, choose_scan, open_root, split_open, sum_rows,
)
from pboost._core._boost_read cimport read_round
from pboost._core._boost_round cimport Node
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    FEW_VALUES = 16  # up to this number of distinct values, no sorting is needed
cdef enum:
    FEW_TO_SORT = 48  # up to this number of values, insertion is faster than counting digits
#: Number of lanes in a group.
LANES = LANES_ABREAST


# ---------------------------------------------------------------------------------------------
# Bins.

cdef void sort_short(double* values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef double value
    for i in range(1, n):
        value, k = values[i], i
        while k > 0 and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value


cdef void sort_positive(double* values, double* spare, Py_ssize_t n) noexcept nogil:
    """Sort positive numbers, whose bits are in the same order, by the bytes of their bits."""
    cdef Py_ssize_t[8][256] count
    cdef uint64_t* source = <uint64_t*>values
    cdef uint64_t* target = <uint64_t*>spare
    cdef Py_ssize_t i, k, total, some
    cdef int digit, byte
    if n <= FEW_TO_SORT:
        sort_short(values, n)
        return
    memset(count, 0, sizeof(count))
    for i in range(n):
        for digit in range(8):
            count[digit][source[i] >> (8 * digit) & 255] += 1
    for digit in range(8):
        if count[digit][source[0] >> (8 * digit) & 255] == n:
            continue  # all bytes are equal
        total = 0
        for k in range(256):
            some, count[digit][k] = count[digit][k], total
            total += some
        for i in range(n):
            byte = source[i] >> (8 * digit) & 255
            target[count[digit][byte]] = source[i]
            count[digit][byte] += 1
        source, target = target, source
    if source != <uint64_t*>values:
        memcpy(values, source, sizeof(double) * n)


cdef Py_ssize_t few_distinct(
    const double* values, Py_ssize_t n, double* distinct, Py_ssize_t* count
) noexcept nogil:
    """Find the distinct values, in increasing order (OUT distinct, count). Return 0 if there are many."""
    cdef Py_ssize_t i, k, m = 0
    cdef double value
    for i in range(n):
        value, k = values[i], 0
        while k < m and distinct[k] < value:
            k += 1
        if k < m and distinct[k] == value:
            count[k] += 1
            continue
        if m == FEW_VALUES:
            return 0
        memmove_two(distinct, count, k, m)
        distinct[k], count[k] = value, 1
        m += 1
    return m


cdef void memmove_two(double* values, Py_ssize_t* count, Py_ssize_t k, Py_ssize_t m) noexcept nogil:
    """Make room at position k of m entries."""
    while m > k:
        values[m], count[m] = values[m - 1], count[m - 1]
        m -= 1


cdef Py_ssize_t bin_outward(
    double* values, double* spare, Py_ssize_t* count, Py_ssize_t n, Py_ssize_t max_bins, Py_ssize_t min_samples
) noexcept nogil:
    """Bin n positive values into bins of about equal numbers of rows.

    Return the number of bins. Their smallest values replace `values`, and their largest values `spare`. WORK
    count (n,).
    """
    cdef double[FEW_VALUES + 1] few
    cdef Py_ssize_t[FEW_VALUES + 1] count_few
    cdef Py_ssize_t i, m, b = 0, first = 0, rows, rest = n
    cdef Py_ssize_t limit = min(max_bins, max(n // min_samples, 1))
    m = few_distinct(values, n, few, count_few)
    if m > 0:
        memcpy(values, few, sizeof(double) * m)
        memcpy(count, count_few, sizeof(Py_ssize_t) * m)
    else:
        sort_positive(values, spare, n)
        for i in range(n):
            if m > 0 and values[i] == values[m - 1]:
                count[m - 1] += 1
            else:
                values[m], count[m] = values[i], 1
                m += 1
    if m <= limit:
        memcpy(spare, values, sizeof(double) * m)
        return m
    i = 0
    while i < m:
        first, rows = i, 0
        while i < m and rows * (limit - b) < rest:
            rows += count[i]
            i += 1
        spare[b], values[b] = values[i - 1], values[first]
        rest -= rows
        b += 1
    return b


def bin_values(
    Py_ssize_t first, Py_ssize_t last, const int64_t[::1] start, const int32_t[::1] rows, const double[::1] values, const uint8_t[::1] is_used,
    Py_ssize_t max_bins, Py_ssize_t min_samples, Py_ssize_t many, const uint8_t[::1] has_zero, int64_t[::1] first_bin,
    int32_t[::1] zero, double[::1] lower, double[::1] upper, double[::1] work, double[::1] spare,
    Py_ssize_t[::1] count
):
    """Compute the bins of the features first..last-1 from the nonzero values of the rows that are used.

    IN start (d + 1,), rows (nnz,), values (nnz,): the matrix by column, without zeros; is_used (n,) or empty if
    all rows are; has_zero (d,): whether a feature has a bin of zeros. Bins have at least `min_samples` values, or
    any number if the feature has more than `many` values. IN/OUT first_bin (d + 1,): position of the
    first bin of each feature, known up to `first`; OUT zero (d,): number of bins of negative values; lower, upper (nnz + d,): smallest and
    largest value of each bin. WORK work, spare, count: the largest number of values of a feature.
    """
    cdef Py_ssize_t d = start.shape[0] - 1, f, k, m, n_below, n, places, done, n_all
    cdef bint all_used = is_used.shape[0] == 0
    cdef double value
    cdef int side
    if not (first_bin.shape[0] == d + 1 and zero.shape[0] == has_zero.shape[0] == d
            and lower.shape[0] == upper.shape[0] == values.shape[0] + d and rows.shape[0] == values.shape[0]
            and work.shape[0] == spare.shape[0] == count.shape[0]):
        raise ValueError("bin_values: arrays of different sizes")
    done = first_bin[first]
    with nogil:
        for f in range(first, last):
            n_below = n_all = 0
            for k in range(start[f], start[f + 1]):
                if all_used or is_used[rows[k]]:
                    n_all += 1
                    n_below += values[k] < 0.0
            for side in range(2):
                n = 0
                for k in range(start[f], start[f + 1]):
                    if (values[k] > 0.0) == side and (all_used or is_used[rows[k]]):
                        work[n] = values[k] if side else -values[k]
                        n += 1
                m = 0
                if n > 0:
                    # Both sides share the bins, but each has at least 16.
                    places = min(max(<Py_ssize_t>(max_bins * (<double>n / n_all) + 0.5), 16), max_bins)
                    m = bin_outward(&work[0], &spare[0], &count[0], n, places, 1 if n_all > many else min_samples)
                if not side:
                    for k in range(m):
                        lower[done + k], upper[done + k] = -spare[m - 1 - k], -work[m - 1 - k]
                    done += m
                    zero[f] = <int32_t>m
                    if has_zero[f]:
                        lower[done] = upper[done] = 0.0
                        done += 1
                else:
                    memcpy(&lower[done], &work[0], sizeof(double) * m)
                    memcpy(&upper[done], &spare[0], sizeof(double) * m)
                    done += m
            first_bin[f + 1] = done


def list_rows(
    Py_ssize_t begin, Py_ssize_t end, const int64_t[::1] start, const int32_t[::1] rows, const double[::1] values, const int64_t[::1] first_bin,
    const int32_t[::1] zero, const uint8_t[::1] has_zero, const double[::1] threshold, int64_t[::1] list_start,
    int32_t[::1] list_rows, uint8_t[::1] list_bins, int32_t[::1] largest
):
    """List the rows of both sides of the features begin..end-1, in increasing order.

    `threshold` (n_bins,) separates each bin of a feature from the next. IN/OUT list_start (2 d + 1,), known up to
    ``2 * begin``. OUT list_rows, list_bins (nnz,); largest (2 d,): number of rows in the fullest bin of each list. Other arguments as in
    `bin_values`.
    """
    cdef Py_ssize_t d = start.shape[0] - 1, f, k, n, half, first, code, done
    cdef int32_t[512] rows_in_bin
    cdef int side, b
    if not (list_start.shape[0] == 2 * d + 1 and largest.shape[0] == 2 * d and rows.shape[0] == values.shape[0]
            and list_rows.shape[0] == list_bins.shape[0] == values.shape[0]
            and first_bin.shape[0] == d + 1 and zero.shape[0] == has_zero.shape[0] == d):
        raise ValueError("list_rows: arrays of different sizes")
    done = list_start[2 * begin]
    with nogil:
        for f in range(begin, end):
            for side in range(2):
                largest[2 * f + side] = 0
                memset(rows_in_bin, 0, sizeof(rows_in_bin))
                for k in range(start[f], start[f + 1]):
                    first, n = first_bin[f], first_bin[f + 1] - first_bin[f] - 1
                    while n > 0:  # the number of thresholds below the value
                        half = n >> 1
                        if threshold[first + half] < values[k]:
                            first += half + 1
                            n -= half + 1
                        else:
                            n = half
                    code = first - first_bin[f]
                    if side == 0:
                        b = <int>(zero[f] - 1 - code)
                    else:
                        b = <int>(code - zero[f] - has_zero[f])
                    if b < 0:
                        continue
                    list_rows[done], list_bins[done] = rows[k], <uint8_t>b
                    done += 1
                    rows_in_bin[b] += 1
                    largest[2 * f + side] = max(largest[2 * f + side], rows_in_bin[b])
                list_start[2 * f + side + 1] = done


def add_hashes(
    const int64_t[::1] list_start, const int32_t[::1] list_rows, const uint8_t[::1] list_bins,
    const int64_t[::1] first, const uint64_t[::1] hashes, uint64_t[::1] total
):
    """Add the hash of the bin of each listed row (IN/OUT total (n,)).

    Bin b of list k has the hash at position ``first[k] + b`` or, in lists of negative values, ``first[k] - b``.
    """
    cdef Py_ssize_t k, i
    with nogil:
        for k in range(list_start.shape[0] - 1):
            for i in range(list_start[k], list_start[k + 1]):
                total[list_rows[i]] += hashes[first[k] + (list_bins[i] if k & 1 else -<Py_ssize_t>list_bins[i])]


def count_cells(
    Py_ssize_t first, Py_ssize_t last, const int64_t[::1] list_start, const int64_t[::1] list_stop,
    const int32_t[::1] list_rows, int64_t[::1] count
):
    """Add the number of cells of each row in the lanes first..last-1 (IN/OUT count (n,))."""
    cdef Py_ssize_t lane, i
    with nogil:
        for lane in range(first, last):
            for i in range(list_start[lane], list_stop[lane]):
                count[list_rows[i]] += 1


def fill_cells(
    Py_ssize_t first, Py_ssize_t last, const int64_t[::1] list_start, const int64_t[::1] list_stop, const int32_t[::1] list_rows,
    const uint8_t[::1] list_bins, const int64_t[::1] place, int64_t[::1] at, uint32_t[::1] cells
):
    """Write the cells of each row in the lanes first..last-1.

    IN list_start, list_stop (n_lanes,); place (n_groups,). IN/OUT at (n,): position of the next cell of each row.
    OUT cells.
    """
    cdef Py_ssize_t lane, i
    with nogil:
        for lane in range(first, last):
            for i in range(list_start[lane], list_stop[lane]):
                cells[at[list_rows[i]]] = <uint32_t>(
                    place[lane // LANES_ABREAST] + LANES_ABREAST * <int64_t>list_bins[i] + lane % LANES_ABREAST)
                at[list_rows[i]] += 1


# ---------------------------------------------------------------------------------------------
# Growth.

cdef Growing read_growing(arrays) except *:
    cdef Growing all
    table = arrays.table
    all.r = read_round(arrays, NULL)
    all.table.row_start = <const int64_t*>to_read(table.row_start, sizeof(int64_t))
    all.table.cells = <const uint32_t*>to_read(table.cells, sizeof(uint32_t))
    all.table.place = <const int64_t*>to_read(table.place, sizeof(int64_t))
    all.table.bins = <const int32_t*>to_read(table.bins, sizeof(int32_t))
    all.table.feature = <const int32_t*>to_read(table.feature, sizeof(int32_t))
    all.table.edge = <const int32_t*>to_read(table.edge, sizeof(int32_t))
    all.table.is_above = <const uint8_t*>to_read(table.is_above, sizeof(uint8_t))
    all.table.n_groups = len(table.bins)
    all.table.n_heavy = all.table.n_groups if arrays.is_wide else table.n_heavy
    all.table.n_words = 0 if arrays.is_wide else all.table.place[all.table.n_groups]
    all.table.heavy_cells = all.table.place[all.table.n_heavy]
    all.list_start = <const int64_t*>to_read(table.list_start, sizeof(int64_t))
    all.list_stop = <const int64_t*>to_read(table.list_stop, sizeof(int64_t))
    all.list_rows = <const int32_t*>to_read(table.list_rows, sizeof(int32_t))
    all.list_bins = <const uint8_t*>to_read(table.list_bins, sizeof(uint8_t))
    all.mark = <uint8_t*>to_write(arrays.mark, sizeof(uint8_t))
    all.counts = <int32_t*>to_write(arrays.counts, sizeof(int32_t))
    all.scan = choose_scan(arrays.simd_level)
    return all


def begin(arrays):
    """Create the root from the packed gradients of the listed rows."""
    cdef Growing all = read_growing(arrays)
    with nogil:
        make_root(&all.r)
        sum_rows(&all.r, all.r.node)


def grow(arrays, Py_ssize_t cells):
    """Split nodes until about `cells` cells have been read or no node is open.

    Return whether no node is open.
    """
    cdef Growing all = read_growing(arrays)
    cdef Py_ssize_t done = 0, per_row, n = max(all.r.n_rows, 1)
    per_row = (all.table.row_start[n] + 4 * all.table.place[all.table.n_groups]) // n + 8
    with nogil:
        if all.r.state.leaves == 0:
            open_root(&all)
        while all.r.state.open > 0 and done < cells and (
                all.r.max_leaves == 0 or all.r.state.leaves < all.r.max_leaves):
            done += split_open(&all) * per_row
        if all.r.max_leaves > 0 and all.r.state.leaves == all.r.max_leaves:
            end_best(&all.r)
    return all.r.state.open == 0


def add_others(
    arrays, nodes, const int32_t[:, ::1] children, const int32_t[::1] lane_of, const int64_t[::1] rows,
    double[::1] f
):
    """Add the leaf values of a tree in preorder to the decision values of rows that it was not grown on.

    IN lane_of (2 d,): lane of each list, or -1. IN/OUT f (n,).
    """
    cdef Growing all = read_growing(arrays)
    cdef const Node* node = <const Node*>to_read(nodes, sizeof(Node))
    cdef Py_ssize_t i, e, n_nodes = len(nodes)
    cdef bint is_outer
    cdef int32_t lane
    if children.shape[0] != n_nodes or children.shape[1] != 2 or f.shape[0] != all.r.n_rows:
        raise ValueError("add_others: arrays of different sizes")
    with nogil:
        for i in range(rows.shape[0]):
            e = 0
            while node[e].feature >= 0:
                lane = lane_of_cut(&all, node + e, &lane_of[0])
                is_outer = is_outer_row(&all, lane, node[e].low, <int32_t>rows[i])
                e = children[e, is_outer == all.table.is_above[lane]]
            f[rows[i]] += node[e].mean


cdef int32_t lane_of_cut(const Growing* all, const Node* node, const int32_t* lane_of) noexcept nogil:
    """Return the lane whose outer rows a node separates."""
    cdef int32_t lane = lane_of[2 * node.feature + 1]
    if lane >= 0 and node.low >= all.table.edge[lane]:
        return lane
    return lane_of[2 * node.feature]


cdef bint is_outer_row(const Growing* all, int32_t lane, int32_t low, int32_t row) noexcept nogil:
    """Return whether a row is an outer row of the split of a lane, from the cells of the row.

    The groups of the cells of a row are in increasing order.
    """
    cdef Py_ssize_t group = lane // LANES_ABREAST, at = all.table.row_start[row], half
    cdef Py_ssize_t stop = all.table.row_start[row + 1], n = stop - at
    cdef int32_t bin_ = low - all.table.edge[lane]
    if not all.table.is_above[lane]:
        bin_ = -bin_
    while n > 0:  # the first cell of the group
        half = n >> 1
        if all.table.cells[at + half] < all.table.place[group]:
            at += half + 1
            n -= half + 1
        else:
            n = half
    while at < stop and all.table.cells[at] < all.table.place[group + 1]:
        if all.table.cells[at] % LANES_ABREAST == lane % LANES_ABREAST:
            return <int32_t>((all.table.cells[at] - all.table.place[group]) // LANES_ABREAST) >= bin_
        at += 1
    return False


# ---------------------------------------------------------------------------------------------
# Prediction.

cdef enum:
    TREES_ABREAST = 8  # trees that a row walks at the same time

# A node of a tree: the second child is `beyond` nodes behind the first, which follows the node. In a leaf, the
# threshold is minus infinity and `beyond` is -1, so that a row stays there.
cdef struct Step:
    double threshold
    int32_t column, beyond


cdef void walk_trees(const Step* steps, const double* x, Py_ssize_t depth, Py_ssize_t* node) noexcept nogil:
    """Walk eight trees with a dense row, from these nodes to leaves (IN/OUT node)."""
    cdef Py_ssize_t i, k
    cdef const Step* step
    for i in range(depth):
        for k in range(TREES_ABREAST):
            step = steps + node[k]
            # Without a branch, which could not be predicted.
            node[k] += 1 + (step.beyond & -<int32_t>(x[step.column] > step.threshold))


def sum_trees(
    const int64_t[::1] row_start, const int32_t[::1] columns, const double[::1] values, const int32_t[::1] place,
    steps, const int32_t[::1] root, const int32_t[::1] depth, const double[:, ::1] value, Py_ssize_t turns,
    Py_ssize_t start, Py_ssize_t stop, double[::1] x, double[:, ::1] total
):
    """Add the leaf values of all trees for the rows start..stop-1 of a sparse matrix by row, without NaN.

    IN place (d,): position of each feature that nodes read, or -1. `steps` contains a `Step` per node, whose column
    is such a position. Tree t adds its values (k,) at position t % turns. WORK x: zeros, one per position. OUT
    total (n, turns * k).
    """
    cdef const Step* step = <const Step*>to_read(steps, sizeof(Step))
    cdef Py_ssize_t n_trees = depth.shape[0], n_values = value.shape[1], i, j, k, t, most
    cdef Py_ssize_t[TREES_ABREAST] node
    if (root.shape[0] != n_trees + 1 or total.shape[1] != turns * n_values or stop > total.shape[0]
            or row_start.shape[0] != total.shape[0] + 1 or columns.shape[0] != values.shape[0]):
        raise ValueError("sum_trees: arrays of different sizes")
    with nogil:
        for i in range(start, stop):
            for j in range(row_start[i], row_start[i + 1]):
                if place[columns[j]] >= 0:
                    x[place[columns[j]]] += values[j]
            t = 0
            while t < n_trees:
                most = 0
                for k in range(TREES_ABREAST):
                    node[k] = root[min(t + k, n_trees - 1)]
                    most = max(most, depth[min(t + k, n_trees - 1)])
                walk_trees(step, &x[0], most, node)
                for k in range(min(TREES_ABREAST, n_trees - t)):
                    for j in range(n_values):
                        total[i, (t + k) % turns * n_values + j] += value[node[k], j]
                t += TREES_ABREAST
            for j in range(row_start[i], row_start[i + 1]):
                if place[columns[j]] >= 0:
                    x[place[columns[j]]] = 0.0
