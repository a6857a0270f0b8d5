# Pointers to the arrays of a boosting round, for one call; see `Rounds` in trees/tree_rounds.py.
from pboost._core._address cimport to_read, to_write
from pboost._core._boost_leaf cimport Rows
from pboost._core._boost_round cimport Node, Open, Passes, Round, Stack, State
from pboost._core._team cimport team_at
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t


cdef inline int read_costs(Round* r, arrays) except -1:
    """Read the feature costs, and the marks of the rows that have already paid for them."""
    r.item = NULL
    if arrays.payments is None:
        return 0
    r.item = <const int32_t*>to_read(arrays.payments.item, sizeof(int32_t))
    r.cost = <const double*>to_read(arrays.payments.cost, sizeof(double))
    r.paid = <const uint8_t*>to_read(arrays.payments.paid, sizeof(uint8_t))
    r.payers, r.payer_weight = <const uint8_t*>to_read(arrays.payments.payers, sizeof(uint8_t)), NULL
    if arrays.weight is not None:
        r.payer_weight = <const double*>to_read(arrays.weight, sizeof(double))
    r.to_pay, r.n_items = <double*>to_write(arrays.payments.to_pay, sizeof(double)), len(arrays.payments.cost)
    r.comparison_cost, r.tradeoff = arrays.payments.comparison, arrays.payments.tradeoff
    return 0


cdef inline int read_changing(Round* r, arrays, Passes* passes) except -1:
    """Read the fields of a round that change from tree to tree."""
    r.passes, r.team, r.n = passes, team_at(arrays.team), arrays.n_listed
    r.low = <int64_t*>to_write(arrays.low, sizeof(int64_t)) if arrays.is_wide else NULL
    r.l2, r.min_weight, r.min_gain = arrays.node_l2, arrays.node_weight, arrays.node_gain
    r.comparisons, r.jitter, r.number = arrays.comparisons, arrays.jitter, arrays.number
    return 0


cdef inline Round read_round(arrays, Passes* passes) except *:
    """Read the arrays of a round. With `fixed` (see `fix`), only the fields that change are read."""
    cdef Round r
    cdef const Round* fixed
    if arrays.fixed is not None:
        fixed = <const Round*>to_read(arrays.fixed, sizeof(Round))
        if fixed.packed == to_write(arrays.packed, sizeof(int64_t)):  # not a copy of these arrays
            r = fixed[0]
            read_changing(&r, arrays, passes)
            return r
    r.codes = <const uint8_t*>to_read(arrays.codes, sizeof(uint8_t))
    r.groups = <const uint8_t*>to_read(arrays.lanes.groups, sizeof(uint8_t))
    r.special = NULL
    if arrays.special is not None:
        r.special = <const uint8_t*>to_read(arrays.special, sizeof(uint8_t))
    r.n_bins = <const int32_t*>to_read(arrays.n_bins, sizeof(int32_t))
    r.lane = <const int32_t*>to_read(arrays.lanes.lane, sizeof(int32_t))
    r.code = <const uint8_t*>to_read(arrays.lanes.code, sizeof(uint8_t))
    r.side = <const uint8_t*>to_read(arrays.lanes.side, sizeof(uint8_t))
    r.column = <const int32_t*>to_read(arrays.lanes.column, sizeof(int32_t))
    r.bundled = <const int32_t*>to_read(arrays.lanes.bundled, sizeof(int32_t))
    r.n_lanes, r.n_bundled = len(arrays.lanes.column), len(arrays.lanes.bundled)
    r.group_bins = <const int32_t*>to_read(arrays.group_bins, sizeof(int32_t))
    r.group_place = <const int64_t*>to_read(arrays.group_place, sizeof(int64_t))
    r.rows = <int32_t*>to_write(arrays.rows, sizeof(int32_t))
    r.spare = <int32_t*>to_write(arrays.spare, sizeof(int32_t))
    r.copies, r.block = NULL, arrays.block
    if arrays.are_copies:
        r.copies = <const double*>to_read(arrays.weight, sizeof(double))
    r.packed = <int64_t*>to_write(arrays.packed, sizeof(int64_t))
    r.spare_packed = <int64_t*>to_write(arrays.spare_packed, sizeof(int64_t))
    r.masses = <double*>to_write(arrays.masses, sizeof(double))
    r.node = <Node*>to_write(arrays.node, sizeof(Node))
    r.subset = <uint64_t*>to_write(arrays.subset, sizeof(uint64_t))
    r.open = <Open*>to_write(arrays.open, sizeof(Open))
    r.state = <State*>to_write(arrays.state, sizeof(State))
    read_changing(&r, arrays, passes)
    r.d, r.stride = arrays.codes.shape[0], arrays.codes.shape[1]
    r.n_rows, r.n_slots, r.slot = r.stride, arrays.n_slots, arrays.masses.shape[1]
    r.who, r.n_threads = 0, arrays.n_threads
    r.share, r.n_takers = arrays.share, arrays.slot_of.shape[0]
    r.n_open, r.n_levels = arrays.open.shape[1], arrays.slot_of.shape[1]
    r.stack = <Stack*>to_write(arrays.stack, sizeof(Stack))
    r.slot_of = <int32_t*>to_write(arrays.slot_of, sizeof(int32_t))
    r.max_depth, r.min_leaf = arrays.max_depth, arrays.min_samples_leaf
    r.level_smoothing = arrays.categorical_smoothing
    r.has_levels = len(arrays.subset) > 0
    r.free, r.max_leaves = <int32_t*>to_write(arrays.free, sizeof(int32_t)), arrays.max_leaf_nodes
    r.row_mass = NULL
    if arrays.row_mass is not None:
        r.row_mass = <const int64_t*>to_read(arrays.row_mass, sizeof(int64_t))
    r.direction = NULL
    if arrays.restraints.direction is not None:
        r.direction = <const int32_t*>to_read(arrays.restraints.direction, sizeof(int32_t))
    r.together, r.alive, r.group_words = NULL, NULL, 0
    if arrays.restraints.together is not None:
        r.together = <const uint64_t*>to_read(arrays.restraints.together, sizeof(uint64_t))
        r.alive, r.group_words = <uint64_t*>to_write(arrays.alive, sizeof(uint64_t)), arrays.alive.shape[1]
    r.of_tree = r.of_node = NULL
    if arrays.of_tree is not None:
        r.of_tree = <uint8_t*>to_write(arrays.of_tree, sizeof(uint8_t))
        r.of_node = <uint8_t*>to_write(arrays.of_node, sizeof(uint8_t))
        r.picked = <int32_t*>to_write(arrays.picked, sizeof(int32_t))
        r.per_tree, r.per_split = arrays.per_tree, arrays.per_split
        r.key = arrays.restraints.key
    r.jitter_key = arrays.restraints.jitter_key
    r.level_score, r.level_depth = 0.0, 0
    read_costs(&r, arrays)
    r.rows_by_bin = NULL
    r.pool = NULL
    if arrays.pooling is not None:
        r.gains = <float*>to_write(arrays.pooling.gains, sizeof(float))
        r.pool = <float*>to_write(arrays.pooling.pool, sizeof(float))
        r.set_place = <const int64_t*>to_read(arrays.pooling.set_place, sizeof(int64_t))
        r.sets, r.n_gains = <char*>to_write(arrays.pooling.sets, sizeof(char)), len(arrays.pooling.pool)
        r.pool_from, r.pooling = arrays.pooling.depth, arrays.pooling.share
    return r


cdef inline Rows read_loss(arrays) except *:
    """Read the loss and its options, but no rows."""
    cdef Rows rows
    rows.loss, rows.per_limit, rows.are_copies = arrays.loss_code, arrays.per_limit, arrays.are_copies
    rows.parameter, rows.y, rows.f, rows.weight = arrays.parameter, NULL, NULL, NULL
    return rows


cdef inline Rows read_rows(arrays) except *:
    cdef Rows rows = read_loss(arrays)
    rows.y = <const double*>to_read(arrays.y, sizeof(double))
    rows.f = <const double*>to_read(arrays.f, sizeof(double))
    if arrays.weight is not None:
        rows.weight = <const double*>to_read(arrays.weight, sizeof(double))
    return rows


cdef inline const double* residual_of(arrays) except? NULL:
    """Return the gradients of one class for the softmax loss, and NULL for other losses."""
    return NULL if arrays.residual is None else <const double*>to_read(arrays.residual, sizeof(double))
