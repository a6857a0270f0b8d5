# Split criteria, and their sums: all that is known of them.
#
# A score is a function of the masses on the two sides of a cut, to be minimised. `score` and
# `score_many` are of two classes. `begin`, `add` and `score_of` keep sums of any number of classes,
# or of squares, while rows move from the right to the left one by one; scans call them with a
# criterion that is known when they are compiled. `impurity` is that of one side. A criterion that
# has no branch in `begin` and `add` keeps the masses alone, and is scored by its impurity.
from libc.math cimport INFINITY, log2, sqrt

from pboost._core.types cimport int32_t, int64_t

cdef extern from *:
    """
    /* Relative width within which two splits count as equally good. */
    #define PBOOST_TIE 1e-12
    """
    const double TIE "PBOOST_TIE"

cpdef enum Criterion:
    KEARNS_MANSOUR, GINI, ENTROPY, ERROR, SQUARED


# ---------------------------------------------------------------------------------------------
# Two classes. Each score is concave and positively homogeneous in the masses, hence over a box of
# left masses it is least at a corner. Kearns-Mansour is kept as the square of half its value, which
# needs one root instead of two.

cdef inline double side_gini(double a, double b) noexcept nogil:
    return 4.0 * a * b / (a + b) if a + b > 0.0 else 0.0


cdef inline double side_entropy(double a, double b) noexcept nogil:
    cdef double total = a + b, value = 0.0
    if a > 0.0:
        value -= a * log2(a / total)
    if b > 0.0:
        value -= b * log2(b / total)
    return value


cdef inline double score(
    int criterion, double lp, double ln, double rp, double rn
) noexcept nogil:
    cdef double x, y
    if criterion == KEARNS_MANSOUR:
        x = lp * ln
        y = rp * rn
        return x + y + 2.0 * sqrt(x * y)
    if criterion == GINI:
        return side_gini(lp, ln) + side_gini(rp, rn)
    if criterion == ENTROPY:
        return side_entropy(lp, ln) + side_entropy(rp, rn)
    return 2.0 * min(lp, ln) + 2.0 * min(rp, rn)


# Left and right masses of cuts, as doubles. The right ones come from integer differences: near
# purity a rounding error of the whole mass would be magnified by the root.
cdef struct Masses:
    double* lp
    double* ln
    double* rp
    double* rn


cdef inline void score_many(
    int criterion, const Masses* m, Py_ssize_t shift_p, Py_ssize_t shift_n, Py_ssize_t n, double* out
) noexcept nogil:
    """Scores of `n` cuts; the branch stands outside so that loops are SIMD.

    Cut i takes the masses of class +1 from place i + shift_p, those of class -1 from i + shift_n.
    """
    cdef const double* lp = m.lp + shift_p
    cdef const double* rp = m.rp + shift_p
    cdef const double* ln = m.ln + shift_n
    cdef const double* rn = m.rn + shift_n
    cdef Py_ssize_t i
    if criterion == KEARNS_MANSOUR:
        for i in range(n):
            out[i] = score(KEARNS_MANSOUR, lp[i], ln[i], rp[i], rn[i])
    elif criterion == GINI:
        for i in range(n):
            out[i] = score(GINI, lp[i], ln[i], rp[i], rn[i])
    elif criterion == ENTROPY:
        for i in range(n):
            out[i] = score(ENTROPY, lp[i], ln[i], rp[i], rn[i])
    else:
        for i in range(n):
            out[i] = score(criterion, lp[i], ln[i], rp[i], rn[i])


cdef inline double score_limit(int criterion, double best, double total) noexcept nogil:
    """The largest score that counts as equal to `best` where the whole mass is `total`."""
    cdef double root
    if best == INFINITY:
        return -1.0
    if criterion == KEARNS_MANSOUR:
        root = sqrt(best) + 0.5 * TIE * total
        return root * root
    return best + TIE * total


# ---------------------------------------------------------------------------------------------
# Any number of classes, and squares. With targets y less some constant, a cut with weight W- and sum
# V- = sum of w y below it, of W and V in all, lowers the sum of squares by D**2 W / (W- W+), where
# D = V- - V W- / W. Its score is -D**2 / (W- W+). The constant is the node's mean but for rounding,
# so that V is small and nothing cancels. W and V are sums of 64-bit fixed point numbers, hence exact.

# Weight and weight times target of a row, or sums of them, in fixed point.
cdef struct Moment:
    int64_t w
    int64_t v

# What a scan needs of a node. WORK left, right (n_classes,): masses; term: (2, n_classes).
cdef struct Judge:
    int criterion
    Py_ssize_t n_classes, n, min_count
    const int32_t* label
    const int64_t* weight
    const int64_t* mass
    const Moment* moment
    Moment total  # of squares; of classes the mass
    int64_t* left
    int64_t* right
    double* term
    double tie  # of squares: scores that differ by no more are equal

# What is left of a cut, and sums over the classes of each side: of squares, of x log x, or the
# largest mass. `renewed` is the mass that was on the right when its sum was last made anew.
cdef struct Sums:
    Moment below
    double left, right
    int64_t renewed


cdef inline double x_log_x(double x) noexcept nogil:
    return x * log2(x) if x > 0.0 else 0.0


cdef inline double impurity(int criterion, Py_ssize_t n_classes, const int64_t* mass) noexcept nogil:
    """Mass times impurity of one side, in units of mass."""
    cdef double total = 0.0, value = 0.0, largest = 0.0
    cdef Py_ssize_t j
    for j in range(n_classes):
        total += <double>mass[j]
    if total <= 0.0:
        return 0.0
    if criterion == KEARNS_MANSOUR:
        return 2.0 * sqrt(<double>mass[0] * <double>mass[1])
    for j in range(n_classes):
        if criterion == GINI:
            value += <double>mass[j] * (1.0 - <double>mass[j] / total)
        elif criterion == ENTROPY:
            value -= total * x_log_x(<double>mass[j] / total)
        largest = max(largest, <double>mass[j])
    return total - largest if criterion == ERROR else value


cdef inline void begin(const Judge* at, Sums* sums) noexcept nogil:
    """All rows on the right."""
    cdef Py_ssize_t j
    cdef double share
    sums.left = sums.right = 0.0
    sums.below.w = sums.below.v = 0
    sums.renewed = at.total.w
    for j in range(at.n_classes):
        at.left[j] = 0
        at.right[j] = at.mass[j]
        if at.criterion == GINI:
            sums.right += <double>at.mass[j] * <double>at.mass[j]
        elif at.criterion == ENTROPY:
            share = <double>at.mass[j] / <double>at.total.w
            at.term[j] = 0.0
            at.term[at.n_classes + j] = x_log_x(share)
            sums.right += at.term[at.n_classes + j]
        else:
            sums.right = max(sums.right, <double>at.mass[j])


cdef inline void move(
    const Judge* at, int criterion, Sums* sums, Py_ssize_t j, int64_t w
) noexcept nogil:
    """Take weight of class j from the right to the left."""
    cdef Py_ssize_t k
    cdef int64_t largest = 0
    cdef double fresh = 0.0
    sums.below.w += w
    if criterion == GINI:
        sums.left += <double>w * (2.0 * <double>at.left[j] + <double>w)
        sums.right -= <double>w * (2.0 * <double>at.right[j] - <double>w)
    at.left[j] += w
    at.right[j] -= w
    if criterion == GINI and 2 * (at.total.w - sums.below.w) < sums.renewed:
        # What is left of a large sum is mostly rounding errors of it.
        sums.renewed = at.total.w - sums.below.w
        for k in range(at.n_classes):
            fresh += <double>at.right[k] * <double>at.right[k]
        sums.right = fresh
    elif criterion == ENTROPY:
        fresh = x_log_x(<double>at.left[j] / <double>at.total.w)
        sums.left += fresh - at.term[j]
        at.term[j] = fresh
        fresh = x_log_x(<double>at.right[j] / <double>at.total.w)
        sums.right += fresh - at.term[at.n_classes + j]
        at.term[at.n_classes + j] = fresh
    elif criterion == ERROR:
        sums.left = max(sums.left, <double>at.left[j])
        if <double>(at.right[j] + w) >= sums.right:
            for k in range(at.n_classes):
                largest = max(largest, at.right[k])
            sums.right = <double>largest


cdef inline void add(const Judge* at, int criterion, Sums* sums, int32_t row) noexcept nogil:
    """Take a row from the right to the left."""
    if criterion == SQUARED:
        sums.below.w += at.moment[row].w
        sums.below.v += at.moment[row].v
    else:
        move(at, criterion, sums, at.label[row], at.weight[row])


cdef inline double square_score(const Judge* at, const Moment* left) noexcept nogil:
    cdef double below = <double>left.w, above = <double>(at.total.w - left.w)
    cdef double d = <double>left.v - <double>at.total.v * (below / <double>at.total.w)
    return -(d * d) / (below * above)


cdef inline double score_of(const Judge* at, int criterion, const Sums* sums) noexcept nogil:
    """Score of the cut at which the rows are."""
    cdef double total = <double>at.total.w, below = <double>sums.below.w
    cdef double above = <double>(at.total.w - sums.below.w)
    if criterion == SQUARED:
        return square_score(at, &sums.below)
    if criterion == GINI:
        return (below - sums.left / below) + (above - sums.right / above)
    if criterion == ENTROPY:
        return total * ((x_log_x(below / total) - sums.left)
                        + (x_log_x(above / total) - sums.right))
    if criterion == ERROR:
        return (below - sums.left) + (above - sums.right)
    return impurity(criterion, at.n_classes, at.left) + impurity(criterion, at.n_classes, at.right)


cdef inline double limit_of(const Judge* at, double best) noexcept nogil:
    """The largest score that counts as equal to `best`."""
    if at.criterion == SQUARED:
        return best + at.tie
    # Of two classes the scores are those of every other search.
    return score_limit(at.criterion if at.n_classes == 2 else GINI, best, <double>at.total.w)


cdef inline bint may_cut(const Judge* at, const Sums* sums, Py_ssize_t n_below) noexcept nogil:
    return (sums.below.w > 0 and sums.below.w < at.total.w and n_below >= at.min_count
            and at.n - n_below >= at.min_count)
