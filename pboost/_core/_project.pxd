# Projections: linear combinations of a few features of a row.
#
# Terms are always added in their order, starting from 0. So training and prediction give bit-identical
# results. Projection k has the terms start[k]..start[k + 1]-1. Term t is coefficient[t] times feature
# index[t]. A missing value of feature j is replaced by fill[j]; the sum is computed a second time if it is
# NaN.
from pboost._core._rows cimport Rows, read
from pboost._core.types cimport int32_t

cdef struct Projections:
    const int32_t* start
    const int32_t* index
    const double* coefficient
    const double* fill  # NULL if there are no missing values
    Py_ssize_t n


cdef inline Projections projections_of(
    const int32_t[::1] start, const int32_t[::1] index, const double[::1] coefficient,
    const double[::1] fill, Py_ssize_t d
) except *:
    """Return projections of d features. Their arrays must stay alive while they are used."""
    cdef Projections p
    if (start.shape[0] < 1 or index.shape[0] != coefficient.shape[0]
            or (fill is not None and fill.shape[0] != d)):
        raise ValueError("projections: arrays of different sizes")
    p.n = start.shape[0] - 1
    p.start = &start[0]
    p.index = &index[0] if index.shape[0] else NULL
    p.coefficient = &coefficient[0] if index.shape[0] else NULL
    p.fill = NULL if fill is None or not d else &fill[0]
    return p


cdef inline double project_filled(
    const Projections* p, const Rows* X, const char* row, Py_ssize_t k
) noexcept nogil:
    """Return projection k of a row with missing values."""
    cdef double value = 0.0, x
    cdef Py_ssize_t t
    for t in range(p.start[k], p.start[k + 1]):
        x = read(X, row, p.index[t])
        value += p.coefficient[t] * (x if x == x else p.fill[p.index[t]])
    return value


cdef inline double project(
    const Projections* p, const Rows* X, const char* row, Py_ssize_t k
) noexcept nogil:
    """Return projection k of a row."""
    cdef double value = 0.0
    cdef Py_ssize_t t
    for t in range(p.start[k], p.start[k + 1]):
        value += p.coefficient[t] * read(X, row, p.index[t])
    if value != value and p.fill != NULL:
        return project_filled(p, X, row, k)
    return value


cdef inline void project_block(
    const Projections* p, const double* columns, Py_ssize_t size, double* out
) noexcept nogil:
    """Compute all projections of `size` rows that are stored feature by feature and have no missing values.
    """
    cdef const double* column
    cdef double* value
    cdef double coefficient
    cdef Py_ssize_t k, r, t
    for k in range(p.n):
        value = out + k * size
        for r in range(size):
            value[r] = 0.0
        for t in range(p.start[k], p.start[k + 1]):
            column = columns + p.index[t] * size
            coefficient = p.coefficient[t]
            for r in range(size):
                value[r] += coefficient * column[r]
