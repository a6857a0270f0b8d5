# The rows of a leaf during ProbitBoost, stored feature by feature. Features are centered and scaled by
# powers of two.
from libc.math cimport INFINITY, frexp, ldexp
from libc.stdint cimport uintptr_t
from libc.stdlib cimport malloc

from pboost._core._rows cimport Rows, read
from pboost._core.types cimport int32_t

cdef extern from "probit_step.h" nogil:
    ctypedef struct Scale "pboost_scale":
        double origin
        double rescue

    ctypedef struct Sums "pboost_leaf":
        Py_ssize_t rows
        Py_ssize_t room
        double* x
        int32_t* column
        int32_t n_columns
        double* w0
        double* y
        double* w
        double* wz
        double* lanes
        double sum_w
        double sum_wz
        double loss
        double least
        double most

    ctypedef struct Ends "pboost_ends":
        double[2] low
        double[2] high
        double square

cdef struct Leaf:
    Sums sums
    void* memory
    Py_ssize_t m  # number of rows
    Py_ssize_t d
    double* f
    double* tried  # f after the step being tried
    double* centre  # x = (X / 2**exponent - centre) / 2**spread
    double* slope
    Ends* ends
    int32_t* exponent
    int32_t* spread
    double intercept  # the constant term of f
    double mass
    int unit  # the original weights are w0 * 2**unit
    Scale scale
    Py_ssize_t cells  # number of cells processed since the last check for signals
    const int32_t* stop  # NULL, or a flag that is set when the caller is interrupted


cdef inline bint allocate(Leaf* leaf, Py_ssize_t rows, Py_ssize_t d) noexcept nogil:
    """Allocate the arrays of a leaf as one block of memory. Return False if this fails."""
    cdef Sums* sums = &leaf.sums
    cdef Py_ssize_t room = (rows + 7) // 8 * 8
    cdef Py_ssize_t size
    # If features were a multiple of 4096 bytes apart, they would share the same lines of the cache.
    room += 8 if room % 512 == 0 else 0
    sums.room, leaf.d = room, d
    size = room * (d + 6) + 33 * d + 8
    leaf.memory = malloc(size * sizeof(double))
    if leaf.memory == NULL:
        return False
    # Align the features to cache lines of 64 bytes.
    sums.x = <double*>((<uintptr_t>leaf.memory + 63) & ~<uintptr_t>63)
    sums.w0 = sums.x + d * room
    sums.y = sums.w0 + room
    sums.w = sums.y + room
    sums.wz = sums.w + room
    leaf.f = sums.wz + room
    leaf.tried = leaf.f + room
    sums.lanes = leaf.tried + room
    leaf.centre = sums.lanes + 24 * d
    leaf.slope = leaf.centre + d
    leaf.ends = <Ends*>(leaf.slope + d)
    leaf.exponent = <int32_t*>(leaf.ends + d)
    leaf.spread = leaf.exponent + d
    sums.column = leaf.spread + d
    return True


cdef inline void multiply(double* x, Py_ssize_t n, int exponent, double minus) noexcept nogil:
    """Set x = (x - minus) * 2**exponent."""
    cdef int half = exponent // 2
    # Multiply twice, because a single factor may overflow or underflow.
    cdef double first = ldexp(1.0, half), second = ldexp(1.0, exponent - half)
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = (x[i] - minus) * first * second


cdef inline double known_mean(const Leaf* leaf, const double* x, double otherwise) noexcept nogil:
    """Return the weighted mean of the known values, or `otherwise` if their total weight is 0."""
    cdef double total = 0.0, mass = 0.0
    cdef Py_ssize_t i
    for i in range(leaf.m):
        if x[i] == x[i]:
            total += leaf.sums.w0[i] * x[i]
            mass += leaf.sums.w0[i]
    return total / mass if mass > 0.0 else otherwise


cdef inline bint centre_column(Leaf* leaf, Py_ssize_t j) noexcept nogil:
    """Center and scale a feature and return whether it has more than one value.

    Missing values are replaced by the mean of the known values.
    """
    cdef double* x = leaf.sums.x + j * leaf.sums.room
    cdef double low = INFINITY, high = -INFINITY, mean = 0.0
    cdef Py_ssize_t i
    cdef int e
    cdef bint is_whole
    for i in range(leaf.m):  # comparisons with NaN are false
        low = x[i] if x[i] < low else low
        high = x[i] if x[i] > high else high
    if not low < high:
        leaf.centre[j], leaf.exponent[j] = low if low == high else 0.0, 0
        return False
    frexp(max(-low, high), &e)
    leaf.exponent[j] = e
    multiply(x, leaf.m, -e, 0.0)
    for i in range(leaf.m):
        mean += leaf.sums.w0[i] * x[i]
    low, high = ldexp(low, -e), ldexp(high, -e)
    is_whole = mean == mean
    mean = min(max(mean / leaf.mass if is_whole else known_mean(leaf, x, low), low), high)
    leaf.centre[j] = mean
    frexp(max(mean - low, high - mean), &e)
    leaf.spread[j] = e
    multiply(x, leaf.m, -e, mean)
    if not is_whole:
        for i in range(leaf.m):
            x[i] = x[i] if x[i] == x[i] else 0.0
    for i in range(leaf.m, leaf.sums.rows):
        x[i] = x[0]
    return True


cdef inline void load_weights(
    Leaf* leaf, const int32_t* rows, const double* weight,
) noexcept nogil:
    """Copy the weights of the rows of a leaf, scaled by a power of two."""
    cdef Sums* sums = &leaf.sums
    cdef Py_ssize_t i
    cdef double most = 0.0
    sums.rows = (leaf.m + 7) // 8 * 8
    for i in range(leaf.m):
        most = max(most, weight[rows[i]])
    frexp(most, &leaf.unit)
    leaf.mass = 0.0
    for i in range(sums.rows):
        sums.w0[i] = ldexp(weight[rows[i]], -leaf.unit) if i < leaf.m else 0.0
        leaf.mass += sums.w0[i]


cdef inline void load_rows(
    Leaf* leaf, const Rows* X, const int32_t* rows, Py_ssize_t start, Py_ssize_t stop,
) noexcept nogil:
    """Copy the rows start..stop-1 into a leaf."""
    cdef Py_ssize_t i, j
    cdef const char* row
    for i in range(start, stop):
        row = X.data + rows[i] * X.row_stride
        for j in range(leaf.d):
            leaf.sums.x[j * leaf.sums.room + i] = read(X, row, j)


cdef inline Py_ssize_t choose_class(
    Leaf* leaf, const int32_t* rows, const int32_t* label, int class_,
) noexcept nogil:
    """Set y to +1 for the rows of one class and to -1 for others. Return the number of rows with +1."""
    cdef Py_ssize_t i, inside = 0
    for i in range(leaf.m):
        leaf.sums.y[i] = 1.0 if label[rows[i]] == class_ else -1.0
        inside += leaf.sums.y[i] > 0.0
    for i in range(leaf.m, leaf.sums.rows):
        leaf.sums.y[i] = leaf.sums.y[0]
    return inside
