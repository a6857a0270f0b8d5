# Sums of doubles whose rounding errors grow with the logarithm of their number.

cdef enum:
    LANES = 8
cdef enum:
    PART = 128  # summed up without halving


cdef inline double sum_part(const double* a, Py_ssize_t n) noexcept nogil:
    cdef double[LANES] r
    cdef double total = -0.0
    cdef Py_ssize_t i, j, full = n - n % LANES
    if n < LANES:
        for i in range(n):
            total += a[i]
        return total
    for j in range(LANES):
        r[j] = a[j]
    i = LANES
    while i < full:
        for j in range(LANES):
            r[j] += a[i + j]
        i += LANES
    total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    for i in range(full, n):
        total += a[i]
    return total


cdef inline double sum_of(const double* a, Py_ssize_t n) noexcept nogil:
    """The sum, its terms added in the order of NumPy's `sum`: by halves, then in eight lanes."""
    cdef Py_ssize_t half
    if n <= PART:
        return sum_part(a, n)
    half = n // 2
    half -= half % LANES
    return sum_of(a, half) + sum_of(a + half, n - half)
