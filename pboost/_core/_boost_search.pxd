# The best cut of a node of a boosted tree: of its columns, by bins.
#
# Of equal scores the lowest column is taken, then missing rows above before below, then the lowest bin.
from libc.math cimport INFINITY

from pboost._core._boost_levels cimport search_levels
from pboost._core._boost_round cimport (
    Cut, Cuts, LANES, Masses, Node, Round, is_any, kind_of, lane_of, masses_of, n_groups, take_better, try_sums,
)
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, uint8_t


cdef inline void search_groups(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t g, Cut* best
) noexcept nogil:
    """The columns of one group, in their order, without a look at how many rows there are."""
    cdef double[2 * LANES] nothing, missing
    cdef Cuts above, below
    cdef const double* curvature
    cdef const double* gradient
    cdef bint some = False
    cdef Py_ssize_t k, f, bins = r.group_bins[g]
    for k in range(2 * LANES):
        nothing[k] = missing[k] = 0.0
    r.passes.scan(slot + r.group_place[g], <int>bins, at, nothing, &above)
    if r.special != NULL:
        for k in range(min(LANES, r.d - LANES * g)):
            f = LANES * g + k
            if r.special[f] & HOLES and not r.special[f] & LEVELS:
                gradient = lane_of(r, slot, f, &curvature)
                missing[k] = gradient[<Py_ssize_t>r.n_bins[f] * LANES]
                missing[LANES + k] = curvature[<Py_ssize_t>r.n_bins[f] * LANES]
                some = some or missing[LANES + k] > 0.0
        if some:
            r.passes.scan(slot + r.group_place[g], <int>bins, at, missing, &below)
    for k in range(min(LANES, r.d - LANES * g)):
        f = LANES * g + k
        if r.of_node != NULL and not r.of_node[f]:
            continue
        if kind_of(r, f) & LEVELS:
            search_levels(r, node, at, slot, f, NULL, best)
            continue
        if above.bin[k] >= 0:
            take_better(best, above.numerator[k], above.divisor[k], f, above.bin[k],
                        1 if missing[LANES + k] > 0.0 else -1)
        if missing[LANES + k] > 0.0 and below.bin[k] >= 0:
            take_better(best, below.numerator[k], below.divisor[k], f, below.bin[k], 0)


cdef inline void count_rows(
    const Round* r, const Node* node, Py_ssize_t f, int32_t* count
) noexcept nogil:
    """Number of rows of a node in each bin."""
    cdef const uint8_t* codes = r.codes + f * r.stride
    cdef Py_ssize_t i
    for i in range(MAX_BINS):
        count[i] = 0
    for i in range(node.start, node.stop):
        count[codes[r.rows[i]]] += 1


cdef inline void search_counted(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t f,
    const int32_t* count, Cut* best,
) noexcept nogil:
    """A column of numbers; `count` has the rows by bin, or is NULL where they do not matter."""
    cdef const double* curvature
    cdef const double* gradient = lane_of(r, slot, f, &curvature)
    cdef Py_ssize_t b, n_bins = r.n_bins[f], hole = LANES * n_bins, n_below, n_missing = 0
    cdef Masses side = at[0]
    cdef double gl, hl
    cdef int turn
    if kind_of(r, f) & HOLES:
        n_missing = count[n_bins] if count != NULL else curvature[hole] > 0.0
    for turn in range(1, -1, -1):
        if turn == 0 and n_missing == 0:
            break
        gl = 0.0 if turn else gradient[hole]
        hl = 0.0 if turn else curvature[hole]
        n_below = 0 if turn else n_missing
        for b in range(n_bins):
            gl += gradient[b * LANES]
            hl += curvature[b * LANES]
            if count != NULL:
                n_below += count[b]
                if min(n_below, node.stop - node.start - n_below) < r.min_leaf:
                    continue
            side.direction = at.direction if b < n_bins - 1 else 0  # else: are they missing?
            try_sums(best, &side, gl, hl, f, <int32_t>b, turn if n_missing else -1)


cdef inline void search(
    const Round* r, const Node* node, const double* slot, bint counted, Cut* best
) noexcept nogil:
    """The best cut of a node; if `counted`, of those that leave enough rows on each side."""
    cdef Masses at = masses_of(r, node)
    cdef int32_t[MAX_BINS] count_
    cdef int32_t* count = count_ if counted else NULL
    cdef Py_ssize_t g, f
    best.feature, best.numerator, best.divisor = -1, -INFINITY if at.is_bounded else -1.0, 1.0
    if not counted and not at.is_bounded:
        for g in range(n_groups(r)):
            if is_any(r.of_node, g):
                search_groups(r, node, &at, slot, g, best)
        return
    for f in range(r.d):
        if r.of_node != NULL and not r.of_node[f]:
            continue
        if counted:
            count_rows(r, node, f, count)
        if at.is_bounded:
            at.direction = r.direction[f]
        if kind_of(r, f) & LEVELS:
            search_levels(r, node, &at, slot, f, count, best)
        else:
            search_counted(r, node, &at, slot, f, count, best)
