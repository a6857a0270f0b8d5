"""Evaluation of trees: the leaf that each row reaches in each of a list of trees.

The nodes of all trees stand in one array, each tree in preorder, so that the first child of a node is
the node after it. `steps` holds 16 bytes per node: its threshold (float64), 64 times the column it
compares (int32), and how far beyond the first child the second is (int32). A leaf leads back to
itself: its threshold is below every number, and its second child one place before the node that
follows it. Rows go eight together, which hides the time that each waits for its next node.

X has n rows; arrays: root (n_trees + 1,) the first node of each tree, closed by the number of nodes;
depth (n_trees,) the greatest number of comparisons in each.
"""
from pboost._core._rows cimport Rows, rows_of
from pboost._core._tile cimport TILE, load_tile
from pboost._core.types cimport int32_t, uint8_t

TILE_ROWS = TILE

cdef enum:
    TOGETHER = 8  # rows that walk side by side
cdef enum:
    STRIDE = 4  # steps between looks whether all have arrived
cdef enum:
    FEW_STEPS = 12  # trees of this depth are walked without looking

cdef struct Step:
    double threshold
    int32_t column
    int32_t beyond


cdef inline int32_t walk_on(const Step* tree, const double* tile, int32_t node) noexcept nogil:
    """The next node, without a branch: half of the guesses would be wrong."""
    cdef const Step* step = tree + node
    cdef int32_t above = tile[step.column] > step.threshold
    return node + 1 + (-above & step.beyond)


cdef inline void walk_together(
    const Step* tree, int32_t depth, const double* tile, int32_t* at
) noexcept nogil:
    """Walk rows to their leaves; `tile` begins with the first of them. OUT at."""
    cdef int32_t[TOGETHER] here
    cdef int32_t node, moved = depth > FEW_STEPS
    cdef int r, k
    for r in range(TOGETHER):
        here[r] = 0
    if depth <= FEW_STEPS:
        for k in range(depth):
            for r in range(TOGETHER):
                here[r] = walk_on(tree, tile + r, here[r])
    while moved:
        moved = 0
        for k in range(STRIDE - 1):
            for r in range(TOGETHER):
                here[r] = walk_on(tree, tile + r, here[r])
        for r in range(TOGETHER):
            node = here[r]
            here[r] = walk_on(tree, tile + r, node)
            moved |= here[r] ^ node
    for r in range(TOGETHER):
        at[r] = here[r]


def walk_leaves(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    Py_ssize_t start, Py_ssize_t stop, double[::1] tile, int32_t[:, ::1] leaf,
):
    """Node at which rows start..stop-1 of X end in each tree, counted from the tree's first.

    WORK tile (n_features * 64,); OUT leaf (n, n_trees). Returns 1 if a value is not finite.
    """
    cdef Rows rows = rows_of(X)
    cdef Py_ssize_t n_trees = root.shape[0] - 1, i = start, n, g, r, k, t
    cdef const Step* step = <const Step*>&steps[0]
    cdef int32_t[TOGETHER] at
    cdef int bad = 0
    if (leaf.shape[0] < stop or leaf.shape[1] != n_trees or tile.shape[0] < rows.d * TILE
            or depth.shape[0] < n_trees):
        raise ValueError("walk_leaves: arrays of different sizes")
    with nogil:
        while i < stop:
            bad = load_tile(&rows, i, min(TILE, stop - i), &tile[0])
            if bad:
                break
            n = min(TILE, stop - i)
            for t in range(n_trees):
                for g in range((n + TOGETHER - 1) // TOGETHER):
                    r = g * TOGETHER
                    walk_together(step + root[t], depth[t], &tile[r], at)
                    for k in range(min(TOGETHER, n - r)):
                        leaf[i + r + k, t] = at[k]
            i += TILE
    return bad


def walk_sums(
    X, const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth,
    const double[:, ::1] value, Py_ssize_t start, Py_ssize_t stop, double[::1] tile, double[:, ::1] total,
):
    """Add the values of the leaves that rows start..stop-1 of X reach, tree after tree.

    IN value (n_nodes, k); WORK tile (n_features * 64,); INOUT total (n, k). Returns 1, with the
    sums unfinished, if a value of X is not finite.
    """
    cdef Rows rows = rows_of(X)
    cdef Py_ssize_t n_trees = root.shape[0] - 1, i = start, n, g, r, k, t, j, width = value.shape[1]
    cdef const Step* step = <const Step*>&steps[0]
    cdef const double* leaf
    cdef int32_t[TOGETHER] at
    cdef int bad = 0
    if (total.shape[0] < stop or total.shape[1] != width or tile.shape[0] < rows.d * TILE
            or depth.shape[0] < n_trees):
        raise ValueError("walk_sums: arrays of different sizes")
    with nogil:
        while i < stop:
            bad = load_tile(&rows, i, min(TILE, stop - i), &tile[0])
            if bad:
                break
            n = min(TILE, stop - i)
            for t in range(n_trees):
                for g in range((n + TOGETHER - 1) // TOGETHER):
                    r = g * TOGETHER
                    walk_together(step + root[t], depth[t], &tile[r], at)
                    for k in range(min(TOGETHER, n - r)):
                        leaf = &value[root[t] + at[k], 0]
                        for j in range(width):
                            total[i + r + k, j] += leaf[j]
            i += TILE
    return bad
