"""Separators: every builder against its twin, evaluation, and the sides of training rows."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from compare import assert_identical
from reference import matryoshka
from reference.greedy import fit_greedy
from reference.problems import CRITERIA, Problem, random_problem
from reference.separator import SeparatorLearner, sums
from reference.soft import fit_soft_chain, fit_soft_tree
from reference.walk import evaluate, path
from soft_models import assert_certified, noisy, observation

import pboost as pb
from pboost import threads
from pboost.data.node_inputs.sums import Separators
from pboost.models.evaluate import kernel_walk as hard_evaluate

GROWTHS = ("largest_bound", "largest_error", "look_ahead", "breadth_first")
STUMPS = 7
WEAK = pb.weak.separator(STUMPS)


def fits(X, y, weak=WEAK, **options):
    """Return a model of each kind."""
    adatree2 = pb.observation.adatree2()
    return {
        "chain": pb.fit_adaboost(X, y, n_estimators=6, weak_learner=weak, **options),
        "tree": pb.fit_boosted_tree(X, y, max_nodes=9, weak_learner=weak, **options),
        "soft tree": pb.fit_boosted_tree(
            X, y, max_nodes=9, weak_learner=weak, observation=pb.observation.flip(0.1), **options
        ),
        "matryoshka": pb.fit_matryoshka(
            X, y, shape=(3, 3), weak_learner=weak, observation=adatree2, **options
        ),
        "greedy": pb.fit_matryoshka(
            X, y, max_nodes=9, growth="greedy", weak_learner=weak, **options
        ),
    }


def stumps_of(inputs, k):
    """Return feature, threshold and vote of the stumps of a separator."""
    part = slice(inputs.start[k], inputs.start[k + 1])
    return inputs.feature[part], inputs.threshold[part], inputs.vote[part]


def greedy_graph(X, y, **options):
    return fit_greedy(X, y, **options)[0]


def check(model, twin, learner):
    """Compare a model with a twin, node by node and stump by stump."""
    assert model.n_nodes == len(twin.feature) > 1
    np.testing.assert_array_equal(model.threshold, 0)
    np.testing.assert_array_equal(model.next, twin.next)
    for node in range(model.n_nodes):
        feature, threshold, vote = stumps_of(model.inputs, model.feature[node])
        chain = learner.chains[twin.feature[node]]
        np.testing.assert_array_equal(feature, chain.feature)
        np.testing.assert_array_equal(threshold, chain.threshold)
        np.testing.assert_allclose(vote, chain.vote, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.vote, twin.vote, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.record.certificate, twin.certificate, rtol=1e-9)
    np.testing.assert_allclose(model.record.cost, twin.cost, rtol=1e-9)


# Against the twins


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_trees_of_exact_answers(criterion, growth):
    X, y, weight = noisy(1, n=100)
    learner = SeparatorLearner(n_estimators=STUMPS, smoothing=1e-3, criterion=criterion)
    twin = fit_soft_tree(X, y, max_nodes=8, growth=growth, learner=learner, sample_weight=weight)
    model = pb.fit_boosted_tree(
        X,
        y,
        max_nodes=8,
        growth=growth,
        weak_learner=pb.weak.separator(STUMPS, criterion=criterion),
        sample_weight=weight,
    )
    check(model, twin, learner)
    bound = pb.certificate(model, X, y, sample_weight=weight)
    np.testing.assert_allclose(bound, model.record.certificate[-1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["exact", "flip", "adatree2", "uniform"])
def test_observations_and_builders(kind):
    X, y, weight = noisy(2, n=80)
    twin = {"observation": kind, "rate": 0.1, "sample_weight": weight}
    options = {"observation": observation(kind, 0.1), "sample_weight": weight, "weak_learner": WEAK}

    cases = [
        (pb.fit_adaboost, fit_soft_chain, {"n_estimators": 5}),
        (pb.fit_boosted_tree, fit_soft_tree, {"max_nodes": 6}),
        (pb.fit_matryoshka, matryoshka.fit_matryoshka, {"shape": (2, 3)}),
        (partial(pb.fit_matryoshka, growth="greedy"), greedy_graph, {"max_nodes": 6}),
    ]
    if kind == "uniform":  # there rates of greedy growth are equal but for rounding
        cases.pop()
    for fit, fit_twin, size in cases:
        learner = SeparatorLearner(n_estimators=STUMPS, smoothing=1e-3)
        model = fit(X, y, **size, **options)
        check(model, fit_twin(X, y, **size, learner=learner, **twin), learner)
        stumps = dataclasses.replace(model, inputs=None, n_features=model.n_inputs)
        assert_certified(stumps, Problem(model.inputs.values(X), y, weight))
        bound = pb.certificate(model, X, y, sample_weight=weight)
        np.testing.assert_allclose(bound, model.record.certificate[-1], rtol=1e-9)


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("max_bins", [None, 8])
def test_options_are_those_of_the_chain(votes, max_bins):
    X, y, weight = noisy(3, n=100)
    options = {"smoothing": 0.01, "learning_rate": 0.5, "votes": votes}
    learner = SeparatorLearner(n_estimators=9, max_bins=max_bins, **options)
    search = {} if max_bins is None else {"search": "binned", "max_bins": max_bins}
    weak = pb.weak.separator(9, **options, **search)
    # One node: deeper, bins are those of all rows.
    twin = fit_soft_tree(X, y, max_nodes=1, learner=learner, sample_weight=weight)
    model = pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=weak, sample_weight=weight)
    feature, threshold, vote = stumps_of(model.inputs, 0)
    chain = learner.chains[twin.feature[0]]
    np.testing.assert_array_equal(feature, chain.feature)
    np.testing.assert_array_equal(threshold, chain.threshold)
    np.testing.assert_allclose(vote, chain.vote, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.vote, twin.vote, rtol=0, atol=1e-9)


def test_the_root_is_adaboost():
    X, y, weight = noisy(4, n=300, d=5)
    chain = pb.fit_adaboost(X, y, n_estimators=40, smoothing=1e-3, sample_weight=weight)
    model = pb.fit_oblique_tree(X, y, n_stumps=40, max_nodes=1, sample_weight=weight)
    feature, threshold, vote = stumps_of(model.inputs, 0)
    np.testing.assert_array_equal(feature, chain.feature)
    np.testing.assert_array_equal(threshold, chain.threshold)
    np.testing.assert_allclose(vote, chain.vote, rtol=0, atol=2.0**-33)
    np.testing.assert_array_equal(pb.predict(model, X), pb.predict(chain, X))


def test_a_node_is_trained_on_the_rows_that_arrive():
    X, y, weight = noisy(5, n=300, d=4)
    model = pb.fit_oblique_tree(X, y, sample_weight=weight, n_stumps=12, max_depth=3)
    arrives = pb.inspection.reach(model, X) > 0
    for node in range(1, model.n_nodes):
        here = arrives[:, node]
        assert 0 < here.sum() < 300
        chain = pb.fit_adaboost(
            X[here], y[here], n_estimators=12, smoothing=1e-3, sample_weight=weight[here]
        )
        feature, threshold, _ = stumps_of(model.inputs, model.feature[node])
        np.testing.assert_array_equal(feature, chain.feature)
        np.testing.assert_array_equal(threshold, chain.threshold)


# What separators do


def test_parity_of_two_bits_takes_a_tree_of_separators():
    rng = np.random.default_rng(6)
    X = rng.integers(0, 2, (200, 6))
    y = X[:, 0] ^ X[:, 1]
    model = pb.fit_oblique_tree(X, y, max_depth=None)
    assert (pb.predict(model, X) == y).all()


def test_rows_on_one_side_are_no_split():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    y = [0, 1, 1, 1, 0]
    # The majority is +1, or none, on either side: no sum is negative.
    model = pb.fit_oblique_tree(X, y, sample_weight=[1, 1.5, 1, 1, 1])
    assert model.n_nodes == 0
    assert pb.predict(model, X).tolist() == [1] * 5
    constant = pb.fit_oblique_tree(np.ones((5, 2)), y)
    assert constant.n_nodes == 0


def test_a_separator_may_be_short():
    X = np.arange(6.0)[:, None]
    model = pb.fit_oblique_tree(X, X[:, 0] > 2)
    assert model.inputs.stumps.tolist() == [1]
    assert model.n_nodes == 1


def test_depth_and_number_of_separators():
    X, y, _ = noisy(7, n=400)
    wide = pb.fit_oblique_tree(X, y, n_stumps=3, max_depth=3)
    assert 4 < wide.n_nodes <= 7
    assert pb.prediction_cost(wide, X).max() == 3
    few = pb.fit_oblique_tree(X, y, n_stumps=3, max_nodes=4, max_depth=None)
    assert few.n_nodes == 4
    same = pb.fit_boosted_tree(
        X, y, max_nodes=4, growth="breadth_first", weak_learner=pb.weak.separator(3)
    )
    assert_identical(few, same)


def test_units_and_copies_do_not_matter():
    rng = np.random.default_rng(8)
    X, y, _ = noisy(8, n=60)
    weight = rng.integers(1, 4, 60)
    first_model = pb.fit_oblique_tree(X, y, sample_weight=weight, n_stumps=9)
    copies = np.repeat(np.arange(60), weight)
    two = pb.fit_oblique_tree(X[copies], y[copies], n_stumps=9)
    order = rng.permutation(60)
    three = pb.fit_oblique_tree(X[order] * 4, y[order], sample_weight=weight[order] * 7, n_stumps=9)
    for other in (two, three):
        np.testing.assert_array_equal(first_model.next, other.next)
        np.testing.assert_allclose(first_model.vote, other.vote, rtol=0, atol=1e-9)
        np.testing.assert_allclose(first_model.inputs.vote, other.inputs.vote, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(first_model.inputs.threshold * 4, three.inputs.threshold)


@pytest.mark.full
def test_random_problems():
    grown = 0
    for case in range(40):
        X, y, weight = random_problem(np.random.default_rng([22, case]))
        for name, model in fits(X, y, sample_weight=weight).items():
            grown += model.n_nodes
            again = pb.certificate(model, X, y, sample_weight=weight)
            np.testing.assert_allclose(
                again, model.record.certificate[-1], rtol=1e-9, err_msg=f"{case} {name}"
            )
    assert grown > 200


# Evaluation


def test_collapsed_and_direct_sums():
    rng = np.random.default_rng(9)
    X, y, _ = noisy(9, n=500, d=4)
    X = np.round(X, 1)  # rows at the thresholds' values
    model = pb.fit_boosted_tree(X, y, max_nodes=7, weak_learner=pb.weak.separator(60))
    inputs = model.inputs
    at_edges = rng.choice(inputs.threshold, (500, 4))
    beside = np.nextafter(at_edges, rng.choice([-np.inf, np.inf], at_edges.shape))
    for rows in (X, at_edges, beside, rng.normal(size=(500, 4)) * 3):
        direct = np.column_stack(
            [sums(*stumps_of(inputs, k), rows) for k in range(inputs.n_inputs)]
        )
        actual = inputs.values(rows)
        np.testing.assert_allclose(actual, direct, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(actual > 0, direct > 0)
        # Votes are multiples of 2^-32, so that these sums are exact.
        np.testing.assert_array_equal(actual, direct)


def test_sums_of_any_votes():
    rng = np.random.default_rng(10)
    inputs = Separators(
        [0, 1, 40, 90],
        rng.integers(0, 3, 90),
        rng.normal(size=90).round(1),
        rng.normal(size=(90, 2)),
    )
    X = rng.normal(size=(300, 3)).round(1)
    direct = np.column_stack([sums(*stumps_of(inputs, k), X) for k in range(3)])
    np.testing.assert_allclose(inputs.values(X), direct, rtol=0, atol=1e-12)
    kept = np.array([2, 0])
    np.testing.assert_array_equal(inputs.select(kept).values(X), inputs.values(X)[:, kept])


def test_votes_are_rounded():
    X, y, _ = noisy(11, n=64)
    model = pb.fit_oblique_tree(X, y, n_stumps=20)
    votes = np.ldexp(model.inputs.vote, 32)
    np.testing.assert_array_equal(votes, np.rint(votes))


def test_evaluation_is_that_of_the_sums():
    X, y, _ = noisy(12, n=200, d=5)
    for model in fits(X, y).values():
        inputs = model.inputs
        values = inputs.values(X)
        graph = (model.feature, model.threshold, model.next)
        score, cost, _ = evaluate(*graph, model.vote, values)
        np.testing.assert_array_equal(pb.decision_function(model, X), score)
        np.testing.assert_array_equal(pb.prediction_cost(model, X), cost)
        paths = [[model.feature[node] for node, _ in path(*graph, row)] for row in values]
        read = [len(set(np.concatenate([stumps_of(inputs, k)[0] for k in p]))) for p in paths]
        np.testing.assert_array_equal(pb.prediction_cost(model, X, "features"), read)
        stumps = [sum(len(stumps_of(inputs, k)[0]) for k in p) for p in paths]
        np.testing.assert_array_equal(pb.prediction_cost(model, X, "stumps"), stumps)
        np.testing.assert_array_equal(list(pb.staged_decision_function(model, X))[-1], score)
        for i in (0, 17):
            np.testing.assert_allclose(pb.explain(model, X[i]).score, score[i], rtol=1e-12)


def test_stumps_of_other_models_are_nodes():
    X, y, _ = noisy(13)
    for weak in (pb.weak.stump(), pb.weak.affine()):
        model = pb.fit_boosted_tree(X, y, max_nodes=9, weak_learner=weak)
        np.testing.assert_array_equal(
            pb.prediction_cost(model, X, "stumps"), pb.prediction_cost(model, X)
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_layouts_give_the_same_bits(dtype):
    X, y, _ = noisy(14, n=200)
    X = X.astype(dtype)
    for model in fits(X, y).values():
        score = pb.decision_function(model, X)
        wide = np.repeat(X, 2, axis=1)[:, ::2]
        for other in (X.astype(np.float64), np.asfortranarray(X), wide, X[::-1][::-1]):
            assert pb.decision_function(model, other).tobytes() == score.tobytes()
        few = [pb.decision_function(model, X[i : i + 3]) for i in range(0, 200, 3)]
        assert np.concatenate(few).tobytes() == score.tobytes()
        assert hard_evaluate.walk_rows(model, X, True)[0].tobytes() == score.tobytes()


def test_random_walks_and_reach():
    X, y, _ = noisy(15)
    model = fits(X, y)["soft tree"]
    stumps = dataclasses.replace(model, inputs=None, n_features=model.n_inputs)
    values = model.inputs.values(X)
    for options in ({"route": "expected"}, {"route": "sample", "rng": 1, "draws": 5}):
        np.testing.assert_array_equal(
            pb.decision_function(model, X, **options),
            pb.decision_function(stumps, values, **options),
        )
    np.testing.assert_array_equal(
        pb.inspection.reach(model, X), pb.inspection.reach(stumps, values)
    )


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_threads_do_not_matter(monkeypatch, search):
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    X, y, _ = noisy(16, n=500, d=4)
    weak = pb.weak.separator(12, search=search)
    first, three = (fits(X, y, weak, n_threads=n) for n in (1, 3))
    for name, model in first.items():
        assert_identical(model, three[name])
        assert model.inputs.vote.tobytes() == three[name].inputs.vote.tobytes()
        parallel = pb.decision_function(model, X)
        with monkeypatch.context() as patch:
            patch.setattr(threads, "available_threads", lambda: 1)
            assert pb.decision_function(model, X).tobytes() == parallel.tobytes()


def test_sorted_columns_give_the_same_model():
    X, y, weight = noisy(17, n=200)
    columns = pb.data.sort_columns(X)
    for w in (None, weight, np.where(np.arange(200) % 3, weight, 0)):
        first, other = (
            pb.fit_oblique_tree(x, y, n_stumps=9, sample_weight=w) for x in (X, columns)
        )
        assert_identical(first, other)


def test_early_stopping_keeps_the_errors_of_all_stages():
    X, y, _ = noisy(18, n=400)
    train, test = slice(250), slice(250, None)
    for fit, size in ((pb.fit_adaboost, "n_estimators"), (pb.fit_boosted_tree, "max_nodes")):
        for dtype in (np.float64, np.float32):
            rows = X.astype(dtype)
            model = fit(
                rows[train],
                y[train],
                weak_learner=WEAK,
                validation=(rows[test], y[test]),
                n_iter_no_change=4,
                **{size: 20},
            )
            plain = fit(
                rows[train], y[train], weak_learner=WEAK, **{size: len(model.record.validation) - 1}
            )
            errors = [
                np.mean((score > 0) != (y[test] > 0))
                for score in pb.staged_decision_function(plain, rows[test])
            ]
            np.testing.assert_allclose(model.record.validation[1:], errors, rtol=1e-12)
            assert model.n_nodes == np.argmin(errors) + 1


def test_prefix_keeps_the_separators_it_needs():
    X, y, _ = noisy(19, n=300)
    model = pb.fit_oblique_tree(X, y, n_stumps=8)
    first = pb.models.truncate(model, 2)
    assert first.inputs.n_inputs == 2
    stages = list(pb.staged_decision_function(model, X))
    np.testing.assert_array_equal(pb.decision_function(first, X), stages[1])


def test_sampled_answers():
    X, y, _ = noisy(20, n=150)
    of = pb.observation.flip(0.1)
    first, again = (
        pb.fit_boosted_tree(
            X, y, max_nodes=6, weak_learner=WEAK, observation=pb.observation.sampled(base=of), rng=3
        )
        for _ in range(2)
    )
    assert first.is_estimated
    assert first.inputs.n_inputs == 6
    assert_identical(first, again)
