/* Interventional Shapley values from tables. The pattern of a row at a node has a bit for each different feature on the
   path: whether the row meets the conditions on it. The patterns of the background rows at a leaf are counted.
   From the counts, a table is made for each feature: its share for each pattern of a row. For a pair of leaves,
   the index in the table is the pattern at the first leaf or, if the feature of the split has been compared
   above, the pattern above with an additional bit for the split. */
#ifndef PBOOST_SHAPLEY_PATTERNS_H
#define PBOOST_SHAPLEY_PATTERNS_H
#include "shapley_ops.h"

typedef struct {
    const pboost_shapley_op *op;
    const uint64_t *sets;
    double *table; /* op->split: counts, or op->value: tables (outputs, n_unique, 2**bits) */
    int32_t n_ops, n_outputs;
} pboost_pattern_tree;

typedef struct {
    int64_t *to;       /* as in pboost_shapley_work */
    int32_t *pattern;  /* per level, and one for the index */
    int32_t *features; /* the feature of each bit */
} pboost_pattern_work;

/* The rows of `out` have `stride` numbers per feature, and `size` per output. If `weight` is not NULL, count
   the patterns of weighted rows instead. */
#define PBOOST_PATTERN_ARGS                                                                        \
    const pboost_pattern_tree *tree, const pboost_pattern_work *work, const double *x,             \
    ptrdiff_t stride, const double *weight, double *out, ptrdiff_t size

PBOOST_INLINE void pboost_use_pattern(
    const pboost_pattern_tree *tree, const pboost_pattern_work *work, const pboost_shapley_op *op,
    const int32_t *restrict index, int n_bits, ptrdiff_t stride, const double *restrict weight,
    double *restrict out, ptrdiff_t size)
{
    if (weight) {
        double *count = tree->table + op->split;
        for (int r = 0; r < PBOOST_LANES; r++) count[index[r]] += weight[r];
        return;
    }
    const double *restrict table = tree->table + op->value;
    for (int k = 0; k < tree->n_outputs; k++)
        for (int j = 0; j < op->n_unique; j++, table += (ptrdiff_t)1 << n_bits) {
            double *restrict to = out + k * size + work->features[j] * stride;
            PBOOST_LANES_LOOP
            for (int r = 0; r < PBOOST_LANES; r++) to[r] += table[index[r]];
        }
}

PBOOST_INLINE void pboost_patterns_of_lanes(PBOOST_PATTERN_ARGS)
{
    enum { lanes = PBOOST_LANES };
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++) work->pattern[r] = 0;
    for (int i = 0; i < tree->n_ops; i++) {
        const pboost_shapley_op *op = tree->op + i;
        const int is_new = op->kind < PBOOST_AGAIN, kind = is_new ? op->kind : op->kind - PBOOST_AGAIN;
        int64_t *restrict to = work->to + 2 * (ptrdiff_t)op->level * lanes;
        const int32_t *restrict pattern = work->pattern + (ptrdiff_t)op->level * lanes;
        int32_t *restrict next = work->pattern + (ptrdiff_t)(op->level + 1) * lanes;
        const int32_t bit = (int32_t)1 << op->bit, extra = is_new ? bit : (int32_t)1 << op->n_unique;
        if (kind == PBOOST_CLOSE) continue;
        if (kind == PBOOST_LEAF) {
            pboost_use_pattern(tree, work, op, pattern, op->n_unique, stride, weight, out, size);
            continue;
        }
        if (is_new) work->features[op->bit] = op->feature;
        if (kind != PBOOST_TURN)
            pboost_shapley_sides(op, tree->sets, x + op->feature * stride, NULL, to, 1, lanes);
        if (kind == PBOOST_PAIR) {
            PBOOST_LANES_LOOP
            for (int r = 0; r < lanes; r++) next[r] = pattern[r] | ((int32_t)to[r] & extra);
            pboost_use_pattern(tree, work, op, next, op->n_unique + !is_new, stride, weight, out, size);
            continue;
        }
        if (kind == PBOOST_TURN) to += lanes;
        PBOOST_LANES_LOOP
        for (int r = 0; r < lanes; r++) {
            const int32_t side = (int32_t)to[r];
            next[r] = is_new ? pattern[r] | (side & bit) : pattern[r] & (side | ~bit);
        }
    }
}

typedef void (*pboost_pattern_kernel)(PBOOST_PATTERN_ARGS);
#define PBOOST_PATTERNS(target, name)                                                              \
    target static void pboost_patterns_##name(PBOOST_PATTERN_ARGS)                                 \
    {                                                                                              \
        pboost_patterns_of_lanes(tree, work, x, stride, weight, out, size);                        \
    }
PBOOST_COPIES(PBOOST_PATTERNS)
#define PBOOST_PATTERNS_OF(name) pboost_patterns_##name
PBOOST_CHOOSE(pboost_choose_patterns, pboost_pattern_kernel, PBOOST_PATTERNS_OF)
#endif
