"""Models whose nodes are functions: evaluation, words, pickles."""

import pickle

import numpy as np
import pytest
from oracle_learners import StumpEstimator, noisy_stump, train_stump
from soft_models import noisy

import pboost as pb

SAMPLED = pb.observation.sampled(5)


@pytest.mark.parametrize("made", [pb.observation.exact(), SAMPLED, pb.observation.flip(0.2)])
def test_oracles_are_evaluated_by_asking(made):
    X, y, _ = noisy(15, n=40)
    model = pb.fit_boosted_tree(
        X, y, max_nodes=5, weak_learner=pb.weak.oracle(noisy_stump(0.2)), observation=made, rng=0
    )
    np.testing.assert_array_equal(pb.predict(model, X), pb.predict(model, X))
    assert pb.prediction_cost(model, X).min() >= 1
    np.testing.assert_array_equal(
        pb.prediction_cost(model, X), pb.prediction_cost(model, X, unit="features")
    )
    first, same, other = (
        pb.decision_function(model, X, route="sample", rng=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
    for call in (
        lambda: pb.decision_function(model, X, route="expected"),
        lambda: pb.inspection.reach(model, X),
        lambda: pb.certificate(model, X, y),
    ):
        with pytest.raises(ValueError, match=r"unknown|estimate"):
            call()
    assert model.certificate_note


def test_only_rows_that_arrive_are_asked_about():
    X, y, _ = noisy(16, n=50)
    asked = []

    def train(X, y, weight, rng):
        stump = train_stump(X, y, weight, rng)

        def answer(X, rng):
            asked.append(len(X))
            return stump(X, rng)

        return answer

    model = pb.fit_boosted_tree(X, y, max_nodes=6, weak_learner=pb.weak.oracle(train))
    asked.clear()
    cost = pb.prediction_cost(model, X)
    assert sum(asked) == cost.sum()
    assert asked[0] == 50
    asked.clear()
    pb.predict(model, X[:0])
    assert asked == []


def test_words():
    X, y, _ = noisy(17, n=40)
    model = pb.fit_boosted_tree(X, y, max_nodes=2, weak_learner=pb.weak.oracle(train_stump))
    assert "node 1: oracle 1 answers -1: vote" in pb.describe(model)
    assert "node 0: oracle 0 answers " in str(pb.explain(model, X[0]))
    assert model.settings["weak_learner"] == {"kind": "oracle", "train": "train_stump"}
    model = pb.fit_boosted_tree(
        X, y, max_nodes=2, weak_learner=pb.weak.from_estimator(StumpEstimator())
    )
    assert "node 1: estimator 1 <= 0.5: vote" in pb.describe(model)
    assert "node 0: estimator 0 = " in str(pb.explain(model, X[0]))
    assert model.settings["weak_learner"]["kind"] == "from_estimator"


def test_files_and_pickles(tmp_path):
    X, y, _ = noisy(18, n=40)
    model = pb.fit_boosted_tree(X, y, max_nodes=3, weak_learner=pb.weak.oracle(train_stump))
    with pytest.raises(TypeError, match="pickl"):
        pb.save(model, tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pb.decision_function(again, X), pb.decision_function(model, X))


def test_cross_validation():
    words = np.array(["a", "b", "c", "d"] * 10)
    y = np.isin(words, ["a", "c"])

    def train(X, y, weight, rng):
        word = rng.choice(X)
        sign = np.sign((weight * y)[word == X].sum())
        return lambda X, rng: np.where(word == X, sign, -sign).astype(int)

    weak = pb.weak.oracle(train)
    result = pb.cross_validate(
        lambda X, y: pb.fit_adaboost(X, y, n_estimators=8, weak_learner=weak, rng=0),
        words,
        y,
        cv=4,
        rng=0,
    )
    assert result.error.shape == (4,)
    assert result.certificate_note
