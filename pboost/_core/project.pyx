"""Projections of rows: sums of a few columns, each times a coefficient.

Arrays: start (k + 1,), index (terms,), coefficient (terms,), fill (d,) or None as in
`pboost.data.projections`; X (n, d) float64 or float32, any strides.
"""
from libc.string cimport memset

from pboost._core._project cimport Projections, project, projections_of
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core.types cimport int32_t

cdef enum:
    BLOCK = 64  # rows whose sums stand in the first cache


def project_rows(
    X, const int32_t[::1] rows, const int32_t[::1] start, const int32_t[::1] index,
    const double[::1] coefficient, const double[::1] fill, Py_ssize_t first, double[:, :] out,
):
    """Projections first, first + 1, ... of the listed rows; OUT out (rows, projections)."""
    cdef Rows matrix = rows_of(X)
    cdef Projections p = projections_of(start, index, coefficient, fill, matrix.d)
    cdef Py_ssize_t i, k
    cdef const char* row
    if out.shape[0] != rows.shape[0] or first + out.shape[1] > p.n:
        raise ValueError("project_rows: arrays of different sizes")
    with nogil:
        for i in range(out.shape[0]):
            row = matrix.data + rows[i] * matrix.row_stride
            for k in range(out.shape[1]):
                out[i, k] = project(&p, &matrix, row, first + k)


def project_pairs(
    X, const int32_t[::1] rows, const int32_t[::1] which, const int32_t[::1] start,
    const int32_t[::1] index, const double[::1] coefficient, const double[::1] fill,
    double[::1] out,
):
    """One projection of each listed row, the one that `which` names; OUT out (rows,)."""
    cdef Rows matrix = rows_of(X)
    cdef Projections p = projections_of(start, index, coefficient, fill, matrix.d)
    cdef Py_ssize_t i
    if out.shape[0] != rows.shape[0] or which.shape[0] != rows.shape[0]:
        raise ValueError("project_pairs: arrays of different sizes")
    with nogil:
        for i in range(out.shape[0]):
            out[i] = project(&p, &matrix, matrix.data + rows[i] * matrix.row_stride, which[i])


def sum_rows(
    X, const int32_t[::1] index, const double[::1] coefficient, const double[::1] fill, double constant,
    Py_ssize_t first, double[::1] out, const double[::1] center=None, const double[::1] scale=None,
):
    """One sum of rows first, first + 1, ...: the constant, then the terms, added up in this order.

    Term t is coefficient[t] times column index[t], in which fill[t] stands for missing values; the column
    minus center[t], divided by scale[t], where these are given. OUT out: as many as there are rows.
    """
    cdef Rows matrix = rows_of(X)
    cdef double[BLOCK] column
    cdef double[BLOCK] total
    cdef double factor, known, origin, unit
    cdef Py_ssize_t start = 0, r, t, n = out.shape[0], terms = index.shape[0], rows
    cdef bint is_scaled = scale is not None
    cdef const char* row
    if (not 0 <= first <= matrix.n - n or coefficient.shape[0] != terms or fill.shape[0] != terms
            or (is_scaled and (center.shape[0] != terms or scale.shape[0] != terms))):
        raise ValueError("sum_rows: arrays of different sizes")
    memset(column, 0, sizeof(column))
    with nogil:
        while start < n:
            rows = min(<Py_ssize_t>BLOCK, n - start)
            row = matrix.data + (first + start) * matrix.row_stride
            for r in range(BLOCK):
                total[r] = constant
            for t in range(terms):
                factor, known = coefficient[t], fill[t]
                for r in range(rows):
                    column[r] = read(&matrix, row + r * matrix.row_stride, index[t])
                for r in range(BLOCK):
                    column[r] = column[r] if column[r] == column[r] else known
                if is_scaled:
                    origin, unit = center[t], scale[t]
                    for r in range(BLOCK):
                        column[r] = (column[r] - origin) / unit
                for r in range(BLOCK):
                    total[r] += factor * column[r]
            for r in range(rows):
                out[start + r] = total[r]
            start += rows
