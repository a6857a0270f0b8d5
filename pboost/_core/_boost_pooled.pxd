# Level-wise growth of a boosted tree.
#
# A split is chosen by a weighted sum of two gains: its gain in the node, and its pooled gain, which is its
# total gain in all open nodes of the level. See _boost_gains.pxd.
from libc.math cimport INFINITY, NAN
from libc.string cimport memcpy, memset

from pboost._core._boost_best cimport give_back, take_slot
from pboost._core._boost_jitter cimport jittered
from pboost._core._boost_histogram cimport count_node, subtract_child
from pboost._core._boost_gains cimport (
    bundles_in, find_gains, gain_of, gain_of_bundled, gain_sets, gains_of, half_slot, has_holes, has_own,
    is_out, n_parts, order_sets, sets_of,
)
from pboost._core._boost_grow cimport (
    cut_node, is_smoothed, make_children, may_split, note_cut, other_child, part_node, take_place,
)
from pboost._core._boost_categories cimport Levels, note_set, spread_of, squares_in
from pboost._core._boost_round cimport (
    Cut, LANES, Lane, Lanes, Masses, Node, Open, PooledCuts, Round, is_any, is_packed, is_pure, kind_of,
    masses_of, n_groups, own_score, read_bin, read_lane, sums_below,
)
from pboost._core._boost_search cimport find_missing
from pboost._core._team cimport close_post, help, load, open_post, plus
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, uint64_t

# The best split so far, its weighted gain, and its gain in the node.
cdef struct Best:
    float value, gain
    Cut cut

# The open nodes of a tree level, and the tasks that the threads share.
cdef enum Task:
    LOOK, GAIN, CUT, COUNT

cdef struct Level:
    const Round* r
    Task task
    bint is_pooled
    Best shared
    int32_t n, next


# ---------------------------------------------------------------------------------------------
# The split of a node.

cdef inline bint is_better(const Best* best, float value, Py_ssize_t f) noexcept nogil:
    """Return whether a split is better than the best so far.

    Ties go to the lower feature, then to the split tried first.
    """
    cdef Py_ssize_t other = best.cut.feature
    return value > best.value or (value == best.value and f < other)


cdef inline bint take(
    const Round* r, Best* best, float value, float gain, Py_ssize_t f, int32_t bin_, int32_t missing
) noexcept nogil:
    """Keep a split if it is better than the best so far; return whether it is."""
    if r.jitter != 0.0 and value == value:
        value = <float>jittered(r, r.level_score + value, r.level_depth, f)
    if not is_better(best, value, f):
        return False
    best.value, best.gain = value, gain
    best.cut.feature, best.cut.bin, best.cut.missing = <int32_t>f, bin_, missing
    best.cut.is_set = False
    return True


cdef inline float gain_of_cut(
    const Round* r, const Node* node, const double* slot, const Cut* cut
) noexcept nogil:
    """Return the gain of a threshold split in a node."""
    cdef Masses at = masses_of(r, node)
    cdef double gradient, curvature
    sums_below(r, node, slot, cut, &gradient, &curvature)
    return gain_of(&at, own_score(&at), gradient, curvature, 1.0)


cdef inline void take_numbers(
    const Round* r, Py_ssize_t g, Py_ssize_t turn, const PooledCuts* cuts, const float* gains,
    const bint* some, Best* best
) noexcept nogil:
    """Try the best splits of a group's numerical features.

    Missing values go to the right (`turn` = 0) or to the left (`turn` = 1). `some` marks the features with
    missing values.
    """
    cdef Py_ssize_t k, f
    for k in range(min(LANES, r.n_lanes - LANES * g)):
        f = r.column[LANES * g + k]
        if f < 0 or cuts.bin[k] < 0 or is_out(r, f) or kind_of(r, f) & LEVELS or (
                turn and not kind_of(r, f)):
            continue
        take(
            r, best, cuts.value[k], gains[LANES * <Py_ssize_t>cuts.bin[k] + k] if gains != NULL else NAN, f,
            cuts.bin[k], <int32_t>(1 - turn) if some[k] else -1)


cdef inline void choose_number(
    const Round* r, const Node* node, const double* slot, Py_ssize_t g, const float* gains, Best* best
) noexcept nogil:
    """Find the best split of a group's numerical features; `gains` is NULL if gains are not stored."""
    cdef double[2 * LANES] nothing, missing
    cdef bint[LANES] some
    cdef PooledCuts cuts
    cdef Masses at = masses_of(r, node)
    cdef Lanes lanes
    cdef Py_ssize_t turn, place = r.group_place[g] // 2
    memset(nothing, 0, sizeof(nothing))
    find_missing(r, node, slot, g, missing, some)
    lanes.masses, lanes.bins = slot + r.group_place[g], r.group_bins[g]
    for turn in range(2 if has_holes(r, g) else 1):
        if gains != NULL:
            r.passes.pooled(gains + place, r.pool + place, r.group_bins[g], r.pooling, &cuts)
        else:
            lanes.below = &missing[0] if turn else &nothing[0]
            r.passes.shared(&lanes, is_packed(r, node), &at, r.pool + place, &cuts)
        take_numbers(r, g, turn, &cuts, gains + place if gains != NULL else NULL, some, best)
        place += half_slot(r)


cdef inline void choose_shared(const Round* r, Best* best) noexcept nogil:
    """Find the best split of a level if splits are chosen only by their pooled gain.

    If a feature is categorical or bundled, the level has no common split. A node uses the common split if
    both children are large enough.
    """
    cdef bint[LANES] some
    cdef PooledCuts cuts
    cdef Py_ssize_t g, k, turn, place
    best.value, best.cut.feature = -INFINITY, -1
    if has_own(r) or r.has_levels or r.n_bundled:
        return
    for g in range(n_groups(r)):
        if not is_any(r, r.of_tree, g):
            continue
        for k in range(LANES):
            some[k] = LANES * g + k < r.n_lanes and kind_of(r, r.column[LANES * g + k]) & HOLES
        for turn in range(2 if has_holes(r, g) else 1):
            place = r.group_place[g] // 2 + turn * half_slot(r)
            r.passes.pooled(r.pool + place, r.pool + place, r.group_bins[g], 1.0, &cuts)
            take_numbers(r, g, turn, &cuts, NULL, some, best)


cdef inline bint take_shared(
    const Round* r, const Node* node, const double* slot, const Best* shared, Best* best
) noexcept nogil:
    """Use the level's best split in a node. Return False if a child would be too small."""
    cdef double gradient, curvature
    cdef Py_ssize_t f = shared.cut.feature
    if f < 0:
        return False
    best[0] = shared[0]
    if kind_of(r, f) & HOLES:
        read_bin(r, node, slot, r.lane[f], r.n_bins[f], &gradient, &curvature)
        if curvature == 0.0:
            best.cut.missing = -1
    best.gain = gain_of_cut(r, node, slot, &best.cut)
    return best.gain == best.gain


cdef inline void choose_set(
    const Round* r, const Node* node, const double* slot, Py_ssize_t f, const float* gains,
    const float* pool, Best* best
) noexcept nogil:
    """Find the best category set of a feature.

    The right child gets only categories that occur at the node.
    """
    cdef const Levels* levels = &sets_of(r, f).levels
    cdef Py_ssize_t n_bins = r.n_bins[f], c, i, l
    cdef int32_t missing
    cdef Lane lane
    read_lane(r, node, slot, f, &lane)
    for c in range(4 * n_bins):
        missing = -1
        if kind_of(r, f) & HOLES and lane.curvature[n_bins] > 0.0:
            missing = c < 2 * n_bins
        if take(
                r, best, (<float>1.0 - r.pooling) * gains[c] + r.pooling * pool[c], gains[c], f, -1, missing):
            i = c % n_bins
            if c // n_bins % 2:
                note_set(&best.cut, levels, i, i + 1)
            else:
                note_set(&best.cut, levels, i + 1, levels.n)
            for l in range(n_bins):
                if lane.curvature[l] == 0.0:
                    best.cut.above[l >> 6] &= ~(<uint64_t>1 << (l & 63))


cdef inline void choose(
    const Round* r, const Node* node, const double* slot, const float* gains, Best* best
) noexcept nogil:
    """Find the best split of a node; `gains` is NULL if gains are not stored."""
    cdef const float* in_pool = bundles_in(r, r.pool)
    cdef float[4 * MAX_BINS] of_sets
    cdef float gain
    cdef Masses at = masses_of(r, node)
    cdef Py_ssize_t g, f, i
    best.value, best.cut.feature = -INFINITY, -1
    for g in range(n_groups(r)):
        if is_any(r, r.of_tree, g):
            choose_number(r, node, slot, g, gains, best)
    for f in range(r.d if r.has_levels else 0):
        if r.set_place[f] >= 0 and not is_out(r, f):
            if gains == NULL:
                gain_sets(r, node, &at, own_score(&at), slot, f, of_sets)
            choose_set(
                r, node, slot, f, &of_sets[0] if gains == NULL else gains + r.set_place[f],
                r.pool + r.set_place[f], best)
    for i in range(r.n_bundled):
        if not is_out(r, r.bundled[i]):
            gain = gain_of_bundled(r, node, slot, r.bundled[i])
            take(
                r, best, (<float>1.0 - r.pooling) * gain + r.pooling * in_pool[i], gain, r.bundled[i], 0, -1)


cdef inline bint find_pooled(
    const Round* r, Open* at, const float* gains, const Best* shared
) noexcept nogil:
    """Find and store the split of a node by its weighted gain. Return False if there is none."""
    cdef Node* node = r.node + at.node
    cdef const double* slot = r.masses + at.slot * r.slot
    cdef Best best
    if not take_shared(r, node, slot, shared, &best):
        choose(r, node, slot, gains, &best)
    if best.cut.feature < 0:
        return False
    if best.gain != best.gain:  # gains are not stored
        best.gain = gain_of_cut(r, node, slot, &best.cut)
    if best.gain < r.min_gain:
        return False
    node.loss = best.gain
    note_cut(r, node, &best.cut, slot, &at.gradient, &at.curvature)
    return True


cdef inline bint cut_pooled(
    const Round* r, Open* at, const float* gains, const Best* shared
) noexcept nogil:
    """Find the split of a node and partition its rows. Return False if the node stays a leaf."""
    cdef Node* node = r.node + at.node
    if not find_pooled(r, at, gains, shared):
        return False
    at.n_below = part_node(r, node, node.depth + 1 != r.max_depth)
    if min(at.n_below, node.stop - node.start - at.n_below) >= r.min_leaf:
        return True
    # If a child has too few rows, use the split with the largest gain in this node.
    node.feature = node.low = node.high = -1
    return cut_alone(r, at)


cdef inline bint cut_alone(const Round* r, Open* at) noexcept nogil:
    """Find the split of a node by its own gain and partition its rows.

    Return False if the node stays a leaf.
    """
    cdef Node* node = r.node + at.node
    cdef Py_ssize_t n_below = 0
    cdef bint is_cut = cut_node(
        r, node, r.masses + at.slot * r.slot, node.depth + 1 == r.max_depth, &n_below, &at.gradient,
        &at.curvature)
    at.n_below = n_below
    return is_cut


# ---------------------------------------------------------------------------------------------
# Levels of the tree.

cdef inline void look_at(const Round* r, Open* at) noexcept nogil:
    """Set `n_below` of the node to 0 if the node may be split, and to -1 otherwise."""
    cdef Node* node = r.node + at.node
    at.n_below = -1 if is_pure(r, node) else 0
    if is_smoothed(r) and at.n_below == 0:
        node.spread = spread_of(r, node, squares_in(r, node))


cdef inline void do_task(const Round* r, const Level* level, Py_ssize_t i) noexcept nogil:
    cdef Open* at
    cdef Node* node
    cdef Node* small
    cdef double* slot
    if level.task == GAIN:
        find_gains(r, i)
        return
    at = r.open + i
    node, slot = r.node + at.node, r.masses + at.slot * r.slot
    if level.task == LOOK:
        look_at(r, at)
    elif level.task == CUT:
        if level.is_pooled and (at.n_below < 0 or not cut_pooled(r, at, gains_of(r, i), &level.shared)):
            at.n_below = -1
        elif not level.is_pooled and not cut_alone(r, at):
            at.n_below = -1
    elif at.n_below >= 0:  # compute the histograms of the children
        small = smaller_child(r, node)
        count_node(r, small, r.masses + at.n_below * r.slot)
        subtract_child(r, node, small, other_child(r, small), slot, r.masses + at.n_below * r.slot)


cdef inline bint level_part(void* task, int who) noexcept nogil:
    """Process the open nodes of a level, or the parts of the gain computation, until none is left."""
    cdef Level* level = <Level*>task
    cdef Round r = level.r[0]
    cdef Py_ssize_t i
    cdef bint did = False
    take_place(&r, who)
    while load(&level.next) < level.n:
        i = plus(&level.next, 1)
        if i < level.n:
            do_task(&r, level, i)
            did = True
    return did or (r.team != NULL and help(r.team, who, 1))


cdef inline void do_all(const Round* r, Level* level, Task task) noexcept nogil:
    level.task, level.next, level.n = task, 0, <int32_t>n_parts(r) if task == GAIN else r.state.open
    if r.team != NULL and level.n > 1:
        open_post(r.team, 0, level_part, level)
    level_part(level, 0)
    if r.team != NULL and level.n > 1:
        close_post(r.team, 0, 0)


cdef inline Node* smaller_child(const Round* r, const Node* node) noexcept nogil:
    cdef Node* below = r.node + node.child
    return below + (below.stop - below.start > node.stop - below.stop)


cdef inline Py_ssize_t open_level(const Round* r) noexcept nogil:
    """Create the children of split nodes and return the number of children that may be split.

    The children are stored after the nodes of this level. `n_below` of a node becomes the slot of its
    smaller child, or -1.
    """
    cdef Open* next_ = r.open + r.n_slots
    cdef Open* at
    cdef Node* small
    cdef Node* below
    cdef Py_ssize_t i, side, n = 0
    cdef int32_t slot
    for i in range(r.state.open):
        at = r.open + i
        if at.n_below < 0:
            give_back(r, at.slot)
            continue
        small = make_children(r, at.node, at.n_below, at.gradient, at.curvature)
        if not may_split(r, other_child(r, small)):
            at.n_below = -1
            give_back(r, at.slot)
            continue
        slot = take_slot(r)
        at.n_below = slot
        below = r.node + r.node[at.node].child
        for side in range(2):
            if may_split(r, below + side):
                next_[n].node = <int32_t>(below + side - r.node)
                next_[n].slot = slot if below + side == small else at.slot
                n += 1
    return n


cdef inline void begin_levels(const Round* r) noexcept nogil:
    """Open the root."""
    cdef Py_ssize_t i
    r.state.leaves, r.state.free = 1, 0
    for i in range(r.n_slots - 1, 0, -1):
        give_back(r, <int32_t>i)
    r.open.node, r.open.slot = 0, 0
    r.state.open = may_split(r, r.node)


cdef inline void find_shared(const Round* r, Level* level) noexcept nogil:
    """Compute the pooled gains of all splits, and the best split of the level."""
    cdef Round* whole = <Round*>r
    cdef Masses at
    cdef Py_ssize_t f, i
    whole.level_score, whole.level_depth = 0.0, r.node[r.open.node].depth
    for i in range(r.state.open):
        if r.open[i].n_below >= 0:
            at = masses_of(r, r.node + r.open[i].node)
            whole.level_score += own_score(&at)
    for f in range(r.d if r.has_levels else 0):
        if r.set_place[f] >= 0 and not is_out(r, f):
            order_sets(r, f)
    do_all(r, level, GAIN)
    choose_shared(r, &level.shared)


cdef inline Py_ssize_t split_level(const Round* r) noexcept nogil:
    """Split the open nodes of a level and return their number of rows."""
    cdef Level level
    cdef Py_ssize_t i, n, rows = 0
    level.r = r
    level.is_pooled = r.node[r.open.node].depth >= r.pool_from
    for i in range(r.state.open):
        rows += r.node[r.open[i].node].stop - r.node[r.open[i].node].start
    if level.is_pooled:
        do_all(r, &level, LOOK)
        find_shared(r, &level)
    do_all(r, &level, CUT)
    n = open_level(r)
    if n > 0:
        do_all(r, &level, COUNT)
    for i in range(r.state.open):
        if r.open[i].n_below >= 0 and not may_split(r, smaller_child(r, r.node + r.open[i].node)):
            give_back(r, <int32_t>r.open[i].n_below)
    memcpy(r.open, r.open + r.n_slots, sizeof(Open) * n)
    r.state.open = <int32_t>n
    return rows
