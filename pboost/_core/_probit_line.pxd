# The best line for a step of ProbitBoost, and bounds on the decrease of the risk in a full step.
from libc.math cimport fabs

from pboost._core._probit_leaf cimport Ends, Leaf, Sums
from pboost._core.types cimport int32_t

cdef extern from "probit_step.h" nogil:
    """
    /* A feature is preferred to an earlier one only if its gain is larger by this relative difference. */
    #define PBOOST_TIE 1e-12
    /* If a variance is below this fraction of the second moment, it is computed again, about the mean. */
    #define PBOOST_CANCELLED 1e-4
    /* A smaller variance consists only of rounding errors; features are at most 1. */
    #define PBOOST_NO_VARIANCE 1e-30
    /* Bound on the third derivative of -ln Phi, whose absolute value is at most 0.29572, at 1.0024. */
    #define PBOOST_THIRD 0.296
    /* Bound on the decrease of the logarithm of the second derivative, per unit of u and beyond
       max(u, 0). */
    #define PBOOST_STEEPEST 0.35
    /* Largest rounding errors, relative to risks, to steps, and to the bounds on the change of the risk. */
    #define PBOOST_ROUNDING 1e-14
    #define PBOOST_OF_STEPS 1e-12
    #define PBOOST_OF_BOUNDS 1e-6
    """
    const double TIE "PBOOST_TIE"
    const double CANCELLED "PBOOST_CANCELLED"
    const double NO_VARIANCE "PBOOST_NO_VARIANCE"
    const double THIRD "PBOOST_THIRD"
    const double STEEPEST "PBOOST_STEEPEST"
    const double ROUNDING "PBOOST_ROUNDING"
    const double OF_STEPS "PBOOST_OF_STEPS"
    const double OF_BOUNDS "PBOOST_OF_BOUNDS"
    double pboost_add_lanes(const double* lanes)
    int32_t clear_best "pboost_clear_best"(
        const Sums* leaf, double cancelled, double no_variance, double tie, double* slope,
        double* mean, double* gain)

cdef struct Line:
    Py_ssize_t j  # feature, or -1 for a constant
    Py_ssize_t place  # position in the list of nonconstant features
    double intercept
    double slope
    double gain  # sum of w z s for the line s, equal to the sum of w s^2

cdef struct Fall:
    double least  # lower and upper bound on the decrease of the risk
    double most


cdef inline void about_mean(
    const Leaf* leaf, Py_ssize_t j, double* mean, double* moment,
) noexcept nogil:
    """Compute the sums of w e^2 and of w z e, with e the distances from the weighted mean (OUT moment)."""
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


cdef inline Line best_line(const Leaf* leaf) noexcept nogil:
    """Return the line with the least weighted squared error, or a constant if all features are constant."""
    cdef const Sums* sums = &leaf.sums
    cdef Line best
    cdef double[2] moment
    cdef const double* lanes
    cdef double mean, sum_wx, gain, most = 0.0
    cdef int32_t c
    best.j, best.place, best.slope, best.intercept = -1, 0, 0.0, sums.sum_wz / sums.sum_w
    best.gain = best.intercept * sums.sum_wz
    c = clear_best(sums, CANCELLED, NO_VARIANCE, TIE, &best.slope, &mean, &most)
    if c >= 0:
        best.j, best.place = sums.column[c], c
        best.intercept -= best.slope * mean
        best.gain += most
        return best
    best.slope = most = 0.0
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


cdef inline Fall fall_of(const Leaf* leaf, const Line* line, double risk) noexcept nogil:
    """Return bounds on the decrease of the risk by a full step, before the step is made.

    By Taylor's formula, the decrease is gain / 2, plus a term for rows whose margins increase, minus a term
    for rows whose margins decrease. See the theory page of ProbitBoost. The features are centered with the
    weights w0.
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
        # The last factor bounds (exp(q) - 1 - q) / q**2 - 1/2, a power series with positive terms that
        # begins with q/6. At q = 1.75 it equals 1.75 (1/6 + 0.0618 * 1.75).
        less = min(less, gain * q * (1.0 / 6 + 0.062 * q))
    more = min(more, gain * min(0.5, up * (top + up + STEEPEST) / 6.0))
    error = OF_BOUNDS * gain + ROUNDING * risk + OF_STEPS * (b * b + a * a) * leaf.mass
    fall.least, fall.most = 0.5 * gain - less - error, 0.5 * gain + more + error
    return fall


cdef inline double fall_after(const Leaf* leaf, const Line* line, double risk) noexcept nogil:
    """Return a lower bound on the decrease of the risk by a full step, from the derivative after the step.

    It holds because the risk is convex.
    """
    cdef const double* lanes = leaf.sums.lanes + 24 * line.place
    cdef double slope = line.intercept * leaf.sums.sum_wz
    if line.j >= 0:
        slope += line.slope * pboost_add_lanes(lanes + 16)
    # Rounding errors: r is at most 1 - u for u < 0, else at most 1.
    return slope - ROUNDING * risk - OF_STEPS * leaf.mass * (
        (fabs(line.intercept) + fabs(line.slope)) * (1.0 + max(-leaf.sums.least, 0.0)))
