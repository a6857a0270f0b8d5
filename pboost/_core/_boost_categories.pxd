# Splits of a categorical feature at a node of a boosted tree. For squared error, see _node_categories.pxd.
#
# The categories that occur at the node are sorted by their Newton step. Each prefix of this order is tried
# as the left child, once with missing values on the right and once on the left. With categorical smoothing,
# each single category is also tried as a child. Smoothing shrinks the difference between the children, and
# the gain is reduced accordingly.
from libc.math cimport rint

from pboost._core._boost_round cimport (
    Cut, LOW_UNIT, Lane, Masses, Node, Round, WORDS, curvature_in, gradient_in, kind_of, own_score,
    read_lane, score_bounded, take_better,
)
from pboost._core._categories cimport pull_of
from pboost._core.types cimport HOLES, MAX_BINS, int32_t, uint64_t

# The categories at a node, sorted. `apart` is the smoothed deviation of each gradient sum from the node's
# mean. `missing` is the deviation of the missing values, which is not smoothed. `all` is the sum of all
# deviations.
cdef struct Levels:
    Py_ssize_t n
    double pull, missing, all
    int32_t[MAX_BINS] level
    double[MAX_BINS] key, apart


cdef inline double squares_in(const Round* r, const Node* node) noexcept nogil:
    """Return the sum of Hessian times squared Newton step over a node's rows, with each term rounded."""
    cdef double squares = 0.0, g, h
    cdef Py_ssize_t i, row
    for i in range(node.start, node.stop):
        row = i if r.low == NULL else r.rows[i]
        g, h = gradient_in(r.packed[row]), max(curvature_in(r.packed[row]), 1.0)
        squares += rint(g * g / h)
    return squares


cdef inline double spread_of(const Round* r, const Node* node, double squares) noexcept nogil:
    """Return the weighted sum of squared deviations of the Newton steps from their mean."""
    if r.low != NULL:
        squares *= LOW_UNIT
    return squares - node.gradient * node.gradient / node.curvature


cdef inline double measured_pull(
    const Round* r, const Node* node, const double* gradient, const double* curvature,
    Py_ssize_t n_bins
) noexcept nogil:
    """Return the weight with which the mean step of the node enters the smoothed step of a category.

    The weight is added to the sum of Hessians of the category.
    """
    cdef double known = 0.0, squares = 0.0, apart, h
    cdef Py_ssize_t l, n = 0
    if not (r.level_smoothing > 0.0 and node.spread > 0.0):
        return 0.0
    for l in range(n_bins):
        h = curvature[l]
        if h > 0.0:
            apart = gradient[l] - h / node.curvature * node.gradient
            squares += apart * (apart / h)
            known += h
            n += 1
    squares *= <double>(node.stop - node.start) / node.spread
    return pull_of(r.level_smoothing, n, 1, squares, known)


cdef inline void order_levels(
    const Round* r, const Node* node, const double* gradient, const double* curvature,
    Py_ssize_t n_bins, Levels* levels
) noexcept nogil:
    cdef double step = node.gradient / node.curvature, key, g, h
    cdef Py_ssize_t l, j
    levels.n, levels.pull = 0, measured_pull(r, node, gradient, curvature, n_bins)
    for l in range(n_bins):
        g, h = gradient[l], curvature[l]
        if h > 0.0:
            key = -(g + levels.pull * step) / (h + levels.pull)
            j = levels.n
            while j > 0 and levels.key[j - 1] > key:
                levels.level[j], levels.key[j] = levels.level[j - 1], levels.key[j - 1]
                levels.apart[j] = levels.apart[j - 1]
                j -= 1
            levels.level[j], levels.key[j] = <int32_t>l, key
            levels.apart[j] = h / (h + levels.pull) * (g - h / node.curvature * node.gradient)
            levels.n += 1


cdef inline double kept_of(
    const Masses* at, const Levels* levels, double gl, double hl, double left
) noexcept nogil:
    """Return the fraction of the difference between the children that remains after smoothing."""
    cdef double part = hl / at.curvature, apart = gl - part * at.gradient
    if apart == 0.0:
        return 1.0
    return min(max((left - levels.all * part) / apart, 0.0), 1.0)


cdef inline bint try_set(
    Cut* best, const Masses* at, double gl, double hl, double kept, Py_ssize_t f, int32_t side
) noexcept nogil:
    """Try a split with these left sums and return whether it is the best so far.

    The gain is multiplied by the square of `kept`.
    """
    cdef double gr = at.gradient - gl, hr = at.curvature - hl, below, above, numerator, divisor
    cdef double own = at.gradient * at.gradient, whole = at.curvature + at.l2
    if not (hl >= at.least and hr >= at.least):
        return False
    if at.is_bounded:
        score_bounded(at, gl, hl, &numerator)
        own = own_score(at)
        return take_better(
            best, kept * kept * (numerator - own) + own if kept < 1.0 else numerator, 1.0, f, -1, side)
    below, above = hl + at.l2, hr + at.l2
    numerator, divisor = gl * gl * above + gr * gr * below, below * above
    if kept < 1.0:
        own *= divisor
        numerator = kept * kept * (numerator * whole - own) + own
        divisor *= whole
    return take_better(best, numerator, divisor, f, -1, side)


cdef inline void note_set(
    Cut* best, const Levels* levels, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    """Store the categories of the right child: positions `first` to `last` - 1 of the order."""
    cdef Py_ssize_t i
    best.is_set = True
    for i in range(WORDS):
        best.above[i] = 0
    for i in range(first, last):
        best.above[levels.level[i] >> 6] |= <uint64_t>1 << (levels.level[i] & 63)


cdef inline void search_side(
    const Round* r, const Node* node, const Masses* at, const double* gs, const double* hs,
    const Levels* levels, Py_ssize_t f, int turn, int32_t side, const int32_t* count, Cut* best,
) noexcept nogil:
    """Try the splits with missing values on the right (`turn` = 1) or on the left (`turn` = 0)."""
    cdef Py_ssize_t hole = r.n_bins[f], i, l, n_below = 0, n = node.stop - node.start
    cdef double gl = 0.0, hl = 0.0, left = 0.0, kept
    cdef bint is_smoothed = levels.pull > 0.0
    if turn == 0:
        gl, hl, left = gs[hole], hs[hole], levels.missing
        n_below = count[r.n_bins[f]] if count != NULL else 0
    for i in range(levels.n):
        l = levels.level[i]
        gl += gs[l]
        hl += hs[l]
        left += levels.apart[i]
        if count != NULL:
            n_below += count[l]
            if min(n_below, n - n_below) < r.min_leaf:
                continue
        # The split between known and missing values is not smoothed.
        kept = kept_of(at, levels, gl, hl, left) if is_smoothed and i < levels.n - 1 else 1.0
        if try_set(best, at, gl, hl, kept, f, side):
            note_set(best, levels, i + 1, levels.n)
    for i in range(levels.n if is_smoothed else 0):  # try each single category as the right child
        l = levels.level[i]
        if count != NULL and min(n_below - count[l], n - n_below + count[l]) < r.min_leaf:
            continue
        kept = kept_of(at, levels, gl - gs[l], hl - hs[l], left - levels.apart[i])
        if try_set(best, at, gl - gs[l], hl - hs[l], kept, f, side):
            note_set(best, levels, i, i + 1)


cdef inline void search_levels(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t f,
    const int32_t* count, Cut* best,
) noexcept nogil:
    """Find the best split by a categorical feature.

    `count` has the number of rows of each category. It is NULL if a child may have any number of rows.
    """
    cdef Lane lane
    cdef const double* gs = lane.gradient
    cdef const double* hs = lane.curvature
    cdef Py_ssize_t hole = r.n_bins[f], i
    cdef Levels levels
    cdef bint some
    read_lane(r, node, slot, f, &lane)
    some = kind_of(r, f) & HOLES and hs[hole] > 0.0
    order_levels(r, node, gs, hs, r.n_bins[f], &levels)
    levels.missing = gs[hole] - hs[hole] / node.curvature * node.gradient if some else 0.0
    levels.all = levels.missing
    for i in range(levels.n):
        levels.all += levels.apart[i]
    search_side(r, node, at, gs, hs, &levels, f, 1, 1 if some else -1, count, best)
    if some:
        search_side(r, node, at, gs, hs, &levels, f, 0, 0, count, best)
