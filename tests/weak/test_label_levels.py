"""Cuts of a column of levels for many labels, against a twin that is written with arrays."""

import math

import numpy as np
import pytest

from pboost._core import multiclass as kernels


def in_lanes(table, k):
    """Return sums (bins, 2 k + 1), of all rows, of those of the labels, and counts, by lanes."""
    blocks, lanes = kernels.lanes_of(k)
    bins = len(table)
    every = np.zeros((bins, blocks * lanes), dtype=np.int64)
    every[:, :k], every[:, k] = table[:, :k], table[:, -1]
    class_sums = np.zeros((blocks * lanes, bins), dtype=np.int64)
    class_sums[:k] = table[:, k : 2 * k].T
    every = every.reshape(bins, blocks, lanes).swapaxes(0, 1)
    return np.stack([every.ravel(), class_sums.ravel()])


def shares(class_factor, rest_factor, node_sums, table, smoothing):
    """Return the share of each label in each level, in units of 2**-40."""
    k = len(class_factor)

    def masses(sums):
        class_sums = class_factor * sums[..., k : 2 * k]
        return class_sums, class_sums + rest_factor * (sums[..., :k] - sums[..., k : 2 * k])

    (class_sums, mass), (of_node, every) = masses(table), masses(node_sums)
    pull = smoothing * every / node_sums[-1]
    of_node = of_node / np.where(every > 0, every, 1.0)
    return np.rint((class_sums + pull * of_node) / np.maximum(mass + pull, 1e-300) * 2.0**40)


def scores(class_factor, rest_factor, node_sums, left, min_mass, min_rows):
    """Return the scores of cuts with these sums below, infinite where a side is too light."""
    k, right = len(class_factor), node_sums - left
    actual, mass = np.zeros(len(left)), np.zeros((2, len(left)))
    roots = []
    for side, part in enumerate((left, right)):
        class_sums, rest_sums = part[:, k : 2 * k], part[:, :k] - part[:, k : 2 * k]
        mass[side] = (class_factor * class_sums + rest_factor * rest_sums).sum(axis=1)
        roots.append(np.sqrt(class_sums.astype(float) * rest_sums.astype(float)))
    for j in range(k):
        actual += math.sqrt(class_factor[j] * rest_factor[j]) * (roots[0][:, j] + roots[1][:, j])
    is_legal = (np.minimum(left[:, -1], right[:, -1]) >= min_rows) & (mass >= min_mass).all(axis=0)
    return np.where(is_legal, actual, math.inf)


def twin(class_factor, rest_factor, node_sums, table, missing, min_mass, min_rows, smoothing):
    """Return the levels that are there, their orders, and the scores of all cuts."""
    k = len(class_factor)
    positions = np.flatnonzero(table[:, -1])
    known, class_sums, every = table[positions], node_sums[k : 2 * k], node_sums[:k]
    mixed = np.flatnonzero((class_sums > 0) & (class_sums < every))
    share = shares(class_factor, rest_factor, node_sums, known, smoothing)[:, mixed]
    orders = np.argsort(share, axis=0, kind="stable").T
    left = np.cumsum(known[orders], axis=1).reshape(-1, 2 * k + 1)
    if smoothing > 0:
        left = np.concatenate([left, known.sum(axis=0) - known])
    parts = [left] if missing is None else [left, left + missing]
    score = [
        scores(class_factor, rest_factor, node_sums, part, min_mass, min_rows) for part in parts
    ]
    return positions, orders, np.concatenate(score)


def problem(seed):
    """Return a random node and a column of it: few labels or many, levels that are not there."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.choice([1, 2, 3, 4, 7, 8, 9, 20])), int(rng.choice([1, 2, 5, 17, 60, 255]))
    count = rng.integers(0, 4, n + 1) * (rng.random(n + 1) < 0.8)
    count[rng.integers(n)] += 1
    every = rng.integers(0, 2**40, (n + 1, k)) * (count > 0)[:, None]
    class_sums = (every * rng.choice([0.0, 0.25, 1.0, rng.random()], (n + 1, k))).astype(np.int64)
    if rng.random() < 0.5:  # some levels have equal shares, and labels all of their weight
        every, class_sums = every >> 38, class_sums >> 38
    table = np.column_stack([every, class_sums, count])
    if seed % 4 == 0:
        table[:, 2 * k - 1] = table[:, k - 1]
    missing = table[-1] if seed % 3 and count[-1] else None
    rest = np.column_stack([every[0] * 0 + 5, every[0] * 0 + 2]).T.ravel()
    full = (table if missing is not None else table[:-1]).sum(axis=0)
    full[: 2 * k] += rest * (seed % 5 == 0)
    class_factor, rest_factor = rng.uniform(0.1, 3.0, (2, k))
    minimum, smoothing = [0.0, 2.0**41][seed % 2], [0.0, 2.0, 0.5][seed % 3]
    return (
        k,
        n,
        table,
        full,
        class_factor,
        rest_factor,
        missing,
        minimum,
        int(rng.integers(1, 4)),
        smoothing,
    )


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("seed", range(60))
def test_equals_the_twin(seed, level):
    k, n, table, full, class_factor, rest_factor, missing, minimum, min_rows, smoothing = problem(
        seed
    )
    width = math.prod(kernels.lanes_of(k))
    lanes, factor = np.zeros((2, width), dtype=np.int64), np.zeros((3, width))
    lanes[0, :k], lanes[0, k], lanes[1, :k] = full[:k], full[-1], full[k : 2 * k]
    factor[:, :k] = class_factor, rest_factor, np.sqrt(class_factor * rest_factor)
    positions, order = np.empty(n, dtype=np.int32), np.empty((k, n), dtype=np.int32)
    score = np.empty(2 * (k + 1) * n)
    kernels.use_simd_level(level)
    try:
        n_positions, n_orders, n_sides = kernels.search_levels(
            in_lanes(table, k),
            n,
            k,
            lanes,
            factor,
            minimum,
            min_rows,
            smoothing,
            missing is not None,
            positions,
            order,
            score,
        )
    finally:
        kernels.use_simd_level(2)
    wanted = twin(class_factor, rest_factor, full, table[:n], missing, minimum, min_rows, smoothing)
    assert positions[:n_positions].tolist() == wanted[0].tolist()
    assert (
        order[:n_orders, :n_positions].tolist() == wanted[1].reshape(n_orders, n_positions).tolist()
    )
    assert n_sides == 1 + (missing is not None)
    np.testing.assert_array_equal(score[: len(wanted[2])], wanted[2])


def test_arrays_of_other_sizes_are_refused():
    k, n, table, *_ = problem(1)
    width = math.prod(kernels.lanes_of(k))
    arguments = [
        in_lanes(table, k),
        n,
        k,
        np.zeros((2, width), dtype=np.int64),
        np.zeros((3, width)),
        0.0,
        1,
        0.0,
        True,
        np.empty(n, dtype=np.int32),
        np.empty((k, n), dtype=np.int32),
        np.empty(2 * (k + 1) * n),
    ]
    kernels.search_levels(*arguments)
    for place, wrong in {
        1: n + 1,
        3: arguments[3][:1],
        4: arguments[4][:2],
        9: arguments[9][:-1],
        10: arguments[10][:, :-1].copy(),
        11: arguments[11][:-1],
    }.items():
        with pytest.raises(ValueError, match="search_levels: arrays of different sizes"):
            kernels.search_levels(*arguments[:place], wrong, *arguments[place + 1 :])
