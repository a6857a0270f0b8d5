# Search of one category column at one node: a cut is a set of levels, those above.
#
# The levels with mass at the node are put in order, by the share of class +1, by the mean, or, of more
# than two classes, by the first principal component of the class shares, and the beginnings of this
# order are tried as what is below, with the missing rows above, then below. Of two classes and of
# squares the best of these is the best set. With smoothed shares, and of more classes, each level is
# tried against the rest besides. Levels without mass at the node go with the missing rows.
from libc.math cimport INFINITY, fabs

from pboost._core._cut cimport Limits, cut_score, is_legal
from pboost._core._grower cimport Tree, judge_of, size_of, two_classes, width
from pboost._core._holes cimport ABOVE, BELOW
from pboost._core.criteria cimport Judge, Moment, Sums, impurity, may_cut, square_score
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, row_of, uint8_t, uint64_t

cdef enum:
    WORDS = 4  # of a set
cdef enum:
    MOST_STEPS = 50  # of the power iteration
cdef extern from *:
    """
    /* A direction is found where a step changes it by no more, its largest number being 1. */
    #define PBOOST_SAME_DIRECTION 1e-7
    """
    const double SAME_DIRECTION "PBOOST_SAME_DIRECTION"

# The levels of a column with mass at a node, in order. The cells of all have `k` masses each, then the
# number of rows; `pull` is the mass by which shares are drawn to those of the node.
cdef struct Levels:
    const int64_t* cells
    Py_ssize_t k, n, n_missing
    const int64_t* missing
    double pull, total
    int32_t[MAX_BINS] level
    double[MAX_BINS] key
    int64_t[MAX_BINS] mass


cdef inline int64_t weight_of(const Tree* t, const int64_t* mass) noexcept nogil:
    cdef int64_t total = 0
    cdef Py_ssize_t j
    if t.squares:
        return mass[0]
    for j in range(t.n_classes):
        total += mass[j]
    return total


cdef inline void count_levels(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, int64_t* cells
) noexcept nogil:
    cdef const int32_t* rows = (t.order + f * t.n if t.exact else t.rows) + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t i, k = width(t)
    cdef int64_t* cell
    cdef int32_t row
    for i in range(size_of(t, e)):
        row = row_of(rows[i])
        cell = cells + codes[row] * (k + 1)
        if t.squares:
            cell[0] += t.moment[row].w
            cell[1] += t.moment[row].v
        else:
            cell[t.label[row]] += t.fixed[row]
        cell[k] += 1


# ---------------------------------------------------------------------------------------------
# The order.

cdef inline void project_levels(
    Levels* levels, const int64_t* node, const double* mean, const double* v
) noexcept nogil:
    """The keys: how far the shares of each level lie from the mean in a direction."""
    cdef double pulled = 0.0, centre = 0.0, sum_
    cdef Py_ssize_t i, j, k = levels.k
    cdef const int64_t* cell
    for j in range(k):
        pulled += levels.pull * (<double>node[j] / levels.total) * v[j]
        centre += mean[j] * v[j]
    for i in range(levels.n):
        cell, sum_ = levels.cells + levels.level[i] * (k + 1), pulled
        for j in range(k):
            sum_ += <double>cell[j] * v[j]
        levels.key[i] = sum_ / (<double>levels.mass[levels.level[i]] + levels.pull) - centre


cdef inline double add_shares(
    const Levels* levels, const int64_t* node, bint along, double* out
) noexcept nogil:
    """OUT out: sum of the shares of the levels times their masses, and their keys if `along`."""
    cdef double factor, factors = 0.0, parts = 0.0
    cdef Py_ssize_t i, j, k = levels.k
    cdef const int64_t* cell
    for j in range(k):
        out[j] = 0.0
    for i in range(levels.n):
        cell = levels.cells + levels.level[i] * (k + 1)
        factor = <double>levels.mass[levels.level[i]]
        if along:
            factor *= levels.key[i]
        parts += factor
        factor /= <double>levels.mass[levels.level[i]] + levels.pull
        factors += factor
        for j in range(k):
            out[j] += factor * <double>cell[j]
    for j in range(k):
        out[j] += factors * levels.pull * (<double>node[j] / levels.total)
    return parts


cdef inline double scaled(double* v, Py_ssize_t k) noexcept nogil:
    """Divide by the largest number, which is returned; by nothing if that is 0."""
    cdef double most = 0.0
    cdef Py_ssize_t j
    for j in range(k):
        most = max(most, fabs(v[j]))
    if most > 0.0:
        for j in range(k):
            v[j] /= most
    return most


cdef inline void begin_direction(
    Levels* levels, const int64_t* node, const double* mean, double* v, double* next_
) noexcept nogil:
    """That of the level that departs most from the mean."""
    cdef double far, most = -1.0, part
    cdef Py_ssize_t i, j, k = levels.k
    cdef int32_t l
    for i in range(levels.n):
        l, far = levels.level[i], 0.0
        for j in range(k):
            part = <double>levels.cells[l * (k + 1) + j]
            part += levels.pull * (<double>node[j] / levels.total)
            next_[j] = part / (<double>levels.mass[l] + levels.pull) - mean[j]
            far += next_[j] * next_[j]
        far *= <double>levels.mass[l]
        if far > most:
            most = far
            for j in range(k):
                v[j] = next_[j]
    scaled(v, k)


cdef inline void find_direction(
    Levels* levels, const int64_t* node, double* mean, double* v, double* next_
) noexcept nogil:
    """The first principal component of the shares of the levels, weighted by mass: power iteration.
    Of its large numbers the last is positive. OUT mean, v; the keys are along v."""
    cdef double total, parts, change
    cdef Py_ssize_t j, step, k = levels.k
    total = add_shares(levels, node, False, mean)
    for j in range(k):
        mean[j] /= total
    begin_direction(levels, node, mean, v, next_)
    for step in range(MOST_STEPS):
        project_levels(levels, node, mean, v)
        parts = add_shares(levels, node, True, next_)
        for j in range(k):
            next_[j] -= parts * mean[j]
        if scaled(next_, k) == 0.0:
            break
        change = 0.0
        for j in range(k):
            change = max(change, fabs(next_[j] - v[j]))
            v[j] = next_[j]
        if change <= SAME_DIRECTION:
            break
    j = k - 1
    while j > 0 and fabs(v[j]) < 0.5:
        j -= 1
    if v[j] < 0.0:
        for j in range(k):
            v[j] = -v[j]
    project_levels(levels, node, mean, v)


cdef inline void sort_levels(Levels* levels) noexcept nogil:
    """By key, of equal ones by level, as they are listed."""
    cdef Py_ssize_t i, j
    cdef int32_t level
    cdef double key
    for i in range(1, levels.n):
        level, key = levels.level[i], levels.key[i]
        j = i
        while j > 0 and levels.key[j - 1] > key:
            levels.level[j], levels.key[j] = levels.level[j - 1], levels.key[j - 1]
            j -= 1
        levels.level[j], levels.key[j] = level, key


cdef inline void list_levels(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, int64_t* work, int64_t* cells, Levels* levels
) noexcept nogil:
    """The levels with mass at the node, in order."""
    cdef const int64_t* node = t.mass + width(t) * e
    cdef double* mean = <double*>(work + t.n_classes)
    cdef const int64_t* cell
    cdef Py_ssize_t l, i, k = width(t)
    cdef int64_t mass
    levels.cells, levels.k, levels.n = cells, k, 0
    levels.missing = cells + t.n_bins[f] * (k + 1)
    levels.n_missing = levels.missing[k]
    levels.total = <double>weight_of(t, node)
    levels.pull = t.level_smoothing * levels.total / <double>size_of(t, e)
    for l in range(t.n_bins[f]):
        mass = weight_of(t, cells + l * (k + 1))
        levels.mass[l] = mass
        if mass > 0:
            levels.level[levels.n] = <int32_t>l
            levels.n += 1
    if k > 2:
        if levels.n > 1:
            find_direction(levels, node, mean, mean + k, mean + 2 * k)
    else:
        for i in range(levels.n):
            cell = cells + levels.level[i] * (k + 1)
            levels.key[i] = ((<double>cell[1] + levels.pull * (<double>node[1] / levels.total))
                             / (<double>levels.mass[levels.level[i]] + levels.pull))
    sort_levels(levels)


# ---------------------------------------------------------------------------------------------
# Sets.

cdef inline double score_set(
    const Tree* t, const Judge* at, const Limits* limits, const int64_t* left, Py_ssize_t n_below,
    int64_t* right,
) noexcept nogil:
    """Score of a cut with these masses below; INFINITY if it is not legal."""
    cdef Sums sums
    cdef Py_ssize_t j
    if t.n_classes == 2:
        if not is_legal(limits, left[0], left[1], n_below):
            return INFINITY
        return cut_score(limits, left[0], left[1])
    sums.below.w = weight_of(t, left)
    if not may_cut(at, &sums, n_below):
        return INFINITY
    if t.squares:
        return square_score(at, <const Moment*>left)
    for j in range(t.n_classes):
        right[j] = at.mass[j] - left[j]
    return impurity(at.criterion, at.n_classes, left) + impurity(at.criterion, at.n_classes, right)


cdef inline Py_ssize_t first_set(
    const Tree* t, Py_ssize_t e, const Levels* levels, const Judge* at, int turn, double limit,
    double* best, int64_t* left, int64_t* right,
) noexcept nogil:
    """Try the sets with the missing rows on one side. Lowers `best`; returns the first within
    `limit`: how many levels are below, or, counted from `levels.n + 1`, which is above alone; or -1.
    OUT left: its masses."""
    cdef Limits limits
    cdef Py_ssize_t i, j, n_below, k = levels.k
    cdef bint alone = t.n_classes > 2 or levels.pull > 0.0
    cdef const int64_t* cell
    cdef double here
    if t.n_classes == 2:
        limits = two_classes(t, e)
    for j in range(k):
        left[j] = levels.missing[j] if turn == BELOW else 0
    n_below = levels.n_missing if turn == BELOW else 0
    for i in range(levels.n):
        cell = levels.cells + levels.level[i] * (k + 1)
        for j in range(k):
            left[j] += cell[j]
        n_below += cell[k]
        here = score_set(t, at, &limits, left, n_below, right)
        best[0] = min(best[0], here)
        if here <= limit:
            return i + 1
    for i in range(levels.n if alone else 0):
        cell = levels.cells + levels.level[i] * (k + 1)
        for j in range(k):
            left[j] -= cell[j]
        here = score_set(t, at, &limits, left, n_below - cell[k], right)
        best[0] = min(best[0], here)
        if here <= limit:
            return levels.n + 1 + i
        for j in range(k):
            left[j] += cell[j]
    return -1


cdef inline void put_set(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, const Levels* levels, Py_ssize_t place, int turn,
    const int64_t* below,
) noexcept nogil:
    """Note the levels above, those without mass among them if the missing rows are, or would be."""
    cdef uint64_t* subset = t.subset + WORDS * e
    cdef uint8_t[MAX_BINS] above
    cdef Py_ssize_t i, l
    cdef int64_t mass
    if levels.n_missing == 0:
        mass = weight_of(t, below)
        turn = weight_of(t, t.mass + width(t) * e) - mass > mass
    t.node[e].missing = turn
    for l in range(t.n_bins[f]):
        above[l] = <uint8_t>turn
    for i in range(levels.n):
        above[levels.level[i]] = place <= i or place == levels.n + 1 + i
    for i in range(WORDS):
        subset[i] = 0
    for l in range(t.n_bins[f]):
        subset[l >> 6] |= <uint64_t>above[l] << (l & 63)


cdef inline Py_ssize_t scan_levels(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double* best, int64_t* work,
    int64_t* below,
) noexcept nogil:
    """As `scan_column`; notes the set, and the side of missing rows, if it looks for a place."""
    cdef Levels levels
    cdef Judge at = judge_of(t, e, work)
    cdef int64_t[2] two
    cdef int64_t* cells = work + 4 * t.n_classes
    cdef int64_t* left = work if t.n_classes else two
    cdef Py_ssize_t place = -1, i, k = width(t)
    cdef int turn
    count_levels(t, e, f, cells)
    list_levels(t, e, f, work, cells, &levels)
    for turn in range(ABOVE, BELOW - 1, -1):
        if turn == BELOW and levels.n_missing == 0:
            break
        place = first_set(t, e, &levels, &at, turn, limit, best, left, work + t.n_classes)
        if place >= 0:
            for i in range(k):
                below[i] = left[i]
            put_set(t, e, f, &levels, place, turn, below)
            break
    for i in range((t.n_bins[f] + 1) * (k + 1)):
        cells[i] = 0
    return place
