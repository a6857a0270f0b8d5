# Pointers to the data of arrays, for use during one kernel call. The caller keeps the arrays alive.
#
# Arrays must be contiguous and have items of the expected size. Arrays that are written must not be
# read-only. The item format is not checked, because reading it for a struct takes longer than splitting a
# small tree.
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
    """Return a read-only pointer to the data of a contiguous array with items of this size."""
    return borrowed(array, size, PyBUF_C_CONTIGUOUS)


cdef inline void* to_write(array, Py_ssize_t size) except? NULL:
    """Return a pointer to the data of a contiguous array, for reading and writing."""
    return borrowed(array, size, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
