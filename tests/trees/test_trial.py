"""The trial by which large tables choose a growth: the twin, what it depends on, what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from reference import trial as twin
from reference.rounds import Columns
from round_cases import steps_and_limits, weighed, wide_case

import pboost as pb
from pboost.threads import Workers
from pboost.trees import pooling, trial
from pboost.trees.restraints import Restraints


def both(seed, n_rows):
    """Return what the kernel's trees and the twin's say of a case whose weights are copies."""
    name = ("logistic", "squared", "exponential", "huber")[seed % 4]
    columns, y, loss, weight, _, options = wide_case(name, n=100, seed=seed, max_bins=6)
    copies = np.ceil(3 * weight)
    options |= {"depth": 3 + seed % 2, "min_leaf": 1, "smoothing": 0.0}
    steps, limits = steps_and_limits(options)
    found = trial.is_symmetric_better(
        columns, y, loss, weighed(copies), options["bias"], limits, steps, Restraints(), Workers(1)
    )
    bins, bias = columns.columns, options["bias"]
    options = {name: of for name, of in options.items() if name not in ("rate", "bias")}
    expected = twin.is_symmetric_better(
        Columns(bins.codes, bins.n_bins, bins.special), y, loss, copies.astype(int), bias,
        n_rows=n_rows, trees=2, errors=0.5, **options,
    )  # fmt: skip
    return found, expected


def test_equals_the_twin(monkeypatch):
    for name in ("TREES", "SHALLOW_TREES"):
        monkeypatch.setattr(trial, name, 2)
    monkeypatch.setattr(trial, "TRIAL_ROWS", 120)
    monkeypatch.setattr(trial, "STANDARD_ERRORS", 0.5)
    found = [both(seed, 120) for seed in range(16)]
    assert [a for a, _ in found] == [b for _, b in found]
    assert 3 < sum(a for a, _ in found) < 13


def test_hashes_are_those_of_the_twin():
    codes = np.random.default_rng(0).integers(0, 256, (5, 9000)).astype(np.uint8)
    found = trial.hashes(codes)
    assert found.tolist() == [twin.content(of) for of in codes.T]
    assert abs(np.mean(found < 2**63) - 0.5) < 0.02


def products(n=20_000, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20)).round(2)
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * X[:, 4] * X[:, 5]
    return X, (z + rng.normal(size=n) > 0).astype(int)


def regions(n=6000, seed=0):
    """Return rows of which another column counts in each of eight regions."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 11))
    region = (X[:, :3] > 0) @ [1, 2, 4]
    return X, (X[np.arange(n), 3 + region] + 0.3 * rng.normal(size=n) > 0).astype(int)


def growth_of(X, y, **options):
    return pb.fit_stagewise(X, y, **{"max_depth": 6, "steps": 2, **options}).settings["growth"]


def test_products_are_shared_and_regions_are_not():
    assert growth_of(*products()) == "symmetric"
    assert growth_of(*regions(40_000)) == "free"
    X, y = products()
    assert growth_of(X, X[:, 0] * X[:, 1] + X[:, 2] + y) == "symmetric"


def test_the_model_is_that_of_the_growth_it_says_and_goes_on():
    X, y = products()
    auto = pb.fit_stagewise(X, y, max_depth=6, steps=4)
    symmetric = pb.fit_stagewise(X, y, max_depth=6, steps=4, growth="symmetric")
    assert np.array_equal(auto.trees.value, symmetric.trees.value)
    more = pb.continue_fit(pb.fit_stagewise(X, y, max_depth=6, steps=2), X, y, steps=2)
    assert np.array_equal(more.trees.value, auto.trees.value)


def same(first, second, X):
    assert first.settings["growth"] == second.settings["growth"]
    return np.array_equal(pb.decision_function(first, X), pb.decision_function(second, X))


@pytest.mark.parametrize("make", [products, regions])
def test_order_threads_and_rows_without_weight_are_no_matter(make, monkeypatch):
    monkeypatch.setattr(pooling, "FEW_ROWS", 1000)
    monkeypatch.setattr(trial, "TRIAL_ROWS", 2000)
    X, y = make(3000)
    order = np.random.default_rng(1).permutation(len(y))
    options = {"max_depth": 6, "steps": 3}
    one = pb.fit_stagewise(X, y, n_threads=1, **options)
    assert same(one, pb.fit_stagewise(X, y, n_threads=3, **options), X)
    assert same(one, pb.fit_stagewise(X[order], y[order], **options), X)
    more = np.vstack([X, X[:500] + 7]), np.append(y, 1 - y[:500])
    weight = np.repeat([1.0, 0.0], [3000, 500])
    assert same(one, pb.fit_stagewise(*more, sample_weight=weight, **options), X)


@pytest.mark.parametrize("make", [products, regions])
def test_weights_are_copies(make, monkeypatch):
    monkeypatch.setattr(pooling, "FEW_ROWS", 1000)
    monkeypatch.setattr(trial, "TRIAL_ROWS", 3000)
    X, y = make(2000)
    copies = np.random.default_rng(2).integers(0, 4, len(y))
    options = {"max_depth": 6, "steps": 3, "sums": "wide"}
    weighed_ = pb.fit_stagewise(X, y, sample_weight=2.5 * copies, **options)
    copied = pb.fit_stagewise(X.repeat(copies, axis=0), y.repeat(copies), **options)
    assert same(weighed_, copied, X)


def test_of_all_rows_some_are_taken_by_what_is_in_them(monkeypatch):
    monkeypatch.setattr(trial, "TRIAL_ROWS", 1000)
    X, _ = products(4000)
    columns = pb.bin_columns(np.vstack([X, X[:1000]]))
    rows, is_out = trial.rows_of_trial(columns, trial.weights_of(np.ones(5000)))
    assert 850 < len(rows) < 1150
    assert abs(is_out.mean() - 0.2) < 0.05
    taken = np.isin(np.arange(5000), rows)
    out = np.isin(np.arange(5000), rows[is_out])
    for of in (taken, out):
        assert np.array_equal(of[:1000], of[4000:])


def test_few_different_rows_grow_freely_and_scale_is_no_matter():
    X = np.random.default_rng(0).integers(0, 2, (30_000, 2)).astype(float)
    assert growth_of(X, X[:, 0] != X[:, 1]) == "free"
    X, y = products()
    assert growth_of(X, (X[:, 0] * X[:, 1] + y) * 1e149, loss="squared") == growth_of(
        X, X[:, 0] * X[:, 1] + y, loss="squared"
    )


@pytest.mark.parametrize(
    ("options", "growth"),
    [
        ({"loss": "softmax"}, "free"), ({"max_depth": 2}, "free"), ({"max_depth": 3}, "free"),
        ({"max_leaves": 9}, "free"), ({"monotone": {0: 1}}, "free"),
        ({"features_per_tree": 16, "rng": 0}, "symmetric"), ({"loss": "exponential"}, "symmetric"),
        ({"validation": 0.2, "rng": 0}, "symmetric"),
    ],
)  # fmt: skip
def test_where_a_trial_is_held(options, growth):
    assert growth_of(*products(), **options) == growth


def test_three_levels_are_tried_on_many_rows_of_labels(monkeypatch):
    monkeypatch.setattr(pooling, "SHALLOW_ROWS", 6000)
    tried = []
    monkeypatch.setattr("pboost.trees.trial.is_symmetric_better",
                        lambda *case: bool(tried.append(case)) or True)  # fmt: skip
    X, y = products()
    assert growth_of(X, y, max_depth=3) == "symmetric"
    assert growth_of(X, X[:, 0] * X[:, 1], max_depth=3) == "free"
    assert len(tried) == 1
