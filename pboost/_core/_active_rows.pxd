# The rows of a tile that are still being evaluated by a model with early exits.
from libc.math cimport fabs
from libc.string cimport memset

from pboost._core._tile cimport TILE
from pboost._core.types cimport int32_t, int64_t, uint8_t

# Rows keep their lanes until half of them have stopped; then the remaining rows are moved together.
cdef struct Lanes:
    Py_ssize_t n, active
    int32_t[TILE] row  # row number in the tile as loaded
    int32_t[TILE] cost
    uint8_t[TILE] left

# The stopping rule of early exits, see `pboost.models.evaluate.exits`. `checked` marks the stages at which
# a row can stop.
cdef struct Exits:
    const double* high  # (T, V)
    const double* low
    const uint8_t* checked
    Py_ssize_t n_joints, n_values


cdef inline Exits exits_of(
    const double[:, ::1] high, const double[:, ::1] low, const uint8_t[::1] checked
) except *:
    """Return the stopping rule, in arrays that must outlive it."""
    cdef Exits exits
    exits.n_joints, exits.n_values = high.shape[0], high.shape[1]
    if (low.shape[0] != exits.n_joints or low.shape[1] != exits.n_values
            or checked.shape[0] != exits.n_joints or not exits.n_joints or not exits.n_values):
        raise ValueError("exits: arrays of different sizes")
    exits.high, exits.low, exits.checked = &high[0, 0], &low[0, 0], &checked[0]
    return exits


cdef inline void all_enter(Lanes* lanes, Py_ssize_t n) noexcept nogil:
    """Put n rows into their lanes."""
    cdef Py_ssize_t r
    memset(lanes, 0, sizeof(Lanes))
    lanes.n = lanes.active = n
    for r in range(n):
        lanes.row[r] = <int32_t>r


cdef inline bint is_settled(
    const Exits* exits, Py_ssize_t t, const double* value, Py_ssize_t step
) noexcept nogil:
    """Return whether a row with these values stops at stage t."""
    cdef Py_ssize_t j, best = 0, n = exits.n_values
    cdef const double* high = exits.high + t * n
    cdef double low
    for j in range(1, n):
        if value[j * step] > value[best * step]:
            best = j
    low = exits.low[t * n + best]
    for j in range(n):
        if j != best and not value[best * step] - value[j * step] >= high[j] - low:
            return False
    return True


cdef inline double least_lead(const Exits* exits, Py_ssize_t t) noexcept nogil:
    """Return a lower bound on the lead with which a row can stop at stage t."""
    cdef Py_ssize_t j, n = exits.n_values
    cdef double high = exits.high[t * n], low = exits.low[t * n]
    for j in range(1, n):
        high, low = min(high, exits.high[t * n + j]), max(low, exits.low[t * n + j])
    return high - low


cdef inline void leads_of(
    const double* value, Py_ssize_t n_values, Py_ssize_t n, double* lead
) noexcept nogil:
    """Compute an upper bound on the lead of the largest of the values (V, TILE) of each lane.

    It allows for the rounding of a division of the values. The loops have no branches, so that they are
    vectorized. OUT lead (TILE,).
    """
    cdef Py_ssize_t j, r
    cdef const double* other
    cdef double[TILE] best, second
    cdef double here, first, lower, next_, unit = 1.0 / (<int64_t>1 << 49)
    for r in range(n):
        here, first = value[r], value[TILE + r]
        best[r] = here if here > first else first
        second[r] = first if here > first else here
    for j in range(2, n_values):
        other = value + j * TILE
        for r in range(n):
            here, first, next_ = other[r], best[r], second[r]
            lower = first if here > first else here
            best[r] = here if here > first else first
            second[r] = lower if lower > next_ else next_
    for r in range(n):
        lead[r] = best[r] - second[r] + unit * (fabs(best[r]) + fabs(second[r]))


cdef inline Py_ssize_t mark_leaving(
    const Exits* exits, Py_ssize_t t, const double* value, const Lanes* lanes, uint8_t* leaves
) noexcept nogil:
    """Mark the rows that stop at stage t, given one value per lane; return their number. OUT leaves."""
    cdef Py_ssize_t r, n = 0
    cdef double high = exits.high[t], low = exits.low[t]
    for r in range(lanes.n):  # no branch, so that it is vectorized
        leaves[r] = ((value[r] >= high) | (value[r] <= low)) & (lanes.left[r] == 0)
    for r in range(lanes.n):
        n += leaves[r]
    return n


cdef inline Py_ssize_t stay(Lanes* lanes, int32_t* source) noexcept nogil:
    """Move the remaining rows to the first lanes. OUT source: their previous lanes."""
    cdef Py_ssize_t r, n = 0
    for r in range(lanes.n):
        if lanes.left[r]:
            continue
        source[n], lanes.row[n], lanes.cost[n] = <int32_t>r, lanes.row[r], lanes.cost[r]
        n += 1
    memset(lanes.left, 0, sizeof(lanes.left))
    lanes.n = n
    return n


cdef inline void move_up(
    double* values, Py_ssize_t n_columns, const int32_t* source, Py_ssize_t n
) noexcept nogil:
    """Move the values (n_columns, TILE) of rows to their new lanes."""
    cdef Py_ssize_t j, r
    cdef double* column
    for j in range(n_columns):
        column = values + j * TILE
        for r in range(n):
            column[r] = column[source[r]]
