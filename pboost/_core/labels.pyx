"""AdaBoost.MH: each row has a weight for each of J labels, and a stump is judged by all of them.

In a tree, rows of a class at an exit have been multiplied by one factor for each label since its root.
So a node needs sums of the weights at the root only: for each bin of a column and each label the weight
T of all rows and P of the rows of the label. They are integers: sums in any order, and differences, are
exact. A label whose P or T - P is 0 at a node adds 0 to every score and is left out.

Arrays: codes (d, n), bin of each row in each column; weight (n, width) float64, of J labels, beyond which
lanes are 0, `scale` times which are the integers; label (n,); rows (m,), those at a node; used (k,), the
labels that count there. Lanes stand in blocks, of which lanes_of says how many there are: sums
(d, 2, blocks * bins * lanes), T as [block][bin][lane], where the lane after the last label has the number of
rows, and P as [label][bin]; see labels_simd.h.
"""
from libc.math cimport INFINITY, rint
from libc.string cimport memset

from pboost._core._few cimport insert_by_key
from pboost._core._fixed cimport LEAST_WEIGHT
from pboost._core._segment cimport partition_by_code
from pboost._core._team cimport run_ranges, team_at
from pboost._core.types cimport HOLES, LEVELS, int32_t, int64_t, is_tied, row_of, uint8_t

cdef extern from "labels_simd.h" nogil:
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
        # `pass` is a word of Python's.
        void take "pass"(
            const int32_t* rows, Py_ssize_t n, const int32_t* label, const double* for_it,
            double* factor, double least, double scale, double* weight, Py_ssize_t width,
            const int64_t* start, int64_t* all_, int64_t* own, int64_t* by_class) noexcept nogil
    Passes choose_passes "pboost_choose_label_passes"(int level)

cdef Passes passes = choose_passes(2)


def use_simd_level(int level):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global passes
    passes = choose_passes(level)


def lanes_of(Py_ssize_t k):
    """Return how many blocks of how many lanes sums of k labels have."""
    cdef Py_ssize_t lanes = NARROW if k < NARROW else WIDE
    return k // lanes + 1, lanes


# What threads share that add up columns of it, from the first on.
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
    """Fill the sums of columns first..last-1.

    IN used: the labels, in the order of the lanes; place (J,): of each label among them, -1 of others; team:
    where the threads are that share the columns.
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
    """Add up listed rows, and, before it, multiply their weights by the factors of an exit.

    IN factor (2, width): of the rows of a label, and of the others, or (0, width); start (n,): starting
    weights, in fixed point. INOUT weight; found (3, width), to which is added: by label the weight of all
    rows, that of the rows of the label, and the starting weight of these.
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
    """What is below bin b of a column: OUT left (2, width); missing: a bin that is, too, or -1."""
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
    """Scores of the cuts of columns first..last-1 but those of levels, for k labels.

    A score is half the sum of the roots, over labels and sides, as Schapire & Singer. IN whole (2, width):
    the node's sums, T and P; factor (3, width): of the rows of a label, of the others, and the root of the
    product, 0 beyond the labels. OUT found (d, 1 or 2, bins): the score of the cut above each bin, infinite
    where there is none; of columns with holes first with missing rows above, then, second, below; bound, of
    the same shape: what no cut inside the bin is below.
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
                # Above the last value are missing rows, or none.
                n_cuts = known if is_missing and look == 0 else known - 1
                passes.score(&at, cell, n_cuts, &left[0, 0], &found[f, look, 0])
                if bound is not None:
                    begin(&at, cell, 0, known if look > 0 else -1, &left[0, 0])
                    passes.bound(&at, cell, known, &left[0, 0], &bound[f, look, 0])


cdef void order_levels(
    const Node* at, const int64_t* sums, Py_ssize_t j, const int32_t* here, Py_ssize_t n, double smoothing,
    double* share, int32_t* order,
) noexcept nogil:
    """Put n levels in order by the share of label j, of equal ones the first before the others.

    Shares are whole multiples of 2**-40: what is equal but for rounding is equal. OUT order: places in `here`.
    """
    cdef Py_ssize_t width = at.blocks * at.lanes, i
    cdef const int64_t* of_all = sums + j // at.lanes * at.bins * at.lanes + j % at.lanes
    cdef const int64_t* own = sums + (width + j) * at.bins
    cdef double of_node = at.for_it[j] * <double>at.whole[width + j], mass, pull, yes, found
    mass = of_node + at.against[j] * <double>(at.whole[j] - at.whole[width + j])
    pull = smoothing * mass / <double>at.whole[at.k]
    if mass > 0.0:  # a label none of whose weight is left pulls at nothing
        of_node /= mass
    for i in range(n):
        yes = at.for_it[j] * <double>own[here[i]]
        mass = yes + at.against[j] * <double>(of_all[here[i] * at.lanes] - own[here[i]])
        found = rint((yes + pull * of_node) / max(mass + pull, 1e-300) * 1099511627776.0)
        insert_by_key(share, order, i, found, <int32_t>i)


cdef void put_in_order(
    const Node* at, const int64_t* sums, const int32_t* here, const int32_t* order, Py_ssize_t n, int64_t* cells
) noexcept nogil:
    """The sums of n levels as those of n bins, in an order."""
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
    """Scores of the cuts of a column of levels, for k labels.

    Levels at the node are put in order by the share of a label, and those up to each of them cut off, for one
    label after the other of whose weight some is there; with smoothing each level is parted from the others, too.
    IN sums (2, size), of the column; whole, factor, min_mass, min_count as of `search`; has_holes: whether the
    bin after the levels has rows without a value. OUT here (n_levels,), the levels at the node; order (k,
    n_levels), places in `here`; score (2 (k + 1) n_levels,), with missing rows above, if there are any, then with
    them below. Returns the number of levels at the node, of orders, and of sides of missing rows.
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
    SLOTS = 64  # cuts inside a bin that are scored at a time
    LISTED = 512  # rows that are listed before they are added to them


# The rows of a node inside bins, in the order of a column.
cdef struct Fine:
    Node node, slots  # with the bins of the columns, and with SLOTS
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
    """Number of rows in a bin."""
    cdef const int64_t* sums = r.sums + 2 * f * r.node.blocks * r.node.lanes * r.node.bins
    return sums[(r.node.k // r.node.lanes * r.node.bins + b) * r.node.lanes + r.node.k % r.node.lanes]


cdef double score_slots(Fine* r, Py_ssize_t n_slots, double limit, Py_ssize_t* position) noexcept nogil:
    """The least score of cuts after slots; OUT position: of the first within the limit, if there is one."""
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
    """The least score of a cut inside a bin, and the first within the limit, as `score_slots`.

    missing: the bin of rows that lie below, -1 if none do.
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
    """Search inside the bins of sorted columns, for the rows of one node and k labels.

    Parameters
    ----------
    order, bin_start : of sorted columns
    here : (n,), whether a row is at the node
    weight, label, scale, used, place, sums : as of `add_up`
    whole, factor, min_mass, min_count : as of `search`
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
        """Find the least score of a cut inside each bin of columns first..last-1.

        IN n_bins; bound: as of the function `search`; best: the least score known, within `tie` of which cuts
        are looked for. OUT found, of the shape of `bound`.
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
            for turn in range(2):  # the most promising bin first: it lowers the bar for all others
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
        """Return the first position inside a bin where a cut scores within the limit, -1 without.

        missing: the bin of rows that lie below, -1 if none do.
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
    """Move the rows below a cut before the others, in their order; returns their number.

    IN codes (n,); above (256,), the side of each code. WORK spare, as long as `rows`.
    """
    cdef Py_ssize_t n_below = 0
    if spare.shape[0] < rows.shape[0] or above.shape[0] != 256:
        raise ValueError("part: arrays of different sizes")
    if rows.shape[0]:
        with nogil:
            n_below = partition_by_code(&rows[0], rows.shape[0], &codes[0], &above[0], &spare[0])
    return n_below
