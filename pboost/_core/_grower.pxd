# The state of a growing tree, borrowed from the caller's arrays, and what is computed of one node.
from libc.math cimport ceil, exp, frexp, ldexp

from pboost._core._cut cimport Limits
from pboost._core._heap cimport Heap, decrease
from pboost._core._vote cimport half_log_odds
from pboost._core.split cimport Judge, Moment, TIE, impurity, square_score
from pboost._core.types cimport int32_t, int64_t, row_of, uint8_t, uint64_t

# The order in which open nodes are split: the key in the heap.
cdef enum:
    DEPTH_FIRST, BEST_FIRST, LARGEST_BOUND, LARGEST_ERROR, LOOK_AHEAD, BREADTH_FIRST
# What is to be done next.
cdef enum:
    PICK, SEARCH, CHOOSE, SPLIT, OPEN
# What `grow` returns.
cdef enum:
    DONE, ALL_LEAVES, TARGET, PAUSED, LARGE_SEARCH, LARGE_PARTITION, UNKNOWN_AHEAD
# Whether the split of a node ahead is known.
cdef enum:
    UNKNOWN, KNOWN, NO_SPLIT
# Below this fixed-point mass a node's weights are made anew, with sums up to about this.
cdef enum:
    LEAST_BITS = 40
cdef enum:
    FULL_BITS = 60
# The factor of the targets is at most a power of two with this exponent.
cdef enum:
    MOST_SCALE = 400

cdef struct Node:
    int32_t start, stop, depth
    int32_t shift  # weights are in units of the root's times 2**-shift
    # Where it is split: the rows or bins on either side of the cut; `low` is -1 of a set of levels,
    # `high` of a set and of the cut between rows with a value and those without.
    int32_t feature, low, high
    int32_t child  # the first, -1 of a leaf
    int32_t listed  # the column by whose order its rows are listed
    int32_t pure
    int32_t missing  # the side of rows without a value; -1 where there are none
    int32_t parent  # -1 of the root
    double limit  # score up to which cuts are equal
    double key
    double mean, loss, scale  # of the targets; sum of squares about it; factor of their images

# Of a node of a boosted tree: its vote; the sum on the way to it, itself included; and, where it is
# split, its part of the certificate, and the whole certificate after the split.
cdef struct Vote:
    double own, gathered, bound, certificate

cdef struct Counter:
    int64_t nodes, open, leaves, fresh, at, phase, picked, drawn

# The first cut of a node within the limit of its least score, and the masses below it.
cdef struct Found:
    double score
    int32_t node, feature, place, missing
    int64_t[2] below

# A split that is not to be searched for: as of `cut_of`, the side of missing rows, and its votes.
cdef struct Given:
    Py_ssize_t place
    int missing
    double[2] votes

cdef struct Tree:
    int32_t* order
    const uint8_t* codes
    int32_t* rows
    # Where orders are made of ranks: those of rows of X in each column, and which these rows are.
    const int32_t* rank
    const int32_t* ranked_row
    const int32_t* n_bins
    const uint8_t* special  # of each column; NULL where none is
    uint64_t* subset  # by node, 4 words: the levels above, where it is split by a category
    const double* weight
    const double* y
    const int32_t* label
    int64_t* fixed
    Moment* moment
    uint8_t* side  # of rows in sorted columns; of codes where rows are elsewhere
    # If nodes are split by their histograms: that of the current node, by column and code the masses
    # and the number of rows, of so many codes. Else NULL.
    const int64_t* cells
    Py_ssize_t n_codes
    # If rows are elsewhere: which node of the tree ahead each node is, -1 if its rows are here; and
    # the tree ahead, see `Ahead` in growth/ahead.py. Else NULL.
    int32_t* ahead_of
    const Node* ahead
    const int64_t* ahead_mass
    const int64_t* ahead_below  # masses as the split of the parent makes them
    const uint64_t* ahead_subset
    const uint8_t* ahead_state
    const int64_t* ahead_stored  # where the rows of a node are stored here, -1 if they are not
    int32_t* ahead_number  # which node of this tree it is, -1 if growth has not reached it
    int32_t* spare
    int64_t* work
    int64_t* packed
    double* best
    int32_t* picked
    # What columns cost, see `FeatureCosts`; `item` is NULL where nothing has a cost. WORK to_pay (n_items,).
    const int32_t* item
    const double* cost
    double* to_pay
    Node* node
    int64_t* mass
    Vote* vote
    int32_t* open
    Counter* counter
    double* certificate
    Py_ssize_t n, d, n_columns, n_negative, max_leaves, min_count, min_split, n_picked, n_classes
    Py_ssize_t n_ranked, n_work, n_items
    int criterion, max_depth, growth
    bint exact, ranked, squares, boosted
    double level_smoothing, scale, min_weight, complexity, target, smoothing, learning_rate
    double whole  # what the weights of nodes are measured in
    double comparison_cost
    double least_risk  # nodes without more than this are not split; `grow` sets it
    uint64_t key


cdef inline Heap heap_of(const Tree* t) noexcept nogil:
    """The open nodes by their keys."""
    cdef Heap heap
    heap.items, heap.size = t.open, &t.counter.open
    heap.key, heap.stride = &t.node.key, sizeof(Node) // sizeof(double)
    return heap


cdef inline Py_ssize_t size_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    return t.node[e].stop - t.node[e].start


cdef inline Py_ssize_t width(const Tree* t) noexcept nogil:
    """Number of masses of a node."""
    return 2 if t.squares else t.n_classes


cdef inline bint is_elsewhere(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Whether the rows of a node are elsewhere: the tree ahead has its split."""
    return t.ahead_of != NULL and t.ahead_of[e] >= 0


cdef inline const int64_t* cells_of(const Tree* t, Py_ssize_t f) noexcept nogil:
    """The histogram of the current node in a column."""
    return t.cells + f * t.n_codes * (width(t) + 1)


cdef inline const int32_t* rows_at(const Tree* t, Py_ssize_t e) noexcept nogil:
    """The rows of a node, packed."""
    if t.exact and not t.ranked:
        return t.order + t.node[e].listed * t.n + t.node[e].start
    return t.rows + t.node[e].start


cdef inline double risk_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Mass of the classes of a node but for the largest, in the root's unit; of a classification."""
    cdef const int64_t* mass = t.mass + t.n_classes * e
    cdef int64_t total = 0, most = 0
    cdef Py_ssize_t j
    for j in range(t.n_classes):
        total += mass[j]
        most = max(most, mass[j])
    return ldexp(<double>(total - most), -t.node[e].shift)


cdef inline bint can_split(const Tree* t, Py_ssize_t e) noexcept nogil:
    cdef Py_ssize_t n = size_of(t, e)
    return (not t.node[e].pure and n >= t.min_split and n >= 2 * t.min_count
            and t.node[e].depth < t.max_depth
            and (t.least_risk <= 0.0 or risk_of(t, e) > t.least_risk))


cdef inline double mass_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Fixed-point mass of a node, in units that depend on its shift."""
    cdef int64_t total = 0
    cdef Py_ssize_t j
    if t.squares:
        return <double>t.mass[2 * e]
    for j in range(t.n_classes):
        total += t.mass[t.n_classes * e + j]
    return <double>total


cdef inline double unit_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    """One unit of a node's fixed-point weights."""
    return ldexp(1.0, -t.node[e].shift) / t.whole


cdef inline double boosted_mass(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Sum of the boosted weights of a node, as a share of the root's: its part of the certificate."""
    cdef double votes = t.vote[e].gathered
    return (<double>t.mass[2 * e] * exp(votes)
            + <double>t.mass[2 * e + 1] * exp(-votes)) * unit_of(t, e)


cdef inline double child_vote(const Tree* t, Py_ssize_t e, const int64_t* mass) noexcept nogil:
    """Vote of a child of node `e` with these class masses."""
    cdef double up = exp(t.vote[e].gathered)
    cdef double negative = <double>t.mass[2 * e] * up
    cdef double positive = <double>t.mass[2 * e + 1] / up
    return t.learning_rate * half_log_odds(
        <double>mass[1] / up, <double>mass[0] * up, t.smoothing * (negative + positive))


cdef inline void count_certificate(const Tree* t, double change) noexcept nogil:
    """Add to the certificate; Neumaier's compensation keeps small sums of large changes right."""
    cdef double total = t.certificate[0] + change
    if abs(t.certificate[0]) >= abs(change):
        t.certificate[1] += (t.certificate[0] - total) + change
    else:
        t.certificate[1] += (change - total) + t.certificate[0]
    t.certificate[0] = total


cdef inline int64_t fixed_weight(const Tree* t, int32_t row, int shift) noexcept nogil:
    return <int64_t>(ldexp(t.weight[row] * t.scale, shift) + 0.5)


cdef inline int coarse_shift(double heaviest, Py_ssize_t n) noexcept nogil:
    """A shift with which the sum of so many weights stays below 2**(FULL_BITS + 1)."""
    cdef int exponent = 0
    frexp(heaviest, &exponent)
    while n > 0:
        n >>= 1
        exponent += 1
    return FULL_BITS + 1 - exponent


cdef inline int full_shift(int64_t total, int shift) noexcept nogil:
    """The shift that gives weights a sum of about FULL_BITS, given their sum with another."""
    shift += FULL_BITS
    while total > 0:
        total >>= 1
        shift -= 1
    return shift


cdef inline int finer_shift(const Tree* t, Py_ssize_t e) noexcept nogil:
    """The shift that gives a node's weights a sum of about FULL_BITS, whatever their order."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef Py_ssize_t i, n = size_of(t, e)
    cdef double heaviest = 0.0
    cdef int64_t total = 0
    cdef int shift
    for i in range(n):
        heaviest = max(heaviest, t.weight[row_of(rows[i])] * t.scale)
    shift = coarse_shift(heaviest, n)
    for i in range(n):
        total += fixed_weight(t, row_of(rows[i]), shift)
    return full_shift(total, shift)


cdef inline void refine(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Make the weights of a node's classes anew where little of the root's mass is left."""
    cdef const int32_t* rows = rows_at(t, e)
    cdef int64_t* mass = t.mass + t.n_classes * e
    cdef Py_ssize_t i, j
    cdef int32_t row
    if mass_of(t, e) >= <double>(<int64_t>1 << LEAST_BITS):
        return
    t.node[e].shift = finer_shift(t, e)
    for j in range(t.n_classes):
        mass[j] = 0
    for i in range(size_of(t, e)):
        row = row_of(rows[i])
        t.fixed[row] = fixed_weight(t, row, t.node[e].shift)
        mass[t.label[row]] += t.fixed[row]


cdef inline void measure_classes(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Whether a node has rows of one class only. Weights of a boosted tree, whose certificate is of
    the masses as they are, are refined where a node is opened, those of others here."""
    cdef Py_ssize_t j
    cdef int found = 0
    if not t.boosted:
        refine(t, e)
    for j in range(t.n_classes):
        found += t.mass[t.n_classes * e + j] > 0
    t.node[e].pure = found < 2


cdef inline Limits two_classes(const Tree* t, Py_ssize_t e) noexcept nogil:
    cdef Limits at
    at.criterion, at.n, at.n_negative = t.criterion, size_of(t, e), t.n_negative
    at.negative, at.positive = t.mass[2 * e], t.mass[2 * e + 1]
    at.min_weight = <int64_t>ceil(t.min_weight * (<double>at.negative + <double>at.positive))
    at.min_count, at.extra = t.min_count, 0
    return at


cdef inline Judge judge_of(const Tree* t, Py_ssize_t e, int64_t* work) noexcept nogil:
    cdef Judge at
    cdef const Node* node = &t.node[e]
    cdef Py_ssize_t j
    at.criterion, at.n_classes = t.criterion, t.n_classes
    at.n, at.min_count = size_of(t, e), t.min_count
    at.label, at.weight, at.moment = t.label, t.fixed, t.moment
    at.mass = t.mass + width(t) * e
    if t.squares:
        at.total = (<Moment*>at.mass)[0]
        at.tie = TIE * node.loss * (node.scale * unit_of(t, e)) * node.scale / <double>at.total.w
        return at
    at.total.w = 0
    for j in range(t.n_classes):
        at.total.w += at.mass[j]
    at.left, at.right = work, work + t.n_classes
    at.term = <double*>(work + 2 * t.n_classes)
    return at


cdef inline double lowered_certificate(const Tree* t, Py_ssize_t e, const int64_t* mass) noexcept nogil:
    """By how much a split lowers the certificate, as a key; `mass`: of the two sides."""
    cdef double before = boosted_mass(t, e), after = 0.0, votes
    cdef int side
    for side in range(2):
        votes = t.vote[e].gathered + child_vote(t, e, mass)
        after += <double>mass[0] * exp(votes) + <double>mass[1] * exp(-votes)
        mass += 2
    return decrease(before, before - after * unit_of(t, e))


cdef inline double lowered_impurity(const Tree* t, Py_ssize_t e, const int64_t* mass) noexcept nogil:
    """By how much a split lowers the impurity, as a key; `mass`: of the two sides."""
    cdef Judge at = judge_of(t, e, t.work)
    cdef double scale = t.node[e].scale, unit = unit_of(t, e), before, after
    if t.squares:
        after = square_score(&at, <const Moment*>mass)
        return decrease(t.node[e].loss, -after / scale / (scale * unit) * <double>at.total.w)
    before = impurity(t.criterion, t.n_classes, at.mass)
    after = (impurity(t.criterion, t.n_classes, mass)
             + impurity(t.criterion, t.n_classes, mass + t.n_classes))
    # By a power of two: the share is the same.
    return decrease(before * unit, (before - after) * unit)
