/* Bins of values, given the thresholds between bins. A binary search without branches processes several
 * values at a time.
 *
 * The code is compiled for the baseline and, on x86 with GCC or Clang, for AVX2. The variant is chosen at
 * import. Both variants give the same bins, because they only compare numbers.
 */
#ifndef PBOOST_BIN_SIMD_H
#define PBOOST_BIN_SIMD_H
#include "side.h"
#include "simd.h"
#include <stddef.h>
#include <stdint.h>

/* IN x (n,), edge (2**levels - 1,) in ascending order; OUT code (n,): the number of edges below each
 * value, or `missing` for NaN.
 */
#define PBOOST_BIN_ARGS                                                                          \
    const double *restrict x, ptrdiff_t n, const double *restrict edge, int levels, int missing, \
        uint8_t *restrict code

typedef void (*pboost_bin_kernel)(PBOOST_BIN_ARGS);

/* `side` is the number of values processed together; it is a compile-time constant. */
PBOOST_INLINE void pboost_bin_some(PBOOST_BIN_ARGS, int side)
{
    int32_t at[32];
    for (ptrdiff_t s = 0; s + side <= n; s += side) {
        for (int i = 0; i < side; i++) at[i] = 0;
        for (int half = 1 << levels >> 1; half; half >>= 1)
            for (int i = 0; i < side; i++)
                at[i] += -(int32_t)pboost_goes_right(x[s + i], edge[at[i] + half - 1]) & half;
        for (int i = 0; i < side; i++) code[s + i] = (uint8_t)(x[s + i] == x[s + i] ? at[i] : missing);
    }
}

PBOOST_INLINE void pboost_bin_body(PBOOST_BIN_ARGS, int side)
{
    const ptrdiff_t rest = n % side;
    pboost_bin_some(x, n - rest, edge, levels, missing, code, side);
    pboost_bin_some(x + n - rest, rest, edge, levels, missing, code + n - rest, 1);
}

static void pboost_bin_baseline(PBOOST_BIN_ARGS)
{
    pboost_bin_body(x, n, edge, levels, missing, code, 8);
}

#ifdef PBOOST_AVX2
PBOOST_AVX2 static void pboost_bin_avx2(PBOOST_BIN_ARGS)
{
    pboost_bin_body(x, n, edge, levels, missing, code, 32);
}
#define pboost_bin_avx512 pboost_bin_avx2
#endif
#define PBOOST_BIN_OF(name) pboost_bin_##name
PBOOST_CHOOSE(pboost_choose_bin, pboost_bin_kernel, PBOOST_BIN_OF)
#endif
