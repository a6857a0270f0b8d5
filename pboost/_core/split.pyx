"""Exact and binned search for the best stump, first coarse, then fine.

Coarse search: compute histograms of the class weights over each feature's rank bins, and try the split at
every bin edge. Fine search: inside a bin, the two left class weights lie in a rectangle between the weights
at the bin's edges. Each criterion is concave in these weights, so its least value in the rectangle is at
the upper left or the lower right corner. This is a lower bound for the splits in the bin. Only bins whose
bound is below the best score are searched in sorted order. The binned search consists of the coarse search
only.

Missing values have a separate bin, which is the last, so they go to the right. To try them on the left, the
edges are scored again with the weights of the missing values added to the left side. Categorical features
are split by sets of categories.

Scores that differ by at most 1e-12 of the total weight are tied. Ties go to the lowest feature, then to
missing values on the right, then to the lowest threshold. All weights are 64-bit fixed-point numbers, so
sums are exact.

Arrays: `order` (d, n), `bin_start` (d, b + 1), `n_bins` (d,), at most b, `codes` (d, n) as made by
binning.pyx; `weight` (n,) int64; rows 0..n_negative-1 are class -1. Work arrays with one row per feature:
`edge` (d, 2, b + 1) int64, the class weights left of each bin edge; `bound` (d, b), a lower bound on the
scores inside each bin; `best` (d,), the least score. With `special` (d,), the kinds of features in
types.pxd, `bound` is (2 d, b) and `best` is (2 d,); their second half is for missing values on the left.
"""
from libc.math cimport INFINITY

from pboost._core._cut cimport BOUND_SLACK, Limits, cut_score, is_legal, read_limits
from pboost._core._histogram cimport GROUP, class_histograms
from pboost._core._categories cimport LevelCut, Levels, scan_levels
from pboost._core._segment cimport first_cut, search_rows
from pboost._core._team cimport lock, run_ranges, team_at, unlock
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, int64_t, uint8_t

cdef void edge_masses(
    const int64_t* mass, int64_t sum_, int64_t total, int n_bins, int64_t* edge, double* left,
    double* right,
) noexcept nogil:
    """Sum the weights to the left of each bin edge as integers, and to the left and right of it as doubles.

    sum_: the weight to the left of all bins.
    """
    cdef int b
    for b in range(n_bins + 1):
        edge[b] = sum_
        left[b] = <double>sum_
        right[b] = <double>(total - sum_)
        if b < n_bins:
            sum_ += mass[b]


cdef double coarse(
    const Limits* at, const int64_t* negative, const int64_t* positive, int64_t left_negative,
    int64_t left_positive, const int32_t* starts, int n_bins, int64_t* edge_negative,
    int64_t* edge_positive, double* bound,
) noexcept nogil:
    """Compute the class weights at a feature's bin edges, and the bounds inside bins.

    Return the best score.

    left_negative, left_positive: the class weights to the left of all bins.
    """
    cdef double[4][MAX_BINS + 1] mass
    cdef double[MAX_BINS + 1] here
    cdef double best = INFINITY
    cdef Masses m
    cdef int b
    m.lp, m.ln, m.rp, m.rn = mass[0], mass[1], mass[2], mass[3]
    edge_masses(negative, left_negative, at.negative, n_bins, edge_negative, m.ln, m.rn)
    edge_masses(positive, left_positive, at.positive, n_bins, edge_positive, m.lp, m.rp)
    # The bound is the least score at two corners. Each has one class weight of the upper edge and the other
    # class weight of the lower edge.
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


# The kinds of all features, and parameters for features with missing values or categories.
cdef struct Special:
    const uint8_t* kind
    const int32_t* n_bins
    Py_ssize_t d
    double smoothing


cdef Special read_special(const uint8_t[::1] special, const int32_t[::1] n_bins, double smoothing):
    cdef Special s
    s.kind = &special[0] if special is not None and special.shape[0] else NULL
    s.n_bins, s.d, s.smoothing = &n_bins[0] if n_bins.shape[0] else NULL, n_bins.shape[0], smoothing
    return s


cdef inline bint has(const Special* s, Py_ssize_t f, int what) noexcept nogil:
    return s.kind != NULL and (s.kind[f] & what) != 0


cdef inline void read_levels(
    const Special* s, Py_ssize_t f, const int64_t* negative, const int64_t* positive,
    const int32_t* starts, int64_t* count, Levels* levels,
) noexcept nogil:
    """Prepare the class weights of a categorical feature for `scan_levels`. WORK count (MAX_BINS,)."""
    cdef int b
    levels.n, levels.has_missing = s.n_bins[f], has(s, f, HOLES)
    for b in range(levels.n + levels.has_missing):
        count[b] = starts[b + 1] - starts[b]
    levels.negative, levels.positive, levels.count, levels.step = negative, positive, count, 1
    levels.smoothing = s.smoothing


cdef inline Limits with_missing_below(
    const Limits* at, const int64_t* edge, Py_ssize_t width, const int32_t* starts, int n_bins,
    int64_t* ln, int64_t* lp,
) noexcept nogil:
    """Return the limits of splits that send missing values to the left.

    IN edge (2, width); OUT ln, lp: the class weights of the missing values.
    """
    cdef Limits below = at[0]
    below.extra = at.n - starts[n_bins]
    ln[0] = at.negative - edge[n_bins]
    lp[0] = at.positive - edge[width + n_bins]
    return below


cdef void search_special(
    const Limits* at, const Special* s, Py_ssize_t f, const int64_t* negative,
    const int64_t* positive, const int32_t* starts, int64_t* edge, Py_ssize_t width, double* bound,
    Py_ssize_t bins, double* best,
) noexcept nogil:
    """Search the bin edges of a feature with missing values or categories.

    `bound` (2 d, bins) and `best` (2 d,) are for all features.
    """
    cdef int64_t[2][MAX_BINS + 1] shifted
    cdef int64_t ln, lp
    cdef LevelCut ignored
    cdef Levels levels
    cdef Limits below
    cdef int n_bins = s.n_bins[f], n_codes = n_bins + has(s, f, HOLES)
    cdef Py_ssize_t again = s.d + f
    best[f] = coarse(at, negative, positive, 0, 0, starts, n_codes, edge, edge + width,
                     bound + f * bins)
    best[again] = INFINITY
    if has(s, f, LEVELS):
        read_levels(s, f, negative, positive, starts, shifted[0], &levels)
        best[f] = INFINITY
        scan_levels(at, &levels, -1.0, &best[f], &ignored)
    elif has(s, f, HOLES):
        below = with_missing_below(at, edge, width, starts, n_bins, &ln, &lp)
        best[again] = coarse(&below, negative, positive, ln, lp, starts, n_bins, shifted[0],
                             shifted[1], bound + again * bins)


cdef double refine_below(
    const Limits* at, const int32_t* order, const int64_t* weight, const int32_t* starts,
    int n_bins, const int64_t* edge, Py_ssize_t width, const double* bound, double best,
    double found,
) noexcept nogil:
    """Search inside the bins of a feature with missing values on the left and return the least score."""
    cdef int64_t ln, lp
    cdef Limits below = with_missing_below(at, edge, width, starts, n_bins, &ln, &lp)
    cdef double total = <double>at.negative + <double>at.positive
    cdef int b
    for b in range(n_bins):
        if starts[b + 1] - starts[b] < 2:
            continue
        if min(best, found) < INFINITY and (
                bound[b] > score_limit(at.criterion, min(best, found), total)):
            continue
        best = search_rows(&below, order, weight, starts[b], starts[b + 1], edge[b] + ln,
                           edge[width + b] + lp, best, found)
    return best


# The data of a search of several features, the least score, and the bin with the least bound. Threads
# change them under the lock `in_hand`.
cdef struct Search:
    Limits at
    Special special
    const uint8_t* codes
    const int32_t* order
    const int32_t* bin_start
    const int32_t* n_bins
    const int64_t* weight
    int64_t* edge
    double* bound
    double* best
    Py_ssize_t n_rows, n_order, width, bins, first  # strides of the arrays, and the first feature
    bint exact
    double found, least
    Py_ssize_t lead
    int lead_bin
    int32_t in_hand


cdef void coarse_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Search the bin edges of several features."""
    cdef Search* all = <Search*>task
    cdef const Special* s = &all.special
    cdef Py_ssize_t f, k, first = all.first + start, lead = -1
    cdef double found = INFINITY, least = INFINITY
    cdef int b, lead_bin = -1
    cdef int64_t[GROUP * MAX_BINS] negative
    cdef int64_t[GROUP * MAX_BINS] positive
    cdef const int32_t* starts
    cdef int64_t* edge
    cdef double* bound
    for f in range(first, all.first + stop):
        k = (f - first) % GROUP
        starts, edge = all.bin_start + f * all.width, all.edge + 2 * f * all.width
        bound = all.bound + f * all.bins
        if k == 0:
            class_histograms(
                all.codes + f * all.n_rows, all.n_rows, <int>min(GROUP, all.first + stop - f), all.weight,
                all.at.n_negative, all.at.n, negative, positive)
        if has(s, f, HOLES | LEVELS):
            search_special(&all.at, s, f, negative + k * MAX_BINS, positive + k * MAX_BINS, starts, edge,
                           all.width, all.bound, all.bins, all.best)
            found = min(found, all.best[s.d + f])
        else:
            all.best[f] = coarse(&all.at, negative + k * MAX_BINS, positive + k * MAX_BINS, 0, 0, starts,
                                 all.n_bins[f], edge, edge + all.width, bound)
        found = min(found, all.best[f])
        if all.exact and not has(s, f, LEVELS):
            for b in range(all.n_bins[f]):
                if bound[b] < least and starts[b + 1] - starts[b] > 1:
                    least, lead, lead_bin = bound[b], f, b
    lock(&all.in_hand)
    all.found = min(all.found, found)
    if least < all.least:
        all.least, all.lead, all.lead_bin = least, lead, lead_bin
    unlock(&all.in_hand)


cdef double note_found(Search* all, double found) noexcept nogil:
    """Update the least score that the threads share, and return it."""
    lock(&all.in_hand)
    all.found = found = min(all.found, found)
    unlock(&all.in_hand)
    return found


cdef void fine_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Search inside the bins of several features."""
    cdef Search* all = <Search*>task
    cdef const Limits* at = &all.at
    cdef const Special* s = &all.special
    cdef double total = <double>at.negative + <double>at.positive, limit, found
    cdef const int32_t* starts
    cdef const int32_t* order
    cdef const int64_t* edge
    cdef const double* bound
    cdef Py_ssize_t f
    cdef int b
    for f in range(all.first + start, all.first + stop):
        if has(s, f, LEVELS):
            continue
        found = note_found(all, INFINITY)
        limit = score_limit(at.criterion, found, total) if found < INFINITY else INFINITY
        starts, order = all.bin_start + f * all.width, all.order + f * all.n_order
        edge, bound = all.edge + 2 * f * all.width, all.bound + f * all.bins
        for b in range(all.n_bins[f]):
            if bound[b] > limit or starts[b + 1] - starts[b] < 2:
                continue
            all.best[f] = refine_bin(
                at, order, all.weight, starts, b, edge, edge + all.width, all.best[f], found)
            if all.best[f] < found:
                found = all.best[f]
                limit = score_limit(at.criterion, found, total)
        if has(s, f, HOLES):
            all.best[s.d + f] = refine_below(
                at, order, all.weight, starts, all.n_bins[f], edge, all.width,
                all.bound + (s.d + f) * all.bins, all.best[s.d + f], found)
            found = min(found, all.best[s.d + f])
        note_found(all, found)


cdef void refine_lead(Search* all) noexcept nogil:
    """Search inside the most promising bin first, because a low score excludes many others."""
    cdef double total = <double>all.at.negative + <double>all.at.positive
    cdef Py_ssize_t f = all.lead
    cdef int64_t* edge = all.edge + 2 * f * all.width
    if f < 0 or (all.found < INFINITY and all.least > score_limit(all.at.criterion, all.found, total)):
        return
    all.best[f] = refine_bin(
        &all.at, all.order + f * all.n_order, all.weight, all.bin_start + f * all.width, all.lead_bin,
        edge, edge + all.width, all.best[f], all.found)
    all.found = min(all.found, all.best[f])


def search(
    const uint8_t[:, ::1] codes, const int32_t[:, ::1] order, const int32_t[:, ::1] bin_start,
    const int32_t[::1] n_bins, const int64_t[::1] weight, limits, int64_t[:, :, ::1] edge,
    double[:, ::1] bound, double[::1] best, double[::1] least_found, Py_ssize_t first,
    Py_ssize_t last, size_t team=0, const uint8_t[::1] special=None, double smoothing=0.0,
):
    """Search the features first..last-1 and compute their rows of `edge`, `bound` and `best`.

    IN codes, order (0 columns for the binned search), bin_start, n_bins, weight, limits: see `Limits`;
    team: address of the threads, which process the features together; special (d,) or None; smoothing: see
    `Levels`; OUT edge, bound, best; INOUT least_found (1,): the least score of all features known so far,
    or infinity. Splits with a worse score may be ignored.
    """
    cdef Search all
    cdef Py_ssize_t n = last - first
    if (not (0 <= first <= last <= codes.shape[0]) or codes.shape[1] != weight.shape[0]
            or bin_start.shape[1] != edge.shape[2]):
        raise ValueError("search: arrays of different sizes")
    if n == 0:
        return
    all.at, all.special = read_limits(limits), read_special(special, n_bins, smoothing)
    all.exact = order.shape[1] > 0
    all.codes, all.bin_start, all.n_bins = &codes[0, 0], &bin_start[0, 0], &n_bins[0]
    all.order = &order[0, 0] if all.exact else NULL
    all.weight, all.edge, all.bound, all.best = &weight[0], &edge[0, 0, 0], &bound[0, 0], &best[0]
    all.n_rows, all.n_order, all.width = codes.shape[1], order.shape[1], edge.shape[2]
    all.bins, all.first, all.found, all.least = bound.shape[1], first, least_found[0], INFINITY
    all.lead, all.in_hand = -1, 0
    with nogil:
        run_ranges(team_at(team), 0, n, GROUP, coarse_part, &all)
        refine_lead(&all)
        if all.exact:
            run_ranges(team_at(team), 0, n, 1, fine_part, &all)
    # If another thread updates the score at the same time, one update is lost; this does no harm.
    least_found[0] = min(least_found[0], all.found)


def search_edges(
    int64_t[:, :, ::1] edge, const int32_t[:, ::1] bin_start, const int32_t[::1] n_bins, limits,
    double[:, ::1] bound, double[::1] best, const uint8_t[::1] special=None, double smoothing=0.0,
):
    """Search bin edges like `search`, given the class weights at the edges.

    IN edge (d, 2, b + 1), as filled by `search`; bin_start, n_bins, limits, special, smoothing as in
    `search`; OUT bound, best, for `locate`.
    """
    cdef Limits at = read_limits(limits)
    cdef Special s = read_special(special, n_bins, smoothing)
    cdef Py_ssize_t f, d = n_bins.shape[0], width = edge.shape[2], looks = 2 * d if s.kind != NULL else d
    cdef int64_t[2][MAX_BINS] mass
    cdef int b, k, n_codes
    if (edge.shape[0] != d or edge.shape[1] != 2 or bin_start.shape[0] != d or bin_start.shape[1] != width
            or bound.shape[0] != looks or bound.shape[1] != width - 1 or best.shape[0] != looks
            or width > MAX_BINS + 1 or (s.kind != NULL and special.shape[0] != d)):
        raise ValueError("search_edges: arrays of different sizes")
    for f in range(d):
        if not 0 <= n_bins[f] + has(&s, f, HOLES) < width:
            raise ValueError("search_edges: expected an edge after every bin")
    with nogil:
        for f in range(d):
            n_codes = n_bins[f] + has(&s, f, HOLES)
            for k in range(2):
                for b in range(n_codes):
                    mass[k][b] = edge[f, k, b + 1] - edge[f, k, b]
            if has(&s, f, HOLES | LEVELS):
                search_special(&at, &s, f, mass[0], mass[1], &bin_start[f, 0], &edge[f, 0, 0], width,
                               &bound[0, 0], width - 1, &best[0])
                continue
            best[f] = coarse(&at, mass[0], mass[1], 0, 0, &bin_start[f, 0], n_bins[f], &edge[f, 0, 0],
                             &edge[f, 1, 0], &bound[f, 0])
            if s.kind != NULL:
                best[d + f] = INFINITY


cdef int first_within(
    const Limits* at, const int32_t* order, const int64_t* weight, const int32_t* starts,
    int n_bins, int n_codes, const int64_t* edge, Py_ssize_t width, int64_t left_negative,
    int64_t left_positive, const double* bound, double limit, Py_ssize_t* position, int64_t* ln,
    int64_t* lp,
) noexcept nogil:
    """Return the first bin with a split within the limit, inside the bin or at its end, or -1.

    order: NULL for the binned search; n_codes: the number of bins, including the bin of missing values if
    they go to the right; left_negative, left_positive: class weights to the left of all bins, which `edge`
    (2, width) does not include. OUT position, ln, lp: see `locate`.
    """
    cdef int b
    for b in range(n_bins):
        ln[0] = edge[b] + left_negative
        lp[0] = edge[width + b] + left_positive
        if order != NULL and bound[b] <= limit and starts[b + 1] - starts[b] > 1:
            position[0] = first_cut(at, order, weight, starts[b], starts[b + 1], ln, lp, limit)
            if position[0] >= 0:
                return b
        ln[0] = edge[b + 1] + left_negative
        lp[0] = edge[width + b + 1] + left_positive
        if (b != n_codes - 1 and cut_score(at, ln[0], lp[0]) <= limit
                and is_legal(at, ln[0], lp[0], starts[b + 1])):
            position[0] = starts[b + 1]
            return b
    return -1


def locate(
    const int32_t[:, ::1] order, const int32_t[:, ::1] bin_start, const int32_t[::1] n_bins,
    const int64_t[::1] weight, limits, const int64_t[:, :, ::1] edge, const double[:, ::1] bound,
    const double[::1] best, const uint8_t[::1] special=None, double smoothing=0.0,
):
    """Return the first split, by feature and threshold, that is tied with the best found by `search`.

    Returns (feature, bin, position, ln, lp, side, levels), or None if no split is allowed. The split is
    inside `bin` or at its end, between the sorted rows position-1 and position. Its left child has the
    class weights ln and lp. `side` is the child for missing values, -1 if they have no weight. For a
    categorical feature, `levels` contains two sets as integers whose bits are categories: the categories of
    the right child, and the categories without weight. Otherwise, `levels` is None.
    """
    cdef Limits at = read_limits(limits), below
    cdef Special s = read_special(special, n_bins, smoothing)
    cdef Py_ssize_t f, position = -1, d = n_bins.shape[0], width = edge.shape[2]
    cdef double found = INFINITY, limit
    cdef int b = -1, side = -1
    cdef int64_t ln = 0, lp = 0, left_negative, left_positive
    cdef const int32_t* sorted_rows
    for f in range(best.shape[0]):
        found = min(found, best[f])
    if found == INFINITY:
        return None
    limit = score_limit(at.criterion, found, <double>at.negative + <double>at.positive)
    f = 0
    while best[f] > limit and (s.kind == NULL or best[d + f] > limit):
        f += 1
    if has(&s, f, LEVELS):
        return locate_levels(&at, &s, f, &bin_start[f, 0], &edge[f, 0, 0], width, limit)
    with nogil:
        sorted_rows = &order[f, 0] if order.shape[1] > 0 else NULL
        if best[f] <= limit:
            side = 1 if has(&s, f, HOLES) else -1
            b = first_within(&at, sorted_rows, &weight[0], &bin_start[f, 0], n_bins[f],
                             n_bins[f] + has(&s, f, HOLES), &edge[f, 0, 0], width, 0, 0,
                             &bound[f, 0], limit, &position, &ln, &lp)
        elif s.kind != NULL:
            side = 0
            below = with_missing_below(&at, &edge[f, 0, 0], width, &bin_start[f, 0], n_bins[f],
                                       &left_negative, &left_positive)
            b = first_within(&below, sorted_rows, &weight[0], &bin_start[f, 0], n_bins[f], n_bins[f],
                             &edge[f, 0, 0], width, left_negative, left_positive, &bound[d + f, 0],
                             limit, &position, &ln, &lp)
    if b < 0:
        raise RuntimeError(f"locate: the best cut of feature {f} was not found again")
    if side >= 0 and (edge[f, 0, n_bins[f]] + edge[f, 1, n_bins[f]] == at.negative + at.positive):
        side = -1
    return f, b, position, ln, lp, side, None


cdef object locate_levels(
    const Limits* at, const Special* s, Py_ssize_t f, const int32_t* starts, const int64_t* edge,
    Py_ssize_t width, double limit,
):
    """Return the result of `locate` for the first set of categories with a score within the limit."""
    cdef int64_t[3][MAX_BINS] mass  # weights of both classes, and numbers of rows
    cdef double ignored = INFINITY
    cdef LevelCut cut
    cdef Levels levels
    cdef int b, n_codes = s.n_bins[f] + has(s, f, HOLES)
    cdef object one = 1  # use a Python integer, because a set has up to 255 bits
    for b in range(n_codes):
        mass[0][b] = edge[b + 1] - edge[b]
        mass[1][b] = edge[width + b + 1] - edge[width + b]
    read_levels(s, f, mass[0], mass[1], starts, mass[2], &levels)
    if not scan_levels(at, &levels, limit, &ignored, &cut):
        raise RuntimeError(f"locate: the best cut of feature {f} was not found again")
    above = sum([one << levels.order[b] for b in range(cut.first, cut.last)])
    absent = sum([one << b for b in range(levels.n) if mass[0][b] + mass[1][b] <= 0])
    b = levels.n
    side = cut.side if levels.has_missing and mass[0][b] + mass[1][b] > 0 else -1
    return f, 0, 0, cut.ln, cut.lp, side, (above, absent)
