# Counter-based random numbers. A number depends only on its key, node, row and draw. Results do not depend
# on the number of threads or on the order of evaluation.
from pboost._core.types cimport uint64_t

cdef extern from *:
    """
    #define PBOOST_GOLDEN 0x9E3779B97F4A7C15ULL
    """
    const uint64_t GOLDEN "PBOOST_GOLDEN"


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """Apply the output function of splitmix64 (Steele, Lea and Flood 2014)."""
    x ^= x >> 30
    x *= <uint64_t>0xBF58476D1CE4E5B9
    x ^= x >> 27
    x *= <uint64_t>0x94D049BB133111EB
    x ^= x >> 31
    return x


cdef inline uint64_t stream(uint64_t key, uint64_t node, uint64_t row) noexcept nogil:
    """Return the start of the random stream of a key, node and row."""
    return mix(mix(key + GOLDEN * (node + 1)) + GOLDEN * (row + 1))


cdef inline uint64_t draw_bits(uint64_t start, uint64_t draw) noexcept nogil:
    """Return the 64 bits of number `draw` of the stream from `start`."""
    return mix(start + GOLDEN * (draw + 1))


cdef inline double draw_from(uint64_t start, uint64_t draw) noexcept nogil:
    """Return the random number with index `draw` in a stream: a multiple of 2**-53 in [0, 1)."""
    return <double>(draw_bits(start, draw) >> 11) * (1.0 / 9007199254740992.0)


cdef inline double uniform(
    uint64_t key, uint64_t node, uint64_t row, uint64_t draw
) noexcept nogil:
    """Return random number `draw` for a key, node and row."""
    return draw_from(stream(key, node, row), draw)
