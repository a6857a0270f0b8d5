# Gains of splits in each open node of a tree level, and their sums over these nodes.
#
# For a categorical feature, all nodes try the same sets of categories. Categories are sorted by the
# deviation of their gradients from the node mean, summed over all nodes. Gains are added in the order of
# the nodes, so that results do not depend on the number of threads.
from libc.math cimport NAN
from libc.string cimport memset

from pboost._core._boost_categories cimport Levels, kept_of, order_levels
from pboost._core._boost_round cimport (
    LANES, Lane, Lanes, Masses, Node, Round, bundled_below, is_any, is_packed, kind_of, masses_of,
    n_groups, own_score, pool_gains, read_lane,
)
from pboost._core._boost_search cimport find_missing
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS

# The sets of categories that are tried for a feature: first prefixes of the order, then single categories.
# Each set is tried with missing values on the right, then on the left. `kept` is the fraction of the gain
# that remains after smoothing.
cdef struct Sets:
    Levels levels
    double[4 * MAX_BINS] kept


cdef inline Py_ssize_t half_slot(const Round* r) noexcept nogil:
    """Return the position of the gains of numerical splits that send missing values to the left."""
    return r.slot // 2


cdef inline bint has_holes(const Round* r, Py_ssize_t g) noexcept nogil:
    """Return whether a group of features includes a numerical feature with missing values."""
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
    """Compute the gains of the splits by bundled features."""
    return gains + r.n_gains - r.n_bundled


cdef inline float gain_of(
    const Masses* at, double own, double gradient, double curvature, double kept
) noexcept nogil:
    """Return the gain of a split times the square of `kept`, or NaN if a child is too small."""
    cdef double other = at.gradient - gradient, rest = at.curvature - curvature, below, above
    if not (curvature >= at.least and rest >= at.least):
        return NAN
    below, above = curvature + at.l2, rest + at.l2
    return <float>(kept * kept * (
        (gradient * gradient * above + other * other * below) / (below * above) - own))


# ---------------------------------------------------------------------------------------------
# Sets of categories.

cdef inline void order_sets(const Round* r, Py_ssize_t f) noexcept nogil:
    """Sort the categories of a feature by their gradients in all open nodes."""
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
    """Compute the fraction of each set's gain that remains after smoothing."""
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
    """Compute the gains of a feature's category sets in a node (OUT gains)."""
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
# Gains of all splits.

cdef inline bint has_own(const Round* r) noexcept nogil:
    """Return whether the gain of a split in its own node is combined with its pooled gain."""
    return r.pooling < 1


cdef inline float* gains_of(const Round* r, Py_ssize_t i) noexcept nogil:
    """Return the stored gains of an open node, or NULL if gains are not stored."""
    return r.gains + i * r.n_gains if has_own(r) else NULL


cdef inline void gain_group(const Round* r, Py_ssize_t g) noexcept nogil:
    """Compute the gains of a group's numerical splits in each open node, and sum them over the nodes."""
    cdef double[2 * LANES] below
    cdef bint[LANES] some
    cdef const Node* node
    cdef const double* slot
    cdef Masses at
    cdef Lanes lanes
    cdef Py_ssize_t i, turn, place, size = LANES * r.group_bins[g]
    cdef float* gains
    for turn in range(2 if has_holes(r, g) else 1):
        place = r.group_place[g] // 2 + turn * half_slot(r)
        memset(r.pool + place, 0, sizeof(float) * size)
        for i in range(r.state.open):
            if r.open[i].n_below < 0:
                continue
            node, slot = r.node + r.open[i].node, r.masses + r.open[i].slot * r.slot
            at, gains = masses_of(r, node), gains_of(r, i)
            memset(below, 0, sizeof(below))
            if turn:
                find_missing(r, node, slot, g, below, some)
            lanes.masses, lanes.below, lanes.bins = slot + r.group_place[g], below, r.group_bins[g]
            r.passes.gain(
                &lanes, is_packed(r, node), &at, own_score(&at), gains + place if gains != NULL else NULL,
                r.pool + place)


cdef inline void gain_levels(const Round* r, Py_ssize_t f) noexcept nogil:
    """Compute the gains of a feature's sets of categories in each open node, and sum them over the nodes.
    """
    cdef float[4 * MAX_BINS] found
    cdef const Node* node
    cdef Masses at
    cdef Py_ssize_t i, place = r.set_place[f], size = 4 * r.n_bins[f]
    cdef float* gains
    memset(r.pool + place, 0, sizeof(float) * size)
    for i in range(r.state.open):
        if r.open[i].n_below < 0:
            continue
        node, gains = r.node + r.open[i].node, gains_of(r, i)
        at, gains = masses_of(r, node), &found[0] if gains == NULL else gains + place
        gain_sets(r, node, &at, own_score(&at), r.masses + r.open[i].slot * r.slot, f, gains)
        pool_gains(gains, size, r.pool + place)


cdef inline float gain_of_bundled(
    const Round* r, const Node* node, const double* slot, Py_ssize_t f
) noexcept nogil:
    cdef Masses at = masses_of(r, node)
    cdef double gradient, curvature
    bundled_below(r, node, slot, f, &gradient, &curvature)
    return gain_of(&at, own_score(&at), gradient, curvature, 1.0)


cdef inline void gain_bundled(const Round* r) noexcept nogil:
    """Compute the gains of bundled features in each open node, and sum them over the nodes."""
    cdef float* pool = bundles_in(r, r.pool)
    cdef float* gains
    cdef float gain
    cdef Py_ssize_t i, k
    memset(pool, 0, sizeof(float) * r.n_bundled)
    for i in range(r.state.open):
        if r.open[i].n_below < 0:
            continue
        gains = gains_of(r, i)
        for k in range(r.n_bundled):
            if is_out(r, r.bundled[k]):
                continue
            gain = gain_of_bundled(
                r, r.node + r.open[i].node, r.masses + r.open[i].slot * r.slot, r.bundled[k])
            if gains != NULL:
                bundles_in(r, gains)[k] = gain
            pool_gains(&gain, 1, pool + k)


cdef inline Py_ssize_t n_parts(const Round* r) noexcept nogil:
    """Return the number of parts of the search: groups of features, categorical features, and bundles."""
    return n_groups(r) + (r.d if r.has_levels else 0) + (r.n_bundled > 0)


cdef inline void find_gains(const Round* r, Py_ssize_t part) noexcept nogil:
    """Compute the gains of one part in each open node, and sum them in the order of the nodes."""
    cdef Py_ssize_t f = part - n_groups(r)
    if f < 0:
        if is_any(r, r.of_tree, part):
            gain_group(r, part)
    elif r.has_levels and f < r.d:
        if r.set_place[f] >= 0 and not is_out(r, f):
            gain_levels(r, f)
    else:
        gain_bundled(r)
