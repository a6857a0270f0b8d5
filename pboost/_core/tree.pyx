"""Growth of a deterministic boosted tree: search, split step and partition in one compiled loop.

An open exit owns a segment of every sorted column (exact search) or of one list of rows (binned
search). Splitting it partitions its segment in place, so that a level of the tree costs
O(rows x features) whatever the number of its nodes.

In a tree one path leads to each exit, so all rows at an exit have gathered the same votes: their
boosted weights are the starting weights times one factor per class, exp(+-H). The kernel therefore
keeps the starting weights, in fixed point, and for each exit H. Criteria are taken on the starting
weights (the reach mass), as in CART; Kearns-Mansour is the same on both up to a factor.

The caller's arrays (see `TreeArrays` in tree_growth.py) are borrowed for one call. Weights of an
exit are fixed * 2**-shift in units of the root's; they are made anew, with a larger shift, when
little of the root's mass is left, so that small masses keep their precision.
"""
from libc.math cimport INFINITY, exp

from pboost._core._address cimport address
from pboost._core._bins cimport partition_rows, search_bins
from pboost._core._cut cimport Limits
from pboost._core._heap cimport Heap, decrease, pop, push, rounded
from pboost._core._math cimport half_log_odds, score_limit
from pboost._core._segment cimport first_cut, partition_segment, search_rows
from pboost._core._tree cimport (
    ALL_NODES, BREADTH_FIRST, DONE, EXIT_INTS, EXIT_REALS, EXITS, FEATURE, HEAP,
    KEY, LARGE, LARGEST_BOUND, LARGEST_ERROR, LIMIT, LOOK_AHEAD, NODES, PARENT, PAUSED, PENDING,
    SIDE, START, STOP, TARGET, VOTES, Given, Tree, add_exit,
    boosted_mass, can_split, children_can_split, count_certificate, heap_of, is_open, limits_of,
    refine_weights, unit_of,
)
from pboost._core.types cimport int32_t, int64_t, row_of, uint8_t

STATUS = dict(zip(("done", "all nodes", "paused", "large", "target"),
                  (DONE, ALL_NODES, PAUSED, LARGE, TARGET)))
GROWTH = {
    "largest-bound": LARGEST_BOUND, "breadth-first": BREADTH_FIRST,
    "largest-error": LARGEST_ERROR, "look-ahead": LOOK_AHEAD,
}


cdef Tree read_tree(arrays) except *:
    cdef Tree t
    t.order = <int32_t*>address(arrays.order)
    t.codes = <const uint8_t*>address(arrays.codes)
    t.rows = <int32_t*>address(arrays.rows)
    t.n_bins = <const int32_t*>address(arrays.n_bins)
    t.weight = <const double*>address(arrays.weight)
    t.fixed = <int64_t*>address(arrays.fixed)
    t.side = <uint8_t*>address(arrays.side)
    t.spare = <int32_t*>address(arrays.spare)
    t.best = <double*>address(arrays.best)
    t.exit_int = <int32_t*>address(arrays.exit_int)
    t.exit_mass = <int64_t*>address(arrays.exit_mass)
    t.exit_real = <double*>address(arrays.exit_real)
    t.heap = <int32_t*>address(arrays.heap)
    t.node_int = <int32_t*>address(arrays.node_int)
    t.node_real = <double*>address(arrays.node_real)
    t.counter = <int64_t*>address(arrays.counter)
    t.certificate = <double*>address(arrays.certificate)
    (t.n, t.d, t.n_negative, t.max_nodes, t.min_count, t.criterion, t.max_depth, t.exact,
     t.growth) = arrays.sizes
    (t.scale, t.root_mass, t.min_weight, t.smoothing, t.learning_rate, t.target) = arrays.reals
    return t


# ---------------------------------------------------------------------------------------------
# Search, split and partition of one exit. Each works on a range of features.

cdef double search_features(
    const Tree* t, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, double found
) noexcept nogil:
    """Least scores of a range of features; cuts that are worse than `found` may be missed.

    Returns the least score known now.
    """
    cdef Limits at = limits_of(t, e)
    cdef Py_ssize_t f, start = t.exit_int[EXIT_INTS * e + START]
    cdef int ignored_bin = 0
    cdef int64_t ignored = 0
    for f in range(first, last):
        if t.exact:
            t.best[f] = search_rows(&at, t.order + f * t.n + start, t.fixed, 0, at.n, 0, 0,
                                    INFINITY, found)
        else:
            t.best[f] = search_bins(&at, t.codes + f * t.n, t.n_bins[f], t.rows + start, t.fixed,
                                    -1.0, &ignored_bin, &ignored, &ignored)
        found = min(found, t.best[f])
    return found


cdef void add_masses(
    const Tree* t, const int32_t* rows, Py_ssize_t n, int64_t* below
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        below[row_of(rows[i]) >= t.n_negative] += t.fixed[row_of(rows[i])]


cdef int split_exact(
    Tree* t, Py_ssize_t e, const Limits* at, Py_ssize_t f, double limit, const Given* given,
    int64_t* below
) noexcept nogil:
    """Locate the cut, mark the side of each row; returns the number of rows below."""
    cdef Py_ssize_t i, start = t.exit_int[EXIT_INTS * e + START]
    cdef const int32_t* order = t.order + f * t.n + start
    cdef Py_ssize_t position
    cdef Py_ssize_t node = t.counter[NODES]
    below[0] = below[1] = 0
    if given != NULL:
        position = given.place
        add_masses(t, order, position, below)
    else:
        position = first_cut(at, order, t.fixed, 0, at.n, &below[0], &below[1], limit)
    if position < 0:
        return -1
    for i in range(at.n):
        t.side[row_of(order[i])] = i >= position
    if given == NULL:
        t.node_int[5 * node + 3] = row_of(order[position - 1])
        t.node_int[5 * node + 4] = row_of(order[position])
    return <int>position


cdef int split_binned(
    Tree* t, Py_ssize_t e, const Limits* at, Py_ssize_t f, double limit, const Given* given,
    int64_t* below
) noexcept nogil:
    cdef Py_ssize_t start = t.exit_int[EXIT_INTS * e + START]
    cdef Py_ssize_t node = t.counter[NODES]
    cdef int cut_bin = 0
    cdef Py_ssize_t n_below
    if given != NULL:
        cut_bin = <int>given.place
    else:
        search_bins(at, t.codes + f * t.n, t.n_bins[f], t.rows + start, t.fixed, limit, &cut_bin,
                    &below[0], &below[1])
    t.node_int[5 * node + 3] = cut_bin
    t.node_int[5 * node + 4] = cut_bin + 1
    n_below = partition_rows(t.rows + start, at.n, t.codes + f * t.n, cut_bin, t.spare)
    if given != NULL:
        below[0] = below[1] = 0
        add_masses(t, t.rows + start, n_below, below)
    return <int>n_below


cdef bint choose(Tree* t, Py_ssize_t e) noexcept nogil:
    """Note the feature and the score to be split at, of an exit just searched; False if none."""
    cdef Limits at = limits_of(t, e)
    cdef Py_ssize_t f
    cdef double found = INFINITY, limit
    for f in range(t.d):
        found = min(found, t.best[f])
    if found == INFINITY:
        return False
    limit = score_limit(t.criterion, found, <double>at.negative + <double>at.positive)
    f = 0
    while t.best[f] > limit:
        f += 1
    t.exit_int[EXIT_INTS * e + FEATURE] = <int32_t>f
    t.exit_real[EXIT_REALS * e + LIMIT] = limit
    return True


cdef double exit_vote(const Tree* t, Py_ssize_t e, const int64_t* mass) noexcept nogil:
    """Vote of a child of exit `e` with these class masses."""
    cdef double up = exp(t.exit_real[EXIT_REALS * e + VOTES])
    cdef double negative = <double>t.exit_mass[2 * e] * up
    cdef double positive = <double>t.exit_mass[2 * e + 1] / up
    return t.learning_rate * half_log_odds(
        <double>mass[1] / up, <double>mass[0] * up, t.smoothing * (negative + positive))


cdef double split_key(Tree* t, Py_ssize_t e) noexcept nogil:
    """By how much splitting exit `e`, where `choose` has been, lowers the certificate, as a key."""
    cdef Limits at = limits_of(t, e)
    cdef Py_ssize_t f = t.exit_int[EXIT_INTS * e + FEATURE]
    cdef Py_ssize_t start = t.exit_int[EXIT_INTS * e + START]
    cdef double limit = t.exit_real[EXIT_REALS * e + LIMIT], votes, after = 0.0
    cdef double before = boosted_mass(t, e)
    cdef int64_t[2][2] mass
    cdef int side, ignored = 0
    mass[0][0] = mass[0][1] = 0
    if t.exact:
        first_cut(&at, t.order + f * t.n + start, t.fixed, 0, at.n, &mass[0][0], &mass[0][1],
                  limit)
    else:
        search_bins(&at, t.codes + f * t.n, t.n_bins[f], t.rows + start, t.fixed, limit, &ignored,
                    &mass[0][0], &mass[0][1])
    mass[1][0] = at.negative - mass[0][0]
    mass[1][1] = at.positive - mass[0][1]
    for side in range(2):
        votes = t.exit_real[EXIT_REALS * e + VOTES] + exit_vote(t, e, mass[side])
        after += <double>mass[side][0] * exp(votes) + <double>mass[side][1] * exp(-votes)
    return decrease(before, before - after * unit_of(t, e))


cdef bint set_key(Tree* t, Py_ssize_t e, bint searched) noexcept nogil:
    """Give an open exit its place in the order of splitting; False if it cannot be split."""
    cdef double* key = &t.exit_real[EXIT_REALS * e + KEY]
    if t.growth == BREADTH_FIRST:
        key[0] = -<double>e
    elif t.growth == LARGEST_BOUND:
        key[0] = rounded(boosted_mass(t, e))
    elif t.growth == LARGEST_ERROR:
        # The class that is not predicted: + is where the votes are positive.
        key[0] = rounded(<double>t.exit_mass[2 * e + (t.exit_real[EXIT_REALS * e + VOTES] <= 0)]
                         * unit_of(t, e))
    else:
        if not searched:
            search_features(t, e, 0, t.d, INFINITY)
        if not choose(t, e):
            return False
        key[0] = split_key(t, e)
    return True


cdef bint split_exit(Tree* t, Py_ssize_t e, const Given* given) noexcept nogil:
    """The split step at an exit where `choose` has been, or a given one, which may leave a side
    empty; False where no cut is found."""
    cdef Limits at = limits_of(t, e)
    cdef Py_ssize_t f = t.exit_int[EXIT_INTS * e + FEATURE]
    cdef Py_ssize_t start = t.exit_int[EXIT_INTS * e + START], middle
    cdef Py_ssize_t node = t.counter[NODES], parent = t.exit_int[EXIT_INTS * e + PARENT]
    cdef int64_t[2][2] mass
    cdef double limit = t.exit_real[EXIT_REALS * e + LIMIT], before = boosted_mass(t, e), vote
    cdef int side
    middle = start + (split_exact(t, e, &at, f, limit, given, mass[0]) if t.exact
                      else split_binned(t, e, &at, f, limit, given, mass[0]))
    if given == NULL and not start < middle < t.exit_int[EXIT_INTS * e + STOP]:
        return False
    mass[1][0] = at.negative - mass[0][0]
    mass[1][1] = at.positive - mass[0][1]
    t.node_int[5 * node] = <int32_t>f
    t.node_int[5 * node + 1] = t.node_int[5 * node + 2] = -1
    if parent >= 0:
        t.node_int[5 * parent + 1 + t.exit_int[EXIT_INTS * e + SIDE]] = <int32_t>node
    count_certificate(t, -before)
    for side in range(2):
        vote = exit_vote(t, e, mass[side]) if given == NULL else given.votes[side]
        t.node_real[5 * node + side] = vote
        count_certificate(t, boosted_mass(t, add_exit(
            t, e, side, start if side == 0 else middle,
            middle if side == 0 else t.exit_int[EXIT_INTS * e + STOP], mass[side], vote)))
    t.node_real[5 * node + 2] = (<double>at.negative + <double>at.positive) * unit_of(t, e)
    t.node_real[5 * node + 3] = before
    t.node_real[5 * node + 4] = max(t.certificate[0] + t.certificate[1], 0.0)
    t.counter[NODES] += 1
    return True


cdef void partition_features(
    Tree* t, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, int32_t* spare
) noexcept nogil:
    """Partition the segment of exit `e`, just split, in a range of features."""
    cdef Py_ssize_t f, start = t.exit_int[EXIT_INTS * e + START]
    cdef Py_ssize_t n = t.exit_int[EXIT_INTS * e + STOP] - start
    cdef int32_t cut = t.node_int[5 * (t.counter[NODES] - 1)]
    for f in range(first, last):
        if f != cut:
            partition_segment(t.order + f * t.n + start, n, t.side, spare)


cdef void open_children(Tree* t) noexcept nogil:
    """Put the two newest exits on the heap, those that can be split."""
    cdef Py_ssize_t e, newest = t.counter[EXITS]
    cdef Heap heap = heap_of(t)
    for e in range(newest - 2, newest):
        if can_split(t, e):
            refine_weights(t, e)
            if set_key(t, e, False):
                push(&heap, <int32_t>e)


# ---------------------------------------------------------------------------------------------
# What Python calls.

def open_exits(arrays, Py_ssize_t first):
    """Put the open exits from number `first` on that can be split on the heap.

    At first there is the root's entrance. Not for growth that looks ahead: see `can_open`.
    """
    cdef Tree t = read_tree(arrays)
    cdef Heap heap = heap_of(&t)
    cdef Py_ssize_t e
    with nogil:
        for e in range(first, t.counter[EXITS]):
            if is_open(&t, e) and can_split(&t, e):
                refine_weights(&t, e)
                if set_key(&t, e, True):
                    push(&heap, <int32_t>e)


def can_open(arrays, Py_ssize_t e):
    """Whether exit `e` is open and can be split; it is then ready to be searched."""
    cdef Tree t = read_tree(arrays)
    if not (is_open(&t, e) and can_split(&t, e)):
        return False
    with nogil:
        refine_weights(&t, e)
    return True


def push_exit(arrays, Py_ssize_t e):
    """Put exit `e`, just searched, on the heap, if there is a cut."""
    cdef Tree t = read_tree(arrays)
    cdef Heap heap = heap_of(&t)
    with nogil:
        if set_key(&t, e, True):
            push(&heap, <int32_t>e)


def split_given(arrays, Py_ssize_t e, int32_t feature, Py_ssize_t place, double below, double above):
    """Split exit `e`, which is not on the heap, at a given place; its children are not put there."""
    cdef Tree t = read_tree(arrays)
    cdef Given given
    cdef Py_ssize_t child
    given.place = place
    given.votes[0], given.votes[1] = below, above
    t.exit_int[EXIT_INTS * e + FEATURE] = feature
    with nogil:
        split_exit(&t, e, &given)
        if t.exact:
            partition_features(&t, e, 0, t.d, t.spare)
        for child in range(t.counter[EXITS] - 2, t.counter[EXITS]):
            if can_split(&t, child):
                refine_weights(&t, child)


def grow(arrays, Py_ssize_t cells, Py_ssize_t large):
    """Open exits until about `cells` cells are done; an exit of more than `large` cells is left.

    Returns one of STATUS. counter[PENDING] is the exit taken last; after "large" it waits for
    `search_exit`, unless it has been looked ahead at, `split_pending` and `partition_pending`. Its
    children are then to be opened.
    """
    cdef Tree t = read_tree(arrays)
    cdef Heap heap = heap_of(&t)
    cdef Py_ssize_t done = 0, size
    cdef Py_ssize_t e
    cdef int status = DONE
    with nogil:
        while t.counter[HEAP] > 0:
            if t.counter[NODES] >= t.max_nodes:
                status = ALL_NODES
                break
            if done >= cells:
                status = PAUSED
                break
            e = pop(&heap)
            t.counter[PENDING] = e
            size = (t.exit_int[EXIT_INTS * e + STOP] - t.exit_int[EXIT_INTS * e + START]) * t.d
            if size > large:
                status = LARGE
                break
            done += size
            if t.growth != LOOK_AHEAD:
                search_features(&t, e, 0, t.d, INFINITY)
                if not choose(&t, e):
                    continue
            if split_exit(&t, e, NULL):
                if t.exact and children_can_split(&t):
                    partition_features(&t, e, 0, t.d, t.spare)
                open_children(&t)
                if t.certificate[0] + t.certificate[1] <= t.target:
                    status = TARGET
                    break
    return status


def search_exit(arrays, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, double found):
    """Search a range of features at exit `e`.

    `found` is the least score of other features, or infinity; returns the least known now.
    """
    cdef Tree t = read_tree(arrays)
    with nogil:
        found = search_features(&t, e, first, last, found)
    return found


def split_pending(arrays):
    """Split the pending exit. Returns whether it was, and whether its segment is to be partitioned."""
    cdef Tree t = read_tree(arrays)
    cdef bint split
    with nogil:
        split = ((t.growth == LOOK_AHEAD or choose(&t, t.counter[PENDING]))
                 and split_exit(&t, t.counter[PENDING], NULL))
    return split, split and t.exact and children_can_split(&t)


def partition_pending(arrays, Py_ssize_t first, Py_ssize_t last, int32_t[::1] spare):
    """Partition a range of features at the pending exit; WORK spare (n,)."""
    cdef Tree t = read_tree(arrays)
    with nogil:
        partition_features(&t, t.counter[PENDING], first, last, &spare[0])
