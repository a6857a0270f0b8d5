/* The operations of a program that visits the nodes of a tree, and the comparisons of a node. */
#ifndef PBOOST_SHAPLEY_OPS_H
#define PBOOST_SHAPLEY_OPS_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "simd.h"

/* Before a loop over lanes: the arrays do not overlap. GCC would unroll a loop over 8 lanes completely before it
   is vectorized. */
#if defined(__GNUC__) && !defined(__clang__)
#define PBOOST_LANES_LOOP _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#else
#define PBOOST_LANES_LOOP
#endif

/* PBOOST_AGAIN is added if the feature has been compared above. */
enum { PBOOST_LEAF, PBOOST_OPEN, PBOOST_TURN, PBOOST_CLOSE, PBOOST_PAIR, PBOOST_AGAIN };
enum { PBOOST_FEW_LANES = 8, PBOOST_LANES = 32 };

typedef struct {
    double threshold;
    int64_t split; /* position of the constants of a split in `factor` */
    int64_t value; /* position of the constants of a leaf or pair in `value` */
    int32_t kind, level;
    int32_t feature;   /* row of the tile */
    int32_t set;       /* category set, or -1 */
    int32_t above;     /* 2 * level + child of the last split above with the same feature, or -1 */
    int32_t is_second; /* whether this subtree is the second child of its parent */
    int32_t missing;   /* the child for missing values */
    int32_t bit;      /* of the feature in patterns, see below */
    int32_t n_unique; /* number of different features on the path to a leaf, or to the leaves of a pair */
    int32_t unused;
} pboost_shapley_op;

/* Compare a feature of the rows, and set `to` for both children. The loop has no branches, because the next
   operation is hard to predict anyway. */
PBOOST_INLINE void pboost_shapley_sides(
    const pboost_shapley_op *op, const uint64_t *sets, const double *restrict x,
    const int64_t *restrict met, int64_t *restrict to, const int is_new, const int lanes)
{
    int64_t *restrict to_first = to, *restrict to_second = to + lanes;
    const double threshold = op->threshold;
    const int64_t if_missing = op->missing ? 0 : -1;
    if (op->set >= 0) {
        const uint64_t *set = sets + 4 * (ptrdiff_t)op->set;
        PBOOST_LANES_LOOP
        for (int r = 0; r < lanes; r++) {
            const int code = isnan(x[r]) ? 0 : (int)x[r];
            const int64_t side = (int64_t)(set[code >> 6] >> (code & 63) & 1) - 1;
            to_first[r] = isnan(x[r]) ? if_missing : side;
        }
    } else
        PBOOST_LANES_LOOP
        for (int r = 0; r < lanes; r++)
            to_first[r] = (x[r] <= threshold ? -1 : 0) | (isnan(x[r]) ? if_missing : 0);
    PBOOST_LANES_LOOP
    for (int r = 0; r < lanes; r++) {
        const int64_t side = to_first[r], is_met = is_new ? -1 : met[r];
        to_first[r] = side & is_met;
        to_second[r] = ~side & is_met;
    }
}
#endif
