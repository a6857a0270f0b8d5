# Which column is cut at a node of a tree, where columns have costs.
#
# A row pays each item (a column's own, or that of a group of columns) once. All rows of a node have come
# the same way, so that what they have paid is what the columns on that way cost.
from libc.math cimport INFINITY, sqrt

from pboost._core._grower cimport Tree
from pboost._core.split cimport ENTROPY, KEARNS_MANSOUR, Judge, TIE, impurity
from pboost._core.types cimport int32_t


cdef inline void take_costs(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Find what of each item a row of the node has still to pay."""
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
    """What a comparison of a column costs a row of the node where `take_costs` has been."""
    cdef const int32_t* items = t.item + 2 * f
    cdef double cost = t.comparison_cost
    if items[0] >= 0:
        cost += t.to_pay[items[0]]
    if items[1] >= 0:
        cost += t.to_pay[items[1]]
    return cost


cdef inline double lowered_by(const Tree* t, double before, double score) noexcept nogil:
    """By how much a cut of this score lowers the criterion, `before` at the node."""
    if t.n_classes != 2:  # of squares in other units
        return before - score
    if t.criterion == KEARNS_MANSOUR:
        return before - 2.0 * sqrt(score)
    return before - (score if t.criterion == ENTROPY else 0.5 * score)


cdef inline double least_for(double worth, double cost) noexcept nogil:
    """What a cut at this cost has to lower to be worth as much. What raises the criterion, as sets of
    levels that are smoothed may, is the worse the more it costs."""
    return worth * cost if worth >= 0.0 else worth / cost


cdef inline Py_ssize_t worth_most(
    const Tree* t, Py_ssize_t e, const Judge* at, Py_ssize_t n_picked
) noexcept nogil:
    """The place among the columns picked of that whose best cut lowers most for its cost; of equals
    the cheapest, then the lowest. One of them can be cut."""
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
