"""AdaBoost.MH: each row has a weight for each of J labels, and a stump is judged by all of them.

In a tree, rows of a class at an exit have been multiplied by one factor for each label since its root.
So a node needs sums of the weights at the root only: for each bin of a column and each label the weight
T of all rows and P of the rows of the label. They are integers: sums in any order, and differences, are
exact. A label whose P or T - P is 0 at a node adds 0 to every score and is left out.

Arrays: codes (d, n), bin of each row in each column; rows (m,), those at a node; weight (m, k), in fixed
point, for the k labels that count there, and own (m,), which of them is the row's own, -1 if none is;
sums (d, bins, 2 * k + 1): for each bin T, P and the number of rows.
"""
from libc.math cimport INFINITY, sqrt

from pboost._core._fixed cimport LEAST_WEIGHT, rounded
from pboost._core.types cimport HOLES, LEVELS, int32_t, int64_t, uint8_t

cdef enum:
    GROUP = 4  # columns whose sums one row is added to while its weights are at hand


cdef inline void add_row(
    int64_t* at, const int64_t* weight, Py_ssize_t k, int32_t own
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        at[j] += weight[j]
    if own >= 0:
        at[k + own] += weight[own]
    at[2 * k] += 1


def add_up(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, const int64_t[:, ::1] weight,
    const int32_t[::1] own, int64_t[:, :, ::1] sums, Py_ssize_t first, Py_ssize_t last,
):
    """Fill the sums of columns first..last-1."""
    cdef Py_ssize_t m = rows.shape[0], k = weight.shape[1], n = codes.shape[1], f, stop, r, j, b
    cdef Py_ssize_t width = 2 * k + 1, row, bins = sums.shape[1]
    cdef int64_t* here
    cdef int32_t mine
    if (not 0 <= first <= last <= codes.shape[0] or sums.shape[0] != codes.shape[0]
            or weight.shape[0] != m or own.shape[0] != m or sums.shape[2] != width):
        raise ValueError("add_up: arrays of different sizes")
    with nogil:
        f = first
        while f < last:
            stop = min(f + GROUP, last)
            for j in range(f, stop):
                here = &sums[j, 0, 0]
                for b in range(bins * width):
                    here[b] = 0
            for r in range(m):
                row, mine = rows[r], own[r]
                for j in range(f, stop):
                    add_row(&sums[j, codes[j, row], 0], &weight[r, 0] if k else NULL, k, mine)
            f = stop


def total(
    const int64_t[:, ::1] fixed, const int32_t[::1] label, const int32_t[::1] rows, int64_t[::1] all_,
    int64_t[::1] positive,
):
    """Weight of the listed rows by label: OUT all_ (J,), of all, and positive (J,), of the label's own."""
    cdef Py_ssize_t r, l, row, J = fixed.shape[1]
    if all_.shape[0] != J or positive.shape[0] != J or label.shape[0] != fixed.shape[0]:
        raise ValueError("total: arrays of different sizes")
    with nogil:
        for l in range(J):
            all_[l] = positive[l] = 0
        for r in range(rows.shape[0]):
            row = rows[r]
            for l in range(J):
                all_[l] += fixed[row, l]
            positive[label[row]] += fixed[row, label[row]]


# What cuts of a node are judged by. In units of the weights at the root; `both` are roots of the
# products of the two factors of each label.
cdef struct Judge:
    Py_ssize_t k
    const int64_t* whole       # sums of the node, (2 * k + 1,)
    const double* for_it       # (k,), factor of the rows of a label
    const double* against      # (k,), of the others
    const double* both
    double min_mass
    int64_t min_count
    int64_t* left              # WORK (2 * k + 1,)
    double* term               # WORK (k,)


cdef inline double score(const Judge* judge) noexcept nogil:
    """Half the sum of the roots, over labels and sides, as Schapire & Singer; infinite if not allowed."""
    cdef Py_ssize_t j, k = judge.k
    cdef int64_t p, t, count = judge.left[2 * k]
    cdef double lp, ln, rp, rn, z = 0.0, below = 0.0, above = 0.0
    if count < judge.min_count or judge.whole[2 * k] - count < judge.min_count:
        return INFINITY
    for j in range(k):
        p, t = judge.left[k + j], judge.left[j]
        lp, ln = <double>p, <double>(t - p)
        rp = <double>(judge.whole[k + j] - p)
        rn = <double>((judge.whole[j] - t) - (judge.whole[k + j] - p))
        judge.term[j] = judge.both[j] * (sqrt(lp * ln) + sqrt(rp * rn))
    for j in range(k):
        z += judge.term[j]
    if judge.min_mass > 0.0:
        for j in range(k):
            p, t = judge.left[k + j], judge.left[j]
            below += judge.for_it[j] * <double>p + judge.against[j] * <double>(t - p)
            p, t = judge.whole[k + j] - p, judge.whole[j] - t
            above += judge.for_it[j] * <double>p + judge.against[j] * <double>(t - p)
        if below < judge.min_mass or above < judge.min_mass:
            return INFINITY
    return z


def search(
    const int64_t[:, :, ::1] sums, const int32_t[::1] n_bins, const int64_t[::1] whole,
    const double[:, ::1] factor, double min_mass, int64_t min_count, double[:, :, ::1] found,
    Py_ssize_t first, Py_ssize_t last, const uint8_t[::1] special=None,
):
    """Scores of the cuts of columns first..last-1 but those of levels.

    IN whole (2 * k + 1,): the node's sums; factor (3, k): of the rows of a label, of the others, and the
    root of the product. OUT found (d, 1 or 2, bins): the score of the cut above each bin, infinite where
    there is none; of columns with holes first with missing rows above, then, second, below.
    """
    cdef Py_ssize_t width = whole.shape[0], k = (width - 1) // 2, bins = sums.shape[1], f, b, q
    cdef int64_t[::1] left = integers_of(width)
    cdef double[::1] term = doubles_of(k)
    cdef Judge judge
    cdef Py_ssize_t look, looks = found.shape[1]
    cdef const int64_t* missing
    cdef int known
    if (not 0 <= first <= last <= sums.shape[0] or sums.shape[2] != width or factor.shape[0] != 3
            or factor.shape[1] != k or found.shape[0] != sums.shape[0] or found.shape[2] != bins
            or n_bins.shape[0] != sums.shape[0] or (special is None) != (looks == 1)):
        raise ValueError("search: arrays of different sizes")
    judge.k, judge.whole, judge.min_mass, judge.min_count = k, &whole[0], min_mass, min_count
    judge.left, judge.term = &left[0], &term[0]
    judge.for_it = judge.against = judge.both = NULL
    if k:
        judge.for_it, judge.against, judge.both = &factor[0, 0], &factor[1, 0], &factor[2, 0]
    with nogil:
        for f in range(first, last):
            known, missing = n_bins[f], NULL
            for look in range(looks):
                for b in range(bins):
                    found[f, look, b] = INFINITY
            if special is not None:
                if special[f] & LEVELS:
                    continue
                if special[f] & HOLES:
                    missing = &sums[f, known, 0]
            for look in range(2 if missing != NULL and missing[2 * k] else 1):
                for q in range(width):
                    left[q] = missing[q] if look else 0
                # Above the last value are missing rows, or none.
                for b in range(known if missing != NULL and not look else known - 1):
                    for q in range(width):
                        left[q] += sums[f, b, q]
                    found[f, look, b] = score(&judge)


cdef integers_of(Py_ssize_t n):
    """Zeros, as integers of 64 bits."""
    return memoryview(bytearray(8 * n)).cast("q")


cdef doubles_of(Py_ssize_t n):
    """Zeros, as float64; of no number there is one, too."""
    return memoryview(bytearray(8 * max(n, 1))).cast("d")


def reweight(
    const int32_t[::1] label, const int32_t[::1] exit_, const double[:, ::1] for_it,
    const double[:, ::1] against, double scale, double[:, ::1] weight, int64_t[:, ::1] fixed,
    Py_ssize_t start, Py_ssize_t stop,
):
    """Multiply the weights of rows start..stop-1 by the factors of their exits.

    IN exit_ (n,); for_it, against (exits, J). INOUT weight (n, J); OUT fixed: weight times scale, rounded.
    """
    cdef Py_ssize_t i, l, J = weight.shape[1], n = weight.shape[0]
    cdef int32_t own
    cdef double kept
    cdef const double* by
    if (not 0 <= start <= stop <= n or label.shape[0] != n or exit_.shape[0] != n or fixed.shape[0] != n
            or fixed.shape[1] != J or for_it.shape[1] != J or against.shape[1] != J
            or for_it.shape[0] != against.shape[0]):
        raise ValueError("reweight: arrays of different sizes")
    with nogil:
        for i in range(start, stop):
            own, by = label[i], &against[exit_[i], 0]
            kept = weight[i, own] * for_it[exit_[i], own]
            for l in range(J):
                weight[i, l] *= by[l]
            weight[i, own] = kept
            for l in range(J):
                weight[i, l] = max(weight[i, l], LEAST_WEIGHT)
                fixed[i, l] = rounded(weight[i, l] * scale)
