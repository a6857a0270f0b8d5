"""Losses defined by C functions, which are called for each row without the Python interpreter."""
from libc.math cimport INFINITY, fabs, rint

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from pboost._core._boost_leaf cimport NEAR_STEP, TINY_STEP, WIDTH, scale_of
from pboost._core.types cimport int64_t

ctypedef void (*Slopes)(double y, double f, double* gradient, double* curvature) noexcept nogil
ctypedef double (*Value)(double y, double f) noexcept nogil

# Points and weights of Gauss-Legendre quadrature on [0, 1], with eight points.
cdef double[4] _at = [0.4082826787521751, 0.2372337950418355, 0.1016667612931866, 0.019855071751231856]
cdef double[4] _share = [
    0.18134189168918100, 0.15685332293894363, 0.11119051722668724, 0.050614268145188126]


def address_of(capsule):
    """Return the address of the C function in a capsule, and its signature or None."""
    cdef const char* name = PyCapsule_GetName(capsule)
    said = None if name == NULL else (<bytes>name).decode()
    return <size_t>PyCapsule_GetPointer(capsule, name), said


def slopes(
    size_t function, const double[::1] y, const double[::1] f, double[::1] gradient, double[::1] curvature
):
    """Call a C function for y and f (n,) to compute gradients and Hessians. OUT gradient, curvature (n,).
    """
    cdef Slopes called = <Slopes>function
    cdef Py_ssize_t i, n = y.shape[0]
    if f.shape[0] != n or gradient.shape[0] != n or curvature.shape[0] != n:
        raise ValueError("slopes: arrays of different sizes")
    with nogil:
        for i in range(n):
            called(y[i], f[i], &gradient[i], &curvature[i])


def values(size_t function, const double[::1] y, const double[::1] f, double[::1] value):
    """Call a C function for y and f (n,) to compute values. OUT value (n,)."""
    cdef Value called = <Value>function
    cdef Py_ssize_t i, n = y.shape[0]
    if f.shape[0] != n or value.shape[0] != n:
        raise ValueError("values: arrays of different sizes")
    with nogil:
        for i in range(n):
            value[i] = called(y[i], f[i])


def integrals(size_t function, const double[::1] y, const double[::1] f, double[::1] value):
    """Integrate the gradient from 0 to f by Gauss-Legendre quadrature. OUT value (n,)."""
    cdef Slopes called = <Slopes>function
    cdef Py_ssize_t i, n = y.shape[0]
    cdef double low, high, ignored, total
    cdef int k
    if f.shape[0] != n or value.shape[0] != n:
        raise ValueError("integrals: arrays of different sizes")
    with nogil:
        for i in range(n):
            total = 0.0
            for k in range(4):
                called(y[i], f[i] * _at[k], &low, &ignored)
                called(y[i], f[i] * (1.0 - _at[k]), &high, &ignored)
                total += _share[k] * (low + high)
            value[i] = f[i] * total


def leaf_steps(
    size_t function, const double[::1] y, const double[::1] f, const double[::1] weight,
    const int64_t[::1] count, double limit, double[:, ::1] room, double[::1] step
):
    """Find the step of each group of rows at which the sum of its gradients is 0. OUT step.

    Groups are consecutive rows; `count` contains their sizes. The sum of gradients must increase with the
    step. WORK room (2, n).
    """
    cdef Slopes called = <Slopes>function
    cdef Py_ssize_t g, start = 0, n = y.shape[0], total = 0
    for g in range(count.shape[0]):
        if count[g] < 1:
            raise ValueError("leaf_steps: groups without rows")
        total += count[g]
    if (f.shape[0] != n or weight.shape[0] != n or total != n or room.shape[0] != 2 or room.shape[1] != n
            or step.shape[0] != count.shape[0]):
        raise ValueError("leaf_steps: arrays of different sizes")
    with nogil:
        for g in range(count.shape[0]):
            step[g] = root(
                called, &y[start], &f[start], &weight[start], count[g], limit, &room[0, start],
                &room[1, start])
            start += count[g]


cdef double root(
    Slopes called, const double* y, const double* f, const double* weight, Py_ssize_t n, double limit,
    double* gradient, double* curvature
) noexcept nogil:
    """Find the root by Newton steps. If a step leaves the current bracket, bisect or extend the bracket."""
    cdef double at = 0.0, low = -limit, high = limit, following, moved, slope, bend, reach
    cdef bint inside
    cdef Py_ssize_t i
    cdef int round_
    for round_ in range(400):
        for i in range(n):
            called(y[i], f[i] + at, &gradient[i], &curvature[i])
            gradient[i] = weight[i] * gradient[i]
            curvature[i] = weight[i] * curvature[i]
        slope, bend = sum_of(gradient, n), sum_of(curvature, n)
        if not (slope < 0.0 or slope > 0.0):  # zero or NaN
            return at
        if slope < 0.0:
            low = at
        else:
            high = at
        if low == limit or high == -limit:
            return at
        following = at - slope / bend if bend > 0.0 else (INFINITY if slope < 0.0 else -INFINITY)
        inside = low < following < high
        if not inside:
            reach = 2.0 * fabs(at) + 1.0
            if -INFINITY < low and high < INFINITY:
                following = low + (high - low) / 2
            else:
                following = max(low, min(high, at + reach if slope < 0.0 else at - reach))
        moved = fabs(following - at)
        at = following
        if (inside and moved <= NEAR_STEP * max(fabs(at), TINY_STEP)) or high - low <= WIDTH * fabs(at):
            return at
    return at


cdef double sum_of(const double* terms, Py_ssize_t n) noexcept nogil:
    """Return a sum that does not depend on the order of the numbers."""
    cdef double most = 0.0, scale, total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        most = max(most, fabs(terms[i]))
    scale = scale_of(2.0 * most, n)
    for i in range(n):
        total += rint(terms[i] * scale)
    return total / scale
