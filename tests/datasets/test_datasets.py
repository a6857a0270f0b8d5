"""Generators of synthetic problems."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb
from pboost.datasets import NINE_CIRCLES_CENTRES, NINE_CIRCLES_RADIUS


def distance(X):
    """Return the distance of each point from the nearest centre, and which that is."""
    distances = np.hypot(*(X[:, None] - NINE_CIRCLES_CENTRES).transpose(2, 0, 1))
    return distances.min(axis=1), distances.argmin(axis=1)


@pytest.mark.parametrize("n", [1, 2, 200])
def test_shapes_and_classes(n):
    X, y = pb.datasets.nine_circles(n, rng=1)
    assert X.shape == (2 * n, 2)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert (np.sort(y) == np.repeat([-1, 1], n)).all()
    assert X.flags.c_contiguous


def test_class_is_that_of_the_circles():
    X, y = pb.datasets.nine_circles(5000, rng=2)
    assert ((X >= 0) & (X < 1)).all()
    assert ((distance(X)[0] <= NINE_CIRCLES_RADIUS) == (y == 1)).all()


def test_circles_are_apart_and_inside():
    gaps = np.hypot(*(NINE_CIRCLES_CENTRES[:, None] - NINE_CIRCLES_CENTRES).transpose(2, 0, 1))
    assert gaps[~np.eye(9, dtype=bool)].min() > 2 * NINE_CIRCLES_RADIUS
    assert NINE_CIRCLES_CENTRES.min() > NINE_CIRCLES_RADIUS
    assert NINE_CIRCLES_CENTRES.max() < 1 - NINE_CIRCLES_RADIUS
    assert not NINE_CIRCLES_CENTRES.flags.writeable


def test_inside_is_uniform():
    X, y = pb.datasets.nine_circles(20_000, rng=3)
    r, circle = distance(X[y == 1])
    counts = np.bincount(circle, minlength=9)
    # Standard deviations: 44 of a count of 2222, 0.0035 of a share of 1/2.
    assert np.abs(counts - 20_000 / 9).max() < 5 * 44.5
    assert abs(np.mean(r < NINE_CIRCLES_RADIUS / np.sqrt(2)) - 0.5) < 5 * 0.0036
    offset = X[y == 1] - NINE_CIRCLES_CENTRES[circle]
    share = np.mean(offset > 0, axis=0)
    assert np.abs(share - 0.5).max() < 5 * 0.0036


def test_outside_is_uniform():
    X, y = pb.datasets.nine_circles(20_000, rng=4)
    outside = X[y == -1]
    area = 1 - 9 * np.pi * NINE_CIRCLES_RADIUS**2
    cell = np.ravel_multi_index((3 * outside).astype(int).T, (3, 3))
    assert np.abs(np.bincount(cell, minlength=9) - 20_000 / 9).max() < 5 * 44.5
    # A strip along the edge of the square, which no circle touches.
    strip = (np.abs(outside - 0.5) > 0.45).any(axis=1)
    assert abs(strip.mean() - (1 - 0.9**2) / area) < 5 * 0.0032


def test_order_is_random():
    _, y = pb.datasets.nine_circles(500, rng=5)
    assert 0.4 < np.mean(y[:500] == 1) < 0.6
    assert 400 < np.count_nonzero(np.diff(y)) < 600


def test_seeds():
    first, again = (pb.datasets.nine_circles(30, rng=6) for _ in range(2))
    other = pb.datasets.nine_circles(30, rng=7)
    assert (first[0] == again[0]).all()
    assert (first[1] == again[1]).all()
    assert (first[0] != other[0]).any()
    generator = np.random.default_rng(6)
    X, _ = pb.datasets.nine_circles(30, generator)
    assert (first[0] == X).all()
    assert (pb.datasets.nine_circles(30, generator)[0] != X).any()
    assert (pb.datasets.nine_circles(30)[0] != pb.datasets.nine_circles(30)[0]).any()


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^n_per_class: expected an integer from 1 .*, got 0"):
        pb.datasets.nine_circles(0)
    with pytest.raises(TypeError, match=r"^n_per_class: expected an integer, got 2.5"):
        pb.datasets.nine_circles(2.5)
    with pytest.raises(TypeError, match=r"^rng: expected"):
        pb.datasets.nine_circles(2, rng="0")


@pytest.mark.full
def test_affine_models_err_as_often_as_said():
    weak, adatree2 = pb.weak.affine(), pb.observation.adatree2()
    errors, costs = [], []
    for seed in range(6):
        X, y = pb.datasets.nine_circles(200, rng=seed)
        X_test, y_test = pb.datasets.nine_circles(2000, rng=100 + seed)
        soft = {"weak_learner": weak, "observation": adatree2, "growth": "largest_error"}
        models = (
            pb.fit_boosted_tree(X, y, max_nodes=None, weak_learner=weak),
            pb.fit_boosted_tree(X, y, max_nodes=400, **soft),
            pb.fit_adaboost(X, y, n_estimators=400, weak_learner=weak),
        )
        errors.append([np.mean(pb.predict(model, X_test) != y_test) for model in models])
        costs.append([pb.prediction_cost(model, X_test).mean() for model in models])
    # Means of 100 draws: 15.2, 12.4 and 8.2 %; standard deviations of one: 2.6, 1.8 and 0.9 %.
    np.testing.assert_allclose(np.mean(errors, axis=0), [0.152, 0.124, 0.082], atol=0.025)
    np.testing.assert_allclose(np.mean(costs, axis=0), [8.7, 12, 400], atol=1)


def test_builders_learn_it():
    X, y = pb.datasets.nine_circles(200, rng=8)
    X_test, y_test = pb.datasets.nine_circles(2000, rng=9)
    tree = pb.fit_boosted_tree(X, y, max_nodes=60)
    assert np.mean(pb.predict(tree, X_test) != y_test) < 0.25
