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
    own = np.zeros((blocks * lanes, bins), dtype=np.int64)
    own[:k] = table[:, k : 2 * k].T
    every = every.reshape(bins, blocks, lanes).swapaxes(0, 1)
    return np.stack([every.ravel(), own.ravel()])


def shares(for_it, against, whole, table, smoothing):
    """Return the share of each label in each level, in units of 2**-40."""
    k = len(for_it)

    def masses(sums):
        own = for_it * sums[..., k : 2 * k]
        return own, own + against * (sums[..., :k] - sums[..., k : 2 * k])

    (own, mass), (of_node, every) = masses(table), masses(whole)
    pull = smoothing * every / whole[-1]
    of_node = of_node / np.where(every > 0, every, 1.0)
    return np.rint((own + pull * of_node) / np.maximum(mass + pull, 1e-300) * 2.0**40)


def scores(for_it, against, whole, left, least, min_rows):
    """Return the scores of cuts with these sums below, infinite where a side is too light."""
    k, right = len(for_it), whole - left
    actual, mass = np.zeros(len(left)), np.zeros((2, len(left)))
    roots = []
    for side, part in enumerate((left, right)):
        own, other = part[:, k : 2 * k], part[:, :k] - part[:, k : 2 * k]
        mass[side] = (for_it * own + against * other).sum(axis=1)
        roots.append(np.sqrt(own.astype(float) * other.astype(float)))
    for j in range(k):
        actual += math.sqrt(for_it[j] * against[j]) * (roots[0][:, j] + roots[1][:, j])
    is_legal = (np.minimum(left[:, -1], right[:, -1]) >= min_rows) & (mass >= least).all(axis=0)
    return np.where(is_legal, actual, math.inf)


def twin(for_it, against, whole, table, missing, least, min_rows, smoothing):
    """Return the levels that are there, their orders, and the scores of all cuts."""
    k = len(for_it)
    positions = np.flatnonzero(table[:, -1])
    known, own, every = table[positions], whole[k : 2 * k], whole[:k]
    mixed = np.flatnonzero((own > 0) & (own < every))
    share = shares(for_it, against, whole, known, smoothing)[:, mixed]
    orders = np.argsort(share, axis=0, kind="stable").T
    left = np.cumsum(known[orders], axis=1).reshape(-1, 2 * k + 1)
    if smoothing > 0:
        left = np.concatenate([left, known.sum(axis=0) - known])
    parts = [left] if missing is None else [left, left + missing]
    score = [scores(for_it, against, whole, part, least, min_rows) for part in parts]
    return positions, orders, np.concatenate(score)


def problem(seed):
    """Return a random node and a column of it: few labels or many, levels that are not there."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.choice([1, 2, 3, 4, 7, 8, 9, 20])), int(rng.choice([1, 2, 5, 17, 60, 255]))
    count = rng.integers(0, 4, n + 1) * (rng.random(n + 1) < 0.8)
    count[rng.integers(n)] += 1
    every = rng.integers(0, 2**40, (n + 1, k)) * (count > 0)[:, None]
    own = (every * rng.choice([0.0, 0.25, 1.0, rng.random()], (n + 1, k))).astype(np.int64)
    if rng.random() < 0.5:  # some levels have equal shares, and labels all of their weight
        every, own = every >> 38, own >> 38
    table = np.column_stack([every, own, count])
    if seed % 4 == 0:
        table[:, 2 * k - 1] = table[:, k - 1]
    missing = table[-1] if seed % 3 and count[-1] else None
    rest = np.column_stack([every[0] * 0 + 5, every[0] * 0 + 2]).T.ravel()
    full = (table if missing is not None else table[:-1]).sum(axis=0)
    full[: 2 * k] += rest * (seed % 5 == 0)
    for_it, against = rng.uniform(0.1, 3.0, (2, k))
    minimum, smoothing = [0.0, 2.0**41][seed % 2], [0.0, 2.0, 0.5][seed % 3]
    return k, n, table, full, for_it, against, missing, minimum, int(rng.integers(1, 4)), smoothing


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("seed", range(60))
def test_equals_the_twin(seed, level):
    k, n, table, full, for_it, against, missing, minimum, min_rows, smoothing = problem(seed)
    width = math.prod(kernels.lanes_of(k))
    lanes, factor = np.zeros((2, width), dtype=np.int64), np.zeros((3, width))
    lanes[0, :k], lanes[0, k], lanes[1, :k] = full[:k], full[-1], full[k : 2 * k]
    factor[:, :k] = for_it, against, np.sqrt(for_it * against)
    here, order = np.empty(n, dtype=np.int32), np.empty((k, n), dtype=np.int32)
    score = np.empty(2 * (k + 1) * n)
    kernels.use_simd_level(level)
    try:
        n_here, n_orders, n_sides = kernels.search_levels(
            in_lanes(table, k),
            n,
            k,
            lanes,
            factor,
            minimum,
            min_rows,
            smoothing,
            missing is not None,
            here,
            order,
            score,
        )
    finally:
        kernels.use_simd_level(2)
    wanted = twin(for_it, against, full, table[:n], missing, minimum, min_rows, smoothing)
    assert here[:n_here].tolist() == wanted[0].tolist()
    assert order[:n_orders, :n_here].tolist() == wanted[1].reshape(n_orders, n_here).tolist()
    assert n_sides == 1 + (missing is not None)
    np.testing.assert_array_equal(score[: len(wanted[2])], wanted[2])


def test_arrays_of_other_sizes_are_refused():
    k, n, table, *_ = problem(1)
    width = math.prod(kernels.lanes_of(k))
    given = [
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
    kernels.search_levels(*given)
    for place, wrong in {
        1: n + 1,
        3: given[3][:1],
        4: given[4][:2],
        9: given[9][:-1],
        10: given[10][:, :-1].copy(),
        11: given[11][:-1],
    }.items():
        with pytest.raises(ValueError, match="search_levels: arrays of different sizes"):
            kernels.search_levels(*given[:place], wrong, *given[place + 1 :])
