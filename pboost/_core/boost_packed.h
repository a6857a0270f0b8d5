/* Pack the gradients and Hessians of one class from its residuals; see boost_softmax.h.
 *
 * All variants give bit-identical results: they do the same operations, without fused multiply-add
 * (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_WORDS_H
#define PBOOST_BOOST_WORDS_H
#include "boost_histogram.h"
#include "exponential.h"

/* Return the Hessian for a residual of this size. It is increased so that no Newton step exceeds the
   limit. */
PBOOST_INLINE double pboost_bend(double size, double per_limit)
{
    const double bend = size * (1.0 - size), least = size * per_limit;
    return bend < least ? least : bend;
}

#define PBOOST_WORDS_ARGS                                                                          \
    const double *residual, const double *weight, int are_copies, const int32_t *rows,             \
    ptrdiff_t n, double per_limit, double gradient_scale, double curvature_scale, int64_t *restrict packed
typedef void (*pboost_words_pass)(PBOOST_WORDS_ARGS);

/* Add 2, 4 or 8 words to the table. Vector types are used, because compilers do not vectorize nested
   loops here. */
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

#endif
