# The state of a growing tree in arrays of the caller, and computations for one node.
from libc.math cimport ceil, exp, frexp, ldexp

from pboost._core._cut cimport Limits
from pboost._core._heap cimport Heap, decrease
from pboost._core._vote cimport half_log_odds
from pboost._core.split cimport Judge, Moment, TIE, impurity, square_score
from pboost._core.types cimport int32_t, int64_t, row_of, uint8_t, uint64_t

# The order in which open nodes are split.
cdef enum:
    DEPTH_FIRST, BEST_FIRST, LARGEST_BOUND, LARGEST_ERROR, LOOK_AHEAD, BREADTH_FIRST
# The next step of the growth.
cdef enum:
    PICK, SEARCH, CHOOSE, SPLIT, OPEN
# The return values of `grow`.
cdef enum:
    DONE, ALL_LEAVES, TARGET, PAUSED, LARGE_SEARCH, LARGE_PARTITION, UNKNOWN_AHEAD
# The states of a node of the lookahead tree. NO_SPLIT: the search found no split.
cdef enum:
    UNKNOWN, KNOWN, NO_SPLIT
# If the weights of a node sum to less than 2**LEAST_BITS, they are rescaled to sum to about 2**FULL_BITS.
cdef enum:
    LEAST_BITS = 40
cdef enum:
    FULL_BITS = 60
# The scale of the targets is at most 2**MOST_SCALE.
cdef enum:
    MOST_SCALE = 400

cdef struct Node:
    int32_t start, stop, depth
    int32_t shift  # weights are in the root's unit times 2**-shift.
    # The split. For a threshold, `low` and `high` are the rows or bins on either side. `high` is -1 if
    # known values are split from missing values. Both are -1 for a set of categories.
    int32_t feature, low, high
    int32_t child  # number of the first child, -1 for a leaf
    int32_t listed  # rows are listed in the order of this feature
    int32_t pure
    int32_t missing  # child for missing values; -1 if there are none
    int32_t parent  # -1 for the root
    double limit  # splits with a score up to this limit are tied
    double key
    double mean, loss, scale  # mean, sum of squares and fixed-point scale of the targets

# The votes of a node in a boosted tree: its own vote, and the sum of the votes on its path. If the node is
# split: its share of the certificate, and the certificate after the split.
cdef struct Vote:
    double own, gathered, bound, certificate

cdef struct Counter:
    int64_t nodes, open, leaves, fresh, at, phase, picked, drawn

# The first split of a node with a score within the limit, and the sums of its left child.
cdef struct Found:
    double score
    int32_t node, feature, place, missing
    int64_t[2] below

# A split that was found before: its place as returned by `cut_of`, its child for missing values, and the
# votes of its children.
cdef struct Given:
    Py_ssize_t place
    int missing
    double[2] votes

cdef struct Tree:
    int32_t* order
    const uint8_t* codes
    int32_t* rows
    # For rows sorted by rank: the rank of each row of X per feature, and the number in X of each row.
    const int32_t* rank
    const int32_t* ranked_row
    const int32_t* n_bins
    const uint8_t* special  # kind of each feature; NULL if no feature has missing values or categories
    uint64_t* subset  # 4 words per node: the categories of the right child, if the split is categorical
    const double* weight
    const double* y
    const int32_t* label
    int64_t* fixed
    Moment* moment
    uint8_t* side  # child of each row (sorted features) or of each code (rows on workers).
    # Used for splits by histograms, else NULL: the sums and the number of rows of the current node for each
    # feature and code, and the number of codes.
    const int64_t* cells
    Py_ssize_t n_codes
    # Used for rows on workers, else NULL: the lookahead tree (see `Ahead` in distributed/lookahead.py), and
    # its node for each node of this tree. The latter is -1 if the rows of the node are stored here.
    int32_t* ahead_of
    const Node* ahead
    const int64_t* ahead_mass
    const int64_t* ahead_below  # sums of the left child of each node
    const uint64_t* ahead_subset
    const uint8_t* ahead_state
    const int64_t* ahead_stored  # first row of each node that is stored here, or -1
    int32_t* ahead_number  # number of each node in this tree, -1 if it is not in the tree yet
    int32_t* spare
    int64_t* work
    int64_t* packed
    double* best
    int32_t* picked
    # Feature costs, see `FeatureCosts`. Without costs, `item` is NULL. WORK to_pay (n_items,).
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
    double whole  # fixed-point weights at the root are divided by this number
    double comparison_cost
    double least_risk  # nodes with a risk up to this value are not split; set by `grow`
    uint64_t key


cdef inline Heap heap_of(const Tree* t) noexcept nogil:
    """Return the heap of the open nodes."""
    cdef Heap heap
    heap.items, heap.size = t.open, &t.counter.open
    heap.key, heap.stride = &t.node.key, sizeof(Node) // sizeof(double)
    return heap


cdef inline Py_ssize_t size_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    return t.node[e].stop - t.node[e].start


cdef inline Py_ssize_t width(const Tree* t) noexcept nogil:
    """Return the number of sums per node: one per class, or two for regression."""
    return 2 if t.squares else t.n_classes


cdef inline bint is_elsewhere(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return whether the rows of a node are on workers."""
    return t.ahead_of != NULL and t.ahead_of[e] >= 0


cdef inline const int64_t* cells_of(const Tree* t, Py_ssize_t f) noexcept nogil:
    """Return the histogram of the current node for one feature."""
    return t.cells + f * t.n_codes * (width(t) + 1)


cdef inline const int32_t* rows_at(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return the list of a node's rows, which may contain tie marks."""
    if t.exact and not t.ranked:
        return t.order + t.node[e].listed * t.n + t.node[e].start
    return t.rows + t.node[e].start


cdef inline double risk_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return the weight outside of the majority class, in the root's unit (classification only)."""
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
    """Return the fixed-point weight of a node in the node's own unit."""
    cdef int64_t total = 0
    cdef Py_ssize_t j
    if t.squares:
        return <double>t.mass[2 * e]
    for j in range(t.n_classes):
        total += t.mass[t.n_classes * e + j]
    return <double>total


cdef inline double unit_of(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return the unit of a node's fixed-point weights."""
    return ldexp(1.0, -t.node[e].shift) / t.whole


cdef inline double boosted_mass(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return the node's share of the boosted weights, which equals its share of the certificate."""
    cdef double votes = t.vote[e].gathered
    return (<double>t.mass[2 * e] * exp(votes)
            + <double>t.mass[2 * e + 1] * exp(-votes)) * unit_of(t, e)


cdef inline double child_vote(const Tree* t, Py_ssize_t e, const int64_t* mass) noexcept nogil:
    """Return the vote of a child of node `e` with these class weights."""
    cdef double up = exp(t.vote[e].gathered)
    cdef double negative = <double>t.mass[2 * e] * up
    cdef double positive = <double>t.mass[2 * e + 1] / up
    return t.learning_rate * half_log_odds(
        <double>mass[1] / up, <double>mass[0] * up, t.smoothing * (negative + positive))


cdef inline void count_certificate(const Tree* t, double change) noexcept nogil:
    """Add a change to the certificate, with Neumaier's compensation for rounding errors."""
    cdef double total = t.certificate[0] + change
    if abs(t.certificate[0]) >= abs(change):
        t.certificate[1] += (t.certificate[0] - total) + change
    else:
        t.certificate[1] += (change - total) + t.certificate[0]
    t.certificate[0] = total


cdef inline int64_t fixed_weight(const Tree* t, int32_t row, int shift) noexcept nogil:
    return <int64_t>(ldexp(t.weight[row] * t.scale, shift) + 0.5)


cdef inline int coarse_shift(double heaviest, Py_ssize_t n) noexcept nogil:
    """Return a shift for which the sum of `n` weights stays below 2**(FULL_BITS + 1)."""
    cdef int exponent = 0
    frexp(heaviest, &exponent)
    while n > 0:
        n >>= 1
        exponent += 1
    return FULL_BITS + 1 - exponent


cdef inline int full_shift(int64_t total, int shift) noexcept nogil:
    """Return the shift for which weights sum to about 2**FULL_BITS, given their sum with another shift."""
    shift += FULL_BITS
    while total > 0:
        total >>= 1
        shift -= 1
    return shift


cdef inline int finer_shift(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return the shift with which a node's weights sum to about 2**FULL_BITS.

    The result does not depend on the order of the rows.
    """
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
    """Recompute the class weights of a node in a finer unit if they are small."""
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
    """Record whether all rows of a node have the same class.

    Small weights are rescaled here, except in boosted trees. Boosted trees rescale weights when a node is
    opened, because the certificate uses the rescaled weights.
    """
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
    """Return the decrease of the certificate by a split as a heap key; `mass`: weights of the children."""
    cdef double before = boosted_mass(t, e), after = 0.0, votes
    cdef int side
    for side in range(2):
        votes = t.vote[e].gathered + child_vote(t, e, mass)
        after += <double>mass[0] * exp(votes) + <double>mass[1] * exp(-votes)
        mass += 2
    return decrease(before, before - after * unit_of(t, e))


cdef inline double lowered_impurity(const Tree* t, Py_ssize_t e, const int64_t* mass) noexcept nogil:
    """Return the decrease of the impurity by a split, as a heap key; `mass`: sums of both children."""
    cdef Judge at = judge_of(t, e, t.work)
    cdef double scale = t.node[e].scale, unit = unit_of(t, e), before, after
    if t.squares:
        after = square_score(&at, <const Moment*>mass)
        return decrease(t.node[e].loss, -after / scale / (scale * unit) * <double>at.total.w)
    before = impurity(t.criterion, t.n_classes, at.mass)
    after = (impurity(t.criterion, t.n_classes, mass)
             + impurity(t.criterion, t.n_classes, mass + t.n_classes))
    # `unit` is a power of two here, so multiplying by it is exact.
    return decrease(before * unit, (before - after) * unit)
