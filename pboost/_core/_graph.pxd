# The nodes of a decision graph: the values that they compare and the exits that rows take. See walk.pyx.
from libc.math cimport isinf
from libc.string cimport memset

from pboost._core._project cimport Projections, project, projections_of
from pboost._core._rows cimport Rows, read
from pboost._core._separate cimport Separators, separate, separators_of
from pboost._core._side cimport NO_LEVEL, goes_right, in_set, level_of
from pboost._core.types cimport int32_t, uint8_t, uint64_t

cdef struct Graph:
    const int32_t* feature
    const double* threshold
    const int32_t* next
    const double* vote
    Py_ssize_t n_nodes
    bint is_chain
    double bias
    Py_ssize_t n_votes
    const double* biases  # NULL if each exit has a single vote
    const double* by_vote  # used for chains with several votes per exit, else NULL
    const Projections* projections
    const Separators* separators


# The exits of rows with a missing value, and the splits by sets of categories.
cdef struct Sides:
    const double* missing  # (n_nodes,), probability of exit 1 for missing values
    Py_ssize_t n_columns  # features with this number and above are sets of categories
    const int32_t* column
    const uint64_t* member
    # Derived features of a chain; see walk.pyx.
    const int32_t* above
    const int32_t* coded
    const uint8_t* table
    Py_ssize_t n_above, n_coded


cdef inline double compared(
    const Graph* graph, const Rows* X, const char* row, Py_ssize_t node
) noexcept nogil:
    """Return the value of a row that a node compares with its threshold."""
    if graph.projections != NULL:
        return project(graph.projections, X, row, graph.feature[node])
    if graph.separators != NULL:
        return separate(graph.separators, X, row, graph.feature[node])
    return read(X, row, graph.feature[node])


cdef inline Py_ssize_t side_of(
    const Graph* graph, const Sides* sides, const Rows* X, const char* row, Py_ssize_t node
) noexcept nogil:
    """Return the exit of a row at a node that may read missing values or use a set of categories."""
    cdef Py_ssize_t number = graph.feature[node] - sides.n_columns, taken
    cdef double value
    cdef int level
    cdef bint is_missing
    if number < 0:
        value = read(X, row, graph.feature[node])
        is_missing, taken = value != value, goes_right(value, graph.threshold[node])
    else:
        level = level_of(read(X, row, sides.column[number]))
        is_missing = level == NO_LEVEL
        taken = in_set(sides.member + 4 * number, level)
    return sides.missing[node] > 0.5 if is_missing else taken


cdef inline Py_ssize_t taken_by(
    const Graph* graph, const Sides* sides, const Rows* X, const char* row, Py_ssize_t node
) noexcept nogil:
    """Return the exit of a row at a node.

    If `sides` is NULL, no node uses a set, and only projections or separators may read missing values.
    """
    if sides != NULL:
        return side_of(graph, sides, X, row, node)
    return goes_right(compared(graph, X, row, node), graph.threshold[node])


cdef inline void add_votes(const Graph* graph, Py_ssize_t taken, double* out) noexcept nogil:
    """Add the votes of an exit. Exit 1 of node e has the number 2 e + 1, and exit 0 has the number 2 e."""
    cdef Py_ssize_t j
    cdef const double* vote = graph.vote + taken * graph.n_votes
    for j in range(graph.n_votes):
        out[j] += vote[j]


# The parts of a graph. Their arrays must stay alive while it is used.
cdef struct Lent:
    Graph graph
    Sides sides
    Projections projections
    Separators separators


cdef inline int read_graph(
    Lent* lent, Py_ssize_t d, const int32_t[::1] feature, const double[::1] threshold,
    const int32_t[:, ::1] next_, const double[:, ::1] vote, const double[::1] missing, sets, projections,
    separators,
) except -1:
    """Read the nodes, sets of categories, projections and separators of a graph for rows with d features.
    """
    cdef Graph* graph = &lent.graph
    cdef const int32_t[::1] column
    cdef const uint64_t[:, ::1] member
    cdef Py_ssize_t n = feature.shape[0]
    memset(lent, 0, sizeof(Lent))
    if (threshold.shape[0] != n or next_.shape[0] != n or vote.shape[0] != n
            or (missing is not None and missing.shape[0] != n)):
        raise ValueError("read_graph: arrays of different sizes")
    graph.n_nodes, graph.n_votes, lent.sides.n_columns = n, 1, d
    if n:
        graph.feature, graph.threshold = &feature[0], &threshold[0]
        graph.next, graph.vote = &next_[0, 0], &vote[0, 0]
        lent.sides.missing = NULL if missing is None else &missing[0]
    if sets is not None:
        column, member = sets
        lent.sides.column = &column[0] if column.shape[0] else NULL
        lent.sides.member = &member[0, 0] if column.shape[0] else NULL
    if separators is not None:
        start, of, first, edge, value, if_missing = separators
        lent.separators = separators_of(start, of, first, edge, value, if_missing)
        graph.separators = &lent.separators
    if projections is not None:
        start, index, coefficient, fill = projections
        lent.projections = projections_of(start, index, coefficient, fill, d)
        graph.projections = &lent.projections
    return 0


cdef inline bint takes_missing(const Graph* graph) noexcept nogil:
    """Return whether projections or separators accept missing values."""
    return ((graph.projections != NULL and graph.projections.fill != NULL)
            or (graph.separators != NULL and graph.separators.missing != NULL))


cdef inline bint has_infinity(const Rows* X, const char* row) noexcept nogil:
    """Return whether a value of a row is infinite."""
    cdef Py_ssize_t j
    for j in range(X.d):
        if isinf(read(X, row, j)):
            return True
    return False


cdef inline bint is_bad(const Rows* X, const char* row) noexcept nogil:
    """Return whether a value of a row is not finite."""
    cdef double value, bad = 0.0
    cdef Py_ssize_t j
    for j in range(X.d):
        value = read(X, row, j)
        bad += value - value
    return bad != 0.0
