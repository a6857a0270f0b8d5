# Choice of the feature that splits a node, if features have costs.
#
# A cost item is the cost of one feature or of a group of features. A row pays each item once. All rows of a
# node have compared the same features, so they have paid for the same items.
from libc.math cimport INFINITY, sqrt

from pboost._core._grower cimport Tree
from pboost._core.split cimport ENTROPY, KEARNS_MANSOUR, Judge, TIE, impurity
from pboost._core.types cimport int32_t


cdef inline void take_costs(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Compute the amount that a row of the node still has to pay for each item."""
    cdef Py_ssize_t k
    cdef const int32_t* items
    for k in range(t.n_items):
        t.to_pay[k] = t.cost[k]
    while t.node[e].parent >= 0:
        e = t.node[e].parent
        items = t.item + 2 * <Py_ssize_t>t.node[e].feature
        for k in range(2):
            if items[k] >= 0:
                t.to_pay[items[k]] = 0.0


cdef inline double cost_of(const Tree* t, Py_ssize_t f) noexcept nogil:
    """Return the cost of comparing a feature, for a row of the node. Call `take_costs` first."""
    cdef const int32_t* items = t.item + 2 * f
    cdef double cost = t.comparison_cost
    if items[0] >= 0:
        cost += t.to_pay[items[0]]
    if items[1] >= 0:
        cost += t.to_pay[items[1]]
    return cost


cdef inline double lowered_by(const Tree* t, double before, double score) noexcept nogil:
    """Return the decrease of the criterion by a split.

    `before` is the criterion without the split, and `score` is the score of the split.
    """
    if t.n_classes != 2:  # the score has the scale of `before`
        return before - score
    if t.criterion == KEARNS_MANSOUR:
        return before - 2.0 * sqrt(score)
    return before - (score if t.criterion == ENTROPY else 0.5 * score)


cdef inline double least_for(double worth, double cost) noexcept nogil:
    """Return the decrease of the criterion at which a split with this cost is worth `worth`.

    Smoothed splits by categories may increase the criterion. In that case, a higher cost makes a split
    worse.
    """
    return worth * cost if worth >= 0.0 else worth / cost


cdef inline Py_ssize_t worth_most(
    const Tree* t, Py_ssize_t e, const Judge* at, Py_ssize_t n_picked
) noexcept nogil:
    """Return the position in `picked` of the feature with the best decrease per cost.

    Ties go to the cheapest feature, then to the first. At least one feature must have a split.
    """
    cdef double before = 0.0 if t.squares else impurity(t.criterion, t.n_classes, at.mass)
    cdef double tie = at.tie if t.squares else TIE * <double>at.total.w
    cdef double most = -INFINITY, lowered, cost, least = INFINITY
    cdef Py_ssize_t i, found = -1
    take_costs(t, e)
    for i in range(n_picked):
        if t.best[i] < INFINITY:
            lowered, cost = lowered_by(t, before, t.best[i]), cost_of(t, t.picked[i])
            most = max(most, lowered / cost if lowered >= 0.0 else lowered * cost)
    for i in range(n_picked):
        cost = cost_of(t, t.picked[i])
        if t.best[i] == INFINITY or cost > least:
            continue
        if lowered_by(t, before, t.best[i]) + tie < least_for(most, cost):
            continue
        if cost < least or t.picked[i] < t.picked[found]:
            found, least = i, cost
    return found
