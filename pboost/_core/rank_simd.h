/* Shallow trees on a tile of rows whose values have been replaced by ranks.
 *
 * The rank of a value is the number of thresholds of its column, in all trees, that lie below it: it
 * is above threshold number e where rank > e. With ranks of 16 bits a register holds 16 or 32 rows, so
 * that all nodes of a tree are compared, and the leaf is blended upwards from the leaves, in fewer
 * cycles than a walk from node to node waits for its next one. Trees are filled up to the same
 * depth; nodes stand in preorder, 2**depth - 1 of them.
 *
 * For AVX2 and AVX-512 on x86 with GCC or Clang; elsewhere there is none, and trees are walked.
 */
#ifndef PBOOST_RANK_SIMD_H
#define PBOOST_RANK_SIMD_H
#include "walk_simd.h"

typedef struct {
    int32_t column; /* 64 times the column */
    int32_t edge;   /* at most 2**15 - 1, above which no rank is; twice, in 16 bits each */
} pboost_ranked_node;

/* The ranks of a column of a tile, by binary search, row beside row. IN edge (2**levels - 1,), ascending. */
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static void pboost_rank_column(
    const double *restrict x, const double *restrict edge, int levels, int16_t *restrict rank)
{
    int32_t at[PBOOST_TILE / 2];
    for (int part = 0; part < PBOOST_TILE; part += PBOOST_TILE / 2) {
        for (int r = 0; r < PBOOST_TILE / 2; r++) at[r] = 0;
        for (int half = 1 << levels >> 1; half; half >>= 1)
            for (int r = 0; r < PBOOST_TILE / 2; r++)
                at[r] += -(int32_t)pboost_goes_right(x[part + r], edge[at[r] + half - 1]) & half;
        for (int r = 0; r < PBOOST_TILE / 2; r++) rank[part + r] = (int16_t)at[r];
    }
}

/* Add the values (n_leaves, width) of the leaves that n rows reach to total, of `stride` numbers a row. */
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

/* OUT leaf (64,): 0 to 2**depth - 1, from left to right. */
#define PBOOST_LEAF_ARGS                                                                         \
    const pboost_ranked_node *restrict node, int depth, const int16_t *restrict rank,            \
    int16_t *restrict leaf

typedef void (*pboost_leaf_kernel)(PBOOST_LEAF_ARGS);

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)

#define PBOOST_INLINE(isa) static inline __attribute__((always_inline, target(isa)))

/* The leaf below a node of `levels` levels, among its leaves. Below it are two trees of which the second
   begins at node + half, where there are as many leaves below the first. */
#define PBOOST_LEVEL(isa, v, name, below, half)                                                  \
    PBOOST_INLINE(isa) v##_type name(const pboost_ranked_node *node, const int16_t *rank)        \
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
    static __attribute__((noinline, target(isa))) v##_type v##_6(                                \
        const pboost_ranked_node *node, const int16_t *rank)                                     \
    {                                                                                            \
        return v##_inlined(node, rank);                                                          \
    }                                                                                            \
    PBOOST_LEVEL(isa, v, v##_7, v##_6, 64)                                                       \
    PBOOST_LEVEL(isa, v, v##_8, v##_7, 128)                                                      \
    __attribute__((target(isa))) static void v##_leaves(PBOOST_LEAF_ARGS)                        \
    {                                                                                            \
        for (int r = 0; r < PBOOST_TILE; r += (int)(sizeof(v##_type) / 2)) switch (depth) {      \
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
#define pboost_narrow_set1 _mm256_set1_epi16
#define pboost_narrow_or _mm256_or_si256
#define pboost_narrow_blend _mm256_blendv_epi8
#define pboost_narrow_above(x, e)                                                                       \
    _mm256_cmpgt_epi16(_mm256_loadu_si256((const __m256i *)(x)), _mm256_set1_epi32(e))
#define pboost_narrow_store(to, v) _mm256_storeu_si256((__m256i *)(to), v)
#define pboost_narrow_1(node, rank)                                                                     \
    _mm256_srli_epi16(pboost_narrow_above((rank) + (node)->column, (node)->edge), 15)
PBOOST_LEAVES("avx2", pboost_narrow)

#define pboost_wide_type __m512i
#define pboost_wide_set1 _mm512_set1_epi16
#define pboost_wide_or _mm512_or_si512
#define pboost_wide_blend(low, high, above) _mm512_mask_blend_epi16(above, low, high)
#define pboost_wide_above(x, e) _mm512_cmpgt_epi16_mask(_mm512_loadu_si512(x), _mm512_set1_epi32(e))
#define pboost_wide_store _mm512_storeu_si512
#define pboost_wide_1(node, rank)                                                                       \
    _mm512_maskz_mov_epi16(pboost_wide_above((rank) + (node)->column, (node)->edge), pboost_wide_set1(1))
PBOOST_LEAVES("avx512f,avx512bw", pboost_wide)

/* level as in `pboost_choose_chain`; NULL where there is none. */
static inline pboost_leaf_kernel pboost_choose_leaf(int level)
{
    __builtin_cpu_init();
    if (level >= 2 && __builtin_cpu_supports("avx512bw")) return pboost_wide_leaves;
    if (level >= 1 && __builtin_cpu_supports("avx2")) return pboost_narrow_leaves;
    return 0;
}
#else
static inline pboost_leaf_kernel pboost_choose_leaf(int level)
{
    (void)level;
    return 0;
}
#endif
#endif
