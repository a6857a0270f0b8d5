# Search for the split of one feature at one node.
#
# To find the least score, which is written to `best`, pass -INFINITY as `limit` and NULL as `below`. To
# locate a split, pass its score limit. The place of the first split within the limit is returned, or -1. A
# place is a position in the sorted order, or a bin. OUT below: sums of the left child.
from libc.math cimport INFINITY, ceil
from libc.string cimport memcpy

from pboost._core._cut cimport Limits, scan_rows
from pboost._core._grower cimport Found, Tree, cells_of, judge_of, size_of, two_classes, width
from pboost._core._ranks cimport is_constant_rank, order_of
from pboost._core._segment cimport first_cut, search_rows
from pboost._core._squares cimport scan_squares
from pboost._core.split cimport (
    ENTROPY, ERROR, GINI, Judge, Masses, Moment, Sums, begin, limit_of, may_cut, move, score_many,
    score_of, square_score,
)
from pboost._core.types cimport (
    MAX_BINS, ROW_MASK, int16_t, int32_t, int64_t, is_tied, row_of, uint8_t,
)

cdef enum:
    FEW_ROWS = 32  # up to this number of rows, binned rows are sorted instead of counted by bin
cdef enum:
    LAST_KEY = 0x7FFF


cdef inline Py_ssize_t scan_classes(
    const Judge* at, const int32_t* order, Py_ssize_t start, Py_ssize_t stop, double limit,
    double* best, Sums* sums,
) noexcept nogil:
    """Call `scan_rows` with the criterion as a constant, so that its loop has no branch for it."""
    if at.criterion == GINI:
        return scan_rows(at, GINI, order, start, stop, limit, best, sums)
    if at.criterion == ENTROPY:
        return scan_rows(at, ENTROPY, order, start, stop, limit, best, sums)
    return scan_rows(at, at.criterion, order, start, stop, limit, best, sums)


cdef inline Py_ssize_t scan_order(
    const Tree* t, Py_ssize_t e, const int32_t* order, double limit, double found, double* best,
    int64_t* work, int64_t* below,
) noexcept nogil:
    cdef Limits limits
    cdef Judge at
    cdef Sums sums
    cdef Py_ssize_t position, j
    if t.n_classes == 2:  # rows are numbered class by class
        limits = two_classes(t, e)
        if below != NULL:
            below[0] = below[1] = 0
            return first_cut(&limits, order, t.fixed, 0, limits.n, &below[0], &below[1], limit)
        best[0] = search_rows(&limits, order, t.fixed, 0, limits.n, 0, 0, INFINITY, found)
        return -1
    at = judge_of(t, e, work)
    if t.squares:
        sums.below.w = sums.below.v = 0
        position = scan_squares(&at, order, 0, at.n - 1, limit, found, best, &sums)
        if below != NULL:
            below[0], below[1] = sums.below.w, sums.below.v
    else:
        begin(&at, &sums)
        position = scan_classes(&at, order, 0, at.n - 1, limit, best, &sums)
        if below != NULL:
            for j in range(t.n_classes):
                below[j] = at.left[j]
    return position


# `work` has one cell per bin: the sums, then the number of rows. All cells are 0 between searches.

cdef inline bint is_few(const Tree* t, Py_ssize_t e) noexcept nogil:
    return size_of(t, e) <= FEW_ROWS and t.cells == NULL


cdef inline void count_codes(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, int64_t* cells
) noexcept nogil:
    """Add the sums and row counts of a node to the cells of a feature."""
    cdef const int32_t* rows = (t.order + f * t.n if t.exact else t.rows) + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t k = width(t), i
    cdef int64_t* cell
    cdef int32_t row
    if t.cells != NULL:
        memcpy(cells, cells_of(t, f), t.n_codes * (k + 1) * sizeof(int64_t))
        return
    for i in range(size_of(t, e)):
        row = row_of(rows[i])
        cell = cells + codes[row] * (k + 1)
        if t.squares:
            cell[0] += t.moment[row].w
            cell[1] += t.moment[row].v
        else:
            cell[t.label[row]] += t.fixed[row]
        cell[k] += 1


# The bins of a feature at a node, for more than two classes. A small node lists only its nonempty bins, in
# `bin`. The cell of missing values comes after all others.
cdef struct Bins:
    Py_ssize_t n
    bint are_listed
    int32_t[FEW_ROWS] bin


cdef inline void list_few_bins(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, int64_t* cells, Bins* bins
) noexcept nogil:
    """List the nonempty bins by sorting the rows, instead of reading all bins."""
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef int64_t[FEW_ROWS] item
    cdef Py_ssize_t n = size_of(t, e), k = t.n_classes, i, j, at = -1
    cdef int64_t here
    cdef int64_t* cell
    cdef int32_t row, b
    for i in range(n):
        here = (<int64_t>codes[rows[i]] << 32) | rows[i]
        j = i
        while j > 0 and item[j - 1] > here:
            item[j] = item[j - 1]
            j -= 1
        item[j] = here
    for i in range(n):
        row, b = <int32_t>(item[i] & ROW_MASK), <int32_t>(item[i] >> 32)
        if at < 0 or bins.bin[at] != b:
            at += 1
            bins.bin[at] = b
        cell = cells + at * (k + 1)
        cell[t.label[row]] += t.fixed[row]
        cell[k] += 1
    bins.n = at if bins.bin[at] == t.n_bins[f] else at + 1
    bins.are_listed = True


cdef inline void list_bins(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, int64_t* cells, Bins* bins
) noexcept nogil:
    if is_few(t, e):
        list_few_bins(t, e, f, cells, bins)
        return
    count_codes(t, e, f, cells)
    bins.n, bins.are_listed = t.n_bins[f], False


cdef inline Py_ssize_t bin_at(const Bins* bins, Py_ssize_t place) noexcept nogil:
    """Return the bin with this position in the list, or -1 if the position is -1."""
    return bins.bin[place] if place >= 0 and bins.are_listed else place


cdef inline Py_ssize_t scan_cells(
    const Judge* at, int64_t* cells, Py_ssize_t n_bins, Py_ssize_t n_below, bint is_last,
    double limit, double* best, Sums* sums, int64_t* below,
) noexcept nogil:
    """Try the splits at the upper edges of bins; if `is_last` is true, also reset the bins to 0.

    INOUT sums: sums of `n_below` rows, then of all rows in the bins.
    """
    cdef int64_t* cell
    cdef Py_ssize_t k = at.n_classes, b, j, found = -1
    cdef double here
    for b in range(n_bins):
        cell = cells + b * (k + 1)
        if cell[k] == 0:
            continue  # an empty bin gives the same split as the previous edge
        n_below += cell[k]
        for j in range(k):
            if cell[j]:
                move(at, at.criterion, sums, j, cell[j])
                if is_last:
                    cell[j] = 0
        if is_last:
            cell[k] = 0
        if found < 0 and may_cut(at, sums, n_below):
            here = score_of(at, at.criterion, sums)
            best[0] = min(best[0], here)
            if here <= limit:
                found = b
                for j in range(k):
                    below[j] = at.left[j]
    return found


cdef inline Py_ssize_t scan_class_bins(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below,
) noexcept nogil:
    cdef Judge at = judge_of(t, e, work)
    cdef int64_t* cells = work + 4 * t.n_classes
    cdef Bins bins
    cdef Sums sums
    list_bins(t, e, f, cells, &bins)
    begin(&at, &sums)
    return bin_at(&bins, scan_cells(&at, cells, bins.n, 0, True, limit, best, &sums, below))


cdef inline void pack_rows(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Copy the data of a node's rows that the search of every binned feature reads."""
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef Moment* moment = <Moment*>t.packed
    cdef Py_ssize_t i, n = size_of(t, e)
    if t.exact or t.cells != NULL:
        return
    if t.squares:
        for i in range(n):
            moment[i] = t.moment[rows[i]]
    elif t.n_classes == 2:
        for i in range(n):
            t.packed[i] = 2 * t.fixed[rows[i]] + t.label[rows[i]]


# The splits at the upper edges of a feature's nonempty bins, for two classes or regression. `one` and `two`
# are the two sums of the left child. `count` is its number of rows, if needed. The splits first..last-1 are
# allowed.
cdef struct Edges:
    Py_ssize_t first, last
    int64_t[MAX_BINS] one
    int64_t[MAX_BINS] two
    int32_t[MAX_BINS] bin
    int32_t[MAX_BINS] count
    double[MAX_BINS] score


cdef inline void list_edges(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, Py_ssize_t n_bins, int64_t* cells, Edges* edges
) noexcept nogil:
    """List the edges without a branch per bin, and reset the bins to 0."""
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef const int64_t* packed = t.packed
    cdef int64_t* count = cells + 2 * MAX_BINS
    cdef int64_t one = 0, two = 0
    cdef Py_ssize_t i, b, at = 0, n = size_of(t, e)
    # Small nodes always count rows. A bin with rows but no weight then has an edge, as in `list_few`.
    cdef bint counts = t.min_count > 1 or n <= FEW_ROWS
    cdef int32_t below = 0 if counts else 1
    cdef const int64_t* given
    if t.cells != NULL:
        given = cells_of(t, f)
        for b in range(n_bins):
            cells[2 * b], cells[2 * b + 1] = given[3 * b], given[3 * b + 1]
            if counts:
                count[b] = given[3 * b + 2]
        n = 0
    elif t.squares:
        for i in range(n):
            b = 2 * <Py_ssize_t>codes[rows[i]]
            cells[b] += packed[2 * i]
            cells[b + 1] += packed[2 * i + 1]
    else:
        for i in range(n):
            cells[2 * <Py_ssize_t>codes[rows[i]] + (packed[i] & 1)] += packed[i] >> 1
    if t.min_count > 1:
        for i in range(n):
            count[codes[rows[i]]] += 1
    for b in range(n_bins):
        one += cells[2 * b]
        two += cells[2 * b + 1]
        below += <int32_t>count[b]
        edges.one[at], edges.two[at], edges.bin[at], edges.count[at] = one, two, <int32_t>b, below
        at += (cells[2 * b] | cells[2 * b + 1] | count[b]) != 0
        cells[2 * b] = cells[2 * b + 1] = count[b] = 0
    edges.last = at


cdef inline void list_few(const Tree* t, Py_ssize_t e, Py_ssize_t f, Edges* edges) noexcept nogil:
    """List the edges like `list_edges`, for at most FEW_ROWS rows.

    The position of a row in the sorted order is the number of smaller keys.
    """
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef const int64_t* packed = t.packed
    cdef int16_t[FEW_ROWS] key
    cdef int16_t[FEW_ROWS + 1] sorted
    cdef int64_t one = 0, two = 0
    cdef Py_ssize_t i, k, at = 0, n = size_of(t, e), padded = (n + 7) & ~<Py_ssize_t>7
    cdef int16_t place
    for i in range(n):
        key[i] = <int16_t>(codes[rows[i]] * FEW_ROWS + i)
    for i in range(n, padded):
        key[i] = LAST_KEY
    for i in range(n):
        place = 0
        for k in range(padded):
            place += key[k] < key[i]
        sorted[place] = key[i]
    sorted[n] = LAST_KEY
    for k in range(n):
        i = sorted[k] & (FEW_ROWS - 1)
        if t.squares:
            one += packed[2 * i]
            two += packed[2 * i + 1]
        else:
            one += (packed[i] >> 1) & ((packed[i] & 1) - 1)
            two += (packed[i] >> 1) & -(packed[i] & 1)
        edges.one[at], edges.two[at] = one, two
        edges.bin[at], edges.count[at] = sorted[k] // FEW_ROWS, <int32_t>(k + 1)
        at += sorted[k] // FEW_ROWS != sorted[k + 1] // FEW_ROWS
    edges.last = at


cdef inline void find_legal(Edges* edges, const Tree* t, Py_ssize_t e) noexcept nogil:
    """Exclude the edges with too few rows or too little weight in a child."""
    cdef const int64_t* mass = t.mass + 2 * e
    cdef int64_t two = 0 if t.squares else 1  # 1 if the second sum is a weight, else 0
    cdef int64_t total = mass[0] + two * mass[1]
    cdef int64_t least = max(<int64_t>1, <int64_t>ceil(
        t.min_weight * (<double>mass[0] + <double>(two * mass[1]))))
    cdef Py_ssize_t i = 0, n = size_of(t, e), last = edges.last
    while i < last and (edges.one[i] + two * edges.two[i] < least or edges.count[i] < t.min_count):
        i += 1
    while last > i and (edges.one[last - 1] + two * edges.two[last - 1] > total - least
                        or n - edges.count[last - 1] < t.min_count):
        last -= 1
    edges.first, edges.last = i, last


cdef inline double score_classes(const Tree* t, Py_ssize_t e, Edges* edges, double least) noexcept nogil:
    """Compute the scores of the splits for two classes. Return the minimum of these scores and `least`."""
    cdef double[4][MAX_BINS] mass
    cdef Masses masses
    cdef int64_t n = t.mass[2 * e], p = t.mass[2 * e + 1]
    cdef Py_ssize_t i, first = edges.first
    masses.lp, masses.ln, masses.rp, masses.rn = mass[0], mass[1], mass[2], mass[3]
    for i in range(first, edges.last):
        masses.ln[i], masses.rn[i] = <double>edges.one[i], <double>(n - edges.one[i])
        masses.lp[i], masses.rp[i] = <double>edges.two[i], <double>(p - edges.two[i])
    score_many(t.criterion, &masses, first, first, edges.last - first, edges.score + first)
    for i in range(first, edges.last):
        least = min(least, edges.score[i])
    return least


cdef inline double score_squares(const Judge* at, Edges* edges, double least) noexcept nogil:
    cdef Moment left
    cdef Py_ssize_t i
    for i in range(edges.first, edges.last):
        left.w, left.v = edges.one[i], edges.two[i]
        edges.score[i] = square_score(at, &left)
        least = min(least, edges.score[i])
    return least


cdef inline Py_ssize_t scan_edges(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below, Found* kept,
) noexcept nogil:
    """Search a binned feature for two classes or regression; call `pack_rows` first."""
    cdef Edges edges
    cdef Judge at = judge_of(t, e, work)
    cdef Py_ssize_t i
    if is_few(t, e):
        list_few(t, e, f, &edges)
    else:
        list_edges(t, e, f, t.n_bins[f], work + 4 * t.n_classes, &edges)
    find_legal(&edges, t, e)
    if t.squares:
        best[0] = score_squares(&at, &edges, best[0])
    else:
        best[0] = score_classes(t, e, &edges, best[0])
    if below == NULL:
        if kept == NULL or best[0] >= kept.score:
            return -1
        kept.score = best[0]
        limit = limit_of(&at, best[0])
        kept.node, kept.feature, kept.missing, below = <int32_t>e, <int32_t>f, -1, kept.below
    i = edges.first
    while i < edges.last and edges.score[i] > limit:
        i += 1
    if i == edges.last:
        return -1
    below[0], below[1] = edges.one[i], edges.two[i]
    if kept != NULL:
        kept.place = edges.bin[i]
    return edges.bin[i]


cdef inline Py_ssize_t scan_column(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double found, double* best,
    int64_t* work, int64_t* below, Found* kept,
) noexcept nogil:
    """Search a feature without missing values.

    If `kept` is not NULL, it may receive the best split.
    """
    if t.ranked:
        return scan_order(
            t, e, order_of(t, e, f, False, work + t.n_work), limit, found, best, work, below)
    if t.exact:
        return scan_order(
            t, e, t.order + f * t.n + t.node[e].start, limit, found, best, work, below)
    if t.squares or t.n_classes == 2:
        return scan_edges(t, e, f, limit, best, work, below, kept)
    return scan_class_bins(t, e, f, limit, best, work, below)


cdef inline bint is_constant(const Tree* t, Py_ssize_t e, Py_ssize_t f) noexcept nogil:
    """Return whether all rows of a node have the same value of a feature."""
    cdef const int32_t* order = t.order + f * t.n + t.node[e].start
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef const int64_t* cells
    cdef Py_ssize_t i, n_found = 0, k = width(t)
    if t.ranked:
        return is_constant_rank(t, e, f)
    if t.cells != NULL:
        cells = cells_of(t, f)
        for i in range(t.n_codes):
            n_found += cells[i * (k + 1) + k] > 0
        return n_found < 2
    for i in range(1, size_of(t, e)):
        if (not is_tied(order[i])) if t.exact else codes[rows[i]] != codes[rows[0]]:
            return False
    return True
