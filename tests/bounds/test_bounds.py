"""Bounds: known values, identities, inequalities, limits, and decimal arithmetic of 60 digits."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from reference import bounds as reference
from scipy import special

import pboost as pb
from pboost import bounds

SIZES = (1e-3, 0.5, 1, 2, 2.5, 7, 16, 100.25, 1e4, 1e8, 1e12)
RHOS = (1e-280, 1e-12, 0.01, 0.25, 0.5, 0.75, 31 / 32, 1 - 1e-6, 1 - 2**-53, 1.0)
GRID = list(itertools.product(SIZES, RHOS))
PAPER = (31 / 32, 7 / 8, 3 / 4, 1 / 2, 1 / 4)


def relative_error(value, exact):
    """Return |value / exact - 1| for a float and a Decimal or Fraction."""
    if isinstance(exact, Fraction):
        return float(abs(Fraction(value) / exact - 1))
    return float(abs(Decimal(value) / exact - 1)) if exact else abs(value)


# Known values and identities


def test_edge_to_rho():
    edges = [0.0, 0.3, 0.4, 0.5]
    assert bounds.edge_to_rho(edges) == pytest.approx([1.0, 0.8, 0.6, 0.0], abs=1e-15)
    # Near 1/2, 1 - 4 edge^2 would lose half of the digits.
    edge = 0.5 - 2.0**-40
    exact = 1 - 4 * Fraction(edge) ** 2
    assert bounds.edge_to_rho(edge) ** 2 == pytest.approx(float(exact), rel=1e-14)


def test_adaboost_bound():
    assert bounds.adaboost_bound([0, 1, 2, 10], 0.5).tolist() == [1, 0.5, 0.25, 2.0**-10]
    assert bounds.adaboost_bound(0, 0) == 1


def test_tree_bound_of_few_nodes():
    rho = np.linspace(0, 1, 33)
    assert (bounds.tree_bound(0, rho) == 1).all()
    assert (bounds.tree_bound(1, rho) == rho).all()
    np.testing.assert_allclose(bounds.tree_bound(2, rho), rho * (1 + rho) / 2, rtol=1e-14)
    three = rho * (1 + rho) * (2 + rho) / 6
    np.testing.assert_allclose(bounds.tree_bound(3, rho), three, rtol=1e-14)
    assert (bounds.tree_bound([1, 2.5, 1e3, 1e12, 1e300], 1) == 1).all()
    assert (bounds.tree_bound([1, 2.5, 1e3, 1e12, 1e300], 0) == 0).all()


@pytest.mark.parametrize("rho", [Fraction(1, 4), Fraction(1, 2), Fraction(31, 32)])
def test_tree_bound_is_the_product(rho):
    exact = Fraction(1)
    for t in range(500):
        exact *= (t + rho) / (t + 1)
        assert relative_error(bounds.tree_bound(t + 1, float(rho)), exact) < 5e-15
    assert exact == reference.product(500, rho)


def test_tree_bound_at_one_half_is_a_central_binomial_coefficient():
    for T in (1, 10, 300):
        exact = Fraction(math.comb(2 * T, T), 4**T)
        assert relative_error(bounds.tree_bound(T, 0.5), exact) < 5e-15


def test_tree_bound_is_a_beta_function():
    T, rho = np.meshgrid([0.5, 1, 2, 10.5, 40], [0.1, 0.5, 0.9])
    beta = 1 / (T * special.beta(T, rho))
    np.testing.assert_allclose(bounds.tree_bound(T, rho), beta, rtol=1e-13)


def test_reference_is_exact():
    """The decimal twin against integers and fractions."""
    assert relative_error(1, reference.tree_bound(5, 1)) < 1e-40
    exact = reference.product(100, Fraction(3, 8))
    with_decimals = Fraction(reference.tree_bound(100, 0.375))
    assert abs(with_decimals / exact - 1) < 1e-40
    euler = "0.57721566490153286060651209008240243104215933593992"
    assert abs(reference.digamma(1) + Decimal(euler)) < 1e-40


@pytest.mark.parametrize(("T", "rho"), GRID)
def test_tree_bound_to_full_precision(T, rho):
    assert relative_error(bounds.tree_bound(T, rho), reference.tree_bound(T, rho)) < 2e-14


def test_library_functions_would_not_do():
    """What the Stirling differences are for."""
    exact = reference.tree_bound(1e12, 0.5)
    naive = np.exp(special.gammaln(1e12 + 0.5) - special.gammaln(1e12 + 1)) / special.gamma(0.5)
    assert relative_error(float(naive), exact) > 1e-6
    assert relative_error(bounds.tree_bound(1e12, 0.5), exact) < 2e-14


@pytest.mark.parametrize("rho", [0.0, 1e-9, *PAPER, 1.0])
def test_asymptotic_form(rho):
    T = np.array([1e2, 1e4, 1e6])
    difference = bounds.tree_bound_asymptotic(T, rho) - bounds.tree_bound(T, rho)
    expected = rho * (1 - rho) / (2 * T) * bounds.tree_bound(T, rho)
    np.testing.assert_allclose(difference, expected, rtol=0.02, atol=1e-14)
    assert bounds.tree_bound_asymptotic(1e12, rho) == pytest.approx(
        bounds.tree_bound(1e12, rho), rel=1e-12
    )


# Nested bounds


def test_nested_bound_follows_its_definition():
    rho = np.array(PAPER)
    assert bounds.nested_bound((), rho).tolist() == rho.tolist()
    assert bounds.nested_bound((1, 1), rho).tolist() == rho.tolist()
    assert bounds.nested_bound((7,), rho).tolist() == bounds.tree_bound(7, rho).tolist()
    inner = bounds.tree_bound(3, rho)
    np.testing.assert_allclose(
        bounds.nested_bound((3, 5), rho), bounds.tree_bound(5, inner), rtol=1e-14
    )
    # A shape whose outer tree is of one node is not nested, and order matters.
    np.testing.assert_allclose(
        bounds.nested_bound((1, 5, 1), rho), bounds.tree_bound(5, rho), rtol=1e-14
    )
    assert (bounds.nested_bound((3, 5), rho) != bounds.nested_bound((5, 3), rho)).all()


@pytest.mark.parametrize("lack", [1e-15, 1e-10, 1e-4, 0.1, 0.6])
@pytest.mark.parametrize("sizes", [(2,) * 60, (3, 7, 2) * 8, (1.5,) * 40, (1e5, 1e5)])
def test_nested_bound_near_1(sizes, lack):
    """Rounding the bounds in between to floats would magnify errors up to a billion times."""
    rho = 1 - lack
    exact = reference.nested_bound(sizes, rho)
    assert relative_error(bounds.nested_bound(sizes, rho), exact) < 1e-13


def test_matryoshka2_bound():
    T = 2.0 ** np.arange(12)
    for rho in (0.0, 1e-9, *PAPER, 1 - 1e-9, 1.0):
        expected = [bounds.nested_bound((2,) * level, rho) for level in range(12)]
        np.testing.assert_allclose(bounds.matryoshka2_bound(T, rho), expected, rtol=1e-13)
    rho = Fraction(3, 4)
    for level in range(1, 8):
        rho = rho * (1 + rho) / 2
        assert relative_error(bounds.matryoshka2_bound(2**level, 0.75), rho) < 1e-14


def test_matryoshka2_bound_near_1():
    exact = reference.nested_bound((2,) * 60, 1 - 1e-10)
    assert relative_error(bounds.matryoshka2_bound(2**60, 1 - 1e-10), exact) < 1e-14


def test_chain_bound():
    assert bounds.chain_bound(2, 3, 0.5) == 0.375**3
    assert bounds.chain_bound([1, 0, 5], [0, 9, 1], [0.3, 0.3, 0.0]).tolist() == [1, 1, 0]
    # A million trees, each with a bound just below 1.
    exact = reference.tree_bound(4, 1 - 1e-7) ** 1_000_000
    assert relative_error(bounds.chain_bound(4, 1e6, 1 - 1e-7), exact) < 1e-13
    T = np.arange(1, 20)
    np.testing.assert_allclose(
        bounds.chain_bound(1, T, 0.7), bounds.adaboost_bound(T, 0.7), rtol=1e-14
    )


def test_sign_collapse_bound():
    assert bounds.sign_collapse_bound([0, 1]).tolist() == [0, 1]
    F = np.linspace(0, 1, 101)
    collapsed = bounds.sign_collapse_bound(F)
    assert (collapsed >= F).all()
    # The bound of the edge that an error of F / 2 leaves.
    np.testing.assert_allclose(collapsed, bounds.edge_to_rho((1 - F) / 2), atol=1e-15)


@pytest.mark.parametrize("T", [2, 3, 4, 5, 11, 12, 23, 30])
@pytest.mark.parametrize("rho", [1e-3, 0.05, 0.5, 31 / 32, 1 - 2.0**-40])
def test_best_nesting_is_the_best(T, rho):
    _, best = reference.best_nesting(T, rho)
    assert bounds.best_nesting(T, rho) in best


def test_best_nesting_of_powers_of_2():
    for rho in PAPER:
        assert bounds.best_nesting(1024, rho) == (2,) * 10


@pytest.mark.parametrize("rho", [0.02, 31 / 32])
def test_best_nesting_keeps_its_promises(rho):
    last = 1.0
    for T in range(1, 70):
        sizes = bounds.best_nesting(T, rho)
        assert math.prod(sizes) <= T
        assert all(type(size) is int for size in sizes)
        bound = bounds.nested_bound(sizes, rho)
        assert bound <= last * (1 + 1e-14)
        assert bound <= bounds.tree_bound(T, rho) * (1 + 1e-14)
        last = bound


def test_best_nesting_without_a_choice():
    assert bounds.best_nesting(1, 0.5) == (1,)
    assert bounds.best_nesting(60, 0) == bounds.best_nesting(60, 1.0) == (60,)


# Order


@pytest.mark.parametrize("T", [1, 1.5, 2, 16, 1e4, 1e12])
def test_bounds_rise_with_rho(T):
    rho = np.linspace(0, 1, 200)
    assert (np.diff(bounds.tree_bound(T, rho)) > 0).all()
    assert (np.diff(bounds.nested_bound((T, T), rho)) > 0).all()


@pytest.mark.parametrize("rho", PAPER)
def test_bounds_fall_with_size(rho):
    T = np.concatenate([np.linspace(0, 20, 300), np.geomspace(21, 1e12, 300)])
    assert (np.diff(bounds.tree_bound(T, rho)) < 0).all()
    assert (np.diff(bounds.matryoshka2_bound(2.0 ** np.arange(30), rho)) < 0).all()


@pytest.mark.parametrize("rho", PAPER)
@pytest.mark.parametrize("shape", [(2, 2), (2, 8), (8, 2), (4, 4, 4), (3, 5, 7), (2,) * 10])
def test_chain_below_2_matryoshka_below_nested_below_tree(shape, rho):
    T = math.prod(shape)
    nested, tree = bounds.nested_bound(shape, rho), bounds.tree_bound(T, rho)
    assert bounds.adaboost_bound(T, rho) < nested < tree
    assert bounds.chain_bound(shape[0], T / shape[0], rho) < nested
    if T & (T - 1) == 0:
        assert bounds.matryoshka2_bound(T, rho) <= nested * (1 + 1e-14)


def test_nesting_of_two_levels_always_pays():
    T1, T2 = np.meshgrid(np.arange(2, 60), np.arange(2, 60))
    for rho in (1e-3, *PAPER, 1 - 1e-6):
        assert (bounds.nested_bound((T1, T2), rho) < bounds.tree_bound(T1 * T2, rho)).all()


def test_tree_stays_below_its_bound():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=300) > 0, 1, -1)
    shares = []
    tree = pb.fit_boosted_tree(
        X, y, max_nodes=40, callback=lambda _, record: shares.append(record.bound)
    )
    C = tree.record.certificate
    rho = max(1 - (C[:-1] - C[1:]) / shares)
    assert rho < 1
    F = bounds.tree_bound(np.arange(len(C)), rho)
    assert (F * (1 + 1e-9) >= C).all()


# Rates


@pytest.mark.parametrize(("T", "rho"), [(T, rho) for T, rho in GRID if rho > 0])
def test_rate_simple_to_full_precision(T, rho):
    exact = reference.rate_simple(T, rho)
    assert relative_error(bounds.rate_simple(T, rho), exact) < 3e-14


@pytest.mark.parametrize("C", [1e-300, 1e-17, 1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53, 1.0])
def test_rate_matryoshka_to_full_precision(C):
    exact = reference.rate_matryoshka(16, C)
    assert relative_error(bounds.rate_matryoshka(16, C), exact) < 1e-14


@pytest.mark.parametrize("C", [0.1, 0.5, 0.99])
def test_equation_14_as_printed(C):
    printed = C / 16 * (np.euler_gamma + special.digamma(C) + 1 / C - 1)
    assert bounds.rate_matryoshka(16, C) == pytest.approx(printed, rel=1e-11)


def test_rate_matryoshka_at_its_ends():
    assert bounds.rate_matryoshka(7, [0, 1]).tolist() == [0, 0]
    # psi(1 + C) = -gamma + C pi^2 / 6 - ... near 0, 1 - gamma - (1 - C) (pi^2 / 6 - 1) near 1
    assert bounds.rate_matryoshka(1, 1e-6) * 1e6 == pytest.approx(np.pi**2 / 6e6 - 1, rel=1e-11)
    slope = bounds.rate_matryoshka(1, 1 - 2.0**-30) * 2.0**30
    assert slope == pytest.approx(1 - np.pi**2 / 6, rel=1e-8)


@pytest.mark.parametrize("rho", PAPER)
@pytest.mark.parametrize("T", [0.5, 1, 3, 16, 200])
def test_rates_are_derivatives(T, rho):
    h = 1e-5 * T
    slope = (bounds.tree_bound(T + h, rho) - bounds.tree_bound(T - h, rho)) / (2 * h)
    assert bounds.rate_simple(T, rho) == pytest.approx(slope, rel=1e-7)
    up, down = bounds.tree_bound([(T + h) / T, (T - h) / T], rho)
    assert bounds.rate_matryoshka(T, rho) == pytest.approx((up - down) / (2 * h), rel=1e-7)


@pytest.mark.parametrize("rho", PAPER)
def test_a_matryoshka_falls_faster_than_a_tree_of_two_or_more(rho):
    T = np.array([1, 1.01, 2, 16, 1e6])
    simple = bounds.rate_simple(T, rho)
    nested = bounds.rate_matryoshka(T, bounds.tree_bound(T, rho))
    assert nested[0] == pytest.approx(simple[0], rel=1e-13)
    assert (nested[1:] < simple[1:]).all()
