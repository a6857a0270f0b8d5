cdef double ratio(double m) noexcept nogil
cdef double excess(double m) noexcept nogil
cdef double loss(double m) noexcept nogil
