"""Rows by class; their bin codes in that order, and how many rows lie below each bin.

Arrays: `codes` (k, n), one column per row, as made by sort.pyx.
"""
from libc.string cimport memset

from pboost._core._histogram cimport GROUP, load8
from pboost._core.types cimport MAX_BINS, int32_t, uint8_t, uint64_t

cdef extern from *:
    """
    /* Eight codes in one store: a plain one, once compiled for a little-endian machine. */
    static inline void pboost_store8(uint8_t *p, uint64_t eight) {
        for (int k = 0; k < 8; k++)
            p[k] = (uint8_t)(eight >> (8 * k));
    }
    """
    void store8 "pboost_store8"(uint8_t* p, uint64_t eight) noexcept nogil


cdef inline void select_group(
    const uint8_t* codes, Py_ssize_t n, const int32_t* rows, Py_ssize_t m, Py_ssize_t width,
    uint8_t* selected,
) noexcept nogil:
    """Copy the codes of the listed rows of `width` columns."""
    cdef Py_ssize_t i = 0, j
    cdef uint64_t eight
    cdef int k
    while i + 8 <= m:
        for j in range(width):
            eight = 0
            for k in range(8):
                eight |= <uint64_t>codes[j * n + rows[i + k]] << (8 * k)
            store8(selected + j * m + i, eight)
        i += 8
    while i < m:
        for j in range(width):
            selected[j * m + i] = codes[j * n + rows[i]]
        i += 1


cdef inline void count_codes(
    const uint8_t* codes, Py_ssize_t n, Py_ssize_t bins, int32_t* below
) noexcept nogil:
    """Number of codes below 0, 1, ..., bins."""
    cdef int32_t[2][MAX_BINS] count  # of even and odd places, that one need not wait for the other
    cdef Py_ssize_t i = 0, b
    cdef uint64_t eight
    cdef int k
    memset(count, 0, sizeof(count))
    while i + 8 <= n:
        eight = load8(codes + i)
        for k in range(8):
            count[k & 1][(eight >> (8 * k)) & 255] += 1
        i += 8
    while i < n:
        count[0][codes[i]] += 1
        i += 1
    below[0] = 0
    for b in range(bins):
        below[b + 1] = below[b] + count[0][b] + count[1][b]


def list_rows(const uint8_t[::1] kind, int wanted, int32_t[::1] rows):
    """List the rows of one kind, in their order. IN kind (n,); OUT rows (m,): as many as there are."""
    cdef Py_ssize_t n = kind.shape[0], m = rows.shape[0], i = 0, found = 0
    with nogil:
        while i < n and found < m:  # stored in any case, and kept if it is one: no branch
            rows[found] = <int32_t>i
            found += kind[i] == wanted
            i += 1
    if found < m:
        raise ValueError("list_rows: fewer rows than there are places")


def select_codes(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, uint8_t[:, ::1] selected,
    int32_t[:, ::1] bin_start=None,
):
    """Keep the codes of the listed rows; if it is wanted, count the rows below each bin.

    IN codes (k, n), rows (m,); OUT selected (k, m), bin_start (k, b + 1), as if
    sorted, for codes below b.
    """
    cdef Py_ssize_t k = codes.shape[0], n = codes.shape[1], m = rows.shape[0], i, j = 0
    cdef bint counts = bin_start is not None, outside = False
    if (selected.shape[0] != k or selected.shape[1] != m
            or (counts and (bin_start.shape[0] != k or not 2 <= bin_start.shape[1] <= MAX_BINS + 1))):
        raise ValueError("select_codes: arrays of different sizes")
    with nogil:
        for i in range(m):
            outside |= not 0 <= rows[i] < n
        while j < k and m and not outside:
            if j + GROUP <= k:  # a number that the compiler knows
                select_group(&codes[j, 0], n, &rows[0], m, GROUP, &selected[j, 0])
            else:
                select_group(&codes[j, 0], n, &rows[0], m, k - j, &selected[j, 0])
            for i in range(j, min(j + GROUP, k)):
                if counts:
                    count_codes(&selected[i, 0], m, bin_start.shape[1] - 1, &bin_start[i, 0])
            j += GROUP
    if outside:
        raise IndexError(f"select_codes: a row is not in 0..{n - 1}")
