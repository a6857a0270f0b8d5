# The search for the best split of a boosted tree's node, over features and bins.
#
# Ties go to the lowest feature, then to missing values on the right, then to the lowest bin.
from libc.math cimport INFINITY
from libc.string cimport memcpy, memset

from pboost._core._boost_categories cimport search_levels
from pboost._core._boost_jitter cimport keep_better
from pboost._core._boost_costs cimport cost_of, tradeoff_of, worth_of
from pboost._core._boost_round cimport (
    ABREAST, Cut, Cuts, LANES, Lane, Lanes, Masses, Node, Round, bundled_below, is_any, is_packed,
    kind_of, masses_of, n_groups, own_score, read_bin, read_lane, take_better, try_sums,
)
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, uint8_t


cdef inline bint is_left_out(const Round* r, Py_ssize_t f) noexcept nogil:
    return r.of_node != NULL and not r.of_node[f]


cdef inline Cut no_cut(const Masses* at) noexcept nogil:
    cdef Cut cut
    cdef double least = -INFINITY if at.is_bounded else -1.0
    cut.feature, cut.numerator, cut.divisor, cut.value = -1, least, 1.0, least
    return cut


cdef inline Cut* begin_feature(const Round* r, const Masses* at, Cut* own, Cut* best) noexcept nogil:
    """Return where to store the splits of a feature: `best`, or with jitter `own`."""
    if r.jitter == 0.0:
        return best
    own[0] = no_cut(at)
    return own


cdef inline void end_feature(const Round* r, const Node* node, const Cut* own, Cut* best) noexcept nogil:
    """With jitter, keep the better of the best splits of this feature and of the features before it."""
    if r.jitter != 0.0:
        keep_better(r, node, own, best)


cdef inline Py_ssize_t search_bundled(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t i, Py_ssize_t stop,
    Cut* best
) noexcept nogil:
    """Try the bundled features from number i up to feature `stop`.

    Return the number of the next bundled feature.
    """
    cdef double gradient, curvature
    cdef Py_ssize_t f
    cdef Cut own
    while i < r.n_bundled and r.bundled[i] < stop:
        f = r.bundled[i]
        i += 1
        if not is_left_out(r, f):
            bundled_below(r, node, slot, f, &gradient, &curvature)
            try_sums(begin_feature(r, at, &own, best), at, gradient, curvature, f, 0, -1)
            end_feature(r, node, &own, best)
    return i


cdef inline bint find_missing(
    const Round* r, const Node* node, const double* slot, Py_ssize_t g, double* masses, bint* some
) noexcept nogil:
    """Read the sums of missing values for a group of numerical features.

    Return whether there are missing values.

    OUT masses, laid out like a bin; OUT some: whether each feature has missing values.
    """
    cdef Py_ssize_t k, f
    cdef double gradient, curvature
    cdef bint is_any_missing = False, packed = is_packed(r, node)
    memset(masses, 0, 2 * LANES * sizeof(double))
    memset(some, 0, LANES * sizeof(bint))
    if r.special == NULL:
        return False
    for k in range(min(LANES, r.n_lanes - LANES * g)):
        f = r.column[LANES * g + k]
        if f >= 0 and r.special[f] & HOLES and not r.special[f] & LEVELS:
            read_bin(r, node, slot, LANES * g + k, r.n_bins[f], &gradient, &curvature)
            some[k] = curvature > 0.0
            is_any_missing = is_any_missing or some[k]
            if packed:
                memcpy(masses + k, slot + r.group_place[g] + <Py_ssize_t>r.n_bins[f] * LANES + k, sizeof(double))
            else:
                masses[k], masses[LANES + k] = gradient, curvature
    return is_any_missing


cdef inline Py_ssize_t search_group(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t g,
    const Cuts* above, Py_ssize_t next_, Cut* best
) noexcept nogil:
    """Search the features of a group in order, without limits on row counts.

    `above` contains their best splits with missing values on the right. Bundled features are also searched
    in feature order, beginning with number `next_`. Return the number of the next bundled feature.
    """
    cdef double[2 * LANES] missing
    cdef bint[LANES] some
    cdef Cuts below
    cdef Lanes lanes
    cdef Py_ssize_t k, f
    cdef Cut own
    cdef Cut* to
    if find_missing(r, node, slot, g, missing, some):
        lanes.masses, lanes.below, lanes.bins = slot + r.group_place[g], missing, r.group_bins[g]
        r.passes.scan(&lanes, 1, is_packed(r, node), at, &below)
    for k in range(min(LANES, r.n_lanes - LANES * g)):
        f = r.column[LANES * g + k]
        if f < 0 or is_left_out(r, f):
            continue
        next_ = search_bundled(r, node, at, slot, next_, f, best)
        to = begin_feature(r, at, &own, best)
        if kind_of(r, f) & LEVELS:
            search_levels(r, node, at, slot, f, NULL, to)
        elif above.bin[k] >= 0:
            take_better(to, above.numerator[k], above.divisor[k], f, above.bin[k], 1 if some[k] else -1)
        if some[k] and below.bin[k] >= 0:
            take_better(to, below.numerator[k], below.divisor[k], f, below.bin[k], 0)
        end_feature(r, node, &own, best)
    return next_


cdef inline void search_groups(
    const Round* r, const Node* node, const Masses* at, const double* slot, Cut* best
) noexcept nogil:
    """Search all features in order, without limits on row counts."""
    cdef double[2 * LANES] nothing
    cdef Lanes[ABREAST] lanes
    cdef Py_ssize_t[ABREAST] number
    cdef Cuts[ABREAST] above
    cdef Py_ssize_t g, i, n = 0, next_ = 0
    memset(nothing, 0, sizeof(nothing))
    for g in range(n_groups(r)):
        if is_any(r, r.of_node, g):
            lanes[n].masses, lanes[n].below = slot + r.group_place[g], nothing
            lanes[n].bins, number[n] = r.group_bins[g], g
            n += 1
        if n == ABREAST or (n > 0 and g == n_groups(r) - 1):
            r.passes.scan(lanes, <int>n, is_packed(r, node), at, above)
            for i in range(n):
                next_ = search_group(r, node, at, slot, number[i], above + i, next_, best)
            n = 0
    search_bundled(r, node, at, slot, next_, r.d, best)


cdef inline void count_rows(
    const Round* r, const Node* node, Py_ssize_t f, int32_t* count
) noexcept nogil:
    """Count the rows of a node in each bin of a feature."""
    cdef const uint8_t* codes = r.codes + f * r.stride
    cdef Py_ssize_t i
    if r.rows_by_bin != NULL:
        memcpy(count, r.rows_by_bin + f * MAX_BINS, sizeof(int32_t) * MAX_BINS)
        return
    for i in range(MAX_BINS):
        count[i] = 0
    for i in range(node.start, node.stop):
        count[codes[r.rows[i]]] += 1


cdef inline void search_counted(
    const Round* r, const Node* node, const Masses* at, const double* slot, Py_ssize_t f,
    const int32_t* count, Cut* best,
) noexcept nogil:
    """Search a numerical feature.

    `count` contains the number of rows in each bin. It is NULL if a child may have any number of rows.
    """
    cdef Lane lane
    cdef Py_ssize_t b, n_bins = r.n_bins[f], n_below, n_missing = 0
    cdef Masses side = at[0]
    cdef double gl, hl
    cdef int turn
    if r.code[f]:
        if count == NULL or min(count[0], count[1]) >= r.min_leaf:
            bundled_below(r, node, slot, f, &gl, &hl)
            try_sums(best, at, gl, hl, f, 0, -1)
        return
    read_lane(r, node, slot, f, &lane)
    if kind_of(r, f) & HOLES:
        n_missing = count[n_bins] if count != NULL else lane.curvature[n_bins] > 0.0
    for turn in range(1, -1, -1):
        if turn == 0 and n_missing == 0:
            break
        gl = 0.0 if turn else lane.gradient[n_bins]
        hl = 0.0 if turn else lane.curvature[n_bins]
        n_below = 0 if turn else n_missing
        for b in range(n_bins):
            gl += lane.gradient[b]
            hl += lane.curvature[b]
            if count != NULL:
                n_below += count[b]
                if min(n_below, node.stop - node.start - n_below) < r.min_leaf:
                    continue
            side.direction = at.direction if b < n_bins - 1 else 0  # known against missing values
            try_sums(best, &side, gl, hl, f, <int32_t>b, turn if n_missing else -1)


cdef inline void search_column(
    const Round* r, const Node* node, Masses* at, const double* slot, Py_ssize_t f, int32_t* count, Cut* best
) noexcept nogil:
    """Search one feature.

    WORK count: the number of rows in each bin. It is NULL if a child may have any number of rows.
    """
    if count != NULL:
        count_rows(r, node, f, count)
    if at.is_bounded:
        at.direction = r.direction[f]
    if kind_of(r, f) & LEVELS:
        search_levels(r, node, at, slot, f, count, best)
    else:
        search_counted(r, node, at, slot, f, count, best)


cdef inline void search(
    const Round* r, Node* node, const double* slot, bint counted, Cut* best
) noexcept nogil:
    """Find the best split of a node; if `counted` is true, both children must have enough rows.

    With feature costs, splits are compared by `worth_of` instead of by gain.
    """
    cdef Masses at = masses_of(r, node)
    cdef int32_t[MAX_BINS] count_
    cdef int32_t* count = count_ if counted else NULL
    cdef Cut cut
    cdef double own, score, most = -INFINITY, tradeoff = tradeoff_of(r, node)
    cdef Py_ssize_t f
    best[0] = no_cut(&at)
    if not counted and not at.is_bounded and r.item == NULL:
        search_groups(r, node, &at, slot, best)
        return
    own = own_score(&at)
    if tradeoff >= 0.0:
        most = 0.0
    for f in range(r.d):
        if is_left_out(r, f):
            continue
        if r.item == NULL:
            search_column(r, node, &at, slot, f, count, begin_feature(r, &at, &cut, best))
            end_feature(r, node, &cut, best)
            continue
        cut = no_cut(&at)
        search_column(r, node, &at, slot, f, count, &cut)
        if cut.feature >= 0:
            score = worth_of(cut.numerator / cut.divisor - own, cost_of(r, f), tradeoff)
            if score > most:
                best[0], most = cut, score
    node.net = most
