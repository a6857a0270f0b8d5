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
 */
#ifndef PBOOST_SHAPLEY_H
#define PBOOST_SHAPLEY_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "simd.h"

enum { PBOOST_LEAF, PBOOST_OPEN, PBOOST_TURN, PBOOST_CLOSE, PBOOST_PAIR };
enum { PBOOST_FEW_LANES = 8, PBOOST_LANES = 32 };

typedef struct {
    double threshold;
    int64_t split; /* position of the constants of a split in `factor` */
    int64_t value; /* position of the constants of a leaf or pair in `value` */
    int32_t kind, level;
    int32_t feature;   /* row of the tile */
    int32_t set;       /* category set, or -1 */
    int32_t above;     /* level of the last split above with the same feature, or -1 */
    int32_t is_second; /* whether this subtree is the second child of its parent */
    int32_t missing;   /* the child for missing values */
    int32_t unused;
} pboost_shapley_op;

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
    const uint64_t *sets;
    int32_t n_ops, n_points;
} pboost_shapley_tree;

/* Working memory. A block has n_points * lanes numbers. */
typedef struct {
    double *path;  /* a block per level: the product P */
    double *below; /* two blocks per level: the sums of first and second children at this level */
    int64_t *side; /* per level: -1 if the row goes to the first child, else 0 */
    int64_t *met;  /* per level: -1 if the row meets the conditions above and goes to the current child */
} pboost_shapley_work;

PBOOST_INLINE void pboost_shapley_sides(
    const pboost_shapley_op *op, const uint64_t *sets, const double *restrict x, int64_t *restrict side,
    const int lanes)
{
    const double threshold = op->threshold;
    if (op->set >= 0) {
        const uint64_t *set = sets + 4 * (ptrdiff_t)op->set;
        for (int r = 0; r < lanes; r++) {
            const int code = isnan(x[r]) ? -1 : (int)x[r];
            const int second = code < 0 ? op->missing : (int)(set[code >> 6] >> (code & 63) & 1);
            side[r] = second - 1;
        }
    } else if (op->missing)
        for (int r = 0; r < lanes; r++) side[r] = x[r] <= threshold ? -1 : 0;
    else
        for (int r = 0; r < lanes; r++) side[r] = x[r] > threshold ? 0 : -1;
}

/* Multiply the product of a path by the factor of a child; `a` is used where `to` is set, `b` where only `met`
   is set, and `c` elsewhere. */
PBOOST_INLINE void pboost_shapley_step(
    const double *restrict path, const int64_t *restrict to, const int64_t *restrict met, double a, double b,
    double c, double *restrict next, const int lanes)
{
    if (!met)
        for (int r = 0; r < lanes; r++) next[r] = path[r] * (to[r] ? a : b);
    else
        for (int r = 0; r < lanes; r++) next[r] = path[r] * (met[r] ? to[r] ? a : b : c);
}

PBOOST_INLINE void pboost_shapley_close(
    const double *restrict first, const double *restrict second, const int64_t *restrict side,
    const int64_t *restrict met, double gain_first, double gain_second, double loss, double *restrict total,
    double *restrict share, const int lanes)
{
    if (!met)
        for (int r = 0; r < lanes; r++) {
            share[r] += first[r] * (side[r] ? gain_first : loss) + second[r] * (side[r] ? loss : gain_second);
            total[r] = first[r] + second[r];
        }
    else
        for (int r = 0; r < lanes; r++) {
            const double sum =
                first[r] * (side[r] ? gain_first : loss) + second[r] * (side[r] ? loss : gain_second);
            share[r] += met[r] ? sum : 0.0;
            total[r] = first[r] + second[r];
        }
}

PBOOST_INLINE void pboost_shapley_pair(
    const double *restrict path, const int64_t *restrict side, const int64_t *restrict met,
    const double *restrict of, double not_met, double *restrict total, double *restrict share, const int lanes)
{
    const double sum_first = of[PBOOST_SUM_FIRST], sum_second = of[PBOOST_SUM_SECOND];
    const double share_first = of[PBOOST_SHARE_FIRST], share_second = of[PBOOST_SHARE_SECOND];
    if (!met)
        for (int r = 0; r < lanes; r++) {
            share[r] += path[r] * (side[r] ? share_first : share_second);
            total[r] = path[r] * (side[r] ? sum_first : sum_second);
        }
    else
        for (int r = 0; r < lanes; r++) {
            share[r] += path[r] * (met[r] ? side[r] ? share_first : share_second : 0.0);
            total[r] = path[r] * (met[r] ? side[r] ? sum_first : sum_second : not_met);
        }
}

/* Add the Shapley values of one tree for `lanes` rows. The tile x and the values `out` have a row of `stride`
   numbers per feature. */
PBOOST_INLINE void pboost_shapley_of_lanes(
    const pboost_shapley_tree *tree, const pboost_shapley_work *work, const double *x, double *out,
    ptrdiff_t stride, const int lanes)
{
    const int n = tree->n_points;
    const ptrdiff_t block = (ptrdiff_t)n * lanes;
    for (ptrdiff_t r = 0; r < block; r++) work->path[r] = 1.0;
    for (int i = 0; i < tree->n_ops; i++) {
        const pboost_shapley_op *op = tree->op + i;
        const ptrdiff_t level = op->level;
        const double *path = work->path + level * block;
        double *total = work->below + (2 * level + op->is_second) * block;
        if (op->kind == PBOOST_LEAF) {
            const double value = tree->value[op->value];
            for (ptrdiff_t r = 0; r < block; r++) total[r] = value * path[r];
            continue;
        }
        int64_t *side = work->side + level * lanes, *to = work->met + level * lanes;
        const int64_t *met = op->above < 0 ? NULL : work->met + (ptrdiff_t)op->above * lanes;
        const double *split = tree->factor + op->split, *cold = split + n * PBOOST_N_FACTORS;
        if (op->kind == PBOOST_OPEN || op->kind == PBOOST_PAIR)
            pboost_shapley_sides(op, tree->sets, x + op->feature * stride, side, lanes);
        if (op->kind == PBOOST_OPEN) {
            for (int r = 0; r < lanes; r++) to[r] = met ? side[r] & met[r] : side[r];
            for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS)
                pboost_shapley_step(
                    path + k * lanes, side, met, split[PBOOST_TO_FIRST], split[PBOOST_NOT_FIRST], cold[0],
                    (double *)path + block + k * lanes, lanes);
        } else if (op->kind == PBOOST_TURN) {
            for (int r = 0; r < lanes; r++) to[r] = met ? ~side[r] & met[r] : ~side[r];
            for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS)
                pboost_shapley_step(
                    path + k * lanes, side, met, split[PBOOST_NOT_SECOND], split[PBOOST_TO_SECOND], cold[1],
                    (double *)path + block + k * lanes, lanes);
        } else {
            double share[PBOOST_LANES];
            double *of_feature = out + op->feature * stride;
            const double *below = work->below + (2 * level + 2) * block, *of = tree->value + op->value;
            for (int r = 0; r < lanes; r++) share[r] = 0.0;
            if (op->kind == PBOOST_CLOSE)
                for (int k = 0; k < n; k++, split += PBOOST_N_FACTORS)
                    pboost_shapley_close(
                        below + k * lanes, below + block + k * lanes, side, met, split[PBOOST_GAIN_FIRST],
                        split[PBOOST_GAIN_SECOND], split[PBOOST_LOSS], total + k * lanes, share, lanes);
            else
                for (int k = 0; k < n; k++)
                    pboost_shapley_pair(
                        path + k * lanes, side, met, of + k * PBOOST_N_OF_PAIR, of[n * PBOOST_N_OF_PAIR],
                        total + k * lanes, share, lanes);
            for (int r = 0; r < lanes; r++) of_feature[r] += share[r];
        }
    }
}

#define PBOOST_SHAPLEY_ARGS                                                                        \
    const pboost_shapley_tree *tree, const pboost_shapley_work *work, const double *x, double *out, \
    ptrdiff_t stride

typedef void (*pboost_shapley_kernel)(PBOOST_SHAPLEY_ARGS);
typedef struct {
    pboost_shapley_kernel few, many; /* for PBOOST_FEW_LANES and PBOOST_LANES rows */
} pboost_shapley_kernels;

#define PBOOST_SHAPLEY(target, name)                                                               \
    target static void pboost_shapley_few_##name(PBOOST_SHAPLEY_ARGS)                              \
    {                                                                                              \
        pboost_shapley_of_lanes(tree, work, x, out, stride, PBOOST_FEW_LANES);                     \
    }                                                                                              \
    target static void pboost_shapley_many_##name(PBOOST_SHAPLEY_ARGS)                             \
    {                                                                                              \
        pboost_shapley_of_lanes(tree, work, x, out, stride, PBOOST_LANES);                         \
    }
PBOOST_COPIES(PBOOST_SHAPLEY)
#define PBOOST_SHAPLEY_OF(name) {pboost_shapley_few_##name, pboost_shapley_many_##name}
PBOOST_CHOOSE(pboost_choose_shapley, pboost_shapley_kernels, PBOOST_SHAPLEY_OF)
#endif
