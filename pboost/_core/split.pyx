"""Exact and binned search for the best stump, coarse to fine.

Coarse: histograms of the two class masses over each feature's rank bins; every bin edge is a
candidate cut. Fine: within a bin the pair of left masses lies in a box whose corners are the masses
at the bin's two edges, and each criterion is concave in that pair, so that it is least at one of
the corners where only one class has moved. Only bins whose bound reaches the best cut found are
rescanned in sorted order. The binned search is the coarse half.

Splits within 1e-12 of the total mass count as equally good; the lowest feature, then the lowest
threshold, is taken. All masses are 64-bit fixed-point sums, hence exact.

Arrays: `order` (d, n), `bin_start` (d, b + 1), `n_bins` (d,), at most b, `codes` (d, n) as made by
sort.pyx; `weight` (n,) int64; rows 0..n_negative-1 are class -1. Work arrays, one row per feature: `edge`
(d, 2, b + 1) int64, the class masses left of each bin edge; `bound` (d, b), the least score
possible inside each bin; `best` (d,), the least score found.
"""
from libc.math cimport INFINITY

from pboost._core._cut cimport BOUND_SLACK, Limits, cut_score, is_legal, read_limits
from pboost._core._histogram cimport GROUP, class_histograms
from pboost._core._segment cimport first_cut, search_rows
from pboost._core.criteria cimport Masses, score_limit, score_many
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t

cdef void edge_masses(
    const int64_t* mass, int64_t total, int n_bins, int64_t* edge, double* left, double* right
) noexcept nogil:
    """Masses left of each bin edge, as integers, and left and right of it as doubles."""
    cdef int64_t sum_ = 0
    cdef int b
    for b in range(n_bins + 1):
        edge[b] = sum_
        left[b] = <double>sum_
        right[b] = <double>(total - sum_)
        if b < n_bins:
            sum_ += mass[b]


cdef double coarse(
    const Limits* at, const int64_t* negative, const int64_t* positive, const int32_t* starts,
    int n_bins, int64_t* edge_negative, int64_t* edge_positive, double* bound,
) noexcept nogil:
    """Masses at the bin edges of one feature and the bound inside each bin; the best edge."""
    cdef double[4][MAX_BINS + 1] mass
    cdef double[MAX_BINS + 1] here
    cdef double best = INFINITY
    cdef Masses m
    cdef int b
    m.lp, m.ln, m.rp, m.rn = mass[0], mass[1], mass[2], mass[3]
    edge_masses(negative, at.negative, n_bins, edge_negative, m.ln, m.rn)
    edge_masses(positive, at.positive, n_bins, edge_positive, m.lp, m.rp)
    # A bin's two corners: one class has moved to the next edge, the other has not.
    score_many(at.criterion, &m, 1, 0, n_bins, bound)
    score_many(at.criterion, &m, 0, 1, n_bins, here)
    for b in range(n_bins):
        bound[b] = min(bound[b], here[b]) * BOUND_SLACK
    score_many(at.criterion, &m, 0, 0, n_bins, here)
    for b in range(1, n_bins):
        if here[b] < best and is_legal(at, edge_negative[b], edge_positive[b], starts[b]):
            best = here[b]
    return best


cdef double refine_bin(
    const Limits* at, const int32_t* order, const int64_t* weight, const int32_t* starts,
    int b, const int64_t* edge_negative, const int64_t* edge_positive, double best, double found,
) noexcept nogil:
    return search_rows(at, order, weight, starts[b], starts[b + 1], edge_negative[b],
                       edge_positive[b], best, found)


def search(
    const uint8_t[:, ::1] codes, const int32_t[:, ::1] order, const int32_t[:, ::1] bin_start,
    const int32_t[::1] n_bins, const int64_t[::1] weight, limits, int64_t[:, :, ::1] edge,
    double[:, ::1] bound, double[::1] best, double[::1] least_found, Py_ssize_t first,
    Py_ssize_t last,
):
    """Search features first..last-1; fills their rows of `edge`, `bound` and `best`.

    IN codes, order (0 columns for the binned search), bin_start, n_bins, weight, limits: see
    `Limits`; OUT edge, bound, best; INOUT least_found (1,), the least score known of any feature,
    or infinity. Cuts that are worse may be missed.
    """
    cdef Limits at = read_limits(limits)
    cdef Py_ssize_t f, k, lead = first
    cdef bint exact = order.shape[1] > 0
    cdef double total = <double>at.negative + <double>at.positive, limit, least = INFINITY
    cdef double found = least_found[0]
    cdef int b, lead_bin = -1
    cdef int64_t[GROUP * MAX_BINS] negative
    cdef int64_t[GROUP * MAX_BINS] positive
    if not (0 <= first <= last <= codes.shape[0]) or codes.shape[1] != weight.shape[0]:
        raise ValueError("search: arrays of different sizes")
    with nogil:
        for f in range(first, last):
            k = (f - first) % GROUP
            if k == 0:
                class_histograms(&codes[f, 0], at.n, <int>min(GROUP, last - f), &weight[0],
                                 at.n_negative, at.n, negative, positive)
            best[f] = coarse(&at, negative + k * MAX_BINS, positive + k * MAX_BINS,
                             &bin_start[f, 0], n_bins[f], &edge[f, 0, 0], &edge[f, 1, 0],
                             &bound[f, 0])
            found = min(found, best[f])
            if exact:
                for b in range(n_bins[f]):
                    if bound[f, b] < least and bin_start[f, b + 1] - bin_start[f, b] > 1:
                        least = bound[f, b]
                        lead = f
                        lead_bin = b
        limit = score_limit(at.criterion, found, total) if found < INFINITY else INFINITY
        if lead_bin >= 0 and least <= limit:
            # The most promising bin first: it lowers the bar for all others.
            best[lead] = refine_bin(&at, &order[lead, 0], &weight[0], &bin_start[lead, 0],
                                    lead_bin, &edge[lead, 0, 0], &edge[lead, 1, 0], best[lead],
                                    found)
            found = min(found, best[lead])
        if exact:
            limit = score_limit(at.criterion, found, total) if found < INFINITY else INFINITY
            for f in range(first, last):
                for b in range(n_bins[f]):
                    if bound[f, b] > limit or bin_start[f, b + 1] - bin_start[f, b] < 2:
                        continue
                    best[f] = refine_bin(&at, &order[f, 0], &weight[0], &bin_start[f, 0], b,
                                         &edge[f, 0, 0], &edge[f, 1, 0], best[f], found)
                    if best[f] < found:
                        found = best[f]
                        limit = score_limit(at.criterion, found, total)
    # What another thread has just noted may be lost: no harm.
    least_found[0] = min(least_found[0], found)


def locate(
    const int32_t[:, ::1] order, const int32_t[:, ::1] bin_start, const int32_t[::1] n_bins,
    const int64_t[::1] weight, limits, const int64_t[:, :, ::1] edge, const double[:, ::1] bound,
    const double[::1] best,
):
    """The first cut, by feature and threshold, as good as the best found by `search`.

    Returns (feature, bin, position, ln, lp): the cut lies in or at the end of `bin`, between the
    sorted rows position-1 and position, and leaves the class masses ln and lp below; None where no
    cut is legal.
    """
    cdef Limits at = read_limits(limits)
    cdef Py_ssize_t f, position = -1, d = best.shape[0]
    cdef double found = INFINITY, limit
    cdef int b = 0
    cdef int64_t ln = 0, lp = 0
    cdef bint exact = order.shape[1] > 0
    for f in range(d):
        found = min(found, best[f])
    if found == INFINITY:
        return None
    limit = score_limit(at.criterion, found, <double>at.negative + <double>at.positive)
    f = 0
    while best[f] > limit:
        f += 1
    with nogil:
        for b in range(n_bins[f]):
            ln = edge[f, 0, b]
            lp = edge[f, 1, b]
            if exact and bound[f, b] <= limit and bin_start[f, b + 1] - bin_start[f, b] > 1:
                position = first_cut(&at, &order[f, 0], &weight[0], bin_start[f, b],
                                     bin_start[f, b + 1], &ln, &lp, limit)
                if position >= 0:
                    break
            ln = edge[f, 0, b + 1]
            lp = edge[f, 1, b + 1]
            if (b + 1 < n_bins[f] and cut_score(&at, ln, lp) <= limit
                    and is_legal(&at, ln, lp, bin_start[f, b + 1])):
                position = bin_start[f, b + 1]
                break
    if position < 0:
        raise RuntimeError(f"locate: the best cut of feature {f} was not found again")
    return f, b, position, ln, lp
