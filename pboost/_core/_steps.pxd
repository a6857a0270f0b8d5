# Traversal of trees by the rows of a tile. The layout of trees is described in tree_walk.pyx.
from libc.string cimport memset

from pboost._core._rows cimport Rows
from pboost._core._side cimport goes_right, in_set, level_of
from pboost._core._tile cimport TILE, SpreadKernel, choose_spread, load_tile
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    TOGETHER = 8  # number of rows that are traversed together
cdef enum:
    STRIDE = 4  # after this number of steps, check whether all rows are in a leaf
cdef enum:
    FEW_STEPS = 12  # trees up to this depth are traversed without checks

cdef struct Step:
    double threshold
    int32_t column
    int32_t beyond

# A node of a tree with categorical splits. A row goes to the second child if its value is above the
# threshold or its category is in the set that begins at word `first`. A node with a threshold has the empty
# set. A node with a set has a threshold that no value exceeds.
cdef struct SetStep:
    double threshold
    int32_t column
    int32_t beyond
    int64_t first

ctypedef fused AnyStep:
    Step
    SetStep

# The words of the sets, and the categories of a tile's rows for the features with sets.
cdef struct Levels:
    const uint64_t* word
    const int32_t* column
    Py_ssize_t n_columns
    uint8_t* level

cdef struct Trees:
    const void* step  # `Step`, or `SetStep` if there are sets
    const int32_t* root
    const int32_t* depth
    Py_ssize_t n
    Levels levels


cdef inline int read_sets(Levels* levels, sets, Py_ssize_t d) except -1:
    """Read the sets of trees; see `as_tree_ensemble`."""
    cdef const uint64_t[:, ::1] word
    cdef const int32_t[::1] column
    cdef uint8_t[::1] level
    cdef Py_ssize_t j
    word, column, level = sets
    levels.word, levels.column = &word[0, 0], &column[0]
    levels.n_columns, levels.level = column.shape[0], &level[0]
    if word.shape[1] != 4 or level.shape[0] < d * TILE:
        raise ValueError("read_sets: arrays of different sizes")
    for j in range(column.shape[0]):
        if not 0 <= column[j] < d:
            raise ValueError("read_sets: a column that is none")
    return 0


cdef inline Trees as_tree_ensemble(
    const uint8_t[::1] steps, const int32_t[::1] root, const int32_t[::1] depth, sets, Py_ssize_t d
) except *:
    """Return trees for rows with d features. Their arrays must stay alive while they are used.

    sets: None, or the words (n_sets + 1, 4) of sets, with the empty set first; the features of sets; and
    WORK (64 * features of a tile,), filled with zeros.
    """
    cdef Trees trees
    cdef Py_ssize_t size = sizeof(Step)
    memset(&trees, 0, sizeof(trees))
    trees.step, trees.root, trees.depth = &steps[0], &root[0], &depth[0]
    trees.n = root.shape[0] - 1
    if sets is not None:
        size = sizeof(SetStep)
        read_sets(&trees.levels, sets, d)
    if depth.shape[0] < trees.n or steps.shape[0] < size * root[trees.n]:
        raise ValueError("trees: arrays of different sizes")
    return trees


cdef inline void read_levels(const Levels* levels, const double* tile) noexcept nogil:
    """Read the categories of the rows of a tile, which may have missing values."""
    cdef Py_ssize_t i, r, at
    cdef const double* x
    cdef uint8_t* level
    for i in range(levels.n_columns):
        at = <Py_ssize_t>TILE * levels.column[i]
        x, level = tile + at, levels.level + at
        for r in range(TILE):
            level[r] = <uint8_t>level_of(x[r])


cdef inline int32_t walk_on(
    const AnyStep* tree, const double* tile, const Levels* levels, Py_ssize_t r, int32_t node
) noexcept nogil:
    """Return the next node of row r; `tile` begins with this row.

    There is no branch, because half of the branch predictions would be wrong.
    """
    cdef const AnyStep* step = tree + node
    cdef int32_t above = goes_right(tile[step.column], step.threshold)
    if AnyStep is SetStep:
        above |= in_set(levels.word + step.first, (levels.level + r)[step.column])
    return node + 1 + (-above & step.beyond)


cdef inline void walk_together(
    const AnyStep* tree, int32_t depth, const double* tile, const Levels* levels, Py_ssize_t first,
    int32_t* at
) noexcept nogil:
    """Find the leaves of several rows; `tile` begins with the first of them. OUT at."""
    cdef int32_t[TOGETHER] here
    cdef int32_t node, moved = depth > FEW_STEPS
    cdef int r, k
    for r in range(TOGETHER):
        here[r] = 0
    if depth <= FEW_STEPS:
        for k in range(depth):
            for r in range(TOGETHER):
                here[r] = walk_on(tree, tile + r, levels, first + r, here[r])
    while moved:
        moved = 0
        for k in range(STRIDE - 1):
            for r in range(TOGETHER):
                here[r] = walk_on(tree, tile + r, levels, first + r, here[r])
        for r in range(TOGETHER):
            node = here[r]
            here[r] = walk_on(tree, tile + r, levels, first + r, node)
            moved |= here[r] ^ node
    for r in range(TOGETHER):
        at[r] = here[r]


cdef inline void walk_sets(
    const Trees* trees, Py_ssize_t t, const double* tile, Py_ssize_t n, int32_t* at
) noexcept nogil:
    """Find leaves like `walk_tile`, for trees with sets. Call `read_levels` first."""
    cdef Py_ssize_t r = 0
    cdef const SetStep* step = <const SetStep*>trees.step + trees.root[t]
    while r < n:
        walk_together(step, trees.depth[t], tile + r, &trees.levels, r, at + r)
        r += TOGETHER


cdef inline void walk_tile(
    const Trees* trees, Py_ssize_t t, const double* tile, Py_ssize_t n, int32_t* at
) noexcept nogil:
    """Find the leaves of the n rows of a tile in tree t. OUT at (TILE,): node numbers in this tree."""
    cdef Py_ssize_t r = 0
    cdef const Step* step = <const Step*>trees.step + trees.root[t]
    if trees.levels.word != NULL:
        walk_sets(trees, t, tile, n, at)
        return
    while r < n:
        walk_together(step, trees.depth[t], tile + r, NULL, 0, at + r)
        r += TOGETHER


cdef inline void walk_trees_by(
    const AnyStep* step, const Trees* trees, Py_ssize_t first, const double* tile, int32_t* at
) noexcept nogil:
    """Find the leaves of the first row of a tile in several trees. OUT at."""
    cdef const AnyStep* tree[TOGETHER]
    cdef int32_t here[TOGETHER]
    cdef int32_t node, depth = 0, moved
    cdef Py_ssize_t t
    cdef int r, k
    for r in range(TOGETHER):
        t = min(first + r, trees.n - 1)
        tree[r], here[r] = step + trees.root[t], 0
        depth = max(depth, trees.depth[t])
    moved = depth > FEW_STEPS
    if not moved:
        for k in range(depth):
            for r in range(TOGETHER):
                here[r] = walk_on(tree[r], tile, &trees.levels, 0, here[r])
    while moved:
        moved = 0
        for r in range(TOGETHER):
            node = here[r]
            for k in range(STRIDE):
                here[r] = walk_on(tree[r], tile, &trees.levels, 0, here[r])
            moved |= here[r] ^ node
    for r in range(TOGETHER):
        at[r] = here[r]


cdef inline void walk_trees(
    const Trees* trees, Py_ssize_t first, const double* tile, int32_t* at
) noexcept nogil:
    """Find the leaves of the first row of a tile in trees first, first + 1, ... OUT at (TOGETHER,).

    For a single row this is faster than `walk_tile`, because the processor need not wait for the next node
    of each tree.
    """
    if trees.levels.word != NULL:
        walk_trees_by(<const SetStep*>trees.step, trees, first, tile, at)
    else:
        walk_trees_by(<const Step*>trees.step, trees, first, tile, at)


cdef inline void add_row(
    const Trees* trees, const double* tile, const double* value, Py_ssize_t width, Py_ssize_t stride,
    double* total
) noexcept nogil:
    """Add the leaf values of the only row of a tile, one tree after another; see `walk_sums` in tree_walk.pyx."""
    cdef int32_t[TOGETHER] at
    cdef const double* leaf
    cdef Py_ssize_t t, j, column = 0
    for t in range(trees.n):
        if t % TOGETHER == 0:
            walk_trees(trees, t, tile, at)
        leaf = value + (trees.root[t] + at[t % TOGETHER]) * width
        for j in range(width):
            total[column + j] += leaf[j]
        column += width
        if column == stride:
            column = 0


# Data for the traversal of tiles with missing values.
cdef struct Holes:
    bint known
    Trees trees
    SpreadKernel spread
    const int32_t* twice
    Py_ssize_t n_twice


cdef inline int read_holes(
    Holes* found, holes, const Trees* trees, Py_ssize_t d, Py_ssize_t room
) except -1:
    """Read the data for missing values, for rows with d features and a tile of size `room`."""
    cdef const uint8_t[::1] steps
    cdef const int32_t[::1] twice
    cdef Py_ssize_t i, size = sizeof(Step) if trees.levels.word == NULL else sizeof(SetStep)
    steps, twice = holes
    found.known, found.n_twice, found.spread = True, twice.shape[0], choose_spread(2)
    found.trees = trees[0]
    found.trees.step = &steps[0]
    found.twice = &twice[0] if found.n_twice else NULL
    for i in range(found.n_twice):
        if not 0 <= twice[i] < d or (i and twice[i] <= twice[i - 1]):
            raise ValueError("read_holes: expected columns, increasing")
    if room < (d + found.n_twice) * TILE or steps.shape[0] < size * trees.root[trees.n]:
        raise ValueError("read_holes: arrays of different sizes")
    return 0


cdef inline Holes holes_of(
    holes, const Trees* trees, Py_ssize_t d, Py_ssize_t room
) except *:
    """Return the data for missing values; see `read_holes`. If it is None, values must not be missing."""
    cdef Holes found
    memset(&found, 0, sizeof(found))
    if holes is not None:
        read_holes(&found, holes, trees, d, room)
    return found


cdef inline int load_values(
    const Rows* rows, Py_ssize_t start, Py_ssize_t n, double* tile, const Trees* trees,
    const Holes* holes
) noexcept nogil:
    """Load a tile. Return 1 if values are missing, -1 if the trees do not accept them, else 0."""
    cdef int found = load_tile(rows, start, n, tile)
    if found:
        if not holes.known or holes.spread(tile, rows.d, holes.twice, holes.n_twice, NULL):
            return -1
    if trees.levels.word != NULL:
        read_levels(&trees.levels, tile)
    return found
