"""Growth of a tree: search, split and partition in one compiled loop.

Each open node has a range of every sorted feature (exact search) or of one list of rows (binned search). A
split partitions this range in place, so that the time per level of the tree is O(rows x features) for any
number of nodes.

Weights are 64-bit fixed-point numbers with exact sums. Regression targets are stored as fixed-point
deviations from the mean of the node. Scores are functions of these sums; the best split has the least
score. The weights of a node are fixed * 2**-shift in units of the root's weights. If only a small part of
the weight is left, they are recomputed with a larger shift, so that small weights keep their precision.

In a boosted tree, all rows of a node have taken the same path, so they have the same sum of votes H. Their
boosted weights are the starting weights times one factor per class, exp(+-H). The kernel stores the
starting weights, and H of each node. Criteria use the starting weights (the reach mass), as in other trees.
The Kearns-Mansour criterion of both kinds of weights is the same up to a factor.

The loop is a state machine of small steps (`phase` of the counter). It can stop after each step to handle
signals, run a callback, or let several threads process a large node. It works on arrays of the caller (see
`TreeArrays` in growth/tree.py). The two children of a node have consecutive numbers.
"""
from libc.math cimport INFINITY, exp, rint
from libc.string cimport memset

from pboost._core._address cimport to_read, to_write
from pboost._core._feature_sampling cimport draw_columns
from pboost._core._grower cimport (
    ALL_LEAVES, BEST_FIRST, BREADTH_FIRST, CHOOSE, DEPTH_FIRST, DONE, KNOWN, LARGEST_BOUND,
    LARGEST_ERROR, LARGE_PARTITION, LARGE_SEARCH, LOOK_AHEAD, NO_SPLIT, OPEN, PAUSED, PICK, SEARCH,
    SPLIT, TARGET, UNKNOWN, UNKNOWN_AHEAD, Counter, Found, Given, Node, Tree, Vote, boosted_mass,
    can_split, child_vote, coarse_shift, count_certificate, full_shift, heap_of, is_elsewhere,
    lowered_certificate, lowered_impurity, measure_classes, refine, risk_of, rows_at, size_of, unit_of,
    width,
)
from pboost._core._heap cimport Heap, pop, push, rounded
from pboost._core._node_split cimport choose, cut_of, search_columns
from pboost._core._node_categories cimport WORDS
from pboost._core._node_sides cimport kind_of, mark_special, mass_below, part_cells, part_special
from pboost._core._node_squares cimport (
    FINER, Sums, begin_squares, end_squares, first_mean, measure_squares,
)
from pboost._core._ranks cimport order_of
from pboost._core._scan cimport pack_rows
from pboost._core._segment cimport partition_rows, partition_segment
from pboost._core.split cimport Moment
from pboost._core.types cimport LEVELS, MAX_BINS, int32_t, int64_t, row_of, uint64_t, uint8_t

cdef Node _node
cdef Vote _vote
cdef Counter _counter
#: The dtypes of the arrays of a tree, each given by an array with one item.
STATE = {"node": <Node[:1]>&_node, "vote": <Vote[:1]>&_vote, "counter": <Counter[:1]>&_counter}
#: The values that `grow` returns.
STATUS = {DONE: "done", ALL_LEAVES: "all leaves", TARGET: "target", PAUSED: "paused",
          LARGE_SEARCH: "large search", LARGE_PARTITION: "large partition",
          UNKNOWN_AHEAD: "unknown ahead"}
#: The states of a node of the lookahead tree.
AHEAD = {"unknown": UNKNOWN, "known": KNOWN, "no split": NO_SPLIT}
GROWTH = {"depth_first": DEPTH_FIRST, "best_first": BEST_FIRST, "largest_bound": LARGEST_BOUND,
          "largest_error": LARGEST_ERROR, "look_ahead": LOOK_AHEAD, "breadth_first": BREADTH_FIRST}


def work_size(Py_ssize_t n_classes):
    """Return the size of the int64 work array of `search_pending`, which must be filled with 0.

    If features are sorted by rank, the array needs three more entries per row.
    """
    return 4 * n_classes + MAX_BINS * (max(n_classes, 2) + 1)


cdef Tree read_tree(arrays) except *:
    cdef Tree t
    limits, rule = arrays.limits, arrays.rule
    t.order = <int32_t*>to_write(arrays.order, sizeof(int32_t))
    t.codes = <const uint8_t*>to_read(arrays.codes, sizeof(uint8_t))
    t.rows = <int32_t*>to_write(arrays.rows, sizeof(int32_t))
    t.n_bins = <const int32_t*>to_read(arrays.n_bins, sizeof(int32_t))
    t.ranked = arrays.ranks is not None
    if t.ranked:
        t.rank = <const int32_t*>to_read(arrays.ranks, sizeof(int32_t))
        t.ranked_row = <const int32_t*>to_read(arrays.ranked_row, sizeof(int32_t))
        t.n_ranked, t.n_work = arrays.ranks.shape[1], work_size(arrays.n_classes)
    t.special = NULL
    if arrays.special is not None:
        t.special = <const uint8_t*>to_read(arrays.special, sizeof(uint8_t))
    t.subset = <uint64_t*>to_write(arrays.subset, sizeof(uint64_t))
    t.weight = <const double*>to_read(arrays.weight, sizeof(double))
    t.y = <const double*>to_read(arrays.y, sizeof(double))
    t.label = <const int32_t*>to_read(arrays.label, sizeof(int32_t))
    t.fixed = <int64_t*>to_write(arrays.fixed, sizeof(int64_t))
    t.moment = <Moment*>to_write(arrays.moment, sizeof(int64_t))  # two integers per row
    t.side = <uint8_t*>to_write(arrays.side, sizeof(uint8_t))
    t.cells, t.ahead_of = NULL, NULL
    if arrays.ahead is not None:
        read_ahead(&t, arrays)
    t.spare = <int32_t*>to_write(arrays.spare, sizeof(int32_t))
    t.work = <int64_t*>to_write(arrays.work, sizeof(int64_t))
    t.packed = <int64_t*>to_write(arrays.packed, sizeof(int64_t))
    t.best = <double*>to_write(arrays.best, sizeof(double))
    t.picked = <int32_t*>to_write(arrays.picked, sizeof(int32_t))
    t.item, t.n_items = NULL, 0
    if limits.feature_costs is not None:
        t.item = <const int32_t*>to_read(limits.feature_costs.item, sizeof(int32_t))
        t.cost = <const double*>to_read(limits.feature_costs.cost, sizeof(double))
        t.to_pay, t.n_items = <double*>to_write(arrays.to_pay, sizeof(double)), len(arrays.to_pay)
        t.comparison_cost = limits.feature_costs.comparison
    t.node = <Node*>to_write(arrays.node, sizeof(Node))
    t.mass = <int64_t*>to_write(arrays.mass, sizeof(int64_t))
    t.vote = <Vote*>to_write(arrays.vote, sizeof(Vote))
    t.open = <int32_t*>to_write(arrays.open, sizeof(int32_t))
    t.counter = <Counter*>to_write(arrays.counter, sizeof(Counter))
    t.certificate = <double*>to_write(arrays.certificate, sizeof(double))
    t.n, t.d, t.n_columns = len(arrays.spare), len(arrays.best), arrays.codes.shape[1]
    t.n_negative, t.n_classes, t.exact = arrays.n_negative, arrays.n_classes, arrays.exact
    t.squares, t.boosted = t.n_classes == 0, rule is not None
    t.max_leaves, t.max_depth, t.growth = limits.leaves, limits.depth, GROWTH[limits.growth]
    t.min_count, t.min_split, t.min_weight = limits.min_samples_leaf, limits.min_samples_split, limits.min_weight_fraction
    t.n_picked, t.criterion, t.complexity = limits.features, arrays.criterion, limits.complexity
    t.target, t.key, t.scale, t.whole = limits.target, arrays.key, arrays.scale, arrays.mass_unit
    t.smoothing, t.learning_rate = (rule.smoothing, rule.learning_rate) if t.boosted else (0.0, 0.0)
    t.level_smoothing, t.least_risk = limits.categorical_smoothing, 0.0
    return t


cdef int read_ahead(Tree* t, arrays) except -1:
    ahead = arrays.ahead
    t.ahead_of = <int32_t*>to_write(arrays.ahead_of, sizeof(int32_t))
    t.ahead = <const Node*>to_read(ahead.node, sizeof(Node))
    t.ahead_mass = <const int64_t*>to_read(ahead.mass, sizeof(int64_t))
    t.ahead_below = <const int64_t*>to_read(ahead.below, sizeof(int64_t))
    t.ahead_subset = <const uint64_t*>to_read(ahead.subset, sizeof(uint64_t))
    t.ahead_state = <const uint8_t*>to_read(ahead.state, sizeof(uint8_t))
    t.ahead_stored = <const int64_t*>to_read(ahead.stored, sizeof(int64_t))
    t.ahead_number = <int32_t*>to_write(ahead.number, sizeof(int32_t))
    return 0


# Nodes whose rows are on workers. Their splits and sums are copied from the lookahead tree.

cdef bint take_choice(Tree* t, Py_ssize_t e) noexcept nogil:
    """Copy the chosen feature and the score limit from the lookahead tree.

    Return whether there is a split.
    """
    cdef Py_ssize_t there = t.ahead_of[e]
    t.node[e].feature, t.node[e].limit = t.ahead[there].feature, t.ahead[there].limit
    return t.ahead_state[there] == KNOWN


cdef void take_below(const Tree* t, Py_ssize_t e, int64_t* below) noexcept nogil:
    """Copy the sums of the left child. OUT below."""
    cdef Py_ssize_t i, k = width(t), child = t.ahead[t.ahead_of[e]].child
    for i in range(k):
        below[i] = t.ahead_below[k * child + i]


cdef Py_ssize_t take_split(Tree* t, Py_ssize_t e) noexcept nogil:
    """Copy the split of a node, and return the number of rows in the left child."""
    cdef Py_ssize_t there = t.ahead_of[e], child = t.ahead[there].child, i
    cdef Node* node = &t.node[e]
    node.missing = t.ahead[there].missing
    node.low, node.high = t.ahead[there].low, t.ahead[there].high
    if kind_of(t, node.feature) & LEVELS:
        for i in range(WORDS):
            t.subset[WORDS * e + i] = t.ahead_subset[WORDS * there + i]
    return t.ahead[child].stop - t.ahead[child].start


cdef void take_measures(Tree* t, Py_ssize_t e) noexcept nogil:
    cdef Py_ssize_t i, k = width(t), there = t.ahead_of[e]
    cdef const Node* found = &t.ahead[there]
    cdef Node* node = &t.node[e]
    node.shift, node.pure = found.shift, found.pure
    node.mean, node.loss, node.scale = found.mean, found.loss, found.scale
    for i in range(k):
        t.mass[k * e + i] = t.ahead_mass[k * there + i]


cdef void take_place(Tree* t, Py_ssize_t e) noexcept nogil:
    """Record whether the rows of a child are on workers or stored here."""
    cdef Py_ssize_t parent = t.node[e].parent, there, i, start
    t.ahead_of[e] = -1
    if t.ahead_of[parent] < 0:
        return
    there = t.ahead[t.ahead_of[parent]].child + e - t.node[parent].child
    t.ahead_number[there] = <int32_t>e
    if t.ahead_stored[there] < 0:
        t.ahead_of[e] = <int32_t>there
        return
    start = t.node[e].start
    for i in range(size_of(t, e)):
        t.rows[start + i] = <int32_t>(t.ahead_stored[there] + i)


# The steps of the growth.

cdef inline bint looks_ahead(const Tree* t) noexcept nogil:
    """Return whether the key of a node depends on its best split."""
    return t.growth == BEST_FIRST or t.growth == LOOK_AHEAD


cdef void push_node(Tree* t, Py_ssize_t e, const Found* kept) noexcept nogil:
    """Push a node that can be split onto the heap. If `looks_ahead`, call `choose` first."""
    cdef Heap heap = heap_of(t)
    cdef double* key = &t.node[e].key
    cdef Py_ssize_t i, k = width(t)
    # Compute the sums of the node's children in the entries after the last node, which are unused.
    cdef int64_t* below = t.mass + k * t.counter.nodes
    if looks_ahead(t):
        if is_elsewhere(t, e):
            take_below(t, e, below)
        else:
            cut_of(t, e, kept, below)
        for i in range(k):
            below[k + i] = t.mass[k * e + i] - below[i]
    if t.growth == DEPTH_FIRST:
        key[0] = <double>((e + 1) // 2)  # take the newest pair first
    elif t.growth == BREADTH_FIRST:
        key[0] = -<double>e
    elif t.growth == LARGEST_BOUND:
        key[0] = rounded(boosted_mass(t, e))
    elif t.growth == LARGEST_ERROR:
        # The key is the weight of the class that is not predicted. Class +1 is predicted if the sum of
        # votes is positive.
        key[0] = rounded(<double>t.mass[2 * e + (t.vote[e].gathered <= 0)] * unit_of(t, e))
    elif t.growth == LOOK_AHEAD:
        key[0] = lowered_certificate(t, e, below)
    else:
        key[0] = lowered_impurity(t, e, below)
    push(&heap, <int32_t>e)


cdef void add_child(
    Tree* t, Py_ssize_t parent, Py_ssize_t start, Py_ssize_t stop, int32_t listed
) noexcept nogil:
    cdef Py_ssize_t e = t.counter.nodes
    cdef Node* node = &t.node[e]
    t.counter.nodes += 1
    node.start, node.stop, node.listed = <int32_t>start, <int32_t>stop, listed
    node.depth, node.shift = t.node[parent].depth + 1, t.node[parent].shift
    node.feature = node.child = -1
    node.low = node.high = 0
    node.missing, node.parent = -1, <int32_t>parent
    if t.ahead_of != NULL:
        take_place(t, e)
    if t.cells != NULL:
        node.pure = False  # this is unknown until the sums of all workers are added
    elif is_elsewhere(t, e) and not t.boosted:
        take_measures(t, e)
    elif t.squares:
        measure_squares(t, e)
    else:
        measure_classes(t, e)


cdef void give_votes(Tree* t, Py_ssize_t e, const Given* given) noexcept nogil:
    """Compute the votes of the children of a node, and update the certificate."""
    cdef double before = boosted_mass(t, e), own
    cdef Py_ssize_t side, child
    count_certificate(t, -before)
    for side in range(2):
        child = t.node[e].child + side
        own = child_vote(t, e, t.mass + 2 * child) if given == NULL else given.votes[side]
        t.vote[child].own, t.vote[child].gathered = own, t.vote[e].gathered + own
        count_certificate(t, boosted_mass(t, child))
    t.vote[e].bound = before
    t.vote[e].certificate = max(t.certificate[0] + t.certificate[1], 0.0)


cdef bint split_node(
    Tree* t, Py_ssize_t e, const Found* kept, const Given* given
) noexcept nogil:
    """Split a node at the split found by `choose`, or at a given split.

    Return whether the node's sorted features must still be partitioned. A given split may leave a child
    empty.
    """
    cdef Node* node = &t.node[e]
    cdef Py_ssize_t k = width(t), f = node.feature, start = node.start, n = size_of(t, e)
    cdef Py_ssize_t i, place, n_below
    cdef Py_ssize_t first = t.counter.nodes
    cdef const int32_t* order = t.order + f * t.n + start
    cdef int64_t* below = t.mass + k * first
    cdef int32_t listed = 0 if t.boosted else node.feature
    cdef int kind = kind_of(t, f)
    if is_elsewhere(t, e):
        take_below(t, e, below)
    elif given == NULL:
        place = cut_of(t, e, kept, below)
    else:
        place, node.missing = given.place, given.missing
        if not t.exact or not kind:
            mass_below(t, e, f, place, below)
    if t.ranked:
        order = order_of(t, e, f, True, t.work + t.n_work)
        for i in range(n):  # the targets are summed in this order
            t.rows[start + i] = row_of(order[i])
    if is_elsewhere(t, e):
        n_below = take_split(t, e)
    elif t.cells != NULL:
        n_below = part_cells(t, e, place)
    elif kind and t.exact:
        n_below = mark_special(t, e, place, NULL if given == NULL else below)
    elif kind:
        n_below = part_special(t, e, place)
    elif t.exact:
        n_below = place
        for i in range(n):
            t.side[row_of(order[i])] = i >= place
        if given == NULL:
            node.low, node.high = row_of(order[place - 1]), row_of(order[place])
    else:
        n_below = partition_rows(
            t.rows + start, n, t.codes + f * t.n_columns, <int>place, t.spare)
        node.low, node.high = <int32_t>place, <int32_t>place + 1
    for i in range(k):
        below[k + i] = t.mass[k * e + i] - below[i]
    node.child = <int32_t>first
    t.counter.leaves += 1
    add_child(t, e, start, start + n_below, listed)
    add_child(t, e, start + n_below, start + n, listed)
    if t.boosted:
        give_votes(t, e, given)
    if t.ranked:
        partition_segment(t.rows + start, n, t.side, t.spare)  # the rows have no tie marks
        return False
    return t.exact and (can_split(t, first) or can_split(t, first + 1))


cdef void partition_columns(
    const Tree* t, Py_ssize_t e, Py_ssize_t first, Py_ssize_t last, int32_t* spare
) noexcept nogil:
    cdef Py_ssize_t f
    for f in range(first, last):
        if f != t.node[e].feature:
            partition_segment(t.order + f * t.n + t.node[e].start, size_of(t, e), t.side, spare)


cdef void open_children(Tree* t, Py_ssize_t e) noexcept nogil:
    """In a boosted tree, rescale the weights of children that can be split."""
    cdef Py_ssize_t child
    if not t.boosted:
        return
    for child in range(t.node[e].child, t.node[e].child + 2):
        if is_elsewhere(t, child):
            take_measures(t, child)
        elif can_split(t, child):
            refine(t, child)


cdef int pick(Tree* t, int* status) noexcept nogil:
    """Choose the next node and return the next phase, or PICK and a status if no node is left."""
    cdef Heap heap = heap_of(t)
    cdef Py_ssize_t e
    cdef bint is_full = t.counter.leaves >= t.max_leaves
    if is_full and not t.boosted:
        status[0] = ALL_LEAVES
        return PICK
    while t.counter.fresh < t.counter.nodes:
        e = t.counter.fresh
        t.counter.fresh += 1
        if t.node[e].child >= 0 or not can_split(t, e):
            continue
        if looks_ahead(t):
            t.counter.at = e
            return SEARCH
        push_node(t, e, NULL)
    if t.certificate[0] + t.certificate[1] <= t.target:
        status[0] = TARGET
    elif t.counter.open == 0:
        status[0] = DONE
    elif is_full:
        status[0] = ALL_LEAVES
    else:
        t.counter.at = pop(&heap)
        return SPLIT if looks_ahead(t) else SEARCH
    return PICK


# The Python interface.

def begin_root(arrays):
    """Create node 0, the root, and compute its sums."""
    cdef Tree t = read_tree(arrays)
    cdef const int32_t* rows
    cdef Py_ssize_t i, k = width(&t)
    cdef int32_t row
    with nogil:
        memset(t.counter, 0, sizeof(Counter))
        t.counter.nodes = t.counter.leaves = 1
        memset(t.node, 0, sizeof(Node))
        t.node.stop, t.node.feature, t.node.child = <int32_t>t.n, -1, -1
        t.node.missing = t.node.parent = -1
        for i in range(t.d):
            t.picked[i] = <int32_t>i
        rows = rows_at(&t, 0)
        for i in range(k):
            t.mass[i] = 0
        for i in range(t.n):
            row = row_of(rows[i])
            t.mass[0 if t.squares else t.label[row]] += t.fixed[row]
        if t.squares:
            measure_squares(&t, 0)
        else:
            measure_classes(&t, 0)
        t.certificate[0], t.certificate[1] = 1.0, 0.0
        if t.boosted:
            memset(t.vote, 0, sizeof(Vote))


def split_given(
    arrays, Py_ssize_t e, int32_t feature, Py_ssize_t place, int missing, double below, double above,
    cells=None, uint8_t[::1] side=None,
):
    """Split node `e`, which is not on the heap, at a given place, and give the children the given votes.

    `missing` is the child for missing values. The set of a categorical split must be stored already. If
    rows are on workers, `cells` are as in `split_ahead`. OUT side (256,), initially 0: the child of each
    code.
    """
    cdef Tree t = read_tree(arrays)
    cdef Given given
    if cells is not None:
        t.cells, t.n_codes = <const int64_t*>to_read(cells, sizeof(int64_t)), cells.shape[1]
        t.side = &side[0]
    given.place, given.missing = place, missing
    given.votes[0], given.votes[1] = below, above
    t.node[e].feature = feature
    with nogil:
        split_node(&t, e, NULL, &given)
        if t.exact:
            partition_columns(&t, e, 0, t.d, t.spare)
        open_children(&t, e)


def grow(arrays, Py_ssize_t cells, Py_ssize_t large):
    """Grow the tree until about `cells` cells are processed; pause at nodes with more than `large` cells.

    A cell is one feature of one row. Returns the reason for stopping, see STATUS. After "unknown ahead",
    first find the split of the current node in the lookahead tree. After "large search", call
    `search_pending` for the picked features; their number is `counter.picked`. After "large partition",
    call `partition_pending` for all features. After "paused", the last split is complete.
    """
    cdef Tree t = read_tree(arrays)
    cdef Py_ssize_t done = 0, size
    cdef int64_t* phase = &t.counter.phase
    cdef Py_ssize_t e
    cdef int status = DONE
    cdef bint elsewhere
    cdef Found kept
    kept.node = -1
    if t.complexity > 0.0:
        t.least_risk = t.complexity * risk_of(&t, 0)
    with nogil:
        while True:
            if phase[0] == PICK:
                if done >= cells:
                    status = PAUSED
                    break
                phase[0] = pick(&t, &status)
                if phase[0] == PICK:
                    break
            e = t.counter.at
            size = size_of(&t, e) * t.d
            if phase[0] == SEARCH:
                elsewhere = is_elsewhere(&t, e)
                if elsewhere and t.ahead_state[t.ahead_of[e]] == UNKNOWN:
                    status = UNKNOWN_AHEAD
                    break
                phase[0] = CHOOSE
                if not elsewhere:
                    t.counter.picked = draw_columns(&t, e, e)
                    pack_rows(&t, e)
                    if size > large:
                        status = LARGE_SEARCH
                        break
                    search_columns(&t, e, 0, t.counter.picked, INFINITY, t.work, &kept)
                    done += size
            if phase[0] == CHOOSE:
                phase[0] = PICK
                if take_choice(&t, e) if is_elsewhere(&t, e) else choose(&t, e, t.counter.picked):
                    if looks_ahead(&t):
                        push_node(&t, e, &kept)
                    else:
                        phase[0] = SPLIT
            if phase[0] == SPLIT:
                phase[0] = OPEN
                if split_node(&t, e, &kept, NULL):
                    if size > large:
                        status = LARGE_PARTITION
                        break
                    partition_columns(&t, e, 0, t.d, t.spare)
            if phase[0] == OPEN:
                phase[0] = PICK
                open_children(&t, e)
                done += size
    return STATUS[status]


def search_pending(
    arrays, Py_ssize_t first, Py_ssize_t last, double found, int64_t[::1] work
):
    """Search a range of the picked features at the node at which growth paused.

    `found` is the least score of the features searched before, or infinity; WORK work (work_size,). Returns
    the least score including these features.
    """
    cdef Tree t = read_tree(arrays)
    with nogil:
        found = search_columns(&t, t.counter.at, first, last, found, &work[0], NULL)
    return found


def split_ahead(
    arrays, const int32_t[::1] nodes, const int32_t[::1] numbers, list cells, uint8_t[:, ::1] side
):
    """Search nodes by their histograms, and split each node that has a split.

    IN nodes (k,); numbers (k,): these determine the random features of each node; cells: the histograms of
    the nodes, (d, codes, sums + 1) each. OUT side (k, 256), initially 0: the child of each code. The sums
    and row counts of the children are stored, but not their statistics.
    """
    cdef Tree t = read_tree(arrays)
    cdef Py_ssize_t i, e
    cdef Found kept
    kept.node = -1
    for i in range(nodes.shape[0]):
        e, t.side = nodes[i], &side[i, 0]
        t.cells, t.n_codes = <const int64_t*>to_read(cells[i], sizeof(int64_t)), cells[i].shape[1]
        with nogil:
            t.counter.picked = draw_columns(&t, e, numbers[i])
            search_columns(&t, e, 0, t.counter.picked, INFINITY, t.work, NULL)
            if choose(&t, e, t.counter.picked):
                split_node(&t, e, &kept, NULL)


def partition_pending(arrays, Py_ssize_t first, Py_ssize_t last, int32_t[::1] spare):
    """Partition a range of features at the node at which growth paused. WORK spare (n,)."""
    cdef Tree t = read_tree(arrays)
    with nogil:
        partition_columns(&t, t.counter.at, first, last, &spare[0])


def preorder(array, found, const int32_t[::1] rows, int32_t[::1] place, int32_t[:, ::1] children):
    """List all nodes of the tree in preorder and return their number.

    IN array (n,) of `Node`; rows: the row numbers to which `low` and `high` refer, or empty if they are
    bins. OUT found (n,) of `Node`: the listed nodes; place (n,): their numbers in `array`; children (n, 2),
    -1 for leaves.
    """
    cdef const Node* nodes = <const Node*>to_read(array, sizeof(Node))
    cdef Node* out = <Node*>to_write(found, sizeof(Node))
    cdef bint numbers_rows = rows.shape[0] > 0
    # The ends of `place` and `children` are used as a stack for second children and their parents.
    cdef Py_ssize_t n = len(array), i = 0, first = n
    cdef int32_t e = 0
    if place.shape[0] < n or len(found) < n or children.shape[0] < n or children.shape[1] != 2:
        raise ValueError("preorder: arrays of different sizes")
    with nogil:
        while True:
            place[i] = e
            out[i] = nodes[e]
            e = nodes[e].child
            if e >= 0:
                if numbers_rows and out[i].low >= 0:
                    out[i].low = rows[out[i].low]
                if numbers_rows and out[i].high >= 0:
                    out[i].high = rows[out[i].high]
                children[i, 0] = <int32_t>i + 1
                first -= 1
                place[first], children[first, 0] = e + 1, <int32_t>i
            else:
                children[i, 0] = children[i, 1] = -1
                if first == n:
                    break
                e = place[first]
                children[children[first, 0], 1] = <int32_t>i + 1
                first += 1
            i += 1
    return i + 1


# Trees whose rows are partitioned among workers. A worker computes the sums of its rows. The statistics of a
# node follow from the sums of all workers.

cdef Tree nodes_of(arrays) except *:
    """Return a tree that contains only the data for the statistics of regression nodes."""
    cdef Tree t
    t.node = <Node*>to_write(arrays.node, sizeof(Node))
    t.mass = <int64_t*>to_write(arrays.mass, sizeof(int64_t))
    t.whole, t.squares = arrays.mass_unit, True
    return t


def part_rows(
    const uint8_t[:, ::1] codes, int32_t[::1] rows, int32_t[:, ::1] bounds, int32_t[::1] spare,
    const int32_t[::1] node, const int32_t[::1] child, const int32_t[::1] feature,
    const uint8_t[:, ::1] side,
):
    """Split nodes one after another; rows whose side is 1 go to the second child.

    IN codes (d, n); node, child, feature (k,); side (k, 256): the child of each code. INOUT rows (m,): the
    rows of all nodes; bounds (nodes, 2): start and end of the rows of each node. WORK spare (m,).
    """
    cdef Py_ssize_t i, j, start, middle, n_above
    cdef const uint8_t* code
    cdef int32_t row
    with nogil:
        for i in range(node.shape[0]):
            start = middle = bounds[node[i], 0]
            n_above, code = 0, &codes[feature[i], 0]
            for j in range(start, bounds[node[i], 1]):
                row = rows[j]
                rows[middle] = spare[n_above] = row
                if side[i, code[row]]:
                    n_above += 1
                else:
                    middle += 1
            for j in range(n_above):
                rows[middle + j] = spare[j]
            bounds[child[i], 0], bounds[child[i], 1] = <int32_t>start, <int32_t>middle
            bounds[child[i] + 1, 0] = <int32_t>middle
            bounds[child[i] + 1, 1] = bounds[node[i], 1]


cdef inline void add_classes(
    const uint8_t* code, const int32_t* rows, const int32_t* label, const int64_t* mass, Py_ssize_t n,
    Py_ssize_t k, int64_t* cells,
) noexcept nogil:
    """Add the weight and the number of rows to the cells of one feature, for each code and class."""
    cdef Py_ssize_t i
    cdef int64_t* cell
    for i in range(n):
        cell = cells + code[rows[i]] * (k + 1)
        cell[label[i]] += mass[i]
        cell[k] += 1


cdef inline void add_moments(
    const uint8_t* code, const int32_t* rows, const int64_t* mass, Py_ssize_t n, int64_t* cells
) noexcept nogil:
    """Add two sums and the number of rows to the cells of one feature, for each code."""
    cdef Py_ssize_t i
    cdef int64_t* cell
    for i in range(n):
        cell = cells + <Py_ssize_t>code[rows[i]] * 3
        cell[0] += mass[2 * i]
        cell[1] += mass[2 * i + 1]
        cell[2] += 1


def count_cells(
    const uint8_t[:, ::1] codes, const int32_t[::1] rows, const int64_t[::1] stop,
    const int32_t[::1] label, const int64_t[:, ::1] mass, Py_ssize_t first, Py_ssize_t last,
    int64_t[:, :, :, ::1] cells,
):
    """Add the rows of nodes to histograms of the features first..last-1.

    IN codes (d, n); rows (m,): the rows of all nodes; stop (nodes,): end of the rows of each node; label
    (m,) and mass (m, 1), or an empty label and mass (m, 2). INOUT cells (nodes, d, codes, k + 1): the
    weight of each of k classes, or two sums; then the number of rows.
    """
    cdef Py_ssize_t f, e, start, n, m = rows.shape[0], k = cells.shape[3] - 1
    cdef bint by_class = mass.shape[1] == 1
    if mass.shape[0] != m or label.shape[0] != (m if by_class else 0) or last > cells.shape[1]:
        raise ValueError("count_cells: arrays of different sizes")
    if m == 0:
        return
    with nogil:
        for f in range(first, last):
            start = 0
            for e in range(stop.shape[0]):
                n = stop[e] - start
                if n == 0:
                    continue
                if not by_class:
                    add_moments(&codes[f, 0], &rows[start], &mass[start, 0], n, &cells[e, f, 0, 0])
                elif k == 2:
                    add_classes(&codes[f, 0], &rows[start], &label[start], &mass[start, 0], n, 2,
                                &cells[e, f, 0, 0])
                else:
                    add_classes(&codes[f, 0], &rows[start], &label[start], &mass[start, 0], n, k,
                                &cells[e, f, 0, 0])
                start = stop[e]


def sum_above(
    const int32_t[::1] rows, const int64_t[::1] stop, const double[::1] weight, const double[::1] y,
    const double[:, ::1] numbers, int64_t[::1] found,
):
    """Sum weight times (target - least target) for each node, in fixed point.

    IN rows (m,): the rows of all nodes; stop (nodes,): end of the rows of each node; numbers (nodes, 2):
    least target and scale. INOUT found (nodes,).
    """
    cdef Py_ssize_t e, i = 0
    with nogil:
        for e in range(stop.shape[0]):
            while i < stop[e]:
                found[e] += <int64_t>(
                    weight[rows[i]] * (y[rows[i]] - numbers[e, 0]) * numbers[e, 1])
                i += 1


def sum_squares(
    const int32_t[::1] rows, const int64_t[::1] stop, const double[::1] weight, const double[::1] y,
    const double[:, ::1] numbers, int64_t[:, ::1] found,
):
    """Sum deviations, their squares, and the rounding errors of both for each node, like `measure_binned`.

    IN the arrays of `sum_above`, but numbers (nodes, 3): mean, scale of deviations, scale of squares. INOUT
    found (nodes, 4).
    """
    cdef Py_ssize_t e, i = 0
    cdef double deviation, part
    cdef int64_t whole
    with nogil:
        for e in range(stop.shape[0]):
            while i < stop[e]:
                deviation = y[rows[i]] - numbers[e, 0]
                part = weight[rows[i]] * deviation * numbers[e, 1]
                whole = <int64_t>rint(part)
                found[e, 0] += whole
                found[e, 1] += <int64_t>((part - <double>whole) * FINER)
                part = weight[rows[i]] * deviation * deviation * numbers[e, 2]
                whole = <int64_t>part
                found[e, 2] += whole
                found[e, 3] += <int64_t>((part - <double>whole) * FINER)
                i += 1


def coarse_shift_of(double heaviest, Py_ssize_t n):
    """Return a shift for which the sum of `n` weights up to `heaviest` fits into 64 bits."""
    return coarse_shift(heaviest, n)


def full_shift_of(int64_t total, int shift):
    """Return the shift that keeps the most bits of weights, given their sum with another shift."""
    return full_shift(total, shift)


def begin_moments(arrays, Py_ssize_t e, double least, double most):
    """Choose the units of the sums of a node, given the range of its targets. Its weight must be set.

    Return the scale of the squares. The scale of the deviations is stored in the node.
    """
    cdef Tree t = nodes_of(arrays)
    return begin_squares(&t, e, least, most)


def centre_moments(arrays, Py_ssize_t e, double least, double most, int64_t above):
    """Compute the mean of a node, given the sum of weight times (target - `least`) in the node's units."""
    cdef Tree t = nodes_of(arrays)
    first_mean(&t, e, least, most, above)


def end_moments(
    arrays, Py_ssize_t e, double least, double most, double scale, const int64_t[::1] found
):
    """Compute the mean and squared error of a node, given its sums from `sum_squares`."""
    cdef Tree t = nodes_of(arrays)
    cdef Sums sums
    if found.shape[0] != 4:
        raise ValueError("end_moments: expected four sums")
    sums.scale, sums.v, sums.v_low = scale, found[0], found[1]
    sums.square, sums.square_low = found[2], found[3]
    end_squares(&t, e, least, most, &sums)
