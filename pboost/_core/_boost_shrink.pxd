# Leaf values that are shrunk along the path from the root, by the James-Stein rule.
#
# Sums are in units of packed gradients and Hessians. Sums of squares are sums of integers, so they do not
# depend on the order of the rows.
from libc.math cimport fmax, fmin

from pboost._core._boost_leaf cimport Rows
from pboost._core._boost_round cimport Node
from pboost._core._team cimport lock, unlock
from pboost._core.types cimport int32_t

cdef enum:
    MOST_SQUARE = 1 << 10  # squares are clipped at this multiple of the largest squared weighted gradient


# The squared gradients of all rows, times their weights.
cdef struct Squares:
    const Rows* rows
    const double* gradient
    bint is_weighted  # whether the gradients contain weights that are not numbers of copies
    double gradient_scale, square_scale, most
    double* square


cdef inline double rounded(double x) noexcept nogil:
    """Round a number below 2**51 to an integer, without a function call."""
    return (x + 6755399441055744.0) - 6755399441055744.0


cdef inline void squares_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Squares* all = <Squares*>task
    cdef const double* gradient = all.gradient
    cdef const double* weight = all.rows.weight
    cdef double* square = all.square
    cdef double scale = all.gradient_scale, of_square = all.square_scale, most = all.most, x
    cdef Py_ssize_t i
    if weight == NULL:
        for i in range(start, stop):
            x = gradient[i] * scale
            square[i] = rounded(x * x * of_square)
        return
    for i in range(start, stop):
        x = gradient[i] * scale
        if all.rows.are_copies:
            square[i] = rounded(x * x * of_square) * weight[i]
        elif weight[i] > 0.0:
            x = x * x / weight[i] if all.is_weighted else x * x * weight[i]
            square[i] = rounded(fmin(x, most) * of_square)
        else:
            square[i] = 0.0


# Data for threads that sum `value` over the rows of each leaf. The sums are every second entry of `found`.
cdef struct LeafSums:
    const int32_t* rows
    const Node* node
    Py_ssize_t n
    const double* value
    double* found
    int32_t in_hand


cdef inline void leaf_sums_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef LeafSums* all = <LeafSums*>task
    cdef const int32_t* rows = all.rows
    cdef Py_ssize_t k, i, first, last
    cdef double even, odd
    for k in range(all.n):
        first, last = max(start, all.node[k].start), min(stop, all.node[k].stop)
        if all.node[k].feature >= 0 or first >= last:
            continue
        even = odd = 0.0
        for i in range(first, last - 1, 2):
            even += all.value[rows[i]]
            odd += all.value[rows[i + 1]]
        if (last - first) % 2:
            even += all.value[rows[last - 1]]
        lock(&all.in_hand)
        all.found[2 * k] += even + odd
        unlock(&all.in_hand)


# The sum of squared gradients and the sum of weights of a node.
cdef struct Spread:
    double squares, weight


# `shrinkage` is the factor of the variance, `row_weight` the weight of one row, and `unit` the unit of the
# gradients divided by the unit of the Hessians.
cdef struct Shrink:
    Node* node
    const int32_t* children
    Spread* spread
    double* value
    Py_ssize_t n
    double shrinkage, row_weight, l2, most, rate, unit


cdef inline double variance_in(const Node* node, const Spread* of_node) noexcept nogil:
    """Return the sum of squared deviations of the gradients from their mean."""
    return fmax(of_node.squares - node.gradient * node.gradient / of_node.weight, 0.0)


cdef inline double raw_step(const Shrink* all, Py_ssize_t e) noexcept nogil:
    """Return the step of a leaf, or the Newton step of an inner node."""
    cdef const Node* node = all.node + e
    if node.feature < 0:
        return node.mean / all.rate
    return fmin(fmax(-all.unit * node.gradient / (node.curvature + all.l2), -all.most), all.most)


cdef inline double share_kept(const Shrink* all, Py_ssize_t e) noexcept nogil:
    """Return the fraction of the difference between two children that remains after shrinkage."""
    cdef const Node* node = all.node + e
    cdef double of_row = all.row_weight * variance_in(node, all.spread + e) / all.spread[e].weight
    cdef double difference = 0.0, variance = 0.0, curvature
    cdef Py_ssize_t side, child
    for side in range(2):
        child = all.children[2 * e + side]
        curvature = all.node[child].curvature
        difference += (1.0 if side else -1.0) * (all.node[child].gradient / curvature)
        variance += (variance_in(all.node + child, all.spread + child) + of_row) / (curvature * curvature)
    difference *= difference
    if difference == 0.0:
        return 0.0
    return fmax(1.0 - all.shrinkage * all.row_weight * variance / difference, 0.0)


cdef inline double shrink_tree(const Shrink* all) noexcept nogil:
    """Replace the leaf values of a tree in preorder by shrunk ones.

    Return the sum of squared leaf values, weighted by Hessians, as a fraction of the sum before shrinkage.
    """
    cdef Py_ssize_t e, side, child
    cdef double share, raw, before = 0.0, after = 0.0
    for e in range(all.n - 1, -1, -1):  # children first
        if all.node[e].feature >= 0:
            all.spread[e].squares = all.spread[e].weight = 0.0
            for side in range(2):
                child = all.children[2 * e + side]
                all.spread[e].squares += all.spread[child].squares
                all.spread[e].weight += all.spread[child].weight
    all.value[0] = raw_step(all, 0)
    for e in range(all.n):
        if all.node[e].feature < 0:
            raw = raw_step(all, e)
            before += all.node[e].curvature * raw * raw
            raw = fmin(fmax(all.value[e], -all.most), all.most)
            after += all.node[e].curvature * raw * raw
            all.node[e].mean = all.rate * raw
            continue
        share, raw = share_kept(all, e), raw_step(all, e)
        for side in range(2):
            child = all.children[2 * e + side]
            all.value[child] = all.value[e] + share * (raw_step(all, child) - raw)
    return after / before if before > 0.0 else 1.0
