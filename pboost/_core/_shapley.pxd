# Trees as programs of operations, see shapley_ops.h. Kernels of Shapley values share them.
from libc.string cimport memset

from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef extern from "shapley_ops.h":
    enum:
        LEAF "PBOOST_LEAF"
        OPEN "PBOOST_OPEN"
        TURN "PBOOST_TURN"
        CLOSE "PBOOST_CLOSE"
        PAIR "PBOOST_PAIR"
        AGAIN "PBOOST_AGAIN"
        FEW_LANES "PBOOST_FEW_LANES"
        LANES "PBOOST_LANES"
    ctypedef struct Op "pboost_shapley_op":
        double threshold
        int64_t split
        int64_t value
        int32_t kind
        int32_t level
        int32_t feature
        int32_t set
        int32_t above
        int32_t is_second
        int32_t missing
        int32_t bit
        int32_t n_unique


cdef struct Frame:
    int32_t node
    int32_t feature
    int32_t above  # level of the last split above with the same feature, or -1
    int32_t n_unique  # number of different features above
    int32_t phase
    int64_t split  # position of the constants of the split
    int32_t bit  # of the feature in patterns
    double reach  # share of the weight that meets the conditions on the feature, down to the current child


cdef struct Trees:
    const int32_t* feature
    const int32_t* children
    Frame* frame


cdef inline bint is_leaf(const Trees* tree, int32_t node) noexcept nogil:
    return tree.feature[node] < 0


cdef inline bint has_leaves(const Trees* tree, int32_t node) noexcept nogil:
    return is_leaf(tree, tree.children[2 * node]) and is_leaf(tree, tree.children[2 * node + 1])


cdef inline int next_op(const Trees* tree, int* level, Frame** at) noexcept nogil:
    """Return the kind of the next operation and set its frame, or return -1 at the end of the tree."""
    cdef Frame* f
    cdef int k
    if level[0] < 0:
        return -1
    f = tree.frame + level[0]
    at[0] = f
    if f.phase == 0:
        f.feature = tree.feature[f.node]
        if is_leaf(tree, f.node):
            level[0] -= 1
            return LEAF
        f.above, f.bit = -1, f.n_unique
        for k in range(level[0] - 1, -1, -1):
            if tree.frame[k].feature == f.feature:
                f.above, f.bit = k, tree.frame[k].bit
                break
        if has_leaves(tree, f.node):
            level[0] -= 1
            return PAIR
    if f.phase == 2:
        level[0] -= 1
        return CLOSE
    level[0] += 1
    f[1].node = tree.children[2 * f.node + f.phase]
    f[1].n_unique = f.n_unique + (f.above < 0)
    f[1].phase = 0
    f.phase += 1
    return OPEN if f.phase == 1 else TURN


cdef inline void start(const Trees* tree, int* level) noexcept nogil:
    level[0] = 0
    memset(tree.frame, 0, sizeof(Frame))


cdef inline Trees trees_at(
    const int32_t[::1] root, const int32_t[::1] feature, const int32_t[:, ::1] children, uint8_t[::1] frames,
    Py_ssize_t t
):
    cdef Trees tree
    tree.feature, tree.children = &feature[root[t]], &children[root[t], 0]
    tree.frame = <Frame*>&frames[0]
    return tree


cdef inline void set_op(
    Op* op, const Frame* frame, const Frame* f, int kind, int level, const double* threshold,
    const uint8_t* missing, const int32_t* category_set
) noexcept nogil:
    """Set an operation of a node, except its places in arrays; the arrays are those of the tree."""
    cdef bint is_again = kind != LEAF and f.above >= 0
    op.kind, op.level = kind + AGAIN if is_again else kind, level
    op.feature = 0 if kind == LEAF else f.feature
    op.bit = 0 if kind == LEAF else f.bit
    op.above = 2 * f.above + (frame[f.above].phase == 2) if is_again else 0
    op.n_unique = f.n_unique + (kind != LEAF and f.above < 0)
    op.is_second = level > 0 and frame[level - 1].phase == 2
    op.threshold, op.set, op.missing = threshold[f.node], category_set[f.node], missing[f.node]
    op.split = op.value = 0


cdef inline void load_tile(
    const double* X, Py_ssize_t d, const int32_t* used, Py_ssize_t n_used, Py_ssize_t n, Py_ssize_t stride,
    double* tile
) noexcept nogil:
    """Copy the used features of n rows (n, d) to a tile (n_used, stride), with zeros after the last row."""
    cdef Py_ssize_t r, j
    for r in range(n):
        for j in range(n_used):
            tile[j * stride + r] = X[r * d + used[j]]
    for j in range(n_used):
        for r in range(n, stride):
            tile[j * stride + r] = 0.0
