"""Sets of levels judged by the gradients of several classes, against a twin of arrays."""

import numpy as np
import pytest

from pboost._core import softmax
from pboost.trees.multi_output_rounds import Judge, best_set


def scores(judge, below):
    """Return the scores of cuts with these sums below, (m, S, 2); -1 where there is none."""
    l2, factor, unit = judge.judged
    k, n_sums = len(l2), len(judge.total)
    (g, h), (gl, hl) = judge.total[:k].T, below[:, :k].transpose(2, 0, 1)
    gr, hr = g - gl, h - hl
    dl, dr = hl + l2, hr + l2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (gl * gl * dr + gr * gr * dl) / (dl * dr) * factor
    counts = n_sums - 1 if n_sums > k else 0
    rows, full = below[:, counts, 1], judge.total[counts, 1]
    is_legal = (rows >= judge.min_samples_leaf) & (full - rows >= judge.min_samples_leaf)
    if judge.min_child_weight > 0:
        for side in (hl, hr):
            is_legal &= np.add.accumulate(side * unit, axis=1)[:, -1] >= judge.min_child_weight
    return np.where(is_legal, np.add.accumulate(terms, axis=1)[:, -1], -1.0)


def twin(column, n_levels, has_holes, judge):
    """Return score, levels above, levels, side of missing rows and sums below, None without."""
    k = judge.judged.shape[1]
    rows = column[k if len(column) > k else 0, 1]
    positions = np.flatnonzero(rows[:n_levels])
    if not len(positions):
        return None
    known = column[:, :, positions].transpose(2, 0, 1)
    (g, h), (full, bend) = known[:, :k].T, judge.total[:k].T
    pull = judge.smoothing * (bend / judge.n_rows)
    keys = -(g.T + pull * (full / bend)) / (h.T + pull)
    orders = np.argsort(keys, axis=0, kind="stable").T
    left = np.add.accumulate(known[orders], axis=1).reshape(-1, *known.shape[1:])
    if judge.smoothing > 0:
        left = np.concatenate([left, known.sum(axis=0) - known])
    is_missing = has_holes and rows[n_levels] > 0
    below = np.concatenate([left, left + column[:, :, n_levels]] if is_missing else [left])
    score = scores(judge, below)
    best = int(score.argmax())
    if not score[best] >= 0:
        return None
    turn, place = divmod(best, len(left))
    order, length = divmod(place, len(positions))
    above = orders[order, length + 1 :] if order < k else np.array([length])
    side = 1 - turn if is_missing else -1
    return score[best], positions[above], positions, side, below[best]


def problem(seed):
    """Return a random column of a random node: levels without rows, equal steps, light sides."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.choice([1, 2, 3, 7, 20])), int(rng.choice([1, 2, 5, 17, 60, 255]))
    is_counted, has_holes = bool(rng.integers(2)), bool(rng.integers(2))
    column = np.zeros((k + is_counted, 2, n + 1))
    column[:k, 0] = rng.integers(-(2**12), 2**12, (k, n + 1))
    column[:k, 1] = rng.integers(1, 2**12, (k, n + 1))
    if seed % 3 == 0:
        column[:k] = np.sign(column[:k]) * rng.integers(1, 3, n + 1)
    if is_counted:
        column[k, 1] = rng.integers(1, 4, n + 1)
    column[:, :, rng.random(n + 1) < 0.2] = 0.0
    column[:, :, int(rng.integers(n))] += 1.0
    total = column.sum(axis=2) if has_holes else column[:, :, :n].sum(axis=2)
    total[:, 1] += seed % 4  # rows that have no value of this column elsewhere
    judged = np.stack([rng.random(k), rng.random(k) + 0.5, rng.random(k) + 0.5])
    judge = Judge(
        judged,
        total,
        int(rng.integers(1, 500)),
        int(rng.integers(1, 5)),
        [0.0, float(total[:k, 1].sum() / 5)][seed % 2],
        [0.0, 3.0][int(rng.integers(2))],
    )
    return column, n, has_holes, judge


@pytest.mark.parametrize("seed", range(120))
def test_equals_the_twin(seed):
    actual, wanted = best_set(*problem(seed)), twin(*problem(seed))
    assert (actual is None) == (wanted is None)
    if actual is not None:
        for item, other in zip(actual, wanted, strict=True):
            np.testing.assert_array_equal(item, other)


def test_most_problems_have_a_cut():
    assert sum(best_set(*problem(seed)) is not None for seed in range(120)) > 80


def test_nothing_is_best_where_a_score_is_no_number():
    column, n, has_holes, judge = next(
        item for item in map(problem, range(120)) if best_set(*item) is not None
    )
    judged = judge.judged.copy()
    judged[1, 0] = np.nan
    assert best_set(column, n, has_holes, judge._replace(judged=judged)) is None


def test_arrays_of_other_sizes_are_refused():
    column, n, _, judge = problem(1)
    here, above = np.empty((2, n), dtype=np.int32)
    given = [column, n, False, *judge, here, above, np.empty(judge.total.shape)]
    softmax.best_levels(*given)
    for place, wrong in {
        0: column[:, :1].copy(),
        1: n + 2,
        3: judge.judged[:2],
        4: judge.total[:, :1].copy(),
        9: here[:-1],
        10: above[:-1],
        11: given[11][:, :1].copy(),
    }.items():
        with pytest.raises(ValueError, match="best_levels: arrays of different sizes"):
            softmax.best_levels(*given[:place], wrong, *given[place + 1 :])
