"""Projections of rows: sums of a few columns, each times a coefficient.

Arrays: start (k + 1,), index (terms,), coefficient (terms,), fill (d,) or None as in
`pboost.data.projections`; X (n, d) float64 or float32, any strides.
"""
from pboost._core._project cimport Projections, project, projections_of
from pboost._core._rows cimport Rows, rows_of
from pboost._core.types cimport int32_t


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
