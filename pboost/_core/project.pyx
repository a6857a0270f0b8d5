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


cdef inline void row_starts(
    const Rows* X, const int32_t* rows, Py_ssize_t first, Py_ssize_t n, const char** row
) noexcept nogil:
    """Where rows begin: the n listed ones, or if `rows` is NULL first, first + 1, ..."""
    cdef Py_ssize_t r
    for r in range(n):
        row[r] = X.data + (first + r if rows == NULL else rows[first + r]) * X.row_stride


cdef inline void add_term(
    const Rows* X, const char** row, Py_ssize_t n, Py_ssize_t j, double coefficient,
    const double* fill, const double* center, const double* scale, double* total
) noexcept nogil:
    """total += coefficient times column j of n rows, centred and scaled if that is not NULL.

    `fill` stands for missing values; NULL: none is missing.
    """
    cdef double[BLOCK] x
    cdef double known, origin, unit
    cdef Py_ssize_t r
    for r in range(n):
        x[r] = read(X, row[r], j)
    if fill != NULL:
        known = fill[0]
        for r in range(n):
            x[r] = x[r] if x[r] == x[r] else known
    if scale != NULL:
        origin, unit = center[0], scale[0]
        for r in range(n):
            x[r] = (x[r] - origin) / unit
    for r in range(n):
        total[r] += coefficient * x[r]


def project_rows(
    X, const int32_t[::1] rows, const int32_t[::1] start, const int32_t[::1] index,
    const double[::1] coefficient, const double[::1] fill, Py_ssize_t first, double[:, :] out,
):
    """Projections first, first + 1, ... of the listed rows; OUT out (rows, projections)."""
    cdef Rows matrix = rows_of(X)
    cdef Projections p = projections_of(start, index, coefficient, fill, matrix.d)
    cdef Py_ssize_t i = 0, r, k, t, n, j
    cdef const char* row[BLOCK]
    cdef double[BLOCK] total
    if out.shape[0] != rows.shape[0] or first + out.shape[1] > p.n:
        raise ValueError("project_rows: arrays of different sizes")
    with nogil:
        while i < out.shape[0]:
            n = min(<Py_ssize_t>BLOCK, out.shape[0] - i)
            row_starts(&matrix, &rows[0], i, n, row)
            for k in range(out.shape[1]):
                memset(total, 0, sizeof(total))
                for t in range(p.start[first + k], p.start[first + k + 1]):
                    j = p.index[t]
                    add_term(&matrix, row, n, j, p.coefficient[t],
                             NULL if p.fill == NULL else p.fill + j, NULL, NULL, total)
                for r in range(n):
                    out[i + r, k] = total[r]
            i += n


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
    cdef Py_ssize_t i = 0, r, t, n, terms = index.shape[0]
    cdef const char* row[BLOCK]
    cdef double[BLOCK] total
    cdef bint is_scaled = scale is not None
    if (not 0 <= first <= matrix.n - out.shape[0] or coefficient.shape[0] != terms
            or fill.shape[0] != terms
            or (is_scaled and (center.shape[0] != terms or scale.shape[0] != terms))):
        raise ValueError("sum_rows: arrays of different sizes")
    with nogil:
        while i < out.shape[0]:
            n = min(<Py_ssize_t>BLOCK, out.shape[0] - i)
            row_starts(&matrix, NULL, first + i, n, row)
            for r in range(n):
                total[r] = constant
            for t in range(terms):
                add_term(&matrix, row, n, index[t], coefficient[t], &fill[t],
                         &center[t] if is_scaled else NULL, &scale[t] if is_scaled else NULL, total)
            for r in range(n):
                out[i + r] = total[r]
            i += n
