cdef double tail(double z) noexcept nogil
