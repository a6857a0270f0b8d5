/* Find the best splits of a node of a boosted tree from its histogram; see boost_simd.h. */
#ifndef PBOOST_BOOST_SCAN_H
#define PBOOST_BOOST_SCAN_H
#include "boost_histogram.h"
#include <string.h>

/* Add the next bin of a lane to the sums of the left child, which may be packed. */
PBOOST_INLINE void pboost_next_bin(
    const pboost_lanes *group, int is_packed, int cell, int64_t *word, double *gl, double *hl)
{
    if (is_packed) {
        *word += ((const int64_t *)group->masses)[cell];
        *gl = PBOOST_GRADIENT_IN(*word), *hl = PBOOST_CURVATURE_IN(*word);
    } else {
        *gl += group->masses[cell];
        *hl += group->masses[group->bins * PBOOST_LANES + cell];
    }
}

/* Find the best split of a lane; ties go to the first bin. */
static void pboost_scan_lane(
    const pboost_lanes *group, int is_packed, const pboost_node_masses *at, int k, pboost_cuts *cuts)
{
    double gl = is_packed ? 0.0 : group->below[k], hl = is_packed ? 0.0 : group->below[PBOOST_LANES + k];
    double numerator = -1.0, divisor = 1.0;
    int64_t word;
    int32_t bin = -1;
    memcpy(&word, group->below + k, sizeof(word));
    for (int b = 0; b < group->bins - 1; b++) {
        pboost_next_bin(group, is_packed, b * PBOOST_LANES + k, &word, &gl, &hl);
        const double gr = at->gradient - gl, hr = at->curvature - hl;
        if (!(hl >= at->least && hr >= at->least)) continue;
        const double dl = hl + at->l2, dr = hr + at->l2;
        const double q = gl * gl * dr + gr * gr * dl, d = dl * dr;
        if (q * divisor > numerator * d) numerator = q, divisor = d, bin = b;
    }
    cuts->numerator[k] = numerator, cuts->divisor[k] = divisor, cuts->bin[k] = bin;
}

static void pboost_scan_baseline(PBOOST_SCAN_ARGS)
{
    for (int g = 0; g < n_groups; g++)
        for (int k = 0; k < PBOOST_LANES; k++)
            pboost_scan_lane(groups + g, is_packed, at, k, cuts + g);
}

#ifdef PBOOST_AVX512
#include <immintrin.h>

/* Values that are the same for all lanes of a scan. */
typedef struct {
    __m256d gradient, curvature, least, l2;
} pboost_same_four;

/* Four lanes: the sums of their left children, also in packed form, and their best splits. */
typedef struct {
    __m256i word;
    __m256d gl, hl, numerator, divisor, bin;
} pboost_four;

PBOOST_INLINE PBOOST_AVX2 pboost_four pboost_begin_four(const double *below, int is_packed)
{
    const __m256d none = _mm256_set1_pd(-1.0), one = _mm256_set1_pd(1.0);
    const __m256d gl = _mm256_loadu_pd(below), hl = is_packed ? gl : _mm256_loadu_pd(below + PBOOST_LANES);
    const pboost_four four = {_mm256_castpd_si256(gl), gl, hl, none, one, none};
    return four;
}

/* Add the next bin of four lanes. */
PBOOST_INLINE PBOOST_AVX2 void pboost_next_four(
    pboost_four *four, int is_packed, const double *masses, ptrdiff_t cells)
{
    if (is_packed) { /* the sums are exact, because each half of a word fits into a significand */
        const __m256i low = _mm256_set1_epi64x(0x4330000000000000), high = _mm256_set1_epi64x(0x4330000080000000);
        four->word = _mm256_add_epi64(four->word, _mm256_loadu_si256((const __m256i *)masses));
        four->gl = _mm256_sub_pd(
            _mm256_castsi256_pd(_mm256_xor_si256(_mm256_srli_epi64(four->word, 32), high)),
            _mm256_castsi256_pd(high));
        four->hl = _mm256_sub_pd(
            _mm256_castsi256_pd(_mm256_blend_epi32(four->word, low, 0xAA)), _mm256_castsi256_pd(low));
    } else {
        four->gl = _mm256_add_pd(four->gl, _mm256_loadu_pd(masses));
        four->hl = _mm256_add_pd(four->hl, _mm256_loadu_pd(masses + cells));
    }
}

/* Compute the scores of the splits of four lanes. Return the lanes in which both children are large enough.
 * */
PBOOST_INLINE PBOOST_AVX2 __m256d pboost_score_four(
    const pboost_four *four, const pboost_same_four *at, __m256d *numerator, __m256d *divisor)
{
    const __m256d gl = four->gl, hl = four->hl;
    const __m256d gr = _mm256_sub_pd(at->gradient, gl), hr = _mm256_sub_pd(at->curvature, hl);
    const __m256d dl = _mm256_add_pd(hl, at->l2), dr = _mm256_add_pd(hr, at->l2);
    *numerator = _mm256_add_pd(
        _mm256_mul_pd(_mm256_mul_pd(gl, gl), dr), _mm256_mul_pd(_mm256_mul_pd(gr, gr), dl));
    *divisor = _mm256_mul_pd(dl, dr);
    return _mm256_and_pd(
        _mm256_cmp_pd(hl, at->least, _CMP_GE_OQ), _mm256_cmp_pd(hr, at->least, _CMP_GE_OQ));
}

PBOOST_INLINE PBOOST_AVX2 void pboost_scan_four(
    pboost_four *four, int is_packed, const double *masses, ptrdiff_t cells,
    const pboost_same_four *at, __m256d bin)
{
    __m256d q, d;
    pboost_next_four(four, is_packed, masses, cells);
    const __m256d ok = pboost_score_four(four, at, &q, &d);
    const __m256d is_better = _mm256_and_pd(ok, _mm256_cmp_pd(
        _mm256_mul_pd(q, four->divisor), _mm256_mul_pd(four->numerator, d), _CMP_GT_OQ));
    four->numerator = _mm256_blendv_pd(four->numerator, q, is_better);
    four->divisor = _mm256_blendv_pd(four->divisor, d, is_better);
    four->bin = _mm256_blendv_pd(four->bin, bin, is_better);
}

PBOOST_INLINE PBOOST_AVX2 void pboost_end_four(const pboost_four *four, pboost_cuts *cuts, int k)
{
    _mm256_storeu_pd(cuts->numerator + k, four->numerator);
    _mm256_storeu_pd(cuts->divisor + k, four->divisor);
    _mm_storeu_si128((__m128i *)(cuts->bin + k), _mm256_cvttpd_epi32(four->bin));
}

PBOOST_INLINE PBOOST_AVX2 void pboost_scan_fours(
    const pboost_lanes *group, int is_packed, const pboost_same_four *at, pboost_cuts *cuts)
{
    const double *masses = group->masses;
    const ptrdiff_t cells = (ptrdiff_t)group->bins * PBOOST_LANES;
    pboost_four low = pboost_begin_four(group->below, is_packed);
    pboost_four high = pboost_begin_four(group->below + 4, is_packed);
    __m256d bin = _mm256_setzero_pd();
    for (int b = 0; b < group->bins - 1; b++, masses += PBOOST_LANES) {
        pboost_scan_four(&low, is_packed, masses, cells, at, bin);
        pboost_scan_four(&high, is_packed, masses + 4, cells, at, bin);
        bin = _mm256_add_pd(bin, _mm256_set1_pd(1.0));
    }
    pboost_end_four(&low, cuts, 0);
    pboost_end_four(&high, cuts, 4);
}

PBOOST_AVX2 static void pboost_scan_avx2(PBOOST_SCAN_ARGS)
{
    const pboost_same_four node = {_mm256_set1_pd(at->gradient), _mm256_set1_pd(at->curvature),
                                   _mm256_set1_pd(at->least), _mm256_set1_pd(at->l2)};
    for (int g = 0; g < n_groups; g++)
        if (is_packed)
            pboost_scan_fours(groups + g, 1, &node, cuts + g);
        else
            pboost_scan_fours(groups + g, 0, &node, cuts + g);
}

typedef struct {
    __m512d gradient, curvature, least, l2;
} pboost_same_eight;

/* A group of eight lanes: the sums of their left children, also in packed form, and their best splits. */
typedef struct {
    __m512i word, bin;
    __m512d gl, hl, numerator, divisor;
} pboost_eight;

/* Add the next bin of eight lanes. */
PBOOST_INLINE PBOOST_AVX512 void pboost_next_eight(
    pboost_eight *eight, int is_packed, const double *masses, ptrdiff_t cells)
{
    if (is_packed) {
        eight->word = _mm512_add_epi64(eight->word, _mm512_loadu_si512(masses));
        eight->gl = _mm512_cvtepi64_pd(_mm512_srai_epi64(eight->word, 32));
        eight->hl = _mm512_cvtepi64_pd(_mm512_and_si512(eight->word, _mm512_set1_epi64(0xFFFFFFFF)));
    } else {
        eight->gl = _mm512_add_pd(eight->gl, _mm512_loadu_pd(masses));
        eight->hl = _mm512_add_pd(eight->hl, _mm512_loadu_pd(masses + cells));
    }
}

/* Compute the scores of the splits of eight lanes. Return the lanes in which both children are large
 * enough. */
PBOOST_INLINE PBOOST_AVX512 __mmask8 pboost_score_eight(
    const pboost_eight *eight, const pboost_same_eight *at, __m512d *numerator, __m512d *divisor)
{
    const __m512d gl = eight->gl, hl = eight->hl;
    const __m512d gr = _mm512_sub_pd(at->gradient, gl), hr = _mm512_sub_pd(at->curvature, hl);
    const __m512d dl = _mm512_add_pd(hl, at->l2), dr = _mm512_add_pd(hr, at->l2);
    *numerator = _mm512_add_pd(
        _mm512_mul_pd(_mm512_mul_pd(gl, gl), dr), _mm512_mul_pd(_mm512_mul_pd(gr, gr), dl));
    *divisor = _mm512_mul_pd(dl, dr);
    return _mm512_mask_cmp_pd_mask(
        _mm512_cmp_pd_mask(hl, at->least, _CMP_GE_OQ), hr, at->least, _CMP_GE_OQ);
}

PBOOST_INLINE PBOOST_AVX512 void pboost_scan_eight(
    pboost_eight *eight, int is_packed, const double *masses, ptrdiff_t cells,
    const pboost_same_eight *at, __m512i bin)
{
    __m512d q, d;
    pboost_next_eight(eight, is_packed, masses, cells);
    const __mmask8 ok = pboost_score_eight(eight, at, &q, &d);
    const __mmask8 is_better = _mm512_mask_cmp_pd_mask(
        ok, _mm512_mul_pd(q, eight->divisor), _mm512_mul_pd(eight->numerator, d), _CMP_GT_OQ);
    eight->numerator = _mm512_mask_mov_pd(eight->numerator, is_better, q);
    eight->divisor = _mm512_mask_mov_pd(eight->divisor, is_better, d);
    eight->bin = _mm512_mask_mov_epi64(eight->bin, is_better, bin);
}

/* Scan several groups together up to the last bin that all groups have, then scan the rest of each group.
 * */
PBOOST_INLINE PBOOST_AVX512 void pboost_scan_abreast(
    const pboost_lanes *groups, const int n_groups, const int is_packed, const pboost_same_eight *at,
    pboost_cuts *cuts)
{
    pboost_eight eight[PBOOST_ABREAST];
    int least = groups[0].bins - 1;
    for (int g = 0; g < n_groups; g++) {
        const __m512d below = _mm512_loadu_pd(groups[g].below);
        eight[g].word = _mm512_castpd_si512(below), eight[g].gl = below;
        eight[g].hl = is_packed ? below : _mm512_loadu_pd(groups[g].below + PBOOST_LANES);
        eight[g].numerator = _mm512_set1_pd(-1.0), eight[g].divisor = _mm512_set1_pd(1.0);
        eight[g].bin = _mm512_set1_epi64(-1);
        least = groups[g].bins - 1 < least ? groups[g].bins - 1 : least;
    }
#define PBOOST_SCAN_BIN(g, b)                                                                      \
    pboost_scan_eight(                                                                             \
        &eight[g], is_packed, groups[g].masses + (ptrdiff_t)(b) * PBOOST_LANES,                    \
        (ptrdiff_t)groups[g].bins * PBOOST_LANES, at, _mm512_set1_epi64(b))
    for (int b = 0; b < least; b++) {
        PBOOST_SCAN_BIN(0, b);
        if (n_groups > 1) PBOOST_SCAN_BIN(1, b);
        if (n_groups > 2) PBOOST_SCAN_BIN(2, b);
    }
    for (int g = 0; g < n_groups; g++) {
        for (int b = least; b < groups[g].bins - 1; b++) PBOOST_SCAN_BIN(g, b);
        _mm512_storeu_pd(cuts[g].numerator, eight[g].numerator);
        _mm512_storeu_pd(cuts[g].divisor, eight[g].divisor);
        _mm256_storeu_si256((__m256i *)cuts[g].bin, _mm512_cvtepi64_epi32(eight[g].bin));
    }
}

PBOOST_AVX512 static void pboost_scan_avx512(PBOOST_SCAN_ARGS)
{
    const pboost_same_eight node = {_mm512_set1_pd(at->gradient), _mm512_set1_pd(at->curvature),
                                    _mm512_set1_pd(at->least), _mm512_set1_pd(at->l2)};
    if (!is_packed)
        for (int g = 0; g < n_groups; g++) pboost_scan_abreast(groups + g, 1, 0, &node, cuts + g);
    else if (n_groups == 1)
        pboost_scan_abreast(groups, 1, 1, &node, cuts);
    else if (n_groups == 2)
        pboost_scan_abreast(groups, 2, 1, &node, cuts);
    else
        pboost_scan_abreast(groups, 3, 1, &node, cuts);
}
#endif
#endif
