"""Rounds of boosting whose rows lie in several places: what one of them finds of its rows, and how what all
send becomes steps.

The arrays of a place are those of a round (see `Rounds` in trees/rounds.py), whose nodes are known
elsewhere: rows of one stand from `start` to `stop`. Sums are whole numbers that float64 holds, so that those
of places are added up without an error, whatever rows they have. (Kernels of one table: boost.pyx.)
"""
from libc.math cimport fabs

from pboost._core import boost
from pboost._core._address cimport address
from pboost._core._boost_count cimport count_node
from pboost._core._boost_grow cimport Parting, part_rows
from pboost._core._boost_leaf cimport (
    Far, IS_OF_MARGIN, Leaf, Look, LossPasses, Rows, Step, begin_step, bound_step, no_far, pboost_bounds, scale_of,
    sums_part, take_look,
)
from pboost._core._boost_levels cimport squares_in
from pboost._core._boost_read cimport read_round, read_rows
from pboost._core._boost_round cimport Node, Passes, Round, is_pure, kind_of, read_bin
from pboost._core._boost_share cimport (
    Gather, Slopes, far_part, gather_leaf, gather_part, pack_rows, slopes_part,
)
from pboost._core._team cimport run_ranges
from pboost._core.types cimport HOLES, MAX_BINS, int32_t, uint8_t

cdef Passes* passes = <Passes*><size_t>boost.PASSES[0]
cdef LossPasses* loss_passes = <LossPasses*><size_t>boost.PASSES[1]
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


cdef int check_rows(arrays, Py_ssize_t start, Py_ssize_t stop) except -1:
    if not 0 <= start <= stop <= arrays.n_listed:
        raise ValueError("expected rows of the arrays")
    return 0


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
    cdef const double* gradient = <const double*>r.packed
    cdef Py_ssize_t i, copies, large = 0, some = 0
    cdef double limit = steepest / 4096.0
    with nogil:
        for i in range(r.n_rows):
            copies = 1 if r.copies == NULL else <Py_ssize_t>r.copies[i]
            large += copies * (fabs(gradient[i]) >= limit)
            some += copies * (gradient[i] != 0.0)
    return large, some


def pack(arrays, double gradient_scale, double curvature_scale):
    """Pack the derivatives of the rows listed."""
    cdef Round r = read_round(arrays, passes)
    with nogil:
        pack_rows(&r, loss_passes, gradient_scale, curvature_scale)


def count(arrays, Py_ssize_t start, Py_ssize_t stop, double[:, :, ::1] out):
    """OUT the masses of rows by bin, (n_lanes, 256, 2)."""
    cdef Round r = read_round(arrays, passes)
    cdef Node node = node_at(&r, start, stop)
    cdef Py_ssize_t lane, b
    check_rows(arrays, start, stop)
    if out.shape[0] != r.n_lanes or out.shape[1] != MAX_BINS or out.shape[2] != 2:
        raise ValueError("count: expected masses of all lanes")
    with nogil:
        count_node(&r, &node, r.masses)
        for lane in range(r.n_lanes):
            for b in range(r.n_bins[lane] + (kind_of(&r, lane) & HOLES)):
                read_bin(&r, &node, r.masses, lane, b, &out[lane, b, 0], &out[lane, b, 1])


def part(
    arrays, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t feature, const uint8_t[::1] above, bint with_words
):
    """Part rows by the sides of the codes of a column, (256,); returns how many are below."""
    cdef Round r = read_round(arrays, passes)
    cdef Py_ssize_t n = stop - start, n_below
    cdef Parting all
    check_rows(arrays, start, stop)
    if not 0 <= feature < r.d or above.shape[0] != MAX_BINS:
        raise ValueError("part: expected a column, and sides of all codes")
    if n == 0:
        return 0
    all.r, all.codes, all.table, all.cut = &r, r.codes + feature * r.stride, &above[0], 0
    all.rows, all.words = r.rows + start, NULL
    if with_words and r.low == NULL:
        all.words = r.packed + start
    all.spare, all.spare_words, all.step = r.spare, r.spare_packed, n
    with nogil:
        n_below = part_rows(&all, r.team, r.who, n)
    return n_below


def are_pure(arrays, Py_ssize_t start, Py_ssize_t stop, double gradient, double curvature):
    """Return whether the Newton steps of rows are that of the node which has these sums."""
    cdef Round r = read_round(arrays, passes)
    cdef Node node = node_at(&r, start, stop)
    cdef bint found
    check_rows(arrays, start, stop)
    node.gradient, node.curvature = gradient, curvature
    with nogil:
        found = is_pure(&r, &node)
    return found


def squares(arrays, Py_ssize_t start, Py_ssize_t stop):
    """Return the sum of the squares of the Newton steps of rows, see `spread_of` in _boost_levels.pxd."""
    cdef Round r = read_round(arrays, passes)
    cdef Node node = node_at(&r, start, stop)
    check_rows(arrays, start, stop)
    return squares_in(&r, &node)


# ---------------------------------------------------------------------------------------------
# Leaves.

def gather(arrays, Py_ssize_t start, Py_ssize_t stop):
    """Gather the rows of a leaf for `sums`; returns the bounds of `farthest`, the greatest weight and the
    number of copies."""
    cdef Round r = read_round(arrays, passes)
    cdef Rows rows = read_rows(arrays)
    cdef double* weight = NULL
    cdef Leaf leaf
    cdef Gather all
    check_rows(arrays, start, stop)
    if rows.weight != NULL:
        weight = <double*>address(arrays.leaf_weight)
    leaf.who, leaf.passes = 0, loss_passes
    with nogil:
        gather_leaf(&r, &rows, &leaf, &all, start, start, weight, stop - start)
        run_ranges(leaf.team, 0, leaf.n, r.share, gather_part, &all)
    return leaf.far.u, leaf.far.y, leaf.far.size, leaf.step.heaviest, leaf.step.n_copies


def sums(
    arrays, Py_ssize_t start, Py_ssize_t stop, double step, bint is_raised, double slope_scale,
    double bend_scale
):
    """Return the sums of slopes and curvatures of rows that are gathered, where they add `step`."""
    cdef Round r = read_round(arrays, passes)
    cdef Rows rows = read_rows(arrays)
    cdef double* weight = NULL
    cdef Leaf leaf
    cdef Gather all
    cdef Look look
    check_rows(arrays, start, stop)
    if rows.weight != NULL:
        weight = <double*>address(arrays.leaf_weight)
    leaf.who, leaf.passes = 0, loss_passes
    with nogil:
        gather_leaf(&r, &rows, &leaf, &all, start, start, weight, stop - start)
        leaf.step.at, leaf.step.is_raised = step, is_raised
        leaf.step.slope_scale, leaf.step.bend_scale = slope_scale, bend_scale
        leaf.step.slope_sum = leaf.step.bend_sum = 0.0
        look.leaf, look.in_hand = &leaf, 0
        run_ranges(leaf.team, 0, leaf.n, r.share, sums_part, &look)
    return leaf.step.slope_sum, leaf.step.bend_sum


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
