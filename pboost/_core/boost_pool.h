/* What the cuts of a node gain, and the best of them where counts what they gain in other nodes, too.
 *
 * Gains of a group of columns stand as its masses do, [bin][lane], in float32; NaN where a side of the
 * cut behind the bin has too little. See boost_simd.h.
 */
#ifndef PBOOST_BOOST_POOL_H
#define PBOOST_BOOST_POOL_H
#include "boost_scan.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The best cut of each lane; bin -1 where there is none. */
typedef struct {
    float value[PBOOST_LANES];
    int32_t bin[PBOOST_LANES];
} pboost_pooled_cuts;

/* `own` is the score of the node that is not split. */
#define PBOOST_GAIN_ARGS                                                                           \
    const pboost_lanes *group, int is_packed, const pboost_node_masses *at, double own,            \
    float *restrict gains

/* `pool` has the gains of all nodes together, of which `share` counts. */
#define PBOOST_POOLED_ARGS                                                                         \
    const float *gains, const float *pool, int bins, float share, pboost_pooled_cuts *restrict cuts

static void pboost_gain_baseline(PBOOST_GAIN_ARGS)
{
    for (int k = 0; k < PBOOST_LANES; k++) {
        double gl = is_packed ? 0.0 : group->below[k];
        double hl = is_packed ? 0.0 : group->below[PBOOST_LANES + k];
        int64_t word;
        memcpy(&word, group->below + k, sizeof(word));
        for (int b = 0; b < group->bins - 1; b++) {
            pboost_next_bin(group, is_packed, b * PBOOST_LANES + k, &word, &gl, &hl);
            const double gr = at->gradient - gl, hr = at->curvature - hl;
            const double dl = hl + at->l2, dr = hr + at->l2;
            const double q = gl * gl * dr + gr * gr * dl, d = dl * dr;
            const int is_enough = hl >= at->least && hr >= at->least;
            gains[b * PBOOST_LANES + k] = is_enough ? (float)(q / d - own) : NAN;
        }
    }
}

static void pboost_pooled_baseline(PBOOST_POOLED_ARGS)
{
    const float rest = 1.0f - share;
    for (int k = 0; k < PBOOST_LANES; k++) {
        float best = -INFINITY;
        int32_t bin = -1;
        for (int b = 0; b < bins - 1; b++) {
            const float value = rest * gains[b * PBOOST_LANES + k] + share * pool[b * PBOOST_LANES + k];
            if (value > best) best = value, bin = b;
        }
        cuts->value[k] = best, cuts->bin[k] = bin;
    }
}

/* Add gains, where there are any, to those of other nodes. */
static inline void pboost_pool_gains(const float *gains, ptrdiff_t n, float *restrict pool)
{
    for (ptrdiff_t i = 0; i < n; i++) pool[i] += gains[i] == gains[i] ? gains[i] : 0.0f;
}

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
PBOOST_ALWAYS PBOOST_WITH_AVX2 __m128 pboost_gain_four(
    const pboost_four *four, const pboost_same_four *at, __m256d own)
{
    __m256d q, d;
    const __m256d ok = pboost_score_four(four, at, &q, &d);
    const __m256d gain = _mm256_sub_pd(_mm256_div_pd(q, d), own);
    return _mm256_cvtpd_ps(_mm256_blendv_pd(_mm256_set1_pd(NAN), gain, ok));
}

PBOOST_ALWAYS PBOOST_WITH_AVX2 void pboost_gain_fours(PBOOST_GAIN_ARGS)
{
    const pboost_same_four node = {_mm256_set1_pd(at->gradient), _mm256_set1_pd(at->curvature),
                                   _mm256_set1_pd(at->least), _mm256_set1_pd(at->l2)};
    const __m256d of_node = _mm256_set1_pd(own);
    const double *masses = group->masses;
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_four low = pboost_begin_four(group->below, is_packed);
    pboost_four high = pboost_begin_four(group->below + 4, is_packed);
    for (int b = 0; b < group->bins - 1; b++, masses += PBOOST_LANES, gains += PBOOST_LANES) {
        pboost_next_four(&low, is_packed, masses, cells);
        pboost_next_four(&high, is_packed, masses + 4, cells);
        _mm_storeu_ps(gains, pboost_gain_four(&low, &node, of_node));
        _mm_storeu_ps(gains + 4, pboost_gain_four(&high, &node, of_node));
    }
}

PBOOST_WITH_AVX2 static void pboost_gain_avx2(PBOOST_GAIN_ARGS)
{
    if (is_packed)
        pboost_gain_fours(group, 1, at, own, gains);
    else
        pboost_gain_fours(group, 0, at, own, gains);
}

PBOOST_WITH_AVX2 static void pboost_pooled_avx2(PBOOST_POOLED_ARGS)
{
    const __m256 part = _mm256_set1_ps(share), rest = _mm256_set1_ps(1.0f - share);
    __m256 best = _mm256_set1_ps(-INFINITY), bin = _mm256_set1_ps(-1.0f), b = _mm256_setzero_ps();
    for (int i = 0; i < bins - 1; i++, gains += PBOOST_LANES, pool += PBOOST_LANES) {
        const __m256 value = _mm256_add_ps(
            _mm256_mul_ps(rest, _mm256_loadu_ps(gains)), _mm256_mul_ps(part, _mm256_loadu_ps(pool)));
        const __m256 is_better = _mm256_cmp_ps(value, best, _CMP_GT_OQ);
        best = _mm256_blendv_ps(best, value, is_better);
        bin = _mm256_blendv_ps(bin, b, is_better);
        b = _mm256_add_ps(b, _mm256_set1_ps(1.0f));
    }
    _mm256_storeu_ps(cuts->value, best);
    _mm256_storeu_si256((__m256i *)cuts->bin, _mm256_cvttps_epi32(bin));
}

PBOOST_ALWAYS PBOOST_WITH_AVX512 void pboost_gain_eights(PBOOST_GAIN_ARGS)
{
    const pboost_same_eight node = {_mm512_set1_pd(at->gradient), _mm512_set1_pd(at->curvature),
                                    _mm512_set1_pd(at->least), _mm512_set1_pd(at->l2)};
    const __m512d of_node = _mm512_set1_pd(own);
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_eight eight;
    eight.gl = _mm512_loadu_pd(group->below), eight.word = _mm512_castpd_si512(eight.gl);
    eight.hl = is_packed ? eight.gl : _mm512_loadu_pd(group->below + PBOOST_LANES);
    for (int b = 0; b < group->bins - 1; b++) {
        __m512d q, d;
        pboost_next_eight(&eight, is_packed, group->masses + (ptrdiff_t)b * PBOOST_LANES, cells);
        const __mmask8 ok = pboost_score_eight(&eight, &node, &q, &d);
        const __m512d gain = _mm512_mask_sub_pd(
            _mm512_set1_pd(NAN), ok, _mm512_div_pd(q, d), of_node);
        _mm256_storeu_ps(gains + (ptrdiff_t)b * PBOOST_LANES, _mm512_cvtpd_ps(gain));
    }
}

PBOOST_WITH_AVX512 static void pboost_gain_avx512(PBOOST_GAIN_ARGS)
{
    if (is_packed)
        pboost_gain_eights(group, 1, at, own, gains);
    else
        pboost_gain_eights(group, 0, at, own, gains);
}
#endif
#endif
