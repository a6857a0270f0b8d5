"""Evaluation of trees: find the leaf of each row in each tree.

The nodes of all trees are in one array. Each tree is in preorder, so that the first child of a node is the
next node. `steps` has 16 bytes per node: its threshold (float64), its feature times 64 (int32), and the
distance from the first child to the second (int32). The next node of a leaf is the leaf itself: its
threshold is below every number, and its distance is -1. Eight rows are evaluated together, so that the
processor need not wait for the next node of each. root (n_trees + 1,): the first node of each tree, then
the number of nodes; depth (n_trees,): the maximum number of comparisons in each tree.

Tiles with missing values need other steps. A node that sends missing values to the second child compares a
second copy of the feature, see walk_simd.h. ``holes`` contains these steps and the features that are copied
(k,). Without ``holes``, evaluation stops at the first tile with a missing value, so that the caller can
create them. If nodes use sets of categories, `sets` are as in `as_tree_ensemble`.

A decision graph in which no two exits lead to the same node has the same layout. Shallow trees can be
evaluated for many rows on ranks instead of values, with bit-identical sums. See rank_simd.h and
`pboost.models.random_forest`.
"""
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fmax, fmin, isfinite, ldexp, nextafter
from libc.string cimport memset

from pboost._core._active_rows cimport (
    Exits, Lanes, all_enter, exits_of, is_settled, leads_of, least_lead, mark_leaving, move_up,
    stay,
)
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core._steps cimport (
    Holes, Step, Trees, add_row, holes_of, load_values, read_levels, as_tree_ensemble, walk_tile,
)
from pboost._core._tile cimport TILE, FillKernel, choose_fill, known_or
from pboost._core.types cimport int16_t, int32_t, uint8_t

cdef extern from "rank_simd.h":
    ctypedef struct RankedNode "pboost_ranked_node":
        int32_t column
        int32_t edge
    ctypedef void (*LeafKernel "pboost_leaf_kernel")(
        const RankedNode*, int, const void*, int16_t*
    ) noexcept nogil
    ctypedef void (*AddKernel "pboost_add_kernel")(
        const double*, int, const int16_t*, double*
    ) noexcept nogil
    ctypedef void (*RankKernel "pboost_rank_kernel")(
        const double*, const double*, int, void*
    ) noexcept nogil
    ctypedef struct RankPasses "pboost_rank_passes":
        LeafKernel leaf
        RankKernel rank
        AddKernel add  # NULL if not available
    RankPasses choose_rank_passes "pboost_choose_rank_passes"(int level, int bytes) noexcept nogil
    void add_leaves "pboost_add_leaves"(
        const double* value, const int16_t* leaf, Py_ssize_t n, Py_ssize_t width, Py_ssize_t stride,
        double* total
    ) noexcept nogil

cdef enum:
    RANKED = 24  # evaluation without ranks is faster for fewer rows in a tile

cdef enum:
    IN_REGISTERS = 6  # up to this depth, leaf values are kept in registers

cdef int simd_level = 2

TILE_ROWS = TILE
MANY = RANKED


def use_simd_level(int level):
    """Choose the variant of the kernels on ranks: 0 for none, 1 for AVX2, or 2 for AVX-512 if supported."""
    global simd_level
    simd_level = level


def has_ranks():
    """Return whether a kernel on ranks is available."""
    return choose_rank_passes(simd_level, False).leaf != NULL


def lay_out(
    const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const double[:, ::1] vote, double bias, int32_t[:, ::1] work, uint8_t[::1] steps,
    double[::1] value,
):
    """Convert a graph in which no two exits lead to the same node to a tree.

    Exits that end prediction become leaves. IN the nodes, at least one, and bias; WORK work (3, n_nodes);
    OUT steps (16 * (2 * n_nodes + 1),); value (2 * n_nodes + 1,): the bias plus the votes on the path to
    each node, added in this order. Returns the depth.
    """
    cdef Py_ssize_t n = feature.shape[0], e
    cdef int32_t* size = &work[0, 0]
    cdef int32_t* place = &work[1, 0]
    cdef int32_t* depth = &work[2, 0]
    cdef Step* step = <Step*>&steps[0]
    cdef int32_t to, here, child, deepest = 0
    cdef int k
    if (work.shape[0] != 3 or work.shape[1] != n or value.shape[0] != 2 * n + 1 or threshold.shape[0] != n
            or next_.shape[0] != n or vote.shape[0] != n
            or steps.shape[0] != <Py_ssize_t>sizeof(Step) * (2 * n + 1)):
        raise ValueError("lay_out: arrays of different sizes")
    with nogil:
        # Parents come before their children.
        for e in range(n - 1, -1, -1):
            size[e] = 1
            for k in range(2):
                to = next_[e, k]
                size[e] += size[to] if to >= 0 else 1
        place[0], depth[0], value[0] = 0, 0, bias
        for e in range(n):
            here, to = place[e], next_[e, 0]
            deepest = max(deepest, depth[e] + 1)
            step[here].threshold, step[here].column = threshold[e], <int32_t>TILE * feature[e]
            step[here].beyond = size[to] if to >= 0 else 1
            for k in range(2):
                to, child = next_[e, k], here + 1 + k * step[here].beyond
                value[child] = value[here] + vote[e, k]
                if to >= 0:
                    place[to], depth[to] = child, depth[e] + 1
                else:
                    step[child].threshold, step[child].column, step[child].beyond = -INFINITY, 0, -1
    return deepest


# Trees on ranks: the arrays of `RankedTrees`.
cdef struct Ranked:
    const double* edge
    const int32_t* first
    const int32_t* levels
    const RankedNode* node
    const double* value
    Py_ssize_t d, n_trees, width
    int depth
    bint is_narrow
    RankPasses passes


cdef Ranked read_ranked(ranked) except *:
    """Read the arrays of `RankedTrees`. They must stay alive while the result is used."""
    cdef const double[::1] edge
    cdef const int32_t[::1] first, levels
    cdef const int32_t[:, :, ::1] node
    cdef const double[:, :, ::1] value
    cdef Ranked t
    edge, first, levels, node, value, t.depth, t.is_narrow = ranked
    t.edge, t.first, t.levels = &edge[0], &first[0], &levels[0]
    t.node, t.value = <const RankedNode*>&node[0, 0, 0], &value[0, 0, 0]
    t.d, t.n_trees, t.width = levels.shape[0], node.shape[0], value.shape[2]
    t.passes = choose_rank_passes(simd_level, t.is_narrow)
    if t.depth > IN_REGISTERS or t.width > 1:
        t.passes.add = NULL
    if (node.shape[1] != (1 << t.depth) - 1 or value.shape[0] != t.n_trees or node.shape[2] != 2
            or value.shape[1] != 1 << t.depth or first.shape[0] != t.d):
        raise ValueError("read_ranked: arrays of different sizes")
    return t


cdef void add_ranked(
    const Ranked* t, const double* tile, Py_ssize_t n, char* rank, Py_ssize_t stride, double* total
) noexcept nogil:
    """Add the leaf values of the n rows of a tile, one tree after another."""
    cdef int16_t[TILE] leaf
    cdef const double* value = t.value
    cdef Py_ssize_t i, j, column = 0, size = TILE * (1 if t.is_narrow else sizeof(int16_t))
    for j in range(t.d):
        if t.levels[j]:
            t.passes.rank(tile + j * TILE, t.edge + t.first[j], t.levels[j], rank + j * size)
    for i in range(t.n_trees):
        t.passes.leaf(t.node + (i << t.depth) - i, t.depth, rank, leaf)
        if t.passes.add != NULL and n == TILE and stride == 1:
            t.passes.add(value, t.depth, leaf, total)
        else:
            add_leaves(value, leaf, n, t.width, stride, total + column)
        value += t.width << t.depth
        column += t.width
        if column == stride:
            column = 0


cdef int check_ranked(
    const Ranked* found, const Trees* trees, Py_ssize_t width, Py_ssize_t d, const int16_t[::1] rank,
    Py_ssize_t room
) except -1:
    """Raise ValueError if `found` does not match the trees, or if the work array `rank` is too small.
    """
    if (found.n_trees != trees.n or found.width != width or found.d > d or rank is None
            or rank.shape[0] < room):
        raise ValueError("check_ranked: arrays of different sizes")
    return 0


def walk_leaves(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    Py_ssize_t start, Py_ssize_t stop, double[::1] tile, int32_t[:, ::1] leaf, holes=None, sets=None,
):
    """Find the leaf of the rows start..stop-1 of X in each tree, numbered from the root of the tree.

    WORK tile (64 * columns,); OUT leaf (n, n_trees). Returns `stop`, or the first row of a tile with an
    infinite value or, without ``holes``, a missing value.
    """
    cdef Rows rows = rows_of(X)
    cdef Trees trees = as_tree_ensemble(steps, root, depth, sets, rows.d)
    cdef Holes parted = holes_of(holes, &trees, rows.d, tile.shape[0])
    cdef Py_ssize_t i = start, n, r, t
    cdef int32_t[TILE] at
    cdef const Trees* used
    cdef int kind
    if leaf.shape[0] < stop or leaf.shape[1] != trees.n or tile.shape[0] < rows.d * TILE:
        raise ValueError("walk_leaves: arrays of different sizes")
    with nogil:
        while i < stop:
            n = min(TILE, stop - i)
            kind = load_values(&rows, i, n, &tile[0], &trees, &parted)
            if kind < 0:
                break
            used = &parted.trees if kind else &trees
            for t in range(trees.n):
                walk_tile(used, t, &tile[0], n, at)
                for r in range(n):
                    leaf[i + r, t] = at[r]
            i += n
    return i


def walk_sums(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    const double[:, ::1] value, Py_ssize_t start, Py_ssize_t stop, double[::1] tile, double[:, ::1] total,
    ranked=None, ranked_holes=None, int16_t[::1] rank=None, holes=None, sets=None,
):
    """Add the leaf values of the rows start..stop-1 of X, one tree after another.

    IN value (n_nodes, k); WORK tile (64 * columns,); INOUT total (n, c * k): tree t adds to the k columns
    that begin at (t mod c) * k. `ranked`: the same trees as arrays of `RankedTrees`; `ranked_holes`: the
    same for the steps in ``holes``; WORK rank, with the size of tile. Returns the same number as
    `walk_leaves`. The sums of all rows before this number are complete, and all other sums are unchanged.
    """
    cdef Rows rows = rows_of(X)
    cdef Trees trees = as_tree_ensemble(steps, root, depth, sets, rows.d)
    cdef Holes parted = holes_of(holes, &trees, rows.d, tile.shape[0])
    cdef Py_ssize_t i = start, n, r, t, j, width = value.shape[1], stride = total.shape[1], column
    cdef const double* leaf
    cdef const Ranked* found
    cdef int32_t[TILE] at
    cdef const Trees* used
    cdef int kind
    cdef Ranked whole, broken
    memset(&whole, 0, sizeof(whole))
    memset(&broken, 0, sizeof(broken))
    if ranked is not None and has_ranks():
        whole = read_ranked(ranked)
        check_ranked(&whole, &trees, width, rows.d, rank, tile.shape[0])
    if ranked_holes is not None and has_ranks():
        broken = read_ranked(ranked_holes)
        check_ranked(&broken, &trees, width, rows.d + parted.n_twice, rank, tile.shape[0])
    if (total.shape[0] < stop or stride < width or stride % width or tile.shape[0] < rows.d * TILE
            or value.shape[0] != root[trees.n]):
        raise ValueError("walk_sums: arrays of different sizes")
    with nogil:
        while i < stop:
            n = min(TILE, stop - i)
            kind = load_values(&rows, i, n, &tile[0], &trees, &parted)
            if kind < 0:
                break
            used = &parted.trees if kind else &trees
            found = &broken if kind else &whole
            if found.node != NULL and n >= RANKED:
                add_ranked(found, &tile[0], n, <char*>&rank[0], stride, &total[i, 0])
                i += n
                continue
            if n == 1:
                add_row(used, &tile[0], &value[0, 0], width, stride, &total[i, 0])
                i += n
                continue
            column = 0
            for t in range(trees.n):
                walk_tile(used, t, &tile[0], n, at)
                for r in range(n):
                    leaf = &value[root[t] + at[r], 0]
                    for j in range(width):
                        total[i + r, column + j] += leaf[j]
                column += width
                if column == stride:
                    column = 0
            i += n
    return i


# Sums of trees with early exits: evaluation of a row stops once its decision values pass thresholds.
#
# The thresholds `high` and `low` (T, V) are described in `pboost.models.evaluate.exits`. `checked` (T,)
# marks the stages at which a row can stop. Outputs: score (n, V): the values at which rows stop; joint (n,)
# int32: the number of completed stages; cost (n,) float64: the number of comparisons. Rows are evaluated in
# tiles of 64.

# Trees that are summed in rounds. Each round adds to the sums (K, TILE) of the rows.
cdef struct Sums:
    const double* value
    const double* bias
    const int32_t* depth  # depth of each node; NULL if comparisons are not counted
    Py_ssize_t width  # number of values per node
    Py_ssize_t n_sums      # K, the number of sums
    Py_ssize_t each  # number of trees per round
    bint is_mean


cdef void values_of(
    const Sums* sums, const double* total, Py_ssize_t t, Py_ssize_t n, double* value
) noexcept nogil:
    """Compute the values (V, TILE) of rows after t stages, from their sums over trees."""
    cdef Py_ssize_t j, r, k = sums.n_sums
    cdef double number = <double>t
    if not sums.is_mean:
        for j in range(k):
            for r in range(n):
                value[j * TILE + r] = sums.bias[j] + total[j * TILE + r]
    elif t == 0:
        memset(value, 0, <size_t>(k * TILE) * sizeof(double))
    elif k == 2:
        for r in range(n):
            value[r] = total[TILE + r] / number - total[r] / number
    else:
        for j in range(k):
            for r in range(n):
                value[j * TILE + r] = total[j * TILE + r] / number


cdef void add_round(
    const Sums* sums, const Trees* trees, Py_ssize_t t, const double* tile, Lanes* lanes, double* total
) noexcept nogil:
    """Add the leaf values of rows in the trees of a round."""
    cdef Py_ssize_t k, r, j, width = sums.width
    cdef int32_t[TILE] at
    cdef const int32_t* depth
    cdef const double* leaf
    for k in range(t * sums.each, (t + 1) * sums.each):
        walk_tile(trees, k, tile, lanes.n, at)
        for j in range(width):
            leaf = sums.value + trees.root[k] * width + j
            for r in range(lanes.n):
                total[r] += leaf[at[r] * width]
            total += TILE
        if sums.depth != NULL:
            depth = sums.depth + trees.root[k]
            for r in range(lanes.n):
                lanes.cost[r] += depth[at[r]]


cdef Py_ssize_t find_leaving(
    const Sums* sums, const Exits* exits, Py_ssize_t t, const double* total, const Lanes* lanes,
    double* value, uint8_t* leaves
) noexcept nogil:
    """Mark the rows that stop after t stages and return their number.

    OUT leaves; value, which is only complete for these rows.
    """
    cdef Py_ssize_t j, r, n = 0
    cdef double least, number = <double>t
    cdef double[TILE] lead
    cdef bint is_lazy = sums.is_mean and exits.n_values > 1  # if true, most divisions are avoided
    if not is_lazy:
        values_of(sums, total, t, lanes.n, value)
    if exits.n_values == 1:
        return mark_leaving(exits, t, value, lanes, leaves)
    leads_of(total if is_lazy else value, exits.n_values, lanes.n, lead)
    least = least_lead(exits, t) * (number if is_lazy else 1.0)
    for r in range(lanes.n):
        leaves[r] = False
        if lead[r] < least or lanes.left[r]:
            continue
        if is_lazy:
            for j in range(exits.n_values):
                value[j * TILE + r] = total[j * TILE + r] / number
        leaves[r] = is_settled(exits, t, value + r, TILE)
        n += leaves[r]
    return n


cdef void write_out(
    const Lanes* lanes, const uint8_t* leaves, const double* value, Py_ssize_t n_values, Py_ssize_t t,
    double* score, int32_t* joint, double* cost
) noexcept nogil:
    """Store the results of rows that stop after t stages."""
    cdef Py_ssize_t r, j, row
    for r in range(lanes.n):
        if leaves[r]:
            row = lanes.row[r]
            joint[row], cost[row] = <int32_t>t, <double>lanes.cost[r]
            for j in range(n_values):
                score[row * n_values + j] = value[j * TILE + r]


cdef void leave_tile(
    const Sums* sums, const Trees* trees, const Exits* exits, Py_ssize_t n_columns, Py_ssize_t n,
    double* tile, double* work, double* score, int32_t* joint, double* cost
) noexcept nogil:
    """Evaluate the n rows of a tile until each row stops; WORK (2 * K * TILE)."""
    cdef Lanes lanes
    cdef double* total = work
    cdef double* value = work + sums.n_sums * TILE
    cdef uint8_t[TILE] leaves
    cdef int32_t[TILE] source
    cdef Py_ssize_t t, r
    all_enter(&lanes, n)
    memset(total, 0, <size_t>(sums.n_sums * TILE) * sizeof(double))
    for t in range(exits.n_joints):
        if exits.checked[t]:
            r = find_leaving(sums, exits, t, total, &lanes, value, leaves)
            if r:
                write_out(&lanes, leaves, value, exits.n_values, t, score, joint, cost)
                lanes.active -= r
                if not lanes.active:
                    return
                for r in range(lanes.n):
                    lanes.left[r] |= leaves[r]
                if 2 * lanes.active <= lanes.n:
                    r = stay(&lanes, source)
                    move_up(tile, n_columns, source, r)
                    move_up(total, sums.n_sums, source, r)
                    if trees.levels.word != NULL:
                        read_levels(&trees.levels, tile)
        add_round(sums, trees, t, tile, &lanes, total)
    values_of(sums, total, exits.n_joints, lanes.n, value)
    for r in range(lanes.n):
        leaves[r] = not lanes.left[r]
    write_out(&lanes, leaves, value, exits.n_values, exits.n_joints, score, joint, cost)


def leave_trees(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    const double[:, ::1] value, const int32_t[::1] node_depth, const double[::1] bias, bint is_mean,
    high, low, checked, Py_ssize_t start, Py_ssize_t stop, double[::1] tile, double[::1] work,
    double[:, ::1] score, int32_t[::1] joint, double[::1] cost, holes=None, sets=None,
):
    """Evaluate trees for the rows start..stop-1 of X until each row stops.

    IN the trees, as described at the start of this file; value (n_nodes, k); node_depth (n_nodes,), or None
    to return a cost of 0; bias (K,). If `is_mean` is true, values are means over the trees; with two sums,
    the value is the second mean minus the first. Otherwise, values are bias plus sums. WORK tile (64 *
    columns,), work (128 * K,). Returns the same number as `walk_leaves`.
    """
    cdef Rows rows = rows_of(X)
    cdef Trees trees = as_tree_ensemble(steps, root, depth, sets, rows.d)
    cdef Holes parted = holes_of(holes, &trees, rows.d, tile.shape[0])
    cdef Exits exits = exits_of(high, low, checked)
    cdef Sums sums
    cdef Py_ssize_t i = start, n, n_columns
    cdef const Trees* used
    cdef int kind
    sums.value, sums.bias = &value[0, 0], &bias[0]
    sums.depth = NULL if node_depth is None else &node_depth[0]
    sums.width, sums.n_sums, sums.is_mean = value.shape[1], bias.shape[0], is_mean
    sums.each = sums.n_sums // sums.width
    n = 1 if is_mean and sums.n_sums == 2 else sums.n_sums
    if (sums.n_sums % sums.width or exits.n_joints * sums.each != trees.n or exits.n_values != n
            or value.shape[0] != root[trees.n]
            or (node_depth is not None and node_depth.shape[0] != root[trees.n])
            or tile.shape[0] < rows.d * TILE or work.shape[0] < 2 * sums.n_sums * TILE
            or not 0 <= start <= stop <= rows.n or score.shape[0] < stop or score.shape[1] != n
            or joint.shape[0] < stop or cost.shape[0] < stop):
        raise ValueError("leave_trees: arrays of different sizes")
    with nogil:
        while i < stop:
            n = min(TILE, stop - i)
            kind = load_values(&rows, i, n, &tile[0], &trees, &parted)
            if kind < 0:
                break
            used = &parted.trees if kind else &trees
            n_columns = rows.d + (parted.n_twice if kind else 0)
            leave_tile(
                &sums, used, &exits, n_columns, n, &tile[0], &work[0], &score[i, 0], &joint[i], &cost[i]
            )
            i += n
    return i


# Compute the values of probit trees. Each leaf has one linear equation per model; see probit.pyx.

cdef enum:
    ABSENT = -2  # marks a class without rows in a leaf; see probit.pyx.
    # Products that would overflow are computed with exponents that are reduced by this number.
cdef enum:
    FAR = 540

cdef double far_value(
    const double* x, Py_ssize_t stride, Py_ssize_t d, const double* equation
) noexcept nogil:
    """Return the value of an equation whose terms overflow, clipped to the range of float64."""
    cdef double total = ldexp(equation[0], -2 * FAR)
    cdef Py_ssize_t j
    for j in range(d):
        total += ldexp(equation[1 + j], -FAR) * ldexp(x[j * stride], -FAR)
    return fmax(-DBL_MAX, fmin(DBL_MAX, ldexp(total, 2 * FAR)))


cdef inline void values_at(
    const double* x, Py_ssize_t stride, Py_ssize_t d, const double* equation, const int32_t* taken,
    Py_ssize_t k, double* out
) noexcept nogil:
    """Compute the k values of one row. Its features are `stride` numbers apart."""
    cdef double total, least = INFINITY
    cdef Py_ssize_t i, j
    cdef bint absent = False
    for i in range(k):
        total = equation[0]
        if k > 1 and taken[i] == ABSENT:
            absent = True
        else:
            for j in range(d):
                total += equation[1 + j] * x[j * stride]
            if not isfinite(total):
                total = far_value(x, stride, d, equation)
            least = fmin(least, total)
        out[i] = total
        equation += 1 + d
    if absent:
        least = fmax(-DBL_MAX, nextafter(least, -INFINITY))
        for i in range(k):
            if taken[i] == ABSENT:
                out[i] = fmin(out[i], least)


# `mean` (d,) replaces missing values; it is NULL if there are none.

cdef inline void read_row(
    const Rows* X, Py_ssize_t i, const double* mean, FillKernel fill, double* out
) noexcept nogil:
    """Read row i and replace its missing values."""
    cdef const char* row = X.data + i * X.row_stride
    cdef const double* x = out
    cdef Py_ssize_t j
    if mean != NULL and not X.is_float and X.column_stride == sizeof(double):
        x = <const double*>row
    else:
        for j in range(X.d):
            out[j] = read(X, row, j)
    if mean != NULL:
        fill(x, mean, X.d, out)


cdef inline bint values_of_four(
    const Rows* X, const int32_t* listed, const double* equation, double* out, const double* mean
) noexcept nogil:
    """Compute the values of one equation for four rows together, which is faster.

    Return whether all values are finite.
    """
    cdef const char* r0 = X.data + listed[0] * X.row_stride
    cdef const char* r1 = X.data + listed[1] * X.row_stride
    cdef const char* r2 = X.data + listed[2] * X.row_stride
    cdef const char* r3 = X.data + listed[3] * X.row_stride
    cdef double a = equation[0], b = a, c = a, e = a, slope
    cdef Py_ssize_t j
    if mean == NULL:
        for j in range(X.d):
            slope = equation[1 + j]
            a += slope * read(X, r0, j)
            b += slope * read(X, r1, j)
            c += slope * read(X, r2, j)
            e += slope * read(X, r3, j)
    else:
        for j in range(X.d):
            slope = equation[1 + j]
            a += slope * known_or(read(X, r0, j), mean[j])
            b += slope * known_or(read(X, r1, j), mean[j])
            c += slope * known_or(read(X, r2, j), mean[j])
            e += slope * known_or(read(X, r3, j), mean[j])
    out[0], out[1], out[2], out[3] = a, b, c, e
    return isfinite(a) and isfinite(b) and isfinite(c) and isfinite(e)


def leaf_values(
    X, const int32_t[::1] listed, const int32_t[::1] starts, const double[:, :, ::1] equation,
    const int32_t[:, ::1] taken, Py_ssize_t start, Py_ssize_t stop, double[::1] work,
    double[:, ::1] out, const double[:, ::1] means=None,
):
    """Compute the values of the listed rows start..stop-1 of X; the list is sorted by leaf.

    IN listed (n,), starts (leaves + 1,) as made by `list_rows`; means (leaves, d) or None: these replace
    missing values; WORK work (d,); OUT out (n, K).
    """
    cdef Rows rows = rows_of(X)
    cdef Py_ssize_t leaf = 0, i, k = equation.shape[1]
    cdef const double* mean = NULL
    cdef FillKernel fill = choose_fill(2)
    if (equation.shape[2] != rows.d + 1 or work.shape[0] < rows.d or out.shape[1] != k
            or out.shape[0] < stop or listed.shape[0] < stop or taken.shape[0] != equation.shape[0]
            or starts.shape[0] != equation.shape[0] + 1 or starts[equation.shape[0]] < stop
            or (means is not None and (
                means.shape[0] != equation.shape[0] or means.shape[1] != rows.d))):
        raise ValueError("leaf_values: arrays of different sizes")
    with nogil:
        i = start
        while i < stop:
            while starts[leaf + 1] <= i:
                leaf += 1
            if means is not None:
                mean = &means[leaf, 0]
            if (k == 1 and i + 4 <= min(stop, <Py_ssize_t>starts[leaf + 1])
                    and values_of_four(&rows, &listed[i], &equation[leaf, 0, 0], &out[i, 0], mean)):
                i += 4
                continue
            read_row(&rows, listed[i], mean, fill, &work[0])
            values_at(&work[0], 1, rows.d, &equation[leaf, 0, 0], &taken[leaf, 0], k, &out[i, 0])
            i += 1


def walk_values(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    const int32_t[::1] leaf, const double[:, :, ::1] equation, const int32_t[:, ::1] taken,
    Py_ssize_t start, Py_ssize_t stop, double[::1] tile, double[:, :, ::1] out,
    const double[:, ::1] means=None, holes=None, sets=None, added=None, double[::1] row=None,
):
    """Compute the values of the leaf equations of each tree for the rows start..stop-1 of X.

    IN the trees, as described at the start of this file; leaf (n_nodes,): the index of each leaf in
    `equation` (leaves of all trees, K, 1 + d), in `taken`, and in `means` (leaves, d), or (1, d) for all
    leaves. `means` replace missing values and need ``holes``. `added` (n, d) are the features of the
    equations if they differ from X. WORK tile (64 * columns,); row (d,), with ``holes`` or `added`. OUT out
    (stop - start, n_trees, K); its first row is for row `start`. Returns the same number as `walk_leaves`.
    """
    cdef Rows rows = rows_of(X)
    cdef Rows wide = rows if added is None else rows_of(added)
    cdef Trees trees = as_tree_ensemble(steps, root, depth, sets, rows.d)
    cdef Holes parted = holes_of(holes, &trees, rows.d, tile.shape[0])
    cdef Py_ssize_t i = start, n, r, t, d = wide.d, k = equation.shape[1], of_leaf
    cdef int32_t[TILE] at
    cdef int32_t here
    cdef const double* mean
    cdef const double* x
    cdef Py_ssize_t stride
    cdef const Trees* used
    cdef FillKernel fill = choose_fill(2)
    cdef int kind
    if (wide.n != rows.n or out.shape[0] < stop - start or out.shape[1] != trees.n
            or out.shape[2] != k or tile.shape[0] < rows.d * TILE or equation.shape[2] != d + 1
            or taken.shape[0] != equation.shape[0] or leaf.shape[0] != root[trees.n]
            or (not (holes is None and added is None) and (
                means is None or row is None or row.shape[0] < d))
            or (means is not None and (
                means.shape[1] != d or means.shape[0] not in (1, equation.shape[0])))):
        raise ValueError("walk_values: arrays of different sizes")
    of_leaf = d if means is not None and means.shape[0] > 1 else 0
    with nogil:
        while i < stop:
            n = min(TILE, stop - i)
            kind = load_values(&rows, i, n, &tile[0], &trees, &parted)
            if kind < 0:
                break
            used = &parted.trees if kind else &trees
            for t in range(trees.n):
                walk_tile(used, t, &tile[0], n, at)
                for r in range(n):
                    here = leaf[root[t] + at[r]]
                    x, stride = &tile[r], TILE
                    if kind or added is not None:
                        mean = &means[0, 0] + of_leaf * here if kind else NULL
                        read_row(&wide, i + r, mean, fill, &row[0])
                        x, stride = &row[0], 1
                    values_at(x, stride, d, &equation[here, 0, 0], &taken[here, 0], k,
                              &out[i - start + r, t, 0])
            i += n
    return i


# Weakest-link pruning: the least price (cost per leaf, `ccp_alpha`) at which each node is collapsed to a
# leaf.
#
# The least cost of the subtree of a node is a piecewise linear function of the price. While the node is not
# collapsed, it is the sum of the least costs of its children. Its slope is the number of leaves, and its
# kinks are at the prices at which nodes are collapsed. The kinks of a subtree are stored in a leftist heap,
# largest price first. The heap of a node is merged from the heaps of its children. The node is collapsed at
# the price at which its own cost, risk + price, equals the sum. Kinks at larger prices do not occur and are
# removed from the heap. Each node is added and removed once, so the time is O(n log n) for any tree.

# Prices are equal if they differ by less than these tolerances, relative to the price or to the risk of the
# root.
cdef enum:
    NONE = -1

cdef extern from *:
    """
    #define PBOOST_SAME_PRICE 1e-12
    #define PBOOST_SAME_RISK 1e-15
    """
    const double SAME_PRICE "PBOOST_SAME_PRICE"
    const double SAME_RISK "PBOOST_SAME_RISK"

cdef struct Kinks:
    int32_t* left
    int32_t* right
    int32_t* rank
    double* price


cdef int32_t merge(const Kinks* k, int32_t a, int32_t b) noexcept nogil:
    """Merge two leftist heaps and return the root. The recursion depth is logarithmic."""
    cdef int32_t swap
    if a == NONE:
        return b
    if b == NONE:
        return a
    if k.price[b] > k.price[a]:
        swap = a
        a = b
        b = swap
    k.right[a] = merge(k, k.right[a], b)
    if k.left[a] == NONE or k.rank[k.left[a]] < k.rank[k.right[a]]:
        swap = k.left[a]
        k.left[a] = k.right[a]
        k.right[a] = swap
    k.rank[a] = 0 if k.right[a] == NONE else k.rank[k.right[a]] + 1
    return a


def weakest_links(
    const int32_t[:, ::1] children, const double[::1] risk, double[::1] price,
    double[::1] gain, int32_t[::1] saved, int32_t[:, ::1] work,
):
    """Find the price at which each node becomes a leaf or is removed. The price of leaves is INFINITY.

    IN children (n, 2), parents first, -1 for leaves; risk (n,) of each node as a leaf. OUT price (n,):
    -INFINITY for inner nodes that are removed together with an ancestor before they would be collapsed;
    gain (n,): the increase of the risk when the node is collapsed; saved (n,): the number of leaves that
    are removed. `gain` and `saved` refer to the tree pruned at this price. WORK (4, n).
    """
    cdef Py_ssize_t n = children.shape[0], e
    cdef int32_t heap, left, right, leaves
    cdef double below, here
    cdef Kinks k
    cdef int32_t[:, ::1] columns = work
    k.left, k.right, k.rank = &columns[0, 0], &columns[1, 0], &columns[2, 0]
    k.price = &price[0]
    cdef int32_t* top = &columns[3, 0]
    with nogil:
        for e in range(n - 1, -1, -1):
            k.left[e] = k.right[e] = top[e] = NONE
            k.rank[e] = 0
            price[e] = INFINITY
            gain[e] = 0.0
            saved[e] = 0
            if children[e, 0] < 0:
                continue
            left, right = children[e, 0], children[e, 1]
            heap = merge(&k, top[left], top[right])
            # Start as if all descendants were collapsed, then remove kinks in order of decreasing price.
            below = risk[left] + risk[right]
            leaves = 2
            here = max((risk[e] - below) / (leaves - 1), 0.0)
            while heap != NONE and (price[heap] + SAME_RISK * risk[0]
                                    >= here * (1.0 - SAME_PRICE)):
                below -= gain[heap]
                leaves += saved[heap]
                price[heap] = -INFINITY
                heap = merge(&k, k.left[heap], k.right[heap])
                here = max((risk[e] - below) / (leaves - 1), 0.0)
            price[e] = here
            gain[e] = risk[e] - below
            saved[e] = leaves - 1
            k.left[e] = k.right[e] = NONE
            top[e] = merge(&k, heap, <int32_t>e)
