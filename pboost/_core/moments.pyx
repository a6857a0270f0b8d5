"""Columns of listed rows without their missing values: the ends, and sums that moments are made of.

Rows are read in blocks, column by column. Arrays: rows (n,) of X (m, d), float64 or float32, any
strides; OUT out: a row for each of the columns first, first + 1, ...
"""
from libc.math cimport INFINITY, NAN

from pboost._core._rows cimport Rows, read, rows_of
from pboost._core.types cimport int32_t

cdef enum:
    BLOCK = 64  # rows that stay in the first cache until all columns are read
cdef enum:
    LANES = 8


cdef inline void load_block(
    const Rows* X, const int32_t* rows, Py_ssize_t n, Py_ssize_t j, double* x
) noexcept nogil:
    """Column j of n rows; the rest of the block is missing."""
    cdef Py_ssize_t r
    for r in range(n):
        x[r] = read(X, X.data + rows[r] * X.row_stride, j)
    for r in range(n, BLOCK):
        x[r] = NAN


cdef inline double sum_block(const double* x) noexcept nogil:
    cdef double[LANES] lane
    cdef Py_ssize_t r, q
    for q in range(LANES):
        lane[q] = x[q]
    for r in range(1, BLOCK // LANES):
        for q in range(LANES):
            lane[q] += x[r * LANES + q]
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))


def column_ends(X, const int32_t[::1] rows, Py_ssize_t first, double[:, ::1] out):
    """OUT out (columns, 2): the least and the greatest value; infinity and -infinity if there is none."""
    cdef Rows matrix = rows_of(X)
    cdef Py_ssize_t start = 0, n = rows.shape[0], size, j, r, q
    cdef double[BLOCK] x
    cdef double[LANES] least
    cdef double[LANES] most
    if not 0 <= first <= matrix.d - out.shape[0] or out.shape[1] != 2:
        raise ValueError("column_ends: arrays of different sizes")
    with nogil:
        for j in range(out.shape[0]):
            out[j, 0], out[j, 1] = INFINITY, -INFINITY
        while start < n:
            size = min(<Py_ssize_t>BLOCK, n - start)
            for j in range(out.shape[0]):
                load_block(&matrix, &rows[start], size, first + j, x)
                for q in range(LANES):
                    least[q], most[q] = out[j, 0], out[j, 1]
                for r in range(BLOCK // LANES):
                    for q in range(LANES):  # NaN is neither less nor more
                        least[q] = x[r * LANES + q] if x[r * LANES + q] < least[q] else least[q]
                        most[q] = x[r * LANES + q] if x[r * LANES + q] > most[q] else most[q]
                for q in range(LANES):
                    out[j, 0], out[j, 1] = min(out[j, 0], least[q]), max(out[j, 1], most[q])
            start += size


def column_moments(
    X, const int32_t[::1] rows, const double[::1] weight, const double[:] origin,
    const double[:] unit, Py_ssize_t first, double[:, ::1] out,
):
    """Sums over the known values of w, w z and w z z, with z = (x - origin) / unit, and weights w.

    IN weight (n,) of the listed rows, or None: all are 1; origin, unit (columns,). OUT out (columns, 3).
    """
    cdef Rows matrix = rows_of(X)
    cdef Py_ssize_t start = 0, n = rows.shape[0], size, j, r
    cdef double[BLOCK] x
    cdef double[BLOCK] w
    cdef double[BLOCK] mass
    cdef double from_, by
    if (not 0 <= first <= matrix.d - out.shape[0] or out.shape[1] != 3 or origin.shape[0] != out.shape[0]
            or unit.shape[0] != out.shape[0] or (weight is not None and weight.shape[0] != n)):
        raise ValueError("column_moments: arrays of different sizes")
    out[:] = 0.0
    for r in range(BLOCK):
        w[r] = 1.0
    with nogil:
        while start < n:
            size = min(<Py_ssize_t>BLOCK, n - start)
            if weight is not None:
                for r in range(size):
                    w[r] = weight[start + r]
            for j in range(out.shape[0]):
                load_block(&matrix, &rows[start], size, first + j, x)
                from_, by = origin[j], unit[j]
                for r in range(BLOCK):
                    mass[r] = w[r] if x[r] == x[r] else 0.0
                    x[r] = (x[r] - from_) / by if x[r] == x[r] else 0.0
                out[j, 0] += sum_block(mass)
                for r in range(BLOCK):
                    mass[r] *= x[r]
                out[j, 1] += sum_block(mass)
                for r in range(BLOCK):
                    mass[r] *= x[r]
                out[j, 2] += sum_block(mass)
            start += size
