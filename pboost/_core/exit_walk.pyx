"""Walks that rows leave at the joints of a model, as soon as their values are sure enough.

When they leave: `pboost.models.exits`. high, low (T, V), and checked (T,), whether any row can leave
there. Outputs are score (n, V), the values with which rows leave, joint (n,) int32, after how many
joints, T at the end, and cost (n,) float64, the comparisons by then.

Sums of trees: rows go in tiles of 64, in lanes that those leave. Graphs: row by row, and high, low
(n_nodes, V) and checked (n_nodes,) are those of the nodes.
"""
from libc.string cimport memcpy, memset

from pboost._core._graph cimport (
    Graph, Sides, compared, has_infinity, is_bad, side_of, takes_missing
)
from pboost._core._lanes cimport (
    Exits, Lanes, all_enter, exits_of, is_settled, leads_of, least_lead, mark_leaving,
    move_up, stay
)
from pboost._core._project cimport Projections, projections_of
from pboost._core._rows cimport Rows, rows_of
from pboost._core._separate cimport Separators, separators_of
from pboost._core._side cimport goes_right
from pboost._core._steps cimport (
    Holes, Trees, holes_of, load_values, read_levels, trees_of, walk_tile
)
from pboost._core._tile cimport TILE
from pboost._core.types cimport int32_t, uint8_t, uint64_t

cdef enum:
    TOGETHER = 8  # rows that walk through a graph side by side

# Trees that are added up in rounds, each the sums (K, TILE) of the lanes, and what becomes of these.
cdef struct Sums:
    const double* value
    const double* bias
    const int32_t* depth   # of nodes; NULL where comparisons are not counted
    Py_ssize_t width       # values of a node
    Py_ssize_t n_sums      # K
    Py_ssize_t each        # trees of a round
    bint is_mean


cdef void values_of(
    const Sums* sums, const double* total, Py_ssize_t t, Py_ssize_t n, double* value
) noexcept nogil:
    """The values (V, TILE) of lanes after t joints, from the sums of their trees."""
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
    """Add the values of the leaves that lanes reach in the trees of a round."""
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
    """Which lanes leave after t joints; returns their number. OUT value, of these at least, and leaves."""
    cdef Py_ssize_t j, r, n = 0
    cdef double least, number = <double>t
    cdef double[TILE] lead
    cdef bint is_lazy = sums.is_mean and exits.n_values > 1  # divisions take longest
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
    """Write what rows have that leave after t joints."""
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
    """Send the n rows of a tile through the trees until they leave; WORK (2 * K * TILE)."""
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
    """Send rows start..stop-1 of X through trees until they leave.

    Trees as in `pboost._core.tree_walk`; value (n_nodes, k), node_depth (n_nodes,) or None, so that cost
    is 0, and bias (K,) with k or 1 of the K sums for each tree of a round. `is_mean`: values are the means over the trees, of two
    by how much the second is larger; else bias and sums. WORK tile (64 * columns,), work (128 * K,).
    Returns as `walk_leaves`.
    """
    cdef Rows rows = rows_of(X)
    cdef Trees trees = trees_of(steps, root, depth, sets, rows.d)
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


# A row on its way through a graph.
cdef struct Walker:
    const char* row
    double* out
    Py_ssize_t number, node, steps


cdef inline bint leaves_here(
    const Exits* exits, Py_ssize_t n_votes, const Walker* one
) noexcept nogil:
    """Whether a row leaves at the node where it is."""
    if not exits.checked[one.node]:
        return False
    if n_votes > 1:
        return is_settled(exits, one.node, one.out, 1)
    return one.out[0] >= exits.high[one.node] or one.out[0] <= exits.low[one.node]


cdef inline void go_on(
    const Graph* graph, const Sides* sides, const Rows* X, Walker* one
) noexcept nogil:
    """Let a row take an exit of the node where it is."""
    cdef Py_ssize_t j, taken, node = one.node
    cdef const double* vote
    if sides != NULL:
        taken = side_of(graph, sides, X, one.row, node)
    else:
        taken = goes_right(compared(graph, X, one.row, node), graph.threshold[node])
    taken += 2 * node
    if graph.n_votes == 1:
        one.out[0] += graph.vote[taken]
    else:
        vote = graph.vote + taken * graph.n_votes
        for j in range(graph.n_votes):
            one.out[j] += vote[j]
    one.node = graph.next[taken]
    one.steps += 1


cdef inline bint enter(
    const Graph* graph, const Rows* X, Py_ssize_t i, bint takes, double* score, Walker* one
) noexcept nogil:
    """Let row i enter; False if it cannot, since a value is infinite, or missing and not taken."""
    one.row, one.number, one.node, one.steps = X.data + i * X.row_stride, i, 0, 0
    one.out = score + i * graph.n_votes
    if has_infinity(X, one.row) if takes else is_bad(X, one.row):
        return False
    memcpy(one.out, graph.biases, <size_t>graph.n_votes * sizeof(double))
    return True


cdef Py_ssize_t leave_rows(
    const Graph* graph, const Sides* sides, const Exits* exits, const int32_t* passed,
    Py_ssize_t n_joints, const Rows* X, Py_ssize_t start, Py_ssize_t stop, double* score,
    int32_t* joint, double* cost
) noexcept nogil:
    """Send rows until they leave, several side by side, which hides the time that each waits for its
    next node; one more than the first that cannot be sent, else 0."""
    cdef Walker[TOGETHER] every
    cdef Walker* one
    cdef Py_ssize_t i = start, n = 0, r, bad = 0
    cdef bint takes = sides != NULL or takes_missing(graph)
    while True:
        while n < TOGETHER and i < stop:
            if not enter(graph, X, i, takes, score, &every[n]):
                bad, stop = i + 1, i
                break
            n += 1
            i += 1
        if not n:
            return bad
        r = 0
        while r < n:
            one = &every[r]
            if one.node >= 0 and not leaves_here(exits, graph.n_votes, one):
                go_on(graph, sides, X, one)
                r += 1
                continue
            joint[one.number] = passed[one.node] if one.node >= 0 else <int32_t>n_joints
            cost[one.number] = <double>one.steps
            n -= 1
            every[r] = every[n]


def leave_graph(
    X, const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const double[:, ::1] vote, const double[::1] bias, high, low, checked, const int32_t[::1] passed,
    Py_ssize_t n_joints, Py_ssize_t start, Py_ssize_t stop, double[:, ::1] score,
    int32_t[::1] joint, double[::1] cost, const double[::1] missing=None, sets=None, projections=None,
    separators=None,
):
    """Send rows start..stop-1 of X through a graph until they leave.

    Graphs as in `pboost._core.walk`, with vote (n_nodes, 2 * V) and bias (V,). passed (n_nodes,): the
    joints before each node. Returns as `walk`.
    """
    cdef Rows rows = rows_of(X)
    cdef Graph graph
    cdef Sides sides
    cdef Exits exits = exits_of(high, low, checked)
    cdef Projections p
    cdef Separators s
    cdef const int32_t[::1] column
    cdef const uint64_t[:, ::1] member
    cdef Py_ssize_t bad, n_nodes = feature.shape[0], n_votes = bias.shape[0]
    memset(&graph, 0, sizeof(graph))
    memset(&sides, 0, sizeof(sides))
    if (exits.n_joints != n_nodes or exits.n_values != n_votes or vote.shape[1] != 2 * n_votes
            or threshold.shape[0] != n_nodes or next_.shape[0] != n_nodes or vote.shape[0] != n_nodes
            or passed.shape[0] != n_nodes or not 0 <= start <= stop <= rows.n
            or score.shape[0] < stop or score.shape[1] != n_votes or joint.shape[0] < stop
            or cost.shape[0] < stop or (missing is not None and missing.shape[0] != n_nodes)):
        raise ValueError("leave_graph: arrays of different sizes")
    if stop <= start:
        return 0
    graph.n_nodes, graph.n_votes, graph.biases = n_nodes, n_votes, &bias[0]
    graph.feature, graph.threshold = &feature[0], &threshold[0]
    graph.next, graph.vote = &next_[0, 0], &vote[0, 0]
    if separators is not None:
        step_of, first_column, first_edge, edge, value, of_missing = separators
        s = separators_of(step_of, first_column, first_edge, edge, value, of_missing)
        graph.separators = &s
    if projections is not None:
        first_term, index, coefficient, fill = projections
        p = projections_of(first_term, index, coefficient, fill, rows.d)
        graph.projections = &p
    if missing is not None:
        sides.missing, sides.n_columns = &missing[0], rows.d
    if sets is not None:
        column, member = sets
        sides.column = &column[0] if column.shape[0] else NULL
        sides.member = &member[0, 0] if column.shape[0] else NULL
    with nogil:
        bad = leave_rows(
            &graph, NULL if missing is None else &sides, &exits, &passed[0], n_joints, &rows, start,
            stop, &score[0, 0], &joint[0], &cost[0],
        )
    return bad
