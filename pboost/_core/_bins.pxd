# One exit's rows on binned columns: search over bin edges, and partition of the row list.
from libc.math cimport INFINITY
from libc.string cimport memset

from pboost._core._cut cimport Limits, cut_score, is_legal
from pboost._core._histogram cimport add_histogram_of_rows, count_rows
from pboost._core._side cimport code_goes_right
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t


cdef inline Py_ssize_t first_positive(
    const int32_t* rows, Py_ssize_t n, Py_ssize_t n_negative
) noexcept nogil:
    """Position of the first row of class +1 in an increasing list of rows."""
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < n_negative:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double search_bins(
    const Limits* at, const uint8_t* codes, int n_bins, const int32_t* rows,
    const int64_t* weight, double limit, int* bin_found, int64_t* ln_found, int64_t* lp_found,
) noexcept nogil:
    """Least score over the bin edges; or, if limit >= 0, the first edge that scores within it."""
    cdef int64_t[2][MAX_BINS] mass
    cdef int32_t[MAX_BINS] count
    cdef Py_ssize_t middle = first_positive(rows, at.n, at.n_negative), left = 0
    cdef int64_t ln = 0, lp = 0
    cdef double here, best = INFINITY
    cdef int b
    memset(mass, 0, sizeof(mass))
    add_histogram_of_rows(codes, weight, rows, middle, mass[0])
    add_histogram_of_rows(codes, weight, rows + middle, at.n - middle, mass[1])
    if at.min_count > 1:
        memset(count, 0, sizeof(count))
        count_rows(codes, rows, at.n, count)
    for b in range(n_bins - 1):
        if mass[0][b] == 0 and mass[1][b] == 0:
            continue  # the same cut as at the edge before
        ln += mass[0][b]
        lp += mass[1][b]
        left = left + count[b] if at.min_count > 1 else 1
        here = cut_score(at, ln, lp)
        if here < best and is_legal(at, ln, lp, left if at.min_count > 1 else 1):
            best = here
            if limit < 0.0 or here <= limit:
                bin_found[0] = b
                ln_found[0] = ln
                lp_found[0] = lp
            if limit >= 0.0 and here <= limit:
                return best
    return best


cdef inline Py_ssize_t partition_rows(
    int32_t* rows, Py_ssize_t n, const uint8_t* codes, int cut_bin, int32_t* spare
) noexcept nogil:
    """Move the rows at or below the bin before the others, order kept; returns their number."""
    cdef Py_ssize_t i, left = 0, right = 0
    cdef int32_t row
    cdef int s
    for i in range(n):
        row = rows[i]
        s = code_goes_right(codes[row], cut_bin)
        rows[left] = row
        spare[right] = row
        left += 1 - s
        right += s
    for i in range(right):
        rows[left + i] = spare[i]
    return left
