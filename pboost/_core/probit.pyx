"""The probit loss -ln Phi(m) and its derivatives, without cancellation or overflow for any m.

With phi and Phi the density and the distribution function of the standard normal distribution and
r(m) = phi(m) / Phi(m), the loss has the derivative -r and the second derivative r (m + r). For
m = -x < 0, m + r is the continued fraction 1/(x + 2/(x + 3/(x + ...))): computed so, neither is a
difference of larger numbers. It converges fast for large x; below SPAN Taylor polynomials about a
grid of points take its place.
"""
from libc.math cimport erfc, exp, log, log1p

cdef extern from *:
    """
    #define PBOOST_HALF_SQRT_2 0.70710678118654752440
    #define PBOOST_SQRT_2_OVER_PI 0.79788456080286535588
    #define PBOOST_HALF_LN_2_PI 0.91893853320467274178
    """
    const double HALF_SQRT_2 "PBOOST_HALF_SQRT_2"
    const double SQRT_2_OVER_PI "PBOOST_SQRT_2_OVER_PI"
    const double HALF_LN_2_PI "PBOOST_HALF_LN_2_PI"

cdef enum:
    SPAN = 16
    STEPS = 4  # grid points per unit
    POINTS = SPAN * STEPS + 1
    TERMS = 14
    FRACTIONS = 16  # of the continued fraction from SPAN on
    MANY_FRACTIONS = 200  # from 2 on, for the table

cdef double[POINTS][TERMS] coefficient


cdef double continued_fraction(double x, int fractions) noexcept nogil:
    """1/(x + 2/(x + 3/(x + ...))) of so many fractions."""
    cdef double value = x
    cdef int k
    for k in range(fractions, 1, -1):
        value = x + k / value
    return 1.0 / value


cdef void fill_table() noexcept:
    """Taylor coefficients of g(m) = m + r(m), from g' = 1 - r g."""
    cdef double x, value
    cdef double[TERMS] g
    cdef double[TERMS] r
    cdef int point, k, i
    for point in range(POINTS):
        x = <double>point / STEPS
        if x >= 2.0:
            g[0] = continued_fraction(x, MANY_FRACTIONS)
        else:
            g[0] = SQRT_2_OVER_PI * exp(-0.5 * x * x) / erfc(x * HALF_SQRT_2) - x
        r[0] = g[0] + x
        for k in range(TERMS - 1):
            value = 1.0 if k == 0 else 0.0
            for i in range(k + 1):
                value -= r[i] * g[k - i]
            g[k + 1] = value / (k + 1)
            r[k + 1] = g[k + 1] - 1.0 if k == 0 else g[k + 1]
        for k in range(TERMS):
            coefficient[point][k] = g[k]


fill_table()


cdef double ratio(double m) noexcept nogil:
    """r(m) = phi(m) / Phi(m)."""
    cdef double high, rest
    if m <= 0.0:
        return excess(m) - m
    # m * m in two parts: an error of the exponent would be one of the result.
    high = <double><float>m
    if high * high > 1500.0:
        return 0.0
    rest = (m - high) * (m + high)
    return SQRT_2_OVER_PI * exp(-0.5 * high * high) * exp(-0.5 * rest) / erfc(-m * HALF_SQRT_2)


cdef double excess(double m) noexcept nogil:
    """m + r(m)."""
    cdef const double* c
    cdef double x, value
    cdef int point, k
    if m > 0.0:
        return m + ratio(m)
    if not m > -SPAN:
        return continued_fraction(-m, FRACTIONS)
    point = <int>(0.5 - m * STEPS)
    x = m + <double>point / STEPS
    c = coefficient[point]
    value = c[TERMS - 1]
    for k in range(TERMS - 2, -1, -1):
        value = value * x + c[k]
    return value


cdef double loss(double m) noexcept nogil:
    """-ln Phi(m)."""
    if m <= 0.0:
        return 0.5 * m * m + HALF_LN_2_PI + log(ratio(m))
    return -log1p(-0.5 * erfc(m * HALF_SQRT_2))


def ratios(const double[::1] m, double[::1] out):
    """out = r(m)."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(m.shape[0]):
            out[i] = ratio(m[i])


def excesses(const double[::1] m, double[::1] out):
    """out = m + r(m)."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(m.shape[0]):
            out[i] = excess(m[i])


def losses(const double[::1] m, double[::1] out):
    """out = -ln Phi(m)."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(m.shape[0]):
            out[i] = loss(m[i])
