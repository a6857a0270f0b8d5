"""Bounds on the error on new rows, against SciPy's distributions and by exact summation."""

import math

import numpy as np
import pytest
from scipy import stats

import pboost as pb
from pboost.bounds._binomial import most_errors

bounds = pb.bounds


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.05, 0.5])
def test_clopper_pearson_is_the_quantile_of_a_beta_distribution(delta):
    n = np.array([1, 2, 7, 100, 1000, 20_000])[:, None]
    k = np.floor(n * np.linspace(0, 1, 41))
    upper, lower = np.ones(k.shape), np.zeros(k.shape)
    some, rest = k > 0, k < n
    n = np.broadcast_to(n, k.shape)
    upper[rest] = stats.beta.ppf(1 - delta, k[rest] + 1, (n - k)[rest])
    lower[some] = stats.beta.ppf(delta, k[some], (n - k)[some] + 1)
    np.testing.assert_allclose(
        bounds.clopper_pearson_upper(k, n, confidence_level=1 - delta), upper, atol=1e-12
    )
    np.testing.assert_allclose(
        bounds.clopper_pearson_lower(k, n, confidence_level=1 - delta), lower, atol=1e-12
    )


@pytest.mark.parametrize("n", [1, 10, 100, 1000, 3000])
def test_coverage_by_exact_summation(n):
    delta, k = 0.05, np.arange(n + 1)
    upper = bounds.clopper_pearson_upper(k, n, confidence_level=1 - delta)
    lower = bounds.clopper_pearson_lower(k, n, confidence_level=1 - delta)
    for rate in np.linspace(0.005, 0.995, 199):
        mass = stats.binom.pmf(k, n, rate)
        above, below = mass[upper >= rate].sum(), mass[lower <= rate].sum()
        assert min(above, below) >= 1 - delta - 1e-12
        if n >= 1000 and 0.05 <= rate <= 0.5:
            assert max(above, below) <= 1 - delta + 0.025


def test_p_values_turn_at_the_bounds():
    n, k = 500, np.arange(0, 501, 7)
    upper = bounds.clopper_pearson_upper(k, n, confidence_level=0.97)
    assert (bounds.binomial_p_value(k, n, np.minimum(upper + 1e-9, 1)) <= 0.03).all()
    assert (bounds.binomial_p_value(k, n, upper - 1e-9) >= 0.03 - 1e-9).all()
    np.testing.assert_allclose(
        bounds.binomial_p_value(k, n, 0.4), stats.binom.cdf(k, n, 0.4), atol=1e-13
    )


def test_hoeffding_bentkus_from_its_definition():
    for mean, n, rate in ((0.0123, 321, 0.05), (0.29, 100, 0.3), (0.6, 50, 0.5)):
        m = min(mean, rate)
        kl = m * math.log(m / rate) + (1 - m) * math.log((1 - m) / (1 - rate))
        expected = min(
            math.exp(-n * kl), math.e * stats.binom.cdf(math.ceil(round(n * mean, 9)), n, rate), 1
        )
        assert bounds.hoeffding_bentkus_p_value(mean, n, rate) == pytest.approx(expected)
    # Of losses 0 and 1 the binomial test is less.
    k = np.arange(101)
    assert (
        bounds.binomial_p_value(k, 100, 0.2) <= bounds.hoeffding_bentkus_p_value(k / 100, 100, 0.2)
    ).all()


def test_fixed_sequence_stops_at_the_first():
    assert bounds.fixed_sequence([0.06, 0.01]) == 0
    assert bounds.fixed_sequence([0.05, 0.01]) == 2
    assert bounds.fixed_sequence([0.01, 0.2, 0.01], confidence_level=0.9) == 1


@pytest.mark.parametrize(("n", "rate"), [(10, 0.02), (148, 0.02), (149, 0.02), (2000, 0.3)])
def test_most_errors_is_the_last_that_is_rejected(n, rate):
    expected = np.count_nonzero(stats.binom.cdf(np.arange(n), n, rate) <= 0.05) - 1
    assert most_errors(n, rate, 0.05) == expected


def test_kl_inverse_is_an_inverse():
    for rate in (0.0, 0.1, 0.5):
        for bound in (1e-6, 0.01, 1.0):
            q = bounds.kl_inverse(rate, bound)
            kl = stats.entropy([rate, 1 - rate], [q, 1 - q])
            assert kl == pytest.approx(bound, rel=1e-6)
    assert bounds.kl_inverse(1.0, 0.2) == 1.0
    assert bounds.kl_inverse([0.2, 0.3], 0).tolist() == pytest.approx([0.2, 0.3])


def test_pac_bayes_is_never_below_clopper_pearson():
    n = np.array([10, 100, 1000])[:, None]
    errors = np.floor(n * np.linspace(0, 1, 30))
    assert (
        bounds.pac_bayes_bound(errors / n, n) >= bounds.clopper_pearson_upper(errors, n) - 1e-12
    ).all()
    assert bounds.pac_bayes_bound(0.1, 100, kl=5.0) > bounds.pac_bayes_bound(0.1, 100)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5])
def test_confidence_level_is_a_probability(delta):
    for call in (
        lambda: bounds.clopper_pearson_upper(1, 2, confidence_level=1 - delta),
        lambda: bounds.fixed_sequence([0.1], confidence_level=1 - delta),
        lambda: bounds.pac_bayes_bound(0.1, 2, confidence_level=1 - delta),
    ):
        with pytest.raises(ValueError, match=r"^confidence_level: expected numbers in \(0, 1\)"):
            call()


def test_counts_are_counts():
    with pytest.raises(ValueError, match="errors: expected integers"):
        bounds.clopper_pearson_upper(0.5, 2)
    with pytest.raises(ValueError, match="errors: expected at most n, got 3"):
        bounds.clopper_pearson_lower(3, 2)
