"""Boosting rounds on binned features: gradients, tree growth, leaf values and decision values.

A round uses arrays of the caller (see `Rounds` in trees/tree_rounds.py). First call `slopes`, or write the
gradients and Hessians to the arrays. Then call `pack`, `begin`, `grow` until it returns True, `add_leaves` and,
for rows of weight 0, `draws.add_others`. A tree can be grown on some of the rows: see `draws.keep` and
`draws.leave_out`. Results do not depend on the order of rows.
"""
from libc.float cimport DBL_MAX
from libc.math cimport fabs, isfinite, rint

import numpy as np

from pboost._core._address cimport to_read, to_write
from pboost._core._boost_best cimport begin_best, end_best, split_best
from pboost._core._boost_columns cimport take_for_node
from pboost._core._boost_histogram cimport (
    Counted, count_node, pack_masses, spare_of, subtract_child, take_masses, unpack_masses,
)
from pboost._core._boost_gains cimport Sets, gains_of
from pboost._core._boost_grow cimport (
    Parting, find_cut, grow_together, is_smoothed, list_preorder, make_children, make_root, note_leaf,
    other_child, part_rows, pieces_of, put_sides, sum_root,
)
from pboost._core._boost_leaf cimport (
    IS_OF_MARGIN, N_LOSSES, OF_CURVATURE, OF_GRADIENT, OF_WIDE, SHARES, Far, Leaf, Look, LossPasses, Rows,
    Step, begin_step, bound_step, bounded, loss_name, no_far, pboost_bounds, pboost_choose_loss_passes,
    power_below, scale_of, step_of_rows, sums_part, take_look,
)
from pboost._core._boost_categories cimport spread_of, squares_in
from pboost._core._boost_pooled cimport Level, begin_levels, find_pooled, find_shared, split_level
from pboost._core._boost_read cimport read_loss, read_round, read_rows, residual_of
from pboost._core._boost_round cimport (
    LANES, ROOM, WORDS, Node, Open, Passes, Round, Stack, State, add_to, is_pure,
    read_bin,
)
from pboost._core._boost_share cimport (
    Added, Gather, Slopes, add_part, far_part, gather_leaf, gather_part, pack_all,
    slopes_part,
)
from pboost._core._boost_packed cimport copies_in
from pboost._core._team cimport (
    Threads, close_post, help, load, open_post, plus, run_ranges, team_at,
)
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint64_t, uint8_t

cdef extern from "boost_simd.h" nogil:
    Passes pboost_choose_passes(int level)

cdef enum:
    FINE_WORDS = 256
cdef Passes passes = pboost_choose_passes(2)
cdef LossPasses loss_passes = pboost_choose_loss_passes(2)
cdef Node _node
cdef Open _open
cdef State _state
cdef Stack _stack
#: The dtypes of the state arrays of a round, each given by an array with one item.
STATE = {
    "node": <Node[:1]>&_node, "open": <Open[:1]>&_open, "state": <State[:1]>&_state,
    "stack": <Stack[:1]>&_stack,
}
#: The losses whose gradients are computed here, and their codes.
LOSSES = {loss_name(k).decode(): k for k in range(N_LOSSES) if k != SHARES}
#: The code for one class of the softmax loss, for which the caller passes the gradients.
OF_SHARES = SHARES
#: Number of padding entries at the end of arrays of rows.
BEHIND = ROOM
#: Number of bits of a gradient and of a Hessian in a packed word.
GRADIENT_BITS, CURVATURE_BITS = OF_GRADIENT, OF_CURVATURE
#: Packed sums are precise enough for a Newton step if the mean Hessian of a leaf's rows is at least this
#: many units.
FINE = FINE_WORDS
#: Size in bytes of the struct that stores the order of a feature's categories for a tree level.
SETS_SIZE = sizeof(Sets)
#: Largest number of bits of a gradient or Hessian that is stored in two words.
WIDE_BITS = OF_WIDE


def use_simd_level(int level):
    """Choose the SIMD instructions for tests: 0 for baseline, 1 for AVX2 or 2 for AVX-512."""
    global passes, loss_passes
    passes, loss_passes = pboost_choose_passes(level), pboost_choose_loss_passes(level)


cdef Passes choose_passes(int level) noexcept:
    return pboost_choose_passes(level)


cdef WordsPass choose_words_pass(int level) noexcept:
    return pboost_choose_loss_passes(level).words


# ---------------------------------------------------------------------------------------------
# Gradients and Hessians of a round.

def slopes(arrays):
    """Compute the gradients (in `packed`) and Hessians (in `spare_packed`) of the loss at `f`.

    They include the row weights, unless weights are numbers of copies. Returns the largest absolute
    gradient, the largest Hessian and the sum of the losses.
    """
    cdef Rows rows = read_rows(arrays)
    cdef Threads* team = team_at(arrays.team)
    cdef Py_ssize_t n = arrays.codes.shape[1], n_copies = arrays.n_copies, share = arrays.share
    cdef double most
    cdef double[2] ignored
    cdef Slopes all
    all.rows, all.passes, all.in_hand = &rows, &loss_passes, 0
    all.gradient = <double*>to_write(arrays.packed, sizeof(double))
    all.curvature = <double*>to_write(arrays.spare_packed, sizeof(double))
    all.far = no_far(&rows)
    all.found[0] = all.found[1] = all.found[2] = 0.0
    with nogil:
        run_ranges(team, 0, n, share, far_part, &all)
        pboost_bounds(&rows, &all.far, 0.0, &ignored[0], &ignored[1], &most)
        all.scale = scale_of(2.0 * most, n_copies)
        run_ranges(team, 0, n, share, slopes_part, &all)
    return all.found[0], all.found[1], all.found[2] / all.scale if isfinite(most) else most


def is_uneven(arrays, double steepest):
    """Return whether most gradients are much smaller than the largest.

    This is the case if fewer than 1 % of the nonzero gradients are at least 1/4096 of the largest. All
    other gradients keep six bits or fewer in a packed word.
    """
    cdef const double* gradient = <const double*>to_read(arrays.packed, sizeof(double))
    cdef const double* residual = residual_of(arrays)
    cdef Rows rows = read_rows(arrays)
    cdef const double* weight = rows.weight if residual != NULL or rows.are_copies else NULL
    cdef Py_ssize_t start, i, n = arrays.codes.shape[1], left, large = 0, some = 0, copies
    cdef double limit = steepest / 4096.0, size
    if residual != NULL:
        gradient = residual
    left = arrays.n_copies if rows.are_copies else n
    with nogil:
        for start in range(0, n, 4096):
            for i in range(start, min(start + 4096, n)):
                copies = 1
                size = fabs(gradient[i])
                if rows.are_copies:
                    copies = <Py_ssize_t>weight[i]
                elif weight != NULL:
                    size *= weight[i]
                large += copies * (size >= limit)
                some += copies * (size != 0.0)
                left -= copies
            if 100 * large >= some + left:  # the remaining rows cannot change the result
                break
    return 100 * large < some


def units(arrays, double steepest, double most):
    """Return the scales of gradients and of Hessians, which are powers of two, and the bits of a Hessian.

    `steepest` and `most` are the largest absolute gradient and the largest Hessian.
    """
    cdef int gradient_bits = OF_GRADIENT, curvature_bits = OF_CURVATURE, bits
    cdef Py_ssize_t n = arrays.n_copies
    if arrays.is_wide:
        bits = 52
        while n > 1:
            n, bits = (n + 1) // 2, bits - 1
        gradient_bits = curvature_bits = min(bits, WIDE_BITS)
    return power_below(steepest, gradient_bits), power_below(most, curvature_bits), curvature_bits


def fix(arrays):
    """Return the pointers to the arrays of a round, for the attribute `fixed`.

    Most arrays and options of a fit do not change, and reading them takes longer than growing a small tree.
    """
    fixed = np.empty(1, dtype=f"V{sizeof(Round)}")
    cdef Round r = read_round(arrays, &passes)
    (<Round*>to_write(fixed, sizeof(Round)))[0] = r
    return fixed


def begin(arrays):
    """Create the root from the packed gradients of the listed rows."""
    cdef Round r = read_round(arrays, &passes)
    cdef const double[:, :, :] root = arrays.root
    cdef Counted counted
    with nogil:
        make_root(&r)
        if root is None or r.low != NULL:
            count_node(&r, r.node, r.masses)
        else:
            counted.found, counted.lane = &root[0, 0, 0], root.strides[0] // sizeof(double)
            counted.step, counted.curvature = root.strides[1] // sizeof(double), root.strides[2] // sizeof(double)
            take_masses(&r, r.node, r.masses, &counted)
        sum_root(&r)


# ---------------------------------------------------------------------------------------------
# Growth.

def grow(arrays, Py_ssize_t cells):
    """Split nodes until about `cells` cells have been read or no node is open.

    Return whether no node is open.
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Py_ssize_t done = 0
    with nogil:
        if r.pool != NULL:
            if r.state.leaves == 0:
                begin_levels(&r)
            while r.state.open > 0 and done < cells:
                done += split_level(&r) * r.d
        elif r.max_leaves == 0:
            r.state.done, r.state.wanted = 0, cells
            grow_together(&r)
        else:
            if r.state.leaves == 0:
                begin_best(&r)
            while 0 < r.state.open and r.state.leaves < r.max_leaves and done < cells:
                done += split_best(&r) * r.d
            if r.state.leaves == r.max_leaves:
                end_best(&r)
    return r.state.open == 0


def list_nodes(
    arrays, nodes, int32_t[:, ::1] children, uint64_t[:, ::1] subset, int32_t[::1] place,
    int64_t[:, ::1] mass, double unit
):
    """Write the nodes of the grown tree in preorder.

    OUT nodes (n,), with gains in this unit; children (n, 2), -1 in leaves; subset (n, 4), empty without
    categorical features; mass (n, 2): the Hessian sum of each node, and 0; WORK place (2 n,). n is the
    number of `nodes` in the state.
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Py_ssize_t n = r.state.nodes, k
    cdef bint has_sets = subset.shape[0] > 0
    if (len(nodes) != n or children.shape[0] != n or children.shape[1] != 2 or place.shape[0] < 2 * n
            or mass.shape[0] != n or mass.shape[1] != 2
            or (has_sets and (subset.shape[0] != n or subset.shape[1] != WORDS))):
        raise ValueError("list_nodes: arrays of different sizes")
    cdef Node* out = <Node*>to_write(nodes, sizeof(Node))
    with nogil:
        list_preorder(&r, out, &children[0, 0], &subset[0, 0] if has_sets else NULL, &place[0])
        for k in range(n):
            mass[k, 0], mass[k, 1] = <int64_t>out[k].curvature, 0
            out[k].loss *= unit
            if out[k].loss > DBL_MAX:
                out[k].loss = DBL_MAX


# ---------------------------------------------------------------------------------------------
# Growth of a tree whose rows are on several workers. Histograms are summed over the workers.

cdef Round read_open(arrays) except *:
    """Read the arrays of a round, with the open nodes in `open` (1, k)."""
    cdef Round r = read_round(arrays, &passes)
    r.state.open = arrays.open.shape[1]
    return r


cdef int check_masses(const Round* r, const double[:, ::1] masses) except -1:
    if masses.shape[1] != r.slot:
        raise ValueError("expected masses by bin of all lanes")
    return 0


def begin_counted(arrays, const double[:, ::1] masses, double squares):
    """Create the root from its histogram (1, cells) and its sum of squared Newton steps."""
    cdef Round r = read_open(arrays)
    check_masses(&r, masses)
    with nogil:
        make_root(&r)
        pack_masses(&r, r.node, &masses[0, 0], r.masses)
        sum_root(&r)
        if is_smoothed(&r):
            r.node.spread = spread_of(&r, r.node, squares)


def take_open_masses(arrays, const double[:, ::1] masses):
    """Store the histograms (k, cells) of the open nodes."""
    cdef Round r = read_open(arrays)
    cdef Py_ssize_t i
    check_masses(&r, masses)
    for i in range(min(r.state.open, masses.shape[0])):
        pack_masses(&r, r.node + r.open[i].node, &masses[i, 0], r.masses + r.open[i].slot * r.slot)


def cut_open(arrays, bint is_pooled, rows_by_bin=None):
    """Find the splits of the open nodes: by pooled gains, or by the gain in each node.

    With `rows_by_bin` (k, d, 256), both children must have enough rows. In `open`, `n_below` becomes 0, or
    -1 if a node has no split.
    """
    cdef Round r = read_open(arrays)
    cdef const int32_t[:, :, ::1] rows = rows_by_bin
    cdef Level level
    cdef Open* at
    cdef Py_ssize_t i
    cdef bint is_cut
    if rows is not None and (
            rows.shape[0] != r.state.open or rows.shape[1] != r.d or rows.shape[2] != MAX_BINS):
        raise ValueError("cut_open: expected rows by column and bin of all open nodes")
    with nogil:
        level.r = &r
        for i in range(r.state.open):
            r.open[i].n_below = 0
        if is_pooled and r.state.open > 0:
            find_shared(&r, &level)
        for i in range(r.state.open):
            at = r.open + i
            if is_pooled:
                is_cut = find_pooled(&r, at, gains_of(&r, i), &level.shared)
            else:
                if rows is not None:
                    r.rows_by_bin = &rows[i, 0, 0]
                take_for_node(&r, r.node + at.node)
                is_cut = find_cut(
                    &r, r.node + at.node, r.masses + at.slot * r.slot, rows is not None, &at.gradient,
                    &at.curvature)
            if not is_cut:
                note_leaf(r.node + at.node)
                at.n_below = -1


def open_sides(arrays, uint8_t[:, ::1] above):
    """Compute the child of each bin code of the split features of the open nodes (OUT above (k, 256))."""
    cdef Round r = read_open(arrays)
    cdef Py_ssize_t i
    if above.shape[0] != r.state.open or above.shape[1] != MAX_BINS:
        raise ValueError("open_sides: expected sides of all codes")
    for i in range(r.state.open):
        put_sides(&r, r.node + r.open[i].node, &above[i, 0])


def split_open(
    arrays, const int32_t[::1] counted, const int32_t[::1] slot, double[:, ::1] masses,
    const double[:, ::1] squares
):
    """Create the children of the open nodes. `n_below`, the number of left rows of each node, must be set.

    `masses` (n, cells) contains the histogram of one child of each node whose children will be split, in
    the order of the nodes. `counted` (k,) is 0 for the left child, 1 for the right child, and -1 if the
    children will not be split. `squares` (k, 2) has the sums of squared Newton steps of both children. The
    histogram of the smaller child is stored in `slot` (k,). The histogram of the larger child is stored in
    its parent's slot. WORK masses.
    """
    cdef Round r = read_open(arrays)
    cdef Py_ssize_t i, k = 0, side, n = r.state.open
    cdef Node* node
    cdef Node* small
    cdef double* whole
    cdef double* part
    cdef Open at
    check_masses(&r, masses)
    if not counted.shape[0] == slot.shape[0] == squares.shape[0] == n or squares.shape[1] != 2:
        raise ValueError("split_open: arrays of different sizes")
    for i in range(n):
        k += counted[i] >= 0
    if k != masses.shape[0]:
        raise ValueError("split_open: expected masses of all children that are counted")
    with nogil:
        k = 0
        for i in range(n):
            at = r.open[i]
            small = make_children(&r, at.node, at.n_below, at.gradient, at.curvature)
            if counted[i] < 0:
                continue
            node = r.node + at.node
            if is_smoothed(&r):
                for side in range(2):
                    r.node[node.child + side].spread = spread_of(
                        &r, r.node + node.child + side, squares[i, side])
            whole, part = r.masses + at.slot * r.slot, r.masses + slot[i] * r.slot
            if r.node + node.child + counted[i] != small:
                take_rest(&r, node, whole, &masses[k, 0])
            pack_masses(&r, small, &masses[k, 0], part)
            subtract_child(&r, node, small, other_child(&r, small), whole, part)
            k += 1


cdef void take_rest(const Round* r, const Node* node, const double* whole, double* part) noexcept nogil:
    """Replace the histogram of one child of a node by the other child's histogram (IN/OUT part)."""
    cdef Py_ssize_t lane, b, cell
    cdef double gradient, curvature
    for lane in range(r.n_lanes):
        for b in range(r.group_bins[lane // LANES]):
            read_bin(r, node, whole, lane, b, &gradient, &curvature)
            cell = r.group_place[lane // LANES] + b * LANES + lane % LANES
            part[cell] = gradient - part[cell]
            cell += <Py_ssize_t>r.group_bins[lane // LANES] * LANES
            part[cell] = curvature - part[cell]


# ---------------------------------------------------------------------------------------------
# Leaf values.

def solve_leaves(arrays, nodes, double l2, double most, double rate, double unit, bint solved):
    """Compute the leaf values of a tree in preorder (IN/OUT nodes (n,)).

    A leaf value is `rate` times the best step if `solved` is true, and `rate` times a Newton step
    otherwise. Steps are clipped to +-`most`. `unit` is the unit of the gradients divided by the unit of the
    Hessians. For softmax, Newton steps are computed from packed sums, unless the mean Hessian of the leaf's
    rows is less than FINE units.
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Rows rows = read_rows(arrays)
    cdef const double* residual = residual_of(arrays)
    cdef Leaves all
    if residual != NULL:
        rows.loss, rows.y, rows.f = SHARES, residual, residual
    all.r, all.rows, all.node, all.n, all.next = &r, &rows, <Node*>to_write(nodes, sizeof(Node)), len(nodes), 0
    all.weight = <double*>to_write(arrays.leaf_weight, sizeof(double)) if rows.weight != NULL else NULL
    all.l2, all.most, all.rate, all.unit, all.solved = l2, most, rate, unit, solved
    with nogil:
        if r.team != NULL:
            open_post(r.team, 0, leaves_part, &all)
        leaves_part(&all, 0)
        if r.team != NULL:
            close_post(r.team, 0, 0)


cdef struct Leaves:
    const Round* r
    const Rows* rows
    Node* node
    Py_ssize_t n
    double* weight  # memory for the weights of a leaf; NULL if all weights are 1
    double l2, most, rate, unit
    bint solved
    int32_t next


cdef bint leaves_part(void* task, int who) noexcept nogil:
    """Compute the values of leaves until none is left, large leaves first."""
    cdef Leaves* all = <Leaves*>task
    cdef Node* node
    cdef Py_ssize_t k
    cdef bint did = False
    while load(&all.next) < 2 * all.n:
        k = plus(&all.next, 1)
        if k >= 2 * all.n:
            break
        node = all.node + k % all.n
        if node.feature < 0 and (node.stop - node.start >= all.r.n // 16) == (k < all.n):
            node.mean = all.rate * step_of(all, node, who)
            did = True
    return did or (all.r.team != NULL and help(all.r.team, who, 1))


cdef double step_of(const Leaves* all, const Node* node, int who) noexcept nogil:
    """Return the step of a leaf.

    Its rows are copied to the arrays of packed words, which are no longer needed.
    """
    cdef const Round* r = all.r
    cdef const Rows* rows = all.rows
    cdef Py_ssize_t place = spare_of(r, node), n = node.stop - node.start
    # Start from Newton's step, which is near the best step.
    cdef double guess = -all.unit * node.gradient / (node.curvature + r.l2)
    cdef Leaf leaf
    cdef Gather gather
    leaf.step.most = all.most
    if rows.loss == SHARES and not all.solved and node.curvature >= FINE_WORDS * copies_in(r, node):
        return bounded(&leaf.step, guess)
    leaf.who, leaf.passes = who, &loss_passes
    gather_leaf(r, rows, &leaf, &gather, node.start, place, all.weight, n)
    run_ranges(leaf.team, who, n, r.share, gather_part, &gather)
    bound_step(rows, &leaf.far, &leaf.step, all.l2, all.most)
    return step_of_rows(&leaf, guess, all.solved)


def add_leaves(arrays, nodes):
    """Add the leaf values of a tree in preorder to the decision values of its rows."""
    cdef Round r = read_round(arrays, &passes)
    cdef Added all
    all.r, all.node, all.n = &r, <const Node*>to_read(nodes, sizeof(Node)), len(nodes)
    all.f = <double*>to_write(arrays.f, sizeof(double))
    with nogil:
        run_ranges(r.team, 0, r.n, r.share, add_part, &all)


def newton_leaves(
    arrays, nodes, const double[::1] gradient, const double[::1] curvature, double l2, double most,
    double rate
):
    """Compute the Newton leaf values from the gradients and Hessians of all rows."""
    cdef Round r = read_round(arrays, &passes)
    cdef Node* node = <Node*>to_write(nodes, sizeof(Node))
    cdef const int32_t* rows
    cdef Py_ssize_t n_nodes = len(nodes), e, n
    cdef double slope, bend
    with nogil:
        for e in range(n_nodes):
            if node[e].feature < 0:
                rows, n = r.rows + node[e].start, node[e].stop - node[e].start
                slope = sum_of(&gradient[0], r.copies, rows, n)
                bend = sum_of(&curvature[0], r.copies, rows, n) + l2
                if bend > 0.0:
                    node[e].mean = rate * min(max(-slope / bend, -most), most)


cdef double sum_of(
    const double* values, const double* copies, const int32_t* rows, Py_ssize_t n
) noexcept nogil:
    """Return the sum over the listed rows and their copies. The order of the rows does not matter."""
    cdef double most = 0.0, scale, total = 0.0, terms = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        most = max(most, fabs(values[rows[i]]))
        terms += 1.0 if copies == NULL else copies[rows[i]]
    scale = scale_of(2.0 * most, <Py_ssize_t>terms)
    for i in range(n):
        total += rint(values[rows[i]] * scale) * (1.0 if copies == NULL else copies[rows[i]])
    return total / scale


def exact_sum(const double[::1] values, copies=None):
    """Return the sum of numbers, repeated `copies` (n,) times. Their order does not matter."""
    scale = sum_scale(*sum_bound(values, copies))
    return scaled_sum(values, scale, copies) / scale


def sum_bound(const double[::1] values, copies=None):
    """Return the largest absolute value and the count of values that are not 0, including copies."""
    cdef double most = 0.0, terms = 0.0
    cdef Py_ssize_t i
    cdef const double* k = NULL
    if copies is not None:
        k = <const double*>to_read(copies, sizeof(double))
    with nogil:
        for i in range(values.shape[0]):
            if values[i] != 0.0:
                most = max(most, fabs(values[i]))
                terms += 1.0 if k == NULL else k[i]
    return most, terms


def sum_scale(double most, double terms):
    """Return a factor that scales numbers so that the float64 sum of the rounded numbers is exact."""
    return scale_of(2.0 * most, <Py_ssize_t>terms)


def scaled_sum(const double[::1] values, double scale, copies=None):
    """Return the sum of the scaled and rounded numbers, each multiplied by its number of copies."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    cdef const double* k = NULL
    if copies is not None:
        k = <const double*>to_read(copies, sizeof(double))
    with nogil:
        for i in range(values.shape[0]):
            total += rint(values[i] * scale) * (1.0 if k == NULL else k[i])
    return total


# ---------------------------------------------------------------------------------------------
# Boosting rounds whose rows are on several workers.
#
# Each worker has the arrays of a round (see `Rounds` in trees/tree_rounds.py) for its partition of the
# rows. It does not store nodes: a node is a range of rows, `start` to `stop`. Sums are integers that
# float64 represents exactly, so they do not depend on how the rows are partitioned.

cdef Step _step
#: The dtype of the state of the search for a leaf value, given by an array with one item.
STEP = <Step[:1]>&_step
#: The losses that are functions of the margin. Their largest loss is at the smallest margin.
OF_MARGIN = [name for name, code in LOSSES.items() if IS_OF_MARGIN(code)]


cdef inline Node node_at(const Round* r, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Return a node that contains a range of rows."""
    cdef Node node
    node.start, node.stop = <int32_t>start, <int32_t>stop
    node.depth = stop - start < r.n
    return node


def farthest(arrays):
    """Return bounds that limit the losses of all rows; see `pboost_far` in boost_loss.h."""
    cdef Rows rows = read_rows(arrays)
    cdef Round r = read_round(arrays, &passes)
    cdef Slopes all
    all.rows, all.passes, all.in_hand, all.far = &rows, &loss_passes, 0, no_far(&rows)
    with nogil:
        run_ranges(r.team, 0, r.n_rows, r.share, far_part, &all)
    return all.far.u, all.far.y, all.far.size


def loss_scale(arrays, double u, double y, double size):
    """Return the scale for an exact sum of losses, and an upper bound on the loss of a row."""
    cdef Rows rows = read_loss(arrays)
    cdef Py_ssize_t n_copies = arrays.n_copies
    cdef double[2] ignored
    cdef double most
    cdef Far far
    far.u, far.y, far.size = u, y, size
    pboost_bounds(&rows, &far, 0.0, &ignored[0], &ignored[1], &most)
    return scale_of(2.0 * most, n_copies), most


def place_slopes(arrays, double scale):
    """Compute gradients and Hessians like `slopes`.

    The sum of the losses is returned as an integer multiple of 1 / `scale`.
    """
    cdef Rows rows = read_rows(arrays)
    cdef Round r = read_round(arrays, &passes)
    cdef Slopes all
    all.rows, all.passes, all.in_hand, all.scale = &rows, &loss_passes, 0, scale
    all.gradient, all.curvature = <double*>r.packed, <double*>r.spare_packed
    all.found[0] = all.found[1] = all.found[2] = 0.0
    with nogil:
        run_ranges(r.team, 0, r.n_rows, r.share, slopes_part, &all)
    return all.found[0], all.found[1], all.found[2]


def sizes(arrays, double steepest):
    """Count the gradients that are at least 1/4096 of the largest, and the nonzero gradients."""
    cdef Round r = read_round(arrays, &passes)
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


def pack(arrays, double gradient_scale, double curvature_scale, words=None):
    """Pack the gradients and Hessians of the listed rows in `packed`, or of all rows (OUT words (n_rows,))."""
    cdef Round r = read_round(arrays, &passes)
    cdef int64_t* to = r.packed if words is None else <int64_t*>to_write(words, sizeof(int64_t))
    cdef Rows rows = read_rows(arrays)
    cdef const double* residual = residual_of(arrays)
    with nogil:
        pack_all(&r, &rows, residual, &loss_passes, gradient_scale, curvature_scale, to)


# ---------------------------------------------------------------------------------------------
# Nodes. Node i has the rows from `spans[i, 0]` to `spans[i, 1]` - 1.

cdef int check_spans(arrays, const int64_t[:, ::1] spans) except -1:
    cdef Py_ssize_t i
    for i in range(spans.shape[0]):
        if spans.shape[1] != 2 or not 0 <= spans[i, 0] <= spans[i, 1] <= arrays.n_listed:
            raise ValueError("expected spans of rows of the arrays")
    return 0


cdef inline void count_into(const Round* r, const Node* node, double* masses) noexcept nogil:
    """Compute the histogram of a node as pairs of sums (OUT masses)."""
    count_node(r, node, masses)
    unpack_masses(r, node, masses)


def count(arrays, const int64_t[:, ::1] spans, double[:, ::1] masses):
    """Compute the histograms of nodes (OUT masses (k, cells))."""
    cdef Round r = read_round(arrays, &passes)
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
    """Add the number of rows of each node, feature and bin (IN/OUT found (k, d, 256))."""
    cdef Round r = read_round(arrays, &passes)
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
    """Partition the rows of each node between its children.

    `above` (k, 256) is the child of each bin code of the split feature. If `with_words` is true, packed
    words are also partitioned, except in nodes with `counted` -1, whose children will not be split. OUT
    n_below (k,): the number of left rows.
    """
    cdef Round r = read_round(arrays, &passes)
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
    """Compare the Newton steps of the rows of each node.

    IN sums (k, 2) of the nodes; OUT mixed (k,): 0 if all rows have the Newton step of the node, else 1;
    squares (k or 0,): the sums of squared Newton steps.
    """
    cdef Round r = read_round(arrays, &passes)
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
    """Return the memory for the weights of leaves; NULL if all weights are 1."""
    return NULL if rows.weight == NULL else <double*>to_write(arrays.leaf_weight, sizeof(double))


def gather(arrays, const int64_t[:, ::1] spans, double[:, ::1] found):
    """Copy the rows of each leaf for `sums`.

    OUT found (k, 5): the bounds that `farthest` returns, the largest weight, and the number of copies.
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Rows rows = read_rows(arrays)
    cdef double* weight = leaf_weights(arrays, &rows)
    cdef Py_ssize_t i
    cdef Leaf leaf
    cdef Gather all
    check_spans(arrays, spans)
    if found.shape[0] != spans.shape[0] or found.shape[1] != 5:
        raise ValueError("gather: expected five numbers of each leaf")
    leaf.who, leaf.passes = 0, &loss_passes
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
    """Sum the gradients and Hessians of the copied rows of each leaf after a step.

    IN step (k,): the step of each leaf. OUT found (k, 2), in units of 1 / `scale` (k, 2).
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Rows rows = read_rows(arrays)
    cdef double* weight = leaf_weights(arrays, &rows)
    cdef Py_ssize_t i, k = spans.shape[0]
    cdef Leaf leaf
    cdef Gather all
    cdef Look look
    check_spans(arrays, spans)
    if not step.shape[0] == is_raised.shape[0] == scale.shape[0] == found.shape[0] == k:
        raise ValueError("sums: arrays of different sizes")
    leaf.who, leaf.passes = 0, &loss_passes
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
    """Add a value to the decision values of each leaf's rows (IN/OUT f (n,))."""
    cdef Round r = read_round(arrays, &passes)
    cdef Py_ssize_t i
    check_spans(arrays, spans)
    if value.shape[0] != spans.shape[0] or f.shape[0] != r.n_rows:
        raise ValueError("add: arrays of different sizes")
    with nogil:
        for i in range(spans.shape[0]):
            add_to(&f[0], r.rows + spans[i, 0], spans[i, 1] - spans[i, 0], value[i])


def begin_steps(arrays, steps, const double[::1] guess, double l2, double most, bint solved):
    """Choose the first step to evaluate for each leaf.

    IN/OUT steps (n,): the bounds, weights and numbers of copies must be set.
    """
    cdef Rows rows = read_loss(arrays)
    cdef Step* step = <Step*>to_write(steps, sizeof(Step))
    cdef Far far
    cdef Py_ssize_t i
    if len(steps) != guess.shape[0]:
        raise ValueError("begin_steps: arrays of different sizes")
    for i in range(guess.shape[0]):
        far.u, far.y, far.size = step[i].u, step[i].y, step[i].size
        bound_step(&rows, &far, step + i, l2, most)
        begin_step(&rows, step + i, guess[i], solved)


def take_looks(arrays, steps, const double[:, ::1] found, uint8_t[::1] is_open):
    """Continue the search for the values of leaves with new sums `found` (n, 2).

    IN/OUT steps (n,), is_open (n,): 1 if another evaluation is needed, else 0.
    """
    cdef Rows rows = read_loss(arrays)
    cdef Step* step = <Step*>to_write(steps, sizeof(Step))
    cdef Py_ssize_t i
    if not len(steps) == found.shape[0] == is_open.shape[0] or found.shape[1] != 2:
        raise ValueError("take_looks: arrays of different sizes")
    for i in range(found.shape[0]):
        if is_open[i]:
            step[i].slope_sum, step[i].bend_sum = found[i, 0], found[i, 1]
            is_open[i] = take_look(&rows, step + i)
