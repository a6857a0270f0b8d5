# Splitting the nodes of a boosted tree, and writing the finished tree in preorder.
from libc.string cimport memcpy, memmove, memset

from pboost._core._boost_columns cimport take_for_node, take_for_tree
from pboost._core._boost_histogram cimport count_node, spare_of, subtract_child
from pboost._core._boost_categories cimport spread_of, squares_in
from pboost._core._boost_costs cimport take_costs
from pboost._core._boost_round cimport (
    CELLS_PER_ROW, Cut, LANES, LOW_UNIT, Masses, Node, Open, Round, SAME_MASS, Stack, State, WORDS,
    curvature_in, gradient_in, is_any, is_pure, kind_of, masses_of, n_groups, own_score, read_bin, step_within, sums_below,
)
from pboost._core._boost_search cimport search
from pboost._core._side cimport code_goes_right, in_set
from pboost._core._team cimport (
    Threads, Wait, close_post, help, load, lock, nap, open_post, pause, plus, run_ranges, unlock, wake,
)
from pboost._core.types cimport HOLES, LEVELS, MAX_BINS, int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    MOST_PIECES = 16  # maximum number of chunks in a partition


cdef inline bint has_set(const Node* node) noexcept nogil:
    return node.feature >= 0 and node.low < 0


cdef inline void put_levels(
    const Round* r, const Node* node, const Cut* cut, const double* slot, uint64_t* subset
) noexcept nogil:
    """Store the categories of the right child (OUT subset).

    Categories that do not occur at the node go to the same child as missing values.
    """
    cdef Py_ssize_t l, w
    cdef double gradient, curvature
    for w in range(WORDS):
        subset[w] = cut.above[w]
    for l in range(r.n_bins[cut.feature]):
        read_bin(r, node, slot, r.lane[cut.feature], l, &gradient, &curvature)
        if node.missing and curvature == 0.0:
            subset[l >> 6] |= <uint64_t>1 << (l & 63)


cdef inline void note_cut(
    const Round* r, Node* node, const Cut* cut, const double* slot, double* gradient, double* curvature
) noexcept nogil:
    """Store a split in its node. OUT gradient, curvature: the sums of the left child.

    If no row of the node has a missing value, missing values go to the child with the larger Hessian sum.
    """
    cdef uint64_t* subset
    cdef Py_ssize_t w
    cdef uint64_t some = 0
    sums_below(r, node, slot, cut, gradient, curvature)
    node.feature, node.missing = cut.feature, cut.missing
    if cut.missing < 0:
        node.missing = (node.curvature - curvature[0]) * (1.0 - SAME_MASS) > curvature[0]
    node.low, node.high = cut.bin, cut.bin + 1
    if cut.is_set:
        subset = r.subset + WORDS * (node - r.node)
        put_levels(r, node, cut, slot, subset)
        for w in range(WORDS):
            some |= subset[w]
        node.low, node.high = -1 if some else 0, -1
    elif cut.bin == r.n_bins[cut.feature] - 1:
        node.low, node.high = 0, -1  # known against missing values


cdef inline int side_of(
    const Round* r, const Node* node, const uint64_t* subset, int code
) noexcept nogil:
    """Return the child of rows with this bin code: 0 for left, 1 for right."""
    cdef Py_ssize_t f = node.feature
    if kind_of(r, f) & HOLES and code == r.n_bins[f]:
        return node.missing
    if has_set(node):
        return in_set(subset, code)
    return code_goes_right(code, node.low) if node.high >= 0 else 0


cdef inline void put_sides(const Round* r, const Node* node, uint8_t* above) noexcept nogil:
    """Compute the child of each bin code of the split feature (OUT above, shape (256,))."""
    cdef int code
    for code in range(MAX_BINS):
        above[code] = side_of(r, node, r.subset + WORDS * (node - r.node), code)


# A partition of rows and of their packed gradients. Each chunk is partitioned, then the chunks are joined.
cdef struct Parting:
    const Round* r
    const uint8_t* codes
    const uint8_t* table
    int cut
    int32_t* rows
    int32_t* spare
    int64_t* words
    int64_t* spare_words
    Py_ssize_t step  # rows per chunk
    Py_ssize_t[MOST_PIECES] below, place  # per chunk: number of left rows, position of right rows


cdef inline void part_piece(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Parting* all = <Parting*>task
    all.below[start // all.step] = all.r.passes.part(
        all.codes, all.cut, all.table, all.rows + start,
        all.words + start if all.words != NULL else NULL, stop - start, all.spare + start,
        all.spare_words + start)


cdef inline void put_above(void* task, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Move the right rows of a chunk to their final position."""
    cdef Parting* all = <Parting*>task
    cdef Py_ssize_t k = start // all.step
    cdef Py_ssize_t place = all.place[k], n = stop - start - all.below[k]
    memcpy(all.rows + place, all.spare + start, sizeof(int32_t) * n)
    if all.words != NULL:
        memcpy(all.words + place, all.spare_words + start, sizeof(int64_t) * n)


cdef inline Py_ssize_t part_rows(Parting* all, Threads* team, int who, Py_ssize_t n) noexcept nogil:
    """Partition n rows in one or more chunks and return the number of left rows.

    Rows keep their order within each child.
    """
    cdef Py_ssize_t k, start, below, n_below, n_above, pieces = (n + all.step - 1) // all.step
    run_ranges(team, who, n, all.step, part_piece, all)
    n_below = all.below[0]
    for k in range(1, pieces):
        start, below = k * all.step, all.below[k]
        memmove(all.rows + n_below, all.rows + start, sizeof(int32_t) * below)
        if all.words != NULL:
            memmove(all.words + n_below, all.words + start, sizeof(int64_t) * below)
        n_below += below
    n_above = n_below
    for k in range(pieces):
        all.place[k] = n_above
        n_above += min(all.step, n - k * all.step) - all.below[k]
    run_ranges(team, who, n, all.step, put_above, all)
    return n_below


cdef inline Py_ssize_t pieces_of(const Round* r, Py_ssize_t n) noexcept nogil:
    """Return the number of chunks for partitioning n rows.

    Use one chunk per thread if some threads are idle, as at the root, and a single chunk otherwise.
    """
    cdef bint some_idle = r.n_takers == 1 or load(&r.state.busy) + load(&r.state.open) < r.n_threads
    if r.team == NULL or n < 2 * r.share or not some_idle:
        return 1
    return min(r.n_threads, MOST_PIECES)


cdef inline Py_ssize_t part_node(const Round* r, const Node* node, bint with_words) noexcept nogil:
    """Partition the rows of a node and return the number of left rows.

    If `with_words` is true, also partition the packed gradients.
    """
    cdef uint8_t[MAX_BINS] above
    cdef Parting all
    cdef Py_ssize_t n = node.stop - node.start, pieces = pieces_of(r, n)
    all.table = NULL
    if kind_of(r, node.feature) and (node.high < 0 or node.missing == 0):
        put_sides(r, node, above)
        all.table = above
    all.r, all.codes, all.cut = r, r.codes + node.feature * r.stride, node.low
    all.rows, all.words = r.rows + node.start, NULL
    if with_words and r.low == NULL:
        all.words = r.packed + node.start
    all.spare, all.spare_words = r.spare + spare_of(r, node), r.spare_packed + spare_of(r, node)
    all.step = (n + pieces - 1) // pieces
    return part_rows(&all, r.team, r.who, n)


cdef inline void part_others(
    const Round* r, Py_ssize_t n_nodes, const int32_t* children, int32_t* others, Py_ssize_t n, int32_t* spans
) noexcept nogil:
    """Partition n rows by the splits of a grown tree, on which it was not grown.

    The nodes are in an order with parents first; `children` (n_nodes, 2) is NULL in the order of creation.
    IN/OUT others (n + ROOM,). OUT spans (n_nodes, 2): the rows of each node.
    """
    cdef Round of_others = r[0]
    cdef Node* node
    cdef Py_ssize_t e, middle, first, second
    cdef int32_t start, stop
    of_others.rows = others
    spans[0], spans[1] = 0, <int32_t>n
    for e in range(n_nodes):
        node = r.node + e
        if node.feature < 0:
            continue
        start, stop = node.start, node.stop
        node.start, node.stop = spans[2 * e], spans[2 * e + 1]
        middle = node.start
        if node.stop > node.start:
            middle += part_node(&of_others, node, False)
        first = node.child if children == NULL else children[2 * e]
        second = node.child + 1 if children == NULL else children[2 * e + 1]
        spans[2 * first], spans[2 * first + 1] = node.start, <int32_t>middle
        spans[2 * second], spans[2 * second + 1] = <int32_t>middle, node.stop
        node.start, node.stop = start, stop


cdef inline void make_root(const Round* r) noexcept nogil:
    """Create the root from all rows of the tree, without its histogram."""
    cdef Py_ssize_t i
    memset(r.node, 0, sizeof(Node))
    r.node.stop, r.node.feature, r.node.child = <int32_t>r.n, -1, -1
    r.node.low = r.node.high = -1
    take_for_tree(r)
    memset(r.state, 0, sizeof(State))
    memset(r.stack, 0, sizeof(Stack) * r.n_takers)
    for i in range(r.n_takers * r.n_levels):
        r.slot_of[i] = <int32_t>i
    r.state.nodes = r.state.open = r.stack.last = 1
    r.open.node = r.open.slot = 0


cdef inline void sum_root(const Round* r) noexcept nogil:
    """Compute the gradient and Hessian sums of the root from its histogram."""
    cdef Py_ssize_t b, g = 0
    cdef double gradient, curvature
    while not is_any(r, r.of_tree, g):
        g += 1
    for b in range(r.group_bins[g]):
        read_bin(r, r.node, r.masses, g * LANES, b, &gradient, &curvature)
        r.node.gradient += gradient
        r.node.curvature += curvature


cdef inline Node child_of(
    const Node* node, Py_ssize_t start, Py_ssize_t stop, double gradient, double curvature
) noexcept nogil:
    cdef Node child
    child.start, child.stop, child.depth = <int32_t>start, <int32_t>stop, node.depth + 1
    child.feature = child.low = child.high = child.child = -1
    child.missing = child.shift = child.parent = 0
    child.gradient, child.curvature = gradient, curvature
    child.mean = child.loss = child.spread = child.net = 0.0
    child.least, child.most = node.least, node.most
    return child


cdef inline bint is_smoothed(const Round* r) noexcept nogil:
    """Return whether the gains of categorical splits are smoothed."""
    return r.has_levels and r.level_smoothing > 0.0


cdef inline bint may_split(const Round* r, const Node* node) noexcept nogil:
    return node.depth < r.max_depth and node.stop - node.start >= 2 * max(r.min_leaf, 1)


cdef inline void note_leaf(Node* node) noexcept nogil:
    """Make a node a leaf."""
    node.feature = node.low = node.high = -1
    node.missing = 0
    node.loss = 0.0


cdef inline bint find_cut(
    const Round* r, Node* node, const double* slot, int counted, double* gradient, double* curvature
) noexcept nogil:
    """Find and store the split with the largest gain in the node itself. Return False if there is none.

    OUT gradient, curvature: the sums of the left child.
    """
    cdef Masses at = masses_of(r, node)
    cdef Cut best
    search(r, node, slot, counted, &best)
    if best.feature < 0:
        return False
    node.loss = best.numerator / best.divisor - own_score(&at)
    if node.loss < r.min_gain:
        return False
    note_cut(r, node, &best, slot, gradient, curvature)
    return True


cdef inline bint cut_node(
    const Round* r, Node* node, const double* slot, bint is_last, Py_ssize_t* n_below, double* gradient,
    double* curvature
) noexcept nogil:
    """Find the split of a node and partition its rows. Return False if the node stays a leaf."""
    cdef Py_ssize_t n = node.stop - node.start
    cdef int counted
    if is_pure(r, node):
        return False
    if is_smoothed(r):
        node.spread = spread_of(r, node, squares_in(r, node))
    take_for_node(r, node)
    take_costs(r, node)
    for counted in range(2):
        if not find_cut(r, node, slot, counted, gradient, curvature):
            break
        n_below[0] = part_node(r, node, not is_last)
        if min(n_below[0], n - n_below[0]) >= r.min_leaf:
            return True
    note_leaf(node)
    return False


cdef inline void bound_children(const Round* r, const Node* node) noexcept nogil:
    """Limit the leaf values of the children of a monotonic split to either side of their midpoint."""
    cdef Node* below = r.node + node.child
    cdef Node* above = below + 1
    cdef Masses at = masses_of(r, node)
    cdef int direction = r.direction[node.feature]
    cdef double middle
    if direction == 0 or node.high < 0:  # a split of known from missing values
        return
    middle = 0.5 * step_within(&at, below.gradient, below.curvature) + (
        0.5 * step_within(&at, above.gradient, above.curvature))
    if direction < 0:
        below, above = above, below
    below.most = above.least = middle


cdef inline void open_child(const Round* r, const Node* child, int32_t level) noexcept nogil:
    cdef Stack* own = r.stack + r.who
    cdef Open* at = r.open + r.who * r.n_open + own.last
    if may_split(r, child):
        at.node, at.slot = <int32_t>(child - r.node), level
        own.last += 1
        plus(&r.state.open, 1)


cdef inline Node* make_children(
    const Round* r, int32_t e, Py_ssize_t n_below, double gradient, double curvature
) noexcept nogil:
    """Create the children of a split node and return the one with fewer rows."""
    cdef Node* node = r.node + e
    cdef Node* below
    cdef Py_ssize_t middle = node.start + n_below
    lock(&r.state.in_hand)
    node.child = <int32_t>r.state.nodes
    r.state.nodes += 2
    unlock(&r.state.in_hand)
    below = r.node + node.child
    below[0] = child_of(node, node.start, middle, gradient, curvature)
    below[1] = child_of(
        node, middle, node.stop, node.gradient - gradient, node.curvature - curvature)
    below[0].parent = below[1].parent = e
    if r.direction != NULL:
        bound_children(r, node)
    return below + (2 * n_below > node.stop - node.start)


cdef inline Node* other_child(const Round* r, const Node* child) noexcept nogil:
    cdef int32_t first = r.node[child.parent].child
    return r.node + first + (child == r.node + first)


cdef inline Node* split_node(const Round* r, Open at) noexcept nogil:
    """Split an open node if possible, and compute its children's histograms.

    Return the smaller child, or NULL if there is none.
    """
    cdef Node* node = r.node + at.node
    cdef Node* small
    cdef Node* large
    cdef double* slot = r.masses + r.slot_of[at.slot] * r.slot
    cdef double* next_
    cdef double gradient, curvature
    cdef Py_ssize_t n_below
    if not may_split(r, node) or not cut_node(
            r, node, slot, node.depth + 1 == r.max_depth, &n_below, &gradient, &curvature):
        return NULL
    small = make_children(r, at.node, n_below, gradient, curvature)
    large = other_child(r, small)
    if may_split(r, large):
        next_ = r.masses + r.slot_of[at.slot + 1] * r.slot
        count_node(r, small, next_)
        subtract_child(r, node, small, large, slot, next_)
    return small


cdef inline bint take_open(const Round* r, Open* at) noexcept nogil:
    """Take an open node.

    This is the thread's newest node or, if it has none, the largest of the other threads' oldest nodes.

    OUT at.slot: the position of the node in this thread's list of histograms.
    """
    cdef Stack* own = r.stack + r.who
    cdef Open* oldest
    cdef Py_ssize_t k, n, largest = -1, of = -1
    cdef int32_t slot
    if load(&r.state.open) == 0:
        return False
    lock(&r.state.in_hand)
    if r.state.done < r.state.wanted and own.last > own.first:
        own.last -= 1
        at[0] = r.open[r.who * r.n_open + own.last]
        of = r.who
    elif r.state.done < r.state.wanted:
        for k in range(r.n_takers):
            oldest = r.open + k * r.n_open + r.stack[k].first
            if r.stack[k].last > r.stack[k].first:
                n = r.node[oldest.node].stop - r.node[oldest.node].start
                if n > largest:
                    largest, of, at[0] = n, k, oldest[0]
        if of >= 0:
            r.stack[of].first += 1
            slot = r.slot_of[(of - r.who) * r.n_levels + at.slot]
            r.slot_of[(of - r.who) * r.n_levels + at.slot] = r.slot_of[0]
            r.slot_of[0], at.slot = slot, 0
    if of >= 0:
        if r.stack[of].first == r.stack[of].last:
            r.stack[of].first = r.stack[of].last = 0
        plus(&r.state.open, -1)  # other threads read `open` and `busy` without a lock
        plus(&r.state.busy, 1)
    unlock(&r.state.in_hand)
    return of >= 0


cdef inline bint grow_part(void* task, int who) noexcept nogil:
    """Split open nodes until none is left."""
    cdef Round r = (<const Round*>task)[0]
    cdef bint did = False
    cdef Open at
    cdef Node* small
    cdef Node* large = NULL
    cdef Py_ssize_t n
    if who < r.n_takers and load(&r.state.open) > 0:
        take_place(&r, who)
        while take_open(&r, &at):
            did = True
            small = split_node(&r, at)
            n = r.d * (r.node[at.node].stop - r.node[at.node].start)
            lock(&r.state.in_hand)
            r.state.done += n
            plus(&r.state.busy, -1)
            if small != NULL:
                # The smaller child is added last and taken first, so that it can use the memory after the
                # histogram of its sibling.
                large = other_child(&r, small)
                open_child(&r, large, at.slot)
                open_child(&r, small, at.slot + 1)
            unlock(&r.state.in_hand)
            if r.team != NULL and n >= CELLS_PER_ROW * r.share and load(&r.state.open) > 1:
                wake(r.team)
    return did or (r.team != NULL and help(r.team, who, 1))


cdef inline void grow_together(Round* r) noexcept nogil:
    """Split open nodes on several threads; idle threads wait for new open nodes."""
    cdef Wait wait
    if r.team == NULL:
        grow_part(r, 0)
        return
    open_post(r.team, 0, grow_part, r)
    memset(&wait, 0, sizeof(Wait))
    while True:
        if grow_part(r, 0):
            memset(&wait, 0, sizeof(Wait))
        elif load(&r.state.busy) == 0:
            break
        elif pause(&wait):
            nap(r.team, 0)
    close_post(r.team, 0, 0)


cdef inline void sum_words(
    const Round* r, const int64_t* words, const int64_t* low, Py_ssize_t start, Py_ssize_t stop,
    double* gradient, double* curvature
) noexcept nogil:
    """Sum the words (n_rows,) of a range of listed rows, and their second words unless `low` is NULL.

    OUT gradient, curvature.
    """
    cdef Py_ssize_t i
    cdef int64_t first, second
    cdef double unit = 1.0 if low == NULL else <double>LOW_UNIT
    gradient[0] = curvature[0] = 0.0
    while start < stop:
        first = second = 0
        for i in range(start, min(start + r.block, stop)):
            first += words[r.rows[i]]
            if low != NULL:
                second += low[r.rows[i]]
        gradient[0] += gradient_in(first) * unit + gradient_in(second)
        curvature[0] += curvature_in(first) * unit + curvature_in(second)
        start += r.block


cdef inline void sum_nodes(const Round* r, const int64_t* words, const int64_t* low) noexcept nogil:
    """Replace the sums of the nodes by sums of these words, see `sum_words`."""
    cdef Node* node
    cdef Node* below
    cdef Py_ssize_t e
    for e in range(r.state.nodes - 1, -1, -1):  # children first
        node = r.node + e
        if node.child < 0:
            sum_words(r, words, low, node.start, node.stop, &node.gradient, &node.curvature)
        else:
            below = r.node + node.child
            node.gradient = below[0].gradient + below[1].gradient
            node.curvature = below[0].curvature + below[1].curvature


cdef inline void take_place(Round* r, int who) noexcept nogil:
    """Make a copy of the round that uses the histograms and work arrays of this thread."""
    r.who = who
    r.slot_of += who * r.n_levels
    if r.of_node != NULL:
        r.of_node += who * (r.d + n_groups(r))
        r.picked += who * r.d
    if r.alive != NULL:
        r.alive += who * r.group_words
    if r.item != NULL:
        r.to_pay += who * r.n_items


cdef inline void list_preorder(
    const Round* r, Node* nodes, int32_t* children, uint64_t* subset, int32_t* place
) noexcept nogil:
    """Write the nodes of the tree in preorder.

    OUT nodes; children (n, 2), -1 in leaves; subset (n, 4) unless NULL; WORK place (2 n,). The gain of each
    node becomes the sum of the gains of all splits in its subtree.
    """
    cdef Py_ssize_t n = r.state.nodes, e, c, p, w
    cdef int32_t* size = place + n
    for e in range(n - 1, -1, -1):
        c = r.node[e].child
        size[e] = 1
        if c >= 0:
            size[e] += size[c] + size[c + 1]
            r.node[e].loss = max(r.node[e].loss, 0.0) + (r.node[c].loss + r.node[c + 1].loss)
    place[0] = 0
    for e in range(n):
        c, p = r.node[e].child, place[e]
        nodes[p] = r.node[e]
        children[2 * p] = children[2 * p + 1] = -1
        if c >= 0:
            place[c] = <int32_t>p + 1
            place[c + 1] = place[c] + size[c]
            children[2 * p], children[2 * p + 1] = place[c], place[c + 1]
        if subset != NULL:
            for w in range(WORDS):
                subset[WORDS * p + w] = r.subset[WORDS * e + w] if has_set(nodes + p) else 0
