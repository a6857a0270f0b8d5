"""Random draws of rows for boosted trees: rows are drawn by a hash of their contents.

See `RowDraws` in data/row_draws.py. A tree is grown on the drawn rows, and its leaf values are computed from
all rows: see `Rounds` in trees/tree_rounds.py, whose arrays are used during one call. Rows that a tree was not
grown on are partitioned by its splits.
"""
from libc.string cimport memcpy, memmove, memset

import numpy as np

from pboost._core._address cimport to_read, to_write
from pboost._core._boost_grow cimport part_others, sum_nodes, sum_words
from pboost._core._boost_read cimport read_round
from pboost._core._boost_round cimport Node, Passes, ROOM, Round, add_to
from pboost._core._rng cimport draw_bits, mix
from pboost._core._team cimport SHARE, Threads, run_ranges, team_at
from pboost._core.boost cimport choose_passes
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t

cdef Passes passes = choose_passes(2)


cdef struct Draw:
    const uint64_t* hashes
    const int32_t* rows
    uint64_t key
    uint64_t limit
    int32_t* drawn
    int64_t* counts  # number of drawn rows in each range of SHARE rows, or in the only range


cdef void draw_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """List the drawn rows of a range, from position `start` on."""
    cdef Draw* all = <Draw*>task
    cdef Py_ssize_t i, k = start
    for i in range(start, stop):
        all.drawn[k] = all.rows[i]
        k += mix(all.hashes[all.rows[i]] ^ all.key) < all.limit
    all.counts[start // SHARE] = k - start


def draw(
    const uint64_t[::1] hashes, const int32_t[::1] rows, uint64_t seed, uint64_t number, uint64_t limit,
    int32_t[::1] drawn, size_t team
):
    """List the rows of a draw, whose mixed hash is below a limit; return how many there are.

    IN hashes (n_rows,); rows (n,). OUT drawn (n,): the drawn rows first, in the order of `rows`.
    """
    cdef Draw all
    cdef Py_ssize_t n = rows.shape[0], i, k = 0
    cdef int64_t[::1] counts = np.zeros(n // SHARE + 1, dtype=np.int64)
    if drawn.shape[0] != n:
        raise ValueError("draw: arrays of different sizes")
    if n == 0:
        return 0
    all.hashes, all.rows, all.key, all.limit = &hashes[0], &rows[0], draw_bits(mix(seed), number), limit
    all.drawn, all.counts = &drawn[0], &counts[0]
    with nogil:
        run_ranges(team_at(team), 0, n, SHARE, draw_part, &all)
        for i in range(counts.shape[0]):
            memmove(all.drawn + k, all.drawn + i * SHARE, counts[i] * sizeof(int32_t))
            k += counts[i]
    return k


cdef struct LeaveOut:
    const int32_t* rows
    const int32_t* used  # NULL if words are in the order of all rows
    int64_t* words
    int64_t* low
    int64_t* all_words
    int64_t* all_low
    Py_ssize_t n_rows


cdef Py_ssize_t first_from(const int32_t* rows, Py_ssize_t n, int32_t row) noexcept nogil:
    """Return the number of rows below `row` in an increasing list."""
    cdef Py_ssize_t low = 0, middle
    while low < n:
        middle = (low + n) // 2
        if rows[middle] < row:
            low = middle + 1
        else:
            n = middle
    return low


cdef void leave_out_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef LeaveOut* all = <LeaveOut*>task
    cdef int32_t row = <int32_t>start if all.used == NULL else all.used[start]
    cdef Py_ssize_t i, k = first_from(all.rows, all.n_rows, row)
    cdef int64_t is_in
    for i in range(start, stop):
        row = <int32_t>i if all.used == NULL else all.used[i]
        is_in = k < all.n_rows and all.rows[k] == row
        k += is_in
        all.all_words[row] = all.words[i]
        all.words[i] &= -is_in
        if all.low != NULL:
            all.all_low[row] = all.low[i]
            all.low[i] &= -is_in


def leave_out(arrays, const int32_t[::1] rows):
    """Copy all words to `all_packed` and `all_low`, and set the words of rows that are not listed to 0.

    IN rows (m,), in increasing order.
    """
    cdef LeaveOut all
    cdef Py_ssize_t n = arrays.codes.shape[1], share = arrays.share
    cdef Threads* team = team_at(arrays.team)
    all.rows, all.n_rows = &rows[0] if rows.shape[0] else NULL, rows.shape[0]
    all.used, all.low, all.all_low = NULL, NULL, NULL
    all.words = <int64_t*>to_write(arrays.packed, sizeof(int64_t))
    all.all_words = <int64_t*>to_write(arrays.all_packed, sizeof(int64_t))
    if arrays.is_wide:  # words are in the order of all rows
        all.low = <int64_t*>to_write(arrays.low, sizeof(int64_t))
        all.all_low = <int64_t*>to_write(arrays.all_low, sizeof(int64_t))
    elif arrays.n_used < n:
        n, all.used = arrays.n_used, <const int32_t*>to_read(arrays.used_rows, sizeof(int32_t))
    with nogil:
        run_ranges(team, 0, n, share, leave_out_part, &all)


# Data for threads that separate the drawn rows from the other rows.
cdef struct Sift:
    const int32_t* drawn
    const int32_t* used  # NULL if all rows are used
    const int64_t* all_words
    int64_t* words  # NULL with wide sums, whose words stay in place
    int32_t* others
    uint8_t* is_drawn
    Py_ssize_t n_drawn


cdef void sift_part(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """List the rows of a range that were not drawn, and collect the words of the drawn rows."""
    cdef Sift* all = <Sift*>task
    cdef Py_ssize_t row = start if all.used == NULL else all.used[start]
    cdef Py_ssize_t end = (stop if all.used == NULL else all.used[stop - 1] + 1)
    cdef Py_ssize_t i, first = first_from(all.drawn, all.n_drawn, <int32_t>row), last, k = start - first
    last = first_from(all.drawn, all.n_drawn, <int32_t>end)
    memset(all.is_drawn + row, 0, end - row)
    for i in range(first, last):
        all.is_drawn[all.drawn[i]] = 1
    i = start
    while k < stop - last:  # a drawn row is overwritten by the next row; the next range begins at stop - last
        row = i if all.used == NULL else all.used[i]
        all.others[k] = <int32_t>row
        k += 1 - all.is_drawn[row]
        i += 1
    if all.words != NULL:
        for i in range(first, last):
            all.words[i] = all.all_words[all.drawn[i]]


def keep(arrays, const int32_t[::1] rows):
    """Prepare the growth of a tree on the drawn rows alone.

    IN rows (m,), in increasing order, fewer than all; all_packed: the words of all rows. OUT `packed`: the
    words of the drawn rows; `others`: the rows that were not drawn. WORK spare. Wide words stay in place and
    are copied to `all_packed` and `all_low`.
    """
    cdef Sift all
    cdef Py_ssize_t n = arrays.codes.shape[1], share = arrays.share
    cdef Threads* team = team_at(arrays.team)
    all.drawn, all.n_drawn = &rows[0] if rows.shape[0] else NULL, rows.shape[0]
    all.used, all.words = NULL, NULL
    all.others = <int32_t*>to_write(arrays.others, sizeof(int32_t))
    all.is_drawn = <uint8_t*>to_write(arrays.spare, sizeof(int32_t))
    all.all_words = <const int64_t*>to_read(arrays.all_packed, sizeof(int64_t))
    if arrays.n_used < n:
        n, all.used = arrays.n_used, <const int32_t*>to_read(arrays.used_rows, sizeof(int32_t))
    if arrays.is_wide:
        arrays.all_packed[:], arrays.all_low[:] = arrays.packed, arrays.low
    else:
        all.words = <int64_t*>to_write(arrays.packed, sizeof(int64_t))
    with nogil:
        run_ranges(team, 0, n, share, sift_part, &all)


cdef void join_rows(const Round* r, const int32_t* others, const int32_t* spans, Py_ssize_t n) noexcept nogil:
    """Join the two sets of rows of each node. Nodes are in the same order in both lists."""
    cdef Py_ssize_t e, size, more
    cdef Node* node
    for e in range(r.state.nodes):
        node = r.node + e
        size, more = node.stop - node.start, spans[2 * e + 1] - spans[2 * e]
        node.start += spans[2 * e]
        node.stop += spans[2 * e + 1]
        if node.child < 0:
            memcpy(r.spare + node.start, r.rows + node.start - spans[2 * e], sizeof(int32_t) * size)
            memcpy(r.spare + node.start + size, others + spans[2 * e], sizeof(int32_t) * more)
    memcpy(r.rows, r.spare, sizeof(int32_t) * n)


def insert_others(arrays):
    """Insert the rows that were not drawn, `others`, in the nodes of a tree that was grown on the drawn rows.

    Then each node has all of its rows, as if the tree had been grown on all rows with words of 0 for some.
    WORK others, spare, spare_packed.
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Py_ssize_t n = arrays.n_used - r.n
    cdef int32_t* others = <int32_t*>to_write(arrays.others, sizeof(int32_t))
    cdef int32_t[::1] spans = np.empty(2 * r.state.nodes, dtype=np.int32)
    with nogil:
        part_others(&r, r.state.nodes, NULL, others, n, &spans[0])
        join_rows(&r, others, &spans[0], n + r.n)


def add_others(
    arrays, nodes, const int32_t[:, ::1] children, const uint64_t[:, ::1] subset, const int64_t[::1] rows
):
    """Add the leaf values of a tree in preorder to the decision values of rows that it was not grown on.

    WORK spare.
    """
    cdef Round r = read_round(arrays, &passes)
    cdef Py_ssize_t n = rows.shape[0], n_nodes = len(nodes), i, e
    cdef int32_t[::1] others = np.zeros(n + ROOM, dtype=np.int32)
    cdef int32_t[::1] spans = np.empty(2 * n_nodes, dtype=np.int32)
    cdef double* f = <double*>to_write(arrays.f, sizeof(double))
    r.node = <Node*>to_write(nodes, sizeof(Node))
    r.subset = <uint64_t*>&subset[0, 0] if subset.shape[0] else NULL
    with nogil:
        for i in range(n):
            others[i] = <int32_t>rows[i]
        part_others(&r, n_nodes, &children[0, 0], &others[0], n, &spans[0])
        for e in range(n_nodes):
            if r.node[e].feature < 0:
                add_to(f, &others[spans[2 * e]], spans[2 * e + 1] - spans[2 * e], r.node[e].mean)


cdef const int64_t* second_words(arrays) except? NULL:
    """Return the second words of all rows with wide sums, else NULL."""
    return <const int64_t*>to_read(arrays.all_low, sizeof(int64_t)) if arrays.is_wide else NULL


def sum_all(arrays):
    """Replace the sums of the nodes by the sums of all rows, with the words `all_packed` and `all_low`."""
    cdef Round r = read_round(arrays, NULL)
    cdef const int64_t* words = <const int64_t*>to_read(arrays.all_packed, sizeof(int64_t))
    cdef const int64_t* low = second_words(arrays)
    with nogil:
        sum_nodes(&r, words, low)


def word_sums(arrays, const int64_t[:, ::1] spans, double[:, ::1] sums):
    """Sum the words `all_packed` and `all_low` over the rows of each node (OUT sums (k, 2))."""
    cdef Round r = read_round(arrays, NULL)
    cdef const int64_t* words = <const int64_t*>to_read(arrays.all_packed, sizeof(int64_t))
    cdef const int64_t* low = second_words(arrays)
    cdef Py_ssize_t i, k = spans.shape[0]
    if spans.shape[1] != 2 or sums.shape[0] != k or sums.shape[1] != 2:
        raise ValueError("word_sums: arrays of different sizes")
    for i in range(k):
        if not 0 <= spans[i, 0] <= spans[i, 1] <= r.n:
            raise ValueError("word_sums: expected spans of listed rows")
        sum_words(&r, words, low, spans[i, 0], spans[i, 1], &sums[i, 0], &sums[i, 1])
