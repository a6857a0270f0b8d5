# Arrays borrowed for one call of a kernel.
from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer


cdef inline void* address(array) except? NULL:
    """Where an array's data begin; its owner outlives the call.

    The format of the items, which for structs takes longer to write than a small tree to split, is
    not asked for.
    """
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO)
    cdef void* data = view.buf
    PyBuffer_Release(&view)
    return data
