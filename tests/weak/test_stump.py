"""One stump against brute force."""

import numpy as np
import pytest
from compare import assert_equals_twin, fit_like_adaboost, fit_like_tree
from reference.adaboost import fit_adaboost
from reference.problems import CRITERIA, SIZES, Problem, random_options, random_problem
from reference.split import midpoint
from reference.tree import fit_tree

import pboost as pb

CASES = 40


def check_stump(problem, options, case):
    X, y, weight = problem
    twin = fit_adaboost(X, y, n_estimators=1, sample_weight=weight, **options)
    assert_equals_twin(
        fit_like_adaboost(problem, n_estimators=1, **options), twin, (case, "adaboost")
    )
    twin = fit_tree(X, y, max_nodes=1, sample_weight=weight, **options)
    assert_equals_twin(fit_like_tree(problem, max_nodes=1, **options), twin, (case, "tree"))


@pytest.mark.parametrize("block", range(10))
def test_exact_stump(block):
    for case in range(block * CASES, (block + 1) * CASES):
        rng = np.random.default_rng([1, case])
        check_stump(random_problem(rng), random_options(rng), case)


@pytest.mark.parametrize("block", range(10))
def test_binned_stump(block):
    for case in range(block * CASES, (block + 1) * CASES):
        rng = np.random.default_rng([2, case])
        options = random_options(rng) | {"max_bins": int(rng.choice([2, 3, 5, 16, 255, 256]))}
        check_stump(random_problem(rng), options, case)


@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("max_bins", [None, 7, 256])
def test_sizes(n, max_bins):
    for case in range(4):
        rng = np.random.default_rng([3, n, case])
        options = random_options(rng) | {"max_bins": max_bins}
        check_stump(random_problem(rng, n, 3), options, case)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
def test_many_distinct_values(criterion, noise):
    """More distinct values than bins: the coarse search must not lose the best cut."""
    for case in range(4):
        rng = np.random.default_rng([4, case])
        X = rng.normal(size=(3000, 3))
        X[:, 1] = np.round(X[:, 1], 2)
        y = np.where(np.abs(X[:, 0]) + X[:, 1] > 0.9, 1, -1)
        y[rng.random(len(y)) < noise] *= -1
        weight = [None, rng.uniform(size=len(y)), rng.exponential(size=len(y)) ** 6][case % 3]
        check_stump(Problem(X, y, weight), {"criterion": criterion}, case)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_one_heavy_row_inside_a_bin(criterion):
    """The best cut isolates a few rows in the middle of a bin of 4000 others."""
    rng = np.random.default_rng(5)
    for case in range(6):
        X = rng.permutation(4000).astype(float)[:, None]
        y = rng.choice([-1, 1], len(X))
        weight = np.full(len(X), 1e-3)
        chosen = rng.choice(len(X), 3, replace=False)
        weight[chosen] = 5.0
        y[chosen] = np.where(X[chosen, 0] > np.median(X[chosen, 0]), 1, -1)
        check_stump(Problem(X, y, weight), {"criterion": criterion}, case)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equally_good_pure_splits(criterion):
    """Perfect cuts of weights that do not add up exactly: the lowest feature must win."""
    rng = np.random.default_rng(6)
    for case in range(20):
        n = int(rng.integers(4, 600))
        y = rng.choice([-1, 1], n)
        y[:2] = -1, 1
        noise = rng.normal(size=n)
        good = y * rng.uniform(0.5, 1, n)
        X = np.column_stack([noise, good, -good, y, good])
        weight = rng.choice([0.1, 0.3, 0.7], n)
        problem = Problem(X, y, weight)
        check_stump(problem, {"criterion": criterion}, case)
        assert fit_like_tree(problem, max_nodes=1, criterion=criterion).feature.tolist() == [1]


@pytest.mark.full
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_bins", [None, 256])
def test_nearly_perfect_cut(criterion, max_bins):
    """The best value is all but 0: rounding in a lower bound must not discard the cut."""
    for case in range(60):
        rng = np.random.default_rng([8, case])
        x = np.where(np.arange(600) < 2, 1.0, 0.0)
        y = np.where(np.isin(np.arange(600), [0, 2]), 1, -1)
        weight = rng.uniform(1, 2, 600)
        weight[0] = rng.uniform(1, 100)
        weight[1:3] = 10.0 ** -rng.uniform(3, 8, 2)
        X = np.column_stack([rng.normal(size=600), x])
        options = {"criterion": criterion, "max_bins": max_bins}
        check_stump(Problem(X, y, weight), options, case)


NEIGHBOURS = [
    (1.0, np.nextafter(1.0, 2.0)),
    (np.nextafter(1.0, 0.0), 1.0),
    (-1.0, np.nextafter(-1.0, 0.0)),
    (0.0, 5e-324),
    (-0.0, 5e-324),
    (-5e-324, 0.0),
    (-5e-324, -0.0),
    (5e-324, 1e-323),
    (-1e-323, -5e-324),
    (-5e-324, 5e-324),
    (1e308, 1.7e308),
    (-1.7e308, -1e308),
    (-1e308, 1e308),
    (np.nextafter(1.7976931348623157e308, 0), 1.7976931348623157e308),
    (float(np.float32(0.1)), float(np.nextafter(np.float32(0.1), np.float32(1)))),
]


@pytest.mark.parametrize(("a", "b"), NEIGHBOURS)
@pytest.mark.parametrize("max_bins", [None, 2, 256])
def test_threshold_separates_neighbours(a, b, max_bins):
    problem = Problem(np.array([[b], [a], [a], [b]]), np.array([1, -1, -1, 1]), None)
    for fit, size in ((fit_like_adaboost, "n_estimators"), (fit_like_tree, "max_nodes")):
        model = fit(problem, **{size: 1}, max_bins=max_bins)
        assert model.threshold.tolist() == [midpoint(a, b)]
        assert a <= model.threshold[0] < b


@pytest.mark.parametrize("zeros", [(-0.0, 0.0), (0.0, -0.0)])
@pytest.mark.parametrize("max_bins", [None, 256])
def test_signed_zeros_are_one_value(zeros, max_bins):
    problem = Problem(np.array(zeros)[:, None], np.array([-1, 1]), None)
    assert fit_like_tree(problem, max_nodes=1, max_bins=max_bins).n_nodes == 0
    assert fit_like_adaboost(problem, n_estimators=1, max_bins=max_bins).n_nodes == 0


@pytest.mark.parametrize("max_bins", [None, 256])
def test_float32_and_float64_rows_take_the_same_exits(max_bins):
    rng = np.random.default_rng(7)
    step = np.nextafter(np.float32(0.1), np.float32(1)) - np.float32(0.1)
    X = (np.float32(0.1) + rng.integers(0, 6, (200, 3)).astype(np.float32) * step).astype("f4")
    y = np.where(X.sum(axis=1) > np.median(X.sum(axis=1)), 1, -1)
    y[rng.random(len(y)) < 0.2] *= -1
    assert len(np.unique(X)) == 6
    for fit, size in ((fit_like_adaboost, "n_estimators"), (fit_like_tree, "max_nodes")):
        model = fit(Problem(X, y, None), **{size: 20}, max_bins=max_bins)
        assert model.n_nodes == 20
        narrow, wide = (pb.decision_function(model, Z) for Z in (X, X.astype(np.float64)))
        assert narrow.tobytes() == wide.tobytes()
        for j, t in zip(model.feature, model.threshold, strict=True):
            assert 0 < (X[:, j].astype(np.float64) <= t).sum() < len(X)
