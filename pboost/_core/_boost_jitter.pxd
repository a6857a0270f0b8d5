# Random jitter of split scores, with `random_strength`.
#
# The jitter of a feature depends only on the key, the number of the tree, the level of the tree and the
# feature. It is the same in all nodes of a level, and does not depend on threads or partitions.
from libc.math cimport sqrt

from pboost._core._boost_round cimport Cut, Node, Round
from pboost._core._rng cimport draw_bits, stream
from pboost._core.types cimport int32_t, uint64_t


cdef inline double jitter_of(const Round* r, int32_t depth, Py_ssize_t f) noexcept nogil:
    """Return the jitter of a feature: about normally distributed, a sum of eight integers."""
    cdef uint64_t start = stream(r.jitter_key, <uint64_t>depth, r.number), bits
    cdef int total = 0
    cdef int k
    for k in range(8):
        if k % 4 == 0:
            bits = draw_bits(start, 2 * <uint64_t>f + <uint64_t>(k // 4))
        total += <int>(bits & 0xffff)
        bits >>= 16
    return r.jitter * 1.2247448713915890 * (total / 65535.0 - 4.0)


cdef inline double jittered(const Round* r, double score, int32_t depth, Py_ssize_t f) noexcept nogil:
    """Return the square root of a score, plus the jitter of the feature."""
    return sqrt(max(score, 0.0)) + jitter_of(r, depth, f)


cdef inline void keep_better(const Round* r, const Node* node, const Cut* cut, Cut* best) noexcept nogil:
    """Keep the best split of a feature if its score with jitter is larger than the best so far."""
    cdef double value
    if cut.feature < 0:
        return
    value = jittered(r, cut.numerator / cut.divisor, node.depth, cut.feature)
    if best.feature < 0 or value > best.value:
        best[0] = cut[0]
        best.value = value
