"""Sorted orders and rank bins of features, bins of all rows computed from a sample, and rows by class."""
from libc.math cimport INFINITY, ceil
from libc.string cimport memchr, memcpy, memset

from pboost._core._insertion_sort cimport FEW, insertion_sort
from pboost._core._histogram cimport GROUP, load8
from pboost._core._rng cimport GOLDEN, mix
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core.types cimport (
    HOLES, LEVELS, MAX_BINS, ROW_MASK, TIED, int32_t, int64_t, is_tied, row_of, uint32_t,
    uint64_t, uint8_t,
)

# Sorted orders and rank-bin codes of features.
#
# A feature is sorted once, by a least-significant-digit radix sort of the upper 32 bits of order-preserving
# integer keys. The sort is stable, so ties are in row order. Rows whose upper 32 bits agree are then sorted
# by the lower 32 bits. The time is O(n) per feature: three passes for most data, and one pass for at most
# two distinct values.
#
# Arrays: `columns` (k, n): one feature per row. `order` (k, n): int32 row numbers, with the sign bit set if
# the value equals the previous one. `bin_start` (k, b + 1): first position of each bin in the sorted order,
# then n; b is the maximum number of bins. Missing values are NaN. They come last, in row order, and are
# marked as ties of one another. Their code is the number of bins.

cdef enum:
    DIGIT_BITS = 11
cdef enum:
    DIGITS = 2048


cdef inline uint64_t ordered_bits(double value) noexcept nogil:
    """Return an integer that sorts like the double; both zeros give the same integer."""
    cdef uint64_t bits
    value = value + 0.0
    memcpy(&bits, &value, 8)
    return ~bits if bits >> 63 else bits | (<uint64_t>1 << 63)


cdef void sort_by_upper_half(uint64_t* items, uint64_t* spare, Py_ssize_t n) noexcept nogil:
    """Sort items by their upper 32 bits. The sort is stable, and `items` receives the result."""
    cdef uint32_t[3][DIGITS] count
    cdef Py_ssize_t i
    cdef int digit, shift
    cdef uint32_t total, here
    cdef uint64_t* source = items
    cdef uint64_t* target = spare
    cdef uint64_t* swap
    if n <= FEW:
        # The lower half is the row number, so sorting whole items is stable.
        insertion_sort(items, n)
        return
    memset(count, 0, sizeof(count))
    for i in range(n):
        count[0][(items[i] >> 32) & (DIGITS - 1)] += 1
        count[1][(items[i] >> 43) & (DIGITS - 1)] += 1
        count[2][items[i] >> 54] += 1
    for digit in range(3):
        shift = 32 + DIGIT_BITS * digit
        if count[digit][(source[0] >> shift) & (DIGITS - 1)] == <uint32_t>n:
            continue  # all items have the same digit
        total = 0
        for i in range(DIGITS):
            here = count[digit][i]
            count[digit][i] = total
            total += here
        for i in range(n):
            here = <uint32_t>((source[i] >> shift) & (DIGITS - 1))
            target[count[digit][here]] = source[i]
            count[digit][here] += 1
        swap = source
        source = target
        target = swap
    if source != items:
        memcpy(items, source, <size_t>n * sizeof(uint64_t))


cdef void sort_run_by_lower_half(
    const double* values, uint64_t* run, uint64_t* spare, Py_ssize_t n
) noexcept nogil:
    """Sort a run of rows whose values agree in the upper 32 bits."""
    cdef Py_ssize_t i
    cdef uint64_t first = ordered_bits(values[run[0] & ROW_MASK])
    cdef uint64_t differs = 0
    for i in range(1, n):
        differs |= ordered_bits(values[run[i] & ROW_MASK]) ^ first
    if not differs:
        return
    for i in range(n):
        run[i] = (ordered_bits(values[run[i] & ROW_MASK]) << 32) | (run[i] & ROW_MASK)
    sort_by_upper_half(run, spare, n)


cdef void list_run(
    const double* values, const uint64_t* run, Py_ssize_t n, int32_t* order
) noexcept nogil:
    """Write the rows of a run to the sorted order, and mark rows with the same value as the previous one.
    """
    cdef Py_ssize_t i
    order[0] = <int32_t>(run[0] & ROW_MASK)
    for i in range(1, n):
        order[i] = <int32_t>(run[i] & ROW_MASK)
        if values[order[i]] == values[row_of(order[i - 1])]:
            order[i] |= TIED


cdef void sort_items(
    const double* values, Py_ssize_t n, int32_t* order, uint64_t* items, uint64_t* spare
) noexcept nogil:
    """Write the row numbers of n sorted items to the sorted order.

    An item consists of the upper half of a value and a row number.
    """
    cdef Py_ssize_t i, start = 0
    sort_by_upper_half(items, spare, n)
    for i in range(1, n + 1):
        if i < n and (items[i] >> 32) == (items[start] >> 32):
            continue
        order[start] = <int32_t>(items[start] & ROW_MASK)
        if i - start > 1:
            sort_run_by_lower_half(values, items + start, spare, i - start)
            list_run(values, items + start, i - start, order + start)
        start = i


cdef bint sort_two(const double* values, Py_ssize_t n, int32_t* order) noexcept nogil:
    """Sort a feature with at most two distinct values.

    Return False if the feature has more distinct values or an infinite value.
    """
    cdef double first = values[0], other = first, low
    cdef Py_ssize_t i = 1, start, stop = 0, n_low = 0
    cdef Py_ssize_t[2] place
    cdef bint is_more = False
    while i < n and values[i] == first:
        i += 1
    if i < n:
        other = values[i]
    low = min(first, other)
    while stop < n:  # most features have three distinct values among the first rows
        start, stop = stop, min(n, 2 * stop + 16)
        for i in range(start, stop):
            is_more |= (values[i] != first) & (values[i] != other)
            n_low += values[i] == low
        if is_more:
            return False
    if (first - first) + (other - other) != 0.0:  # a value is infinite
        return False
    place[0], place[1] = 0, n_low
    for i in range(n):
        start = values[i] != low
        order[place[start]] = <int32_t>i | TIED
        place[start] += 1
    order[0] &= ROW_MASK
    if n_low < n:
        order[n_low] &= ROW_MASK
    return True


cdef Py_ssize_t sort_one(
    const double* values, Py_ssize_t n, int32_t* order, uint64_t* items, uint64_t* spare
) noexcept nogil:
    """Sort one feature and return its number of missing values, or -1 if it has an infinite value."""
    cdef Py_ssize_t i, known = 0, missing = 0
    cdef uint64_t bad = 0
    if sort_two(values, n, order):
        return 0
    for i in range(n):
        bad |= (values[i] - values[i] != 0.0)
        items[i] = ((ordered_bits(values[i]) >> 32) << 32) | <uint64_t>i
    if not bad:
        sort_items(values, n, order, items, spare)
        return 0
    for i in range(n):
        if values[i] - values[i] == 0.0:
            items[known] = items[i]
            known += 1
        elif values[i] == values[i]:
            return -1
        else:
            # Sort only the known values; the rows with missing values are appended.
            order[n - 1 - missing] = <int32_t>i
            missing += 1
    for i in range(missing // 2):
        order[known + i], order[n - 1 - i] = order[n - 1 - i], order[known + i]
    for i in range(known + 1, n):
        order[i] |= TIED
    if known:
        sort_items(values, known, order, items, spare)
    return missing


def sort_columns(
    const double[:, ::1] columns,
    int32_t[:, ::1] order,
    uint64_t[::1] items,
    uint64_t[::1] spare,
    int32_t[::1] n_missing=None,
):
    """Sort each feature of `columns` (k, n) and write its row numbers to `order` (k, n).

    IN columns; OUT order, n_missing (k,): number of missing values per feature; WORK items, spare (n,).
    Returns the index of the first feature with an infinite value or, without `n_missing`, a missing value.
    Returns -1 if there is no such feature.
    """
    cdef Py_ssize_t k = columns.shape[0], n = columns.shape[1], j, missing = 0
    cdef bint takes_missing = n_missing is not None
    if (order.shape[0] != k or order.shape[1] != n or items.shape[0] < n or spare.shape[0] < n
            or (takes_missing and n_missing.shape[0] != k)):
        raise ValueError("sort_columns: arrays of different sizes")
    if n == 0 or k == 0:
        return -1
    with nogil:
        for j in range(k):
            missing = sort_one(&columns[j, 0], n, &order[j, 0], &items[0], &spare[0])
            if missing < 0 or (missing and not takes_missing):
                break
            if takes_missing:
                n_missing[j] = <int32_t>missing
        else:
            j = -1
    return j


def gather_columns(X, const int32_t[::1] rows, Py_ssize_t first, double[:, ::1] columns):
    """Copy the features first, first + 1, ... of the rows `rows` of X to `columns`."""
    cdef Rows all = rows_of(X)
    cdef Py_ssize_t k = columns.shape[0], n = rows.shape[0], i, j
    cdef const char* row
    if columns.shape[1] != n or first + k > all.d:
        raise ValueError("gather_columns: arrays of different sizes")
    with nogil:
        for i in range(n):
            row = all.data + rows[i] * all.row_stride
            for j in range(k):
                columns[j, i] = read(&all, row, first + j)


cdef Py_ssize_t count_distinct(
    const int32_t* order, Py_ssize_t n, Py_ssize_t limit
) noexcept nogil:
    """Count the distinct values, up to `limit` + 1."""
    cdef Py_ssize_t i, distinct = 1
    for i in range(1, n):
        distinct += not is_tied(order[i])
        if distinct > limit:
            break
    return distinct


cdef Py_ssize_t bin_end(
    const int32_t* order, Py_ssize_t n, Py_ssize_t start, double want, const int64_t* weight
) noexcept nogil:
    """Return the end of a bin.

    This is the first position between different values at which the weight of the bin is at least ``want``.
    """
    cdef Py_ssize_t i
    cdef int64_t held = 0
    if weight == NULL:
        i = min(n, start + max(1, <Py_ssize_t>ceil(want)))
    else:
        i = start
        while i < n and (i == start or <double>held < want):
            held += weight[row_of(order[i])]
            i += 1
            while i < n and is_tied(order[i]):
                held += weight[row_of(order[i])]
                i += 1
    while i < n and is_tied(order[i]):
        i += 1
    return i


cdef int bin_one(
    const int32_t* order, Py_ssize_t n, Py_ssize_t max_bins, const int64_t* weight,
    int64_t total, int32_t* starts
) noexcept nogil:
    """Divide a sorted feature into at most `max_bins` bins and return their number."""
    cdef Py_ssize_t i, b = 0, start = 0, end
    cdef int64_t remaining = total
    cdef double want
    starts[0] = 0
    if count_distinct(order, n, max_bins) <= max_bins:
        for i in range(1, n):
            if not is_tied(order[i]):
                b += 1
                starts[b] = <int32_t>i
        starts[b + 1] = <int32_t>n
        return <int>(b + 1)
    while start < n:
        if b == max_bins - 1:
            end = n
        else:
            # The tolerance prevents rounding errors from adding another value to a bin.
            want = <double>remaining / (max_bins - b) * (1.0 - 1e-9)
            end = bin_end(order, n, start, want, weight)
        if weight == NULL:
            remaining -= end - start
        else:
            for i in range(start, end):
                remaining -= weight[row_of(order[i])]
        b += 1
        starts[b] = <int32_t>end
        start = end
    return <int>b


def bin_columns(
    const int32_t[:, ::1] order, Py_ssize_t max_bins, const int64_t[::1] weight,
    int32_t[:, ::1] bin_start, int32_t[::1] n_bins, uint8_t[:, ::1] codes,
    const int32_t[::1] n_missing=None,
):
    """Divide sorted features into rank bins, and compute the bin code of each row.

    IN order (k, n), weight (n,) or empty for equal weights; OUT bin_start (k, b + 1), with b >= max(1,
    min(max_bins, n)); n_bins (k,), codes (k, n). IN n_missing (k,): number of missing values per feature,
    if there are any. Then at most 255 bins remain, because missing values have the next code. `bin_start`
    gets one more entry: the end of the known rows, then n.
    """
    cdef Py_ssize_t k = order.shape[0], n = order.shape[1], j, i, known = n, most = max_bins
    cdef bint has_missing = n_missing is not None
    cdef int b
    cdef const int64_t* weights = NULL
    cdef int64_t total = n, of_known
    if (bin_start.shape[0] != k
            or bin_start.shape[1] <= min(
                min(max_bins, max(n, <Py_ssize_t>1)) + has_missing, <Py_ssize_t>MAX_BINS)
            or n_bins.shape[0] != k or codes.shape[0] != k or codes.shape[1] != n
            or (has_missing and n_missing.shape[0] != k) or not 2 <= max_bins <= MAX_BINS):
        raise ValueError("bin_columns: arrays of different sizes, or max_bins out of range")
    if weight.shape[0]:
        if weight.shape[0] != n:
            raise ValueError("bin_columns: weight has another length")
        weights = &weight[0]
    with nogil:
        if weights != NULL:
            total = 0
            for i in range(n):
                total += weights[i]
        for j in range(k):
            if has_missing:
                known, most = n - n_missing[j], max_bins
            if known == n:
                n_bins[j] = bin_one(&order[j, 0] if n else NULL, n, most, weights, total,
                                    &bin_start[j, 0])
            else:
                of_known = known
                if weights != NULL:
                    of_known = total
                    for i in range(known, n):
                        of_known -= weights[row_of(order[j, i])]
                n_bins[j] = bin_one(&order[j, 0], known, min(most, MAX_BINS - 1), weights,
                                    of_known, &bin_start[j, 0])
                bin_start[j, n_bins[j] + 1] = <int32_t>n
                for i in range(known, n):
                    codes[j, row_of(order[j, i])] = <uint8_t>n_bins[j]
            for b in range(n_bins[j]):
                for i in range(bin_start[j, b], bin_start[j, b + 1]):
                    codes[j, row_of(order[j, i])] = <uint8_t>b


def select_rows(
    const int32_t[:, ::1] order, const int32_t[::1] renumber, int32_t[:, ::1] selected
):
    """Select the rows with renumber >= 0 from each sorted feature and give them these new numbers.

    IN order (k, n), renumber (n,); OUT selected (k, m), with m the number of selected rows.
    """
    cdef Py_ssize_t k = order.shape[0], n = order.shape[1], m = selected.shape[1], i, j, out
    cdef int32_t row, tie
    if renumber.shape[0] != n or selected.shape[0] != k:
        raise ValueError("select_rows: arrays of different sizes")
    with nogil:
        for j in range(k):
            out = 0
            tie = 0
            for i in range(n):
                tie &= order[j, i]  # only the sign bit, the tie mark, is used
                row = renumber[row_of(order[j, i])]
                if row < 0:
                    continue
                if out == m:
                    break
                selected[j, out] = row | (tie & TIED)
                out += 1
                tie = -1


cdef int check_one(
    const int32_t* order, const double* values, const int32_t* starts, Py_ssize_t n,
    Py_ssize_t bins, Py_ssize_t most, const uint8_t* codes, uint8_t* seen, int special
) noexcept nogil:
    """Check one sorted feature and return the error code described in `check_sorted`."""
    cdef Py_ssize_t i, b, known = n
    cdef int32_t row
    cdef int out_of_order = 0, in_other_bin = 0
    cdef double value, before = -INFINITY
    if special & HOLES:
        if not 1 <= bins < most or starts[bins + 1] != n:
            return 3
        known = starts[bins]
    if not 1 <= bins <= most or starts[0] != 0 or starts[bins] != known:
        return 3
    for b in range(bins):
        # Bins may be empty if the feature is categorical or has no known values.
        if not 0 <= starts[b] <= starts[b + 1] <= n or (
                starts[b] == starts[b + 1] and known and not special & LEVELS):
            return 3
    memset(seen, 0, <size_t>n)
    for i in range(n):
        row = row_of(order[i])
        if row >= n:
            return 1
        seen[row] = 1
    if memchr(seen, 0, <size_t>n) != NULL:
        return 1
    for b in range(bins):
        if b and starts[b] < starts[b + 1] and is_tied(order[starts[b]]):
            return 3  # error: equal values are in different bins
        for i in range(starts[b], starts[b + 1]):
            row = row_of(order[i])
            value = values[row]
            # avoid branches, because half of the predictions could be wrong
            out_of_order |= <int>(value < before) | (<int>(order[i] < 0) ^ <int>(value == before))
            in_other_bin |= codes[row] ^ <int>b
            if special & LEVELS:
                in_other_bin |= value != <double>b
            before = value
    for i in range(known, n):
        row = row_of(order[i])
        out_of_order |= <int>(values[row] == values[row]) | <int>(is_tied(order[i]) != (i > known))
        in_other_bin |= codes[row] ^ <int>bins
    return 2 if out_of_order else 4 if in_other_bin else 0


def rank_rows(const int32_t[:, ::1] order, int32_t[:, ::1] rank):
    """Count the distinct values below the value of each row. IN order (k, n); OUT rank (k, n)."""
    cdef Py_ssize_t j, i
    cdef int32_t below
    with nogil:
        for j in range(order.shape[0]):
            below = -1
            for i in range(order.shape[1]):
                below += not is_tied(order[j, i])
                rank[j, row_of(order[j, i])] = below


def check_sorted(
    const int32_t[:, ::1] order, const double[:, ::1] columns, const int32_t[:, ::1] bin_start,
    const int32_t[::1] n_bins, const uint8_t[:, ::1] codes, uint8_t[::1] seen,
    const uint8_t[::1] special=None,
):
    """Check sorted features that come from a file or from the caller, and return an error code.

    IN columns (k, n): the values; special (k,): kinds of features, optional; WORK seen (n,). The codes are:
    0: no error; 1: `order` is not a permutation of the rows; 2: `order` does not sort the values, or tie
    marks are wrong; 3: `bin_start` does not divide the rows into `n_bins` bins; 4: `codes` do not match the
    bins.
    """
    cdef Py_ssize_t k = order.shape[0], n = order.shape[1], j
    cdef int wrong = 0
    if (bin_start.shape[0] != k or not 2 <= bin_start.shape[1] <= MAX_BINS + 1
            or n_bins.shape[0] != k or columns.shape[0] != k or columns.shape[1] != n or codes.shape[0] != k
            or codes.shape[1] != n or n == 0 or seen.shape[0] != n
            or (special is not None and special.shape[0] != k)):
        raise ValueError("check_sorted: arrays of different sizes")
    with nogil:
        for j in range(k):
            wrong = check_one(
                &order[j, 0], &columns[j, 0], &bin_start[j, 0], n, n_bins[j],
                bin_start.shape[1] - 1, &codes[j, 0], &seen[0],
                0 if special is None else special[j]
            )
            if wrong:
                break
    return wrong


# Compute the bins of all rows from the bin edges of a sample. Rows are selected for the sample by a hash.
#
# Arrays: `columns` (k, m): one feature per row, for m of the rows; `codes` (k, n): the bins of all rows.

cdef extern from "bin_simd.h":
    ctypedef void (*BinKernel "pboost_bin_kernel")(
        const double* x, Py_ssize_t n, const double* edge, int levels, int missing, uint8_t* code
    ) noexcept nogil
    BinKernel choose_bin "pboost_choose_bin"(int level) noexcept nogil

cdef BinKernel bin_kernel = choose_bin(2)


def use_simd_level(int level):
    """Choose the SIMD instructions for tests.

    The level is 0 for baseline, or 1 for AVX2 if supported. Both give the same bins.
    """
    global bin_kernel
    bin_kernel = choose_bin(level)


cdef inline uint64_t content_bits(double value) noexcept nogil:
    """Reduce a value to 32 bits for hashing. Both zeros give the same result, and so do all NaNs."""
    cdef uint64_t bits
    value = value + 0.0
    memcpy(&bits, &value, 8)
    if value != value:
        bits = <uint64_t>0x7FF8 << 48
    return bits ^ (bits >> 32)


def hash_rows(X, const int32_t[::1] rows, uint64_t[::1] key, uint64_t[::1] hashed):
    """Hash the contents of rows; the hashes are evenly distributed.

    IN X (n, d), rows (m,); WORK key (d,); OUT hashed (m,). Returns True if a value is missing.
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
    """Count the values of each bin, and update its smallest and largest value."""
    cdef Py_ssize_t i, b
    cdef double here
    for i in range(m):
        b = code[i]
        here = x[i] + 0.0  # -0.0 becomes 0.0
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
    """Compute the bins of the rows first, first + 1, ..., and update the range and the count of each bin.

    IN columns (k, m), edge (k, 255) with infinity after the last edge, n_bins (k,), which is also the code
    of missing values; OUT codes; INOUT lower, upper, count (k, 256).
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


# Sort rows by class, copy their bin codes in this order, and count the rows below each bin.
#
# Arrays: `codes` (k, n): one feature per row, as made by `bin_columns`.

cdef extern from *:
    """
    /* Store eight codes at once; on little-endian machines compilers turn this into a plain store. */
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
    """Copy the bin codes of the listed rows for `width` features."""
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
    """Count the codes below each of 0, 1, ..., `bins`."""
    cdef int32_t[2][MAX_BINS] count  # separate counts for even and odd positions are faster
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
    """List the rows with kind `wanted`, in order. IN kind (n,); OUT rows (m,), one entry per listed row."""
    cdef Py_ssize_t n = kind.shape[0], m = rows.shape[0], i = 0, found = 0
    with nogil:
        while i < n and found < m:  # to avoid a branch, write each row but count only matches
            rows[found] = <int32_t>i
            found += kind[i] == wanted
            i += 1
    if found < m:
        raise ValueError("list_rows: fewer rows than there are places")


def select_codes(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, uint8_t[:, ::1] selected,
    int32_t[:, ::1] bin_start=None,
):
    """Select the codes of the listed rows and, with `bin_start`, count the rows below each bin.

    IN codes (k, n), rows (m,); OUT selected (k, m); bin_start (k, b + 1), as for sorted features, for codes
    below b.
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
            if j + GROUP <= k:  # a compile-time constant
                select_group(&codes[j, 0], n, &rows[0], m, GROUP, &selected[j, 0])
            else:
                select_group(&codes[j, 0], n, &rows[0], m, k - j, &selected[j, 0])
            for i in range(j, min(j + GROUP, k)):
                if counts:
                    count_codes(&selected[i, 0], m, bin_start.shape[1] - 1, &bin_start[i, 0])
            j += GROUP
    if outside:
        raise IndexError(f"select_codes: a row is not in 0..{n - 1}")
