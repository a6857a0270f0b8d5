/* On which side of a threshold a value lies: the one definition of it, for training and evaluation. */
#ifndef PBOOST_SIDE_H
#define PBOOST_SIDE_H

/* 1 if a value belongs to exit 1; a value at the threshold, and NaN, belong to exit 0. */
static inline int pboost_goes_right(double value, double threshold) { return value > threshold; }

/* The same of a row that is known by its bin, where the threshold is the upper end of a bin. */
static inline int pboost_code_goes_right(int code, int cut_bin) { return code > cut_bin; }
#endif
