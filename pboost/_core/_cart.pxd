# The state of a growing classification or regression tree, borrowed from the caller's arrays, and
# what is computed of one node.
from libc.math cimport ceil, fabs, frexp, ldexp, rint

from pboost._core._classes cimport ClassNode
from pboost._core._cut cimport Limits
from pboost._core._heap cimport Heap
from pboost._core._math cimport TIE
from pboost._core._rng cimport draw_from, stream
from pboost._core._side cimport code_goes_right
from pboost._core._squares cimport Moment, SquareNode
from pboost._core.types cimport int32_t, int64_t, row_of, uint8_t, uint64_t

# Columns of node_int: rows of the node; where it is split, and the rows or bins on either side of
# the cut; its first child; the column by whose order its rows are listed; whether it is pure.
cdef enum:
    START, STOP, DEPTH, SHIFT, FEATURE, LOW, HIGH, CHILD, LISTED, PURE, NODE_INTS
# Columns of node_real: score up to which cuts are equal; key in the heap; mean of the targets, sum of
# squares about it, and the factor that made their fixed-point images.
cdef enum:
    LIMIT, KEY, MEAN, LOSS, SCALE, NODE_REALS
cdef enum:
    NODES, OPEN, LEAVES, FRESH, AT, PHASE, PICKED, COUNTERS
# What is to be done next.
cdef enum:
    PICK, SEARCH, CHOOSE, SPLIT, PARTITION, OPENED
# What `grow` returns.
cdef enum:
    DONE, ALL_LEAVES, PAUSED, LARGE_SEARCH, LARGE_PARTITION
# Below this fixed-point mass a node's weights are made anew, with sums up to about this.
cdef enum:
    LEAST_BITS = 40
cdef enum:
    FULL_BITS = 60
# The factor of the targets is at most a power of two with this exponent.
cdef enum:
    MOST_SCALE = 400

# The first cut of a node within the limit of its least score, and the masses below it.
cdef struct Found:
    double score
    int32_t node, feature, place
    int64_t[2] below

cdef struct Cart:
    int32_t* order
    const uint8_t* codes
    int32_t* rows
    const int32_t* n_bins
    const double* weight
    const double* y
    const int32_t* label
    int64_t* fixed
    Moment* moment
    uint8_t* side
    int32_t* spare
    int64_t* work
    int64_t* packed
    double* best
    int32_t* picked
    int32_t* node_int
    int64_t* node_mass
    double* node_real
    int32_t* open
    int64_t* counter
    Py_ssize_t n, d, n_columns, n_negative, max_leaves, min_count, min_split, n_picked
    Py_ssize_t n_classes
    int criterion, max_depth
    bint exact, best_first, squares
    double scale, complexity
    double least_risk  # nodes without more than this are not split; `grow` sets it
    uint64_t key


cdef inline Heap heap_of(const Cart* t) noexcept nogil:
    """The open nodes by the decrease of impurity that splitting them brings."""
    cdef Heap heap
    heap.items, heap.size = t.open, &t.counter[OPEN]
    heap.key, heap.stride = t.node_real + KEY, NODE_REALS
    return heap


cdef inline Py_ssize_t start_of(const Cart* t, Py_ssize_t e) noexcept nogil:
    return t.node_int[NODE_INTS * e + START]


cdef inline Py_ssize_t size_of(const Cart* t, Py_ssize_t e) noexcept nogil:
    return t.node_int[NODE_INTS * e + STOP] - t.node_int[NODE_INTS * e + START]


cdef inline Py_ssize_t width(const Cart* t) noexcept nogil:
    """Number of masses of a node."""
    return 2 if t.squares else t.n_classes


cdef inline const int32_t* rows_at(const Cart* t, Py_ssize_t e) noexcept nogil:
    """The rows of a node, packed."""
    if t.exact:
        return t.order + t.node_int[NODE_INTS * e + LISTED] * t.n + start_of(t, e)
    return t.rows + start_of(t, e)


cdef inline double risk_of(const Cart* t, Py_ssize_t e) noexcept nogil:
    """Mass of the classes of a node but for the largest, in the root's unit; of a classification."""
    cdef const int64_t* mass = t.node_mass + t.n_classes * e
    cdef int64_t total = 0, most = 0
    cdef Py_ssize_t j
    for j in range(t.n_classes):
        total += mass[j]
        most = max(most, mass[j])
    return ldexp(<double>(total - most), -t.node_int[NODE_INTS * e + SHIFT])


cdef inline bint can_split(const Cart* t, Py_ssize_t e) noexcept nogil:
    cdef Py_ssize_t n = size_of(t, e)
    return (not t.node_int[NODE_INTS * e + PURE] and n >= t.min_split and n >= 2 * t.min_count
            and t.node_int[NODE_INTS * e + DEPTH] < t.max_depth
            and (t.least_risk <= 0.0 or risk_of(t, e) > t.least_risk))


cdef inline double mass_of(const Cart* t, Py_ssize_t e) noexcept nogil:
    """Fixed-point mass of a node, in units that depend on its shift."""
    cdef int64_t total = 0
    cdef Py_ssize_t j
    if t.squares:
        return <double>t.node_mass[2 * e]
    for j in range(t.n_classes):
        total += t.node_mass[t.n_classes * e + j]
    return <double>total


cdef inline double unit_of(const Cart* t, Py_ssize_t e) noexcept nogil:
    """One unit of a node's fixed-point weights."""
    return ldexp(1.0, -t.node_int[NODE_INTS * e + SHIFT]) / t.scale


cdef inline int finer_shift(const Cart* t, Py_ssize_t e) noexcept nogil:
    """The shift that gives a node's weights a sum of about FULL_BITS."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef Py_ssize_t i
    cdef double total = 0.0
    cdef int exponent = 0
    for i in range(size_of(t, e)):
        total += t.weight[row_of(rows[i])] * t.scale
    frexp(total, &exponent)
    return FULL_BITS - exponent


cdef inline int64_t fixed_weight(const Cart* t, int32_t row, int shift) noexcept nogil:
    return <int64_t>(ldexp(t.weight[row] * t.scale, shift) + 0.5)


cdef inline void measure_classes(Cart* t, Py_ssize_t e) noexcept nogil:
    """Masses of a node's classes; its weights made anew where little of the root's mass is left."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef int64_t* mass = t.node_mass + t.n_classes * e
    cdef Py_ssize_t i, j, n = size_of(t, e)
    cdef int32_t row
    cdef int shift, found = 0
    if mass_of(t, e) < <double>(<int64_t>1 << LEAST_BITS):
        shift = finer_shift(t, e)
        t.node_int[NODE_INTS * e + SHIFT] = shift
        for j in range(t.n_classes):
            mass[j] = 0
        for i in range(n):
            row = row_of(rows[i])
            t.fixed[row] = fixed_weight(t, row, shift)
            mass[t.label[row]] += t.fixed[row]
    for j in range(t.n_classes):
        found += mass[j] > 0
    t.node_int[NODE_INTS * e + PURE] = found < 2


cdef inline void measure_squares(Cart* t, Py_ssize_t e) noexcept nogil:
    """Mean and squared error of a node's targets, and their images about the mean."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef double* real = t.node_real + NODE_REALS * e
    cdef Moment* mass = <Moment*>(t.node_mass + 2 * e)
    cdef Py_ssize_t i, n = size_of(t, e)
    cdef double total = 0.0, sum_y = 0.0, least, most, mean, rest = 0.0, squares = 0.0, deviation
    cdef int32_t row
    cdef int exponent = 0, shift = t.node_int[NODE_INTS * e + SHIFT]
    cdef bint finer = mass_of(t, e) < <double>(<int64_t>1 << LEAST_BITS)
    least = most = t.y[row_of(rows[0])]
    for i in range(n):
        row = row_of(rows[i])
        total += t.weight[row]
        sum_y += t.weight[row] * t.y[row]
        least = min(least, t.y[row])
        most = max(most, t.y[row])
    mean = min(max(sum_y / total, least), most)
    if finer:
        shift = finer_shift(t, e)
        t.node_int[NODE_INTS * e + SHIFT] = shift
    frexp(total * (most - least), &exponent)
    real[SCALE] = ldexp(1.0, min(FULL_BITS - exponent, MOST_SCALE))
    mass.w = mass.v = 0
    for i in range(n):
        row = row_of(rows[i])
        deviation = t.y[row] - mean
        rest += t.weight[row] * deviation
        squares += t.weight[row] * deviation * deviation
        if finer:
            t.moment[row].w = fixed_weight(t, row, shift)
        t.moment[row].v = <int64_t>rint(t.weight[row] * deviation * real[SCALE])
        mass.w += t.moment[row].w
        mass.v += t.moment[row].v
    # The mean is corrected for its rounding, and so is the sum of squares about it.
    real[MEAN] = min(max(mean + rest / total, least), most)
    real[LOSS] = max(squares - rest * rest / total, 0.0)
    t.node_int[NODE_INTS * e + PURE] = most == least


cdef inline SquareNode square_node(const Cart* t, Py_ssize_t e) noexcept nogil:
    cdef SquareNode at
    cdef const double* real = t.node_real + NODE_REALS * e
    cdef double unit = unit_of(t, e)
    at.n, at.min_count, at.moment = size_of(t, e), t.min_count, t.moment
    at.total = (<Moment*>(t.node_mass + 2 * e))[0]
    at.tie = TIE * real[LOSS] * (real[SCALE] * unit) * real[SCALE] / <double>at.total.w
    return at


cdef inline Limits two_classes(const Cart* t, Py_ssize_t e) noexcept nogil:
    cdef Limits at
    at.criterion, at.n, at.n_negative = t.criterion, size_of(t, e), t.n_negative
    at.negative, at.positive = t.node_mass[2 * e], t.node_mass[2 * e + 1]
    at.min_weight, at.min_count = 0, t.min_count
    return at


cdef inline ClassNode class_node(const Cart* t, Py_ssize_t e, int64_t* work) noexcept nogil:
    cdef ClassNode at
    cdef Py_ssize_t j
    at.criterion, at.n_classes = t.criterion, t.n_classes
    at.n, at.min_count = size_of(t, e), t.min_count
    at.label, at.weight = t.label, t.fixed
    at.mass = t.node_mass + t.n_classes * e
    at.total = 0
    for j in range(t.n_classes):
        at.total += at.mass[j]
    at.left, at.right = work, work + t.n_classes
    at.term = <double*>(work + 2 * t.n_classes)
    return at


cdef inline void mass_below(
    const Cart* t, Py_ssize_t e, Py_ssize_t f, Py_ssize_t place, int64_t* mass
) noexcept nogil:
    """Masses of the rows of a node below a position of a sorted column, or up to a bin."""
    cdef const int32_t* rows = t.order + f * t.n if t.exact else t.rows
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Py_ssize_t i
    cdef int32_t row
    rows += start_of(t, e)
    for i in range(width(t)):
        mass[i] = 0
    for i in range(place if t.exact else size_of(t, e)):
        row = row_of(rows[i])
        if not t.exact and code_goes_right(codes[row], <int>place):
            continue
        if t.squares:
            mass[0] += t.moment[row].w
            mass[1] += t.moment[row].v
        else:
            mass[t.label[row]] += t.fixed[row]
