"""Shapley values of sums of trees, see shapley.h.

Trees are as in `TreeEnsemble`: root (n_trees + 1,), feature (n_nodes,), children (n_nodes, 2) relative to the
root. `plan` (n_trees, PLAN_SIZE) int64 has the sizes of the program of each tree and its places in the arrays
ops, factor and value, in the order of the enumeration below.
"""
from libc.string cimport memset

from pboost._core._address cimport to_read, to_write
from pboost._core._shapley cimport (
    CLOSE, FEW_LANES, LANES, LEAF, OPEN, PAIR, TURN, Frame, Op, Trees, load_tile, next_op, set_op, start,
    trees_at,
)
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "shapley.h":
    enum:
        TO_FIRST "PBOOST_TO_FIRST"
        NOT_FIRST "PBOOST_NOT_FIRST"
        TO_SECOND "PBOOST_TO_SECOND"
        NOT_SECOND "PBOOST_NOT_SECOND"
        GAIN_FIRST "PBOOST_GAIN_FIRST"
        GAIN_SECOND "PBOOST_GAIN_SECOND"
        LOSS "PBOOST_LOSS"
        N_FACTORS "PBOOST_N_FACTORS"
        SUM_FIRST "PBOOST_SUM_FIRST"
        SUM_SECOND "PBOOST_SUM_SECOND"
        SHARE_FIRST "PBOOST_SHARE_FIRST"
        SHARE_SECOND "PBOOST_SHARE_SECOND"
        N_OF_PAIR "PBOOST_N_OF_PAIR"
    ctypedef struct Program "pboost_shapley_tree":
        const Op* op
        const double* factor
        const double* value
        const double* weight
        const uint64_t* sets
        int32_t n_ops
        int32_t n_points
    ctypedef struct Work "pboost_shapley_work":
        double* path
        double* below
        int64_t* to
        double* part
        double* gain
        int32_t* feature
        double* pairs
        Py_ssize_t n_features
    ctypedef void (*ShapleyKernel "pboost_shapley_kernel")(
        const Program*, const Work*, const double*, double*, Py_ssize_t) noexcept nogil
    ctypedef struct Kernels "pboost_shapley_kernels":
        ShapleyKernel few
        ShapleyKernel many
        ShapleyKernel pairs
    Kernels choose_shapley "pboost_choose_shapley"(int level) noexcept nogil

# Columns of `plan`. The first four are computed by `measure`, the others are sums of them.
cdef enum:
    N_POINTS  # number of quadrature points
    N_OPS
    N_SPLITS
    N_VALUES  # number of constants of leaves and pairs, for each output
    FIRST_OP
    FIRST_FACTOR
    FIRST_VALUE
    TARGET  # the output of the tree, or -1 if it has a value for each output
    N_COLUMNS

cdef enum:
    CHUNK = 128  # number of rows that are evaluated together for one tree
    LINE = 64  # bytes of a cache line, to which vectors are aligned

POINTS, OPS, FIRST, PLAN_SIZE = N_POINTS, N_OPS, FIRST_OP, N_COLUMNS
CHUNK_ROWS = CHUNK
OP_BYTES = sizeof(Op)
cdef Kernels kernels = choose_shapley(2)


def use_simd_level(int level):
    """Choose the compiled variant: 0 for baseline, 1 for AVX2, or 2 for AVX-512 if supported."""
    global kernels
    kernels = choose_shapley(level)


def factor_size(n_points):
    """Return the number of constants of a split."""
    return n_points * N_FACTORS + 2


def measure(trees, int max_depth, int64_t[:, ::1] plan):
    """Count the operations and constants of each tree (OUT the first columns of plan)."""
    cdef const int32_t[::1] root = trees[0], feature = trees[1]
    cdef const int32_t[:, ::1] children = trees[2]
    cdef Trees tree
    cdef Frame* f
    cdef int level, kind, n_unique, n_leaves, n_pairs
    cdef Py_ssize_t t
    cdef uint8_t[::1] frames = bytearray((max_depth + 1) * sizeof(Frame))
    for t in range(plan.shape[0]):
        tree = trees_at(root, feature, children, frames, t)
        n_unique = n_leaves = n_pairs = 0
        plan[t, N_OPS] = plan[t, N_SPLITS] = 0
        with nogil:
            start(&tree, &level)
            while True:
                kind = next_op(&tree, &level, &f)
                if kind < 0:
                    break
                plan[t, N_OPS] += 1
                plan[t, N_SPLITS] += kind == OPEN
                n_leaves += kind == LEAF
                n_pairs += kind == PAIR
                if kind == PAIR or kind == OPEN:
                    n_unique = max(n_unique, f.n_unique + (f.above < 0))
        plan[t, N_POINTS] = (n_unique + 1) // 2
        plan[t, N_VALUES] = n_leaves + n_pairs * (plan[t, N_POINTS] * N_OF_PAIR + 1)


cdef void set_split(
    const double* point, const double* weight, Py_ssize_t n, const double* below, const Frame* frame,
    const Frame* f, double* factor
) noexcept nogil:
    """Compute the constants of a split; `below` are the shares of the weight of the two children."""
    cdef Py_ssize_t k
    cdef double x, z, first, second, old, gain
    cdef bint is_new = f.above < 0
    z = 1.0 if is_new else frame[f.above].reach
    for k in range(n):
        x = point[k]
        old = 1.0 if is_new else x + z * (1.0 - x)
        gain = 0.0 if is_new else (1.0 - z) / old
        first, second = x + z * below[0] * (1.0 - x), x + z * below[1] * (1.0 - x)
        factor[TO_FIRST], factor[TO_SECOND] = first / old, second / old
        factor[NOT_FIRST] = z * below[0] * (1.0 - x) / old
        factor[NOT_SECOND] = z * below[1] * (1.0 - x) / old
        factor[GAIN_FIRST] = weight[k] * ((1.0 - z * below[0]) / first - gain)
        factor[GAIN_SECOND] = weight[k] * ((1.0 - z * below[1]) / second - gain)
        factor[LOSS] = weight[k] * (-1.0 / (1.0 - x) - gain)
        factor += N_FACTORS
    factor[0], factor[1] = below[0], below[1]


cdef void set_pair(
    const double* factor, Py_ssize_t n, double first, double second, double* value
) noexcept nogil:
    """Compute the constants of a split with two leaves, from the constants of the split and the leaf values."""
    cdef Py_ssize_t k
    for k in range(n):
        value[SUM_FIRST] = first * factor[TO_FIRST] + second * factor[NOT_SECOND]
        value[SUM_SECOND] = first * factor[NOT_FIRST] + second * factor[TO_SECOND]
        value[SHARE_FIRST] = (
            first * factor[TO_FIRST] * factor[GAIN_FIRST] + second * factor[NOT_SECOND] * factor[LOSS])
        value[SHARE_SECOND] = (
            first * factor[NOT_FIRST] * factor[LOSS] + second * factor[TO_SECOND] * factor[GAIN_SECOND])
        value += N_OF_PAIR
        factor += N_FACTORS
    value[0] = first * factor[0] + second * factor[1]


def compile_trees(
    trees, const double[::1] point, const double[::1] weight, int max_depth, const int64_t[:, ::1] plan, ops,
    double[::1] factor, double[::1] value, Py_ssize_t first_tree, Py_ssize_t last_tree
):
    """Write the programs of a range of trees, and their constants.

    `trees` are root, feature, children, threshold, missing, category_set, leaf_value (n_nodes, K) and share
    (n_nodes,): the share of the weight of the parent. point, weight: quadrature points and weights for 1, 2,
    ... points, one after another. OUT ops, factor, value.
    """
    cdef const int32_t[::1] root = trees[0], feature = trees[1], category_set = trees[5]
    cdef const int32_t[:, ::1] children = trees[2]
    cdef const double[::1] threshold = trees[3], share = trees[7]
    cdef const uint8_t[::1] missing = trees[4]
    cdef const double[:, ::1] leaf_value = trees[6]
    cdef Trees tree
    cdef Frame* f
    cdef Op* all_ops = <Op*>to_write(ops, sizeof(Op))
    cdef Op* op
    cdef int level, here, kind
    cdef int32_t node, first, second
    cdef Py_ssize_t t, n, places, k, n_outputs = leaf_value.shape[1]
    cdef double* splits
    cdef double* values
    cdef double[2] below
    cdef uint8_t[::1] frames = bytearray((max_depth + 1) * sizeof(Frame))
    cdef double[::1] pair = memoryview(bytearray((len(point) * N_FACTORS + 2) * sizeof(double))).cast("d")
    cdef int64_t at, n_splits
    for t in range(first_tree, last_tree):
        op = all_ops + plan[t, FIRST_OP]
        tree = trees_at(root, feature, children, frames, t)
        n = plan[t, N_POINTS]
        places = n * (n - 1) // 2
        splits, values = &factor[0] + plan[t, FIRST_FACTOR], &value[0] + plan[t, FIRST_VALUE]
        at = n_splits = 0
        with nogil:
            start(&tree, &level)
            while True:
                here = level
                kind = next_op(&tree, &level, &f)
                if kind < 0:
                    break
                node = root[t] + f.node
                set_op(op, tree.frame, f, kind, here, &threshold[root[t]], &missing[root[t]],
                       &category_set[root[t]])
                f.split = f.split if kind == TURN or kind == CLOSE else 0
                op.value = at
                if kind == LEAF:
                    for k in range(n_outputs):
                        values[k * plan[t, N_VALUES] + at] = leaf_value[node, k]
                    at += 1
                    op += 1
                    continue
                first, second = root[t] + children[node, 0], root[t] + children[node, 1]
                below[0], below[1] = share[first], share[second]
                if kind == OPEN:
                    f.split = n_splits
                    n_splits += n * N_FACTORS + 2
                    set_split(&point[places], &weight[places], n, below, tree.frame, f, splits + f.split)
                op.split = f.split
                if kind == OPEN or kind == TURN:
                    f.reach = below[kind == TURN] * (1.0 if f.above < 0 else tree.frame[f.above].reach)
                elif kind == PAIR:
                    set_split(&point[places], &weight[places], n, below, tree.frame, f, &pair[0])
                    for k in range(n_outputs):
                        set_pair(&pair[0], n, leaf_value[first, k], leaf_value[second, k],
                                 values + k * plan[t, N_VALUES] + at)
                    at += n * N_OF_PAIR + 1
                op += 1


cdef struct Rows:
    const double* X
    Py_ssize_t d
    const int32_t* used
    Py_ssize_t n_used
    Py_ssize_t n_outputs
    double* tile
    double* total  # (n_outputs, n_used, stride)
    double* pairs  # (n_outputs, n_used, n_used, FEW_LANES), or NULL


cdef void store_chunk(const Rows* rows, Py_ssize_t n, Py_ssize_t stride, double* out) noexcept nogil:
    """Copy the totals of n rows to `out`, (n, d, n_outputs)."""
    cdef Py_ssize_t r, j, k
    cdef double* to
    for r in range(n):
        for j in range(rows.n_used):
            to = out + (r * rows.d + rows.used[j]) * rows.n_outputs
            for k in range(rows.n_outputs):
                to[k] = rows.total[(k * rows.n_used + j) * stride + r]


cdef void run_tree(
    const Program* tree, Work* work, const Rows* rows, Py_ssize_t output, Py_ssize_t stride
) noexcept nogil:
    """Add the values of a tree to an output of the rows of a chunk."""
    cdef Py_ssize_t r = 0
    cdef const double* tile = rows.tile
    cdef double* total = rows.total + output * rows.n_used * stride
    if rows.pairs != NULL:
        work.pairs = rows.pairs + output * rows.n_used * rows.n_used * FEW_LANES
        kernels.pairs(tree, work, tile, total, stride)
        return
    while r + LANES <= stride:
        kernels.many(tree, work, tile + r, total + r, stride)
        r += LANES
    while r < stride:
        kernels.few(tree, work, tile + r, total + r, stride)
        r += FEW_LANES


cdef void store_pairs(const Rows* rows, Py_ssize_t n, double* out) noexcept nogil:
    """Copy the interactions of n rows to `out`, (n, d, d, n_outputs).

    The interaction of a feature with itself is the rest of its Shapley value.
    """
    cdef Py_ssize_t r, i, j, k, m = rows.n_used, d = rows.d
    cdef const double* pair
    cdef double* to
    cdef double half, rest
    for r in range(n):
        for k in range(rows.n_outputs):
            pair = rows.pairs + k * m * m * FEW_LANES + r
            to = out + r * d * d * rows.n_outputs + k
            for i in range(m):
                rest = rows.total[(k * m + i) * FEW_LANES + r]
                for j in range(m):
                    if i != j:
                        half = 0.5 * (pair[(i * m + j) * FEW_LANES] + pair[(j * m + i) * FEW_LANES])
                        to[(rows.used[i] * d + rows.used[j]) * rows.n_outputs] = half
                        rest -= half
                to[(rows.used[i] * d + rows.used[i]) * rows.n_outputs] = rest


def work_size(
    Py_ssize_t max_depth, Py_ssize_t n_points, Py_ssize_t n_used, Py_ssize_t n_outputs, bint with_pairs
):
    """Return the length of the working memory of `add_values`."""
    cdef Py_ssize_t n_levels = max_depth + 1
    cdef Py_ssize_t size = LINE + n_levels * LANES * (3 * n_points + 2) + n_used * CHUNK * (1 + n_outputs)
    if with_pairs:
        size += (n_levels + 1) * n_points * FEW_LANES + n_levels + n_used * n_used * n_outputs * FEW_LANES
    return size


cdef Work divide(
    double* at, Rows* rows, Py_ssize_t n_levels, Py_ssize_t n_points, bint with_pairs
) noexcept nogil:
    """Divide the working memory."""
    cdef Work work
    work.path = <double*>((<size_t>at + LINE - 1) // LINE * LINE)
    work.below = work.path + n_levels * LANES * n_points
    work.to = <int64_t*>(work.below + 2 * n_levels * LANES * n_points)
    rows.tile = <double*>(work.to + 2 * n_levels * LANES)
    rows.total = rows.tile + rows.n_used * CHUNK
    rows.pairs = NULL
    work.n_features = rows.n_used
    if with_pairs:
        work.part = rows.total + rows.n_used * CHUNK * rows.n_outputs
        work.gain = work.part + n_points * FEW_LANES
        rows.pairs = work.gain + n_levels * n_points * FEW_LANES
        work.feature = <int32_t*>(rows.pairs + rows.n_used * rows.n_used * rows.n_outputs * FEW_LANES)
    return work


def add_values(
    const double[:, ::1] X, const int32_t[::1] used, program, int max_depth, Py_ssize_t start, Py_ssize_t stop,
    double[::1] memory, double[:, :, ::1] out, double[:, :, :, ::1] pairs=None
):
    """Compute the Shapley values of the rows start, ..., stop - 1.

    `used` (n_used,): the features that the trees use; features of trees are indices in this list. `program`:
    plan, ops, factor and value of `compile_trees`, quadrature weights, and category sets (n_sets, 4). WORK
    memory (work_size,). OUT out (n, d, n_outputs), or instead pairs (n, d, d, n_outputs): interactions. They
    are only written for used features.
    """
    cdef const int64_t[:, ::1] plan = program[0]
    cdef const Op* op = <const Op*>to_read(program[1], sizeof(Op))
    cdef const double[::1] factor = program[2], value = program[3], weight = program[4]
    cdef const uint64_t[:, ::1] sets = program[5]
    cdef Program tree
    cdef Work work
    cdef Rows rows
    cdef bint with_pairs = pairs is not None
    cdef Py_ssize_t i = start, t, k, n, stride, n_points = 1, target, size
    cdef Py_ssize_t d = X.shape[1], chunk = FEW_LANES if with_pairs else CHUNK
    for t in range(plan.shape[0]):
        n_points = max(n_points, plan[t, N_POINTS])
    rows.n_outputs = pairs.shape[3] if with_pairs else out.shape[2]
    if ((pairs.shape[0] if with_pairs else out.shape[0]) != X.shape[0]
            or (pairs.shape[1] if with_pairs else out.shape[1]) != d or (with_pairs and pairs.shape[2] != d)
            or not 0 <= start <= stop <= X.shape[0]
            or memory.shape[0] < work_size(max_depth, n_points, used.shape[0], rows.n_outputs, with_pairs)):
        raise ValueError("add_values: arrays of different sizes")
    if used.shape[0] == 0 or start == stop:
        return
    rows.X, rows.d, rows.used, rows.n_used = &X[0, 0], d, &used[0], used.shape[0]
    work = divide(&memory[0], &rows, max_depth + 1, n_points, with_pairs)
    size = rows.n_used * rows.n_used * rows.n_outputs * FEW_LANES
    tree.sets = &sets[0, 0] if sets.shape[0] else NULL
    with nogil:
        while i < stop:
            n = min(chunk, stop - i)
            stride = (n + FEW_LANES - 1) // FEW_LANES * FEW_LANES
            load_tile(rows.X + i * d, d, rows.used, rows.n_used, n, stride, rows.tile)
            memset(rows.total, 0, rows.n_outputs * rows.n_used * stride * sizeof(double))
            if with_pairs:
                memset(rows.pairs, 0, size * sizeof(double))
            for t in range(plan.shape[0]):
                tree.op, tree.factor = op + plan[t, FIRST_OP], &factor[0] + plan[t, FIRST_FACTOR]
                tree.n_ops, tree.n_points = <int32_t>plan[t, N_OPS], <int32_t>plan[t, N_POINTS]
                tree.weight = &weight[0] + tree.n_points * (tree.n_points - 1) // 2
                target = plan[t, TARGET]
                for k in range(rows.n_outputs if target < 0 else 1):
                    tree.value = &value[0] + plan[t, FIRST_VALUE] + k * plan[t, N_VALUES]
                    run_tree(&tree, &work, &rows, k if target < 0 else target, stride)
            if with_pairs:
                store_pairs(&rows, n, &pairs[i, 0, 0, 0])
            else:
                store_chunk(&rows, n, stride, &out[i, 0, 0])
            i += n
