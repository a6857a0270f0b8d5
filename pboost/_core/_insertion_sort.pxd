# Insertion sort of short arrays.
from pboost._core.types cimport int32_t, uint64_t

cdef enum:
    FEW = 48  # above this length, radix sort is faster


cdef inline void insertion_sort(uint64_t* items, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef uint64_t item
    for i in range(1, n):
        item = items[i]
        j = i
        while j > 0 and items[j - 1] > item:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item


cdef inline void insert_by_key(
    double* keys, int32_t* items, Py_ssize_t n, double key, int32_t item
) noexcept nogil:
    """Insert an item into n items sorted by key, after items with an equal key. NaN keys come last."""
    cdef Py_ssize_t i = n
    while i > 0 and (keys[i - 1] > key or (keys[i - 1] != keys[i - 1] and key == key)):
        keys[i], items[i] = keys[i - 1], items[i - 1]
        i -= 1
    keys[i], items[i] = key, item
