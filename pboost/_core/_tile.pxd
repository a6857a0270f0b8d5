# Rows in tiles: transposed, converted to float64 and checked to be finite.
from libc.math cimport isinf
from libc.string cimport memset

from pboost._core._rows cimport Rows

cdef extern from "walk_simd.h":
    enum: TILE "PBOOST_TILE"
    bint tile_is_bad "pboost_tile_is_bad"(const double* tile, Py_ssize_t d) noexcept nogil


cdef inline int load_tile(
    const Rows* X, Py_ssize_t start, Py_ssize_t rows, double* tile
) noexcept nogil:
    """Transpose rows into a tile as float64. Returns 1 if a value is not finite."""
    cdef Py_ssize_t r, j
    cdef const char* row
    cdef double bad = 0.0
    if rows < TILE:
        memset(tile, 0, <size_t>(X.d * TILE) * sizeof(double))
    for r in range(rows):
        row = X.data + (start + r) * X.row_stride
        if X.is_float:
            for j in range(X.d):
                tile[j * TILE + r] = (<const float*>(row + j * X.column_stride))[0]
        else:
            for j in range(X.d):
                tile[j * TILE + r] = (<const double*>(row + j * X.column_stride))[0]
    return tile_is_bad(tile, X.d)


cdef inline bint tile_has_infinity(const double* tile, Py_ssize_t d) noexcept nogil:
    """Whether a value of a tile is infinite."""
    cdef Py_ssize_t i
    for i in range(d * TILE):
        if isinf(tile[i]):
            return True
    return False
