# Arrays borrowed for one call of a kernel.
from cpython.buffer cimport PyBUF_FULL_RO, PyBuffer_Release, PyObject_GetBuffer


cdef inline void* address(array) except? NULL:
    """Where an array's data begin; its owner outlives the call."""
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_FULL_RO)
    cdef void* data = view.buf
    PyBuffer_Release(&view)
    return data
