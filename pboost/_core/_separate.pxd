# Separators: sums of stumps, merged into one piecewise constant function per feature.
#
# Separator k is the sum of the functions start[k]..start[k + 1]-1. Function g reads feature column[g]. Its
# steps are at edge[first[g]..first[g + 1]-1], in increasing order. Its values begin at value[first[g] + g];
# there is one more value than edges. A value equal to an edge is below the edge. A missing value gives
# missing[g].
#
# Functions are always added in their order, starting from 0. So training and prediction give bit-identical
# results.
from pboost._core._rows cimport Rows, read
from pboost._core._side cimport goes_right
from pboost._core.types cimport int32_t

cdef struct Separators:
    const int32_t* start
    const int32_t* column
    const int32_t* first
    const double* edge
    const double* value
    const double* missing  # NULL if there are no missing values
    Py_ssize_t n


cdef inline Separators separators_of(
    const int32_t[::1] start, const int32_t[::1] column, const int32_t[::1] first,
    const double[::1] edge, const double[::1] value, const double[::1] missing
) except *:
    """Return separators. Their arrays must stay alive while they are used."""
    cdef Separators s
    cdef Py_ssize_t functions = column.shape[0]
    if (start.shape[0] < 1 or first.shape[0] != functions + 1
            or value.shape[0] != edge.shape[0] + functions
            or (missing is not None and missing.shape[0] != functions)):
        raise ValueError("separators: arrays of different sizes")
    s.n = start.shape[0] - 1
    s.start, s.first = &start[0], &first[0]
    s.column = &column[0] if functions else NULL
    s.edge = &edge[0] if edge.shape[0] else NULL
    s.value = &value[0] if functions else NULL
    s.missing = NULL if missing is None or not functions else &missing[0]
    return s


cdef inline double separate(
    const Separators* s, const Rows* X, const char* row, Py_ssize_t k
) noexcept nogil:
    """Return separator k of a row."""
    cdef double total = 0.0, x
    cdef const double* edge
    cdef Py_ssize_t g, below, n, half
    for g in range(s.start[k], s.start[k + 1]):
        x = read(X, row, s.column[g])
        edge = s.edge + s.first[g]
        n = s.first[g + 1] - s.first[g]
        below = 0
        # Count the edges less than x by bisection.
        while n > 0:
            half = n >> 1
            if goes_right(x, edge[below + half]):
                below += half + 1
                n -= half + 1
            else:
                n = half
        if below == 0 and x != x and s.missing != NULL:  # NaN is not greater than any edge
            total += s.missing[g]
        else:
            total += s.value[s.first[g] + g + below]
    return total
