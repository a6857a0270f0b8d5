# Class histograms of binned features: the inner loop of every search on bins.
#
# Rows are numbered class by class, class -1 first, so that each row adds to one histogram instead of two.
# Weights are 64-bit fixed-point numbers. Their sums are exact and do not depend on the order of rows or on
# the number of threads.
from libc.string cimport memset

from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    /* Load eight codes at once; on little-endian machines compilers turn this into a plain load. */
    static inline uint64_t pboost_load8(const uint8_t *p) {
        return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24
             | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48
             | (uint64_t)p[7] << 56;
    }
    """
    uint64_t load8 "pboost_load8"(const uint8_t* p) noexcept nogil

cdef enum:
    GROUP = 4  # number of features whose histograms are built in one pass over the weights


cdef inline void add_histogram(
    const uint8_t* codes, const int64_t* weight, Py_ssize_t start, Py_ssize_t stop, int64_t* mass
) noexcept nogil:
    """Add the weights of the rows start..stop-1 to `mass`, which is indexed by bin code."""
    cdef Py_ssize_t i
    for i in range(start, stop):
        mass[codes[i]] += weight[i]


cdef inline void add_group_histograms(
    const uint8_t* codes, Py_ssize_t stride, const int64_t* weight, Py_ssize_t start,
    Py_ssize_t stop, int64_t* mass,
) noexcept nogil:
    """Add the histograms of GROUP features, with MAX_BINS entries each; their codes are `stride` apart.

    Even and odd rows use separate histograms, so that an addition need not wait for the previous one.
    """
    cdef int64_t[GROUP][2][MAX_BINS] table
    cdef Py_ssize_t i = start, b
    cdef uint64_t a, c, d, e
    cdef Py_ssize_t f
    cdef int64_t w
    cdef int k
    memset(table, 0, sizeof(table))
    while i + 8 <= stop:
        a = load8(codes + i)
        c = load8(codes + stride + i)
        d = load8(codes + 2 * stride + i)
        e = load8(codes + 3 * stride + i)
        for k in range(8):
            w = weight[i + k]
            table[0][k & 1][(a >> (8 * k)) & 255] += w
            table[1][k & 1][(c >> (8 * k)) & 255] += w
            table[2][k & 1][(d >> (8 * k)) & 255] += w
            table[3][k & 1][(e >> (8 * k)) & 255] += w
        i += 8
    for f in range(GROUP):
        for b in range(MAX_BINS):
            mass[f * MAX_BINS + b] += table[f][0][b] + table[f][1][b]
        add_histogram(codes + f * stride, weight, i, stop, mass + f * MAX_BINS)


cdef inline void class_histograms(
    const uint8_t* codes, Py_ssize_t stride, int n_features, const int64_t* weight,
    Py_ssize_t n_negative, Py_ssize_t n, int64_t* negative, int64_t* positive,
) noexcept nogil:
    """Compute the class weights per bin of up to GROUP features; each output has MAX_BINS entries."""
    cdef Py_ssize_t f
    memset(negative, 0, <size_t>n_features * MAX_BINS * sizeof(int64_t))
    memset(positive, 0, <size_t>n_features * MAX_BINS * sizeof(int64_t))
    if n_features == GROUP and n >= 4 * MAX_BINS:
        add_group_histograms(codes, stride, weight, 0, n_negative, negative)
        add_group_histograms(codes, stride, weight, n_negative, n, positive)
        return
    for f in range(n_features):
        add_histogram(codes + f * stride, weight, 0, n_negative, negative + f * MAX_BINS)
        add_histogram(codes + f * stride, weight, n_negative, n, positive + f * MAX_BINS)
