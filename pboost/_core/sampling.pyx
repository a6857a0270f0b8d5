"""Answers drawn at random, invocation by invocation, and how often each row answered 1.

A draw depends on (key, question, row, draw) alone and masses are integers, so that neither the
number of threads nor the order of the rows changes anything.
"""
from libc.stdint cimport uint16_t

from pboost._core cimport _rng
from pboost._core.types cimport int32_t, int64_t, uint64_t


def draw(
    const double[::1] above, const int32_t[::1] rows, Py_ssize_t n_negative, uint64_t key,
    uint64_t question, Py_ssize_t first, Py_ssize_t last, Py_ssize_t start, Py_ssize_t stop,
    const int64_t[::1] fixed, uint16_t[::1] count, int64_t[:, ::1] mass,
):
    """Invoke rows start..stop-1 for the draws first..last-1.

    IN above (n,), the probability of answer 1, rows (n,), the names of the rows in the streams,
    fixed (n,); INOUT count (n,), raised by the answers 1; OUT mass (last - first, 2), the sum of
    `fixed` over the rows of either class that answered 1, by draw.
    """
    cdef Py_ssize_t i, r, n = above.shape[0]
    cdef uint64_t at
    cdef int k, answer, taken
    if (not (0 <= start <= stop <= n) or not (0 <= first <= last) or rows.shape[0] != n
            or fixed.shape[0] != n or count.shape[0] != n or mass.shape[0] != last - first
            or mass.shape[1] != 2):
        raise ValueError("draw: arrays of different sizes")
    with nogil:
        for r in range(last - first):
            mass[r, 0] = mass[r, 1] = 0
        for i in range(start, stop):
            k = i >= n_negative
            at = _rng.stream(key, question, <uint64_t>rows[i])
            taken = 0
            for r in range(last - first):
                answer = _rng.draw_from(at, <uint64_t>(first + r)) < above[i]
                taken += answer
                mass[r, k] += -<int64_t>answer & fixed[i]
            count[i] += <uint16_t>taken
