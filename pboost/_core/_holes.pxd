# Search of one column with missing values at one node: they lie above every cut, then below.
#
# Sorted, missing rows stand last, and binned they have the code after the last bin: above, they are one
# more bin. Below, their masses are added to the left of every cut. Positions are numbers of rows
# below, the missing ones included: known row i is at position i + n_missing then, which an order
# that begins n_missing entries earlier says. A place is a number of known rows, or a bin.
#
# The cut between the known rows and the missing ones, "is it missing?", is that of missing above.
from libc.math cimport INFINITY

from pboost._core._cut cimport Limits, cut_score, is_legal
from pboost._core._grower cimport Found, Tree, judge_of, size_of, two_classes
from pboost._core._scan cimport (
    Edges, FEW_ROWS, count_bins, find_legal, list_edges, list_few, scan_cells, scan_classes, scan_order,
    score_classes, score_squares, sort_few,
)
from pboost._core._segment cimport (
    BLOCKS, Blocks, FEW_ROWS as FEW_SORTED, STRIDE, block_masses, first_cut, score_blocks,
    search_blocks,
)
from pboost._core._squares cimport scan_squares
from pboost._core.criteria cimport Judge, Masses, Sums, add, begin, limit_of, move, score_many
from pboost._core.types cimport int32_t, int64_t, is_tied, row_of, uint8_t

cdef enum:
    FEW_CODES = 256  # in more rows the first that is missing is searched for by halves
cdef enum:
    BELOW = 0
    ABOVE = 1

# The rows of a node without a value, of two classes: their number and their masses.
cdef struct Missing:
    Py_ssize_t n
    int64_t negative, positive


cdef inline Py_ssize_t count_known(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, const int32_t* order
) noexcept nogil:
    """Number of rows of a node that have a value in a sorted column: they come first."""
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t first = 0, last = size_of(t, e), middle
    if codes[row_of(order[last - 1])] < t.n_bins[f]:
        return last
    last -= 1
    if last < FEW_CODES:  # missing rows are tied, but for the first
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


# ---------------------------------------------------------------------------------------------
# Sorted rows of two classes.

cdef inline Missing missing_masses(
    const Tree* t, const int32_t* order, Py_ssize_t n_known, Py_ssize_t n
) noexcept nogil:
    cdef Missing missing
    cdef int64_t w
    cdef Py_ssize_t i
    cdef int32_t row
    missing.n, missing.negative, missing.positive = n - n_known, 0, 0
    for i in range(n_known, n):
        row = row_of(order[i])
        w = t.fixed[row]
        missing.negative += w
        missing.positive += -<int64_t>(row >= t.n_negative) & w
    missing.negative -= missing.positive
    return missing


cdef inline void move_blocks(Blocks* blocks, const Missing* missing, int times) noexcept nogil:
    """Add the missing rows so many times to the left of the blocks."""
    cdef Py_ssize_t b
    for b in range(blocks.n + 1):
        blocks.ln[b] += times * missing.negative
        blocks.lp[b] += times * missing.positive
    blocks.start += times * missing.n
    blocks.stop += times * missing.n


cdef inline bint may_ask(const Limits* limits, const Missing* missing) noexcept nogil:
    """Whether "is it missing?" is a legal cut."""
    return is_legal(limits, limits.negative - missing.negative, limits.positive - missing.positive,
                    limits.n - missing.n)


cdef inline double score_asking(const Limits* limits, const Missing* missing) noexcept nogil:
    return cut_score(limits, limits.negative - missing.negative, limits.positive - missing.positive)


cdef inline double search_few_known(
    const Limits* limits, const int32_t* order, const int64_t* weight, const Missing* missing,
    double best,
) noexcept nogil:
    """The same of at most FEW_SORTED known rows, all of whose cuts are scored at once."""
    cdef int64_t[2][FEW_SORTED] low  # masses below, of both classes
    cdef int32_t[FEW_SORTED] count
    cdef double[4][FEW_SORTED] mass
    cdef double[FEW_SORTED] score
    cdef Masses masses
    cdef int64_t ln = 0, lp = 0, w, positive
    cdef Py_ssize_t i, k, n = 0, times
    cdef int32_t row
    for i in range(limits.n - missing.n - 1):
        row = row_of(order[i])
        w = weight[row]
        positive = -<int64_t>(row >= limits.n_negative) & w
        lp += positive
        ln += w - positive
        low[0][n], low[1][n], count[n] = ln, lp, <int32_t>(i + 1)
        n += not is_tied(order[i + 1])
    masses.ln, masses.lp, masses.rn, masses.rp = mass[0], mass[1], mass[2], mass[3]
    for times in range(2):
        for k in range(n):
            low[0][k] += times * missing.negative
            low[1][k] += times * missing.positive
            mass[0][k], mass[1][k] = <double>low[0][k], <double>low[1][k]
            mass[2][k] = <double>(limits.negative - low[0][k])
            mass[3][k] = <double>(limits.positive - low[1][k])
        score_many(limits.criterion, &masses, 0, 0, n, score)
        for k in range(n):
            if score[k] < best and is_legal(
                    limits, low[0][k], low[1][k], count[k] + times * missing.n):
                best = score[k]
    return best


cdef inline double search_known(
    const Limits* limits, const int32_t* order, const int64_t* weight, const Missing* missing,
    double found,
) noexcept nogil:
    """Least score of a cut, as `search_rows`; each row is read once for both sides."""
    cdef Blocks blocks
    cdef const int32_t* later = order - missing.n
    cdef Py_ssize_t n_known = limits.n - missing.n
    cdef double best = score_asking(limits, missing) if may_ask(limits, missing) else INFINITY
    if n_known <= FEW_SORTED:
        return search_few_known(limits, order, weight, missing, best)
    blocks.stop = blocks.ln[0] = blocks.lp[0] = 0
    while blocks.stop < n_known:
        blocks.start = blocks.stop
        blocks.stop = min(blocks.start + BLOCKS * STRIDE, n_known)
        block_masses(limits, order, weight, &blocks)
        score_blocks(limits, &blocks)
        best = search_blocks(limits, order, weight, &blocks, best, found)
        move_blocks(&blocks, missing, 1)
        score_blocks(limits, &blocks)
        best = search_blocks(limits, later, weight, &blocks, best, found)
        move_blocks(&blocks, missing, -1)
        blocks.ln[0] = blocks.ln[blocks.n]
        blocks.lp[0] = blocks.lp[blocks.n]
    return best


cdef inline Py_ssize_t find_known(
    const Limits* limits, const int32_t* order, const int64_t* weight, const Missing* missing,
    double limit, int64_t* below, int32_t* side,
) noexcept nogil:
    """Place of the first cut within the limit, or -1. OUT below: masses; side: of missing rows."""
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


# ---------------------------------------------------------------------------------------------
# Sorted rows.

cdef inline Py_ssize_t scan_known(
    const Tree* t, Py_ssize_t e, const int32_t* order, Py_ssize_t n_known, double limit,
    double found, double* best, int64_t* work, int64_t* below,
) noexcept nogil:
    """As `scan_order`, where the rows from `n_known` on are missing; notes their side if it looks
    for a place."""
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
        limits, missing = two_classes(t, e), missing_masses(t, order, n_known, n)
        if below != NULL:
            return find_known(&limits, order, t.fixed, &missing, limit, below, side)
        best[0] = search_known(&limits, order, t.fixed, &missing, found)
        return -1
    at = judge_of(t, e, work)
    for turn in range(ABOVE, BELOW - 1, -1):
        stop = n_known  # the cut before the missing rows among them
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

cdef inline Py_ssize_t scan_few_known(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below,
) noexcept nogil:
    """As `scan_few`."""
    cdef int64_t[FEW_ROWS] item
    cdef int32_t[FEW_ROWS] order
    cdef Py_ssize_t place, n_known = size_of(t, e)
    sort_few(t, e, f, item, order)
    while n_known and item[n_known - 1] >> 32 == t.n_bins[f]:
        n_known -= 1
    place = scan_known(t, e, order, n_known, limit, INFINITY, best, work, below)
    if place == n_known:
        return t.n_bins[f] - 1
    return place if place < 0 else <Py_ssize_t>(item[place - 1] >> 32)


cdef inline Py_ssize_t scan_known_bins(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below,
) noexcept nogil:
    """As `scan_class_bins`."""
    cdef Judge at = judge_of(t, e, work)
    cdef Py_ssize_t k = t.n_classes, n_bins = t.n_bins[f], j, place, last
    cdef int64_t* cells = work + 4 * k
    cdef int64_t* missing = cells + n_bins * (k + 1)
    cdef Sums sums
    count_bins(t, e, f, cells)
    begin(&at, &sums)
    place = scan_cells(&at, cells, n_bins, 0, missing[k] == 0, limit, best, &sums, below)
    if missing[k] == 0:
        return place
    if place >= 0:
        t.node[e].missing = ABOVE
        last = n_bins - 1
        while cells[last * (k + 1) + k] == 0:
            last -= 1
        if place == last:
            place = n_bins - 1
    begin(&at, &sums)
    for j in range(k):
        if missing[j]:
            move(&at, at.criterion, &sums, j, missing[j])
            missing[j] = 0
    if place >= 0:
        limit = -INFINITY
    last = scan_cells(&at, cells, n_bins, <Py_ssize_t>missing[k], True, limit, best, &sums, below)
    missing[k] = 0
    if last >= 0:
        t.node[e].missing, place = BELOW, last
    return place


cdef inline void put_below(const Edges* edges, Edges* out) noexcept nogil:
    """The edges of the known rows, given those with the missing rows as the last bin, which are
    taken to the left of all."""
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
    """As `scan_edges`."""
    cdef Edges above, other
    cdef Judge at = judge_of(t, e, work)
    cdef Py_ssize_t i, n_bins = t.n_bins[f], asked = -1
    cdef int32_t* side = &t.node[e].missing
    if size_of(t, e) <= FEW_ROWS:
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
    """As `scan_column`; notes the side of the missing rows if it looks for a place."""
    cdef const int32_t* order
    if t.exact:
        order = t.order + f * t.n + t.node[e].start
        return scan_known(
            t, e, order, count_known(t, e, f, order), limit, found, best, work, below)
    if t.squares or t.n_classes == 2:
        return scan_known_edges(t, e, f, limit, best, work, below, kept)
    if size_of(t, e) <= FEW_ROWS:
        return scan_few_known(t, e, f, limit, best, work, below)
    return scan_known_bins(t, e, f, limit, best, work, below)
