# What a leaf of a boosted sum adds: one Newton step, or the step of least loss on its rows.
#
# Derivatives are added up as integers, in a unit of the leaf's own, so that sums have no order and a row
# elsewhere has no part in them.
from libc.math cimport INFINITY, fabs, frexp, ldexp

from pboost._core._vote cimport half_log_odds
from pboost._core.types cimport int32_t, int64_t

cdef extern from "boost_loss.h" nogil:
    """
    /* The length of the next Newton step, as a share of where it leads, that is not taken any more; and
       the step that is so small that no more than an absolute precision is asked for. */
    #define PBOOST_NEAR_STEP 1e-8
    #define PBOOST_TINY_STEP 1e-6
    /* Relative width at which a search ends. */
    #define PBOOST_WIDTH 1e-13
    """
    enum: EXPONENTIAL "PBOOST_EXPONENTIAL"
    enum: LOGISTIC "PBOOST_LOGISTIC"
    enum: SQUARED "PBOOST_SQUARED"
    enum: PROBIT "PBOOST_PROBIT"
    const double NEAR_STEP "PBOOST_NEAR_STEP"
    const double TINY_STEP "PBOOST_TINY_STEP"
    const double WIDTH "PBOOST_WIDTH"
    ctypedef struct Rows "pboost_rows":
        int loss
        double per_limit
        const double* y
        const double* f
        const double* weight
    ctypedef struct LossPasses "pboost_loss_passes":
        double (*farthest)(const Rows* rows, Py_ssize_t n) noexcept nogil
        void (*slopes)(
            const Rows* rows, Py_ssize_t n, double scale, double* gradient, double* curvature,
            double* found) noexcept nogil
        void (*pack)(
            const int64_t* gradient, const double* curvature, const int32_t* rows, Py_ssize_t n,
            double gradient_scale, double curvature_scale, int64_t* packed) noexcept nogil
        void (*sums)(
            const Rows* rows, Py_ssize_t n, double step, int is_raised, const double* scale,
            double* found) noexcept nogil
    LossPasses pboost_choose_loss_passes(int level)
    void pboost_derivatives(
        int loss, const double* u, Py_ssize_t n, int wants_value, double* slope, double* bend,
        double* value)

# The rows of a leaf, one after another, and where the derivatives are to be found.
cdef struct Leaf:
    Rows rows
    Py_ssize_t n
    const LossPasses* passes
    double heaviest, farthest, l2, most
    double slope, bend  # at the step looked at last, the integers, too
    double[2] whole, scale


cdef inline double scale_of(double most, Py_ssize_t n) noexcept nogil:
    """The power of two that brings n numbers of this size to integers whose sum float64 holds."""
    cdef int exponent, bits = 51
    if not most > 0.0:
        return 1.0
    frexp(most, &exponent)
    while n > 2:
        n = (n + 1) // 2
        bits -= 1
    return ldexp(1.0, min(bits - exponent, 1000))


cdef inline void look_at(Leaf* leaf, double step, bint is_raised) noexcept nogil:
    """The slope and the curvature of the loss of a leaf that adds `step`."""
    cdef double u = leaf.farthest, steepest, most, ignored
    # No margin is smaller, no residual larger.
    u = u + fabs(step) if leaf.rows.loss == SQUARED else u - fabs(step)
    pboost_derivatives(leaf.rows.loss, &u, 1, 0, &steepest, &most, &ignored)
    steepest = fabs(steepest)
    if leaf.rows.loss == LOGISTIC:
        most = steepest  # p (1 - p) is no more than 1 - p
    if is_raised:
        most = max(most, steepest * leaf.rows.per_limit)
    leaf.scale[0] = scale_of(2.0 * leaf.heaviest * steepest, leaf.n)
    leaf.scale[1] = scale_of(2.0 * leaf.heaviest * most, leaf.n)
    leaf.passes.sums(&leaf.rows, leaf.n, step, is_raised, leaf.scale, leaf.whole)
    leaf.slope = leaf.whole[0] / leaf.scale[0] + leaf.l2 * step
    leaf.bend = leaf.whole[1] / leaf.scale[1] + leaf.l2


cdef inline double bounded(const Leaf* leaf, double step) noexcept nogil:
    return min(max(step, -leaf.most), leaf.most)


cdef inline double newton_step(Leaf* leaf) noexcept nogil:
    look_at(leaf, 0.0, True)
    return bounded(leaf, -leaf.slope / leaf.bend) if leaf.bend > 0.0 else 0.0


cdef inline double solve(Leaf* leaf, double guess) noexcept nogil:
    """Newton steps, kept between the bounds that the signs of slopes have shown."""
    cdef double at = bounded(leaf, guess), low = -leaf.most, high = leaf.most
    cdef double following, moved, before = INFINITY, next_
    cdef bint inside
    cdef bint[2] seen  # whether the ends have been looked at
    cdef int round_
    seen[0], seen[1] = at == low, at == high
    look_at(leaf, at, False)
    for round_ in range(200):
        if leaf.slope == 0.0 or (leaf.slope < 0.0 and at == leaf.most) or (
                leaf.slope > 0.0 and at == -leaf.most):
            return at
        if leaf.slope < 0.0:
            low = at
        else:
            high = at
        following = at - leaf.slope / leaf.bend if leaf.bend > 0.0 else (
            INFINITY if leaf.slope < 0.0 else -INFINITY)
        inside = low < following < high
        if not inside:
            # An end that has not been looked at is, before the middle.
            if following >= leaf.most and not seen[1]:
                following, seen[1] = leaf.most, True
            elif following <= -leaf.most and not seen[0]:
                following, seen[0] = -leaf.most, True
            else:
                following = low + (high - low) / 2
        moved = fabs(following - at)
        at = following
        # Steps become shorter by squares: the next is about that.
        next_ = moved
        if 4.0 * moved < before < INFINITY:
            next_ = moved * (moved / before) * (moved / before)
        before = moved if inside else INFINITY
        if inside and next_ <= NEAR_STEP * max(fabs(at), TINY_STEP):
            return at
        if high - low <= WIDTH * fabs(at):
            return at
        look_at(leaf, at, False)
    return at


cdef inline double best_step(Leaf* leaf, double guess) noexcept nogil:
    """The step of least loss, within the bound; `guess` is near it."""
    cdef double[2] mass
    if leaf.rows.loss == SQUARED:
        return newton_step(leaf)
    if leaf.rows.loss == EXPONENTIAL and leaf.l2 == 0.0:
        look_at(leaf, 0.0, False)
        # Of each class, in half units: gradients are -y times the curvatures.
        mass[0], mass[1] = leaf.whole[1] + leaf.whole[0], leaf.whole[1] - leaf.whole[0]
        return bounded(leaf, half_log_odds(mass[1], mass[0], 0.0))
    return solve(leaf, guess)
