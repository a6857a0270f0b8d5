/* One step of ProbitBoost as a single pass over the rows of a leaf. It computes the new decision values,
 * the weights w and responses w z of the next step, and the sums for its regressions.
 */
#ifndef PBOOST_PROBIT_STEP_H
#define PBOOST_PROBIT_STEP_H
#include "probit_simd.h"

#define PBOOST_LANES 8 /* number of partial sums, which suits all register widths */

typedef struct {
    ptrdiff_t rows; /* number of rows, padded to a multiple of 8 with rows of weight 0 */
    ptrdiff_t room; /* distance between features in `x` */
    double *x; /* values, one feature after another */
    int32_t *column; /* features that are not constant */
    int32_t n_columns;
    double *w0, *y;
    double *w, *wz;
    double *lanes; /* (n_columns, 3, 8): partial sums of w x, w x^2 and w z x */
    double sum_w, sum_wz, loss, least, most; /* range of the margins */
} pboost_leaf;

#if defined(__GNUC__) || defined(__clang__)
typedef double pboost_two __attribute__((vector_size(16), aligned(8), may_alias));
typedef double pboost_four __attribute__((vector_size(32), aligned(8), may_alias));
typedef double pboost_eight __attribute__((vector_size(64), aligned(8), may_alias));

/* Add eight partial sums in a fixed order. */
PBOOST_INLINE double pboost_add_lanes(const double *s)
{
    const pboost_two *v = (const pboost_two *)s;
    const pboost_two half = (v[0] + v[2]) + (v[1] + v[3]);
    return half[0] + half[1];
}

/* Add the sums of a block of rows to the sums of two features. `vector` is the type of the registers. */
#define PBOOST_ADD_COLUMNS(name, vector)                                                          \
    PBOOST_INLINE void name(                                                                      \
        const double *x0, const double *x1, const double *w, const double *wz, ptrdiff_t n,       \
        int is_first, double *lanes0, double *lanes1)                                             \
    {                                                                                             \
        const int width = (int)(sizeof(vector) / sizeof(double));                                 \
        for (int part = 0; part < PBOOST_LANES; part += width) {                                  \
            vector a0 = {0}, b0 = {0}, c0 = {0}, a1 = {0}, b1 = {0}, c1 = {0};                    \
            for (ptrdiff_t i = part; i < n; i += PBOOST_LANES) {                                  \
                const vector wi = *(const vector *)(w + i), zi = *(const vector *)(wz + i);       \
                const vector v0 = *(const vector *)(x0 + i), v1 = *(const vector *)(x1 + i);      \
                const vector p0 = wi * v0, p1 = wi * v1;                                          \
                a0 += p0;                                                                         \
                b0 += p0 * v0;                                                                    \
                c0 += zi * v0;                                                                    \
                a1 += p1;                                                                         \
                b1 += p1 * v1;                                                                    \
                c1 += zi * v1;                                                                    \
            }                                                                                     \
            if (!is_first) {                                                                      \
                a0 += *(vector *)(lanes0 + part);                                                 \
                b0 += *(vector *)(lanes0 + PBOOST_LANES + part);                                  \
                c0 += *(vector *)(lanes0 + 2 * PBOOST_LANES + part);                              \
                a1 += *(vector *)(lanes1 + part);                                                 \
                b1 += *(vector *)(lanes1 + PBOOST_LANES + part);                                  \
                c1 += *(vector *)(lanes1 + 2 * PBOOST_LANES + part);                              \
            }                                                                                     \
            *(vector *)(lanes0 + part) = a0;                                                      \
            *(vector *)(lanes0 + PBOOST_LANES + part) = b0;                                       \
            *(vector *)(lanes0 + 2 * PBOOST_LANES + part) = c0;                                   \
            *(vector *)(lanes1 + part) = a1;                                                      \
            *(vector *)(lanes1 + PBOOST_LANES + part) = b1;                                       \
            *(vector *)(lanes1 + 2 * PBOOST_LANES + part) = c1;                                   \
        }                                                                                         \
    }
PBOOST_ADD_COLUMNS(pboost_add_by_2, pboost_two)
PBOOST_ADD_COLUMNS(pboost_add_by_4, pboost_four)
PBOOST_ADD_COLUMNS(pboost_add_by_8, pboost_eight)
#else
PBOOST_INLINE double pboost_add_lanes(const double *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

PBOOST_INLINE void pboost_add_by_2(
    const double *x0, const double *x1, const double *w, const double *wz, ptrdiff_t n,
    int is_first, double *lanes0, double *lanes1)
{
    for (int which = 0; which < 2; which++) {
        const double *x = which ? x1 : x0;
        double *lanes = which ? lanes1 : lanes0;
        double s[3][PBOOST_LANES] = {{0.0}};
        for (ptrdiff_t i = 0; i < n; i += PBOOST_LANES)
            for (int q = 0; q < PBOOST_LANES; q++) {
                const double wx = w[i + q] * x[i + q];
                s[0][q] += wx;
                s[1][q] += wx * x[i + q];
                s[2][q] += wz[i + q] * x[i + q];
            }
        for (int k = 0; k < 3; k++)
            for (int q = 0; q < PBOOST_LANES; q++) {
                double *lane = lanes + PBOOST_LANES * k + q;
                *lane = is_first ? s[k][q] : *lane + s[k][q];
            }
    }
}
#endif

/* Add the sums of a block of rows to the sums of all features. `level` selects the SIMD instructions. */
PBOOST_INLINE void pboost_add_all(pboost_leaf *leaf, ptrdiff_t start, ptrdiff_t n, int level)
{
    double unused[3 * PBOOST_LANES] = {0.0};
    for (int32_t c = 0; c < leaf->n_columns; c += 2) {
        const int last = c + 1 == leaf->n_columns; /* an unpaired last feature is processed twice */
        const double *x0 = leaf->x + leaf->column[c] * leaf->room + start;
        const double *x1 = last ? x0 : leaf->x + leaf->column[c + 1] * leaf->room + start;
        const double *w = leaf->w + start, *wz = leaf->wz + start;
        double *lanes0 = leaf->lanes + 3 * PBOOST_LANES * (ptrdiff_t)c;
        double *lanes1 = last ? unused : lanes0 + 3 * PBOOST_LANES;
#if defined(__GNUC__) || defined(__clang__)
        if (level == 2)
            pboost_add_by_8(x0, x1, w, wz, n, start == 0, lanes0, lanes1);
        else if (level == 1)
            pboost_add_by_4(x0, x1, w, wz, n, start == 0, lanes0, lanes1);
        else
#endif
            pboost_add_by_2(x0, x1, w, wz, n, start == 0, lanes0, lanes1);
    }
}

/* Partial sums of w, w z and w0 times the loss, and the smallest and the largest margin. */
typedef struct {
    double w[PBOOST_LANES], wz[PBOOST_LANES], loss[PBOOST_LANES];
    double least[PBOOST_LANES], most[PBOOST_LANES];
} pboost_totals;

/* Compute f + b + a x (without a feature, f + b) and the margins u for n rows, beginning at `start`. Return
   whether all margins are at most PBOOST_NEAR in size. */
PBOOST_INLINE int pboost_move(
    const pboost_leaf *leaf, const double *restrict f, double *restrict tried,
    const double *restrict x, double b, double a, ptrdiff_t start, ptrdiff_t n,
    double *restrict u)
{
    const double *restrict y = leaf->y + start;
    int64_t far = 0;
    if (x)
        for (ptrdiff_t i = 0; i < n; i++) {
            const double moved = f[start + i] + (b + a * x[start + i]);
            tried[start + i] = moved;
            u[i] = y[i] * moved;
        }
    else
        for (ptrdiff_t i = 0; i < n; i++) {
            const double moved = f[start + i] + b;
            tried[start + i] = moved;
            u[i] = y[i] * moved;
        }
    for (ptrdiff_t i = 0; i < n; i++) far |= fabs(u[i]) <= PBOOST_NEAR ? 0 : 1;
    return !far;
}

/* Compute w and w z of a block of rows, and their sums. */
PBOOST_INLINE void pboost_weigh(
    const pboost_leaf *leaf, ptrdiff_t start, ptrdiff_t n, int wants_loss,
    const double *restrict u, const double *restrict r, const double *restrict excess,
    const double *restrict loss, pboost_totals *restrict total)
{
    const double *restrict w0 = leaf->w0 + start, *restrict y = leaf->y + start;
    double *restrict w = leaf->w + start, *restrict wz = leaf->wz + start;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double wr = w0[i] * r[i];
        w[i] = wr * excess[i];
        wz[i] = wr * y[i];
    }
    pboost_totals block = {{0.0}, {0.0}, {0.0}, {0.0}, {0.0}};
    for (int q = 0; q < PBOOST_LANES; q++) {
        block.least[q] = total->least[q];
        block.most[q] = total->most[q];
    }
    for (ptrdiff_t i = 0; i < n; i += PBOOST_LANES)
        for (int q = 0; q < PBOOST_LANES; q++) {
            block.w[q] += w[i + q];
            block.wz[q] += wz[i + q];
            block.least[q] = u[i + q] < block.least[q] ? u[i + q] : block.least[q];
            block.most[q] = u[i + q] > block.most[q] ? u[i + q] : block.most[q];
        }
    if (wants_loss)
        for (ptrdiff_t i = 0; i < n; i += PBOOST_LANES)
            for (int q = 0; q < PBOOST_LANES; q++) block.loss[q] += w0[i + q] * loss[i + q];
    for (int q = 0; q < PBOOST_LANES; q++) {
        total->w[q] += block.w[q];
        total->wz[q] += block.wz[q];
        total->loss[q] += block.loss[q];
        total->least[q] = block.least[q];
        total->most[q] = block.most[q];
    }
}

/* Compute tried = f + b + a x (x may be NULL), and the values and sums for the next step. */
PBOOST_INLINE void pboost_step_body(
    pboost_leaf *leaf, const double *f, double *tried, const double *x, double b, double a,
    pboost_scale scale, int wants_loss, int wants_sums, int level)
{
    double u[PBOOST_ROWS], r[PBOOST_ROWS], excess[PBOOST_ROWS], loss[PBOOST_ROWS];
    pboost_totals total = {{0.0}, {0.0}, {0.0}, {0.0}, {0.0}};
    for (int q = 0; q < PBOOST_LANES; q++) {
        total.least[q] = INFINITY;
        total.most[q] = -INFINITY;
    }
    for (ptrdiff_t start = 0; start < leaf->rows; start += PBOOST_ROWS) {
        const ptrdiff_t left = leaf->rows - start;
        const ptrdiff_t n = left < PBOOST_ROWS ? left : PBOOST_ROWS;
        const int is_near = pboost_move(leaf, f, tried, x, b, a, start, n, u) && scale.origin == 0.0;
        if (is_near && wants_loss)
            pboost_probit_body(u, n, scale, 1, 1, r, excess, loss);
        else if (is_near)
            pboost_probit_body(u, n, scale, 1, 0, r, excess, loss);
        else if (wants_loss)
            pboost_probit_body(u, n, scale, 0, 1, r, excess, loss);
        else
            pboost_probit_body(u, n, scale, 0, 0, r, excess, loss);
        pboost_weigh(leaf, start, n, wants_loss, u, r, excess, loss, &total);
        if (wants_sums) pboost_add_all(leaf, start, n, level);
    }
    leaf->sum_w = pboost_add_lanes(total.w);
    leaf->sum_wz = pboost_add_lanes(total.wz);
    leaf->loss = pboost_add_lanes(total.loss);
    leaf->least = total.least[0];
    leaf->most = total.most[0];
    for (int q = 1; q < PBOOST_LANES; q++) {
        leaf->least = total.least[q] < leaf->least ? total.least[q] : leaf->least;
        leaf->most = total.most[q] > leaf->most ? total.most[q] : leaf->most;
    }
}

/* Return the position of the feature with the largest gain. Return -1 if a moment suffers from
   cancellation or another gain is equal up to rounding. There are no branches, because they would be
   unpredictable. */
static inline int32_t pboost_clear_best(
    const pboost_leaf *leaf, double cancelled, double no_variance, double tie, double *slope,
    double *mean, double *gain)
{
    const double sum_w = leaf->sum_w, sum_wz = leaf->sum_wz, least = no_variance * sum_w;
    double most = 0.0, before = 0.0, best_slope = 0.0, best_mean = 0.0;
    int32_t best = -1;
    int unclear = 0;
    for (int32_t c = 0; c < leaf->n_columns; c++) {
        const double *lanes = leaf->lanes + 3 * PBOOST_LANES * (ptrdiff_t)c;
        const double sum_wx = pboost_add_lanes(lanes), middle = sum_wx / sum_w;
        const double sum_wxx = pboost_add_lanes(lanes + PBOOST_LANES);
        const double m0 = sum_wxx - middle * sum_wx;
        const double m1 = pboost_add_lanes(lanes + 2 * PBOOST_LANES) - middle * sum_wz;
        const double a = m1 / m0, found = m1 * a;
        const int is_more = found > most;
        unclear |= !(m0 > cancelled * sum_wxx) | !(m0 > least);
        before = is_more ? most : before;
        most = is_more ? found : most;
        best_slope = is_more ? a : best_slope;
        best_mean = is_more ? middle : best_mean;
        best = is_more ? c : best;
    }
    *slope = best_slope;
    *mean = best_mean;
    *gain = most;
    return unclear || !(most > before * (1.0 + tie)) ? -1 : best;
}

/* The ranges of a feature in the rows with Y = 1 and in the rows with Y = -1, and the sum of w0 x^2. */
typedef struct {
    double low[2], high[2], square;
} pboost_ends;

static void pboost_find_ends(const pboost_leaf *leaf, const double *restrict x, pboost_ends *ends)
{
    const double *restrict y = leaf->y, *restrict w0 = leaf->w0;
    double low[2][PBOOST_LANES], high[2][PBOOST_LANES], square[PBOOST_LANES] = {0.0};
    for (int q = 0; q < PBOOST_LANES; q++) {
        low[0][q] = low[1][q] = INFINITY;
        high[0][q] = high[1][q] = -INFINITY;
    }
    for (ptrdiff_t i = 0; i < leaf->rows; i += PBOOST_LANES)
        for (int q = 0; q < PBOOST_LANES; q++) {
            const double v = x[i + q];
            const int is_own = y[i + q] > 0.0;
            const double own_low = is_own ? v : INFINITY, own_high = is_own ? v : -INFINITY;
            const double low_1 = is_own ? INFINITY : v, high_1 = is_own ? -INFINITY : v;
            low[0][q] = own_low < low[0][q] ? own_low : low[0][q];
            low[1][q] = low_1 < low[1][q] ? low_1 : low[1][q];
            high[0][q] = own_high > high[0][q] ? own_high : high[0][q];
            high[1][q] = high_1 > high[1][q] ? high_1 : high[1][q];
            square[q] += w0[i + q] * (v * v);
        }
    ends->square = pboost_add_lanes(square);
    for (int k = 0; k < 2; k++) {
        ends->low[k] = low[k][0];
        ends->high[k] = high[k][0];
        for (int q = 1; q < PBOOST_LANES; q++) {
            ends->low[k] = low[k][q] < ends->low[k] ? low[k][q] : ends->low[k];
            ends->high[k] = high[k][q] > ends->high[k] ? high[k][q] : ends->high[k];
        }
    }
}

#define PBOOST_STEP_ARGS                                                                          \
    pboost_leaf *leaf, const double *f, double *tried, const double *x, double b, double a,       \
        pboost_scale scale, int wants_loss, int wants_sums
typedef void (*pboost_step_kernel)(PBOOST_STEP_ARGS);

#define PBOOST_STEP_COPY(TARGET, name)                                                            \
    TARGET static void pboost_step_##name(PBOOST_STEP_ARGS)                                       \
    {                                                                                             \
        pboost_step_body(                                                                         \
            leaf, f, tried, x, b, a, scale, wants_loss, wants_sums, PBOOST_WIDTH_OF_##name);      \
    }
#define PBOOST_WIDTH_OF_baseline 0
#define PBOOST_WIDTH_OF_avx2 1
#define PBOOST_WIDTH_OF_avx512 2
#define PBOOST_STEP_OF(name) pboost_step_##name
PBOOST_COPIES(PBOOST_STEP_COPY)
PBOOST_CHOOSE(pboost_choose_step, pboost_step_kernel, PBOOST_STEP_OF)

#define PBOOST_PROBIT_ARGS                                                                        \
    const double *restrict u, ptrdiff_t n, pboost_scale scale, int wants_loss,                   \
        double *restrict ratio, double *restrict excess, double *restrict loss
typedef void (*pboost_probit_kernel)(PBOOST_PROBIT_ARGS);

#define PBOOST_PROBIT_COPY(TARGET, name)                                                          \
    TARGET static void pboost_probit_##name(PBOOST_PROBIT_ARGS)                                   \
    {                                                                                             \
        if (wants_loss)                                                                           \
            pboost_probit_body(u, n, scale, 0, 1, ratio, excess, loss);                           \
        else                                                                                      \
            pboost_probit_body(u, n, scale, 0, 0, ratio, excess, loss);                           \
    }
#define PBOOST_PROBIT_OF(name) pboost_probit_##name
PBOOST_COPIES(PBOOST_PROBIT_COPY)
PBOOST_CHOOSE(pboost_choose_probit, pboost_probit_kernel, PBOOST_PROBIT_OF)
#endif
