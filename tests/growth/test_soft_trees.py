"""Trees whose answers are uncertain: against the twin, and what theory says of them."""

import numpy as np
import pytest
from reference.problems import Problem, random_problem
from reference.soft import fit_soft_tree
from reference.walk import evaluate
from soft_models import (
    CLASS_FREE,
    NEEDS_CLASS,
    OBSERVATIONS,
    assert_certified,
    assert_equals_soft_twin,
    assert_evaluated,
    draw_options,
    expected_error,
    library,
    noisy,
    shrinks,
    tree_bound,
)

import pboost as pb

GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")


def fit(problem, **options):
    return library(pb.fit_boosted_tree, problem, **options)


def check(problem, options, case=""):
    X, y, weight = problem
    twin = fit_soft_tree(X, y, sample_weight=weight, **options)
    model = fit(problem, **options)
    assert_equals_soft_twin(model, twin, (case, options))
    return model, twin


# Against the twin


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_random_problems(observation, growth):
    for case in range(16):
        rng = np.random.default_rng([41, case])
        options = draw_options(rng) | {"observation": observation, "growth": growth}
        options["max_depth"] = [None, None, 1, 2, 4][rng.integers(5)]
        options["max_nodes"] = int(rng.choice([1, 2, 5, 9]))
        check(random_problem(rng), options, case)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_continuous_data(observation, growth):
    for max_bins in (None, 32):
        options = {"observation": observation, "rate": 0.1, "growth": growth, "max_nodes": 12}
        model, _ = check(noisy(42, n=300), options | {"max_bins": max_bins}, max_bins)
        assert model.n_nodes == 12


def test_exits_much_lighter_than_what_they_split_off():
    # Rows of the bin that holds a cut once weighed more than the new exit's scale can hold.
    X, y = pb.datasets.nine_circles(200, rng=4)
    answers = pb.observation.adatree2()
    model = pb.fit_boosted_tree(X, y, max_nodes=128, growth="look_ahead", observation=answers)
    assert model.n_nodes == 128
    assert_certified(model, Problem(X, y, None))


@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
@pytest.mark.parametrize("n", [2, 3])
def test_few_rows(observation, n):
    problem = Problem(np.arange(float(n))[:, None], np.array([1, -1, 1])[:n], None)
    for smoothing in (0.0, 1e-4):
        for growth in GROWTHS:
            options = {"observation": observation, "rate": 0.2, "growth": growth, "max_nodes": 4}
            check(problem, options | {"smoothing": smoothing}, (n, growth))


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_nothing_to_split(observation):
    problem = Problem(np.ones((5, 2)), np.array([1, 1, 1, 1, -1]), None)
    model, _ = check(problem, {"observation": observation, "max_nodes": 3, "smoothing": 0.0})
    assert model.n_nodes == 0
    assert model.bias == pytest.approx(0.5 * np.log(4))
    assert_certified(model, problem)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("observation", ["flip", "half"])
def test_depth_alone_bounds_the_tree(observation, growth):
    """Every row arrives at every exit, so that all exits down to the last level are split."""
    options = {"observation": observation, "rate": 0.1, "growth": growth, "max_depth": 3}
    model, _ = check(noisy(43), options | {"max_nodes": None})
    assert model.n_nodes == 7
    assert "no exit can be split" in model.record.stop_reason


@pytest.mark.parametrize("n_rows", [12, 20])
@pytest.mark.parametrize("min_weight_fraction", [0.2037, 0.3137, 0.40137])
def test_exits_that_cannot_be_split_take_no_place(n_rows, min_weight_fraction):
    """Many of the largest exits have no legal cut; the last nodes go to smaller ones."""
    for case in range(12):
        rng = np.random.default_rng([44, case])
        X = rng.integers(0, 3, (n_rows, 2)).astype(float)
        y = rng.choice([-1, 1], n_rows)
        y[:2] = -1, 1
        problem = Problem(X, y, rng.exponential(size=n_rows))
        options = {"observation": "flip", "rate": 0.1, "min_weight_fraction": min_weight_fraction}
        check(problem, options | {"max_nodes": 20}, case)


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("observation", ["exact", "flip", "adatree2"])
def test_target_certificate(observation, growth):
    options = {"observation": observation, "rate": 0.05, "growth": growth, "max_nodes": 30}
    free, _ = check(noisy(45), options)
    target = float(free.record.certificate[9:11].mean())
    model, _ = check(noisy(45), options | {"target_certificate": target})
    assert model.n_nodes == 10
    assert model.record.certificate[-1] <= target < model.record.certificate[-2]
    assert "the target certificate is reached" in model.record.stop_reason


def test_growths_differ():
    options = {"observation": "flip", "rate": 0.1, "max_nodes": 12}
    shapes = [fit(noisy(46), growth=growth, **options).next for growth in GROWTHS]
    assert len({tuple(next_.flat) for next_ in shapes}) == len(GROWTHS)


# What theory says


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
def test_certificate_and_reach(observation, growth):
    for case in range(4):
        rng = np.random.default_rng([47, case])
        options = draw_options(rng) | {"observation": observation, "growth": growth}
        problem = random_problem(rng)
        model = fit(problem, max_nodes=[3, 8, 15][case % 3], **options)
        assert_certified(model, problem, case)
        assert_evaluated(model, problem, observation in NEEDS_CLASS)


@pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
@pytest.mark.parametrize("learning_rate", [1.0, 0.5])
def test_expected_error_is_below_the_certificate(observation, learning_rate):
    problem = noisy(48)
    options = {"observation": observation, "rate": 0.1, "learning_rate": learning_rate}
    for nodes in (1, 4, 12):
        model = fit(problem, max_nodes=nodes, **options)
        assert 0 < expected_error(model, problem) <= model.record.certificate[-1]


@pytest.mark.parametrize("growth", ["largest_bound", "look_ahead", "largest_error"])
@pytest.mark.parametrize("observation", ["flip", "adatree2", "uniform"])
def test_the_bound_of_trees(observation, growth):
    """C(T) <= F(T, rho) for the worst Z; growth in another order need not obey."""
    for seed in range(3):
        problem = noisy([49, seed])
        options = {"observation": observation, "rate": 0.2, "growth": growth, "smoothing": 0.0}
        model = fit(problem, max_nodes=25, **options)
        factors = shrinks(model, problem)
        assert factors.max() < 1
        if growth == "largest_bound":
            bounds = [tree_bound(t, factors[:t].max()) for t in range(1, 26)]
            assert (model.record.certificate[1:] <= np.array(bounds) * (1 + 1e-12)).all()


@pytest.mark.parametrize("observation", ["exact", "flip", "adatree2"])
def test_votes_telescope(observation):
    """Half the log odds of the reach masses at each way out, theorem 2 of [G]."""
    problem = noisy(50)
    model = fit(problem, observation=observation, rate=0.1, max_nodes=12, smoothing=0.0)
    weight = problem.weight / problem.weight.sum()
    masses = {0: (1.0, 0.0)}
    arrives = pb.inspection.reach(model, problem.X, problem.y) * weight[:, None]
    above = problem.X[:, model.feature] > model.threshold
    certificate, H = 0.0, {0: 0.0}
    positive = problem.y > 0
    table = model.answer
    for node in range(model.n_nodes):
        side = above[:, node].astype(int)
        q = side if table is None else table[node][side, positive.astype(int)]
        for exit_, taken in enumerate((1 - q, q)):
            mass = arrives[:, node] * taken
            masses = mass[positive].sum(), mass[~positive].sum()
            votes = H[node] + model.vote[node, exit_]
            if model.next[node, exit_] >= 0:
                H[model.next[node, exit_]] = votes
                continue
            certificate += 2 * np.sqrt(masses[0] * masses[1])
            if min(masses) > 1e-9:
                assert votes == pytest.approx(0.5 * np.log(masses[0] / masses[1]), abs=1e-9)
    assert model.record.certificate[-1] == pytest.approx(certificate, rel=1e-6)


@pytest.mark.parametrize("growth", GROWTHS)
def test_half_learns_how_frequent_the_classes_are(growth):
    problem = noisy(51)
    model = fit(problem, observation="half", growth=growth, max_nodes=10, smoothing=0.0)
    plus = problem.weight[problem.y > 0].sum() / problem.weight.sum()
    assert model.n_nodes == 10
    np.testing.assert_allclose(model.vote[0], 0.5 * np.log(plus / (1 - plus)), rtol=1e-9)
    np.testing.assert_allclose(model.vote[1:], 0, atol=1e-9)
    np.testing.assert_allclose(model.record.certificate[1:], 2 * np.sqrt(plus * (1 - plus)))


@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_the_hard_route_takes_the_side_of_every_threshold(observation):
    problem = noisy(52)
    model = fit(problem, observation=observation, rate=0.2, max_nodes=12)
    score, cost, _ = evaluate(
        model.feature, model.threshold, model.next, model.vote, problem.X, model.bias
    )
    np.testing.assert_allclose(pb.decision_function(model, problem.X), score, atol=1e-12)
    scores = pb.decision_function(model, problem.X, route="hard")
    np.testing.assert_allclose(scores, score, atol=1e-12)
    np.testing.assert_array_equal(pb.prediction_cost(model, problem.X), cost)


@pytest.mark.parametrize("observation", CLASS_FREE)
def test_samples_have_the_expected_mean(observation):
    problem = noisy(53, n=40)
    model = fit(problem, observation=observation, rate=0.2, max_nodes=8)
    expected = pb.decision_function(model, problem.X, route="expected")
    draws = 4000
    options = {"route": "sample", "rng": 1, "draws": draws}
    scores = pb.decision_function(model, problem.X, **options)
    # Five standard errors of a mean of values that lie within the range of all votes.
    spread = np.ptp([*np.minimum(model.vote, 0).sum(0), *np.maximum(model.vote, 0).sum(0)])
    np.testing.assert_allclose(scores, expected, atol=5 * spread / 2 / np.sqrt(draws))
    np.testing.assert_array_equal(scores, pb.decision_function(model, problem.X, **options))
    if observation != "exact":
        once = pb.decision_function(model, problem.X, route="sample", rng=1)
        assert (once != scores).any()
