"""Linear weak classifiers: the smoothed criterion against its twin, thresholds, models."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from compare import assert_identical
from reference.linear import cell_criterion, smoothed_criterion
from reference.problems import random_problem
from reference.split import best_stump
from scipy.optimize import approx_fprime
from soft_models import noisy

import pboost as pb
from pboost import threads
from pboost._core import derived
from pboost.weak.directions import NodeRows, all_columns, descend, minimise, pairs
from pboost.weak.linear_search import in_units, listed_pairs

WEAK = pb.weak.linear()


def rows_at_a_node(seed, n, k):
    rng = np.random.default_rng(seed)
    n_negative = int(rng.integers(1, n))
    Z = np.ascontiguousarray(rng.normal(size=(k, n)))
    weight = rng.random(n)
    y = np.where(np.arange(n) < n_negative, -1, 1)
    return NodeRows(Z, weight / weight.sum(), n_negative), y, rng


def turned(seed, n=800, d=6):
    """A corner in a turned frame, a twentieth of the labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    frame = np.linalg.qr(np.random.default_rng(5).normal(size=(d, d)))[0]
    Z = X @ frame
    y = (Z[:, 0] > -0.3) & (Z[:, 1] > -0.6)
    return X, np.where(y ^ (rng.random(n) < 0.05), 1, -1)


def fits(X, y, weak=WEAK, **options):
    """Return a model of each kind."""
    return {
        "chain": pb.fit_adaboost(X, y, n_estimators=4, weak_learner=weak, **options),
        "tree": pb.fit_boosted_tree(X, y, max_nodes=6, weak_learner=weak, **options),
        "soft tree": pb.fit_boosted_tree(
            X, y, max_nodes=5, weak_learner=weak, observation=pb.observation.flip(0.1), **options
        ),
        "matryoshka": pb.fit_matryoshka(
            X, y, shape=(2, 2), weak_learner=weak, observation=pb.observation.adatree2(), **options
        ),
    }


# The smoothed criterion


@pytest.mark.parametrize("n", [2, 3, 63, 64, 65, 200])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_loss_and_gradient(n, k):
    rows, y, rng = rows_at_a_node(n, n, k)
    for sigma in (1.0, 0.2):
        point = rng.normal(size=k + 1)
        actual, gradient = rows.loss(sigma)(point)
        expected = smoothed_criterion(rows.Z.T, y, rows.weight, point[:-1], point[-1], sigma)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)

        def twin(p, sigma=sigma):
            return smoothed_criterion(rows.Z.T, y, rows.weight, p[:-1], p[-1], sigma)

        np.testing.assert_allclose(gradient, approx_fprime(point, twin, 1e-7), atol=2e-5)


def test_loss_of_rows_far_away_is_finite():
    rows = NodeRows(np.array([[-1e300, 1e300]]), np.array([0.5, 0.5]), 1)
    value, gradient = rows.loss(0.1)(np.array([1.0, 0.0]))
    assert 0 <= value < 1e-5
    assert np.isfinite(gradient).all()


def test_screened_pairs():
    rows, y, _ = rows_at_a_node(3, 150, 4)
    listed = listed_pairs(4, 200, 0)
    turns = np.array([0.3, 1.1, 2.9])
    angle = np.column_stack([np.cos(turns), np.sin(turns)])
    best, at, which = np.empty(6), np.empty(6), np.empty(6, dtype=np.int32)
    derived.screen(rows.Z, rows.weight, rows.n_negative, listed, angle, best, at, which)
    for p, (i, j) in enumerate(listed):
        values = [cell_criterion(c * rows.Z[i] + s * rows.Z[j], y, rows.weight) for c, s in angle]
        score, threshold = min(values)
        np.testing.assert_allclose(best[p], score, rtol=1e-9)
        np.testing.assert_allclose(at[p], threshold, atol=1e-12)
        assert values[which[p]] == (score, threshold)


def test_kernels_refuse_arrays_of_other_sizes():
    Z, w, g = np.ones((2, 4)), np.full(4, 0.25), np.empty(3)
    for bad in (
        (Z, w[:3], 2, np.ones(3), 1.0, np.empty(4), g),
        (Z, w, 0, np.ones(3), 1.0, np.empty(4), g),
        (Z, w, 4, np.ones(3), 1.0, np.empty(4), g),
        (Z, w, 2, np.ones(2), 1.0, np.empty(4), g),
        (Z, w, 2, np.ones(3), 1.0, np.empty(3), g),
    ):
        with pytest.raises(ValueError, match="arrays of different sizes"):
            derived.loss(*bad)


def test_minimise_finds_the_bottom_of_a_bowl():
    scale = np.array([1.0, 10.0, 100.0])
    value, point = minimise(
        lambda p: (1 + scale @ (p - 1) ** 2, 2 * scale * (p - 1)), np.zeros(3), 60
    )
    np.testing.assert_allclose(point, 1, atol=1e-2)
    assert 1 <= value < 1.001
    start = np.array([2.0])
    flat = minimise(lambda p: (1.0, np.zeros(1)), start, 5)
    assert flat == (1.0, start)


def test_descent_lowers_the_criterion():
    rows, _, rng = rows_at_a_node(4, 300, 5)
    loss = rows.loss(0.3)
    for _ in range(5):
        start = rng.normal(size=6)
        start /= np.linalg.norm(start[:-1])
        actual = descend(rows, start, ((0.3, 15),))
        assert loss(actual)[0] <= loss(start)[0]
        np.testing.assert_allclose(np.linalg.norm(actual[:-1]), 1)


def test_a_direction_of_all_columns_is_found():
    rng = np.random.default_rng(6)
    Z = np.sort(rng.normal(size=(1, 600)), axis=1)
    truth = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    # Class +1 where the turned first column is large.
    columns = truth @ np.concatenate([Z, rng.normal(size=(4, 600))])
    rows = NodeRows(np.ascontiguousarray(columns), np.full(600, 1 / 600), 400)
    actual = all_columns(rows)
    assert abs(actual @ truth[:, 0]) > 0.99
    shell = np.concatenate(
        [np.sort(np.abs(Z))[:, ::-1] * rng.choice([-1, 1], 600), rng.normal(size=(4, 600))]
    )
    rows = NodeRows(np.ascontiguousarray(truth @ shell), np.full(600, 1 / 600), 300)
    assert abs(all_columns(rows) @ truth[:, 0]) > 0.9  # the means of the classes agree


def test_a_pair_is_found():
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(8, 700))
    order = np.argsort(Z[2] - 2 * Z[5])
    rows = NodeRows(np.ascontiguousarray(Z[:, order]), np.full(700, 1 / 700), 300)
    actual = pairs(rows, listed_pairs(8, 100, 0))
    columns, coefficient = actual[1]
    assert columns.tolist() == [2, 5]
    np.testing.assert_allclose(coefficient[1] / coefficient[0], -2, rtol=0.1)
    assert actual[0][0].tolist() == [5]


# Models


@pytest.mark.parametrize("dense_gain", [0.0, 1.0, 3.0, None])
def test_thresholds_are_the_best_of_their_directions(dense_gain):
    X, y, weight = noisy(8, n=200, d=4)
    model = pb.fit_boosted_tree(
        X, y, max_nodes=5, weak_learner=pb.weak.linear(dense_gain=dense_gain), sample_weight=weight
    )
    values, arrives = model.inputs.values(X), pb.inspection.reach(model, X) > 0
    for node in range(model.n_nodes):
        here = arrives[:, node]
        column = values[here][:, [model.feature[node]]]
        _, threshold = best_stump(column, y[here], weight[here])
        np.testing.assert_allclose(model.threshold[node], threshold, rtol=1e-9, atol=1e-12)
    terms = set(np.diff(model.inputs.start).tolist())
    assert terms == {4} if dense_gain == 0 else terms <= {1, 2, 4}
    assert 4 not in terms or dense_gain is not None


def test_certificates():
    grown = 0
    for case in range(25):
        X, y, weight = random_problem(np.random.default_rng([23, case]))
        for name, model in fits(X, y, sample_weight=weight).items():
            grown += model.n_nodes
            again = pb.certificate(model, X, y, sample_weight=weight)
            np.testing.assert_allclose(
                again, model.record.certificate[-1], rtol=1e-9, err_msg=f"{case} {name}"
            )
    assert grown > 100


def test_a_turned_corner_takes_two_nodes():
    X, y = turned(9)
    X_test, y_test = turned(10, 4000)
    linear = pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=WEAK)
    stumps = pb.fit_boosted_tree(X, y, max_nodes=60)
    error = [np.mean(pb.predict(m, X_test) != y_test) for m in (linear, stumps)]
    assert error[0] < 0.15 < error[1]


def test_a_sparse_rule_is_found_where_all_columns_have_to_gain_more():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(3000, 10))
    y = ((X[:, 0] + X[:, 1] > 0) & (X[:, 2] - X[:, 3] > -0.5)) ^ (X[:, 4] + 2 * X[:, 5] > 1.5)
    model = pb.fit_boosted_tree(X, y, max_nodes=9, weak_learner=pb.weak.linear(dense_gain=3))
    assert np.mean(pb.predict(model, X) == y) > 0.95
    assert np.diff(model.inputs.start).max() == 2


def test_units_do_not_matter():
    X, y, _ = noisy(12, n=150, d=3)
    units = np.ldexp(1.0, [-40, 2, 600])
    first, other = (
        pb.fit_boosted_tree(X * u, y, max_nodes=5, weak_learner=WEAK) for u in (1.0, units)
    )
    np.testing.assert_array_equal(first.next, other.next)
    np.testing.assert_array_equal(first.vote, other.vote)


def test_constant_columns_take_no_part():
    X, y, _ = noisy(13, d=3)
    X[:, 1] = 7.0
    model = pb.fit_boosted_tree(X, y, max_nodes=5, weak_learner=WEAK)
    assert not (model.inputs.index == 1).any()
    assert pb.fit_boosted_tree(np.ones((9, 2)), y[:9], max_nodes=3, weak_learner=WEAK).n_nodes == 0


def test_one_column_is_a_stump():
    X, y, weight = noisy(14)
    column = X[:, :1]
    linear, stumps = (
        pb.fit_boosted_tree(column, y, max_nodes=6, weak_learner=weak, sample_weight=weight)
        for weak in (WEAK, pb.weak.stump())
    )
    np.testing.assert_allclose(linear.threshold, stumps.threshold, rtol=1e-12)
    np.testing.assert_allclose(linear.vote, stumps.vote, rtol=1e-12)


def test_limits_of_sides_hold():
    X, y, _ = noisy(15, n=200)
    model = pb.fit_boosted_tree(X, y, max_nodes=4, weak_learner=pb.weak.linear(min_samples_leaf=30))
    arrives = pb.inspection.reach(model, X) > 0
    values = model.inputs.values(X)
    for node in range(model.n_nodes):
        above = values[arrives[:, node], model.feature[node]] > model.threshold[node]
        assert 30 <= above.sum() <= len(above) - 30


def test_pairs_are_drawn_where_there_are_too_many():
    assert len(listed_pairs(10, 45, 0)) == 45
    drawn = listed_pairs(30, 50, 1)
    assert 30 < len(drawn) <= 50
    assert (drawn[:, 0] < drawn[:, 1]).all()
    np.testing.assert_array_equal(drawn, listed_pairs(30, 50, 1))
    assert drawn.tolist() != listed_pairs(30, 50, 2).tolist()
    assert listed_pairs(1, 5, 0).shape == (0, 2)


def test_columns_are_brought_to_units():
    rng = np.random.default_rng(16)
    X = rng.normal(size=(50, 3)) * [1e-200, 1.0, 1e200] + [0, 5, 0]
    X[:, 1] = 4.0
    weight = rng.random(50)
    weight /= weight.sum()
    scale, Z = in_units(X, weight)
    assert Z.shape == (2, 50)
    assert scale[1] == 0
    np.testing.assert_allclose(Z @ weight, 0, atol=1e-12)
    np.testing.assert_allclose(Z**2 @ weight, 1)
    assert math.isfinite(scale[2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_take_the_side_on_which_they_were(dtype):
    X, y = turned(17, 300)
    X = np.round(X, 1).astype(dtype)
    for model in fits(X, y).values():
        assert abs(pb.certificate(model, X, y) - pb.certificate(model)) < 1e-12
        few = [pb.decision_function(model, X[i : i + 3]) for i in range(0, 300, 3)]
        assert np.concatenate(few).tobytes() == pb.decision_function(model, X).tobytes()


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    X, y = turned(18, 500)
    first, three = (fits(X, y, n_threads=n) for n in (1, 3))
    for name, model in first.items():
        assert_identical(model, three[name])
        assert model.inputs.coefficient.tobytes() == three[name].inputs.coefficient.tobytes()


def test_many_rows_are_thinned():
    X, y = turned(19, 5000)
    model = pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=WEAK)
    assert np.mean(pb.predict(model, X) != y) < 0.09
    rows, _, _ = rows_at_a_node(20, 1000, 2)
    few = rows.thinned(300)
    assert len(few.weight) <= 252
    assert few.n_negative == len(range(0, rows.n_negative, 4))
    np.testing.assert_allclose(few.weight.sum(), 1)


def test_early_stopping():
    X, y = turned(21, 600)
    model = pb.fit_boosted_tree(
        X, y, max_nodes=20, weak_learner=WEAK, validation=0.3, n_iter_no_change=4, rng=0
    )
    assert len(model.record.validation) > model.n_nodes
    assert model.inputs.n_inputs == model.n_nodes


def test_models_are_kept(tmp_path):
    X, y = turned(22, 200)
    model = pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=WEAK)
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz")
    assert_identical(model, loaded)
    np.testing.assert_array_equal(pb.decision_function(loaded, X), pb.decision_function(model, X))
    assert dict(loaded.settings["weak_learner"])["kind"] == "linear"
    none = pb.fit_boosted_tree(X, y, max_nodes=1, weak_learner=pb.weak.linear(dense_gain=None))
    assert none.settings["weak_learner"]["dense_gain"] is None
    pb.save(none, tmp_path / "model.npz")
    assert dataclasses.asdict(pb.weak.linear(max_pairs=3, seed=4))["max_pairs"] == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dense_gain": -1}, ValueError),
        ({"dense_gain": "all"}, TypeError),
        ({"max_pairs": 0}, ValueError),
        ({"max_pairs": 1.0}, TypeError),
        ({"seed": -1}, ValueError),
        ({"criterion": "mean"}, ValueError),
        ({"min_weight_fraction": 0.6}, ValueError),
        ({"min_samples_leaf": 0}, ValueError),
    ],
)
def test_bad_options_are_named(options, error):
    (name,) = options
    with pytest.raises(error, match=f"^{name}: expected"):
        pb.weak.linear(**options)


def test_what_is_refused_and_what_is_not():
    X, y = turned(23, 60)
    with pytest.raises(ValueError, match=r"^observation: 'gaussian' compares columns"):
        pb.fit_adaboost(
            X, y, n_estimators=2, weak_learner=WEAK, observation=pb.observation.gaussian(0.1)
        )
    with pytest.raises(ValueError, match=r"^X: expected .*, got BinnedColumns"):
        pb.fit_adaboost(pb.data.bin_columns(X), y, n_estimators=2, weak_learner=WEAK)
    huge = np.where(X > 0, 1.7e308, -1.7e308)
    assert pb.fit_boosted_tree(huge, y, max_nodes=2, weak_learner=WEAK).n_nodes == 2
