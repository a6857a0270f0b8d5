"""AdaBoost.MH: rows have one weight per class, and the score of a split depends on all classes.

On the path from the root to a node of a tree, the weights for a class are multiplied by two factors: one
for the rows of the class, and one for all other rows. So a node needs only sums of the root weights. For
each class and each bin of a feature, these are the weight T of all rows and the weight P of the rows of the
class. Sums are integers, so sums and differences are exact in any order. If P or T - P is 0 at a node, the
class adds 0 to every score and is omitted.

Arrays: codes (d, n): bin of each row in each feature; weight (n, width) float64: one per class, then 0;
`scale` times the weights are rounded to integers; label (n,): the class; rows (m,): the rows at a node;
used (k,): the classes that are not omitted. Classes are stored in lanes of vector registers, and lanes in
blocks, see `lanes_of`. sums (d, 2, size) contains T as [block][bin][lane] and P as [class][bin]. In T, the
lane after the last class contains the number of rows. See multiclass_simd.h.
"""
from libc.math cimport INFINITY, rint
from libc.string cimport memset

from pboost._core._insertion_sort cimport insert_by_key
from pboost._core._fixed cimport LEAST_WEIGHT
from pboost._core._segment cimport partition_by_code
from pboost._core._team cimport run_ranges, team_at
from pboost._core.types cimport HOLES, LEVELS, int32_t, int64_t, is_tied, row_of, uint8_t

cdef extern from "multiclass_simd.h" nogil:
    enum:
        WIDE "PBOOST_WIDE"
        NARROW "PBOOST_NARROW"
    ctypedef struct Held "pboost_held_rows":
        pass
    ctypedef struct Rows "pboost_label_rows":
        const uint8_t* codes
        Py_ssize_t n_codes
        const int32_t* rows
        Py_ssize_t n
        const double* weight
        Py_ssize_t width
        const int32_t* label
        double scale
        const int32_t* used
        const int32_t* place
        Py_ssize_t k
        int64_t* sums
        Py_ssize_t bins, blocks, lanes
    ctypedef struct Node "pboost_label_node":
        Py_ssize_t k, blocks, lanes, bins
        const int64_t* whole
        const double* for_it
        const double* against
        const double* both
        double min_mass
        int64_t min_count
    ctypedef struct Passes "pboost_label_passes":
        void add_up(const Rows* of, Py_ssize_t first, Py_ssize_t last, Held* held) noexcept nogil
        void add_slots(const Rows* of, const uint8_t* slots, Held* held) noexcept nogil
        void bound(
            const Node* at, const int64_t* sums, Py_ssize_t n, int64_t* left, double* bound) noexcept nogil
        void score(
            const Node* at, const int64_t* sums, Py_ssize_t n, int64_t* left, double* score) noexcept nogil
        # The function has another name here, because `pass` is a Python keyword.
        void take "pass"(
            const int32_t* rows, Py_ssize_t n, const int32_t* label, const double* for_it,
            double* factor, double least, double scale, double* weight, Py_ssize_t width,
            const int64_t* start, int64_t* all_, int64_t* own, int64_t* by_class) noexcept nogil
    Passes choose_passes "pboost_choose_label_passes"(int level)

cdef Passes passes = choose_passes(2)


def use_simd_level(int level):
    """Choose the SIMD instructions for tests: 0 for baseline, 1 for AVX2 or 2 for AVX-512."""
    global passes
    passes = choose_passes(level)


def lanes_of(Py_ssize_t k):
    """Return the number of blocks and the number of lanes per block for k classes."""
    cdef Py_ssize_t lanes = NARROW if k < NARROW else WIDE
    return k // lanes + 1, lanes


# The task of threads that compute sums together: the rows, and the number of the first feature.
cdef struct Columns:
    Rows rows
    Py_ssize_t first


cdef void add_up_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Columns* all_ = <Columns*>task
    cdef Held held
    passes.add_up(&all_.rows, all_.first + start, all_.first + stop, &held)


def add_up(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, const double[:, ::1] weight,
    const int32_t[::1] label, double scale, const int32_t[::1] used, const int32_t[::1] place,
    int64_t[:, :, ::1] sums, Py_ssize_t first, Py_ssize_t last, size_t team=0,
):
    """Compute the sums of the features first..last-1.

    IN used: the classes, in the order of the lanes; place (J,): the lane of each class, -1 if it is
    omitted; team: address of the threads that process the features.
    """
    cdef Columns all_
    cdef Py_ssize_t J = place.shape[0], k = used.shape[0], n = codes.shape[1], n_parts = last - first, step
    cdef Py_ssize_t blocks, lanes
    blocks, lanes = lanes_of(k)
    if (not 0 <= first <= last <= codes.shape[0] or sums.shape[0] != codes.shape[0] or sums.shape[1] != 2
            or sums.shape[2] % (blocks * lanes) or weight.shape[0] != n or label.shape[0] != n
            or weight.shape[1] < blocks * lanes or k > J):
        raise ValueError("add_up: arrays of different sizes")
    if first == last or n == 0 or k == 0:
        return
    all_.first = first
    all_.rows.codes, all_.rows.n_codes, all_.rows.n = &codes[0, 0], n, rows.shape[0]
    all_.rows.rows = &rows[0] if rows.shape[0] else NULL
    all_.rows.weight, all_.rows.width, all_.rows.label = &weight[0, 0], weight.shape[1], &label[0]
    all_.rows.scale, all_.rows.k, all_.rows.place = scale, k, &place[0]
    all_.rows.used = &used[0] if k < J else NULL
    all_.rows.bins, all_.rows.blocks, all_.rows.lanes = sums.shape[2] // (blocks * lanes), blocks, lanes
    all_.rows.sums = &sums[0, 0, 0]
    with nogil:
        step = n_parts if team == 0 else (n_parts - 1) // team_at(team).n_threads + 1
        run_ranges(team_at(team), 0, n_parts, step, add_up_part, &all_)


def take(
    const int32_t[::1] rows, const int32_t[::1] label, double[:, ::1] factor, double scale,
    double[:, ::1] weight, const int64_t[::1] start, int64_t[:, ::1] found,
):
    """Multiply the weights of listed rows by factors, and sum the new weights.

    IN factor (2, width): for the rows of a class, and for all other rows; (0, width) for no factors; start
    (n,): starting weights, in fixed point. INOUT weight; found (3, width): three sums per class are added:
    the weights of all rows, the weights of the rows of the class, and the starting weights of the rows of
    the class.
    """
    cdef Py_ssize_t n = weight.shape[0], width = weight.shape[1]
    cdef double* by = NULL
    if (label.shape[0] != n or start.shape[0] != n or found.shape[0] != 3 or found.shape[1] != width
            or factor.shape[1] != width or factor.shape[0] not in (0, 2) or (width != NARROW and width % WIDE)):
        raise ValueError("take: arrays of different sizes")
    if rows.shape[0] == 0 or width == 0:
        return
    if factor.shape[0]:
        by = &factor[0, 0]
    with nogil:
        passes.take(
            &rows[0], rows.shape[0], &label[0], by, by + width if by != NULL else NULL, LEAST_WEIGHT, scale,
            &weight[0, 0], width, &start[0], &found[0, 0], &found[1, 0], &found[2, 0])


cdef void begin(
    const Node* at, const int64_t* sums, Py_ssize_t b, Py_ssize_t missing, int64_t* left
) noexcept nogil:
    """Sum the bins below bin b of a feature. OUT left (2, width); missing: another bin to include, or -1.
    """
    cdef Py_ssize_t width = at.blocks * at.lanes, l, c
    cdef const int64_t* of_all
    cdef const int64_t* own
    for l in range(width):
        of_all, own = sums + l // at.lanes * at.bins * at.lanes + l % at.lanes, sums + (width + l) * at.bins
        left[l] = of_all[missing * at.lanes] if missing >= 0 else 0
        left[width + l] = own[missing] if missing >= 0 else 0
        for c in range(b):
            left[l] += of_all[c * at.lanes]
            left[width + l] += own[c]


def search(
    const int64_t[:, :, ::1] sums, const int32_t[::1] n_bins, Py_ssize_t k, const int64_t[:, ::1] whole,
    const double[:, ::1] factor, double min_mass, int64_t min_count, double[:, :, ::1] found,
    Py_ssize_t first, Py_ssize_t last, const uint8_t[::1] special=None, double[:, :, ::1] bound=None,
):
    """Score the splits of the features first..last-1, for k classes. Categorical features are omitted.

    A score is half the sum of square roots over all classes and both children, as in Schapire & Singer. IN
    whole (2, width): T and P of the node; factor (3, width): for the rows of a class, for all other rows,
    and the square root of the product of both; 0 for unused lanes. OUT found (d, 1 or 2, bins): the score
    of the split above each bin, infinite if there is none. With missing values, the first scores are for
    missing values on the right, and the second for missing values on the left. OUT bound, of the same
    shape: a lower bound for the splits inside the bin.
    """
    cdef Node at
    cdef Py_ssize_t blocks, lanes, width = whole.shape[1], bins = found.shape[2], looks = found.shape[1]
    cdef Py_ssize_t f, l, look, known, n_cuts
    cdef int64_t[:, ::1] left = memoryview(bytearray(16 * max(width, 1))).cast("q", (2, max(width, 1)))
    cdef const int64_t* cell
    cdef bint is_missing
    blocks, lanes = lanes_of(k)
    if (not 0 <= first <= last <= sums.shape[0] or width != blocks * lanes or whole.shape[0] != 2
            or sums.shape[1] != 2 or sums.shape[2] != width * bins or factor.shape[0] != 3
            or factor.shape[1] != width or found.shape[0] != sums.shape[0] or n_bins.shape[0] != sums.shape[0]
            or (special is None) != (looks == 1)
            or (bound is not None and (bound.shape[0], bound.shape[1], bound.shape[2]) != (
                found.shape[0], looks, bins))):
        raise ValueError("search: arrays of different sizes")
    at.k, at.blocks, at.lanes, at.bins = k, blocks, lanes, bins
    at.whole, at.min_mass, at.min_count = &whole[0, 0], min_mass, min_count
    at.for_it, at.against, at.both = &factor[0, 0], &factor[1, 0], &factor[2, 0]
    with nogil:
        for f in range(first, last):
            known, is_missing, cell = n_bins[f], False, &sums[f, 0, 0]
            for look in range(looks):
                for l in range(bins):
                    found[f, look, l] = INFINITY
                    if bound is not None:
                        bound[f, look, l] = INFINITY
            if special is not None:
                if special[f] & LEVELS:
                    continue
                is_missing = special[f] & HOLES and cell[(k // lanes * bins + known) * lanes + k % lanes] > 0
            for look in range(2 if is_missing else 1):
                begin(&at, cell, 0, known if look > 0 else -1, &left[0, 0])
                # After the last bin, there is a split only if missing values go to the right.
                n_cuts = known if is_missing and look == 0 else known - 1
                passes.score(&at, cell, n_cuts, &left[0, 0], &found[f, look, 0])
                if bound is not None:
                    begin(&at, cell, 0, known if look > 0 else -1, &left[0, 0])
                    passes.bound(&at, cell, known, &left[0, 0], &bound[f, look, 0])


cdef void order_levels(
    const Node* at, const int64_t* sums, Py_ssize_t j, const int32_t* here, Py_ssize_t n, double smoothing,
    double* share, int32_t* order,
) noexcept nogil:
    """Sort n categories by their share of class j; equal shares keep their order.

    Shares are rounded to multiples of 2**-40, so that rounding errors do not break ties. OUT order:
    positions in `here`.
    """
    cdef Py_ssize_t width = at.blocks * at.lanes, i
    cdef const int64_t* of_all = sums + j // at.lanes * at.bins * at.lanes + j % at.lanes
    cdef const int64_t* own = sums + (width + j) * at.bins
    cdef double of_node = at.for_it[j] * <double>at.whole[width + j], mass, pull, yes, found
    mass = of_node + at.against[j] * <double>(at.whole[j] - at.whole[width + j])
    pull = smoothing * mass / <double>at.whole[at.k]
    if mass > 0.0:  # without weight, the share of the class is 0
        of_node /= mass
    for i in range(n):
        yes = at.for_it[j] * <double>own[here[i]]
        mass = yes + at.against[j] * <double>(of_all[here[i] * at.lanes] - own[here[i]])
        found = rint((yes + pull * of_node) / max(mass + pull, 1e-300) * 1099511627776.0)
        insert_by_key(share, order, i, found, <int32_t>i)


cdef void put_in_order(
    const Node* at, const int64_t* sums, const int32_t* here, const int32_t* order, Py_ssize_t n, int64_t* cells
) noexcept nogil:
    """Copy the sums of n categories in a given order, as if they were bins."""
    cdef Py_ssize_t width = at.blocks * at.lanes, l, i
    for l in range(width):
        for i in range(n):
            cells[(l // at.lanes * n + i) * at.lanes + l % at.lanes] = sums[
                (l // at.lanes * at.bins + here[order[i]]) * at.lanes + l % at.lanes]
            cells[(width + l) * n + i] = sums[(width + l) * at.bins + here[order[i]]]


def search_levels(
    const int64_t[:, ::1] sums, Py_ssize_t n_levels, Py_ssize_t k, const int64_t[:, ::1] whole,
    const double[:, ::1] factor, double min_mass, int64_t min_count, double smoothing, bint has_holes,
    int32_t[::1] here, int32_t[:, ::1] order, double[::1] score,
):
    """Score the splits of a categorical feature, for k classes.

    For each class, the categories at the node are sorted by their share of the class, and each prefix is
    tried as the left child. With smoothing, each single category is also tried. IN sums (2, size) of the
    feature; whole, factor, min_mass, min_count as in `search`; has_holes: whether the bin after the
    categories is for missing values. OUT here (n_levels,): the categories at the node; order (k, n_levels):
    positions in `here`; score (2 (k + 1) n_levels,): first with missing values on the right, then, if there
    are any, on the left. Returns the number of categories at the node, the number of orders, and the number
    of children tried for missing values.
    """
    cdef Node at, of_part
    cdef Py_ssize_t blocks, lanes, width = whole.shape[1], n = 0, n_orders = 0, n_sides = 1, size, side, i, j, l
    cdef int64_t[::1] work = memoryview(bytearray(8 * (2 * width * (n_levels + 1) + n_levels + 1))).cast("q")
    cdef int64_t* left = &work[0]
    cdef int64_t* cells = left + 2 * width
    cdef double* share = <double*>(cells + 2 * width * n_levels)
    cdef const int64_t* count
    blocks, lanes = lanes_of(k)
    if (width != blocks * lanes or whole.shape[0] != 2 or factor.shape[0] != 3 or factor.shape[1] != width
            or sums.shape[0] != 2 or sums.shape[1] % width or n_levels < 0
            or n_levels + has_holes > sums.shape[1] // width or here.shape[0] != n_levels
            or order.shape[0] != k or order.shape[1] != n_levels or score.shape[0] != 2 * (k + 1) * n_levels):
        raise ValueError("search_levels: arrays of different sizes")
    if n_levels == 0:
        return 0, 0, 1
    at.k, at.blocks, at.lanes, at.bins = k, blocks, lanes, sums.shape[1] // width
    at.whole, at.min_mass, at.min_count = &whole[0, 0], min_mass, min_count
    at.for_it, at.against, at.both = &factor[0, 0], &factor[1, 0], &factor[2, 0]
    of_part, count = at, &sums[0, 0] + k // lanes * at.bins * lanes + k % lanes
    with nogil:
        for i in range(n_levels):
            if count[i * lanes] > 0:
                here[n], n = <int32_t>i, n + 1
        if has_holes and count[n_levels * lanes] > 0:
            n_sides = 2
        for j in range(k):
            if 0 < whole[1, j] < whole[0, j]:
                order_levels(&at, &sums[0, 0], j, &here[0], n, smoothing, share, &order[n_orders, 0])
                n_orders += 1
        size = n * (n_orders + (smoothing > 0.0))
        of_part.bins = n
        for j in range(n_orders):
            put_in_order(&at, &sums[0, 0], &here[0], &order[j, 0], n, cells)
            for side in range(n_sides):
                begin(&at, &sums[0, 0], 0, n_levels if side else -1, left)
                passes.score(&of_part, cells, n, left, &score[side * size + j * n])
        if smoothing > 0.0:
            of_part.bins = 1
            memset(cells, 0, 2 * width * sizeof(int64_t))
            for side in range(n_sides):
                for i in range(n):
                    begin(&at, &sums[0, 0], n_levels, n_levels if side else -1, left)
                    for l in range(width):
                        left[l] -= sums[0, (l // lanes * at.bins + here[i]) * lanes + l % lanes]
                        left[width + l] -= sums[1, l * at.bins + here[i]]
                    passes.score(&of_part, cells, 1, left, &score[side * size + n_orders * n + i])
    return n, n_orders, n_sides


cdef enum:
    SLOTS = 64  # number of splits inside a bin that are scored together
    LISTED = 512  # number of rows that are buffered


# Data for the search inside bins: the rows of a node, sorted by a feature.
cdef struct Fine:
    Node node, slots  # the node, and a copy of it with SLOTS bins
    Rows rows
    const int64_t* sums
    const int32_t* order
    const int32_t* starts
    const uint8_t* here
    Py_ssize_t n, n_starts
    int64_t* left
    int32_t[LISTED] listed
    uint8_t[LISTED] slot_of
    Py_ssize_t[SLOTS] position
    double[SLOTS] score
    Held* held


cdef inline int64_t n_in(const Fine* r, Py_ssize_t f, Py_ssize_t b) noexcept nogil:
    """Return the number of rows in a bin."""
    cdef const int64_t* sums = r.sums + 2 * f * r.node.blocks * r.node.lanes * r.node.bins
    return sums[(r.node.k // r.node.lanes * r.node.bins + b) * r.node.lanes + r.node.k % r.node.lanes]


cdef double score_slots(Fine* r, Py_ssize_t n_slots, double limit, Py_ssize_t* position) noexcept nogil:
    """Return the least score of the buffered splits.

    OUT position: the position of the first split within the limit, if any.
    """
    cdef double best = INFINITY
    cdef Py_ssize_t i
    passes.add_slots(&r.rows, r.slot_of, r.held)
    passes.score(&r.slots, r.rows.sums, n_slots, r.left, r.score)
    for i in range(n_slots):
        best = min(best, r.score[i])
        if r.score[i] <= limit and position[0] < 0:
            position[0] = r.position[i]
    memset(r.rows.sums, 0, 2 * r.slots.blocks * r.slots.lanes * SLOTS * sizeof(int64_t))
    r.rows.n = 0
    return best


cdef double inside(
    Fine* r, Py_ssize_t f, Py_ssize_t b, Py_ssize_t missing, double limit, Py_ssize_t* position
) noexcept nogil:
    """Return the least score of a split inside a bin; `position` is as in `score_slots`.

    missing: the bin of missing values if they go to the left, else -1.
    """
    cdef const int32_t* order = r.order + f * r.n
    cdef const int32_t* starts = r.starts + f * r.n_starts
    cdef Py_ssize_t i, n_slots = 0
    cdef bint is_new = False
    cdef double best = INFINITY
    begin(&r.node, r.sums + 2 * f * r.node.blocks * r.node.lanes * r.node.bins, b, missing, r.left)
    position[0], r.rows.n = -1, 0
    for i in range(starts[b], starts[b + 1] - 1):
        if r.here[row_of(order[i])]:
            if r.rows.n == LISTED:
                passes.add_slots(&r.rows, r.slot_of, r.held)
                r.rows.n = 0
            r.listed[r.rows.n], r.slot_of[r.rows.n] = row_of(order[i]), <uint8_t>n_slots
            r.rows.n += 1
            is_new = True
        if is_new and not is_tied(order[i + 1]):
            r.position[n_slots] = i + 1
            n_slots, is_new = n_slots + 1, False
            if n_slots == SLOTS:
                best = min(best, score_slots(r, n_slots, limit, position))
                n_slots = 0
                if position[0] >= 0:
                    return best
    return min(best, score_slots(r, n_slots, limit, position))


cdef class Inside:
    """Search inside the bins of sorted features, for the rows of one node and k classes.

    Parameters
    ----------
    order, bin_start : as made for sorted features
    here : (n,), whether a row is at the node
    weight, label, scale, used, place, sums : as in `add_up`
    whole, factor, min_mass, min_count : as in `search`
    """

    cdef const int32_t[:, ::1] order, bin_start
    cdef const uint8_t[::1] here
    cdef const double[:, ::1] weight, factor
    cdef const int32_t[::1] label, used, place
    cdef const int64_t[:, :, ::1] sums
    cdef const int64_t[:, ::1] whole
    cdef int64_t[:, :, ::1] work
    cdef Fine fine

    def __init__(
        self, order, bin_start, here, weight, label, double scale, used, place, sums, whole, factor,
        double min_mass, int64_t min_count,
    ):
        cdef Py_ssize_t k, width, n
        cdef Fine* r = &self.fine
        self.order, self.bin_start, self.here, self.weight, self.label = order, bin_start, here, weight, label
        self.used, self.place, self.sums, self.whole, self.factor = used, place, sums, whole, factor
        k, width, n = self.used.shape[0], self.whole.shape[1], self.order.shape[1]
        blocks, lanes = lanes_of(k)
        if (n == 0 or k == 0 or self.here.shape[0] != n or self.label.shape[0] != n or self.weight.shape[0] != n
                or width != blocks * lanes or self.weight.shape[1] < width or self.whole.shape[0] != 2
                or self.factor.shape[0] != 3 or self.factor.shape[1] != width
                or self.sums.shape[0] != self.order.shape[0] or self.bin_start.shape[0] != self.order.shape[0]
                or self.sums.shape[1] != 2 or self.sums.shape[2] % width):
            raise ValueError("Inside: arrays of different sizes")
        self.work = memoryview(bytearray(16 * width * (SLOTS + 1))).cast("q", (SLOTS + 1, 2, width))
        r.node.k, r.node.blocks, r.node.lanes, r.node.bins = k, blocks, lanes, self.sums.shape[2] // width
        r.node.whole, r.node.min_mass, r.node.min_count = &self.whole[0, 0], min_mass, min_count
        r.node.for_it, r.node.against, r.node.both = &self.factor[0, 0], &self.factor[1, 0], &self.factor[2, 0]
        r.slots = r.node
        r.slots.bins = SLOTS
        r.rows.rows, r.rows.weight, r.rows.width = r.listed, &self.weight[0, 0], self.weight.shape[1]
        r.rows.label, r.rows.scale, r.rows.k, r.rows.place = &self.label[0], scale, k, &self.place[0]
        r.rows.used = &self.used[0] if k < self.place.shape[0] else NULL
        r.rows.bins, r.rows.blocks, r.rows.lanes, r.rows.sums = SLOTS, blocks, lanes, &self.work[1, 0, 0]
        r.left = &self.work[0, 0, 0]
        r.sums, r.order, r.starts = &self.sums[0, 0, 0], &self.order[0, 0], &self.bin_start[0, 0]
        r.here, r.n, r.n_starts = &self.here[0], n, self.bin_start.shape[1]

    def search(
        self, const int32_t[::1] n_bins, const double[:, :, ::1] bound, double best, double tie,
        double[:, :, ::1] found, Py_ssize_t first, Py_ssize_t last,
    ):
        """Find the least score of a split inside each bin of the features first..last-1.

        IN n_bins; bound: from `search`; best: the least score known so far; splits that score above it by
        more than `tie` may be ignored. OUT found, with the shape of `bound`.
        """
        cdef Fine* r = &self.fine
        cdef Held held
        cdef Py_ssize_t f, look, b, turn, ignored, lead = -1, lead_look = 0, lead_bin = 0
        cdef double least = INFINITY
        if (not 0 <= first <= last <= self.order.shape[0] or bound.shape[0] != self.order.shape[0]
                or bound.shape[2] != r.node.bins or found.shape[0] != bound.shape[0]
                or found.shape[1] != bound.shape[1] or found.shape[2] != bound.shape[2]
                or n_bins.shape[0] != bound.shape[0]):
            raise ValueError("search: arrays of different sizes")
        with nogil:
            r.held = &held
            for turn in range(2):  # search the most promising bin first, to exclude other bins
                for f in range(first, last):
                    for look in range(bound.shape[1]):
                        for b in range(r.node.bins):
                            if turn == 0:
                                found[f, look, b] = INFINITY
                                if bound[f, look, b] < least and n_in(r, f, b) > 1:
                                    least, lead, lead_look, lead_bin = bound[f, look, b], f, look, b
                            elif (bound[f, look, b] <= best + tie and bound[f, look, b] < INFINITY
                                    and n_in(r, f, b) > 1
                                    and not (f == lead and look == lead_look and b == lead_bin)):
                                found[f, look, b] = inside(
                                    r, f, b, n_bins[f] if look else -1, -1.0, &ignored)
                                best = min(best, found[f, look, b])
                if turn == 0 and lead >= 0 and least <= best + tie:
                    found[lead, lead_look, lead_bin] = inside(
                        r, lead, lead_bin, n_bins[lead] if lead_look else -1, -1.0, &ignored)
                    best = min(best, found[lead, lead_look, lead_bin])

    def first(self, Py_ssize_t f, Py_ssize_t b, Py_ssize_t missing, double limit):
        """Return the first position inside a bin whose split has a score within the limit, or -1.

        missing: the bin of missing values if they go to the left, else -1.
        """
        cdef Held held
        cdef Py_ssize_t position
        if not (0 <= f < self.order.shape[0] and 0 <= b < self.bin_start.shape[1] - 1
                and -1 <= missing < self.fine.node.bins):
            raise ValueError("first: no such bin")
        with nogil:
            self.fine.held = &held
            inside(&self.fine, f, b, missing, limit, &position)
        return position


def part(int32_t[::1] rows, const uint8_t[::1] codes, const uint8_t[::1] above, int32_t[::1] spare):
    """Move the rows of the left child before the other rows, in order. Return their number.

    IN codes (n,); above (256,): the child of each code. WORK spare, as long as `rows`.
    """
    cdef Py_ssize_t n_below = 0
    if spare.shape[0] < rows.shape[0] or above.shape[0] != 256:
        raise ValueError("part: arrays of different sizes")
    if rows.shape[0]:
        with nogil:
            n_below = partition_by_code(&rows[0], rows.shape[0], &codes[0], &above[0], &spare[0])
    return n_below
