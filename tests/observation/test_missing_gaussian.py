"""Features measured with error, some of them not at all: the search and the answers."""

from __future__ import annotations

import numpy as np
import pytest
from reference.gaussian import HoledColumns, exit_probabilities

import pboost as pb
from pboost.data.read.table import Takes
from pboost.data.training_data import boosted_problem
from pboost.threads import Workers
from pboost.weak.base import Weights

KINDS = ("column", "cell", "two per column", "some exact")


def problem(seed, n=80, d=3):
    rng = np.random.default_rng([5, seed])
    X = rng.normal(size=(n, d)).round(1)
    y = np.where(X @ rng.normal(size=d) + 0.7 * rng.normal(size=n) > 0, 1, -1)
    y[:2] = -1, 1
    X[rng.random(X.shape) < rng.choice([0.1, 0.4])] = np.nan
    X[(y > 0) & (rng.random(n) < 0.3), 0] = np.nan  # what is missing says something
    if seed % 4 == 1:
        X[:, 1] = np.nan
    if seed % 4 == 2:
        X[:, 2] = np.nan_to_num(X[:, 2])
    w = rng.exponential(size=n) if seed % 2 else np.ones(n)
    return X, y, w, rng


def draw_sigma(rng, kind, X):
    sigma = {
        "column": rng.choice([0.1, 0.3, 1.0], X.shape[1]),
        "cell": 0.3 * np.exp(rng.normal(0, 0.5, X.shape)),
        "two per column": rng.choice([0.1, 0.6], X.shape),
        "some exact": rng.choice([0.0, 0.3], X.shape[1]),
    }[kind]
    if sigma.ndim == 2:
        sigma[np.isnan(X)] = np.nan
    return sigma


def searched(X, y, w, sigma, **options):
    """Return the data, the observer and the weights at the start."""
    weak = pb.weak.stump(**options).measured()
    made = boosted_problem(X, y, w, "", takes=Takes(holes=True))
    data = weak.arrange(made, 1)
    observer = pb.observation.gaussian(sigma).bind(data, weak, Workers(1), np.random.default_rng())
    return data, observer, Weights(data.weight, data.fixed, data.scale, data.class_masses())


@pytest.mark.parametrize("criterion", ["kearns_mansour", "gini", "entropy", "error"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_equals_the_twin(kind, criterion):
    for seed in range(12):
        X, y, w, rng = problem(seed)
        sigma = draw_sigma(rng, kind, X)
        options = {
            "min_samples_leaf": int(rng.choice([1, 5])),
            "min_weight_fraction": float(rng.choice([0, 0.1])),
        }
        max_bins = int(rng.choice([5, 256]))
        data, observer, weights = searched(
            X, y, w, sigma, criterion=criterion, max_bins=max_bins, **options
        )
        twin = HoledColumns(X, sigma, None if seed % 2 == 0 else w, max_bins)
        expected = twin.best_stump(y, w, criterion, **options)
        cut = observer.find(weights)
        if expected is None:
            assert cut is None
            continue
        threshold = float(observer.search.thresholds([cut])[0])
        assert (cut.feature, threshold, cut.side) == expected, seed
        check_answers(X[data.rows], sigma, data, observer, weights, cut, threshold)


def check_answers(X, sigma, data, observer, weights, cut, threshold):
    """A row without a value answers with certainty; its sigma is not read."""
    x = X[:, cut.feature]
    sigma = np.broadcast_to(sigma if np.ndim(sigma) < 2 else sigma[data.rows], X.shape)
    above, holes = exit_probabilities(x, threshold, sigma[:, cut.feature])[1], np.isnan(x)
    above[holes] = cut.side == 1
    answers = observer.ask(cut, weights, lambda: None)
    actual = answers.above()
    np.testing.assert_allclose(np.where(actual < 0, 1 + actual, actual), above, atol=1e-13)
    expected = [
        [(data.weight * q)[:k].sum(), (data.weight * q)[k:].sum()]
        for q in (1 - above, above)
        for k in [data.n_negative]
    ]
    np.testing.assert_allclose(answers.masses, expected, rtol=1e-12, atol=1e-14)


def test_missing_rows_do_not_share_in_levels_of_error():
    X, y, w, _ = problem(3)
    sigma = np.where(np.isnan(X), 100.0, 0.2)
    _, observer, weights = searched(X, y, w, sigma)
    _, other, _ = searched(X, y, w, np.full(3, 0.2))
    actual, expected = observer.find(weights), other.find(weights)
    assert (actual.feature, actual.cut_bin, actual.side) == (
        expected.feature,
        expected.cut_bin,
        expected.side,
    )
    np.testing.assert_array_equal(observer.search.above(actual), other.search.above(expected))


@pytest.mark.parametrize("sigma", [np.array([0.1, np.nan, 0.1]), np.full((80, 3), np.nan)])
def test_sigma_of_what_has_a_value(sigma):
    X, y, w, _ = problem(0)
    with pytest.raises(
        ValueError, match=r"sigma: expected a number for each known value of X, got nan in"
    ):
        searched(X, y, w, sigma)


@pytest.mark.parametrize("sigma", [np.array([0.1, np.nan, 0.2])])
def test_sigma_of_a_column_without_values(sigma):
    X, y, w, _ = problem(1)
    _, observer, weights = searched(X, y, w, sigma)
    assert observer.find(weights) is not None
    np.testing.assert_array_equal(observer.model_columns([])["sigma"], [0.1, 0.0, 0.2])


# Models


def frame(seed, n=200):
    """Return a frame with a category and holes, labels, and errors by cell."""
    pd = pytest.importorskip("pandas")
    r = np.random.default_rng([17, seed])
    colour = r.choice(["blue", "green", "red"], n)
    x, z = r.normal(size=(2, n))
    y = x + 1.5 * (colour == "red") + 0.5 * r.normal(size=n) > 0.5
    colour = np.where(r.random(n) < 0.1, None, colour)
    x[r.random(n) < 0.2] = np.nan
    X = pd.DataFrame({"x": x, "colour": colour, "z": z})
    return X, y, np.where(X.isna(), np.nan, np.array([0.3, 0.0, 0.1]))


@pytest.mark.parametrize("kind", ["number", "column", "cell"])
@pytest.mark.parametrize("size", [{"n_estimators": 7}, {"max_nodes": 7}])
def test_models_of_tables(kind, size, tmp_path):
    X, y, cells = frame(0)
    sigma = {"number": 0.3, "column": [0.3, np.nan, 0.1], "cell": cells}[kind]
    fit = pb.fit_adaboost if "n_estimators" in size else pb.fit_boosted_tree
    model = fit(X, y, **size, observation=pb.observation.gaussian(sigma))
    given = cells if kind == "cell" else None
    bound = pb.certificate(model, X, y, sigma=given)
    np.testing.assert_allclose(bound, model.record.certificate[-1], rtol=1e-9)
    score = pb.decision_function(model, X, route="expected", sigma=given)
    drawn = pb.decision_function(model, X, route="sample", sigma=given, draws=3000, rng=0)
    np.testing.assert_allclose(score, drawn, atol=0.1)
    if kind != "cell":
        np.testing.assert_array_equal(model.sigma, [0.3, 0, 0.3 if kind == "number" else 0.1])
    pb.save(model, tmp_path / "model")
    again = pb.decision_function(pb.load(tmp_path / "model"), X, route="expected", sigma=given)
    np.testing.assert_array_equal(again, score)
    # Errors of what has no value are not read.
    other = np.where(np.isnan(cells), 0.7, cells)
    other[:, 1] = np.nan
    np.testing.assert_array_equal(
        pb.decision_function(model, X, route="expected", sigma=other),
        pb.decision_function(model, X, route="expected", sigma=cells),
    )
    wrong = cells.copy()
    wrong[3, 2] = np.nan
    with pytest.raises(
        ValueError, match=r"sigma: expected a number for each known value.*'z', row 3"
    ):
        pb.decision_function(model, X, route="expected", sigma=wrong)
    with pytest.raises(ValueError, match=r"sigma: expected 0 or NaN .*'colour'"):
        pb.decision_function(model, X, route="expected", sigma=[0.1, 0.2, 0.1])


def test_exact_measurements_are_the_binned_search():
    X, y, _ = frame(1)
    for fit, size in (
        (pb.fit_adaboost, {"n_estimators": 6}),
        (pb.fit_boosted_tree, {"max_nodes": 6}),
    ):
        # Of measured columns all rows are at every node, and smoothing of levels counts them.
        weak = pb.weak.stump(search="binned", categorical_smoothing=0.0)
        exact = fit(X, y, **size, weak_learner=weak)
        model = fit(X, y, **size, weak_learner=weak, observation=pb.observation.gaussian(0.0))
        np.testing.assert_array_equal(model.feature, exact.feature)
        np.testing.assert_array_equal(model.threshold, exact.threshold)
        np.testing.assert_array_equal(model.missing, exact.missing)
        np.testing.assert_allclose(model.vote, exact.vote, rtol=1e-9)
