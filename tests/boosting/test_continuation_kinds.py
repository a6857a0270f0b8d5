"""continue_fit: affine weak classifiers and gaussian answers, alone and together."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from compare import assert_identical
from reference.problems import Problem
from soft_models import GROWTHS, assert_certified, graphs, noisy, observation

import pboost as pb

each_growth = pytest.mark.parametrize("growth", GROWTHS)
#: What comes of the answers of each cell's own errors is in the tests of them.
SIGMAS = {"scalar": 0.3, "per column": [0.2, 0.5, 0.4]}
each_sigma = pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
each_search = pytest.mark.parametrize("search", ["exact", "binned"])


def affine(search="exact", **options):
    return pb.weak.affine(n_directions=20, seed=5, search=search, max_bins=32, **options)


def problem(seed, d=3):
    """Draw columns in units of their own, with ties."""
    X, y, weight = noisy(seed, d=max(d, 2))
    return X[:, :d].round(1) * 10.0 ** np.arange(d), y, weight


def assert_same_bits(model, expected):
    assert_identical(model, expected)
    for name in ("answer", "sigma"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name), name)
    assert (model.inputs is None) == (expected.inputs is None)
    if model.inputs is not None:
        for item, wanted in zip(model.inputs.arrays(), expected.inputs.arrays(), strict=True):
            assert item.tobytes() == wanted.tobytes()


def compared(model, n_nodes=None):
    """Return the columns and coefficients that each node compares."""
    terms = model.inputs.terms()
    return [terms[number] for number in model.feature[:n_nodes]]


def assert_goes_on(fit, more, X, y, weight):
    """Two fits one after the other are one fit of both sizes; `more` is rounds or nodes."""
    first = fit(**{more: 7})
    longer = pb.continue_fit(first, X, y, sample_weight=weight, **{more: 6})
    at_once = fit(**{more: 13})
    assert longer.n_nodes == 13  # something was added
    assert_same_bits(longer, at_once)


# Affine weak classifiers


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@each_search
@pytest.mark.parametrize("d", [1, 2, 3])
def test_affine_chains(d, search, votes):
    X, y, weight = problem(1, d)
    for answers in ("exact", "flip", "adatree2"):
        fit = partial(
            pb.fit_adaboost,
            X,
            y,
            weak_learner=affine(search),
            votes=votes,
            sample_weight=weight,
            observation=observation(answers, 0.1),
            learning_rate=0.5,
        )
        assert_goes_on(fit, "n_estimators", X, y, weight)


@each_growth
@each_search
@pytest.mark.parametrize("d", [2, 3])
def test_affine_trees(d, search, growth):
    X, y, weight = problem(2, d)
    for answers in ("exact", "flip", "adatree2"):
        fit = partial(
            pb.fit_boosted_tree,
            X,
            y,
            weak_learner=affine(search),
            growth=growth,
            sample_weight=weight,
            observation=observation(answers, 0.1),
            learning_rate=0.5,
        )
        assert_goes_on(fit, "max_nodes", X, y, weight)


@pytest.mark.parametrize("kind", ["exact", "flip", "adatree2"])
@pytest.mark.parametrize("how", [{"n_estimators": 4}, {"max_nodes": 4}])
@pytest.mark.parametrize("d", [2, 3])
def test_any_affine_graph(d, how, kind):
    X, y, _ = problem(3, d)
    for model in graphs(X, y, kind, weak_learner=affine()):
        longer = pb.continue_fit(model, X, y, **how)
        n = model.n_nodes
        assert n < longer.n_nodes <= n + 4
        assert compared(longer, n) == compared(model)
        assert (longer.threshold[:n] == model.threshold).all()
        assert (longer.vote[:n] == model.vote).all()
        stored = longer.record.certificate
        np.testing.assert_allclose(stored[n], model.record.certificate[-1], rtol=1e-9)
        np.testing.assert_allclose(pb.certificate(longer, X, y), stored[-1], rtol=1e-9)


def test_affine_models_loaded_cut_and_prepared(tmp_path):
    X, y, _ = problem(4)
    fit = partial(pb.fit_boosted_tree, X, y, weak_learner=affine())
    pb.save(fit(max_nodes=12), tmp_path / "model.npz")
    model = pb.models.truncate(pb.load(tmp_path / "model.npz"), 7)
    assert_same_bits(pb.continue_fit(model, X, y, max_nodes=6), fit(max_nodes=13))
    assert_same_bits(
        pb.continue_fit(model, pb.data.sort_columns(X), y, max_nodes=6), fit(max_nodes=13)
    )
    with pytest.raises(ValueError, match="X: expected a matrix"):
        pb.continue_fit(
            model, pb.data.bin_columns(X, max_bins=32), y, max_nodes=6, weak_learner=affine("auto")
        )


def test_rows_held_out():
    X, y, _ = problem(5)
    train, held = slice(None, None, 2), slice(1, None, 2)
    model = pb.fit_boosted_tree(X[train], y[train], max_nodes=5, weak_learner=affine())
    weight = np.zeros(len(X))
    weight[train] = 1.0
    for kept in (
        pb.continue_fit(model, X, y, max_nodes=5, sample_weight=weight),
        pb.continue_fit(model, X[train][::-1], y[train][::-1], max_nodes=5),
    ):
        np.testing.assert_array_equal(kept.threshold[:5], model.threshold)
        assert compared(kept, 5) == compared(model)
    with pytest.raises(ValueError, match="other data have others"):
        pb.continue_fit(model, X[held], y[held], max_nodes=5)


def test_two_columns_of_other_data():
    X, y, _ = problem(6, 2)
    other = noisy(7, n=50, d=2)
    model = pb.fit_boosted_tree(X, y, max_nodes=6, weak_learner=affine())
    for weak in (None, pb.weak.affine(n_directions=60)):
        longer = pb.continue_fit(model, other.X, other.y, max_nodes=4, weak_learner=weak)
        assert compared(longer, 6) == compared(model)
        bound = pb.certificate(longer, other.X, other.y)
        np.testing.assert_allclose(bound, longer.record.certificate[-1], rtol=1e-9)
    with pytest.raises(ValueError, match="model: expected nodes"):
        pb.continue_fit(model, X, y, max_nodes=4, weak_learner=pb.weak.affine(n_directions=7))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", ["exact", "flip"])
def test_stumps_and_affine_in_one_model(d, kind):
    X, y, _ = problem(8, d)
    for model in graphs(X, y, kind):
        for how in ({"n_estimators": 4}, {"max_nodes": 4}):
            longer = pb.continue_fit(model, X, y, weak_learner=affine(), **how)
            n = model.n_nodes
            start, column = longer.inputs.columns_read()
            assert (column[start[longer.feature[:n]]] == model.feature).all()
            np.testing.assert_allclose(
                longer.record.certificate[n], model.record.certificate[-1], rtol=1e-9
            )
            np.testing.assert_allclose(
                pb.certificate(longer, X, y), longer.record.certificate[-1], rtol=1e-9
            )
    if d == 1:  # the one direction is the column
        stumps = pb.continue_fit(longer, X, y, max_nodes=3, weak_learner=pb.weak.stump())
        assert stumps.inputs is None
        assert_certified(stumps, Problem(X, y, None))
    else:
        tilted = pb.fit_boosted_tree(X, y, max_nodes=8, weak_learner=affine())
        with pytest.raises(ValueError, match=r"got .*\*x\[.* at node"):
            pb.continue_fit(tilted, X, y, max_nodes=3, weak_learner=pb.weak.stump())


# Gaussian answers


@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@each_sigma
def test_gaussian_chains(sigma, votes):
    X, y, weight = noisy(11)
    noise = pb.observation.gaussian(sigma)
    fit = partial(
        pb.fit_adaboost,
        X,
        y,
        observation=noise,
        votes=votes,
        sample_weight=weight,
        smoothing=1e-3,
    )
    assert_goes_on(fit, "n_estimators", X, y, weight)


@each_growth
@each_sigma
def test_gaussian_trees(sigma, growth):
    X, y, weight = noisy(12)
    noise = pb.observation.gaussian(sigma)
    weak = pb.weak.stump("gini", max_bins=16)
    fit = partial(
        pb.fit_boosted_tree,
        X,
        y,
        observation=noise,
        growth=growth,
        sample_weight=weight,
        weak_learner=weak,
        learning_rate=0.5,
    )
    assert_goes_on(fit, "max_nodes", X, y, weight)


@pytest.mark.parametrize("d", [2, 3])
def test_gaussian_and_affine(d):
    X, y, weight = noisy(13, d=d)
    options = {"observation": pb.observation.gaussian(0.3), "weak_learner": affine("auto")}
    fit = partial(pb.fit_adaboost, X, y, sample_weight=weight, **options)
    assert_goes_on(fit, "n_estimators", X, y, weight)
    fit = partial(pb.fit_boosted_tree, X, y, sample_weight=weight, **options)
    assert_goes_on(fit, "max_nodes", X, y, weight)


def test_errors_of_each_cell_are_given_anew():
    X, y, weight = noisy(14)
    sigma = np.random.default_rng(14).uniform(0.1, 0.6, X.shape)
    noise = pb.observation.gaussian(sigma)
    fit = partial(pb.fit_boosted_tree, X, y, observation=noise, sample_weight=weight)
    model = fit(max_nodes=7)
    with pytest.raises(ValueError, match=r"observation: expected gaussian\(sigma\)"):
        pb.continue_fit(model, X, y, max_nodes=6, sample_weight=weight)
    longer = pb.continue_fit(model, X, y, max_nodes=6, sample_weight=weight, observation=noise)
    assert_same_bits(longer, fit(max_nodes=13))


@each_sigma
@pytest.mark.parametrize("how", [{"n_estimators": 4}, {"max_nodes": 4}])
def test_any_gaussian_graph(how, sigma):
    """The certificate of old and new nodes is that of the rows given, with their errors.

    With few bins thresholds lie inside bins of other data.
    """
    same, other = noisy(15), noisy(16, n=50)
    for model in graphs(*same[:2], "gaussian", sigma, weak_learner=pb.weak.stump(max_bins=16)):
        for X, y, _ in (same, other):
            for errors in (None, [0.1, 0.3, 0.6]):
                anew = None if errors is None else pb.observation.gaussian(errors)
                longer = pb.continue_fit(model, X, y, observation=anew, **how)
                n = model.n_nodes
                assert longer.n_nodes == n + 4
                assert (longer.threshold[:n] == model.threshold).all()
                assert (longer.vote[:n] == model.vote).all()
                np.testing.assert_array_equal(
                    longer.sigma, np.broadcast_to(sigma if errors is None else errors, 3)
                )
                old = dataclasses.replace(model, sigma=longer.sigma)
                actual = [pb.certificate(m, X, y) for m in (old, longer)]
                np.testing.assert_allclose(actual, longer.record.certificate[[n, -1]], rtol=1e-9)
                again = pb.continue_fit(longer, X, y, max_nodes=1)
                np.testing.assert_array_equal(again.sigma, longer.sigma)


def test_gaussian_threads():
    rng = np.random.default_rng(17)
    X = rng.normal(size=(25_000, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    fit = partial(pb.fit_boosted_tree, X, y, observation=pb.observation.gaussian(0.5))
    model = fit(max_nodes=3)
    first, two = (pb.continue_fit(model, X, y, max_nodes=2, n_threads=n) for n in (1, 2))
    assert_same_bits(two, first)
    assert_same_bits(first, fit(max_nodes=5))


def test_columns_in_another_order():
    pandas = pytest.importorskip("pandas")
    X, y, _ = noisy(18)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    sigma = np.array([0.2, 0.5, 0.4])
    fit = partial(pb.fit_adaboost, frame, y, observation=pb.observation.gaussian(sigma))
    turned, order = frame[["c", "a", "b"]], [2, 0, 1]
    anew = pb.observation.gaussian(sigma[order])
    for observation_ in (None, anew):
        longer = pb.continue_fit(
            fit(n_estimators=4), turned, y, n_estimators=5, observation=observation_
        )
        assert_same_bits(longer, fit(n_estimators=9))
    cells = pb.observation.gaussian(np.broadcast_to(sigma, X.shape)[:, order])
    longer = pb.continue_fit(fit(n_estimators=4), turned, y, n_estimators=5, observation=cells)
    np.testing.assert_array_equal(longer.feature, fit(n_estimators=9).feature)
    np.testing.assert_array_equal(longer.vote, fit(n_estimators=9).vote)


def test_a_gaussian_model_without_nodes_begins():
    X, y, _ = noisy(19)
    noise = pb.observation.gaussian(0.3)
    zeros, labels = np.zeros((4, 3)), [-1, -1, -1, 1]
    nothing = pb.fit_boosted_tree(zeros, labels, max_nodes=3, observation=noise)
    assert nothing.n_nodes == 0
    expected = pb.fit_boosted_tree(X, y, max_nodes=6, observation=noise)
    assert_same_bits(pb.continue_fit(nothing, X, y, max_nodes=6), expected)
    exact = pb.continue_fit(nothing, X, y, max_nodes=6, observation=pb.observation.exact())
    assert_same_bits(exact, pb.fit_boosted_tree(X, y, max_nodes=6))
    nothing = pb.fit_boosted_tree(zeros, labels, max_nodes=3)
    assert_same_bits(pb.continue_fit(nothing, X, y, max_nodes=6, observation=noise), expected)


# What cannot be continued


def test_refused():
    X, y, _ = noisy(20)
    noise, flip = pb.observation.gaussian(0.3), pb.observation.flip(0.1)
    gaussian = pb.fit_adaboost(X, y, n_estimators=3, observation=noise)
    with pytest.raises(ValueError, match="observation: expected gaussian answers"):
        pb.continue_fit(gaussian, X, y, n_estimators=1, observation=flip)
    for model in (
        pb.fit_adaboost(X, y, n_estimators=3, observation=o)
        for o in (flip, pb.observation.adatree2())
    ):
        with pytest.raises(ValueError, match="observation: expected answers that are not gaussian"):
            pb.continue_fit(model, X, y, n_estimators=1, observation=noise)
    with pytest.raises(ValueError, match="sigma: expected a number, shape"):
        pb.continue_fit(gaussian, X, y, n_estimators=1, observation=pb.observation.gaussian([1, 2]))
    with pytest.raises(ValueError, match="X: gaussian answers need the values of X"):
        pb.continue_fit(gaussian, pb.data.bin_columns(X), y, n_estimators=1)
    exact = pb.weak.stump(search="exact")
    with pytest.raises(ValueError, match='search="exact" cannot be had'):
        pb.continue_fit(gaussian, X, y, n_estimators=1, weak_learner=exact)


def test_what_was_drawn_is_not_kept():
    X, y, _ = noisy(21)
    sampled = pb.observation.sampled(5)
    stumps = pb.fit_adaboost(X, y, n_estimators=3)
    with pytest.raises(NotImplementedError, match="observation: models cannot"):
        pb.continue_fit(stumps, X, y, n_estimators=1, observation=sampled)
    for of in (pb.observation.flip(0.1), pb.observation.gaussian(0.3)):
        model = pb.fit_adaboost(
            X, y, n_estimators=3, observation=pb.observation.sampled(5, base=of), rng=0
        )
        for anew in (None, of):
            with pytest.raises(NotImplementedError, match="model: sampled answers"):
                pb.continue_fit(model, X, y, n_estimators=1, observation=anew)
    coin = pb.weak.oracle(lambda X, y, weight, rng: lambda X, rng: np.where(X[:, 0] > 0, 1, -1))
    with pytest.raises(NotImplementedError, match="weak_learner: "):
        pb.continue_fit(stumps, X, y, n_estimators=1, weak_learner=coin)
    for answers in (pb.observation.exact(), sampled):
        model = pb.fit_adaboost(X, y, n_estimators=2, weak_learner=coin, observation=answers, rng=0)
        with pytest.raises(NotImplementedError, match="model: weak classifiers that are functions"):
            pb.continue_fit(model, X, y, n_estimators=1, weak_learner=pb.weak.stump())
