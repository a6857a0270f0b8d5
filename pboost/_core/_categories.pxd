# Splits of a categorical feature for two classes: sets of categories whose rows go to the right child.
#
# Categories with positive weight are sorted by their share of class +1, and each prefix of this order is
# tried as the left child. For any concave criterion, the best of all sets is one of these prefixes. If
# shares are smoothed, each single category is also tried as the right child. The score of a split then
# counts only the part of the difference between the children that remains after smoothing.
#
# The amount of smoothing depends on how much more the categories differ than by chance, as in James-Stein
# shrinkage. With two categories there is a single split, and nothing is smoothed.

from pboost._core._cut cimport Limits, cut_score, is_legal
from pboost._core.types cimport MAX_BINS, int32_t, int64_t

cdef extern from *:
    """
    /* The largest `pull`, relative to the weight of all categories. At this value, the smoothed shares of
       all categories are almost equal. */
    #define PBOOST_MOST_PULL 1e6
    """
    const double MOST_PULL "PBOOST_MOST_PULL"

# The class weights and row counts of one feature. Category b is at index b * step. Missing values come
# after the last category.
cdef struct Levels:
    const int64_t* negative
    const int64_t* positive
    const int64_t* count
    Py_ssize_t step
    int n
    bint has_missing
    double smoothing  # this multiple of the difference expected by chance is subtracted
    double pull  # weight with which the class shares of the node enter each smoothed share
    int n_ordered
    int32_t[MAX_BINS] order
    double[MAX_BINS] share  # smoothed shares of class +1, sorted

# A split: the class weights of its left child, the child for missing values, and the categories of the
# right child, at the positions `first` to `last` - 1 of the order.
cdef struct LevelCut:
    int64_t ln
    int64_t lp
    int side, first, last


cdef inline double departure(const Limits* at, int64_t negative, int64_t positive) noexcept nogil:
    """Return the weight of class +1 minus its expectation from the node's class shares."""
    cdef double share = <double>at.positive / (<double>at.negative + <double>at.positive)
    return <double>positive - <double>(negative + positive) * share


cdef inline double pull_of(
    double smoothing, Py_ssize_t n_levels, Py_ssize_t n_free, double squares, double known
) noexcept nogil:
    """Return the weight with which the node's shares enter the smoothed shares of each category.

    squares: chi-squared statistic of the categories. n_free: its degrees of freedom per category. known:
    weight of all categories. The expectation of the statistic by chance, times `smoothing`, is subtracted.
    """
    cdef double chance = smoothing * <double>max(n_levels - 2, 0) * <double>n_free
    if chance <= 0.0:
        return 0.0
    if squares - chance <= chance / (MOST_PULL * <double>n_levels):
        return MOST_PULL * known
    return known / <double>n_levels * (chance / (squares - chance))


cdef inline double measured_pull(const Limits* at, const Levels* levels) noexcept nogil:
    cdef double total = <double>at.negative + <double>at.positive, known = 0.0, squares = 0.0, apart
    cdef int64_t positive, mass
    cdef int b, n = 0
    for b in range(levels.n):
        positive = levels.positive[b * levels.step]
        mass = levels.negative[b * levels.step] + positive
        if mass <= 0:
            continue
        apart = departure(at, mass - positive, positive)
        squares += apart * (apart / <double>mass)
        known += <double>mass
        n += 1
    squares *= <double>at.n / <double>at.negative * (total / <double>at.positive)
    return pull_of(levels.smoothing, n, 1, squares, known)


cdef inline void order_levels(const Limits* at, Levels* levels) noexcept nogil:
    """Sort the categories with positive weight by their share of class +1; ties go to the lowest number."""
    cdef double total = <double>at.negative + <double>at.positive
    cdef double expected, key
    cdef int64_t positive, mass
    cdef int b, i, n = 0
    levels.pull = 0.0
    if levels.smoothing > 0.0 and at.positive > 0 and at.negative > 0:
        levels.pull = measured_pull(at, levels)
    expected = levels.pull * (<double>at.positive / total)
    for b in range(levels.n):
        positive = levels.positive[b * levels.step]
        mass = levels.negative[b * levels.step] + positive
        if mass <= 0:
            continue
        key = (<double>positive + expected) / (<double>mass + levels.pull)
        i = n
        while i > 0 and levels.share[i - 1] > key:
            levels.share[i], levels.order[i] = levels.share[i - 1], levels.order[i - 1]
            i -= 1
        levels.share[i], levels.order[i] = key, b
        n += 1
    levels.n_ordered = n


cdef inline double smoothed_departure(const Limits* at, const Levels* levels, int i) noexcept nogil:
    """Return the weight of class +1, from the smoothed share of a category, minus its expectation.

    The category is at position i of the order.
    """
    cdef Py_ssize_t place = levels.order[i] * levels.step
    cdef int64_t mass = levels.negative[place] + levels.positive[place]
    cdef double share = <double>at.positive / (<double>at.negative + <double>at.positive)
    return <double>mass * (levels.share[i] - share)


cdef inline int64_t smoothed_away(
    const Limits* at, int64_t ln, int64_t lp, double left, double all_
) noexcept nogil:
    """Return the weight of class +1 that smoothing adds to the left child.

    left, all_: sums of `smoothed_departure` over the left categories and over all categories.
    """
    cdef double apart = departure(at, ln, lp), kept
    cdef double part = <double>(ln + lp) / (<double>at.negative + <double>at.positive)
    cdef int64_t moved
    if apart == 0.0:
        return 0
    kept = min(max((left - all_ * part) / apart, 0.0), 1.0)
    moved = -<int64_t>((1.0 - kept) * apart)
    return max(min(moved, min(ln, at.positive - lp)), -min(lp, at.negative - ln))


cdef inline bint try_cut(
    const Limits* at, int64_t ln, int64_t lp, Py_ssize_t count, int64_t moved, double limit,
    double* best,
) noexcept nogil:
    """Try a split: lower `best` to its score and return whether the score is within `limit`.

    moved: the weight of class +1 that smoothing adds to the left child.
    """
    cdef double here
    if not is_legal(at, ln, lp, count):
        return False
    here = cut_score(at, ln - moved, lp + moved)
    best[0] = min(best[0], here)
    return here <= limit


cdef inline bint scan_side(
    const Limits* at, const Levels* levels, int side, double limit, double* best, LevelCut* cut
) noexcept nogil:
    """Try the splits of `scan_levels` with the missing values in the child `side` only."""
    cdef Py_ssize_t place = levels.n * levels.step, count = 0
    cdef int64_t ln = 0, lp = 0, moved = 0
    cdef double left = 0.0, all_ = 0.0, missing = 0.0
    cdef int i, n = levels.n_ordered
    cdef bint is_smoothed = levels.pull > 0.0
    if side == 0:
        ln, lp, count = levels.negative[place], levels.positive[place], levels.count[place]
    if is_smoothed:
        if levels.has_missing:
            missing = departure(at, levels.negative[place], levels.positive[place])
        left, all_ = (missing, missing) if side == 0 else (0.0, missing)
        for i in range(n):
            all_ += smoothed_departure(at, levels, i)
    cut.side, cut.last = side, n
    for i in range(n - (0 if side and levels.has_missing else 1)):
        place = levels.order[i] * levels.step
        ln += levels.negative[place]
        lp += levels.positive[place]
        count += levels.count[place]
        if is_smoothed:
            left += smoothed_departure(at, levels, i)
            # The split between known and missing values is not smoothed.
            moved = smoothed_away(at, ln, lp, left, all_) if i < n - 1 else 0
        if try_cut(at, ln, lp, count, moved, limit, best):
            cut.ln, cut.lp, cut.first = ln, lp, i + 1
            return True
    if not is_smoothed:
        return False
    # Try each single category as the right child, with missing values in the child `side`.
    ln, lp, count = at.negative, at.positive, at.n
    if side and levels.has_missing:
        place = levels.n * levels.step
        ln, lp = ln - levels.negative[place], lp - levels.positive[place]
        count -= levels.count[place]
    for i in range(n):
        place = levels.order[i] * levels.step
        cut.ln, cut.lp = ln - levels.negative[place], lp - levels.positive[place]
        left = all_ - smoothed_departure(at, levels, i) - (missing if side else 0.0)
        moved = smoothed_away(at, cut.ln, cut.lp, left, all_)
        if try_cut(at, cut.ln, cut.lp, count - levels.count[place], moved, limit, best):
            cut.first, cut.last = i, i + 1
            return True
    return False


cdef inline bint scan_levels(
    const Limits* at, Levels* levels, double limit, double* best, LevelCut* cut
) noexcept nogil:
    """Lower `best` to the least score of a split; store the first split with a score <= `limit` in `cut`.

    Return whether there is such a split. A negative `limit` searches for the least score only. Missing
    values are tried in the right child first, then in the left.
    """
    order_levels(at, levels)
    return (scan_side(at, levels, 1, limit, best, cut)
            or levels.has_missing and scan_side(at, levels, 0, limit, best, cut))
