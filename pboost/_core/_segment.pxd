# One exit's segment of the sorted columns: search, coarse to fine, and partition.
from libc.math cimport INFINITY

from pboost._core._cut cimport BOUND_SLACK, Limits, cut_score, is_legal, rescan
from pboost._core._math cimport score_limit, score_many
from pboost._core.types cimport ROW_MASK, int32_t, int64_t, is_tied, row_of, uint8_t

cdef enum:
    STRIDE = 32  # rows per block of the coarse pass
cdef enum:
    FEW_ROWS = 96  # below this, every cut is tried at once

cdef struct Scratch:
    int64_t* ln   # class masses left of each block edge, as integers and as doubles
    int64_t* lp
    double* ln_real
    double* lp_real
    double* bound
    double* other


cdef inline Py_ssize_t block_masses(
    const Limits* at, const int32_t* order, const int64_t* weight, Scratch* work
) noexcept nogil:
    """Masses left of every STRIDE-th row of the segment; returns the number of blocks."""
    cdef Py_ssize_t block = 0, i, start = 0, stop
    cdef int64_t all_ = 0, positive = 0, w
    cdef int32_t row
    work.ln[0] = work.lp[0] = 0
    work.ln_real[0] = work.lp_real[0] = 0.0
    while start < at.n:
        stop = min(start + STRIDE, at.n)
        for i in range(start, stop):
            row = row_of(order[i])
            w = weight[row]
            all_ += w
            positive += -<int64_t>(row >= at.n_negative) & w
        block += 1
        work.lp[block] = positive
        work.ln[block] = all_ - positive
        work.lp_real[block] = <double>positive
        work.ln_real[block] = <double>(all_ - positive)
        start = stop
    return block


cdef inline double search_segment(
    const Limits* at, const int32_t* order, const int64_t* weight, double found, Scratch* work
) noexcept nogil:
    """Least score of a cut of the segment, if it can compete with `found`."""
    cdef double best = INFINITY, limit, total, least = INFINITY
    cdef Py_ssize_t blocks, b, lead = 0, turn
    if at.n <= FEW_ROWS:
        rescan(at, order, weight, 0, at.n, 0, 0, -1.0, &best)
        return best
    total = <double>at.negative + <double>at.positive
    blocks = block_masses(at, order, weight, work)
    score_many(at.criterion, work.lp_real, work.ln_real, <double>at.positive,
               <double>at.negative, blocks, work.bound)
    for b in range(1, blocks):
        if (work.bound[b] < best and not is_tied(order[b * STRIDE])
                and is_legal(at, work.ln[b], work.lp[b], b * STRIDE)):
            best = work.bound[b]
    score_many(at.criterion, work.lp_real + 1, work.ln_real, <double>at.positive,
               <double>at.negative, blocks, work.bound)
    score_many(at.criterion, work.lp_real, work.ln_real + 1, <double>at.positive,
               <double>at.negative, blocks, work.other)
    for b in range(blocks):
        work.bound[b] = min(work.bound[b], work.other[b]) * BOUND_SLACK
        if work.bound[b] < least:
            least = work.bound[b]
            lead = b
    # The most promising block first: it lowers the bar for all others.
    limit = pruning_limit(at, min(best, found), total)
    for turn in range(-1, blocks):
        b = lead if turn < 0 else turn
        if work.bound[b] <= limit and turn != lead:
            rescan(at, order, weight, b * STRIDE, min((b + 1) * STRIDE, at.n), work.ln[b],
                   work.lp[b], -1.0, &best)
            limit = pruning_limit(at, min(best, found), total)
    return best


cdef inline double pruning_limit(const Limits* at, double best, double total) noexcept nogil:
    return score_limit(at.criterion, best, total) if best < INFINITY else INFINITY


cdef inline Py_ssize_t locate_in_segment(
    const Limits* at, const int32_t* order, const int64_t* weight, double limit
) noexcept nogil:
    """First position of the segment whose cut scores within `limit`, or -1."""
    cdef double ignored = -1.0
    return rescan(at, order, weight, 0, at.n, 0, 0, limit, &ignored)


cdef inline void partition_segment(
    int32_t* order, Py_ssize_t n, const uint8_t* side, int32_t* spare
) noexcept nogil:
    """Move the rows of side 0 before those of side 1, order kept and ties marked anew.

    Two rows that become neighbours are tied if no untied row stood between them: `tie[s]` holds
    the mark that the next row of side s gets.
    """
    cdef int32_t marked = <int32_t>0x80000000
    cdef int32_t entry, row
    cdef int32_t[2] tie
    cdef Py_ssize_t i, left = 0, right = 0
    cdef int s
    tie[0] = tie[1] = 0
    for i in range(n):
        entry = order[i]
        row = entry & ROW_MASK
        tie[0] &= entry
        tie[1] &= entry
        s = side[row]
        order[left] = row | (tie[0] & marked)
        spare[right] = row | (tie[1] & marked)
        left += 1 - s
        right += s
        tie[s] = marked
    for i in range(right):
        order[left + i] = spare[i]
