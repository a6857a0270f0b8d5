# Scalar mathematics shared by the kernels: votes and split criteria.
from libc.math cimport INFINITY, log, log2, sqrt

cdef extern from *:
    """
    /* 0.5 ln(2**52): an exit that holds one class only has infinite log odds; its vote is clipped
       here, where the share of the other class would be one rounding error of the whole. */
    #define PBOOST_VOTE_LIMIT 18.021826694558577
    /* Relative width within which two splits count as equally good. */
    #define PBOOST_TIE 1e-12
    """
    const double VOTE_LIMIT "PBOOST_VOTE_LIMIT"
    const double TIE "PBOOST_TIE"

cdef enum:
    KEARNS_MANSOUR = 0
    GINI = 1
    ENTROPY = 2
    ERROR = 3


cdef inline double half_log_odds(double positive, double negative, double smoothing) noexcept nogil:
    """Half log odds of two masses, each raised by `smoothing`, clipped (Schapire & Singer 4.2)."""
    cdef double value
    if positive + smoothing <= 0.0 and negative + smoothing <= 0.0:
        return 0.0
    if positive + smoothing <= 0.0:
        return -VOTE_LIMIT
    if negative + smoothing <= 0.0:
        return VOTE_LIMIT
    value = 0.5 * log((positive + smoothing) / (negative + smoothing))
    return min(max(value, -VOTE_LIMIT), VOTE_LIMIT)


# Criteria as scores: functions of the two masses on each side, to be minimised. Each is concave
# and positively homogeneous in the masses, hence over a box of left masses it is least at a corner.
# Kearns-Mansour is kept as the square of half its value, which needs one root instead of two.

cdef inline double side_gini(double a, double b) noexcept nogil:
    return 4.0 * a * b / (a + b) if a + b > 0.0 else 0.0


cdef inline double side_entropy(double a, double b) noexcept nogil:
    cdef double total = a + b, value = 0.0
    if a > 0.0:
        value -= a * log2(a / total)
    if b > 0.0:
        value -= b * log2(b / total)
    return value


cdef inline double score(
    int criterion, double lp, double ln, double rp, double rn
) noexcept nogil:
    cdef double x, y
    if criterion == KEARNS_MANSOUR:
        x = lp * ln
        y = rp * rn
        return x + y + 2.0 * sqrt(x * y)
    if criterion == GINI:
        return side_gini(lp, ln) + side_gini(rp, rn)
    if criterion == ENTROPY:
        return side_entropy(lp, ln) + side_entropy(rp, rn)
    return 2.0 * min(lp, ln) + 2.0 * min(rp, rn)


# Left and right masses of cuts, as doubles. The right ones come from integer differences: near
# purity a rounding error of the whole mass would be magnified by the root.
cdef struct Masses:
    double* lp
    double* ln
    double* rp
    double* rn


cdef inline void score_many(
    int criterion, const Masses* m, Py_ssize_t shift_p, Py_ssize_t shift_n, Py_ssize_t n, double* out
) noexcept nogil:
    """Scores of `n` cuts; the branch stands outside so that loops are SIMD.

    Cut i takes the masses of class +1 from place i + shift_p, those of class -1 from i + shift_n.
    """
    cdef const double* lp = m.lp + shift_p
    cdef const double* rp = m.rp + shift_p
    cdef const double* ln = m.ln + shift_n
    cdef const double* rn = m.rn + shift_n
    cdef Py_ssize_t i
    if criterion == KEARNS_MANSOUR:
        for i in range(n):
            out[i] = score(KEARNS_MANSOUR, lp[i], ln[i], rp[i], rn[i])
    elif criterion == GINI:
        for i in range(n):
            out[i] = score(GINI, lp[i], ln[i], rp[i], rn[i])
    elif criterion == ENTROPY:
        for i in range(n):
            out[i] = score(ENTROPY, lp[i], ln[i], rp[i], rn[i])
    else:
        for i in range(n):
            out[i] = score(ERROR, lp[i], ln[i], rp[i], rn[i])


cdef inline double score_limit(int criterion, double best, double total) noexcept nogil:
    """The largest score that counts as equal to `best` where the whole mass is `total`."""
    cdef double root
    if best == INFINITY:
        return -1.0
    if criterion == KEARNS_MANSOUR:
        root = sqrt(best) + 0.5 * TIE * total
        return root * root
    return best + TIE * total
