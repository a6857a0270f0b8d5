# The features that are considered for the splits of a tree and of its nodes.
#
# The random choice of features depends only on the key, the number of the tree and the path to the node. It
# does not depend on the order in which nodes are split.
from libc.string cimport memset

from pboost._core._boost_round cimport LANES, Node, Round, n_groups
from pboost._core._rng cimport draw_from, stream
from pboost._core.types cimport int32_t, uint8_t, uint64_t


cdef inline void take_some(
    const Round* r, Py_ssize_t n, Py_ssize_t wanted, uint64_t path, uint8_t* taken
) noexcept nogil:
    """Select `wanted` of the n features at random and mark them in `picked`. If n is smaller, select all.
    """
    cdef uint64_t start = stream(r.key, path, r.number)
    cdef Py_ssize_t i, j
    memset(taken, 0, r.d + n_groups(r))
    for i in range(min(n, wanted)):
        j = i
        if wanted < n:
            j += <Py_ssize_t>(draw_from(start, <uint64_t>i) * <double>(n - i))
        r.picked[i], r.picked[j] = r.picked[j], r.picked[i]
        taken[r.picked[i]] = taken[r.d + r.lane[r.picked[i]] // LANES] = 1


cdef inline void take_for_tree(const Round* r) noexcept nogil:
    cdef Py_ssize_t f
    if r.of_tree != NULL:
        for f in range(r.d):
            r.picked[f] = <int32_t>f
        take_some(r, r.d, r.per_tree, 0, r.of_tree)


cdef inline bint may_join(const Round* r, Py_ssize_t f) noexcept nogil:
    """Return whether an interaction group contains this feature and all features on the path to the node.
    """
    cdef Py_ssize_t w
    if r.together == NULL:
        return True
    for w in range(r.group_words):
        if r.alive[w] & r.together[f * r.group_words + w]:
            return True
    return False


cdef inline void take_for_node(const Round* r, const Node* node) noexcept nogil:
    """Mark the features that are considered at a node."""
    cdef Py_ssize_t e = node - r.node, parent, n = 0, f, w
    # The random stream of a path with more than 63 edges depends only on its first and last edges.
    cdef uint64_t path = <uint64_t>1 << (node.depth & 63)
    cdef int k = 0
    if r.of_tree == NULL:
        return
    for w in range(r.group_words):
        r.alive[w] = ~<uint64_t>0
    while e > 0:
        parent = r.node[e].parent
        if k < 64:
            path |= <uint64_t>(e - r.node[parent].child) << k
        for w in range(r.group_words):
            r.alive[w] &= r.together[r.node[parent].feature * r.group_words + w]
        k += 1
        e = parent
    for f in range(r.d):
        if r.of_tree[f] and may_join(r, f):
            r.picked[n] = <int32_t>f
            n += 1
    take_some(r, n, r.per_split, path, r.of_node)
