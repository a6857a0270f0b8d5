# The vote of a leaf or exit.
from libc.math cimport log

cdef extern from *:
    """
    /* 0.5 ln(2**52). The log odds of an exit with a single class are infinite, so votes are clipped at this
       value. It corresponds to odds of 2**52. */
    #define PBOOST_VOTE_LIMIT 18.021826694558577
    """
    const double VOTE_LIMIT "PBOOST_VOTE_LIMIT"

cdef inline double half_log_odds(double positive, double negative, double smoothing) noexcept nogil:
    """Return half the log odds of two weights, each increased by `smoothing`, and clip it."""
    cdef double value
    if positive + smoothing <= 0.0 and negative + smoothing <= 0.0:
        return 0.0
    if positive + smoothing <= 0.0:
        return -VOTE_LIMIT
    if negative + smoothing <= 0.0:
        return VOTE_LIMIT
    value = 0.5 * log((positive + smoothing) / (negative + smoothing))
    return min(max(value, -VOTE_LIMIT), VOTE_LIMIT)
