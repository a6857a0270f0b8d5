"""Forests that make sorted orders at the nodes are those of partitioned columns, bit for bit."""

import numpy as np
import pytest

import pboost as pb
from pboost.models.single_tree import TREE_COLUMNS
from pboost.trees import cart

RNG = np.random.default_rng(11)
N, D = 300, 60
X = RNG.normal(size=(N, D))
X[:, ::3] = X[:, ::3].round(1)  # ties
X[:, 1::7] = X[:, 1::7] > 0
X[:, 4] = 1.0  # constant
NUMBER = X[:, 0] + X[:, 3] + RNG.normal(size=N)
TARGETS = {
    "two": (NUMBER > 0, {}),
    "three": (np.digitize(NUMBER, [-1, 1]), {"criterion": "entropy"}),
    "number": (NUMBER, {"task": "regression"}),
}
OPTIONS = {
    "all": {},
    "weights": {"sample_weight": RNG.integers(0, 3, N).astype(float)},
    "no copies": {"bootstrap": False, "max_samples": 0.6, "min_samples_leaf": 3},
    "few leaves": {"max_leaf_nodes": 9, "max_depth": 4},
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("rows", [N, 40])
def test_same_forest(monkeypatch, name, options, rows):
    y, own = TARGETS[name]
    options = {**own, **options, "n_estimators": 5, "rng": 2}
    if "sample_weight" in options:
        options["sample_weight"] = options["sample_weight"][:rows]

    def fitted(first, **more):
        monkeypatch.setattr(cart, "RANKED_FROM", first)
        return pb.fit_random_forest(X[:rows], y[:rows], **options, **more)

    actual, wanted = fitted(1), fitted(D + 1)
    for column in TREE_COLUMNS:
        assert np.array_equal(getattr(actual, column), getattr(wanted, column))
    assert np.array_equal(actual.root, wanted.root)
    other = fitted(1, n_threads=2)
    assert np.array_equal(actual.threshold, other.threshold)


def test_sorted_columns_and_holes(monkeypatch):
    y = TARGETS["two"][0]
    monkeypatch.setattr(cart, "RANKED_FROM", 1)
    plain = pb.fit_random_forest(X, y, n_estimators=3, rng=0)
    prepared = pb.fit_random_forest(pb.data.sort_columns(X), y, n_estimators=3, rng=0)
    assert np.array_equal(plain.threshold, prepared.threshold)
    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)  # are searched in sorted columns
    model = pb.fit_random_forest(holes, y, n_estimators=3, rng=0)
    monkeypatch.setattr(cart, "RANKED_FROM", D + 1)
    assert np.array_equal(
        model.threshold, pb.fit_random_forest(holes, y, n_estimators=3, rng=0).threshold
    )


def test_wide_tables_are_ranked():
    data = cart.FitData(X, TARGETS["two"][0], None, None, np.random.default_rng(0))
    problem, limits, _, _ = cart.fit_cart_problem(data, {"max_features": "sqrt"})
    assert cart.shared_columns(problem, limits, 1).ranks is not None
