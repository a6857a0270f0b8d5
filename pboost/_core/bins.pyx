"""Bins of all rows by edges that were found on some; and which rows these are, by their contents.

Arrays: `columns` (k, m) hold columns of m rows, one column per row; `codes` (k, n) the bins of all rows.
"""
from libc.string cimport memcpy

from pboost._core._rng cimport GOLDEN, mix
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core.types cimport MAX_BINS, int32_t, uint8_t, uint64_t

cdef extern from "bin_simd.h":
    ctypedef void (*BinKernel "pboost_bin_kernel")(
        const double* x, Py_ssize_t n, const double* edge, int levels, int missing, uint8_t* code
    ) noexcept nogil
    BinKernel choose_bin "pboost_choose_bin"(int level) noexcept nogil

cdef BinKernel bin_kernel = choose_bin(2)


def use_simd_level(int level):
    """0: baseline, 1: AVX2, where supported; the bins are the same. For tests."""
    global bin_kernel
    bin_kernel = choose_bin(level)


cdef inline uint64_t content_bits(double value) noexcept nogil:
    """The bits of a value, folded so that all count in the lower half; zeros are one, and so are NaNs."""
    cdef uint64_t bits
    value = value + 0.0
    memcpy(&bits, &value, 8)
    if value != value:
        bits = <uint64_t>0x7FF8 << 48
    return bits ^ (bits >> 32)


def hash_rows(X, const int32_t[::1] rows, uint64_t[::1] key, uint64_t[::1] hashed):
    """Numbers that depend on the contents of rows only, and are spread evenly.

    IN X (n, d), rows (m,); WORK key (d,); OUT hashed (m,). Returns whether a value is missing.
    """
    cdef Rows all = rows_of(X)
    cdef Py_ssize_t m = rows.shape[0], i, j
    cdef const char* row
    cdef uint64_t total
    cdef double value
    cdef bint has_missing = False
    if key.shape[0] != all.d or hashed.shape[0] != m:
        raise ValueError("hash_rows: arrays of different sizes")
    with nogil:
        for j in range(all.d):
            key[j] = mix(GOLDEN * <uint64_t>(j + 1)) | 1
        for i in range(m):
            row = all.data + rows[i] * all.row_stride
            total = 0
            for j in range(all.d):
                value = read(&all, row, j)
                has_missing |= value != value
                total += content_bits(value) * key[j]
            hashed[i] = mix(total)
    return has_missing


cdef void extend_one(
    const double* x, const uint8_t* code, Py_ssize_t m, double* least, double* most, int32_t* count
) noexcept nogil:
    """Count the values of each bin, and move its ends; values seen before are no news, and most are not."""
    cdef Py_ssize_t i, b
    cdef double here
    for i in range(m):
        b = code[i]
        here = x[i] + 0.0  # one zero
        if here < least[b]:
            least[b] = here
        if here > most[b]:
            most[b] = here
        count[b] += 1


def code_columns(
    const double[:, ::1] columns, Py_ssize_t first, const double[:, ::1] edge,
    const int32_t[::1] n_bins, uint8_t[:, ::1] codes, double[:, ::1] lower, double[:, ::1] upper,
    int32_t[:, ::1] count,
):
    """Write the bins of rows first, first + 1, ... to `codes`, and the ends and counts of the bins so far.

    IN columns (k, m), edge (k, 255) with infinity after the last, n_bins (k,): the code of missing values;
    IN OUT lower, upper, count (k, 256).
    """
    cdef Py_ssize_t k = columns.shape[0], m = columns.shape[1], j
    cdef int levels
    if (codes.shape[0] != k or n_bins.shape[0] != k or not 0 <= first <= codes.shape[1] - m
            or edge.shape[0] != k or edge.shape[1] != MAX_BINS - 1
            or lower.shape[0] != k or lower.shape[1] != MAX_BINS
            or upper.shape[0] != k or upper.shape[1] != MAX_BINS
            or count.shape[0] != k or count.shape[1] != MAX_BINS):
        raise ValueError("code_columns: arrays of different sizes")
    if m == 0:
        return
    with nogil:
        for j in range(k):
            levels = 0
            while 1 << levels < n_bins[j]:
                levels += 1
            bin_kernel(
                &columns[j, 0], m, &edge[j, 0], levels, n_bins[j], &codes[j, first]
            )
            extend_one(
                &columns[j, 0], &codes[j, first], m, &lower[j, 0], &upper[j, 0], &count[j, 0]
            )
