"""Trees of sums that grow by gain per comparison: the twin, bits, budgets, settings, errors."""

from __future__ import annotations

import numpy as np
import pytest
from round_cases import (
    as_copies,
    assert_same,
    assert_twin,
    bundled_case,
    comparing,
    compiled,
    restrained_case,
    special_case,
    wide_case,
)

import pboost as pb
from pboost._core import boost
from pboost.trees import tree_rounds as rounds

MAKERS = [special_case, restrained_case, bundled_case]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_equals_the_twin(seed, make):
    for number in range(seed, seed + 20):
        assert_twin(comparing(make)(number), f"case {number}")


def test_weights_that_are_copies_equal_the_twin_of_the_copies():
    for seed in range(30):
        case, copied, rows = as_copies(comparing(MAKERS[seed % 3])(seed), seed)
        if case[4] is None or all(map(len, case[4])):
            assert_twin(copied, f"case {seed}", case, rows)


def wide():
    *case, options = wide_case(n=9000)
    return *case, {**options, "depth": 30, "comparisons": (5.0, 4.0), "max_leaf_nodes": 1024}


def test_slots_that_run_out_change_no_bit(monkeypatch):
    first = compiled(*wide())
    monkeypatch.setattr(rounds, "SLOT_BYTES", 1)
    assert_same(compiled(*wide()), first)


@pytest.fixture
def restored():
    yield
    boost.use_simd_level(2)


def test_without_simd_the_bits_are_the_same(restored):
    first = compiled(*wide())
    boost.use_simd_level(0)
    assert_same(compiled(*wide()), first)


def data(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)


OPTIONS = {"growth": "cost_efficient", "max_depth": None, "n_estimators": 6}


@pytest.mark.parametrize("how", ["two", "softmax", "one", "numbers", "soft", "bag"])
def test_trees_take_no_more_than_their_budgets_and_nearly_all(how):
    X, z = data()
    y, options = z > 0, {**OPTIONS, "tree_comparisons": (6.0, 2.5)}
    if how in ("softmax", "one"):
        y = np.digitize(z, [-1.0, 0.5])
        options |= {
            "loss": "softmax",
            "multi_strategy": "multi_output_tree" if how == "one" else "one_output_per_tree",
        }
    if how == "numbers":
        y = z
    if how == "soft":
        options["y_proba"], y = 1.0 / (1.0 + np.exp(-3.0 * z)), None
    if how == "bag":
        options |= {"subsample": 0.5, "rng": 1}
    model = pb.fit_gradient_boosting(X, y, **options)
    per_round = 3 if how == "softmax" else 1
    for k, tree in enumerate(model.trees):
        maximum, mean = (6.0 if k < per_round else 2.5), pb.prediction_cost(tree, X).mean()
        slack = 0.3 if how in ("bag", "soft") else 1e-12  # rows that the tree has not seen
        assert 0.9 * maximum - slack < mean <= maximum + slack


def test_weights_count_comparisons():
    X, z = data()
    weight = np.where(X[:, 3] > 0, 1.0, 0.01)
    model = pb.fit_gradient_boosting(
        X, z > 0, sample_weight=weight, **OPTIONS, tree_comparisons=3.0
    )
    for tree in model.trees:
        assert np.average(pb.prediction_cost(tree, X), weights=weight) <= 3.0 + 1e-9


@pytest.mark.parametrize("trees", ["one_output_per_tree", "multi_output_tree"])
def test_threads_change_no_bit(trees, monkeypatch):
    monkeypatch.setattr("pboost.threads.MIN_CELLS", 1)
    monkeypatch.setattr("pboost.threads.available_threads", lambda: 4)
    X, z = data()
    y = np.digitize(z, [-1.0, 0.5])
    models = [
        pb.fit_gradient_boosting(X, y, loss="softmax", multi_strategy=trees, n_threads=k, **OPTIONS)
        for k in (1, 4)
    ]
    assert np.array_equal(*(model.trees.threshold for model in models))
    assert np.array_equal(*(model.trees.value for model in models))


def test_it_is_better_for_the_same_comparisons():
    X, z = data(4000)
    y = z > 0
    options = {"learning_rate": 0.5, "n_estimators": 5}
    ours = pb.fit_gradient_boosting(
        X[:2000], y[:2000], **{**OPTIONS, **options}, tree_comparisons=3.0
    )
    level = pb.fit_gradient_boosting(
        X[:2000], y[:2000], max_depth=3, growth="independent", **options
    )
    errors = [np.mean(pb.predict(model, X[2000:]) != y[2000:]) for model in (ours, level)]
    assert pb.prediction_cost(ours, X[:2000]).mean() <= 15.0
    assert errors[0] < errors[1]


def test_settings_say_it_and_a_fit_goes_on(tmp_path):
    X, z = data(400)
    full_model = pb.fit_gradient_boosting(X, z > 0, tree_comparisons=(5.0, 2.0), **OPTIONS)
    part = pb.fit_gradient_boosting(
        X, z > 0, tree_comparisons=(5.0, 2.0), **{**OPTIONS, "n_estimators": 2}
    )
    pb.save(part, tmp_path / "model.npz")
    part = pb.load(tmp_path / "model.npz")
    assert part.settings["growth"] == "cost_efficient"
    assert part.settings["tree_comparisons"] == [5.0, 2.0]
    more = pb.continue_fit(part, X, z > 0, n_estimators=4)
    assert np.array_equal(more.trees.value, full_model.trees.value)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"growth": "independent"},
            ValueError,
            "tree_comparisons: expected None with growth='independent'",
        ),
        ({"tree_comparisons": 0.5}, ValueError, r"tree_comparisons: expected a number in \[1"),
        (
            {"tree_comparisons": ()},
            ValueError,
            "tree_comparisons: expected a number, or a sequence",
        ),
        ({"tree_comparisons": "4"}, TypeError, "tree_comparisons"),
        ({"search": "exact"}, NotImplementedError, 'growth: expected "independent" with search'),
    ],
)
def test_errors(options, kind, message):
    X, z = data(100)
    with pytest.raises(kind, match=message):
        pb.fit_gradient_boosting(X, z > 0, **{**OPTIONS, "tree_comparisons": 3.0, **options})
