# Splits of a categorical feature, scored by the gradients of several classes.
from pboost._core._insertion_sort cimport insert_by_key
from pboost._core.types cimport int32_t

# A categorical feature at a node, and the parameters of its scores; see `best_levels` in softmax.pyx.
cdef struct LevelSums:
    const double* column
    const double* judged
    const double* total
    const int32_t* here
    Py_ssize_t stride, n_sums, n_classes, n
    double n_rows, least_rows, least_weight, smoothing


cdef inline void order_levels(const LevelSums* at, Py_ssize_t j, double* key, int32_t* order) noexcept nogil:
    """Sort the categories by the Newton step of class j; ties keep their previous order. OUT key, order."""
    cdef const double* gradient = at.column + 2 * j * at.stride
    cdef const double* curvature = gradient + at.stride
    cdef double pull = at.smoothing * (at.total[2 * j + 1] / at.n_rows), found
    cdef double step = pull * (at.total[2 * j] / at.total[2 * j + 1])
    cdef Py_ssize_t i
    for i in range(at.n):
        found = -(gradient[at.here[i]] + step) / (curvature[at.here[i]] + pull)
        insert_by_key(key, order, i, found, <int32_t>i)


cdef inline double score_levels(const LevelSums* at, const double* below) noexcept nogil:
    """Return the score of a split with these sums (S, 2) of the left child, or -1 if a child is too light.
    """
    cdef const double* l2 = at.judged
    cdef const double* factor = l2 + at.n_classes
    cdef const double* unit = factor + at.n_classes
    cdef Py_ssize_t j, rows = at.n_sums - 1 if at.n_sums > at.n_classes else 0
    cdef double score = 0.0, left = 0.0, right = 0.0, gl, gr, hl, hr, dl, dr
    hl = below[2 * rows + 1]
    if not (hl >= at.least_rows and at.total[2 * rows + 1] - hl >= at.least_rows):
        return -1.0
    for j in range(at.n_classes):
        gl, hl = below[2 * j], below[2 * j + 1]
        gr, hr = at.total[2 * j] - gl, at.total[2 * j + 1] - hl
        dl, dr = hl + l2[j], hr + l2[j]
        score += (gl * gl * dr + gr * gr * dl) / (dl * dr) * factor[j]
        left += hl * unit[j]
        right += hr * unit[j]
    if at.least_weight > 0.0 and not (left >= at.least_weight and right >= at.least_weight):
        return -1.0
    return score


cdef inline void add_level(
    const LevelSums* at, Py_ssize_t level, double sign, const double* start, double* sums
) noexcept nogil:
    """Compute the sums (S, 2) after adding a category to `start` or removing it."""
    cdef Py_ssize_t s
    for s in range(2 * at.n_sums):
        sums[s] = start[s] + sign * at.column[s * at.stride + level]
