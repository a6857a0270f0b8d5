# The split of a node: the best split of all features of any kind.
from libc.math cimport INFINITY

from pboost._core._grower cimport Found, Tree, judge_of
from pboost._core._missing cimport scan_column_with_holes
from pboost._core._node_categories cimport scan_levels
from pboost._core._node_costs cimport worth_most
from pboost._core._node_sides cimport kind_of
from pboost._core._scan cimport pack_rows, scan_column
from pboost._core.split cimport Judge, limit_of
from pboost._core.types cimport LEVELS, int32_t, int64_t


cdef inline Py_ssize_t scan(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, double limit, double found, double* best,
    int64_t* work, int64_t* below, Found* kept,
) noexcept nogil:
    """Search like `scan_column`, for any kind of feature.

    A better split by a categorical feature invalidates `kept`.
    """
    cdef int kind = kind_of(t, f)
    cdef Py_ssize_t place
    if kind == 0:
        return scan_column(t, e, f, limit, found, best, work, below, kept)
    if not kind & LEVELS:
        return scan_column_with_holes(t, e, f, limit, found, best, work, below, kept)
    place = scan_levels(t, e, f, limit, best, work, below)
    if kept != NULL and best[0] < kept.score:
        kept.node, kept.score = -1, best[0]
    return place


cdef inline double search_columns(
    const Tree* t, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, double found, int64_t* work,
    Found* kept,
) noexcept nogil:
    """Search the picked features first..last-1. Return the least of `found` and their scores.

    Splits that score above `found` may be ignored. `kept`: as in `scan_column`, or NULL.
    """
    cdef Py_ssize_t i
    cdef bint has_costs = t.item != NULL  # with costs, the best split may not have the least score
    if kept != NULL:
        kept.node, kept.score = -1, INFINITY
    for i in range(first, last):
        t.best[i] = INFINITY
        scan(t, e, t.picked[i], -INFINITY, INFINITY if has_costs else found, &t.best[i], work, NULL,
             kept)
        found = min(found, t.best[i])
    return found


cdef inline bint choose(Tree* t, Py_ssize_t e, Py_ssize_t n_picked) noexcept nogil:
    """Choose the feature of a node's split, and the score limit. Return False if there is no split."""
    cdef Judge at = judge_of(t, e, t.work)
    cdef Py_ssize_t i
    cdef int32_t f = -1
    cdef double found = INFINITY, limit
    for i in range(n_picked):
        found = min(found, t.best[i])
    if found == INFINITY:
        return False
    limit = limit_of(&at, found)
    if t.item != NULL:
        i = worth_most(t, e, &at, n_picked)
        f, limit = t.picked[i], limit_of(&at, t.best[i])
    else:
        for i in range(n_picked):
            if t.best[i] <= limit and (f < 0 or t.picked[i] < f):
                f = t.picked[i]
    t.node[e].feature, t.node[e].limit = f, limit
    return True


cdef inline Py_ssize_t cut_of(
    const Tree* t, Py_ssize_t e, const Found* kept, int64_t* below
) noexcept nogil:
    """Return the place of the split chosen by `choose`. OUT below: sums of the left child."""
    cdef Py_ssize_t f = t.node[e].feature, place
    cdef double ignored = INFINITY
    if kept.node == e and kept.feature == f:
        below[0], below[1], t.node[e].missing = kept.below[0], kept.below[1], kept.missing
        return kept.place
    pack_rows(t, e)
    t.node[e].missing = -1
    place = scan(t, e, f, t.node[e].limit, INFINITY, &ignored, t.work, below, NULL)
    if place < 0:  # if rounding errors hide the split, use any split
        place = scan(t, e, f, INFINITY, INFINITY, &ignored, t.work, below, NULL)
    return place
