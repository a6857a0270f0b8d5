# Best-first growth of a boosted tree: the open node whose cut gains most is split next, the first of equal
# ones. Open nodes keep their masses by bin as long as there are slots, else their children are counted.
from pboost._core._boost_grow cimport cut_node, make_children, may_split, other_child
from pboost._core._boost_round cimport Node, Open, Round, count_node, subtract_child
from pboost._core.types cimport int32_t


cdef inline void give_back(const Round* r, int32_t slot) noexcept nogil:
    if slot >= 0:
        r.free[r.state.free] = slot
        r.state.free += 1


cdef inline int32_t take_slot(const Round* r) noexcept nogil:
    r.state.free -= 1
    return r.free[r.state.free]


cdef inline void open_cut(const Round* r, Node* node, int32_t slot) noexcept nogil:
    """Find the cut of a node; without one its slot is given back."""
    cdef Open* at = r.open + r.state.open
    cdef Py_ssize_t n_below
    if may_split(r, node) and cut_node(
            r, node, r.masses + slot * r.slot, node.depth + 1 == r.max_depth, &n_below,
            &at.gradient, &at.curvature):
        at.node, at.slot, at.n_below = <int32_t>(node - r.node), slot, n_below
        r.state.open += 1
    else:
        give_back(r, slot)


cdef inline Open* of_gain(const Round* r, bint least) noexcept nogil:
    """The open node of greatest gain; or of least gain of those that have a slot."""
    cdef Open* found = NULL
    cdef Py_ssize_t i
    cdef double gain, best = 0.0
    for i in range(r.state.open):
        if least and r.open[i].slot < 0:
            continue
        gain = -r.node[r.open[i].node].loss if least else r.node[r.open[i].node].loss
        if found == NULL or gain > best or (gain == best and r.open[i].node < found.node):
            found, best = r.open + i, gain
    return found


cdef inline void begin_best(const Round* r) noexcept nogil:
    """Open the root."""
    cdef Py_ssize_t i
    r.state.leaves, r.state.open, r.state.free = 1, 0, 0
    for i in range(1, r.n_slots):
        give_back(r, <int32_t>i)
    if r.max_leaves > 1:
        open_cut(r, r.node, 0)


cdef inline Py_ssize_t split_best(const Round* r) noexcept nogil:
    """Split the open node of greatest gain; returns the number of its rows."""
    cdef Open* place = of_gain(r, False)
    cdef Open at = place[0]
    cdef Node* small
    cdef Node* large
    cdef int32_t slot = at.slot, next_
    r.state.open -= 1
    place[0] = r.open[r.state.open]
    small = make_children(r, at.node, at.n_below, at.gradient, at.curvature)
    large = other_child(r, small)
    r.state.leaves += 1
    if r.state.leaves < r.max_leaves and may_split(r, large):
        next_ = take_slot(r)
        count_node(r, small, r.masses + next_ * r.slot)
        if slot >= 0:
            subtract_child(
                r, r.node + at.node, small, large, r.masses + slot * r.slot, r.masses + next_ * r.slot)
        else:
            slot = take_slot(r)
            count_node(r, large, r.masses + slot * r.slot)
        open_cut(r, small, next_)
        open_cut(r, large, slot)
    else:
        give_back(r, slot)
    while r.state.free < 2:
        place = of_gain(r, True)
        give_back(r, place.slot)
        place.slot = -1
    return r.node[at.node].stop - r.node[at.node].start


cdef inline void end_best(const Round* r) noexcept nogil:
    """Leave open nodes as leaves."""
    cdef Node* node
    while r.state.open > 0:
        r.state.open -= 1
        node = r.node + r.open[r.state.open].node
        node.feature = node.low = node.high = -1
        node.missing = 0
        node.loss = 0.0
