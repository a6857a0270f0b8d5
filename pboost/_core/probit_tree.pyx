"""Probit model trees: which splits of a grown tree stay, the rows of its leaves, and its values.

Nodes of a grown tree are those of _grower.pxd; children stand in pairs after their parent. An
equation is an intercept and one slope per column; a leaf has K of them, one for two classes, else
one per class. `taken` (leaf, K) is ABSENT for a class without a row in the leaf: its value is its
intercept, but always less than those of the other classes, if there are others.
"""
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, fmax, fmin, isfinite, ldexp, nextafter

from pboost._core._address cimport address
from pboost._core._grower cimport Node
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core._steps cimport Holes, Trees, holes_of, load_values, trees_of, walk_tile
from pboost._core._tile cimport FillKernel, TILE, choose_fill, known_or
from pboost._core.types cimport int32_t, int64_t, row_of, uint8_t

cdef enum:
    ONE_CLASS = -1
    ABSENT = -2
# What keep_splits knows of a node: its risk, what a split of it may gain at most; risk and number of
# splits of what is left of it, and what its splits gain each.
cdef enum:
    RISK, CAP, REDUCED, SPLITS, GAIN, N_STATES
# Halves the exponents of products that would overflow.
cdef enum:
    FAR = 540

N_STATES_OF_NODE = N_STATES


# ---------------------------------------------------------------------------------------------
# Splits.

cdef bint settle(const Py_ssize_t* node, double* state, double least) noexcept nogil:
    """Sum up a node whose children are done; whether its split gains more than the least."""
    cdef double* of = state + N_STATES * node[0]
    cdef double* weaker = state + N_STATES * node[1]
    cdef double* other = weaker + N_STATES
    cdef double risk, splits, gain, less_risk = weaker[REDUCED], less_splits = weaker[SPLITS]
    if not other[GAIN] > weaker[GAIN]:
        weaker, other = other, weaker
        less_risk, less_splits = weaker[REDUCED], weaker[SPLITS]
    risk, splits = less_risk + other[REDUCED], less_splits + other[SPLITS] + 1.0
    gain = (of[RISK] - risk) / splits
    if gain > weaker[GAIN]:
        less_risk, less_splits = weaker[RISK], 0.0
        risk, splits = less_risk + other[REDUCED], other[SPLITS] + 1.0
        gain = (of[RISK] - risk) / splits
        if gain > other[GAIN]:
            risk, splits = less_risk + other[RISK], 1.0
            gain = of[RISK] - risk
    of[REDUCED], of[SPLITS], of[GAIN] = risk, splits, gain
    return gain > least


cdef void prune_nodes(
    Node* nodes, double* state, int64_t* stack, double least
) noexcept nogil:
    """Walk through the nodes, each of which stands three times on the stack at most."""
    cdef Py_ssize_t top = 1
    cdef Py_ssize_t[2] pair
    cdef Py_ssize_t e, phase, child
    cdef double* of
    cdef double* left
    cdef double cap
    stack[0] = 0
    while top:
        top -= 1
        e, phase = stack[top] // 3, stack[top] % 3
        of, child = state + N_STATES * e, nodes[e].child
        left = state + N_STATES * child
        cap = fmin(of[RISK], of[CAP])
        if phase == 0:
            if child < 0 or not cap > least:
                phase = 3
            else:
                left[CAP] = cap - least
        elif phase == 1:
            cap = fmin(cap, fmax((of[RISK] - left[REDUCED]) / (left[SPLITS] + 1.0),
                                 of[RISK] - left[RISK]))
            left[N_STATES + CAP] = cap - least
        else:
            pair[0], pair[1] = e, child
            if settle(pair, state, least):
                continue
            phase = 3
        if phase == 3:
            nodes[e].child = -1
            of[REDUCED], of[SPLITS], of[GAIN] = of[RISK], 0.0, least
        else:
            stack[top], stack[top + 1] = 3 * e + phase + 1, 3 * (child + phase)
            top += 2


def keep_splits(
    array, const int64_t[:, ::1] mass, double complexity, double[:, ::1] state,
    int64_t[::1] stack,
):
    """Undo the splits that lower the misclassification by less than a share of that at the root.

    IN mass (n, J): class masses; INOUT array (n,) of `Node`: `child` is -1 where a split is undone;
    WORK state (n, N_STATES_OF_NODE), stack (n + 1,).
    """
    cdef Node* nodes = <Node*>address(array)
    cdef Py_ssize_t e, j, n_nodes = len(array)
    cdef int64_t total, most
    if state.shape[0] < n_nodes or state.shape[1] != N_STATES or stack.shape[0] < n_nodes + 1:
        raise ValueError("keep_splits: arrays of different sizes")
    with nogil:
        for e in range(n_nodes):
            total = most = 0
            for j in range(mass.shape[1]):
                total += mass[e, j]
                most = max(most, mass[e, j])
            state[e, RISK] = ldexp(<double>(total - most), -nodes[e].shift)
        state[0, CAP] = INFINITY
        prune_nodes(nodes, &state[0, 0], &stack[0], complexity * state[0, RISK])


def list_rows(
    array, const int32_t[:, ::1] order, const int32_t[::1] rows, bint exact,
    const int32_t[::1] ascending, int32_t[::1] leaf_of, int32_t[::1] listed, int32_t[::1] starts,
):
    """List the rows of a tree leaf after leaf.

    IN array (n_nodes,) of `Node`, in preorder; order (d, n): rows, packed, numbered as places in
    `rows` (n,), or empty if not `exact`, when `rows` themselves are partitioned; ascending (n,): the
    same rows, increasing. WORK leaf_of (rows of X,). OUT listed (n,): the rows, increasing in each
    leaf; starts (leaves + 1,): where those of each leaf begin. Returns the number of leaves.
    """
    cdef const Node* nodes = <const Node*>address(array)
    cdef Py_ssize_t i, j, n_nodes = len(array), n = ascending.shape[0], leaves = 0, at = 0
    cdef int32_t row
    cdef const int32_t* segment
    if listed.shape[0] < n or rows.shape[0] < n or starts.shape[0] <= n_nodes:
        raise ValueError("list_rows: arrays of different sizes")
    with nogil:
        for i in range(n_nodes):
            if nodes[i].child >= 0:
                continue
            segment = &order[nodes[i].listed, 0] if exact else &rows[0]
            for j in range(nodes[i].start, nodes[i].stop):
                row = rows[row_of(segment[j])] if exact else segment[j]
                leaf_of[row] = <int32_t>leaves
            starts[leaves] = <int32_t>at
            at += nodes[i].stop - nodes[i].start
            leaves += 1
        for i in range(n):
            row = ascending[i]
            listed[starts[leaf_of[row]]] = row
            starts[leaf_of[row]] += 1
        # Each start has become the next one.
        for i in range(leaves, 0, -1):
            starts[i] = starts[i - 1]
        starts[0] = 0
    return leaves


# ---------------------------------------------------------------------------------------------
# Values.

def set_constants(
    double[:, :, ::1] equation, const int32_t[:, ::1] taken, const int32_t[::1] starts, score
):
    """Set the values of classes of which a leaf of n rows has all, or none, to +-score(n)."""
    cdef Py_ssize_t l, j
    cdef double size
    if equation.shape[0] != taken.shape[0] or starts.shape[0] != taken.shape[0] + 1:
        raise ValueError("set_constants: arrays of different sizes")
    for l in range(taken.shape[0]):
        for j in range(taken.shape[1]):
            if taken[l, j] < 0:
                size = score(starts[l + 1] - starts[l])
                equation[l, j, 0] = size if taken[l, j] == ONE_CLASS else -size


cdef double far_value(
    const double* x, Py_ssize_t stride, Py_ssize_t d, const double* equation
) noexcept nogil:
    """The value of an equation whose terms overflow, within the range of float64."""
    cdef double total = ldexp(equation[0], -2 * FAR)
    cdef Py_ssize_t j
    for j in range(d):
        total += ldexp(equation[1 + j], -FAR) * ldexp(x[j * stride], -FAR)
    return fmax(-DBL_MAX, fmin(DBL_MAX, ldexp(total, 2 * FAR)))


cdef inline void values_at(
    const double* x, Py_ssize_t stride, Py_ssize_t d, const double* equation, const int32_t* taken,
    Py_ssize_t k, double* out
) noexcept nogil:
    """The k values at one row, whose columns are `stride` apart."""
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


# Where rows are evaluated, `mean` (d,) are what missing values count as; NULL: none is missing.

cdef inline void read_row(
    const Rows* X, Py_ssize_t i, const double* mean, FillKernel fill, double* out
) noexcept nogil:
    """Row i without missing values."""
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
    """The values of one equation at four rows, whose sums do not wait for each other.

    Returns whether all are finite.
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
    """Values at the rows of X listed at start..stop-1, leaf after leaf.

    IN listed (n,), starts (leaves + 1,) as `list_rows` makes them, means (leaves, d), which stand for
    missing values, if there are any; WORK work (d,); OUT out (n, K).
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
    """Values of the equations at rows start..stop-1 of X in each of a list of trees.

    The trees are those of tree_walk.pyx; IN leaf (n_nodes,): the place of each leaf in `equation`
    (leaves of all trees, K, 1 + d), `taken` and `means` (leaves, d), or (1, d) of all, which stand for
    missing values, with `holes`. Where equations are of other columns than those of X, `added` are these,
    as a matrix (n, d). WORK tile (64 * columns,); row (d,), with `holes` or `added`. OUT out
    (stop - start, n_trees, K), from row `start` on. Returns as `walk_leaves`.
    """
    cdef Rows rows = rows_of(X)
    cdef Rows wide = rows if added is None else rows_of(added)
    cdef Trees trees = trees_of(steps, root, depth, sets, rows.d)
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
