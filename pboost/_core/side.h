/* Functions that return the child for a value, a bin or a category. Training and prediction use them. */
#ifndef PBOOST_SIDE_H
#define PBOOST_SIDE_H
#include <stdint.h>

#define PBOOST_NO_LEVEL 255 /* code of missing values and of numbers that are not categories */

/* Return 1 if a value goes to the right. Values equal to the threshold, and NaN, go to the left. */
static inline int pboost_goes_right(double value, double threshold) { return value > threshold; }

/* Return 1 if a bin goes to the right; the threshold is the upper edge of bin `cut_bin`. */
static inline int pboost_code_goes_right(int code, int cut_bin) { return code > cut_bin; }

/* Return the category of a value: an integer from 0 to 254, or PBOOST_NO_LEVEL. */
static inline int pboost_level(double value)
{
    const int level = value >= 0.0 && value < PBOOST_NO_LEVEL ? (int)value : PBOOST_NO_LEVEL;
    return level == value ? level : PBOOST_NO_LEVEL;
}

/* Return 1 if a category is in a set of four 64-bit words. */
static inline int pboost_in_set(const uint64_t *set, int level)
{
    return (int)(set[level >> 6] >> (level & 63) & 1);
}
#endif
