"""Leaf values that are shrunk along the path from the root, by the James-Stein rule.

See `Rounds` in trees/tree_rounds.py, whose arrays are used during one call. Sums of squares are sums of
integers, so they do not depend on the order of the rows.
"""
from pboost._core._address cimport to_read, to_write
from pboost._core._boost_leaf cimport OF_GRADIENT, OF_WIDE, Rows, scale_of
from pboost._core._boost_read cimport read_rows, residual_of
from pboost._core._boost_round cimport Node
from pboost._core._boost_shrink cimport (
    MOST_SQUARE, LeafSums, Shrink, Spread, Squares, leaf_sums_part, shrink_tree, squares_part,
)
from pboost._core._team cimport Threads, run_ranges, team_at
from pboost._core.types cimport int32_t


def square_scale(bint is_wide, bint is_weighted, Py_ssize_t n_copies):
    """Return the factor that scales squared gradients, in packed units, so that their sum is exact."""
    cdef int bits = 2 * (OF_WIDE if is_wide else OF_GRADIENT)
    return scale_of(2.0 ** (bits + 1) * (MOST_SQUARE if is_weighted else 1), n_copies)


def note_squares(arrays, double gradient_scale, double scale, double[::1] squares):
    """Compute the squared gradients times the weights, before the gradients are packed (OUT squares (n,)).

    Gradients times `gradient_scale` are squared, multiplied by `scale` and rounded to integers.
    """
    cdef Rows rows = read_rows(arrays)
    cdef const double* residual = residual_of(arrays)
    cdef Squares all
    cdef Py_ssize_t n = arrays.codes.shape[1], share = arrays.share
    cdef Threads* team = team_at(arrays.team)
    if squares.shape[0] != n:
        raise ValueError("note_squares: expected a number per row")
    all.rows, all.square = &rows, &squares[0]
    all.gradient = <const double*>to_read(arrays.packed, sizeof(double)) if residual == NULL else residual
    all.is_weighted = residual == NULL and not rows.are_copies
    all.gradient_scale, all.square_scale = gradient_scale, scale
    all.most = MOST_SQUARE * 2.0 ** (2 * (OF_WIDE if arrays.is_wide else OF_GRADIENT))
    with nogil:
        run_ranges(team, 0, n, share, squares_part, &all)


def sum_listed(const double[::1] squares, const int32_t[::1] rows):
    """Return the sum of the squared gradients, which are integers, of the listed rows."""
    cdef double total = 0.0
    cdef Py_ssize_t i, n = rows.shape[0]
    with nogil:
        for i in range(n):
            total += squares[rows[i]]
    return total


def leaf_sums(arrays, nodes, const double[::1] squares, weights, double[:, ::1] sums):
    """Sum squared gradients and weights over the rows of leaves (OUT sums (n, 2), 0 for inner nodes).

    `weights` are integers (n_rows,), or None if all are 1.
    """
    cdef Py_ssize_t n = arrays.n_listed, share = arrays.share, k, n_nodes = len(nodes)
    cdef Threads* team = team_at(arrays.team)
    cdef const double[::1] units = weights
    cdef LeafSums all
    if squares.shape[0] != arrays.codes.shape[1] or sums.shape[0] != n_nodes or sums.shape[1] != 2:
        raise ValueError("leaf_sums: arrays of different sizes")
    all.rows = <const int32_t*>to_read(arrays.rows, sizeof(int32_t))
    all.node, all.n = <const Node*>to_read(nodes, sizeof(Node)), n_nodes
    for k in range(n_nodes):
        if not 0 <= all.node[k].start <= all.node[k].stop <= n:
            raise ValueError("leaf_sums: expected nodes with listed rows")
    all.value, all.found, all.in_hand = &squares[0], &sums[0, 0], 0
    sums[:] = 0.0
    with nogil:
        run_ranges(team, 0, n, share, leaf_sums_part, &all)
    if units is None:
        for k in range(n_nodes):
            if all.node[k].feature < 0:
                sums[k, 1] = all.node[k].stop - all.node[k].start
        return
    if units.shape[0] != squares.shape[0]:
        raise ValueError("leaf_sums: expected a weight for each row")
    all.value, all.found = &units[0], &sums[0, 1]
    with nogil:
        run_ranges(team, 0, n, share, leaf_sums_part, &all)


def shrink_leaves(
    nodes, const int32_t[:, ::1] children, double[:, ::1] spread, double square_unit, double weight_unit,
    double[::1] step, double shrinkage, double row_weight, double l2, double most, double rate, double unit
):
    """Shrink the leaf values of a tree toward the values of their ancestors.

    IN/OUT nodes (n,), in preorder; spread (n, 2): sums of squared gradients and of weights, given for leaves.
    Their units are `square_unit`, relative to the packed gradients, and `weight_unit`. OUT step (n,): the shrunk step of each node. `unit` is as in `solve_leaves`.
    Returns the weighted sum of squared leaf values after shrinkage, as a fraction of the sum before it.
    """
    cdef Shrink all
    cdef double kept
    cdef Py_ssize_t k
    all.n = len(nodes)
    if not children.shape[0] == spread.shape[0] == step.shape[0] == all.n or spread.shape[1] != 2:
        raise ValueError("shrink_leaves: arrays of different sizes")
    all.node, all.children = <Node*>to_write(nodes, sizeof(Node)), &children[0, 0]
    all.spread, all.value = <Spread*>&spread[0, 0], &step[0]
    all.shrinkage, all.row_weight, all.l2 = shrinkage, row_weight, l2
    all.most, all.rate, all.unit = most, rate, unit
    with nogil:
        for k in range(all.n):
            all.spread[k].squares *= square_unit
            all.spread[k].weight *= weight_unit
        kept = shrink_tree(&all)
    return kept
