"""Interventional Shapley values: features that are not known have the values of background rows.

Trees and used features are as in the module `shapley`: `trees` are root, feature, children, threshold, missing,
category_set, leaf_value (n_nodes, K), and sets (n_sets, 4).

For paths with few different features, the patterns of the background rows are counted at each leaf, and tables
of shares are made once, see shapley_patterns.h. `plan` (n_trees, PLAN_SIZE) int64 has the places of each tree in
the arrays ops and table, in the order of the enumeration below. Other trees are evaluated for each pair of a row
and a background row.
"""
from libc.string cimport memset

from pboost._core._address cimport to_read, to_write
from pboost._core._shapley cimport (
    AGAIN, LANES, LEAF, PAIR, Frame, Op, Trees, load_tile, next_op, set_op, start, trees_at,
)
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "shapley_patterns.h":
    ctypedef struct Program "pboost_pattern_tree":
        const Op* op
        const uint64_t* sets
        double* table
        int32_t n_ops
        int32_t n_outputs
    ctypedef struct Work "pboost_pattern_work":
        int64_t* to
        int32_t* pattern
        int32_t* features
    ctypedef void (*PatternKernel "pboost_pattern_kernel")(
        const Program*, const Work*, const double*, Py_ssize_t, const double*, double*, Py_ssize_t
    ) noexcept nogil
    PatternKernel choose_patterns "pboost_choose_patterns"(int level) noexcept nogil

cdef enum:
    MOST_UNIQUE = 10  # largest number of different features on a path for which tables are made
    CHUNK = 128  # number of rows that are evaluated together for one tree

# Columns of `plan`. The first four are computed by `measure_tables`.
cdef enum:
    N_OPS
    N_UNIQUE  # largest number of different features on a path
    N_CELLS  # cells of the tables of an output, or 0 if tables would be too large
    N_COUNTS  # number of patterns of all leaves and pairs
    FIRST_OP
    FIRST_CELL
    TARGET  # the output of the tree, or -1 if it has a value for each output
    N_COLUMNS

OPS, UNIQUE, CELLS, COUNTS, FIRST, PLAN_SIZE = N_OPS, N_UNIQUE, N_CELLS, N_COUNTS, FIRST_OP, N_COLUMNS
OP_BYTES = sizeof(Op)
CHUNK_ROWS = CHUNK
cdef PatternKernel run_patterns = choose_patterns(2)


def use_simd_level(int level):
    """Choose the compiled variant: 0 for baseline, 1 for AVX2, or 2 for AVX-512 if supported."""
    global run_patterns
    run_patterns = choose_patterns(level)


cdef inline int bits_of(const Op* op) noexcept nogil:
    """Return the number of bits of the index of a leaf or pair."""
    return op.n_unique + (op.kind == PAIR + AGAIN)


def measure_tables(trees, int max_depth, int64_t[:, ::1] plan):
    """Count the operations and the cells of the tables of each tree (OUT the first columns of plan)."""
    cdef const int32_t[::1] root = trees[0], feature = trees[1]
    cdef const int32_t[:, ::1] children = trees[2]
    cdef Trees tree
    cdef Frame* f
    cdef int level, kind, n, bits
    cdef Py_ssize_t t
    cdef uint8_t[::1] frames = bytearray((max_depth + 1) * sizeof(Frame))
    for t in range(plan.shape[0]):
        tree = trees_at(root, feature, children, frames, t)
        plan[t, N_OPS] = plan[t, N_UNIQUE] = plan[t, N_CELLS] = plan[t, N_COUNTS] = 0
        with nogil:
            start(&tree, &level)
            while True:
                kind = next_op(&tree, &level, &f)
                if kind < 0:
                    break
                plan[t, N_OPS] += 1
                if kind == LEAF or kind == PAIR:
                    n = f.n_unique + (kind == PAIR and f.above < 0)
                    bits = n + (kind == PAIR and f.above >= 0)
                    plan[t, N_UNIQUE] = max(plan[t, N_UNIQUE], n)
                    if n <= MOST_UNIQUE:
                        plan[t, N_CELLS] += <int64_t>n << bits
                        plan[t, N_COUNTS] += <int64_t>1 << bits
            if plan[t, N_UNIQUE] > MOST_UNIQUE:
                plan[t, N_CELLS] = 0


cdef inline int pattern_at(const Op* op, int index, bint is_second) noexcept nogil:
    """Return the pattern at a leaf, or at one of the leaves of a pair, of the rows with an index."""
    cdef int bit = 1 << op.bit, above
    if op.kind == LEAF:
        return index
    if op.kind == PAIR:
        return index ^ bit if is_second else index
    above = index & ((1 << op.n_unique) - 1)
    return above if (index >> op.n_unique) != is_second else above & ~bit


cdef inline int n_set(int pattern) noexcept nogil:
    cdef int n = 0
    while pattern:
        pattern &= pattern - 1
        n += 1
    return n


cdef void share_leaf(
    const double* count, int n, const double[:, ::1] shares, double* gain, double* loss
) noexcept nogil:
    """Compute the shares of a leaf of value 1 for each pattern of a row.

    IN count (2**n,): the weight of the background rows with each pattern. OUT gain (n, 2**n): the share of a
    feature whose conditions are met; loss (2**n,): minus the share of each of the other features.
    """
    cdef int pattern, size = 1 << n, other, p, q, n_met, j, both, row
    cdef double of_row, of_other
    memset(gain, 0, n * size * sizeof(double))
    memset(loss, 0, size * sizeof(double))
    for pattern in range(size):
        if count[pattern] == 0.0:
            continue
        other = (size - 1) & ~pattern  # the row must meet these conditions, and any of the others
        p, n_met = n_set(other), n - n_set(other)
        both = pattern
        while True:
            row, q = other | both, n_met - n_set(both)
            of_row, of_other = count[pattern] * shares[p, q], count[pattern] * shares[q, p]
            loss[row] += of_other
            for j in range(n):
                if other >> j & 1:
                    gain[j * size + row] += of_row
            if both == 0:
                break
            both = (both - 1) & pattern


cdef void set_table(
    const Op* op, const double* counts, const double* first, const double* second, Py_ssize_t n_outputs,
    const double[:, ::1] shares, double* work, double* table
) noexcept nogil:
    """Make the tables of a leaf, or of a pair of leaves with the values `first` and `second`."""
    cdef int n = op.n_unique, size = 1 << n, n_index = 1 << bits_of(op), i, j, pattern, leaf
    cdef Py_ssize_t k
    cdef double* count = work
    cdef double* loss = work + size
    cdef double* gain = loss + size
    cdef const double* value
    cdef double* to
    memset(table, 0, n_outputs * n * n_index * sizeof(double))
    for leaf in range(1 if op.kind == LEAF else 2):
        value = second if leaf else first
        memset(count, 0, size * sizeof(double))
        for i in range(n_index):
            count[pattern_at(op, i, leaf)] += counts[i]
        share_leaf(count, n, shares, gain, loss)
        to = table
        for k in range(n_outputs):
            for j in range(n):
                for i in range(n_index):
                    pattern = pattern_at(op, i, leaf)
                    to[i] += value[k] * (
                        gain[j * size + pattern] if pattern >> j & 1 else -loss[pattern])
                to += n_index


cdef void write_ops(
    const Trees* tree, const double* threshold, const uint8_t* missing, const int32_t* category_set,
    Py_ssize_t n_outputs, Op* op, int32_t* nodes
) noexcept nogil:
    """Write the operations of a tree and the nodes that they visit."""
    cdef Frame* f
    cdef int level, here, kind
    cdef int64_t n_counts = 0, n_cells = 0
    start(tree, &level)
    while True:
        here = level
        kind = next_op(tree, &level, &f)
        if kind < 0:
            return
        set_op(op, tree.frame, f, kind, here, threshold, missing, category_set)
        if kind == LEAF or kind == PAIR:
            op.split, op.value = n_counts, n_cells
            n_counts += <int64_t>1 << bits_of(op)
            n_cells += (<int64_t>op.n_unique << bits_of(op)) * n_outputs
        nodes[0] = f.node
        nodes += 1
        op += 1


cdef Work divide(int64_t* at, int max_depth, double** tile) noexcept nogil:
    """Divide the working memory."""
    cdef Work work
    work.to = at
    work.pattern = <int32_t*>(at + 2 * (max_depth + 1) * LANES)
    work.features = work.pattern + (max_depth + 2) * LANES
    tile[0] = <double*>(work.features + LANES)
    return work


def work_size(Py_ssize_t max_depth, Py_ssize_t n_used, Py_ssize_t n_outputs):
    """Return the length of the working memory of `make_tables` and `add_tables`."""
    return (2 * max_depth + 2) * LANES + (max_depth + 3) * LANES + n_used * CHUNK * (1 + n_outputs)


def make_tables(
    trees, const double[:, ::1] background, const double[::1] weight, const int32_t[::1] used,
    const int64_t[:, ::1] plan, const double[:, ::1] shares, int max_depth, ops, double[::1] table,
    int64_t[::1] memory, double[::1] counts, double[::1] cells, int32_t[::1] nodes, Py_ssize_t first_tree,
    Py_ssize_t last_tree
):
    """Write the operations and tables of a range of trees, except those without tables.

    background (m, d), with weights (m,); m is a multiple of LANES, and the weights of added rows are 0. OUT
    ops, table. WORK memory (work_size,); counts (the largest number of patterns of a tree,); cells ((n + 2) *
    2**n,) for n different features on a path; nodes (the largest number of operations,).
    """
    cdef const int32_t[::1] root = trees[0], feature = trees[1], category_set = trees[5]
    cdef const int32_t[:, ::1] children = trees[2]
    cdef const double[::1] threshold = trees[3]
    cdef const uint8_t[::1] missing = trees[4]
    cdef const double[:, ::1] leaf_value = trees[6]
    cdef const uint64_t[:, ::1] sets = trees[7]
    cdef Trees tree
    cdef Program program
    cdef Op* op
    cdef double* tile
    cdef const double* first
    cdef const double* second
    cdef int32_t* of_node
    cdef Py_ssize_t t, i, e, n_outputs = leaf_value.shape[1], m = background.shape[0]
    cdef Work work = divide(&memory[0], max_depth, &tile)
    cdef uint8_t[::1] frames = bytearray((max_depth + 1) * sizeof(Frame))
    program.sets, program.n_outputs = &sets[0, 0] if sets.shape[0] else NULL, <int32_t>n_outputs
    for t in range(first_tree, last_tree):
        if plan[t, N_CELLS] == 0:
            continue
        tree = trees_at(root, feature, children, frames, t)
        op = <Op*>to_write(ops, sizeof(Op)) + plan[t, FIRST_OP]
        program.op, program.n_ops, program.table = op, <int32_t>plan[t, N_OPS], &counts[0]
        with nogil:
            write_ops(&tree, &threshold[root[t]], &missing[root[t]], &category_set[root[t]], n_outputs, op,
                      &nodes[0])
            memset(&counts[0], 0, plan[t, N_COUNTS] * sizeof(double))
            i = 0
            while i < m:
                load_tile(&background[i, 0], background.shape[1], &used[0], used.shape[0], LANES, LANES, tile)
                run_patterns(&program, &work, tile, LANES, &weight[i], NULL, 0)
                i += LANES
            for i in range(plan[t, N_OPS]):
                if op[i].kind == LEAF or op[i].kind == PAIR or op[i].kind == PAIR + AGAIN:
                    e = root[t] + nodes[i]
                    first = second = &leaf_value[e, 0]
                    if op[i].kind != LEAF:
                        first = &leaf_value[root[t] + children[e, 0], 0]
                        second = &leaf_value[root[t] + children[e, 1], 0]
                    set_table(&op[i], &counts[op[i].split], first, second, n_outputs, shares, &cells[0],
                              &table[plan[t, FIRST_CELL] + op[i].value])


def add_tables(
    const double[:, ::1] X, const int32_t[::1] used, const int64_t[:, ::1] plan, ops, double[::1] table,
    const uint64_t[:, ::1] sets, Py_ssize_t n_values, int max_depth, Py_ssize_t start, Py_ssize_t stop,
    int64_t[::1] memory, double[:, :, ::1] out
):
    """Add the Shapley values of the rows start, ..., stop - 1, from the trees that have tables.

    n_values: number of values of a node. WORK memory (work_size,). INOUT out (n, d, n_outputs).
    """
    cdef const Op* op = <const Op*>to_read(ops, sizeof(Op))
    cdef Program program
    cdef double* tile
    cdef double* total
    cdef Py_ssize_t i = start, t, r, j, k, n, stride, size, n_used = used.shape[0], n_outputs = out.shape[2]
    cdef Work work
    if (out.shape[0] != X.shape[0] or out.shape[1] != X.shape[1] or not 0 <= start <= stop <= X.shape[0]
            or memory.shape[0] < work_size(max_depth, n_used, n_outputs)):
        raise ValueError("add_tables: arrays of different sizes")
    if n_used == 0 or start == stop:
        return
    work = divide(&memory[0], max_depth, &tile)
    total = tile + n_used * CHUNK
    program.sets, program.n_outputs = &sets[0, 0] if sets.shape[0] else NULL, <int32_t>n_values
    with nogil:
        while i < stop:
            n = min(<Py_ssize_t>CHUNK, stop - i)
            stride = (n + LANES - 1) // LANES * LANES
            size = n_used * stride
            load_tile(&X[i, 0], X.shape[1], &used[0], n_used, n, stride, tile)
            memset(total, 0, n_outputs * size * sizeof(double))
            for t in range(plan.shape[0]):
                if plan[t, N_CELLS] == 0:
                    continue
                program.op, program.n_ops = op + plan[t, FIRST_OP], <int32_t>plan[t, N_OPS]
                program.table = &table[plan[t, FIRST_CELL]]
                k = max(plan[t, TARGET], 0)
                r = 0
                while r < stride:
                    run_patterns(&program, &work, tile + r, stride, NULL, total + k * size + r, size)
                    r += LANES
            for r in range(n):
                for j in range(n_used):
                    for k in range(n_outputs):
                        out[i + r, used[j], k] += total[k * size + j * stride + r]
            i += n


# Pairs of a row and a background row
#
# They follow the same path until a split on which they differ. The feature of this split is then taken from one
# of them, at all splits below. A leaf that needs p features of the row and q features of the background row adds
# a share of its value to each of them.

cdef struct Walk:
    Trees tree
    const double* value  # (n_nodes, n_values)
    Py_ssize_t n_values
    const double* shares  # (n_shares, n_shares)
    Py_ssize_t n_shares
    const int32_t* used
    Py_ssize_t n_outputs
    int32_t* source  # (n_used,): 1 if a feature is taken from the row, -1 from the background row, else 0
    int32_t* listed  # features with a source, in the order of their splits
    int32_t* waiting  # (n_used, 2): nodes that are visited later, and the number of listed features above


cdef void set_sides(
    const Walk* w, Py_ssize_t n_nodes, const double* threshold, const uint8_t* missing,
    const int32_t* category_set, const uint64_t* sets, const double* x, uint8_t* side
) noexcept nogil:
    """Set the child, 0 or 1, of a row at each inner node of a tree."""
    cdef Py_ssize_t e
    cdef double known
    cdef int code
    for e in range(n_nodes):
        if w.tree.feature[e] < 0:
            continue
        known = x[w.used[w.tree.feature[e]]]
        if known != known:
            side[e] = missing[e]
        elif category_set[e] >= 0:
            code = <int>known
            side[e] = <uint8_t>(sets[4 * category_set[e] + (code >> 6)] >> (code & 63) & 1)
        else:
            side[e] = not known <= threshold[e]


cdef void add_leaf(const Walk* w, int32_t leaf, int n, int p, double weight, double* out) noexcept nogil:
    """Add the shares of a leaf, for p features of the row and n - p of the background row."""
    cdef Py_ssize_t i, k
    cdef double of_row = 0.0, of_other = 0.0, share
    cdef double* to
    cdef const double* value = w.value + leaf * w.n_values
    if p:
        of_row = weight * w.shares[p * w.n_shares + n - p]
    if n > p:
        of_other = -weight * w.shares[(n - p) * w.n_shares + p]
    for i in range(n):
        share = of_row if w.source[w.listed[i]] > 0 else of_other
        to = out + w.used[w.listed[i]] * w.n_outputs
        for k in range(w.n_values):
            to[k] += share * value[k]


cdef void walk_pair(
    const Walk* w, const uint8_t* side, const uint8_t* other, double weight, double* out
) noexcept nogil:
    """Add the values of a tree for a row and a background row, whose sides are `side` and `other`."""
    cdef int32_t node = 0, feature
    cdef int n = 0, p = 0, n_waiting = 0, i
    cdef int source
    while True:
        while w.tree.feature[node] >= 0:
            feature = w.tree.feature[node]
            source = w.source[feature]
            if source == 0 and side[node] != other[node]:
                w.waiting[2 * n_waiting] = w.tree.children[2 * node + other[node]]
                w.waiting[2 * n_waiting + 1] = n
                n_waiting += 1
                w.listed[n], w.source[feature] = feature, 1
                n += 1
                p += 1
                source = 1
            node = w.tree.children[2 * node + (side[node] if source >= 0 else other[node])]
        if n:
            add_leaf(w, node, n, p, weight, out)
        if not n_waiting:
            break
        n_waiting -= 1
        node = w.waiting[2 * n_waiting]
        for i in range(w.waiting[2 * n_waiting + 1], n):
            p -= w.source[w.listed[i]] > 0
            w.source[w.listed[i]] = 0
        n = w.waiting[2 * n_waiting + 1]
        w.source[w.listed[n]] = -1
        n += 1
    for i in range(n):
        w.source[w.listed[i]] = 0


def add_pairs(
    const double[:, ::1] X, const double[:, ::1] background, const double[::1] weight,
    const int32_t[::1] used, trees, const int32_t[::1] which, const double[:, ::1] shares,
    const int32_t[::1] target, Py_ssize_t start, Py_ssize_t stop, uint8_t[:, ::1] side,
    int32_t[:, ::1] work, double[:, :, ::1] out
):
    """Add the Shapley values of the rows start, ..., stop - 1, from the trees in `which`.

    background (m, d), with weights (m,) that sum to 1. shares (k, k): p, q -> (p - 1)! q! / (p + q)!; paths
    compare fewer than k different features. `target`: the output of each tree, or None. WORK side (m + 1, nodes
    of the largest tree); work (4, n_used). INOUT out (n, d, n_outputs).
    """
    cdef const int32_t[::1] root = trees[0], feature = trees[1], category_set = trees[5]
    cdef const int32_t[:, ::1] children = trees[2]
    cdef const double[::1] threshold = trees[3]
    cdef const uint8_t[::1] missing = trees[4]
    cdef const double[:, ::1] leaf_value = trees[6]
    cdef const uint64_t[:, ::1] sets = trees[7]
    cdef Py_ssize_t k, t, i, r, first, n_nodes, m = background.shape[0]
    cdef Walk w
    cdef const uint64_t* words = &sets[0, 0] if sets.shape[0] else NULL
    cdef double* to
    if (out.shape[0] != X.shape[0] or out.shape[1] != X.shape[1] or background.shape[1] != X.shape[1]
            or weight.shape[0] != m or side.shape[0] != m + 1 or work.shape[0] != 4
            or work.shape[1] != used.shape[0] or not 0 <= start <= stop <= X.shape[0]):
        raise ValueError("add_pairs: arrays of different sizes")
    if used.shape[0] == 0 or start == stop or m == 0:
        return
    w.n_values, w.shares, w.n_shares = leaf_value.shape[1], &shares[0, 0], shares.shape[0]
    w.used, w.n_outputs = &used[0], out.shape[2]
    w.source, w.listed, w.waiting = &work[0, 0], &work[1, 0], &work[2, 0]
    work[0] = 0
    with nogil:
        for k in range(which.shape[0]):
            t = which[k]
            first, n_nodes = root[t], root[t + 1] - root[t]
            w.tree.feature, w.tree.children = &feature[first], &children[first, 0]
            w.value = &leaf_value[first, 0]
            for r in range(m):
                set_sides(&w, n_nodes, &threshold[first], &missing[first], &category_set[first], words,
                          &background[r, 0], &side[r, 0])
            for i in range(start, stop):
                set_sides(&w, n_nodes, &threshold[first], &missing[first], &category_set[first], words,
                          &X[i, 0], &side[m, 0])
                to = &out[i, 0, 0] + (0 if target is None else target[t])
                for r in range(m):
                    walk_pair(&w, &side[m, 0], &side[r, 0], weight[r], to)
