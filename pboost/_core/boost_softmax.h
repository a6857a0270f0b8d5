/* Multiclass rounds with the softmax loss: gradients of all classes, and histograms of the roots of
 * their trees.
 *
 * The residual of a class is the gradient of the loss with respect to the score of the class. It is the
 * probability of the class, minus 1 for rows of the class. Its absolute value and the Hessian are the
 * same as for the binary log loss of this class against the rest. All variants give bit-identical
 * results: they do the same operations, without fused multiply-add (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_SOFTMAX_H
#define PBOOST_BOOST_SOFTMAX_H
#include "boost_packed.h"

#define PBOOST_SHARES_ARGS                                                                         \
    const double *scores, const double *label, const double *weight, int are_copies,               \
    ptrdiff_t n_classes, ptrdiff_t n, ptrdiff_t stride, double per_limit, double *restrict residual,                    \
    double *restrict loss, double *restrict steepest, double *restrict most
/* Compute the residuals and the losses of n rows. IN scores (n_classes, stride), label (n,), weight (n,)
   or NULL; OUT residual (n_classes, stride); loss (n,): weight times -ln of the probability of the row's
   class; IN/OUT steepest, most (n_classes,): the largest weighted absolute residual and the largest
   weighted Hessian. If weights are numbers of copies, all values are for one copy. */
PBOOST_INLINE void pboost_shares_body(PBOOST_SHARES_ARGS)
{
    double top[PBOOST_ROWS], own[PBOOST_ROWS], others[PBOOST_ROWS], share[PBOOST_ROWS];
    double size[PBOOST_ROWS], bend[PBOOST_ROWS];
    for (ptrdiff_t start = 0; start < n; start += PBOOST_ROWS) {
        const ptrdiff_t m = n - start < PBOOST_ROWS ? n - start : PBOOST_ROWS;
        const double *number = label + start, *w = weight ? weight + start : NULL;
        for (ptrdiff_t i = 0; i < m; i++) top[i] = -INFINITY;
        for (ptrdiff_t l = 0; l < n_classes; l++) {
            const double *f = scores + l * stride + start;
            for (ptrdiff_t i = 0; i < m; i++) top[i] = f[i] > top[i] ? f[i] : top[i];
        }
        for (ptrdiff_t i = 0; i < m; i++) own[i] = others[i] = 0.0;
        for (ptrdiff_t l = 0; l < n_classes; l++) {
            const double *f = scores + l * stride + start, k = (double)l;
            double *restrict e = residual + l * stride + start;
            for (ptrdiff_t i = 0; i < m; i++) {
                e[i] = pboost_exp(f[i] - top[i]);
                own[i] += number[i] == k ? f[i] - top[i] : 0.0;
                others[i] += number[i] == k ? 0.0 : e[i];
            }
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            /* 1 - p for the row's class is the sum of the other probabilities, which avoids
               cancellation. */
            const double total = others[i] + pboost_exp(own[i]);
            const double value = pboost_log(total, own[i] == 0.0 ? others[i] : total - 1.0) - own[i];
            loss[start + i] = value;
            share[i] = 1.0 / total;
            others[i] *= -share[i];
        }
        if (w)
            for (ptrdiff_t i = 0; i < m; i++)
                loss[start + i] = w[i] > 0.0 ? (are_copies ? 1.0 : w[i]) * loss[start + i] : 0.0;
        for (ptrdiff_t l = 0; l < n_classes; l++) {
            double *restrict e = residual + l * stride + start;
            const double k = (double)l;
            uint64_t g = 0, h = 0;
            for (ptrdiff_t i = 0; i < m; i++) {
                e[i] = number[i] == k ? others[i] : e[i] * share[i];
                size[i] = fabs(e[i]);
                bend[i] = pboost_bend(size[i], per_limit);
            }
            if (w)
                for (ptrdiff_t i = 0; i < m; i++) {
                    const double times = are_copies && w[i] > 0.0 ? 1.0 : w[i];
                    size[i] *= times;
                    bend[i] *= times;
                }
            for (ptrdiff_t i = 0; i < m; i++) { /* nonnegative numbers are ordered like their bits */
                g = pboost_bits(size[i]) > g ? pboost_bits(size[i]) : g;
                h = pboost_bits(bend[i]) > h ? pboost_bits(bend[i]) : h;
            }
            steepest[l] = pboost_from_bits(g) > steepest[l] ? pboost_from_bits(g) : steepest[l];
            most[l] = pboost_from_bits(h) > most[l] ? pboost_from_bits(h) : most[l];
        }
    }
}

#define PBOOST_ROOTS_ARGS                                                                          \
    const uint8_t *groups, ptrdiff_t stride, const int32_t *bins, ptrdiff_t n_lanes, ptrdiff_t start, \
    ptrdiff_t n, const int64_t *restrict words, double *restrict masses
/* Add n rows, beginning at `start`, to the histograms of the roots of `width` classes. There are at most
   PBOOST_BLOCK rows, including copies. IN groups (ceil(n_lanes / 8), stride, 8): codes; bins (n_lanes,);
   words (n, width), aligned to 64 bytes; IN/OUT masses (n_lanes, PBOOST_BINS, 2, width). */
PBOOST_INLINE void pboost_roots_body(PBOOST_ROOTS_ARGS, const int width)
{
    int64_t room[PBOOST_BINS * 8 + 8];
    int64_t *restrict table = (int64_t *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    for (ptrdiff_t j = 0; j < n_lanes; j++) {
        const uint8_t *code = groups + (j / PBOOST_LANES * stride + start) * PBOOST_LANES + j % PBOOST_LANES;
        double *restrict sums = masses + j * PBOOST_BINS * 2 * width;
        memset(table, 0, sizeof(int64_t) * (size_t)(bins[j] * width));
        for (ptrdiff_t i = 0; i < n; i++)
            pboost_add_lanes(table + (ptrdiff_t)code[i * PBOOST_LANES] * width, words + i * width, width);
        for (int b = 0; b < bins[j]; b++, sums += 2 * width)
            for (int k = 0; k < width; k++) {
                sums[k] += (double)(int32_t)(table[b * width + k] >> 32);
                sums[width + k] += (double)(uint32_t)table[b * width + k];
            }
    }
}

typedef struct {
    void (*shares)(PBOOST_SHARES_ARGS);
    void (*roots)(PBOOST_ROOTS_ARGS, int width);
} pboost_softmax_passes;

#define PBOOST_ROOTS_CALL(width)                                                                   \
    pboost_roots_body(groups, stride, bins, n_lanes, start, n, words, masses, width)
#define PBOOST_SOFTMAX_COPY(TARGET, name)                                                          \
    TARGET static void pboost_shares_##name(PBOOST_SHARES_ARGS)                                    \
    {                                                                                              \
        pboost_shares_body(                                                                        \
            scores, label, weight, are_copies, n_classes, n, stride, per_limit, residual, loss, steepest, \
            most);                                                                                 \
    }                                                                                              \
    TARGET static void pboost_roots_##name(PBOOST_ROOTS_ARGS, int width)                           \
    {                                                                                              \
        if (width == 8) PBOOST_ROOTS_CALL(8);                                                      \
        else if (width == 4) PBOOST_ROOTS_CALL(4);                                                 \
        else PBOOST_ROOTS_CALL(2);                                                                 \
    }
#define PBOOST_SOFTMAX_PASSES(name) {pboost_shares_##name, pboost_roots_##name}
PBOOST_COPIES(PBOOST_SOFTMAX_COPY)
PBOOST_CHOOSE(pboost_choose_softmax_passes, pboost_softmax_passes, PBOOST_SOFTMAX_PASSES)
#endif
