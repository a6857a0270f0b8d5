"""Of wide tables the columns that a model reads are copied only: the same values."""

import numpy as np
import pytest

import pboost as pb
from pboost.models import single_tree as trees
from pboost.models.evaluate import kernel_walk

RNG = np.random.default_rng(8)
X = RNG.normal(size=(400, 300))
Y = X[:, 7] * X[:, 200] + 0.3 * RNG.normal(size=400) > 0
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
BUILDERS = {
    "chain": lambda X: pb.fit_adaboost(X, Y, n_estimators=9),
    "tree": lambda X: pb.fit_boosted_tree(X, Y, max_nodes=12),
}


@pytest.mark.parametrize("fit", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize("values", [X, HOLES], ids=["clean", "holes"])
@pytest.mark.parametrize("rows", [1, 5, 70, 400])
def test_same_values(monkeypatch, fit, values, rows):
    model = fit(values)
    scores = pb.decision_function(model, values[:rows])
    assert model.memo["narrowed"] is not None
    monkeypatch.setattr(kernel_walk, "WIDE", 10**6)
    assert np.array_equal(scores, pb.decision_function(model, values[:rows]))
    assert np.array_equal(
        scores, pb.decision_function(model, np.asfortranarray(values[:rows], dtype=np.float64))
    )


def test_columns_that_are_read_are_checked():
    model = BUILDERS["chain"](X)
    read = int(model.feature[0])
    bad = X.copy()
    bad[3, read] = np.inf
    with pytest.raises(ValueError, match=rf"inf in column {read}, row 3"):
        pb.decision_function(model, bad)
    with pytest.raises(ValueError, match="300 columns"):
        pb.decision_function(model, X[:, :299])


def test_models_that_read_many_columns_stay():
    model = pb.fit_adaboost(RNG.normal(size=(60, 300)), RNG.random(60) > 0.5, n_estimators=120)
    pb.decision_function(model, X)
    assert model.memo["narrowed"] is None


LEVELS = np.where(np.arange(300) % 3 == 0, np.floor(np.abs(3 * X)), HOLES)
FOREST = {"n_estimators": 3, "max_depth": 2, "max_features": 20, "rng": 0}
SUM = {"n_estimators": 8, "max_depth": 2}
OF_TREES = {
    "cart": lambda X, **more: pb.fit_cart(X, Y, max_depth=3, **more),
    "forest": lambda X, **more: pb.fit_random_forest(X, Y, **FOREST, **more),
    "regression": lambda X, **more: pb.fit_random_forest(
        X, X[:, 7], task="regression", **FOREST, **more
    ),
    "stagewise": lambda X, **more: pb.fit_gradient_boosting(X, Y, loss="log_loss", **SUM, **more),
    "softmax": lambda X, **more: pb.fit_gradient_boosting(
        X, Y + 1 * (X[:, 9] > 1), loss="softmax", **{**SUM, "n_estimators": 3}, **more
    ),
}


def as_tree_ensemble(model):
    return model if isinstance(model, trees.Trees) else model.trees


@pytest.mark.parametrize("fit", OF_TREES.values(), ids=OF_TREES)
@pytest.mark.parametrize("values", [X, HOLES, LEVELS], ids=["clean", "holes", "levels"])
@pytest.mark.parametrize("rows", [1, 5, 70, 400])
def test_trees_say_the_same(monkeypatch, fit, values, rows):
    if values is not X and fit is OF_TREES["regression"]:
        values = np.where(np.arange(300) == 7, X, values)
    model = fit(values, **({"categorical_features": range(0, 300, 3)} if values is LEVELS else {}))
    said = pb.predict if model.classes is None else pb.predict_proba
    Z = values[:rows]
    actual, nodes = said(model, Z), as_tree_ensemble(model).nodes_of(Z)
    read, narrow = as_tree_ensemble(model).memo["narrowed"]
    assert narrow.n_features == len(read) < 40
    monkeypatch.setattr(kernel_walk, "WIDE", 10**6)
    assert np.array_equal(actual, said(model, Z))
    assert np.array_equal(nodes, as_tree_ensemble(model).nodes_of(Z))


@pytest.mark.parametrize("fit", OF_TREES.values(), ids=OF_TREES)
def test_values_that_trees_read_are_checked(fit):
    model = fit(X)
    column = as_tree_ensemble(model).column
    read, bad = int(column[0]), X.copy()
    bad[3, read] = np.inf
    with pytest.raises(ValueError, match=rf"inf in column {read}, row 3"):
        pb.predict(model, bad)
    with pytest.raises(ValueError, match="300 columns"):
        pb.predict(model, X[:, :299])
    other, unread = X.copy(), np.setdiff1d(np.arange(300), column)[0]
    other[3, unread] = np.inf  # is not looked at
    assert np.array_equal(pb.predict(model, other), pb.predict(model, X))
