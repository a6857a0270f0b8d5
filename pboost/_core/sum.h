/* Sums of doubles. Rounding errors grow only with the logarithm of the number of terms. */
#ifndef PBOOST_SUM_H
#define PBOOST_SUM_H
#include "simd.h"
#include <stddef.h>

#define PBOOST_SUMS_ABREAST 8
#define PBOOST_PART 128 /* longest part that is summed without being halved */

static double pboost_sum_part(const double *a, ptrdiff_t n)
{
    double r[PBOOST_SUMS_ABREAST], total = -0.0;
    ptrdiff_t i = 0;
    if (n >= PBOOST_SUMS_ABREAST) {
        for (int j = 0; j < PBOOST_SUMS_ABREAST; j++) r[j] = a[j];
        for (i = PBOOST_SUMS_ABREAST; i + PBOOST_SUMS_ABREAST <= n; i += PBOOST_SUMS_ABREAST)
            for (int j = 0; j < PBOOST_SUMS_ABREAST; j++) r[j] += a[i + j];
        total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    }
    for (; i < n; i++) total += a[i];
    return total;
}

/* Return the sum of numbers in the order of NumPy's `sum`: parts are halved, then summed in eight lanes. */
PBOOST_APART static double pboost_sum_of(const double *a, ptrdiff_t n)
{
    const ptrdiff_t half = n / 2 - n / 2 % PBOOST_SUMS_ABREAST;
    return n <= PBOOST_PART ? pboost_sum_part(a, n) : pboost_sum_of(a, half) + pboost_sum_of(a + half, n - half);
}
#endif
