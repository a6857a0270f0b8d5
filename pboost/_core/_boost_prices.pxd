# What is still to be paid for the columns of a node of a boosted tree, where columns have costs.
#
# A row pays each item (a column's own, or that of a group of columns) once: in this tree, which is known
# from the way to the node, or in an earlier one, which a bit of the row tells. What a cut gains is divided by
# what it costs, or less by that, times a tradeoff: then what is worth nothing is not cut.
from pboost._core._boost_round cimport Node, Round
from pboost._core.types cimport int32_t, uint8_t

cdef enum:
    NO_ROW = 0
    ALL_ROWS = 1


cdef inline double weight_of(const Round* r, int32_t row) noexcept nogil:
    return 1.0 if r.payer_weight == NULL else r.payer_weight[row]


cdef inline double share_to_pay(const Round* r, const Node* node, Py_ssize_t k) noexcept nogil:
    """The share of the weight of the rows of a node that has not paid an item in an earlier tree."""
    cdef const uint8_t* paid = r.paid + k * r.stride
    cdef double unpaid = 0.0, total = 0.0, weight
    cdef Py_ssize_t i
    if r.payers[k] == ALL_ROWS:
        return 0.0
    if r.payers[k] == NO_ROW:
        return 1.0
    for i in range(node.start, node.stop):
        weight = weight_of(r, r.rows[i])
        total += weight
        if not paid[r.rows[i]]:
            unpaid += weight
    return unpaid / total


cdef inline void take_costs(const Round* r, const Node* node) noexcept nogil:
    """Find what of each item is still to be paid by a row of the node in the mean."""
    cdef Py_ssize_t e = node - r.node, k
    cdef const int32_t* items
    if r.item == NULL:
        return
    for k in range(r.n_items):
        r.to_pay[k] = -1.0
    while e > 0:
        e = r.node[e].parent
        items = r.item + 2 * <Py_ssize_t>r.node[e].feature
        for k in range(2):
            if items[k] >= 0:
                r.to_pay[items[k]] = 0.0
    for k in range(r.n_items):
        if r.to_pay[k] < 0.0:
            r.to_pay[k] = r.cost[k] * share_to_pay(r, node, k)


cdef inline double tradeoff_of(const Round* r, const Node* node) noexcept nogil:
    """What a unit of cost has to gain that all rows of a node pay; below 0: any gain will do."""
    cdef double weight = 0.0
    cdef Py_ssize_t i
    if r.item == NULL or r.tradeoff < 0.0:
        return -1.0
    for i in range(node.start, node.stop):
        weight += weight_of(r, r.rows[i])
    return r.tradeoff * weight


cdef inline double cost_of(const Round* r, Py_ssize_t f) noexcept nogil:
    """What a comparison of a column costs a row of the node in the mean."""
    cdef const int32_t* items = r.item + 2 * f
    cdef double cost = r.comparison_cost
    if items[0] >= 0:
        cost += r.to_pay[items[0]]
    if items[1] >= 0:
        cost += r.to_pay[items[1]]
    return cost


cdef inline double worth_of(double gain, double cost, double tradeoff) noexcept nogil:
    """What a cut is worth."""
    return gain / cost if tradeoff < 0.0 else gain - tradeoff * cost
