# The walk of rows through the nodes of trees as forest_walk.pyx describes them.
from pboost._core._side cimport goes_right
from pboost._core.types cimport int32_t

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
