# Cuts of a column of levels at a node of a boosted tree, as _node_levels.pxd has them.
#
# Levels with rows at the node are put in order by their Newton step, smoothed, and the beginnings of the
# order are tried as what is below, with the missing rows above, then below; with smoothing each level is
# tried against the rest besides.
from pboost._core._boost_round cimport (
    Cut, LANES, Masses, Node, Round, WORDS, kind_of, lane_of, try_sums,
)
from pboost._core.types cimport HOLES, MAX_BINS, int32_t, uint64_t

cdef struct Levels:
    Py_ssize_t n
    int32_t[MAX_BINS] level
    double[MAX_BINS] key


cdef inline void order_levels(
    const Round* r, const Node* node, const double* gradient, const double* curvature,
    Py_ssize_t n_bins, Levels* levels
) noexcept nogil:
    cdef double pull = r.level_smoothing * node.curvature / <double>(node.stop - node.start)
    cdef double pulled = pull * (node.gradient / node.curvature), key
    cdef Py_ssize_t l, j
    levels.n = 0
    for l in range(n_bins):
        if curvature[l * LANES] > 0.0:
            key = -(gradient[l * LANES] + pulled) / (curvature[l * LANES] + pull)
            j = levels.n
            while j > 0 and levels.key[j - 1] > key:
                levels.level[j], levels.key[j] = levels.level[j - 1], levels.key[j - 1]
                j -= 1
            levels.level[j], levels.key[j] = <int32_t>l, key
            levels.n += 1


cdef inline void note_set(
    Cut* best, const Levels* levels, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    """The levels above are those from place `first` of the order to before `last`."""
    cdef Py_ssize_t i
    best.is_set = True
    for i in range(WORDS):
        best.above[i] = 0
    for i in range(first, last):
        best.above[levels.level[i] >> 6] |= <uint64_t>1 << (levels.level[i] & 63)


cdef inline void search_levels(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t f,
    const int32_t* count, Cut* best,
) noexcept nogil:
    """A column of levels; `count` has the rows by level, or is NULL where they do not matter."""
    cdef const double* hs
    cdef const double* gs = lane_of(r, slot, f, &hs)
    cdef Py_ssize_t n_bins = r.n_bins[f], hole = LANES * n_bins, i, l, n_below, n = node.stop - node.start
    cdef double gl, hl, missing_g = 0.0, missing_h = 0.0
    cdef int32_t side
    cdef int turn
    cdef Levels levels
    order_levels(r, node, gs, hs, n_bins, &levels)
    if kind_of(r, f) & HOLES:
        missing_g, missing_h = gs[hole], hs[hole]
    for turn in range(1, -1, -1):
        if turn == 0 and missing_h == 0.0:
            break
        side = turn if missing_h > 0.0 else -1
        gl, hl = (0.0, 0.0) if turn else (missing_g, missing_h)
        n_below = count[n_bins] if count != NULL and not turn else 0
        for i in range(levels.n):
            l = levels.level[i]
            gl += gs[l * LANES]
            hl += hs[l * LANES]
            if count != NULL:
                n_below += count[l]
                if min(n_below, n - n_below) < r.min_leaf:
                    continue
            if try_sums(best, at, gl, hl, f, -1, side):
                note_set(best, &levels, i + 1, levels.n)
        for i in range(levels.n if r.level_smoothing > 0.0 else 0):
            l = levels.level[i]
            if count != NULL and min(n_below - count[l], n - n_below + count[l]) < r.min_leaf:
                continue
            if try_sums(best, at, gl - gs[l * LANES], hl - hs[l * LANES], f, -1, side):
                note_set(best, &levels, i, i + 1)
