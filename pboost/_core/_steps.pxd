# The walk of the rows of a tile through the nodes of trees, which tree_walk.pyx describes.
from pboost._core._side cimport goes_right
from pboost._core.types cimport int32_t, uint8_t

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

cdef struct Trees:
    const Step* step
    const int32_t* root
    const int32_t* depth
    Py_ssize_t n


cdef inline Trees trees_of(
    const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth
) except *:
    """Trees in arrays that must outlive them."""
    cdef Trees trees
    trees.step, trees.root, trees.depth = <const Step*>&steps[0], &root[0], &depth[0]
    trees.n = root.shape[0] - 1
    if depth.shape[0] < trees.n or steps.shape[0] < <Py_ssize_t>sizeof(Step) * root[trees.n]:
        raise ValueError("trees: arrays of different sizes")
    return trees


cdef inline int32_t walk_on(const Step* tree, const double* tile, int32_t node) noexcept nogil:
    """The next node, without a branch: half of the guesses would be wrong."""
    cdef const Step* step = tree + node
    cdef int32_t above = goes_right(tile[step.column], step.threshold)
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


cdef inline void walk_tile(
    const Trees* trees, Py_ssize_t t, const double* tile, Py_ssize_t n, int32_t* at
) noexcept nogil:
    """Walk the n rows of a tile to their leaves in tree t, as nodes of that. OUT at (TILE,)."""
    cdef Py_ssize_t r = 0
    while r < n:
        walk_together(trees.step + trees.root[t], trees.depth[t], tile + r, at + r)
        r += TOGETHER
