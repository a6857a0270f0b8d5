"""A round of AdaBoost of probit trees: the rows on which it errs, their weights, and risks of leaves.

Rows are listed leaf after leaf, as `list_rows` lists them, or increasing where trees of several classes
are side by side. Sums are those of `sum_of`.
"""
from pboost._core._sum cimport sum_of
from pboost._core.types cimport int32_t

cdef extern from *:
    """
    /* Weights of boosting do not fall below this. */
    #define PBOOST_LEAST_WEIGHT 1e-300
    /* Beyond this size a value's square overflows. */
    #define PBOOST_FAR 1e150
    """
    const double LEAST_WEIGHT "PBOOST_LEAST_WEIGHT"
    const double FAR "PBOOST_FAR"


def put_beside(
    const double[:, ::1] values, const int32_t[::1] listed, const int32_t[::1] place, Py_ssize_t k,
    double[:, ::1] out,
):
    """out[place[row], k] = the value at each listed row; IN values (n, 1), place (rows of X,)."""
    cdef Py_ssize_t i, n = listed.shape[0]
    if values.shape[0] < n or out.shape[0] < n or not 0 <= k < out.shape[1]:
        raise ValueError("put_beside: arrays of different sizes")
    with nogil:
        for i in range(n):
            out[place[listed[i]], k] = values[i, 0]


cdef inline int32_t chosen(const double* value, Py_ssize_t k) noexcept nogil:
    """The class of largest value, the first of equal ones."""
    cdef Py_ssize_t i, best = 0
    if k == 1:
        return value[0] > 0.0
    for i in range(1, k):
        if value[i] > value[best]:
            best = i
    return <int32_t>best


def mistakes(
    const double[:, ::1] values, const int32_t[::1] listed, const int32_t[::1] label,
    const double[::1] weight, int32_t[::1] wrong, double[::1] work,
):
    """List the rows on which values (n, K) err; returns their number and the sum of their weights.

    IN label, weight (rows of X,); OUT wrong (n,); WORK work (n,).
    """
    cdef Py_ssize_t i, n = listed.shape[0], k = values.shape[1], found = 0
    cdef int32_t row
    cdef double error = 0.0
    if (values.shape[0] < n or wrong.shape[0] < n or work.shape[0] < n
            or label.shape[0] != weight.shape[0]):
        raise ValueError("mistakes: arrays of different sizes")
    if n == 0:
        return 0, 0.0
    with nogil:
        for i in range(n):
            row = listed[i]
            wrong[found], work[found] = row, weight[row]
            found += chosen(&values[i, 0], k) != label[row]
        if found:
            error = sum_of(&work[0], found)
    return found, error


def normalise(double[::1] weight, const int32_t[::1] rows, double[::1] work):
    """Divide the weights of the rows by their sum; WORK work (n,)."""
    cdef Py_ssize_t i, n = rows.shape[0]
    cdef double total
    if n == 0 or work.shape[0] < n:
        raise ValueError("normalise: arrays of different sizes")
    with nogil:
        for i in range(n):
            work[i] = weight[rows[i]]
        total = sum_of(&work[0], n)
        for i in range(n):
            weight[rows[i]] /= total


def raise_weights(
    double[::1] weight, const int32_t[::1] rows, const int32_t[::1] wrong, Py_ssize_t n_wrong,
    double factor,
):
    """Multiply the weights of the first of `wrong`, and make the largest of all rows 1.

    None becomes less than LEAST_WEIGHT.
    """
    cdef Py_ssize_t i, n = rows.shape[0]
    cdef double most = 0.0
    if not 0 <= n_wrong <= wrong.shape[0]:
        raise ValueError("raise_weights: arrays of different sizes")
    with nogil:
        for i in range(n_wrong):
            weight[wrong[i]] *= factor
        for i in range(n):
            most = max(most, weight[rows[i]])
        for i in range(n):
            weight[rows[i]] = max(weight[rows[i]] / most, LEAST_WEIGHT)


def margins(
    const double[:, ::1] values, const int32_t[::1] listed, const int32_t[::1] label,
    double[::1] out,
):
    """Values (n, K) for the class of each row, their negatives for others; OUT out (n * K,)."""
    cdef Py_ssize_t i, j, n = listed.shape[0], k = values.shape[1]
    cdef int32_t own
    cdef double here
    if values.shape[0] < n or out.shape[0] < n * k:
        raise ValueError("margins: arrays of different sizes")
    with nogil:
        for i in range(n):
            own = label[listed[i]]
            for j in range(k):
                here = max(-FAR, min(FAR, values[i, j]))
                out[i * k + j] = here if own == (1 if k == 1 else j) else -here


def mean_losses(
    const double[::1] loss, const int32_t[::1] listed, const int32_t[::1] starts,
    const double[::1] weight, double[:, ::1] work, double[:, ::1] out,
):
    """Means over the rows of each leaf of losses (n * K,); WORK work (2, n); OUT out (leaves, K)."""
    cdef Py_ssize_t n = listed.shape[0], k = out.shape[1], leaves = starts.shape[0] - 1
    cdef Py_ssize_t i, j, l, start, m
    cdef double* share = &work[0, 0]
    cdef double* term = &work[1, 0]
    cdef double most, total
    if (loss.shape[0] < n * k or out.shape[0] != leaves or starts[leaves] > n
            or work.shape[0] != 2 or work.shape[1] < n):
        raise ValueError("mean_losses: arrays of different sizes")
    with nogil:
        for l in range(leaves):
            start, m, most = starts[l], starts[l + 1] - starts[l], 0.0
            for i in range(m):
                share[i] = weight[listed[start + i]]
                most = max(most, share[i])
            for i in range(m):
                share[i] /= most
            total = share[0] + sum_of(share + 1, m - 1)
            for j in range(k):
                for i in range(m):
                    term[i] = loss[(start + i) * k + j] * share[i]
                out[l, j] = (term[0] + sum_of(term + 1, m - 1)) / total
