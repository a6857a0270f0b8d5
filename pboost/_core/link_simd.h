/* Class probabilities of binary models, without branches, so that compilers can vectorize the loops.
 *
 * For log odds x and e = exp(-|x|), the predicted class has the probability 1 / (1 + e), and the other
 * class has e / (1 + e). Neither formula overflows or subtracts. The variant is chosen at import. All
 * variants do the same operations and give bit-identical results.
 */
#ifndef PBOOST_LINK_SIMD_H
#define PBOOST_LINK_SIMD_H
#include "exponential.h"

/* Compute probabilities from decision values, which are half the log odds; OUT shares (n, 2). If both
   round to 1/2 and the second class is predicted (score > 0), its probability is increased by one unit
   in the last place. */
PBOOST_INLINE void pboost_link_body(
    const double *restrict score, ptrdiff_t n, double *restrict shares)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double x = score[i], e = pboost_exp_below_0(-2.0 * fabs(x));
        const double larger = 1.0 / (1.0 + e), smaller = e * larger;
        const double above = larger > smaller ? larger : 0.5000000000000001;
        const double first = x > 0.0 ? smaller : larger, second = x > 0.0 ? above : smaller;
        shares[2 * i] = first;
        shares[2 * i + 1] = second;
    }
}

#define PBOOST_LINK_ARGS const double *restrict score, ptrdiff_t n, double *restrict shares
typedef void (*pboost_link_kernel)(PBOOST_LINK_ARGS);

#define PBOOST_LINK_COPY(TARGET, name)                                                             \
    TARGET static void pboost_link_##name(PBOOST_LINK_ARGS) { pboost_link_body(score, n, shares); }
#define PBOOST_LINK_OF(name) pboost_link_##name
PBOOST_COPIES(PBOOST_LINK_COPY)
PBOOST_CHOOSE(pboost_choose_link, pboost_link_kernel, PBOOST_LINK_OF)
#endif
