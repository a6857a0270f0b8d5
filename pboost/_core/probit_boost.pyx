"""ProbitBoost in the leaves of a partition: Newton steps of the probit loss, one column each.

A step fits a line in one column to the responses z = Y / (u + r(u)) with the weights
w = w0 r(u) (u + r(u)), u = Y f, by least squares, for every column, and adds the best one to f. Of a
row only w and w z = w0 Y r(u) are needed. Columns are copied once per leaf, centred and scaled by
a power of two so that their largest size is in [1/2, 1).
"""
from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, fabs, isfinite, ldexp
from libc.stdlib cimport free
from libc.string cimport memset

from pboost._core._probit_leaf cimport Ends, Leaf, Scale, Sums, allocate, choose_class, load_leaf
from pboost._core._rows cimport Rows, rows_of
from pboost._core.types cimport int32_t

cdef enum:
    ONE_CLASS = -1
    NO_ROW = -2
    HALVINGS = 40
    CELLS = 50_000_000  # rows times columns of the steps between two looks at signals

cdef extern from "probit_step.h" nogil:
    """
    /* A later column is better only by more than rounding: equal columns tie. */
    #define PBOOST_TIE 1e-12
    /* Share of the second moment below which a variance is summed about the mean. */
    #define PBOOST_CANCELLED 1e-4
    /* A variance, columns being at most 1, that is only rounding. */
    #define PBOOST_NO_VARIANCE 1e-30
    /* Least margin from which densities are counted in units of that of the least margin, and the
       change of its square, halved, that does not yet ask for another unit. */
    #define PBOOST_FAR 20.0
    #define PBOOST_MOST_DRIFT 300.0
    /* A risk is higher only by more than rounding, which at the minimum is all that changes. */
    #define PBOOST_RISE 1e-14
    /* Above the size of the third derivative of -ln Phi, which is 0.29572 at most, at 1.0024. */
    #define PBOOST_THIRD 0.296
    /* Above what the logarithm of its second one falls by per unit of u, beyond max(u, 0). */
    #define PBOOST_STEEPEST 0.35
    /* Rounding, at most, as a share of risks, of steps and of the bounds of what these change. */
    #define PBOOST_ROUNDING 1e-14
    #define PBOOST_OF_STEPS 1e-12
    #define PBOOST_OF_BOUNDS 1e-6
    """
    const double TIE "PBOOST_TIE"
    const double CANCELLED "PBOOST_CANCELLED"
    const double NO_VARIANCE "PBOOST_NO_VARIANCE"
    const double FAR "PBOOST_FAR"
    const double MOST_DRIFT "PBOOST_MOST_DRIFT"
    const double RISE "PBOOST_RISE"
    const double THIRD "PBOOST_THIRD"
    const double STEEPEST "PBOOST_STEEPEST"
    const double ROUNDING "PBOOST_ROUNDING"
    const double OF_STEPS "PBOOST_OF_STEPS"
    const double OF_BOUNDS "PBOOST_OF_BOUNDS"

    ctypedef void (*StepKernel "pboost_step_kernel")(
        Sums* leaf, const double* f, double* tried, const double* x, double b, double a,
        Scale scale, int wants_loss, int wants_sums)
    StepKernel pboost_choose_step(int most)
    void find_ends "pboost_find_ends"(const Sums* leaf, const double* x, Ends* ends)
    double pboost_head(double t)
    double pboost_add_lanes(const double* lanes)

cdef StepKernel step_kernel = pboost_choose_step(2)

cdef struct Line:
    Py_ssize_t j  # column; -1: none
    Py_ssize_t place  # in the list of columns that vary
    double intercept
    double slope
    double gain  # sum of w z s, s the line: that of w s s

cdef struct Fall:
    double least  # what the risk falls by, at least
    double most


def choose_level(int most):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global step_kernel
    step_kernel = pboost_choose_step(most)


cdef double try_step(
    Leaf* leaf, const Line* line, double length, bint wants_loss, bint wants_sums,
) noexcept nogil:
    """Set `tried`, w, w z and their sums; returns the sum of w0 times the loss."""
    cdef const double* x = NULL
    cdef double least, needed
    if line.j >= 0:
        x = leaf.sums.x + line.j * leaf.sums.room
    while True:
        step_kernel(
            &leaf.sums, leaf.f, leaf.tried, x, length * line.intercept, length * line.slope,
            leaf.scale, wants_loss, wants_sums)
        least = leaf.sums.least
        needed = pboost_head(least) if FAR < least < INFINITY else 0.0
        if needed == leaf.scale.origin or (
            needed > 0.0 and leaf.scale.origin > 0.0
            and fabs(needed - leaf.scale.origin) * (needed + leaf.scale.origin) < 2 * MOST_DRIFT
        ):
            return leaf.sums.loss
        leaf.scale.origin, leaf.scale.rescue = needed, exp(-0.5 * needed * needed)


cdef void about_mean(const Leaf* leaf, Py_ssize_t j, double* mean, double* moment) noexcept nogil:
    """moment = sums of w e e and w z e, e the distances from the weighted mean."""
    cdef const Sums* sums = &leaf.sums
    cdef const double* x = sums.x + j * sums.room
    cdef double rest = 0.0, e, z = sums.sum_wz / sums.sum_w
    cdef Py_ssize_t i
    for i in range(leaf.m):
        rest += sums.w[i] * (x[i] - mean[0])
    mean[0] += rest / sums.sum_w
    moment[0] = moment[1] = 0.0
    for i in range(leaf.m):
        e = x[i] - mean[0]
        moment[0] += sums.w[i] * e * e
        moment[1] += (sums.wz[i] - sums.w[i] * z) * e


cdef Line best_line(const Leaf* leaf) noexcept nogil:
    """The line of least weighted squared error, the constant where no column varies."""
    cdef const Sums* sums = &leaf.sums
    cdef Line best
    cdef double[2] moment
    cdef const double* lanes
    cdef double mean, sum_wx, gain, most = 0.0
    cdef int32_t c
    best.j, best.place, best.slope, best.intercept = -1, 0, 0.0, sums.sum_wz / sums.sum_w
    best.gain = best.intercept * sums.sum_wz
    for c in range(sums.n_columns):
        lanes = sums.lanes + 24 * <Py_ssize_t>c
        sum_wx = pboost_add_lanes(lanes)
        mean = sum_wx / sums.sum_w
        moment[0] = pboost_add_lanes(lanes + 8) - mean * sum_wx
        moment[1] = pboost_add_lanes(lanes + 16) - mean * sums.sum_wz
        if not moment[0] > CANCELLED * pboost_add_lanes(lanes + 8):
            about_mean(leaf, sums.column[c], &mean, moment)
        if not moment[0] > NO_VARIANCE * sums.sum_w:
            continue
        gain = moment[1] * (moment[1] / moment[0])
        if best.j < 0 or gain > most * (1.0 + TIE):
            most = gain
            best.j, best.place, best.slope = sums.column[c], c, moment[1] / moment[0]
            best.intercept = sums.sum_wz / sums.sum_w - best.slope * mean
    best.gain += most
    return best


cdef Fall fall_of(const Leaf* leaf, const Line* line, double risk) noexcept nogil:
    """Bounds of what a full step lowers a risk of this size by, before it is taken.

    By Taylor's formula it is gain / 2, and more by rows whose margins rise, less by those that go
    down: see the page on ProbitBoost. The columns are centred by the weights w0.
    """
    cdef Fall fall
    cdef const Ends* ends
    cdef double b = line.intercept, a = line.slope, square = b * b * leaf.mass, gain = line.gain
    cdef double down = fabs(b), up = down, top = max(leaf.sums.most, 0.0), less, more, q, error
    if line.j >= 0:
        ends = &leaf.ends[line.j]
        square += a * a * ends.square
        # y s is between -down and up.
        if a > 0.0:
            down = max(-(b + a * ends.low[0]), b + a * ends.high[1], 0.0)
            up = max(b + a * ends.high[0], -(b + a * ends.low[1]), 0.0)
        else:
            down = max(-(b + a * ends.high[0]), b + a * ends.low[1], 0.0)
            up = max(b + a * ends.low[0], -(b + a * ends.high[1]), 0.0)
    less, more = THIRD / 6.0 * down * square, THIRD / 6.0 * up * square
    q = down * (top + STEEPEST)
    if q < 1.75:
        # Above (exp(q) - 1 - q) / q**2 - 1/2, whose power series begins with q/6, is > 0, and is
        # 1.75 (1/6 + 0.0618 * 1.75) at the end.
        less = min(less, gain * q * (1.0 / 6 + 0.062 * q))
    more = min(more, gain * min(0.5, up * (top + up + STEEPEST) / 6.0))
    error = OF_BOUNDS * gain + ROUNDING * risk + OF_STEPS * (b * b + a * a) * leaf.mass
    fall.least, fall.most = 0.5 * gain - less - error, 0.5 * gain + more + error
    return fall


cdef double fall_after(const Leaf* leaf, const Line* line, double risk) noexcept nogil:
    """A lower bound, again, at the end of a full step: the slope there, as the risk is convex."""
    cdef const double* lanes = leaf.sums.lanes + 24 * line.place
    cdef double slope = line.intercept * leaf.sums.sum_wz
    if line.j >= 0:
        slope += line.slope * pboost_add_lanes(lanes + 16)
    # No r is above 1 - u for u < 0, or above 1.
    return slope - ROUNDING * risk - OF_STEPS * leaf.mass * (
        (fabs(line.intercept) + fabs(line.slope)) * (1.0 + max(-leaf.sums.least, 0.0)))


cdef int boost(
    Leaf* leaf, int steps, double tol, bint safeguard, int32_t* feature, double* value,
    double* risk,
) except? -7 nogil:
    """Take the steps of a leaf and class; returns their number. Paths may be NULL."""
    cdef Line line, none
    cdef Fall fall
    cdef Scale scale
    cdef double length, most, now = 0.0, before = 0.0, bound, least = ldexp(0.5 * tol, -leaf.unit)
    cdef bint known = risk != NULL, is_small = False, wants_loss = known
    cdef bint bounded, wants_sums, checks = safeguard or tol > 0.0
    cdef int taken = 0, halved
    cdef int32_t c, j
    none.j, none.intercept, none.slope = -1, 0.0, 0.0
    memset(leaf.f, 0, leaf.sums.rows * sizeof(double))
    memset(leaf.slope, 0, leaf.d * sizeof(double))
    leaf.intercept, leaf.scale.origin, leaf.scale.rescue = 0.0, 0.0, 1.0
    before = try_step(leaf, &none, 0.0, known, True)
    if checks:
        for c in range(leaf.sums.n_columns):
            j = leaf.sums.column[c]
            find_ends(&leaf.sums, leaf.sums.x + j * leaf.sums.room, leaf.ends + j)
    bound = leaf.mass  # at least the risk of f, that of 0 being ln 2
    if risk != NULL:
        risk[0] = before / leaf.mass
    while taken < steps:
        line = best_line(leaf)
        if not (isfinite(line.intercept) and isfinite(line.slope)):
            break
        wants_sums = taken + 1 < steps
        # The loss is worked out only where a bound does not decide.
        if checks:
            fall = fall_of(leaf, &line, bound)
            is_small = max(fall.most, -fall.least) < least
            wants_loss = risk != NULL or safeguard and not fall.least > 0.0 or tol > 0.0 and not (
                is_small or fall.least > least)
        scale = leaf.scale
        # Whether another bound, from the sums at the end of the step, may do; if it failed in the
        # step before it most often fails again.
        bounded = wants_loss and risk == NULL and wants_sums and not known
        if bounded:
            try_step(leaf, &line, 1.0, False, True)
            fall.least = fall_after(leaf, &line, bound)
            wants_loss = safeguard and not fall.least > 0.0 or tol > 0.0 and not fall.least > least
            if wants_loss:
                leaf.scale = scale
        if wants_loss and not known:
            before = try_step(leaf, &none, 0.0, True, False)
        length, halved, most = 1.0, 0, before * (1.0 + RISE)
        if wants_loss or not bounded:
            now = try_step(leaf, &line, length, wants_loss, wants_sums)
        while wants_loss and safeguard and not now <= most and halved < HALVINGS:
            length, halved = 0.5 * length, halved + 1
            now = try_step(leaf, &line, length, True, wants_sums)
        if wants_loss and safeguard and not now <= most:
            if risk != NULL:
                value[3 * taken + 2] = length
            break
        leaf.f, leaf.tried = leaf.tried, leaf.f
        leaf.intercept += length * line.intercept
        if line.j >= 0:
            leaf.slope[line.j] += length * line.slope
        if risk != NULL:
            feature[taken] = <int32_t>line.j
            to_units(leaf, line.j, length * line.intercept, length * line.slope, value + 3 * taken)
            value[3 * taken + 2] = length
            risk[taken + 1] = now / leaf.mass
        taken += 1
        if wants_loss:
            is_small = ldexp(2.0 * fabs(before - now), leaf.unit) <= tol
        if tol > 0.0 and is_small:
            break
        known, before, bound = wants_loss, now, now if wants_loss else bound
        leaf.cells += (leaf.m + 64) * (leaf.sums.n_columns + 8) * (1 + halved)
        if leaf.cells > CELLS:
            leaf.cells = 0
            with gil:
                PyErr_CheckSignals()
                if leaf.stop != NULL and leaf.stop[0]:
                    raise InterruptedError
    return taken


cdef void to_units(
    const Leaf* leaf, Py_ssize_t j, double intercept, double slope, double* out,
) noexcept nogil:
    """out = intercept and slope of intercept + slope x_j in the units of X."""
    out[0], out[1] = intercept, 0.0
    if j >= 0 and slope != 0.0:
        out[0] = intercept - ldexp(slope * leaf.centre[j], -leaf.spread[j])
        out[1] = ldexp(slope, -leaf.spread[j] - leaf.exponent[j])


cdef void write_model(const Leaf* leaf, double* out) noexcept nogil:
    cdef double[2] term
    cdef Py_ssize_t j
    out[0] = leaf.intercept
    for j in range(leaf.d):
        to_units(leaf, j, 0.0, leaf.slope[j], term)
        out[0] += term[0]
        out[1 + j] = term[1]


def boost_leaves(
    X, const int32_t[::1] rows, const int32_t[::1] starts, const int32_t[::1] label,
    const double[::1] weight, int n_classes, int steps, double tol, bint safeguard,
    double[:, :, ::1] coefficient, int32_t[:, ::1] taken, path=None, Py_ssize_t first=0,
    Py_ssize_t last=-1, const int32_t[::1] stop=None,
):
    """Fit the leaves first, ..., last - 1.

    X (n, d) float64 or float32, any strides; rows, leaf after leaf; starts (leaves + 1,) places in
    rows; label (n,) 0 .. n_classes - 1 and weight (n,) of the rows of X, > 0 where listed. One
    model per leaf of two classes, for class 1; else one per class against the others. tol > 0
    ends a model when the deviance, of the weights as given, changes by no more. OUT coefficient
    (leaves, models, 1 + d): intercept and slopes; taken (leaves, models): steps, or -1 where all rows of
    the leaf are of the class, -2 where none is, and the coefficients are 0. OUT path: None, or of the
    first leaf's first model feature (steps,) int32, -1 for a constant; (steps, 3) intercept, slope
    and length of each step, then the length at which the safeguard gave up; (steps + 1,) mean loss.
    Ctrl-C is noticed between steps, in the main thread; in others stop (1,), once it is not 0, raises
    InterruptedError.
    """
    cdef Rows matrix = rows_of(X)
    cdef Leaf leaf
    cdef int32_t[::1] feature
    cdef double[:, ::1] value
    cdef double[::1] risk
    cdef int32_t* to_feature = NULL
    cdef double* to_value = NULL
    cdef double* to_risk = NULL
    cdef const int32_t* leaf_rows
    cdef Py_ssize_t l, k, most = 0, inside, models = 1 if n_classes == 2 else n_classes
    last = starts.shape[0] - 1 if last < 0 else last
    if not (0 <= first <= last < starts.shape[0] and coefficient.shape[0] > last - 1
            and coefficient.shape[1] == models == taken.shape[1] and taken.shape[0] > last - 1
            and coefficient.shape[2] == 1 + matrix.d and label.shape[0] == matrix.n
            and weight.shape[0] == matrix.n):
        raise ValueError("boost_leaves: arrays of different sizes")
    if path is not None and steps > 0:
        feature, value, risk = path
        if feature.shape[0] < steps or value.shape[0] < steps or risk.shape[0] <= steps:
            raise ValueError("boost_leaves: arrays of different sizes")
        to_feature, to_value, to_risk = &feature[0], &value[0, 0], &risk[0]
    for l in range(first, last):
        most = max(most, starts[l + 1] - starts[l])
    if not allocate(&leaf, most, matrix.d):
        raise MemoryError
    leaf.cells = 0
    leaf.stop = NULL if stop is None else &stop[0]
    try:
        with nogil:
            for l in range(first, last):
                leaf.m = starts[l + 1] - starts[l]
                if not leaf.m:
                    coefficient[l] = 0.0
                    taken[l] = NO_ROW
                    continue
                leaf_rows = &rows[starts[l]]
                load_leaf(&leaf, &matrix, leaf_rows, &weight[0])
                for k in range(models):
                    inside = choose_class(&leaf, leaf_rows, &label[0], 1 if models == 1 else k)
                    if inside == 0 or inside == leaf.m:
                        taken[l, k] = ONE_CLASS if inside else NO_ROW
                        coefficient[l, k] = 0.0
                        continue
                    taken[l, k] = boost(
                        &leaf, steps, tol, safeguard, to_feature, to_value, to_risk)
                    write_model(&leaf, &coefficient[l, k, 0])
                    to_feature, to_value, to_risk = NULL, NULL, NULL
    finally:
        free(leaf.memory)
