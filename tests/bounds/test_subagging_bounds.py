"""Bounds of subagged votes and of boosted probit trees: values worked by hand, and simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pboost import bounds


def test_members_needed():
    assert bounds.members_needed(1) == 0.0
    assert bounds.members_needed(math.e**3) == pytest.approx(9.0)
    assert bounds.members_needed([20_000, 100]).round(2).tolist() == [98.08, 21.21]
    with pytest.raises(ValueError, match=r"^n: expected finite numbers >= 1, got 0"):
        bounds.members_needed(0)


def test_subagging_bound_by_hand():
    # delta = 3/e**4 makes L = 4, 1 + 4 sqrt(L) = 9.
    # M = 100, m = 1, n = 100: sqrt(A) = 0.1 + 0.9, C = 0.01 + (sqrt(2) + 3) 0.4.
    delta = 3 * math.exp(-4)
    C = 0.01 + (math.sqrt(2) + 3) * 0.4
    below = 2 * 1.0 * 0.64 + 4 * C / 3 * 0.6
    actual = bounds.subagging_bound(0.2, 100, 1, 100, confidence_level=1 - delta)
    assert actual == pytest.approx(math.exp(-0.36 / below), rel=1e-13)
    # M = 10001, odd, m = 2, n = 4: all terms.
    M = 10_001
    root_a, root_b = 1 + 9 * math.sqrt(2 / M), 1 + 18 / math.sqrt(M)
    C = 0.5 + 5 * 4 / math.sqrt(M)
    t = 0.5 + 1 / M
    below = 2 * root_a**2 * 0.1 + root_b**2 * 0.3 / 2 + (root_b * 0.7 + 4 * C / 3) * t
    actual = bounds.subagging_bound(
        0.25, M, 2, 4, variance=0.1, beta=0.3, gamma=0.49, confidence_level=1 - delta
    )
    assert actual == pytest.approx(math.exp(-(t**2) / below), rel=1e-13)


def test_subagging_bound_of_certain_members():
    assert bounds.subagging_bound(0.5, 1000, 10, 100) == 1.0
    assert bounds.subagging_bound(0.5, 1000, 10, 100, variance=0, beta=0, gamma=0) == 1.0
    sure = bounds.subagging_bound([0.0, 0.1, 0.3, 0.5], 10**8, 3, 10**8)
    assert (np.diff(sure) > 0).all()
    assert sure[0] < 1e-10


def test_greatest_variances_are_the_defaults():
    p = np.array([0.1, 0.3])
    given = bounds.subagging_bound(
        p, 10**6, 4, 10**6, variance=p * (1 - p), beta=16 * p * (1 - p), gamma=16
    )
    assert (bounds.subagging_bound(p, 10**6, 4, 10**6) == given).all()
    # Of members of one row there are no pairs.
    given = bounds.subagging_bound(p, 10**6, 1, 10**6, variance=4 * p * (1 - p), beta=0, gamma=0)
    assert (bounds.subagging_bound(p, 10**6, 1, 10**6) == given).all()


def test_quantities_of_designs_stay_below_theirs():
    """The draws of the subsamples, whose sums of squares and maxima enter the bound."""
    n, m, M, delta, draws = 40, 12, 60, 0.2, 300
    rng = np.random.default_rng(0)
    L = math.log(3 / delta)
    above = 0
    for _ in range(draws):
        taken = (rng.random((M, n)).argsort(axis=1) < m).astype(float)
        pairs = taken.T @ taken
        A = (np.diag(pairs) ** 2).sum() / M**2
        B = ((pairs - np.diag(np.diag(pairs))) ** 2).sum() / M**2
        root_a = m / math.sqrt(n) + (1 + 4 * math.sqrt(L)) * math.sqrt(m / M)
        root_b = m**2 / n + (1 + 4 * math.sqrt(L)) * m / math.sqrt(M)
        C = m / n + (math.sqrt(2 * m) + 3) * L / math.sqrt(M)
        above += root_a**2 < A or root_b**2 < B or np.diag(pairs).max() / M > C
        # And they are of that size.
        assert math.sqrt(A) > m / math.sqrt(n)
        assert math.sqrt(B) > 0.9 * m**2 / n
    assert above <= delta * draws


@pytest.mark.full_for("3-0.35-2000-40001")
@pytest.mark.parametrize(("m", "wrong", "n", "M"), [(1, 0.3, 60, 400), (3, 0.35, 2000, 40_001)])
def test_subagging_bound_holds(m, wrong, n, M):
    """Members that take the majority of their rows, each wrong with the same probability."""
    rng = np.random.default_rng(1)
    p = sum(math.comb(m, k) * wrong**k * (1 - wrong) ** (m - k) for k in range(m // 2 + 1, m + 1))
    bound = bounds.subagging_bound(p, M, m, n)
    if m == 1:
        taken = rng.integers(n, size=(M, 1))
    else:
        # Three different rows each: drawn again where two agree.
        taken = rng.integers(n, size=(M, m))
        while (same := np.flatnonzero((np.diff(np.sort(taken, axis=1)) == 0).any(axis=1))).size:
            taken[same] = rng.integers(n, size=(len(same), m))
    sets, failed = 2000, 0
    for _ in range(sets):
        rows = rng.random(n) < wrong
        members = 2 * rows[taken].sum(axis=1) > m
        failed += 2 * members.sum() >= M
    assert failed / sets <= bound < 1
    if m == 1:
        assert failed > 0  # it can fail: the bound is not compared with 0


def test_boosted_pmt_bound_by_hand():
    risks = np.array([0.1, 0.25]) * math.log(2)
    trained = math.exp(-2 * (0.4**2 + 0.25**2))
    growth = 2 * (math.log(math.e * 1e8 / 2) + 5 * math.log(math.e * 1e8 / 5))
    spread = math.sqrt(32 * (growth + math.log(8 / 0.05)) / 1e8)
    actual = bounds.boosted_pmt_bound(risks, 1e8, 5, confidence_level=0.95)
    assert actual == pytest.approx(trained + spread, rel=1e-13)
    assert bounds.boosted_pmt_bound([[0.1], [0.2]], [[1e8], [1e9]], 5).shape == (2, 2)
    assert bounds.boosted_pmt_bound([0.1], 100, 5) == 1.0
    # Risks that are half of ln 2 say nothing of the training error.
    assert bounds.boosted_pmt_bound([math.log(2) / 2] * 3, 1e15, 1) == 1.0


@pytest.mark.parametrize("step", [0.5, 1.0, 1.5])
def test_boosted_pmt_bound_takes_the_bound_of_the_step(step):
    risks = np.array([0.1, 0.25]) * math.log(2)
    trained = [bounds.boosted_pmt_bound(risks, 1e15, 1, step=s) for s in (step, 1.0)]
    spread = trained[1] - math.exp(-2 * (0.4**2 + 0.25**2))
    expected = math.exp(-2 * step * (2 - step) * (0.4**2 + 0.25**2))
    assert trained[0] - spread == pytest.approx(expected, rel=1e-12)
    assert bounds.boosted_pmt_bound(risks, 1e15, 1) == trained[1]


def test_training_part_bounds_the_training_error():
    """Random classifiers of known risk, boosted with the textbook's update."""
    from scipy.special import log_ndtr

    rng = np.random.default_rng(0)
    y = np.where(np.arange(400) % 2, 1, -1)
    w, score, risks = np.full(400, 1 / 400), np.zeros(400), []
    for _ in range(4):
        f = y * np.where(rng.random(400) < 0.9, 1.5, -0.5)
        risks.append(float(-(w * log_ndtr(y * f)).sum()))
        wrong = y * f <= 0
        error = w[wrong].sum()
        assert error <= risks[-1] / math.log(2)
        alpha = math.log((1 - error) / error)
        score += alpha * np.sign(f)
        w = w * np.exp(alpha * wrong)
        w /= w.sum()
    assert max(risks) < math.log(2) / 2
    trained = bounds.boosted_pmt_bound(risks, 1e15, 1)
    assert (y * score <= 0).mean() <= trained < 0.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.subagging_bound(0.6, 100, 1, 10), r"p: expected numbers in \[0, 0.5\]"),
        (lambda: bounds.subagging_bound(0.2, 5, 1, 10), "n_estimators: expected more than 5.30"),
        (lambda: bounds.subagging_bound(0.2, 100, 11, 10), "m: expected at most n, got 11"),
        (
            lambda: bounds.subagging_bound(0.2, 100.5, 1, 10),
            "n_estimators: expected integers, got 100.5",
        ),
        (
            lambda: bounds.subagging_bound(0.2, 100, 1, 10, confidence_level=1),
            "confidence_level: expected",
        ),
        (lambda: bounds.subagging_bound(0.2, 100, 1, 10, beta=17), "beta: expected"),
        (lambda: bounds.subagging_bound(0.2, 100, 1, 10, gamma=-1), "gamma: expected"),
        (lambda: bounds.subagging_bound(0.2, 100, 1, 10, variance=2), "variance: expected"),
        (lambda: bounds.boosted_pmt_bound(0.1, 100, 5), "risks: expected one risk per tree"),
        (lambda: bounds.boosted_pmt_bound([], 100, 5), "risks: expected one risk per tree"),
        (lambda: bounds.boosted_pmt_bound([0.4], 100, 5), r"risks: expected numbers in \[0, 0.34"),
        (lambda: bounds.boosted_pmt_bound([0.1], 100, 101), "n: expected at least the number"),
        (lambda: bounds.boosted_pmt_bound([0.1] * 7, 6, 2), "n: expected at least the number"),
        (lambda: bounds.boosted_pmt_bound([0.1], 100, 2.5), "vc: expected integers, got 2.5"),
        (lambda: bounds.boosted_pmt_bound([0.1], 100, 5, step=3), "step: expected a number in"),
    ],
)
def test_numbers_out_of_range(call, message):
    with pytest.raises(ValueError, match=rf"^{message}"):
        call()
