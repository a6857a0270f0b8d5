# Search of one column at one node of a classification or regression tree.
#
# `limit` is -INFINITY to search for the least score, which is
# put in `best`; else the place of the first cut within the limit is returned, -1 if there is none:
# a position of the sorted order, or a bin.
from libc.math cimport INFINITY

from pboost._core._cart cimport (
    Cart, Found, class_node, size_of, square_node, start_of, two_classes,
)
from pboost._core._classes cimport (
    ClassNode, ClassSums, begin, class_score_limit, may_cut, move, scan_classes, score_of,
)
from pboost._core._cut cimport Limits
from pboost._core._math cimport Masses, score_many
from pboost._core._segment cimport first_cut, search_rows
from pboost._core._squares cimport (
    Moment, SquareNode, may_cut_squares, scan_squares, square_score,
)
from pboost._core.types cimport MAX_BINS, ROW_MASK, int32_t, int64_t, is_tied, uint8_t

cdef enum:
    FEW_ROWS = 32  # up to here binned rows are sorted instead of counted by bin


cdef inline Py_ssize_t scan_order(
    const Cart* t, int32_t e, const int32_t* order, double limit, double found, double* best,
    int64_t* work,
) noexcept nogil:
    cdef SquareNode squares
    cdef ClassNode classes
    cdef Limits limits
    cdef int64_t ln = 0, lp = 0
    if t.squares:
        squares = square_node(t, e)
        return scan_squares(&squares, order, limit, found, best)
    if t.n_classes == 2 and t.exact:  # rows stand class by class
        limits = two_classes(t, e)
        if limit > -INFINITY:
            return first_cut(&limits, order, t.fixed, 0, limits.n, &ln, &lp, limit)
        best[0] = search_rows(&limits, order, t.fixed, 0, limits.n, 0, 0, INFINITY, found)
        return -1
    classes = class_node(t, e, work)
    return scan_classes(&classes, order, limit, best)


cdef inline Py_ssize_t scan_few(
    const Cart* t, int32_t e, Py_ssize_t f, double limit, double* best, int64_t* work
) noexcept nogil:
    """A node of at most FEW_ROWS on a binned column: its rows are sorted by bin."""
    cdef int64_t[FEW_ROWS] item
    cdef int32_t[FEW_ROWS] order
    cdef const int32_t* rows = t.rows + start_of(t, e)
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t n = size_of(t, e), i, j, position
    cdef int64_t here
    for i in range(n):
        here = (<int64_t>codes[rows[i]] << 32) | rows[i]
        j = i
        while j > 0 and item[j - 1] > here:
            item[j] = item[j - 1]
            j -= 1
        item[j] = here
    for i in range(n):
        order[i] = <int32_t>(item[i] & ROW_MASK)
        if i > 0 and item[i] >> 32 == item[i - 1] >> 32:
            order[i] |= <int32_t>0x80000000
    position = scan_order(t, e, order, limit, INFINITY, best, work)
    return position if position < 0 else <Py_ssize_t>(item[position - 1] >> 32)


# Bins are cells of `work`, which is all 0 between searches: masses, then the number of rows.

cdef inline Py_ssize_t scan_class_bins(
    const Cart* t, int32_t e, Py_ssize_t f, double limit, double* best, int64_t* work
) noexcept nogil:
    cdef ClassNode at = class_node(t, e, work)
    cdef int64_t* cells = work + 4 * t.n_classes
    cdef int64_t* cell
    cdef const int32_t* rows = t.rows + start_of(t, e)
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef int k = t.n_classes, b, j
    cdef ClassSums sums
    cdef Py_ssize_t i, below = 0, found = -1
    cdef double here
    for i in range(at.n):
        b = codes[rows[i]]
        cell = cells + b * (k + 1)
        cell[t.label[rows[i]]] += t.fixed[rows[i]]
        cell[k] += 1
    begin(&at, &sums)
    for b in range(t.n_bins[f]):
        cell = cells + b * (k + 1)
        if cell[k] == 0:
            continue  # the same cut as at the edge before
        below += cell[k]
        for j in range(k):
            if cell[j]:
                move(&at, &sums, j, cell[j])
                cell[j] = 0
        cell[k] = 0
        if found < 0 and may_cut(&at, &sums, below):
            here = score_of(&at, &sums)
            best[0] = min(best[0], here)
            if here <= limit:
                found = b
    return found


cdef inline void pack_rows(const Cart* t, int32_t e) noexcept nogil:
    """Weights and classes of a node's rows, in their order: they are read for each column."""
    cdef const int32_t* rows = t.rows + start_of(t, e)
    cdef Py_ssize_t i, n = size_of(t, e)
    if t.exact or t.squares or t.n_classes != 2 or n <= FEW_ROWS:
        return
    for i in range(n):
        t.packed[i] = 2 * t.fixed[rows[i]] + t.label[rows[i]]


# Non-empty bins of a column of two classes: what lies up to the upper edge of each.
cdef struct Edges:
    Py_ssize_t n
    int64_t[MAX_BINS] p
    int64_t[MAX_BINS] n_mass
    double[MAX_BINS] lp
    double[MAX_BINS] ln
    double[MAX_BINS] rp
    double[MAX_BINS] rn
    double[MAX_BINS] score
    int32_t[MAX_BINS] bin
    int32_t[MAX_BINS] count


cdef inline void list_edges(
    const Cart* t, int32_t e, Py_ssize_t f, int64_t* cells, Edges* edges
) noexcept nogil:
    """The edges of a node's bins of a column, without a branch on whether a bin is empty."""
    cdef const int32_t* rows = t.rows + start_of(t, e)
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef const int64_t* packed = t.packed
    cdef int64_t* count = cells + 2 * MAX_BINS
    cdef int64_t ln = 0, lp = 0
    cdef Py_ssize_t i, at = 0
    cdef int32_t b, below = 0 if t.min_count > 1 else 1
    for i in range(size_of(t, e)):
        cells[2 * <Py_ssize_t>codes[rows[i]] + (packed[i] & 1)] += packed[i] >> 1
    if t.min_count > 1:  # else a side with mass has rows enough
        for i in range(size_of(t, e)):
            count[codes[rows[i]]] += 1
    for b in range(t.n_bins[f]):
        ln += cells[2 * b]
        lp += cells[2 * b + 1]
        below += <int32_t>count[b]
        edges.n_mass[at], edges.p[at], edges.bin[at], edges.count[at] = ln, lp, b, below
        at += (cells[2 * b] | cells[2 * b + 1] | count[b]) != 0
        cells[2 * b] = cells[2 * b + 1] = count[b] = 0
    edges.n = at


cdef inline Py_ssize_t scan_two_bins(
    const Cart* t, int32_t e, Py_ssize_t f, double limit, double* best, int64_t* work, Found* kept
) noexcept nogil:
    cdef Edges edges
    cdef Masses masses
    cdef ClassNode at = class_node(t, e, work)
    cdef Py_ssize_t first = 0, last, i
    cdef double least = best[0]
    list_edges(t, e, f, work + 4 * t.n_classes, &edges)
    # Cuts with mass, and rows enough, on both sides.
    while first < edges.n and (edges.n_mass[first] + edges.p[first] <= 0
                               or edges.count[first] < at.min_count):
        first += 1
    last = edges.n
    while last > first and (edges.n_mass[last - 1] + edges.p[last - 1] >= at.total
                            or at.n - edges.count[last - 1] < at.min_count):
        last -= 1
    for i in range(first, last):
        edges.ln[i], edges.lp[i] = <double>edges.n_mass[i], <double>edges.p[i]
        edges.rn[i] = <double>(at.mass[0] - edges.n_mass[i])
        edges.rp[i] = <double>(at.mass[1] - edges.p[i])
    masses.lp, masses.ln, masses.rp, masses.rn = edges.lp, edges.ln, edges.rp, edges.rn
    score_many(t.criterion, &masses, first, first, last - first, &edges.score[first])
    if limit == -INFINITY:
        for i in range(first, last):
            least = min(least, edges.score[i])
        best[0] = least
        if kept == NULL or least >= kept.score:
            return -1
        limit = class_score_limit(&at, least)
    while first < last and edges.score[first] > limit:
        first += 1
    if first == last:
        return -1
    if kept != NULL:
        kept.score, kept.node, kept.feature, kept.place = least, e, <int32_t>f, edges.bin[first]
        kept.below[0], kept.below[1] = edges.n_mass[first], edges.p[first]
    return edges.bin[first]


cdef inline Py_ssize_t scan_square_bins(
    const Cart* t, int32_t e, Py_ssize_t f, double limit, double* best, int64_t* work
) noexcept nogil:
    cdef SquareNode at = square_node(t, e)
    cdef int64_t* cell
    cdef const int32_t* rows = t.rows + start_of(t, e)
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef int b
    cdef Moment left
    cdef Py_ssize_t i, below = 0, found = -1
    cdef double here
    for i in range(at.n):
        b = codes[rows[i]]
        cell = work + 3 * b
        cell[0] += t.moment[rows[i]].w
        cell[1] += t.moment[rows[i]].v
        cell[2] += 1
    left.w = left.v = 0
    for b in range(t.n_bins[f]):
        cell = work + 3 * b
        if cell[2] == 0:
            continue
        left.w += cell[0]
        left.v += cell[1]
        below += cell[2]
        cell[0] = cell[1] = cell[2] = 0
        if found < 0 and may_cut_squares(&at, &left, below):
            here = square_score(&at, &left)
            best[0] = min(best[0], here)
            if here <= limit:
                found = b
    return found


cdef inline Py_ssize_t scan_column(
    const Cart* t, int32_t e, Py_ssize_t f, double limit, double found, double* best,
    int64_t* work, Found* kept,
) noexcept nogil:
    """`kept`, where it is not NULL, may be told the first cut within the limit of the least score."""
    if t.exact:
        return scan_order(t, e, t.order + f * t.n + start_of(t, e), limit, found, best, work)
    if size_of(t, e) <= FEW_ROWS:
        return scan_few(t, e, f, limit, best, work)
    if t.squares:
        return scan_square_bins(t, e, f, limit, best, work)
    if t.n_classes == 2:
        return scan_two_bins(t, e, f, limit, best, work, kept)
    return scan_class_bins(t, e, f, limit, best, work)


cdef inline bint is_constant(const Cart* t, int32_t e, Py_ssize_t f) noexcept nogil:
    """Whether all rows of a node agree in a column."""
    cdef const int32_t* order = t.order + f * t.n + start_of(t, e)
    cdef const int32_t* rows = t.rows + start_of(t, e)
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t i
    for i in range(1, size_of(t, e)):
        if (not is_tied(order[i])) if t.exact else codes[rows[i]] != codes[rows[0]]:
            return False
    return True
