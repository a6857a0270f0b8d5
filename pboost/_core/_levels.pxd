# Cuts of a column of levels, of two classes: sets of levels whose rows take exit 1.
#
# Levels with mass are ordered by the share of class +1, and the ends of the order are tried: the best
# of all sets is among them, whatever the (concave) criterion. Where shares are smoothed, which changes
# the order only, each level is tried against the rest, too.

from pboost._core._cut cimport Limits, cut_score, is_legal
from pboost._core.types cimport MAX_BINS, int32_t, int64_t

# The masses of one column: those of level b are at place b, those of missing rows after the last.
cdef struct Levels:
    const int64_t* negative
    const int64_t* positive
    const int32_t* start   # place b + 1 minus place b are the rows of level b
    int n
    bint has_missing
    double smoothing       # rows of the node's own share that are added to each level's
    int n_ordered
    int32_t[MAX_BINS] order

# A cut: masses below it, the side of missing rows, and the levels above: of the order, those from
# `first` to `last` - 1.
cdef struct LevelCut:
    int64_t ln
    int64_t lp
    int side, first, last


cdef inline void order_levels(const Limits* at, Levels* levels) noexcept nogil:
    """List the levels with mass by share of class +1; equal shares by number."""
    cdef double[MAX_BINS] share
    cdef double total = <double>at.negative + <double>at.positive
    cdef double added = levels.smoothing * total / <double>max(at.n, 1), key
    cdef double expected = added * (<double>at.positive / total)
    cdef int b, i, n = 0
    for b in range(levels.n):
        if levels.negative[b] + levels.positive[b] <= 0:
            continue
        key = (<double>levels.positive[b] + expected) / (
            <double>levels.positive[b] + <double>levels.negative[b] + added)
        i = n
        while i > 0 and share[i - 1] > key:
            share[i], levels.order[i] = share[i - 1], levels.order[i - 1]
            i -= 1
        share[i], levels.order[i] = key, b
        n += 1
    levels.n_ordered = n


cdef inline bint try_cut(
    const Limits* at, int64_t ln, int64_t lp, Py_ssize_t count, double limit, double* best
) noexcept nogil:
    """Lower `best` to the score of a legal cut; whether it is within the limit."""
    cdef double here
    if not is_legal(at, ln, lp, count):
        return False
    here = cut_score(at, ln, lp)
    best[0] = min(best[0], here)
    return here <= limit


cdef inline bint scan_levels(
    const Limits* at, Levels* levels, double limit, double* best, LevelCut* cut
) noexcept nogil:
    """Lower `best` to the least score of a cut; whether one is within the limit, which `cut` then is.

    To search for the least score, `limit` is negative. Where rows are missing, they are above first,
    and then below.
    """
    cdef int64_t ln, lp, missing_n = 0, missing_p = 0
    cdef Py_ssize_t count, n_missing = 0, n_rows = levels.start[levels.n]
    cdef int side, i, b, last
    order_levels(at, levels)
    if levels.has_missing:
        missing_n, missing_p = levels.negative[levels.n], levels.positive[levels.n]
        n_missing = levels.start[levels.n + 1] - n_rows
    for side in range(1, -1, -1):
        if side == 0 and not levels.has_missing:
            break
        ln = 0 if side else missing_n
        lp = 0 if side else missing_p
        count = 0 if side else n_missing
        last = levels.n_ordered - (0 if side and levels.has_missing else 1)
        for i in range(last):
            b = levels.order[i]
            ln += levels.negative[b]
            lp += levels.positive[b]
            count += levels.start[b + 1] - levels.start[b]
            if try_cut(at, ln, lp, count, limit, best):
                cut.ln, cut.lp, cut.side = ln, lp, side
                cut.first, cut.last = i + 1, levels.n_ordered
                return True
    if levels.smoothing <= 0.0:
        return False
    for side in range(1, -1, -1):
        if side == 0 and not levels.has_missing:
            break
        for i in range(levels.n_ordered):
            b = levels.order[i]
            ln = at.negative - levels.negative[b] - (missing_n if side else 0)
            lp = at.positive - levels.positive[b] - (missing_p if side else 0)
            count = (n_rows + n_missing - (levels.start[b + 1] - levels.start[b])
                     - (n_missing if side else 0))
            if try_cut(at, ln, lp, count, limit, best):
                cut.ln, cut.lp, cut.side, cut.first, cut.last = ln, lp, side, i, i + 1
                return True
    return False
