# Few items are sorted by insertion.
from pboost._core.types cimport uint64_t

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
