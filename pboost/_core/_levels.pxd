# Cuts of a column of levels, of two classes: sets of levels whose rows take exit 1.
#
# Levels with mass are ordered by the share of class +1, and the ends of the order are tried: the best
# of all sets is among them, whatever the (concave) criterion. Where shares are smoothed, each level is
# tried against the rest, too, and a cut counts with as much of the difference between its sides as
# smoothed shares leave, at most all: no criterion falls while the sides of a cut come nearer to one
# another. How much is smoothed follows from how much more the levels differ than by chance, as James
# and Stein shrink means; of two levels there is one cut, as of a number of two values, and nothing is.

from pboost._core._cut cimport Limits, cut_score, is_legal
from pboost._core.types cimport MAX_BINS, int32_t, int64_t

cdef extern from *:
    """
    /* The most that is added to a level, beside the mass of all: next to nothing is left of it. */
    #define PBOOST_MOST_PULL 1e6
    """
    const double MOST_PULL "PBOOST_MOST_PULL"

# The masses and numbers of rows of one column: those of level b are at place b * step, those of missing
# rows after the last.
cdef struct Levels:
    const int64_t* negative
    const int64_t* positive
    const int64_t* count
    Py_ssize_t step
    int n
    bint has_missing
    double smoothing  # how many times what levels differ by chance is taken from them
    double pull       # the mass of the node's own share that is therefore added to each
    int n_ordered
    int32_t[MAX_BINS] order
    double[MAX_BINS] share  # of class +1, smoothed, in this order

# A cut: masses below it, the side of missing rows, and the levels above: of the order, those from
# `first` to `last` - 1.
cdef struct LevelCut:
    int64_t ln
    int64_t lp
    int side, first, last


cdef inline double departure(const Limits* at, int64_t negative, int64_t positive) noexcept nogil:
    """How much more of class +1 there is than rows of the node would have of this mass."""
    cdef double share = <double>at.positive / (<double>at.negative + <double>at.positive)
    return <double>positive - <double>(negative + positive) * share


cdef inline double pull_of(
    double smoothing, Py_ssize_t n_levels, Py_ssize_t n_free, double squares, double known
) noexcept nogil:
    """The mass by which the shares of levels are drawn to those of the node.

    squares: by how much levels differ, chi-squared of `n_free` classes or numbers; of what it would be
    by chance for the levels beyond two, so many times count as chance. known: mass of all levels.
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
    """List the levels with mass by share of class +1; equal shares by number."""
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
    """That of the i-th level in order, by its smoothed share."""
    cdef Py_ssize_t place = levels.order[i] * levels.step
    cdef int64_t mass = levels.negative[place] + levels.positive[place]
    cdef double share = <double>at.positive / (<double>at.negative + <double>at.positive)
    return <double>mass * (levels.share[i] - share)


cdef inline int64_t smoothed_away(
    const Limits* at, int64_t ln, int64_t lp, double left, double all_
) noexcept nogil:
    """How much of class +1 smoothing adds below a cut. left, all_: smoothed departures of the levels
    below, and of all."""
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
    """Lower `best` to the score of a legal cut; whether it is within the limit. moved: the mass of
    class +1 that it counts with below more than it has."""
    cdef double here
    if not is_legal(at, ln, lp, count):
        return False
    here = cut_score(at, ln - moved, lp + moved)
    best[0] = min(best[0], here)
    return here <= limit


cdef inline bint scan_side(
    const Limits* at, const Levels* levels, int side, double limit, double* best, LevelCut* cut
) noexcept nogil:
    """As `scan_levels`, with missing rows on this side."""
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
            # That between levels and missing rows is one cut, and counts as it is.
            moved = smoothed_away(at, ln, lp, left, all_) if i < n - 1 else 0
        if try_cut(at, ln, lp, count, moved, limit, best):
            cut.ln, cut.lp, cut.first = ln, lp, i + 1
            return True
    if not is_smoothed:
        return False
    # Each level above alone: what is below are all others, but for missing rows that are above.
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
    """Lower `best` to the least score of a cut; whether one is within the limit, which `cut` then is.

    To search for the least score, `limit` is negative. Where rows are missing, they are above first,
    and then below.
    """
    order_levels(at, levels)
    return (scan_side(at, levels, 1, limit, best, cut)
            or levels.has_missing and scan_side(at, levels, 0, limit, best, cut))
