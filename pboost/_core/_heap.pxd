# A max-heap of item numbers by key; ties go to the lowest number. Make all keys with `rounded` or
# `decrease`, so that keys that differ only by rounding errors are equal.
from libc.math cimport rint
from libc.string cimport memcpy

from pboost._core.types cimport int32_t, int64_t, uint64_t

# The key of item i is key[stride * i].
cdef struct Heap:
    int32_t* items
    int64_t* size
    const double* key
    Py_ssize_t stride


cdef inline bint comes_before(const Heap* heap, int32_t a, int32_t b) noexcept nogil:
    if heap.key[heap.stride * a] != heap.key[heap.stride * b]:
        return heap.key[heap.stride * a] > heap.key[heap.stride * b]
    return a < b


cdef inline void push(const Heap* heap, int32_t item) noexcept nogil:
    cdef Py_ssize_t at = heap.size[0], parent
    heap.size[0] += 1
    while at > 0:
        parent = (at - 1) // 2
        if not comes_before(heap, item, heap.items[parent]):
            break
        heap.items[at] = heap.items[parent]
        at = parent
    heap.items[at] = item


cdef inline int32_t pop(const Heap* heap) noexcept nogil:
    cdef int32_t first = heap.items[0], last
    cdef Py_ssize_t at = 0, child, size
    heap.size[0] -= 1
    size = heap.size[0]
    last = heap.items[size]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and comes_before(heap, heap.items[child + 1], heap.items[child]):
            child += 1
        if not comes_before(heap, heap.items[child], last):
            break
        heap.items[at] = heap.items[child]
        at = child
    heap.items[at] = last
    return first


cdef inline double rounded(double key) noexcept nogil:
    """Round a key to 41 significant bits; ties are rounded away from 0."""
    cdef uint64_t bits
    memcpy(&bits, &key, 8)
    bits = (bits + 0x800) & ~<uint64_t>0xFFF
    memcpy(&key, &bits, 8)
    return key


cdef inline double decrease(double before, double lowered) noexcept nogil:
    """Return the key of a split that lowers the criterion from `before` by `lowered`.

    The decrease is rounded to a multiple of 2**-40 times `before`, which removes rounding errors.
    """
    cdef double share = lowered / before if before > 0.0 else 0.0
    return rounded(before * (rint(share * 2.0**40) * 2.0**-40))
