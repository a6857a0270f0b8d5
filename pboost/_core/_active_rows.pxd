# The rows of a tile that a model with early exits is still evaluating.
from libc.math cimport fabs
from libc.string cimport memset

from pboost._core._tile cimport TILE
from pboost._core.types cimport int32_t, int64_t, uint8_t

# Stopped rows stay in place until half of the rows have stopped. Then the remaining rows move together.
cdef struct Lanes:
    Py_ssize_t n, active
    int32_t[TILE] row  # row number in the tile before rows are moved
    int32_t[TILE] cost
    uint8_t[TILE] left

# The stopping rule of early exits; see `pboost.models.evaluate.exits`. A row can stop only at a stage
# marked in `checked`.
cdef struct Exits:
    const double* high  # shape (n_stages, n_values)
    const double* low
    const uint8_t* checked
    Py_ssize_t n_joints, n_values


cdef inline Exits exits_of(
    const double[:, ::1] high, const double[:, ::1] low, const uint8_t[::1] checked
) except *:
    """Return the stopping rule. Its arrays must stay alive while it is used."""
    cdef Exits exits
    exits.n_joints, exits.n_values = high.shape[0], high.shape[1]
    if (low.shape[0] != exits.n_joints or low.shape[1] != exits.n_values
            or checked.shape[0] != exits.n_joints or not exits.n_joints or not exits.n_values):
        raise ValueError("exits: arrays of different sizes")
    exits.high, exits.low, exits.checked = &high[0, 0], &low[0, 0], &checked[0]
    return exits


cdef inline void all_enter(Lanes* lanes, Py_ssize_t n) noexcept nogil:
    """Store n rows at the start of the tile."""
    cdef Py_ssize_t r
    memset(lanes, 0, sizeof(Lanes))
    lanes.n = lanes.active = n
    for r in range(n):
        lanes.row[r] = <int32_t>r


cdef inline bint is_settled(
    const Exits* exits, Py_ssize_t t, const double* value, Py_ssize_t step
) noexcept nogil:
    """Return whether prediction stops at stage t for a row with these values."""
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
    """Return the smallest possible lead of the largest value for which a row can stop at stage t."""
    cdef Py_ssize_t j, n = exits.n_values
    cdef double high = exits.high[t * n], low = exits.low[t * n]
    for j in range(1, n):
        high, low = min(high, exits.high[t * n + j]), max(low, exits.low[t * n + j])
    return high - low


cdef inline void leads_of(
    const double* value, Py_ssize_t n_values, Py_ssize_t n, double* lead
) noexcept nogil:
    """Compute an upper bound on the lead of each row's largest value.

    The bound allows for rounding errors. The loops have no branches and can be vectorized. OUT lead
    (TILE,).
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
    """Mark the rows that stop at stage t, given one value per row, and return their number. OUT leaves."""
    cdef Py_ssize_t r, n = 0
    cdef double high = exits.high[t], low = exits.low[t]
    for r in range(lanes.n):  # avoid a branch, so that the compiler can vectorize the loop
        leaves[r] = ((value[r] >= high) | (value[r] <= low)) & (lanes.left[r] == 0)
    for r in range(lanes.n):
        n += leaves[r]
    return n


cdef inline Py_ssize_t stay(Lanes* lanes, int32_t* source) noexcept nogil:
    """Move the remaining rows to the front of the tile. OUT source: their previous positions."""
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
    """Move the values (n_columns, TILE) of rows to the new positions of the rows."""
    cdef Py_ssize_t j, r
    cdef double* column
    for j in range(n_columns):
        column = values + j * TILE
        for r in range(n):
            column[r] = column[source[r]]
