# The scalar types of the kernels. NumPy headers are not needed, because kernels use typed memoryviews.
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

# A sorted order contains row numbers. The sign bit marks a row with the same value as the previous row.
cdef enum:
    ROW_MASK = 0x7FFFFFFF
cdef enum:
    TIED = -0x80000000
cdef enum:
    MAX_BINS = 256
# Flags of features. HOLES: the feature has missing values. Their code is the number of bins, and they come
# last in the sorted order. LEVELS: the feature is categorical and has categories instead of bins.
cdef enum:
    HOLES = 1
cdef enum:
    LEVELS = 2


cdef inline int32_t row_of(int32_t entry) noexcept nogil:
    return entry & ROW_MASK


cdef inline bint is_tied(int32_t entry) noexcept nogil:
    return entry < 0
