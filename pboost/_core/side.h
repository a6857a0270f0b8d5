/* On which side of a threshold a value lies, or a level of a set: the one definition of it, for
 * training and evaluation. */
#ifndef PBOOST_SIDE_H
#define PBOOST_SIDE_H
#include <stdint.h>

#define PBOOST_NO_LEVEL 255 /* of missing values, and of numbers that are no levels */

/* 1 if a value belongs to exit 1; a value at the threshold, and NaN, belong to exit 0. */
static inline int pboost_goes_right(double value, double threshold) { return value > threshold; }

/* The same of a row that is known by its bin, where the threshold is the upper end of a bin. */
static inline int pboost_code_goes_right(int code, int cut_bin) { return code > cut_bin; }

/* The level of a category: an integer from 0 to 254. */
static inline int pboost_level(double value)
{
    const int level = value >= 0.0 && value < PBOOST_NO_LEVEL ? (int)value : PBOOST_NO_LEVEL;
    return level == value ? level : PBOOST_NO_LEVEL;
}

/* 1 if a level is in a set of four words. */
static inline int pboost_in_set(const uint64_t *set, int level)
{
    return (int)(set[level >> 6] >> (level & 63) & 1);
}
#endif
