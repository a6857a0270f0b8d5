# Rows of a float64 or float32 matrix with any strides. Values are converted to float64 when they are read.

cdef struct Rows:
    const char* data
    Py_ssize_t n
    Py_ssize_t d
    Py_ssize_t row_stride
    Py_ssize_t column_stride
    bint is_float


cdef inline double read(const Rows* X, const char* row, Py_ssize_t j) noexcept nogil:
    if X.is_float:
        return (<const float*>(row + j * X.column_stride))[0]
    return (<const double*>(row + j * X.column_stride))[0]


cdef inline Rows rows_of(X) except *:
    """Return the rows of a NumPy matrix. The matrix must stay alive while they are used."""
    cdef const double[:, :] as_double
    cdef const float[:, :] as_float
    cdef Rows rows
    rows.is_float = X.dtype.itemsize == 4
    if rows.is_float:
        as_float = X
        rows.n, rows.d = as_float.shape[0], as_float.shape[1]
        rows.row_stride, rows.column_stride = as_float.strides[0], as_float.strides[1]
        rows.data = <const char*>&as_float[0, 0] if rows.n and rows.d else NULL
    else:
        as_double = X
        rows.n, rows.d = as_double.shape[0], as_double.shape[1]
        rows.row_stride, rows.column_stride = as_double.strides[0], as_double.strides[1]
        rows.data = <const char*>&as_double[0, 0] if rows.n and rows.d else NULL
    return rows
