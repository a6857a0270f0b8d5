# One tree of a boosted sum while it grows: its nodes, their masses by bin, the best cut of each.
#
# Masses are sums of gradients and of curvatures as integers, see boost_simd.h; a cut of a node with the
# sums G, H is scored by G^2 / (H + l2) of both sides together. Scores are fractions, compared by
# products. A node open to be split has its masses by bin in a slot: of two children only those of the
# smaller are counted, in the next slot, and the larger has what is left, in the slot of their parent.
# Masses of few rows are sums of words, at the beginning of the places of groups. The word of a row whose
# weight is a number of copies is that of one, so many times.
from libc.math cimport fabs
from libc.string cimport memset

from pboost._core._side cimport in_set
from pboost._core._team cimport Threads, close_post, load, lock, open_post, plus, unlock
from pboost._core.types cimport HOLES, MAX_BINS, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "boost_masses.h" nogil:
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
    /* Masses that differ by no more than this share of one are equal, as models have it. */
    #define PBOOST_SAME_MASS 1e-9
    """
    const double SAME_MASS "PBOOST_SAME_MASS"

cdef enum:
    WORDS = 4  # of a set
cdef enum:
    CELLS_PER_ROW = 12  # so many are worth a thread, times `share`
cdef enum:
    LOW_UNIT = 262144  # 2**18: what the first words of wide sums are counted in

# `low` and `high` are the bins on both sides of a cut, `high` -1 where only missing rows are above, and
# both are -1 where a set of levels is; `missing` is the side of missing rows; `mean` what a leaf adds;
# `loss` what the splits below a node gain, and `spread`, where levels are smoothed, by how much the steps
# of its rows differ. `least` and `most` bound its step, where some columns are monotone. `net` is what its
# own split gains less what it costs, where costs are taken from gains.
cdef struct Node:
    int32_t start, stop, feature, low, high, missing, child, parent, depth, shift
    double gradient, curvature, mean, loss, spread, least, most, net

# Of best-first growth `slot` may be -1, and the cut is known: rows and sums below. `mass` counts the rows,
# by their weight.
cdef struct Open:
    int32_t node, slot
    int64_t n_below, mass
    double gradient, curvature

# `open` nodes wait, `busy` ones are being split by some thread, which takes no more once `done` cells have
# been read of `wanted` ones. Of several threads who has `in_hand` may change all this. `spent` is the
# weight of what has been compared in a tree whose comparisons count, `whole` that of its rows.
cdef struct State:
    int64_t nodes, leaves, free, done, wanted, spent, whole
    int32_t open, busy, in_hand

# Where a thread has its open nodes, the newest last.
cdef struct Stack:
    int32_t first, last

# A cut while the best is looked for. Of levels `above` has those that are at the node.
cdef struct Cut:
    double numerator, divisor
    int32_t feature, bin, missing
    bint is_set
    uint64_t[WORDS] above

cdef struct Round:
    const uint8_t* codes
    const uint8_t* groups
    const uint8_t* special
    const int32_t* n_bins
    # See `bundle` in derived.pyx: of each column its lane, its number in a bundle (0: it is alone) and the bin chosen;
    # of each lane its column (-1: a bundle); the columns in bundles.
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
    const double* copies  # of each row, NULL where there is one, or weights are no copies
    Py_ssize_t block  # rows for whose sums words have room
    int64_t* low  # NULL, or the second words of wide sums: then words stand row by row
    double* masses
    Node* node
    uint64_t* subset
    Open* open
    State* state
    Passes* passes
    Threads* team  # NULL: one thread
    int who, n_threads, n_takers  # `n_takers` of the threads split nodes
    Py_ssize_t share, n_open, n_levels  # `share` rows or so are worth a thread
    Stack* stack  # of each taker, with places for `n_open` nodes
    int32_t* slot_of  # the slots of each taker, `n_levels`
    Py_ssize_t n, n_rows, d, stride, slot, n_slots
    int32_t max_depth, min_leaf
    bint has_levels
    double l2, level_smoothing, min_weight, min_gain
    # Which columns a tree and a node are searched in, and behind them which groups; of how many; NULL:
    # all. What is drawn is of the tree `number`.
    uint8_t* of_tree
    uint8_t* of_node
    int32_t* picked
    const int32_t* direction  # of each column: whether steps go up (1) or down (-1) with it; NULL: any
    Py_ssize_t per_tree, per_split
    const uint64_t* together  # NULL, or the groups of columns that each is in, as bits
    uint64_t* alive
    Py_ssize_t group_words
    # NULL, or the items that are paid for each column (d, 2), -1 for none; their costs; which rows have
    # paid them in earlier trees, (n_items, n), and whether none (0), all (1) or some; the weights of rows
    # that pay, NULL where all are 1. `to_pay` has what rows of the node that is searched pay in the mean.
    # `tradeoff` is what a unit of cost that a row pays has to gain; below 0: gains are divided by costs.
    const int32_t* item
    const double* cost
    const uint8_t* paid
    const uint8_t* payers
    const double* payer_weight
    double* to_pay
    double comparison_cost, tradeoff
    Py_ssize_t n_items
    int32_t* free  # the slots that no open node has
    int64_t max_leaves  # 0: any number, depth first
    # Of trees that grow by gain per comparison, 0 of others: comparisons of a row of mean weight at most;
    # `row_mass` has the weights of rows in a small unit, NULL where all are 1.
    double comparisons
    const int64_t* row_mass
    uint64_t key, number
    # Of trees that grow level by level, NULL of others: what cuts gain, `n_gains` of each open node, unless
    # all of `pooling` counts, and of all together; where those of columns of levels begin, -1 of others, and
    # the order of levels; from which depth on `pooling` of the latter counts.
    float* gains
    float* pool
    const int64_t* set_place
    char* sets
    Py_ssize_t n_gains
    int32_t pool_from
    float pooling
    # NULL, or the number of rows of the searched node by column and bin, (d, 256), if rows are in partitions.
    const int32_t* rows_by_bin


cdef inline int kind_of(const Round* r, Py_ssize_t f) noexcept nogil:
    """What is special about a column."""
    return 0 if r.special == NULL else r.special[f]


cdef inline Py_ssize_t n_groups(const Round* r) noexcept nogil:
    return (r.n_lanes + LANES - 1) // LANES


cdef inline bint is_any(const Round* r, const uint8_t* taken, Py_ssize_t g) noexcept nogil:
    """Whether a column of a group is taken; all are where there is no list."""
    return taken == NULL or taken[r.d + g] != 0


cdef inline double gradient_in(int64_t word) noexcept nogil:
    return <double>(word >> 32)


cdef inline double curvature_in(int64_t word) noexcept nogil:
    return <double><uint32_t>word


cdef inline bint is_packed(const Round* r, const Node* node) noexcept nogil:
    """Whether the masses of a node by bin are sums of words."""
    return r.low == NULL and node.stop - node.start <= r.block


# The masses of a column by bin.
cdef struct Lane:
    double[MAX_BINS] gradient, curvature


cdef inline void read_bin(
    const Round* r, const Node* node, const double* slot, Py_ssize_t lane, Py_ssize_t b,
    double* gradient, double* curvature
) noexcept nogil:
    """OUT: the masses of one code of a lane."""
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
    """The sums below the cut of a column of a bundle."""
    read_bin(r, node, slot, r.lane[f], r.code[f], gradient, curvature)
    if r.side[f]:
        gradient[0], curvature[0] = node.gradient - gradient[0], node.curvature - curvature[0]


cdef inline Masses masses_of(const Round* r, const Node* node) noexcept nogil:
    cdef Masses at
    at.gradient, at.curvature = node.gradient, node.curvature
    # The curvature of a row is 1 or more: a side of so many rows has no less.
    at.least, at.l2 = max(<double>r.min_leaf, r.min_weight), r.l2
    at.low, at.high = node.least, node.most
    at.is_bounded, at.direction = r.direction != NULL, 0
    return at


cdef inline double step_within(const Masses* at, double gradient, double curvature) noexcept nogil:
    """The step of rows with these sums, as near as bounds allow."""
    return min(max(-gradient / (curvature + at.l2), at.low), at.high)


cdef inline double score_within(
    const Masses* at, double gradient, double curvature, double step
) noexcept nogil:
    return -step * (2.0 * gradient + (curvature + at.l2) * step)


cdef inline double own_score(const Masses* at) noexcept nogil:
    """The score of a node that is not split."""
    if at.is_bounded:
        return score_within(
            at, at.gradient, at.curvature, step_within(at, at.gradient, at.curvature))
    return at.gradient * at.gradient / (at.curvature + at.l2)


cdef inline bint score_bounded(
    const Masses* at, double gradient, double curvature, double* score
) noexcept nogil:
    """OUT the score of two sides whose steps are bounded; False if they go the wrong way."""
    cdef double other = at.gradient - gradient, rest = at.curvature - curvature
    cdef double below = step_within(at, gradient, curvature), above = step_within(at, other, rest)
    score[0] = score_within(at, gradient, curvature, below) + score_within(at, other, rest, above)
    return not at.direction * (above - below) < 0.0


cdef inline bint take_better(
    Cut* best, double numerator, double divisor, Py_ssize_t f, int32_t bin_, int32_t missing
) noexcept nogil:
    """Keep a cut that is better than the best so far; whether it is."""
    if not numerator * best.divisor > best.numerator * divisor:
        return False
    best.numerator, best.divisor = numerator, divisor
    best.feature, best.bin, best.missing, best.is_set = <int32_t>f, bin_, missing, False
    return True


cdef inline bint try_sums(
    Cut* best, const Masses* at, double gradient, double curvature, Py_ssize_t f, int32_t bin_,
    int32_t missing
) noexcept nogil:
    """Look at a cut with these sums below."""
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
    """Whether the Newton steps of all rows are equal but for rounding, so that no split lowers
    anything."""
    cdef double step = node.gradient / node.curvature, slack = 1.0 + fabs(step), gradient, curvature, copies
    cdef Py_ssize_t i, row
    for i in range(node.start, node.stop):
        row = i if r.low == NULL else r.rows[i]
        gradient, curvature = gradient_in(r.packed[row]), curvature_in(r.packed[row])
        if r.low != NULL:
            gradient = gradient * LOW_UNIT + gradient_in(r.low[row])
            curvature = curvature * LOW_UNIT + curvature_in(r.low[row])
        if r.copies != NULL:  # of one
            copies = r.copies[r.rows[i]]
            gradient, curvature = gradient / copies, curvature / copies
        if fabs(gradient - step * curvature) > slack:
            return False
    return True
