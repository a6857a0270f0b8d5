"""Boosted trees against the twin."""

import numpy as np
import pytest
from compare import assert_equals_twin, fit_like_tree
from reference.problems import CRITERIA, Problem, random_options, random_problem
from reference.tree import fit_tree


def check(problem, options, case):
    X, y, weight = problem
    twin = fit_tree(X, y, sample_weight=weight, **options)
    model = fit_like_tree(problem, **options)
    assert_equals_twin(model, twin, (case, options))
    np.testing.assert_allclose(model.record.cost, twin.cost, rtol=1e-9, atol=1e-12)
    return model, twin


@pytest.mark.parametrize("growth", ["largest_bound", "breadth_first"])
@pytest.mark.parametrize("max_bins", [None, 4, 256])
@pytest.mark.parametrize("block", range(4))
def test_random_problems(growth, max_bins, block):
    for case in range(block * 10, block * 10 + 10):
        rng = np.random.default_rng([21, case])
        options = random_options(rng) | {"growth": growth, "max_bins": max_bins}
        options["smoothing"] = float(rng.choice([0.0, 1e-4, 0.01]))
        options["learning_rate"] = float(rng.choice([1.0, 0.3]))
        options["max_depth"] = [None, 1, 2, 4][rng.integers(4)]
        options["max_nodes"] = [None, 1, 2, 5, 12][rng.integers(5)]
        check(random_problem(rng), options, case)


@pytest.mark.parametrize("growth", ["largest_bound", "breadth_first"])
@pytest.mark.parametrize("max_bins", [None, 32, 256])
@pytest.mark.parametrize("n", [257, 1000, 4097])
def test_continuous_data(growth, max_bins, n):
    rng = np.random.default_rng([22, n])
    X = rng.normal(size=(n, 3))
    y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1, -1)
    problem = Problem(X, y, rng.uniform(0.5, 1, n))
    model, _ = check(problem, {"growth": growth, "max_bins": max_bins, "max_nodes": 25}, n)
    assert model.n_nodes == 25


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("smoothing", [0.0, 1e-4])
def test_full_tree(criterion, smoothing):
    rng = np.random.default_rng(23)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 4, 300), rng.normal(size=300)])
    problem = Problem(X, rng.choice([-1, 1], 300), rng.uniform(0.5, 1, 300))
    model, _ = check(problem, {"criterion": criterion, "smoothing": smoothing}, criterion)
    assert model.n_nodes > 50


@pytest.mark.parametrize("max_bins", [None, 256])
def test_a_split_without_gain_is_made(max_bins):
    """Parity: the first split gains nothing, the next ones everything."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    problem = Problem(X, np.array([-1, 1, 1, -1]), None)
    for growth in ("largest_bound", "breadth_first"):
        options = {"growth": growth, "max_bins": max_bins, "smoothing": 0.0}
        model, _ = check(problem, options, growth)
        assert model.feature.tolist() == [0, 1, 1]
        assert model.next.tolist() == [[1, 2], [-1, -1], [-1, -1]]  # ties: opened first


def test_growth_orders_differ():
    """The lighter exit is opened first, the heavier one split first."""
    X = np.array([0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 16], dtype=float)[:, None]
    y = np.array([-1, -1, 1, -1, -1, 1, 1, -1, 1, -1, 1, 1])
    weight = np.array([3, 3, 0.5, 3, 3, 2, 2, 1, 2, 1, 2, 2])
    problem = Problem(X, y, weight)
    first = {
        growth: check(problem, {"growth": growth, "max_nodes": 2}, growth)[0].next[0].tolist()
        for growth in ("largest_bound", "breadth_first")
    }
    assert first["largest_bound"] == [-1, 1]
    assert first["breadth_first"] == [1, -1]


def test_an_exit_that_cannot_be_split_is_skipped():
    """Equal rows of both classes hold the largest bound; growth goes on with the next exit."""
    X = np.array([0] * 10 + [1, 2, 3, 4, 5], dtype=float)[:, None]
    y = np.array([-1, 1] * 5 + [1, 1, 1, -1, 1])
    problem = Problem(X, y, None)
    model, _ = check(problem, {"max_nodes": None, "smoothing": 0.0}, "stuck")
    assert model.n_nodes == 3
    check(problem, {"max_nodes": 2}, "stuck")


@pytest.mark.parametrize("n", [2, 3])
def test_few_rows(n):
    problem = Problem(np.arange(float(n))[:, None], np.array([1, -1, 1])[:n], None)
    model, _ = check(problem, {}, n)
    assert model.n_nodes == n - 1


def test_nothing_to_split():
    problem = Problem(np.ones((5, 2)), np.array([1, 1, 1, 1, -1]), None)
    model, _ = check(problem, {"learning_rate": 0.5, "smoothing": 0.0}, "")
    assert model.n_nodes == 0
    assert model.bias == pytest.approx(0.25 * np.log(4))


def test_max_depth_bounds_the_path():
    rng = np.random.default_rng(24)
    problem = random_problem(rng, 80, 4)
    for depth in (1, 2, 3):
        model, _ = check(problem, {"max_depth": depth}, depth)
        assert 0 < model.n_nodes <= 2**depth - 1
