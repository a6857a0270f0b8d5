"""Separators of rows: sums of stumps.

Arrays: start (k + 1,), column (functions,), first (functions + 1,), edge (steps,), value (steps +
functions,), missing (functions,) or None as in `_separate.pxd`; X (n, d) float64 or float32, any strides.
"""
from pboost._core._rows cimport Rows, rows_of
from pboost._core._separate cimport Separators, separate, separators_of
from pboost._core.types cimport int32_t


def separate_rows(
    X, const int32_t[::1] rows, const int32_t[::1] start, const int32_t[::1] column,
    const int32_t[::1] first, const double[::1] edge, const double[::1] value,
    const double[::1] missing, double[:, :] out,
):
    """All sums of the listed rows; OUT out (rows, k)."""
    cdef Rows matrix = rows_of(X)
    cdef Separators s = separators_of(start, column, first, edge, value, missing)
    cdef Py_ssize_t i, k
    cdef const char* row
    if out.shape[0] != rows.shape[0] or out.shape[1] != s.n:
        raise ValueError("separate_rows: arrays of different sizes")
    with nogil:
        for i in range(out.shape[0]):
            row = matrix.data + rows[i] * matrix.row_stride
            for k in range(s.n):
                out[i, k] = separate(&s, &matrix, row, k)
