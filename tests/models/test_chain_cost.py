"""What a row costs a chain is known without a walk: it is what a walk counts."""

import numpy as np
import pytest

import pboost as pb
from pboost.models.evaluate.graph_walk import hard_exits, passages
from pboost.models.evaluate.kernel_walk import walk_rows
from pboost.models.evaluate.match_input import input_values

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 4)).round(1)
Y = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=60) > 0
HOLES = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
WEAK = {
    "stump": pb.weak.stump(),
    "affine": pb.weak.affine(),
    "separator": pb.weak.separator(n_stumps=3),
}


@pytest.mark.parametrize("weak", WEAK.values(), ids=WEAK)
@pytest.mark.parametrize("values", [X, HOLES], ids=["clean", "holes"])
def test_cost_is_what_a_walk_counts(weak, values):
    model = pb.fit_adaboost(values, Y, weak_learner=weak, n_estimators=6)
    assert model.is_chain
    cost = {unit: pb.prediction_cost(model, values, unit=unit) for unit in ("nodes", "features")}
    assert np.array_equal(cost["nodes"], walk_rows(model, values, True)[1])
    assert np.array_equal(cost["features"], model._columns_read(input_values(model, values)))


def test_stumps_of_separators():
    model = pb.fit_adaboost(X, Y, weak_learner=WEAK["separator"], n_estimators=4)
    n, take = hard_exits(model, X)
    count = np.zeros(n)
    for node, (here, _) in enumerate(passages(model, n, take)):
        count[here] += model.inputs.stumps[model.feature[node]]
    assert np.array_equal(pb.prediction_cost(model, X, unit="stumps"), count)


def test_rows_are_checked():
    model = pb.fit_adaboost(X, Y, n_estimators=3)
    with pytest.raises(ValueError, match="row 1"):
        pb.prediction_cost(model, np.where(np.arange(60)[:, None] == 1, np.inf, X))
    with pytest.raises(ValueError, match="4 columns"):
        pb.prediction_cost(model, X[:, :3])
    assert pb.prediction_cost(model, X[:0]).shape == (0,)
