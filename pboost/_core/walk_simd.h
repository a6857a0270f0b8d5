/* Chains of stumps on a tile of rows: one comparison and one addition per row and stump.
 *
 * The code is compiled for the baseline and, on x86 with GCC or Clang, for AVX2 and AVX-512. The variant is
 * chosen at import. All variants give bit-identical results: they add the votes of a row in node order,
 * without fused multiply-add (-ffp-contract=off).
 */
#ifndef PBOOST_WALK_SIMD_H
#define PBOOST_WALK_SIMD_H
#include "side.h"
#include "simd.h"
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PBOOST_TILE 64 /* number of rows per tile; each feature of a tile fills 8 cache lines */

#define PBOOST_CHAIN_ARGS                                                                        \
    const double *restrict tile, const int32_t *restrict feature,                                \
    const double *restrict threshold, const double *restrict vote, ptrdiff_t n_nodes,            \
    double *restrict score

static void pboost_chain_baseline(PBOOST_CHAIN_ARGS)
{
    for (ptrdiff_t k = 0; k < n_nodes; k++) {
        const double *x = tile + (ptrdiff_t)feature[k] * PBOOST_TILE;
        const double cut = threshold[k], below = vote[2 * k], above = vote[2 * k + 1];
        for (int r = 0; r < PBOOST_TILE; r++) score[r] += pboost_goes_right(x[r], cut) ? above : below;
    }
}

/* Return x, or `fill` if x is NaN. The operator ?: would be compiled to a branch. With many missing
 * values, half of the branch predictions would be wrong.
 */
static inline double pboost_known_or(double x, double fill)
{
    uint64_t known, other;
    const uint64_t mask = -(uint64_t)(x != x);
    memcpy(&known, &x, sizeof x);
    memcpy(&other, &fill, sizeof fill);
    known = (known & ~mask) | (other & mask);
    memcpy(&x, &known, sizeof x);
    return x;
}

/* Return 0 if all values of a full tile are finite, else 1. */
static int pboost_tile_is_bad(const double *restrict tile, ptrdiff_t d)
{
    double sum[PBOOST_TILE] = {0.0};
    double bad = 0.0;
    for (ptrdiff_t j = 0; j < d; j++)
        for (int r = 0; r < PBOOST_TILE; r++) {
            const double x = tile[j * PBOOST_TILE + r];
            sum[r] += x - x; /* 0 if x is finite, else NaN */
        }
    for (int r = 0; r < PBOOST_TILE; r++) bad += sum[r];
    return bad != 0.0;
}

#define PBOOST_SPREAD_ARGS                                                                       \
    double *restrict tile, ptrdiff_t d, const int32_t *restrict above, ptrdiff_t n_above,        \
        const double *restrict fill

/* Replace the missing values (NaN) of feature j of a tile by fill[j]. If `fill` is NULL, replace them by
 * the least number, which is greater than no threshold except the -infinity of leaves. Columns d, d + 1,
 * ... become copies of the listed features, in increasing order, with infinity for missing values.
 * Returns 0 if no value is infinite, else 1.
 */
PBOOST_INLINE int pboost_spread_body(PBOOST_SPREAD_ARGS)
{
    double sum[PBOOST_TILE] = {0.0};
    double bad = 0.0;
    double *restrict copy = tile + d * PBOOST_TILE;
    for (ptrdiff_t j = 0; j < d; j++) {
        double *restrict x = tile + j * PBOOST_TILE;
        const double known = fill ? fill[j] : -DBL_MAX;
        if (n_above && *above == j) {
            for (int r = 0; r < PBOOST_TILE; r++) copy[r] = x[r] == x[r] ? x[r] : INFINITY;
            copy += PBOOST_TILE, above++, n_above--;
        }
        for (int r = 0; r < PBOOST_TILE; r++) {
            sum[r] += x[r] == x[r] ? x[r] - x[r] : 0.0;
            x[r] = x[r] == x[r] ? x[r] : known;
        }
    }
    for (int r = 0; r < PBOOST_TILE; r++) bad += sum[r];
    return bad != 0.0;
}

#define PBOOST_FILL_ARGS                                                                         \
    const double *x, const double *restrict fill, ptrdiff_t d, double *out

/* Copy the d values of a row and replace missing values by `fill`; `out` may be x. */
PBOOST_INLINE void pboost_fill_body(PBOOST_FILL_ARGS)
{
    for (ptrdiff_t j = 0; j < d; j++) out[j] = pboost_known_or(x[j], fill[j]);
}

/* Set columns first, first + 1, ... of a tile to the table entries of the categories of the listed
 * features. A table has 256 entries.
 */
static inline void pboost_look_up_levels(
    double *restrict tile, ptrdiff_t first, const int32_t *restrict column, ptrdiff_t n,
    const uint8_t *restrict table)
{
    uint8_t level[PBOOST_TILE];
    for (ptrdiff_t k = 0; k < n; k++) {
        const double *x = tile + (ptrdiff_t)column[k] * PBOOST_TILE;
        double *restrict out = tile + (first + k) * PBOOST_TILE;
        if (!k || column[k] != column[k - 1])
            for (int r = 0; r < PBOOST_TILE; r++) level[r] = (uint8_t)pboost_level(x[r]);
        for (int r = 0; r < PBOOST_TILE; r++) out[r] = table[256 * k + level[r]];
    }
}

typedef void (*pboost_chain_kernel)(PBOOST_CHAIN_ARGS);
typedef int (*pboost_spread_kernel)(PBOOST_SPREAD_ARGS);
typedef void (*pboost_fill_kernel)(PBOOST_FILL_ARGS);

#ifdef PBOOST_AVX512
#include <immintrin.h>

/* The sums of 32 rows stay in eight registers while the votes of all nodes are added. */
PBOOST_AVX2 static void pboost_chain_avx2(PBOOST_CHAIN_ARGS)
{
    for (int part = 0; part < PBOOST_TILE; part += 32) {
        __m256d sum[8];
        for (int q = 0; q < 8; q++) sum[q] = _mm256_loadu_pd(score + part + 4 * q);
        for (ptrdiff_t k = 0; k < n_nodes; k++) {
            const double *x = tile + (ptrdiff_t)feature[k] * PBOOST_TILE + part;
            const __m256d cut = _mm256_set1_pd(threshold[k]);
            const __m256d below = _mm256_set1_pd(vote[2 * k]);
            const __m256d above = _mm256_set1_pd(vote[2 * k + 1]);
            for (int q = 0; q < 8; q++) {
                const __m256d is_above =
                    _mm256_cmp_pd(_mm256_loadu_pd(x + 4 * q), cut, _CMP_GT_OQ);
                sum[q] = _mm256_add_pd(sum[q], _mm256_blendv_pd(below, above, is_above));
            }
        }
        for (int q = 0; q < 8; q++) _mm256_storeu_pd(score + part + 4 * q, sum[q]);
    }
}

PBOOST_AVX512 static void pboost_chain_avx512(PBOOST_CHAIN_ARGS)
{
    __m512d sum[8];
    for (int q = 0; q < 8; q++) sum[q] = _mm512_loadu_pd(score + 8 * q);
    for (ptrdiff_t k = 0; k < n_nodes; k++) {
        const double *x = tile + (ptrdiff_t)feature[k] * PBOOST_TILE;
        const __m512d cut = _mm512_set1_pd(threshold[k]);
        const __m512d below = _mm512_set1_pd(vote[2 * k]);
        const __m512d above = _mm512_set1_pd(vote[2 * k + 1]);
        for (int q = 0; q < 8; q++) {
            const __mmask8 is_above =
                _mm512_cmp_pd_mask(_mm512_loadu_pd(x + 8 * q), cut, _CMP_GT_OQ);
            sum[q] = _mm512_add_pd(sum[q], _mm512_mask_blend_pd(is_above, below, above));
        }
    }
    for (int q = 0; q < 8; q++) _mm512_storeu_pd(score + 8 * q, sum[q]);
}

#endif

#define PBOOST_TILE_COPY(TARGET, name)                                                           \
    TARGET static int pboost_spread_##name(PBOOST_SPREAD_ARGS)                                   \
    {                                                                                            \
        return pboost_spread_body(tile, d, above, n_above, fill);                                \
    }                                                                                            \
    TARGET static void pboost_fill_##name(PBOOST_FILL_ARGS)                                      \
    {                                                                                            \
        pboost_fill_body(x, fill, d, out);                                                       \
    }
#define PBOOST_CHAIN_OF(name) pboost_chain_##name
#define PBOOST_SPREAD_OF(name) pboost_spread_##name
#define PBOOST_FILL_OF(name) pboost_fill_##name
PBOOST_COPIES(PBOOST_TILE_COPY)
PBOOST_CHOOSE(pboost_choose_chain, pboost_chain_kernel, PBOOST_CHAIN_OF)
PBOOST_CHOOSE(pboost_choose_spread, pboost_spread_kernel, PBOOST_SPREAD_OF)
PBOOST_CHOOSE(pboost_choose_fill, pboost_fill_kernel, PBOOST_FILL_OF)
#endif
