/* Passes over the rows of a node of a boosted tree: histograms, splits between bins, and partitioning.
 *
 * A packed word contains the gradient and the Hessian of a row as integers: gradient << 32 (signed) +
 * Hessian (at least 1), times the number of copies, if any. Codes are stored in groups of eight features
 * (lanes), as [row][lane]. The histogram of a group is stored as [bin][lane]. For up to PBOOST_BLOCK
 * copies of rows, it contains packed sums. For more rows, it contains float64 sums, first of the
 * gradients, then of the Hessians. All sums are integers below 2**53, so they are exact and do not
 * depend on the order of rows.
 *
 * The passes are compiled for the baseline and, on x86 with GCC or Clang, for AVX2 and AVX-512. The
 * variant is chosen at import. All variants give bit-identical results: they do the same operations,
 * without fused multiply-add (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_SIMD_H
#define PBOOST_BOOST_SIMD_H
#include "boost_pool.h"
#include "boost_scan.h"
#include "side.h"
#include <string.h>

/* ------------------------------------------------------------------------------------------ */
/* Histograms. */

#define PBOOST_ADD(k) table[((k) == 0 ? codes << 3 & 0x7F8 : codes >> ((8 * (k) - 3) & 63) & 0x7F8) + (k)] += word;

PBOOST_INLINE uint64_t pboost_eight_codes(const uint8_t *p)
{
    uint64_t codes;
    memcpy(&codes, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    codes = __builtin_bswap64(codes);
#endif
    return codes;
}

PBOOST_INLINE void pboost_add_words(
    const uint8_t *group, const int32_t *rows, const int64_t *packed, ptrdiff_t n, int ahead, int is_half,
    int64_t *restrict table)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t row = rows ? rows[i] : i;
        if (rows) PBOOST_ASK(group + 8 * (ptrdiff_t)rows[i + ahead]);
        const uint64_t codes = pboost_eight_codes(group + 8 * row);
        const int64_t word = packed[i];
        PBOOST_ADD(0) PBOOST_ADD(1) PBOOST_ADD(2) PBOOST_ADD(3)
        if (!is_half) { PBOOST_ADD(4) PBOOST_ADD(5) PBOOST_ADD(6) PBOOST_ADD(7) }
    }
}

PBOOST_INLINE void pboost_count_block(
    const uint8_t *group, const int32_t *rows, const int64_t *packed, ptrdiff_t n, int ahead, int n_lanes,
    int bins, int64_t *restrict words)
{
    memset(words, 0, sizeof(int64_t) * PBOOST_LANES * (size_t)bins);
    if (rows && n_lanes > 4)
        pboost_add_words(group, rows, packed, n, ahead, 0, words);
    else if (rows)
        pboost_add_words(group, rows, packed, n, ahead, 1, words);
    else if (n_lanes > 4)
        pboost_add_words(group, NULL, packed, n, ahead, 0, words);
    else
        pboost_add_words(group, NULL, packed, n, ahead, 1, words);
}

/* Compute the histogram of n rows: the listed rows or, if `rows` is NULL, the first n. If `words` is not
   NULL, n is at most one block, and `words` receives packed sums. Otherwise, the rows are added to
   `masses`. */
PBOOST_INLINE void pboost_count_body(PBOOST_COUNT_ARGS)
{
    int64_t table[PBOOST_BINS * PBOOST_LANES];
    const int cells = bins * PBOOST_LANES;
    double *restrict gradient = masses, *restrict curvature = masses + cells;
    if (words) {
        pboost_count_block(group, rows, packed, n, ahead, n_lanes, bins, words);
        return;
    }
    for (ptrdiff_t start = 0; start < n; start += block) {
        const ptrdiff_t m = n - start < block ? n - start : block;
        pboost_count_block(
            rows ? group : group + PBOOST_LANES * start, rows ? rows + start : NULL, packed + start, m,
            ahead, n_lanes, bins, table);
        for (int i = 0; i < cells; i++) {
            gradient[i] += PBOOST_GRADIENT_IN(table[i]);
            curvature[i] += PBOOST_CURVATURE_IN(table[i]);
        }
    }
}

/* Subtract the histogram `part` of some rows from the histogram of a group. `n_packed` determines which
   histograms are packed: 0: none; 1: `part`; 2: also the difference, which is stored at the beginning of
   `masses`; 3: all. */
PBOOST_INLINE void pboost_subtract_body(PBOOST_SUBTRACT_ARGS)
{
    const int64_t *words = (const int64_t *)part;
    int64_t *left = (int64_t *)masses;
    if (n_packed == 3)
        for (ptrdiff_t i = 0; i < cells; i++) left[i] -= words[i];
    else if (n_packed == 2)
        for (ptrdiff_t i = 0; i < cells; i++) {
            const double g = masses[i] - PBOOST_GRADIENT_IN(words[i]);
            const double h = masses[cells + i] - PBOOST_CURVATURE_IN(words[i]);
            left[i] = (int64_t)g * ((int64_t)1 << 32) + (int64_t)h;
        }
    else if (n_packed == 1)
        for (ptrdiff_t i = 0; i < cells; i++) {
            masses[i] -= PBOOST_GRADIENT_IN(words[i]);
            masses[cells + i] -= PBOOST_CURVATURE_IN(words[i]);
        }
    else
        for (ptrdiff_t i = 0; i < 2 * cells; i++) masses[i] -= part[i];
}

/* ------------------------------------------------------------------------------------------ */
/* Partition rows. The rows of the left child are moved to the front, and the other rows to the spare
 * arrays, both in order. Returns the number of left rows. `packed` may be NULL. A row goes to the right
 * if `table` has 1 for its code or, without a table, if its code is larger than `cut`.
 */

PBOOST_INLINE int pboost_side(const uint8_t *codes, int cut, const uint8_t *table, int32_t row)
{
    return table ? table[codes[row]] : pboost_code_goes_right(codes[row], cut);
}

PBOOST_INLINE ptrdiff_t pboost_part_rest(PBOOST_PART_ARGS, ptrdiff_t i, ptrdiff_t below, ptrdiff_t above)
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
    return below;
}

PBOOST_INLINE ptrdiff_t pboost_part_body(PBOOST_PART_ARGS)
{
    return pboost_part_rest(codes, cut, table, rows, packed, n, spare_rows, spare_packed, 0, 0, 0);
}

static ptrdiff_t pboost_part_baseline(PBOOST_PART_ARGS)
{
    if (table) return pboost_part_body(codes, 0, table, rows, packed, n, spare_rows, spare_packed);
    return pboost_part_body(codes, cut, NULL, rows, packed, n, spare_rows, spare_packed);
}

#define PBOOST_MASSES_COPY(TARGET, name)                                                           \
    TARGET static void pboost_count_##name(PBOOST_COUNT_ARGS)                                      \
    {                                                                                              \
        pboost_count_body(group, rows, packed, n, block, ahead, n_lanes, bins, words, masses);     \
    }                                                                                              \
    TARGET static void pboost_subtract_##name(PBOOST_SUBTRACT_ARGS)                                \
    {                                                                                              \
        pboost_subtract_body(masses, part, cells, n_packed);                                       \
    }
PBOOST_COPIES(PBOOST_MASSES_COPY)

#ifdef PBOOST_AVX512
/* Byte indices that partition eight items, or four items of two halves each, for every possible set of
   items: first the items outside of the set, then the items in the set. */
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

PBOOST_INLINE PBOOST_AVX2 __m256i pboost_permuted(__m256i items, uint64_t places)
{
    return _mm256_permutevar8x32_epi32(items, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)places)));
}

/* Partition eight rows at a time. Left rows are never written over rows that have not been read. */
PBOOST_INLINE PBOOST_AVX2 ptrdiff_t pboost_part_eight(PBOOST_PART_ARGS)
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

PBOOST_AVX2 static ptrdiff_t pboost_part_avx2(PBOOST_PART_ARGS)
{
    if (table) return pboost_part_eight(codes, 0, table, rows, packed, n, spare_rows, spare_packed);
    if (packed) return pboost_part_eight(codes, cut, NULL, rows, packed, n, spare_rows, spare_packed);
    return pboost_part_eight(codes, cut, NULL, rows, NULL, n, spare_rows, spare_packed);
}

/* Load the codes of m rows, or their entries in `table`, eight per word. For one feature, 64 rows share
   a cache line. */
PBOOST_INLINE void pboost_fetch_codes(
    const uint8_t *codes, const uint8_t *table, const int32_t *rows, ptrdiff_t m, uint8_t *found)
{
    for (ptrdiff_t i = 0; i < m; i += 8) {
        uint64_t eight = 0;
        PBOOST_ASK(codes + rows[i + PBOOST_FAR_AHEAD]);
        PBOOST_ASK(codes + rows[i + PBOOST_FAR_AHEAD + 4]);
        for (int k = 0; k < 8; k++) {
            const uint64_t code = codes[rows[i + k]];
            eight |= (table ? table[code] : code) << (8 * k);
        }
        memcpy(found + i, &eight, 8);
    }
}

/* Partition sixteen rows at a time. Left rows are never written over rows that have not been read. */
PBOOST_INLINE PBOOST_AVX512 ptrdiff_t pboost_part_sixteen(PBOOST_PART_ARGS)
{
    uint8_t found[PBOOST_PART_ROWS];
    ptrdiff_t i = 0, below = 0, above = 0;
    const __m128i limit = _mm_set1_epi8((char)(table ? 0 : cut));
    for (ptrdiff_t start = 0; start + 16 <= n; start += PBOOST_PART_ROWS) {
        const ptrdiff_t m = n - start < PBOOST_PART_ROWS ? n - start : PBOOST_PART_ROWS;
        pboost_fetch_codes(codes, table, rows + start, m & ~(ptrdiff_t)15, found);
        for (; i + 16 <= start + m; i += 16) {
            const __m128i sixteen = _mm_loadu_si128((const __m128i *)(found + i - start));
            const __m128i is_below = _mm_cmpeq_epi8(_mm_subs_epu8(sixteen, limit), _mm_setzero_si128());
            const unsigned set = (unsigned)_mm_movemask_epi8(is_below), rest = set ^ 0xFFFFu;
            const int n_below = __builtin_popcount(set);
            const __m512i r = _mm512_loadu_si512(rows + i);
            _mm512_storeu_si512(rows + below, _mm512_maskz_compress_epi32((__mmask16)set, r));
            _mm512_storeu_si512(spare_rows + above, _mm512_maskz_compress_epi32((__mmask16)rest, r));
            if (packed) {
                const int n_first = __builtin_popcount(set & 255);
                const __m512i a = _mm512_loadu_si512(packed + i), b = _mm512_loadu_si512(packed + i + 8);
                int64_t *kept = packed + below, *other = spare_packed + above;
                _mm512_storeu_si512(kept, _mm512_maskz_compress_epi64((__mmask8)set, a));
                _mm512_storeu_si512(kept + n_first, _mm512_maskz_compress_epi64((__mmask8)(set >> 8), b));
                _mm512_storeu_si512(other, _mm512_maskz_compress_epi64((__mmask8)rest, a));
                _mm512_storeu_si512(
                    other + 8 - n_first, _mm512_maskz_compress_epi64((__mmask8)(rest >> 8), b));
            }
            below += n_below;
            above += 16 - n_below;
        }
    }
    return pboost_part_rest(
        codes, cut, table, rows, packed, n, spare_rows, spare_packed, i, below, above);
}

PBOOST_AVX512 static ptrdiff_t pboost_part_avx512(PBOOST_PART_ARGS)
{
    if (table) return pboost_part_sixteen(codes, 0, table, rows, packed, n, spare_rows, spare_packed);
    if (packed) return pboost_part_sixteen(codes, cut, NULL, rows, packed, n, spare_rows, spare_packed);
    return pboost_part_sixteen(codes, cut, NULL, rows, NULL, n, spare_rows, spare_packed);
}

#endif

#define PBOOST_PASSES_COPY(name)                                                                   \
    {pboost_count_##name, pboost_subtract_##name, pboost_scan_##name, pboost_part_##name,          \
     pboost_gain_##name, pboost_pooled_##name, pboost_shared_##name}
PBOOST_CHOOSE(pboost_choose_passes_copy, pboost_passes, PBOOST_PASSES_COPY)
static inline pboost_passes pboost_choose_passes(int level)
{
#ifdef PBOOST_AVX512
    pboost_fill_tables();
#endif
    return pboost_choose_passes_copy(level);
}
#endif
