# Sorted rows with numbers to predict: search for the cut that lowers the squared error most.
#
# With targets y less some constant, a cut with weight W- and sum V- = sum of w y below it, of W and V
# in all, lowers the sum of squares by D**2 W / (W- W+), where D = V- - V W- / W. Its score, to be
# minimised, is -D**2 / (W- W+). The constant is the node's mean but for rounding, so that V is
# small and nothing cancels. W and V are sums of 64-bit fixed point numbers, hence exact.
from libc.math cimport INFINITY

from pboost._core.types cimport int32_t, int64_t, is_tied, row_of

cdef extern from *:
    """
    /* Bounds are lowered by more than their rounding error before they are compared. */
    #define PBOOST_SQUARE_SLACK (1.0 + 1e-13)
    """
    const double SQUARE_SLACK "PBOOST_SQUARE_SLACK"

cdef enum:
    SQUARE_STRIDE = 32  # rows per block of the coarse pass
cdef enum:
    SQUARE_BLOCKS = 128  # blocks worked on at a time
cdef enum:
    SQUARE_FEW = 64  # up to here, every cut is tried at once

# Weight and weight times target of a row, or sums of them, in fixed point.
cdef struct Moment:
    int64_t w
    int64_t v

cdef struct SquareNode:
    Py_ssize_t n, min_count
    const Moment* moment
    Moment total
    double tie  # scores that differ by no more are equal

# Consecutive blocks of sorted rows: sums left of each, and a bound of the scores of its cuts.
cdef struct SquareBlocks:
    Py_ssize_t start, stop, n
    Moment[SQUARE_BLOCKS + 1] left
    int64_t[SQUARE_BLOCKS] first   # weight below the first cut of the block
    int64_t[SQUARE_BLOCKS] largest
    double[SQUARE_BLOCKS] bound


cdef inline double square_score(const SquareNode* at, const Moment* left) noexcept nogil:
    cdef double below = <double>left.w, above = <double>(at.total.w - left.w)
    cdef double d = <double>left.v - <double>at.total.v * (below / <double>at.total.w)
    return -(d * d) / (below * above)


cdef inline bint may_cut_squares(
    const SquareNode* at, const Moment* left, Py_ssize_t n_below
) noexcept nogil:
    return (left.w > 0 and left.w < at.total.w and n_below >= at.min_count
            and at.n - n_below >= at.min_count)


cdef inline Py_ssize_t rescan_squares(
    const SquareNode* at, const int32_t* order, Py_ssize_t start, Py_ssize_t stop, Moment left,
    double limit, double* best,
) noexcept nogil:
    """Try the cuts after the sorted rows start..stop-1. Lowers `best`; returns the first position
    within `limit`, or -1. `left` are the sums left of `start`."""
    cdef Py_ssize_t i
    cdef int32_t row
    cdef double here
    for i in range(start, min(stop, at.n - 1)):
        row = row_of(order[i])
        left.w += at.moment[row].w
        left.v += at.moment[row].v
        if is_tied(order[i + 1]) or not may_cut_squares(at, &left, i + 1):
            continue
        here = square_score(at, &left)
        if here < best[0]:
            best[0] = here
        if here <= limit:
            return i + 1
    return -1


cdef inline void sum_blocks(
    const SquareNode* at, const int32_t* order, SquareBlocks* blocks
) noexcept nogil:
    """Sums left of each block of the rows start..stop-1, and the largest |V-| of a cut in it."""
    cdef Py_ssize_t i, start = blocks.start, stop
    cdef int64_t w = blocks.left[0].w, v = blocks.left[0].v, least, most
    cdef int32_t row
    blocks.n = 0
    while start < blocks.stop:
        stop = min(start + SQUARE_STRIDE, blocks.stop)
        row = row_of(order[start])
        w += at.moment[row].w
        v += at.moment[row].v
        blocks.first[blocks.n] = w
        least = most = v
        for i in range(start + 1, stop):
            row = row_of(order[i])
            w += at.moment[row].w
            v += at.moment[row].v
            least = min(least, v)
            most = max(most, v)
        blocks.largest[blocks.n] = max(most, -least)
        blocks.n += 1
        blocks.left[blocks.n].w = w
        blocks.left[blocks.n].v = v
        start = stop


cdef inline void bound_blocks(const SquareNode* at, SquareBlocks* blocks) noexcept nogil:
    cdef double rest = abs(<double>at.total.v), d, first, last
    cdef int64_t w
    cdef Py_ssize_t b
    for b in range(blocks.n):
        d = <double>blocks.largest[b] + rest
        # W- W+ is least where the block begins or where it ends. Differences are taken before they
        # are rounded, as in the scores: W+ can be a few units of fixed point.
        w = blocks.first[b]
        first = <double>w * <double>(at.total.w - w)
        w = blocks.left[b + 1].w
        last = <double>w * <double>(at.total.w - w)
        first = min(first, last)
        blocks.bound[b] = -(d * d) / first * SQUARE_SLACK if first > 0.0 else -INFINITY


cdef inline Py_ssize_t scan_squares(
    const SquareNode* at, const int32_t* order, double limit, double found, double* best
) noexcept nogil:
    """Try the cuts of a segment. Lowers `best`; returns the first position within `limit`, or -1.

    Cuts that score above `found` by more than a tie may be missed. To search for the least score,
    give -INFINITY as `limit`.
    """
    cdef SquareBlocks blocks
    cdef Py_ssize_t b, lead, turn, start, position
    cdef double bar
    cdef bint locate = limit > -INFINITY
    blocks.left[0].w = blocks.left[0].v = 0
    if at.n <= SQUARE_FEW:
        return rescan_squares(at, order, 0, at.n - 1, blocks.left[0], limit, best)
    blocks.stop = 0
    while blocks.stop < at.n - 1:
        blocks.start = blocks.stop
        blocks.stop = min(blocks.start + SQUARE_BLOCKS * SQUARE_STRIDE, at.n - 1)
        sum_blocks(at, order, &blocks)
        bound_blocks(at, &blocks)
        lead = 0
        for b in range(1, blocks.n):
            if blocks.bound[b] < blocks.bound[lead]:
                lead = b
        # The most promising block first: it lowers the bar for all others.
        for turn in range(0 if locate else -1, blocks.n):
            b = lead if turn < 0 else turn
            bar = limit if locate else min(best[0], found) + at.tie
            if blocks.bound[b] <= bar and (locate or turn != lead):
                start = blocks.start + b * SQUARE_STRIDE
                position = rescan_squares(
                    at, order, start, min(start + SQUARE_STRIDE, blocks.stop), blocks.left[b],
                    limit, best)
                if position >= 0:
                    return position
        blocks.left[0] = blocks.left[blocks.n]
    return -1
