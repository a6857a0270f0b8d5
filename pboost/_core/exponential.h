/* The exponential function without branches, so that compilers can vectorize loops that call it.
 *
 * All variants do the same operations, without fused multiply-add (-ffp-contract=off). Results are
 * bit-identical on all processors, with an error of at most two units in the last place.
 */
#ifndef PBOOST_EXPONENTIAL_H
#define PBOOST_EXPONENTIAL_H
#include "probit_simd.h" /* for PBOOST_INLINE and the conversion between numbers and bits */

#define PBOOST_MAGIC 6755399441055744.0 /* 1.5 * 2**52: adding it rounds a number to an integer */

/* Return exp(a) for a in [-707, 709]. */
PBOOST_INLINE double pboost_exp_within(double a)
{
    const double shifted = a * 1.44269504088896340736 + PBOOST_MAGIC;
    const double k = shifted - PBOOST_MAGIC;
    const double x = (a - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    const double xx = x * x, x4 = xx * xx;
    const double p0 = (1.0 + x) + xx * (1.0 / 2 + x * (1.0 / 6));
    const double p4 = (1.0 / 24 + x * (1.0 / 120)) + xx * (1.0 / 720 + x * (1.0 / 5040));
    const double p8 = (1.0 / 40320 + x * (1.0 / 362880)) + xx * (1.0 / 3628800 + x * (1.0 / 39916800));
    const double p = p0 + x4 * (p4 + x4 * (p8 + x4 * (1.0 / 479001600)));
    return p * pboost_from_bits((pboost_bits(shifted) + 1023) << 52);
}

/* Return exp(t); the result is at least exp(-707), and infinity for t > 709. */
PBOOST_INLINE double pboost_exp(double t)
{
    const double found = pboost_exp_within(t < -707.0 ? -707.0 : t > 709.0 ? 709.0 : t);
    return t > 709.0 ? INFINITY : t != t ? t : found;
}

/* Return exp(t) for t <= 0; the result is at least exp(-707). */
PBOOST_INLINE double pboost_exp_below_0(double t) { return pboost_exp_within(t < -707.0 ? -707.0 : t); }
#endif
