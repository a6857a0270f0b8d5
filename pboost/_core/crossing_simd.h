/* The weights of both classes that cross nearby thresholds from four bins of an uncertain feature.
 *
 * There is one loop, compiled for the baseline and, on x86 with GCC or Clang, for AVX2 and AVX-512. The
 * variant is chosen at import. All variants give bit-identical results: they add in the same order,
 * without fused multiply-add (-ffp-contract=off).
 */
#ifndef PBOOST_CROSSING_SIMD_H
#define PBOOST_CROSSING_SIMD_H
#include "simd.h"
#include <stddef.h>

#define PBOOST_CROSSING_ARGS                                                                     \
    const float *restrict share, ptrdiff_t length, const double *restrict negative,              \
    const double *restrict positive, double *restrict from_negative,                             \
    double *restrict from_positive

/* Prefetch the shares of the next bins. They are far apart in memory, and the processor does not
   prefetch beyond a page. */
#define PBOOST_CROSSING_COPY(TARGET, name)                                                       \
    TARGET static void pboost_crossing_##name(PBOOST_CROSSING_ARGS)                              \
    {                                                                                            \
        const float *restrict s0 = share, *restrict s1 = share + length;                         \
        const float *restrict s2 = share + 2 * length, *restrict s3 = share + 3 * length;        \
        const double n0 = negative[0], n1 = negative[1], n2 = negative[2], n3 = negative[3];     \
        const double p0 = positive[0], p1 = positive[1], p2 = positive[2], p3 = positive[3];     \
        for (ptrdiff_t k = 0; k < 4 * length; k += 16) PBOOST_ASK(share + 4 * length + k);       \
        for (ptrdiff_t e = 0; e < length; e++) {                                                 \
            const double a = s0[e], b = s1[e], c = s2[e], d = s3[e];                             \
            from_negative[e] += (n0 * a + n1 * b) + (n2 * c + n3 * d);                           \
            from_positive[e] += (p0 * a + p1 * b) + (p2 * c + p3 * d);                           \
        }                                                                                        \
    }

typedef void (*pboost_crossing_kernel)(PBOOST_CROSSING_ARGS);
#define PBOOST_CROSSING_OF(name) pboost_crossing_##name
PBOOST_COPIES(PBOOST_CROSSING_COPY)
PBOOST_CHOOSE(pboost_choose_crossing, pboost_crossing_kernel, PBOOST_CROSSING_OF)
#endif
