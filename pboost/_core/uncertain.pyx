"""Splits with random outcomes: search with noisy features, random draws, and evaluation of graphs."""
from libc.math cimport INFINITY, erfc, exp, fabs
from libc.stdint cimport uint16_t
from libc.string cimport memset

from pboost._core cimport _rng
from pboost._core._cut cimport Limits, read_limits
from pboost._core._histogram cimport GROUP, class_histograms
from pboost._core._side cimport goes_right
from pboost._core.split cimport Masses, score_limit, score_many
from pboost._core.types cimport (
    HOLES, LEVELS, MAX_BINS, int32_t, int64_t, uint16_t, uint64_t, uint8_t,
)

# The tail of the normal distribution, for features measured with error.
#
# It is computed by a Taylor polynomial about the nearest grid point. This is much faster than the C
# library's erfc and has a relative error of 1e-13.

cdef extern from *:
    """
    /* At more than this number of standard deviations, an outcome counts as certain. The other outcome has
       a probability below 2**-54, which does not change 1. */
    #define PBOOST_CERTAIN 8.3
    #define PBOOST_SQRT_HALF 0.70710678118654752440
    #define PBOOST_DENSITY_AT_0 0.39894228040143267794
    """
    const double CERTAIN "PBOOST_CERTAIN"
    const double SQRT_HALF "PBOOST_SQRT_HALF"
    const double DENSITY_AT_0 "PBOOST_DENSITY_AT_0"

cdef enum:
    STEPS = 64  # number of grid points per standard deviation
    POINTS = 533  # number of grid points, from 0 to beyond CERTAIN
    TERMS = 9

cdef double[POINTS][TERMS] coefficient


cdef void fill_table() noexcept:
    cdef double centre, density, before, here, factorial
    cdef int point, n
    for point in range(POINTS):
        centre = <double>point / STEPS
        density = DENSITY_AT_0 * exp(-0.5 * centre * centre)
        coefficient[point][0] = 0.5 * erfc(centre * SQRT_HALF)
        # Derivatives of the density are Hermite polynomials times the density.
        before, here, factorial = 0.0, 1.0, 1.0
        for n in range(1, TERMS):
            factorial *= n
            coefficient[point][n] = density * (-here if n % 2 else here) / factorial
            before, here = here, centre * here - (n - 1) * before


fill_table()


cdef double tail(double z) noexcept nogil:
    """Return the probability that a standard normal number exceeds abs(z), or 0 beyond CERTAIN."""
    cdef const double* c
    cdef double x
    cdef int point
    z = fabs(z)
    if not z <= CERTAIN:
        return 0.0
    point = <int>(z * STEPS + 0.5)
    x = z - <double>point / STEPS
    c = coefficient[point]
    return ((((((((c[8] * x + c[7]) * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x
             + c[1]) * x + c[0])


def tails(const double[::1] z, double[::1] out):
    """Compute the tail of each element of z, for tests."""
    cdef Py_ssize_t i
    for i in range(z.shape[0]):
        out[i] = tail(z[i])


# Search for the stump with the least expected criterion if features are measured with error.
#
# Each row has the value of its bin. The expected weight below a threshold t between two bins is
#
#     sum over bins b of mass[b] * P(value[b] + error <= t)
#
# This is the weight of the bins below, minus the weight that crosses the threshold from below, plus the
# weight that crosses it from above. Less than half of a bin's weight crosses, so there is no cancellation.
# `crossing` is the fraction that crosses, with a minus sign for bins above the threshold. With left and
# right the weights of the bins below and above,
#
#     below = left - sum mass * crossing,   above = right + sum mass * crossing.
#
# Missing values have the code after the last bin and are to the right of each threshold, including the
# threshold after the last bin. A second pass tries them on the left and adds their weights to the left
# side. Categorical features are omitted.
#
# Fractions below 2**-54 are 0 and are not stored. All others are float32, which changes a weight by less
# than 1e-7 of the part that crosses. The rows of one feature may have up to MAX_LEVELS noise levels, each
# with its own histogram and crossings.
#
# Arrays, for features f: `codes` (d, n) and `n_bins` (d,) as made by binning.pyx; `cell` (d, n): the code
# of each row plus 256 times its noise level, or (d, 0) for a single level; `slice_start` (d + 1,): the
# noise levels of feature f are the slices from slice_start[f] to slice_start[f + 1] - 1. For each slice and
# group of four bins: `span` (slices, 64, 2): the range of stored thresholds, without its end; `offset`
# (slices, 64): the position in `crossing` of the four ranges, one per bin. With `special` (d,), the kinds
# of features in types.pxd, the rows d, d + 1, ... of scores and weights are for the second pass, and the
# last entries of the weights of the first pass are the weights of the missing values of each class.

cdef extern from "crossing_simd.h":
    ctypedef void (*crossing_kernel "pboost_crossing_kernel")(
        const float*, Py_ssize_t, const double*, const double*, double*, double*
    ) noexcept nogil
    crossing_kernel choose_crossing "pboost_choose_crossing"(int level)

cdef crossing_kernel cross = choose_crossing(2)

cdef enum:
    MAX_LEVELS = 4
    TABLE = MAX_LEVELS * MAX_BINS
    QUAD = 4  # number of bins whose crossings are summed in one pass over the thresholds

#: Constants for the module that creates the arrays.
SIZES = (MAX_LEVELS, QUAD)


def use_simd_level(int level):
    """Choose the SIMD instructions for tests: 0 for baseline, 1 for AVX2 or 2 for AVX-512."""
    global cross
    cross = choose_crossing(level)


def fill_crossing(
    const double[::1] value, const double[::1] threshold, double sigma,
    const int32_t[:, ::1] span, const int64_t[::1] offset, float[::1] crossing,
):
    """Compute the crossings of one slice, for bins at `value` and splits at `threshold`.

    IN value (n_bins,), threshold (n_bins - 1,), and span (64, 2), offset (64,) of the slice; OUT the part
    of `crossing` for the slice.
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
    """Sum the weights of the rows start..stop-1 by noise level and bin, for up to GROUP features."""
    cdef Py_ssize_t i, f
    cdef int64_t w
    memset(mass, 0, <size_t>n_features * TABLE * sizeof(int64_t))
    if n_features == GROUP:
        # The features alternate, so that an addition need not wait for the previous one.
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
    """Add the weight of each class that crosses each threshold, given the weights of the bins."""
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
    """Compute the expected weight of one class on both sides of each split.

    `left` is the weight to the left of all bins. Return the weight to the left of the last split, without
    crossings.
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
    """Compute the scores of the splits of one feature; splits that are not allowed score infinity.

    mass (4, 256): left and right weights of class -1, then of class +1; n_below: number of rows to the left
    of all bins.
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
    """Return the number of splits of a feature, with missing values on the right (`look` 0) or the left
    (1).

    Categorical features have no splits here.
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
    """Compute the scores of the splits of one feature. Row `again` is for missing values on the left.

    `masses` (., 4, 256) and `scores` (., 256) are arrays for all features. WORK crossed (2, 256).
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
    if n + p == 0:  # without missing values, both passes would be the same
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
    """Compute the scores of all splits of the features first..last-1.

    IN the arrays described at the start of this section, and `Limits`; OUT mass (d, 4, 256), score (d,
    256), as in `judge`; with `special`, twice as many rows.
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
    """Search like `search`, given the class weights at bin edges, for a single noise level.

    IN edge (d, 2, b + 1): the weight of each class below each bin edge.
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
    """Return the first split that is tied with the best.

    Splits are ordered by feature, then missing values on the right before the left, then threshold.
    `other_score` is the score of the best split by the categorical feature `other`. Returns (row, bin): the
    row of the scores, and the bin at whose upper edge the split is, or -1 for the feature `other`. Returns
    None if no split is allowed.
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
    """Compute the probability of outcome 1 (right of a threshold) for the rows start..stop-1.

    It is 0 for missing values. IN value (n,), sigma (n,) or (1,), 0 for exact values. OUT above (n,): the
    probability of outcome 1 or, if this is likely, the probability of outcome 0 with a minus sign, as for
    `reweight_rows`.
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


# Draw random outcomes, and count how often each row has outcome 1.
#
# A random number depends only on (key, question, row, draw), and all sums are sums of integers. So results
# do not depend on the number of threads or on the order of the rows.

def draw(
    const double[::1] above, const int32_t[::1] rows, Py_ssize_t n_negative, uint64_t key,
    uint64_t question, Py_ssize_t first, Py_ssize_t last, Py_ssize_t start, Py_ssize_t stop,
    const int64_t[::1] fixed, uint16_t[::1] count, int64_t[:, ::1] mass,
):
    """Draw outcomes for the rows start..stop-1; the draws have the numbers first..last-1.

    IN above (n,): the probability of outcome 1; rows (n,): row numbers in the random streams; fixed (n,):
    weights; INOUT count (n,): the number of outcomes 1 of each row is added; OUT mass (last - first, 2):
    for each draw, the weight of the rows of each class with outcome 1.
    """
    cdef Py_ssize_t i, r, n = above.shape[0]
    cdef uint64_t at
    cdef int k, answer, taken
    if (not (0 <= start <= stop <= n) or not (0 <= first <= last) or rows.shape[0] != n
            or fixed.shape[0] != n or count.shape[0] != n or mass.shape[0] != last - first
            or mass.shape[1] != 2):
        raise ValueError("draw: arrays of different sizes")
    with nogil:
        for r in range(last - first):
            mass[r, 0] = mass[r, 1] = 0
        for i in range(start, stop):
            k = i >= n_negative
            at = _rng.stream(key, question, <uint64_t>rows[i])
            taken = 0
            for r in range(last - first):
                answer = _rng.draw_from(at, <uint64_t>(first + r)) < above[i]
                taken += answer
                mass[r, k] += -<int64_t>answer & fixed[i]
            count[i] += <uint16_t>taken


# Evaluation of a decision graph with random outcomes: reach, expectations, random walks.
#
# Arrays: X (n, d) float64; feature (n_nodes,), threshold (n_nodes,), next (n_nodes, 2), vote (n_nodes, 2,
# V) as in `DecisionGraph`, with V = 1 or J; label (n,), from 0: the class of each row. The outcomes have
# one of two distributions. Either answer (n_nodes, 2, J) is the probability of exit 1 for each node, side
# of the threshold and class. Or X has normal errors, with standard deviations sigma (n, d) or (1, d). The
# other array is empty. If both are empty, X contains the probabilities of exit 1.
#
# NaN in X is a missing value. It takes exit 1 with the probability of its node in `missing` (n_nodes,),
# which may be 0 or 1. Its sigma is not used. Sigma is 0 for exact values.

cdef struct Answers:
    const double* table
    Py_ssize_t width  # number of classes, J
    const double* sigma
    Py_ssize_t stride    # number of entries from one row of sigma to the next
    const double* missing


cdef Answers read_answers(
    const double[:, :, ::1] answer, const double[:, ::1] sigma, const double[::1] missing,
    Py_ssize_t n_nodes, Py_ssize_t n, Py_ssize_t d,
):
    """Return the distributions of outcomes in a form that all kernels can read."""
    cdef Answers answers
    cdef bint gaussian = sigma.shape[0] > 0
    answers.table = answers.sigma = answers.missing = NULL
    if missing is not None and n_nodes:
        if missing.shape[0] != n_nodes:
            raise ValueError("missing: expected one number per node")
        answers.missing = &missing[0]
    answers.width = answer.shape[2]
    answers.stride = d if sigma.shape[0] > 1 else 0
    if gaussian:
        if sigma.shape[1] != d or (sigma.shape[0] > 1 and sigma.shape[0] != n):
            raise ValueError("sigma: another shape than X")
        answers.sigma = &sigma[0, 0]
    elif answer.shape[0] == n_nodes and n_nodes and answer.shape[1] == 2:
        answers.table = &answer[0, 0, 0]
    elif answer.shape[0]:
        raise ValueError("answer: expected one table per node")
    return answers


cdef inline void ask(
    const Answers* answers, Py_ssize_t row, Py_ssize_t node, Py_ssize_t feature, double value,
    double threshold, int label, double* q,
) noexcept nogil:
    """Compute the probability q of each exit for a row; the node compares `value` with `threshold`."""
    cdef double distance, sigma, above
    cdef const double* table
    if answers.missing and value != value:
        above = answers.missing[node]
        if answers.table:
            table = answers.table + 2 * answers.width * node + label
            above = (1.0 - above) * table[0] + above * table[answers.width]
        q[0], q[1] = 1.0 - above, above
    elif answers.table:
        table = answers.table + answers.width * (2 * node + <Py_ssize_t>goes_right(value, threshold))
        q[1] = table[label]
        q[0] = 1.0 - q[1]
    elif answers.sigma:
        sigma = answers.sigma[row * answers.stride + feature]
        distance = (value - threshold) / sigma if sigma > 0.0 else INFINITY
        if goes_right(value, threshold):
            q[0] = tail(distance)
            q[1] = 1.0 - q[0]
        else:
            q[1] = tail(distance)
            q[0] = 1.0 - q[1]
    else:
        q[0], q[1] = 1.0 - value, value


def propagate(
    const double[:, ::1] X, const int32_t[::1] feature, const double[::1] threshold,
    const int32_t[:, ::1] next_, const double[:, :, ::1] vote, const double[:, :, ::1] answer,
    const double[:, ::1] sigma, const int32_t[::1] label, const double[::1] bias, double[:, ::1] reach,
    double[:, ::1] work, double[:, ::1] score, double[:, ::1] loss, const double[::1] missing=None,
):
    """Compute the reach of each node for each row, the expected decision values, and the expected loss.

    The reach is the probability that a row reaches the node. OUT reach (n, n_nodes), or (1, n_nodes) for
    the last row; score (n, V): expected decision values; loss (n, V): expected exponential loss, E[exp(-F
    y)]. For a single vote, y is +1 for class 1, else -1. For several votes, y is +1 for the vote of the
    row's class, else -1. WORK work (n_nodes, V). If `loss` is empty, score and loss are not computed.
    """
    cdef Py_ssize_t i, l, node, n = X.shape[0], n_nodes = feature.shape[0], V = bias.shape[0]
    cdef Answers answers = read_answers(answer, sigma, missing, n_nodes, n, X.shape[1])
    cdef bint wants_loss = loss.shape[0] > 0
    cdef double[2] q
    cdef int exit_, to
    cdef double sign, p, w
    cdef double* arrives
    if (not n_nodes or reach.shape[1] != n_nodes or reach.shape[0] < min(n, <Py_ssize_t>1)
            or (1 < reach.shape[0] < n) or vote.shape[0] != n_nodes or vote.shape[1] != 2
            or vote.shape[2] != V or label.shape[0] != n or (wants_loss and (
                work.shape[0] < n_nodes or work.shape[1] != V or loss.shape[0] != n
                or loss.shape[1] != V or score.shape[0] != n or score.shape[1] != V))):
        raise ValueError("propagate: arrays of different sizes, or no nodes")
    with nogil:
        for i in range(n):
            arrives = &reach[i if reach.shape[0] > 1 else 0, 0]
            memset(arrives, 0, <size_t>n_nodes * sizeof(double))
            arrives[0] = 1.0
            if wants_loss:
                memset(&work[0, 0], 0, <size_t>(n_nodes * V) * sizeof(double))
                for l in range(V):
                    work[0, l] = exp(-bias[l] * side_of(label[i], l, V))
                    score[i, l], loss[i, l] = bias[l], 0.0
            # Parents come before their children, so the reach of a node is complete when the node is
            # processed.
            for node in range(n_nodes):
                p = arrives[node]
                if p == 0.0:
                    continue
                ask(&answers, i, node, feature[node], X[i, feature[node]], threshold[node], label[i],
                    q)
                for exit_ in range(2):
                    to = next_[node, exit_]
                    if to >= 0:
                        arrives[to] += p * q[exit_]
                    if not wants_loss or q[exit_] == 0.0:
                        continue  # avoids 0 times an infinite loss, which would be NaN
                    for l in range(V):
                        sign = side_of(label[i], l, V)
                        w = work[node, l] * q[exit_] * exp(-vote[node, exit_, l] * sign)
                        score[i, l] += p * q[exit_] * vote[node, exit_, l]
                        if to >= 0:
                            work[to, l] += w
                        else:
                            loss[i, l] += w


cdef inline double side_of(int32_t label, Py_ssize_t vote, Py_ssize_t n_votes) noexcept nogil:
    """Return +1 for the vote of the row's class, and -1 for other votes."""
    return 1.0 if label == (vote if n_votes > 1 else 1) else -1.0


def sample(
    const double[:, ::1] X, const int32_t[::1] feature, const double[::1] threshold,
    const int32_t[:, ::1] next_, const double[:, :, ::1] vote, const double[:, :, ::1] answer,
    const double[:, ::1] sigma, uint64_t key, Py_ssize_t first, Py_ssize_t last, Py_ssize_t start,
    Py_ssize_t stop, double[:, ::1] total, const double[::1] missing=None,
):
    """Sum the votes of the random walks first..last-1 for each of the rows start..stop-1.

    The outcome at a node depends only on (key, node, row, walk). If there is a table of probabilities, its
    entries for class 0 are used. INOUT total (n, V), to which votes are added one after another.
    """
    cdef Py_ssize_t i, k, l, node, n_nodes = feature.shape[0], V = total.shape[1]
    cdef Answers answers = read_answers(answer, sigma, missing, n_nodes, X.shape[0], X.shape[1])
    cdef double[2] q
    cdef int taken
    if (not (0 <= start <= stop <= X.shape[0]) or total.shape[0] != X.shape[0]
            or vote.shape[0] != n_nodes or vote.shape[1] != 2 or vote.shape[2] != V):
        raise ValueError("sample: arrays of different sizes")
    with nogil:
        for i in range(start, stop):
            for k in range(first, last):
                node = 0 if n_nodes else -1
                while node >= 0:
                    ask(&answers, i, node, feature[node], X[i, feature[node]], threshold[node], 0, q)
                    taken = _rng.uniform(key, <uint64_t>node, <uint64_t>i, <uint64_t>k) < q[1]
                    for l in range(V):
                        total[i, l] += vote[node, taken, l]
                    node = next_[node, taken]


def uniforms(uint64_t key, uint64_t node, uint64_t row, double[::1] out):
    """Fill `out` with the first random numbers of the stream (key, node, row), for tests."""
    cdef Py_ssize_t k
    for k in range(out.shape[0]):
        out[k] = _rng.uniform(key, node, row, <uint64_t>k)
