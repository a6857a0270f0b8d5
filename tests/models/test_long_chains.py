"""Chains of hundreds of rounds on separable data, where weights span many orders of magnitude."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb


@pytest.fixture(scope="module")
def separable():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 12)).round(2)
    y = X[:, :4].sum(axis=1) + 0.2 * X[:, 4] > 0.1
    return X, y


@pytest.mark.parametrize("smoothing", [0.0, 1e-4])
@pytest.mark.parametrize("criterion", ["kearns_mansour", "gini", "entropy", "error"])
def test_certificate_keeps_falling(separable, criterion, smoothing):
    X, y = separable
    weak = pb.weak.stump(criterion)
    model = pb.fit_adaboost(X, y, n_estimators=800, weak_learner=weak, smoothing=smoothing)
    certificate = model.record.certificate
    assert model.n_nodes == 800, model.record.stop_reason
    assert (np.diff(certificate) < 0).all()
    assert np.abs(model.vote).max() < 19
    # The stored product of 800 factors against the sum over the data.
    assert pb.certificate(model, X, y) == pytest.approx(certificate[-1], rel=1e-9)
    assert (pb.predict(model, X) == y).all()


def test_cuts_near_purity_are_found_again(separable):
    """The last rounds put nearly all weight on few rows; each cut must still be a real one."""
    X, y = separable
    model = pb.fit_adaboost(X, y, n_estimators=800, smoothing=0)
    shrink = model.record.certificate[1:] / model.record.certificate[:-1]
    assert shrink.max() < 0.999
