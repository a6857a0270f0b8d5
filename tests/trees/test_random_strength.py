"""`random_strength`: scores of splits with jitter, its size, and what does not change it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import pooled, rounds
from round_cases import assert_equals_twin, compiled, pooled_case, restrained_case, special_case
from softmax_cases import assert_same_model

import pboost as pb
from pboost.trees.pooled_growth import SHARES
from pboost.trees.tree_rounds import Rounds


def table(n=240, seed=0):
    """Return noisy features with missing values, classes and row weights that are copies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    label = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 2 * rng.normal(size=n) > 0, 1, 0)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, label, rng.integers(1, 4, n).astype(float)


def fit(X, y=None, **options):
    options = {"random_strength": 0.5, "n_estimators": 4, "max_depth": 4, **options}
    return pb.fit_gradient_boosting(X, y, **options)


def compare(case, at, monkeypatch):
    """Compare rounds with those of the twin, which takes the size of the jitter from them."""
    columns, y, loss, weight, listed, options = case
    held = {"random_strength": 0.7, "jitter_key": 5 + 2**60}
    jitters, jitter = [], Rounds._jitter

    def recorded(self, squares):
        jitters.append(jitter(self, squares))
        return jitters[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Rounds, "_jitter", recorded)
        actual = compiled(columns, y, loss, weight, listed, {**options, **held})
    assert len(jitters) == 3
    assert jitters[0] > 0
    twin, options = rounds, dict(options)
    if "growth" in options:
        twin, options["pooling"] = pooled, SHARES[options.pop("growth")]
    bins = columns.columns
    special = np.zeros(len(bins.n_bins), int) if bins.special is None else bins.special
    expected = twin.fit(
        rounds.Columns(bins.codes, bins.n_bins, special),
        y,
        loss,
        weight,
        n_estimators=3,
        listed=listed,
        jitters=jitters,
        jitter_key=held["jitter_key"],
        **options,
    )
    assert np.array_equal(actual[-1][1], expected.f), at
    for (grown, _, _), nodes, values in zip(
        actual[1:], expected.trees, expected.values, strict=True
    ):
        assert_equals_twin(grown, nodes, values, at)


@pytest.mark.parametrize("make", [special_case, restrained_case, pooled_case])
def test_equals_the_twin(make, monkeypatch):
    for seed in range(24):
        compare(make(seed), f"case {seed}", monkeypatch)


@pytest.mark.parametrize("weights", ["none", "copies", "fractions"])
def test_the_jitter_is_a_share_of_the_newton_step_and_fades(weights, monkeypatch):
    X, label, copies = table()
    fractions = np.random.default_rng(1).uniform(0.5, 2.0, 240)
    weight = {"none": None, "copies": copies, "fractions": fractions}[weights]
    jitters, jitter = [], Rounds._jitter
    monkeypatch.setattr(
        Rounds, "_jitter", lambda self, squares: jitters.append(jitter(self, squares)) or 0.0
    )
    options = {"init": "zero", "learning_rate": 0.3, "n_estimators": 20}
    fit(X, label, sample_weight=weight, **options)
    # Gradients are 1/2 and Hessians 1/4 at first. Their units are 2**-18 and 2**-20.
    n, of_row = (240, 1.0) if weight is None else (weight.sum(), 1.0)
    if weights == "fractions":
        n, of_row = 240, weight.mean() / weight.max()
    expected = 0.5 * 2.0**18 / 2.0**10 * math.sqrt(of_row) * n / (1.0 + n)
    np.testing.assert_allclose(jitters[0], expected, rtol=1e-3)
    rest = n * 0.7**19
    assert jitters[-1] < 1.2 * jitters[0] * rest / (1.0 + rest)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"growth": "independent"},
        {"max_leaf_nodes": 7},
        {"histogram_precision": "wide"},
        {"loss": "softmax"},
        {"subsample": 0.6},
    ],
    ids=str,
)
def test_threads_orders_copies_and_partitions(options):
    X, label, copies = table()
    model = fit(X, label, sample_weight=copies, **options)
    plain = fit(X, label, sample_weight=copies, **options, random_strength=0.0)
    assert not np.array_equal(model.training_loss, plain.training_loss)
    assert_same_model(model, fit(X, label, sample_weight=copies, n_threads=2, **options))
    order = np.random.default_rng(1).permutation(len(X))
    assert_same_model(model, fit(X[order], label[order], sample_weight=copies[order], **options))
    rows = np.repeat(np.arange(len(X)), copies.astype(int))
    assert_same_model(model, fit(X[rows], label[rows], **options))
    parts = np.array_split(np.arange(len(X)), 3)
    source = pb.partitions(
        [X[k] for k in parts], [label[k] for k in parts], sample_weight=[copies[k] for k in parts]
    )
    assert_same_model(model, fit(source, **options))


def test_the_seed_and_continued_fits():
    X, label, _ = table()
    model = fit(X, label)
    assert_same_model(model, fit(X, label, rng=0))
    other = fit(X, label, rng=1)
    assert not np.array_equal(model.training_loss, other.training_loss)
    more = pb.continue_fit(other, X, label, n_estimators=2)
    assert_same_model(more, fit(X, label, rng=1, n_estimators=6))


def test_defaults_of_losses():
    X, label, _ = table()
    softmax = pb.fit_gradient_boosting(X, label, loss="softmax", n_estimators=1)
    assert softmax.settings["random_strength"] == 0.3
    for options in ({"loss": "log_loss"}, {"task": "regression", "feature_costs": {0: 1.0}}):
        model = pb.fit_gradient_boosting(X, label, n_estimators=1, **options)
        assert model.settings["random_strength"] == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"feature_costs": {0: 1.0}},
        {"growth": "cost_efficient"},
        {"search": "exact"},
        {"loss": "softmax", "multi_strategy": "multi_output_tree"},
    ],
    ids=str,
)
def test_what_is_refused(options):
    X, label, _ = table(60)
    with pytest.raises(NotImplementedError, match=r"^random_strength: expected"):
        fit(X, label, **options)
