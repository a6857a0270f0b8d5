# Few items are sorted by insertion.
from pboost._core.types cimport int32_t, uint64_t

cdef enum:
    FEW = 48  # above this counting digits beats it


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
    """Put an item among n that are sorted, behind those of an equal key; keys that are no numbers come last."""
    cdef Py_ssize_t i = n
    while i > 0 and (keys[i - 1] > key or (keys[i - 1] != keys[i - 1] and key == key)):
        keys[i], items[i] = keys[i - 1], items[i - 1]
        i -= 1
    keys[i], items[i] = key, item
