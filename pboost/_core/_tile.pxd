# Tiles of rows, which are transposed and converted to float64.
from libc.float cimport DBL_MAX
from libc.math cimport fabs
from libc.string cimport memset

from pboost._core._rows cimport Rows
from pboost._core.types cimport int32_t, int64_t, uint8_t

cdef extern from "walk_simd.h":
    enum: TILE "PBOOST_TILE"
    double known_or "pboost_known_or"(double x, double fill) noexcept nogil
    bint tile_is_bad "pboost_tile_is_bad"(const double* tile, Py_ssize_t d) noexcept nogil
    ctypedef int (*SpreadKernel "pboost_spread_kernel")(
        double* tile, Py_ssize_t d, const int32_t* above, Py_ssize_t n_above, const double* fill
    ) noexcept nogil
    SpreadKernel choose_spread "pboost_choose_spread"(int level) noexcept nogil
    ctypedef void (*FillKernel "pboost_fill_kernel")(
        const double* x, const double* fill, Py_ssize_t d, double* out
    ) noexcept nogil
    FillKernel choose_fill "pboost_choose_fill"(int level) noexcept nogil
    void look_up_levels "pboost_look_up_levels"(
        double* tile, Py_ssize_t first, const int32_t* column, Py_ssize_t n, const uint8_t* table
    ) noexcept nogil


cdef inline void fill_tile(
    const Rows* X, Py_ssize_t start, Py_ssize_t rows, double* tile
) noexcept nogil:
    """Convert rows to float64 and write them to a tile, feature by feature."""
    cdef Py_ssize_t r, j
    cdef const char* row
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


cdef inline int load_tile(
    const Rows* X, Py_ssize_t start, Py_ssize_t rows, double* tile
) noexcept nogil:
    """Convert rows to float64 and write them to a tile. Return 1 if a value is not finite, else 0."""
    fill_tile(X, start, rows, tile)
    return tile_is_bad(tile, X.d)


cdef inline bint tile_has_infinity(const double* tile, Py_ssize_t d) noexcept nogil:
    """Return whether a value of a tile is infinite."""
    cdef Py_ssize_t i
    cdef int64_t found = 0
    for i in range(d * TILE):  # avoid a branch, so that the compiler can vectorize the loop
        found |= fabs(tile[i]) > DBL_MAX
    return found != 0
