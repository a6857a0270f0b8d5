# Pointers to arrays, borrowed for one call of a kernel; the owners of the arrays outlive it.
#
# Items must have the expected size and be contiguous, and arrays that are written must not be read-only.
# The item format is not checked: for structs, reading it takes longer than splitting a small tree.
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
    """Return a pointer to the data of a contiguous array whose items have this size."""
    return borrowed(array, size, PyBUF_C_CONTIGUOUS)


cdef inline void* to_write(array, Py_ssize_t size) except? NULL:
    """Return a pointer as `to_read`, to an array that may be changed."""
    return borrowed(array, size, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
