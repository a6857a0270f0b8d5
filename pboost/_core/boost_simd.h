/* Passes over the rows of a node of a boosted sum of trees: masses by bin, cuts between bins, sides.
 *
 * A row's gradient and curvature are integers in one word: gradient << 32 (signed) + curvature (from 1
 * on). Codes stand in groups of eight columns, [row][lane]; masses of a group in float64, [bin][lane],
 * first the gradients', then the curvatures'. They are integers below 2**53, so that sums have no
 * rounding error and no order.
 *
 * Written for the baseline and, on x86 with GCC or Clang, for AVX2; the variant is chosen when the
 * module is imported. Operations are the same in each and nothing is fused (-ffp-contract=off), so that
 * both give the same bits.
 */
#ifndef PBOOST_BOOST_SIMD_H
#define PBOOST_BOOST_SIMD_H
#include "side.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PBOOST_LANES 8
#define PBOOST_BINS 256
#define PBOOST_BLOCK 8192 /* rows whose words are added up before they are unpacked */
#define PBOOST_AHEAD 24 /* rows: their codes are asked for before they are needed */
#define PBOOST_ROOM 64 /* places behind arrays of rows that are read or written in vain */

#if defined(__GNUC__) || defined(__clang__)
#define PBOOST_ALWAYS static inline __attribute__((always_inline))
#define PBOOST_ASK(address) __builtin_prefetch(address)
#else
#define PBOOST_ALWAYS static __forceinline
#define PBOOST_ASK(address) ((void)0)
#endif

/* A cut of a lane: score is numerator / divisor; bin -1 where there is none. */
typedef struct {
    double numerator[PBOOST_LANES], divisor[PBOOST_LANES];
    int32_t bin[PBOOST_LANES];
} pboost_cuts;

/* What is known of a node: its masses, the least curvature of a side, and what is added to one. If it is
   bounded, the steps of its sides are, from low to high, and are to go up (1) or down (-1). */
typedef struct {
    double gradient, curvature, least, l2, low, high;
    int is_bounded, direction;
} pboost_node_masses;

/* ------------------------------------------------------------------------------------------ */
/* Masses by bin. */

#define PBOOST_ADD(k) table[((k) == 0 ? codes << 3 & 0x7F8 : codes >> ((8 * (k) - 3) & 63) & 0x7F8) + (k)] += word;

PBOOST_ALWAYS uint64_t pboost_eight_codes(const uint8_t *p)
{
    uint64_t codes;
    memcpy(&codes, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    codes = __builtin_bswap64(codes);
#endif
    return codes;
}

PBOOST_ALWAYS void pboost_add_words(
    const uint8_t *group, const int32_t *rows, const int64_t *packed, ptrdiff_t n, int is_half,
    int64_t *restrict table)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t row = rows ? rows[i] : i;
        if (rows) PBOOST_ASK(group + 8 * (ptrdiff_t)rows[i + PBOOST_AHEAD]);
        const uint64_t codes = pboost_eight_codes(group + 8 * row);
        const int64_t word = packed[i];
        PBOOST_ADD(0) PBOOST_ADD(1) PBOOST_ADD(2) PBOOST_ADD(3)
        if (!is_half) { PBOOST_ADD(4) PBOOST_ADD(5) PBOOST_ADD(6) PBOOST_ADD(7) }
    }
}

#define PBOOST_COUNT_ARGS                                                                          \
    const uint8_t *group, const int32_t *rows, const int64_t *packed, ptrdiff_t n, int n_lanes,    \
    int bins, double *restrict masses

/* masses = those of n rows: of the listed ones, or, where `rows` is NULL, of the first. */
PBOOST_ALWAYS void pboost_count_body(PBOOST_COUNT_ARGS)
{
    int64_t table[PBOOST_BINS * PBOOST_LANES];
    const int cells = bins * PBOOST_LANES;
    double *restrict gradient = masses, *restrict curvature = masses + cells;
    memset(masses, 0, sizeof(double) * 2 * (size_t)cells);
    for (ptrdiff_t start = 0; start < n; start += PBOOST_BLOCK) {
        const ptrdiff_t m = n - start < PBOOST_BLOCK ? n - start : PBOOST_BLOCK;
        const int64_t *words = packed + start;
        memset(table, 0, sizeof(int64_t) * (size_t)cells);
        if (rows && n_lanes > 4)
            pboost_add_words(group, rows + start, words, m, 0, table);
        else if (rows)
            pboost_add_words(group, rows + start, words, m, 1, table);
        else if (n_lanes > 4)
            pboost_add_words(group + 8 * start, NULL, words, m, 0, table);
        else
            pboost_add_words(group + 8 * start, NULL, words, m, 1, table);
        for (int i = 0; i < cells; i++) {
            gradient[i] += (double)(int32_t)(table[i] >> 32);
            curvature[i] += (double)(uint32_t)table[i];
        }
    }
}

#define PBOOST_SUBTRACT_ARGS double *restrict masses, const double *restrict part, ptrdiff_t n

PBOOST_ALWAYS void pboost_subtract_body(PBOOST_SUBTRACT_ARGS)
{
    for (ptrdiff_t i = 0; i < n; i++) masses[i] -= part[i];
}

/* ------------------------------------------------------------------------------------------ */
/* The best cut of each lane, the first of equal ones. Bins are added to what is `below` already. */

#define PBOOST_SCAN_ARGS                                                                           \
    const double *restrict masses, int bins, const pboost_node_masses *at,                         \
    const double *restrict below, pboost_cuts *restrict cuts

static void pboost_scan_baseline(PBOOST_SCAN_ARGS)
{
    const double *gradient = masses, *curvature = masses + bins * PBOOST_LANES;
    for (int k = 0; k < PBOOST_LANES; k++) {
        double gl = below[k], hl = below[PBOOST_LANES + k], numerator = -1.0, divisor = 1.0;
        int32_t bin = -1;
        for (int b = 0; b < bins - 1; b++) {
            gl += gradient[b * PBOOST_LANES + k];
            hl += curvature[b * PBOOST_LANES + k];
            const double gr = at->gradient - gl, hr = at->curvature - hl;
            if (!(hl >= at->least && hr >= at->least)) continue;
            const double dl = hl + at->l2, dr = hr + at->l2;
            const double q = gl * gl * dr + gr * gr * dl, d = dl * dr;
            if (q * divisor > numerator * d) numerator = q, divisor = d, bin = b;
        }
        cuts->numerator[k] = numerator, cuts->divisor[k] = divisor, cuts->bin[k] = bin;
    }
}

/* ------------------------------------------------------------------------------------------ */
/* Rows below first, the others behind them; in no order. Returns the number of those below. `packed` may
 * be NULL. A row is above if its code is larger than `cut`, or, where there is one, by a table. */

#define PBOOST_PART_ARGS                                                                           \
    const uint8_t *codes, int cut, const uint8_t *table, int32_t *rows, int64_t *packed,           \
    ptrdiff_t n, int32_t *spare_rows, int64_t *spare_packed

PBOOST_ALWAYS int pboost_side(const uint8_t *codes, int cut, const uint8_t *table, int32_t row)
{
    return table ? table[codes[row]] : pboost_code_goes_right(codes[row], cut);
}

PBOOST_ALWAYS ptrdiff_t pboost_part_rest(PBOOST_PART_ARGS, ptrdiff_t i, ptrdiff_t below, ptrdiff_t above)
{
    for (; i < n; i++) {
        const int32_t row = rows[i];
        const ptrdiff_t side = pboost_side(codes, cut, table, row);
        rows[below] = spare_rows[above] = row;
        if (packed) {
            const int64_t word = packed[i];
            packed[below] = spare_packed[above] = word;
        }
        below += 1 - side;
        above += side;
    }
    memcpy(rows + below, spare_rows, sizeof(int32_t) * (size_t)above);
    if (packed) memcpy(packed + below, spare_packed, sizeof(int64_t) * (size_t)above);
    return below;
}

PBOOST_ALWAYS ptrdiff_t pboost_part_body(PBOOST_PART_ARGS)
{
    return pboost_part_rest(codes, cut, table, rows, packed, n, spare_rows, spare_packed, 0, 0, 0);
}

static ptrdiff_t pboost_part_baseline(PBOOST_PART_ARGS)
{
    if (table) return pboost_part_body(codes, 0, table, rows, packed, n, spare_rows, spare_packed);
    return pboost_part_body(codes, cut, NULL, rows, packed, n, spare_rows, spare_packed);
}

static void pboost_count_baseline(PBOOST_COUNT_ARGS)
{
    pboost_count_body(group, rows, packed, n, n_lanes, bins, masses);
}

static void pboost_subtract_baseline(PBOOST_SUBTRACT_ARGS) { pboost_subtract_body(masses, part, n); }

typedef struct {
    void (*count)(PBOOST_COUNT_ARGS);
    void (*subtract)(PBOOST_SUBTRACT_ARGS);
    void (*scan)(PBOOST_SCAN_ARGS);
    ptrdiff_t (*part)(PBOOST_PART_ARGS);
} pboost_passes;

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#include <immintrin.h>
#define PBOOST_WITH_AVX2 __attribute__((target("avx2,bmi2,popcnt")))

PBOOST_WITH_AVX2 static void pboost_count_avx2(PBOOST_COUNT_ARGS)
{
    pboost_count_body(group, rows, packed, n, n_lanes, bins, masses);
}

PBOOST_WITH_AVX2 static void pboost_subtract_avx2(PBOOST_SUBTRACT_ARGS)
{
    pboost_subtract_body(masses, part, n);
}

/* Four lanes: sums so far, and the best cut. */
typedef struct {
    __m256d gl, hl, numerator, divisor, bin;
} pboost_four;

PBOOST_ALWAYS PBOOST_WITH_AVX2 void pboost_scan_four(
    pboost_four *four, __m256d g, __m256d h, const __m256d *at, __m256d bin)
{
    four->gl = _mm256_add_pd(four->gl, g);
    four->hl = _mm256_add_pd(four->hl, h);
    const __m256d gr = _mm256_sub_pd(at[0], four->gl), hr = _mm256_sub_pd(at[1], four->hl);
    const __m256d ok = _mm256_and_pd(
        _mm256_cmp_pd(four->hl, at[2], _CMP_GE_OQ), _mm256_cmp_pd(hr, at[2], _CMP_GE_OQ));
    const __m256d dl = _mm256_add_pd(four->hl, at[3]), dr = _mm256_add_pd(hr, at[3]);
    const __m256d q = _mm256_add_pd(
        _mm256_mul_pd(_mm256_mul_pd(four->gl, four->gl), dr),
        _mm256_mul_pd(_mm256_mul_pd(gr, gr), dl));
    const __m256d d = _mm256_mul_pd(dl, dr);
    const __m256d is_better = _mm256_and_pd(ok, _mm256_cmp_pd(
        _mm256_mul_pd(q, four->divisor), _mm256_mul_pd(four->numerator, d), _CMP_GT_OQ));
    four->numerator = _mm256_blendv_pd(four->numerator, q, is_better);
    four->divisor = _mm256_blendv_pd(four->divisor, d, is_better);
    four->bin = _mm256_blendv_pd(four->bin, bin, is_better);
}

PBOOST_WITH_AVX2 static void pboost_scan_avx2(PBOOST_SCAN_ARGS)
{
    const double *gradient = masses, *curvature = masses + bins * PBOOST_LANES;
    const __m256d none = _mm256_set1_pd(-1.0), one = _mm256_set1_pd(1.0);
    const __m256d node[4] = {_mm256_set1_pd(at->gradient), _mm256_set1_pd(at->curvature),
                             _mm256_set1_pd(at->least), _mm256_set1_pd(at->l2)};
    pboost_four low = {_mm256_loadu_pd(below), _mm256_loadu_pd(below + 8), none, one, none};
    pboost_four high = {_mm256_loadu_pd(below + 4), _mm256_loadu_pd(below + 12), none, one, none};
    __m256d bin = _mm256_setzero_pd();
    for (int b = 0; b < bins - 1; b++, gradient += PBOOST_LANES, curvature += PBOOST_LANES) {
        pboost_scan_four(&low, _mm256_loadu_pd(gradient), _mm256_loadu_pd(curvature), node, bin);
        pboost_scan_four(
            &high, _mm256_loadu_pd(gradient + 4), _mm256_loadu_pd(curvature + 4), node, bin);
        bin = _mm256_add_pd(bin, one);
    }
    _mm256_storeu_pd(cuts->numerator, low.numerator);
    _mm256_storeu_pd(cuts->numerator + 4, high.numerator);
    _mm256_storeu_pd(cuts->divisor, low.divisor);
    _mm256_storeu_pd(cuts->divisor + 4, high.divisor);
    _mm_storeu_si128((__m128i *)cuts->bin, _mm256_cvttpd_epi32(low.bin));
    _mm_storeu_si128((__m128i *)(cuts->bin + 4), _mm256_cvttpd_epi32(high.bin));
}

/* For each set of eight items, or of four of two halves: where the others are, and then these, as bytes. */
static uint64_t pboost_kept_of_8[256], pboost_kept_of_4[16];

static void pboost_fill_tables(void)
{
    for (int set = 0; set < 256; set++) {
        int place = 0;
        pboost_kept_of_8[set] = 0;
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < 8; i++)
                if ((set >> i & 1) == side) pboost_kept_of_8[set] |= (uint64_t)i << (8 * place++);
    }
    for (int set = 0; set < 16; set++) {
        int place = 0;
        pboost_kept_of_4[set] = 0;
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < 4; i++)
                if ((set >> i & 1) == side) {
                    pboost_kept_of_4[set] |= (uint64_t)(2 * i) << (8 * place++);
                    pboost_kept_of_4[set] |= (uint64_t)(2 * i + 1) << (8 * place++);
                }
    }
}

PBOOST_ALWAYS PBOOST_WITH_AVX2 __m256i pboost_permuted(__m256i items, uint64_t places)
{
    return _mm256_permutevar8x32_epi32(items, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)places)));
}

/* Eight rows at a time. What is stored below never passes what has been read. */
PBOOST_ALWAYS PBOOST_WITH_AVX2 ptrdiff_t pboost_part_eight(PBOOST_PART_ARGS)
{
    ptrdiff_t i = 0, below = 0, above = 0;
    const __m256i limit = _mm256_set1_epi32(table ? 0 : cut);
    for (; i + 8 <= n; i += 8) {
        const int32_t *r = rows + i;
        const __m256i eight = _mm256_loadu_si256((const __m256i *)r);
        PBOOST_ASK(codes + rows[i + PBOOST_ROOM - 8]);
#define PBOOST_CODE(k) (table ? table[codes[r[k]]] : codes[r[k]])
        const __m256i code = _mm256_setr_epi32(
            PBOOST_CODE(0), PBOOST_CODE(1), PBOOST_CODE(2), PBOOST_CODE(3), PBOOST_CODE(4),
            PBOOST_CODE(5), PBOOST_CODE(6), PBOOST_CODE(7));
        const int set = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(code, limit)));
        const int first = set & 15, second = set >> 4;
        const int n_first = 4 - __builtin_popcount((unsigned)first);
        const int n_second = 4 - __builtin_popcount((unsigned)second);
        _mm256_storeu_si256(
            (__m256i *)(spare_rows + above), pboost_permuted(eight, pboost_kept_of_8[255 - set]));
        _mm256_storeu_si256((__m256i *)(rows + below), pboost_permuted(eight, pboost_kept_of_8[set]));
        if (packed) {
            const __m256i a = _mm256_loadu_si256((const __m256i *)(packed + i));
            const __m256i b = _mm256_loadu_si256((const __m256i *)(packed + i + 4));
            _mm256_storeu_si256((__m256i *)(spare_packed + above),
                                pboost_permuted(a, pboost_kept_of_4[15 - first]));
            _mm256_storeu_si256((__m256i *)(spare_packed + above + 4 - n_first),
                                pboost_permuted(b, pboost_kept_of_4[15 - second]));
            _mm256_storeu_si256(
                (__m256i *)(packed + below), pboost_permuted(a, pboost_kept_of_4[first]));
            _mm256_storeu_si256(
                (__m256i *)(packed + below + n_first), pboost_permuted(b, pboost_kept_of_4[second]));
        }
        below += n_first + n_second;
        above += 8 - n_first - n_second;
    }
    return pboost_part_rest(
        codes, cut, table, rows, packed, n, spare_rows, spare_packed, i, below, above);
}

PBOOST_WITH_AVX2 static ptrdiff_t pboost_part_avx2(PBOOST_PART_ARGS)
{
    if (table) return pboost_part_eight(codes, 0, table, rows, packed, n, spare_rows, spare_packed);
    if (packed) return pboost_part_eight(codes, cut, NULL, rows, packed, n, spare_rows, spare_packed);
    return pboost_part_eight(codes, cut, NULL, rows, NULL, n, spare_rows, spare_packed);
}

/* level: 0 baseline, 1 AVX2; the best supported one not above it. */
static inline pboost_passes pboost_choose_passes(int level)
{
    const pboost_passes variant[2] = {
        {pboost_count_baseline, pboost_subtract_baseline, pboost_scan_baseline, pboost_part_baseline},
        {pboost_count_avx2, pboost_subtract_avx2, pboost_scan_avx2, pboost_part_avx2}};
    __builtin_cpu_init();
    pboost_fill_tables();
    return variant[level >= 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")];
}
#else
static inline pboost_passes pboost_choose_passes(int level)
{
    const pboost_passes baseline = {
        pboost_count_baseline, pboost_subtract_baseline, pboost_scan_baseline, pboost_part_baseline};
    (void)level;
    return baseline;
}
#endif
#endif
