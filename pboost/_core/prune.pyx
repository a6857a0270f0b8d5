"""Weakest-link pruning: at which price of a leaf each node of a tree becomes one.

Below a node that is not collapsed, the least cost as a function of the price lambda is the sum of
those of its children: piecewise linear, its slope the number of leaves, with a kink wherever a node
collapses. The kinks of a sub-tree are kept in a leftist heap, largest price first; a node's heap is that
of its children, merged. The node collapses where its own line, risk + lambda, meets theirs: kinks
beyond that do not happen and are popped. Each node is pushed and popped once, so that all costs
O(n log n) whatever the shape of the tree.
"""
from libc.math cimport INFINITY

from pboost._core.types cimport int32_t

# Prices that differ by less, as shares of themselves or of the root's risk, are equal.
cdef enum:
    NONE = -1

cdef extern from *:
    """
    #define PBOOST_SAME_PRICE 1e-12
    #define PBOOST_SAME_RISK 1e-15
    """
    const double SAME_PRICE "PBOOST_SAME_PRICE"
    const double SAME_RISK "PBOOST_SAME_RISK"

cdef struct Kinks:
    int32_t* left
    int32_t* right
    int32_t* rank
    double* price


cdef int32_t merge(const Kinks* k, int32_t a, int32_t b) noexcept nogil:
    """Merge two leftist heaps; returns the root. The right spines are logarithmic."""
    cdef int32_t swap
    if a == NONE:
        return b
    if b == NONE:
        return a
    if k.price[b] > k.price[a]:
        swap = a
        a = b
        b = swap
    k.right[a] = merge(k, k.right[a], b)
    if k.left[a] == NONE or k.rank[k.left[a]] < k.rank[k.right[a]]:
        swap = k.left[a]
        k.left[a] = k.right[a]
        k.right[a] = swap
    k.rank[a] = 0 if k.right[a] == NONE else k.rank[k.right[a]] + 1
    return a


def weakest_links(
    const int32_t[:, ::1] children, const double[::1] risk, double[::1] price,
    double[::1] gain, int32_t[::1] saved, int32_t[:, ::1] work,
):
    """Price from which on each node is a leaf or gone; INFINITY where a leaf stays one.

    IN children (n, 2), parents first, -1 of leaves; risk (n,) of each node as a leaf. OUT price
    (n,): -INFINITY of inner nodes that vanish before they collapse (an ancestor does), INFINITY of
    leaves; gain (n,): by how much the risk rises when the node collapses, and saved (n,): how many
    leaves it then loses, both as the tree is at that price. WORK (4, n).
    """
    cdef Py_ssize_t n = children.shape[0], e
    cdef int32_t heap, left, right, leaves
    cdef double below, here
    cdef Kinks k
    cdef int32_t[:, ::1] columns = work
    k.left, k.right, k.rank = &columns[0, 0], &columns[1, 0], &columns[2, 0]
    k.price = &price[0]
    cdef int32_t* top = &columns[3, 0]
    with nogil:
        for e in range(n - 1, -1, -1):
            k.left[e] = k.right[e] = top[e] = NONE
            k.rank[e] = 0
            price[e] = INFINITY
            gain[e] = 0.0
            saved[e] = 0
            if children[e, 0] < 0:
                continue
            left, right = children[e, 0], children[e, 1]
            heap = merge(&k, top[left], top[right])
            # As if all below had collapsed; then the kinks are undone from the last.
            below = risk[left] + risk[right]
            leaves = 2
            here = max((risk[e] - below) / (leaves - 1), 0.0)
            while heap != NONE and (price[heap] + SAME_RISK * risk[0]
                                    >= here * (1.0 - SAME_PRICE)):
                below -= gain[heap]
                leaves += saved[heap]
                price[heap] = -INFINITY
                heap = merge(&k, k.left[heap], k.right[heap])
                here = max((risk[e] - below) / (leaves - 1), 0.0)
            price[e] = here
            gain[e] = risk[e] - below
            saved[e] = leaves - 1
            k.left[e] = k.right[e] = NONE
            top[e] = merge(&k, heap, <int32_t>e)
