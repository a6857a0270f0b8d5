"""Multiclass boosting rounds with the softmax loss, with one tree per class or one tree for all classes."""
from libc.math cimport fabs
from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from pboost._core._address cimport to_read, to_write
from pboost._core._boost_leaf cimport OF_CURVATURE, OF_GRADIENT, WordsPass, power_below
from pboost._core._boost_round cimport AHEAD, BLOCK, Passes, add_to
from pboost._core._boost_softmax cimport Passes as SoftmaxPasses, pboost_choose_softmax_passes
from pboost._core._boost_packed cimport bend_of, wide_word
from pboost._core._rng cimport draw_from, stream
from pboost._core._team cimport Threads, Work, close_post, load, open_post, plus, team_at
from pboost._core._vector_categories cimport LevelSums, add_level, order_levels, score_levels
from pboost._core.boost cimport choose_passes, choose_words_pass
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, int64_t, uint64_t, uint8_t

# ---------------------------------------------------------------------------------------------
# Residuals of all classes, and the histograms of the roots of their trees.

cdef extern from "boost_histogram.h" nogil:
    enum: ROWS_OF_BLOCK "PBOOST_BLOCK"

cdef SoftmaxPasses softmax_passes = pboost_choose_softmax_passes(2)
cdef WordsPass words_pass = choose_words_pass(2)
cdef enum:
    WORDS_OF_BLOCK = 8 * ROWS_OF_BLOCK + 8
cdef enum:
    CHUNK = 256
#: Number of rows in a block, including copies, and size of the work array for its packed words.
ROOT_BLOCK, ROOT_WORK = ROWS_OF_BLOCK, WORDS_OF_BLOCK


# Data for the residuals. Threads process the rows together, and each thread has its own results.
cdef struct Shares:
    const double* scores
    const double* label
    const double* weight
    bint are_copies
    Py_ssize_t n, n_classes, step
    double per_limit
    double* residual
    double* loss
    double* steepest
    double* most
    int32_t next, n_parts


cdef bint shares_part(void* task, int who) noexcept nogil:
    cdef Shares* all = <Shares*>task
    cdef Py_ssize_t k, start, at = who * all.n_classes
    cdef bint did = False
    while load(&all.next) < all.n_parts:
        k = plus(&all.next, 1)
        if k >= all.n_parts:
            break
        start = k * all.step
        softmax_passes.shares(
            all.scores + start, all.label + start, NULL if all.weight == NULL else all.weight + start,
            all.are_copies, all.n_classes, min(all.step, all.n - start), all.n, all.per_limit,
            all.residual + start, all.loss + start, all.steepest + at, all.most + at)
        did = True
    return did


def shares(
    const double[:, ::1] scores, const double[::1] label, weight, bint are_copies, double per_limit,
    double[:, ::1] residual, double[::1] loss, double[:, ::1] steepest, double[:, ::1] most, size_t team=0,
    Py_ssize_t share=0
):
    """Compute the residuals of all classes, and the losses.

    The residual of a class is its probability, minus 1 for rows of the class. IN scores (J, n), label (n,):
    class numbers, weight (n,) or None, per_limit: 1 / the largest Newton step; OUT residual (J, n), loss
    (n,): weight times -ln of the probability of the row's class, 0 for weight 0; IN/OUT steepest and most
    (n_threads, J), initially 0: the largest weighted absolute residual and Hessian per thread. If weights
    are numbers of copies, all values are for one copy. team: address of the threads, which take `share`
    rows at a time.
    """
    cdef Py_ssize_t n = scores.shape[1], n_classes = scores.shape[0]
    cdef Threads* helpers = team_at(team)
    cdef Shares all
    if (label.shape[0] != n or residual.shape[0] != n_classes or residual.shape[1] != n
            or loss.shape[0] != n or n_classes < 2 or n < 1 or steepest.shape[1] != n_classes
            or most.shape[1] != n_classes or steepest.shape[0] != most.shape[0]
            or steepest.shape[0] < (1 if helpers == NULL else helpers.n_threads)):
        raise ValueError("shares: arrays of different sizes")
    all.scores, all.label, all.weight, all.are_copies = &scores[0, 0], &label[0], NULL, are_copies
    if weight is not None:
        all.weight = <const double*>to_read(weight, sizeof(double))
    all.n, all.n_classes, all.per_limit = n, n_classes, per_limit
    all.residual, all.loss = &residual[0, 0], &loss[0]
    all.steepest, all.most, all.next = &steepest[0, 0], &most[0, 0], 0
    all.step = n if helpers == NULL else share
    all.n_parts = <int32_t>((n + all.step - 1) // all.step)
    with nogil:
        in_parts(helpers, shares_part, &all)


# Data for the histograms of roots. Threads process the rows together, and each thread has its own results.
cdef struct Roots:
    const uint8_t* groups
    const int32_t* bins
    const double* residual
    const double* weight
    bint are_copies
    Py_ssize_t n, n_lanes, start, stop, block
    double per_limit
    double[16] scale
    int n_classes, width
    int64_t* work
    double* masses
    int32_t next, n_parts


cdef void root_words(const Roots* all, Py_ssize_t start, Py_ssize_t n, int64_t* words) noexcept nogil:
    """Pack n rows, with all classes side by side. Rows with weight 0 become 0."""
    cdef int64_t[CHUNK] part
    cdef const double* w
    cdef Py_ssize_t i = 0, k, q, m
    memset(words, 0, sizeof(int64_t) * n * all.width)
    while i < n:
        m = min(<Py_ssize_t>CHUNK, n - i)
        w = NULL if all.weight == NULL else all.weight + start + i
        for k in range(all.n_classes):
            words_pass(
                all.residual + k * all.n + start + i, w, all.are_copies, NULL, m, all.per_limit,
                all.scale[2 * k], all.scale[2 * k + 1], part)
            for q in range(m):
                words[(i + q) * all.width + k] = part[q] if w == NULL or w[q] > 0.0 else 0
        i += CHUNK


cdef bint roots_part(void* task, int who) noexcept nogil:
    cdef Roots* all = <Roots*>task
    cdef int64_t* words = <int64_t*>((<uintptr_t>(all.work + <Py_ssize_t>who * WORDS_OF_BLOCK) + 63) & ~<uintptr_t>63)
    cdef double* masses = all.masses + <Py_ssize_t>who * all.n_lanes * MAX_BINS * 2 * all.width
    cdef Py_ssize_t k, start, n
    cdef bint did = False
    while load(&all.next) < all.n_parts:
        k = plus(&all.next, 1)
        if k >= all.n_parts:
            break
        start = all.start + k * all.block
        n = min(all.stop - start, all.block)
        root_words(all, start, n, words)
        softmax_passes.roots(
            all.groups, all.n, all.bins, all.n_lanes, start, n, words, masses, all.width)
        did = True
    return did


def count_roots(
    const uint8_t[:, :, ::1] groups, const int32_t[::1] bins, const double[:, ::1] residual, weight,
    bint are_copies, Py_ssize_t block, double per_limit, const double[::1] steepest,
    const double[::1] most, Py_ssize_t start, Py_ssize_t stop, int64_t[:, ::1] work,
    double[:, :, :, :, ::1] masses, size_t team=0
):
    """Add rows of positive weight to the histograms of the roots of several classes.

    IN groups (ceil(n_lanes / 8), n, 8): codes, bins (n_lanes,), residual (k, n), weight (n,) or None,
    `block`: number of rows whose sums fit into packed words, steepest and most (k,), rows `start` to `stop`
    - 1; WORK work (n_threads, ROOT_WORK); IN/OUT masses (n_threads, n_lanes, 256, 2, 2 or 4 or 8),
    initially 0: gradients and Hessians of the classes per thread, in units of their words. team: address of
    the threads, which take one block at a time.
    """
    cdef Py_ssize_t n = groups.shape[1], n_lanes = bins.shape[0], k, n_classes = residual.shape[0]
    cdef Py_ssize_t width = masses.shape[4]
    cdef Threads* helpers = team_at(team)
    cdef Py_ssize_t n_threads = 1 if helpers == NULL else helpers.n_threads
    cdef Roots all
    if (groups.shape[0] * 8 < n_lanes or groups.shape[2] != 8 or residual.shape[1] != n or steepest.shape[0] != n_classes
            or most.shape[0] != n_classes or not 0 <= start < stop <= n or n_classes < 1
            or not (width == 2 or width == 4 or width == 8) or n_classes > width
            or masses.shape[1] != n_lanes or masses.shape[2] != MAX_BINS or masses.shape[3] != 2
            or masses.shape[0] < n_threads or work.shape[0] < n_threads
            or work.shape[1] != WORDS_OF_BLOCK or not 1 <= block <= ROWS_OF_BLOCK):
        raise ValueError("count_roots: arrays of different sizes")
    all.weight = NULL
    if weight is not None:
        all.weight = <const double*>to_read(weight, sizeof(double))
    for k in range(n_classes):
        all.scale[2 * k] = power_below(steepest[k], OF_GRADIENT)
        all.scale[2 * k + 1] = power_below(most[k], OF_CURVATURE)
    all.groups, all.n, all.bins, all.n_lanes = &groups[0, 0, 0], n, &bins[0], n_lanes
    all.residual, all.are_copies, all.per_limit = &residual[0, 0], are_copies, per_limit
    all.start, all.stop, all.block = start, stop, block
    all.n_classes, all.width, all.work, all.masses = <int>n_classes, <int>width, &work[0, 0], &masses[0, 0, 0, 0, 0]
    all.next, all.n_parts = 0, <int32_t>((stop - start + block - 1) // block)
    with nogil:
        in_parts(helpers, roots_part, &all)


cdef void in_parts(Threads* team, Work part, void* task) noexcept nogil:
    """Process the parts of a task on all threads until none is left."""
    if team != NULL:
        open_post(team, 1, part, task)
    part(task, 0)
    if team != NULL:
        close_post(team, 1, 0)


# ---------------------------------------------------------------------------------------------
# Rounds with one tree for all classes: packed words, histograms, best splits of features.
#
# A row has one packed word for each of J classes, as in `boost`, or two words if sums of the class are
# wide. A last word counts rows if a child needs a minimum number of rows. Words are stored in blocks (n,
# width), one after another. A block has 8 columns; the last one has 2, 4 or 8. In the histogram of a node,
# each feature has sums (S, 2, stride), where S is J, plus 1 with a row count. The arrays belong to the
# caller (see `VectorRounds` in trees/multi_output_rounds.py). Sums are integers, so they do not depend on
# the order of rows or on the number of threads.

cdef extern from "boost_vector.h" nogil:
    ctypedef struct Judge "pboost_vector_judge":
        const double* total
        const double* l2
        const double* factor
        const double* unit
        Py_ssize_t n_classes
        double n_rows
        double least_rows
        double least_weight
    ctypedef struct VectorPasses "pboost_vector_passes":
        void (*count)(
            const uint8_t* first, const uint8_t* second, const int32_t* rows, const int64_t* words,
            Py_ssize_t n, int width, int64_t* table, int64_t* other) noexcept nogil
        void (*unpack)(
            const int64_t* table, Py_ssize_t cells, bint is_first, double* gradient,
            double* curvature) noexcept nogil
        void (*scan)(
            const double* masses, Py_ssize_t stride, int n_bins, int missing, const double* rows,
            const Judge* at, double* found, int32_t* bin) noexcept nogil
    VectorPasses pboost_choose_vector_passes(int level)
    void ask "PBOOST_ASK"(const void* address)

cdef enum:
    WIDTH = 8
    COLUMNS = 32  # number of features whose sums are completed before they are stored
cdef Passes passes = choose_passes(2)
cdef VectorPasses vector_passes = pboost_choose_vector_passes(2)
#: Size of the work array for the words of a block of rows, and for the sums of some features. It includes
#: padding for the alignment to a cache line.
VECTOR_WORK = WIDTH * (BLOCK + COLUMNS * 2 * MAX_BINS + 1)


def use_simd_level(int level):
    """Choose the SIMD instructions for tests: 0 for baseline, 1 for AVX2 or 2 for AVX-512."""
    global softmax_passes, passes, words_pass, vector_passes
    softmax_passes = pboost_choose_softmax_passes(level)
    passes, words_pass = choose_passes(level), choose_words_pass(level)
    vector_passes = pboost_choose_vector_passes(level)


cdef inline int64_t* in_line(int64_t* work) noexcept nogil:
    """Return the first address in an array that is aligned to a cache line."""
    return <int64_t*>((<uintptr_t>work + 63) & ~<uintptr_t>63)


# Packed words of rows. Column c of n_columns has the words of class `of`, or the row counts if `of` is J,
# in units of `unit`.
cdef struct Words:
    int64_t* word
    const int32_t* of
    const double* unit
    Py_ssize_t n, n_columns


cdef Words read_words(arrays) except *:
    cdef Words words
    words.word = in_line(<int64_t*>to_write(arrays.words, sizeof(int64_t)))
    words.of = <const int32_t*>to_read(arrays.word_of, sizeof(int32_t))
    words.unit = <const double*>to_read(arrays.word_unit, sizeof(double))
    words.n, words.n_columns = arrays.codes.shape[1], len(arrays.word_of)
    return words


cdef inline int width_of(const Words* words, Py_ssize_t block) noexcept nogil:
    """Return the number of words per row in this block."""
    cdef Py_ssize_t left = words.n_columns - WIDTH * block
    return 8 if left > 4 else 4 if left > 2 else 2


cdef inline int64_t* block_of(const Words* words, Py_ssize_t block) noexcept nogil:
    return words.word + WIDTH * words.n * block


def pack(arrays, const double[:, ::1] scale, Py_ssize_t start, Py_ssize_t stop):
    """Pack the gradients and Hessians of the rows start..stop-1.

    IN scale (J, 2): the factors of the gradients and Hessians of each class.
    """
    cdef Words words = read_words(arrays)
    cdef const double[:, ::1] residual = arrays.residual
    cdef const double* w = NULL
    cdef double per_limit = arrays.per_limit
    cdef bint are_copies = arrays.are_copies
    cdef int64_t[CHUNK] part
    cdef Py_ssize_t i, c, l, m
    if scale.shape[0] != residual.shape[0] or scale.shape[1] != 2 or not 0 <= start <= stop <= words.n:
        raise ValueError("pack: arrays of different sizes")
    if arrays.weight is not None:
        w = <const double*>to_read(arrays.weight, sizeof(double))
    with nogil:
        i = start
        while i < stop:
            m = min(CHUNK, stop - i)
            for c in range(words.n_columns):
                l = words.of[c]
                if l == residual.shape[0]:
                    put_ones(part, m)
                elif words.unit[c] == 1.0 and (c == 0 or words.of[c - 1] != l):
                    words_pass(
                        &residual[l, i], NULL if w == NULL else w + i, are_copies, NULL, m, per_limit,
                        scale[l, 0], scale[l, 1], part)
                else:
                    pack_wide(
                        &residual[l, i], NULL if w == NULL else w + i, are_copies, m, per_limit,
                        scale[l, 0], scale[l, 1], words.unit[c] == 1.0, part)
                put_words(&words, c, i, m, part)
            i += CHUNK


cdef void put_ones(int64_t* part, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        part[i] = 1


cdef void pack_wide(
    const double* residual, const double* weight, bint are_copies, Py_ssize_t n, double per_limit,
    double gradient_scale, double curvature_scale, bint is_low, int64_t* part
) noexcept nogil:
    """Pack rows for wide sums: the first or the second word of each row."""
    cdef double w, bend
    cdef Py_ssize_t i
    for i in range(n):
        w = 1.0 if weight == NULL or are_copies else weight[i]
        bend = bend_of(fabs(residual[i]), per_limit)
        part[i] = wide_word(
            w * residual[i] * gradient_scale, w * bend * curvature_scale,
            weight[i] if are_copies else 1.0, is_low)


cdef void put_words(
    const Words* words, Py_ssize_t c, Py_ssize_t start, Py_ssize_t n, const int64_t* part
) noexcept nogil:
    cdef int width = width_of(words, c // WIDTH)
    cdef int64_t* at = block_of(words, c // WIDTH) + start * width + c % WIDTH
    cdef Py_ssize_t i
    for i in range(n):
        at[i * width] = part[i]


# The codes of the features, and the positions of their histograms.
cdef struct Columns:
    const uint8_t* codes
    const uint8_t* special
    const int32_t* n_bins
    const int64_t* place
    Py_ssize_t n, n_sums


cdef Columns read_columns(arrays, Py_ssize_t size, Py_ssize_t first, Py_ssize_t last) except *:
    cdef Columns columns
    columns.codes, columns.special = <const uint8_t*>to_read(arrays.codes, sizeof(uint8_t)), NULL
    if arrays.special is not None:
        columns.special = <const uint8_t*>to_read(arrays.special, sizeof(uint8_t))
    columns.n_bins = <const int32_t*>to_read(arrays.n_bins, sizeof(int32_t))
    columns.place = <const int64_t*>to_read(arrays.place, sizeof(int64_t))
    columns.n, columns.n_sums = arrays.codes.shape[1], arrays.n_sums
    if not 0 <= first <= last <= arrays.codes.shape[0] or size < columns.place[last]:
        raise ValueError("read_columns: arrays of different sizes")
    return columns


cdef inline Py_ssize_t stride_of(const Columns* columns, Py_ssize_t f) noexcept nogil:
    return (columns.place[f + 1] - columns.place[f]) // (2 * columns.n_sums)


cdef inline int kind_of(const Columns* columns, Py_ssize_t f) noexcept nogil:
    return 0 if columns.special == NULL else columns.special[f]


def count(
    arrays, Py_ssize_t start, Py_ssize_t stop, double[::1] masses, int64_t[::1] work, Py_ssize_t first,
    Py_ssize_t last
):
    """Compute the histograms of the features first..last-1 for the rows at positions start..stop-1.

    If these are all rows, they are read in order. WORK work (VECTOR_WORK,).
    """
    cdef Columns columns = read_columns(arrays, masses.shape[0], first, last)
    cdef Words words = read_words(arrays)
    cdef const int32_t* rows = <const int32_t*>to_read(arrays.rows, sizeof(int32_t))
    cdef bint is_all = arrays.is_all
    cdef Py_ssize_t at_once = arrays.block, block, n_blocks = (words.n_columns + WIDTH - 1) // WIDTH
    if work.shape[0] < VECTOR_WORK or not 0 <= start <= stop <= words.n or not 1 <= at_once <= BLOCK:
        raise ValueError("count: arrays of different sizes")
    if is_all and start == 0 and stop == words.n:
        rows = NULL
    with nogil:
        memset(&masses[columns.place[first]], 0,
               sizeof(double) * <size_t>(columns.place[last] - columns.place[first]))
        while first < last:
            for block in range(n_blocks):
                count_block(
                    &columns, &words, block, rows, start, stop, at_once, first, min(last, first + COLUMNS),
                    in_line(&work[0]), &masses[0])
            first += COLUMNS


cdef void count_block(
    const Columns* columns, const Words* words, Py_ssize_t block, const int32_t* rows, Py_ssize_t start,
    Py_ssize_t stop, Py_ssize_t at_once, Py_ssize_t first, Py_ssize_t last, int64_t* work, double* masses
) noexcept nogil:
    """Add the sums of a block of words to the histograms of at most COLUMNS features."""
    cdef int64_t[2 * MAX_BINS * WIDTH + WIDTH] room
    cdef int64_t* table = in_line(room)
    cdef double* sums = <double*>(work + WIDTH * BLOCK)
    cdef const int64_t* at
    cdef int width = width_of(words, block)
    cdef Py_ssize_t i = start, m, f, other, k, cells
    while i < stop:
        m = min(at_once, stop - i)
        at = block_of(words, block) + i * width
        if rows != NULL:
            gather(block_of(words, block), rows + i, m, width, work)
            at = work
        for f in range(first, last, 2):
            other = min(f + 1, last - 1)
            memset(table, 0, 2 * sizeof(int64_t) * MAX_BINS * WIDTH)
            vector_passes.count(
                columns.codes + f * columns.n + (i if rows == NULL else 0),
                columns.codes + other * columns.n + (i if rows == NULL else 0),
                NULL if rows == NULL else rows + i, at, m, width, table, table + MAX_BINS * WIDTH)
            for k in range(f, min(f + 2, last)):
                cells = stride_of(columns, k) * width
                vector_passes.unpack(
                    table + (k - f) * MAX_BINS * WIDTH, cells, i == start,
                    sums + (k - first) * 2 * MAX_BINS * WIDTH,
                    sums + (2 * (k - first) + 1) * MAX_BINS * WIDTH)
        i += at_once
    for f in range(first, last if start < stop else first):
        add_sums(columns, words, block, f, sums + (f - first) * 2 * MAX_BINS * WIDTH, width, masses)


cdef void gather(
    const int64_t* words, const int32_t* rows, Py_ssize_t n, int width, int64_t* found
) noexcept nogil:
    """Copy the words of the listed rows."""
    cdef Py_ssize_t i, k
    for i in range(n):
        ask(words + <Py_ssize_t>rows[i + AHEAD] * width)
        if width == WIDTH:
            memcpy(found + WIDTH * i, words + <Py_ssize_t>rows[i] * WIDTH, WIDTH * sizeof(int64_t))
        else:
            for k in range(width):
                found[i * width + k] = words[<Py_ssize_t>rows[i] * width + k]


cdef void add_sums(
    const Columns* columns, const Words* words, Py_ssize_t block, Py_ssize_t f, const double* sums,
    int width, double* masses
) noexcept nogil:
    """Add the sums of a block of words to the histogram of a feature."""
    cdef Py_ssize_t stride = stride_of(columns, f), b, k, c
    cdef double* gradient
    cdef double* curvature
    cdef double unit
    for k in range(min(width, words.n_columns - WIDTH * block)):
        c = WIDTH * block + k
        gradient, unit = masses + columns.place[f] + 2 * stride * words.of[c], words.unit[c]
        curvature = gradient + stride
        for b in range(stride):
            gradient[b] += unit * sums[b * width + k]
            curvature[b] += unit * sums[MAX_BINS * WIDTH + b * width + k]


def subtract(arrays, double[::1] masses, const double[::1] part, Py_ssize_t first, Py_ssize_t last):
    """Subtract the histograms `part` of some rows, for the features first..last-1."""
    cdef Columns columns = read_columns(arrays, min(masses.shape[0], part.shape[0]), first, last)
    cdef Py_ssize_t i
    with nogil:
        for i in range(columns.place[first], columns.place[last]):
            masses[i] -= part[i]


def search(
    arrays, const double[::1] masses, const double[:, ::1] total, double[::1] score, int32_t[:, ::1] cut,
    Py_ssize_t first, Py_ssize_t last
):
    """Find the best split of each of the features first..last-1. Categorical features are omitted.

    IN total (S, 2): the sums of the node. OUT score (d,), -1 without a split; cut (2, d): the last bin on
    the left, and the child for missing values, -1 if there are none.
    """
    cdef Columns columns = read_columns(arrays, masses.shape[0], first, last)
    cdef Judge at
    cdef Py_ssize_t f, of_rows
    cdef const double[:, ::1] judged = arrays.judged
    at.n_classes = judged.shape[1]
    if (total.shape[0] != columns.n_sums or total.shape[1] != 2 or score.shape[0] < last
            or cut.shape[0] != 2 or cut.shape[1] < last or judged.shape[0] != 3):
        raise ValueError("search: arrays of different sizes")
    at.total, at.l2, at.factor, at.unit = &total[0, 0], &judged[0, 0], &judged[1, 0], &judged[2, 0]
    of_rows = at.n_classes if columns.n_sums > at.n_classes else 0
    at.n_rows, at.least_rows, at.least_weight = total[of_rows, 1], arrays.min_samples_leaf, arrays.min_child_weight
    with nogil:
        for f in range(first, last):
            score[f], cut[0, f], cut[1, f] = -1.0, -1, -1
            if not kind_of(&columns, f) & LEVELS:
                search_column(&columns, &at, &masses[columns.place[f]], of_rows, f, &score[f], &cut[0, f],
                              &cut[1, f])


cdef void search_column(
    const Columns* columns, const Judge* at, const double* masses, Py_ssize_t of_rows, Py_ssize_t f,
    double* score, int32_t* bin_, int32_t* side
) noexcept nogil:
    """Search a feature, with missing values on the right, then on the left."""
    cdef Py_ssize_t stride = stride_of(columns, f)
    cdef const double* rows = masses + (2 * of_rows + 1) * stride
    cdef int n = columns.n_bins[f]
    cdef bint is_missing = kind_of(columns, f) & HOLES and rows[n] > 0.0
    cdef double before
    vector_passes.scan(masses, stride, n if is_missing else n - 1, -1, rows, at, score, bin_)
    if is_missing:
        side[0], before = 1, score[0]
        vector_passes.scan(masses, stride, n, n, rows, at, score, bin_)
        if score[0] > before:
            side[0] = 0


def choose(
    arrays, const double[::1] masses, const double[:, ::1] total, const double[::1] score,
    const int32_t[:, ::1] cut, double[:, ::1] below
):
    """Return the feature of the best split, its score, and the score of the node.

    OUT below (S, 2): the sums of the left child, unless the split is a set of categories.
    """
    cdef Py_ssize_t d = arrays.codes.shape[0], f, j = 0, s, b, stride
    cdef Columns columns = read_columns(arrays, masses.shape[0], 0, d)
    cdef const double[:, ::1] judged = arrays.judged
    cdef const double* at
    cdef double own = 0.0
    if (total.shape[0] != columns.n_sums or below.shape[0] != columns.n_sums or total.shape[1] != 2
            or below.shape[1] != 2 or score.shape[0] != d or cut.shape[1] != d or cut.shape[0] != 2
            or judged.shape[0] != 3 or judged.shape[1] > columns.n_sums):
        raise ValueError("choose: arrays of different sizes")
    with nogil:
        for f in range(1, d):
            if score[f] > score[j]:
                j = f
        for s in range(judged.shape[1]):
            own += total[s, 0] * total[s, 0] / (total[s, 1] + judged[0, s]) * judged[1, s]
        stride = stride_of(&columns, j)
        for s in range(0 if cut[0, j] == -1 else 2 * columns.n_sums):
            at = &masses[columns.place[j]] + s * stride
            below[s // 2, s % 2] = at[columns.n_bins[j]] if cut[1, j] == 0 else 0.0
            for b in range(cut[0, j] + 1):
                below[s // 2, s % 2] += at[b]
    return j, score[j], own


def best_levels(
    const double[:, :, ::1] column, Py_ssize_t n_levels, bint has_holes, const double[:, ::1] judged,
    const double[:, ::1] total, double n_rows, double least_rows, double least_weight, double smoothing,
    int32_t[::1] here, int32_t[::1] above, double[:, ::1] below,
):
    """Find the best set of categories of a feature; ties go to the first set tried.

    For each class, categories are sorted by their Newton step, and each prefix is tried as the left child.
    With smoothing, each single category is also tried as the right child. Missing values go to the right,
    then to the left. IN column (S, 2, stride): histogram of the node; judged, total as in `choose`;
    smoothing: number of rows with the node's step that are added to each category. OUT here, above
    (n_levels,): the categories at the node, and the categories of the right child; below (S, 2): the sums
    of the left child. Returns the score (-1 without a split), the lengths of `here` and `above`, and the
    child for missing values (-1 if there are none).
    """
    cdef LevelSums at
    cdef Py_ssize_t k = judged.shape[1], n_sums = total.shape[0], stride = column.shape[2], i, j, turn, turns = 1
    cdef Py_ssize_t best_turn = 0, best_order = 0, best_at = 0, level
    cdef double best = -1.0, score
    cdef double[::1] work = memoryview(bytearray(8 * (6 * n_sums + n_levels + 1))).cast("d")
    cdef int32_t[::1] orders = memoryview(bytearray(4 * (k * n_levels + 1))).cast("i")
    cdef double* missing = &work[0]
    cdef double* known = missing + 2 * n_sums
    cdef double* sums = known + 2 * n_sums
    cdef const double* rows
    if (column.shape[0] != n_sums or column.shape[1] != 2 or judged.shape[0] != 3 or not 0 < k <= n_sums
            or total.shape[1] != 2 or not 0 <= n_levels <= stride - has_holes or here.shape[0] != n_levels
            or above.shape[0] != n_levels or below.shape[0] != n_sums or below.shape[1] != 2):
        raise ValueError("best_levels: arrays of different sizes")
    if n_levels == 0:
        return -1.0, 0, 0, -1
    at.column, at.judged, at.total, at.here = &column[0, 0, 0], &judged[0, 0], &total[0, 0], &here[0]
    at.stride, at.n_sums, at.n_classes, at.n, at.n_rows = stride, n_sums, k, 0, n_rows
    at.least_rows, at.least_weight, at.smoothing = least_rows, least_weight, smoothing
    rows = at.column + (2 * (k if n_sums > k else 0) + 1) * stride
    with nogil:
        for i in range(n_levels):
            if rows[i] != 0.0:
                here[at.n], at.n = <int32_t>i, at.n + 1
                add_level(&at, i, 1.0, known, known)
        if has_holes and rows[n_levels] > 0.0:
            turns = 2
        for j in range(k):
            order_levels(&at, j, sums + 2 * n_sums, &orders[j * n_levels])
        for turn in range(turns):
            if turn == 1:
                add_level(&at, n_levels, 1.0, missing, missing)
            for j in range(k + (smoothing > 0.0)):
                memcpy(sums, missing, 2 * n_sums * sizeof(double))
                for i in range(at.n):
                    level = here[orders[j * n_levels + i] if j < k else i]
                    if j < k:
                        add_level(&at, level, 1.0, sums, sums)
                    else:
                        add_level(&at, level, -1.0, known, sums)
                        for level in range(2 * n_sums):
                            sums[level] += missing[level]
                    score = score_levels(&at, sums)
                    if score != score:  # if a score is NaN, there is no best set
                        with gil:
                            return -1.0, at.n, 0, -1
                    if score > best:
                        best, best_turn, best_order, best_at = score, turn, j, i
                        memcpy(&below[0, 0], sums, 2 * n_sums * sizeof(double))
    if best < 0.0:
        return -1.0, at.n, 0, -1
    if best_order == k:
        above[0] = here[best_at]
        return best, at.n, 1, 1 - best_turn if turns == 2 else -1
    for i in range(best_at + 1, at.n):
        above[i - best_at - 1] = here[orders[best_order * n_levels + i]]
    return best, at.n, at.n - best_at - 1, 1 - best_turn if turns == 2 else -1


def part(arrays, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t feature, int cut, const uint8_t[::1] table):
    """Partition the rows at positions start..stop-1; return the number of left rows.

    `cut` is the last code that goes to the left. If it is -1, `table` (256,) has 1 for codes that go to the
    right.
    """
    cdef Py_ssize_t n = arrays.codes.shape[1], below
    cdef int32_t* rows = <int32_t*>to_write(arrays.rows, sizeof(int32_t))
    cdef int32_t* spare = <int32_t*>to_write(arrays.spare, sizeof(int32_t))
    cdef int64_t* no_words = <int64_t*>to_write(arrays.tree_rounds.spare_packed, sizeof(int64_t))
    cdef const uint8_t* codes = <const uint8_t*>to_read(arrays.codes, sizeof(uint8_t))
    cdef const uint8_t* of_set = NULL
    if not 0 <= start <= stop <= n or not 0 <= feature < arrays.codes.shape[0] or table.shape[0] != MAX_BINS:
        raise ValueError("part: arrays of different sizes")
    if cut == -1:
        of_set = &table[0]
    with nogil:
        below = passes.part(
            codes + feature * n, cut, of_set, rows + start, NULL, stop - start, spare,
            no_words)
        memcpy(rows + start + below, spare, sizeof(int32_t) * (stop - start - below))
    return below


def add(
    arrays, const int32_t[:, ::1] leaf, const double[:, ::1] value, double[:, ::1] scores, Py_ssize_t first,
    Py_ssize_t last
):
    """Add leaf values to the scores (J, n) of the classes first..last-1.

    IN leaf (k, 2): start and end of the rows of each leaf; value (k, J).
    """
    cdef const int32_t* rows = <const int32_t*>to_read(arrays.rows, sizeof(int32_t))
    cdef Py_ssize_t e, k
    if (leaf.shape[1] != 2 or value.shape[0] != leaf.shape[0] or value.shape[1] != scores.shape[0]
            or not 0 <= first <= last <= scores.shape[0]):
        raise ValueError("add: arrays of different sizes")
    with nogil:
        for k in range(first, last):
            for e in range(leaf.shape[0]):
                add_to(&scores[k, 0], rows + leaf[e, 0], leaf[e, 1] - leaf[e, 0], value[e, k])


def take(int32_t[::1] among, Py_ssize_t wanted, uint64_t key, uint64_t path, uint64_t number):
    """Move `wanted` random features to the front of the list, drawn as in `_boost_columns.pxd`."""
    cdef uint64_t start = stream(key, path, number)
    cdef Py_ssize_t i, j, n = among.shape[0]
    for i in range(wanted if wanted < n else 0):
        j = i + <Py_ssize_t>(draw_from(start, <uint64_t>i) * <double>(n - i))
        among[i], among[j] = among[j], among[i]


def unit_of(double most, int bits):
    """Return the power of two that scales numbers up to `most` below 2**bits after rounding."""
    return power_below(most, bits)
