"""Certificates that were sums of fixed-point masses, in which small weights are 0."""

import numpy as np
import pandas as pd
import pytest

import pboost as pb

#: Relative difference of a stored certificate and the one computed anew.
CLOSE = {"rel": 1e-9}
ONE = {"join": "all", "smoothing": 0, "learning_rate": 1}
LEVELS = pd.DataFrame({"c": pd.Categorical(["c", "b", "a"])})
HEAVY = np.array([1e-2, 1.0, 1e-19])


def anew(model, X, y, weight=None):
    """Return the certificate computed from the rows, and see that it bounds the error."""
    bound = pb.certificate(model, X, y, sample_weight=weight)
    error = np.average(pb.predict(model, X) != np.asarray(y), weights=weight)
    assert error <= len(model.classes) / 2 * pb.certificate(model) * (1 + 1e-9)
    return bound


def test_a_label_that_is_settled_gets_no_further_vote():
    X, y = np.array([[3.0], [1], [6], [0], [3], [4], [6]]), [0, 0, 0, 0, 3, 2, 1]
    model = pb.fit_matryoshka(X, y, shape=(3, 5), **ONE)
    assert pb.certificate(model) == pytest.approx(anew(model, X, y), **CLOSE)
    assert 0 < pb.certificate(model) < 1
    assert (np.diff(model.record.certificate) <= 1e-12).all()


def test_votes_of_settled_labels_do_not_overflow():
    X, y = np.array([[1.0], [6], [4], [3], [4], [3], [7], [2]]), [3, 2, 0, 4, 4, 4, 1, 2]
    model = pb.fit_matryoshka(X, y, shape=(5, 4), **ONE)
    assert pb.certificate(model) == pytest.approx(anew(model, X, y), **CLOSE)


@pytest.mark.parametrize("smoothing", [0, 1e-4])
@pytest.mark.parametrize("observation", [pb.observation.exact(), pb.observation.adatree2()])
def test_a_level_without_mass_lies_where_the_model_sends_it(observation, smoothing):
    more = {**ONE, "smoothing": smoothing, "observation": observation}
    model = pb.fit_matryoshka(LEVELS, [0, 1, 0], shape=(1, 5), sample_weight=HEAVY, **more)
    actual = anew(model, LEVELS, [0, 1, 0], HEAVY)
    assert pb.certificate(model) == pytest.approx(actual, **CLOSE)
