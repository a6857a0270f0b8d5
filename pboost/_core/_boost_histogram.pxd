# Compute the histogram of a node of a boosted tree from its rows or by subtraction, or copy it.
from libc.string cimport memcpy, memset

from pboost._core._boost_round cimport (
    AHEAD, CELLS_PER_ROW, FAR_AHEAD, LANES, LOW_UNIT, NEAR_ROWS, Node, Round, curvature_in, gradient_in, is_any,
    is_packed, n_groups,
)
from pboost._core._team cimport close_post, load, lock, open_post, plus, unlock
from pboost._core.types cimport int32_t, int64_t


cdef inline int64_t word(double gradient, double curvature) noexcept nogil:
    return (<int64_t>gradient) * (<int64_t>1 << 32) + <int64_t>curvature


cdef inline void count_groups(
    const Round* r, Py_ssize_t first, Py_ssize_t last, const int32_t* rows, const int64_t* words,
    Py_ssize_t start, Py_ssize_t n, double* slot, bint packed, bint is_first
) noexcept nogil:
    """Add n rows, beginning at `start`, to the histograms of some groups of features.

    If `is_first` is true or the histogram is packed, overwrite the previous contents.
    """
    cdef Py_ssize_t g, ahead = LANES * start if rows == NULL else 0
    cdef double* masses
    for g in range(first, last):
        if not is_any(r, r.of_tree, g):
            continue
        masses = slot + r.group_place[g]
        if is_first and not packed:
            memset(masses, 0, sizeof(double) * 2 * LANES * <size_t>r.group_bins[g])
        r.passes.count(
            r.groups + g * LANES * r.n_rows + ahead, rows + start if rows != NULL else NULL,
            words + start, n, r.block, FAR_AHEAD if r.n_rows > NEAR_ROWS else AHEAD,
            <int>min(LANES, r.n_lanes - LANES * g), r.group_bins[g],
            <int64_t*>masses if packed else NULL, masses)


# Several threads compute a histogram together. Each thread takes a range of rows or, if there are few rows,
# a group of features.
cdef struct Count:
    const Round* r
    const int32_t* rows
    const int64_t* words
    double* slot
    Py_ssize_t n
    bint by_rows, packed
    int32_t next, n_parts, in_hand


cdef inline bint count_part(void* task, int who) noexcept nogil:
    cdef Count* count = <Count*>task
    cdef const Round* r = count.r
    cdef double* sums = r.masses + (r.n_slots + r.n_threads + who) * r.slot  # own histogram
    cdef Py_ssize_t k, g, i
    cdef bint did = False
    while load(&count.next) < count.n_parts:
        k = plus(&count.next, 1)
        if k >= count.n_parts:
            break
        if not count.by_rows:
            count_groups(
                r, k, k + 1, count.rows, count.words, 0, count.n, count.slot, count.packed, True)
        else:
            count_groups(
                r, 0, n_groups(r), count.rows, count.words, k * r.share,
                min(r.share, count.n - k * r.share), sums, False, not did)
        did = True
    if did and count.by_rows:
        lock(&count.in_hand)
        for g in range(n_groups(r)):
            if is_any(r, r.of_tree, g):
                for i in range(r.group_place[g], r.group_place[g] + 2 * LANES * r.group_bins[g]):
                    count.slot[i] += sums[i]
        unlock(&count.in_hand)
    return did


cdef inline void count_words(
    const Round* r, const Node* node, const int32_t* rows, const int64_t* words, double* slot
) noexcept nogil:
    cdef Count count
    cdef Py_ssize_t n = node.stop - node.start
    count.packed = is_packed(r, node)
    count.by_rows = n >= 2 * r.share and not count.packed
    if r.team == NULL or not (count.by_rows or (n * r.d >= CELLS_PER_ROW * r.share and n_groups(r) > 1)):
        count_groups(r, 0, n_groups(r), rows, words, 0, n, slot, count.packed, True)
        return
    count.r, count.rows, count.words, count.n, count.slot = r, rows, words, n, slot
    count.next = count.in_hand = 0
    count.n_parts = <int32_t>((n + r.share - 1) // r.share if count.by_rows else n_groups(r))
    if count.by_rows:
        memset(slot, 0, sizeof(double) * r.slot)
    open_post(r.team, 1 + r.who, count_part, &count)
    count_part(&count, r.who)
    close_post(r.team, 1 + r.who, r.who)


cdef inline Py_ssize_t spare_of(const Round* r, const Node* node) noexcept nogil:
    """Return the position of a node's rows in the work arrays, which is 0 with a single thread."""
    return node.start if r.n_threads > 1 else 0


# A histogram computed on a worker, in which the bins of a feature are `step` entries apart.
cdef struct Counted:
    const double* found
    Py_ssize_t lane, step, curvature


cdef inline void take_masses(
    const Round* r, const Node* node, double* slot, const Counted* all
) noexcept nogil:
    """Copy a histogram computed on a worker to a node."""
    cdef Py_ssize_t lane, b, g, cell, cells
    cdef double* masses
    cdef const double* found
    for g in range(n_groups(r)):
        masses, cells = slot + r.group_place[g], <Py_ssize_t>r.group_bins[g] * LANES
        memset(masses, 0, sizeof(double) * 2 * cells)
        for lane in range(g * LANES, min(r.n_lanes, (g + 1) * LANES) if all.found != NULL else 0):
            for b in range(r.group_bins[g]):
                cell = b * LANES + lane % LANES
                found = all.found + lane * all.lane + b * all.step
                if is_packed(r, node):
                    (<int64_t*>masses)[cell] = word(found[0], found[all.curvature])
                else:
                    masses[cell], masses[cells + cell] = found[0], found[all.curvature]


cdef inline void unpack_masses(const Round* r, const Node* node, double* slot) noexcept nogil:
    """Convert the histogram of a node to pairs of sums, which can be added over workers."""
    cdef Py_ssize_t g, cell, cells, lane
    cdef double* masses
    cdef int64_t* words
    for g in range(n_groups(r)):
        masses, cells = slot + r.group_place[g], <Py_ssize_t>r.group_bins[g] * LANES
        words = <int64_t*>masses
        for cell in range(cells if is_packed(r, node) else 0):
            masses[cells + cell] = curvature_in(words[cell])
            masses[cell] = gradient_in(words[cell])
        for lane in range(r.n_lanes - g * LANES, LANES):  # padding without a feature
            for cell in range(2 * r.group_bins[g]):
                masses[cell * LANES + lane] = 0.0


cdef inline void pack_masses(
    const Round* r, const Node* node, const double* found, double* slot
) noexcept nogil:
    """Copy a histogram made by `unpack_masses` to a node."""
    cdef Py_ssize_t g, cell, cells
    cdef const double* masses
    cdef int64_t* words
    if not is_packed(r, node):
        memcpy(slot, found, sizeof(double) * r.slot)
        return
    for g in range(n_groups(r)):
        masses, cells = found + r.group_place[g], <Py_ssize_t>r.group_bins[g] * LANES
        words = <int64_t*>(slot + r.group_place[g])
        for cell in range(cells):
            words[cell] = word(masses[cell], masses[cells + cell])


cdef inline void count_node(const Round* r, const Node* node, double* slot) noexcept nogil:
    """Compute the histogram of a node."""
    cdef const int32_t* rows = r.rows + node.start
    cdef Py_ssize_t i, n = node.stop - node.start
    cdef double* low = r.masses + (r.n_slots + r.who) * r.slot
    cdef int64_t* words = r.spare_packed + spare_of(r, node)
    if n == r.n_rows and node.depth == 0:
        rows = NULL  # all rows in order
    if r.low == NULL:
        count_words(r, node, rows, r.packed + node.start, slot)
        return
    for i in range(n):
        words[i] = r.packed[r.rows[node.start + i]]
    count_words(r, node, rows, words, slot)
    for i in range(n):
        words[i] = r.low[r.rows[node.start + i]]
    count_words(r, node, rows, words, low)
    for i in range(r.slot):
        slot[i] = slot[i] * LOW_UNIT + low[i]


cdef inline void subtract_child(
    const Round* r, const Node* node, const Node* small, const Node* large, double* slot,
    const double* part
) noexcept nogil:
    """Compute the histogram of the larger child: subtract `part`, the smaller child's, from the parent's.
    """
    cdef Py_ssize_t g
    cdef int n_packed = is_packed(r, node) + is_packed(r, small) + is_packed(r, large)
    for g in range(n_groups(r)):
        if is_any(r, r.of_tree, g):
            r.passes.subtract(
                slot + r.group_place[g], part + r.group_place[g],
                <Py_ssize_t>r.group_bins[g] * LANES, n_packed)
