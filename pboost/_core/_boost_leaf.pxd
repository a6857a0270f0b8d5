# What a leaf of a boosted sum adds: one Newton step, or the step of least loss on its rows.
#
# Derivatives are added up as integers, in a unit of the leaf's own, so that sums have no order and a row
# elsewhere has no part in them.
from libc.math cimport INFINITY, fabs, frexp, ldexp, log1p, rint

from pboost._core._boost_kink cimport kink_step
from pboost._core._team cimport Threads, lock, run_ranges, unlock
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
    /* Share of all slopes that counts as none. */
    #define PBOOST_FLAT 1e-13
    """
    enum: EXPONENTIAL "PBOOST_EXPONENTIAL"
    enum: LOGISTIC "PBOOST_LOGISTIC"
    enum: SQUARED "PBOOST_SQUARED"
    enum: PROBIT "PBOOST_PROBIT"
    enum: POISSON "PBOOST_POISSON"
    enum: SHARES "PBOOST_SHARES"
    enum: HINGE "PBOOST_HINGE"
    enum: ABSOLUTE "PBOOST_ABSOLUTE"
    enum: QUANTILE "PBOOST_QUANTILE"
    enum: HUBER "PBOOST_HUBER"
    const double NEAR_STEP "PBOOST_NEAR_STEP"
    const double TINY_STEP "PBOOST_TINY_STEP"
    const double WIDTH "PBOOST_WIDTH"
    const double FLAT "PBOOST_FLAT"
    ctypedef struct Rows "pboost_rows":
        int loss, are_copies
        double per_limit, parameter
        const double* y
        const double* f
        const double* weight
    ctypedef struct Far "pboost_far":
        double u, y, size
    ctypedef struct LossPasses "pboost_loss_passes":
        void (*farthest)(const Rows* rows, Py_ssize_t n, Far* far) noexcept nogil
        void (*slopes)(
            const Rows* rows, Py_ssize_t n, double scale, double* gradient, double* curvature,
            double* found) noexcept nogil
        void (*pack)(
            const int64_t* gradient, const double* curvature, const double* copies,
            const int32_t* rows, Py_ssize_t n, double gradient_scale, double curvature_scale, int64_t* packed) noexcept nogil
        void (*sums)(
            const Rows* rows, Py_ssize_t n, double step, int is_raised, const double* scale,
            double* found) noexcept nogil
    LossPasses pboost_choose_loss_passes(int level)
    bint IS_OF_MARGIN "PBOOST_IS_OF_MARGIN"(int loss)
    void pboost_bounds(
        const Rows* rows, const Far* far, double step, double* steepest, double* most, double* value)

# Bits of a gradient and of a curvature in a word.
cdef enum:
    OF_GRADIENT = 18
cdef enum:
    OF_CURVATURE = 19

# The rows of a leaf, one after another, and where the derivatives are to be found. `team` are the threads
# that share the leaf, `share` rows at a time, on the side of `who`; NULL: one.
cdef struct Leaf:
    Rows rows
    Py_ssize_t n, n_copies, share
    Threads* team
    int who
    const LossPasses* passes
    Far far
    double heaviest, l2, most, tiny
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


cdef inline Rows rows_from(const Rows* rows, Py_ssize_t start) noexcept nogil:
    cdef Rows own = rows[0]
    own.y += start
    own.f += start
    if own.weight != NULL:
        own.weight += start
    return own


# What a thread finds of some rows of a leaf is taken in by who has the leaf in hand.
cdef struct Look:
    Leaf* leaf
    double step
    bint is_raised
    int32_t in_hand


cdef inline void sums_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Look* look = <Look*>task
    cdef Leaf* leaf = look.leaf
    cdef Rows own = rows_from(&leaf.rows, start)
    cdef double[2] found
    leaf.passes.sums(&own, stop - start, look.step, look.is_raised, leaf.scale, found)
    lock(&look.in_hand)
    leaf.whole[0] += found[0]
    leaf.whole[1] += found[1]
    unlock(&look.in_hand)


cdef inline void take_far(const Rows* rows, Far* far, const Far* more) noexcept nogil:
    """Of the rows of both."""
    far.u = min(far.u, more.u) if IS_OF_MARGIN(rows.loss) else max(far.u, more.u)
    far.y = max(far.y, more.y)
    far.size = max(far.size, more.size)


cdef inline Far no_far(const Rows* rows) noexcept nogil:
    """Of no rows."""
    cdef Far far
    far.u = INFINITY if IS_OF_MARGIN(rows.loss) else -INFINITY
    far.y = far.size = -INFINITY
    return far


cdef inline double power_below(double most, int bits) noexcept nogil:
    """The power of two that brings numbers of this size below 2**bits, when they are rounded, too."""
    cdef int exponent
    if not most > 0.0:
        return 1.0
    if frexp(most, &exponent) * ldexp(1.0, bits) >= ldexp(1.0, bits) - 0.5:
        exponent += 1
    return ldexp(1.0, min(bits - exponent, 1000))


cdef inline void look_at(Leaf* leaf, double step, bint is_raised) noexcept nogil:
    """The slope and the curvature of the loss of a leaf that adds `step`."""
    cdef double steepest, most, ignored
    cdef Look look
    pboost_bounds(&leaf.rows, &leaf.far, step, &steepest, &most, &ignored)
    if is_raised:
        most = max(most, steepest * leaf.rows.per_limit)
    leaf.scale[0] = scale_of(2.0 * leaf.heaviest * steepest, leaf.n_copies)
    leaf.scale[1] = scale_of(2.0 * leaf.heaviest * most, leaf.n_copies)
    look.leaf, look.step, look.is_raised, look.in_hand = leaf, step, is_raised, 0
    leaf.whole[0] = leaf.whole[1] = 0.0
    run_ranges(leaf.team, leaf.who, leaf.n, leaf.share, sums_part, &look)
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
        # Steps become shorter by squares: the next is about that. Curvatures that jump have no next.
        next_ = moved
        if leaf.rows.loss != HUBER and 4.0 * moved < before < INFINITY:
            next_ = moved * (moved / before) * (moved / before)
        before = moved if inside else INFINITY
        if inside and next_ <= NEAR_STEP * (
                leaf.tiny if leaf.rows.loss == HUBER else max(fabs(at), leaf.tiny)):
            return at
        if high - low <= WIDTH * fabs(at):
            return at
        look_at(leaf, at, False)
    return at


cdef inline double log_ratio(Leaf* leaf) noexcept nogil:
    """The logarithm of what the targets of a leaf are by what they are expected to be."""
    cdef double share
    look_at(leaf, 0.0, False)
    share = leaf.slope / leaf.bend if leaf.bend > 0.0 else -INFINITY
    return log1p(-share) if leaf.far.y > 0.0 and share < 1.0 else -INFINITY


cdef inline double kink_of(Leaf* leaf) noexcept nogil:
    """The kink, y - f of a row, where the loss of a leaf is least; its arrays are changed."""
    cdef double* residual = <double*>leaf.rows.y
    cdef double* weight = <double*>leaf.rows.weight
    cdef double total = leaf.n, above = 0.0, scale = 1.0, wanted, flat = 0.0
    cdef Py_ssize_t i
    if weight != NULL and leaf.rows.are_copies:
        total = leaf.n_copies
    elif weight != NULL:
        scale, total, flat = scale_of(2.0 * leaf.heaviest, leaf.n), 0.0, leaf.n
        for i in range(leaf.n):
            weight[i] = rint(weight[i] * scale)
            total += weight[i]
    if leaf.rows.loss == HINGE:
        for i in range(leaf.n):
            if residual[i] > 0.0:
                above += 1.0 if weight == NULL else weight[i]
    for i in range(leaf.n):
        residual[i] = residual[i] - leaf.rows.f[i]
    wanted = above
    if leaf.rows.loss != HINGE:
        wanted = total * (0.5 if leaf.rows.loss == ABSOLUTE else leaf.rows.parameter)
    if leaf.rows.loss == ABSOLUTE:
        scale = 0.5 * scale  # of half the loss
    return kink_step(residual, weight, leaf.n, wanted, flat + FLAT * total, leaf.l2 * scale)


cdef inline double best_step(Leaf* leaf, double guess) noexcept nogil:
    """The step of least loss, within the bound; `guess` is near it."""
    cdef double[2] mass
    if leaf.rows.loss == SQUARED:
        return newton_step(leaf)
    if leaf.rows.loss >= HINGE and leaf.rows.loss != HUBER:
        return bounded(leaf, kink_of(leaf))
    if leaf.rows.loss == POISSON and leaf.l2 == 0.0:
        return bounded(leaf, log_ratio(leaf))
    if leaf.rows.loss == EXPONENTIAL and leaf.l2 == 0.0:
        look_at(leaf, 0.0, False)
        # Of each class, in half units: gradients are -y times the curvatures.
        mass[0], mass[1] = leaf.whole[1] + leaf.whole[0], leaf.whole[1] - leaf.whole[0]
        return bounded(leaf, half_log_odds(mass[1], mass[0], 0.0))
    return solve(leaf, guess)
