"""Nodes of a tree whose rows are in several places: what each place counts, and what is made of the
sums of all."""
from pboost._core._address cimport address
from pboost._core._grower cimport Node, Tree, coarse_shift, full_shift
from pboost._core._node_squares cimport Sums, begin_squares, end_squares, first_mean
from pboost._core.types cimport int32_t, int64_t, uint8_t


cdef Tree nodes_of(arrays) except *:
    """What is read and written of a regression."""
    cdef Tree t
    t.node = <Node*>address(arrays.node)
    t.mass = <int64_t*>address(arrays.mass)
    t.whole, t.squares = arrays.whole, True
    return t


def count_cells(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, const int32_t[::1] label,
    const int64_t[:, ::1] mass, Py_ssize_t first, Py_ssize_t last, int64_t[:, :, ::1] cells,
):
    """Add up what some rows hold of each code of the columns first..last-1.

    IN codes (d, n); rows (m,); label (n,), or empty where all masses of a row are counted; mass (m, 1),
    or (m, k) without labels: of the listed rows. INOUT cells (d, codes, k + 1): masses, by class or as
    they are, then the number of rows.
    """
    cdef Py_ssize_t f, i, j, m = rows.shape[0], k = cells.shape[2] - 1
    cdef bint by_class = label.shape[0] > 0
    cdef const uint8_t* of_rows
    cdef int64_t* cell
    if mass.shape[0] != m or mass.shape[1] != (1 if by_class else k) or last > cells.shape[0]:
        raise ValueError("count_cells: arrays of different sizes")
    if m == 0:
        return
    with nogil:
        for f in range(first, last):
            of_rows = &codes[f, 0]
            for i in range(m):
                cell = &cells[f, of_rows[rows[i]], 0]
                if by_class:
                    cell[label[rows[i]]] += mass[i, 0]
                else:
                    for j in range(k):
                        cell[j] += mass[i, j]
                cell[k] += 1


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
