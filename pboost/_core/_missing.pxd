# Search for the split of one feature with missing values at one node. Missing values are tried in the right
# child, then in the left.
#
# In sorted order, rows with a missing value come last. Binned features have a separate bin for missing
# values, after all others. If missing values go to the left, their sums are added to the left side of every
# split, and the position of a split includes their number.
#
# The split between known and missing values has the missing values on the right.
from libc.math cimport INFINITY, sqrt

from pboost._core._cut cimport BOUND_SLACK, Limits, cut_score, is_legal
from pboost._core._grower cimport Found, Tree, judge_of, size_of, two_classes
from pboost._core._scan cimport (
    Bins, Edges, bin_at, find_legal, is_few, list_bins, list_edges, list_few, scan_cells, scan_classes,
    scan_order, score_classes, score_squares,
)
from pboost._core._segment cimport (
    BLOCKS, Blocks, FEW_ROWS as FEW_SORTED, STRIDE, block_masses, first_cut, pruning_limit,
    score_blocks,
)
from pboost._core._squares cimport scan_squares
from pboost._core.split cimport (
    Judge, KEARNS_MANSOUR, Masses, Sums, add, begin, limit_of, move, score, score_many,
)
from pboost._core.types cimport int32_t, int64_t, is_tied, row_of, uint8_t

cdef enum:
    FEW_CODES = 256  # if there are more rows, the first missing value is found by bisection
cdef enum:
    BELOW = 0
    ABOVE = 1

# Number and class weights of a node's rows with a missing value, for two classes.
cdef struct Missing:
    Py_ssize_t n
    int64_t negative, positive


cdef inline Py_ssize_t count_known(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, const int32_t* order
) noexcept nogil:
    """Count the rows of a node with a known value in a sorted feature. These rows come first."""
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t first = 0, last = size_of(t, e), middle
    if codes[row_of(order[last - 1])] < t.n_bins[f]:
        return last
    last -= 1
    if last < FEW_CODES:  # all rows with a missing value are marked as tied, except for the first
        while is_tied(order[last]):
            last -= 1
        return last
    while first < last:
        middle = (first + last) // 2
        if codes[row_of(order[middle])] < t.n_bins[f]:
            first = middle + 1
        else:
            last = middle
    return first


# Sorted rows with two classes.

cdef inline Missing missing_masses(
    const Limits* limits, const int32_t* order, const int64_t* weight, Py_ssize_t n_known
) noexcept nogil:
    cdef Missing missing
    cdef int64_t w
    cdef Py_ssize_t i
    cdef int32_t row
    missing.n, missing.negative, missing.positive = limits.n - n_known, 0, 0
    for i in range(n_known, limits.n):
        row = row_of(order[i])
        w = weight[row]
        missing.negative += w
        missing.positive += -<int64_t>(row >= limits.n_negative) & w
    missing.negative -= missing.positive
    return missing


cdef inline bint may_ask(const Limits* limits, const Missing* missing) noexcept nogil:
    """Return whether the split between known and missing values is allowed."""
    return is_legal(limits, limits.negative - missing.negative, limits.positive - missing.positive,
                    limits.n - missing.n)


cdef inline double score_asking(const Limits* limits, const Missing* missing) noexcept nogil:
    return cut_score(limits, limits.negative - missing.negative, limits.positive - missing.positive)


cdef inline double limit_apart(
    const Limits* limits, const Missing* missing, double limit
) noexcept nogil:
    """Return a score limit: splits of the known rows that score above it need not be tried.

    Adding the missing rows on either side cannot bring such a split to `limit`: merging two of three parts
    does not lower a concave criterion.
    """
    cdef double apart = score(
        limits.criterion, <double>missing.positive, <double>missing.negative, 0.0, 0.0)
    cdef double root
    limit /= BOUND_SLACK
    if limits.criterion != KEARNS_MANSOUR:
        return (limit - apart) / BOUND_SLACK
    root = (sqrt(limit) - sqrt(apart)) / BOUND_SLACK  # the score is the square of half the criterion
    return root * root if root >= 0.0 else -1.0


cdef inline double try_sides(
    const Limits* limits, const Missing* missing, int64_t ln, int64_t lp, Py_ssize_t count, double best
) noexcept nogil:
    """Return the least of `best` and the split's scores with missing values on the right and on the left.
    """
    if is_legal(limits, ln, lp, count):
        best = min(best, cut_score(limits, ln, lp))
    ln += missing.negative
    lp += missing.positive
    if is_legal(limits, ln, lp, count + missing.n):
        best = min(best, cut_score(limits, ln, lp))
    return best


# The splits of a small number of known rows: class weights and number of rows on the left.
cdef struct Cuts:
    Py_ssize_t n
    int64_t[FEW_SORTED] ln
    int64_t[FEW_SORTED] lp
    int32_t[FEW_SORTED] count


cdef inline void list_cuts(
    const Limits* limits, const int32_t* order, const int64_t* weight, Py_ssize_t start,
    Py_ssize_t stop, int64_t* ln, int64_t* lp, Cuts* cuts,
) noexcept nogil:
    """List the splits between the rows start..stop-1.

    INOUT ln, lp: class weights of the rows before `start`, then before `stop`.
    """
    cdef int64_t positive = lp[0], both = ln[0] + lp[0], w
    cdef Py_ssize_t i, n = 0
    cdef int32_t row
    for i in range(start, stop):
        row = row_of(order[i])
        w = weight[row]
        both += w
        positive += -<int64_t>(row >= limits.n_negative) & w
        cuts.ln[n], cuts.lp[n], cuts.count[n] = both - positive, positive, <int32_t>(i + 1)
        n += i + 1 < stop and not is_tied(order[i + 1])
    cuts.n = n
    ln[0], lp[0] = both - positive, positive


cdef inline double try_cuts(
    const Limits* limits, const Missing* missing, const Cuts* cuts, double best, double found
) noexcept nogil:
    """Return the least of `best` and the scores of the splits. Scores above `found` may be ignored."""
    cdef double[4][FEW_SORTED] mass
    cdef double[FEW_SORTED] apart
    cdef Masses masses
    cdef int64_t negative = limits.negative - missing.negative
    cdef int64_t positive = limits.positive - missing.positive
    cdef Py_ssize_t k, lead = 0
    cdef double limit
    masses.ln, masses.lp, masses.rn, masses.rp = mass[0], mass[1], mass[2], mass[3]
    for k in range(cuts.n):
        mass[0][k], mass[1][k] = <double>cuts.ln[k], <double>cuts.lp[k]
        mass[2][k] = <double>(negative - cuts.ln[k])
        mass[3][k] = <double>(positive - cuts.lp[k])
    score_many(limits.criterion, &masses, 0, 0, cuts.n, apart)
    for k in range(cuts.n):
        if apart[k] < apart[lead]:
            lead = k
    limit = limit_apart(limits, missing, pruning_limit(limits, min(best, found)))
    if cuts.n == 0 or apart[lead] > limit:
        return best
    # Try the most promising split first, because a low score excludes many others.
    best = try_sides(limits, missing, cuts.ln[lead], cuts.lp[lead], cuts.count[lead], best)
    limit = limit_apart(limits, missing, pruning_limit(limits, min(best, found)))
    for k in range(cuts.n):
        if apart[k] <= limit and k != lead:
            best = try_sides(limits, missing, cuts.ln[k], cuts.lp[k], cuts.count[k], best)
    return best


cdef inline double ask(const Limits* limits, const Missing* missing) noexcept nogil:
    """Return the score of the split between known and missing values, or infinity if it is not allowed."""
    return score_asking(limits, missing) if may_ask(limits, missing) else INFINITY


cdef inline double search_known_blocks(
    const Limits* limits, const int32_t* order, const int64_t* weight, const Missing* missing,
    const Blocks* blocks, double best, double found,
) noexcept nogil:
    """Search like `search_blocks`, and try missing values on both sides.

    `blocks` contains the scores of the known rows alone.
    """
    cdef double limit = limit_apart(limits, missing, pruning_limit(limits, min(best, found)))
    cdef Py_ssize_t b, lead = 0, turn, start
    cdef int64_t ln, lp
    cdef Cuts cuts
    for b in range(blocks.n):
        start = blocks.start + b * STRIDE
        if blocks.at[b] <= limit and start > 0 and not is_tied(order[start]):
            best = try_sides(limits, missing, blocks.ln[b], blocks.lp[b], start, best)
        if blocks.bound[b] < blocks.bound[lead]:
            lead = b
    for turn in range(-1, blocks.n):
        b = lead if turn < 0 else turn
        if blocks.bound[b] <= limit and turn != lead:
            start = blocks.start + b * STRIDE
            ln, lp = blocks.ln[b], blocks.lp[b]
            list_cuts(limits, order, weight, start, min(start + STRIDE, blocks.stop), &ln, &lp, &cuts)
            best = try_cuts(limits, missing, &cuts, best, found)
            limit = limit_apart(limits, missing, pruning_limit(limits, min(best, found)))
    return best


cdef inline double search_known(
    const Limits* limits, const int32_t* order, const int64_t* weight, Py_ssize_t n_known,
    double found,
) noexcept nogil:
    """Return the least score of a split, like `search_rows`."""
    cdef Blocks blocks
    cdef Cuts cuts
    cdef Limits known = limits[0]
    cdef Missing missing
    cdef double best = INFINITY
    missing.n = limits.n - n_known
    if n_known <= FEW_SORTED:
        known.negative = known.positive = 0
        list_cuts(limits, order, weight, 0, n_known, &known.negative, &known.positive, &cuts)
        missing.negative = limits.negative - known.negative
        missing.positive = limits.positive - known.positive
        return try_cuts(limits, &missing, &cuts, ask(limits, &missing), found)
    blocks.stop = blocks.ln[0] = blocks.lp[0] = 0
    while blocks.stop < n_known:
        blocks.start = blocks.stop
        blocks.stop = min(blocks.start + BLOCKS * STRIDE, n_known)
        block_masses(limits, order, weight, &blocks)
        if blocks.start == 0:
            if blocks.stop < n_known:
                missing = missing_masses(limits, order, weight, n_known)
            else:
                missing.negative = limits.negative - blocks.ln[blocks.n]
                missing.positive = limits.positive - blocks.lp[blocks.n]
            known.negative -= missing.negative
            known.positive -= missing.positive
            best = ask(limits, &missing)
        score_blocks(&known, &blocks)
        best = search_known_blocks(limits, order, weight, &missing, &blocks, best, found)
        blocks.ln[0] = blocks.ln[blocks.n]
        blocks.lp[0] = blocks.lp[blocks.n]
    return best


cdef inline Py_ssize_t find_known(
    const Limits* limits, const int32_t* order, const int64_t* weight, const Missing* missing,
    double limit, int64_t* below, int32_t* side,
) noexcept nogil:
    """Return the first split within the limit, or -1.

    OUT below: class weights of the left child; side: the child for missing values.
    """
    cdef Py_ssize_t n_known = limits.n - missing.n, position
    side[0] = ABOVE
    below[0] = below[1] = 0
    position = first_cut(limits, order, weight, 0, n_known, &below[0], &below[1], limit)
    if position >= 0:
        return position
    if may_ask(limits, missing) and score_asking(limits, missing) <= limit:
        below[0] = limits.negative - missing.negative
        below[1] = limits.positive - missing.positive
        return n_known
    side[0] = BELOW
    below[0], below[1] = missing.negative, missing.positive
    position = first_cut(limits, order - missing.n, weight, missing.n, limits.n, &below[0],
                         &below[1], limit)
    return position - missing.n if position >= 0 else -1


# Sorted rows with any kind of target.

cdef inline Py_ssize_t scan_known(
    const Tree* t, Py_ssize_t e, const int32_t* order, Py_ssize_t n_known, double limit,
    double found, double* best, int64_t* work, int64_t* below,
) noexcept nogil:
    """Search like `scan_order`, with missing values in all rows after the first `n_known`.

    To locate a split, also set the child for missing values.
    """
    cdef Py_ssize_t n = size_of(t, e), position, i, j, stop, first = 0
    cdef int32_t* side = &t.node[e].missing
    cdef Limits limits
    cdef Missing missing
    cdef Judge at
    cdef Sums sums
    cdef int32_t turn
    if n_known == n or n_known == 0:
        return scan_order(t, e, order, limit, found, best, work, below)
    if t.n_classes == 2:
        limits = two_classes(t, e)
        if below != NULL:
            missing = missing_masses(&limits, order, t.fixed, n_known)
            return find_known(&limits, order, t.fixed, &missing, limit, below, side)
        best[0] = search_known(&limits, order, t.fixed, n_known, found)
        return -1
    at = judge_of(t, e, work)
    for turn in range(ABOVE, BELOW - 1, -1):
        stop = n_known  # includes the split just before the rows with missing values
        if t.squares:
            sums.below.w = sums.below.v = 0
        else:
            begin(&at, &sums)
        if turn == BELOW:
            first, stop = n - n_known, n - 1
            for i in range(n_known, n):
                add(&at, at.criterion, &sums, row_of(order[i]))
        if t.squares:
            position = scan_squares(
                &at, order - first, first, stop, limit, min(found, best[0]), best, &sums)
        else:
            position = scan_classes(&at, order - first, first, stop, limit, best, &sums)
        if position >= 0:
            side[0] = turn
            if t.squares:
                below[0], below[1] = sums.below.w, sums.below.v
            else:
                for j in range(t.n_classes):
                    below[j] = at.left[j]
            return position - first
    return -1


# ---------------------------------------------------------------------------------------------
# Bins.

cdef inline Py_ssize_t scan_known_bins(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below,
) noexcept nogil:
    """Search like `scan_class_bins`, with missing values."""
    cdef Judge at = judge_of(t, e, work)
    cdef Py_ssize_t k = t.n_classes, j, place, last
    cdef int64_t* cells = work + 4 * k
    cdef int64_t* missing
    cdef Bins bins
    cdef Sums sums
    list_bins(t, e, f, cells, &bins)
    missing = cells + bins.n * (k + 1)
    begin(&at, &sums)
    place = scan_cells(&at, cells, bins.n, 0, missing[k] == 0, limit, best, &sums, below)
    if missing[k] == 0:
        return bin_at(&bins, place)
    if place >= 0:
        t.node[e].missing = ABOVE
        last = bins.n - 1
        while cells[last * (k + 1) + k] == 0:
            last -= 1
        place = t.n_bins[f] - 1 if place == last else bin_at(&bins, place)
    begin(&at, &sums)
    for j in range(k):
        if missing[j]:
            move(&at, at.criterion, &sums, j, missing[j])
            missing[j] = 0
    if place >= 0:
        limit = -INFINITY
    last = scan_cells(&at, cells, bins.n, <Py_ssize_t>missing[k], True, limit, best, &sums, below)
    missing[k] = 0
    if last >= 0:
        t.node[e].missing, place = BELOW, bin_at(&bins, last)
    return place


cdef inline void put_below(const Edges* edges, Edges* out) noexcept nogil:
    """Add the missing values, the last bin of `edges`, to the left side of all splits."""
    cdef Py_ssize_t i, last = edges.last - 1
    cdef int64_t one = edges.one[last] - edges.one[last - 1]
    cdef int64_t two = edges.two[last] - edges.two[last - 1]
    cdef int32_t count = edges.count[last] - edges.count[last - 1]
    for i in range(last):
        out.one[i], out.two[i] = edges.one[i] + one, edges.two[i] + two
        out.bin[i], out.count[i] = edges.bin[i], edges.count[i] + count
    out.last = last


cdef inline Py_ssize_t scan_known_edges(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below, Found* kept,
) noexcept nogil:
    """Search like `scan_edges`, with missing values."""
    cdef Edges above, other
    cdef Judge at = judge_of(t, e, work)
    cdef Py_ssize_t i, n_bins = t.n_bins[f], asked = -1
    cdef int32_t* side = &t.node[e].missing
    if is_few(t, e):
        list_few(t, e, f, &above)
    else:
        list_edges(t, e, f, n_bins + 1, work + 4 * t.n_classes, &above)
    other.first = other.last = 0
    if above.last > 1 and above.bin[above.last - 1] == n_bins:
        asked = above.last - 2
        put_below(&above, &other)
        find_legal(&other, t, e)
    find_legal(&above, t, e)
    if t.squares:
        best[0] = score_squares(&at, &other, score_squares(&at, &above, best[0]))
    else:
        best[0] = score_classes(t, e, &other, score_classes(t, e, &above, best[0]))
    if below == NULL:
        if kept == NULL or best[0] >= kept.score:
            return -1
        kept.score = best[0]
        limit = limit_of(&at, best[0])
        kept.node, kept.feature, kept.missing = <int32_t>e, <int32_t>f, -1
        below, side = kept.below, &kept.missing
    i = above.first
    while i < above.last and above.score[i] > limit:
        i += 1
    if i < above.last:
        below[0], below[1] = above.one[i], above.two[i]
        if asked >= 0:
            side[0] = ABOVE
        i = n_bins - 1 if i == asked else above.bin[i]
    else:
        i = other.first
        while i < other.last and other.score[i] > limit:
            i += 1
        if i == other.last:
            return -1
        below[0], below[1] = other.one[i], other.two[i]
        side[0], i = BELOW, other.bin[i]
    if kept != NULL:
        kept.place = <int32_t>i
    return i


cdef inline Py_ssize_t scan_column_with_holes(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double found, double* best,
    int64_t* work, int64_t* below, Found* kept,
) noexcept nogil:
    """Search like `scan_column`, with missing values.

    To locate a split, also set the child for missing values.
    """
    cdef const int32_t* order
    if t.exact:
        order = t.order + f * t.n + t.node[e].start
        return scan_known(
            t, e, order, count_known(t, e, f, order), limit, found, best, work, below)
    if t.squares or t.n_classes == 2:
        return scan_known_edges(t, e, f, limit, best, work, below, kept)
    return scan_known_bins(t, e, f, limit, best, work, below)
