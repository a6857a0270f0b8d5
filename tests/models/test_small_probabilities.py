"""Small probabilities of either class are as exact as those near 1/2."""

import math
from functools import partial

import numpy as np
import pytest

import pboost as pb

X = np.arange(24.0).reshape(-1, 1)
Y = X[:, 0] % 7 > 2
SUM = partial(pb.fit_gradient_boosting, X, Y, n_estimators=2, task="classification")
#: Models whose probabilities of the labels at decision values F and -F are each other's.
MODELS = {
    "exponential": lambda: SUM(loss="exponential"),
    "log_loss": lambda: SUM(loss="log_loss"),
    "probit": lambda: SUM(loss="probit"),
    "squared_error": lambda: SUM(loss="squared_error"),
    "graph": lambda: pb.fit_adaboost(X, Y, n_estimators=2),
    "linear": lambda: pb.fit_real_adaboost(X, Y, n_estimators=2, weak_learner=pb.weak.feature()),
    "probitboost": lambda: pb.fit_probitboost(X, Y, max_iter=2),
    "probit tree": lambda: pb.fit_probit_tree(X, Y, max_depth=1, min_samples_leaf=8, max_iter=2),
    "platt": lambda: pb.calibrate(pb.fit_adaboost(X, Y, n_estimators=2), X + 0.5, Y),
    "isotonic": lambda: pb.calibrate(
        pb.fit_adaboost(X, Y, n_estimators=2), X + 0.5, Y, method="isotonic"
    ),
}
SCORE = np.linspace(0.0, 37.0, 1001)


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_either_label_are_equally_exact(name):
    model = MODELS[name]()
    score = np.minimum(SCORE, 1.0) if name == "squared_error" else SCORE
    above, below = model.probabilities(score), model.probabilities(-score)
    np.testing.assert_allclose(above[:, 0], below[:, 1], rtol=1e-13, atol=0)
    np.testing.assert_allclose(above.sum(axis=1), 1.0, rtol=1e-15)
    assert (np.diff(above[:, 0]) <= 1e-13 * above[:-1, 0]).all()
    assert (above[SCORE > 0, 1] > above[SCORE > 0, 0]).all()


def test_a_probability_of_1e_301():
    model = pb.fit_gradient_boosting(
        [[0.0], [1.0]], [0, 1], loss="log_loss", n_estimators=1, learning_rate=1.0
    )
    score = np.array([-301.0, 301.0]) * math.log(10.0)
    share = model.probabilities(score)
    np.testing.assert_allclose(share[[0, 1], [1, 0]], 1e-301, rtol=1e-12)
    assert share[[0, 1], [0, 1]].tolist() == [1.0, 1.0]


def test_predictions_of_sums_keep_small_probabilities():
    second = X[:, 0] > 11
    model = pb.fit_gradient_boosting(
        X,
        second,
        loss="log_loss",
        n_estimators=60,
        learning_rate=1.0,
        max_delta_step=None,
        l2_regularization=0.0,
        subsample=None,
    )
    share = pb.predict_proba(model, X)
    assert (share[second, 0] < 1e-300).all()
    np.testing.assert_array_equal(share[second, 0], share[~second, 1])
