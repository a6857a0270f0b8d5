/* Shapley values of trees, for several rows at a time.
 *
 * A leaf adds v * prod_i (known_i ? o_i : z_i) to the value of a row if only some features are known. The
 * product is over the features on its path; o_i is 1 if the row satisfies all conditions on feature i, and z_i
 * is the share of the weight that does. The Shapley value of feature j is the integral of
 * v * (o_j - z_j) * prod_{i != j} f_i(x) over x from 0 to 1, where f_i(x) = o_i * x + z_i * (1 - x). This is a
 * polynomial, so Gauss-Legendre quadrature with `n_points` points is exact for up to 2 * n_points features.
 *
 * The program of a tree visits its nodes in preorder. PBOOST_OPEN multiplies the product P of a path by the
 * factor of the first child, PBOOST_TURN by the factor of the second child. PBOOST_CLOSE adds the shares of
 * the split to its feature and returns the sum of v * P over the leaves below. PBOOST_PAIR does all this for a
 * split with two leaves. If a feature has been compared before on the path, its old factor is replaced.
 * Values of different rows are never added, so results do not depend on the number of rows or lanes.
 *
 * The interaction of features i and j is half of the integral with both factors f_i and f_j replaced by
 * o_i - z_i and o_j - z_j. It is computed from the shares of a split and of each split above.
 */
#ifndef PBOOST_SHAPLEY_H
#define PBOOST_SHAPLEY_H
#include "shapley_ops.h"

/* Constants of a split, in order: per point, the factors of the two children if the row has the feature's
   conditions above and goes to the child, or not; the shares of these cases; then, without points, the factors
   if the conditions above are not met. */
enum { PBOOST_TO_FIRST, PBOOST_NOT_FIRST, PBOOST_TO_SECOND, PBOOST_NOT_SECOND, PBOOST_GAIN_FIRST,
       PBOOST_GAIN_SECOND, PBOOST_LOSS, PBOOST_N_FACTORS };
/* Constants of a pair of leaves: per point, the returned sum if the row goes to the first or second leaf, and
   the share of the feature; then the sum if the conditions above are not met. */
enum { PBOOST_SUM_FIRST, PBOOST_SUM_SECOND, PBOOST_SHARE_FIRST, PBOOST_SHARE_SECOND, PBOOST_N_OF_PAIR };

typedef struct {
    const pboost_shapley_op *op;
    const double *factor, *value;
    const double *weight; /* of the quadrature points */
    const uint64_t *sets;
    int32_t n_ops, n_points;
} pboost_shapley_tree;

/* Working memory. A block has n_points * lanes numbers. */
typedef struct {
    double *path;  /* a block per level: the product P */
    double *below; /* two blocks per level: the sums of first and second children at this level */
    int64_t *to;   /* per level: -1 if a row goes to the first child, else 0; the same for the second child */
    /* For interactions only: */
    double *part;     /* a block: the share of the current split, per point */
    double *gain;     /* a block per level: the share of the current child, divided by its sum */
    int32_t *feature; /* per level */
    double *pairs;    /* (n_features, n_features, stride): the sums for the rows of the block */
    ptrdiff_t n_features;
} pboost_shapley_work;

/* Each function below handles one quadrature point. `to_first` and `to_second` are set if a row meets the
   conditions above on the feature and goes to the first or second child. If the feature is new on the path
   (`is_new`), one of them is set for each row. */
PBOOST_INLINE void pboost_shapley_step(
    const double *restrict path, const int64_t *restrict to, const int64_t *restrict to_other,
    const int is_new, double factor, double other, double cold, double *restrict next, const int lanes)
{
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++) {
        const double rest = is_new || to_other[r] ? other : cold;
        next[r] = path[r] * (to[r] ? factor : rest);
    }
}

PBOOST_INLINE void pboost_shapley_close(
    const double *restrict first, const double *restrict second, const int64_t *restrict to_first,
    const double *restrict split, double *restrict total, double *restrict share, const int lanes)
{
    const double gain_first = split[PBOOST_GAIN_FIRST], gain_second = split[PBOOST_GAIN_SECOND];
    const double loss = split[PBOOST_LOSS];
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++) {
        share[r] += first[r] * (to_first[r] ? gain_first : loss) +
                    second[r] * (to_first[r] ? loss : gain_second);
        total[r] = first[r] + second[r];
    }
}

PBOOST_INLINE void pboost_shapley_pair(
    const double *restrict path, const int64_t *restrict to_first, const int64_t *restrict to_second,
    const int is_new, const double *restrict of, double cold, double *restrict total,
    double *restrict share, const int lanes)
{
    const double sum_first = of[PBOOST_SUM_FIRST], sum_second = of[PBOOST_SUM_SECOND];
    const double share_first = of[PBOOST_SHARE_FIRST], share_second = of[PBOOST_SHARE_SECOND];
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++) {
        const double sum = is_new || to_second[r] ? sum_second : cold;
        share[r] += path[r] * (to_first[r] ? share_first : share_second);
        total[r] = path[r] * (to_first[r] ? sum_first : sum);
    }
}

/* Compute the gains of the current child, which the splits below multiply by their shares. */
PBOOST_INLINE void pboost_shapley_gains(
    const int64_t *restrict to, const int64_t *restrict to_other, const double *restrict split, int place,
    const double *restrict weight, const int n, double *restrict gain, const int lanes)
{
    for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS, gain += lanes) {
        const double hot = split[place] / weight[k], cold = split[PBOOST_LOSS] / weight[k];
        PBOOST_LANES_LOOP
        for (int r = 0; r < lanes; r++) gain[r] = to[r] ? hot : to_other[r] ? cold : 0.0;
    }
}

/* Add the products of the parts of a split and the gains of the splits above. */
PBOOST_INLINE void pboost_shapley_interact(
    const pboost_shapley_work *work, const pboost_shapley_op *op, const int n, ptrdiff_t stride,
    const int lanes)
{
    for (int level = 0; level < op->level; level++) {
        if (work->feature[level] == op->feature) continue;
        const double *gain = work->gain + (ptrdiff_t)level * n * lanes, *part = work->part;
        double *pair = work->pairs + (op->feature * work->n_features + work->feature[level]) * stride;
        for (int k = 0; k < n; k++, gain += lanes, part += lanes)
            PBOOST_LANES_LOOP
            for (int r = 0; r < lanes; r++) pair[r] += part[r] * gain[r];
    }
}

/* Evaluate an operation other than a leaf. */
PBOOST_INLINE void pboost_shapley_run(
    const pboost_shapley_tree *tree, const pboost_shapley_work *work, const pboost_shapley_op *op,
    const double *x, double *out, ptrdiff_t stride, const int kind, const int is_new, const int with_pairs,
    const int lanes)
{
    const int n = tree->n_points;
    const ptrdiff_t block = (ptrdiff_t)n * lanes, level = op->level;
    const double *split = tree->factor + op->split, *cold = split + n * PBOOST_N_FACTORS;
    const double *path = work->path + level * block, *value = tree->value + op->value;
    double *next = work->path + (level + 1) * block, *below = work->below + (2 * level + 2) * block;
    double *total = work->below + (2 * level + op->is_second) * block, share[PBOOST_LANES];
    int64_t *to_first = work->to + 2 * level * lanes, *to_second = to_first + lanes;
    if (kind == PBOOST_OPEN || kind == PBOOST_PAIR)
        pboost_shapley_sides(op, tree->sets, x, work->to + op->above * lanes, to_first, is_new, lanes);
    if (kind == PBOOST_OPEN)
        for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS)
            pboost_shapley_step(
                path + k * lanes, to_first, to_second, is_new, split[PBOOST_TO_FIRST],
                split[PBOOST_NOT_FIRST], cold[0], next + k * lanes, lanes);
    if (kind == PBOOST_TURN)
        for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS)
            pboost_shapley_step(
                path + k * lanes, to_first, to_second, is_new, split[PBOOST_NOT_SECOND],
                split[PBOOST_TO_SECOND], cold[1], next + k * lanes, lanes);
    if (kind == PBOOST_OPEN || kind == PBOOST_TURN) {
        if (!with_pairs) return;
        work->feature[level] = op->feature;
        split = tree->factor + op->split;
        if (kind == PBOOST_OPEN)
            pboost_shapley_gains(
                to_first, to_second, split, PBOOST_GAIN_FIRST, tree->weight, n, work->gain + level * block,
                lanes);
        else
            pboost_shapley_gains(
                to_second, to_first, split, PBOOST_GAIN_SECOND, tree->weight, n, work->gain + level * block,
                lanes);
        return;
    }
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++) share[r] = 0.0;
    for (ptrdiff_t r = 0; with_pairs && r < block; r++) work->part[r] = 0.0;
    for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS) {
        double *part = with_pairs ? work->part + k * lanes : share;
        if (kind == PBOOST_CLOSE)
            pboost_shapley_close(
                below + k * lanes, below + block + k * lanes, to_first, split, total + k * lanes, part,
                lanes);
        else
            pboost_shapley_pair(
                path + k * lanes, to_first, to_second, is_new, value + k * PBOOST_N_OF_PAIR,
                value[n * PBOOST_N_OF_PAIR], total + k * lanes, part, lanes);
        /* If the conditions above are not met, the split does not matter. */
        PBOOST_LANES_LOOP
        for (int r = 0; with_pairs && r < lanes; r++) {
            part[r] = is_new || to_first[r] | to_second[r] ? part[r] : 0.0;
            share[r] += part[r];
        }
    }
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++)
        out[r] += is_new || to_first[r] | to_second[r] ? share[r] : 0.0;
    if (with_pairs) pboost_shapley_interact(work, op, n, stride, lanes);
}

/* Add the Shapley values of one tree for `lanes` rows. The tile x and the values `out` have a row of `stride`
   numbers per feature. */
PBOOST_INLINE void pboost_shapley_of_lanes(
    const pboost_shapley_tree *tree, const pboost_shapley_work *work, const double *x, double *out,
    ptrdiff_t stride, const int with_pairs, const int lanes)
{
    const ptrdiff_t block = (ptrdiff_t)tree->n_points * lanes;
    for (ptrdiff_t r = 0; r < block; r++) work->path[r] = 1.0;
    for (int i = 0; i < tree->n_ops; i++) {
        const pboost_shapley_op *op = tree->op + i;
        const double *of_x = x + op->feature * stride;
        double *to = out + op->feature * stride;
        switch (op->kind) { /* one jump, because it is hard to predict */
#define PBOOST_SHAPLEY_CASES(kind)                                                                 \
    case kind: pboost_shapley_run(tree, work, op, of_x, to, stride, kind, 1, with_pairs, lanes); break; \
    case kind + PBOOST_AGAIN:                                                                      \
        pboost_shapley_run(tree, work, op, of_x, to, stride, kind, 0, with_pairs, lanes);          \
        break;
            PBOOST_SHAPLEY_CASES(PBOOST_OPEN)
            PBOOST_SHAPLEY_CASES(PBOOST_TURN)
            PBOOST_SHAPLEY_CASES(PBOOST_CLOSE)
            PBOOST_SHAPLEY_CASES(PBOOST_PAIR)
        default: {
            const double *path = work->path + op->level * block, value = tree->value[op->value];
            double *total = work->below + (2 * op->level + op->is_second) * block;
            for (ptrdiff_t r = 0; r < block; r++) total[r] = value * path[r];
        }
        }
    }
}

#define PBOOST_SHAPLEY_ARGS                                                                        \
    const pboost_shapley_tree *tree, const pboost_shapley_work *work, const double *x, double *out, \
    ptrdiff_t stride

typedef void (*pboost_shapley_kernel)(PBOOST_SHAPLEY_ARGS);
typedef struct {
    pboost_shapley_kernel few, many; /* for PBOOST_FEW_LANES and PBOOST_LANES rows */
    pboost_shapley_kernel pairs;     /* with interactions, for PBOOST_FEW_LANES rows */
} pboost_shapley_kernels;

#define PBOOST_SHAPLEY(target, name)                                                               \
    target static void pboost_shapley_few_##name(PBOOST_SHAPLEY_ARGS)                              \
    {                                                                                              \
        pboost_shapley_of_lanes(tree, work, x, out, stride, 0, PBOOST_FEW_LANES);                  \
    }                                                                                              \
    target static void pboost_shapley_many_##name(PBOOST_SHAPLEY_ARGS)                             \
    {                                                                                              \
        pboost_shapley_of_lanes(tree, work, x, out, stride, 0, PBOOST_LANES);                      \
    }                                                                                              \
    target static void pboost_shapley_pairs_##name(PBOOST_SHAPLEY_ARGS)                            \
    {                                                                                              \
        pboost_shapley_of_lanes(tree, work, x, out, stride, 1, PBOOST_FEW_LANES);                  \
    }
PBOOST_COPIES(PBOOST_SHAPLEY)
#define PBOOST_SHAPLEY_OF(name)                                                                    \
    {pboost_shapley_few_##name, pboost_shapley_many_##name, pboost_shapley_pairs_##name}
PBOOST_CHOOSE(pboost_choose_shapley, pboost_shapley_kernels, PBOOST_SHAPLEY_OF)
#endif
