"""Probabilities of two labels from decision values that are half their log odds."""

cdef extern from "link_simd.h" nogil:
    ctypedef void (*Kernel "pboost_link_kernel")(
        const double* score, Py_ssize_t n, double* shares
    )
    Kernel pboost_choose_link(int most)

cdef Kernel kernel = pboost_choose_link(2)


def choose_level(int most):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global kernel
    kernel = pboost_choose_link(most)


def two_shares(const double[::1] score, double[:, ::1] shares):
    """shares (n, 2) = the probabilities of the labels whose half log odds are score.

    Where rounding leaves both 1/2, that of the label predicted, the second of scores > 0, is larger
    by a unit in the last place.
    """
    if score.shape[0] > 0:
        with nogil:
            kernel(&score[0], score.shape[0], &shares[0, 0])
