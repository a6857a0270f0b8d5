"""Growth of a classification or regression tree: search, split and partition in one compiled loop.

As in tree.pyx an open node owns a segment of every sorted column (exact search) or of one list of
rows (binned search), which a split partitions in place. Weights are 64-bit fixed point and all masses
exact sums; targets of a regression have images of that kind too, made anew at each node about its
mean. A score is a function of these sums, to be minimised.

The loop is a machine of small steps (`PHASE` of the counter), so that it can be left at any of them:
to look at signals, to tell a callback, or to let threads share a large node. The caller's arrays
(see `CartArrays` in cart_growth.py) are borrowed for one call. Children are numbered in pairs when
their parent is split.
"""
from libc.math cimport INFINITY
from libc.string cimport memset

from pboost._core._address cimport address
from pboost._core._bins cimport partition_rows
from pboost._core._cart cimport (
    ALL_LEAVES, AT, CHILD, CHOOSE, COUNTERS, Cart, DEPTH, DONE, FEATURE, FRESH, Found, HIGH, KEY,
    LARGE_PARTITION, LARGE_SEARCH, LEAVES, LIMIT, LISTED, LOSS, LOW, NODES, NODE_INTS, NODE_REALS, OPEN,
    OPENED, PARTITION, PAUSED, PHASE, PICK, PICKED, SCALE, SEARCH, SHIFT, SPLIT, START, STOP,
    can_split, class_node, draw_from, heap_of, mass_below, measure_classes, measure_squares,
    risk_of, rows_at, size_of, square_node, start_of, stream, unit_of, width,
)
from pboost._core._cart_scan cimport is_constant, pack_rows, scan_column
from pboost._core._classes cimport ClassNode, class_score_limit, total_impurity
from pboost._core._heap cimport Heap, decrease, pop, push
from pboost._core._segment cimport partition_segment
from pboost._core._squares cimport Moment, SquareNode, square_score
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, row_of, uint8_t, uint64_t

STATUS = dict(zip(("done", "all leaves", "paused", "large search", "large partition"),
                  (DONE, ALL_LEAVES, PAUSED, LARGE_SEARCH, LARGE_PARTITION)))


def work_size(Py_ssize_t n_classes):
    """Number of int64, all 0, that `search_pending` needs as scratch."""
    return 4 * n_classes + MAX_BINS * (max(n_classes, 2) + 1)


cdef Cart read_cart(arrays) except *:
    cdef Cart t
    t.order = <int32_t*>address(arrays.order)
    t.codes = <const uint8_t*>address(arrays.codes)
    t.rows = <int32_t*>address(arrays.rows)
    t.n_bins = <const int32_t*>address(arrays.n_bins)
    t.weight = <const double*>address(arrays.weight)
    t.y = <const double*>address(arrays.y)
    t.label = <const int32_t*>address(arrays.label)
    t.fixed = <int64_t*>address(arrays.fixed)
    t.moment = <Moment*>address(arrays.moment)
    t.side = <uint8_t*>address(arrays.side)
    t.spare = <int32_t*>address(arrays.spare)
    t.work = <int64_t*>address(arrays.work)
    t.packed = <int64_t*>address(arrays.packed)
    t.best = <double*>address(arrays.best)
    t.picked = <int32_t*>address(arrays.picked)
    t.node_int = <int32_t*>address(arrays.node_int)
    t.node_mass = <int64_t*>address(arrays.node_mass)
    t.node_real = <double*>address(arrays.node_real)
    t.open = <int32_t*>address(arrays.open)
    t.counter = <int64_t*>address(arrays.counter)
    (t.n, t.d, t.n_columns, t.n_negative, t.max_leaves, t.min_count, t.min_split, t.n_picked,
     t.criterion, t.n_classes, t.max_depth, t.exact, t.best_first, t.squares, t.key,
     t.complexity) = arrays.sizes
    t.scale, t.least_risk = arrays.scale, 0.0
    return t


# ---------------------------------------------------------------------------------------------
# The steps.

cdef Py_ssize_t draw_columns(const Cart* t, Py_ssize_t e) noexcept nogil:
    """Draw the columns that a node is searched in; returns their number. Constant ones do not
    help: drawing goes on until there is another."""
    cdef uint64_t start
    cdef Py_ssize_t i, j
    cdef bint all_constant = True
    if t.n_picked >= t.d:
        return t.d  # `picked` counts them all
    start = stream(t.key, <uint64_t>e, 0)
    for i in range(t.d):
        t.picked[i] = <int32_t>i
    for i in range(t.d):
        if i >= t.n_picked and not all_constant:
            return i
        j = i + <Py_ssize_t>(draw_from(start, <uint64_t>i) * <double>(t.d - i))
        t.picked[i], t.picked[j] = t.picked[j], t.picked[i]
        all_constant = all_constant and is_constant(t, e, t.picked[i])
    return t.d


cdef void search_columns(
    const Cart* t, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, int64_t* work, Found* kept
) noexcept nogil:
    """Least scores of the columns picked first..last-1. `kept`: as of `scan_column`, or NULL."""
    cdef double found = INFINITY
    cdef Py_ssize_t i
    if kept != NULL:
        kept.node, kept.score = -1, INFINITY
    for i in range(first, last):
        t.best[i] = INFINITY
        scan_column(t, e, t.picked[i], -INFINITY, found, &t.best[i], work, kept)
        found = min(found, t.best[i])


cdef bint choose(Cart* t, Py_ssize_t e, Py_ssize_t n_picked) noexcept nogil:
    """Note the column and the score at which a node is to be split; False if there is none."""
    cdef SquareNode squares
    cdef ClassNode classes
    cdef Py_ssize_t i
    cdef int32_t f = -1
    cdef double found = INFINITY, limit
    for i in range(n_picked):
        found = min(found, t.best[i])
    if found == INFINITY:
        return False
    if t.squares:
        squares = square_node(t, e)
        limit = found + squares.tie
    else:
        classes = class_node(t, e, t.work)
        limit = class_score_limit(&classes, found)
    for i in range(n_picked):
        if t.best[i] <= limit and (f < 0 or t.picked[i] < f):
            f = t.picked[i]
    t.node_int[NODE_INTS * e + FEATURE] = f
    t.node_real[NODE_REALS * e + LIMIT] = limit
    return True


cdef Py_ssize_t cut_of(
    const Cart* t, Py_ssize_t e, const Found* kept, int64_t* below
) noexcept nogil:
    """Where the node is cut that `choose` has been at. OUT below: masses below the cut."""
    cdef Py_ssize_t f = t.node_int[NODE_INTS * e + FEATURE], place
    cdef double ignored = INFINITY
    if kept.node == e and kept.feature == f:
        below[0], below[1] = kept.below[0], kept.below[1]
        return kept.place
    pack_rows(t, e)
    place = scan_column(
        t, e, f, t.node_real[NODE_REALS * e + LIMIT], INFINITY, &ignored, t.work, NULL)
    if place < 0:  # never, while two passes agree on scores; else any cut is better than none
        place = scan_column(t, e, f, INFINITY, INFINITY, &ignored, t.work, NULL)
    mass_below(t, e, f, place, below)
    return place


cdef void set_key(Cart* t, Py_ssize_t e, const Found* kept) noexcept nogil:
    """By how much the split chosen lowers the impurity. The masses of its sides are put where
    those of the next children will be."""
    cdef double* real = t.node_real + NODE_REALS * e
    cdef Py_ssize_t k = width(t)
    cdef int64_t* mass = t.node_mass + k * e
    cdef int64_t* below = t.node_mass + k * t.counter[NODES]
    cdef int64_t* above = below + k
    cdef SquareNode squares
    cdef double before, after
    cdef Py_ssize_t j
    cut_of(t, e, kept, below)
    if t.squares:
        squares = square_node(t, e)
        after = square_score(&squares, <Moment*>below)
        real[KEY] = decrease(
            real[LOSS],
            -after / real[SCALE] / (real[SCALE] * unit_of(t, e)) * <double>squares.total.w)
        return
    for j in range(k):
        above[j] = mass[j] - below[j]
    before = total_impurity(t.criterion, k, mass)
    after = (total_impurity(t.criterion, k, below)
             + total_impurity(t.criterion, k, above))
    # By a power of two: the share is the same.
    real[KEY] = decrease(before * unit_of(t, e), (before - after) * unit_of(t, e))


cdef void add_child(
    Cart* t, Py_ssize_t parent, Py_ssize_t start, Py_ssize_t stop, int32_t listed
) noexcept nogil:
    cdef Py_ssize_t e = t.counter[NODES]
    cdef int32_t* node = t.node_int + NODE_INTS * e
    t.counter[NODES] += 1
    node[START] = <int32_t>start
    node[STOP] = <int32_t>stop
    node[DEPTH] = t.node_int[NODE_INTS * parent + DEPTH] + 1
    node[SHIFT] = t.node_int[NODE_INTS * parent + SHIFT]
    node[FEATURE] = node[CHILD] = -1
    node[LOW] = node[HIGH] = 0
    node[LISTED] = listed
    if t.squares:
        measure_squares(t, e)
    else:
        measure_classes(t, e)


cdef bint split_node(Cart* t, Py_ssize_t e, const Found* kept) noexcept nogil:
    """Split a node where `choose` has been; whether its sorted columns must be partitioned."""
    cdef int32_t* node = t.node_int + NODE_INTS * e
    cdef Py_ssize_t k = width(t), f = node[FEATURE], start = node[START], n = size_of(t, e)
    cdef Py_ssize_t i, place, n_below
    cdef Py_ssize_t first = t.counter[NODES]
    cdef const int32_t* order = t.order + f * t.n + start
    cdef int64_t* below = t.node_mass + k * first
    place = cut_of(t, e, kept, below)
    for i in range(k):
        below[k + i] = t.node_mass[k * e + i] - below[i]
    if t.exact:
        n_below = place
        for i in range(n):
            t.side[row_of(order[i])] = i >= place
        node[LOW], node[HIGH] = row_of(order[place - 1]), row_of(order[place])
    else:
        n_below = partition_rows(
            t.rows + start, n, t.codes + f * t.n_columns, <int>place, t.spare)
        node[LOW], node[HIGH] = <int32_t>place, <int32_t>place + 1
    node[CHILD] = <int32_t>first
    t.counter[LEAVES] += 1
    add_child(t, e, start, start + n_below, <int32_t>f)
    add_child(t, e, start + n_below, start + n, <int32_t>f)
    return t.exact and (can_split(t, first) or can_split(t, first + 1))


cdef void partition_columns(
    const Cart* t, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, int32_t* spare
) noexcept nogil:
    cdef Py_ssize_t f
    for f in range(first, last):
        if f != t.node_int[NODE_INTS * e + FEATURE]:
            partition_segment(t.order + f * t.n + start_of(t, e), size_of(t, e), t.side, spare)


cdef void open_children(Cart* t, Py_ssize_t e) noexcept nogil:
    """Depth first: the first child is opened next."""
    cdef int32_t child = t.node_int[NODE_INTS * e + CHILD]
    cdef int i
    for i in range(1, -1, -1):
        if can_split(t, child + i):
            t.open[t.counter[OPEN]] = child + i
            t.counter[OPEN] += 1


cdef int pick(Cart* t) noexcept nogil:
    """Choose the node to be worked on; the next phase, or PICK where there is none."""
    cdef Heap heap = heap_of(t)
    if not t.best_first:
        if t.counter[OPEN] == 0:
            return PICK
        t.counter[OPEN] -= 1
        t.counter[AT] = t.open[t.counter[OPEN]]
        return SEARCH
    while t.counter[FRESH] < t.counter[NODES]:
        t.counter[AT] = t.counter[FRESH]
        t.counter[FRESH] += 1
        if can_split(t, t.counter[AT]):
            return SEARCH
    if t.counter[OPEN] == 0:
        return PICK
    t.counter[AT] = pop(&heap)
    return SPLIT


# ---------------------------------------------------------------------------------------------
# What Python calls.

def begin_root(arrays):
    """Make the root, node 0, measure it, and open it if it can be split."""
    cdef Cart t = read_cart(arrays)
    cdef int32_t* root = t.node_int
    cdef const int32_t* rows
    cdef Py_ssize_t i, k = width(&t)
    cdef int32_t row
    with nogil:
        memset(t.counter, 0, COUNTERS * sizeof(int64_t))
        t.counter[NODES] = t.counter[LEAVES] = 1
        memset(root, 0, NODE_INTS * sizeof(int32_t))
        root[STOP], root[FEATURE], root[CHILD] = <int32_t>t.n, -1, -1
        rows = rows_at(&t, 0)
        for i in range(k):
            t.node_mass[i] = 0
        for i in range(t.n):
            row = row_of(rows[i])
            t.node_mass[0 if t.squares else t.label[row]] += t.fixed[row]
        if t.squares:
            measure_squares(&t, 0)
        else:
            measure_classes(&t, 0)
        if not t.best_first and can_split(&t, 0):
            t.open[0] = 0
            t.counter[OPEN] = 1


def grow(arrays, Py_ssize_t cells, Py_ssize_t large):
    """Go on until about `cells` cells are done; nodes of more than `large` cells are left.

    Returns one of STATUS. After "large search" the columns picked are to be searched by
    `search_pending`, their number is counter[PICKED]; after "large partition" all are to be
    partitioned by `partition_pending`.
    """
    cdef Cart t = read_cart(arrays)
    cdef Heap heap = heap_of(&t)
    cdef Py_ssize_t done = 0, size
    cdef int64_t* phase = &t.counter[PHASE]
    cdef Py_ssize_t e
    cdef int status = DONE
    cdef Found kept
    kept.node = -1
    if t.complexity > 0.0:
        t.least_risk = t.complexity * risk_of(&t, 0)
    with nogil:
        while True:
            if done >= cells:
                status = PAUSED
                break
            if phase[0] == PICK:
                if t.counter[LEAVES] >= t.max_leaves:
                    status = ALL_LEAVES
                    break
                phase[0] = pick(&t)
                if phase[0] == PICK:
                    break
            e = t.counter[AT]
            size = size_of(&t, e) * t.d
            if phase[0] == SEARCH:
                t.counter[PICKED] = draw_columns(&t, e)
                phase[0] = CHOOSE
                pack_rows(&t, e)
                if size > large:
                    status = LARGE_SEARCH
                    break
                search_columns(&t, e, 0, t.counter[PICKED], t.work, &kept)
                done += size
            elif phase[0] == CHOOSE:
                phase[0] = PICK
                if choose(&t, e, t.counter[PICKED]):
                    if t.best_first:
                        set_key(&t, e, &kept)
                        push(&heap, <int32_t>e)
                    else:
                        phase[0] = SPLIT
            elif phase[0] == SPLIT:
                phase[0] = PARTITION if split_node(&t, e, &kept) else OPENED
                done += size_of(&t, e)
            elif phase[0] == PARTITION:
                phase[0] = OPENED
                if size > large:
                    status = LARGE_PARTITION
                    break
                partition_columns(&t, e, 0, t.d, t.spare)
                done += size
            else:
                if not t.best_first:
                    open_children(&t, e)
                phase[0] = PICK
    return status


def search_pending(arrays, Py_ssize_t first, Py_ssize_t last, int64_t[::1] work):
    """Search a range of the columns picked at the pending node; WORK work (work_size,)."""
    cdef Cart t = read_cart(arrays)
    with nogil:
        search_columns(&t, t.counter[AT], first, last, &work[0], NULL)


def partition_pending(arrays, Py_ssize_t first, Py_ssize_t last, int32_t[::1] spare):
    """Partition a range of columns at the pending node; WORK spare (n,)."""
    cdef Cart t = read_cart(arrays)
    with nogil:
        partition_columns(&t, t.counter[AT], first, last, &spare[0])


def preorder(const int32_t[::1] child, int32_t[::1] number):
    """Number the nodes parents first, then all below the first child; children stand in pairs.

    IN child (n,): the first child, -1 of a leaf; OUT number (n,) WORK.
    """
    cdef Py_ssize_t n = child.shape[0], e
    # Sizes of the sub-trees first: children come after parents.
    with nogil:
        for e in range(n - 1, -1, -1):
            number[e] = 1 if child[e] < 0 else 1 + number[child[e]] + number[child[e] + 1]
        number[0] = 0
        for e in range(n):
            if child[e] >= 0:
                number[child[e] + 1] = number[e] + 1 + number[child[e]]
                number[child[e]] = number[e] + 1
