# Arrays borrowed for one call of a kernel; their owners outlive it.
#
# Items must have the size of what the pointer is of, and stand one after the other without gaps; those that
# are written must not be read-only. The format of items, which for structs takes longer to write than a
# small tree to split, is not asked for.
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)


cdef inline void* borrowed(array, Py_ssize_t size, int flags) except? NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, flags)
    cdef void* data = view.buf
    cdef Py_ssize_t found = view.itemsize
    PyBuffer_Release(&view)
    if found != size:
        raise ValueError(f"expected an array with items of {size} bytes, got {found}")
    return data


cdef inline const void* to_read(array, Py_ssize_t size) except? NULL:
    """Where the data of an array begin whose items have this size."""
    return borrowed(array, size, PyBUF_C_CONTIGUOUS)


cdef inline void* to_write(array, Py_ssize_t size) except? NULL:
    """As `to_read`, of an array that may be changed."""
    return borrowed(array, size, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
