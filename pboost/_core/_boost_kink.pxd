# The minimum of a sum of piecewise linear functions with one kink each.
from libc.math cimport INFINITY

from pboost._core.types cimport uint64_t


cdef inline double kink_step(
    double* kink, double* weight, Py_ssize_t n, double wanted, double flat, double l2
) noexcept nogil:
    """Return the s at which (total weight of the kinks <= s) - wanted + l2 s changes its sign.

    Without l2, the solution may be an interval, and its midpoint is returned. Sums up to `flat` count as 0.
    Weights are integers; NULL means that all are 1. Quickselect finds the kink and reorders the arrays.
    """
    cdef Py_ssize_t low = 0, high = n, equal, above, i
    cdef double below = 0.0, less, level, pivot, found = INFINITY, before = 0.0, after = 0.0
    cdef double following = INFINITY
    cdef uint64_t state = 0x9E3779B97F4A7C15
    while low < high:
        pivot = pivot_of(kink, low, high, &state)
        equal = bring_forward(kink, weight, low, high, pivot, False, &less)
        above = bring_forward(kink, weight, equal, high, pivot, True, &level)
        if above == equal:
            return 0.0  # the pivot is NaN
        if below + less + level - wanted + l2 * pivot >= -flat:
            found, before, after = pivot, below + less, below + less + level
            high = equal
        else:
            below += less + level
            low = above
    if l2 > 0.0:
        if found == INFINITY:
            return (wanted - below) / l2
        return (wanted - before) / l2 if before - wanted + l2 * found > 0.0 else found
    if found < INFINITY and after - wanted <= flat:
        for i in range(n):
            if found < kink[i] < following:
                following = kink[i]
        if following < INFINITY:
            return found / 2 + following / 2
    return found if found < INFINITY else 0.0


cdef inline double pivot_of(
    const double* kink, Py_ssize_t low, Py_ssize_t high, uint64_t* state
) noexcept nogil:
    """Return the median of three random entries of a range."""
    cdef double[3] drawn
    cdef int k
    for k in range(3):
        state[0] = state[0] * <uint64_t>6364136223846793005 + <uint64_t>1442695040888963407
        drawn[k] = kink[low + <Py_ssize_t>((state[0] >> 33) % <uint64_t>(high - low))]
    return max(min(drawn[0], drawn[1]), min(max(drawn[0], drawn[1]), drawn[2]))


cdef inline Py_ssize_t bring_forward(
    double* kink, double* weight, Py_ssize_t low, Py_ssize_t high, double pivot, bint or_equal,
    double* total
) noexcept nogil:
    """Move the kinks below the pivot to the front of a range; `or_equal` includes equal kinks.

    Return the end of the moved kinks; OUT total: their weight.
    """
    cdef Py_ssize_t i, end = low
    cdef double at, w
    if weight == NULL:
        for i in range(low, high):
            at = kink[i]
            kink[i] = kink[end]
            kink[end] = at
            end += at <= pivot if or_equal else at < pivot
        total[0] = end - low
        return end
    total[0] = 0.0
    for i in range(low, high):
        at, w = kink[i], weight[i]
        kink[i], weight[i] = kink[end], weight[end]
        kink[end], weight[end] = at, w
        if at <= pivot if or_equal else at < pivot:
            total[0] += w
            end += 1
    return end
