"""Top-down induction: permissible functions, named and the user's own."""

import numpy as np
import pytest
from compare import assert_equals_twin, assert_identical
from reference.problems import random_problem
from reference.tree import fit_tree

import pboost as pb
from pboost.growth.impurity_search import check_permissible


def entropy(z):
    parts = [np.where(p > 0, p * np.log2(np.where(p > 0, p, 1)), 0) for p in (z, 1 - z)]
    return -sum(parts)


NAMED = {
    "kearns_mansour": lambda z: 2 * np.sqrt(z * (1 - z)),
    "gini": lambda z: 4 * z * (1 - z),
    "entropy": entropy,
    "error": lambda z: 2 * np.minimum(z, 1 - z),
}
GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")


def random_settings(rng):
    return {
        "max_nodes": int(rng.integers(1, 25)),
        "max_depth": [None, 3][rng.integers(2)],
        "smoothing": float(rng.choice([0, 1e-4, 0.01])),
        "learning_rate": float(rng.choice([1, 0.4])),
        "min_weight_fraction": float(rng.choice([0, 0, 0.051373])),
        "min_samples_leaf": int(rng.choice([1, 1, 3])),
    }


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("impurity", NAMED)
def test_a_function_gives_the_tree_of_its_name(impurity, growth):
    for case in range(12):
        rng = np.random.default_rng([51, case])
        X, y, weight = random_problem(rng)
        X = [X, pb.data.sort_columns(X), pb.data.bin_columns(X)][case % 3]
        options = random_settings(rng) | {"growth": growth, "sample_weight": weight}
        named = pb.fit_topdown_tree(X, y, impurity=impurity, **options)
        custom_model = pb.fit_topdown_tree(X, y, impurity=NAMED[impurity], **options)
        for name in ("feature", "threshold", "next", "classes"):
            np.testing.assert_array_equal(
                getattr(custom_model, name), getattr(named, name), str(case)
            )
        np.testing.assert_allclose(custom_model.vote, named.vote, rtol=0, atol=1e-12)
        np.testing.assert_allclose(custom_model.bias, named.bias, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            custom_model.record.certificate, named.record.certificate, rtol=1e-9
        )
        np.testing.assert_allclose(custom_model.record.cost, named.record.cost, rtol=1e-12)
        assert custom_model.record.stop_reason == named.record.stop_reason


@pytest.mark.parametrize("power", [0.6, 0.75])
def test_other_functions_against_the_twin(power):
    def impurity(z):
        return (4 * z * (1 - z)) ** power

    for case in range(25):
        rng = np.random.default_rng([52, case])
        problem = random_problem(rng)
        growth = ["largest_bound", "breadth_first"][case % 2]
        options = random_settings(rng) | {"growth": growth, "sample_weight": problem.weight}
        model = pb.fit_topdown_tree(problem.X, problem.y, impurity=impurity, **options)
        twin = fit_tree(problem.X, problem.y, criterion=impurity, **options)
        assert_equals_twin(model, twin, (case, options))


def test_weights_of_many_magnitudes():
    """Deep down little of the root's mass is left, and weights are made anew."""
    rng = np.random.default_rng(53)
    X = rng.normal(size=(300, 2))
    y = np.where(rng.random(300) < 0.5, 1, -1)
    weight = 10.0 ** -rng.uniform(0, 15, 300)
    named, own = (
        pb.fit_topdown_tree(X, y, max_nodes=None, impurity=f, sample_weight=weight)
        for f in ("gini", NAMED["gini"])
    )
    assert own.n_nodes > 100
    np.testing.assert_array_equal(own.feature, named.feature)
    np.testing.assert_array_equal(own.threshold, named.threshold)
    np.testing.assert_allclose(own.vote, named.vote, rtol=0, atol=1e-9)


def problem(n=300):
    rng = np.random.default_rng(54)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("growth", GROWTHS)
def test_kearns_mansour_is_the_boosted_tree(growth):
    X, y = problem()
    options = {"max_nodes": 25, "growth": growth, "max_depth": 7}
    topdown = pb.fit_topdown_tree(X, y, min_samples_leaf=3, **options)
    weak = pb.weak.stump(min_samples_leaf=3)
    boosted = pb.fit_boosted_tree(X, y, weak_learner=weak, **options)
    assert_identical(topdown, boosted)
    assert topdown.settings["builder"] == "fit_topdown_tree"
    assert topdown.settings["impurity"] == "kearns_mansour"


@pytest.mark.parametrize("impurity", [*NAMED, NAMED["gini"], lambda z: (4 * z * (1 - z)) ** 0.7])
def test_leaves_vote_half_the_log_odds(impurity):
    X, y = problem()
    model = pb.fit_topdown_tree(
        X, y, max_nodes=7, impurity=impurity, smoothing=0, min_samples_leaf=20
    )
    score = pb.decision_function(model, X)
    assert model.n_nodes == 7
    loss = 0.0
    for value in np.unique(score):
        plus, minus = (np.mean((score == value) & (y == s)) for s in (1, -1))
        loss += 2 * np.sqrt(plus * minus)
        if plus and minus:
            assert value == pytest.approx(0.5 * np.log(plus / minus), abs=1e-10)
    assert pb.certificate(model) == pytest.approx(loss, abs=1e-6)


def test_functions_of_a_model(tmp_path):
    X, y = problem()
    seen = []
    model = pb.fit_topdown_tree(
        X, y, max_nodes=9, impurity=NAMED["gini"], callback=lambda step, r: seen.append((step, r))
    )
    pb.save(model, tmp_path / "model")
    assert_identical(pb.load(tmp_path / "model"), model)
    assert [step for step, _ in seen] == list(range(1, 10))
    for k, (_, record) in enumerate(seen):
        assert record.node == k
        assert record.feature == model.feature[k]
        assert record.threshold == model.threshold[k]
        assert record.votes == tuple(model.vote[k])
        assert record.certificate == model.record.certificate[k + 1]
    again = pb.fit_topdown_tree(X, y, max_nodes=9, impurity=NAMED["gini"], n_threads=3)
    assert_identical(again, model)
    short = pb.fit_topdown_tree(
        X, y, max_nodes=9, impurity=NAMED["gini"], callback=lambda step, _: step == 4
    )
    assert short.n_nodes == 4
    target = pb.fit_topdown_tree(
        X, y, max_nodes=None, impurity=NAMED["gini"], target_certificate=0.6
    )
    assert target.record.certificate[-2] > 0.6 >= target.record.certificate[-1]
    assert target.record.stop_reason == "the target certificate is reached"


def test_the_function_is_not_called_with_more_than_it_needs():
    """All rows of a leaf, and of several features, in one call."""
    X, y = problem()
    calls = []

    def impurity(z):
        calls.append(len(z))
        return 4 * z * (1 - z)

    pb.fit_topdown_tree(X, y, max_nodes=4, impurity=impurity)
    assert len(calls) < 40
    assert max(calls[1:]) >= 800


@pytest.mark.parametrize(
    ("impurity", "message"),
    [
        (lambda z: z * (1 - z), r"f\(0\.5\) = 1, got 0\.25"),
        (lambda z: 1 - 0 * z, r"f\(0\) = 0, got 1"),
        (lambda z: np.where(z == 1, 0.5, 4 * z * (1 - z)), r"f\(1\) = 0, got 0\.5"),
        (lambda z: 4 * z * (1 - z) + 0.1 * np.sin(2 * np.pi * z), r"not symmetric"),
        (lambda z: (4 * z * (1 - z)) ** 2, r"not concave"),
        (lambda z: np.minimum(1, 4 * np.minimum(z, 1 - z) ** 1.01), r"f\(0\.\d+\).*not concave"),
        (lambda z: z * np.nan, r"finite values, got f\(0\) = nan"),
        (lambda z: -z * np.log2(z) - (1 - z) * np.log2(1 - z), r"finite values, got f\(0\) = nan"),
        (lambda z: 2 * min(z, 1 - z), "raised ValueError"),
        (lambda z: 0.0, r"keeps the shape .*\(1025,\), got shape \(\)"),
        (lambda z: z[:-1], r"keeps the shape .*\(1025,\), got shape \(1024,\)"),
        ("ginni", "one of 'kearns_mansour'"),
        (None, "one of"),
    ],
)
def test_functions_that_are_not_permissible(impurity, message):
    X, y = problem(30)
    with pytest.raises((ValueError, TypeError), match=r"impurity.*" + message):
        pb.fit_topdown_tree(X, y, max_nodes=3, impurity=impurity)


def test_permissible_functions_pass():
    for impurity in NAMED.values():
        assert check_permissible(impurity) is impurity


@pytest.mark.parametrize(
    "options",
    [
        {"max_nodes": 0},
        {"growth": "best"},
        {"max_depth": 0},
        {"min_weight_fraction": 0.7},
        {"min_samples_leaf": 0},
        {"smoothing": -1},
        {"learning_rate": 2},
        {"target_certificate": 1.5},
        {"callback": 1},
        {"sample_weight": [1.0]},
        {"n_threads": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("impurity", ["gini", NAMED["gini"]], ids=["named", "own"])
def test_bad_options(impurity, options):
    X, y = problem(30)
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        pb.fit_topdown_tree(X, y, **({"max_nodes": 3, "impurity": impurity} | options))


def test_nothing_to_split():
    X, y = np.ones((5, 2)), np.array([1, 1, 1, 1, -1])
    model = pb.fit_topdown_tree(X, y, max_nodes=3, impurity=NAMED["gini"], smoothing=0)
    assert model.n_nodes == 0
    assert model.bias == pytest.approx(0.5 * np.log(4))


@pytest.mark.parametrize("growth", GROWTHS)
def test_callbacks_hear_which_exit_was_split(growth):
    X, y, _ = random_problem(np.random.default_rng(5), n=80, d=3)
    heard = []
    model = pb.fit_topdown_tree(
        X,
        y,
        max_nodes=12,
        growth=growth,
        impurity=NAMED["gini"],
        callback=lambda step, record: heard.append((record.node, record.parents)),
    )
    leads = {int(model.next[i, k]): ((i, k),) for i in range(model.n_nodes) for k in (0, 1)}
    assert model.n_nodes > 3
    assert heard == [(0, ()), *((node, leads[node]) for node in range(1, model.n_nodes))]
