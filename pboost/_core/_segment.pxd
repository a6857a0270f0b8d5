# Sorted rows of one feature: coarse-to-fine search, and partition. Binned rows are also partitioned here.
from libc.math cimport INFINITY

from pboost._core._cut cimport BOUND_SLACK, Limits, is_legal, rescan
from pboost._core._side cimport code_goes_right
from pboost._core.split cimport Masses, score_limit, score_many
from pboost._core.types cimport ROW_MASK, TIED, int32_t, int64_t, is_tied, row_of, uint8_t

cdef enum:
    STRIDE = 32  # number of rows per block of the coarse search
cdef enum:
    BLOCKS = 128  # number of blocks processed together
cdef enum:
    FEW_ROWS = 96  # up to this number of rows, every split is tried

# Up to BLOCKS consecutive blocks of sorted rows. Block b begins at position start + b * STRIDE. ln[b],
# lp[b] are the class weights of the rows before it. A split at its start has the score at[b]; the splits
# inside score at least bound[b].
cdef struct Blocks:
    Py_ssize_t start, stop, n
    int64_t[BLOCKS + 1] ln
    int64_t[BLOCKS + 1] lp
    double[BLOCKS + 1] at
    double[BLOCKS + 1] bound


cdef inline void block_masses(
    const Limits* limits, const int32_t* order, const int64_t* weight, Blocks* blocks
) noexcept nogil:
    """Compute the class weights before each block of the rows start..stop-1; the first entry is given."""
    cdef Py_ssize_t i, start = blocks.start, stop
    cdef int64_t positive = blocks.lp[0], both = blocks.ln[0] + blocks.lp[0], w
    cdef int32_t row
    blocks.n = 0
    while start < blocks.stop:
        stop = min(start + STRIDE, blocks.stop)
        for i in range(start, stop):
            row = row_of(order[i])
            w = weight[row]
            both += w
            positive += -<int64_t>(row >= limits.n_negative) & w
        blocks.n += 1
        blocks.lp[blocks.n] = positive
        blocks.ln[blocks.n] = both - positive
        start = stop


cdef inline void score_blocks(const Limits* limits, Blocks* blocks) noexcept nogil:
    """Compute the scores of the splits at the starts of blocks, and lower bounds for the splits inside."""
    cdef double[4][BLOCKS + 1] mass
    cdef double[BLOCKS + 1] other
    cdef Masses m
    cdef Py_ssize_t b
    m.lp, m.ln, m.rp, m.rn = mass[0], mass[1], mass[2], mass[3]
    for b in range(blocks.n + 1):
        m.lp[b] = <double>blocks.lp[b]
        m.ln[b] = <double>blocks.ln[b]
        m.rp[b] = <double>(limits.positive - blocks.lp[b])
        m.rn[b] = <double>(limits.negative - blocks.ln[b])
    score_many(limits.criterion, &m, 0, 0, blocks.n, blocks.at)
    # The bound is the least score at two corners. Each has one class weight at the end of the block and the
    # other class weight at its start.
    score_many(limits.criterion, &m, 1, 0, blocks.n, blocks.bound)
    score_many(limits.criterion, &m, 0, 1, blocks.n, other)
    for b in range(blocks.n):
        blocks.bound[b] = min(blocks.bound[b], other[b]) * BOUND_SLACK


cdef inline bint may_cut_before(
    const Limits* limits, const int32_t* order, const Blocks* blocks, Py_ssize_t b
) noexcept nogil:
    """Return whether a split at the start of block b is allowed."""
    cdef Py_ssize_t position = blocks.start + b * STRIDE
    return (position > 0 and not is_tied(order[position])
            and is_legal(limits, blocks.ln[b], blocks.lp[b], position))


cdef inline double pruning_limit(const Limits* limits, double best) noexcept nogil:
    if best == INFINITY:
        return INFINITY
    return score_limit(limits.criterion, best,
                       <double>limits.negative + <double>limits.positive)


cdef inline double search_blocks(
    const Limits* limits, const int32_t* order, const int64_t* weight, const Blocks* blocks,
    double best, double found,
) noexcept nogil:
    """Search inside the blocks whose bound is below `best` and `found`.

    Return the least score, or `best` if no score is lower.
    """
    cdef double limit, least = INFINITY
    cdef Py_ssize_t b, lead = 0, turn, start
    for b in range(blocks.n):
        if blocks.at[b] < best and may_cut_before(limits, order, blocks, b):
            best = blocks.at[b]
        if blocks.bound[b] < least:
            least = blocks.bound[b]
            lead = b
    limit = pruning_limit(limits, min(best, found))
    # Begin with the most promising block, because a low score excludes many others.
    for turn in range(-1, blocks.n):
        b = lead if turn < 0 else turn
        if blocks.bound[b] <= limit and turn != lead:
            start = blocks.start + b * STRIDE
            rescan(limits, order, weight, start, min(start + STRIDE, blocks.stop), blocks.ln[b],
                   blocks.lp[b], -1.0, &best)
            limit = pruning_limit(limits, min(best, found))
    return best


cdef inline double search_rows(
    const Limits* limits, const int32_t* order, const int64_t* weight, Py_ssize_t start,
    Py_ssize_t stop, int64_t ln, int64_t lp, double best, double found,
) noexcept nogil:
    """Return the least score of a split between the sorted rows start..stop-1, or `best` if it is lower.

    ln, lp: class weights of the rows before `start`. Splits that score above `found` may be ignored.
    """
    cdef Blocks blocks
    if stop - start <= FEW_ROWS:
        rescan(limits, order, weight, start, stop, ln, lp, -1.0, &best)
        return best
    blocks.stop = start
    blocks.ln[0] = ln
    blocks.lp[0] = lp
    while blocks.stop < stop:
        blocks.start = blocks.stop
        blocks.stop = min(blocks.start + BLOCKS * STRIDE, stop)
        block_masses(limits, order, weight, &blocks)
        score_blocks(limits, &blocks)
        best = search_blocks(limits, order, weight, &blocks, best, found)
        blocks.ln[0] = blocks.ln[blocks.n]
        blocks.lp[0] = blocks.lp[blocks.n]
    return best


cdef inline Py_ssize_t first_cut(
    const Limits* limits, const int32_t* order, const int64_t* weight, Py_ssize_t start,
    Py_ssize_t stop, int64_t* ln, int64_t* lp, double limit,
) noexcept nogil:
    """Return the first position whose split has a score within `limit`, or -1.

    INOUT ln, lp: class weights of the rows before `start`, then before the returned position.
    """
    cdef Blocks blocks
    cdef Py_ssize_t b, i, first, position = -1
    cdef double ignored = -1.0
    cdef int32_t row
    blocks.stop = start
    blocks.ln[0] = ln[0]
    blocks.lp[0] = lp[0]
    while blocks.stop < stop and position < 0:
        blocks.start = blocks.stop
        blocks.stop = min(blocks.start + BLOCKS * STRIDE, stop)
        block_masses(limits, order, weight, &blocks)
        score_blocks(limits, &blocks)
        for b in range(blocks.n):
            first = blocks.start + b * STRIDE
            if (blocks.at[b] <= limit and first > start
                    and may_cut_before(limits, order, &blocks, b)):
                position = first
            elif blocks.bound[b] <= limit:
                position = rescan(limits, order, weight, first, min(first + STRIDE, blocks.stop),
                                  blocks.ln[b], blocks.lp[b], limit, &ignored)
            if position >= 0:
                ln[0] = blocks.ln[b]
                lp[0] = blocks.lp[b]
                for i in range(first, position):
                    row = row_of(order[i])
                    if row >= limits.n_negative:
                        lp[0] += weight[row]
                    else:
                        ln[0] += weight[row]
                break
        blocks.ln[0] = blocks.ln[blocks.n]
        blocks.lp[0] = blocks.lp[blocks.n]
    return position


cdef inline void partition_segment(
    int32_t* order, Py_ssize_t n, const uint8_t* side, int32_t* spare
) noexcept nogil:
    """Move the rows of the left child before other rows, in order, and update the tie marks.

    Two rows that become neighbors are tied if all rows between them are tied. `below` and `above` contain
    the tie mark of the next row of each child.
    """
    cdef int32_t entry, row, s, below = 0, above = 0
    cdef Py_ssize_t i, left = 0, right = 0
    for i in range(n):
        entry = order[i]
        row = entry & ROW_MASK
        s = side[row]
        below &= entry
        above &= entry
        order[left] = row | (below & TIED)
        spare[right] = row | (above & TIED)
        left += 1 - s
        right += s
        below |= s - 1
        above |= -s
    for i in range(right):
        order[left + i] = spare[i]


cdef inline Py_ssize_t partition_by_code(
    int32_t* rows, Py_ssize_t n, const uint8_t* codes, const uint8_t* above, int32_t* spare
) noexcept nogil:
    """Partition rows like `partition_rows`, given the child of each bin code."""
    cdef Py_ssize_t i, left = 0, right = 0
    cdef int32_t row
    cdef int s
    for i in range(n):
        row = rows[i]
        s = above[codes[row]]
        rows[left] = row
        spare[right] = row
        left += 1 - s
        right += s
    for i in range(right):
        rows[left + i] = spare[i]
    return left


cdef inline Py_ssize_t partition_rows(
    int32_t* rows, Py_ssize_t n, const uint8_t* codes, int cut_bin, int32_t* spare
) noexcept nogil:
    """Move the rows with codes up to `cut_bin` before the other rows, in order. Return their number."""
    cdef Py_ssize_t i, left = 0, right = 0
    cdef int32_t row
    cdef int s
    for i in range(n):
        row = rows[i]
        s = code_goes_right(codes[row], cut_bin)
        rows[left] = row
        spare[right] = row
        left += 1 - s
        right += s
    for i in range(right):
        rows[left + i] = spare[i]
    return left
