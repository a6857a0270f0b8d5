# Search for the split of one categorical feature at one node. A split is the set of categories that go to
# the right child.
#
# For two classes, the search is in _categories.pxd. Otherwise, the categories with positive weight at the
# node are sorted by their mean target or, for more than two classes, by the first principal component of
# their class shares. Each prefix of this order is tried as the left child, with missing values on the
# right, then on the left. For regression, the best of all sets is one of these prefixes. With more than two
# classes or with smoothing, each single category is also tried as the right child.
#
# Categories without weight at the node go to the same child as missing values.
from libc.math cimport INFINITY, fabs

from pboost._core cimport _categories as _levels
from pboost._core._cut cimport Limits
from pboost._core._grower cimport Tree, judge_of, size_of, two_classes, unit_of, width
from pboost._core._missing cimport ABOVE, BELOW
from pboost._core._scan cimport count_codes
from pboost._core.split cimport Judge, Moment, Sums, impurity, may_cut, square_score
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, row_of, uint8_t, uint64_t

cdef enum:
    WORDS = 4  # 64-bit words per set
cdef enum:
    MOST_STEPS = 50  # maximum number of power iterations
cdef extern from *:
    """
    /* The power iteration stops if no entry of the direction changes by more than this number. The largest
       entry is 1. */
    #define PBOOST_SAME_DIRECTION 1e-7
    /* Entries of at least this size are large, relative to the largest. The limit is not 1/2, because 1/2
       is a frequent value. */
    #define PBOOST_LARGE 0.4999
    """
    const double SAME_DIRECTION "PBOOST_SAME_DIRECTION"
    const double LARGE "PBOOST_LARGE"

# The categories of a feature with positive weight at a node, sorted. Each cell has `k` sums and the number
# of rows of a category. `pull` is the weight with which the shares of the node enter smoothed shares.
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


# The order of the categories.

cdef inline void project_levels(
    Levels* levels, const int64_t* node, const double* mean, const double* v
) noexcept nogil:
    """Compute the sort keys: deviations of the categories' class shares from the mean, along a direction.
    """
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
    """Sum the class shares of the categories, weighted and, if `along`, times the keys. OUT out."""
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
    """Divide a vector by its largest absolute entry and return this entry; a zero vector is unchanged."""
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
    """Start with the deviation of the category that is farthest from the mean; ties go to the first."""
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
        if far > most * (1.0 + SAME_DIRECTION):
            most = far
            for j in range(k):
                v[j] = next_[j]
    scaled(v, k)


cdef inline void find_direction(
    Levels* levels, const int64_t* node, double* mean, double* v, double* next_
) noexcept nogil:
    """Find the first principal component of the categories' class shares by power iteration.

    The sign is chosen so that the last large entry is positive. OUT mean, v, and the keys along v.
    """
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
    while j > 0 and fabs(v[j]) < LARGE:
        j -= 1
    if v[j] < 0.0:
        for j in range(k):
            v[j] = -v[j]
    project_levels(levels, node, mean, v)


cdef inline void sort_levels(Levels* levels) noexcept nogil:
    """Sort the categories by key; ties go to the lowest number."""
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


cdef inline double measured_pull(const Tree* t, Py_ssize_t e, const Levels* levels) noexcept nogil:
    """Return `pull`, which depends on the variance of the node's targets for regression.
    """
    cdef const int64_t* node = t.mass + width(t) * e
    cdef double known = 0.0, squares = 0.0, apart, mass, rows = <double>size_of(t, e)
    cdef double loss = t.node[e].loss * (t.node[e].scale * unit_of(t, e)) * t.node[e].scale
    cdef Py_ssize_t i, j, n_free = 0
    cdef const int64_t* cell
    for i in range(levels.n):
        mass = <double>levels.mass[levels.level[i]]
        cell = levels.cells + levels.level[i] * (levels.k + 1)
        known += mass
        for j in range(1 if t.squares else 0, levels.k):
            if t.squares or node[j] > 0:
                apart = <double>cell[j] - mass / levels.total * <double>node[j]
                squares += apart * (apart / mass) * (
                    rows / loss if t.squares else rows / <double>node[j])
    for j in range(levels.k):
        n_free += t.squares or node[j] > 0
    return _levels.pull_of(t.level_smoothing, levels.n, n_free - 1, squares, known)


cdef inline void list_levels(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, int64_t* work, int64_t* cells, Levels* levels
) noexcept nogil:
    """List the categories with positive weight at the node, sorted."""
    cdef const int64_t* node = t.mass + width(t) * e
    cdef double* mean = <double*>(work + t.n_classes)
    cdef const int64_t* cell
    cdef Py_ssize_t l, i, k = width(t)
    cdef int64_t mass
    levels.cells, levels.k, levels.n = cells, k, 0
    levels.missing = cells + t.n_bins[f] * (k + 1)
    levels.n_missing = levels.missing[k]
    levels.total = <double>weight_of(t, node)
    for l in range(t.n_bins[f]):
        mass = weight_of(t, cells + l * (k + 1))
        levels.mass[l] = mass
        if mass > 0:
            levels.level[levels.n] = <int32_t>l
            levels.n += 1
    levels.pull = 0.0
    if t.level_smoothing > 0.0 and levels.n > 2:
        levels.pull = measured_pull(t, e, levels)
    if k > 2:
        if levels.n > 1:
            find_direction(levels, node, mean, mean + k, mean + 2 * k)
    else:
        for i in range(levels.n):
            cell = cells + levels.level[i] * (k + 1)
            levels.key[i] = ((<double>cell[1] + levels.pull * (<double>node[1] / levels.total))
                             / (<double>levels.mass[levels.level[i]] + levels.pull))
    sort_levels(levels)


# Sets of categories. With smoothing, a score counts only part of the difference between the children: the
# projection of the smoothed difference on the actual difference.

# For smoothing: the sums minus their expectation at the node, for the left categories and for all
# categories, with `k` numbers each.
cdef struct Departures:
    double* left
    double* all


cdef inline void add_departure(
    const Tree* t, const int64_t* node, const Levels* levels, const int64_t* cell, double pull,
    int sign, double* out,
) noexcept nogil:
    """Add or subtract the sums of a category minus their expectation."""
    cdef double mass = <double>weight_of(t, cell), part = mass / levels.total
    cdef double kept = sign * mass / (mass + pull) if mass > 0.0 else 0.0
    cdef Py_ssize_t j
    for j in range(levels.k):
        out[j] += kept * (<double>cell[j] - part * <double>node[j])


cdef inline void begin_side(
    const Tree* t, const int64_t* node, const Levels* levels, int turn, const Departures* smoothed
) noexcept nogil:
    cdef Py_ssize_t i, j
    for j in range(levels.k):
        smoothed.left[j] = smoothed.all[j] = 0.0
    if levels.n_missing:
        add_departure(t, node, levels, levels.missing, 0.0, 1, smoothed.all)
    for j in range(levels.k):
        smoothed.left[j] = smoothed.all[j] if turn == BELOW else 0.0
    for i in range(levels.n):
        add_departure(t, node, levels, levels.cells + levels.level[i] * (levels.k + 1),
                      levels.pull, 1, smoothed.all)


cdef inline double kept_of(
    const Tree* t, const int64_t* node, const Levels* levels, const int64_t* left,
    const Departures* smoothed,
) noexcept nogil:
    """Return the fraction of the difference between the children that remains after smoothing."""
    cdef double part = <double>weight_of(t, left) / levels.total, along = 0.0, square = 0.0, apart
    cdef Py_ssize_t j
    for j in range(1 if t.squares else 0, levels.k):
        apart = <double>left[j] - part * <double>node[j]
        along += apart * (smoothed.left[j] - smoothed.all[j] * part)
        square += apart * apart
    return min(max(along / square, 0.0), 1.0) if square > 0.0 else 1.0


cdef inline double score_set(
    const Tree* t, const Judge* at, const int64_t* left, Py_ssize_t n_below, double kept,
    int64_t* work,
) noexcept nogil:
    """Return the score of a split whose gain is multiplied by `kept`, or INFINITY if it is not allowed.
    """
    cdef Sums sums
    cdef double part, below
    cdef Py_ssize_t j
    sums.below.w = weight_of(t, left)
    if not may_cut(at, &sums, n_below):
        return INFINITY
    if t.squares:
        return kept * kept * square_score(at, <const Moment*>left)
    part = <double>sums.below.w / <double>at.total.w
    for j in range(t.n_classes):
        below = (1.0 - kept) * (part * <double>at.mass[j] - <double>left[j])
        work[j] = max(min(left[j] + <int64_t>below, at.mass[j]), 0)
    below = impurity(at.criterion, at.n_classes, work)
    for j in range(t.n_classes):
        work[j] = at.mass[j] - work[j]
    return below + impurity(at.criterion, at.n_classes, work)


cdef inline Py_ssize_t first_set(
    const Tree* t, const Levels* levels, const Judge* at, int turn, double limit, double* best,
    int64_t* left, int64_t* work, const Departures* smoothed,
) noexcept nogil:
    """Try the sets with the missing values in the child `side`, and lower `best` to the least score.

    Return the first set with a score within `limit`: the number of left categories, or `levels.n + 1 + i`
    if only category i is on the right, or -1. OUT left: the sums of the left child.
    """
    cdef Py_ssize_t i, j, n_below, k = levels.k
    cdef bint is_smoothed = levels.pull > 0.0
    cdef const int64_t* cell
    cdef double here, kept
    for j in range(k):
        left[j] = levels.missing[j] if turn == BELOW else 0
    n_below = levels.n_missing if turn == BELOW else 0
    if is_smoothed:
        begin_side(t, at.mass, levels, turn, smoothed)
    for i in range(levels.n):
        cell = levels.cells + levels.level[i] * (k + 1)
        for j in range(k):
            left[j] += cell[j]
        n_below += cell[k]
        kept = 1.0
        if is_smoothed:
            add_departure(t, at.mass, levels, cell, levels.pull, 1, smoothed.left)
            # The split between known and missing values is not smoothed.
            if i < levels.n - 1:
                kept = kept_of(t, at.mass, levels, left, smoothed)
        here = score_set(t, at, left, n_below, kept, work)
        best[0] = min(best[0], here)
        if here <= limit:
            return i + 1
    for i in range(levels.n if is_smoothed or not t.squares else 0):  # try single categories on the right
        cell = levels.cells + levels.level[i] * (k + 1)
        for j in range(k):
            left[j] -= cell[j]
        kept = 1.0
        if is_smoothed:
            add_departure(t, at.mass, levels, cell, levels.pull, -1, smoothed.left)
            kept = kept_of(t, at.mass, levels, left, smoothed)
            add_departure(t, at.mass, levels, cell, levels.pull, 1, smoothed.left)
        here = score_set(t, at, left, n_below - cell[k], kept, work)
        best[0] = min(best[0], here)
        if here <= limit:
            return levels.n + 1 + i
        for j in range(k):
            left[j] += cell[j]
    return -1


cdef inline Py_ssize_t first_of_two(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, const int64_t* cells, double limit, double* best,
    Levels* levels, int* turn, int64_t* left,
) noexcept nogil:
    """Find a split by the search for two classes, with missing values in either child.

    OUT turn: the child for missing values.
    """
    cdef _levels.Levels two
    cdef _levels.LevelCut cut
    cdef Limits limits = two_classes(t, e)
    cdef Py_ssize_t i
    two.negative, two.positive, two.count, two.step = cells, cells + 1, cells + 2, 3
    two.n, two.smoothing = t.n_bins[f], t.level_smoothing
    levels.k, levels.missing = 2, cells + 3 * <Py_ssize_t>two.n
    levels.n_missing = levels.missing[2]
    two.has_missing = levels.n_missing > 0
    if not _levels.scan_levels(&limits, &two, limit, best, &cut):
        return -1
    turn[0], left[0], left[1], levels.n = cut.side, cut.ln, cut.lp, two.n_ordered
    for i in range(levels.n):
        levels.level[i] = two.order[i]
    return cut.first if cut.last == levels.n else levels.n + 1 + cut.first


cdef inline void put_set(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, const Levels* levels, Py_ssize_t place, int turn,
    const int64_t* below,
) noexcept nogil:
    """Store the set of categories of the right child.

    Categories without weight go to the same child as missing values, or to the heavier child if there are
    none.
    """
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
    """Search a categorical feature like `scan_column`.

    To locate a split, also store its set of categories and the child for missing values.
    """
    cdef Levels levels
    cdef Judge at = judge_of(t, e, work)
    cdef int64_t[2] two
    cdef double[4] departures
    cdef Departures smoothed
    cdef int64_t* cells = work + 4 * t.n_classes
    cdef int64_t* left = work if t.n_classes else two
    cdef Py_ssize_t place = -1, i, k = width(t)
    cdef int turn
    smoothed.left = <double*>(work + 2 * t.n_classes) if t.n_classes else departures
    smoothed.all = smoothed.left + k
    count_codes(t, e, f, cells)
    if t.n_classes == 2:
        place = first_of_two(t, e, f, cells, limit, best, &levels, &turn, left)
    else:
        list_levels(t, e, f, work, cells, &levels)
        for turn in range(ABOVE, BELOW - 1, -1):
            if turn == BELOW and levels.n_missing == 0:
                break
            place = first_set(t, &levels, &at, turn, limit, best, left, work + t.n_classes,
                              &smoothed)
            if place >= 0:
                break
    if place >= 0:
        for i in range(k):
            below[i] = left[i]
        put_set(t, e, f, &levels, place, turn, below)
    for i in range((t.n_bins[f] + 1) * (k + 1)):
        cells[i] = 0
    return place
