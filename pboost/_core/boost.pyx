"""Rounds of boosting on bins: derivatives, a tree grown on them, what its leaves add, decision values.

The caller's arrays (see `Rounds` in trees/rounds.py) are borrowed for one call. A round goes through
`slopes` (or derivatives written in its place), `begin`, `grow` until it is done, `add_leaves` and, of
rows that the tree has not seen, `add_others`. Nothing depends on the order of rows.
"""
from libc.math cimport fabs, floor, frexp, isfinite, ldexp, rint
from libc.string cimport memcpy, memset

from pboost._core._address cimport address
from pboost._core._boost_best cimport begin_best, end_best, split_best
from pboost._core._boost_columns cimport take_for_tree
from pboost._core._boost_leaf cimport (
    ABSOLUTE, EXPONENTIAL, Far, HINGE, HUBER, LOGISTIC, LossPasses, Leaf, POISSON, PROBIT, QUANTILE, Rows,
    SQUARED, TINY_STEP, best_step, newton_step, pboost_bounds, pboost_choose_loss_passes, scale_of,
)
from pboost._core._boost_grow cimport list_preorder, side_of, split_node
from pboost._core._boost_round cimport (
    LANES, LOW_UNIT, Node, Open, Passes, ROOM, Round, State, WORDS, add_to, count_node, gather, is_any,
    pboost_choose_passes, read_bin,
)
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "boost_softmax.h" nogil:
    ctypedef void (*OddsPass "pboost_odds_pass")(
        const double* scores, const double* label, const double* weight, Py_ssize_t stride,
        Py_ssize_t n_classes, Py_ssize_t n, double* odds, double* loss) noexcept nogil
    OddsPass pboost_choose_odds_pass(int level)

cdef Passes passes = pboost_choose_passes(2)
cdef LossPasses loss_passes = pboost_choose_loss_passes(2)
cdef OddsPass odds_pass = pboost_choose_odds_pass(2)
cdef Node _node
cdef Open _open
cdef State _state
#: What the arrays of a round hold: one entry of each, for its type.
STATE = {"node": <Node[:1]>&_node, "open": <Open[:1]>&_open, "state": <State[:1]>&_state}
#: The losses whose derivatives are compiled.
LOSSES = {
    "exponential": EXPONENTIAL, "logistic": LOGISTIC, "squared": SQUARED, "probit": PROBIT,
    "hinge": HINGE, "absolute": ABSOLUTE, "quantile": QUANTILE, "huber": HUBER, "poisson": POISSON,
}
#: Places that arrays of rows have behind them.
BEHIND = ROOM
#: Bits of a gradient and of a curvature in a word.
GRADIENT_BITS, CURVATURE_BITS = 18, 19
#: Bits of either in two words, if float64 holds the sum of all rows.
WIDE_BITS = 35


def use_simd_level(int level):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global passes, loss_passes, odds_pass
    passes, loss_passes = pboost_choose_passes(level), pboost_choose_loss_passes(level)
    odds_pass = pboost_choose_odds_pass(level)


cdef Round read_round(arrays) except *:
    cdef Round r
    r.codes = <const uint8_t*>address(arrays.codes)
    r.groups = <const uint8_t*>address(arrays.lanes.groups)
    r.special = NULL
    if arrays.special is not None:
        r.special = <const uint8_t*>address(arrays.special)
    r.n_bins = <const int32_t*>address(arrays.n_bins)
    r.lane = <const int32_t*>address(arrays.lanes.lane)
    r.code, r.side = <const uint8_t*>address(arrays.lanes.code), <const uint8_t*>address(arrays.lanes.side)
    r.column = <const int32_t*>address(arrays.lanes.column)
    r.bundled = <const int32_t*>address(arrays.lanes.bundled)
    r.n_lanes, r.n_bundled = len(arrays.lanes.column), len(arrays.lanes.bundled)
    r.group_bins = <const int32_t*>address(arrays.group_bins)
    r.group_place = <const int64_t*>address(arrays.group_place)
    r.rows = <int32_t*>address(arrays.rows)
    r.spare = <int32_t*>address(arrays.spare)
    r.packed = <int64_t*>address(arrays.packed)
    r.spare_packed = <int64_t*>address(arrays.spare_packed)
    r.low = NULL
    if arrays.is_wide:
        r.low = <int64_t*>address(arrays.low)
    r.masses = <double*>address(arrays.masses)
    r.node = <Node*>address(arrays.node)
    r.subset = <uint64_t*>address(arrays.subset)
    r.open = <Open*>address(arrays.open)
    r.state = <State*>address(arrays.state)
    r.passes = &passes
    r.n, r.d, r.stride = arrays.n_listed, arrays.codes.shape[0], arrays.codes.shape[1]
    r.n_rows, r.n_slots, r.slot = r.stride, arrays.masses.shape[0] - 1, arrays.masses.shape[1]
    r.max_depth, r.min_leaf = arrays.max_depth, arrays.min_leaf
    r.l2, r.level_smoothing = arrays.node_l2, arrays.level_smoothing
    r.has_levels = len(arrays.subset) > 0
    r.min_weight, r.min_gain = arrays.node_weight, arrays.node_gain
    r.free, r.max_leaves = <int32_t*>address(arrays.free), arrays.max_leaves
    r.direction = NULL
    if arrays.restraints.direction is not None:
        r.direction = <const int32_t*>address(arrays.restraints.direction)
    r.together, r.group_words = NULL, 0
    if arrays.restraints.together is not None:
        r.together = <const uint64_t*>address(arrays.restraints.together)
        r.alive, r.group_words = <uint64_t*>address(arrays.alive), len(arrays.alive)
    r.of_tree = r.of_node = NULL
    if arrays.of_tree is not None:
        r.of_tree = <uint8_t*>address(arrays.of_tree)
        r.of_node = <uint8_t*>address(arrays.of_node)
        r.picked = <int32_t*>address(arrays.picked)
        r.per_tree, r.per_split = arrays.per_tree, arrays.per_split
        r.key, r.number = arrays.restraints.key, arrays.number
    return r


cdef Rows read_rows(arrays) except *:
    cdef Rows rows
    rows.loss, rows.per_limit = arrays.loss_code, arrays.per_limit
    rows.parameter = arrays.parameter
    rows.y = <const double*>address(arrays.y)
    rows.f = <const double*>address(arrays.f)
    rows.weight = NULL
    if arrays.weight is not None:
        rows.weight = <const double*>address(arrays.weight)
    return rows


# ---------------------------------------------------------------------------------------------
# The derivatives of a round.

def slopes(arrays):
    """Find the derivatives of the loss at `f`: gradients into `packed`, curvatures into `spare_packed`.

    Returns the largest size of a gradient, the largest curvature and the sum of the losses.
    """
    cdef Rows rows = read_rows(arrays)
    cdef double* gradient = <double*>address(arrays.packed)
    cdef double* curvature = <double*>address(arrays.spare_packed)
    cdef Py_ssize_t n = arrays.codes.shape[1], n_used = arrays.n_used
    cdef double most, scale
    cdef Far far
    cdef double[2] ignored
    cdef double[3] found
    with nogil:
        loss_passes.farthest(&rows, n, &far)
        pboost_bounds(&rows, &far, 0.0, &ignored[0], &ignored[1], &most)
        scale = scale_of(2.0 * most, n_used)
        loss_passes.slopes(&rows, n, scale, gradient, curvature, found)
    return found[0], found[1], found[2] / scale if isfinite(most) else most


def is_uneven(arrays, double steepest):
    """Return whether fewer than one in a hundred of the gradients that are not 0 has 1/4096 of the size
    of the largest: to the others a word leaves six bits or fewer."""
    cdef const double* gradient = <const double*>address(arrays.packed)
    cdef Py_ssize_t start, i, n = arrays.codes.shape[1], large = 0, some = 0
    cdef double limit = steepest / 4096.0
    with nogil:
        for start in range(0, n, 4096):
            for i in range(start, min(start + 4096, n)):
                large += fabs(gradient[i]) >= limit
                some += gradient[i] != 0.0
            if 100 * large >= some + (n - start):  # whatever follows
                break
    return 100 * large < some


def log_odds(
    const double[:, ::1] scores, const double[::1] label, weight, double[:, ::1] odds, double[::1] loss
):
    """The log odds of each class against the others together, and the losses of rows, of softmax.

    IN scores (J, n), label (n,): numbers of classes, weight (n,) or None; OUT odds (J, n), loss (n,):
    weight times -ln of the probability of the row's class, 0 where the weight is.
    """
    cdef Py_ssize_t n = scores.shape[1], n_classes = scores.shape[0]
    cdef const double* w = NULL
    if weight is not None:
        w = <const double*>address(weight)
    if (label.shape[0] != n or odds.shape[0] != n_classes or odds.shape[1] != n or loss.shape[0] != n
            or n_classes < 2 or n < 1):
        raise ValueError("log_odds: arrays of different sizes")
    with nogil:
        odds_pass(&scores[0, 0], &label[0], w, n, n_classes, n, &odds[0, 0], &loss[0])


def tell(const double[::1] label, double number, double[::1] y):
    """OUT y (n,): +1 where a label is this number, else -1."""
    cdef Py_ssize_t i
    if y.shape[0] != label.shape[0]:
        raise ValueError("tell: arrays of different sizes")
    with nogil:
        for i in range(label.shape[0]):
            y[i] = 1.0 if label[i] == number else -1.0


def begin(arrays, double steepest, double most):
    """Pack the derivatives of the rows listed, and make the root. `steepest` and `most` are the largest
    size of a gradient and the largest curvature. Returns the powers of two that they are counted in,
    and the bits of a curvature."""
    cdef Round r = read_round(arrays)
    cdef int gradient_bits = GRADIENT_BITS, curvature_bits = CURVATURE_BITS, bits
    cdef double gradient_scale, curvature_scale, gradient, curvature
    cdef Py_ssize_t b, n = arrays.n_used, g = 0
    if r.low != NULL:
        bits = 52
        while n > 1:
            n, bits = (n + 1) // 2, bits - 1
        gradient_bits = curvature_bits = min(bits, WIDE_BITS)
    gradient_scale = power_below(steepest, gradient_bits)
    curvature_scale = power_below(most, curvature_bits)
    with nogil:
        if r.low != NULL:
            pack_wide(&r, gradient_scale, curvature_scale)
        else:
            loss_passes.pack(
                r.packed, <const double*>r.spare_packed, r.rows if r.n < r.n_rows else NULL, r.n,
                gradient_scale, curvature_scale, r.packed)
        memset(r.node, 0, sizeof(Node))
        r.node.stop, r.node.feature, r.node.child = <int32_t>r.n, -1, -1
        r.node.low = r.node.high = -1
        take_for_tree(&r)
        count_node(&r, r.node, r.masses)
        while not is_any(&r, r.of_tree, g):
            g += 1
        for b in range(r.group_bins[g]):
            read_bin(&r, r.node, r.masses, g * LANES, b, &gradient, &curvature)
            r.node.gradient += gradient
            r.node.curvature += curvature
        r.state.nodes = r.state.open = 1
        r.state.leaves = 0
        r.open.node = r.open.slot = 0
    return gradient_scale, curvature_scale, curvature_bits


cdef void pack_wide(const Round* r, double gradient_scale, double curvature_scale) noexcept nogil:
    """Two words for each row, in place of the derivatives."""
    cdef const double* gradient = <const double*>r.packed
    cdef const double* curvature = <const double*>r.spare_packed
    cdef double g, h, first_g, first_h
    cdef Py_ssize_t i
    for i in range(r.n_rows):
        g = rint(gradient[i] * gradient_scale)
        h = max(rint(curvature[i] * curvature_scale), 1.0)
        first_g, first_h = rint(g / LOW_UNIT), floor(h / LOW_UNIT)
        r.low[i] = word(g - first_g * LOW_UNIT, h - first_h * LOW_UNIT)
        r.spare_packed[i] = word(first_g, first_h)
    memcpy(r.packed, r.spare_packed, sizeof(int64_t) * r.n_rows)


cdef inline int64_t word(double gradient, double curvature) noexcept nogil:
    return (<int64_t>gradient) * (<int64_t>1 << 32) + <int64_t>curvature


cdef double power_below(double most, int bits) noexcept:
    """The power of two that brings numbers of this size below 2**bits, when they are rounded, too."""
    cdef int exponent
    if not most > 0.0:
        return 1.0
    if frexp(most, &exponent) * ldexp(1.0, bits) >= ldexp(1.0, bits) - 0.5:
        exponent += 1
    return ldexp(1.0, min(bits - exponent, 1000))


# ---------------------------------------------------------------------------------------------
# Growth.

def grow(arrays, Py_ssize_t cells):
    """Split nodes until about `cells` cells are read, or none is open; returns whether none is."""
    cdef Round r = read_round(arrays)
    cdef Py_ssize_t done = 0
    cdef Open at
    with nogil:
        if r.max_leaves > 0:
            if r.state.leaves == 0:
                begin_best(&r)
            while 0 < r.state.open and r.state.leaves < r.max_leaves and done < cells:
                done += split_best(&r) * r.d
            if r.state.leaves == r.max_leaves:
                end_best(&r)
        while r.max_leaves == 0 and r.state.open > 0 and done < cells:
            r.state.open -= 1
            at = r.open[r.state.open]
            done += (r.node[at.node].stop - r.node[at.node].start) * r.d
            split_node(&r, at)
    return r.state.open == 0


def list_nodes(arrays, nodes, int32_t[:, ::1] children, uint64_t[:, ::1] subset, int32_t[::1] place):
    """List the nodes of a tree that is grown in preorder.

    OUT nodes (n,), children (n, 2), -1 in leaves; subset (n, 4) where there are levels, else empty; WORK
    place (2 n,). n is the `nodes` of the state.
    """
    cdef Round r = read_round(arrays)
    cdef Py_ssize_t n = r.state.nodes
    cdef bint has_sets = subset.shape[0] > 0
    if (len(nodes) != n or children.shape[0] != n or children.shape[1] != 2 or place.shape[0] < 2 * n
            or (has_sets and (subset.shape[0] != n or subset.shape[1] != WORDS))):
        raise ValueError("list_nodes: arrays of different sizes")
    cdef Node* out = <Node*>address(nodes)
    with nogil:
        list_preorder(&r, out, &children[0, 0], &subset[0, 0] if has_sets else NULL, &place[0])


# ---------------------------------------------------------------------------------------------
# Leaves.

def solve_leaves(arrays, nodes, double l2, double most, double rate, double unit, bint solved):
    """Find what the leaves of a tree in preorder add, of a compiled loss: `rate` times a step of `most`
    at most, the best one if `solved`, else a Newton step. IN/OUT nodes (n,); `unit` is what their
    gradients are counted in, by what their curvatures are."""
    cdef Round r = read_round(arrays)
    cdef Rows rows = read_rows(arrays), own
    cdef Node* node = <Node*>address(nodes)
    cdef double* y = <double*>r.packed  # neither words nor spare ones are needed any more
    cdef double* f = <double*>r.spare_packed
    cdef double* weight = <double*>address(arrays.leaf_weight)
    cdef Py_ssize_t n = len(nodes), e
    own = rows
    own.y, own.f, own.weight = y, f, NULL if rows.weight == NULL else weight
    with nogil:
        for e in range(n):
            if node[e].feature < 0:
                node[e].mean = rate * step_of(
                    &r, &rows, &own, node + e, y, f, weight, l2, most, unit, solved)


cdef double step_of(
    const Round* r, const Rows* rows, const Rows* own, const Node* node, double* y, double* f,
    double* weight, double l2, double most, double unit, bint solved
) noexcept nogil:
    """What a leaf adds; its rows are gathered into the places of `own`."""
    cdef Py_ssize_t i, n = node.stop - node.start
    # Near the best step: one of Newton's, from sums that are rounded in the unit of all rows.
    cdef double guess = -unit * node.gradient / (node.curvature + r.l2)
    cdef Leaf leaf
    leaf.rows, leaf.n, leaf.passes = own[0], n, &loss_passes
    leaf.l2, leaf.most, leaf.heaviest = l2, most, 1.0
    gather(rows.y, r.rows + node.start, n, y)
    gather(rows.f, r.rows + node.start, n, f)
    if rows.weight != NULL:
        leaf.heaviest = 0.0
        gather(rows.weight, r.rows + node.start, n, weight)
        for i in range(n):
            leaf.heaviest = max(leaf.heaviest, weight[i])
    loss_passes.farthest(&leaf.rows, n, &leaf.far)
    leaf.tiny = TINY_STEP
    if rows.loss == HUBER:  # no step is longer than the largest residual
        leaf.most = min(leaf.most, 2.0 * leaf.far.u)
        leaf.tiny = rows.parameter
    return best_step(&leaf, guess) if solved else newton_step(&leaf)


def add_leaves(arrays, nodes):
    """Add what the leaves of a tree in preorder add to the decision values of its rows."""
    cdef Round r = read_round(arrays)
    cdef const Node* node = <const Node*>address(nodes)
    cdef double* f = <double*>address(arrays.f)
    cdef Py_ssize_t n = len(nodes), e
    with nogil:
        for e in range(n):
            if node[e].feature < 0:
                add_to(f, r.rows + node[e].start, node[e].stop - node[e].start, node[e].mean)


def add_others(
    arrays, nodes, const int32_t[:, ::1] children, const uint64_t[:, ::1] subset, const int64_t[::1] rows
):
    """Add what a tree in preorder adds to the decision values of rows that it was not grown on."""
    cdef Round r = read_round(arrays)
    cdef const Node* node = <const Node*>address(nodes)
    cdef double* f = <double*>address(arrays.f)
    cdef const uint64_t* words = &subset[0, 0] if subset.shape[0] else NULL
    cdef Py_ssize_t i, e
    cdef int code
    with nogil:
        for i in range(rows.shape[0]):
            e = 0
            while node[e].feature >= 0:
                code = r.codes[node[e].feature * r.stride + rows[i]]
                e = children[e, side_of(&r, node + e, words + WORDS * e, code)]
            f[rows[i]] += node[e].mean


def newton_leaves(
    arrays, nodes, const double[::1] gradient, const double[::1] curvature, double l2, double most,
    double rate
):
    """As `solve_leaves` without `solved`, given the weighted derivatives of all rows."""
    cdef Round r = read_round(arrays)
    cdef Node* node = <Node*>address(nodes)
    cdef const int32_t* rows
    cdef Py_ssize_t n_nodes = len(nodes), e, n
    cdef double slope, bend
    with nogil:
        for e in range(n_nodes):
            if node[e].feature < 0:
                rows, n = r.rows + node[e].start, node[e].stop - node[e].start
                slope, bend = sum_of(&gradient[0], rows, n), sum_of(&curvature[0], rows, n) + l2
                if bend > 0.0:
                    node[e].mean = rate * min(max(-slope / bend, -most), most)


cdef double sum_of(const double* values, const int32_t* rows, Py_ssize_t n) noexcept nogil:
    """The sum of numbers of the listed rows, whatever their order."""
    cdef double most = 0.0, scale, total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        most = max(most, fabs(values[rows[i]]))
    scale = scale_of(2.0 * most, n)
    for i in range(n):
        total += rint(values[rows[i]] * scale)
    return total / scale


def exact_sum(const double[::1] values):
    """Return the sum of numbers >= 0, whatever their order."""
    cdef double most = 0.0, scale, total = 0.0
    cdef Py_ssize_t i, n = values.shape[0], some = 0
    with nogil:
        for i in range(n):
            most = max(most, values[i])
            some += values[i] > 0.0
        scale = scale_of(2.0 * most, some)
        for i in range(n):
            total += rint(values[i] * scale)
    return total / scale
