"""Helpers of the tests: build what the twins describe, and compare models."""

from __future__ import annotations

import numpy as np

import pboost as pb

ARRAYS = ("feature", "threshold", "next", "vote")


def stump(criterion="kearns_mansour", max_bins=None, min_weight_fraction=0.0, min_samples_leaf=1):
    """Return the weak learner of the twins' options; `max_bins` None: exact search."""
    bins = {"search": "exact"} if max_bins is None else {"search": "binned", "max_bins": max_bins}
    return pb.weak.stump(
        criterion=criterion,
        min_weight_fraction=min_weight_fraction,
        min_samples_leaf=min_samples_leaf,
        **bins,
    )


def fit_like_adaboost(
    problem,
    *,
    n_estimators,
    criterion="kearns_mansour",
    max_bins=None,
    min_weight_fraction=0.0,
    min_samples_leaf=1,
    **options,
):
    weak = stump(criterion, max_bins, min_weight_fraction, min_samples_leaf)
    return pb.fit_adaboost(
        problem.X,
        problem.y,
        n_estimators=n_estimators,
        weak_learner=weak,
        sample_weight=problem.weight,
        **options,
    )


def fit_like_tree(
    problem,
    *,
    max_nodes=None,
    criterion="kearns_mansour",
    max_bins=None,
    min_weight_fraction=0.0,
    min_samples_leaf=1,
    **options,
):
    weak = stump(criterion, max_bins, min_weight_fraction, min_samples_leaf)
    return pb.fit_boosted_tree(
        problem.X,
        problem.y,
        max_nodes=max_nodes,
        weak_learner=weak,
        sample_weight=problem.weight,
        **options,
    )


def assert_equals_twin(model, twin, case=""):
    """Compare a model with a twin, node by node."""
    case = f"case {case}"
    np.testing.assert_array_equal(model.feature, twin.feature, case)
    np.testing.assert_array_equal(model.threshold, twin.threshold, case)
    if hasattr(twin, "next"):
        np.testing.assert_array_equal(model.next, twin.next, case)
    np.testing.assert_allclose(model.vote, twin.vote, rtol=0, atol=1e-9, err_msg=case)
    np.testing.assert_allclose(model.bias, twin.bias, rtol=0, atol=1e-9, err_msg=case)
    np.testing.assert_allclose(
        model.record.certificate, twin.certificate, rtol=1e-9, atol=0, err_msg=case
    )


def assert_same_model(one, other, votes=1e-10):
    """Same splits, votes and certificates to `votes`."""
    for name in ("feature", "threshold", "next"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    np.testing.assert_allclose(one.vote, other.vote, rtol=0, atol=votes)
    np.testing.assert_allclose(one.bias, other.bias, rtol=0, atol=votes)
    np.testing.assert_allclose(one.record.certificate, other.record.certificate, rtol=1e-9)


def assert_identical(one, other):
    """Same bits in everything a model carries."""
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype, name
        assert a.shape == b.shape, name
        assert a.tobytes() == b.tobytes(), name
    assert one.bias == other.bias
    assert one.classes.tolist() == other.classes.tolist()
    assert one.n_features == other.n_features
    assert one.record.certificate.tobytes() == other.record.certificate.tobytes()
    assert one.record.cost.tobytes() == other.record.cost.tobytes()
    assert one.record.stop_reason == other.record.stop_reason
    np.testing.assert_array_equal(one.record.stages, other.record.stages)


def truncated(model, n_nodes):
    """Return the graph of the first `n_nodes` nodes."""
    next_ = model.next[:n_nodes].copy()
    next_[next_ >= n_nodes] = -1
    record = pb.models.TrainingRecord(
        model.record.certificate[: n_nodes + 1], model.record.cost[: n_nodes + 1], "truncated"
    )
    return pb.models.DecisionGraph(
        feature=model.feature[:n_nodes],
        threshold=model.threshold[:n_nodes],
        next=next_,
        vote=model.vote[:n_nodes],
        classes=model.classes,
        n_features=model.n_features,
        feature_names=model.feature_names,
        bias=model.bias,
        settings=model.settings,
        record=record,
    )
