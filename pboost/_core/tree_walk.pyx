"""Evaluation of trees: the leaf that each row reaches in each of a list of trees.

The nodes of all trees stand in one array, each tree in preorder, so that the first child
of a node is the node after it. `steps` holds 16 bytes per node: its threshold (float64), 64 times the
column it compares (int32), and how far beyond the first child the second is (int32). A leaf leads back
to itself: its threshold is below every number, and its second child one place before the node that
follows it. Rows go eight together, which hides the time that each waits for its next node. root
(n_trees + 1,): the first node of each tree, closed by the number of nodes; depth (n_trees,): the
greatest number of comparisons in each.

A tile of rows with missing values is walked with steps that compare other columns: those of nodes
that send such rows to the second child are a second copy of the column, see walk_simd.h. Until it is
known that there are such rows nobody has made these steps: without `holes` a walk ends where the first
such tile begins. `holes`: these steps, and which columns stand twice (k,). Where nodes test whether levels are in sets, `sets` are those of `trees_of`.

A graph without joins is laid out as such a tree. Shallow trees
of many rows are added up on ranks in place of values, see rank_simd.h and `pboost.models.ranked`. The
sums are the same, bit for bit.
"""
from libc.math cimport INFINITY
from libc.string cimport memset

from pboost._core._rows cimport Rows, rows_of
from pboost._core._steps cimport Holes, Step, Trees, holes_of, load_values, trees_of, walk_tile
from pboost._core._tile cimport TILE
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
    LeafKernel choose_leaf "pboost_choose_leaf"(int level, int bytes) noexcept nogil
    AddKernel choose_add "pboost_choose_add"(int level) noexcept nogil
    ctypedef void (*RankKernel "pboost_rank_kernel")(
        const double*, const double*, int, void*
    ) noexcept nogil
    RankKernel choose_rank "pboost_choose_rank"(int level, int bytes) noexcept nogil
    void add_leaves "pboost_add_leaves"(
        const double* value, const int16_t* leaf, Py_ssize_t n, Py_ssize_t width, Py_ssize_t stride,
        double* total
    ) noexcept nogil

cdef enum:
    RANKED = 24  # fewer rows in a tile are walked faster than ranked

cdef enum:
    IN_REGISTERS = 6  # values of trees of this depth are looked up in registers

cdef int simd_level = 2

TILE_ROWS = TILE
MANY = RANKED


def use_simd_level(int level):
    """Choose the variant of the kernels on ranks: 0 none, 1 AVX2, 2 AVX-512 if supported."""
    global simd_level
    simd_level = level


def has_ranks():
    """Whether there is a kernel on ranks."""
    return choose_leaf(simd_level, False) != NULL


def lay_out(
    const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const double[:, ::1] vote, double bias, int32_t[:, ::1] work, uint8_t[::1] steps,
    double[::1] value,
):
    """The nodes of a graph without joins as those of a tree, where exits that lead out are leaves.

    IN at least one node, and bias; WORK work (3, n_nodes); OUT steps (16 * (2 * n_nodes + 1),), value
    (2 * n_nodes + 1,): the bias and the votes on the way to a node, in this order. Returns the depth.
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
        # Parents stand before children.
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


# Trees on ranks; the arrays of `RankedTrees`.
cdef struct Ranked:
    const double* edge
    const int32_t* first
    const int32_t* levels
    const RankedNode* node
    const double* value
    Py_ssize_t d, n_trees, width
    int depth
    bint is_narrow
    RankKernel rank_kernel
    LeafKernel leaf_kernel
    AddKernel add_kernel  # NULL where there is none


cdef Ranked read_ranked(ranked) except *:
    """The arrays of `RankedTrees`, which must outlive them."""
    cdef const double[::1] edge
    cdef const int32_t[::1] first, levels
    cdef const int32_t[:, :, ::1] node
    cdef const double[:, :, ::1] value
    cdef Ranked t
    edge, first, levels, node, value, t.depth, t.is_narrow = ranked
    t.edge, t.first, t.levels = &edge[0], &first[0], &levels[0]
    t.node, t.value = <const RankedNode*>&node[0, 0, 0], &value[0, 0, 0]
    t.d, t.n_trees, t.width = levels.shape[0], node.shape[0], value.shape[2]
    t.rank_kernel = choose_rank(simd_level, t.is_narrow)
    t.leaf_kernel, t.add_kernel = choose_leaf(simd_level, t.is_narrow), choose_add(simd_level)
    if t.depth > IN_REGISTERS or t.width > 1:
        t.add_kernel = NULL
    if (node.shape[1] != (1 << t.depth) - 1 or value.shape[0] != t.n_trees or node.shape[2] != 2
            or value.shape[1] != 1 << t.depth or first.shape[0] != t.d):
        raise ValueError("read_ranked: arrays of different sizes")
    return t


cdef void add_ranked(
    const Ranked* t, const double* tile, Py_ssize_t n, char* rank, Py_ssize_t stride, double* total
) noexcept nogil:
    """Add the values of the leaves that the n rows of a tile reach, tree after tree."""
    cdef int16_t[TILE] leaf
    cdef const double* value = t.value
    cdef Py_ssize_t i, j, column = 0, size = TILE * (1 if t.is_narrow else sizeof(int16_t))
    for j in range(t.d):
        if t.levels[j]:
            t.rank_kernel(tile + j * TILE, t.edge + t.first[j], t.levels[j], rank + j * size)
    for i in range(t.n_trees):
        t.leaf_kernel(t.node + (i << t.depth) - i, t.depth, rank, leaf)
        if t.add_kernel != NULL and n == TILE and stride == 1:
            t.add_kernel(value, t.depth, leaf, total)
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
    """Raise ValueError unless they are the trees, of d columns, with WORK rank for a tile."""
    if (found.n_trees != trees.n or found.width != width or found.d > d or rank is None
            or rank.shape[0] < room):
        raise ValueError("check_ranked: arrays of different sizes")
    return 0


def walk_leaves(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    Py_ssize_t start, Py_ssize_t stop, double[::1] tile, int32_t[:, ::1] leaf, holes=None, sets=None,
):
    """Node at which rows start..stop-1 of X end in each tree, counted from the tree's first.

    WORK tile (64 * columns,); OUT leaf (n, n_trees). Returns `stop`, or the first row of a tile that
    cannot be walked, since a value is infinite, or missing without `holes`.
    """
    cdef Rows rows = rows_of(X)
    cdef Trees trees = trees_of(steps, root, depth, sets, rows.d)
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
    """Add the values of the leaves that rows start..stop-1 of X reach, tree after tree.

    IN value (n_nodes, k); WORK tile (64 * columns,); INOUT total (n, c * k), to whose columns trees add
    in turn: tree t to the k from (t mod c) * k on. `ranked`: the arrays of the same trees as `RankedTrees`, `ranked_holes` those that compare the columns that `holes` do, with WORK
    rank, of the size of tile. Returns as `walk_leaves`; the sums of the rows before are finished, those
    of the others are as they were.
    """
    cdef Rows rows = rows_of(X)
    cdef Trees trees = trees_of(steps, root, depth, sets, rows.d)
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
