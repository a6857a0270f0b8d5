# Growth of a boosted tree level by level, its nodes cut by what a cut gains in all nodes of the level.
#
# Cuts of a node are compared by the share of their gain in all open nodes of its level together that
# counts, and by the rest of their gain in the node. Of a column of levels all nodes try the same sets:
# levels are put in order by how much their gradients depart, in all nodes together, from those that rows
# of their nodes would have. Gains are summed in the order of the nodes, whoever finds them.
from libc.math cimport INFINITY, NAN
from libc.string cimport memcpy, memset

from pboost._core._boost_best cimport give_back, take_slot
from pboost._core._boost_grow cimport (
    cut_node, make_children, may_split, note_cut, other_child, part_node, take_place,
)
from pboost._core._boost_levels cimport Levels, kept_of, note_set, order_levels, spread_of
from pboost._core._boost_round cimport (
    Cut, LANES, Lane, Lanes, Masses, Node, Open, PooledCuts, Round, bundled_below, count_node,
    is_any, is_packed, is_pure, kind_of, masses_of, n_groups, own_score, pool_gains, read_lane,
    subtract_child,
)
from pboost._core._boost_search cimport find_missing
from pboost._core._team cimport close_post, help, load, open_post, plus
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, uint64_t

# The sets of a column that are tried: beginnings of the order, then single levels, with missing rows above,
# then below; as much of their gain counts as smoothed levels leave.
cdef struct Sets:
    Levels levels
    double[4 * MAX_BINS] kept

# A level of the tree, whose open nodes threads share: what is done to them next.
cdef enum Task:
    LOOK, GAIN, CUT, COUNT

cdef struct Level:
    const Round* r
    Task task
    bint is_pooled
    int32_t n, next


cdef inline Py_ssize_t half_slot(const Round* r) noexcept nogil:
    """The gains of the cuts of numbers with missing rows on one side."""
    return r.slot // 2


cdef inline bint has_holes(const Round* r, Py_ssize_t g) noexcept nogil:
    """Whether there are numbers with holes in a group."""
    cdef Py_ssize_t k, f
    if r.special == NULL:
        return False
    for k in range(min(LANES, r.n_lanes - LANES * g)):
        f = r.column[LANES * g + k]
        if f >= 0 and r.special[f] == HOLES:
            return True
    return False


cdef inline bint is_out(const Round* r, Py_ssize_t f) noexcept nogil:
    return r.of_tree != NULL and not r.of_tree[f]


cdef inline Sets* sets_of(const Round* r, Py_ssize_t f) noexcept nogil:
    return <Sets*>(r.sets + f * <Py_ssize_t>sizeof(Sets))


cdef inline float* bundles_in(const Round* r, float* gains) noexcept nogil:
    """Where the gains of columns of bundles stand."""
    return gains + r.n_gains - r.n_bundled


cdef inline float gain_of(
    const Masses* at, double own, double gradient, double curvature, double kept
) noexcept nogil:
    """What the cut with these sums below gains, of which `kept` squared counts; NaN if a side has too
    little."""
    cdef double other = at.gradient - gradient, rest = at.curvature - curvature, below, above
    if not (curvature >= at.least and rest >= at.least):
        return NAN
    below, above = curvature + at.l2, rest + at.l2
    return <float>(kept * kept * (
        (gradient * gradient * above + other * other * below) / (below * above) - own))


# ---------------------------------------------------------------------------------------------
# Sets of levels.

cdef inline void order_sets(const Round* r, Py_ssize_t f) noexcept nogil:
    """Put the levels of a column in order, by the open nodes together."""
    cdef Sets* sets = sets_of(r, f)
    cdef Levels* levels = &sets.levels
    cdef Lane lane, all
    cdef Node whole
    cdef const Node* node
    cdef Py_ssize_t hole = r.n_bins[f], i, l
    cdef double step
    memset(&whole, 0, sizeof(Node))
    memset(&all, 0, sizeof(Lane))
    for i in range(r.state.open):
        if r.open[i].n_below < 0:
            continue
        node = r.node + r.open[i].node
        read_lane(r, node, r.masses + r.open[i].slot * r.slot, f, &lane)
        step = node.gradient / node.curvature
        for l in range(hole + (kind_of(r, f) & HOLES)):
            all.gradient[l] += lane.gradient[l] - lane.curvature[l] * step
            all.curvature[l] += lane.curvature[l]
        whole.curvature += node.curvature
        whole.spread += node.spread
        whole.stop += node.stop - node.start
    order_levels(r, &whole, all.gradient, all.curvature, hole, levels)
    levels.missing = all.gradient[hole] if kind_of(r, f) & HOLES else 0.0
    levels.all = levels.missing
    for i in range(levels.n):
        levels.all += levels.apart[i]
    keep_sets(r, f, &whole, &all, sets)


cdef inline void keep_sets(
    const Round* r, Py_ssize_t f, const Node* whole, const Lane* all, Sets* sets
) noexcept nogil:
    """How much of the gain of each set counts."""
    cdef const Levels* levels = &sets.levels
    cdef Py_ssize_t n_bins = r.n_bins[f], turn, i, l
    cdef Masses at = masses_of(r, whole)
    cdef double* kept
    cdef double gl, hl, left
    for turn in range(2):
        kept = sets.kept + 2 * n_bins * turn
        gl, hl, left = 0.0, 0.0, 0.0
        if turn and kind_of(r, f) & HOLES:
            gl, hl, left = all.gradient[n_bins], all.curvature[n_bins], levels.missing
        for i in range(levels.n):
            l = levels.level[i]
            gl += all.gradient[l]
            hl += all.curvature[l]
            left += levels.apart[i]
            kept[i] = 1.0
            if levels.pull > 0.0 and i < levels.n - 1:
                kept[i] = kept_of(&at, levels, gl, hl, left)
        for i in range(levels.n if levels.pull > 0.0 else 0):
            l = levels.level[i]
            kept[n_bins + i] = kept_of(
                &at, levels, gl - all.gradient[l], hl - all.curvature[l], left - levels.apart[i])


cdef inline void gain_sets(
    const Round* r, const Node* node, const Masses* at, double own, const double* slot, Py_ssize_t f,
    float* gains
) noexcept nogil:
    """OUT: what the sets of a column of levels gain in a node."""
    cdef const Sets* sets = sets_of(r, f)
    cdef const Levels* levels = &sets.levels
    cdef Py_ssize_t n_bins = r.n_bins[f], turn, i, l
    cdef const double* kept
    cdef Lane lane
    cdef double gl, hl
    for i in range(4 * n_bins):
        gains[i] = NAN
    read_lane(r, node, slot, f, &lane)
    for turn in range(2 if kind_of(r, f) & HOLES else 1):
        kept = sets.kept + 2 * n_bins * turn
        gl = lane.gradient[n_bins] if turn else 0.0
        hl = lane.curvature[n_bins] if turn else 0.0
        for i in range(levels.n):
            gl += lane.gradient[levels.level[i]]
            hl += lane.curvature[levels.level[i]]
            gains[i] = gain_of(at, own, gl, hl, kept[i])
        for i in range(levels.n if levels.pull > 0.0 else 0):
            l = levels.level[i]
            gains[n_bins + i] = gain_of(
                at, own, gl - lane.gradient[l], hl - lane.curvature[l], kept[n_bins + i])
        gains += 2 * n_bins


# ---------------------------------------------------------------------------------------------
# Gains of all cuts.

cdef inline void look_at(const Round* r, Open* at) noexcept nogil:
    """Find out whether a node is to be cut: -1 rows below say that it is not."""
    cdef Node* node = r.node + at.node
    at.n_below = -1 if is_pure(r, node) else 0
    if r.has_levels and r.level_smoothing > 0.0 and at.n_below == 0:
        node.spread = spread_of(r, node)


cdef inline void find_gains(const Round* r, const Open* open_, float* gains) noexcept nogil:
    cdef const Node* node = r.node + open_.node
    cdef const double* slot = r.masses + open_.slot * r.slot
    cdef double[2 * LANES] below
    cdef bint[LANES] some
    cdef Masses at = masses_of(r, node)
    cdef double own = own_score(&at), gradient, curvature
    cdef bint packed = is_packed(r, node)
    cdef Lanes lanes
    cdef Py_ssize_t g, f, i
    for g in range(n_groups(r)):
        if not is_any(r, r.of_tree, g):
            continue
        memset(below, 0, sizeof(below))
        lanes.masses, lanes.below, lanes.bins = slot + r.group_place[g], below, r.group_bins[g]
        r.passes.gain(&lanes, packed, &at, own, gains + r.group_place[g] // 2)
        if has_holes(r, g):
            find_missing(r, node, slot, g, below, some)
            r.passes.gain(&lanes, packed, &at, own, gains + half_slot(r) + r.group_place[g] // 2)
    for f in range(r.d if r.has_levels else 0):
        if r.set_place[f] >= 0 and not is_out(r, f):
            gain_sets(r, node, &at, own, slot, f, gains + r.set_place[f])
    for i in range(r.n_bundled):
        if not is_out(r, r.bundled[i]):
            bundled_below(r, node, slot, r.bundled[i], &gradient, &curvature)
            bundles_in(r, gains)[i] = gain_of(&at, own, gradient, curvature, 1.0)


cdef inline void pool_all(const Round* r) noexcept nogil:
    """Sum the gains of all open nodes."""
    cdef const float* gains
    cdef Py_ssize_t i, g, f, place
    memset(r.pool, 0, sizeof(float) * r.n_gains)
    for i in range(r.state.open):
        if r.open[i].n_below < 0:
            continue
        gains = r.gains + i * r.n_gains
        for g in range(n_groups(r)):
            if is_any(r, r.of_tree, g):
                place = r.group_place[g] // 2
                pool_gains(gains + place, LANES * (r.group_bins[g] - 1), r.pool + place)
                if has_holes(r, g):
                    place += half_slot(r)
                    pool_gains(gains + place, LANES * (r.group_bins[g] - 1), r.pool + place)
        for f in range(r.d if r.has_levels else 0):
            if r.set_place[f] >= 0 and not is_out(r, f):
                pool_gains(gains + r.set_place[f], 4 * r.n_bins[f], r.pool + r.set_place[f])
        if r.n_bundled:
            place = r.n_gains - r.n_bundled
            pool_gains(gains + place, r.n_bundled, r.pool + place)


# ---------------------------------------------------------------------------------------------
# The cut of a node.

# The best cut so far: its value, and what it gains in the node.
cdef struct Best:
    float value, gain
    Cut cut


cdef inline bint is_better(const Best* best, float value, Py_ssize_t f) noexcept nogil:
    """Of equal cuts that of the lower column is better, then the earlier one."""
    cdef Py_ssize_t other = best.cut.feature
    return value > best.value or (value == best.value and f < other)


cdef inline bint take(
    Best* best, float value, float gain, Py_ssize_t f, int32_t bin_, int32_t missing
) noexcept nogil:
    if not is_better(best, value, f):
        return False
    best.value, best.gain = value, gain
    best.cut.feature, best.cut.bin, best.cut.missing = <int32_t>f, bin_, missing
    best.cut.is_set = False
    return True


cdef inline void choose_number(
    const Round* r, const Node* node, const double* slot, Py_ssize_t g, const float* gains, Best* best
) noexcept nogil:
    """The best cut of the numbers of a group."""
    cdef double[2 * LANES] below
    cdef bint[LANES] some
    cdef PooledCuts cuts
    cdef Py_ssize_t turn, k, f, at, place = r.group_place[g] // 2
    find_missing(r, node, slot, g, below, some)
    for turn in range(2 if has_holes(r, g) else 1):
        r.passes.pooled(gains + place, r.pool + place, r.group_bins[g], r.pooling, &cuts)
        for k in range(min(LANES, r.n_lanes - LANES * g)):
            f = r.column[LANES * g + k]
            if f < 0 or cuts.bin[k] < 0 or is_out(r, f) or kind_of(r, f) & LEVELS or (
                    turn and not kind_of(r, f)):
                continue
            at = place + LANES * <Py_ssize_t>cuts.bin[k] + k
            take(
                best, cuts.value[k], gains[at], f, cuts.bin[k], <int32_t>(1 - turn) if some[k] else -1)
        place += half_slot(r)


cdef inline void choose_set(
    const Round* r, const Node* node, const double* slot, Py_ssize_t f, const float* gains,
    const float* pool, Best* best
) noexcept nogil:
    """The best set of a column of levels; above are those of the levels that the node has."""
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
                best, (<float>1.0 - r.pooling) * gains[c] + r.pooling * pool[c], gains[c], f, -1, missing):
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
    cdef const float* of_bundles = bundles_in(r, <float*>gains)
    cdef const float* in_pool = bundles_in(r, r.pool)
    cdef Py_ssize_t g, f, i
    best.value, best.cut.feature = -INFINITY, -1
    for g in range(n_groups(r)):
        if is_any(r, r.of_tree, g):
            choose_number(r, node, slot, g, gains, best)
    for f in range(r.d if r.has_levels else 0):
        if r.set_place[f] >= 0 and not is_out(r, f):
            choose_set(
                r, node, slot, f, gains + r.set_place[f], r.pool + r.set_place[f], best)
    for i in range(r.n_bundled):
        if not is_out(r, r.bundled[i]):
            take(
                best, (<float>1.0 - r.pooling) * of_bundles[i] + r.pooling * in_pool[i], of_bundles[i],
                r.bundled[i], 0, -1)


cdef inline bint cut_pooled(const Round* r, Open* at, const float* gains) noexcept nogil:
    """Find the cut of a node and part its rows; False if it stays a leaf."""
    cdef Node* node = r.node + at.node
    cdef const double* slot = r.masses + at.slot * r.slot
    cdef bint is_last = node.depth + 1 == r.max_depth
    cdef Best best
    choose(r, node, slot, gains, &best)
    if best.cut.feature < 0:
        return False
    if best.gain < r.min_gain:
        return False
    node.loss = best.gain
    note_cut(r, node, &best.cut, slot, &at.gradient, &at.curvature)
    at.n_below = part_node(r, node, not is_last)
    if min(at.n_below, node.stop - node.start - at.n_below) >= r.min_leaf:
        return True
    # Too few rows: the best cut of its own that leaves enough.
    node.feature = node.low = node.high = -1
    return cut_alone(r, at)


cdef inline bint cut_alone(const Round* r, Open* at) noexcept nogil:
    """As `cut_pooled`, by what cuts gain in the node."""
    cdef Node* node = r.node + at.node
    cdef Py_ssize_t n_below = 0
    cdef bint is_cut = cut_node(
        r, node, r.masses + at.slot * r.slot, node.depth + 1 == r.max_depth, &n_below, &at.gradient,
        &at.curvature)
    at.n_below = n_below
    return is_cut


# ---------------------------------------------------------------------------------------------
# Levels.

cdef inline void do_task(const Round* r, const Level* level, Py_ssize_t i) noexcept nogil:
    cdef Open* at = r.open + i
    cdef Node* node = r.node + at.node
    cdef Node* small
    cdef double* slot = r.masses + at.slot * r.slot
    cdef float* gains = r.gains + i * r.n_gains
    if level.task == LOOK:
        look_at(r, at)
    elif level.task == GAIN:
        if not r.has_levels:
            look_at(r, at)
        if at.n_below == 0:
            find_gains(r, at, gains)
    elif level.task == CUT:
        if level.is_pooled and (at.n_below < 0 or not cut_pooled(r, at, gains)):
            at.n_below = -1
        elif not level.is_pooled and not cut_alone(r, at):
            at.n_below = -1
    elif at.n_below >= 0:  # the slot of the smaller child
        small = smaller_child(r, node)
        count_node(r, small, r.masses + at.n_below * r.slot)
        subtract_child(r, node, small, other_child(r, small), slot, r.masses + at.n_below * r.slot)


cdef inline bint level_part(void* task, int who) noexcept nogil:
    """Do something to open nodes as long as there are some."""
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
    level.task, level.next, level.n = task, 0, r.state.open
    if r.team != NULL and level.n > 1:
        open_post(r.team, 0, level_part, level)
    level_part(level, 0)
    if r.team != NULL and level.n > 1:
        close_post(r.team, 0, 0)


cdef inline Node* smaller_child(const Round* r, const Node* node) noexcept nogil:
    cdef Node* below = r.node + node.child
    return below + (below.stop - below.start > node.stop - below.stop)


cdef inline Py_ssize_t open_level(const Round* r) noexcept nogil:
    """Make the children of the nodes that are cut, and give those to be opened a slot; returns how many
    these are. They stand behind the nodes of this level, whose `n_below` is the slot of the smaller child,
    -1 where none is counted."""
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


cdef inline Py_ssize_t split_level(const Round* r) noexcept nogil:
    """Split the open nodes of a level; returns the number of their rows."""
    cdef Level level
    cdef Py_ssize_t i, f, n, rows = 0
    level.r = r
    level.is_pooled = r.node[r.open.node].depth >= r.pool_from
    for i in range(r.state.open):
        rows += r.node[r.open[i].node].stop - r.node[r.open[i].node].start
    if level.is_pooled:
        if r.has_levels:
            do_all(r, &level, LOOK)
            for f in range(r.d):
                if r.set_place[f] >= 0 and not is_out(r, f):
                    order_sets(r, f)
        do_all(r, &level, GAIN)
        pool_all(r)
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
