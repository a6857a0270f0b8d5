"""The probit loss -ln Phi(m) and its derivatives, without cancellation or overflow for any m.

With phi and Phi the density and the distribution function of the standard normal distribution and
r(m) = phi(m) / Phi(m), the loss has the derivative -r and the second derivative r (m + r).
"""
cdef extern from "probit_simd.h" nogil:
    ctypedef struct Scale "pboost_scale":
        double origin
        double rescue
    ctypedef void (*Kernel "pboost_probit_kernel")(
        const double* u, Py_ssize_t n, Scale scale, int wants_loss, double* ratio, double* excess,
        double* loss,
    )
    Kernel pboost_choose_probit(int most)

cdef enum:
    BLOCK = 256  # PBOOST_ROWS

cdef enum Wanted:
    LOSS, RATIO, EXCESS

cdef Kernel kernel = pboost_choose_probit(2)


def choose_level(int most):
    """Use no more than this level of SIMD: 0 baseline, 1 AVX2, 2 AVX-512; for tests."""
    global kernel
    kernel = pboost_choose_probit(most)


cdef void fill(const double[::1] m, double[::1] out, Wanted wanted) noexcept:
    cdef double[3][BLOCK] found
    cdef Py_ssize_t start, k, n
    cdef Scale scale
    scale.origin, scale.rescue = 0.0, 1.0
    start = 0
    with nogil:
        while start < m.shape[0]:
            n = min(m.shape[0] - start, <Py_ssize_t>BLOCK)
            kernel(&m[start], n, scale, wanted == LOSS, found[1], found[2], found[0])
            for k in range(n):
                out[start + k] = found[<int>wanted][k]
            start += n


def ratios(const double[::1] m, double[::1] out):
    """out = r(m)."""
    fill(m, out, RATIO)


def excesses(const double[::1] m, double[::1] out):
    """out = m + r(m)."""
    fill(m, out, EXCESS)


def losses(const double[::1] m, double[::1] out):
    """out = -ln Phi(m)."""
    fill(m, out, LOSS)
