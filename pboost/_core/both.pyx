"""Cuts of columns whose missing rows go both ways.

Rows without a value are divided over the sides of a cut as the reach of the known rows is: where
the part t of it lies below, these are what lies there of the known rows, plus t times the missing
masses. So every known row stands for a part of the missing ones, and a cut is scored with the masses
of all rows. What lies on either side of a cut is a sum over the known rows there, so that of levels
the best set is an end of their order by the share of class +1, as it is without missing rows.

Arrays: `below` (3, k) int64, what lies below each cut of the known rows: class -1, class +1, and
reach; `count` (k,), how many rows these are. The last cut is that above all known rows, which says
how many there are and is not made. Reach is in a unit of its own.
"""
from libc.math cimport INFINITY

from pboost._core.criteria cimport score, score_limit as limit_of_score
from pboost._core.types cimport int32_t, int64_t, is_tied, row_of, uint8_t


def sorted_cuts(
    const int32_t[::1] order, const int64_t[::1] weight, const int64_t[::1] reach,
    Py_ssize_t n_negative, int64_t[:, ::1] below, int32_t[::1] count,
):
    """List the cuts between sorted known rows, whose `order` is packed; returns their number.

    Rows 0..n_negative-1 are class -1. OUT below, count: as many places as rows.
    """
    cdef Py_ssize_t i, k = 0, n = order.shape[0]
    cdef int64_t negative = 0, positive = 0, reached = 0, w
    cdef int32_t row
    if below.shape[0] != 3 or below.shape[1] < n or count.shape[0] < n or (
            reach.shape[0] != weight.shape[0]):
        raise ValueError("sorted_cuts: arrays of different sizes")
    with nogil:
        for i in range(n):
            row = row_of(order[i])
            w = -<int64_t>(row >= n_negative) & weight[row]
            positive += w
            negative += weight[row] - w
            reached += reach[row]
            if i + 1 == n or not is_tied(order[i + 1]):
                below[0, k], below[1, k], below[2, k] = negative, positive, reached
                count[k] = <int32_t>(i + 1)
                k += 1
    return k


def masses_by_code(
    const uint8_t[::1] codes, const int64_t[::1] weight, const int64_t[::1] reach,
    Py_ssize_t n_negative, int64_t[:, ::1] mass,
):
    """Add up class masses and reach of the rows of each code. OUT mass (3, 256)."""
    cdef Py_ssize_t i, n = codes.shape[0]
    if mass.shape[0] != 3 or mass.shape[1] != 256 or weight.shape[0] != n or reach.shape[0] != n:
        raise ValueError("masses_by_code: arrays of different sizes")
    mass[:, :] = 0
    with nogil:
        for i in range(n):
            mass[i >= n_negative, codes[i]] += weight[i]
            mass[2, codes[i]] += reach[i]


def score_cuts(
    int criterion, const int64_t[:, ::1] below, const int32_t[::1] count, Py_ssize_t k,
    int64_t negative, int64_t positive, int64_t min_weight, Py_ssize_t min_count, double[::1] out,
):
    """Score the first k - 1 cuts; infinity where a cut is not legal.

    `negative` and `positive` are the masses of all rows; `min_weight` is the least mass on either
    side, `min_count` the least number of known rows there.
    """
    cdef Py_ssize_t i, n
    cdef int64_t known_n, known_p, known_r, ln, lp, rn, rp, r
    cdef double missing_n, missing_p, under, over
    if k < 1 or below.shape[0] != 3 or below.shape[1] < k or count.shape[0] < k or out.shape[0] < k:
        raise ValueError("score_cuts: arrays of different sizes")
    known_n, known_p, known_r = below[0, k - 1], below[1, k - 1], below[2, k - 1]
    missing_n, missing_p = <double>(negative - known_n), <double>(positive - known_p)
    n = count[k - 1]
    with nogil:
        for i in range(k - 1):
            ln, lp, r = below[0, i], below[1, i], below[2, i]
            rn, rp = known_n - ln, known_p - lp
            out[i] = INFINITY
            if (ln + lp <= 0 or rn + rp <= 0 or r <= 0 or r >= known_r or count[i] < min_count
                    or n - count[i] < min_count):
                continue
            under = <double>r / <double>known_r
            over = <double>(known_r - r) / <double>known_r
            if (ln + lp + under * (missing_n + missing_p) < min_weight
                    or rn + rp + over * (missing_n + missing_p) < min_weight):
                continue
            out[i] = score(criterion, lp + under * missing_p, ln + under * missing_n,
                           rp + over * missing_p, rn + over * missing_n)


def score_limit(int criterion, double best, double total):
    """The largest score that counts as equal to the best where the whole mass is `total`."""
    return limit_of_score(criterion, best, total)
