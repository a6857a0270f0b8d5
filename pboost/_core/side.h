/* The branch that a value takes at a threshold, or a category at a set: the only definition, for
 * training and prediction. */
#ifndef PBOOST_SIDE_H
#define PBOOST_SIDE_H
#include <stdint.h>

#define PBOOST_NO_LEVEL 255 /* for missing values, and numbers that are not categories */

/* 1 if a value goes right; a value equal to the threshold, and NaN, go left. */
static inline int pboost_goes_right(double value, double threshold) { return value > threshold; }

/* The same for a row given by its bin; the threshold is the upper edge of a bin. */
static inline int pboost_code_goes_right(int code, int cut_bin) { return code > cut_bin; }

/* The category of a value: an integer from 0 to 254. */
static inline int pboost_level(double value)
{
    const int level = value >= 0.0 && value < PBOOST_NO_LEVEL ? (int)value : PBOOST_NO_LEVEL;
    return level == value ? level : PBOOST_NO_LEVEL;
}

/* 1 if a category is in a set of four words. */
static inline int pboost_in_set(const uint64_t *set, int level)
{
    return (int)(set[level >> 6] >> (level & 63) & 1);
}
#endif
