# The state of a growing tree, borrowed from the caller's arrays, and the heap of its open exits.
from libc.string cimport memcpy

from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

# Columns of exit_int, exit_mass and counter.
cdef enum:
    START, STOP, PARENT, SIDE, DEPTH, SHIFT
cdef enum:
    NODES, EXITS, HEAP, PENDING
# What `grow` returns.
cdef enum:
    DONE, ALL_NODES, PAUSED, LARGE

# Below this fixed-point mass an exit's weights are made anew.
cdef enum:
    LEAST_MASS_BITS = 40
cdef enum:
    FULL_MASS_BITS = 60

cdef struct Tree:
    int32_t* order
    const uint8_t* codes
    int32_t* rows
    const int32_t* n_bins
    const double* weight
    int64_t* fixed
    uint8_t* side
    int32_t* spare
    double* best
    int32_t* exit_int
    int64_t* exit_mass
    double* exit_real
    int32_t* heap
    int32_t* node_int
    double* node_real
    int64_t* counter
    double* certificate
    Py_ssize_t n, d, n_negative, max_nodes, min_count
    int criterion, max_depth
    bint exact, breadth_first
    double scale, root_mass, min_weight, smoothing, learning_rate


# The heap of open exits: largest key first, the exit opened first among equals.

cdef inline bint comes_before(const Tree* t, int32_t a, int32_t b) noexcept nogil:
    if t.exit_real[2 * a + 1] != t.exit_real[2 * b + 1]:
        return t.exit_real[2 * a + 1] > t.exit_real[2 * b + 1]
    return a < b


cdef inline void push(Tree* t, int32_t exit_) noexcept nogil:
    cdef Py_ssize_t at = t.counter[HEAP], parent
    t.counter[HEAP] += 1
    while at > 0:
        parent = (at - 1) // 2
        if not comes_before(t, exit_, t.heap[parent]):
            break
        t.heap[at] = t.heap[parent]
        at = parent
    t.heap[at] = exit_


cdef inline int32_t pop(Tree* t) noexcept nogil:
    cdef int32_t first = t.heap[0], last
    cdef Py_ssize_t at = 0, child, size
    t.counter[HEAP] -= 1
    size = t.counter[HEAP]
    last = t.heap[size]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and comes_before(t, t.heap[child + 1], t.heap[child]):
            child += 1
        if not comes_before(t, t.heap[child], last):
            break
        t.heap[at] = t.heap[child]
        at = child
    t.heap[at] = last
    return first


cdef inline double rounded(double key) noexcept nogil:
    """The key rounded to 40 bits: bounds equal but for rounding are equal."""
    cdef uint64_t bits
    memcpy(&bits, &key, 8)
    bits = (bits + 0x800) & ~<uint64_t>0xFFF
    memcpy(&key, &bits, 8)
    return key
