"""The weight update after a stump has been chosen, in a chain where all rows go on together.

w <- w * factor[exit, class] with factor = exp(-vote y) / Z; there are only four factors, so that no
exponential is taken per row. The exit of a row is read off its bin code; rows of the bin that holds
the cut are looked up in sorted order.
"""
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, row_of, uint8_t

# Weights below this are 0 in fixed point; keeping them from becoming subnormal keeps speed.
cdef double LEAST_WEIGHT = 1e-290


def reweight_cut_bin(
    const int32_t[::1] order, const int32_t[::1] bin_start, int cut_bin, Py_ssize_t position,
    Py_ssize_t n_negative, const double[:, ::1] factor, double[::1] weight,
):
    """Multiply the weights of the rows of the bin that holds the cut.

    IN order (n,) of the cut feature, position; factor (2 exits, 2 classes); INOUT weight (n,).
    """
    cdef Py_ssize_t i
    cdef int32_t row
    with nogil:
        for i in range(bin_start[cut_bin], bin_start[cut_bin + 1]):
            row = row_of(order[i])
            weight[row] *= factor[i >= position, row >= n_negative]


def reweight(
    const uint8_t[::1] codes, int cut_bin, bint bin_is_done, Py_ssize_t n_negative,
    const double[:, ::1] factor, double scale, Py_ssize_t start, Py_ssize_t stop,
    double[::1] weight, int64_t[::1] fixed,
):
    """Multiply the weights of rows start..stop-1 and write their fixed-point images.

    Returns the fixed-point mass of class -1 and of class +1 among these rows.

    IN codes (n,) of the cut feature; bin_is_done: the rows of `cut_bin` were dealt with by
    `reweight_cut_bin`, else they all go below; scale: fixed = weight * scale; INOUT weight;
    OUT fixed.
    """
    cdef double[2][MAX_BINS] by_code
    cdef Py_ssize_t i, middle
    cdef int64_t negative = 0, positive = 0
    cdef int b, k
    if not (0 <= start <= stop <= weight.shape[0]) or codes.shape[0] != weight.shape[0]:
        raise ValueError("reweight: arrays of different sizes")
    with nogil:
        for k in range(2):
            for b in range(MAX_BINS):
                by_code[k][b] = factor[b > cut_bin, k]
            if bin_is_done:
                by_code[k][cut_bin] = 1.0
        middle = min(max(n_negative, start), stop)
        for i in range(start, middle):
            weight[i] = max(weight[i] * by_code[0][codes[i]], LEAST_WEIGHT)
            fixed[i] = <int64_t>(weight[i] * scale + 0.5)
            negative += fixed[i]
        for i in range(middle, stop):
            weight[i] = max(weight[i] * by_code[1][codes[i]], LEAST_WEIGHT)
            fixed[i] = <int64_t>(weight[i] * scale + 0.5)
            positive += fixed[i]
    return negative, positive


def to_fixed(const double[::1] weight, double scale, int64_t[::1] fixed):
    """fixed = weight * scale, rounded. Returns the sum of `fixed`."""
    cdef Py_ssize_t i, n = weight.shape[0]
    cdef int64_t total = 0
    if fixed.shape[0] != n:
        raise ValueError("to_fixed: arrays of different sizes")
    with nogil:
        for i in range(n):
            fixed[i] = <int64_t>(weight[i] * scale + 0.5)
            total += fixed[i]
    return total
