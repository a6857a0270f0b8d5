/* Multiclass rounds with one tree for all classes: histograms, and splits scored over all classes.
 *
 * A row has one packed word per class (see boost_simd.h), or two if sums are wide. Up to eight words of
 * a row are stored together; see softmax.pyx. All variants give bit-identical results: they do the same
 * operations, without fused multiply-add (-ffp-contract=off).
 */
#ifndef PBOOST_BOOST_VECTOR_H
#define PBOOST_BOOST_VECTOR_H
#include "boost_packed.h"

#define PBOOST_TOGETHER 4 /* number of classes whose sums are computed together */

#define PBOOST_VECTOR_COUNT_ARGS                                                                   \
    const uint8_t *first, const uint8_t *second, const int32_t *rows, const int64_t *words, ptrdiff_t n, \
    int width, int64_t *restrict table, int64_t *restrict other
/* Add the words (n, width) of n rows to the histograms of two features: the listed rows, or the first n. */
PBOOST_INLINE void pboost_vector_count_body(
    const uint8_t *first, const uint8_t *second, const int32_t *rows, const int64_t *words, ptrdiff_t n,
    int64_t *restrict table, int64_t *restrict other, const int width)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t row = rows ? rows[i] : i;
        pboost_add_lanes(table + (ptrdiff_t)first[row] * width, words + i * width, width);
        pboost_add_lanes(other + (ptrdiff_t)second[row] * width, words + i * width, width);
    }
}

#define PBOOST_VECTOR_UNPACK_ARGS                                                                  \
    const int64_t *table, ptrdiff_t cells, int is_first, double *restrict gradient, double *restrict curvature
/* Add packed sums to the gradients and Hessians, or replace them. */
PBOOST_INLINE void pboost_vector_unpack_body(PBOOST_VECTOR_UNPACK_ARGS)
{
    if (is_first)
        for (ptrdiff_t i = 0; i < cells; i++) {
            gradient[i] = PBOOST_GRADIENT_IN(table[i]);
            curvature[i] = PBOOST_CURVATURE_IN(table[i]);
        }
    else
        for (ptrdiff_t i = 0; i < cells; i++) {
            gradient[i] += PBOOST_GRADIENT_IN(table[i]);
            curvature[i] += PBOOST_CURVATURE_IN(table[i]);
        }
}

/* Input for scoring the splits of a node. For each class: the sums `total` (n_classes, 2), the L2
   penalty, the factor of the score, and the value of one Hessian unit. For the node: the number of rows,
   and the minimum number of rows and minimum Hessian sum of a child. */
typedef struct {
    const double *total, *l2, *factor, *unit;
    ptrdiff_t n_classes;
    double n_rows, least_rows, least_weight;
} pboost_vector_judge;

#define PBOOST_VECTOR_SCAN_ARGS                                                                    \
    const double *masses, ptrdiff_t stride, int n_bins, int missing, const double *rows,           \
    const pboost_vector_judge *at, double *restrict found, int32_t *restrict bin
/* Find the best split of a feature; ties go to the first bin. IN masses (n_classes, 2, stride):
   gradients and Hessians of the bins; only the first `n_bins` are scanned; missing: the bin of missing
   values if they go to the left, else -1; rows (stride,): numbers of rows, or any numbers that are below
   1 for empty bins. IN/OUT found, bin: the best score so far, and its bin. */
PBOOST_INLINE void pboost_vector_scan_body(PBOOST_VECTOR_SCAN_ARGS)
{
    double gradient[PBOOST_TOGETHER * PBOOST_BINS], curvature[PBOOST_TOGETHER * PBOOST_BINS];
    double score[PBOOST_BINS], below[PBOOST_BINS], above[PBOOST_BINS];
    const ptrdiff_t n = at->n_classes;
    for (int b = 0; b < n_bins; b++) score[b] = below[b] = above[b] = 0.0;
    for (ptrdiff_t first = 0; first < n; first += PBOOST_TOGETHER) {
        const int together = n - first < PBOOST_TOGETHER ? (int)(n - first) : PBOOST_TOGETHER;
        double g[PBOOST_TOGETHER], h[PBOOST_TOGETHER];
        const double *of[PBOOST_TOGETHER];
        for (int k = 0; k < PBOOST_TOGETHER; k++) {
            of[k] = masses + 2 * stride * (first + (k < together ? k : 0));
            g[k] = missing < 0 ? 0.0 : of[k][missing];
            h[k] = missing < 0 ? 0.0 : of[k][stride + missing];
        }
        for (int b = 0; b < n_bins; b++)
            for (int k = 0; k < PBOOST_TOGETHER; k++) {
                gradient[k * PBOOST_BINS + b] = g[k] += of[k][b];
                curvature[k * PBOOST_BINS + b] = h[k] += of[k][stride + b];
            }
        for (int k = 0; k < together; k++) {
            const double *gl = gradient + k * PBOOST_BINS, *hl = curvature + k * PBOOST_BINS;
            const double whole = at->total[2 * (first + k)], bend = at->total[2 * (first + k) + 1];
            const double l2 = at->l2[first + k], factor = at->factor[first + k], unit = at->unit[first + k];
            for (int b = 0; b < n_bins; b++) {
                const double gr = whole - gl[b], dl = hl[b] + l2, dr = (bend - hl[b]) + l2;
                score[b] += (gl[b] * gl[b] * dr + gr * gr * dl) / (dl * dr) * factor;
            }
            if (at->least_weight > 0.0)
                for (int b = 0; b < n_bins; b++) {
                    below[b] += hl[b] * unit;
                    above[b] += (bend - hl[b]) * unit;
                }
        }
    }
    double count = missing < 0 ? 0.0 : rows[missing];
    for (int b = 0; b < n_bins; b++) {
        count += rows[b];
        if (count >= at->least_rows && at->n_rows - count >= at->least_rows && score[b] > *found
            && (!(at->least_weight > 0.0) || (below[b] >= at->least_weight && above[b] >= at->least_weight)))
            *found = score[b], *bin = b;
    }
}

typedef struct {
    void (*count)(PBOOST_VECTOR_COUNT_ARGS);
    void (*unpack)(PBOOST_VECTOR_UNPACK_ARGS);
    void (*scan)(PBOOST_VECTOR_SCAN_ARGS);
} pboost_vector_passes;

#define PBOOST_VECTOR_COUNT_CALL(width)                                                            \
    if (rows) pboost_vector_count_body(first, second, rows, words, n, table, other, width);        \
    else pboost_vector_count_body(first, second, NULL, words, n, table, other, width)
#define PBOOST_VECTOR_COPY(TARGET, name)                                                        \
    TARGET static void pboost_vector_count_##name(PBOOST_VECTOR_COUNT_ARGS)                        \
    {                                                                                              \
        if (width == 8) {                                                                          \
            PBOOST_VECTOR_COUNT_CALL(8);                                                           \
        } else if (width == 4) {                                                                   \
            PBOOST_VECTOR_COUNT_CALL(4);                                                           \
        } else {                                                                                   \
            PBOOST_VECTOR_COUNT_CALL(2);                                                           \
        }                                                                                          \
    }                                                                                              \
    TARGET static void pboost_vector_unpack_##name(PBOOST_VECTOR_UNPACK_ARGS)                      \
    {                                                                                              \
        pboost_vector_unpack_body(table, cells, is_first, gradient, curvature);                    \
    }                                                                                              \
    TARGET static void pboost_vector_scan_##name(PBOOST_VECTOR_SCAN_ARGS)                          \
    {                                                                                              \
        pboost_vector_scan_body(masses, stride, n_bins, missing, rows, at, found, bin);            \
    }
#define PBOOST_VECTOR_PASSES(name)                                                                 \
    {pboost_vector_count_##name, pboost_vector_unpack_##name, pboost_vector_scan_##name}
PBOOST_COPIES(PBOOST_VECTOR_COPY)
PBOOST_CHOOSE(pboost_choose_vector_passes, pboost_vector_passes, PBOOST_VECTOR_PASSES)
#endif
