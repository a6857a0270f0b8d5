# Gradients and Hessians packed into words, for cases that boost_loss.h and boost_packed.h do not cover.
from libc.math cimport fabs, floor, rint
from libc.string cimport memcpy

from pboost._core._boost_histogram cimport word
from pboost._core._boost_leaf cimport Rows
from pboost._core._boost_round cimport LOW_UNIT, Node, Round
from pboost._core.types cimport int32_t, int64_t

cdef extern from "boost_packed.h" nogil:
    double bend_of "pboost_bend"(double size, double per_limit)


cdef inline void unfold(const Round* r, const Rows* rows, const double* residual) noexcept nogil:
    """Compute the gradients and Hessians of all rows from the softmax gradients of one class."""
    cdef double* gradient = <double*>r.packed
    cdef double* curvature = <double*>r.spare_packed
    cdef double w
    cdef Py_ssize_t i
    for i in range(r.n_rows):
        w = 1.0 if rows.weight == NULL or rows.are_copies else rows.weight[i]
        gradient[i] = w * residual[i]
        curvature[i] = w * bend_of(fabs(residual[i]), rows.per_limit)


cdef inline int64_t wide_word(double gradient, double curvature, double copies, bint is_low) noexcept nogil:
    """Return the first or second packed word of a row from its scaled gradient and Hessian."""
    cdef double g = rint(gradient) * copies, h = max(rint(curvature), 1.0) * copies
    cdef double first_g = rint(g / LOW_UNIT), first_h = floor(h / LOW_UNIT)
    return word(g - first_g * LOW_UNIT, h - first_h * LOW_UNIT) if is_low else word(first_g, first_h)


cdef inline void pack_wide(const Round* r, double gradient_scale, double curvature_scale) noexcept nogil:
    """Replace the gradient and Hessian of each row by two packed words."""
    cdef const double* gradient = <const double*>r.packed
    cdef const double* curvature = <const double*>r.spare_packed
    cdef double g, h, copies
    cdef Py_ssize_t i
    for i in range(r.n_rows):
        g, h = gradient[i] * gradient_scale, curvature[i] * curvature_scale
        copies = 1.0 if r.copies == NULL else r.copies[i]
        r.low[i] = wide_word(g, h, copies, True)
        r.spare_packed[i] = wide_word(g, h, copies, False)
    memcpy(r.packed, r.spare_packed, sizeof(int64_t) * r.n_rows)


cdef inline double copies_in(const Round* r, const Node* node) noexcept nogil:
    """Return the total number of copies of a node's rows."""
    cdef double found = node.stop - node.start
    cdef Py_ssize_t i
    if r.copies != NULL:
        found = 0.0
        for i in range(node.start, node.stop):
            found += r.copies[r.rows[i]]
    return found
