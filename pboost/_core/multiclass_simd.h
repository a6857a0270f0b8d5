/* Passes over rows that have one weight per class: sums by bin, scores of splits, weight updates.
 *
 * Classes are stored side by side in blocks of PBOOST_WIDE lanes or, if there are few classes,
 * PBOOST_NARROW lanes. One vector addition per block adds a row to a bin. The lane after the last class
 * counts rows. The sums of a feature are the weights of all rows, [block][bin][lane], then the weights
 * of the rows of each class, [class][bin]. Rows are sorted by class, so that the latter sums are added
 * in few cache lines at a time.
 *
 * The code is compiled for the baseline and, on x86 with GCC or Clang, for AVX2 and AVX-512. The variant is
 * chosen at import. All variants do the same operations in the same order and give bit-identical results.
 */
#ifndef PBOOST_LABELS_SIMD_H
#define PBOOST_LABELS_SIMD_H
#include "simd.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PBOOST_WIDE 8
#define PBOOST_NARROW 4
#define PBOOST_AT_ONCE 4           /* blocks summed in one pass over the rows */
#define PBOOST_HELD (1 << 14)      /* capacity of the buffer, in fixed-point numbers */
#define PBOOST_MOST_HELD 2048      /* capacity of the buffer, in rows */
#define PBOOST_LOWERED (1.0 - 1e-12) /* factor of bounds, which allows for rounding errors */
#define PBOOST_BINS_ABREAST 8      /* bins that are scored together */
#if defined(__GNUC__) || defined(__clang__)
#define PBOOST_ALIGNED __attribute__((aligned(64)))
#else
#define PBOOST_ALIGNED
#endif
#define PBOOST_FAR_ROWS 16         /* prefetch distance in rows */

static inline int64_t pboost_fixed(double value) { return (int64_t)(value + 0.5); }

/* Rows and their weights. `used` lists the k classes that are not omitted; NULL means the first k.
   `place` is the position of each class in this list, or -1. */
typedef struct {
    const uint8_t *codes;
    ptrdiff_t n_codes;
    const int32_t *rows;
    ptrdiff_t n;
    const double *weight;
    ptrdiff_t width;
    const int32_t *label;
    double scale;
    const int32_t *used, *place;
    ptrdiff_t k;
    int64_t *sums;
    ptrdiff_t bins, blocks, lanes;
} pboost_label_rows;

/* Buffered rows: their lanes, [block][row][lane], the weight for their own class, and the position of
   the first bin of this class in the sums of a feature. */
typedef struct {
    int64_t lane[PBOOST_HELD] PBOOST_ALIGNED;
    int64_t own[PBOOST_MOST_HELD];
    int32_t at[PBOOST_MOST_HELD], row[PBOOST_MOST_HELD];
} pboost_held_rows;

/* Buffer m rows for `blocks` blocks of lanes, beginning with block `first`. */
PBOOST_INLINE void pboost_hold(
    const pboost_label_rows *of, ptrdiff_t start, ptrdiff_t m, ptrdiff_t first, ptrdiff_t blocks,
    const int lanes, pboost_held_rows *held)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        const ptrdiff_t row = of->rows[start + i];
        const double *weight = of->weight + row * of->width;
        const int32_t label = of->label[row], place = of->place[label];
        if (start + i + PBOOST_FAR_ROWS < of->n)
            PBOOST_ASK(of->weight + of->rows[start + i + PBOOST_FAR_ROWS] * of->width);
        held->row[i] = (int32_t)row;
        for (ptrdiff_t q = 0; q < blocks; q++) {
            int64_t *lane = held->lane + (q * m + i) * lanes;
            const ptrdiff_t before = (first + q) * lanes;
            if (of->used)
                for (ptrdiff_t l = 0; l < lanes; l++)
                    lane[l] = before + l < of->k ? pboost_fixed(weight[of->used[before + l]] * of->scale) : 0;
            else
                for (int l = 0; l < lanes; l++) lane[l] = pboost_fixed(weight[before + l] * of->scale);
            if (of->k / lanes == first + q) lane[of->k % lanes] = 1;
        }
        held->own[i] = place < 0 ? 0 : pboost_fixed(weight[label] * of->scale);
        held->at[i] = (int32_t)((of->blocks * lanes + (place < 0 ? 0 : place)) * of->bins);
    }
}

/* Add the buffered rows to the sums of two features, which are `apart` entries apart, or of one feature
   if `second` is NULL. If `own` is not NULL, also add the weight of each row for its own class. If the
   rows are contiguous in `codes`, `row` is NULL. */
PBOOST_INLINE void pboost_add_lanes(
    const int64_t *lane, const pboost_held_rows *held, const int32_t *row, const uint8_t *codes,
    const uint8_t *second, ptrdiff_t m, const int lanes, int64_t *sums, int64_t *own, ptrdiff_t apart)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        /* Read all lanes before writing any, so that compilers can use vectors. */
        int64_t sum[PBOOST_WIDE], other[PBOOST_WIDE];
        const ptrdiff_t at = row ? row[i] : i, bin = codes[at], bin_2 = second ? second[at] : 0;
        int64_t *cell = sums + bin * lanes, *cell_2 = sums + apart + bin_2 * lanes;
        for (int l = 0; l < lanes; l++) sum[l] = cell[l] + lane[i * lanes + l];
        if (second)
            for (int l = 0; l < lanes; l++) other[l] = cell_2[l] + lane[i * lanes + l];
        for (int l = 0; l < lanes; l++) cell[l] = sum[l];
        if (second)
            for (int l = 0; l < lanes; l++) cell_2[l] = other[l];
        if (own) {
            own[held->at[i] + bin] += held->own[i];
            if (second) own[apart + held->at[i] + bin_2] += held->own[i];
        }
    }
}

PBOOST_INLINE void pboost_add_columns(
    const int64_t *lane, const pboost_held_rows *held, const int32_t *row, const uint8_t *codes,
    const uint8_t *second, ptrdiff_t m, const int lanes, int64_t *sums, int64_t *own, ptrdiff_t apart)
{
    if (own && second)
        pboost_add_lanes(lane, held, row, codes, second, m, lanes, sums, own, apart);
    else if (second)
        pboost_add_lanes(lane, held, row, codes, second, m, lanes, sums, NULL, apart);
    else
        pboost_add_lanes(lane, held, row, codes, NULL, m, lanes, sums, own, apart);
}

#define PBOOST_ADD_UP_ARGS const pboost_label_rows *of, ptrdiff_t first, ptrdiff_t last, pboost_held_rows *held

/* Compute the sums of features first..last-1. */
PBOOST_INLINE void pboost_add_up_lanes(PBOOST_ADD_UP_ARGS, const int lanes)
{
    const ptrdiff_t size = 2 * of->blocks * of->bins * lanes;
    memset(of->sums + first * size, 0, sizeof(int64_t) * (size_t)((last - first) * size));
    for (ptrdiff_t q = 0; q < of->blocks; q += PBOOST_AT_ONCE) {
        const ptrdiff_t blocks = of->blocks - q < PBOOST_AT_ONCE ? of->blocks - q : PBOOST_AT_ONCE;
        ptrdiff_t most = PBOOST_HELD / (blocks * lanes);
        most = most < PBOOST_MOST_HELD ? most : PBOOST_MOST_HELD;
        for (ptrdiff_t start = 0; start < of->n; start += most) {
            const ptrdiff_t m = of->n - start < most ? of->n - start : most;
            pboost_hold(of, start, m, q, blocks, lanes, held);
            const int follow = held->row[m - 1] - held->row[0] == m - 1; /* true if rows are contiguous */
            for (ptrdiff_t f = first; f < last; f += 2) {
                const uint8_t *codes = of->codes + f * of->n_codes + (follow ? held->row[0] : 0);
                const uint8_t *second = f + 1 < last ? codes + of->n_codes : NULL;
                int64_t *sums = of->sums + f * size;
                for (ptrdiff_t r = 0; r < blocks; r++) {
                    const int64_t *lane = held->lane + r * m * lanes;
                    int64_t *here = sums + (q + r) * of->bins * lanes, *own = q + r ? NULL : sums;
                    if (follow)
                        pboost_add_columns(lane, held, NULL, codes, second, m, lanes, here, own, size);
                    else
                        pboost_add_columns(lane, held, held->row, codes, second, m, lanes, here, own, size);
                }
            }
        }
    }
}

#define PBOOST_ADD_SLOTS_ARGS const pboost_label_rows *of, const uint8_t *slots, pboost_held_rows *held

/* Add rows with the bins `slots` to the sums of one feature. */
PBOOST_INLINE void pboost_add_slots_lanes(PBOOST_ADD_SLOTS_ARGS, const int lanes)
{
    for (ptrdiff_t q = 0; q < of->blocks; q++)
        for (ptrdiff_t start = 0; start < of->n; start += PBOOST_MOST_HELD) {
            const ptrdiff_t m = of->n - start < PBOOST_MOST_HELD ? of->n - start : PBOOST_MOST_HELD;
            int64_t *here = of->sums + q * of->bins * lanes;
            pboost_hold(of, start, m, q, 1, lanes, held);
            pboost_add_columns(held->lane, held, NULL, slots + start, NULL, m, lanes, here, q ? NULL : of->sums, 0);
        }
}

/* A node, and the numbers needed to score its splits, in units of the weights at the root. `both` is the
   square root of the product of the two factors of a class; 0 in unused lanes. */
typedef struct {
    ptrdiff_t k, blocks, lanes, bins;
    const int64_t *whole;                    /* shape [2][blocks * lanes] */
    const double *for_it, *against, *both;   /* shape (blocks * lanes,) */
    double min_mass;
    int64_t min_count;
} pboost_label_node;

/* Compute the scores of the splits after each of `n` bins; INOUT left [2][blocks * lanes]: the sums of
   the left child. */
#define PBOOST_SCORE_ARGS                                                                          \
    const pboost_label_node *at, const int64_t *sums, ptrdiff_t n, int64_t *left, double *score

/* Sum the terms of a block of classes, class by class, for up to PBOOST_BINS_ABREAST splits. */
PBOOST_INLINE void pboost_score_block(
    const pboost_label_node *at, const int64_t *sums, ptrdiff_t q, ptrdiff_t start, int n, const int lanes,
    int64_t *left, double *score, double *below, double *above, int64_t *count)
{
    const ptrdiff_t width = at->blocks * lanes;
    double term[PBOOST_BINS_ABREAST][PBOOST_WIDE], less[PBOOST_BINS_ABREAST][PBOOST_WIDE];
    double more[PBOOST_BINS_ABREAST][PBOOST_WIDE];
    const int64_t *whole = at->whole + q * lanes, *cells = sums + (q * at->bins + start) * lanes;
    const int64_t *own = sums + (width + q * lanes) * at->bins + start;
    int64_t *lt = left + q * lanes, *lp = lt + width, more_own[PBOOST_BINS_ABREAST][PBOOST_WIDE];
    const double *for_it = at->for_it + q * lanes, *against = at->against + q * lanes, *both = at->both + q * lanes;
    const int is_last = at->k / lanes == q, some = (int)(is_last ? at->k % lanes : lanes);
    for (int l = 0; l < lanes; l++)
        for (int b = 0; b < n; b++) more_own[b][l] = own[l * at->bins + b];
    for (int b = 0; b < n; b++) {
        int64_t p[PBOOST_WIDE], t[PBOOST_WIDE];
        double yes[PBOOST_WIDE], no[PBOOST_WIDE], far_yes[PBOOST_WIDE], far_no[PBOOST_WIDE];
        for (int l = 0; l < lanes; l++) t[l] = lt[l] + cells[b * lanes + l];
        for (int l = 0; l < lanes; l++) p[l] = lp[l] + more_own[b][l];
        for (int l = 0; l < lanes; l++) lt[l] = t[l];
        for (int l = 0; l < lanes; l++) lp[l] = p[l];
        for (int l = 0; l < lanes; l++) yes[l] = (double)p[l];
        for (int l = 0; l < lanes; l++) no[l] = (double)(t[l] - p[l]);
        for (int l = 0; l < lanes; l++) far_yes[l] = (double)(whole[width + l] - p[l]);
        for (int l = 0; l < lanes; l++) far_no[l] = (double)((whole[l] - t[l]) - (whole[width + l] - p[l]));
        for (int l = 0; l < lanes; l++) term[b][l] = both[l] * (sqrt(yes[l] * no[l]) + sqrt(far_yes[l] * far_no[l]));
        if (at->min_mass > 0.0)
            for (int l = 0; l < lanes; l++) {
                less[b][l] = for_it[l] * yes[l] + against[l] * no[l];
                more[b][l] = for_it[l] * far_yes[l] + against[l] * far_no[l];
            }
        if (is_last) count[b] = lt[some];
    }
    for (int l = 0; l < some; l++)
        for (int b = 0; b < n; b++) score[b] += term[b][l];
    if (at->min_mass > 0.0)
        for (int l = 0; l < some; l++)
            for (int b = 0; b < n; b++) below[b] += less[b][l], above[b] += more[b][l];
}

PBOOST_INLINE void pboost_score_lanes(PBOOST_SCORE_ARGS, const int lanes)
{
    const int64_t all = at->whole[at->k];
    for (ptrdiff_t start = 0, m; start < n; start += m) { /* score the remaining bins one at a time */
        m = n - start < PBOOST_BINS_ABREAST ? 1 : PBOOST_BINS_ABREAST;
        double here[PBOOST_BINS_ABREAST] = {0}, below[PBOOST_BINS_ABREAST] = {0}, above[PBOOST_BINS_ABREAST] = {0};
        int64_t count[PBOOST_BINS_ABREAST] = {0};
        for (ptrdiff_t q = 0; q < at->blocks; q++)
            if (m == PBOOST_BINS_ABREAST)
                pboost_score_block(
                    at, sums, q, start, PBOOST_BINS_ABREAST, lanes, left, here, below, above, count);
            else
                pboost_score_block(at, sums, q, start, 1, lanes, left, here, below, above, count);
        for (ptrdiff_t b = 0; b < m; b++) {
            const int is_legal = count[b] >= at->min_count && all - count[b] >= at->min_count;
            const int is_heavy = at->min_mass <= 0.0 || (below[b] >= at->min_mass && above[b] >= at->min_mass);
            score[start + b] = is_legal && is_heavy ? here[b] : INFINITY;
        }
    }
}

#define PBOOST_BOUND_ARGS const pboost_label_node *at, const int64_t *sums, ptrdiff_t n, int64_t *left, double *bound

/* Compute a lower bound on the scores of all splits inside each bin. The term of a class is a concave
   function of the two sums of the left child. These sums lie between their values at the ends of the
   bin, so the term is smallest at a corner. `left` is advanced past the bins. */
PBOOST_INLINE void pboost_bound_lanes(PBOOST_BOUND_ARGS, const int lanes)
{
    const ptrdiff_t width = at->blocks * lanes;
    for (ptrdiff_t b = 0; b < n; b++) bound[b] = 0.0;
    for (ptrdiff_t q = 0; q < at->blocks; q++) {
        const int64_t *whole = at->whole + q * lanes, *cells = sums + q * at->bins * lanes;
        const int64_t *own = sums + (width + q * lanes) * at->bins;
        int64_t *lt = left + q * lanes, *lp = lt + width;
        const double *both = at->both + q * lanes;
        double p[2][PBOOST_WIDE], n_[2][PBOOST_WIDE], rp[2][PBOOST_WIDE], rn[2][PBOOST_WIDE], least[PBOOST_WIDE];
        for (ptrdiff_t b = 0; b < n; b++) {
            for (int end = 0; end < 2; end++) {
                for (int l = 0; l < lanes; l++) p[end][l] = (double)lp[l];
                for (int l = 0; l < lanes; l++) n_[end][l] = (double)(lt[l] - lp[l]);
                for (int l = 0; l < lanes; l++) rp[end][l] = (double)(whole[width + l] - lp[l]);
                for (int l = 0; l < lanes; l++)
                    rn[end][l] = (double)((whole[l] - lt[l]) - (whole[width + l] - lp[l]));
                for (int l = 0; !end && l < lanes; l++) lt[l] += cells[b * lanes + l];
                for (int l = 0; !end && l < lanes; l++) lp[l] += own[l * at->bins + b];
            }
            for (int l = 0; l < lanes; l++) least[l] = INFINITY;
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++)
                    for (int l = 0; l < lanes; l++) {
                        const double z = sqrt(p[i][l] * n_[j][l]) + sqrt(rp[i][l] * rn[j][l]);
                        least[l] = z < least[l] ? z : least[l];
                    }
            for (int l = 0; l < lanes; l++) bound[b] += both[l] * least[l];
        }
    }
    for (ptrdiff_t b = 0; b < n; b++) bound[b] *= PBOOST_LOWERED;
}

/* Multiply the weights (n, width) of listed rows by one factor for their own class and another for all
   other classes, unless `for_it` is NULL. In fixed point, add the new weights to all (width,), the
   weights for the row's class to own (width,), and `start` (n,) to by_class (width,). WORK factor
   (width,), initially `against`. */
#define PBOOST_PASS_ARGS                                                                           \
    const int32_t *rows, ptrdiff_t n, const int32_t *label, const double *for_it, double *factor,  \
    double least, double scale, double *weight, ptrdiff_t width, const int64_t *start, int64_t *all, \
    int64_t *own, int64_t *by_class

/* Process consecutive rows of the same class and return the end of these rows. */
PBOOST_INLINE ptrdiff_t pboost_pass_run(
    const int32_t *rows, ptrdiff_t i, ptrdiff_t n, const int32_t *label, const int changes, const double *factor,
    double least, double scale, double *weight, ptrdiff_t width, const int64_t *start, int64_t *all,
    int64_t *own, int64_t *by_class, const int lanes)
{
    const int32_t mine = label[rows[i]];
    int64_t of_label = 0, begun = 0;
    for (; i < n && label[rows[i]] == mine; i++) {
        double *here = weight + (ptrdiff_t)rows[i] * width;
        if (i + PBOOST_FAR_ROWS < n) PBOOST_ASK(weight + rows[i + PBOOST_FAR_ROWS] * width);
        const double product = changes ? here[mine] * factor[mine] : here[mine];
        of_label += pboost_fixed((!changes || product > least ? product : least) * scale);
        begun += start[rows[i]];
        for (ptrdiff_t q = 0; q < width; q += lanes) {
            double changed[PBOOST_WIDE];
            int64_t sum[PBOOST_WIDE];
            for (int l = 0; l < lanes; l++) changed[l] = changes ? here[q + l] * factor[q + l] : here[q + l];
            if (changes)
                for (int l = 0; l < lanes; l++) changed[l] = changed[l] > least ? changed[l] : least;
            for (int l = 0; l < lanes; l++) sum[l] = all[q + l] + pboost_fixed(changed[l] * scale);
            for (int l = 0; l < lanes; l++) all[q + l] = sum[l];
            if (changes)
                for (int l = 0; l < lanes; l++) here[q + l] = changed[l];
        }
    }
    own[mine] += of_label;
    by_class[mine] += begun;
    return i;
}

PBOOST_INLINE void pboost_pass_lanes(PBOOST_PASS_ARGS, const int lanes)
{
    for (ptrdiff_t i = 0; i < n;) {
        const int32_t mine = label[rows[i]];
        const double other = for_it ? factor[mine] : 0.0;
        if (for_it) {
            factor[mine] = for_it[mine];
            i = pboost_pass_run(
                rows, i, n, label, 1, factor, least, scale, weight, width, start, all, own, by_class, lanes);
            factor[mine] = other;
        } else
            i = pboost_pass_run(
                rows, i, n, label, 0, factor, least, scale, weight, width, start, all, own, by_class, lanes);
    }
}

#define PBOOST_BY_LANES(pass, lanes_, ...)                                                         \
    if ((lanes_) == PBOOST_WIDE)                                                                   \
        pass(__VA_ARGS__, PBOOST_WIDE);                                                            \
    else                                                                                           \
        pass(__VA_ARGS__, PBOOST_NARROW);

typedef struct {
    void (*add_up)(PBOOST_ADD_UP_ARGS);
    void (*add_slots)(PBOOST_ADD_SLOTS_ARGS);
    void (*score)(PBOOST_SCORE_ARGS);
    void (*bound)(PBOOST_BOUND_ARGS);
    void (*pass)(PBOOST_PASS_ARGS);
} pboost_label_passes;

#define PBOOST_LABEL_COPY(TARGET, name)                                                            \
    TARGET static void pboost_add_up_##name(PBOOST_ADD_UP_ARGS)                                   \
    {                                                                                              \
        PBOOST_BY_LANES(pboost_add_up_lanes, of->lanes, of, first, last, held)                     \
    }                                                                                              \
    TARGET static void pboost_add_slots_##name(PBOOST_ADD_SLOTS_ARGS)                             \
    {                                                                                              \
        PBOOST_BY_LANES(pboost_add_slots_lanes, of->lanes, of, slots, held)                        \
    }                                                                                              \
    TARGET static void pboost_bound_##name(PBOOST_BOUND_ARGS)                                     \
    {                                                                                              \
        PBOOST_BY_LANES(pboost_bound_lanes, at->lanes, at, sums, n, left, bound)                   \
    }                                                                                              \
    TARGET static void pboost_score_##name(PBOOST_SCORE_ARGS)                                     \
    {                                                                                              \
        PBOOST_BY_LANES(pboost_score_lanes, at->lanes, at, sums, n, left, score)                   \
    }                                                                                              \
    TARGET static void pboost_pass_##name(PBOOST_PASS_ARGS)                                       \
    {                                                                                              \
        PBOOST_BY_LANES(                                                                           \
            pboost_pass_lanes, width == PBOOST_NARROW ? PBOOST_NARROW : PBOOST_WIDE, rows, n, label, for_it, \
            factor, least, scale, weight, width, start, all, own, by_class)                       \
    }

#define PBOOST_LABEL_PASSES(name)                                                                  \
    {pboost_add_up_##name, pboost_add_slots_##name, pboost_score_##name, pboost_bound_##name, pboost_pass_##name}

PBOOST_COPIES(PBOOST_LABEL_COPY)
PBOOST_CHOOSE(pboost_choose_label_passes, pboost_label_passes, PBOOST_LABEL_PASSES)
#endif
