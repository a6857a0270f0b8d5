"""Every weight that is written in fixed point fits there.

Soft trees recompute the weights of an exit along its path: those on the way were written in the
scale of those at the end. Where models were continued with other rows, weights that rose at their
nodes were written in the scale of those before. In both cases numbers beyond int64 were cast to it;
no model depended on them.
"""

import numpy as np
import pytest
from soft_models import graphs, noisy

import pboost as pb
from pboost._core import voting


@pytest.fixture
def written(monkeypatch):
    """Sums written in fixed point, in units of 2**63."""
    actual = []
    plain = voting.reweight

    def spied(codes, cut, leave, middle, factor, scale, source, weight, fixed, start, stop):
        masses = plain(codes, cut, leave, middle, factor, scale, source, weight, fixed, start, stop)
        actual.append(weight[start:stop].sum() * scale / 2.0**63)
        return masses

    monkeypatch.setattr(voting, "reweight", spied)
    return actual


@pytest.mark.parametrize("seed", [1, 16, 25, 56])
def test_weights_on_the_way_to_an_exit(seed, written):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(160, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=160) > 0
    pb.fit_boosted_tree(
        X,
        y,
        max_nodes=34,
        sample_weight=np.exp(4 * rng.normal(size=160)),
        observation=pb.observation.flip(0.01),
        weak_learner=pb.weak.stump(search="binned", min_samples_leaf=10),
    )
    assert len(written) > 10
    assert max(written) <= 0.5


@pytest.mark.parametrize("how", [{"n_estimators": 3}, {"max_nodes": 3}])
def test_weights_that_rise_at_nodes_made_for_others(how, written):
    X, y, _ = noisy(9)
    few = np.array([[9.0, 9, 9], [9, 9, 9.5], [-9, 9, 9], [9, -9, 9]]), [1, -1, 1, -1]
    options = {"weak_learner": pb.weak.stump(search="binned")}
    for model in graphs(X, y, "exact", **options):
        pb.continue_fit(model, *few, **how)
    assert len(written) > 10
    assert max(written) <= 0.5
