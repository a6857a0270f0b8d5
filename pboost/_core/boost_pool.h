/* Gains of the splits of a node, and its best splits by pooled gain.
 *
 * The gains of a group of lanes are stored like its histogram, [bin][lane], in float32. The gain is NaN
 * if the split after the bin has a child that is too small. If only pooled gains matter, the gains of
 * single nodes are not stored. See boost_simd.h.
 */
#ifndef PBOOST_BOOST_POOL_H
#define PBOOST_BOOST_POOL_H
#include "boost_scan.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>

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
            const float gain = is_enough ? (float)(q / d - own) : NAN;
            if (gains) gains[b * PBOOST_LANES + k] = gain;
            pool[b * PBOOST_LANES + k] += gain == gain ? gain : 0.0f;
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

static void pboost_shared_baseline(PBOOST_SHARED_ARGS)
{
    for (int k = 0; k < PBOOST_LANES; k++) {
        double gl = is_packed ? 0.0 : group->below[k];
        double hl = is_packed ? 0.0 : group->below[PBOOST_LANES + k];
        float best = -INFINITY;
        int32_t bin = -1;
        int64_t word;
        memcpy(&word, group->below + k, sizeof(word));
        for (int b = 0; b < group->bins - 1; b++) {
            pboost_next_bin(group, is_packed, b * PBOOST_LANES + k, &word, &gl, &hl);
            const float value = pool[b * PBOOST_LANES + k];
            if (hl >= at->least && at->curvature - hl >= at->least && value > best) best = value, bin = b;
        }
        cuts->value[k] = best, cuts->bin[k] = bin;
    }
}

#ifdef PBOOST_AVX512
PBOOST_INLINE PBOOST_AVX2 __m128 pboost_gain_four(
    const pboost_four *four, const pboost_same_four *at, __m256d own)
{
    __m256d q, d;
    const __m256d ok = pboost_score_four(four, at, &q, &d);
    const __m256d gain = _mm256_sub_pd(_mm256_div_pd(q, d), own);
    return _mm256_cvtpd_ps(_mm256_blendv_pd(_mm256_set1_pd(NAN), gain, ok));
}

PBOOST_INLINE PBOOST_AVX2 void pboost_add_four(__m128 gain, float *gains, float *pool)
{
    const __m128 some = _mm_and_ps(gain, _mm_cmpord_ps(gain, gain));
    if (gains) _mm_storeu_ps(gains, gain);
    _mm_storeu_ps(pool, _mm_add_ps(_mm_loadu_ps(pool), some));
}

PBOOST_INLINE PBOOST_AVX2 void pboost_gain_fours(PBOOST_GAIN_ARGS)
{
    const pboost_same_four node = {_mm256_set1_pd(at->gradient), _mm256_set1_pd(at->curvature),
                                   _mm256_set1_pd(at->least), _mm256_set1_pd(at->l2)};
    const __m256d of_node = _mm256_set1_pd(own);
    const double *masses = group->masses;
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_four low = pboost_begin_four(group->below, is_packed);
    pboost_four high = pboost_begin_four(group->below + 4, is_packed);
    for (int b = 0; b < group->bins - 1; b++, masses += PBOOST_LANES, pool += PBOOST_LANES) {
        pboost_next_four(&low, is_packed, masses, cells);
        pboost_next_four(&high, is_packed, masses + 4, cells);
        pboost_add_four(pboost_gain_four(&low, &node, of_node), gains, pool);
        pboost_add_four(pboost_gain_four(&high, &node, of_node), gains ? gains + 4 : NULL, pool + 4);
        if (gains) gains += PBOOST_LANES;
    }
}

PBOOST_AVX2 static void pboost_gain_avx2(PBOOST_GAIN_ARGS)
{
    if (is_packed && !gains)
        pboost_gain_fours(group, 1, at, own, NULL, pool);
    else if (is_packed)
        pboost_gain_fours(group, 1, at, own, gains, pool);
    else
        pboost_gain_fours(group, 0, at, own, gains, pool);
}

/* The best splits so far of eight lanes, over every PBOOST_CHAINS-th bin. A single chain of comparisons
   would be limited by latency. */
#define PBOOST_CHAINS 4
typedef struct {
    __m256 value, bin;
} pboost_chain;

/* Keep the splits in `other` that are better; ties go to the lower bin. */
PBOOST_INLINE PBOOST_AVX2 pboost_chain pboost_better_of(pboost_chain best, pboost_chain other)
{
    const __m256 is_better = _mm256_or_ps(
        _mm256_cmp_ps(other.value, best.value, _CMP_GT_OQ),
        _mm256_and_ps(_mm256_cmp_ps(other.value, best.value, _CMP_EQ_OQ),
                      _mm256_cmp_ps(other.bin, best.bin, _CMP_LT_OQ)));
    best.value = _mm256_blendv_ps(best.value, other.value, is_better);
    best.bin = _mm256_blendv_ps(best.bin, other.bin, is_better);
    return best;
}

PBOOST_AVX2 static void pboost_pooled_avx2(PBOOST_POOLED_ARGS)
{
    const __m256 part = _mm256_set1_ps(share), rest = _mm256_set1_ps(1.0f - share);
    pboost_chain best[PBOOST_CHAINS];
    __m256 first = _mm256_setzero_ps();
    for (int k = 0; k < PBOOST_CHAINS; k++)
        best[k].value = _mm256_set1_ps(-INFINITY), best[k].bin = _mm256_set1_ps(-1.0f);
#define PBOOST_POOLED_BIN(k, b)                                                                    \
    {                                                                                              \
        const ptrdiff_t cell = (ptrdiff_t)(b) * PBOOST_LANES;                                      \
        const __m256 value = _mm256_add_ps(_mm256_mul_ps(rest, _mm256_loadu_ps(gains + cell)),     \
                                           _mm256_mul_ps(part, _mm256_loadu_ps(pool + cell)));     \
        const __m256 is_better = _mm256_cmp_ps(value, best[k].value, _CMP_GT_OQ);                  \
        best[k].value = _mm256_blendv_ps(best[k].value, value, is_better);                         \
        best[k].bin = _mm256_blendv_ps(                                                            \
            best[k].bin, _mm256_add_ps(first, _mm256_set1_ps((float)(k))), is_better);             \
    }
    int b = 0;
    for (; b + PBOOST_CHAINS <= bins - 1; b += PBOOST_CHAINS) {
        for (int k = 0; k < PBOOST_CHAINS; k++) PBOOST_POOLED_BIN(k, b + k)
        first = _mm256_add_ps(first, _mm256_set1_ps((float)PBOOST_CHAINS));
    }
    for (int k = 0; b + k < bins - 1; k++) PBOOST_POOLED_BIN(k, b + k)
    for (int k = 1; k < PBOOST_CHAINS; k++) best[0] = pboost_better_of(best[0], best[k]);
    _mm256_storeu_ps(cuts->value, best[0].value);
    _mm256_storeu_si256((__m256i *)cuts->bin, _mm256_cvttps_epi32(best[0].bin));
}

/* The best splits of four lanes so far, and their pooled gains. */
typedef struct {
    __m128 value, bin;
} pboost_shared_four;

PBOOST_INLINE PBOOST_AVX2 void pboost_share_four(
    const pboost_four *four, const pboost_same_four *at, const float *pool, __m128 bin,
    pboost_shared_four *best)
{
    const __m256d rest = _mm256_sub_pd(at->curvature, four->hl);
    const __m256d ok = _mm256_and_pd(_mm256_cmp_pd(four->hl, at->least, _CMP_GE_OQ),
                                     _mm256_cmp_pd(rest, at->least, _CMP_GE_OQ));
    const __m128 value = _mm_loadu_ps(pool);
    const __m128 is_enough = _mm_shuffle_ps(_mm_castpd_ps(_mm256_castpd256_pd128(ok)),
                                            _mm_castpd_ps(_mm256_extractf128_pd(ok, 1)), 0x88);
    const __m128 is_better = _mm_and_ps(is_enough, _mm_cmpgt_ps(value, best->value));
    best->value = _mm_blendv_ps(best->value, value, is_better);
    best->bin = _mm_blendv_ps(best->bin, bin, is_better);
}

PBOOST_INLINE PBOOST_AVX2 void pboost_share_fours(PBOOST_SHARED_ARGS)
{
    const pboost_same_four node = {_mm256_set1_pd(at->gradient), _mm256_set1_pd(at->curvature),
                                   _mm256_set1_pd(at->least), _mm256_set1_pd(at->l2)};
    const double *masses = group->masses;
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_four four[2] = {
        pboost_begin_four(group->below, is_packed), pboost_begin_four(group->below + 4, is_packed)};
    pboost_shared_four best[2];
    __m128 bin = _mm_setzero_ps();
    for (int k = 0; k < 2; k++) best[k].value = _mm_set1_ps(-INFINITY), best[k].bin = _mm_set1_ps(-1.0f);
    for (int b = 0; b < group->bins - 1; b++, masses += PBOOST_LANES, pool += PBOOST_LANES) {
        for (int k = 0; k < 2; k++) {
            pboost_next_four(&four[k], is_packed, masses + 4 * k, cells);
            pboost_share_four(&four[k], &node, pool + 4 * k, bin, &best[k]);
        }
        bin = _mm_add_ps(bin, _mm_set1_ps(1.0f));
    }
    for (int k = 0; k < 2; k++) {
        _mm_storeu_ps(cuts->value + 4 * k, best[k].value);
        _mm_storeu_si128((__m128i *)(cuts->bin + 4 * k), _mm_cvttps_epi32(best[k].bin));
    }
}

PBOOST_AVX2 static void pboost_shared_avx2(PBOOST_SHARED_ARGS)
{
    if (is_packed)
        pboost_share_fours(group, 1, at, pool, cuts);
    else
        pboost_share_fours(group, 0, at, pool, cuts);
}

PBOOST_INLINE PBOOST_AVX512 pboost_eight pboost_begin_eight(const double *below, int is_packed)
{
    pboost_eight eight;
    eight.gl = _mm512_loadu_pd(below), eight.word = _mm512_castpd_si512(eight.gl);
    eight.hl = is_packed ? eight.gl : _mm512_loadu_pd(below + PBOOST_LANES);
    return eight;
}

PBOOST_INLINE PBOOST_AVX512 void pboost_gain_eights(PBOOST_GAIN_ARGS)
{
    const pboost_same_eight node = {_mm512_set1_pd(at->gradient), _mm512_set1_pd(at->curvature),
                                    _mm512_set1_pd(at->least), _mm512_set1_pd(at->l2)};
    const __m512d of_node = _mm512_set1_pd(own);
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_eight eight = pboost_begin_eight(group->below, is_packed);
    for (int b = 0; b < group->bins - 1; b++, pool += PBOOST_LANES) {
        __m512d q, d;
        pboost_next_eight(&eight, is_packed, group->masses + (ptrdiff_t)b * PBOOST_LANES, cells);
        const __mmask8 ok = pboost_score_eight(&eight, &node, &q, &d);
        const __m512d gain = _mm512_mask_sub_pd(
            _mm512_set1_pd(NAN), ok, _mm512_div_pd(q, d), of_node);
        const __m256 single = _mm512_cvtpd_ps(gain), sum = _mm256_loadu_ps(pool);
        const __mmask8 some = _mm256_cmp_ps_mask(single, single, _CMP_ORD_Q);
        if (gains) _mm256_storeu_ps(gains + (ptrdiff_t)b * PBOOST_LANES, single);
        _mm256_storeu_ps(pool, _mm256_mask_add_ps(sum, some, sum, single));
    }
}

PBOOST_AVX512 static void pboost_gain_avx512(PBOOST_GAIN_ARGS)
{
    if (is_packed && !gains)
        pboost_gain_eights(group, 1, at, own, NULL, pool);
    else if (is_packed)
        pboost_gain_eights(group, 1, at, own, gains, pool);
    else
        pboost_gain_eights(group, 0, at, own, gains, pool);
}

PBOOST_INLINE PBOOST_AVX512 void pboost_share_eights(PBOOST_SHARED_ARGS)
{
    const __m512d least = _mm512_set1_pd(at->least), whole = _mm512_set1_pd(at->curvature);
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_eight eight = pboost_begin_eight(group->below, is_packed);
    __m256 best = _mm256_set1_ps(-INFINITY);
    __m256i bin = _mm256_set1_epi32(-1);
    for (int b = 0; b < group->bins - 1; b++, pool += PBOOST_LANES) {
        pboost_next_eight(&eight, is_packed, group->masses + (ptrdiff_t)b * PBOOST_LANES, cells);
        const __mmask8 ok = _mm512_mask_cmp_pd_mask(
            _mm512_cmp_pd_mask(eight.hl, least, _CMP_GE_OQ), _mm512_sub_pd(whole, eight.hl), least,
            _CMP_GE_OQ);
        const __m256 value = _mm256_loadu_ps(pool);
        const __mmask8 is_better = _mm256_mask_cmp_ps_mask(ok, value, best, _CMP_GT_OQ);
        best = _mm256_mask_mov_ps(best, is_better, value);
        bin = _mm256_mask_mov_epi32(bin, is_better, _mm256_set1_epi32(b));
    }
    _mm256_storeu_ps(cuts->value, best);
    _mm256_storeu_si256((__m256i *)cuts->bin, bin);
}

PBOOST_AVX512 static void pboost_shared_avx512(PBOOST_SHARED_ARGS)
{
    if (is_packed)
        pboost_share_eights(group, 1, at, pool, cuts);
    else
        pboost_share_eights(group, 0, at, pool, cuts);
}
/* Wider registers would not be faster. */
#define pboost_pooled_avx512 pboost_pooled_avx2
#endif
#endif
