# Growth of a boosted tree on sparse features; see boost_sparse.h for histograms and splits.
#
# Nodes are as with dense features. The best split of an open node is known, and its rows are partitioned. In
# `Open`, `mass` is the first group without a cell that is large enough for a child; `slot` is -1 if the node has
# no histogram.
from libc.string cimport memcpy, memset

from pboost._core._boost_best cimport give_back, of_gain, take_slot
from pboost._core._boost_grow cimport make_children, may_split, note_leaf, other_child
from pboost._core._boost_round cimport (
    LOW_UNIT, Masses, Node, Open, Round, curvature_in, gradient_in, is_pure, masses_of, own_score,
)
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint32_t

cdef extern from "boost_sparse.h" nogil:
    ctypedef struct Sparse "pboost_sparse":
        const int64_t* row_start
        const uint32_t* cells
        const int64_t* place
        const int32_t* bins
        const int32_t* feature
        const int32_t* edge
        const uint8_t* is_above
        Py_ssize_t n_groups
        Py_ssize_t n_heavy
        Py_ssize_t n_words
        Py_ssize_t heavy_cells
    ctypedef struct Outer "pboost_outer":
        double gradient
        double curvature
        double least
        double l2
        double numerator
        double divisor
        double outer_gradient
        double outer_curvature
        Py_ssize_t lane
        Py_ssize_t last
        int32_t feature
        int32_t low
        int32_t bin
    ctypedef void (*Scan "pboost_scan_cells")(
        const Sparse* table, double* whole, const double* part, Outer* of_whole, Outer* of_part
    ) noexcept nogil
    Scan choose_scan "pboost_choose_scan_cells"(int level)
    void count_cells "pboost_count_cells"(
        const Sparse* table, const int32_t* rows, const int64_t* packed, Py_ssize_t n, Py_ssize_t block,
        Py_ssize_t last, double* slot)
    void count_wide_cells "pboost_count_wide_cells"(
        const Sparse* table, const int32_t* rows, const int64_t* packed, const int64_t* low, double unit,
        Py_ssize_t n, double* slot)
    void try_outer "pboost_try_outer"(
        const Sparse* table, Outer* best, Py_ssize_t lane, int bin, double g, double h)

cdef enum:
    LANES_ABREAST = 8
cdef enum:
    LONG_LIST = 16  # a list with this many times the rows of a node is searched for each row

# The arrays of a round on sparse features. The rows of lane k are those from `list_start[k]` to `list_stop[k]` - 1
# in `list_rows`, in increasing order, and `list_bins` has their bins. `mark` (n_rows,) is 0 between calls, and
# `counts` are numbers of rows by cell.
cdef struct Growing:
    Round r
    Sparse table
    Scan scan
    const int64_t* list_start
    const int64_t* list_stop
    const int32_t* list_rows
    const uint8_t* list_bins
    uint8_t* mark
    int32_t* counts


cdef inline Outer no_outer(const Round* r, const Node* node, Py_ssize_t last) noexcept nogil:
    """Return a node without a split."""
    cdef Outer best
    cdef Masses at = masses_of(r, node)
    best.gradient, best.curvature, best.least, best.l2 = at.gradient, at.curvature, at.least, at.l2
    best.numerator, best.divisor, best.outer_gradient, best.outer_curvature = -1.0, 1.0, 0.0, 0.0
    best.lane, best.last, best.feature, best.low, best.bin = -1, last, 0x7FFFFFFF, 0x7FFFFFFF, 0
    return best


cdef inline double* slot_at(const Growing* all, Py_ssize_t slot) noexcept nogil:
    return all.r.masses + slot * all.r.slot


cdef inline void count_node(
    const Growing* all, const Node* node, Py_ssize_t last, double* slot
) noexcept nogil:
    """Compute the histogram of a node from its rows, up to the group `last`."""
    cdef const Round* r = &all.r
    cdef Py_ssize_t n = node.stop - node.start
    if r.low != NULL:
        count_wide_cells(&all.table, r.rows + node.start, r.packed, r.low, LOW_UNIT, n, slot)
    else:
        count_cells(&all.table, r.rows + node.start, r.packed + node.start, n, r.block, last, slot)


cdef inline void sum_rows(const Round* r, Node* node) noexcept nogil:
    """Compute the sums of a node from its rows."""
    cdef Py_ssize_t i, row
    node.gradient = node.curvature = 0.0
    for i in range(node.start, node.stop):
        row = i if r.low == NULL else r.rows[i]
        if r.low != NULL:
            node.gradient += gradient_in(r.packed[row]) * LOW_UNIT + gradient_in(r.low[row])
            node.curvature += curvature_in(r.packed[row]) * LOW_UNIT + curvature_in(r.low[row])
        else:
            node.gradient += gradient_in(r.packed[row])
            node.curvature += curvature_in(r.packed[row])


# ---------------------------------------------------------------------------------------------
# Partitions.

cdef inline bint is_listed(
    const Growing* all, Py_ssize_t start, Py_ssize_t n, int32_t row, int bin_
) noexcept nogil:
    """Return whether a row is in a list of n rows, in the bin `bin_` or further outward."""
    cdef Py_ssize_t half
    while n > 1:
        half = n >> 1
        if all.list_rows[start + half] <= row:
            start += half
        n -= half
    return n > 0 and all.list_rows[start] == row and all.list_bins[start] >= bin_


cdef inline Py_ssize_t part_outer(
    const Growing* all, const Node* node, const Outer* cut, bint with_words
) noexcept nogil:
    """Partition the rows of a node and return the number of left rows. Rows keep their order in each child."""
    cdef const Round* r = &all.r
    cdef Py_ssize_t start = all.list_start[cut.lane], stop = all.list_stop[cut.lane]
    cdef Py_ssize_t i, below = 0, above = 0, n = node.stop - node.start, is_right
    cdef bint is_marked = stop - start < LONG_LIST * n, has_words = with_words and r.low == NULL
    cdef int32_t* rows = r.rows + node.start
    cdef int64_t* words = r.packed + node.start
    cdef int32_t row
    cdef int64_t word = 0
    cdef bint is_outer, outer_is_right = all.table.is_above[cut.lane]
    if is_marked:
        for i in range(start, stop):
            all.mark[all.list_rows[i]] = all.list_bins[i] >= cut.bin
    for i in range(n):
        row = rows[i]
        if is_marked:
            is_outer = all.mark[row]
        else:
            is_outer = is_listed(all, start, stop - start, row, cut.bin)
        is_right = is_outer == outer_is_right
        rows[below] = r.spare[above] = row
        if has_words:
            word = words[i]
            words[below] = r.spare_packed[above] = word
        below += 1 - is_right
        above += is_right
    memcpy(rows + below, r.spare, sizeof(int32_t) * above)
    if has_words:
        memcpy(words + below, r.spare_packed, sizeof(int64_t) * above)
    if is_marked:
        for i in range(start, stop):
            all.mark[all.list_rows[i]] = 0
    return below


# ---------------------------------------------------------------------------------------------
# Splits.

cdef inline void search_counted(
    const Growing* all, const Node* node, const double* slot, Outer* best
) noexcept nogil:
    """Find the best split of a node whose children both have enough rows."""
    cdef const Round* r = &all.r
    cdef const Sparse* table = &all.table
    cdef Py_ssize_t i, k, group, lane, at, n = node.stop - node.start, n_outer
    cdef int b
    cdef double g, h
    memset(all.counts, 0, sizeof(int32_t) * table.place[table.n_groups])
    for i in range(node.start, node.stop):
        for k in range(table.row_start[r.rows[i]], table.row_start[r.rows[i] + 1]):
            all.counts[table.cells[k]] += 1
    for group in range(best.last if best.last > table.n_heavy else table.n_heavy):
        for lane in range(LANES_ABREAST * group, LANES_ABREAST * (group + 1)):
            g, h, n_outer = 0.0, 0.0, 0
            for b in range(table.bins[group] - 1, -1, -1):
                at = table.place[group] + LANES_ABREAST * <Py_ssize_t>b + lane % LANES_ABREAST
                n_outer += all.counts[at]
                if group < table.n_heavy:
                    g += slot[table.n_words + at]
                    h += slot[table.n_words + table.heavy_cells + at]
                else:
                    g += gradient_in((<const int64_t*>slot)[at])
                    h += curvature_in((<const int64_t*>slot)[at])
                if min(n_outer, n - n_outer) >= r.min_leaf:
                    try_outer(table, best, lane, b, g, h)


cdef inline bint note_cut(const Growing* all, Node* node, const Outer* cut) noexcept nogil:
    """Store a split in its node. Return False if there is none, or if its gain is too small."""
    cdef Masses at = masses_of(&all.r, node)
    if cut.lane < 0:
        return False
    node.loss = cut.numerator / cut.divisor - own_score(&at)
    if node.loss < all.r.min_gain:
        return False
    node.feature, node.low, node.high, node.missing = cut.feature, cut.low, cut.low + 1, 0
    return True


cdef inline bint cut_node(
    const Growing* all, Node* node, const double* slot, Outer* cut, Py_ssize_t* n_below
) noexcept nogil:
    """Partition the rows of a node by its best split. Return False if the node stays a leaf."""
    cdef const Round* r = &all.r
    cdef Py_ssize_t n = node.stop - node.start
    cdef int turn
    if is_pure(r, node):
        return False
    for turn in range(2):
        if turn:
            cut[0] = no_outer(r, node, cut.last)
            search_counted(all, node, slot, cut)
        if not note_cut(all, node, cut):
            break
        n_below[0] = part_outer(all, node, cut, node.depth + 1 < r.max_depth)
        if min(n_below[0], n - n_below[0]) >= r.min_leaf:
            return True
    note_leaf(node)
    return False


cdef inline void open_cut(const Growing* all, Node* node, int32_t slot, Outer* cut) noexcept nogil:
    """Open a node with its best split. If it cannot be split, free its histogram."""
    cdef const Round* r = &all.r
    cdef Open* at = r.open + r.state.open
    cdef Py_ssize_t n_below
    if not may_split(r, node) or not cut_node(all, node, slot_at(all, slot), cut, &n_below):
        give_back(r, slot)
        return
    at.node, at.slot, at.n_below, at.mass = <int32_t>(node - r.node), slot, n_below, cut.last
    at.gradient, at.curvature = cut.outer_gradient, cut.outer_curvature
    if all.table.is_above[cut.lane]:
        at.gradient, at.curvature = node.gradient - at.gradient, node.curvature - at.curvature
    r.state.open += 1


# ---------------------------------------------------------------------------------------------
# Growth.

cdef inline void open_root(const Growing* all) noexcept nogil:
    """Compute the histogram of the root, and open it."""
    cdef const Round* r = &all.r
    cdef Py_ssize_t i, last = all.table.n_groups
    cdef Outer cut
    r.state.leaves, r.state.open, r.state.free = 1, 0, 0
    for i in range(r.n_slots - 1, 0, -1):
        give_back(r, <int32_t>i)
    if not may_split(r, r.node) or r.max_leaves == 1:
        return
    count_node(all, r.node, last, slot_at(all, 0))
    cut = no_outer(r, r.node, last)
    all.scan(&all.table, slot_at(all, 0), NULL, &cut, NULL)
    open_cut(all, r.node, 0, &cut)


cdef inline void open_children(const Growing* all, Open at, Node* small, Node* large) noexcept nogil:
    """Compute the histograms of two children, find their splits and open them.

    The smaller child is opened last, because depth-first growth then needs few histograms.
    """
    cdef const Round* r = &all.r
    cdef int32_t next_ = take_slot(r), slot = at.slot
    cdef Py_ssize_t last = at.mass
    cdef Outer of_large = no_outer(r, large, last), of_small = no_outer(r, small, last)
    count_node(all, small, last, slot_at(all, next_))
    if slot >= 0:
        all.scan(&all.table, slot_at(all, slot), slot_at(all, next_), &of_large, &of_small)
    else:
        slot = take_slot(r)
        count_node(all, large, last, slot_at(all, slot))
        all.scan(&all.table, slot_at(all, slot), NULL, &of_large, NULL)
        all.scan(&all.table, slot_at(all, next_), NULL, &of_small, NULL)
    open_cut(all, large, slot, &of_large)
    open_cut(all, small, next_, &of_small)


cdef inline Py_ssize_t split_open(const Growing* all) noexcept nogil:
    """Split an open node, the newest or with best-first growth the best, and return its number of rows."""
    cdef const Round* r = &all.r
    cdef Open* place = r.open + r.state.open - 1 if r.max_leaves == 0 else of_gain(r, False)
    cdef Open at = place[0]
    cdef Node* small
    cdef Node* large
    r.state.open -= 1
    place[0] = r.open[r.state.open]
    small = make_children(r, at.node, at.n_below, at.gradient, at.curvature)
    large = other_child(r, small)
    r.state.leaves += 1
    if may_split(r, large) and (r.max_leaves == 0 or r.state.leaves < r.max_leaves):
        open_children(all, at, small, large)
    else:
        give_back(r, at.slot)
    while r.state.free < 2:
        place = of_gain(r, True)
        give_back(r, place.slot)
        place.slot = -1
    return r.node[at.node].stop - r.node[at.node].start
