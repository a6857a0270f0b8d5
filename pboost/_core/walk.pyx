"""Hard evaluation of graphs: rows take the exits on whose side they lie, see side.h.

Rows are copied in tiles of 64, transposed, converted to float64 and checked to be finite on the
way, so that float32 and float64 rows of equal value take the same exits whatever the layout of X.

Arrays: feature (n_nodes,), threshold (n_nodes,), next (n_nodes, 2), vote (n_nodes, 2) as in
`DecisionGraph`. A row starts at node 0 with the bias and adds the vote of each exit it takes. Where
nodes compare projections of a row, a chain projects a tile at a time, and other graphs make each
projection when a node needs it. Separators are always made where a node needs them.
"""
from libc.math cimport isinf

from pboost._core._project cimport Projections, fill_block, project, project_block, projections_of
from pboost._core._rows cimport Rows, read, rows_of
from pboost._core._separate cimport Separators, separate, separators_of
from pboost._core._side cimport goes_right
from pboost._core._tile cimport TILE, load_tile, tile_has_infinity
from pboost._core.types cimport int32_t, uint8_t

cdef extern from "walk_simd.h":
    ctypedef void (*ChainKernel "pboost_chain_kernel")(
        const double*, const int32_t*, const double*, const double*, Py_ssize_t, double*
    ) noexcept nogil
    ChainKernel choose_chain "pboost_choose_chain"(int level) noexcept nogil

cdef enum:
    MANY_ROWS = 9  # fewer are read in place, one by one
    OUT = -1  # `next` of an exit that leads out of the graph

cdef ChainKernel chain_kernel = choose_chain(2)

TILE_ROWS = TILE
MANY = MANY_ROWS


def use_simd_level(int level):
    """Choose the variant of the chain kernel: 0 baseline, 1 AVX2, 2 AVX-512 if supported."""
    global chain_kernel
    chain_kernel = choose_chain(level)


def is_chain(const int32_t[:, ::1] next_):
    """Whether both exits of every node lead to the node after it."""
    cdef Py_ssize_t node, n = next_.shape[0]
    cdef int32_t after
    for node in range(n):
        after = <int32_t>node + 1 if node + 1 < n else OUT
        if next_[node, 0] != after or next_[node, 1] != after:
            return False
    return True


def unreached(const int32_t[:, ::1] next_):
    """The first node but the root that no exit leads to, n_nodes if there is none; -1 if an exit
    leads neither to a later node nor out."""
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


cdef struct Graph:
    const int32_t* feature
    const double* threshold
    const int32_t* next
    const double* vote
    Py_ssize_t n_nodes
    bint is_chain
    double bias
    const Projections* projections
    const Separators* separators


cdef inline double compared(
    const Graph* graph, const Rows* X, const char* row, Py_ssize_t node
) noexcept nogil:
    """The number of a row that a node compares with its threshold."""
    if graph.projections != NULL:
        return project(graph.projections, X, row, graph.feature[node])
    if graph.separators != NULL:
        return separate(graph.separators, X, row, graph.feature[node])
    return read(X, row, graph.feature[node])


cdef inline Py_ssize_t walk_row(
    const Graph* graph, const Rows* X, const char* row, double* out
) noexcept nogil:
    """Score of a row; returns the number of nodes that it meets."""
    cdef double score = graph.bias
    cdef Py_ssize_t node = 0 if graph.n_nodes else -1, taken, steps = 0
    while node >= 0:
        taken = goes_right(compared(graph, X, row, node), graph.threshold[node])
        score += graph.vote[2 * node + taken]
        node = graph.next[2 * node + taken]
        steps += 1
    out[0] = score
    return steps


cdef inline bint takes_missing(const Graph* graph) noexcept nogil:
    """Whether it is known what missing values are."""
    return ((graph.projections != NULL and graph.projections.fill != NULL)
            or (graph.separators != NULL and graph.separators.missing != NULL))


cdef inline bint has_infinity(const Rows* X, const char* row) noexcept nogil:
    """Whether a value of a row is infinite."""
    cdef Py_ssize_t j
    for j in range(X.d):
        if isinf(read(X, row, j)):
            return True
    return False


cdef inline bint is_bad(const Rows* X, const char* row) noexcept nogil:
    """Whether a value of a row is not finite."""
    cdef double value, bad = 0.0
    cdef Py_ssize_t j
    for j in range(X.d):
        value = read(X, row, j)
        bad += value - value
    return bad != 0.0


cdef void walk_chain(
    const Graph* graph, double* tile, Py_ssize_t d, Py_ssize_t rows, double* score
) noexcept nogil:
    cdef double[TILE] scores
    cdef Py_ssize_t r
    cdef double* inputs = tile
    if graph.projections != NULL:
        inputs = tile + d * TILE
        project_block(graph.projections, tile, TILE, inputs)
    for r in range(TILE):
        scores[r] = graph.bias
    chain_kernel(inputs, graph.feature, graph.threshold, graph.vote, graph.n_nodes, scores)
    for r in range(rows):
        score[r] = scores[r]


cdef int walk_rows(
    const Graph* graph, const Rows* X, Py_ssize_t start, Py_ssize_t stop, double* tile,
    double* score, double* count,
) noexcept nogil:
    cdef Py_ssize_t i = start, rows, r, steps
    cdef const char* row
    cdef Rows transposed
    transposed.data = <const char*>tile
    transposed.n, transposed.d, transposed.is_float = TILE, X.d, False
    transposed.row_stride, transposed.column_stride = sizeof(double), TILE * sizeof(double)
    if stop - start < MANY_ROWS and count == NULL:
        for i in range(start, stop):
            row = X.data + i * X.row_stride
            if is_bad(X, row) and (not takes_missing(graph) or has_infinity(X, row)):
                return 1
            walk_row(graph, X, row, score + i)
        return 0
    while i < stop:
        rows = min(TILE, stop - i)
        if load_tile(X, i, rows, tile):
            if not takes_missing(graph) or tile_has_infinity(tile, X.d):
                return 1
            if graph.projections != NULL:
                fill_block(graph.projections, tile, X.d, TILE)
        if graph.is_chain and graph.separators == NULL and count == NULL:
            walk_chain(graph, tile, X.d, rows, score + i)
        else:
            for r in range(rows):
                row = transposed.data + r * transposed.row_stride
                steps = walk_row(graph, &transposed, row, score + i + r)
                if count != NULL:
                    count[i + r] = <double>steps
        i += rows
    return 0


def walk(
    X, const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const double[:, ::1] vote, bint is_chain, double bias, Py_ssize_t n_features,
    Py_ssize_t start, Py_ssize_t stop, double[::1] score, double[::1] tile=None,
    double[::1] count=None, projections=None, separators=None,
):
    """Evaluate rows start..stop-1 of X (n, n_features), float64 or float32, any strides.

    OUT score (n,), count (n,) if it is wanted; WORK tile (n_features * 64,), not needed below
    `MANY` rows without count. Where nodes compare projections: their arrays (start, index,
    coefficient, fill), and a chain needs 64 more places in the tile for each of them. Where they
    compare separators: theirs (start, column, first, edge, value, missing). Returns 1, with the outputs
    unfinished, if a value is infinite, or missing where it is not known what that means, else 0.
    """
    cdef Rows rows = rows_of(X)
    cdef Projections p
    cdef Separators s
    cdef Graph graph
    cdef Py_ssize_t n = rows.n, width = rows.d
    cdef double* work
    cdef double* counts
    cdef int bad
    graph.projections, graph.separators = NULL, NULL
    if separators is not None:
        step_of, column, first_edge, edge, value, sides = separators
        s = separators_of(step_of, column, first_edge, edge, value, sides)
        graph.separators = &s
    if projections is not None:
        first_term, index, coefficient, fill = projections
        p = projections_of(first_term, index, coefficient, fill, rows.d)
        graph.projections = &p
        width += p.n
    if (rows.d != n_features or score.shape[0] != n or not 0 <= start <= stop <= n
            or (count is not None and count.shape[0] != n)
            or (tile is None and (count is not None or stop - start >= MANY_ROWS))
            or (tile is not None and tile.shape[0] < width * TILE)):
        raise ValueError("walk: arrays of different sizes")
    graph.n_nodes = feature.shape[0]
    graph.feature = &feature[0] if graph.n_nodes else NULL
    graph.threshold = &threshold[0] if graph.n_nodes else NULL
    graph.next = &next_[0, 0] if graph.n_nodes else NULL
    graph.vote = &vote[0, 0] if graph.n_nodes else NULL
    graph.is_chain = is_chain
    graph.bias = bias
    if stop <= start:
        return 0
    work = NULL if tile is None else &tile[0]
    counts = NULL if count is None else &count[0]
    with nogil:
        bad = walk_rows(&graph, &rows, start, stop, work, &score[0], counts)
    return bad


def count_features(
    X, const int32_t[::1] feature, const double[::1] threshold, const int32_t[:, ::1] next_,
    const int32_t[::1] start, const int32_t[::1] index, int32_t[::1] last_row, double[::1] count,
):
    """Number of distinct features that each row reads; X (n, k), float64, is what nodes compare.

    Number f of a row is made of the features index[start[f]..start[f + 1]-1]. WORK last_row (d,),
    filled with -1: the last row that read a feature; OUT count (n,).
    """
    cdef const double[:, :] rows = X
    cdef Py_ssize_t i, node, t, n_nodes = feature.shape[0]
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
                node = next_[node, goes_right(rows[i, f], threshold[node])]
