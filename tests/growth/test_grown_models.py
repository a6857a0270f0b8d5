"""Graphs are not checked when growth has made them: what it makes is right by itself."""

import pickle
from functools import partial

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=120) > 0, "yes", "no")
FITS = {
    "chain": partial(pb.fit_adaboost, n_estimators=12),
    "chain of perfect stumps": lambda X, y: pb.fit_adaboost(
        X, X[:, 2] > 0, n_estimators=5, smoothing=0
    ),
    "tree": partial(pb.fit_boosted_tree, max_nodes=9),
    "soft tree": partial(pb.fit_boosted_tree, max_nodes=9, observation=pb.observation.adatree2()),
    "gaussian": partial(pb.fit_boosted_tree, max_nodes=5, observation=pb.observation.gaussian(0.1)),
    "sampled": partial(
        pb.fit_adaboost, n_estimators=4, observation=pb.observation.sampled(7), rng=0
    ),
    "nested": partial(pb.fit_matryoshka, shape=(2, 3)),
    "greedy": partial(pb.fit_matryoshka, growth="greedy", max_nodes=6),
    "affine": partial(
        pb.fit_adaboost, n_estimators=5, weak_learner=pb.weak.affine(n_directions=20)
    ),
    "separators": partial(pb.fit_oblique_tree, max_nodes=3, n_stumps=5),
    "linear": partial(pb.fit_boosted_tree, max_nodes=3, weak_learner=pb.weak.linear()),
    "impurity": partial(pb.fit_topdown_tree, max_nodes=5, impurity="gini"),
    "nothing to split": lambda X, y: pb.fit_adaboost(0 * X, y, n_estimators=2),
    "continued": lambda X, y: pb.continue_fit(
        pb.fit_adaboost(X, y, n_estimators=3), X, y, max_nodes=4
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_growth_makes_what_a_check_passes(fit):
    model = fit(X, Y)
    model.validate()
    checked = pickle.loads(pickle.dumps(model))  # made like any model that users make
    for name in type(model).__dataclass_fields__:
        grown, again = getattr(model, name), getattr(checked, name)
        if isinstance(grown, np.ndarray):
            assert not grown.flags.writeable
            assert grown.dtype == again.dtype
            np.testing.assert_array_equal(grown, again)
        else:
            assert type(grown) is type(again)
    assert checked.is_chain == model.is_chain
    assert checked.bias == model.bias


def test_fields_that_are_not_there_are_refused():
    with pytest.raises(AssertionError, match="treshold"):
        pb.models.DecisionGraph.grown(treshold=1)
