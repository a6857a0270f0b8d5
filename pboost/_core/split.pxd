# Split criteria and their sums.
#
# The score of a split is a function of the class weights of its children; the best split has the least
# score. `score` and `score_many` are for two classes. `begin`, `add` and `score_of` work for any number of
# classes, and for squared error. They update the sums while rows move one by one from the right child to
# the left. Callers pass a criterion that is a compile-time constant. `impurity` is the criterion of a
# single child. A criterion without a branch in `begin` and `add` needs only class weights and is computed
# by `impurity`.
from libc.math cimport INFINITY, log2, sqrt

from pboost._core.types cimport int32_t, int64_t

cdef extern from *:
    """
    /* Relative difference up to which two splits are equally good. */
    #define PBOOST_TIE 1e-12
    """
    const double TIE "PBOOST_TIE"

cpdef enum Criterion:
    KEARNS_MANSOUR, GINI, ENTROPY, ERROR, SQUARED


# Two classes. Each score is concave and positively homogeneous in the class weights. If the left class
# weights lie in a rectangle, the least score is at a corner. For Kearns-Mansour, the score is the square of
# half the criterion, which needs one square root instead of two.

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


# Left and right class weights of splits, as doubles. The right weights are computed as differences of
# integers, because the square root would magnify rounding errors near purity.
cdef struct Masses:
    double* lp
    double* ln
    double* rp
    double* rn


cdef inline void score_many(
    int criterion, const Masses* m, Py_ssize_t shift_p, Py_ssize_t shift_n, Py_ssize_t n, double* out
) noexcept nogil:
    """Compute the scores of `n` splits. The branches are outside of the loops, which can be vectorized.

    Split i has the weights of class +1 at i + shift_p and the weights of class -1 at i + shift_n.
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
    """Return the largest score that is tied with `best`, for this total weight."""
    cdef double root
    if best == INFINITY:
        return -1.0
    if criterion == KEARNS_MANSOUR:
        root = sqrt(best) + 0.5 * TIE * total
        return root * root
    return best + TIE * total


# Any number of classes, and squared error. Let y be the targets minus a constant. A node has the total
# weight W and the sum V of weight times y. W- and V- are the same for the left child, and W+ = W - W-. The
# split reduces the sum of squares by D**2 W / (W- W+), with D = V- - V W- / W. Its score is -D**2 / (W-
# W+). The constant is the mean of the node up to rounding, so that V is small and there is no cancellation.
# W and V are exact, because they are sums of 64-bit fixed-point numbers.

# The weight and the weighted target of a row, or sums of both, in fixed point.
cdef struct Moment:
    int64_t w
    int64_t v

# The data of a node for a search. WORK left, right (n_classes,): class weights; term: (2, n_classes).
cdef struct Judge:
    int criterion
    Py_ssize_t n_classes, n, min_count
    const int32_t* label
    const int64_t* weight
    const int64_t* mass
    const Moment* moment
    Moment total  # only w is set for classification
    int64_t* left
    int64_t* right
    double* term
    double tie  # for regression: scores that differ by at most this are tied

# The sums of the left child and, for each child, a sum over classes: of squares for Gini, of x log x for
# entropy. For the error, it is the largest weight. `renewed` is the weight of the right child when its sum
# was last recomputed.
cdef struct Sums:
    Moment below
    double left, right
    int64_t renewed


cdef inline double x_log_x(double x) noexcept nogil:
    return x * log2(x) if x > 0.0 else 0.0


cdef inline double impurity(int criterion, Py_ssize_t n_classes, const int64_t* mass) noexcept nogil:
    """Return the impurity of a child times its weight."""
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
    """Start with all rows in the right child."""
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
    """Move weight of class j from the right child to the left child."""
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
        # Recompute small sums, because they consist mostly of rounding errors.
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
    """Move a row from the right child to the left child."""
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
    """Return the score of the current split."""
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
    """Return the largest score that is tied with `best`."""
    if at.criterion == SQUARED:
        return best + at.tie
    # With two classes, scores are computed as in all other searches.
    return score_limit(at.criterion if at.n_classes == 2 else GINI, best, <double>at.total.w)


cdef inline bint may_cut(const Judge* at, const Sums* sums, Py_ssize_t n_below) noexcept nogil:
    return (sums.below.w > 0 and sums.below.w < at.total.w and n_below >= at.min_count
            and at.n - n_below >= at.min_count)
