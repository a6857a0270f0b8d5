# The normal distribution, where features are measured with error.
from libc.math cimport erfc, fabs

cdef extern from *:
    """
    /* Beyond so many standard deviations an answer is certain: the other one has a probability of
       less than 2**-54, which does not change 1. */
    #define PBOOST_CERTAIN 8.3
    #define PBOOST_SQRT_HALF 0.70710678118654752440
    """
    const double CERTAIN "PBOOST_CERTAIN"
    const double SQRT_HALF "PBOOST_SQRT_HALF"


cdef inline double tail(double z) noexcept nogil:
    """Probability that a standard normal number exceeds abs(z), 0 beyond CERTAIN."""
    z = fabs(z)
    return 0.5 * erfc(z * SQRT_HALF) if z <= CERTAIN else 0.0
