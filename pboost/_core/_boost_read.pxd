# The arrays of a round, see `Rounds` in trees/rounds.py, borrowed for one call.
from pboost._core._address cimport address
from pboost._core._boost_leaf cimport Rows
from pboost._core._boost_round cimport Node, Open, Passes, Round, Stack, State
from pboost._core._team cimport team_at
from pboost._core.types cimport int32_t, int64_t, uint8_t, uint64_t


cdef inline int read_prices(Round* r, arrays) except -1:
    """Read what columns cost, and who has paid."""
    r.item = NULL
    if arrays.payments is None:
        return 0
    r.item = <const int32_t*>address(arrays.payments.item)
    r.price, r.paid = <const double*>address(arrays.payments.price), <const uint8_t*>address(arrays.payments.paid)
    r.payers, r.payer_weight = <const uint8_t*>address(arrays.payments.payers), NULL
    if arrays.weight is not None:
        r.payer_weight = <const double*>address(arrays.weight)
    r.to_pay, r.n_items = <double*>address(arrays.payments.to_pay), len(arrays.payments.price)
    r.comparison_price, r.tradeoff = arrays.payments.comparison, arrays.payments.tradeoff
    return 0


cdef inline Round read_round(arrays, Passes* passes) except *:
    cdef Round r
    r.codes = <const uint8_t*>address(arrays.codes)
    r.groups = <const uint8_t*>address(arrays.lanes.groups)
    r.special = NULL
    if arrays.special is not None:
        r.special = <const uint8_t*>address(arrays.special)
    r.n_bins = <const int32_t*>address(arrays.n_bins)
    r.lane = <const int32_t*>address(arrays.lanes.lane)
    r.code, r.side = <const uint8_t*>address(arrays.lanes.code), <const uint8_t*>address(arrays.lanes.side)
    r.column = <const int32_t*>address(arrays.lanes.column)
    r.bundled = <const int32_t*>address(arrays.lanes.bundled)
    r.n_lanes, r.n_bundled = len(arrays.lanes.column), len(arrays.lanes.bundled)
    r.group_bins = <const int32_t*>address(arrays.group_bins)
    r.group_place = <const int64_t*>address(arrays.group_place)
    r.rows = <int32_t*>address(arrays.rows)
    r.spare = <int32_t*>address(arrays.spare)
    r.copies, r.block = NULL, arrays.block
    if arrays.are_copies:
        r.copies = <const double*>address(arrays.weight)
    r.packed = <int64_t*>address(arrays.packed)
    r.spare_packed = <int64_t*>address(arrays.spare_packed)
    r.low = NULL
    if arrays.is_wide:
        r.low = <int64_t*>address(arrays.low)
    r.masses = <double*>address(arrays.masses)
    r.node = <Node*>address(arrays.node)
    r.subset = <uint64_t*>address(arrays.subset)
    r.open = <Open*>address(arrays.open)
    r.state = <State*>address(arrays.state)
    r.passes = passes
    r.n, r.d, r.stride = arrays.n_listed, arrays.codes.shape[0], arrays.codes.shape[1]
    r.n_rows, r.n_slots, r.slot = r.stride, arrays.n_slots, arrays.masses.shape[1]
    r.team, r.who, r.n_threads = team_at(arrays.team), 0, arrays.n_threads
    r.share, r.n_takers = arrays.share, arrays.slot_of.shape[0]
    r.n_open, r.n_levels = arrays.open.shape[1], arrays.slot_of.shape[1]
    r.stack, r.slot_of = <Stack*>address(arrays.stack), <int32_t*>address(arrays.slot_of)
    r.max_depth, r.min_leaf = arrays.max_depth, arrays.min_leaf
    r.l2, r.level_smoothing = arrays.node_l2, arrays.level_smoothing
    r.has_levels = len(arrays.subset) > 0
    r.min_weight, r.min_gain = arrays.node_weight, arrays.node_gain
    r.free, r.max_leaves = <int32_t*>address(arrays.free), arrays.max_leaves
    r.comparisons, r.row_mass = arrays.comparisons, NULL
    if arrays.row_mass is not None:
        r.row_mass = <const int64_t*>address(arrays.row_mass)
    r.direction = NULL
    if arrays.restraints.direction is not None:
        r.direction = <const int32_t*>address(arrays.restraints.direction)
    r.together, r.alive, r.group_words = NULL, NULL, 0
    if arrays.restraints.together is not None:
        r.together = <const uint64_t*>address(arrays.restraints.together)
        r.alive, r.group_words = <uint64_t*>address(arrays.alive), arrays.alive.shape[1]
    r.of_tree = r.of_node = NULL
    if arrays.of_tree is not None:
        r.of_tree = <uint8_t*>address(arrays.of_tree)
        r.of_node = <uint8_t*>address(arrays.of_node)
        r.picked = <int32_t*>address(arrays.picked)
        r.per_tree, r.per_split = arrays.per_tree, arrays.per_split
        r.key, r.number = arrays.restraints.key, arrays.number
    read_prices(&r, arrays)
    r.rows_by_bin = NULL
    r.pool = NULL
    if arrays.pooling is not None:
        r.gains, r.pool = <float*>address(arrays.pooling.gains), <float*>address(arrays.pooling.pool)
        r.set_place = <const int64_t*>address(arrays.pooling.set_place)
        r.sets, r.n_gains = <char*>address(arrays.pooling.sets), len(arrays.pooling.pool)
        r.pool_from, r.pooling = arrays.pooling.depth, arrays.pooling.share
    return r


cdef inline Rows read_rows(arrays) except *:
    cdef Rows rows
    rows.loss, rows.per_limit, rows.are_copies = arrays.loss_code, arrays.per_limit, arrays.are_copies
    rows.parameter = arrays.parameter
    rows.y = <const double*>address(arrays.y)
    rows.f = <const double*>address(arrays.f)
    rows.weight = NULL
    if arrays.weight is not None:
        rows.weight = <const double*>address(arrays.weight)
    return rows


cdef inline const double* residual_of(arrays) except? NULL:
    """The gradients of one class of softmax; NULL of other losses."""
    return NULL if arrays.residual is None else <const double*>address(arrays.residual)
