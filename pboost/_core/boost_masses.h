/* Masses of the nodes of boosted trees by bin, cuts between bins, and the passes over them; see boost_simd.h. */
#ifndef PBOOST_BOOST_MASSES_H
#define PBOOST_BOOST_MASSES_H
#include "simd.h"
#include <stddef.h>
#include <stdint.h>

#define PBOOST_LANES 8
#define PBOOST_ABREAST 3 /* groups that are scanned together: each waits for its own last bin */

/* A cut of a lane: score is numerator / divisor; bin -1 where there is none. */
typedef struct {
    double numerator[PBOOST_LANES], divisor[PBOOST_LANES];
    int32_t bin[PBOOST_LANES];
} pboost_cuts;

/* What is known of a node: its masses, the least curvature of a side, and what is added to one. If it is
   bounded, the steps of its sides are, from low to high, and are to go up (1) or down (-1). */
typedef struct {
    double gradient, curvature, least, l2, low, high;
    int is_bounded, direction;
} pboost_node_masses;

/* Of a sum of words. */
#define PBOOST_GRADIENT_IN(word) ((double)(int32_t)((word) >> 32))
#define PBOOST_CURVATURE_IN(word) ((double)(uint32_t)(word))

/* A group of columns to be scanned: its masses, and what is below its first bin already; both may be
   sums of words. */
typedef struct {
    const double *masses, *below;
    int bins;
} pboost_lanes;

#define PBOOST_SCAN_ARGS                                                                           \
    const pboost_lanes *groups, int n_groups, int is_packed, const pboost_node_masses *at,         \
    pboost_cuts *restrict cuts

#define PBOOST_BINS 256
#define PBOOST_BLOCK 8192 /* words of one copy of a row that are added up before they are unpacked, at most */
/* Rows whose codes are asked for before they are needed: where a column of a group is in reach, or not. */
#define PBOOST_AHEAD 24
#define PBOOST_FAR_AHEAD 112
#define PBOOST_NEAR_ROWS (1 << 18)
#define PBOOST_PART_ROWS 512 /* whose codes are fetched before they are parted */
#define PBOOST_ROOM 128 /* places behind arrays of rows that are read or written in vain */

/* The best cut of each lane; bin -1 where there is none. */
typedef struct {
    float value[PBOOST_LANES];
    int32_t bin[PBOOST_LANES];
} pboost_pooled_cuts;

/* `own` is the score of the node that is not split; gains are added to those of other nodes in `pool`,
   where there are any, and kept, unless `gains` is NULL. */
#define PBOOST_GAIN_ARGS                                                                           \
    const pboost_lanes *group, int is_packed, const pboost_node_masses *at, double own,            \
    float *restrict gains, float *restrict pool

/* `pool` has the gains of all nodes together, of which `share` counts. */
#define PBOOST_POOLED_ARGS                                                                         \
    const float *gains, const float *pool, int bins, float share, pboost_pooled_cuts *restrict cuts

/* The cuts of a node of whose gains only those of all nodes together, `pool`, count. */
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

/* Values of listed rows, one after another. */
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

/* Add gains, where there are any, to those of other nodes. */
static inline void pboost_pool_gains(const float *gains, ptrdiff_t n, float *restrict pool)
{
    for (ptrdiff_t i = 0; i < n; i++) pool[i] += gains[i] == gains[i] ? gains[i] : 0.0f;
}
#endif
