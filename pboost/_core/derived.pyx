"""Derived features: projections, separators, noisy projections, moments, and feature bundles.

X (n, d) is float64 or float32 and may have any strides.
"""
from libc.math cimport INFINITY, NAN, sqrt
from libc.string cimport memcpy, memset

from pboost._core._project cimport Projections, project, projections_of
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core._separate cimport Separators, separate, separators_of
from pboost._core.types cimport int32_t, uint64_t, uint8_t

# Projections of rows: linear combinations of a few features.
#
# Arrays: start (k + 1,), index (terms,), coefficient (terms,), fill (d,) or None, as in
# `pboost.data.node_inputs.sums`; X (n, d) float64 or float32 with any strides.

cdef enum:
    BLOCK = 64  # number of rows whose values fit into the first-level cache
    LANES = 8  # number of values that are processed together


cdef inline void row_starts(
    const Rows* X, const int32_t* rows, Py_ssize_t first, Py_ssize_t n, const char** row
) noexcept nogil:
    """Set pointers to n rows: the listed rows or, if `rows` is NULL, the rows first, first + 1, ..."""
    cdef Py_ssize_t r
    for r in range(n):
        row[r] = X.data + (first + r if rows == NULL else rows[first + r]) * X.row_stride


cdef inline void add_term(
    const Rows* X, const char** row, Py_ssize_t n, Py_ssize_t j, double coefficient,
    const double* fill, const double* center, const double* scale, double* total
) noexcept nogil:
    """Add coefficient times feature j of n rows to `total`.

    If `scale` is not NULL, the feature is standardized. `fill` replaces missing values; NULL means that
    there are none.
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
    """Compute the projections first, first + 1, ... of the listed rows. OUT out (rows, projections)."""
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
    """Compute projection `which[i]` of each listed row i. OUT out (rows,)."""
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
    """Compute a linear combination for the rows first, first + 1, ...

    It is a constant plus terms, which are added in order. Term t is coefficient[t] times feature index[t].
    fill[t] replaces its missing values. With `center` and `scale`, feature index[t] is standardized:
    center[t] is subtracted, and the difference is divided by scale[t]. OUT out: one value per row.
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


# Separators of rows: sums of stumps.
#
# Arrays: start (k + 1,), column (functions,), first (functions + 1,), edge (steps,), value (steps +
# functions,), missing (functions,) or None, as in `_separate.pxd`; X (n, d) float64 or float32 with any
# strides.

def separate_rows(
    X, const int32_t[::1] rows, const int32_t[::1] start, const int32_t[::1] column,
    const int32_t[::1] first, const double[::1] edge, const double[::1] value,
    const double[::1] missing, double[:, :] out,
):
    """Compute all separators of the listed rows. OUT out (rows, separators)."""
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


# Compute ranges and moments of the known values of features, for listed rows.
#
# Rows are read in blocks, feature by feature. Arrays: rows (n,) of X (m, d), float64 or float32 with any
# strides; OUT out: one row for each of the features first, first + 1, ...



cdef inline void load_block(
    const Rows* X, const int32_t* rows, Py_ssize_t n, Py_ssize_t j, double* x
) noexcept nogil:
    """Load feature j of n rows into a block, and fill the rest of the block with NaN."""
    cdef Py_ssize_t r
    for r in range(n):
        x[r] = read(X, X.data + rows[r] * X.row_stride, j)
    for r in range(n, BLOCK):
        x[r] = NAN


cdef inline double sum_block(const double* x) noexcept nogil:
    cdef double[LANES] lane
    cdef Py_ssize_t r, q
    for q in range(LANES):
        lane[q] = x[q]
    for r in range(1, BLOCK // LANES):
        for q in range(LANES):
            lane[q] += x[r * LANES + q]
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))


def column_ends(X, const int32_t[::1] rows, Py_ssize_t first, double[:, ::1] out):
    """Compute the range of the known values.

    OUT out (columns, 2): infinity and -infinity if all values are missing.
    """
    cdef Rows matrix = rows_of(X)
    cdef Py_ssize_t start = 0, n = rows.shape[0], size, j, r, q
    cdef double[BLOCK] x
    cdef double[LANES] least
    cdef double[LANES] most
    if not 0 <= first <= matrix.d - out.shape[0] or out.shape[1] != 2:
        raise ValueError("column_ends: arrays of different sizes")
    with nogil:
        for j in range(out.shape[0]):
            out[j, 0], out[j, 1] = INFINITY, -INFINITY
        while start < n:
            size = min(<Py_ssize_t>BLOCK, n - start)
            for j in range(out.shape[0]):
                load_block(&matrix, &rows[start], size, first + j, x)
                for q in range(LANES):
                    least[q], most[q] = out[j, 0], out[j, 1]
                for r in range(BLOCK // LANES):
                    for q in range(LANES):  # comparisons with NaN are false
                        least[q] = x[r * LANES + q] if x[r * LANES + q] < least[q] else least[q]
                        most[q] = x[r * LANES + q] if x[r * LANES + q] > most[q] else most[q]
                for q in range(LANES):
                    out[j, 0], out[j, 1] = min(out[j, 0], least[q]), max(out[j, 1], most[q])
            start += size


def column_moments(
    X, const int32_t[::1] rows, const double[::1] weight, const double[:] origin,
    const double[:] unit, Py_ssize_t first, double[:, ::1] out,
):
    """Sum w, w z and w z^2 over the known values, with z = (x - origin) / unit and row weights w.

    IN weight (n,) of the listed rows, or None for weights of 1; origin, unit (columns,). OUT out (columns,
    3).
    """
    cdef Rows matrix = rows_of(X)
    cdef Py_ssize_t start = 0, n = rows.shape[0], size, j, r
    cdef double[BLOCK] x
    cdef double[BLOCK] w
    cdef double[BLOCK] mass
    cdef double from_, by
    if (not 0 <= first <= matrix.d - out.shape[0] or out.shape[1] != 3 or origin.shape[0] != out.shape[0]
            or unit.shape[0] != out.shape[0] or (weight is not None and weight.shape[0] != n)):
        raise ValueError("column_moments: arrays of different sizes")
    out[:] = 0.0
    for r in range(BLOCK):
        w[r] = 1.0
    with nogil:
        while start < n:
            size = min(<Py_ssize_t>BLOCK, n - start)
            if weight is not None:
                for r in range(size):
                    w[r] = weight[start + r]
            for j in range(out.shape[0]):
                load_block(&matrix, &rows[start], size, first + j, x)
                from_, by = origin[j], unit[j]
                for r in range(BLOCK):
                    mass[r] = w[r] if x[r] == x[r] else 0.0
                    x[r] = (x[r] - from_) / by if x[r] == x[r] else 0.0
                out[j, 0] += sum_block(mass)
                for r in range(BLOCK):
                    mass[r] *= x[r]
                out[j, 1] += sum_block(mass)
                for r in range(BLOCK):
                    mass[r] *= x[r]
                out[j, 2] += sum_block(mass)
            start += size


# Separate two classes by a noisy projection, and search pairs of features quickly.
#
# Z (k, n): one feature per row; the first n_negative entries are of class -1. The weights (n,) are not
# negative. A row goes to the right with probability S(z), with z = (a x - threshold) / sigma. S(z) = (1 + z
# / sqrt(2 + z^2)) / 2 is the distribution function of Student's t with two degrees of freedom. It needs no
# exponential function, so results are bit-identical on every machine.

cdef enum:
    CELLS = 64

# Lower bound on the class weights in derivatives, as a fraction of the total weight.
cdef double LEAST = 1e-12
# Distances from the threshold are clipped at this multiple of the noise.
cdef double FAR = 1e100
# The cells cover this many standard deviations on both sides of the mean.
cdef double REACH = 3.0


cdef void project_columns(
    const double* Z, Py_ssize_t stride, Py_ssize_t k, const double* a, Py_ssize_t start,
    Py_ssize_t rows, double* out
) noexcept nogil:
    cdef Py_ssize_t j, r
    for r in range(rows):
        out[r] = 0.0
    for j in range(k):
        for r in range(rows):
            out[r] += a[j] * Z[j * stride + start + r]


cdef double add_product(const double* x, const double* y, Py_ssize_t rows) noexcept nogil:
    """Return the scalar product, computed as four partial sums so that it can be vectorized."""
    cdef double[4] part
    cdef Py_ssize_t r, q
    for q in range(4):
        part[q] = 0.0
    for r in range(0, rows - 3, 4):
        for q in range(4):
            part[q] += x[r + q] * y[r + q]
    for r in range(rows - rows % 4, rows):
        part[0] += x[r] * y[r]
    return (part[0] + part[1]) + (part[2] + part[3])


cdef void masses_above(
    const double* Z, const double* weight, Py_ssize_t n, Py_ssize_t k, Py_ssize_t n_negative,
    const double* a, double threshold, double sigma, double* slope, double* mass
) noexcept nogil:
    """Compute the expected class weights on the right. OUT slope (n,): weight times the derivative of S."""
    cdef double[BLOCK] z
    cdef double root, above
    cdef Py_ssize_t start, r, rows
    mass[0] = mass[1] = 0.0
    start = 0
    while start < n:
        rows = min(<Py_ssize_t>BLOCK, n - start)
        project_columns(Z, n, k, a, start, rows, z)
        for r in range(rows):
            # Beyond FAR, S is constant, and squares would overflow.
            z[r] = min(max((z[r] - threshold) / sigma, -FAR), FAR)
            root = 1.0 / sqrt(2.0 + z[r] * z[r])
            z[r] = weight[start + r] * (0.5 + 0.5 * z[r] * root)
            slope[start + r] = weight[start + r] * root * root * root / sigma
        for r in range(rows):
            mass[start + r >= n_negative] += z[r]
        start += rows


def loss(
    const double[:, ::1] Z, const double[::1] weight, Py_ssize_t n_negative,
    const double[::1] point, double sigma, double[::1] slope, double[::1] gradient,
):
    """Return the Kearns-Mansour criterion of the noisy projection, and compute its gradient.

    IN point (k + 1,): the coefficients, then the threshold; weight (n,): sums to 1; WORK slope (n,); OUT
    gradient (k + 1,).
    """
    cdef Py_ssize_t k = Z.shape[0], n = Z.shape[1], j
    cdef double[2] above
    cdef double[2] below
    cdef double[2] by_mass
    cdef double value
    cdef double[2] total
    if (weight.shape[0] != n or slope.shape[0] != n or point.shape[0] != k + 1
            or gradient.shape[0] != k + 1 or not 0 < n_negative < n or k < 1):
        raise ValueError("loss: arrays of different sizes")
    with nogil:
        total[0] = total[1] = 0.0
        for j in range(n):
            total[j >= n_negative] += weight[j]
        masses_above(&Z[0, 0], &weight[0], n, k, n_negative, &point[0], point[k], sigma,
                     &slope[0], above)
        for j in range(2):
            above[j] += LEAST
            below[j] = total[j] - above[j] + 2.0 * LEAST
        value = 2.0 * sqrt(above[0] * above[1]) + 2.0 * sqrt(below[0] * below[1])
        for j in range(2):
            by_mass[j] = sqrt(above[1 - j] / above[j]) - sqrt(below[1 - j] / below[j])
        for j in range(n):
            slope[j] *= by_mass[j >= n_negative]
        gradient[k] = 0.0
        for j in range(n):
            gradient[k] -= slope[j]
        for j in range(k):
            gradient[j] = add_product(&Z[j, 0], &slope[0], n)
    return value


def screen(
    const double[:, ::1] Z, const double[::1] weight, Py_ssize_t n_negative, const int[:, ::1] pair,
    const double[:, ::1] angle, double[::1] best, double[::1] at, int[::1] which,
):
    """Find the projection of each pair of features with the least Kearns-Mansour criterion.

    Only the given angles and the edges of equal-width cells are tried.

    IN pair (m, 2): features; angle (q, 2): cosine and sine of each angle. OUT for each pair: best (m,): the
    least criterion; at (m,): its threshold; which (m,): its angle.
    """
    cdef Py_ssize_t n = Z.shape[1], p, q, r
    cdef double[2][CELLS] cell
    cdef double scale = CELLS / (2.0 * REACH), v, score, threshold
    cdef int c
    if (weight.shape[0] != n or best.shape[0] != pair.shape[0] or at.shape[0] != pair.shape[0]
            or which.shape[0] != pair.shape[0]):
        raise ValueError("screen: arrays of different sizes")
    with nogil:
        for p in range(pair.shape[0]):
            best[p] = INFINITY
            for q in range(angle.shape[0]):
                for c in range(CELLS):
                    cell[0][c] = cell[1][c] = 0.0
                for r in range(n):
                    v = angle[q, 0] * Z[pair[p, 0], r] + angle[q, 1] * Z[pair[p, 1], r]
                    v = min(max((v + REACH) * scale, 0.0), CELLS - 1.0)
                    cell[r >= n_negative][<int>v] += weight[r]
                score = least_cut(cell[0], cell[1], &c)
                if score < best[p]:
                    best[p] = score
                    which[p] = <int>q
                    at[p] = (c + 1) / scale - REACH


cdef double least_cut(const double* negative, const double* positive, int* at) noexcept nogil:
    """Return the least criterion of a split between two cells. OUT at: the last cell on the left."""
    cdef double n = 0.0, p = 0.0, below_n = 0.0, below_p = 0.0, value, least = INFINITY
    cdef int c
    for c in range(CELLS):
        n += negative[c]
        p += positive[c]
    at[0] = 0
    for c in range(CELLS - 1):
        below_n += negative[c]
        below_p += positive[c]
        value = (2.0 * sqrt(below_n * below_p)
                 + 2.0 * sqrt(max(n - below_n, 0.0) * max(p - below_p, 0.0)))
        if value < least:
            least, at[0] = value, c
    return least


# Store bin codes in lanes for boosting rounds, with one byte per row and lane. See `boost`.
#
# A lane stores a single feature or a bundle of features. Features with two bins can be bundled if, for a
# chosen bin of each, no row is in the chosen bins of two features. In the lane of a bundle, the code of a
# row is the number of the feature whose chosen bin contains the row, counted from 1. If there is no such
# feature, the code is 0.

cdef enum:
    OPEN = 16  # largest number of open bundles, to which features can be added
    MOST = 255  # largest number of features of a bundle

#: The number of lanes in a group, and the number of row sets in the work array of `bundle`.
GROUP_LANES, WORK_SETS = LANES, OPEN + 2

cdef struct Bundle:
    int32_t first, size
    uint64_t* rows  # bits of the rows that are in a chosen bin of the bundle


cdef Py_ssize_t pack(const uint8_t* codes, Py_ssize_t n, uint64_t* bits) noexcept nogil:
    """Pack codes 0 and 1 into bits in any order, padded with 0. Return the number of ones."""
    cdef uint64_t eight, word
    cdef Py_ssize_t i, w, k, count = 0
    for w in range((n + 63) // 64):
        word = 0
        for k in range(min(8, (n - 64 * w + 7) // 8)):
            i, eight = 64 * w + 8 * k, 0
            memcpy(&eight, codes + i, min(n - i, 8))
            count += <Py_ssize_t>(eight * <uint64_t>0x0101010101010101 >> 56)
            word |= (eight * <uint64_t>0x0102040810204080 >> 56) << 8 * k
        bits[w] = word
    return count


cdef inline uint64_t flip(bint is_other) noexcept nogil:
    return ~<uint64_t>0 if is_other else 0


cdef bint exclude(
    const uint64_t* a, bint other_a, const uint64_t* b, bint other_b, const uint64_t* all_,
    Py_ssize_t words
) noexcept nogil:
    """Return whether two sets have no row in common; `other_a` and `other_b` select the complements."""
    cdef Py_ssize_t w
    for w in range(words):
        if (a[w] ^ flip(other_a)) & (b[w] ^ flip(other_b)) & all_[w]:
            return False
    return True


cdef int way_to_join(
    const Bundle* bundle, const uint64_t* own, const uint64_t* all_, Py_ssize_t words
) noexcept nogil:
    """Return the bin by which a feature can be bundled: its rarer bin (0), the other bin (1), or none (-1).

    2 is added if the only feature of the bundle must change its chosen bin.
    """
    cdef int way
    if bundle.size < MOST:
        for way in range(4 if bundle.size == 1 else 2):
            if exclude(bundle.rows, way >> 1, own, way & 1, all_, words):
                return way
    return -1


cdef void join(
    Bundle* bundle, const uint64_t* own, int way, const uint64_t* all_, Py_ssize_t words
) noexcept nogil:
    cdef Py_ssize_t w
    for w in range(words):
        bundle.rows[w] = ((bundle.rows[w] ^ flip(way >> 1)) | (own[w] ^ flip(way & 1))) & all_[w]
    bundle.size += 1


def bundle(
    const uint8_t[:, ::1] codes, const uint8_t[::1] wanted, int32_t[::1] first, uint8_t[::1] code,
    uint8_t[::1] side, uint64_t[:, ::1] work
):
    """Bundle features in order; each is added to the most recently changed bundle that can take it.

    The chosen bin of a feature is its rarer bin if possible, and otherwise the other bin. The only feature
    of a bundle may change its chosen bin.

    IN codes (d, n), wanted (d,): 1 for features whose codes are 0 or 1; OUT first (d,): the first feature
    of the bundle; code (d,): the number in the bundle, 0 for features outside of bundles; side (d,): the
    chosen bin; WORK (WORK_SETS, ceil(n / 64)).
    """
    cdef Py_ssize_t d = codes.shape[0], n = codes.shape[1], words = work.shape[1], j, k, w, last = 0
    cdef Bundle[OPEN] some
    cdef Bundle at
    cdef uint64_t* own
    cdef uint64_t* all_
    cdef uint8_t[64] ones
    cdef int way
    if (wanted.shape[0] != d or first.shape[0] != d or code.shape[0] != d or side.shape[0] != d or n < 1
            or work.shape[0] != OPEN + 2 or words != (n + 63) // 64):
        raise ValueError("bundle: arrays of different sizes")
    with nogil:
        own, all_ = &work[OPEN, 0], &work[OPEN + 1, 0]
        memset(all_, 0xFF, sizeof(uint64_t) * words)
        memset(ones, 1, 64)
        pack(ones, n - 64 * (words - 1), &all_[words - 1])
        for k in range(OPEN):
            some[k].rows = &work[k, 0]
        for j in range(d):
            first[j], code[j], side[j] = <int32_t>j, 0, 0
            if not wanted[j]:
                continue
            side[j] = 2 * pack(&codes[j, 0], n, own) <= n
            for w in range(words):
                own[w] ^= flip(not side[j])
            k, way = last - 1, -1
            while k >= 0:
                way = way_to_join(&some[k], own, all_, words)
                if way >= 0:
                    break
                k -= 1
            if way < 0:
                k, way = 0 if last == OPEN else last, 0
                last += last < OPEN
                some[k].first, some[k].size = <int32_t>j, 0
                memset(some[k].rows, 0, sizeof(uint64_t) * words)
            at = some[k]
            join(&at, own, way, all_, words)
            side[j] ^= way & 1
            side[at.first] ^= way >> 1
            first[j] = at.first
            if at.size > 1:
                code[at.first], code[j] = 1, <uint8_t>at.size
            while k < last - 1:
                some[k] = some[k + 1]
                k += 1
            some[last - 1] = at


def interleave(
    const uint8_t[:, ::1] codes, const int32_t[::1] lane, const uint8_t[::1] code, const uint8_t[::1] side,
    uint8_t[:, :, ::1] groups, Py_ssize_t first, Py_ssize_t last
):
    """Store the codes of the rows first..last-1 in groups of eight lanes, padded with 0.

    IN codes (d, n); lane, code, side (d,): place of each feature, see `bundle`; OUT groups (k, n, 8).
    """
    cdef Py_ssize_t d = codes.shape[0], n = codes.shape[1], j, i, start, stop
    cdef const uint8_t* column
    cdef uint8_t* group
    cdef uint8_t number, chosen
    if (lane.shape[0] != d or code.shape[0] != d or side.shape[0] != d or groups.shape[1] != n
            or groups.shape[2] != LANES
            or not 0 <= first <= last <= n):
        raise ValueError("interleave: arrays of different sizes")
    for j in range(d):
        if not 0 <= lane[j] < LANES * groups.shape[0]:
            raise ValueError("interleave: a lane that is not there")
    with nogil:
        for start in range(first, last, 1024):
            stop = min(last, start + 1024)
            for j in range(groups.shape[0]):
                memset(&groups[j, start, 0], 0, LANES * (stop - start))
            for j in range(d):
                column, group = &codes[j, 0], &groups[lane[j] // LANES, 0, 0] + lane[j] % LANES
                number, chosen = code[j], side[j]
                if number == 0:
                    for i in range(start, stop):
                        group[LANES * i] = column[i]
                else:
                    for i in range(start, stop):
                        group[LANES * i] |= number if column[i] == chosen else 0
