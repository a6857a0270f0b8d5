# The vote of an exit.
from libc.math cimport log

cdef extern from *:
    """
    /* 0.5 ln(2**52): an exit that holds one class only has infinite log odds; its vote is clipped
       here, where the share of the other class would be one rounding error of the whole. */
    #define PBOOST_VOTE_LIMIT 18.021826694558577
    """
    const double VOTE_LIMIT "PBOOST_VOTE_LIMIT"

cdef inline double half_log_odds(double positive, double negative, double smoothing) noexcept nogil:
    """Half log odds of two masses, each raised by `smoothing`, clipped (Schapire & Singer 4.2)."""
    cdef double value
    if positive + smoothing <= 0.0 and negative + smoothing <= 0.0:
        return 0.0
    if positive + smoothing <= 0.0:
        return -VOTE_LIMIT
    if negative + smoothing <= 0.0:
        return VOTE_LIMIT
    value = 0.5 * log((positive + smoothing) / (negative + smoothing))
    return min(max(value, -VOTE_LIMIT), VOTE_LIMIT)
