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
from libc.math cimport INFINITY

from pboost._core._fixed cimport LEAST_WEIGHT
from pboost._core._segment cimport partition_by_code
from pboost._core._team cimport run_ranges, team_at
from pboost._core.types cimport HOLES, LEVELS, int32_t, int64_t, uint8_t

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


def search(
    const int64_t[:, :, ::1] sums, const int32_t[::1] n_bins, Py_ssize_t k, const int64_t[:, ::1] whole,
    const double[:, ::1] factor, double min_mass, int64_t min_count, double[:, :, ::1] found,
    Py_ssize_t first, Py_ssize_t last, const uint8_t[::1] special=None,
):
    """Scores of the cuts of columns first..last-1 but those of levels, for k labels.

    A score is half the sum of the roots, over labels and sides, as Schapire & Singer. IN whole (2, width):
    the node's sums, T and P; factor (3, width): of the rows of a label, of the others, and the root of the
    product, 0 beyond the labels. OUT found (d, 1 or 2, bins): the score of the cut above each bin, infinite
    where there is none; of columns with holes first with missing rows above, then, second, below.
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
            or (special is None) != (looks == 1)):
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
            if special is not None:
                if special[f] & LEVELS:
                    continue
                is_missing = special[f] & HOLES and cell[(k // lanes * bins + known) * lanes + k % lanes] > 0
            for look in range(2 if is_missing else 1):
                for l in range(width):
                    left[0, l] = cell[(l // lanes * bins + known) * lanes + l % lanes] if look > 0 else 0
                    left[1, l] = cell[(width + l) * bins + known] if look > 0 else 0
                # Above the last value are missing rows, or none.
                n_cuts = known if is_missing and look == 0 else known - 1
                passes.score(&at, cell, n_cuts, &left[0, 0], &found[f, look, 0])


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
