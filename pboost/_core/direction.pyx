"""How well a noisy projection separates two classes, and which pairs of columns are worth a look.

Z (k, n): columns, one after the other; rows 0..n_negative-1 are class -1. Weights (n,) >= 0.
A row goes above the threshold with probability S(z), z = (a x - threshold) / sigma, S the
distribution function of Student's t with two degrees of freedom: (1 + z / sqrt(2 + z^2)) / 2. It takes
no exponential, and is the same to the last bit on every machine.
"""
from libc.math cimport INFINITY, sqrt

cdef enum:
    BLOCK = 64
    CELLS = 64

# What a mass counts at least in a derivative, as a share of all weight.
cdef double LEAST = 1e-12
# Units of noise from the threshold that are as good as infinitely many.
cdef double FAR = 1e100
# Standard deviations from the mean at which the first and the last cell end.
cdef double REACH = 3.0


cdef void project_rows(
    const double* Z, Py_ssize_t stride, Py_ssize_t k, const double* a, Py_ssize_t start,
    Py_ssize_t rows, double* out
) noexcept nogil:
    cdef Py_ssize_t j, r
    for r in range(rows):
        out[r] = 0.0
    for j in range(k):
        for r in range(rows):
            out[r] += a[j] * Z[j * stride + start + r]


cdef double add_product(const double* x, const double* y, Py_ssize_t rows) noexcept nogil:
    """Scalar product in four running sums, which the compiler may keep in one register."""
    cdef double[4] part
    cdef Py_ssize_t r, q
    for q in range(4):
        part[q] = 0.0
    for r in range(0, rows - 3, 4):
        for q in range(4):
            part[q] += x[r + q] * y[r + q]
    for r in range(rows - rows % 4, rows):
        part[0] += x[r] * y[r]
    return (part[0] + part[1]) + (part[2] + part[3])


cdef void masses_above(
    const double* Z, const double* weight, Py_ssize_t n, Py_ssize_t k, Py_ssize_t n_negative,
    const double* a, double threshold, double sigma, double* slope, double* mass
) noexcept nogil:
    """Expected masses (class -1, +1) above; slope: weight times derivative of S, by row."""
    cdef double[BLOCK] z
    cdef double root, above
    cdef Py_ssize_t start, r, rows
    mass[0] = mass[1] = 0.0
    start = 0
    while start < n:
        rows = min(<Py_ssize_t>BLOCK, n - start)
        project_rows(Z, n, k, a, start, rows, z)
        for r in range(rows):
            # Farther away there is nothing to see, and squares would not be finite.
            z[r] = min(max((z[r] - threshold) / sigma, -FAR), FAR)
            root = 1.0 / sqrt(2.0 + z[r] * z[r])
            z[r] = weight[start + r] * (0.5 + 0.5 * z[r] * root)
            slope[start + r] = weight[start + r] * root * root * root / sigma
        for r in range(rows):
            mass[start + r >= n_negative] += z[r]
        start += rows


def loss(
    const double[:, ::1] Z, const double[::1] weight, Py_ssize_t n_negative,
    const double[::1] point, double sigma, double[::1] slope, double[::1] gradient,
):
    """Kearns-Mansour criterion of the noisy projection, and its gradient.

    point (k + 1,): coefficients, then the threshold; WORK slope (n,); OUT gradient (k + 1,). Weights
    sum to 1.
    """
    cdef Py_ssize_t k = Z.shape[0], n = Z.shape[1], j
    cdef double[2] above
    cdef double[2] below
    cdef double[2] by_mass
    cdef double value
    cdef double[2] total
    if (weight.shape[0] != n or slope.shape[0] != n or point.shape[0] != k + 1
            or gradient.shape[0] != k + 1 or not 0 < n_negative < n or k < 1):
        raise ValueError("loss: arrays of different sizes")
    with nogil:
        total[0] = total[1] = 0.0
        for j in range(n):
            total[j >= n_negative] += weight[j]
        masses_above(&Z[0, 0], &weight[0], n, k, n_negative, &point[0], point[k], sigma,
                     &slope[0], above)
        for j in range(2):
            above[j] += LEAST
            below[j] = total[j] - above[j] + 2.0 * LEAST
        value = 2.0 * sqrt(above[0] * above[1]) + 2.0 * sqrt(below[0] * below[1])
        for j in range(2):
            by_mass[j] = sqrt(above[1 - j] / above[j]) - sqrt(below[1 - j] / below[j])
        for j in range(n):
            slope[j] *= by_mass[j >= n_negative]
        gradient[k] = 0.0
        for j in range(n):
            gradient[k] -= slope[j]
        for j in range(k):
            gradient[j] = add_product(&Z[j, 0], &slope[0], n)
    return value


def screen(
    const double[:, ::1] Z, const double[::1] weight, Py_ssize_t n_negative, const int[:, ::1] pair,
    const double[:, ::1] angle, double[::1] best, double[::1] at, int[::1] which,
):
    """Least Kearns-Mansour criterion of pairs of columns at given angles, on cells of equal width.

    pair (m, 2): columns; angle (q, 2): cosine and sine. OUT best (m,), the least criterion; at
    (m,), the threshold there; which (m,), the angle.
    """
    cdef Py_ssize_t n = Z.shape[1], p, q, r
    cdef double[2][CELLS] cell
    cdef double scale = CELLS / (2.0 * REACH), v, score, threshold
    cdef int c
    if (weight.shape[0] != n or best.shape[0] != pair.shape[0] or at.shape[0] != pair.shape[0]
            or which.shape[0] != pair.shape[0]):
        raise ValueError("screen: arrays of different sizes")
    with nogil:
        for p in range(pair.shape[0]):
            best[p] = INFINITY
            for q in range(angle.shape[0]):
                for c in range(CELLS):
                    cell[0][c] = cell[1][c] = 0.0
                for r in range(n):
                    v = angle[q, 0] * Z[pair[p, 0], r] + angle[q, 1] * Z[pair[p, 1], r]
                    v = min(max((v + REACH) * scale, 0.0), CELLS - 1.0)
                    cell[r >= n_negative][<int>v] += weight[r]
                score = least_cut(cell[0], cell[1], &c)
                if score < best[p]:
                    best[p] = score
                    which[p] = <int>q
                    at[p] = (c + 1) / scale - REACH


cdef double least_cut(const double* negative, const double* positive, int* at) noexcept nogil:
    """Least criterion of a cut between cells, which lies above cell `at`."""
    cdef double n = 0.0, p = 0.0, below_n = 0.0, below_p = 0.0, value, least = INFINITY
    cdef int c
    for c in range(CELLS):
        n += negative[c]
        p += positive[c]
    at[0] = 0
    for c in range(CELLS - 1):
        below_n += negative[c]
        below_p += positive[c]
        value = (2.0 * sqrt(below_n * below_p)
                 + 2.0 * sqrt(max(n - below_n, 0.0) * max(p - below_p, 0.0)))
        if value < least:
            least, at[0] = value, c
    return least
