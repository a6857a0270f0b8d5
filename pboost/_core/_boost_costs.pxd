# The feature costs that the rows at a node of a boosted tree have not paid yet.
#
# A cost item is the cost of one feature or of a group of features. A row pays each item once, either in an
# earlier tree or on the path to the node in this tree. Without a tradeoff, the gain of a split is divided
# by its cost. With a tradeoff, the cost times the tradeoff is subtracted from the gain, and the result must
# be positive.
from pboost._core._boost_round cimport Node, Round
from pboost._core.types cimport int32_t, uint8_t

cdef enum:
    NO_ROW = 0
    ALL_ROWS = 1


cdef inline double weight_of(const Round* r, int32_t row) noexcept nogil:
    return 1.0 if r.payer_weight == NULL else r.payer_weight[row]


cdef inline double share_to_pay(const Round* r, const Node* node, Py_ssize_t k) noexcept nogil:
    """Return the weighted fraction of a node's rows that did not pay for an item in earlier trees."""
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
    """Compute the mean amount that a row of the node still has to pay for each item."""
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
    """Return the gain that a split needs per unit of mean cost, or a negative number without a tradeoff."""
    cdef double weight = 0.0
    cdef Py_ssize_t i
    if r.item == NULL or r.tradeoff < 0.0:
        return -1.0
    for i in range(node.start, node.stop):
        weight += weight_of(r, r.rows[i])
    return r.tradeoff * weight


cdef inline double cost_of(const Round* r, Py_ssize_t f) noexcept nogil:
    """Return the mean cost per row of comparing a feature."""
    cdef const int32_t* items = r.item + 2 * f
    cdef double cost = r.comparison_cost
    if items[0] >= 0:
        cost += r.to_pay[items[0]]
    if items[1] >= 0:
        cost += r.to_pay[items[1]]
    return cost


cdef inline double worth_of(double gain, double cost, double tradeoff) noexcept nogil:
    """Return the gain divided by the cost or, with a tradeoff, the gain minus the weighted cost."""
    return gain / cost if tradeoff < 0.0 else gain - tradeoff * cost
