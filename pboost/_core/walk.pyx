"""Evaluation of decision graphs: each row takes the exit on its side of the threshold, see side.h.

Rows are copied to tiles of 64 rows, transposed, and converted to float64. So float32 and float64 rows with
equal values take the same exits, for any strides of X.

Arrays: feature (n_nodes,), threshold (n_nodes,), next (n_nodes, 2), vote (n_nodes, 2) as in
`DecisionGraph`. The score of a row is the bias plus the votes of the exits on its path from node 0. If
nodes compare projections of a row, a chain computes all projections of a tile together. Other graphs
compute a projection when a node needs it. Separators are always computed when a node needs them.

`walk` stops at a value that is not finite. `walk_sides` accepts NaN as a missing value, which takes the
exit defined by the node. It also supports nodes with a set of categories. For a chain, it adds derived
features to each tile. A node that sends missing values to exit 1 reads a copy of its feature in which
missing values are infinite. In the feature itself, missing values become the least number. For each pair of
a set and an exit of missing values, there is a feature of zeros and ones.

Exits may have J votes each. Then vote is (n_nodes, 2 * J), score is (n * J,), row by row, and `several`
contains the bias (J,) and, for chains, the votes as (J, n_nodes, 2). Each row is evaluated once, and its J
sums are bit-identical to the scores of J graphs with one vote per exit.
"""
from libc.string cimport memcpy

from pboost._core._graph cimport (
    Graph, Lent, Sides, add_votes, has_infinity, is_bad, read_graph, taken_by, takes_missing,
)
from pboost._core._active_rows cimport Exits, exits_of, is_settled
from pboost._core._project cimport project_block
from pboost._core._rows cimport Rows, rows_of
from pboost._core._side cimport goes_right
from pboost._core._tile cimport (
    TILE, SpreadKernel, choose_spread, load_tile, look_up_levels, tile_has_infinity,
)
from pboost._core.types cimport int32_t, uint8_t

cdef extern from "walk_simd.h":
    ctypedef void (*ChainKernel "pboost_chain_kernel")(
        const double*, const int32_t*, const double*, const double*, Py_ssize_t, double*
    ) noexcept nogil
    ChainKernel choose_chain "pboost_choose_chain"(int level) noexcept nogil

cdef enum:
    MANY_ROWS = 9  # with fewer rows, no tile is used
    OUT = -1  # `next` of an exit that ends evaluation

cdef ChainKernel chain_kernel = choose_chain(2)
cdef SpreadKernel spread_kernel = choose_spread(2)

TILE_ROWS = TILE
MANY = MANY_ROWS


def use_simd_level(int level):
    """Choose the compiled variant for chains: 0 for baseline, 1 for AVX2, or 2 for AVX-512 if supported."""
    global chain_kernel, spread_kernel
    chain_kernel, spread_kernel = choose_chain(level), choose_spread(level)


def is_chain(const int32_t[:, ::1] next_):
    """Return whether both exits of every node lead to the next node."""
    cdef Py_ssize_t node, n = next_.shape[0]
    cdef int32_t after
    for node in range(n):
        after = <int32_t>node + 1 if node + 1 < n else OUT
        if next_[node, 0] != after or next_[node, 1] != after:
            return False
    return True


def unreached(const int32_t[:, ::1] next_):
    """Return the first node other than the root to which no exit leads, or n_nodes if there is none.

    Return -1 if the next node of an exit is neither a later node nor the end of the graph.
    """
    cdef Py_ssize_t node, side, n = next_.shape[0]
    cdef uint8_t[::1] is_reached = bytearray(n)
    cdef int32_t ahead
    for node in range(n):
        for side in range(2):
            ahead = next_[node, side]
            if ahead == OUT:
                continue
            if ahead <= node or ahead >= n:
                return -1
            is_reached[ahead] = True
    for node in range(1, n):
        if not is_reached[node]:
            return node
    return n


cdef inline Py_ssize_t walk_row(
    const Graph* graph, const Sides* sides, const Rows* X, const char* row, double* out
) noexcept nogil:
    """Compute the scores of a row and return the number of nodes on its path.

    `sides` is described in `taken_by`.
    """
    cdef double score = graph.bias
    cdef Py_ssize_t node = 0 if graph.n_nodes else -1, taken, steps = 0
    cdef bint is_single = graph.biases == NULL
    if not is_single:
        memcpy(out, graph.biases, graph.n_votes * sizeof(double))
    while node >= 0:
        taken = 2 * node + taken_by(graph, sides, X, row, node)
        if is_single:
            score += graph.vote[taken]
        else:
            add_votes(graph, taken, out)
        node = graph.next[taken]
        steps += 1
    if is_single:
        out[0] = score
    return steps


cdef void walk_chain(
    const Graph* graph, double* tile, Py_ssize_t d, Py_ssize_t rows, double* score
) noexcept nogil:
    cdef double[TILE] scores
    cdef Py_ssize_t r, j
    cdef double* inputs = tile
    if graph.projections != NULL:
        inputs = tile + d * TILE
        project_block(graph.projections, tile, TILE, inputs)
    if graph.by_vote != NULL:
        for j in range(graph.n_votes):
            for r in range(TILE):
                scores[r] = graph.biases[j]
            chain_kernel(
                inputs, graph.feature, graph.threshold, graph.by_vote + 2 * j * graph.n_nodes,
                graph.n_nodes, scores,
            )
            for r in range(rows):
                score[r * graph.n_votes + j] = scores[r]
        return
    for r in range(TILE):
        scores[r] = graph.bias
    chain_kernel(inputs, graph.feature, graph.threshold, graph.vote, graph.n_nodes, scores)
    for r in range(rows):
        score[r] = scores[r]


cdef Py_ssize_t read_votes(
    Graph* graph, several, const double[:, ::1] vote, Py_ssize_t n, Py_ssize_t n_scores
) except -1:
    """Read the votes of a graph with several votes per exit. The arrays must stay alive while it is used.
    """
    cdef const double[::1] bias
    cdef const double[:, :, ::1] by_vote
    graph.n_votes, graph.biases, graph.by_vote = 1, NULL, NULL
    if several is not None:
        bias, by_vote = several
        graph.n_votes, graph.biases = bias.shape[0], &bias[0]
        if by_vote is not None and graph.n_nodes:
            graph.by_vote = &by_vote[0, 0, 0]
            if by_vote.shape[0] != graph.n_votes or by_vote.shape[1] != graph.n_nodes:
                raise ValueError("read_votes: arrays of different sizes")
    if vote.shape[1] != 2 * graph.n_votes or n_scores != n * graph.n_votes:
        raise ValueError("read_votes: arrays of different sizes")
    return 0


cdef Py_ssize_t walk_rows(
    const Graph* graph, const Rows* X, Py_ssize_t start, Py_ssize_t stop, double* tile,
    double* score, double* count,
) noexcept nogil:
    cdef Py_ssize_t i = start, rows, r, steps
    cdef const char* row
    cdef bint bad
    cdef Rows transposed
    transposed.data = <const char*>tile
    transposed.n, transposed.d, transposed.is_float = TILE, X.d, False
    transposed.row_stride, transposed.column_stride = sizeof(double), TILE * sizeof(double)
    if stop - start < MANY_ROWS and count == NULL:
        for i in range(start, stop):
            row = X.data + i * X.row_stride
            if is_bad(X, row) and (not takes_missing(graph) or has_infinity(X, row)):
                return i + 1
            walk_row(graph, NULL, X, row, score + i * graph.n_votes)
        return 0
    while i < stop:
        rows = min(TILE, stop - i)
        if load_tile(X, i, rows, tile):
            if not takes_missing(graph):
                return i + 1
            if graph.projections != NULL:
                bad = spread_kernel(tile, X.d, NULL, 0, graph.projections.fill)
            else:
                bad = tile_has_infinity(tile, X.d)
            if bad:
                return i + 1
        if graph.is_chain and graph.separators == NULL and count == NULL:
            walk_chain(graph, tile, X.d, rows, score + i * graph.n_votes)
        else:
            for r in range(rows):
                row = transposed.data + r * transposed.row_stride
                steps = walk_row(graph, NULL, &transposed, row, score + (i + r) * graph.n_votes)
                if count != NULL:
                    count[i + r] = <double>steps
        i += rows
    return 0


def walk(
    X, const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const double[:, ::1] vote, bint is_chain, double bias, Py_ssize_t n_features,
    Py_ssize_t start, Py_ssize_t stop, double[::1] score, double[::1] tile=None,
    double[::1] count=None, projections=None, separators=None, several=None,
):
    """Evaluate the rows start..stop-1 of X (n, n_features), float64 or float32, with any strides.

    OUT score (n,), count (n,) or None: the number of nodes on each path; WORK tile (n_features * 64,), not
    needed for fewer than `MANY` rows without count. If nodes compare projections: their arrays (start,
    index, coefficient, fill); a chain also needs 64 more tile entries per projection. If nodes compare
    separators: their arrays (start, column, first, edge, value, missing). Returns 0 on success. At an
    infinite value, or at a missing value that the graph does not support, returns one more than the number
    of finished rows.
    """
    cdef Rows rows = rows_of(X)
    cdef Lent lent
    cdef Py_ssize_t n = rows.n, width, bad
    cdef double* work = NULL if tile is None or stop <= start else &tile[0]
    cdef double* counts = NULL if count is None or stop <= start else &count[0]
    read_graph(&lent, rows.d, feature, threshold, next_, vote, None, None, projections, separators)
    read_votes(&lent.graph, several, vote, n, score.shape[0])
    width = rows.d + lent.projections.n
    if (rows.d != n_features or not 0 <= start <= stop <= n
            or (several is not None and count is not None)
            or (count is not None and count.shape[0] != n)
            or (tile is None and (count is not None or stop - start >= MANY_ROWS))
            or (tile is not None and tile.shape[0] < width * TILE)):
        raise ValueError("walk: arrays of different sizes")
    lent.graph.is_chain, lent.graph.bias = is_chain, bias
    if stop <= start:
        return 0
    with nogil:
        bad = walk_rows(&lent.graph, &rows, start, stop, work, &score[0], counts)
    return bad


cdef Py_ssize_t walk_rows_sides(
    const Graph* graph, const Graph* made, const Sides* sides, const Rows* X, Py_ssize_t start,
    Py_ssize_t stop, double* tile, double* score, double* count,
) noexcept nogil:
    """Evaluate rows like `walk_rows`, with missing values.

    The nodes of `made` read the derived features of a chain.
    """
    cdef Py_ssize_t i = start, rows, steps
    cdef const char* row
    while i < stop:
        if tile == NULL:
            row = X.data + i * X.row_stride
            if has_infinity(X, row):
                return i + 1
            steps = walk_row(graph, sides, X, row, score + i * graph.n_votes)
            if count != NULL:
                count[i] = <double>steps
            i += 1
            continue
        rows = min(TILE, stop - i)
        if not load_tile(X, i, rows, tile) and not sides.n_coded:
            walk_chain(graph, tile, X.d, rows, score + i * graph.n_votes)
            i += rows
            continue
        look_up_levels(tile, X.d + sides.n_above, sides.coded, sides.n_coded, sides.table)
        if spread_kernel(tile, X.d, sides.above, sides.n_above, NULL):
            return i + 1
        walk_chain(made, tile, X.d, rows, score + i * graph.n_votes)
        i += rows
    return 0


def walk_sides(
    X, const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const double[:, ::1] vote, double bias, const double[::1] missing, Py_ssize_t start,
    Py_ssize_t stop, double[::1] score, double[::1] count=None, sets=None, made=None,
    double[::1] tile=None, several=None,
):
    """Evaluate the rows start..stop-1 of X (n, n_features), which may have missing values.

    IN missing (n_nodes,); `sets` (column, member) of the nodes. OUT score (n,), count (n,) or None. Chains
    are evaluated in tiles if there is no count. This needs WORK tile, 64 entries per feature, and `made`:
    the features that are copied with infinity for missing values (m,), the categorical features (k,), their
    tables (k, 256) of 0 and 1, with entry 255 for missing values, and the feature (n_nodes,) that each node
    reads. The m + k derived features come after the features of X. Returns 0 on success. At an infinite
    value, returns one more than the number of finished rows.
    """
    cdef Rows rows = rows_of(X)
    cdef Lent lent
    cdef Graph by_tile
    cdef Sides* sides = &lent.sides
    cdef Py_ssize_t n = rows.n, n_nodes = feature.shape[0]
    cdef const int32_t[::1] above, coded, reads
    cdef const uint8_t[:, ::1] table
    cdef double* work = NULL
    cdef double* counts = NULL if count is None or stop <= start else &count[0]
    cdef Py_ssize_t bad
    read_graph(&lent, rows.d, feature, threshold, next_, vote, missing, sets, None, None)
    read_votes(&lent.graph, several, vote, n, score.shape[0])
    if (not 0 <= start <= stop <= n
            or (several is not None and count is not None) or (count is not None and count.shape[0] != n)):
        raise ValueError("walk_sides: arrays of different sizes")
    if stop <= start:
        return 0
    lent.graph.bias = bias
    by_tile = lent.graph
    if made is not None:
        above, coded, table, reads = made
        sides.n_above, sides.n_coded = above.shape[0], coded.shape[0]
        if (tile.shape[0] < (rows.d + sides.n_above + sides.n_coded) * TILE
                or table.shape[0] != sides.n_coded or table.shape[1] != 256
                or reads.shape[0] != n_nodes or count is not None):
            raise ValueError("walk_sides: arrays of different sizes")
        sides.above = &above[0] if sides.n_above else NULL
        sides.coded = &coded[0] if sides.n_coded else NULL
        sides.table = &table[0, 0] if sides.n_coded else NULL
        work = &tile[0]
        if n_nodes:
            by_tile.feature = &reads[0]
    with nogil:
        bad = walk_rows_sides(&lent.graph, &by_tile, sides, &rows, start, stop, work, &score[0], counts)
    return bad


def count_features(
    X, const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const int32_t[::1] start, const int32_t[::1] index, int32_t[::1] last_row, double[::1] count,
    const double[::1] missing=None,
):
    """Count the distinct features that each row reads.

    X (n, k), float64, contains the values that nodes compare. Value f of a row depends on the features
    index[start[f]..start[f + 1]-1]. IN missing (n_nodes,), if values may be NaN: the probability of exit 1.
    WORK last_row (d,), filled with -1: the last row that read each feature; OUT count (n,).
    """
    cdef const double[:, :] rows = X
    cdef Py_ssize_t i, node, t, taken, n_nodes = feature.shape[0]
    cdef bint has_sides = missing is not None
    cdef int32_t f
    with nogil:
        for i in range(rows.shape[0]):
            count[i] = 0.0
            node = 0 if n_nodes else -1
            while node >= 0:
                f = feature[node]
                for t in range(start[f], start[f + 1]):
                    count[i] += last_row[index[t]] != i
                    last_row[index[t]] = <int32_t>i
                taken = goes_right(rows[i, f], threshold[node])
                if has_sides and rows[i, f] != rows[i, f]:
                    taken = missing[node] > 0.5
                node = next_[node, taken]


# Graphs with early exits: evaluation of a row stops once its decision values pass thresholds, like for
# trees in tree_walk.pyx. The arrays `high` and `low` (n_nodes, V) and `checked` (n_nodes,) have one entry
# per node.

cdef enum:
    TOGETHER = 8  # number of rows that are evaluated together

# A row that is being evaluated.
cdef struct Walker:
    const char* row
    double* out
    Py_ssize_t number, node, steps


cdef inline bint leaves_here(
    const Exits* exits, Py_ssize_t n_votes, const Walker* one
) noexcept nogil:
    """Return whether evaluation of a row stops at its current node."""
    if not exits.checked[one.node]:
        return False
    if n_votes > 1:
        return is_settled(exits, one.node, one.out, 1)
    return one.out[0] >= exits.high[one.node] or one.out[0] <= exits.low[one.node]


cdef inline void go_on(
    const Graph* graph, const Sides* sides, const Rows* X, Walker* one
) noexcept nogil:
    """Move a row to its next node and add the vote of the exit."""
    cdef Py_ssize_t taken = 2 * one.node + taken_by(graph, sides, X, one.row, one.node)
    if graph.n_votes == 1:
        one.out[0] += graph.vote[taken]
    else:
        add_votes(graph, taken, one.out)
    one.node = graph.next[taken]
    one.steps += 1


cdef inline bint enter(
    const Graph* graph, const Rows* X, Py_ssize_t i, bint takes, double* score, Walker* one
) noexcept nogil:
    """Start row i. Return False if a value is infinite, or missing and not supported."""
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
    """Evaluate rows until each stops. Return one more than the first row that cannot be evaluated, or 0.

    Several rows are evaluated together, so that the processor need not wait for the next node of each.
    """
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
    """Evaluate a graph for the rows start..stop-1 of X until each row stops.

    IN the graph, as for `walk`, with vote (n_nodes, 2 * V) and bias (V,). passed (n_nodes,): the number of
    stages before each node. Returns the same number as `walk`.
    """
    cdef Rows rows = rows_of(X)
    cdef Lent lent
    cdef Exits exits = exits_of(high, low, checked)
    cdef Py_ssize_t bad, n_nodes = feature.shape[0], n_votes = bias.shape[0]
    read_graph(&lent, rows.d, feature, threshold, next_, vote, missing, sets, projections, separators)
    if (exits.n_joints != n_nodes or exits.n_values != n_votes or vote.shape[1] != 2 * n_votes
            or passed.shape[0] != n_nodes or not 0 <= start <= stop <= rows.n
            or score.shape[0] < stop or score.shape[1] != n_votes or joint.shape[0] < stop
            or cost.shape[0] < stop):
        raise ValueError("leave_graph: arrays of different sizes")
    if stop <= start:
        return 0
    lent.graph.n_votes, lent.graph.biases = n_votes, &bias[0]
    with nogil:
        bad = leave_rows(
            &lent.graph, NULL if missing is None else &lent.sides, &exits, &passed[0], n_joints, &rows, start,
            stop, &score[0, 0], &joint[0], &cost[0],
        )
    return bad
