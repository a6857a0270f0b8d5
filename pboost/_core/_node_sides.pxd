# Assignment of the rows of a node to its children: by threshold, missing value or set of categories.
from pboost._core._grower cimport Node, Tree, cells_of, size_of, width
from pboost._core._missing cimport count_known
from pboost._core._node_categories cimport WORDS
from pboost._core._segment cimport partition_by_code, partition_segment
from pboost._core._side cimport code_goes_right
from pboost._core.types cimport LEVELS, MAX_BINS, int32_t, int64_t, row_of, uint8_t, uint64_t


cdef inline int kind_of(const Tree* t, Py_ssize_t f) noexcept nogil:
    """Return the kind of a feature: see types.pxd."""
    return 0 if t.special == NULL else t.special[f]


cdef inline void sides_of_codes(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, Py_ssize_t place, uint8_t* above
) noexcept nogil:
    """Store the child of each bin code for the split of a node."""
    cdef Py_ssize_t code, n_bins = t.n_bins[f]
    for code in range(n_bins):
        if kind_of(t, f) & LEVELS:
            above[code] = t.subset[WORDS * e + (code >> 6)] >> (code & 63) & 1
        else:
            above[code] = <uint8_t>code_goes_right(<int>code, <int>place)
    if n_bins < MAX_BINS:
        above[n_bins] = t.node[e].missing == 1


cdef inline bint has_set(const Tree* t, Py_ssize_t e) noexcept nogil:
    """Return whether a node is split by a nonempty set. An empty set separates known from missing values.
    """
    cdef const uint64_t* subset = t.subset + WORDS * e
    return (kind_of(t, t.node[e].feature) & LEVELS
            and (subset[0] | subset[1] | subset[2] | subset[3]) != 0)


cdef inline Py_ssize_t mark_special(
    const Tree* t, Py_ssize_t e, Py_ssize_t place, int64_t* below
) noexcept nogil:
    """Assign the rows of a node to its children by a sorted feature with missing values or categories.

    Also partition the order of the feature. Return the number of left rows. OUT below: the class weights of
    the left rows, unless NULL.
    """
    cdef Py_ssize_t f = t.node[e].feature, n = size_of(t, e), n_below = 0, n_known, i
    cdef int32_t* order = t.order + f * t.n + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef Node* node = &t.node[e]
    cdef uint8_t[MAX_BINS] above
    cdef int32_t row
    if kind_of(t, f) & LEVELS:
        sides_of_codes(t, e, f, place, above)
        node.low, node.high = -has_set(t, e), -1
        for i in range(n):
            row = row_of(order[i])
            t.side[row] = above[codes[row]]
            n_below += 1 - above[codes[row]]
    else:
        n_known = count_known(t, e, f, order)
        if below == NULL:
            node.low = row_of(order[place - 1])
            node.high = row_of(order[place]) if place < n_known else -1
        for i in range(n_known):
            t.side[row_of(order[i])] = i >= place
        for i in range(n_known, n):
            t.side[row_of(order[i])] = node.missing == 1
        n_below = place if node.missing == 1 else place + n - n_known
    if below != NULL:
        below[0] = below[1] = 0
        for i in range(n):
            row = row_of(order[i])
            if not t.side[row]:
                below[t.label[row]] += t.fixed[row]
    partition_segment(order, n, t.side, t.spare)
    return n_below


cdef inline void note_cut(
    const Tree* t, Py_ssize_t e, Py_ssize_t place, uint8_t* above
) noexcept nogil:
    """Store the bins on both sides of a binned feature's threshold. OUT above: the child of each code."""
    cdef Py_ssize_t f = t.node[e].feature
    cdef Node* node = &t.node[e]
    sides_of_codes(t, e, f, place, above)
    node.low, node.high = -has_set(t, e), -1
    if not kind_of(t, f) & LEVELS and place + 1 < t.n_bins[f]:
        node.low, node.high = <int32_t>place, <int32_t>place + 1


cdef inline Py_ssize_t part_cells(const Tree* t, Py_ssize_t e, Py_ssize_t place) noexcept nogil:
    """Store the child of each code if the rows are on workers. Return the number of left rows."""
    cdef const int64_t* cells = cells_of(t, t.node[e].feature)
    cdef Py_ssize_t code, k = width(t)
    cdef int64_t n_below = 0
    note_cut(t, e, place, t.side)
    for code in range(t.n_codes):
        if not t.side[code]:
            n_below += cells[code * (k + 1) + k]
    return <Py_ssize_t>n_below


cdef inline Py_ssize_t part_special(const Tree* t, Py_ssize_t e, Py_ssize_t place) noexcept nogil:
    """Partition the rows of a node by a binned feature and return the number of left rows.

    The feature has missing values or categories.
    """
    cdef Py_ssize_t f = t.node[e].feature
    cdef Node* node = &t.node[e]
    cdef uint8_t[MAX_BINS] above
    note_cut(t, e, place, above)
    return partition_by_code(
        t.rows + node.start, size_of(t, e), t.codes + f * t.n_columns, above, t.spare)


cdef inline void mass_below(
    const Tree* t, Py_ssize_t e, Py_ssize_t f, Py_ssize_t place, int64_t* below
) noexcept nogil:
    """Sum the class weights of the rows to the left of a split of a sorted or binned feature."""
    cdef const int32_t* rows = (t.order + f * t.n if t.exact else t.rows) + t.node[e].start
    cdef const uint8_t* codes = t.codes + f * t.n_columns
    cdef uint8_t[MAX_BINS] above
    cdef bint is_special = kind_of(t, f) != 0
    cdef const int64_t* cells
    cdef Py_ssize_t i
    cdef int32_t row
    below[0] = below[1] = 0
    if is_special:
        sides_of_codes(t, e, f, place, above)
    if t.cells != NULL:
        cells = cells_of(t, f)
        for i in range(t.n_codes):
            if not (above[i] if is_special else code_goes_right(<int>i, <int>place)):
                below[0] += cells[3 * i]
                below[1] += cells[3 * i + 1]
        return
    for i in range(place if t.exact else size_of(t, e)):
        row = row_of(rows[i])
        if t.exact or not (above[codes[row]] if is_special
                           else code_goes_right(codes[row], <int>place)):
            below[t.label[row]] += t.fixed[row]
