/* The probit loss -ln Phi(u) and its derivatives for blocks of rows, without branches, so that compilers
 * can vectorize the loops. The variant is chosen at import.
 *
 * With r = phi/Phi, let h(t) = r(-t) - t for t >= 0. h is computed as a quotient of polynomials with
 * positive coefficients, of degrees 9 and 10. They were found by interpolation with 60 digits at
 * Chebyshev points of (t - 4)/(t + 4); the relative error is 4e-15. So neither h nor r(-t) = t + h is a
 * difference of larger numbers. With D = t + h and the density e = phi(t), Phi(-t) = e/D and r(t) = e
 * D/(D - e).
 *
 * All variants give bit-identical results: they do the same operations, without fused multiply-add
 * (-ffp-contract=off), and sum in eight lanes.
 */
#ifndef PBOOST_PROBIT_SIMD_H
#define PBOOST_PROBIT_SIMD_H
#include "simd.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PBOOST_NEAR 37.0 /* at margins up to this size, the density does not underflow */
#define PBOOST_ROWS 256 /* rows per block; a block fits into the level 1 cache */

/* The unit of the density e. If all margins are large, the unit is phi(origin), and rescue is
   phi(origin)/phi(0). Otherwise, origin is 0. */
typedef struct {
    double origin, rescue;
} pboost_scale;

PBOOST_INLINE double pboost_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

PBOOST_INLINE uint64_t pboost_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Round t to 20 binary places, so that its square is exact. */
PBOOST_INLINE double pboost_head(double t)
{
    const double magic = 6442450944.0; /* 1.5 * 2**32: adding it rounds to 20 binary places */
    return (t + magic) - magic;
}

/* Return phi(t) / phi(origin) / sqrt(2 pi) for t >= origin >= 0, or 0 below 1e-308. */
PBOOST_INLINE double pboost_density(double t, double origin, int is_near)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2**52: adding it rounds to an integer */
    const double head = pboost_head(t);
    const double rest = -0.5 * ((t - head) * (t + head));
    const double all = is_near ? -0.5 * (head * head) : -0.5 * ((head - origin) * (head + origin));
    const double a = !is_near && all < -707.0 ? -707.0 : all;
    const double shifted = a * 1.44269504088896340736 + magic;
    const double k = shifted - magic;
    const double x = ((a - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10) + rest;
    const double xx = x * x, x4 = xx * xx;
    const double p0 = (1.0 + x) + xx * (1.0 / 2 + x * (1.0 / 6));
    const double p4 = (1.0 / 24 + x * (1.0 / 120)) + xx * (1.0 / 720 + x * (1.0 / 5040));
    const double p8 = (1.0 / 40320 + x * (1.0 / 362880)) + xx * (1.0 / 3628800 + x * (1.0 / 39916800));
    const double p = p0 + x4 * (p4 + x4 * (p8 + x4 * (1.0 / 479001600)));
    const double power = pboost_from_bits((pboost_bits(shifted) + 1023) << 52);
    return !is_near && all < -707.0 ? 0.0 : p * power * 0.39894228040143267794;
}

/* Return h(t) = r(-t) - t. For t >= 1e15, where powers would overflow, return 1/t. */
PBOOST_INLINE double pboost_excess(double t, int is_near)
{
    const double far = 1e15, x = !is_near && t > far ? far : t;
    const double x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
    const double p0 = (741882.3605108677 + x * 987575.5339438561)
                      + x2 * (663978.8184330271 + x * 288993.4802223405);
    const double p4 = (88722.4594791045 + x * 19821.04871534915)
                      + x2 * (3220.054186486366 + x * 368.1368374364794);
    const double q0 = (929811.6506532652 + x * 1661206.104652232)
                      + x2 * (1461705.776706297 + x * 823241.3182081172);
    const double q4 = (326468.801244182 + x * 94999.84405557976)
                      + x2 * (20551.32241167964 + x * 3274.295048742966);
    const double p = (p0 + x4 * p4) + x8 * (27.120431241468154 + x);
    const double q = (q0 + x4 * q4) + x8 * ((370.13683743769394 + x * 27.120431241465692) + x2);
    const int is_far = !is_near && t > far;
    return (is_far ? 1.0 : p) / (is_far ? t : q);
}

/* Return ln(x). It is accurate near x = 1 if `less_1` is x - 1 without rounding errors. */
PBOOST_INLINE double pboost_log(double x, double less_1)
{
    const uint64_t half = 0x3FE6A09E667F3BCDu; /* bit pattern of sqrt(1/2) */
    const uint64_t from_half = pboost_bits(x) + (0x3FF0000000000000u - half);
    const double m = pboost_from_bits((from_half & 0x000FFFFFFFFFFFFFu) + half);
    const double k = pboost_from_bits((from_half >> 52) | 0x4330000000000000u) - 4503599627371519.0;
    const double above = k == 0.0 ? less_1 : m - 1.0;
    const double s = above / (above + 2.0), z = s * s, zz = z * z, z4 = zz * zz;
    const double c0 = (1.0 + z * (1.0 / 3)) + zz * (1.0 / 5 + z * (1.0 / 7));
    const double c4 = (1.0 / 9 + z * (1.0 / 11)) + zz * (1.0 / 13 + z * (1.0 / 15));
    const double c8 = (1.0 / 17 + z * (1.0 / 19)) + zz * (1.0 / 21);
    const double ln_high = 6.93147180369123816490e-01, ln_low = 1.90821492927058770002e-10;
    return k * ln_high + (2.0 * s * (c0 + z4 * (c4 + z4 * c8)) + k * ln_low);
}

/* Compute r, u + r and, if requested, -ln Phi(u) of n margins. If is_near is true, the unit of e is 1
   and all margins are at most PBOOST_NEAR in size; this saves comparisons. */
PBOOST_INLINE void pboost_probit_body(
    const double *restrict u, ptrdiff_t n, pboost_scale scale, int is_near, int wants_loss,
    double *restrict ratio, double *restrict excess, double *restrict loss)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const double t = fabs(u[i]);
        const int below = u[i] < 0.0;
        const double h = pboost_excess(t, is_near);
        const double D = t + h;
        const double e = pboost_density(!is_near && t > 1e150 ? 1e150 : t, scale.origin, is_near);
        const double bounded = !is_near && D > 1e150 ? 1e150 : D; /* e D is 0 at infinity, not NaN */
        const double true_e = is_near ? e : e * scale.rescue;
        const double above = e * bounded / (bounded - true_e);
        ratio[i] = below ? D : above;
        excess[i] = below ? h : t + above;
        if (wants_loss) {
            const double q = true_e / bounded;
            const double log = pboost_log(below ? D : 1.0 - q, below ? D - 1.0 : -q);
            const double value = below ? 0.5 * t * t + (0.91893853320467274178 + log) : -log;
            loss[i] = is_near || u[i] == u[i] ? value : u[i];
        }
    }
}

#endif
