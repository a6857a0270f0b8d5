"""Features measured with error: against the twins, and what theory says of them."""

import numpy as np
import pytest
from compare import assert_identical, assert_same_model
from reference import gaussian, matryoshka
from reference.problems import Problem, random_problem
from reference.soft import fit_soft_chain, fit_soft_tree
from scipy.special import ndtr
from soft_models import (
    GROWTHS,
    assert_certified,
    assert_equals_soft_twin,
    assert_evaluated,
    draw_options,
    expected_error,
    library,
    noisy,
)

import pboost as pb
from pboost import threads
from pboost._core import uncertain

KINDS = ("scalar", "per feature", "per cell", "two per column")


def draw_sigma(rng, kind, X):
    """Draw errors in proportion to the spread of each column."""
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    spread = np.where((high > low) & (high - low < 1e300), high - low, 1.0)
    if kind == "scalar":
        return float(rng.choice([0.1, 0.5]) * spread.mean())
    if kind == "per feature":
        return rng.choice([0.1, 0.3, 1.0], X.shape[1]) * spread
    if kind == "per cell":
        return 0.3 * spread * np.exp(rng.normal(0, 0.5, X.shape))
    return spread * rng.choice([0.1, 0.6], X.shape)


def check(build, twin, problem, options):
    """Fit both; `build` is the builder of the library."""
    options = options | {"observation": "gaussian"}
    X, y, weight = problem
    expected = twin(X, y, sample_weight=weight, **options)
    options["join"] = options.pop("join_", None)
    options = {name: value for name, value in options.items() if value is not None}
    model = library(build, problem, **options)
    assert_equals_soft_twin(model, expected, options)
    assert_certified(model, problem, sigma=options["sigma"])
    assert_evaluated(model, problem, False, sigma=options["sigma"])
    return model


def tame_problem(rng):
    """Draw a problem whose columns are of one scale."""
    while True:
        problem = random_problem(rng)
        spread = np.abs(problem.X).max(axis=0)
        if spread.max() < 1e6 and spread.min() > 1e-3:
            return problem


# The normal distribution


def test_tails():
    z = np.concatenate([np.linspace(-8.3, 8.3, 50_001), [8.3 + 1e-9, -9.0, np.inf, -np.inf]])
    actual = np.empty_like(z)
    uncertain.tails(z, actual)
    np.testing.assert_allclose(actual[:-4], ndtr(-np.abs(z[:-4])), rtol=1e-13)
    assert (actual[-4:] == 0).all()


# Against the twins


@pytest.mark.full_for("per *", "two *", "scalar-l*")
@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_trees(kind, growth):
    for case in range(8):
        rng = np.random.default_rng([81, case])
        problem = noisy([81, case], n=60) if case < 3 else tame_problem(rng)
        options = draw_options(rng) | {"max_nodes": int(rng.choice([1, 3, 7])), "growth": growth}
        sigma = draw_sigma(rng, kind, problem.X)
        check(pb.fit_boosted_tree, fit_soft_tree, problem, options | {"sigma": sigma})


@pytest.mark.full_for("per *", "two *", "scalar-symmetric")
@pytest.mark.parametrize("votes", ["domain", "symmetric"])
@pytest.mark.parametrize("kind", KINDS)
def test_chains(kind, votes):
    for case in range(8):
        rng = np.random.default_rng([82, case])
        problem = noisy([82, case], n=60) if case < 3 else tame_problem(rng)
        options = draw_options(rng) | {"n_estimators": 8, "votes": votes}
        sigma = draw_sigma(rng, kind, problem.X)
        check(pb.fit_adaboost, fit_soft_chain, problem, options | {"sigma": sigma})


@pytest.mark.full_for("scalar-*", "per *", "two *-additive")
@pytest.mark.parametrize("collect", ["additive", "sign"])
@pytest.mark.parametrize("kind", KINDS)
def test_matryoshki(kind, collect):
    for case in range(6):
        rng = np.random.default_rng([83, case])
        problem = noisy([83, case], n=60)
        shape = [(2, 2), (3, 2), (2, 2, 2)][case % 3]
        options = draw_options(rng) | {"shape": shape, "collect": collect}
        options["join_"] = ["sign", "all"][case % 2]
        sigma = draw_sigma(rng, kind, problem.X)
        fit = matryoshka.fit_matryoshka
        check(pb.fit_matryoshka, fit, problem, options | {"sigma": sigma})


@pytest.mark.parametrize("kind", KINDS)
def test_coarse_bins(kind):
    rng = np.random.default_rng(84)
    problem = noisy(84, n=200)
    options = {"max_bins": 16, "max_nodes": 7, "sigma": draw_sigma(rng, kind, problem.X)}
    check(pb.fit_boosted_tree, fit_soft_tree, problem, options)


# What theory says


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_of_no_noise_is_the_binned_search(kind):
    for seed in range(4):
        problem = noisy([85, seed], n=300)
        sigma = 1e-9 * draw_sigma(np.random.default_rng(0), kind, problem.X)
        for fit, size in (
            (pb.fit_boosted_tree, {"max_nodes": 9}),
            (pb.fit_adaboost, {"n_estimators": 9}),
        ):
            # A tree of exact answers is judged by sample weights: only Kearns-Mansour is the same.
            exact = library(fit, problem, max_bins=32, **size)
            limit = library(fit, problem, max_bins=32, observation="gaussian", sigma=sigma, **size)
            assert_same_model(exact, limit, votes=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_expected_error_is_below_the_certificate(kind):
    problem = noisy(86)
    sigma = draw_sigma(np.random.default_rng(86), kind, problem.X)
    for nodes in (1, 4, 8):
        options = {"observation": "gaussian", "sigma": sigma, "max_nodes": nodes}
        model = library(pb.fit_boosted_tree, problem, **options)
        assert 0 < expected_error(model, problem, sigma) <= model.record.certificate[-1] < 1


@pytest.mark.parametrize("kind", ["scalar", "per cell"])
def test_samples_have_the_expected_mean(kind):
    problem = noisy(87, n=40)
    sigma = draw_sigma(np.random.default_rng(87), kind, problem.X)
    model = library(pb.fit_matryoshka, problem, observation="gaussian", sigma=sigma, shape=(2, 3))
    X, draws = problem.X, 4000
    expected = pb.decision_function(model, X, route="expected", sigma=sigma)
    options = {"route": "sample", "rng": 1, "draws": draws, "sigma": sigma}
    scores = pb.decision_function(model, X, **options)
    spread = np.ptp([*np.minimum(model.vote, 0).sum(0), *np.maximum(model.vote, 0).sum(0)])
    np.testing.assert_allclose(scores, expected, atol=5 * spread / 2 / np.sqrt(draws))
    np.testing.assert_array_equal(scores, pb.decision_function(model, X, **options))
    assert np.abs(scores - pb.decision_function(model, X)).max() > 0.1


def test_a_gap_is_preferred_to_values_that_cannot_be_told_apart():
    """Column 0 separates the classes by a hair, column 1 errs twice and has a gap."""
    rng = np.random.default_rng(88)
    n = 400
    y = np.repeat([-1, 1], n // 2)
    X = np.column_stack([np.linspace(-1, 1, n), 5.0 * y + rng.normal(size=n)])
    X[[5, 300], 1] *= -1
    for sigma, feature in ((1e-4, 0), (1.0, 1)):
        model = pb.fit_adaboost(X, y, n_estimators=1, observation=pb.observation.gaussian(sigma))
        assert model.feature[0] == feature


def test_sigma_of_the_test_rows():
    problem = noisy(89)
    model = library(pb.fit_boosted_tree, problem, observation="gaussian", sigma=0.3, max_nodes=7)
    X = problem.X
    default = pb.decision_function(model, X, route="expected")
    for same in (0.3, [0.3] * 3, np.full(X.shape, 0.3)):
        scores = pb.decision_function(model, X, route="expected", sigma=same)
        np.testing.assert_array_equal(scores, default)
    surer = pb.decision_function(model, X, route="expected", sigma=1e-12)
    np.testing.assert_allclose(surer, pb.decision_function(model, X), atol=1e-9)
    by_row = np.where(np.arange(len(X))[:, None] % 2, 0.3, 1e-12) * np.ones(3)
    mixed = pb.decision_function(model, X, route="expected", sigma=by_row)
    np.testing.assert_array_equal(mixed[1::2], default[1::2])
    np.testing.assert_array_equal(mixed[::2], surer[::2])


# Weights, threads, columns


@pytest.mark.parametrize("kind", KINDS)
def test_weights_stand_for_copies(kind):
    problem = noisy(90, n=80)
    rng = np.random.default_rng(90)
    copies = rng.integers(0, 4, 80)
    sigma = draw_sigma(rng, kind, problem.X)
    repeated = np.repeat(np.arange(80), copies)
    other = sigma[repeated] if np.ndim(sigma) == 2 else sigma
    models = [
        library(pb.fit_boosted_tree, p, observation="gaussian", sigma=s, max_nodes=9, max_bins=16)
        for p, s in (
            (Problem(problem.X, problem.y, copies.astype(float)), sigma),
            (Problem(problem.X[repeated], problem.y[repeated], None), other),
        )
    ]
    assert_same_model(*models, votes=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_models_depend_neither_on_threads_nor_on_simd(kind, monkeypatch):
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 8)
    problem = noisy(91, n=3001, d=7)
    sigma = draw_sigma(np.random.default_rng(91), kind, problem.X)
    options = {"observation": "gaussian", "sigma": sigma}
    try:
        for fit, size in (
            (pb.fit_boosted_tree, {"max_nodes": 12, "growth": "look_ahead"}),
            (pb.fit_adaboost, {"n_estimators": 12}),
        ):
            first = library(fit, problem, n_threads=1, **size, **options)
            for n_threads in (2, 3, 7):
                uncertain.use_simd_level(n_threads % 3)
                other = library(fit, problem, n_threads=n_threads, **size, **options)
                assert_identical(first, other)
    finally:
        uncertain.use_simd_level(2)


@pytest.mark.parametrize("kind", KINDS)
def test_sorted_columns_give_the_model_of_the_matrix(kind):
    problem = noisy(92, n=300)
    sigma = draw_sigma(np.random.default_rng(92), kind, problem.X)
    for weight in (None, problem.weight * (np.arange(300) % 5 > 0)):
        of_matrix, of_columns = (
            pb.fit_boosted_tree(
                X,
                problem.y,
                max_nodes=9,
                sample_weight=weight,
                observation=pb.observation.gaussian(sigma),
            )
            for X in (problem.X, pb.data.sort_columns(problem.X))
        )
        assert_identical(of_matrix, of_columns)
        assert np.array_equal(of_matrix.sigma, of_columns.sigma, equal_nan=True)


def test_selected_columns_give_the_folds_of_the_matrix():
    """Rows of selected columns are not the rows of their source."""
    problem = noisy(95, n=120)
    noise = pb.observation.gaussian([0.1, 0.2, 0.3])

    def fit(X, y):
        return pb.fit_boosted_tree(X, y, max_nodes=5, observation=noise)

    of_matrix, of_columns = (
        pb.cross_validate(fit, X, problem.y, cv=4, rng=0)
        for X in (problem.X, pb.data.sort_columns(problem.X))
    )
    np.testing.assert_array_equal(of_matrix.certificate, of_columns.certificate)
    np.testing.assert_array_equal(of_matrix.error, of_columns.error)


def test_float32():
    problem = noisy(96, n=200)
    X = problem.X.astype(np.float32)
    first, other = (
        pb.fit_matryoshka(Z, problem.y, shape=(3, 2), observation=pb.observation.gaussian(0.2))
        for Z in (X, X.astype(np.float64))
    )
    assert_identical(first, other)
    values = [pb.decision_function(first, Z, route="expected") for Z in (X, X.astype(np.float64))]
    np.testing.assert_array_equal(*values)


def test_values_of_any_size():
    """Distances that overflow, and errors far below and above the distances of values."""
    y = np.array([-1, -1, 1, -1, 1, 1] * 3)
    X = np.column_stack(
        [np.resize([-1.7e308, -1e308, 0.0, 1e308, 1.7e308, 3.0], 18), np.arange(18) * 5e-324]
    )
    for sigma in (5e-324, 1e-300, 1.0, 1e300, 1.7e308):
        problem = Problem(X, y, None)
        options = {"observation": "gaussian", "sigma": sigma, "max_nodes": 4}
        model = library(pb.fit_boosted_tree, problem, **options)
        assert_certified(model, problem, sigma=sigma)


def test_rows_without_weight_take_their_sigma_with_them():
    problem = noisy(93, n=100)
    keep = np.random.default_rng(93).random(100) < 0.7
    sigma = draw_sigma(np.random.default_rng(93), "per cell", problem.X)
    wild = np.where(keep[:, None], sigma, 1e3)
    options = {"observation": "gaussian", "max_nodes": 9, "max_bins": 32}
    some = library(
        pb.fit_boosted_tree,
        Problem(problem.X, problem.y, keep.astype(float)),
        sigma=wild,
        **options,
    )
    rest = Problem(problem.X[keep], problem.y[keep], None)
    assert_same_model(some, library(pb.fit_boosted_tree, rest, sigma=sigma[keep], **options))


def test_twin_and_library_agree_on_levels():
    from pboost.observation.gaussian_search import levels

    rng = np.random.default_rng(94)
    for sigma in (rng.exponential(size=101), rng.choice([1.0, 2.0], 30), np.ones(4)):
        middle, level = levels(sigma)
        np.testing.assert_allclose(middle[level], gaussian.rounded_sigma(sigma), rtol=1e-15)
