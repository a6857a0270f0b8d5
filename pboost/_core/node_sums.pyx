"""Nodes of a tree whose rows are in several places: what each place counts, and what is made of the
sums of all."""
from libc.math cimport rint

from pboost._core._address cimport address
from pboost._core._grower cimport Node, Tree, coarse_shift, full_shift
from pboost._core._node_squares cimport FINER, Sums, begin_squares, end_squares, first_mean
from pboost._core.types cimport int32_t, int64_t, uint8_t


cdef Tree nodes_of(arrays) except *:
    """What is read and written of a regression."""
    cdef Tree t
    t.node = <Node*>address(arrays.node)
    t.mass = <int64_t*>address(arrays.mass)
    t.whole, t.squares = arrays.whole, True
    return t


def part_rows(
    const uint8_t[:, ::1] codes, int32_t[::1] rows, int32_t[:, ::1] bounds, int32_t[::1] spare,
    const int32_t[::1] node, const int32_t[::1] child, const int32_t[::1] feature,
    const uint8_t[:, ::1] side,
):
    """Split nodes one after another: those whose side is 1 go to the second child.

    IN codes (d, n); node, child, feature (k,), side (k, 256) of codes. INOUT rows (m,): listed node by
    node; bounds (nodes, 2): where those of a node begin and end. WORK spare (m,).
    """
    cdef Py_ssize_t i, j, start, middle, n_above
    cdef const uint8_t* code
    cdef int32_t row
    with nogil:
        for i in range(node.shape[0]):
            start = middle = bounds[node[i], 0]
            n_above, code = 0, &codes[feature[i], 0]
            for j in range(start, bounds[node[i], 1]):
                row = rows[j]
                rows[middle] = spare[n_above] = row
                if side[i, code[row]]:
                    n_above += 1
                else:
                    middle += 1
            for j in range(n_above):
                rows[middle + j] = spare[j]
            bounds[child[i], 0], bounds[child[i], 1] = <int32_t>start, <int32_t>middle
            bounds[child[i] + 1, 0] = <int32_t>middle
            bounds[child[i] + 1, 1] = bounds[node[i], 1]


cdef inline void add_classes(
    const uint8_t* code, const int32_t* rows, const int32_t* label, const int64_t* mass, Py_ssize_t n,
    Py_ssize_t k, int64_t* cells,
) noexcept nogil:
    """Add the masses of rows, and their number, to the cells of one column, by code and class."""
    cdef Py_ssize_t i
    cdef int64_t* cell
    for i in range(n):
        cell = cells + code[rows[i]] * (k + 1)
        cell[label[i]] += mass[i]
        cell[k] += 1


cdef inline void add_moments(
    const uint8_t* code, const int32_t* rows, const int64_t* mass, Py_ssize_t n, int64_t* cells
) noexcept nogil:
    """The same of two masses of each row."""
    cdef Py_ssize_t i
    cdef int64_t* cell
    for i in range(n):
        cell = cells + code[rows[i]] * 3
        cell[0] += mass[2 * i]
        cell[1] += mass[2 * i + 1]
        cell[2] += 1


def count_cells(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, const int64_t[::1] stop,
    const int32_t[::1] label, const int64_t[:, ::1] mass, Py_ssize_t first, Py_ssize_t last,
    int64_t[:, :, :, ::1] cells,
):
    """Add up the histograms of nodes in the columns first..last-1.

    IN codes (d, n); rows (m,), listed node by node; stop (nodes,): where those of a node end; label (m,)
    and mass (m, 1), or mass (m, 2) and no label. INOUT cells (nodes, d, codes, k + 1): masses, of the k
    classes or the two that are given, then the number of rows.
    """
    cdef Py_ssize_t f, e, start, n, m = rows.shape[0], k = cells.shape[3] - 1
    cdef bint by_class = mass.shape[1] == 1
    if mass.shape[0] != m or label.shape[0] != (m if by_class else 0) or last > cells.shape[1]:
        raise ValueError("count_cells: arrays of different sizes")
    if m == 0:
        return
    with nogil:
        for f in range(first, last):
            start = 0
            for e in range(stop.shape[0]):
                n = stop[e] - start
                if n == 0:
                    continue
                if not by_class:
                    add_moments(&codes[f, 0], &rows[start], &mass[start, 0], n, &cells[e, f, 0, 0])
                elif k == 2:
                    add_classes(&codes[f, 0], &rows[start], &label[start], &mass[start, 0], n, 2,
                                &cells[e, f, 0, 0])
                else:
                    add_classes(&codes[f, 0], &rows[start], &label[start], &mass[start, 0], n, k,
                                &cells[e, f, 0, 0])
                start = stop[e]


def sum_above(
    const int32_t[::1] rows, const int64_t[::1] stop, const double[::1] weight, const double[::1] y,
    const double[:, ::1] numbers, int64_t[::1] found,
):
    """Add up weight times target less the least one, in units.

    IN rows (m,), listed node by node; stop (nodes,): where those of a node end; numbers (nodes, 2): least
    target and scale. INOUT found (nodes,).
    """
    cdef Py_ssize_t e, i = 0
    with nogil:
        for e in range(stop.shape[0]):
            while i < stop[e]:
                found[e] += <int64_t>(
                    weight[rows[i]] * (y[rows[i]] - numbers[e, 0]) * numbers[e, 1])
                i += 1


def sum_squares(
    const int32_t[::1] rows, const int64_t[::1] stop, const double[::1] weight, const double[::1] y,
    const double[:, ::1] numbers, int64_t[:, ::1] found,
):
    """Add up moments and squares, each with what rounding leaves over, as `measure_binned` does.

    As `sum_above`; numbers (nodes, 3): mean, scale of moments, scale of squares. INOUT found (nodes, 4).
    """
    cdef Py_ssize_t e, i = 0
    cdef double deviation, part
    cdef int64_t whole
    with nogil:
        for e in range(stop.shape[0]):
            while i < stop[e]:
                deviation = y[rows[i]] - numbers[e, 0]
                part = weight[rows[i]] * deviation * numbers[e, 1]
                whole = <int64_t>rint(part)
                found[e, 0] += whole
                found[e, 1] += <int64_t>((part - <double>whole) * FINER)
                part = weight[rows[i]] * deviation * deviation * numbers[e, 2]
                whole = <int64_t>part
                found[e, 2] += whole
                found[e, 3] += <int64_t>((part - <double>whole) * FINER)
                i += 1


def leaves_of(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, const int32_t[::1] feature,
    const int32_t[::1] child, const uint8_t[:, ::1] side, int32_t[::1] leaf,
):
    """Find the leaf that each of some rows reaches.

    IN codes (d, n); rows (m,); of nodes: feature, child (nodes,), the first of two, -1 of leaves; side
    (nodes, 32): bits of codes. OUT leaf (m,).
    """
    cdef Py_ssize_t i
    cdef int32_t e
    cdef uint8_t code
    with nogil:
        for i in range(rows.shape[0]):
            e = 0
            while child[e] >= 0:
                code = codes[feature[e], rows[i]]
                e = child[e] + (side[e, code >> 3] >> (code & 7) & 1)
            leaf[i] = e


def coarse_shift_of(double heaviest, Py_ssize_t n):
    """Return a shift with which sums of so many weights, the heaviest of which is given, fit 64 bits."""
    return coarse_shift(heaviest, n)


def full_shift_of(int64_t total, int shift):
    """Return the shift that gives weights their most bits, given their sum with another."""
    return full_shift(total, shift)


def begin_moments(arrays, Py_ssize_t e, double least, double most):
    """Choose the units of the sums of node `e`, whose targets are in a range and whose weight is in its
    mass. Returns the scale of the squares; that of the moments is the node's."""
    cdef Tree t = nodes_of(arrays)
    return begin_squares(&t, e, least, most)


def centre_moments(arrays, Py_ssize_t e, double least, double most, int64_t above):
    """Set the mean, given the sum of weight times target less the least one in the node's units."""
    cdef Tree t = nodes_of(arrays)
    first_mean(&t, e, least, most, above)


def end_moments(
    arrays, Py_ssize_t e, double least, double most, double scale, const int64_t[::1] found
):
    """Set mean and squared error, given four sums: of moments, of squares, each with what is over."""
    cdef Tree t = nodes_of(arrays)
    cdef Sums sums
    if found.shape[0] != 4:
        raise ValueError("end_moments: expected four sums")
    sums.scale, sums.v, sums.v_low = scale, found[0], found[1]
    sums.square, sums.square_low = found[2], found[3]
    end_squares(&t, e, least, most, &sums)
