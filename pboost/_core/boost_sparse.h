/* Histograms and splits of a node of a tree that is boosted on sparse features.
 *
 * The bins of a feature on each side of its zeros are numbered outward, from 0, and form a list: the rows with
 * positive values, or the rows with negative values, and the bin of each. Zeros are not stored. A split separates
 * the rows in bins >= k of a list, its outer rows, from all other rows of the node. The sums of the other rows
 * are the sums of the node minus the sums of the outer rows.
 *
 * Each list is a lane. Eight lanes form a group, and a cell is a bin of a lane. The histogram of a node contains
 * packed sums (see boost_simd.h) by cell, [group][bin][lane]. The first groups are heavy: they have cells with so
 * many rows that packed sums could overflow. Their sums are float64 numbers, first of the gradients, then of the
 * Hessians, behind the packed sums of all cells. With wide sums all groups are heavy, and there are no packed
 * sums. Groups are ordered by their numbers of bins, and groups of one bin by their numbers of rows.
 *
 * All sums are exact, so they do not depend on the order of rows. Ties go to the lowest feature, then to the
 * lowest threshold.
 */
#ifndef PBOOST_BOOST_SPARSE_H
#define PBOOST_BOOST_SPARSE_H
#include "boost_histogram.h"
#include <math.h>
#include <string.h>

#define PBOOST_SPARSE_LINES 5 /* cache lines of a row's cells that are prefetched */

/* The cells of each row, and the lanes. `edge` of a lane is the bin of its feature left of the split at its bin 0;
   further splits are further up if the lane `is_above` zero, else further down. */
typedef struct {
    const int64_t *row_start;
    const uint32_t *cells;
    const int64_t *place;
    const int32_t *bins, *feature, *edge;
    const uint8_t *is_above;
    ptrdiff_t n_groups, n_heavy, n_words, heavy_cells;
} pboost_sparse;

/* A node, and its best split so far: the score numerator / divisor, the feature, the bin `low` left of the
   threshold, the lane and the first bin of the outer rows, and their sums. From the group `last` on, no cell of
   the node is large enough for a child. */
typedef struct {
    double gradient, curvature, least, l2, numerator, divisor, outer_gradient, outer_curvature;
    ptrdiff_t lane, last;
    int32_t feature, low, bin;
} pboost_outer;

/* ------------------------------------------------------------------------------------------ */
/* Histograms. */

PBOOST_INLINE void pboost_ask_cells(const pboost_sparse *table, const int32_t *rows)
{
    const uint32_t *cells = table->cells + table->row_start[rows[6]];
    for (int k = 0; k < PBOOST_SPARSE_LINES; k++) PBOOST_ASK(cells + 16 * k);
    PBOOST_ASK(table->row_start + rows[14]);
}

/* Move the packed sums of the heavy cells to the float64 sums. */
static inline void pboost_flush_cells(const pboost_sparse *table, double *slot)
{
    int64_t *words = (int64_t *)slot;
    double *gradient = slot + table->n_words, *curvature = gradient + table->heavy_cells;
    for (ptrdiff_t i = 0; i < table->heavy_cells; i++) {
        gradient[i] += PBOOST_GRADIENT_IN(words[i]);
        curvature[i] += PBOOST_CURVATURE_IN(words[i]);
        words[i] = 0;
    }
}

/* Compute the histogram of n rows with packed words, up to the group `last`. */
static inline void pboost_count_cells(
    const pboost_sparse *table, const int32_t *rows, const int64_t *packed, ptrdiff_t n, ptrdiff_t block,
    ptrdiff_t last, double *slot)
{
    int64_t *words = (int64_t *)slot;
    memset(words, 0, sizeof(int64_t) * (size_t)table->place[last]);
    memset(slot + table->n_words, 0, 2 * sizeof(double) * (size_t)table->heavy_cells);
    for (ptrdiff_t start = 0; start < n; start += block) {
        const ptrdiff_t stop = n - start < block ? n : start + block;
        for (ptrdiff_t i = start; i < stop; i++) {
            const int64_t word = packed[i];
            const uint32_t *cell = table->cells + table->row_start[rows[i]];
            const uint32_t *end = table->cells + table->row_start[rows[i] + 1];
            pboost_ask_cells(table, rows + i);
            if (word == 0) continue; /* not drawn */
            for (; cell + 4 <= end; cell += 4) {
                words[cell[0]] += word, words[cell[1]] += word;
                words[cell[2]] += word, words[cell[3]] += word;
            }
            for (; cell < end; cell++) words[*cell] += word;
        }
        if (table->heavy_cells) pboost_flush_cells(table, slot);
    }
}

/* Compute the histogram of n rows with wide sums. `packed` and `low` are indexed by row, and the first words are
   in units of `unit`. */
static inline void pboost_count_wide_cells(
    const pboost_sparse *table, const int32_t *rows, const int64_t *packed, const int64_t *low, double unit,
    ptrdiff_t n, double *slot)
{
    double *gradient = slot + table->n_words, *curvature = gradient + table->heavy_cells;
    memset(gradient, 0, 2 * sizeof(double) * (size_t)table->heavy_cells);
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t row = rows[i];
        const double g = PBOOST_GRADIENT_IN(packed[row]) * unit + PBOOST_GRADIENT_IN(low[row]);
        const double h = PBOOST_CURVATURE_IN(packed[row]) * unit + PBOOST_CURVATURE_IN(low[row]);
        if (h == 0.0) continue; /* not drawn */
        for (int64_t k = table->row_start[row]; k < table->row_start[row + 1]; k++) {
            gradient[table->cells[k]] += g;
            curvature[table->cells[k]] += h;
        }
    }
}

/* ------------------------------------------------------------------------------------------ */
/* Splits. */

/* Keep a split if it is better than the best so far. */
static PBOOST_APART void pboost_keep_outer(
    const pboost_sparse *table, pboost_outer *best, ptrdiff_t lane, int bin, double g, double h, double q, double d)
{
    const double one = q * best->divisor, other = best->numerator * d;
    const int32_t feature = table->feature[lane];
    const int32_t low = table->edge[lane] + (table->is_above[lane] ? bin : -bin);
    if (one < other) return;
    if (one == other && (feature > best->feature || (feature == best->feature && low >= best->low))) return;
    best->numerator = q, best->divisor = d, best->lane = lane, best->bin = bin;
    best->feature = feature, best->low = low, best->outer_gradient = g, best->outer_curvature = h;
}

/* Try the split with these sums of the outer rows. */
static inline void pboost_try_outer(
    const pboost_sparse *table, pboost_outer *best, ptrdiff_t lane, int bin, double g, double h)
{
    const double other = best->gradient - g, rest = best->curvature - h;
    if (!(h >= best->least && rest >= best->least)) return;
    const double dl = h + best->l2, dr = rest + best->l2;
    pboost_keep_outer(table, best, lane, bin, g, h, g * g * dr + other * other * dl, dl * dr);
}

#if defined(__GNUC__) || defined(__clang__)
typedef double pboost_sums __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t pboost_words __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t pboost_word_bits __attribute__((vector_size(32), aligned(8), may_alias));

#define PBOOST_ANY(m) ((((m)[0] | (m)[1]) | ((m)[2] | (m)[3])) != 0)
#define PBOOST_ALL(x) ((pboost_sums){(x), (x), (x), (x)})
#define PBOOST_ALL_BITS(x) ((pboost_word_bits){(x), (x), (x), (x)})

/* The sums of four packed words. */
PBOOST_INLINE void pboost_open_words(const pboost_words *words, pboost_sums *g, pboost_sums *h)
{
    const pboost_word_bits high = PBOOST_ALL_BITS(0x4330000080000000u), low = PBOOST_ALL_BITS(0x4330000000000000u);
    const pboost_word_bits of_g = ((pboost_word_bits)*words >> 32) ^ high;
    const pboost_word_bits of_h = ((pboost_word_bits)*words & 0xFFFFFFFFu) | low;
    *g = (pboost_sums)of_g - (pboost_sums)high;
    *h = (pboost_sums)of_h - (pboost_sums)low;
}

/* Try the splits of four lanes with these sums of the outer rows. */
PBOOST_INLINE void pboost_try_four(
    const pboost_sparse *table, pboost_outer *best, ptrdiff_t lane, int bin, const pboost_sums *g,
    const pboost_sums *h)
{
    const pboost_sums least = PBOOST_ALL(best->least), rest = best->curvature - *h;
    const pboost_words is_large = (*h >= least) & (rest >= least);
    if (!PBOOST_ANY(is_large)) return;
    const pboost_sums other = best->gradient - *g, dl = *h + best->l2, dr = rest + best->l2;
    const pboost_sums q = *g * *g * dr + other * other * dl, d = dl * dr;
    const pboost_words is_better = is_large & (q * best->divisor >= best->numerator * d);
    if (!PBOOST_ANY(is_better)) return;
    for (int k = 0; k < 4; k++)
        if (is_better[k]) pboost_keep_outer(table, best, lane + k, bin, (*g)[k], (*h)[k], q[k], d[k]);
}

/* Scan four lanes of a group with float64 sums. With `part`, its sums are first subtracted. */
PBOOST_INLINE void pboost_scan_heavy_four(
    const pboost_sparse *table, double *whole, const double *part, ptrdiff_t group, int half,
    pboost_outer *of_whole, pboost_outer *of_part)
{
    pboost_sums g = PBOOST_ALL(0.0), h = g, gs = g, hs = g;
    const ptrdiff_t lane = PBOOST_LANES * group + half;
    for (int b = table->bins[group] - 1; b >= 0; b--) {
        const ptrdiff_t at = table->n_words + table->place[group] + PBOOST_LANES * (ptrdiff_t)b + half;
        pboost_sums *gradient = (pboost_sums *)(whole + at);
        pboost_sums *curvature = (pboost_sums *)(whole + at + table->heavy_cells);
        if (part) {
            const pboost_sums gp = *(const pboost_sums *)(part + at);
            const pboost_sums hp = *(const pboost_sums *)(part + at + table->heavy_cells);
            *gradient -= gp, *curvature -= hp;
            gs += gp, hs += hp;
            pboost_try_four(table, of_part, lane, b, &gs, &hs);
        }
        g += *gradient, h += *curvature;
        pboost_try_four(table, of_whole, lane, b, &g, &h);
    }
}

/* Scan four lanes of a group with packed sums. With `part`, its sums are first subtracted. The sums of several
   cells may be too large for a word. */
PBOOST_INLINE void pboost_scan_packed_four(
    const pboost_sparse *table, double *whole, const double *part, ptrdiff_t group, int half,
    pboost_outer *of_whole, pboost_outer *of_part)
{
    pboost_sums g = PBOOST_ALL(0.0), h = g, gs = g, hs = g, more_g, more_h;
    const ptrdiff_t lane = PBOOST_LANES * group + half;
    for (int b = table->bins[group] - 1; b >= 0; b--) {
        const ptrdiff_t at = table->place[group] + PBOOST_LANES * (ptrdiff_t)b + half;
        pboost_words *words = (pboost_words *)(whole + at);
        if (part) {
            const pboost_words small = *(const pboost_words *)(part + at);
            *words -= small;
            pboost_open_words(&small, &more_g, &more_h);
            gs += more_g, hs += more_h;
            pboost_try_four(table, of_part, lane, b, &gs, &hs);
        }
        pboost_open_words(words, &more_g, &more_h);
        g += more_g, h += more_h;
        pboost_try_four(table, of_whole, lane, b, &g, &h);
    }
}

/* Scan the groups of one bin, from `group` on, of which most are too small in most nodes. */
PBOOST_INLINE void pboost_scan_ones(
    const pboost_sparse *table, double *whole, const double *part, ptrdiff_t group, pboost_outer *of_whole,
    pboost_outer *of_part)
{
    const double most = 4294967295.0, least = ceil(of_whole->least < most ? of_whole->least : most);
    const pboost_words limit = {(int64_t)least, (int64_t)least, (int64_t)least, (int64_t)least};
    const ptrdiff_t stop = of_whole->last;
    ptrdiff_t last_whole = group, last_part = group;
    for (; group < stop; group++) {
        const ptrdiff_t at = table->place[group];
        for (int half = 0; half < PBOOST_LANES; half += 4) {
            pboost_words *words = (pboost_words *)(whole + at + half), small = {0, 0, 0, 0};
            pboost_sums g, h;
            if (part) small = *(const pboost_words *)(part + at + half);
            *words -= small;
            const pboost_words one = (*words & 0xFFFFFFFF) >= limit, other = (small & 0xFFFFFFFF) >= limit;
            const pboost_words any = one | other;
            if (!PBOOST_ANY(any)) continue;
            if (PBOOST_ANY(one)) {
                last_whole = group + 1;
                pboost_open_words(words, &g, &h);
                pboost_try_four(table, of_whole, PBOOST_LANES * group + half, 0, &g, &h);
            }
            if (PBOOST_ANY(other)) {
                last_part = group + 1;
                pboost_open_words(&small, &g, &h);
                pboost_try_four(table, of_part, PBOOST_LANES * group + half, 0, &g, &h);
            }
        }
    }
    of_whole->last = last_whole;
    if (part) of_part->last = last_part;
}

PBOOST_INLINE void pboost_scan_cells_body(
    const pboost_sparse *table, double *whole, const double *part, pboost_outer *of_whole,
    pboost_outer *of_part)
{
    ptrdiff_t group = 0;
    for (; group < table->n_heavy; group++)
        for (int half = 0; half < PBOOST_LANES; half += 4)
            pboost_scan_heavy_four(table, whole, part, group, half, of_whole, of_part);
    for (; group < table->n_groups && table->bins[group] > 1; group++)
        for (int half = 0; half < PBOOST_LANES; half += 4)
            pboost_scan_packed_four(table, whole, part, group, half, of_whole, of_part);
    pboost_scan_ones(table, whole, part, group, of_whole, of_part);
}
#else
/* Scan a lane. With `part`, its sums are first subtracted. */
static void pboost_scan_cell_lane(
    const pboost_sparse *table, double *whole, const double *part, ptrdiff_t group, int k, pboost_outer *of_whole,
    pboost_outer *of_part)
{
    const int is_heavy = group < table->n_heavy;
    double g = 0.0, h = 0.0, gs = 0.0, hs = 0.0;
    for (int b = table->bins[group] - 1; b >= 0; b--) {
        ptrdiff_t at = table->place[group] + PBOOST_LANES * (ptrdiff_t)b + k;
        if (is_heavy) {
            at += table->n_words;
            if (part) {
                whole[at] -= part[at], whole[at + table->heavy_cells] -= part[at + table->heavy_cells];
                gs += part[at], hs += part[at + table->heavy_cells];
            }
            g += whole[at], h += whole[at + table->heavy_cells];
        } else {
            int64_t *word = (int64_t *)whole + at;
            if (part) {
                const int64_t small = ((const int64_t *)part)[at];
                *word -= small;
                gs += PBOOST_GRADIENT_IN(small), hs += PBOOST_CURVATURE_IN(small);
            }
            g += PBOOST_GRADIENT_IN(*word), h += PBOOST_CURVATURE_IN(*word);
        }
        pboost_try_outer(table, of_whole, PBOOST_LANES * group + k, b, g, h);
        if (part) pboost_try_outer(table, of_part, PBOOST_LANES * group + k, b, gs, hs);
    }
}

PBOOST_INLINE void pboost_scan_cells_body(
    const pboost_sparse *table, double *whole, const double *part, pboost_outer *of_whole,
    pboost_outer *of_part)
{
    for (ptrdiff_t group = 0; group < table->n_groups; group++)
        for (int k = 0; k < PBOOST_LANES; k++)
            pboost_scan_cell_lane(table, whole, part, group, k, of_whole, of_part);
}
#endif

/* Subtract the histogram `part` of a child from the histogram `whole` of its parent, which becomes the histogram of
   the other child, and find the best splits of both. Without `part`, find the best split of `whole`. */
#define PBOOST_SCAN_CELLS_ARGS                                                                     \
    const pboost_sparse *table, double *whole, const double *part, pboost_outer *of_whole,         \
    pboost_outer *of_part
#define PBOOST_SCAN_CELLS_COPY(TARGET, name)                                                       \
    TARGET static void pboost_scan_cells_##name(PBOOST_SCAN_CELLS_ARGS)                            \
    {                                                                                              \
        if (part)                                                                                  \
            pboost_scan_cells_body(table, whole, part, of_whole, of_part);                         \
        else                                                                                       \
            pboost_scan_cells_body(table, whole, NULL, of_whole, NULL);                            \
    }
PBOOST_COPIES(PBOOST_SCAN_CELLS_COPY)
typedef void (*pboost_scan_cells)(PBOOST_SCAN_CELLS_ARGS);
#define PBOOST_SCAN_CELLS_OF(name) pboost_scan_cells_##name
PBOOST_CHOOSE(pboost_choose_scan_cells, pboost_scan_cells, PBOOST_SCAN_CELLS_OF)
#endif
