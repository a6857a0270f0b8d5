# One boosted tree while it grows: its nodes, their histograms and best splits.
#
# Histograms are integer sums of gradients and Hessians; see boost_simd.h. The score of a split is the sum
# of G^2 / (H + l2) over both children, with G and H the sums of a child. Scores are kept as fractions and
# compared by cross-multiplication.
#
# The histogram of an open node is stored in a slot. Only the histogram of the smaller child is computed
# from rows, in the next slot. The histogram of the larger child is the difference and replaces the
# parent's. A histogram of few rows contains sums of packed words, stored at the beginning of each group's
# space.
#
# Names: `masses` are histograms, `curvature` is the Hessian, `levels` are categories, and `below` and
# `above` are the left and the right child. A group is a set of neighboring features, and each position in a
# group is a lane.
from libc.math cimport fabs
from libc.string cimport memset

from pboost._core._side cimport in_set
from pboost._core._team cimport Threads, close_post, load, lock, open_post, plus, unlock
from pboost._core.types cimport HOLES, MAX_BINS, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "boost_histogram.h" nogil:
    enum: LANES "PBOOST_LANES"
    enum: ROOM "PBOOST_ROOM"
    enum: AHEAD "PBOOST_AHEAD"
    enum: FAR_AHEAD "PBOOST_FAR_AHEAD"
    enum: NEAR_ROWS "PBOOST_NEAR_ROWS"
    enum: BLOCK "PBOOST_BLOCK"
    enum: ABREAST "PBOOST_ABREAST"
    ctypedef struct Cuts "pboost_cuts":
        double* numerator
        double* divisor
        int32_t* bin
    ctypedef struct Masses "pboost_node_masses":
        double gradient
        double curvature
        double least
        double l2
        double low
        double high
        bint is_bounded
        int direction
    ctypedef struct PooledCuts "pboost_pooled_cuts":
        float* value
        int32_t* bin
    ctypedef struct Lanes "pboost_lanes":
        const double* masses
        const double* below
        int bins
    ctypedef struct Passes "pboost_passes":
        void (*count)(
            const uint8_t* group, const int32_t* rows, const int64_t* packed, Py_ssize_t n,
            Py_ssize_t block, int ahead, int n_lanes, int bins, int64_t* words, double* masses) noexcept nogil
        void (*subtract)(
            double* masses, const double* part, Py_ssize_t cells, int n_packed) noexcept nogil
        void (*scan)(
            const Lanes* groups, int n_groups, int is_packed, const Masses* at, Cuts* cuts
        ) noexcept nogil
        Py_ssize_t (*part)(
            const uint8_t* codes, int cut, const uint8_t* table, int32_t* rows, int64_t* packed,
            Py_ssize_t n, int32_t* spare_rows, int64_t* spare_packed) noexcept nogil
        void (*gain)(
            const Lanes* group, int is_packed, const Masses* at, double own, float* gains, float* pool
        ) noexcept nogil
        void (*pooled)(
            const float* gains, const float* pool, int bins, float share, PooledCuts* cuts
        ) noexcept nogil
        void (*shared)(
            const Lanes* group, int is_packed, const Masses* at, const float* pool, PooledCuts* cuts
        ) noexcept nogil
    void pool_gains "pboost_pool_gains"(const float* gains, Py_ssize_t n, float* pool) noexcept
    void gather "pboost_gather"(
        const double* values, const int32_t* rows, Py_ssize_t n, double* found) noexcept
    void gather_two "pboost_gather_two"(
        const double* first, const double* second, const int32_t* rows, Py_ssize_t n, double* of_first,
        double* of_second) noexcept
    void add_to "pboost_add_to"(
        double* values, const int32_t* rows, Py_ssize_t n, double what) noexcept

cdef extern from *:
    """
    /* Relative difference up to which two sums count as equal. */
    #define PBOOST_SAME_MASS 1e-9
    """
    const double SAME_MASS "PBOOST_SAME_MASS"

cdef enum:
    WORDS = 4  # number of 64-bit words of a category set
cdef enum:
    CELLS_PER_ROW = 12  # if a node has more than this number times `share` cells, process it in parallel
cdef enum:
    LOW_UNIT = 262144  # 2**18, the unit of the first words of wide sums

# A node. `low` and `high` are the bins on both sides of a threshold. If `high` is -1, only missing values
# go to the right; if both are -1, the split is a category set. `missing` is the child for missing values.
# `mean` is the leaf value. `loss` is the total gain of the splits in its subtree. `spread` is the weighted
# sum of squared deviations of its rows' Newton steps from their mean. `least` and `most` bound the leaf
# value if there are monotonic constraints. With a cost tradeoff, `net` is the gain of the split minus its
# cost.
cdef struct Node:
    int32_t start, stop, feature, low, high, missing, child, parent, depth, shift
    double gradient, curvature, mean, loss, spread, least, most, net

# An open node. In best-first growth, its split is known, and `slot` is -1 if it has no histogram.
# `n_below`, `gradient` and `curvature` describe the left child. `mass` is the weight of its rows.
cdef struct Open:
    int32_t node, slot
    int64_t n_below, mass
    double gradient, curvature

# The progress of growth: `open` nodes wait, and `busy` nodes are being split. Threads stop once `done` of
# the `wanted` cells have been read. Several threads change this state only under the lock `in_hand`. If
# comparisons are limited, `spent` is the weight of the rows compared so far, and `whole` is the weight of
# all rows.
cdef struct State:
    int64_t nodes, leaves, free, done, wanted, spent, whole
    int32_t open, busy, in_hand

# The range of a thread's open nodes; the last one is the newest.
cdef struct Stack:
    int32_t first, last

# The best split so far. `value` is its score with jitter. For a category set, `above` contains the categories of the right child.
cdef struct Cut:
    double numerator, divisor, value
    int32_t feature, bin, missing
    bint is_set
    uint64_t[WORDS] above

cdef struct Round:
    const uint8_t* codes
    const uint8_t* groups
    const uint8_t* special
    const int32_t* n_bins
    # Feature bundles; see `bundle` in derived.pyx. They contain, for each feature, the lane, the code in a
    # bundle (0 if it is not bundled), and the bin that the code stands for. For each lane, they contain the
    # feature, or -1 for a bundle. `bundled` lists the bundled features.
    const int32_t* lane
    const uint8_t* code
    const uint8_t* side
    const int32_t* column
    const int32_t* bundled
    Py_ssize_t n_lanes, n_bundled
    const int32_t* group_bins
    const int64_t* group_place
    int32_t* rows
    int32_t* spare
    int64_t* packed
    int64_t* spare_packed
    const double* copies  # number of copies of each row; NULL if weights are not numbers of copies
    Py_ssize_t block  # largest number of rows whose sums fit into packed words
    int64_t* low  # second words of wide sums, or NULL; with wide sums, words are indexed by row
    double* masses
    Node* node
    uint64_t* subset
    Open* open
    State* state
    Passes* passes
    Threads* team  # NULL with a single thread
    int who, n_threads, n_takers  # number of threads that split nodes: `n_takers`
    Py_ssize_t share, n_open, n_levels  # threads take about `share` rows at a time
    Stack* stack  # open nodes of each thread that splits nodes, with room for `n_open`
    int32_t* slot_of  # `n_levels` slots for each of these threads
    Py_ssize_t n, n_rows, d, stride, slot, n_slots
    int32_t max_depth, min_leaf
    bint has_levels
    double l2, level_smoothing, min_weight, min_gain
    # Flags of the features, then of the groups, to be searched for the tree and for the node. NULL selects
    # all features. `per_tree` and `per_split` are the numbers of features to draw. The draws depend on the
    # `number` of the tree.
    uint8_t* of_tree
    uint8_t* of_node
    int32_t* picked
    const int32_t* direction  # sign of the monotonic constraint of each feature; NULL without constraints
    Py_ssize_t per_tree, per_split
    const uint64_t* together  # interaction groups of each feature, as bits; NULL without constraints
    uint64_t* alive
    Py_ssize_t group_words
    # Feature costs; NULL without costs. `item` (d, 2) has the two cost items of each feature, -1 for none.
    # `cost` has the cost of each item. `paid` (n_items, n) marks the rows that paid in earlier trees.
    # `payers` is 0 if no row paid for an item, 1 if all rows paid, and 2 if some rows paid. `payer_weight`
    # has the row weights; NULL if all are 1. `to_pay` is the mean amount per item still to be paid at the
    # current node. `tradeoff` is the required gain per unit of cost and row. If it is negative, gains are
    # divided by costs.
    const int32_t* item
    const double* cost
    const uint8_t* paid
    const uint8_t* payers
    const double* payer_weight
    double* to_pay
    double comparison_cost, tradeoff
    Py_ssize_t n_items
    int32_t* free  # unused slots
    int64_t max_leaves  # 0 for depth-first growth without a limit
    # The largest mean number of comparisons per row; 0 for no limit. `row_mass` has the weights of rows as
    # integers; NULL if all are 1.
    double comparisons
    const int64_t* row_mass
    uint64_t key, number
    # Used for level-wise growth, else NULL. `gains` has `n_gains` gains per open node, and `pool` has their
    # sums over all nodes. If `pooling` is 1, `gains` is NULL. `set_place` is the position of each
    # categorical feature's gains, or -1, and `sets` has the order of its categories. Pooled gains have the
    # weight `pooling` at depths >= `pool_from`.
    float* gains
    float* pool
    const int64_t* set_place
    char* sets
    Py_ssize_t n_gains
    int32_t pool_from
    float pooling
    # With `random_strength`: the factor of the jitter of scores, else 0, and its key. `level_score` is the sum
    # of the scores of a level's nodes, and `level_depth` their depth.
    double jitter, level_score
    uint64_t jitter_key
    int32_t level_depth
    # Number of rows of the current node per feature and bin (d, 256) if rows are on workers; else NULL.
    const int32_t* rows_by_bin


cdef inline int kind_of(const Round* r, Py_ssize_t f) noexcept nogil:
    """Return the flags of a feature: HOLES (has missing values) and LEVELS (is categorical)."""
    return 0 if r.special == NULL else r.special[f]


cdef inline Py_ssize_t n_groups(const Round* r) noexcept nogil:
    return (r.n_lanes + LANES - 1) // LANES


cdef inline bint is_any(const Round* r, const uint8_t* taken, Py_ssize_t g) noexcept nogil:
    """Return whether any feature of a group is selected; NULL selects all features."""
    return taken == NULL or taken[r.d + g] != 0


cdef inline double gradient_in(int64_t word) noexcept nogil:
    return <double>(word >> 32)


cdef inline double curvature_in(int64_t word) noexcept nogil:
    return <double><uint32_t>word


cdef inline bint is_packed(const Round* r, const Node* node) noexcept nogil:
    """Return whether the histogram of a node is packed."""
    return r.low == NULL and node.stop - node.start <= r.block


# The histogram of a single feature.
cdef struct Lane:
    double[MAX_BINS] gradient, curvature


cdef inline void read_bin(
    const Round* r, const Node* node, const double* slot, Py_ssize_t lane, Py_ssize_t b,
    double* gradient, double* curvature
) noexcept nogil:
    """Read the gradient and Hessian sums of one bin (OUT gradient, curvature)."""
    cdef Py_ssize_t g = lane // LANES, cell = b * LANES + lane % LANES
    cdef const double* masses = slot + r.group_place[g]
    if is_packed(r, node):
        gradient[0] = gradient_in((<const int64_t*>masses)[cell])
        curvature[0] = curvature_in((<const int64_t*>masses)[cell])
    else:
        gradient[0] = masses[cell]
        curvature[0] = masses[<Py_ssize_t>r.group_bins[g] * LANES + cell]


cdef inline void read_lane(
    const Round* r, const Node* node, const double* slot, Py_ssize_t f, Lane* lane
) noexcept nogil:
    cdef Py_ssize_t b
    for b in range(r.n_bins[f] + (kind_of(r, f) & HOLES)):
        read_bin(r, node, slot, r.lane[f], b, lane.gradient + b, lane.curvature + b)


cdef inline void bundled_below(
    const Round* r, const Node* node, const double* slot, Py_ssize_t f, double* gradient,
    double* curvature
) noexcept nogil:
    """Read the sums of the left child for a split by a bundled feature."""
    read_bin(r, node, slot, r.lane[f], r.code[f], gradient, curvature)
    if r.side[f]:
        gradient[0], curvature[0] = node.gradient - gradient[0], node.curvature - curvature[0]


cdef inline Masses masses_of(const Round* r, const Node* node) noexcept nogil:
    cdef Masses at
    at.gradient, at.curvature = node.gradient, node.curvature
    # The scaled Hessian of a row is at least 1, so a child with `min_leaf` rows has a Hessian sum of at
    # least `min_leaf`.
    at.least, at.l2 = max(<double>r.min_leaf, r.min_weight), r.l2
    at.low, at.high = node.least, node.most
    at.is_bounded, at.direction = r.direction != NULL, 0
    return at


cdef inline double step_within(const Masses* at, double gradient, double curvature) noexcept nogil:
    """Return the Newton step for these sums, limited to the bounds of the node."""
    return min(max(-gradient / (curvature + at.l2), at.low), at.high)


cdef inline double score_within(
    const Masses* at, double gradient, double curvature, double step
) noexcept nogil:
    return -step * (2.0 * gradient + (curvature + at.l2) * step)


cdef inline double own_score(const Masses* at) noexcept nogil:
    """Return the score of the node without a split."""
    if at.is_bounded:
        return score_within(
            at, at.gradient, at.curvature, step_within(at, at.gradient, at.curvature))
    return at.gradient * at.gradient / (at.curvature + at.l2)


cdef inline bint score_bounded(
    const Masses* at, double gradient, double curvature, double* score
) noexcept nogil:
    """Compute the score of two children with bounded steps (OUT score).

    Return False if the steps violate the monotonic constraint.
    """
    cdef double other = at.gradient - gradient, rest = at.curvature - curvature
    cdef double below = step_within(at, gradient, curvature), above = step_within(at, other, rest)
    score[0] = score_within(at, gradient, curvature, below) + score_within(at, other, rest, above)
    return not at.direction * (above - below) < 0.0


cdef inline bint take_better(
    Cut* best, double numerator, double divisor, Py_ssize_t f, int32_t bin_, int32_t missing
) noexcept nogil:
    """Store a split if it is better than the best so far. Return whether it is better."""
    if not numerator * best.divisor > best.numerator * divisor:
        return False
    best.numerator, best.divisor = numerator, divisor
    best.feature, best.bin, best.missing, best.is_set = <int32_t>f, bin_, missing, False
    return True


cdef inline bint try_sums(
    Cut* best, const Masses* at, double gradient, double curvature, Py_ssize_t f, int32_t bin_,
    int32_t missing
) noexcept nogil:
    """Try a split with these sums of the left child. Return whether it is the best so far."""
    cdef double other = at.gradient - gradient, rest = at.curvature - curvature, below, above
    if not (curvature >= at.least and rest >= at.least):
        return False
    if at.is_bounded:
        return score_bounded(at, gradient, curvature, &below) and take_better(
            best, below, 1.0, f, bin_, missing)
    below, above = curvature + at.l2, rest + at.l2
    return take_better(
        best, gradient * gradient * above + other * other * below, below * above, f, bin_, missing)


cdef inline void sums_below(
    const Round* r, const Node* node, const double* slot, const Cut* cut, double* gradient,
    double* curvature
) noexcept nogil:
    cdef Py_ssize_t b, n_bins = r.n_bins[cut.feature]
    cdef Py_ssize_t lane = r.lane[cut.feature]
    cdef double g, h
    if r.code[cut.feature]:
        bundled_below(r, node, slot, cut.feature, gradient, curvature)
        return
    gradient[0] = curvature[0] = 0.0
    for b in range(n_bins if cut.is_set else cut.bin + 1):
        if cut.is_set and in_set(cut.above, <int>b):
            continue
        read_bin(r, node, slot, lane, b, &g, &h)
        gradient[0] += g
        curvature[0] += h
    if cut.missing == 0:
        read_bin(r, node, slot, lane, n_bins, &g, &h)
        gradient[0] += g
        curvature[0] += h


cdef inline bint is_pure(const Round* r, const Node* node) noexcept nogil:
    """Return whether all rows have the same Newton step up to rounding.

    In this case no split lowers the loss.
    """
    cdef double step = node.gradient / node.curvature, slack = 1.0 + fabs(step), gradient, curvature, copies
    cdef Py_ssize_t i, row
    for i in range(node.start, node.stop):
        row = i if r.low == NULL else r.rows[i]
        gradient, curvature = gradient_in(r.packed[row]), curvature_in(r.packed[row])
        if r.low != NULL:
            gradient = gradient * LOW_UNIT + gradient_in(r.low[row])
            curvature = curvature * LOW_UNIT + curvature_in(r.low[row])
        if r.copies != NULL:  # divide the sums by the number of copies of the row
            copies = r.copies[r.rows[i]]
            gradient, curvature = gradient / copies, curvature / copies
        if fabs(gradient - step * curvature) > slack:
            return False
    return True
