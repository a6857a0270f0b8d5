# Coarse-to-fine search of sorted rows for the split that reduces the squared error most.
from libc.math cimport INFINITY

from pboost._core._cut cimport scan_rows
from pboost._core.split cimport Judge, Moment, SQUARED, Sums
from pboost._core.types cimport int32_t, int64_t, row_of

cdef extern from *:
    """
    /* A factor for lower bounds that allows for rounding errors. */
    #define PBOOST_SQUARE_SLACK (1.0 + 1e-13)
    """
    const double SQUARE_SLACK "PBOOST_SQUARE_SLACK"

cdef enum:
    SQUARE_STRIDE = 32  # number of rows per block of the coarse search
cdef enum:
    SQUARE_BLOCKS = 128  # number of blocks processed together
cdef enum:
    SQUARE_FEW = 64  # below this number of rows, every split is tried

# Consecutive blocks of sorted rows: the sums before each block, and a lower bound on the scores of its
# splits.
cdef struct SquareBlocks:
    Py_ssize_t start, stop, n
    Moment[SQUARE_BLOCKS + 1] left
    int64_t[SQUARE_BLOCKS] first  # weight to the left of the first split of the block
    int64_t[SQUARE_BLOCKS] largest
    double[SQUARE_BLOCKS] bound


cdef inline void sum_blocks(
    const Judge* at, const int32_t* order, SquareBlocks* blocks
) noexcept nogil:
    """Compute the sums before each block of the rows start..stop-1, and the largest |V-| in each block."""
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


cdef inline void bound_blocks(const Judge* at, SquareBlocks* blocks) noexcept nogil:
    cdef double rest = abs(<double>at.total.v), d, first, last
    cdef int64_t w
    cdef Py_ssize_t b
    for b in range(blocks.n):
        d = <double>blocks.largest[b] + rest
        # W- W+ is least at the start or at the end of the block. As in the scores, subtract integers before
        # conversion to float64, because W+ can be very small.
        w = blocks.first[b]
        first = <double>w * <double>(at.total.w - w)
        w = blocks.left[b + 1].w
        last = <double>w * <double>(at.total.w - w)
        first = min(first, last)
        blocks.bound[b] = -(d * d) / first * SQUARE_SLACK if first > 0.0 else -INFINITY


cdef inline Py_ssize_t scan_squares(
    const Judge* at, const int32_t* order, Py_ssize_t first, Py_ssize_t stop, double limit,
    double found, double* best, Sums* sums,
) noexcept nogil:
    """Search like `scan_rows`, but skip blocks whose scores exceed `found` by more than a tie.

    To find the least score, pass -INFINITY as `limit`.
    """
    cdef SquareBlocks blocks
    cdef Py_ssize_t b, lead, turn, start, position
    cdef double bar
    cdef bint locate = limit > -INFINITY
    if stop - first < SQUARE_FEW:
        return scan_rows(at, SQUARED, order, first, stop, limit, best, sums)
    blocks.left[0] = sums.below
    blocks.stop = first
    while blocks.stop < stop:
        blocks.start = blocks.stop
        blocks.stop = min(blocks.start + SQUARE_BLOCKS * SQUARE_STRIDE, stop)
        sum_blocks(at, order, &blocks)
        bound_blocks(at, &blocks)
        lead = 0
        for b in range(1, blocks.n):
            if blocks.bound[b] < blocks.bound[lead]:
                lead = b
        # Begin with the most promising block, because a low score excludes many others.
        for turn in range(0 if locate else -1, blocks.n):
            b = lead if turn < 0 else turn
            bar = limit if locate else min(best[0], found) + at.tie
            if blocks.bound[b] <= bar and (locate or turn != lead):
                start = blocks.start + b * SQUARE_STRIDE
                sums.below = blocks.left[b]
                position = scan_rows(at, SQUARED, order, start,
                                     min(start + SQUARE_STRIDE, blocks.stop), limit, best, sums)
                if position >= 0:
                    return position
        blocks.left[0] = blocks.left[blocks.n]
    return -1
