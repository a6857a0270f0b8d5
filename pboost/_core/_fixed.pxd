# Sample weights in fixed point.
from pboost._core.types cimport int64_t

cdef extern from *:
    """
    /* The smallest weight, which is 0 in fixed point. It avoids subnormal numbers, which are slow. */
    #define PBOOST_LEAST_WEIGHT 1e-290
    """
    const double LEAST_WEIGHT "PBOOST_LEAST_WEIGHT"


cdef inline int64_t rounded(double value) noexcept nogil:
    return <int64_t>(value + 0.5)
