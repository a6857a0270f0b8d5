/* Losses and their derivatives, for boosted trees.
 *
 * Terms are rounded to multiples of a power of two and summed exactly in float64, so that sums do not
 * depend on the order of the rows. All variants give bit-identical results: they do the same operations,
 * without fused multiply-add (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_LOSS_H
#define PBOOST_BOOST_LOSS_H
#include "boost_packed.h"

/* The losses from HINGE on have no useful Hessian. SQUARED, EXPECTILE and the losses from ABSOLUTE on are
   functions of the residual f - y. POISSON, TWEEDIE and GAMMA have a log link. SHARES stands for one class of the softmax loss. Its f is the gradient, which is
   the probability of the class, minus 1 for rows of the class. */
#define PBOOST_LOSSES(OF)                                                                          \
    OF(EXPONENTIAL, "exponential") OF(LOGISTIC, "log_loss") OF(SQUARED, "squared_error")                 \
    OF(PROBIT, "probit") OF(FOCAL, "focal") OF(POISSON, "poisson") OF(TWEEDIE, "tweedie")          \
    OF(GAMMA, "gamma") OF(EXPECTILE, "expectile") OF(SHARES, "")                                   \
    OF(HINGE, "hinge") OF(ABSOLUTE, "absolute_error") OF(QUANTILE, "quantile") OF(MAPE, "mape")    \
    OF(HUBER, "huber") OF(LOG_COSH, "log_cosh")
#define PBOOST_LOSS_NUMBER(loss, name) PBOOST_##loss,
#define PBOOST_LOSS_NAME(loss, name) name,
enum { PBOOST_LOSSES(PBOOST_LOSS_NUMBER) PBOOST_N_LOSSES };
/* Return the name of a loss in Python, or "" if the loss has no name. */
PBOOST_INLINE const char *pboost_loss_name(int loss)
{
    static const char *const names[] = {PBOOST_LOSSES(PBOOST_LOSS_NAME)};
    return names[loss];
}
#define PBOOST_IS_CURVED(loss) ((loss) < PBOOST_HINGE)
#define PBOOST_IS_OF_RESIDUAL(loss)                                                                \
    ((loss) == PBOOST_SQUARED || (loss) == PBOOST_EXPECTILE || (loss) >= PBOOST_ABSOLUTE)
#define PBOOST_HAS_LOG_LINK(loss) ((loss) >= PBOOST_POISSON && (loss) <= PBOOST_GAMMA)
#define PBOOST_IS_OF_MARGIN(loss)                                                                  \
    (!PBOOST_IS_OF_RESIDUAL(loss) && !PBOOST_HAS_LOG_LINK(loss) && (loss) != PBOOST_SHARES)
/* Piecewise linear losses, whose best step is at a kink. */
#define PBOOST_IS_KINKED(loss) ((loss) >= PBOOST_HINGE && (loss) < PBOOST_HUBER)
/* Losses of residuals whose best step is found by a search. */
#define PBOOST_IS_SEARCHED(loss)                                                                   \
    ((loss) == PBOOST_EXPECTILE || (loss) == PBOOST_HUBER || (loss) == PBOOST_LOG_COSH)
/* Losses with a discontinuous Hessian. */
#define PBOOST_HAS_JUMPS(loss) ((loss) == PBOOST_EXPECTILE || (loss) == PBOOST_HUBER)

/* Return ln(1 + e) for e in [0, 1], as 2 artanh(e / (2 + e)). */
PBOOST_INLINE double pboost_log_1_plus(double e)
{
    const double s = e / (2.0 + e), z = s * s, zz = z * z, z4 = zz * zz;
    const double c0 = (1.0 + z * (1.0 / 3)) + zz * (1.0 / 5 + z * (1.0 / 7));
    const double c4 = (1.0 / 9 + z * (1.0 / 11)) + zz * (1.0 / 13 + z * (1.0 / 15));
    const double c8 = (1.0 / 17 + z * (1.0 / 19)) + zz * (1.0 / 21 + z * (1.0 / 23));
    const double c12 = (1.0 / 25 + z * (1.0 / 27)) + zz * (1.0 / 29 + z * (1.0 / 31));
    return 2.0 * s * ((c0 + z4 * c4) + (z4 * z4) * (c8 + z4 * c12));
}

/* Compute the log loss of n margins and its derivatives. `wants_value` is a compile-time constant,
   because a branch in the loop is slow. */
PBOOST_INLINE void pboost_logistic(
    const double *restrict u, ptrdiff_t n, const int wants_value, double *restrict slope,
    double *restrict bend, double *restrict value)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double e = pboost_exp_below_0(-fabs(u[i])), q = 1.0 / (1.0 + e);
        slope[i] = u[i] > 0.0 ? e * q : q;
        bend[i] = e * q * q;
        if (wants_value) value[i] = pboost_log_1_plus(e) + (u[i] < 0.0 ? -u[i] : 0.0);
    }
}

/* Compute the focal loss of n margins and its derivatives; the Hessian can be negative. */
PBOOST_INLINE void pboost_focal(
    const double *restrict u, ptrdiff_t n, double gamma, double *restrict slope,
    double *restrict bend, double *restrict value)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double e = pboost_exp_below_0(-fabs(u[i])), more = e / (1.0 + e), less = 1.0 / (1.0 + e);
        const double rest = pboost_log_1_plus(e);
        const double p = u[i] > 0.0 ? less : more, q = u[i] > 0.0 ? more : less;
        const double loss = rest + (u[i] < 0.0 ? -u[i] : 0.0);
        const double power = pboost_exp_below_0(-gamma * (rest + (u[i] > 0.0 ? u[i] : 0.0)));
        slope[i] = power * (gamma * p * loss + q);
        bend[i] = p * power * (gamma * loss * (gamma * p - q) + (2.0 * gamma + 1.0) * q);
        value[i] = power * loss;
    }
}

/* Return the factor of the absolute percentage error of a target. */
PBOOST_INLINE double pboost_per_target(double y)
{
    const double size = fabs(y);
    return size > 1.0 ? 1.0 / size : 1.0;
}

/* The rows: their targets, decision values, and weights (NULL if all are 1). If weights are numbers of
   copies, each rounded term is multiplied by the number of copies. The sums then equal sums over the
   copies. */
typedef struct {
    int loss, are_copies;
    double per_limit; /* 1 divided by the largest Newton step */
    double parameter; /* parameter of the loss, if any */
    const double *y, *f, *weight;
} pboost_rows;

/* Compute derivatives at n margins (at most PBOOST_ROWS): the negative gradient (`slope`), the Hessian
   (`bend`) and, if requested, the loss. For losses of residuals, `u` contains residuals. For losses with a
   log link, `u` contains decision values, and `y` the targets. */
#define PBOOST_DERIVATIVES_ARGS                                                                    \
    const pboost_rows *rows, const double *restrict u, const double *restrict y, ptrdiff_t n,      \
    int wants_value, double *restrict slope, double *restrict bend, double *restrict value
typedef void (*pboost_derivatives_pass)(PBOOST_DERIVATIVES_ARGS);
PBOOST_INLINE void pboost_derivatives_body(PBOOST_DERIVATIVES_ARGS)
{
    const int loss = rows->loss;
    if (loss == PBOOST_EXPONENTIAL) {
        for (ptrdiff_t i = 0; i < n; i++) slope[i] = bend[i] = value[i] = pboost_exp(-u[i]);
    } else if (loss == PBOOST_LOGISTIC) {
        if (wants_value)
            pboost_logistic(u, n, 1, slope, bend, value);
        else
            pboost_logistic(u, n, 0, slope, bend, value);
    } else if (loss == PBOOST_SQUARED) {
        for (ptrdiff_t i = 0; i < n; i++) {
            slope[i] = -u[i];
            bend[i] = 1.0;
            value[i] = 0.5 * u[i] * u[i];
        }
    } else if (loss == PBOOST_POISSON) { /* the loss without a constant per row */
        for (ptrdiff_t i = 0; i < n; i++) {
            bend[i] = pboost_exp(u[i]);
            slope[i] = y[i] - bend[i];
            value[i] = bend[i] - y[i] * u[i];
        }
    } else if (loss == PBOOST_GAMMA) { /* the loss without a constant per row */
        for (ptrdiff_t i = 0; i < n; i++) {
            bend[i] = y[i] * pboost_exp(-u[i]);
            slope[i] = bend[i] - 1.0;
            value[i] = u[i] + bend[i];
        }
    } else if (loss == PBOOST_TWEEDIE) { /* the loss without a constant per row */
        const double less = rows->parameter - 1.0, more = 2.0 - rows->parameter;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double a = y[i] * pboost_exp(-less * u[i]), b = pboost_exp(more * u[i]);
            bend[i] = less * a + more * b;
            slope[i] = a - b;
            value[i] = a / less + b / more;
        }
    } else if (loss == PBOOST_EXPECTILE) {
        const double below = 2.0 * rows->parameter, above = 2.0 - below;
        for (ptrdiff_t i = 0; i < n; i++) {
            bend[i] = u[i] > 0.0 ? above : below;
            slope[i] = -bend[i] * u[i];
            value[i] = 0.5 * bend[i] * u[i] * u[i];
        }
    } else if (loss == PBOOST_FOCAL) {
        pboost_focal(u, n, rows->parameter, slope, bend, value);
    } else if (loss == PBOOST_LOG_COSH) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double size = fabs(u[i]), e = pboost_exp_below_0(-2.0 * size), q = 1.0 / (1.0 + e);
            slope[i] = u[i] > 0.0 ? (e - 1.0) * q : (1.0 - e) * q;
            bend[i] = 4.0 * e * q * q;
            value[i] = size + pboost_log_1_plus(e) - 0.69314718055994531;
        }
    } else if (loss == PBOOST_MAPE) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double factor = pboost_per_target(y[i]);
            slope[i] = u[i] > 0.0 ? -factor : u[i] < 0.0 ? factor : 0.0;
            bend[i] = 0.0;
            value[i] = factor * fabs(u[i]);
        }
    } else if (loss == PBOOST_SHARES) {
        for (ptrdiff_t i = 0; i < n; i++) {
            slope[i] = -u[i];
            bend[i] = fabs(u[i]) * (1.0 - fabs(u[i]));
            if (wants_value) value[i] = 0.0; /* not used */
        }
    } else if (loss == PBOOST_HINGE) {
        for (ptrdiff_t i = 0; i < n; i++) {
            slope[i] = u[i] < 1.0 ? 1.0 : 0.0;
            bend[i] = 0.0;
            value[i] = u[i] < 1.0 ? 1.0 - u[i] : 0.0;
        }
    } else if (loss == PBOOST_HUBER) {
        const double delta = rows->parameter;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double size = fabs(u[i]), near = size < delta ? size : delta;
            slope[i] = u[i] > 0.0 ? -near : near;
            bend[i] = size <= delta ? 1.0 : 0.0;
            value[i] = near * (size - 0.5 * near);
        }
    } else if (loss == PBOOST_ABSOLUTE || loss == PBOOST_QUANTILE) {
        const double share = loss == PBOOST_ABSOLUTE ? 1.0 : rows->parameter;
        const double other = loss == PBOOST_ABSOLUTE ? 1.0 : 1.0 - share;
        for (ptrdiff_t i = 0; i < n; i++) {
            slope[i] = u[i] > 0.0 ? -other : u[i] < 0.0 ? share : 0.0;
            bend[i] = 0.0;
            value[i] = u[i] > 0.0 ? other * u[i] : -share * u[i];
        }
    } else {
        const pboost_scale unit = {0.0, 1.0};
        if (wants_value)
            pboost_probit_body(u, n, unit, 0, 1, slope, bend, value);
        else
            pboost_probit_body(u, n, unit, 0, 0, slope, bend, value);
        for (ptrdiff_t i = 0; i < n; i++) bend[i] *= slope[i];
    }
}

/* This is a separate function, because its code is long and all passes of a variant use it. */
#define PBOOST_DERIVATIVES_COPY(TARGET, name)                                                      \
    TARGET PBOOST_APART static void pboost_derivatives_##name(PBOOST_DERIVATIVES_ARGS)             \
    {                                                                                              \
        pboost_derivatives_body(rows, u, y, n, wants_value, slope, bend, value);                   \
    }
PBOOST_COPIES(PBOOST_DERIVATIVES_COPY)

/* Compute eight sums or maxima at a time over m values; m is a multiple of eight. There are separate
 * functions for sums and maxima, because compilers do not vectorize a loop with two results.
 */
PBOOST_INLINE void pboost_add_rounded(
    const double *restrict values, ptrdiff_t m, double scale, double *restrict sum)
{
    double s[8];
    for (int k = 0; k < 8; k++) s[k] = sum[k];
    for (ptrdiff_t i = 0; i < m; i += 8)
        for (int k = 0; k < 8; k++) s[k] += (values[i + k] * scale + PBOOST_MAGIC) - PBOOST_MAGIC;
    for (int k = 0; k < 8; k++) sum[k] = s[k];
}

/* Scale and round values, then multiply them by the numbers of copies. */
PBOOST_INLINE void pboost_copy_rounded(double *restrict values, const double *restrict copies, ptrdiff_t m, double scale)
{
    for (ptrdiff_t i = 0; i < m; i++) values[i] = copies[i] * ((values[i] * scale + PBOOST_MAGIC) - PBOOST_MAGIC);
}

#if defined(__GNUC__) || defined(__clang__)
typedef double pboost_pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t pboost_pair_bits __attribute__((vector_size(16), aligned(8), may_alias));

PBOOST_INLINE pboost_pair pboost_larger(const double *values, pboost_pair found)
{
    const pboost_pair value = *(const pboost_pair *)values;
    const pboost_pair_bits is_more = value > found;
    return (pboost_pair)(((pboost_pair_bits)value & is_more) | ((pboost_pair_bits)found & ~is_more));
}
#endif

/* IN/OUT most (8,): maxima of every eighth value. */
PBOOST_INLINE void pboost_raise(const double *restrict values, ptrdiff_t m, double *restrict most)
{
#if defined(__GNUC__) || defined(__clang__)
    /* Every processor compares pairs in a register. GCC 12 compares larger vectors one by one. */
    pboost_pair *pairs = (pboost_pair *)most, a = pairs[0], b = pairs[1], c = pairs[2], d = pairs[3];
    for (ptrdiff_t i = 0; i < m; i += 8) {
        a = pboost_larger(values + i, a);
        b = pboost_larger(values + i + 2, b);
        c = pboost_larger(values + i + 4, c);
        d = pboost_larger(values + i + 6, d);
    }
    pairs[0] = a, pairs[1] = b, pairs[2] = c, pairs[3] = d;
#else
    for (ptrdiff_t i = 0; i < m; i++) most[i & 7] = values[i] > most[i & 7] ? values[i] : most[i & 7];
#endif
}

PBOOST_INLINE double pboost_add_eight(const double *sum)
{
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

PBOOST_INLINE double pboost_most_of_eight(const double *most)
{
    double found = most[0];
    for (int k = 1; k < 8; k++) found = most[k] > found ? most[k] : found;
    return found;
}

/* Pad m values to a multiple of eight. Return the padded number. */
PBOOST_INLINE ptrdiff_t pboost_fill(double *values, ptrdiff_t m, double what)
{
    for (; m & 7; m++) values[m] = what;
    return m;
}

/* Return a probability `share` after its odds are multiplied by `odds`. */
PBOOST_INLINE double pboost_share(double share, double odds)
{
    return share * odds / ((1.0 - share) + share * odds);
}

/* Compute the arguments of the loss after adding `step` to the decision values of rows. */
PBOOST_INLINE void pboost_margins(
    const pboost_rows *rows, ptrdiff_t start, ptrdiff_t n, double step, double *restrict u)
{
    const double *y = rows->y + start, *f = rows->f + start;
    if (PBOOST_IS_OF_RESIDUAL(rows->loss))
        for (ptrdiff_t i = 0; i < n; i++) u[i] = (f[i] - y[i]) + step;
    else if (PBOOST_HAS_LOG_LINK(rows->loss))
        for (ptrdiff_t i = 0; i < n; i++) u[i] = f[i] + step;
    else if (rows->loss == PBOOST_SHARES) {
        const double up = pboost_exp(step), down = pboost_exp(-step);
        for (ptrdiff_t i = 0; i < n; i++)
            u[i] = f[i] < 0.0 ? -pboost_share(-f[i], down) : pboost_share(f[i], up);
    } else
        for (ptrdiff_t i = 0; i < n; i++) u[i] = y[i] * (f[i] + step);
}

/* Bounds of rows. `u` is the margin with the largest loss, or the largest absolute residual, or the largest
   loss for the absolute percentage error. For losses with a log link, `u` is the largest decision value,
   `size` the largest absolute decision value, and `y` the largest result of `pboost_scaled_target`. */
typedef struct {
    double u, y, size;
} pboost_far;

/* Return the term of the gradient that contains the target, for losses with a log link. */
PBOOST_INLINE double pboost_scaled_target(const pboost_rows *rows, double y, double u)
{
    if (rows->loss == PBOOST_POISSON) return y;
    return y * pboost_exp(rows->loss == PBOOST_GAMMA ? -u : (1.0 - rows->parameter) * u);
}

#define PBOOST_FARTHEST_ARGS const pboost_rows *rows, ptrdiff_t n, pboost_far *far
/* Rows with weight 0 are ignored. */
PBOOST_INLINE void pboost_farthest_body(PBOOST_FARTHEST_ARGS)
{
    double most[8], least[8], target[8], u[PBOOST_ROWS], other[PBOOST_ROWS], y[PBOOST_ROWS];
    const double sign = PBOOST_IS_OF_MARGIN(rows->loss) ? -1.0 : 1.0;
    const int of_residual = PBOOST_IS_OF_RESIDUAL(rows->loss) || rows->loss == PBOOST_SHARES;
    const int wants_all = PBOOST_HAS_LOG_LINK(rows->loss);
    for (int k = 0; k < 8; k++) most[k] = least[k] = target[k] = -INFINITY;
    for (ptrdiff_t start = 0; start < n; start += PBOOST_ROWS) {
        const ptrdiff_t m = n - start < PBOOST_ROWS ? n - start : PBOOST_ROWS;
        const double *w = rows->weight ? rows->weight + start : NULL;
        pboost_margins(rows, start, m, 0.0, u);
        for (ptrdiff_t i = 0; i < m; i++) u[i] = of_residual ? fabs(u[i]) : sign * u[i];
        if (rows->loss == PBOOST_MAPE)
            for (ptrdiff_t i = 0; i < m; i++) u[i] *= pboost_per_target(rows->y[start + i]);
        if (wants_all)
            for (ptrdiff_t i = 0; i < m; i++) {
                const int counts = !w || w[i] > 0.0;
                other[i] = counts ? -u[i] : -INFINITY;
                y[i] = counts ? pboost_scaled_target(rows, rows->y[start + i], u[i]) : -INFINITY;
            }
        if (w)
            for (ptrdiff_t i = 0; i < m; i++) u[i] = w[i] > 0.0 ? u[i] : -INFINITY;
        pboost_raise(u, pboost_fill(u, m, -INFINITY), most);
        if (!wants_all) continue;
        pboost_raise(other, pboost_fill(other, m, -INFINITY), least);
        pboost_raise(y, pboost_fill(y, m, -INFINITY), target);
    }
    const double above = pboost_most_of_eight(most), below = pboost_most_of_eight(least);
    far->u = sign * above;
    far->y = pboost_most_of_eight(target);
    far->size = above > below ? above : below;
}

/* Compute the result of `pboost_bounds` for losses whose bounds are not their derivatives at a row. Return
   0 for other losses. */
static inline int pboost_more_bounds(
    const pboost_rows *rows, const pboost_far *far, double step, double *steepest, double *most, double *value)
{
    const double p = rows->parameter, u = far->u + fabs(step);
    if (rows->loss == PBOOST_GAMMA) {
        *most = far->y * pboost_exp(-step);
        *steepest = *most > 1.0 ? *most : 1.0;
        *value = far->size + fabs(step) + *most;
    } else if (rows->loss == PBOOST_TWEEDIE) {
        const double a = far->y * pboost_exp((1.0 - p) * step), b = pboost_exp((2.0 - p) * (far->u + step));
        *most = (p - 1.0) * a + (2.0 - p) * b;
        *steepest = a > b ? a : b;
        *value = a / (p - 1.0) + b / (2.0 - p);
    } else if (rows->loss == PBOOST_EXPECTILE) {
        *most = 2.0 * (p > 0.5 ? p : 1.0 - p);
        *steepest = *most * u;
        *value = 0.5 * *most * u * u;
    } else if (rows->loss == PBOOST_MAPE) {
        *steepest = 1.0;
        *most = 0.0;
        *value = u;
    } else
        return 0;
    return 1;
}

/* Compute upper bounds of the gradients, Hessians and losses of rows after adding `step` to their
   decision values. */
static inline void pboost_bounds(
    const pboost_rows *rows, const pboost_far *far, double step, double *steepest, double *most, double *value)
{
    if (pboost_more_bounds(rows, far, step, steepest, most, value)) return;
    /* No row has a smaller margin or a larger absolute residual. */
    const double u = rows->loss == PBOOST_POISSON ? far->u + step
        : PBOOST_IS_OF_RESIDUAL(rows->loss) ? far->u + fabs(step)
        : rows->loss == PBOOST_SHARES ? pboost_share(far->u, pboost_exp(fabs(step))) : far->u - fabs(step);
    pboost_derivatives_baseline(rows, &u, &far->y, 1, 1, steepest, most, value);
    *steepest = fabs(*steepest);
    if (rows->loss == PBOOST_LOGISTIC || rows->loss == PBOOST_SHARES)
        *most = *steepest; /* p (1 - p) is at most 1 - p */
    if (rows->loss == PBOOST_HUBER || rows->loss == PBOOST_LOG_COSH) *most = 1.0;
    if (rows->loss == PBOOST_FOCAL) {
        const double gamma = rows->parameter;
        if (u < 0.0) { /* -p ln p <= 1/e and p (1 - p) <= 1/4 */
            *steepest = 1.0 + 0.36787944117144233 * gamma;
            *most = 0.36787944117144233 * gamma * (gamma + 1.0) + 0.25 * (2.0 * gamma + 1.0);
        } else
            *most = (2.0 * gamma + 1.0) * *steepest;
    }
    if (rows->loss == PBOOST_POISSON) {
        *steepest = *most > far->y ? *most : far->y;
        *value = *most + far->y * far->size;
    }
    if (rows->loss == PBOOST_QUANTILE && rows->parameter > 0.5) {
        *steepest = rows->parameter;
        *value = rows->parameter * u;
    }
}

#define PBOOST_SLOPES_ARGS                                                                         \
    const pboost_rows *rows, ptrdiff_t n, double scale, double *restrict gradient,                 \
    double *restrict curvature, double *restrict found
/* Compute the gradients and Hessians of n rows, weighted unless weights are numbers of copies. Hessians
   are increased so that no Newton step exceeds the limit. OUT found: the largest absolute gradient, the
   largest Hessian, and the sum of the losses times `scale`, each rounded. The arrays must have room for
   seven more rows. */
PBOOST_INLINE void pboost_slopes_body(PBOOST_SLOPES_ARGS, pboost_derivatives_pass derive)
{
    double u[PBOOST_ROWS], slope[PBOOST_ROWS], bend[PBOOST_ROWS], value[PBOOST_ROWS];
    double steepest[8] = {0.0}, most[8] = {0.0}, sum[8] = {0.0};
    const int of_margin = PBOOST_IS_OF_MARGIN(rows->loss), is_curved = PBOOST_IS_CURVED(rows->loss);
    for (ptrdiff_t start = 0; start < n; start += PBOOST_ROWS) {
        const ptrdiff_t m = n - start < PBOOST_ROWS ? n - start : PBOOST_ROWS;
        const double *y = rows->y + start, *w = rows->weight ? rows->weight + start : NULL;
        double *restrict g = gradient + start, *restrict h = curvature + start;
        pboost_margins(rows, start, m, 0.0, u);
        derive(rows, u, y, m, 1, slope, bend, value);
        for (ptrdiff_t i = 0; i < m; i++) {
            const double least = fabs(slope[i]) * rows->per_limit;
            h[i] = !is_curved ? 1.0 : bend[i] < least ? least : bend[i];
            g[i] = of_margin ? -y[i] * slope[i] : -slope[i];
        }
        if (w) /* a weight of 0 gives 0 even if the gradient is infinite */
            for (ptrdiff_t i = 0; i < m; i++) {
                const double times = rows->are_copies ? 1.0 : w[i];
                g[i] = w[i] > 0.0 ? times * g[i] : 0.0;
                h[i] = w[i] > 0.0 ? times * h[i] : 0.0;
                value[i] = w[i] > 0.0 ? times * value[i] : 0.0;
            }
        for (ptrdiff_t i = 0; i < m; i++) slope[i] = fabs(g[i]);
        pboost_raise(slope, pboost_fill(slope, m, 0.0), steepest);
        pboost_raise(h, pboost_fill(h, m, 0.0), most);
        if (w && rows->are_copies) pboost_copy_rounded(value, w, m, scale);
        pboost_add_rounded(value, pboost_fill(value, m, 0.0), w && rows->are_copies ? 1.0 : scale, sum);
    }
    found[0] = pboost_most_of_eight(steepest);
    found[1] = pboost_most_of_eight(most);
    found[2] = pboost_add_eight(sum);
}

/* Pack rows: scale and round the gradient and the Hessian, increase the Hessian to at least 1, and
   multiply both by the number of copies, if any. */
#define PBOOST_PACK_ARGS                                                                           \
    const int64_t *gradient, const double *curvature, const double *copies, const int32_t *rows,   \
    ptrdiff_t n, double gradient_scale, double curvature_scale, int64_t *packed
PBOOST_INLINE int64_t pboost_word(double gradient, double curvature)
{
    const uint64_t g = pboost_bits(gradient + PBOOST_MAGIC);
    const uint64_t h = pboost_bits(curvature + PBOOST_MAGIC) & 0xFFFFFFFFu;
    return (int64_t)((g << 32) + (h + (h == 0)));
}

PBOOST_INLINE int64_t pboost_word_of_copies(double copies, double gradient, double curvature)
{
    const double g = (gradient + PBOOST_MAGIC) - PBOOST_MAGIC, h = (curvature + PBOOST_MAGIC) - PBOOST_MAGIC;
    return pboost_word(copies * g, copies * (h < 1.0 ? 1.0 : h));
}

/* `gradient` has the bits of float64 numbers. `packed` may be the same array, because the listed row
   numbers increase. */
PBOOST_INLINE void pboost_pack_body(PBOOST_PACK_ARGS)
{
    if (copies)
        for (ptrdiff_t i = 0; i < n; i++) {
            const ptrdiff_t row = rows ? rows[i] : i;
            packed[i] = pboost_word_of_copies(
                copies[row], pboost_from_bits((uint64_t)gradient[row]) * gradient_scale,
                curvature[row] * curvature_scale);
        }
    else if (rows)
        for (ptrdiff_t i = 0; i < n; i++)
            packed[i] = pboost_word(
                pboost_from_bits((uint64_t)gradient[rows[i]]) * gradient_scale, curvature[rows[i]] * curvature_scale);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            packed[i] = pboost_word(
                pboost_from_bits((uint64_t)gradient[i]) * gradient_scale, curvature[i] * curvature_scale);
}

/* Pack n rows from their residuals: the listed rows, or the first n. */
PBOOST_INLINE void pboost_words_body(PBOOST_WORDS_ARGS)
{
    if (weight && are_copies)
        for (ptrdiff_t i = 0; i < n; i++) {
            const ptrdiff_t row = rows ? rows[i] : i;
            const double g = residual[row];
            packed[i] = pboost_word_of_copies(
                weight[row], g * gradient_scale, pboost_bend(fabs(g), per_limit) * curvature_scale);
        }
    else if (weight)
        for (ptrdiff_t i = 0; i < n; i++) {
            const ptrdiff_t row = rows ? rows[i] : i;
            const double w = weight[row], g = residual[row];
            packed[i] = pboost_word(
                w * g * gradient_scale, w * pboost_bend(fabs(g), per_limit) * curvature_scale);
        }
    else if (rows)
        for (ptrdiff_t i = 0; i < n; i++) {
            const double g = residual[rows[i]];
            packed[i] = pboost_word(g * gradient_scale, pboost_bend(fabs(g), per_limit) * curvature_scale);
        }
    else
        for (ptrdiff_t i = 0; i < n; i++)
            packed[i] = pboost_word(
                residual[i] * gradient_scale, pboost_bend(fabs(residual[i]), per_limit) * curvature_scale);
}

#define PBOOST_SUMS_ARGS                                                                           \
    const pboost_rows *rows, ptrdiff_t n, double step, int is_raised, const double *scale,         \
    double *restrict found
/* Sum the weighted gradients and Hessians of n rows after adding `step` to their decision values. Each
   term is multiplied by its `scale` and rounded. */
PBOOST_INLINE void pboost_sums_body(PBOOST_SUMS_ARGS, pboost_derivatives_pass derive)
{
    double u[PBOOST_ROWS], slope[PBOOST_ROWS], bend[PBOOST_ROWS], value[PBOOST_ROWS];
    double gradients[8] = {0.0}, curvatures[8] = {0.0};
    const int of_margin = PBOOST_IS_OF_MARGIN(rows->loss);
    for (ptrdiff_t start = 0; start < n; start += PBOOST_ROWS) {
        const ptrdiff_t m = n - start < PBOOST_ROWS ? n - start : PBOOST_ROWS;
        const double *y = rows->y + start;
        pboost_margins(rows, start, m, step, u);
        derive(rows, u, y, m, 0, slope, bend, value);
        for (ptrdiff_t i = 0; i < m; i++) {
            const double least = is_raised ? fabs(slope[i]) * rows->per_limit : 0.0;
            bend[i] = bend[i] < least ? least : bend[i];
            slope[i] = of_margin ? -y[i] * slope[i] : -slope[i];
        }
        if (rows->weight && rows->are_copies) {
            pboost_copy_rounded(slope, rows->weight + start, m, scale[0]);
            pboost_copy_rounded(bend, rows->weight + start, m, scale[1]);
        } else if (rows->weight) /* a branch in the loop would become a slow masked load of NULL */
            for (ptrdiff_t i = 0; i < m; i++) {
                bend[i] *= rows->weight[start + i];
                slope[i] *= rows->weight[start + i];
            }
        const double of_slope = rows->are_copies ? 1.0 : scale[0], of_bend = rows->are_copies ? 1.0 : scale[1];
        pboost_add_rounded(slope, pboost_fill(slope, m, 0.0), of_slope, gradients);
        pboost_add_rounded(bend, pboost_fill(bend, m, 0.0), of_bend, curvatures);
    }
    found[0] = pboost_add_eight(gradients);
    found[1] = pboost_add_eight(curvatures);
}

typedef struct {
    void (*farthest)(PBOOST_FARTHEST_ARGS);
    void (*slopes)(PBOOST_SLOPES_ARGS);
    void (*pack)(PBOOST_PACK_ARGS);
    pboost_words_pass words;
    void (*sums)(PBOOST_SUMS_ARGS);
} pboost_loss_passes;

#define PBOOST_LOSS_COPY(TARGET, name)                                                             \
    TARGET static void pboost_farthest_##name(PBOOST_FARTHEST_ARGS)                                \
    {                                                                                              \
        pboost_farthest_body(rows, n, far);                                                        \
    }                                                                                              \
    TARGET static void pboost_slopes_##name(PBOOST_SLOPES_ARGS)                                    \
    {                                                                                              \
        pboost_slopes_body(                                                                        \
            rows, n, scale, gradient, curvature, found, pboost_derivatives_##name);                \
    }                                                                                              \
    TARGET static void pboost_pack_##name(PBOOST_PACK_ARGS)                                        \
    {                                                                                              \
        pboost_pack_body(gradient, curvature, copies, rows, n, gradient_scale, curvature_scale, packed); \
    }                                                                                              \
    TARGET static void pboost_words_##name(PBOOST_WORDS_ARGS)                                      \
    {                                                                                              \
        pboost_words_body(                                                                         \
            residual, weight, are_copies, rows, n, per_limit, gradient_scale, curvature_scale, packed); \
    }                                                                                              \
    TARGET static void pboost_sums_##name(PBOOST_SUMS_ARGS)                                        \
    {                                                                                              \
        pboost_sums_body(rows, n, step, is_raised, scale, found, pboost_derivatives_##name);       \
    }
#define PBOOST_LOSS_PASSES(name)                                                                   \
    {pboost_farthest_##name, pboost_slopes_##name, pboost_pack_##name, pboost_words_##name, pboost_sums_##name}
PBOOST_COPIES(PBOOST_LOSS_COPY)
PBOOST_CHOOSE(pboost_choose_loss_passes, pboost_loss_passes, PBOOST_LOSS_PASSES)
#endif
