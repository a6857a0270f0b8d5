# The targets at a regression node: their mean, squared error, and fixed-point deviations from the mean.
#
# Searches on bins sum only integers, so that sums do not depend on the order of rows. The units depend on
# the range of the targets and on the weight of the node. The rounding errors of the terms are summed as
# well, in units that are FINER times smaller.
from libc.math cimport frexp, ldexp, rint

from pboost._core._grower cimport (
    FULL_BITS, LEAST_BITS, MOST_SCALE, Node, Tree, finer_shift, fixed_weight, mass_of, rows_at, size_of,
    unit_of,
)
from pboost._core.split cimport Moment
from pboost._core.types cimport int32_t, int64_t, row_of

cdef enum:
    MOST_SQUARE_SCALE = 1000
cdef extern from *:
    """
    /* The unit of rounding errors is smaller by this factor. Sums over 2**31 rows fit into 64 bits. */
    #define PBOOST_FINER 1073741824.0
    """
    const double FINER "PBOOST_FINER"

# Sums of weight times deviation, and of weight times squared deviation. Each has its own scale and is
# stored as an integer plus the sum of its rounding errors in finer units.
cdef struct Sums:
    double scale
    int64_t v, v_low, square, square_low


cdef inline double weight_at(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return the weight of a node in the unit of the row weights."""
    return mass_of(t, e) * unit_of(t, e)


cdef inline double full_scale(double largest, int most) noexcept nogil:
    """Return the power of two that scales numbers up to `largest` below 2**FULL_BITS."""
    cdef int exponent = 0
    frexp(largest, &exponent)
    return ldexp(1.0, min(FULL_BITS - exponent, most))


cdef inline double clamped(double value, double least, double most) noexcept nogil:
    return min(max(value, least), most)


cdef inline double begin_squares(
    const Tree* t, Py_ssize_t e, double least, double most
) noexcept nogil:
    """Choose the units of a node's sums for targets in a range and return the scale of the squares."""
    cdef double total = weight_at(t, e), width = most - least
    t.node[e].scale = full_scale(total * width, MOST_SCALE)
    t.node[e].pure = most == least
    return full_scale(total * width * width, MOST_SQUARE_SCALE)


cdef inline void first_mean(
    const Tree* t, Py_ssize_t e, double least, double most, int64_t above
) noexcept nogil:
    """Set the mean, up to rounding. `above`: the sum of weight times (target - `least`)."""
    cdef Node* node = &t.node[e]
    node.mean = clamped(least + <double>above / node.scale / weight_at(t, e), least, most)


cdef inline void end_squares(
    const Tree* t, Py_ssize_t e, double least, double most, const Sums* sums
) noexcept nogil:
    """Compute the mean and the sum of squared deviations, corrected for the rounding of the mean."""
    cdef Node* node = &t.node[e]
    cdef double total = weight_at(t, e)
    cdef double rest = (<double>sums.v + <double>sums.v_low / FINER) / node.scale
    cdef double squares = (<double>sums.square + <double>sums.square_low / FINER) / sums.scale
    t.mass[2 * e + 1] = sums.v
    node.mean = clamped(node.mean + rest / total, least, most)
    node.loss = max(squares - rest * rest / total, 0.0)


cdef inline void refine_moments(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Rescale the weights of a node if they are small."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef Py_ssize_t i
    cdef int32_t row
    cdef int64_t total = 0
    if mass_of(t, e) >= <double>(<int64_t>1 << LEAST_BITS):
        return
    t.node[e].shift = finer_shift(t, e)
    for i in range(size_of(t, e)):
        row = row_of(rows[i])
        t.moment[row].w = fixed_weight(t, row, t.node[e].shift)
        total += t.moment[row].w
    t.mass[2 * e] = total


cdef inline void measure_binned(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Compute the results of `measure_squares` with integer sums."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef Node* node = &t.node[e]
    cdef Py_ssize_t i, n = size_of(t, e)
    cdef double least, most, deviation, part
    cdef int64_t above = 0, whole
    cdef Sums sums
    cdef int32_t row
    refine_moments(t, e)
    least = most = t.y[row_of(rows[0])]
    for i in range(n):
        row = row_of(rows[i])
        least = min(least, t.y[row])
        most = max(most, t.y[row])
    sums.scale = begin_squares(t, e, least, most)
    sums.v = sums.v_low = sums.square = sums.square_low = 0
    for i in range(n):
        row = row_of(rows[i])
        above += <int64_t>(t.weight[row] * (t.y[row] - least) * node.scale)
    first_mean(t, e, least, most, above)
    for i in range(n):
        row = row_of(rows[i])
        deviation = t.y[row] - node.mean
        part = t.weight[row] * deviation * node.scale
        whole = <int64_t>rint(part)
        t.moment[row].v = whole
        sums.v += whole
        sums.v_low += <int64_t>((part - <double>whole) * FINER)
        part = t.weight[row] * deviation * deviation * sums.scale
        whole = <int64_t>part
        sums.square += whole
        sums.square_low += <int64_t>((part - <double>whole) * FINER)
    end_squares(t, e, least, most, &sums)


cdef inline void measure_sorted(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Compute the results of `measure_squares` for sorted rows, with floating-point sums."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef Node* node = &t.node[e]
    cdef Moment* mass = <Moment*>(t.mass + 2 * e)
    cdef Py_ssize_t i, n = size_of(t, e)
    cdef double total = 0.0, sum_y = 0.0, least, most, mean, rest = 0.0, squares = 0.0, deviation
    cdef int32_t row
    cdef int exponent = 0
    cdef bint finer = mass_of(t, e) < <double>(<int64_t>1 << LEAST_BITS)
    least = most = t.y[row_of(rows[0])]
    for i in range(n):
        row = row_of(rows[i])
        total += t.weight[row]
        sum_y += t.weight[row] * t.y[row]
        least = min(least, t.y[row])
        most = max(most, t.y[row])
    mean = min(max(sum_y / total, least), most)
    if finer:
        node.shift = finer_shift(t, e)
    frexp(total * (most - least), &exponent)
    node.scale = ldexp(1.0, min(FULL_BITS - exponent, MOST_SCALE))
    mass.w = mass.v = 0
    for i in range(n):
        row = row_of(rows[i])
        deviation = t.y[row] - mean
        rest += t.weight[row] * deviation
        squares += t.weight[row] * deviation * deviation
        if finer:
            t.moment[row].w = fixed_weight(t, row, node.shift)
        t.moment[row].v = <int64_t>rint(t.weight[row] * deviation * node.scale)
        mass.w += t.moment[row].w
        mass.v += t.moment[row].v
    # Correct the mean and the sum of squares for the rounding of the mean.
    node.mean = min(max(mean + rest / total, least), most)
    node.loss = max(squares - rest * rest / total, 0.0)
    node.pure = most == least


cdef inline void measure_squares(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Compute the mean and squared error of a node's targets, and their fixed-point deviations."""
    if t.exact:
        measure_sorted(t, e)
    else:
        measure_binned(t, e)
