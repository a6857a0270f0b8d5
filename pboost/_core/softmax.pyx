"""Rounds of softmax: residuals of all classes, and the masses of the roots of their trees at once."""
from libc.stdint cimport uintptr_t

from pboost._core._address cimport address
from pboost._core._boost_leaf cimport OF_CURVATURE, OF_GRADIENT, power_below
from pboost._core._boost_softmax cimport Passes, pboost_choose_softmax_passes
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t

cdef extern from "boost_simd.h" nogil:
    enum: ROWS_OF_BLOCK "PBOOST_BLOCK"

cdef Passes passes = pboost_choose_softmax_passes(2)
#: Places for the words of rows while roots are counted, of so many copies of rows at once.
BLOCK, WORK = ROWS_OF_BLOCK, 8 * ROWS_OF_BLOCK + 8


def use_simd_level(int level):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global passes
    passes = pboost_choose_softmax_passes(level)


def shares(
    const double[:, ::1] scores, const double[::1] label, weight, bint are_copies, double per_limit,
    double[:, ::1] residual, double[::1] loss, double[::1] steepest, double[::1] most
):
    """The residuals of all classes and the losses of rows: probabilities, less 1 for the row's class.

    IN scores (J, n), label (n,): numbers of classes, weight (n,) or None, per_limit: 1 / the bound on a
    Newton step; OUT residual (J, n), loss (n,): weight times -ln of the probability of the row's class,
    0 where the weight is; steepest and most (J,): the largest weighted residual and curvature. Where
    weights are copies, all this is of one.
    """
    cdef Py_ssize_t n = scores.shape[1], n_classes = scores.shape[0]
    cdef const double* w = NULL
    if weight is not None:
        w = <const double*>address(weight)
    if (label.shape[0] != n or residual.shape[0] != n_classes or residual.shape[1] != n
            or loss.shape[0] != n or n_classes < 2 or n < 1 or steepest.shape[0] != n_classes
            or most.shape[0] != n_classes):
        raise ValueError("shares: arrays of different sizes")
    with nogil:
        passes.shares(
            &scores[0, 0], &label[0], w, are_copies, n_classes, n, per_limit, &residual[0, 0], &loss[0],
            &steepest[0], &most[0])


def count_roots(
    const uint8_t[:, :, ::1] groups, const int32_t[::1] bins, const double[:, ::1] residual, weight,
    bint are_copies, Py_ssize_t block, double per_limit, const double[::1] steepest,
    const double[::1] most, Py_ssize_t start, Py_ssize_t stop, int64_t[::1] work, double[:, :, :, ::1] masses
):
    """Add rows of positive weight to the masses by bin of the roots of as many classes as are given;
    the first row comes first, to masses of 0.

    IN groups (ceil(n_lanes / 8), n, 8): codes, bins (n_lanes,), residual (k, n), weight (n,) or None,
    `block`: rows whose words have room together, steepest and most (k,); `start` and `stop`: which rows; WORK work; IN/OUT masses (n_lanes, 256, 2, 2 or 4 or 8): gradients and curvatures of
    classes, in the units of their words.
    """
    cdef Py_ssize_t n = groups.shape[1], n_lanes = bins.shape[0], k, n_classes = residual.shape[0]
    cdef Py_ssize_t width = masses.shape[3]
    cdef double[16] scale
    cdef const double* w = NULL
    cdef int64_t* words
    if weight is not None:
        w = <const double*>address(weight)
    if (groups.shape[0] * 8 < n_lanes or groups.shape[2] != 8 or residual.shape[1] != n or steepest.shape[0] != n_classes
            or most.shape[0] != n_classes or not 0 <= start <= stop <= n or n_classes < 1
            or not (width == 2 or width == 4 or width == 8) or n_classes > width
            or masses.shape[0] != n_lanes or masses.shape[1] != MAX_BINS or masses.shape[2] != 2
            or work.shape[0] < WORK or not 1 <= block <= ROWS_OF_BLOCK):
        raise ValueError("count_roots: arrays of different sizes")
    for k in range(n_classes):
        scale[2 * k] = power_below(steepest[k], OF_GRADIENT)
        scale[2 * k + 1] = power_below(most[k], OF_CURVATURE)
    with nogil:
        words = <int64_t*>((<uintptr_t>&work[0] + 63) & ~<uintptr_t>63)
        while start < stop:
            passes.roots(
                &groups[0, 0, 0], n, &bins[0], n_lanes, &residual[0, 0], w, are_copies, start,
                min(stop, start + block), per_limit, scale, <int>n_classes, words, &masses[0, 0, 0, 0], <int>width)
            start += block
