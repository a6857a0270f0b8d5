/* Types of the passes that compute histograms and find splits of boosted trees. See boost_simd.h. */
#ifndef PBOOST_BOOST_MASSES_H
#define PBOOST_BOOST_MASSES_H
#include "simd.h"
#include <stddef.h>
#include <stdint.h>

#define PBOOST_LANES 8
#define PBOOST_ABREAST 3 /* number of groups scanned together; a single group would be limited by latency */

/* The best split of each lane. Its score is numerator / divisor, and its bin is -1 if there is no split. */
typedef struct {
    double numerator[PBOOST_LANES], divisor[PBOOST_LANES];
    int32_t bin[PBOOST_LANES];
} pboost_cuts;

/* A node: its sums, the minimum Hessian sum of a child, and the L2 penalty. If `is_bounded` is true, the
   steps of the children must lie between `low` and `high`, and `direction` is the sign of a monotonic
   constraint. */
typedef struct {
    double gradient, curvature, least, l2, low, high;
    int is_bounded, direction;
} pboost_node_masses;

/* The gradient and the Hessian in a packed sum. */
#define PBOOST_GRADIENT_IN(word) ((double)(int32_t)((word) >> 32))
#define PBOOST_CURVATURE_IN(word) ((double)(uint32_t)(word))

/* A group of eight features (lanes): its histogram, and the sums to the left of its first bin. */
typedef struct {
    const double *masses, *below;
    int bins;
} pboost_lanes;

#define PBOOST_SCAN_ARGS                                                                           \
    const pboost_lanes *groups, int n_groups, int is_packed, const pboost_node_masses *at,         \
    pboost_cuts *restrict cuts

#define PBOOST_BINS 256
#define PBOOST_BLOCK 8192 /* largest number of rows, including copies, in a packed sum */
/* Number of rows by which codes are prefetched: for at most PBOOST_NEAR_ROWS rows, and for more rows. */
#define PBOOST_AHEAD 24
#define PBOOST_FAR_AHEAD 112
#define PBOOST_NEAR_ROWS (1 << 18)
#define PBOOST_PART_ROWS 512 /* number of rows whose codes are loaded before they are partitioned */
#define PBOOST_ROOM 128 /* padding of arrays of rows, which may be read and overwritten */

/* The best split of each lane by pooled gain. Its bin is -1 if there is no split. */
typedef struct {
    float value[PBOOST_LANES];
    int32_t bin[PBOOST_LANES];
} pboost_pooled_cuts;

/* `own` is the score of the node without a split. `gains` receives the gains of the node, unless it is
   NULL. All gains except NaN are added to `pool`, which contains the sums over all nodes. */
#define PBOOST_GAIN_ARGS                                                                           \
    const pboost_lanes *group, int is_packed, const pboost_node_masses *at, double own,            \
    float *restrict gains, float *restrict pool

/* `pool` contains the gains summed over all nodes, with the weight `share`. The node's own gains have
   the weight 1 - `share`. */
#define PBOOST_POOLED_ARGS                                                                         \
    const float *gains, const float *pool, int bins, float share, pboost_pooled_cuts *restrict cuts

/* Find the best splits of a node by `pool` alone, the gains summed over all nodes. */
#define PBOOST_SHARED_ARGS                                                                         \
    const pboost_lanes *group, int is_packed, const pboost_node_masses *at, const float *pool,     \
    pboost_pooled_cuts *restrict cuts

#define PBOOST_COUNT_ARGS                                                                          \
    const uint8_t *group, const int32_t *rows, const int64_t *packed, ptrdiff_t n, ptrdiff_t block, \
    int ahead, int n_lanes, int bins, int64_t *restrict words, double *restrict masses

#define PBOOST_SUBTRACT_ARGS double *masses, const double *part, ptrdiff_t cells, int n_packed

#define PBOOST_PART_ARGS                                                                           \
    const uint8_t *codes, int cut, const uint8_t *table, int32_t *rows, int64_t *packed,           \
    ptrdiff_t n, int32_t *spare_rows, int64_t *spare_packed

typedef struct {
    void (*count)(PBOOST_COUNT_ARGS);
    void (*subtract)(PBOOST_SUBTRACT_ARGS);
    void (*scan)(PBOOST_SCAN_ARGS);
    ptrdiff_t (*part)(PBOOST_PART_ARGS);
    void (*gain)(PBOOST_GAIN_ARGS);
    void (*pooled)(PBOOST_POOLED_ARGS);
    void (*shared)(PBOOST_SHARED_ARGS);
} pboost_passes;

/* Copy the values of the listed rows. */
static inline void pboost_gather(const double *values, const int32_t *rows, ptrdiff_t n, double *restrict found)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        PBOOST_ASK(values + rows[i + PBOOST_FAR_AHEAD]);
        found[i] = values[rows[i]];
    }
}

static inline void pboost_gather_two(
    const double *first, const double *second, const int32_t *rows, ptrdiff_t n, double *restrict of_first,
    double *restrict of_second)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t row = rows[i], ahead = rows[i + PBOOST_FAR_AHEAD];
        PBOOST_ASK(first + ahead);
        PBOOST_ASK(second + ahead);
        of_first[i] = first[row];
        of_second[i] = second[row];
    }
}

static inline void pboost_add_to(double *values, const int32_t *rows, ptrdiff_t n, double what)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        PBOOST_ASK(values + rows[i + PBOOST_FAR_AHEAD]);
        values[rows[i]] += what;
    }
}

/* Add all gains except NaN to the sums over nodes. */
static inline void pboost_pool_gains(const float *gains, ptrdiff_t n, float *restrict pool)
{
    for (ptrdiff_t i = 0; i < n; i++) pool[i] += gains[i] == gains[i] ? gains[i] : 0.0f;
}
#endif
