# Sorted orders of the rows of one node, computed when they are needed. If only a few of many features are
# searched per node, this is faster than partitioning all sorted features at every split.
from libc.string cimport memset

from pboost._core._insertion_sort cimport FEW, insertion_sort
from pboost._core._grower cimport Tree, size_of
from pboost._core.types cimport ROW_MASK, TIED, int32_t, int64_t, uint64_t

cdef enum:
    DIGITS = 256


cdef inline int64_t* sort_half(
    int64_t* item, int64_t* spare, Py_ssize_t n, Py_ssize_t most, int shift
) noexcept nogil:
    """Sort items by the 32 bits that begin at bit `shift`.

    The sort is stable. Return whichever of the two arrays contains the result.
    """
    cdef int32_t[DIGITS] place
    cdef Py_ssize_t i, above = most - 1
    cdef int32_t total, here
    while above > 0:
        memset(place, 0, sizeof(place))
        for i in range(n):
            place[(item[i] >> shift) & (DIGITS - 1)] += 1
        total = 0
        for i in range(DIGITS):
            here = place[i]
            place[i] = total
            total += here
        for i in range(n):
            here = (item[i] >> shift) & (DIGITS - 1)
            spare[place[here]] = item[i]
            place[here] += 1
        item, spare = spare, item
        shift += 8
        above >>= 8
    return item


cdef inline const int32_t* order_of(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, bint ties_too, int64_t* item
) noexcept nogil:
    """Return the rows of a node, with tie marks, sorted by a feature.

    If `ties_too` is true, ties are sorted by row. WORK item (3 n,): its last third receives the result.
    """
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef const int32_t* rank = t.rank + f * t.n_ranked
    cdef Py_ssize_t n = size_of(t, e), i
    cdef int32_t* order = <int32_t*>(item + 2 * t.n)
    cdef int64_t before = -1
    cdef int64_t* spare = item + t.n
    cdef int64_t* sorted = item
    for i in range(n):
        item[i] = (<int64_t>rank[t.ranked_row[rows[i]]] << 32) | rows[i]
    if n <= FEW:
        insertion_sort(<uint64_t*>item, n)
    else:
        if ties_too:
            sorted = sort_half(item, spare, n, t.n, 0)
        sorted = sort_half(sorted, spare if sorted == item else item, n, t.n_ranked, 32)
    for i in range(n):
        order[i] = <int32_t>(sorted[i] & ROW_MASK)
        if sorted[i] >> 32 == before:
            order[i] |= TIED
        before = sorted[i] >> 32
    return order


cdef inline bint is_constant_rank(const Tree* t, Py_ssize_t e, Py_ssize_t f) noexcept nogil:
    """Return whether all rows of a node have the same value of a feature."""
    cdef const int32_t* rows = t.rows + t.node[e].start
    cdef const int32_t* rank = t.rank + f * t.n_ranked
    cdef Py_ssize_t i
    for i in range(1, size_of(t, e)):
        if rank[t.ranked_row[rows[i]]] != rank[t.ranked_row[rows[0]]]:
            return False
    return True
