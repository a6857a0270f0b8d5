/* Scores of classes, as each class sees them: its log odds against the others, along which the loss of
 * softmax is the log loss of two classes.
 *
 * Every operation is the same in each variant and nothing is fused (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_SOFTMAX_H
#define PBOOST_BOOST_SOFTMAX_H
#include "boost_loss.h"

/* ln(x) of a normal number > 0. */
PBOOST_INLINE double pboost_ln(double x)
{
    /* x = m * 2**k, m from sqrt(1/2) to sqrt(2). */
    const uint64_t bits = pboost_bits(x), shifted = bits - 0x3FE6A09E667F3BCDu;
    const uint64_t k = (shifted >> 52) & 0xFFF;
    const double m = pboost_from_bits(bits - (k << 52));
    /* k is signed, of 12 bits. */
    const double power = pboost_from_bits(0x4338000000000000u + ((k ^ 0x800) & 0xFFF)) - (PBOOST_MAGIC + 2048.0);
    const double s = (m - 1.0) / (m + 1.0), z = s * s, zz = z * z, z4 = zz * zz;
    const double c0 = (1.0 + z * (1.0 / 3)) + zz * (1.0 / 5 + z * (1.0 / 7));
    const double c4 = (1.0 / 9 + z * (1.0 / 11)) + zz * (1.0 / 13 + z * (1.0 / 15));
    const double found = 2.0 * s * (c0 + z4 * (c4 + z4 * (1.0 / 17 + z * (1.0 / 19))));
    return power * 6.93147180369123816490e-01 + (found + power * 1.90821492927058770002e-10);
}

#define PBOOST_ODDS_ARGS                                                                           \
    const double *scores, const double *label, const double *weight, ptrdiff_t stride,             \
    ptrdiff_t n_classes, ptrdiff_t n, double *restrict odds, double *restrict loss
/* IN scores (n_classes, stride), of which the first n of each class, label (n,), weight (n,) or NULL; OUT
   odds (n_classes, stride): the score of each class less the logarithm of the sum of exponentials of the
   others; loss (n,): weight times -ln of the probability of the row's class. */
PBOOST_INLINE void pboost_odds_body(PBOOST_ODDS_ARGS)
{
    double most[PBOOST_ROWS], first[PBOOST_ROWS], rest[PBOOST_ROWS], own[PBOOST_ROWS];
    for (ptrdiff_t start = 0; start < n; start += PBOOST_ROWS) {
        const ptrdiff_t m = n - start < PBOOST_ROWS ? n - start : PBOOST_ROWS;
        for (ptrdiff_t i = 0; i < m; i++) {
            most[i] = scores[start + i];
            first[i] = rest[i] = own[i] = 0.0;
        }
        for (ptrdiff_t l = 1; l < n_classes; l++) {
            const double *f = scores + l * stride + start, number = (double)l;
            for (ptrdiff_t i = 0; i < m; i++) {
                first[i] = f[i] > most[i] ? number : first[i];
                most[i] = f[i] > most[i] ? f[i] : most[i];
            }
        }
        for (ptrdiff_t l = 0; l < n_classes; l++) {
            const double *f = scores + l * stride + start, number = (double)l;
            double *restrict e = odds + l * stride + start;
            for (ptrdiff_t i = 0; i < m; i++) {
                e[i] = pboost_exp(f[i] - most[i]);
                rest[i] += first[i] == number ? 0.0 : e[i];
            }
        }
        for (ptrdiff_t l = 0; l < n_classes; l++) {
            const double *f = scores + l * stride + start, number = (double)l;
            double *restrict e = odds + l * stride + start;
            for (ptrdiff_t i = 0; i < m; i++) {
                /* Nothing cancels: that of the largest score, which is 1, is not taken away again. */
                const double others = first[i] == number ? rest[i] : (1.0 + rest[i]) - e[i];
                e[i] = (f[i] - most[i]) - pboost_ln(others);
                own[i] = label[start + i] == number ? e[i] : own[i];
            }
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            const double w = weight ? weight[start + i] : 1.0;
            const double value = pboost_log_1_plus(pboost_exp(-fabs(own[i]))) + (own[i] < 0.0 ? -own[i] : 0.0);
            loss[start + i] = w > 0.0 ? w * value : 0.0;
        }
    }
}

#define PBOOST_ODDS_VARIANT                                                                        \
    { pboost_odds_body(scores, label, weight, stride, n_classes, n, odds, loss); }
static void pboost_odds_baseline(PBOOST_ODDS_ARGS) PBOOST_ODDS_VARIANT
typedef void (*pboost_odds_pass)(PBOOST_ODDS_ARGS);

#ifdef PBOOST_AVX512
PBOOST_AVX2 static void pboost_odds_avx2(PBOOST_ODDS_ARGS) PBOOST_ODDS_VARIANT
PBOOST_AVX512 static void pboost_odds_avx512(PBOOST_ODDS_ARGS) PBOOST_ODDS_VARIANT
#endif
static inline pboost_odds_pass pboost_choose_odds_pass(int level)
{
#ifdef PBOOST_AVX512
    const pboost_odds_pass variant[3] = {pboost_odds_baseline, pboost_odds_avx2, pboost_odds_avx512};
    return variant[pboost_probit_level(level)];
#else
    (void)level;
    return pboost_odds_baseline;
#endif
}
#endif
