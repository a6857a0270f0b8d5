# Splits of sorted rows: constraints, scores, and a search that tries all splits in order.
from pboost._core.split cimport Judge, Sums, add, may_cut, score, score_of
from pboost._core.types cimport int32_t, int64_t, is_tied, row_of

cdef extern from *:
    """
    /* A factor for lower bounds that allows for rounding errors. */
    #define PBOOST_BOUND_SLACK (1.0 - 1e-13)
    """
    const double BOUND_SLACK "PBOOST_BOUND_SLACK"

cdef struct Limits:
    int criterion
    Py_ssize_t n
    Py_ssize_t n_negative
    int64_t negative  # total weight of each class
    int64_t positive
    int64_t min_weight  # minimum weight and minimum number of rows in a child
    Py_ssize_t min_count
    Py_ssize_t extra  # left rows with a missing value, which the position does not include


cdef inline Limits read_limits(limits) except *:
    cdef Limits at
    (at.criterion, at.n, at.n_negative, at.negative, at.positive, at.min_weight,
     at.min_count) = limits
    at.extra = 0
    return at


cdef inline bint is_legal(
    const Limits* at, int64_t ln, int64_t lp, Py_ssize_t count
) noexcept nogil:
    """Return whether a split with left class weights ln, lp and `count` + `extra` left rows is allowed."""
    cdef int64_t left = ln + lp
    cdef int64_t right = at.negative + at.positive - left
    return (left > 0 and right > 0 and left >= at.min_weight and right >= at.min_weight
            and count + at.extra >= at.min_count and at.n - at.extra - count >= at.min_count)


cdef inline double cut_score(const Limits* at, int64_t ln, int64_t lp) noexcept nogil:
    return score(at.criterion, <double>lp, <double>ln,
                 <double>(at.positive - lp), <double>(at.negative - ln))


cdef inline Py_ssize_t rescan(
    const Limits* at, const int32_t* order, const int64_t* weight, Py_ssize_t start,
    Py_ssize_t stop, int64_t ln, int64_t lp, double limit, double* best,
) noexcept nogil:
    """Try all splits between the sorted rows start..stop-1 and lower `best` to the least score.

    Return the first position whose score is within `limit`, or -1. The split at position p is between the
    sorted rows p-1 and p. ln, lp: class weights of the rows before `start`.
    """
    cdef Py_ssize_t i
    cdef int32_t row
    cdef int64_t positive
    cdef double here
    for i in range(start, stop - 1):
        row = row_of(order[i])
        positive = -<int64_t>(row >= at.n_negative) & weight[row]
        lp += positive
        ln += weight[row] - positive
        if is_tied(order[i + 1]):
            continue
        here = cut_score(at, ln, lp)
        if here < best[0] and is_legal(at, ln, lp, i + 1):
            best[0] = here
        if here <= limit and is_legal(at, ln, lp, i + 1):
            return i + 1
    return -1


cdef inline Py_ssize_t scan_rows(
    const Judge* at, int criterion, const int32_t* order, Py_ssize_t start, Py_ssize_t stop,
    double limit, double* best, Sums* sums,
) noexcept nogil:
    """Try all splits after the sorted rows start..stop-1 and lower `best` to the least score.

    Return the first position whose score is within `limit`, or -1. INOUT sums: of the rows before `start`,
    then of the rows before the returned position.
    """
    cdef Py_ssize_t i
    cdef double here
    for i in range(start, stop):
        add(at, criterion, sums, row_of(order[i]))
        if is_tied(order[i + 1]) or not may_cut(at, sums, i + 1):
            continue
        here = score_of(at, criterion, sums)
        if here < best[0]:
            best[0] = here
        if here <= limit:
            return i + 1
    return -1
