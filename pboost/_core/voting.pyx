"""Votes and weight updates, keys of open nodes, and class probabilities.

Other kernels compute votes, keys and children with the same functions: see `_vote.pxd`, `_heap.pxd` and
`_side.pxd`.
"""
from libc.math cimport exp, frexp, ldexp

import numpy as np

from pboost._core cimport _heap, _vote
from pboost._core._fixed cimport LEAST_WEIGHT, rounded
from pboost._core._side cimport code_goes_right
from pboost._core._sum cimport sum_of
from pboost._core._team cimport SHARE, lock, run_ranges, team_at, unlock
from pboost._core.types cimport MAX_BINS, int32_t, int64_t, row_of, uint8_t

# Compute votes of exits. The split step computes the votes and the weight factors from class weights.

#: The kinds of votes.
VOTES = ("domain", "symmetric")
#: Relative difference up to which the weights of two classes count as equal.
TIE = 1e-12
#: Votes with a smaller absolute value do not change weights.
NO_VOTE = 1e-12
#: The largest absolute value of a vote before it is multiplied by the learning rate.
VOTE_LIMIT = _vote.VOTE_LIMIT


def half_log_odds(double positive, double negative, double smoothing):
    """Return half the log odds of two weights plus `smoothing`, clipped to +-0.5 ln(2**52)."""
    return _vote.half_log_odds(positive, negative, smoothing)


cdef class SplitStep:
    """Votes of the two exits of a weak classifier, and their effect on the weights.

    Attributes
    ----------
    votes : tuple of float
        Votes of exit 0 and exit 1.
    shrink : float
        Sum of the weights after the step divided by their sum before the step; Z in AdaBoost.
    perfect : bool
        Whether all rows of each exit have the same class.
    factors : ndarray of float64, shape (2, 2)
        Factors of the weights by exit and class. They do not change the sum of the weights.
    """

    cdef readonly tuple votes
    cdef readonly double shrink
    cdef readonly bint perfect
    cdef readonly object factors


cdef class VoteRule:
    """Rule that computes votes from class weights.

    Parameters
    ----------
    kind : {"domain", "symmetric"}
        "domain": each exit has a vote that depends on its own class weights. "symmetric": both exits have
        the same absolute vote, and each vote has the sign of the majority class.
    smoothing : float
        Added to each class weight, as a fraction of the weight of the node.
    learning_rate : float
        Factor of every vote.
    """

    cdef readonly str kind
    cdef readonly double smoothing
    cdef readonly double learning_rate

    def __init__(self, str kind, double smoothing, double learning_rate):
        self.kind, self.smoothing, self.learning_rate = kind, smoothing, learning_rate

    def step(self, masses):
        """Return the split step for the class weights of each exit (Schapire & Singer 1999, section 4)."""
        cdef double n0, p0, n1, p1, total, delta, below, above, wrong, size, tie = TIE
        (n0, p0), (n1, p1) = masses
        total = n0 + p0 + n1 + p1
        delta = self.smoothing * total
        if self.kind == "domain":
            below = _vote.half_log_odds(p0, n0, delta)
            above = _vote.half_log_odds(p1, n1, delta)
        else:
            wrong = min(n0, p0) + min(n1, p1)
            size = _vote.half_log_odds(total - wrong, wrong, delta)
            tie *= total
            below = size if p0 - n0 > tie else -size
            above = size if p1 - n1 > tie else -size
        return _step(n0, p0, n1, p1, self.learning_rate * below, self.learning_rate * above)


def step_of(masses, votes):
    """Return the split step for given votes and the class weights of each exit."""
    cdef double n0, p0, n1, p1, below, above
    (n0, p0), (n1, p1) = masses
    below, above = votes
    return _step(n0, p0, n1, p1, below, above)


cdef SplitStep _step(double n0, double p0, double n1, double p1, double below, double above):
    cdef double by[2][2]
    cdef double after, total = n0 + p0 + n1 + p1
    cdef double[:, ::1] factors
    cdef SplitStep step = SplitStep.__new__(SplitStep)
    cdef int i, k
    by[0][0], by[0][1], by[1][0], by[1][1] = exp(below), exp(-below), exp(above), exp(-above)
    after = n0 * by[0][0] + p0 * by[0][1] + n1 * by[1][0] + p1 * by[1][1]
    step.votes = below, above
    step.shrink = after / total if total != 0.0 else 1.0
    step.perfect = min(n0, p0) == 0.0 and min(n1, p1) == 0.0
    step.factors = factors = np.empty((2, 2))
    for i in range(2):
        for k in range(2):
            factors[i, k] = by[i][k] / step.shrink
    return step


# Keys of open nodes.

def rounded_key(double key):
    """Round a key to 41 significant bits; ties are rounded away from 0."""
    return _heap.rounded(key)


def decrease(double before, double lowered):
    """Return the rounded key of a split that lowers the criterion from `before` by `lowered`."""
    return _heap.decrease(before, lowered)


# Update the weights of all rows after a stump has been chosen.
#
# weight <- source * factor[side, class]: a stump has only four factors, so no exponential is needed per
# row. The side of a row follows from its bin code. The rows of the bin that contains the threshold are
# updated in sorted order by a second kernel. `fixed` is `weight * scale`, rounded. For random outcomes,
# `reweight_rows` uses one factor per row, and `exit_sums` sums the weights of each exit.
#
# Rows 0..n_negative-1 are class -1. `source` and `weight` may be the same array.

cdef enum:
    MOST_EXPONENT = 1000  # up to this exponent, powers of two are normal float64 numbers
cdef enum:
    FIXED_BITS = 61  # the sum of fixed-point weights is less than 2**FIXED_BITS
cdef enum:
    SURE_BITS = 40  # number of reliable bits of a sum of weights
cdef enum:
    FINER = 1 << 30  # rounding errors are counted in units smaller by this factor


cdef inline int64_t reweight_class(
    const uint8_t* codes, const double* factor, double scale, const double* scale_of,
    Py_ssize_t start, Py_ssize_t stop, const double* source, double* weight, int64_t* fixed,
) noexcept nogil:
    """Multiply the weights of rows of one class by the factors of their codes.

    Return the fixed-point sum.

    `scale_of` contains the scale of each code, or is NULL if all scales are the same.
    """
    cdef Py_ssize_t i
    cdef int64_t mass = 0
    if scale_of == NULL:
        for i in range(start, stop):
            weight[i] = max(source[i] * factor[codes[i]], LEAST_WEIGHT)
            fixed[i] = rounded(weight[i] * scale)
            mass += fixed[i]
        return mass
    for i in range(start, stop):
        weight[i] = max(source[i] * factor[codes[i]], LEAST_WEIGHT)
        fixed[i] = rounded(weight[i] * scale_of[codes[i]])
        mass += fixed[i]
    return mass


# The rows to be updated, which begin at row `start`, and the sums of each class.
cdef struct Reweight:
    double[2][MAX_BINS] by_code
    double[MAX_BINS] scale_of
    const double* scales
    const uint8_t* codes
    const double* source
    double* weight
    int64_t* fixed
    double scale
    Py_ssize_t n_negative, start
    int64_t[2] mass
    int32_t in_hand


cdef void reweight_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Reweight* all = <Reweight*>task
    cdef Py_ssize_t first = all.start + start, last = all.start + stop
    cdef Py_ssize_t middle = min(max(all.n_negative, first), last)
    cdef int64_t negative, positive
    negative = reweight_class(all.codes, all.by_code[0], all.scale, all.scales, first, middle, all.source,
                              all.weight, all.fixed)
    positive = reweight_class(all.codes, all.by_code[1], all.scale, all.scales, middle, last, all.source,
                              all.weight, all.fixed)
    lock(&all.in_hand)
    all.mass[0] += negative
    all.mass[1] += positive
    unlock(&all.in_hand)


def reweight(
    const uint8_t[::1] codes, int cut_bin, bint leave_bin, Py_ssize_t n_negative,
    const double[:, ::1] factor, double scale, const double[::1] source, double[::1] weight,
    int64_t[::1] fixed, Py_ssize_t start, Py_ssize_t stop, size_t team=0, const uint8_t[::1] side=None,
):
    """Update the weights of the rows start..stop-1 by their bin codes.

    Rows of `cut_bin` go to the left. If `leave_bin` is true, they keep their weights and count as 0; then
    call `reweight_bin`. IN codes (n,) of the split feature, factor (2 sides, 2 classes), source; team:
    address of the threads, which process the rows together; side (256,): the side of each code, or None if
    codes above `cut_bin` go to the right; OUT weight, fixed. Returns the fixed-point weights of class -1
    and of class +1 in these rows.
    """
    cdef Reweight all
    cdef Py_ssize_t n = weight.shape[0]
    cdef int b, k
    if (not (0 <= start <= stop <= n) or codes.shape[0] != n or source.shape[0] != n
            or fixed.shape[0] != n or factor.shape[0] < 2 or factor.shape[1] != 2
            or (side is not None and side.shape[0] != MAX_BINS)):
        raise ValueError("reweight: arrays of different sizes")
    if not n:
        return 0, 0
    if side is not None:
        for b in range(MAX_BINS):
            if side[b] >= factor.shape[0]:
                raise ValueError("reweight: expected factors of every side")
    all.codes, all.source, all.weight, all.fixed = &codes[0], &source[0], &weight[0], &fixed[0]
    all.scale, all.scales, all.n_negative, all.start = scale, NULL, n_negative, start
    all.mass[0] = all.mass[1] = all.in_hand = 0
    with nogil:
        for k in range(2):
            for b in range(MAX_BINS):
                all.by_code[k][b] = factor[code_goes_right(b, cut_bin), k]
                if side is not None:
                    all.by_code[k][b] = factor[side[b], k]
                all.scale_of[b] = scale
            if leave_bin:
                all.by_code[k][cut_bin] = 1.0
        if leave_bin:
            # The old weights may be too large for the new scale.
            all.scale_of[cut_bin] = 0.0
            all.scales = all.scale_of
        run_ranges(team_at(team), 0, stop - start, SHARE, reweight_part, &all)
    return all.mass[0], all.mass[1]


def reweight_bin(
    const int32_t[::1] order, Py_ssize_t start, Py_ssize_t position, Py_ssize_t stop,
    Py_ssize_t n_negative, const double[:, ::1] factor, double scale, double[::1] weight,
    int64_t[::1] fixed,
):
    """Update the weights of the rows of the bin that contains the threshold: the sorted rows start..stop-1.

    The rows at `position` and after it go to the right. INOUT weight, initially the source weights; OUT
    fixed. Returns the fixed-point weights of class -1 and of class +1.
    """
    cdef Py_ssize_t i
    cdef int64_t[2] mass
    cdef int32_t row
    cdef int k
    mass[0] = mass[1] = 0
    with nogil:
        for i in range(start, stop):
            row = row_of(order[i])
            k = row >= n_negative
            weight[row] = max(weight[row] * factor[i >= position, k], LEAST_WEIGHT)
            fixed[row] = rounded(weight[row] * scale)
            mass[k] += fixed[row]
    return mass[0], mass[1]


def reweight_rows(
    const double[::1] above, Py_ssize_t n_negative, const double[:, ::1] coefficient, double scale,
    const double[::1] source, double[::1] weight, int64_t[::1] fixed, Py_ssize_t start,
    Py_ssize_t stop,
):
    """Update the weights of the rows start..stop-1, each with its own factor.

    IN above (n,): the probability of exit 1, or minus the probability of exit 0, which is more precise if
    this probability is small; coefficient (2 exits, 2 classes), source; OUT weight, fixed. Returns the
    fixed-point weights of class -1 and of class +1 in these rows.
    """
    cdef Py_ssize_t i, n = weight.shape[0]
    cdef int64_t[2] mass
    cdef double to_above, to_below
    cdef int k
    if (not (0 <= start <= stop <= n) or above.shape[0] != n or source.shape[0] != n
            or fixed.shape[0] != n or coefficient.shape[0] != 2 or coefficient.shape[1] != 2):
        raise ValueError("reweight_rows: arrays of different sizes")
    mass[0] = mass[1] = 0
    with nogil:
        for i in range(start, stop):
            k = i >= n_negative
            to_above = above[i] if above[i] >= 0.0 else 1.0 + above[i]
            to_below = 1.0 - above[i] if above[i] >= 0.0 else -above[i]
            weight[i] = max(
                source[i] * (to_below * coefficient[0, k] + to_above * coefficient[1, k]),
                LEAST_WEIGHT)
            fixed[i] = rounded(weight[i] * scale)
            mass[k] += fixed[i]
    return mass[0], mass[1]


def exit_sums(
    const double[::1] above, const double[::1] weight, Py_ssize_t n_negative, double scale,
    Py_ssize_t start, Py_ssize_t stop, int64_t[:, :, ::1] sums,
):
    """Sum the expected weight of each exit over the rows start..stop-1, in units of ``1 / scale``.

    IN above as in `reweight_rows`; OUT sums (exit, class, 2): whole units, and rounding errors in units of
    2**-30. Both are integers, so they do not depend on the order of the rows.
    """
    cdef Py_ssize_t i, k, n = weight.shape[0]
    cdef double share
    cdef int64_t whole
    cdef int64_t[2][2] below_sum
    cdef int64_t[2][2] above_sum
    if (above.shape[0] != n or not 0 <= start <= stop <= n or sums.shape[0] != 2
            or sums.shape[1] != 2 or sums.shape[2] != 2):
        raise ValueError("exit_sums: arrays of different sizes")
    with nogil:
        for k in range(2):
            below_sum[k][0] = below_sum[k][1] = above_sum[k][0] = above_sum[k][1] = 0
            for i in range(max(start, n_negative) if k else start,
                           stop if k else min(stop, n_negative)):
                share = weight[i] * scale * (above[i] if above[i] >= 0.0 else 1.0 + above[i])
                whole = <int64_t>share
                above_sum[k][0] += whole
                above_sum[k][1] += <int64_t>((share - <double>whole) * FINER)
                share = weight[i] * scale * (1.0 - above[i] if above[i] >= 0.0 else -above[i])
                whole = <int64_t>share
                below_sum[k][0] += whole
                below_sum[k][1] += <int64_t>((share - <double>whole) * FINER)
            for i in range(2):
                sums[0, k, i], sums[1, k, i] = below_sum[k][i], above_sum[k][i]


def to_fixed(const double[::1] weight, double scale, int64_t[::1] fixed):
    """Compute fixed = weight * scale, rounded, and return the sum of `fixed`."""
    cdef Py_ssize_t i, n = weight.shape[0]
    cdef int64_t total = 0
    if fixed.shape[0] != n:
        raise ValueError("to_fixed: arrays of different sizes")
    with nogil:
        for i in range(n):
            fixed[i] = rounded(weight[i] * scale)
            total += fixed[i]
    return total


def scale_weights(
    const double[::1] source, const int32_t[::1] rows, double[::1] weight, int64_t[::1] fixed,
    bint in_any_order=False,
):
    """Scale the weights of the listed rows by a power of two, so that the largest is in [1/2, 1).

    IN source: at least one of these weights is > 0; rows (n,), or None for all. OUT weight (n,); fixed
    (n,): weight times a second power of two, rounded. Returns the negated exponent of the first power, and
    the second power, which depends on the sum of the weights. If `in_any_order` is true, this sum does not
    depend on the order of the rows.
    """
    cdef Py_ssize_t i, n = weight.shape[0]
    cdef int exponent = 0, of_sum = 0, shift = FIXED_BITS
    cdef double most = 0.0, factor, scale
    cdef int64_t total = 0
    cdef const int32_t* listed = NULL
    if fixed.shape[0] != n or n != (source.shape[0] if rows is None else rows.shape[0]) or n == 0:
        raise ValueError("scale_weights: arrays of different sizes")
    if rows is not None:
        listed = &rows[0]
    with nogil:
        for i in range(n):
            weight[i] = source[i] if listed == NULL else source[listed[i]]
            most = max(most, weight[i])
        frexp(most, &exponent)
        if -MOST_EXPONENT <= exponent <= MOST_EXPONENT:
            factor = ldexp(1.0, -exponent)
            for i in range(n):
                weight[i] *= factor
        else:
            for i in range(n):
                weight[i] = ldexp(weight[i], -exponent)
        if in_any_order:
            while (n >> (FIXED_BITS - shift)) > 0:  # the sum stays below 2**FIXED_BITS
                shift -= 1
            factor = ldexp(1.0, shift)
            for i in range(n):
                total += rounded(weight[i] * factor)
            # If the sum is a power of two up to rounding, such as 1, treat it as this power.
            total += total >> SURE_BITS
            while (total >> of_sum) > 0:
                of_sum += 1
            of_sum -= shift
        else:
            frexp(sum_of(&weight[0], n), &of_sum)
        scale = ldexp(1.0, FIXED_BITS - of_sum)
        for i in range(n):
            fixed[i] = rounded(weight[i] * scale)
    return exponent, scale


# Compute the probabilities of two classes from decision values, which are half the log odds.

cdef extern from "link_simd.h" nogil:
    ctypedef void (*LinkKernel "pboost_link_kernel")(
        const double* score, Py_ssize_t n, double* shares
    )
    LinkKernel pboost_choose_link(int most)

cdef LinkKernel link_kernel = pboost_choose_link(2)


def use_simd_level(int most):
    """Choose the SIMD instructions for tests: 0 for baseline, 1 for AVX2 or 2 for AVX-512."""
    global link_kernel
    link_kernel = pboost_choose_link(most)


def two_shares(const double[::1] score, double[:, ::1] shares):
    """Compute the probabilities (n, 2) of two classes from half their log odds, `score`.

    If both round to 1/2, the probability of the predicted class (the second if score > 0) is increased by
    one unit in the last place.
    """
    if score.shape[0] > 0:
        with nogil:
            link_kernel(&score[0], score.shape[0], &shares[0, 0])
