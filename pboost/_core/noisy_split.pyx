"""Search for the stump of least expected criterion, where features are measured with error.

Rows stand at the value of their bin. At a cut t between two bins the mass below is

    sum over bins b of mass[b] * P(value[b] + error <= t)

that is, the mass of the bins below, less what crosses the cut from there, plus what crosses it
from above. What crosses is less than half of a bin's mass, so that each side is a sum without
cancellation: `crossing` holds the share that crosses, for bins above the cut with a minus sign, and

    below = left - sum mass * crossing,   above = right + sum mass * crossing.

Rows without a value have the code after the last bin and lie above each cut with certainty, also above that
after the last bin. That they lie below is a second look, with their masses added to the left. Columns
of levels are left out.

Shares of less than 2**-54 are 0 and not stored; the others are float32, which moves a mass by less
than 1e-7 of what crosses. Rows of one feature may have several levels of error, at most
MAX_LEVELS, each with a histogram and crossings of its own.

Arrays, for features f: `codes` (d, n) and `n_bins` (d,) as made by sort.pyx; `cell` (d, n) the code
of each row plus 256 times its level, or (d, 0) where there is one level; `slice_start` (d + 1,): levels of feature f are the
slices from slice_start[f] on. For each slice and group of four bins: `span` (slices, 64, 2) the
first and the last cut + 1 that are stored, `offset` (slices, 64) where they start in `crossing`,
which holds four such ranges after another. Where there are `special` columns (d,), see types.pxd, scores
and masses of the second look stand in rows d, d + 1, ...; the last place of the masses of the first
look is the mass of the missing rows of either class.
"""
from libc.math cimport INFINITY
from libc.string cimport memset

from pboost._core._cut cimport Limits, read_limits
from pboost._core._histogram cimport GROUP, class_histograms
from pboost._core._side cimport goes_right
from pboost._core.criteria cimport Masses, score_limit, score_many
from pboost._core.gauss cimport tail
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, int64_t, uint8_t, uint16_t

cdef extern from "crossing_simd.h":
    ctypedef void (*crossing_kernel "pboost_crossing_kernel")(
        const float*, Py_ssize_t, const double*, const double*, double*, double*
    ) noexcept nogil
    crossing_kernel choose_crossing "pboost_choose_crossing"(int level)

cdef crossing_kernel cross = choose_crossing(2)

cdef enum:
    MAX_LEVELS = 4
    TABLE = MAX_LEVELS * MAX_BINS
    QUAD = 4  # bins whose crossings are added up in one pass over the cuts

#: For the module that makes the arrays.
SIZES = (MAX_LEVELS, QUAD)


def use_simd_level(int level):
    """Choose the variant of the crossing kernel: 0 baseline, 1 AVX2, 2 AVX-512 if supported."""
    global cross
    cross = choose_crossing(level)


def fill_crossing(
    const double[::1] value, const double[::1] threshold, double sigma,
    const int32_t[:, ::1] span, const int64_t[::1] offset, float[::1] crossing,
):
    """Crossings of one slice: bins at `value` (n_bins,), cuts at `threshold` (n_bins - 1,).

    IN span (64, 2), offset (64,) of the slice; OUT its part of `crossing`.
    """
    cdef Py_ssize_t quad, j, b, e, n_bins = value.shape[0], length
    cdef double share
    cdef float* out
    with nogil:
        for quad in range((n_bins + QUAD - 1) // QUAD):
            length = span[quad, 1] - span[quad, 0]
            for j in range(QUAD):
                b = quad * QUAD + j
                out = &crossing[0] + offset[quad] + j * length
                for e in range(span[quad, 0], span[quad, 1]):
                    share = 0.0
                    if b < n_bins:
                        share = tail((value[b] - threshold[e]) / sigma)
                    out[e - span[quad, 0]] = <float>(share if b <= e else -share)


cdef inline void add_level_histograms(
    const uint16_t* cell, Py_ssize_t stride, int n_features, const int64_t* weight,
    Py_ssize_t start, Py_ssize_t stop, int64_t* mass,
) noexcept nogil:
    """Masses of the rows start..stop-1 by level and bin of up to GROUP features, a TABLE for each."""
    cdef Py_ssize_t i, f
    cdef int64_t w
    memset(mass, 0, <size_t>n_features * TABLE * sizeof(int64_t))
    if n_features == GROUP:
        # One feature after the other in each row hides the latency of adding to a cell.
        for i in range(start, stop):
            w = weight[i]
            mass[cell[i]] += w
            mass[TABLE + cell[stride + i]] += w
            mass[2 * TABLE + cell[2 * stride + i]] += w
            mass[3 * TABLE + cell[3 * stride + i]] += w
        return
    for f in range(n_features):
        for i in range(start, stop):
            mass[f * TABLE + cell[f * stride + i]] += weight[i]


cdef inline void add_crossing(
    const int64_t* negative, const int64_t* positive, int n_bins, const int32_t* span,
    const int64_t* offset, const float* crossing, double* from_negative, double* from_positive,
) noexcept nogil:
    """Add what crosses each cut, from bins of these masses, by class."""
    cdef double[QUAD] n
    cdef double[QUAD] p
    cdef Py_ssize_t first, quad, j
    cdef int64_t any_
    for quad in range((n_bins + QUAD - 1) // QUAD):
        any_ = 0
        for j in range(QUAD):
            n[j] = <double>negative[quad * QUAD + j]
            p[j] = <double>positive[quad * QUAD + j]
            any_ |= negative[quad * QUAD + j] | positive[quad * QUAD + j]
        if any_:
            first = span[2 * quad]
            cross(crossing + offset[quad], span[2 * quad + 1] - first, n, p,
                  from_negative + first, from_positive + first)


cdef inline int64_t sides(
    const int64_t* mass, int n_levels, int n_cuts, int64_t left, int64_t total,
    const double* crossed, double* below, double* above,
) noexcept nogil:
    """Expected mass of one class on either side of each cut; `left` lies below all bins.

    Returns the mass below the last cut, but for what crosses.
    """
    cdef Py_ssize_t b, k
    for b in range(n_cuts):
        for k in range(n_levels):
            left += mass[k * MAX_BINS + b]
        below[b] = max(<double>left - crossed[b], 0.0)
        above[b] = max(<double>(total - left) + crossed[b], 0.0)
    return left


cdef void judge(
    const Limits* at, int n_cuts, const int32_t* starts, int n_below, double* mass, double* score
) noexcept nogil:
    """Scores of the cuts of one feature, infinite where they are not legal.

    mass (4, 256): below and above of class -1, below and above of class +1; n_below: rows below all
    bins.
    """
    cdef Masses m
    cdef double below, above
    cdef int e, rows
    m.ln, m.rn, m.lp, m.rp = mass, mass + MAX_BINS, mass + 2 * MAX_BINS, mass + 3 * MAX_BINS
    score_many(at.criterion, &m, 0, 0, n_cuts, score)
    for e in range(n_cuts):
        below = m.ln[e] + m.lp[e]
        above = m.rn[e] + m.rp[e]
        rows = n_below + starts[e + 1]
        if not (below > 0 and above > 0 and below >= at.min_weight and above >= at.min_weight
                and rows >= at.min_count and at.n - rows >= at.min_count):
            score[e] = INFINITY


cdef inline int count_cuts(
    const uint8_t* special, Py_ssize_t f, int n_bins, int look
) noexcept nogil:
    """Number of cuts of a feature, with missing rows above or, in the second look, below.

    There are none of one of levels.
    """
    cdef bint has_holes = special != NULL and special[f] & HOLES
    if special != NULL and special[f] & LEVELS:
        return 0
    if look and not has_holes:
        return 0
    return max(n_bins - 1, 0) if look or not has_holes else n_bins


cdef void judge_feature(
    const Limits* at, const uint8_t* special, Py_ssize_t f, Py_ssize_t again, int n_bins,
    int n_levels, const int32_t* starts, const int64_t* negative, const int64_t* positive,
    const double* crossed, double* masses, double* scores,
) noexcept nogil:
    """Judge the cuts of one feature, those with missing rows below as those of feature `again`.

    masses (., 4, 256), scores (., 256): of all features; crossed (2, 256).
    """
    cdef int n_cuts = count_cuts(special, f, n_bins, 0)
    cdef double* mass = masses + 4 * MAX_BINS * f
    cdef int64_t n, p
    n = sides(negative, n_levels, n_cuts, 0, at.negative, crossed, mass, mass + MAX_BINS)
    p = sides(positive, n_levels, n_cuts, 0, at.positive, crossed + MAX_BINS, mass + 2 * MAX_BINS,
              mass + 3 * MAX_BINS)
    judge(at, n_cuts, starts, 0, mass, scores + MAX_BINS * f)
    if special == NULL or not special[f] & HOLES or special[f] & LEVELS:
        return
    n, p = at.negative - n, at.positive - p
    mass[MAX_BINS - 1], mass[3 * MAX_BINS - 1] = <double>n, <double>p
    if n + p == 0:  # it does not matter where they lie
        n_cuts = 1
    mass = masses + 4 * MAX_BINS * again
    sides(negative, n_levels, n_cuts - 1, n, at.negative, crossed, mass, mass + MAX_BINS)
    sides(positive, n_levels, n_cuts - 1, p, at.positive, crossed + MAX_BINS, mass + 2 * MAX_BINS,
          mass + 3 * MAX_BINS)
    judge(at, max(n_cuts - 1, 0), starts, <int>(at.n - starts[n_bins]), mass,
          scores + MAX_BINS * again)
    for n in range(max(n_cuts - 1, 0), MAX_BINS):
        scores[MAX_BINS * again + n] = INFINITY


def search(
    const uint8_t[:, ::1] codes, const uint16_t[:, ::1] cell, const int32_t[:, ::1] bin_start,
    const int32_t[::1] n_bins, const int64_t[::1] weight, limits, const int32_t[::1] slice_start,
    const int32_t[:, :, ::1] span, const int64_t[:, ::1] offset, const float[::1] crossing,
    Py_ssize_t first, Py_ssize_t last, double[:, :, ::1] mass, double[:, ::1] score,
    const uint8_t[::1] special=None,
):
    """Judge all cuts of the features first..last-1.

    IN see the module and `Limits`; OUT mass (d, 4, 256), score (d, 256), as in `judge`; of special
    columns twice as many.
    """
    cdef Limits at = read_limits(limits)
    cdef Py_ssize_t f, j, k, s, table
    cdef int n_levels, size
    cdef bint plain = cell.shape[1] == 0
    cdef int64_t[GROUP * TABLE] negative
    cdef int64_t[GROUP * TABLE] positive
    cdef double[2][MAX_BINS] crossed
    cdef int64_t* n
    cdef int64_t* p
    cdef const uint8_t* kind = NULL if special is None else &special[0]
    cdef Py_ssize_t looks = codes.shape[0] * (1 if special is None else 2)
    if (not (0 <= first <= last <= codes.shape[0]) or codes.shape[1] != weight.shape[0]
            or not (plain or cell.shape[1] == codes.shape[1])
            or slice_start.shape[0] != codes.shape[0] + 1 or mass.shape[0] != looks
            or score.shape[0] != looks):
        raise ValueError("search: arrays of different sizes")
    table = MAX_BINS if plain else TABLE
    with nogil:
        for f in range(first, last):
            j = (f - first) % GROUP
            size = <int>min(GROUP, last - f)
            if j == 0 and plain:
                class_histograms(&codes[f, 0], at.n, size, &weight[0], at.n_negative, at.n,
                                 negative, positive)
            elif j == 0:
                add_level_histograms(&cell[f, 0], at.n, size, &weight[0], 0, at.n_negative,
                                     negative)
                add_level_histograms(&cell[f, 0], at.n, size, &weight[0], at.n_negative, at.n,
                                     positive)
            n = negative + j * table
            p = positive + j * table
            n_levels = slice_start[f + 1] - slice_start[f]
            memset(crossed, 0, sizeof(crossed))
            for k in range(n_levels):
                s = slice_start[f] + k
                add_crossing(n + k * MAX_BINS, p + k * MAX_BINS, n_bins[f], &span[s, 0, 0],
                             &offset[s, 0], &crossing[0], crossed[0], crossed[1])
            judge_feature(&at, kind, f, codes.shape[0] + f, n_bins[f], n_levels, &bin_start[f, 0], n,
                          p, &crossed[0][0], &mass[0, 0, 0], &score[0, 0])


def search_edges(
    const int64_t[:, :, ::1] edge, const int32_t[:, ::1] bin_start, const int32_t[::1] n_bins, limits,
    const int32_t[::1] slice_start, const int32_t[:, :, ::1] span, const int64_t[:, ::1] offset,
    const float[::1] crossing, double[:, :, ::1] mass, double[:, ::1] score,
    const uint8_t[::1] special=None,
):
    """Judge all cuts as `search` does, of rows elsewhere, of which one level of errors is known.

    IN edge (d, 2, b + 1): mass of each class below each edge of bins.
    """
    cdef Limits at = read_limits(limits)
    cdef Py_ssize_t f, d = edge.shape[0]
    cdef int b, bins = <int>edge.shape[2] - 1
    cdef int64_t[MAX_BINS] negative
    cdef int64_t[MAX_BINS] positive
    cdef double[2][MAX_BINS] crossed
    cdef const uint8_t* kind = NULL if special is None else &special[0]
    cdef Py_ssize_t looks = d * (1 if special is None else 2)
    if (edge.shape[1] != 2 or bins > MAX_BINS or n_bins.shape[0] != d or bin_start.shape[0] != d
            or slice_start.shape[0] != d + 1 or slice_start[d] != d or mass.shape[0] != looks
            or score.shape[0] != looks):
        raise ValueError("search_edges: arrays of different sizes")
    with nogil:
        for f in range(d):
            memset(negative, 0, sizeof(negative))
            memset(positive, 0, sizeof(positive))
            for b in range(bins):
                negative[b] = edge[f, 0, b + 1] - edge[f, 0, b]
                positive[b] = edge[f, 1, b + 1] - edge[f, 1, b]
            memset(crossed, 0, sizeof(crossed))
            add_crossing(negative, positive, n_bins[f], &span[f, 0, 0], &offset[f, 0],
                         &crossing[0], crossed[0], crossed[1])
            judge_feature(&at, kind, f, d + f, n_bins[f], 1, &bin_start[f, 0], negative, positive,
                          &crossed[0][0], &mass[0, 0, 0], &score[0, 0])


def locate(
    const int32_t[::1] n_bins, limits, const double[:, ::1] score, const uint8_t[::1] special=None,
    Py_ssize_t other=-1, double other_score=INFINITY,
):
    """The first cut, by feature, missing rows above before below, and threshold, as good as the best
    that `search` judged, or as one cut of another feature of levels.

    Returns (row, bin), the row of the scores: the cut lies at the upper end of `bin`; that of the other
    feature has the bin -1. None where no cut is legal.
    """
    cdef Limits at = read_limits(limits)
    cdef const uint8_t* kind = NULL if special is None else &special[0]
    cdef Py_ssize_t f, row, d = n_bins.shape[0]
    cdef double found = other_score, limit
    cdef int e, look, looks = 1 if special is None else 2
    for f in range(d):
        for look in range(looks):
            for e in range(count_cuts(kind, f, n_bins[f], look)):
                found = min(found, score[f + look * d, e])
    if found == INFINITY:
        return None
    limit = score_limit(at.criterion, found, <double>at.negative + <double>at.positive)
    for f in range(d):
        if f == other and other_score <= limit:
            return f, -1
        for look in range(looks):
            row = f + look * d
            for e in range(count_cuts(kind, f, n_bins[f], look)):
                if score[row, e] <= limit:
                    return row, e
    raise RuntimeError("locate: the best cut was not found again")


def probabilities(
    const double[::1] value, double threshold, const double[::1] sigma, Py_ssize_t start,
    Py_ssize_t stop, double[::1] above,
):
    """How likely the rows start..stop-1 answer that they lie above a threshold; 0 of missing ones.

    IN value (n,), sigma (n,) or (1,), 0: certain. OUT above (n,); where the answer is likely it is the
    probability of the other answer with a minus sign, as `reweight_rows` takes it.
    """
    cdef Py_ssize_t i, step = sigma.shape[0] > 1, n = value.shape[0]
    cdef double share
    cdef bint right
    if (not (0 <= start <= stop <= n) or above.shape[0] != n
            or sigma.shape[0] != (n if step else 1)):
        raise ValueError("probabilities: arrays of different sizes")
    with nogil:
        for i in range(start, stop):
            right = goes_right(value[i], threshold)
            share = tail((value[i] - threshold) / sigma[i * step])
            if share > 0.0:
                above[i] = -share if right else share
            else:
                above[i] = right
