# The value of a leaf: one Newton step, or the step that minimizes the loss of its rows.
#
# Gradients and Hessians are scaled for each leaf, rounded to integers and summed. The sums do not depend on
# the order of the rows or on rows outside the leaf.
from libc.math cimport INFINITY, fabs, frexp, ldexp, log1p, rint

from pboost._core._boost_kink cimport kink_step
from pboost._core._team cimport Threads, lock, run_ranges, unlock
from pboost._core._vote cimport half_log_odds
from pboost._core.types cimport int32_t, int64_t

cdef extern from "boost_loss.h" nogil:
    """
    /* A search stops if the next Newton step is shorter than PBOOST_NEAR_STEP times the current step.
       Below PBOOST_TINY_STEP, this tolerance is absolute. */
    #define PBOOST_NEAR_STEP 1e-8
    #define PBOOST_TINY_STEP 1e-6
    /* Tolerance of a search, relative to the largest residual, if the loss has no unit. */
    #define PBOOST_OF_RESIDUAL 0.01
    /* Relative width of the bracket at which a search stops. */
    #define PBOOST_WIDTH 1e-13
    /* Share of the total weight below which a sum counts as zero. */
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
    enum: TWEEDIE "PBOOST_TWEEDIE"
    enum: GAMMA "PBOOST_GAMMA"
    enum: EXPECTILE "PBOOST_EXPECTILE"
    enum: MAPE "PBOOST_MAPE"
    enum: N_LOSSES "PBOOST_N_LOSSES"
    const char* loss_name "pboost_loss_name"(int loss)
    const double NEAR_STEP "PBOOST_NEAR_STEP"
    const double TINY_STEP "PBOOST_TINY_STEP"
    const double OF_RESIDUAL "PBOOST_OF_RESIDUAL"
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
    ctypedef void (*WordsPass "pboost_words_pass")(
        const double* residual, const double* weight, int are_copies, const int32_t* rows, Py_ssize_t n,
        double per_limit, double gradient_scale, double curvature_scale, int64_t* packed) noexcept nogil
    ctypedef struct LossPasses "pboost_loss_passes":
        void (*farthest)(const Rows* rows, Py_ssize_t n, Far* far) noexcept nogil
        void (*slopes)(
            const Rows* rows, Py_ssize_t n, double scale, double* gradient, double* curvature,
            double* found) noexcept nogil
        void (*pack)(
            const int64_t* gradient, const double* curvature, const double* copies,
            const int32_t* rows, Py_ssize_t n, double gradient_scale, double curvature_scale, int64_t* packed) noexcept nogil
        WordsPass words
        void (*sums)(
            const Rows* rows, Py_ssize_t n, double step, int is_raised, const double* scale,
            double* found) noexcept nogil
    LossPasses pboost_choose_loss_passes(int level)
    bint IS_OF_MARGIN "PBOOST_IS_OF_MARGIN"(int loss)
    bint IS_KINKED "PBOOST_IS_KINKED"(int loss)
    bint IS_SEARCHED "PBOOST_IS_SEARCHED"(int loss)
    bint HAS_JUMPS "PBOOST_HAS_JUMPS"(int loss)
    bint HAS_LOG_LINK "PBOOST_HAS_LOG_LINK"(int loss)
    double per_target "pboost_per_target"(double y)
    void pboost_bounds(
        const Rows* rows, const Far* far, double step, double* steepest, double* most, double* value)

# Number of bits of a gradient and of a Hessian in a packed word.
cdef enum:
    OF_GRADIENT = 18
cdef enum:
    OF_CURVATURE = 19

# Largest number of bits of a gradient or a Hessian stored in two words.
cdef enum:
    OF_WIDE = 35

# The search for the step of a leaf. Each evaluation needs the sums of gradients and Hessians at the step
# `at`, in units of 1 / `slope_scale` and 1 / `bend_scale`. `u`, `y`, `size`, `heaviest` and `n_copies`
# describe the rows of the leaf. When the search ends, `at` is the result.
cdef struct Step:
    double u, y, size, heaviest, l2, most, tiny
    double at, slope, bend, slope_sum, bend_sum, slope_scale, bend_scale
    double low, high, before
    int64_t n_copies
    int32_t way, rounds, is_raised, inside, low_seen, high_seen

cdef enum:
    NEWTON, RATIO, ODDS, SEARCH

# The rows of a leaf, stored contiguously. If `team` is not NULL, its threads process the rows together,
# about `share` rows at a time.
cdef struct Leaf:
    Rows rows
    Py_ssize_t n, share
    Threads* team
    int who
    const LossPasses* passes
    Far far
    Step step


cdef inline double scale_of(double most, Py_ssize_t n) noexcept nogil:
    """Return a power of two that scales n numbers up to `most` so that the sum of the integers is exact."""
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


# Threads add their partial sums while they hold the lock `in_hand`.
cdef struct Look:
    Leaf* leaf
    int32_t in_hand


cdef inline void sums_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Look* look = <Look*>task
    cdef Leaf* leaf = look.leaf
    cdef Step* step = &leaf.step
    cdef Rows own = rows_from(&leaf.rows, start)
    cdef double[2] found, scale
    scale[0], scale[1] = step.slope_scale, step.bend_scale
    leaf.passes.sums(&own, stop - start, step.at, step.is_raised, scale, found)
    lock(&look.in_hand)
    step.slope_sum += found[0]
    step.bend_sum += found[1]
    unlock(&look.in_hand)


cdef inline void take_far(const Rows* rows, Far* far, const Far* more) noexcept nogil:
    """Combine the bounds of two sets of rows."""
    far.u = min(far.u, more.u) if IS_OF_MARGIN(rows.loss) else max(far.u, more.u)
    far.y = max(far.y, more.y)
    far.size = max(far.size, more.size)


cdef inline Far no_far(const Rows* rows) noexcept nogil:
    """Return the bounds of an empty set of rows."""
    cdef Far far
    far.u = INFINITY if IS_OF_MARGIN(rows.loss) else -INFINITY
    far.y = far.size = -INFINITY
    return far


cdef inline double power_below(double most, int bits) noexcept nogil:
    """Return the power of two that scales numbers up to `most` below 2**bits after rounding."""
    cdef int exponent
    if not most > 0.0:
        return 1.0
    if frexp(most, &exponent) * ldexp(1.0, bits) >= ldexp(1.0, bits) - 0.5:
        exponent += 1
    return ldexp(1.0, min(bits - exponent, 1000))


cdef inline void choose_scales(const Rows* rows, Step* step) noexcept nogil:
    """Choose the units of the sums for the next evaluation."""
    cdef Far far
    cdef double steepest, most, ignored
    far.u, far.y, far.size = step.u, step.y, step.size
    pboost_bounds(rows, &far, step.at, &steepest, &most, &ignored)
    if step.is_raised:
        most = max(most, steepest * rows.per_limit)
    step.slope_scale = scale_of(2.0 * step.heaviest * steepest, step.n_copies)
    step.bend_scale = scale_of(2.0 * step.heaviest * most, step.n_copies)
    step.slope_sum = step.bend_sum = 0.0


cdef inline double bounded(const Step* step, double length) noexcept nogil:
    return min(max(length, -step.most), step.most)


cdef inline void bound_step(
    const Rows* rows, const Far* far, Step* step, double l2, double most
) noexcept nogil:
    """Compute the largest step of a leaf that its rows and the options allow."""
    step.u, step.y, step.size, step.l2, step.most = far.u, far.y, far.size, l2, most
    step.tiny = TINY_STEP
    if IS_SEARCHED(rows.loss):  # the best step does not exceed the largest residual
        step.most = min(step.most, 2.0 * far.u)
    if rows.loss == HUBER:
        step.tiny = rows.parameter
    elif rows.loss == EXPECTILE:
        step.tiny = OF_RESIDUAL * far.u


cdef inline void begin_step(const Rows* rows, Step* step, double guess, bint solved) noexcept nogil:
    """Choose the method that finds the step, and the first step to evaluate.

    The method is one Newton step, a closed form for some losses, or a search from `guess`.
    """
    step.way, step.at, step.is_raised, step.rounds = SEARCH, 0.0, False, 0
    if not solved or rows.loss == SQUARED:
        step.way, step.is_raised = NEWTON, True
    elif HAS_LOG_LINK(rows.loss) and step.l2 == 0.0:
        step.way = RATIO
    elif rows.loss == EXPONENTIAL and step.l2 == 0.0:
        step.way = ODDS
    else:
        step.at, step.low, step.high = bounded(step, guess), -step.most, step.most
        step.low_seen, step.high_seen = step.at == step.low, step.at == step.high
        step.before = INFINITY
    choose_scales(rows, step)


cdef inline bint search_on(const Rows* rows, Step* step) noexcept nogil:
    """Choose the next Newton step, limited to the bracket in which the gradient sum changes sign.

    Return whether the step must be evaluated.
    """
    cdef double following, moved, next_
    if step.slope == 0.0 or (step.slope < 0.0 and step.at == step.most) or (
            step.slope > 0.0 and step.at == -step.most):
        return False
    if step.slope < 0.0:
        step.low = step.at
    else:
        step.high = step.at
    following = step.at - step.slope / step.bend if step.bend > 0.0 else (
        INFINITY if step.slope < 0.0 else -INFINITY)
    step.inside = step.low < following < step.high
    if not step.inside:
        # Evaluate an end of the range before bisecting, if this has not been done.
        if following >= step.most and not step.high_seen:
            following, step.high_seen = step.most, True
        elif following <= -step.most and not step.low_seen:
            following, step.low_seen = -step.most, True
        else:
            following = step.low + (step.high - step.low) / 2
    moved = fabs(following - step.at)
    step.at = following
    # Newton's method converges quadratically, so the length of the next step can be predicted. Losses with
    # a discontinuous Hessian are exceptions.
    next_ = moved
    if not HAS_JUMPS(rows.loss) and 4.0 * moved < step.before < INFINITY:
        next_ = moved * (moved / step.before) * (moved / step.before)
    step.before = moved if step.inside else INFINITY
    if step.inside and next_ <= NEAR_STEP * (
            step.tiny if HAS_JUMPS(rows.loss) else max(fabs(step.at), step.tiny)):
        return False
    step.rounds += 1
    return step.high - step.low > WIDTH * fabs(step.at) and step.rounds < 200


cdef inline double power_of(const Rows* rows) noexcept nogil:
    """Return the power of the mean to which the variance is proportional, for gamma and Tweedie losses."""
    return 2.0 if rows.loss == GAMMA else rows.parameter


cdef inline bint take_look(const Rows* rows, Step* step) noexcept nogil:
    """Continue the search with the new sums.

    Return whether another evaluation is needed.
    """
    cdef double share, below
    step.slope = step.slope_sum / step.slope_scale + step.l2 * step.at
    step.bend = step.bend_sum / step.bend_scale + step.l2
    if step.way == SEARCH:
        if search_on(rows, step):
            choose_scales(rows, step)
            return True
        return False
    if step.way == NEWTON:
        step.at = bounded(step, -step.slope / step.bend) if step.bend > 0.0 else 0.0
    elif step.way == RATIO:
        # The gradient is b exp(k step) - a exp((k - 1) step), with k = 2 - power, and the Hessian is
        # k b + (1 - k) a. So the step is ln(sum of a / sum of b). For the Poisson loss, a is the target
        # and b the predicted mean.
        below = step.bend
        if rows.loss != POISSON:
            below += (power_of(rows) - 1.0) * step.slope
        share = step.slope / below if below > 0.0 else -INFINITY
        step.at = bounded(step, log1p(-share) if step.y > 0.0 and share < 1.0 else -INFINITY)
    else:
        # Each gradient is -y times the Hessian, so the two arguments are twice the weights of the two
        # classes.
        step.at = bounded(step, half_log_odds(
            step.bend_sum - step.slope_sum, step.bend_sum + step.slope_sum, 0.0))
    return False


cdef inline double solve(Leaf* leaf, double guess, bint solved) noexcept nogil:
    """Find the step of a leaf whose rows are stored in `leaf`."""
    cdef Look look
    look.leaf, look.in_hand = leaf, 0
    begin_step(&leaf.rows, &leaf.step, guess, solved)
    while True:
        run_ranges(leaf.team, leaf.who, leaf.n, leaf.share, sums_part, &look)
        if not take_look(&leaf.rows, &leaf.step):
            return leaf.step.at


cdef inline double percentage_kink_of(Leaf* leaf) noexcept nogil:
    """Return the result of `kink_of` for the absolute percentage error, a median with other weights."""
    cdef double* residual = <double*>leaf.rows.y
    cdef double* weight = <double*>leaf.rows.f  # read before it is overwritten
    cdef const double* given = leaf.rows.weight
    cdef bint are_copies = given != NULL and leaf.rows.are_copies
    cdef double heaviest = 1.0 if given == NULL or are_copies else leaf.step.heaviest
    cdef Py_ssize_t i, n_copies = leaf.step.n_copies if are_copies else leaf.n
    cdef double scale = scale_of(2.0 * heaviest, n_copies), total = 0.0, factor
    for i in range(leaf.n):
        factor = per_target(residual[i])
        if given != NULL and not are_copies:
            factor *= given[i]
        residual[i] = residual[i] - leaf.rows.f[i]
        weight[i] = rint(factor * scale)
        if are_copies:
            weight[i] *= given[i]
        total += weight[i]
    return kink_step(
        residual, weight, leaf.n, 0.5 * total, n_copies + FLAT * total, leaf.step.l2 * 0.5 * scale)


cdef inline double kink_of(Leaf* leaf) noexcept nogil:
    """Return the residual y - f of a row that minimizes the loss of a leaf. The arrays are overwritten."""
    cdef double* residual = <double*>leaf.rows.y
    cdef double* weight = <double*>leaf.rows.weight
    cdef double total = leaf.n, above = 0.0, scale = 1.0, wanted, flat = 0.0
    cdef Py_ssize_t i
    if leaf.rows.loss == MAPE:
        return percentage_kink_of(leaf)
    if weight != NULL and leaf.rows.are_copies:
        total = leaf.step.n_copies
    elif weight != NULL:
        scale, total, flat = scale_of(2.0 * leaf.step.heaviest, leaf.n), 0.0, leaf.n
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
        scale = 0.5 * scale  # the weights of the kinks give half of the gradient
    return kink_step(residual, weight, leaf.n, wanted, flat + FLAT * total, leaf.step.l2 * scale)


cdef inline double step_of_rows(Leaf* leaf, double guess, bint solved) noexcept nogil:
    """Return the Newton step of a leaf or, if `solved` is true, its best step, within the bounds.

    `guess` is a first approximation of the best step.
    """
    if solved and IS_KINKED(leaf.rows.loss):
        return bounded(&leaf.step, kink_of(leaf))
    return solve(leaf, guess, solved)
