# A round whose rows are elsewhere: what is asked of an object in place of looking at them.
#
# See `Elsewhere` in trees/sharded_rounds.py. It raises nothing: once something has gone wrong, all nodes are
# pure, and the round ends soon.
from cpython.object cimport PyObject

from pboost._core._address cimport address
from pboost._core.types cimport MAX_BINS, int32_t, uint8_t


cdef inline void pack_there(
    PyObject* there, double gradient_scale, double curvature_scale
) noexcept with gil:
    (<object>there).pack(gradient_scale, curvature_scale)


cdef inline bint is_pure_there(
    PyObject* there, Py_ssize_t e, double gradient, double curvature
) noexcept with gil:
    return (<object>there).is_pure(e, gradient, curvature)


cdef inline const double* count_there(PyObject* there, Py_ssize_t e) noexcept with gil:
    """The masses of a node by bin, (n_lanes, 256, 2), until more is asked for; NULL: none."""
    found = (<object>there).count(e)
    return NULL if found is None else <const double*>address(found)


cdef inline double squares_there(PyObject* there, Py_ssize_t e) noexcept with gil:
    return (<object>there).squares(e)


cdef inline void rows_by_bin_there(
    PyObject* there, Py_ssize_t e, Py_ssize_t f, int32_t* count
) noexcept with gil:
    cdef Py_ssize_t i
    found = (<object>there).rows_by_bin(e, f)
    for i in range(MAX_BINS):
        count[i] = <int32_t>(<const int32_t*>address(found))[i]


cdef inline Py_ssize_t part_there(
    PyObject* there, Py_ssize_t e, Py_ssize_t f, const uint8_t* above, bint with_words
) noexcept with gil:
    """Tell the sides of the codes of a column; returns how many rows of a node are below."""
    return (<object>there).part(e, f, (<const char*>above)[:MAX_BINS], with_words)
