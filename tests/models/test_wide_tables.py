"""Of wide tables the columns that a graph reads are copied only: the same decision values."""

import numpy as np
import pytest

import pboost as pb
from pboost.models import hard_walk

RNG = np.random.default_rng(8)
X = RNG.normal(size=(400, 300))
Y = X[:, 7] * X[:, 200] + 0.3 * RNG.normal(size=400) > 0
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
BUILDERS = {
    "chain": lambda X: pb.fit_adaboost(X, Y, rounds=9),
    "tree": lambda X: pb.fit_boosted_tree(X, Y, nodes=12),
}


@pytest.mark.parametrize("fit", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize("values", [X, HOLES], ids=["clean", "holes"])
@pytest.mark.parametrize("rows", [1, 5, 70, 400])
def test_same_values(monkeypatch, fit, values, rows):
    model = fit(values)
    found = pb.decision_function(model, values[:rows])
    assert model._narrow[1] is not None
    monkeypatch.setattr(hard_walk, "WIDE", 10**6)
    assert np.array_equal(found, pb.decision_function(model, values[:rows]))
    assert np.array_equal(
        found, pb.decision_function(model, np.asfortranarray(values[:rows], dtype=np.float64))
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
    model = pb.fit_adaboost(RNG.normal(size=(60, 300)), RNG.random(60) > 0.5, rounds=120)
    pb.decision_function(model, X)
    assert model._narrow[1] is None
