# Random choice of the features that are considered at a node, without replacement.
from pboost._core._grower cimport Tree
from pboost._core._rng cimport draw_from, stream
from pboost._core._scan cimport is_constant
from pboost._core.types cimport int32_t, uint64_t


cdef inline Py_ssize_t place_drawn(const Tree* t, uint64_t start, Py_ssize_t i) noexcept nogil:
    """Return the index with which index `i` is swapped; the features before `i` have been drawn."""
    return i + <Py_ssize_t>(draw_from(start, <uint64_t>i) * <double>(t.d - i))


cdef inline void put_back(const Tree* t) noexcept nogil:
    """Undo the last draw of features in time proportional to the number drawn."""
    cdef uint64_t start = stream(t.key, <uint64_t>t.counter.drawn, 0)
    cdef Py_ssize_t i, j
    for i in range(t.counter.picked - 1, -1, -1):
        j = place_drawn(t, start, i)
        t.picked[i], t.picked[j] = t.picked[j], t.picked[i]


cdef inline Py_ssize_t draw_columns(const Tree* t, Py_ssize_t e, Py_ssize_t number) noexcept nogil:
    """Draw the features that are considered at a node and return their number.

    If all drawn features are constant, draw more until one is not constant.
    """
    cdef uint64_t start
    cdef Py_ssize_t i, j
    cdef bint all_constant = True
    if t.n_picked >= t.d:
        return t.d  # `picked` lists all features
    put_back(t)
    t.counter.drawn = number
    start = stream(t.key, <uint64_t>number, 0)
    for i in range(t.d):
        if i >= t.n_picked and not all_constant:
            return i
        j = place_drawn(t, start, i)
        t.picked[i], t.picked[j] = t.picked[j], t.picked[i]
        all_constant = all_constant and is_constant(t, e, t.picked[i])
    return t.d
