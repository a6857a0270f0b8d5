# Sorted rows of any number of classes: one scan over the cuts of a column.
#
# A cut's score is the sum over its two sides of mass times impurity, to be minimised. Rows move from
# the right to the left one by one, and the sums of either side are kept up to date.
from libc.math cimport log2, sqrt

from pboost._core._math cimport ENTROPY, ERROR, GINI, score, score_limit
from pboost._core.types cimport int32_t, int64_t, is_tied, row_of

# What the scan needs of a node. WORK left, right (n_classes,): masses; term: (2, n_classes).
cdef struct ClassNode:
    int criterion
    Py_ssize_t n_classes, n, min_count
    const int32_t* label
    const int64_t* weight
    const int64_t* mass
    int64_t total
    int64_t* left
    int64_t* right
    double* term

# Sums over the classes of each side: of squares, of x log x, or the largest mass. `renewed` is the
# mass that was on the right when its sum was last made anew.
cdef struct ClassSums:
    double left, right
    int64_t below, renewed


cdef inline double x_log_x(double x) noexcept nogil:
    return x * log2(x) if x > 0.0 else 0.0


cdef inline void begin(const ClassNode* at, ClassSums* sums) noexcept nogil:
    """All rows on the right."""
    cdef Py_ssize_t j
    cdef double share
    sums.left = sums.right = 0.0
    sums.below = 0
    sums.renewed = at.total
    for j in range(at.n_classes):
        at.left[j] = 0
        at.right[j] = at.mass[j]
        if at.criterion == GINI:
            sums.right += <double>at.mass[j] * <double>at.mass[j]
        elif at.criterion == ENTROPY:
            share = <double>at.mass[j] / <double>at.total
            at.term[j] = 0.0
            at.term[at.n_classes + j] = x_log_x(share)
            sums.right += at.term[at.n_classes + j]
        else:
            sums.right = max(sums.right, <double>at.mass[j])


cdef inline void move(
    const ClassNode* at, ClassSums* sums, Py_ssize_t j, int64_t w
) noexcept nogil:
    """Take weight of class j from the right to the left."""
    cdef Py_ssize_t k
    cdef int64_t largest = 0
    cdef double fresh = 0.0
    sums.below += w
    if at.criterion == GINI:
        sums.left += <double>w * (2.0 * <double>at.left[j] + <double>w)
        sums.right -= <double>w * (2.0 * <double>at.right[j] - <double>w)
    at.left[j] += w
    at.right[j] -= w
    if at.criterion == GINI and 2 * (at.total - sums.below) < sums.renewed:
        # What is left of a large sum is mostly rounding errors of it.
        sums.renewed = at.total - sums.below
        for k in range(at.n_classes):
            fresh += <double>at.right[k] * <double>at.right[k]
        sums.right = fresh
    if at.criterion == ENTROPY:
        fresh = x_log_x(<double>at.left[j] / <double>at.total)
        sums.left += fresh - at.term[j]
        at.term[j] = fresh
        fresh = x_log_x(<double>at.right[j] / <double>at.total)
        sums.right += fresh - at.term[at.n_classes + j]
        at.term[at.n_classes + j] = fresh
    elif at.criterion == ERROR:
        sums.left = max(sums.left, <double>at.left[j])
        if <double>(at.right[j] + w) >= sums.right:
            for k in range(at.n_classes):
                largest = max(largest, at.right[k])
            sums.right = <double>largest


cdef inline double score_of(const ClassNode* at, const ClassSums* sums) noexcept nogil:
    """Score of the cut at which the rows are."""
    cdef double total = <double>at.total, below = <double>sums.below
    cdef double above = <double>(at.total - sums.below)
    if at.n_classes == 2:
        return score(at.criterion, <double>at.left[1], <double>at.left[0], <double>at.right[1],
                     <double>at.right[0])
    if at.criterion == GINI:
        return (below - sums.left / below) + (above - sums.right / above)
    if at.criterion == ENTROPY:
        return total * ((x_log_x(below / total) - sums.left)
                        + (x_log_x(above / total) - sums.right))
    return (below - sums.left) + (above - sums.right)


cdef inline double class_score_limit(const ClassNode* at, double best) noexcept nogil:
    """The largest score that counts as equal to `best`."""
    # Of two classes the scores are those of every other search.
    return score_limit(at.criterion if at.n_classes == 2 else GINI, best, <double>at.total)


cdef inline bint may_cut(const ClassNode* at, const ClassSums* sums, Py_ssize_t n_below) noexcept nogil:
    return (sums.below > 0 and sums.below < at.total and n_below >= at.min_count
            and at.n - n_below >= at.min_count)


cdef inline Py_ssize_t scan_classes(
    const ClassNode* at, const int32_t* order, double limit, double* best
) noexcept nogil:
    """Try all cuts of a segment. Lowers `best`; returns the first position within `limit`, or -1."""
    cdef ClassSums sums
    cdef Py_ssize_t i
    cdef int32_t row
    cdef double here
    begin(at, &sums)
    for i in range(at.n - 1):
        row = row_of(order[i])
        move(at, &sums, at.label[row], at.weight[row])
        if is_tied(order[i + 1]) or not may_cut(at, &sums, i + 1):
            continue
        here = score_of(at, &sums)
        if here < best[0]:
            best[0] = here
        if here <= limit:
            return i + 1
    return -1


cdef inline double total_impurity(int criterion, Py_ssize_t n_classes, const int64_t* mass) noexcept nogil:
    """Mass times impurity of one side, in units of mass."""
    cdef double total = 0.0, value = 0.0, largest = 0.0
    cdef Py_ssize_t j
    for j in range(n_classes):
        total += <double>mass[j]
    if total <= 0.0:
        return 0.0
    if criterion != GINI and criterion != ENTROPY and criterion != ERROR:
        return 2.0 * sqrt(<double>mass[0] * <double>mass[1])
    for j in range(n_classes):
        if criterion == GINI:
            value += <double>mass[j] * (1.0 - <double>mass[j] / total)
        elif criterion == ENTROPY:
            value -= total * x_log_x(<double>mass[j] / total)
        largest = max(largest, <double>mass[j])
    return total - largest if criterion == ERROR else value
