# The scalar types of the kernels. NumPy headers are not needed: kernels use typed memoryviews only.
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

# A sorted order is stored as row indices. The sign bit marks a row with the same value as the row before.
cdef enum:
    ROW_MASK = 0x7FFFFFFF
cdef enum:
    TIED = -0x80000000
cdef enum:
    MAX_BINS = 256
# Kinds of special features: with missing values, whose code is the number of bins and which come last in
# the sorted order; and categorical, with categories instead of bins.
cdef enum:
    HOLES = 1
cdef enum:
    LEVELS = 2


cdef inline int32_t row_of(int32_t entry) noexcept nogil:
    return entry & ROW_MASK


cdef inline bint is_tied(int32_t entry) noexcept nogil:
    return entry < 0
