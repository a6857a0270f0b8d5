/* Shallow trees on a tile of rows whose values have been replaced by ranks.
 *
 * The thresholds of a feature in all trees are sorted. The rank of a value is the number of thresholds
 * below it, so the value is above threshold number e if rank > e. A register holds 16 or 32 ranks of 16
 * bits. If no feature has more than 255 thresholds, it holds twice as many ranks of 8 bits. All nodes of
 * a tree are compared, and the leaf numbers are selected from the leaves upward. This is faster than
 * following the path of each row. Trees are padded to the same depth; their 2**depth - 1 nodes are in
 * preorder.
 *
 * This is only compiled for AVX2 and AVX-512 on x86 with GCC or Clang. Other processors follow the
 * paths.
 */
#ifndef PBOOST_RANK_SIMD_H
#define PBOOST_RANK_SIMD_H
#include "walk_simd.h"

typedef struct {
    int32_t column; /* 64 times the number of the feature */
    /* The number of the threshold, stored twice, in 16 bits each. It is at most 2**15 - 1, and no rank
       exceeds this number. For ranks of 8 bits, 128 is subtracted, and the number is stored four times. */
    int32_t edge;
} pboost_ranked_node;

/* Add the leaf values (n_leaves, width) of n rows to total, which has `stride` numbers per row. */
static void pboost_add_leaves(
    const double *restrict value, const int16_t *restrict leaf, ptrdiff_t n, ptrdiff_t width,
    ptrdiff_t stride, double *restrict total)
{
    if (stride == 1)
        for (ptrdiff_t r = 0; r < n; r++) total[r] += value[leaf[r]];
    else if (width == 1)
        for (ptrdiff_t r = 0; r < n; r++) total[r * stride] += value[leaf[r]];
    else if (stride == 2)
        for (ptrdiff_t r = 0; r < n; r++) {
            total[2 * r] += value[2 * leaf[r]];
            total[2 * r + 1] += value[2 * leaf[r] + 1];
        }
    else
        for (ptrdiff_t r = 0; r < n; r++)
            for (ptrdiff_t j = 0; j < width; j++)
                total[r * stride + j] += value[leaf[r] * width + j];
}

/* OUT leaf (64,): leaf numbers from 0 to 2**depth - 1, from left to right. */
#define PBOOST_LEAF_ARGS                                                                         \
    const pboost_ranked_node *restrict node, int depth, const void *restrict ranks,              \
    int16_t *restrict leaf
/* Add leaf values like `pboost_add_leaves`, for a full tile and at most 64 leaves with one value each. */
#define PBOOST_ADD_ARGS                                                                          \
    const double *restrict value, int depth, const int16_t *restrict leaf, double *restrict total

/* Compute the ranks of a feature of a tile by binary search, several rows at a time. IN edge (2**levels
   - 1,), in ascending order. */
#define PBOOST_RANK_ARGS                                                                         \
    const double *restrict x, const double *restrict edge, int levels, void *restrict ranks

typedef void (*pboost_rank_kernel)(PBOOST_RANK_ARGS);
typedef void (*pboost_leaf_kernel)(PBOOST_LEAF_ARGS);
typedef void (*pboost_add_kernel)(PBOOST_ADD_ARGS);

#ifdef PBOOST_AVX512
#define PBOOST_AVX512_OF_BYTES __attribute__((target("avx512f,avx512bw")))

#define PBOOST_RANK(name, type, least)                                                           \
    PBOOST_AVX2 static void name(PBOOST_RANK_ARGS)                           \
    {                                                                                            \
        type *rank = (type *)ranks;                                                              \
        int32_t at[PBOOST_TILE / 2];                                                             \
        for (int part = 0; part < PBOOST_TILE; part += PBOOST_TILE / 2) {                        \
            for (int r = 0; r < PBOOST_TILE / 2; r++) at[r] = 0;                                 \
            for (int half = 1 << levels >> 1; half; half >>= 1)                                  \
                for (int r = 0; r < PBOOST_TILE / 2; r++)                                        \
                    at[r] += -(int32_t)pboost_goes_right(x[part + r], edge[at[r] + half - 1]) & half; \
            for (int r = 0; r < PBOOST_TILE / 2; r++) rank[part + r] = (type)(at[r] + (least));  \
        }                                                                                        \
    }
PBOOST_RANK(pboost_rank_words, int16_t, 0)
PBOOST_RANK(pboost_rank_bytes, int8_t, INT8_MIN)

/* Thresholds of the first five comparisons: 15 in ascending order for the first four, and the 16 between
 * and around them for the fifth. Each set is stored in two registers, because reading them is faster
 * than reading memory.
 */
typedef struct {
    __m512d first[2], between[2];
} pboost_pivots;

PBOOST_INLINE PBOOST_AVX512 pboost_pivots pboost_read_pivots(const double *edge, int step)
{
    const __m512i count = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i at = _mm512_mullo_epi32(count, _mm512_set1_epi64(2 * step));
    pboost_pivots p;
    p.between[0] = _mm512_i64gather_pd(at, edge + step - 1, 8);
    p.between[1] = _mm512_i64gather_pd(at, edge + 17 * step - 1, 8);
    p.first[0] = _mm512_i64gather_pd(at, edge + 2 * step - 1, 8);
    p.first[1] = _mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0x7F, at, edge + 18 * step - 1, 8);
    return p;
}

/* Add `half` to `at` if the value is above the threshold. */
#define PBOOST_RANK_ON(at, half, threshold)                                                      \
    _mm512_mask_add_epi64(                                                                       \
        at, _mm512_cmp_pd_mask(value, threshold, _CMP_GT_OQ), at, _mm512_set1_epi64(half))

PBOOST_INLINE PBOOST_AVX512 __m512i pboost_rank_eight(
    __m512d value, const double *edge, const pboost_pivots *p, int step)
{
    __m512i at = _mm512_setzero_si512();
    for (int half = 8; half; half >>= 1)
        at = PBOOST_RANK_ON(
            at, half,
            _mm512_permutex2var_pd(
                p->first[0], _mm512_add_epi64(at, _mm512_set1_epi64(half - 1)), p->first[1]));
    const __m512i twice = _mm512_add_epi64(at, at);
    at = PBOOST_RANK_ON(twice, 1, _mm512_permutex2var_pd(p->between[0], at, p->between[1]));
    at = _mm512_mullo_epi32(at, _mm512_set1_epi64(step));
    for (int half = step >> 1; half; half >>= 1)
        at = PBOOST_RANK_ON(at, half, _mm512_i64gather_pd(at, edge + half - 1, 8));
    return at;
}

#define PBOOST_RANK_WIDE(name, few, type, least, store)                                          \
    PBOOST_AVX512 static void name(PBOOST_RANK_ARGS)               \
    {                                                                                            \
        type *rank = (type *)ranks;                                                              \
        if (levels < 5) {                                                                        \
            few(x, edge, levels, ranks);                                                         \
            return;                                                                              \
        }                                                                                        \
        const int step = 1 << (levels - 5);                                                      \
        const pboost_pivots pivots = pboost_read_pivots(edge, step);                             \
        for (int r = 0; r < PBOOST_TILE; r += 8) {                                               \
            const __m512i at =                                                                   \
                pboost_rank_eight(_mm512_loadu_pd(x + r), edge, &pivots, step);                  \
            store(rank + r, 0xFF, _mm512_add_epi64(at, _mm512_set1_epi64(least)));               \
        }                                                                                        \
    }
PBOOST_RANK_WIDE(pboost_rank_words_wide, pboost_rank_words, int16_t, 0, _mm512_mask_cvtepi64_storeu_epi16)
PBOOST_RANK_WIDE(
    pboost_rank_bytes_wide, pboost_rank_bytes, int8_t, INT8_MIN, _mm512_mask_cvtepi64_storeu_epi8)

/* Return the leaf of each row in the subtree of a node. The first child's subtree has `half` leaves; the
   second child's subtree begins at node + half. */
#define PBOOST_LEVEL(isa, v, name, below, half)                                                  \
    PBOOST_INLINE isa v##_type name(const pboost_ranked_node *node, const v##_lane *rank)       \
    {                                                                                            \
        const v##_type low = below(node + 1, rank);                                              \
        const v##_type high = v##_or(below(node + half, rank), v##_set1(half));                  \
        return v##_blend(low, high, v##_above(rank + node->column, node->edge));                 \
    }
#define PBOOST_LEAVES(isa, v)                                                                    \
    PBOOST_LEVEL(isa, v, v##_2, v##_1, 2)                                                        \
    PBOOST_LEVEL(isa, v, v##_3, v##_2, 4)                                                        \
    PBOOST_LEVEL(isa, v, v##_4, v##_3, 8)                                                        \
    PBOOST_LEVEL(isa, v, v##_5, v##_4, 16)                                                       \
    PBOOST_LEVEL(isa, v, v##_inlined, v##_5, 32)                                                 \
    isa static __attribute__((noinline)) v##_type v##_6(                                \
        const pboost_ranked_node *node, const v##_lane *rank)                                    \
    {                                                                                            \
        return v##_inlined(node, rank);                                                          \
    }                                                                                            \
    PBOOST_LEVEL(isa, v, v##_7, v##_6, 64)                                                       \
    PBOOST_LEVEL(isa, v, v##_8, v##_7, 128)                                                      \
    isa static void v##_leaves(PBOOST_LEAF_ARGS)                        \
    {                                                                                            \
        const v##_lane *rank = (const v##_lane *)ranks;                                          \
        const int rows = (int)(sizeof(v##_type) / sizeof(v##_lane));                             \
        for (int r = 0; r < PBOOST_TILE; r += rows) switch (depth) {                             \
            case 1: v##_store(leaf + r, v##_1(node, rank + r)); break;                           \
            case 2: v##_store(leaf + r, v##_2(node, rank + r)); break;                           \
            case 3: v##_store(leaf + r, v##_3(node, rank + r)); break;                           \
            case 4: v##_store(leaf + r, v##_4(node, rank + r)); break;                           \
            case 5: v##_store(leaf + r, v##_5(node, rank + r)); break;                           \
            case 6: v##_store(leaf + r, v##_6(node, rank + r)); break;                           \
            case 7: v##_store(leaf + r, v##_7(node, rank + r)); break;                           \
            default: v##_store(leaf + r, v##_8(node, rank + r)); break;                          \
            }                                                                                    \
    }

#define pboost_narrow_type __m256i
#define pboost_narrow_lane int16_t
#define pboost_narrow_set1 _mm256_set1_epi16
#define pboost_narrow_or _mm256_or_si256
#define pboost_narrow_blend _mm256_blendv_epi8
#define pboost_narrow_above(x, e)                                                                       \
    _mm256_cmpgt_epi16(_mm256_loadu_si256((const __m256i *)(x)), _mm256_set1_epi32(e))
#define pboost_narrow_store(to, v) _mm256_storeu_si256((__m256i *)(to), v)
#define pboost_narrow_1(node, rank)                                                                     \
    _mm256_srli_epi16(pboost_narrow_above((rank) + (node)->column, (node)->edge), 15)
PBOOST_LEAVES(PBOOST_AVX2, pboost_narrow)

#define pboost_narrow_bytes_type __m256i
#define pboost_narrow_bytes_lane int8_t
#define pboost_narrow_bytes_set1(x) _mm256_set1_epi8((char)(x))
#define pboost_narrow_bytes_or _mm256_or_si256
#define pboost_narrow_bytes_blend _mm256_blendv_epi8
#define pboost_narrow_bytes_above(x, e)                                                                 \
    _mm256_cmpgt_epi8(_mm256_loadu_si256((const __m256i *)(x)), _mm256_set1_epi32(e))
#define pboost_narrow_bytes_store(to, v)                                                                \
    do {                                                                                                \
        const __m256i lanes = v;                                                                        \
        pboost_narrow_store(to, _mm256_cvtepu8_epi16(_mm256_castsi256_si128(lanes)));                   \
        pboost_narrow_store((to) + 16, _mm256_cvtepu8_epi16(_mm256_extracti128_si256(lanes, 1)));       \
    } while (0)
#define pboost_narrow_bytes_1(node, rank)                                                               \
    _mm256_and_si256(                                                                                   \
        pboost_narrow_bytes_above((rank) + (node)->column, (node)->edge), _mm256_set1_epi8(1))
PBOOST_LEAVES(PBOOST_AVX2, pboost_narrow_bytes)

#define pboost_wide_type __m512i
#define pboost_wide_lane int16_t
#define pboost_wide_set1 _mm512_set1_epi16
#define pboost_wide_or _mm512_or_si512
#define pboost_wide_blend(low, high, above) _mm512_mask_blend_epi16(above, low, high)
#define pboost_wide_above(x, e) _mm512_cmpgt_epi16_mask(_mm512_loadu_si512(x), _mm512_set1_epi32(e))
#define pboost_wide_store _mm512_storeu_si512
#define pboost_wide_1(node, rank)                                                                       \
    _mm512_maskz_mov_epi16(pboost_wide_above((rank) + (node)->column, (node)->edge), pboost_wide_set1(1))
PBOOST_LEAVES(PBOOST_AVX512_OF_BYTES, pboost_wide)

#define pboost_wide_bytes_type __m512i
#define pboost_wide_bytes_lane int8_t
#define pboost_wide_bytes_set1(x) _mm512_set1_epi8((char)(x))
#define pboost_wide_bytes_or _mm512_or_si512
#define pboost_wide_bytes_blend(low, high, above) _mm512_mask_blend_epi8(above, low, high)
#define pboost_wide_bytes_above(x, e) _mm512_cmpgt_epi8_mask(_mm512_loadu_si512(x), _mm512_set1_epi32(e))
#define pboost_wide_bytes_store(to, v)                                                                  \
    do {                                                                                                \
        const __m512i lanes = v;                                                                        \
        pboost_wide_store(to, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(lanes)));                     \
        pboost_wide_store((to) + 32, _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(lanes, 1)));        \
    } while (0)
#define pboost_wide_bytes_1(node, rank)                                                                 \
    _mm512_maskz_mov_epi8(                                                                              \
        pboost_wide_bytes_above((rank) + (node)->column, (node)->edge), _mm512_set1_epi8(1))
PBOOST_LEAVES(PBOOST_AVX512_OF_BYTES, pboost_wide_bytes)

/* Add the leaf values of a tree. The values stay in registers; two registers form a table of 16 numbers. */
PBOOST_INLINE PBOOST_AVX512 void pboost_add_from(
    const double *restrict value, int pairs, __mmask8 low, __mmask8 high, const int16_t *restrict leaf,
    double *restrict total)
{
    __m512d table[8];
    for (int k = 0; k < pairs; k++) {
        table[2 * k] = _mm512_maskz_loadu_pd(low, value + 16 * k);
        table[2 * k + 1] = _mm512_maskz_loadu_pd(high, value + 16 * k + 8);
    }
    for (int r = 0; r < PBOOST_TILE; r += 8) {
        const __m512i at = _mm512_cvtepi16_epi64(_mm_loadu_si128((const __m128i *)(leaf + r)));
        __m512d found[4];
        for (int k = 0; k < pairs; k++)
            found[k] = _mm512_permutex2var_pd(table[2 * k], at, table[2 * k + 1]);
        for (int bit = 16, left = pairs >> 1; left; bit <<= 1, left >>= 1)
            for (int k = 0; k < left; k++)
                found[k] = _mm512_mask_blend_pd(
                    _mm512_test_epi64_mask(at, _mm512_set1_epi64(bit)), found[2 * k],
                    found[2 * k + 1]);
        _mm512_storeu_pd(total + r, _mm512_add_pd(_mm512_loadu_pd(total + r), found[0]));
    }
}

PBOOST_AVX512 static void pboost_add_wide(PBOOST_ADD_ARGS)
{
    const unsigned leaves = depth < 4 ? (1u << (1 << depth)) - 1 : 0xFFFFu;
    if (depth <= 4)
        pboost_add_from(value, 1, (__mmask8)leaves, (__mmask8)(leaves >> 8), leaf, total);
    else if (depth == 5)
        pboost_add_from(value, 2, 0xFF, 0xFF, leaf, total);
    else
        pboost_add_from(value, 4, 0xFF, 0xFF, leaf, total);
}

#endif

/* Kernels for leaves, ranks and sums for a set of SIMD instructions; NULL if not available. */
typedef struct {
    pboost_leaf_kernel leaf;
    pboost_rank_kernel rank;
    pboost_add_kernel add;
} pboost_rank_passes;

static inline pboost_rank_passes pboost_choose_rank_passes(int level, int bytes)
{
    pboost_rank_passes found = {0, 0, 0};
#ifdef PBOOST_AVX512
    level = pboost_simd_level(level);
    if (level == 2 && __builtin_cpu_supports("avx512bw"))
        found.leaf = bytes ? pboost_wide_bytes_leaves : pboost_wide_leaves;
    else if (level >= 1)
        found.leaf = bytes ? pboost_narrow_bytes_leaves : pboost_narrow_leaves;
    if (level == 2) {
        found.rank = bytes ? pboost_rank_bytes_wide : pboost_rank_words_wide;
        found.add = pboost_add_wide;
    } else if (level == 1)
        found.rank = bytes ? pboost_rank_bytes : pboost_rank_words;
#else
    (void)level, (void)bytes;
#endif
    return found;
}
#endif
