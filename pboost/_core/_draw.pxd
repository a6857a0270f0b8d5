# The columns that a node is searched in, drawn without repetition.
from pboost._core._grower cimport Tree
from pboost._core._rng cimport draw_from, stream
from pboost._core._scan cimport is_constant
from pboost._core.types cimport int32_t, uint64_t


cdef inline Py_ssize_t place_drawn(const Tree* t, uint64_t start, Py_ssize_t i) noexcept nogil:
    """With which column, of those not yet drawn, number `i` changes places."""
    return i + <Py_ssize_t>(draw_from(start, <uint64_t>i) * <double>(t.d - i))


cdef inline void put_back(const Tree* t) noexcept nogil:
    """Put the columns drawn last back in their order, which takes no time for each of the others."""
    cdef uint64_t start = stream(t.key, <uint64_t>t.counter.drawn, 0)
    cdef Py_ssize_t i, j
    for i in range(t.counter.picked - 1, -1, -1):
        j = place_drawn(t, start, i)
        t.picked[i], t.picked[j] = t.picked[j], t.picked[i]


cdef inline Py_ssize_t draw_columns(const Tree* t, Py_ssize_t e, Py_ssize_t number) noexcept nogil:
    """Draw the columns that a node is searched in, by its number; returns how many. Constant ones do
    not help: drawing goes on until there is another."""
    cdef uint64_t start
    cdef Py_ssize_t i, j
    cdef bint all_constant = True
    if t.n_picked >= t.d:
        return t.d  # `picked` counts them all
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
