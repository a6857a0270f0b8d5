cdef extern from "sum.h" nogil:
    double sum_of "pboost_sum_of"(const double* a, Py_ssize_t n)
