"""Sums and scores of rows that have a weight for each of many labels, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pboost._core import multiclass as kernels

LEAST = 1e-290


@pytest.fixture(params=[0, 1, 2])
def level(request):
    kernels.use_simd_level(request.param)
    yield request.param
    kernels.use_simd_level(2)


def case(rng, J):
    """Return codes, rows, padded weights and labels of rows that stand by label."""
    n, d = int(rng.integers(1, 5000)), int(rng.integers(1, 6))
    codes = rng.integers(0, rng.choice([2, 20, 256]), (d, n)).astype(np.uint8)
    rows = np.arange(n) if rng.random() < 0.3 else np.flatnonzero(rng.random(n) < 0.7)
    label = np.sort(rng.integers(0, J, n)).astype(np.int32)
    weight = np.zeros((n, np.prod(kernels.lanes_of(J))))
    weight[:, :J] = rng.random((n, J)) ** 4
    return codes, rows.astype(np.int32), weight, label


def in_lanes(of_all, of_class, count):
    """Return sums (bins, k) of a column as the kernels have them."""
    bins, k = of_all.shape
    blocks, lanes = kernels.lanes_of(k)
    every = np.zeros((2, bins, blocks * lanes), dtype=np.int64)
    every[0, :, :k], every[0, :, k], every[1, :, :k] = of_all, count, of_class
    first = every[0].reshape(bins, blocks, lanes).swapaxes(0, 1).ravel()
    return np.stack([first, every[1].T.ravel()])


def fixed_point(weight, scale):
    return (weight * scale + 0.5).astype(np.int64)


@pytest.mark.parametrize("J", [2, 3, 4, 7, 8, 9, 26, 40, 70])
def test_sums_are_those_of_rows(J, level):
    rng = np.random.default_rng(J)
    for _ in range(4):
        codes, rows, weight, label = case(rng, J)
        used = np.sort(rng.choice(J, int(rng.integers(1, J + 1)), replace=False)).astype(np.int32)
        place = np.full(J, -1, dtype=np.int32)
        place[used] = np.arange(len(used))
        size = np.prod(kernels.lanes_of(len(used)))
        sums = np.full((len(codes), 2, size * 256), -1, dtype=np.int64)
        scale = 2.0**50
        kernels.add_up(codes, rows, weight, label, scale, used, place, sums, 0, len(codes))
        fixed = fixed_point(weight[rows][:, used], scale)
        is_class = label[rows][:, None] == used
        for column, item in zip(codes, sums, strict=True):
            of_all, of_class = np.zeros((2, 256, len(used)), dtype=np.int64)
            np.add.at(of_all, column[rows], fixed)
            np.add.at(of_class, column[rows], fixed * is_class)
            count = np.bincount(column[rows], minlength=256)
            np.testing.assert_array_equal(item, in_lanes(of_all, of_class, count))


@pytest.mark.parametrize("J", [3, 7, 12, 26])
def test_rows_are_reweighted_and_added_up(J, level):
    rng = np.random.default_rng(J)
    _, rows, weight, label = case(rng, J)
    weight[rows[: len(rows) // 2]] *= 1e-290
    width, n = weight.shape[1], len(weight)
    start = rng.integers(0, 100, n)
    factor = np.ones((2, width))
    factor[:, :J] = rng.random((2, J)) * 3
    for factors in (factor, np.ones((0, width))):
        expected = weight[:, :J].copy()
        cells = rows[:, None], np.arange(J)
        if len(factors):
            is_class = label[rows][:, None] == np.arange(J)
            changed = expected[rows] * np.where(is_class, factor[0, :J], factor[1, :J])
            expected[cells] = np.maximum(changed, LEAST)
        actual = np.zeros((3, width), dtype=np.int64)
        kernels.take(rows, label, factors.copy(), 2.0**50, weight, start, actual)
        np.testing.assert_array_equal(weight[:, :J], expected)
        fixed = fixed_point(expected[rows], 2.0**50)
        of_class, begun = np.zeros((2, J), dtype=np.int64)
        np.add.at(of_class, label[rows], fixed[np.arange(len(rows)), label[rows]])
        np.add.at(begun, label[rows], start[rows])
        np.testing.assert_array_equal(actual[:, :J], [fixed.sum(axis=0), of_class, begun])


def scores(of_all, of_class, count, factor, min_weight, min_rows, before):
    """Return the scores of cuts by the definition, in the order of the labels."""
    k = of_all.shape[1]
    sides = []
    for part in (of_all, of_class):
        below = np.cumsum(part, axis=0)[:-1] + part[-1] * before
        sides.append((below, part.sum(axis=0) - below))
    (lt, ht), (lp, hp) = sides
    below = np.cumsum(count)[:-1] + count[-1] * before
    masses = [
        (own_part.astype(float), (t - own_part).astype(float))
        for t, own_part in ((lt, lp), (ht, hp))
    ]
    total, weight = np.zeros(len(lt)), np.zeros((2, len(lt)))
    for j in range(k):
        low, high = (np.sqrt(own_part[:, j] * rest[:, j]) for own_part, rest in masses)
        total += factor[2, j] * (low + high)
        for side, (own_part, rest) in enumerate(masses):
            weight[side] += factor[0, j] * own_part[:, j] + factor[1, j] * rest[:, j]
    is_legal = np.minimum(below, count.sum() - below) >= min_rows
    if min_weight > 0:
        is_legal &= weight.min(axis=0) >= min_weight
    return np.where(is_legal, total, np.inf)


@pytest.mark.parametrize("J", [3, 4, 7, 8, 26])
def test_scores_are_those_of_the_definition(J, level):
    rng = np.random.default_rng(J)
    for turn in range(6):
        bins, mixed = int(rng.integers(2, 40)), rng.random(J) < 0.7
        of_class = rng.integers(0, 1 << 40, (bins, J)) * mixed
        of_all = of_class + rng.integers(0, 1 << 40, (bins, J))
        count = rng.integers(0, 5, bins)
        if turn % 2:
            count[-1] = 0
        factor = rng.random((2, J)) + 0.1
        factor = np.stack([*factor, np.sqrt(factor[0] * factor[1])])
        minimum = float(turn > 2) * 0.2 * J * bins * 2.0**39
        holes = np.ones(1, dtype=np.uint8)
        actual = {}
        for labels in (np.arange(J), np.flatnonzero(mixed)):
            k, width = len(labels), int(np.prod(kernels.lanes_of(len(labels))))
            if k == 0 or (minimum > 0 and k < J):
                continue
            full, by = np.zeros((2, width), dtype=np.int64), np.zeros((3, width))
            full[0, :k], full[1, :k] = (
                of_all[:, labels].sum(axis=0),
                of_class[:, labels].sum(axis=0),
            )
            full[0, k], by[:, :k] = count.sum(), factor[:, labels]
            sums = in_lanes(of_all[:, labels], of_class[:, labels], count)[None]
            out = np.empty((1, 2, bins))
            n_bins = np.array([bins - 1], dtype=np.int32)
            kernels.search(sums, n_bins, k, full, by, minimum, 1 + turn % 3, out, 0, 1, holes)
            actual[k] = out[0]
        for out in actual.values():  # labels that all rows have, or none, change no bit
            assert out.tobytes() == actual[J].tobytes()
        args = of_all, of_class, count, factor, minimum, 1 + turn % 3
        above = scores(*args, 0)
        expected = above if count[-1] else np.append(above[:-1], np.inf)
        np.testing.assert_array_equal(actual[J][0, :-1], expected)
        if count[-1]:
            np.testing.assert_array_equal(actual[J][1, :-2], scores(*args, 1)[:-1])
        else:
            assert np.isinf(actual[J][1]).all()


def test_rows_are_parted_in_their_order():
    rng = np.random.default_rng(0)
    codes, above = rng.integers(0, 256, 1000).astype(np.uint8), rng.integers(0, 2, 256)
    rows = np.flatnonzero(rng.random(1000) < 0.5).astype(np.int32)
    parted = rows.copy()
    n = kernels.part(parted, codes, above.astype(np.uint8), np.empty_like(rows))
    side = above[codes[rows]] == 1
    np.testing.assert_array_equal(parted, np.concatenate([rows[~side], rows[side]]))
    assert n == (~side).sum()


def test_arrays_that_do_not_fit_are_refused():
    codes, rows = np.zeros((2, 5), np.uint8), np.arange(3, dtype=np.int32)
    weight, label, place = np.ones((5, 4)), np.zeros(5, np.int32), np.arange(3, dtype=np.int32)
    sums, actual = np.zeros((2, 2, 16), np.int64), np.zeros((3, 4), np.int64)
    kernels.add_up(codes, rows, weight, label, 1.0, place, place, sums, 0, 2)
    assert sums[:, 0, :4].tolist() == [[3, 3, 3, 3]] * 2
    with pytest.raises(ValueError, match="different sizes"):
        kernels.add_up(codes, rows, weight[:4], label, 1.0, place, place, sums, 0, 2)
    with pytest.raises(ValueError, match="different sizes"):
        kernels.take(rows, label, np.ones((1, 4)), 1.0, weight, label.astype(np.int64), actual)
    bins, full, out = np.full(2, 4, np.int32), np.ones((2, 4), np.int64), np.zeros((2, 1, 5))
    with pytest.raises(ValueError, match="different sizes"):
        kernels.search(sums, bins, 3, full, np.ones((3, 4)), 0.0, 1, out, 0, 2)
    order, starts = np.zeros((2, 5), np.int32), np.array([[0, 3, 5]] * 2, dtype=np.int32)
    rest = weight, label, 1.0, place, place, sums, full, np.ones((3, 4)), 0.0, 1
    with pytest.raises(ValueError, match="different sizes"):
        kernels.Inside(order, starts, codes[0, :4], *rest)
    inside = kernels.Inside(order, starts, codes[0], *rest)
    with pytest.raises(ValueError, match="different sizes"):
        inside.search(bins, out, 0.0, 0.0, out, 0, 2)
    with pytest.raises(ValueError, match="no such bin"):
        inside.first(0, 2, -1, 0.0)
    with pytest.raises(ValueError, match="different sizes"):
        kernels.part(rows, codes[0], codes[0], rows)
