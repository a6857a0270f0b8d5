"""Greedy matryoshki: against the twin, and what theory says of them."""

import dataclasses
import math

import numpy as np
import pytest
from compare import assert_identical, truncated
from reference import greedy as twins
from reference import matryoshka
from reference.bounds import rate_matryoshka
from reference.problems import Problem, random_problem
from soft_models import (
    NEEDS_CLASS,
    OBSERVATIONS,
    arrays,
    assert_certified,
    assert_equals_soft_twin,
    assert_evaluated,
    draw_options,
    expected_error,
    library,
    noisy,
)

import pboost as pb

COLLECTS = ("additive", "sign")
every_kind = pytest.mark.parametrize("observation", ["exact", *OBSERVATIONS])
both_collects = pytest.mark.parametrize("collect", COLLECTS)


def fit(problem, **options):
    return library(pb.fit_matryoshka, problem, growth="greedy", **options)


def check(problem, options, case=""):
    X, y, weight = problem
    twin, collected = twins.fit_greedy(X, y, sample_weight=weight, **options)
    model = fit(problem, **options)
    assert_equals_soft_twin(model, twin, (case, options))
    return model, collected


# Against the twin


@both_collects
@every_kind
def test_random_problems(observation, collect):
    sizes = []
    for case in range(14):
        rng = np.random.default_rng([91, case])
        options = draw_options(rng) | {"observation": observation, "collect": collect}
        options["max_nodes"] = int(rng.integers(1, 16))
        sizes += check(random_problem(rng), options, case)[1]
    assert sizes or observation == "half"


@both_collects
@every_kind
def test_continuous_data(observation, collect):
    options = {"observation": observation, "rate": 0.1, "collect": collect, "max_nodes": 40}
    model, sizes = check(noisy(92, n=300), options)
    assert model.n_nodes == 40
    assert model.record.stop_reason == "all nodes are opened"
    if observation != "half":
        assert len(set(sizes)) > 1


@both_collects
@pytest.mark.parametrize("n", [2, 3])
def test_few_rows(collect, n):
    problem = Problem(np.arange(float(n))[:, None], np.array([1, -1, 1])[:n], None)
    for observation in ("exact", *OBSERVATIONS):
        for smoothing in (0.0, 1e-4):
            options = {"observation": observation, "rate": 0.2, "smoothing": smoothing}
            model, _ = check(problem, options | {"collect": collect, "max_nodes": 5})
            if observation == "exact":
                assert model.n_nodes == n - 1
                assert model.record.stop_reason == "no exit can be split"


@both_collects
def test_nothing_to_split(collect):
    problem = Problem(np.ones((5, 2)), np.array([1, 1, 1, 1, -1]), None)
    model, _ = check(problem, {"max_nodes": 4, "collect": collect, "smoothing": 0.0})
    assert model.n_nodes == 0
    assert model.bias == pytest.approx(0.5 * np.log(4))
    assert model.record.stages is None
    assert list(pb.staged_decision_function(model, problem.X)) == []


# The rule


def test_two_nodes_are_collected_where_the_rates_cross():
    """Collecting by sign shows at once: the vote on the edge inside is dropped."""
    outcomes = set()
    for seed in range(12):
        options = {"observation": "adatree2", "max_nodes": 2}
        C = fit(noisy([93, seed]), **options).record.certificate
        signs = fit(noisy([93, seed]), collect="sign", **options)
        collected = bool(signs.vote[0, signs.next[0] == 1] == 0)
        assert collected == (rate_matryoshka(2, C[2]) < C[2] - C[1])
        assert (signs.record.certificate[2] > C[2]) == collected
        outcomes.add(collected)
    assert outcomes == {False, True}


def test_parity_gains_nothing_at_first():
    """Rates of 0 are equal, whatever rounding makes of them."""
    X = np.array([(i >> 1 & 1, i & 1) for i in range(4)], dtype=float)
    y = np.where(X[:, 0] == X[:, 1], 1, -1)
    model = pb.fit_matryoshka(X, y, growth="greedy", max_nodes=10)
    assert model.n_nodes == 3
    np.testing.assert_array_equal(np.sort(model.next[0]), [1, 2])
    np.testing.assert_array_equal(pb.predict(model, X), y)


def test_two_nodes_at_least():
    for observation in ("exact", "adatree2"):
        first_model = fit(noisy(94), observation=observation, max_nodes=1)
        tree = library(pb.fit_boosted_tree, noisy(94), observation=observation, max_nodes=1)
        np.testing.assert_array_equal(first_model.threshold, tree.threshold)
        np.testing.assert_allclose(first_model.vote, tree.vote, rtol=0, atol=1e-12)


# What theory says


@both_collects
@every_kind
def test_certificate_and_reach(observation, collect):
    for case in range(4):
        rng = np.random.default_rng([95, case])
        options = draw_options(rng) | {"observation": observation, "collect": collect}
        problem = random_problem(rng)
        model = fit(problem, max_nodes=[3, 7, 8, 20][case], **options)
        assert_certified(model, problem, case)
        assert_evaluated(model, problem, observation in NEEDS_CLASS)


@both_collects
@every_kind
def test_expected_error_is_below_the_certificate(observation, collect):
    problem = noisy(96)
    for nodes in (2, 4, 8, 12):
        options = {"observation": observation, "rate": 0.1, "collect": collect}
        model = fit(problem, max_nodes=nodes, **options)
        assert 0 < expected_error(model, problem) <= model.record.certificate[-1]


@every_kind
@pytest.mark.parametrize("learning_rate", [1.0, 0.5])
def test_additive_collecting_leaves_the_certificate(observation, learning_rate):
    problem = noisy(97)
    X, y, weight = problem
    model = fit(
        problem, observation=observation, rate=0.1, learning_rate=learning_rate, max_nodes=25
    )
    certificate = model.record.certificate
    assert (np.diff(certificate) <= 1e-15).all()
    for n_nodes in range(1, 26):
        bound = matryoshka.certificate(arrays(model, n_nodes), X, y, weight)
        assert bound == pytest.approx(certificate[n_nodes], rel=1e-9)


# Stages: the model with fewer nodes is the beginning of the one with more


def begins(model, n_nodes):
    """Return the model of the first nodes as a graph of its own."""
    short = truncated(model, n_nodes)
    return dataclasses.replace(
        short, answer=None if model.answer is None else model.answer[:n_nodes]
    )


@both_collects
@every_kind
def test_stages_are_smaller_models(observation, collect):
    problem = noisy(98, n=200)
    options = {"observation": observation, "rate": 0.1, "collect": collect}
    model = fit(problem, max_nodes=24, **options)
    stages = model.record.stages
    stages = list(range(1, 25)) if stages is None else stages.tolist()
    assert (collect == "additive") <= (len(stages) == 24)
    scores = dict(zip(stages, pb.staged_decision_function(model, problem.X), strict=True))
    for t in range(1, 25):
        small, first = fit(problem, max_nodes=t, **options), begins(model, t)
        np.testing.assert_array_equal(small.next, first.next)
        assert (t in scores) == np.array_equal(small.vote, first.vote)
        if t in scores:
            assert scores[t].tobytes() == pb.decision_function(small, problem.X).tobytes()
            assert small.record.certificate[-1] == model.record.certificate[t]


def test_some_stages_are_lost_by_sign_collecting():
    model = fit(noisy(98, n=200), observation="adatree2", collect="sign", max_nodes=24)
    assert 1 < len(model.record.stages) < 24


@both_collects
def test_callback(collect):
    problem, seen = noisy(99), []
    options = {"observation": "adatree2", "collect": collect}

    def watch(step, record):
        seen.append((step, record.certificate, record.votes))
        return step == 9

    model = fit(problem, max_nodes=30, callback=watch, **options)
    assert [step for step, *_ in seen] == list(range(1, 10))
    assert [certificate for _, certificate, _ in seen] == model.record.certificate[1:].tolist()
    assert model.record.stop_reason == "stopped by the callback"
    small = fit(problem, max_nodes=9, **options)
    for name in ("feature", "threshold", "next", "vote"):
        np.testing.assert_array_equal(getattr(model, name), getattr(small, name))
    assert seen[-1][2] == tuple(small.vote[-1])


@both_collects
def test_threads_do_not_change_a_bit(collect):
    rng = np.random.default_rng(100)
    X = np.round(rng.normal(size=(20_000, 25)), 3)
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X)) > 0
    models = [
        pb.fit_matryoshka(
            X,
            y,
            growth="greedy",
            max_nodes=12,
            collect=collect,
            n_threads=n,
            observation=pb.observation.adatree2(),
        )
        for n in (1, 2)
    ]
    assert_identical(*models)
    assert math.isfinite(models[0].record.certificate[-1])
