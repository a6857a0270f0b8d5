# Best-first growth of a boosted tree: the open node with the largest gain is split next. If gains are
# equal, the node created first is split first.
# An open node keeps its histogram while there is memory for it. Otherwise, the histograms of its children
# are computed from their rows.
# With a cost tradeoff, nodes are compared by gain minus cost. If the number of comparisons is limited,
# nodes are compared by their gain per row, and a node is split only if the mean number of comparisons per
# row stays within the limit.
from pboost._core._boost_histogram cimport count_node, subtract_child
from pboost._core._boost_grow cimport cut_node, make_children, may_split, note_leaf, other_child
from pboost._core._boost_round cimport Node, Open, Round
from pboost._core.types cimport int32_t, int64_t


cdef inline void give_back(const Round* r, int32_t slot) noexcept nogil:
    if slot >= 0:
        r.free[r.state.free] = slot
        r.state.free += 1


cdef inline int32_t take_slot(const Round* r) noexcept nogil:
    r.state.free -= 1
    return r.free[r.state.free]


cdef inline int64_t mass_of(const Round* r, const Node* node) noexcept nogil:
    """Return the total weight of a node's rows if comparisons are limited, else the number of rows."""
    cdef Py_ssize_t i
    cdef int64_t total = 0
    if r.comparisons == 0.0 or r.row_mass == NULL:
        return node.stop - node.start
    for i in range(node.start, node.stop):
        total += r.row_mass[r.rows[i]]
    return total


cdef inline bint is_within(const Round* r, int64_t mass) noexcept nogil:
    """Return whether one more comparison of rows with this total weight stays within the limit."""
    return r.comparisons == 0.0 or (
        <double>(r.state.spent + mass) <= r.comparisons * <double>r.state.whole)


cdef inline double worth(const Round* r, const Open* at) noexcept nogil:
    cdef bint is_net = r.item != NULL and r.tradeoff >= 0.0
    cdef double gain = r.node[at.node].net if is_net else r.node[at.node].loss
    return gain if r.comparisons == 0.0 else gain / <double>at.mass


cdef inline void open_cut(const Round* r, Node* node, int32_t slot, int64_t mass) noexcept nogil:
    """Find the split of a node and open the node. If there is no split, free its histogram."""
    cdef Open* at = r.open + r.state.open
    cdef Py_ssize_t n_below
    if may_split(r, node) and is_within(r, mass) and cut_node(
            r, node, r.masses + slot * r.slot, node.depth + 1 == r.max_depth, &n_below,
            &at.gradient, &at.curvature):
        at.node, at.slot, at.n_below, at.mass = <int32_t>(node - r.node), slot, n_below, mass
        r.state.open += 1
    else:
        give_back(r, slot)


cdef inline Open* of_gain(const Round* r, bint least) noexcept nogil:
    """Return the open node with the largest gain, or NULL if none may be split.

    If `least` is true, return the node with the smallest gain among the nodes that have a histogram.
    """
    cdef Open* found = NULL
    cdef Py_ssize_t i
    cdef double gain, best = 0.0
    for i in range(r.state.open):
        if r.open[i].slot < 0 if least else not is_within(r, r.open[i].mass):
            continue
        gain = -worth(r, r.open + i) if least else worth(r, r.open + i)
        if found == NULL or gain > best or (gain == best and r.open[i].node < found.node):
            found, best = r.open + i, gain
    return found


cdef inline void begin_best(const Round* r) noexcept nogil:
    """Open the root."""
    cdef Py_ssize_t i
    r.state.leaves, r.state.open, r.state.free = 1, 0, 0
    r.state.whole = mass_of(r, r.node)
    for i in range(1, r.n_slots):
        give_back(r, <int32_t>i)
    if r.max_leaves > 1:
        open_cut(r, r.node, 0, r.state.whole)


cdef inline void end_best(const Round* r) noexcept nogil:
    """Turn the remaining open nodes into leaves."""
    while r.state.open > 0:
        r.state.open -= 1
        note_leaf(r.node + r.open[r.state.open].node)


cdef inline Py_ssize_t split_best(const Round* r) noexcept nogil:
    """Split the open node with the largest gain and return its number of rows.

    If no node can be split, end growth and return 0.
    """
    cdef Open* place = of_gain(r, False)
    cdef Open at
    cdef Node* small
    cdef Node* large
    cdef int32_t slot, next_
    cdef int64_t mass
    if place == NULL:
        end_best(r)
        return 0
    at, slot = place[0], place.slot
    r.state.spent += at.mass
    r.state.open -= 1
    place[0] = r.open[r.state.open]
    small = make_children(r, at.node, at.n_below, at.gradient, at.curvature)
    large = other_child(r, small)
    r.state.leaves += 1
    mass = mass_of(r, small)
    if (r.state.leaves < r.max_leaves and may_split(r, large)
            and is_within(r, min(mass, at.mass - mass))):
        next_ = take_slot(r)
        count_node(r, small, r.masses + next_ * r.slot)
        if slot >= 0:
            subtract_child(
                r, r.node + at.node, small, large, r.masses + slot * r.slot, r.masses + next_ * r.slot)
        else:
            slot = take_slot(r)
            count_node(r, large, r.masses + slot * r.slot)
        open_cut(r, small, next_, mass)
        open_cut(r, large, slot, at.mass - mass)
    else:
        give_back(r, slot)
    while r.state.free < 2:
        place = of_gain(r, True)
        give_back(r, place.slot)
        place.slot = -1
    return r.node[at.node].stop - r.node[at.node].start
