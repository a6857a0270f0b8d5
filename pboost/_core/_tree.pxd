# The state of a growing tree, borrowed from the caller's arrays.
from libc.math cimport ceil, exp, frexp, ldexp

from pboost._core._cut cimport Limits
from pboost._core._heap cimport Heap
from pboost._core.types cimport int32_t, int64_t, row_of, uint8_t

# Columns of exit_int and counter.
cdef enum:
    START, STOP, PARENT, SIDE, DEPTH, SHIFT, FEATURE, EXIT_INTS
# Columns of exit_real.
cdef enum:
    VOTES, KEY, LIMIT, EXIT_REALS
cdef enum:
    NODES, EXITS, HEAP, PENDING
# What `grow` returns.
cdef enum:
    DONE, ALL_NODES, PAUSED, LARGE, TARGET
# Which open exit is split next.
cdef enum:
    LARGEST_BOUND, BREADTH_FIRST, LARGEST_ERROR, LOOK_AHEAD

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
    int growth
    bint exact
    double scale, root_mass, min_weight, smoothing, learning_rate, target


# A split that is not to be searched for: the number of rows below (exact) or the bin (binned) at
# which it cuts, and its votes.
cdef struct Given:
    Py_ssize_t place
    double[2] votes


cdef inline Heap heap_of(const Tree* t) noexcept nogil:
    """The open exits by their keys."""
    cdef Heap heap
    heap.items, heap.size = t.heap, &t.counter[HEAP]
    heap.key, heap.stride = t.exit_real + KEY, EXIT_REALS
    return heap


cdef inline double unit_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    """One unit of an exit's fixed-point weights, as a share of the root's mass."""
    return ldexp(1.0, -t.exit_int[EXIT_INTS * e + SHIFT]) / t.root_mass


cdef inline double boosted_mass(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Sum of the boosted weights of an exit, as a share of the root's: its part of C."""
    cdef double votes = t.exit_real[EXIT_REALS * e + VOTES]
    return (<double>t.exit_mass[2 * e] * exp(votes)
            + <double>t.exit_mass[2 * e + 1] * exp(-votes)) * unit_of(t, e)


cdef inline Limits limits_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    cdef Limits at
    at.criterion = t.criterion
    at.n = t.exit_int[EXIT_INTS * e + STOP] - t.exit_int[EXIT_INTS * e + START]
    at.n_negative = t.n_negative
    at.negative = t.exit_mass[2 * e]
    at.positive = t.exit_mass[2 * e + 1]
    at.min_weight = <int64_t>ceil(t.min_weight * (<double>at.negative + <double>at.positive))
    at.min_count = t.min_count
    return at


cdef inline bint is_open(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Whether an exit leads to no node yet."""
    cdef Py_ssize_t parent = t.exit_int[EXIT_INTS * e + PARENT]
    if parent < 0:
        return t.counter[NODES] == 0
    return t.node_int[5 * parent + 1 + t.exit_int[EXIT_INTS * e + SIDE]] < 0


cdef inline bint can_split(const Tree* t, Py_ssize_t e) noexcept nogil:
    return (t.exit_mass[2 * e] > 0 and t.exit_mass[2 * e + 1] > 0
            and t.exit_int[EXIT_INTS * e + DEPTH] < t.max_depth
            and t.exit_int[EXIT_INTS * e + STOP] - t.exit_int[EXIT_INTS * e + START] >= 2 * t.min_count)


cdef inline Py_ssize_t add_exit(
    Tree* t, Py_ssize_t parent_exit, int side, Py_ssize_t start, Py_ssize_t stop,
    const int64_t* mass, double vote,
) noexcept nogil:
    cdef Py_ssize_t e = t.counter[EXITS]
    t.counter[EXITS] += 1
    t.exit_int[EXIT_INTS * e + START] = <int32_t>start
    t.exit_int[EXIT_INTS * e + STOP] = <int32_t>stop
    t.exit_int[EXIT_INTS * e + PARENT] = <int32_t>t.counter[NODES]
    t.exit_int[EXIT_INTS * e + SIDE] = side
    t.exit_int[EXIT_INTS * e + DEPTH] = t.exit_int[EXIT_INTS * parent_exit + DEPTH] + 1
    t.exit_int[EXIT_INTS * e + SHIFT] = t.exit_int[EXIT_INTS * parent_exit + SHIFT]
    t.exit_mass[2 * e] = mass[0]
    t.exit_mass[2 * e + 1] = mass[1]
    t.exit_real[EXIT_REALS * e + VOTES] = t.exit_real[EXIT_REALS * parent_exit + VOTES] + vote
    return e


cdef inline void count_certificate(Tree* t, double change) noexcept nogil:
    """Add to the certificate; Neumaier's compensation keeps small sums of large changes right."""
    cdef double total = t.certificate[0] + change
    if abs(t.certificate[0]) >= abs(change):
        t.certificate[1] += (t.certificate[0] - total) + change
    else:
        t.certificate[1] += (change - total) + t.certificate[0]
    t.certificate[0] = total


cdef inline bint children_can_split(const Tree* t) noexcept nogil:
    cdef Py_ssize_t e = t.counter[EXITS]
    return can_split(t, e - 2) or can_split(t, e - 1)


cdef inline void refine_weights(Tree* t, Py_ssize_t e) noexcept nogil:
    """Make the fixed-point weights of an exit anew if little of the root's mass is left."""
    cdef Py_ssize_t i, start = t.exit_int[EXIT_INTS * e + START], stop = t.exit_int[EXIT_INTS * e + STOP]
    cdef const int32_t* rows = t.order if t.exact else t.rows
    cdef double total = 0.0
    cdef int exponent = 0
    cdef int32_t row
    if t.exit_mass[2 * e] + t.exit_mass[2 * e + 1] >= <int64_t>1 << LEAST_MASS_BITS:
        return
    for i in range(start, stop):
        total += t.weight[row_of(rows[i])] * t.scale
    frexp(total, &exponent)
    t.exit_int[EXIT_INTS * e + SHIFT] = FULL_MASS_BITS - exponent
    t.exit_mass[2 * e] = t.exit_mass[2 * e + 1] = 0
    for i in range(start, stop):
        row = row_of(rows[i])
        t.fixed[row] = <int64_t>(ldexp(t.weight[row] * t.scale, FULL_MASS_BITS - exponent) + 0.5)
        t.exit_mass[2 * e + (row >= t.n_negative)] += t.fixed[row]
