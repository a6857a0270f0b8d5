"""Rounds of boosting whose rows lie in several places: what one of them finds of its rows, and how what all
send becomes steps.

The arrays of a place are those of a round (see `Rounds` in trees/rounds.py), whose nodes are known
elsewhere: rows of one stand from `start` to `stop`. Sums are whole numbers that float64 holds, so that those
of places are added up without an error, whatever rows they have. (Kernels of one table: boost.pyx.)
"""
from libc.math cimport fabs

from pboost._core import boost
from pboost._core._address cimport address
from pboost._core._boost_count cimport count_node, unpack_masses
from pboost._core._boost_grow cimport Parting, part_rows, pieces_of
from pboost._core._boost_leaf cimport (
    Far, IS_OF_MARGIN, Leaf, Look, LossPasses, Rows, Step, begin_step, bound_step, no_far, pboost_bounds, scale_of,
    sums_part, take_look,
)
from pboost._core._boost_levels cimport squares_in
from pboost._core._boost_read cimport read_round, read_rows, residual_of
from pboost._core._boost_round cimport Node, Passes, Round, add_to, is_pure
from pboost._core._boost_share cimport (
    Gather, Slopes, far_part, gather_leaf, gather_part, pack_all, slopes_part,
)
from pboost._core._boost_words cimport WordsPass
from pboost._core._team cimport run_ranges
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t

cdef Passes* passes = <Passes*><size_t>boost.PASSES[0]
cdef LossPasses* loss_passes = <LossPasses*><size_t>boost.PASSES[1]
cdef WordsPass* words_pass = <WordsPass*><size_t>boost.PASSES[2]
cdef Step _step
#: What is known of the step of a leaf: one entry, for its type.
STEP = <Step[:1]>&_step
#: The losses that are functions of margins: of these the least tells the greatest loss.
OF_MARGIN = [name for name, code in boost.LOSSES.items() if IS_OF_MARGIN(code)]


cdef inline Node node_at(const Round* r, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Rows as a node has them; the root has all."""
    cdef Node node
    node.start, node.stop = <int32_t>start, <int32_t>stop
    node.depth = stop - start < r.n
    return node


def farthest(arrays):
    """Return of all rows what the greatest loss is bounded by, see `pboost_far` in boost_loss.h."""
    cdef Rows rows = read_rows(arrays)
    cdef Round r = read_round(arrays, passes)
    cdef Slopes all
    all.rows, all.passes, all.in_hand, all.far = &rows, loss_passes, 0, no_far(&rows)
    with nogil:
        run_ranges(r.team, 0, r.n_rows, r.share, far_part, &all)
    return all.far.u, all.far.y, all.far.size


def loss_scale(arrays, double u, double y, double size):
    """Return in what the losses of rows with these bounds are counted, and the greatest loss."""
    cdef Rows rows = read_rows(arrays)
    cdef Py_ssize_t n_copies = arrays.n_copies
    cdef double[2] ignored
    cdef double most
    cdef Far far
    far.u, far.y, far.size = u, y, size
    pboost_bounds(&rows, &far, 0.0, &ignored[0], &ignored[1], &most)
    return scale_of(2.0 * most, n_copies), most


def slopes(arrays, double scale):
    """As `boost.slopes`; the sum of the losses is that of whole numbers, times `scale`."""
    cdef Rows rows = read_rows(arrays)
    cdef Round r = read_round(arrays, passes)
    cdef Slopes all
    all.rows, all.passes, all.in_hand, all.scale = &rows, loss_passes, 0, scale
    all.gradient, all.curvature = <double*>r.packed, <double*>r.spare_packed
    all.found[0] = all.found[1] = all.found[2] = 0.0
    with nogil:
        run_ranges(r.team, 0, r.n_rows, r.share, slopes_part, &all)
    return all.found[0], all.found[1], all.found[2]


def sizes(arrays, double steepest):
    """Return how many gradients have 1/4096 of the size of the largest or more, and how many are not 0."""
    cdef Round r = read_round(arrays, passes)
    cdef Rows rows = read_rows(arrays)
    cdef const double* residual = residual_of(arrays)
    cdef const double* gradient = <const double*>r.packed if residual == NULL else residual
    cdef const double* weight = NULL if residual == NULL or rows.are_copies else rows.weight
    cdef Py_ssize_t i, copies, large = 0, some = 0
    cdef double limit = steepest / 4096.0, size
    with nogil:
        for i in range(r.n_rows):
            copies = 1 if r.copies == NULL else <Py_ssize_t>r.copies[i]
            size = fabs(gradient[i]) if weight == NULL else fabs(gradient[i]) * weight[i]
            large += copies * (size >= limit)
            some += copies * (size != 0.0)
    return large, some


def pack(arrays, double gradient_scale, double curvature_scale):
    """Pack the derivatives of the rows listed."""
    cdef Round r = read_round(arrays, passes)
    cdef Rows rows = read_rows(arrays)
    cdef const double* residual = residual_of(arrays)
    with nogil:
        pack_all(&r, &rows, residual, loss_passes, words_pass[0], gradient_scale, curvature_scale)


# ---------------------------------------------------------------------------------------------
# Nodes. Rows of a node stand from `spans[i, 0]` to before `spans[i, 1]`.

cdef int check_spans(arrays, const int64_t[:, ::1] spans) except -1:
    cdef Py_ssize_t i
    for i in range(spans.shape[0]):
        if spans.shape[1] != 2 or not 0 <= spans[i, 0] <= spans[i, 1] <= arrays.n_listed:
            raise ValueError("expected spans of rows of the arrays")
    return 0


cdef inline void count_into(const Round* r, const Node* node, double* masses) noexcept nogil:
    """OUT: the masses of a node by bin, as pairs of sums."""
    count_node(r, node, masses)
    unpack_masses(r, node, masses)


def count(arrays, const int64_t[:, ::1] spans, double[:, ::1] masses):
    """OUT masses (k, cells): those of nodes by bin."""
    cdef Round r = read_round(arrays, passes)
    cdef Py_ssize_t i
    cdef Node node
    check_spans(arrays, spans)
    if masses.shape[0] != spans.shape[0] or masses.shape[1] != r.slot:
        raise ValueError("count: expected masses of all lanes")
    with nogil:
        for i in range(spans.shape[0]):
            node = node_at(&r, spans[i, 0], spans[i, 1])
            count_into(&r, &node, &masses[i, 0])


def count_rows(arrays, const int64_t[:, ::1] spans, double[:, :, ::1] found):
    """IN/OUT found (k, d, 256): the number of rows of nodes by column and bin is added."""
    cdef Round r = read_round(arrays, passes)
    cdef Py_ssize_t i, f, k
    check_spans(arrays, spans)
    if found.shape[0] != spans.shape[0] or found.shape[1] != r.d or found.shape[2] != MAX_BINS:
        raise ValueError("count_rows: expected numbers of all columns")
    with nogil:
        for i in range(spans.shape[0]):
            for f in range(r.d):
                for k in range(spans[i, 0], spans[i, 1]):
                    found[i, f, r.codes[f * r.stride + r.rows[k]]] += 1.0


def split(
    arrays, const int64_t[:, ::1] spans, const int32_t[::1] feature, const uint8_t[:, ::1] above,
    const int32_t[::1] counted, bint with_words, double[::1] n_below
):
    """Part the rows of nodes by the sides of the codes of a column, `above` (k, 256), and the words of those
    whose children are split, too: `counted` of others is -1. OUT n_below (k,): how many rows are below."""
    cdef Round r = read_round(arrays, passes)
    cdef Parting all
    cdef Py_ssize_t i, n, pieces, k = spans.shape[0]
    check_spans(arrays, spans)
    if not feature.shape[0] == above.shape[0] == counted.shape[0] == n_below.shape[0] == k:
        raise ValueError("split: arrays of different sizes")
    if above.shape[1] != MAX_BINS or (k and not 0 <= min(feature) <= max(feature) < r.d):
        raise ValueError("split: expected columns, and sides of all codes")
    all.r, all.cut, all.spare, all.spare_words = &r, 0, r.spare, r.spare_packed
    with nogil:
        for i in range(k):
            n = spans[i, 1] - spans[i, 0]
            n_below[i] = 0.0
            if n == 0:
                continue
            all.codes, all.table = r.codes + feature[i] * r.stride, &above[i, 0]
            all.rows, all.words = r.rows + spans[i, 0], NULL
            if with_words and counted[i] >= 0 and r.low == NULL:
                all.words = r.packed + spans[i, 0]
            pieces = pieces_of(&r, n)
            all.step = (n + pieces - 1) // pieces
            n_below[i] = part_rows(&all, r.team, r.who, n)


def look_at(
    arrays, const int64_t[:, ::1] spans, const double[:, ::1] sums, double[::1] mixed, double[::1] squares
):
    """Look at the rows of nodes. OUT mixed (k,): 1 unless their Newton steps are that of the node, whose sums
    of derivatives are `sums` (k, 2); squares (k or 0,): the sums of the squares of Newton steps."""
    cdef Round r = read_round(arrays, passes)
    cdef Py_ssize_t i
    cdef Node node
    check_spans(arrays, spans)
    if not sums.shape[0] == mixed.shape[0] == spans.shape[0] or sums.shape[1] != 2:
        raise ValueError("look_at: arrays of different sizes")
    with nogil:
        for i in range(spans.shape[0]):
            node = node_at(&r, spans[i, 0], spans[i, 1])
            node.gradient, node.curvature = sums[i, 0], sums[i, 1]
            mixed[i] = not is_pure(&r, &node)
            if i < squares.shape[0]:
                squares[i] = squares_in(&r, &node)


# ---------------------------------------------------------------------------------------------
# Leaves.

cdef double* leaf_weights(arrays, const Rows* rows) except? NULL:
    """The place for weights of leaves; NULL where all are 1."""
    return NULL if rows.weight == NULL else <double*>address(arrays.leaf_weight)


def gather(arrays, const int64_t[:, ::1] spans, double[:, ::1] found):
    """Gather the rows of leaves for `sums`. OUT found (k, 5): the bounds of `farthest`, the greatest weight and
    the number of copies."""
    cdef Round r = read_round(arrays, passes)
    cdef Rows rows = read_rows(arrays)
    cdef double* weight = leaf_weights(arrays, &rows)
    cdef Py_ssize_t i
    cdef Leaf leaf
    cdef Gather all
    check_spans(arrays, spans)
    if found.shape[0] != spans.shape[0] or found.shape[1] != 5:
        raise ValueError("gather: expected five numbers of each leaf")
    leaf.who, leaf.passes = 0, loss_passes
    with nogil:
        for i in range(spans.shape[0]):
            gather_leaf(
                &r, &rows, &leaf, &all, spans[i, 0], spans[i, 0], weight, spans[i, 1] - spans[i, 0])
            run_ranges(leaf.team, 0, leaf.n, r.share, gather_part, &all)
            found[i, 0], found[i, 1], found[i, 2] = leaf.far.u, leaf.far.y, leaf.far.size
            found[i, 3], found[i, 4] = leaf.step.heaviest, leaf.step.n_copies


def sums(
    arrays, const int64_t[:, ::1] spans, const double[::1] step, const uint8_t[::1] is_raised,
    const double[:, ::1] scale, double[:, ::1] found
):
    """OUT found (k, 2): the sums of slopes and curvatures of leaves whose rows are gathered, where they add
    `step` (k,), in units of 1 / `scale` (k, 2)."""
    cdef Round r = read_round(arrays, passes)
    cdef Rows rows = read_rows(arrays)
    cdef double* weight = leaf_weights(arrays, &rows)
    cdef Py_ssize_t i, k = spans.shape[0]
    cdef Leaf leaf
    cdef Gather all
    cdef Look look
    check_spans(arrays, spans)
    if not step.shape[0] == is_raised.shape[0] == scale.shape[0] == found.shape[0] == k:
        raise ValueError("sums: arrays of different sizes")
    leaf.who, leaf.passes = 0, loss_passes
    look.leaf, look.in_hand = &leaf, 0
    with nogil:
        for i in range(k):
            gather_leaf(
                &r, &rows, &leaf, &all, spans[i, 0], spans[i, 0], weight, spans[i, 1] - spans[i, 0])
            leaf.step.at, leaf.step.is_raised = step[i], is_raised[i]
            leaf.step.slope_scale, leaf.step.bend_scale = scale[i, 0], scale[i, 1]
            leaf.step.slope_sum = leaf.step.bend_sum = 0.0
            run_ranges(leaf.team, 0, leaf.n, r.share, sums_part, &look)
            found[i, 0], found[i, 1] = leaf.step.slope_sum, leaf.step.bend_sum


def add(arrays, double[::1] f, const int64_t[:, ::1] spans, const double[::1] value):
    """Add a number to the decision values of the rows of each leaf. IN/OUT f (n,)."""
    cdef Round r = read_round(arrays, passes)
    cdef Py_ssize_t i
    check_spans(arrays, spans)
    if value.shape[0] != spans.shape[0] or f.shape[0] != r.n_rows:
        raise ValueError("add: arrays of different sizes")
    with nogil:
        for i in range(spans.shape[0]):
            add_to(&f[0], r.rows + spans[i, 0], spans[i, 1] - spans[i, 0], value[i])


def begin_steps(arrays, steps, const double[::1] guess, double l2, double most, bint solved):
    """Choose the first looks at leaves. IN/OUT steps (n,), of which bounds, weights and copies are set."""
    cdef Rows rows = read_rows(arrays)
    cdef Step* step = <Step*>address(steps)
    cdef Far far
    cdef Py_ssize_t i
    if len(steps) != guess.shape[0]:
        raise ValueError("begin_steps: arrays of different sizes")
    for i in range(guess.shape[0]):
        far.u, far.y, far.size = step[i].u, step[i].y, step[i].size
        bound_step(&rows, &far, step + i, l2, most)
        begin_step(&rows, step + i, guess[i], solved)


def take_looks(arrays, steps, const double[:, ::1] found, uint8_t[::1] is_open):
    """Take in sums of slopes and curvatures, (n, 2), of the leaves that are open. IN/OUT steps (n,),
    is_open (n,): at which another look is wanted."""
    cdef Rows rows = read_rows(arrays)
    cdef Step* step = <Step*>address(steps)
    cdef Py_ssize_t i
    if not len(steps) == found.shape[0] == is_open.shape[0] or found.shape[1] != 2:
        raise ValueError("take_looks: arrays of different sizes")
    for i in range(found.shape[0]):
        if is_open[i]:
            step[i].slope_sum, step[i].bend_sum = found[i, 0], found[i, 1]
            is_open[i] = take_look(&rows, step + i)
