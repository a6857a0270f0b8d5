# Passes over the rows of a multiclass round; see boost_softmax.h.
from pboost._core.types cimport int32_t, int64_t, uint8_t

cdef extern from "boost_softmax.h" nogil:
    ctypedef struct Passes "pboost_softmax_passes":
        void (*shares)(
            const double* scores, const double* label, const double* weight, int are_copies,
            Py_ssize_t n_classes, Py_ssize_t n, Py_ssize_t stride, double per_limit, double* residual,
            double* loss, double* steepest, double* most) noexcept nogil
        void (*roots)(
            const uint8_t* groups, Py_ssize_t stride, const int32_t* bins, Py_ssize_t n_lanes,
            Py_ssize_t start, Py_ssize_t n, const int64_t* words, double* masses, int width) noexcept nogil
    Passes pboost_choose_softmax_passes(int level)
