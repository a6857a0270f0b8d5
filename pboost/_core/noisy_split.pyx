"""Search for the stump of least expected criterion, where features are measured with error.

Rows stand at the value of their bin. At a cut t between two bins the mass below is

    sum over bins b of mass[b] * P(value[b] + error <= t)

that is, the mass of the bins below, less what crosses the cut from there, plus what crosses it
from above. What crosses is less than half of a bin's mass, so that each side is a sum without
cancellation: `crossing` holds the share that crosses, for bins above the cut with a minus sign, and

    below = left - sum mass * crossing,   above = right + sum mass * crossing.

Shares of less than 2**-54 are 0 and not stored; the others are float32, which moves a mass by less
than 1e-7 of what crosses. Rows of one feature may have several levels of error, at most
MAX_LEVELS, each with a histogram and crossings of its own.

Arrays, for features f: `codes` (d, n) and `n_bins` (d,) as made by sort.pyx; `cell` (d, n) the code
of each row plus 256 times its level, or (d, 0) where there is one level; `slice_start` (d + 1,): levels of feature f are the
slices from slice_start[f] on. For each slice and group of four bins: `span` (slices, 64, 2) the
first and the last cut + 1 that are stored, `offset` (slices, 64) where they start in `crossing`,
which holds four such ranges after another.
"""
from libc.math cimport INFINITY
from libc.string cimport memset

from pboost._core._cut cimport Limits, read_limits
from pboost._core._histogram cimport GROUP, class_histograms
from pboost._core._side cimport goes_right
from pboost._core.criteria cimport Masses, score_limit, score_many
from pboost._core.gauss cimport tail
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t, uint16_t

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


cdef inline void sides(
    const int64_t* mass, int n_levels, int n_bins, int64_t total, const double* crossed,
    double* below, double* above,
) noexcept nogil:
    """Expected mass of one class on either side of each cut."""
    cdef int64_t left = 0
    cdef Py_ssize_t b, k
    for b in range(n_bins - 1):
        for k in range(n_levels):
            left += mass[k * MAX_BINS + b]
        below[b] = max(<double>left - crossed[b], 0.0)
        above[b] = max(<double>(total - left) + crossed[b], 0.0)


cdef void judge(
    const Limits* at, int n_bins, const int32_t* starts, double* mass, double* score
) noexcept nogil:
    """Scores of the cuts of one feature, infinite where they are not legal.

    mass (4, 256): below and above of class -1, below and above of class +1.
    """
    cdef Masses m
    cdef double below, above
    cdef int e
    m.ln, m.rn, m.lp, m.rp = mass, mass + MAX_BINS, mass + 2 * MAX_BINS, mass + 3 * MAX_BINS
    score_many(at.criterion, &m, 0, 0, n_bins - 1, score)
    for e in range(n_bins - 1):
        below = m.ln[e] + m.lp[e]
        above = m.rn[e] + m.rp[e]
        if not (below > 0 and above > 0 and below >= at.min_weight and above >= at.min_weight
                and starts[e + 1] >= at.min_count and at.n - starts[e + 1] >= at.min_count):
            score[e] = INFINITY


def search(
    const uint8_t[:, ::1] codes, const uint16_t[:, ::1] cell, const int32_t[:, ::1] bin_start,
    const int32_t[::1] n_bins, const int64_t[::1] weight, limits, const int32_t[::1] slice_start,
    const int32_t[:, :, ::1] span, const int64_t[:, ::1] offset, const float[::1] crossing,
    Py_ssize_t first, Py_ssize_t last, double[:, :, ::1] mass, double[:, ::1] score,
):
    """Judge all cuts of the features first..last-1.

    IN see the module and `Limits`; OUT mass (d, 4, 256), score (d, 256), as in `judge`.
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
    if (not (0 <= first <= last <= codes.shape[0]) or codes.shape[1] != weight.shape[0]
            or not (plain or cell.shape[1] == codes.shape[1])
            or slice_start.shape[0] != codes.shape[0] + 1):
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
            sides(n, n_levels, n_bins[f], at.negative, crossed[0], &mass[f, 0, 0], &mass[f, 1, 0])
            sides(p, n_levels, n_bins[f], at.positive, crossed[1], &mass[f, 2, 0], &mass[f, 3, 0])
            judge(&at, n_bins[f], &bin_start[f, 0], &mass[f, 0, 0], &score[f, 0])


def locate(const int32_t[::1] n_bins, limits, const double[:, ::1] score):
    """The first cut, by feature and threshold, as good as the best that `search` judged.

    Returns (feature, bin): the cut lies at the upper end of `bin`; None where no cut is legal.
    """
    cdef Limits at = read_limits(limits)
    cdef Py_ssize_t f
    cdef double found = INFINITY, limit
    cdef int e
    for f in range(score.shape[0]):
        for e in range(n_bins[f] - 1):
            found = min(found, score[f, e])
    if found == INFINITY:
        return None
    limit = score_limit(at.criterion, found, <double>at.negative + <double>at.positive)
    for f in range(score.shape[0]):
        for e in range(n_bins[f] - 1):
            if score[f, e] <= limit:
                return f, e
    raise RuntimeError("locate: the best cut was not found again")


def probabilities(
    const double[::1] value, double threshold, const double[::1] sigma, Py_ssize_t start,
    Py_ssize_t stop, double[::1] above,
):
    """How likely the rows start..stop-1 answer that they lie above a threshold.

    IN value (n,), sigma (n,) or (1,). OUT above (n,); where the answer is likely it is the
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
