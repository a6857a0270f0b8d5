"""Probabilities from decision values: accuracy, levels of SIMD, and the side of the prediction."""

import numpy as np

from pboost._core import voting
from pboost.models.shares import two_probabilities

CASES = np.concatenate(
    [
        np.random.default_rng(3).normal(size=4000) * 10 ** np.linspace(-18, 3, 4000),
        [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1e-17, -1e-17, 372.0, -372.5, 1e300, -1e300],
    ]
)
#: The least log odds that count.
LEAST = -707.0


def test_shares_are_those_of_the_log_odds():
    with np.errstate(over="ignore"):
        x = CASES * 2
        e = np.exp(np.maximum(-np.abs(x), LEAST).astype(np.longdouble))
    larger, smaller = 1 / (1 + e), e / (1 + e)
    wanted = np.where((x > 0)[:, None], np.c_[smaller, larger], np.c_[larger, smaller])
    actual = two_probabilities(CASES)
    np.testing.assert_allclose(actual, wanted.astype(float), rtol=7e-16)
    assert actual.min() > 0


def test_the_label_predicted_has_the_larger_share():
    actual = two_probabilities(CASES)
    assert np.array_equal(actual[:, 1] > actual[:, 0], CASES > 0)
    assert (actual[CASES == 0] == 0.5).all()


def test_levels_of_simd_give_the_same_bits():
    def each():
        return np.concatenate([two_probabilities(CASES[start:]) for start in range(8)])

    actual = each()
    try:
        for level in range(2):
            voting.use_simd_level(level)
            assert np.array_equal(each(), actual)
    finally:
        voting.use_simd_level(2)


def test_no_rows():
    assert two_probabilities(np.empty(0)).shape == (0, 2)


def test_many_rows_are_those_of_each():
    score = np.resize(CASES, 20_005)
    each = np.resize(two_probabilities(CASES), (len(score), 2))
    assert np.array_equal(two_probabilities(score), each)
