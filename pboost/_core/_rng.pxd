# Counter-based random numbers: a draw is a function of (key, node, row, draw) alone, so that
# results depend neither on the number of threads nor on the order of evaluation.
from pboost._core.types cimport uint64_t


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """The output function of splitmix64 (Steele, Lea and Flood 2014)."""
    x ^= x >> 30
    x *= <uint64_t>0xBF58476D1CE4E5B9
    x ^= x >> 27
    x *= <uint64_t>0x94D049BB133111EB
    x ^= x >> 31
    return x


cdef inline uint64_t bits(uint64_t key, uint64_t node, uint64_t row, uint64_t draw) noexcept nogil:
    """64 random bits of the stream (key, node, row) at `draw`."""
    cdef uint64_t golden = <uint64_t>0x9E3779B97F4A7C15
    cdef uint64_t x = mix(key + golden * (node + 1))
    x = mix(x + golden * (row + 1))
    return mix(x + golden * (draw + 1))


cdef inline double uniform(
    uint64_t key, uint64_t node, uint64_t row, uint64_t draw
) noexcept nogil:
    """A number in [0, 1), a multiple of 2**-53."""
    return <double>(bits(key, node, row, draw) >> 11) * (1.0 / 9007199254740992.0)
