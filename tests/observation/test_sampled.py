"""Probabilities of answers that are estimated by sampling: against the twin, and what holds."""

import numpy as np
import pytest
from compare import assert_equals_twin, assert_identical
from reference import sampled
from reference.matryoshka import fit_matryoshka
from reference.problems import Problem, random_problem
from reference.soft import fit_soft_chain, fit_soft_tree
from soft_models import assert_equals_soft_twin, draw_options, library, noisy, observation

import pboost as pb
from pboost._core import uncertain
from pboost.observation.sampling import Sample, drawing, until_increase
from pboost.threads import Workers

RULES = [("first_increase", "map"), ("first_increase", "ml"), (1, "map"), (3, "ml"), (20, "map")]
OF = ("exact", "flip", "adatree2", "uniform")


def check(fit, twin, problem, options, sizes, stop, estimator, seed, case=""):
    """Fit the library's model and the twin's, and compare them node by node."""
    of = observation(options["observation"], options["rate"])
    draws = sampled.Sampling(seed, stop, estimator, max_draws=30)
    expected = twin(*problem[:2], sample_weight=problem.weight, sampling=draws, **options, **sizes)
    if "join_" in sizes:
        sizes = {**sizes, "join": sizes["join_"]}
        del sizes["join_"]
    maximum = {} if isinstance(stop, int) else {"max_draws": 30}
    rest = {k: v for k, v in options.items() if k not in ("observation", "rate")}
    answers = pb.observation.sampled(stop, estimator, base=of, **maximum)
    model = library(
        lambda X, y, **others: fit(X, y, **(others | {"observation": answers})),
        problem,
        rng=seed,
        **rest,
        **sizes,
    )
    assert_equals_soft_twin(model, expected, (case, options, stop, estimator))
    return model, draws


@pytest.mark.parametrize(("stop", "estimator"), RULES)
@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("votes", ["domain", "symmetric"])
def test_chains(of, stop, estimator, votes):
    for case in range(4):
        rng = np.random.default_rng([91, case])
        options = draw_options(rng) | {"observation": of, "votes": votes, "rate": 0.25}
        sizes = {"n_estimators": 6}
        check(
            pb.fit_adaboost,
            fit_soft_chain,
            random_problem(rng),
            options,
            sizes,
            stop,
            estimator,
            case,
            case,
        )


@pytest.mark.parametrize(("stop", "estimator"), RULES)
@pytest.mark.parametrize("growth", ["largest_bound", "largest_error", "look_ahead"])
def test_soft_trees(stop, estimator, growth):
    for case, of in enumerate(OF):
        rng = np.random.default_rng([92, case])
        options = {"observation": of, "rate": 0.1, "smoothing": 1e-4}
        sizes = {"max_nodes": 6, "growth": growth}
        problem = noisy(case, n=50)
        check(
            pb.fit_boosted_tree,
            fit_soft_tree,
            problem,
            options,
            sizes,
            stop,
            estimator,
            int(rng.integers(100)),
            case,
        )


@pytest.mark.parametrize(("stop", "estimator"), RULES)
@pytest.mark.parametrize("collect", ["additive", "sign"])
@pytest.mark.parametrize("join", ["sign", "all"])
def test_matryoshki(stop, estimator, collect, join):
    for case, of in enumerate(("flip", "adatree2")):
        options = {"observation": of, "rate": 0.1}
        sizes = {"shape": (3, 2), "collect": collect, "join_": join}
        options["learning_rate"] = 1.0
        check(
            pb.fit_matryoshka,
            fit_matryoshka,
            noisy(case, n=50),
            options,
            sizes,
            stop,
            estimator,
            case,
            case,
        )


def test_rows_of_weight_zero_and_the_order_of_classes_do_not_shift_the_streams():
    X, y, weight = noisy(3, n=60)
    weight[::3] = 0
    options = {"observation": "flip", "rate": 0.2}
    for order in (np.arange(60), np.argsort(y), np.argsort(-y)):
        problem = Problem(X[order], y[order], weight[order])
        check(pb.fit_adaboost, fit_soft_chain, problem, options, {"n_estimators": 4}, 5, "map", 0)


# The kernel


def test_kernel_draws_the_public_streams():
    n, key = 40, 2**63 + 12345
    rng = np.random.default_rng(0)
    above, rows = rng.random(n), rng.permutation(n).astype(np.int32)
    fixed = rng.integers(1, 2**40, n)
    count, mass = np.zeros(n, np.uint16), np.empty((7, 2), np.int64)
    uncertain.draw(above, rows, 15, key, 4, 3, 10, 0, n, fixed, count, mass)
    answers = np.empty((n, 7), dtype=int)
    for i, row in enumerate(rows):
        numbers = np.empty(10)
        uncertain.uniforms(key, 4, int(row), numbers)
        twin = [sampled.uniform(key, 4, int(row), draw) for draw in range(10)]
        np.testing.assert_array_equal(numbers, twin)
        answers[i] = numbers[3:] < above[i]
    np.testing.assert_array_equal(count, answers.sum(axis=1))
    np.testing.assert_array_equal(mass[:, 0], fixed[:15] @ answers[:15])
    np.testing.assert_array_equal(mass[:, 1], fixed[15:] @ answers[15:])


def test_kernel_checks_sizes():
    n = 5
    good = [
        np.full(n, 0.5),
        np.arange(n, dtype=np.int32),
        2,
        1,
        0,
        0,
        3,
        0,
        n,
        np.ones(n, np.int64),
        np.zeros(n, np.uint16),
        np.empty((3, 2), np.int64),
    ]
    uncertain.draw(*good)
    for place, wrong in ((0, np.ones(4)), (8, 6), (9, np.ones(4, np.int64)), (6, 4), (5, -1)):
        with pytest.raises(ValueError, match="sizes"):
            uncertain.draw(*good[:place], wrong, *good[place + 1 :])


def test_certain_answers():
    n = 6
    above = np.array([0.0, 1, 0, 1, 1, 0])
    count, mass = np.zeros(n, np.uint16), np.empty((500, 2), np.int64)
    uncertain.draw(
        above,
        np.arange(n, dtype=np.int32),
        3,
        9,
        0,
        0,
        500,
        0,
        n,
        np.ones(n, np.int64),
        count,
        mass,
    )
    np.testing.assert_array_equal(count, 500 * above)
    assert (mass == [1, 2]).all()


# Estimates and stopping


class Rows:
    """What a sample needs of a search."""

    def __init__(self, n, n_negative):
        self.data, self.workers = self, Workers(1)
        self.given_rows, self.n_negative = np.arange(n, dtype=np.int32), n_negative


def one_sample(probability, y, estimator="map", seed=0):
    """Return a sample of a classifier with these probabilities, rows of equal weight."""
    probability = probability[np.argsort(y, kind="stable")]
    n, n_negative = len(y), int((y < 0).sum())
    fixed = np.full(n, 2**40)
    masses = (n_negative * 2**40, (n - n_negative) * 2**40)
    weights = pb.weak.base.Weights(np.full(n, 1 / n), fixed, n * 2.0**40, masses)
    invoke = drawing(Rows(n, n_negative), probability, seed, 0)
    return Sample(invoke, weights, estimator, None)


@pytest.mark.parametrize("estimator", ["map", "ml"])
def test_estimates_converge(estimator):
    rng = np.random.default_rng(1)
    y = rng.choice([-1, 1], 200)
    probability = np.where(y > 0, 0.8, 0.2)
    errors = []
    for draws in (10, 100, 10_000):
        sample = one_sample(probability, y, estimator)
        sample.invoke(draws)
        errors.append(np.abs(sample.estimate()() - np.sort(probability)).mean())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.005
    assert sample.shrink() == pytest.approx(2 * np.sqrt(0.8 * 0.2), abs=0.03)


def test_the_estimate_of_z_falls_in_the_mean():
    """The reason for MAP: its expectation comes down to the true value."""
    y = np.tile([-1, 1], 50)
    values = []
    for seed in range(60):
        sample = one_sample(np.where(y > 0, 0.7, 0.3), y, seed=seed)
        path = []
        for _ in range(30):
            sample.invoke()
            path.append(sample.shrink())
        values.append(path)
    mean = np.mean(values, axis=0)
    assert (np.diff(mean[:10]) < 0).all()
    assert mean[-1] > 2 * np.sqrt(0.21)


@pytest.mark.parametrize("estimator", ["map", "ml"])
def test_first_increase_stops_unless_answers_are_certain(estimator):
    y = np.tile([-1, 1], 20)
    for seed in range(40):
        sample = one_sample(np.where(y > 0, 0.8, 0.2), y, estimator, seed)
        until_increase(sample, 5000)
        assert 2 <= sample.draws < 5000
        kept = sample.shrink()
        before = one_sample(np.where(y > 0, 0.8, 0.2), y, estimator, seed)
        before.invoke(sample.draws - 1)
        assert kept > before.shrink()
    for probability in (np.where(y > 0, 1.0, 0.0), np.where(np.arange(40) < 17, 1.0, 0.0)):
        sample = one_sample(probability, y, estimator)
        until_increase(sample, 3000)
        assert sample.draws == 3000


@pytest.mark.parametrize("at_once", [1, 100, 10**8])
def test_invoking_in_steps_is_invoking_at_once(monkeypatch, at_once):
    monkeypatch.setattr(pb.observation.sampling, "MOST_AT_ONCE", at_once)
    y = np.tile([-1, 1, 1], 10)
    steps, once = (one_sample(np.linspace(0, 1, 30), y) for _ in range(2))
    for times in (1, 4, 2):
        steps.invoke(times)
    once.invoke(7)
    np.testing.assert_array_equal(steps.counts, once.counts)
    assert steps.shrink() == once.shrink()


# Models


@pytest.mark.parametrize("stop", ["first_increase", 7])
def test_threads_and_seeds(stop):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60_000, 8))
    y = X[:, 0] + rng.normal(size=60_000) > 0
    answers = pb.observation.sampled(stop, base=pb.observation.flip(0.2))
    models = [
        pb.fit_adaboost(X, y, n_estimators=3, observation=answers, rng=seed, n_threads=threads)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    ]
    assert_identical(models[0], models[1])
    assert models[0].vote.tobytes() != models[2].vote.tobytes()


def test_sampled_models_approach_the_known_probabilities():
    problem = noisy(7, n=100)
    known = pb.fit_adaboost(
        problem.X, problem.y, n_estimators=1, observation=pb.observation.flip(0.2)
    )
    gaps = []
    for draws in (3, 30, 3000):
        answers = pb.observation.sampled(draws, base=pb.observation.flip(0.2))
        model = pb.fit_adaboost(problem.X, problem.y, n_estimators=1, observation=answers, rng=0)
        gaps.append(np.abs(model.vote - known.vote).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.01


@pytest.mark.parametrize("stop", [4, "first_increase"])
@pytest.mark.parametrize("kind", ["chain", "tree", "matryoshka"])
def test_answers_of_features_measured_with_error(kind, stop):
    """Sampled gaussian answers against the twin, node by node."""
    problem = noisy(9, n=60)
    fit, twin, sizes = {
        "chain": (pb.fit_adaboost, fit_soft_chain, {"n_estimators": 4}),
        "tree": (pb.fit_boosted_tree, fit_soft_tree, {"max_nodes": 6}),
        "matryoshka": (pb.fit_matryoshka, fit_matryoshka, {"shape": (2, 3)}),
    }[kind]
    draws = sampled.Sampling(5, stop, "map", max_draws=30)
    expected = twin(
        problem.X,
        problem.y,
        observation="gaussian",
        sigma=0.4,
        sampling=draws,
        max_bins=32,
        **sizes,
    )
    maximum = {} if isinstance(stop, int) else {"max_draws": 30}
    answers = pb.observation.sampled(stop, base=pb.observation.gaussian(0.4), **maximum)
    weak = pb.weak.stump(max_bins=32)
    model = fit(problem.X, problem.y, observation=answers, weak_learner=weak, rng=5, **sizes)
    assert_equals_twin(model, expected, (kind, stop))
    assert (model.sigma == 0.4).all()
    at_random = pb.decision_function(model, problem.X, route="sample", rng=0, draws=4000)
    mean = pb.decision_function(model, problem.X, route="expected")
    assert np.abs(at_random - mean).max() < 0.15
    with pytest.raises(ValueError, match="estimate"):
        pb.certificate(model, problem.X, problem.y)


def test_models_keep_what_is_known_of_the_answers():
    problem = noisy(8)
    answers = pb.observation.sampled(9, base=pb.observation.flip(0.2))
    model = pb.fit_boosted_tree(problem.X, problem.y, max_nodes=5, observation=answers, rng=0)
    assert (model.answer == [[0.2, 0.2], [0.8, 0.8]]).all()
    expected = pb.decision_function(model, problem.X, route="expected")
    drawn = pb.decision_function(model, problem.X, route="sample", rng=0, draws=4000)
    assert np.abs(expected - drawn).max() < 0.1
    assert pb.inspection.reach(model, problem.X).shape == (len(problem.X), 5)
    with pytest.raises(ValueError, match="estimate"):
        pb.certificate(model, problem.X, problem.y)
    assert pb.certificate(model) == model.record.certificate[-1]
    assert "estimate" in model.certificate_note
    assert "estimate" in pb.describe(model)


def test_sampled_models_are_saved(tmp_path):
    problem = noisy(9)
    for of in (pb.observation.exact(), pb.observation.adatree2()):
        answers = pb.observation.sampled("first_increase", base=of, max_draws=5)
        model = pb.fit_matryoshka(problem.X, problem.y, shape=(2, 2), observation=answers, rng=0)
        pb.save(model, tmp_path / "model.npz")
        again = pb.load(tmp_path / "model.npz")
        assert_identical(model, again)
        assert again.is_estimated
        assert again.settings == model.settings
