# Passes over the rows of a boosting round. Each thread processes ranges of rows.
#
# Only maxima and sums of integers are computed, so results do not depend on the order of the ranges.
from pboost._core._boost_leaf cimport Far, Leaf, LossPasses, Rows, no_far, rows_from, take_far
from pboost._core._boost_round cimport Node, Round, add_to, gather, gather_two
from pboost._core._boost_packed cimport pack_wide, unfold
from pboost._core._team cimport lock, run_ranges, unlock
from pboost._core.types cimport int32_t, int64_t

cdef struct Slopes:
    const Rows* rows
    const LossPasses* passes
    double scale
    double* gradient
    double* curvature
    Far far
    double[3] found
    int32_t in_hand


cdef inline void far_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Slopes* all = <Slopes*>task
    cdef Rows own = rows_from(all.rows, start)
    cdef Far far
    all.passes.farthest(&own, stop - start, &far)
    lock(&all.in_hand)
    take_far(all.rows, &all.far, &far)
    unlock(&all.in_hand)


cdef inline void slopes_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Slopes* all = <Slopes*>task
    cdef Rows own = rows_from(all.rows, start)
    cdef double[3] found
    all.passes.slopes(
        &own, stop - start, all.scale, all.gradient + start, all.curvature + start, found)
    lock(&all.in_hand)
    all.found[0] = max(all.found[0], found[0])
    all.found[1] = max(all.found[1], found[1])
    all.found[2] += found[2]
    unlock(&all.in_hand)


cdef struct Pack:
    const Round* r
    const LossPasses* passes
    double gradient_scale, curvature_scale
    int64_t* words


cdef inline void pack_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Pack the gradients and Hessians of a range of all rows."""
    cdef Pack* all = <Pack*>task
    all.passes.pack(
        all.r.packed + start, <const double*>all.r.spare_packed + start,
        NULL if all.r.copies == NULL else all.r.copies + start, NULL, stop - start,
        all.gradient_scale, all.curvature_scale, all.words + start)


cdef inline void pack_rows(
    const Round* r, const LossPasses* passes, double gradient_scale, double curvature_scale, int64_t* words
) noexcept nogil:
    """Pack the gradients and Hessians, see `pack_all`."""
    cdef Pack pack
    if r.low != NULL:
        pack_wide(r, gradient_scale, curvature_scale)
    elif r.n < r.n_rows and words == r.packed:  # use one thread, because words overwrite other gradients
        passes.pack(
            r.packed, <const double*>r.spare_packed, r.copies, r.rows, r.n, gradient_scale,
            curvature_scale, words)
    else:
        pack.r, pack.passes, pack.words = r, passes, words
        pack.gradient_scale, pack.curvature_scale = gradient_scale, curvature_scale
        run_ranges(r.team, 0, r.n_rows, r.share, pack_part, &pack)


cdef inline void pack_all(
    const Round* r, const Rows* rows, const double* residual, const LossPasses* passes,
    double gradient_scale, double curvature_scale, int64_t* words
) noexcept nogil:
    """Pack rows from their gradients and Hessians, or from the softmax gradients of one class.

    If `words` is `r.packed`, the words of the listed rows replace the gradients. Otherwise, all rows are packed.
    """
    cdef bint are_all = r.n == r.n_rows or words != r.packed
    if residual != NULL and r.low == NULL:
        passes.words(
            residual, rows.weight, rows.are_copies, NULL if are_all else r.rows, r.n_rows if are_all else r.n,
            rows.per_limit, gradient_scale, curvature_scale, words)
        return
    if residual != NULL:
        unfold(r, rows, residual)
    pack_rows(r, passes, gradient_scale, curvature_scale, words)


# The leaf values of a tree in preorder, and the rows to which they are added.
cdef struct Added:
    const Round* r
    const Node* node
    Py_ssize_t n
    double* f


cdef inline void add_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Added* all = <Added*>task
    cdef Py_ssize_t e, first, last
    for e in range(all.n):
        first, last = max(start, all.node[e].start), min(stop, all.node[e].stop)
        if all.node[e].feature < 0 and first < last:
            add_to(all.f, all.r.rows + first, last - first, all.node[e].mean)


# A work area for the rows of one leaf: their `y`, `f` and `weight`.
cdef struct Gather:
    Leaf* leaf
    const Rows* rows
    const int32_t* listed
    double* y
    double* f
    double* weight
    int32_t in_hand


cdef inline void gather_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Gather* all = <Gather*>task
    cdef Leaf* leaf = all.leaf
    cdef double heaviest = 1.0, n_copies = stop - start
    cdef Rows own
    cdef Far far
    cdef Py_ssize_t i
    gather_two(
        all.rows.y, all.rows.f, all.listed + start, stop - start, all.y + start, all.f + start)
    if all.weight != NULL:
        gather(all.rows.weight, all.listed + start, stop - start, all.weight + start)
        if all.rows.are_copies:
            n_copies = 0.0
            for i in range(start, stop):
                n_copies += all.weight[i]
        else:
            heaviest = 0.0
            for i in range(start, stop):
                heaviest = max(heaviest, all.weight[i])
    own = rows_from(&leaf.rows, start)
    leaf.passes.farthest(&own, stop - start, &far)
    lock(&all.in_hand)
    leaf.step.heaviest = max(leaf.step.heaviest, heaviest)
    leaf.step.n_copies += <int64_t>n_copies
    take_far(all.rows, &leaf.far, &far)
    unlock(&all.in_hand)


cdef inline void gather_leaf(
    const Round* r, const Rows* rows, Leaf* leaf, Gather* gather, Py_ssize_t start, Py_ssize_t place,
    double* weight, Py_ssize_t n
) noexcept nogil:
    """Prepare to copy n listed rows of a leaf, beginning at `start`, and set the other fields of the leaf.

    The rows are stored at `place` in the arrays of packed words, which are no longer needed. `weight`
    receives the weights; NULL means that all are 1.
    """
    gather.leaf, gather.rows, gather.listed, gather.in_hand = leaf, rows, r.rows + start, 0
    gather.y, gather.f, gather.weight = <double*>r.packed + place, <double*>r.spare_packed + place, NULL
    if weight != NULL:
        gather.weight = weight + place
    leaf.rows = rows[0]
    leaf.rows.y, leaf.rows.f, leaf.rows.weight = gather.y, gather.f, gather.weight
    leaf.n, leaf.share, leaf.team = n, r.share, r.team if n >= 2 * r.share else NULL
    leaf.step.heaviest, leaf.far, leaf.step.n_copies = 0.0, no_far(rows), 0
