/* Words of rows from their residuals, see boost_softmax.h, where the rest of a round of softmax is not needed.
 *
 * Every operation is the same in each variant and nothing is fused (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_WORDS_H
#define PBOOST_BOOST_WORDS_H
#include "boost_loss.h"
#include "boost_simd.h"

/* The curvature of a row whose residual is of this size, raised where a Newton step were beyond the limit. */
PBOOST_INLINE double pboost_bend(double size, double per_limit)
{
    const double bend = size * (1.0 - size), least = size * per_limit;
    return bend < least ? least : bend;
}

#define PBOOST_WORDS_ARGS                                                                          \
    const double *residual, const double *weight, int are_copies, const int32_t *rows,             \
    ptrdiff_t n, double per_limit, double gradient_scale, double curvature_scale, int64_t *restrict packed
/* The words of n rows, the first or the listed ones: of the gradient and the curvature. */
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

/* table += words, 2, 4 or 8 of them: a compiler that sees two loops here adds one by one. */
PBOOST_INLINE void pboost_add_lanes(int64_t *table, const int64_t *words, const int width)
{
#if defined(__GNUC__) || defined(__clang__)
    typedef int64_t pboost_two __attribute__((vector_size(16), may_alias));
    typedef int64_t pboost_four_words __attribute__((vector_size(32), may_alias));
    if (width == 2) *(pboost_two *)table += *(const pboost_two *)words;
    else
        for (int k = 0; k < width; k += 4) *(pboost_four_words *)(table + k) += *(const pboost_four_words *)(words + k);
#else
    for (int k = 0; k < width; k++) table[k] += words[k];
#endif
}

typedef void (*pboost_words_pass)(PBOOST_WORDS_ARGS);

#define PBOOST_WORDS_VARIANT(TARGET, name)                                                         \
    TARGET static void pboost_words_##name(PBOOST_WORDS_ARGS)                                      \
    {                                                                                              \
        pboost_words_body(                                                                         \
            residual, weight, are_copies, rows, n, per_limit, gradient_scale, curvature_scale, packed); \
    }
PBOOST_WORDS_VARIANT(, baseline)
#ifdef PBOOST_AVX512
PBOOST_WORDS_VARIANT(PBOOST_AVX2, avx2)
PBOOST_WORDS_VARIANT(PBOOST_AVX512, avx512)
#endif
static inline pboost_words_pass pboost_choose_words_pass(int level)
{
#ifdef PBOOST_AVX512
    const pboost_words_pass variant[3] = {
        pboost_words_baseline, pboost_words_avx2, pboost_words_avx512};
    return variant[pboost_probit_level(level)];
#else
    (void)level;
    return pboost_words_baseline;
#endif
}
#endif
