"""Rounds of softmax: residuals of all classes, and the masses of the roots of their trees at once."""
from libc.stdint cimport uintptr_t

from pboost._core._address cimport address
from pboost._core._boost_leaf cimport OF_CURVATURE, OF_GRADIENT, power_below
from pboost._core._boost_softmax cimport Passes, pboost_choose_softmax_passes
from pboost._core._team cimport Threads, Work, close_post, load, open_post, plus, team_at
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, uint8_t

cdef extern from "boost_simd.h" nogil:
    enum: ROWS_OF_BLOCK "PBOOST_BLOCK"

cdef Passes passes = pboost_choose_softmax_passes(2)
cdef enum:
    WORDS_OF_BLOCK = 8 * ROWS_OF_BLOCK + 8
#: Places for the words of rows while roots are counted, of so many copies of rows at once.
BLOCK, WORK = ROWS_OF_BLOCK, WORDS_OF_BLOCK


def use_simd_level(int level):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global passes
    passes = pboost_choose_softmax_passes(level)


# What threads share: rows, and what each of them finds by itself, at its number.
cdef struct Shares:
    const double* scores
    const double* label
    const double* weight
    bint are_copies
    Py_ssize_t n, n_classes, step
    double per_limit
    double* residual
    double* loss
    double* steepest
    double* most
    int32_t next, n_parts


cdef bint shares_part(void* task, int who) noexcept nogil:
    cdef Shares* all = <Shares*>task
    cdef Py_ssize_t k, start, at = who * all.n_classes
    cdef bint did = False
    while load(&all.next) < all.n_parts:
        k = plus(&all.next, 1)
        if k >= all.n_parts:
            break
        start = k * all.step
        passes.shares(
            all.scores + start, all.label + start, NULL if all.weight == NULL else all.weight + start,
            all.are_copies, all.n_classes, min(all.step, all.n - start), all.n, all.per_limit,
            all.residual + start, all.loss + start, all.steepest + at, all.most + at)
        did = True
    return did


def shares(
    const double[:, ::1] scores, const double[::1] label, weight, bint are_copies, double per_limit,
    double[:, ::1] residual, double[::1] loss, double[:, ::1] steepest, double[:, ::1] most, size_t team=0,
    Py_ssize_t share=0
):
    """The residuals of all classes and the losses of rows: probabilities, less 1 for the row's class.

    IN scores (J, n), label (n,): numbers of classes, weight (n,) or None, per_limit: 1 / the bound on a
    Newton step; OUT residual (J, n), loss (n,): weight times -ln of the probability of the row's class,
    0 where the weight is; IN/OUT steepest and most (n_threads, J), 0 before: the largest weighted residual and
    curvature of the rows of each thread. Where weights are copies, all this is of one. team: where the threads are
    that share the rows, `share` of them at a time.
    """
    cdef Py_ssize_t n = scores.shape[1], n_classes = scores.shape[0]
    cdef Threads* helpers = team_at(team)
    cdef Shares all
    if (label.shape[0] != n or residual.shape[0] != n_classes or residual.shape[1] != n
            or loss.shape[0] != n or n_classes < 2 or n < 1 or steepest.shape[1] != n_classes
            or most.shape[1] != n_classes or steepest.shape[0] != most.shape[0]
            or steepest.shape[0] < (1 if helpers == NULL else helpers.n_threads)):
        raise ValueError("shares: arrays of different sizes")
    all.scores, all.label, all.weight, all.are_copies = &scores[0, 0], &label[0], NULL, are_copies
    if weight is not None:
        all.weight = <const double*>address(weight)
    all.n, all.n_classes, all.per_limit = n, n_classes, per_limit
    all.residual, all.loss = &residual[0, 0], &loss[0]
    all.steepest, all.most, all.next = &steepest[0, 0], &most[0, 0], 0
    all.step = n if helpers == NULL else share
    all.n_parts = <int32_t>((n + all.step - 1) // all.step)
    with nogil:
        in_parts(helpers, shares_part, &all)


# The same of the masses of roots.
cdef struct Roots:
    const uint8_t* groups
    const int32_t* bins
    const double* residual
    const double* weight
    bint are_copies
    Py_ssize_t n, n_lanes, start, stop, block
    double per_limit
    double[16] scale
    int n_classes, width
    int64_t* work
    double* masses
    int32_t next, n_parts


cdef bint roots_part(void* task, int who) noexcept nogil:
    cdef Roots* all = <Roots*>task
    cdef int64_t* words = <int64_t*>((<uintptr_t>(all.work + <Py_ssize_t>who * WORDS_OF_BLOCK) + 63) & ~<uintptr_t>63)
    cdef double* masses = all.masses + <Py_ssize_t>who * all.n_lanes * MAX_BINS * 2 * all.width
    cdef Py_ssize_t k, start
    cdef bint did = False
    while load(&all.next) < all.n_parts:
        k = plus(&all.next, 1)
        if k >= all.n_parts:
            break
        start = all.start + k * all.block
        passes.roots(
            all.groups, all.n, all.bins, all.n_lanes, all.residual, all.weight, all.are_copies, start,
            min(all.stop, start + all.block), all.per_limit, all.scale, all.n_classes, words, masses,
            all.width)
        did = True
    return did


def count_roots(
    const uint8_t[:, :, ::1] groups, const int32_t[::1] bins, const double[:, ::1] residual, weight,
    bint are_copies, Py_ssize_t block, double per_limit, const double[::1] steepest,
    const double[::1] most, Py_ssize_t start, Py_ssize_t stop, int64_t[:, ::1] work,
    double[:, :, :, :, ::1] masses, size_t team=0
):
    """Add rows of positive weight to the masses by bin of the roots of as many classes as are given.

    IN groups (ceil(n_lanes / 8), n, 8): codes, bins (n_lanes,), residual (k, n), weight (n,) or None,
    `block`: rows whose words have room together, steepest and most (k,); `start` and `stop`: which rows; WORK
    work (n_threads, WORK); IN/OUT masses (n_threads, n_lanes, 256, 2, 2 or 4 or 8): gradients and curvatures of
    classes, in the units of their words, of the rows of each thread; 0 before the
    first. team: where the threads are that share the rows, a block at a time.
    """
    cdef Py_ssize_t n = groups.shape[1], n_lanes = bins.shape[0], k, n_classes = residual.shape[0]
    cdef Py_ssize_t width = masses.shape[4]
    cdef Threads* helpers = team_at(team)
    cdef Py_ssize_t n_threads = 1 if helpers == NULL else helpers.n_threads
    cdef Roots all
    if (groups.shape[0] * 8 < n_lanes or groups.shape[2] != 8 or residual.shape[1] != n or steepest.shape[0] != n_classes
            or most.shape[0] != n_classes or not 0 <= start < stop <= n or n_classes < 1
            or not (width == 2 or width == 4 or width == 8) or n_classes > width
            or masses.shape[1] != n_lanes or masses.shape[2] != MAX_BINS or masses.shape[3] != 2
            or masses.shape[0] < n_threads or work.shape[0] < n_threads
            or work.shape[1] != WORDS_OF_BLOCK or not 1 <= block <= ROWS_OF_BLOCK):
        raise ValueError("count_roots: arrays of different sizes")
    all.weight = NULL
    if weight is not None:
        all.weight = <const double*>address(weight)
    for k in range(n_classes):
        all.scale[2 * k] = power_below(steepest[k], OF_GRADIENT)
        all.scale[2 * k + 1] = power_below(most[k], OF_CURVATURE)
    all.groups, all.n, all.bins, all.n_lanes = &groups[0, 0, 0], n, &bins[0], n_lanes
    all.residual, all.are_copies, all.per_limit = &residual[0, 0], are_copies, per_limit
    all.start, all.stop, all.block = start, stop, block
    all.n_classes, all.width, all.work, all.masses = <int>n_classes, <int>width, &work[0, 0], &masses[0, 0, 0, 0, 0]
    all.next, all.n_parts = 0, <int32_t>((stop - start + block - 1) // block)
    with nogil:
        in_parts(helpers, roots_part, &all)


cdef void in_parts(Threads* team, Work part, void* task) noexcept nogil:
    """Have all threads take parts of a task until there are none."""
    if team != NULL:
        open_post(team, 1, part, task)
    part(task, 0)
    if team != NULL:
        close_post(team, 1, 0)
