"""continue_fit: two fits one after the other are one fit of both sizes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from soft_models import GROWTHS, OBSERVATIONS, graphs, noisy, observation

import pboost as pb

EVERY = ("exact", *OBSERVATIONS)
WEAKS = {
    "exact": pb.weak.stump(),
    "binned": pb.weak.stump("gini", "binned", max_bins=16, min_samples_leaf=3),
}
each_observation = pytest.mark.parametrize("kind", EVERY)
each_weak = pytest.mark.parametrize("weak", WEAKS.values(), ids=WEAKS)


def assert_same_bits(model, expected):
    for name in ("feature", "threshold", "next", "vote", "answer"):
        assert np.array_equal(getattr(model, name), getattr(expected, name)), name
    assert model.bias == expected.bias
    assert (model.record.certificate == expected.record.certificate).all()
    assert (model.record.cost == expected.record.cost).all()
    assert model.record.stop_reason == expected.record.stop_reason


@each_observation
@each_weak
@pytest.mark.parametrize("votes", ["domain", "symmetric"])
def test_chain_goes_on(kind, weak, votes):
    X, y, weight = noisy(1)
    X = X.round(1)
    fit = partial(
        pb.fit_adaboost,
        X,
        y,
        weak_learner=weak,
        votes=votes,
        observation=observation(kind, 0.1),
        sample_weight=weight,
        smoothing=1e-3,
        learning_rate=0.5,
    )
    longer = pb.continue_fit(fit(n_estimators=8), X, y, n_estimators=12, sample_weight=weight)
    assert_same_bits(longer, fit(n_estimators=20))


@each_observation
@each_weak
@pytest.mark.parametrize("growth", GROWTHS)
def test_tree_goes_on(kind, weak, growth):
    X, y, weight = noisy(2)
    X = X.round(1)
    fit = partial(
        pb.fit_boosted_tree,
        X,
        y,
        weak_learner=weak,
        growth=growth,
        observation=observation(kind, 0.1),
        sample_weight=weight,
        smoothing=1e-3,
        learning_rate=0.5,
        max_depth=7,
    )
    longer = pb.continue_fit(fit(max_nodes=9), X, y, max_nodes=16, sample_weight=weight)
    assert_same_bits(longer, fit(max_nodes=25))


@pytest.mark.parametrize("prepared", [pb.data.sort_columns, pb.data.bin_columns])
def test_columns_prepared_before(prepared):
    X, y, _ = noisy(3)
    columns = prepared(X)
    tree = pb.continue_fit(pb.fit_boosted_tree(columns, y, max_nodes=5), columns, y, max_nodes=9)
    assert_same_bits(tree, pb.fit_boosted_tree(columns, y, max_nodes=14))
    chain = pb.continue_fit(pb.fit_adaboost(columns, y, n_estimators=5), columns, y, n_estimators=9)
    assert_same_bits(chain, pb.fit_adaboost(columns, y, n_estimators=14))


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    model = pb.fit_boosted_tree(X, y, max_nodes=5)
    first, two = (pb.continue_fit(model, X, y, max_nodes=9, n_threads=n) for n in (1, 2))
    assert_same_bits(two, first)
    assert_same_bits(first, pb.fit_boosted_tree(X, y, max_nodes=14))


def test_loaded_models_and_prefixes_go_on(tmp_path):
    X, y, _ = noisy(4)
    pb.save(pb.fit_boosted_tree(X, y, max_nodes=12), tmp_path / "model.npz")
    model = pb.models.truncate(pb.load(tmp_path / "model.npz"), 7)
    longer = pb.continue_fit(model, X, y, max_nodes=8)
    assert_same_bits(longer, pb.fit_boosted_tree(X, y, max_nodes=15))
    pb.save(longer, tmp_path / "model.npz")
    again = pb.load(tmp_path / "model.npz")
    assert_same_bits(
        pb.continue_fit(again, X, y, max_nodes=3), pb.fit_boosted_tree(X, y, max_nodes=18)
    )
    assert [more["max_nodes"] for more in again.settings["continued"]] == [8]


def test_a_model_without_error_stays():
    X, y = np.arange(6.0).reshape(-1, 1), [0, 0, 0, 1, 1, 1]
    model = pb.fit_adaboost(X, y, n_estimators=3)
    assert_same_bits(
        pb.continue_fit(model, X, y, n_estimators=3), pb.fit_adaboost(X, y, n_estimators=6)
    )
    assert model.n_nodes == 1


def test_a_model_without_nodes_begins():
    X, y, _ = noisy(5)
    nothing = pb.fit_boosted_tree(np.zeros((4, 3)), [-1, -1, -1, 1], max_nodes=3)
    assert nothing.n_nodes == 0
    assert_same_bits(
        pb.continue_fit(nothing, X, y, max_nodes=6), pb.fit_boosted_tree(X, y, max_nodes=6)
    )
    assert_same_bits(
        pb.continue_fit(nothing, X, y, n_estimators=6), pb.fit_adaboost(X, y, n_estimators=6)
    )
    same = pb.continue_fit(nothing, np.zeros((4, 3)), [-1, -1, -1, 1], max_nodes=3)
    assert same.bias == nothing.bias


@each_observation
@pytest.mark.parametrize("how", [{"n_estimators": 4}, {"max_nodes": 4}])
def test_any_graph_goes_on(kind, how):
    """The old nodes stay, the certificate holds on old and new data, and what joins joins."""
    X, y, _ = noisy(6)
    other = noisy(7, n=40)
    for model in graphs(X, y, kind):
        for data in ((X, y), other[:2]):
            for answers in (None, observation("exact"), observation("adatree2")):
                longer = pb.continue_fit(model, *data, observation=answers, **how)
                n = model.n_nodes
                assert (longer.feature[:n] == model.feature).all()
                assert (longer.threshold[:n] == model.threshold).all()
                assert (longer.vote[:n] == model.vote).all()
                assert (longer.next[:n][model.next >= 0] == model.next[model.next >= 0]).all()
                actual = [pb.certificate(m, *data) for m in (model, longer)]
                stored = longer.record.certificate[[n, -1]]
                np.testing.assert_allclose(actual, stored, rtol=1e-9)
                if data[0] is X:
                    np.testing.assert_allclose(stored[0], model.record.certificate[-1], rtol=1e-9)
                if "n_estimators" in how and longer.n_nodes > n:
                    assert (longer.next[:n][model.next < 0] == n).all()
                if "max_nodes" in how:
                    entrances = longer.next[longer.next >= n]
                    assert len(np.unique(entrances)) == len(entrances) == longer.n_nodes - n
                if answers is None and kind == "exact":
                    assert longer.n_nodes == n + 4


def test_largest_bound_is_split_first():
    X, y, _ = noisy(8)
    model = pb.fit_adaboost(X, y, n_estimators=2)
    steps = []
    longer = pb.continue_fit(
        model, X, y, max_nodes=1, callback=lambda step, record: steps.append((step, record))
    )
    ((step, record),) = steps
    above = X[np.arange(len(X))[:, None], model.feature] > model.threshold
    loss = np.exp(-pb.decision_function(model, X) * y) / len(y)
    bounds = [loss[above[:, 1] == side].sum() for side in (False, True)]
    assert step == 3
    assert record.parents == ((1, int(np.argmax(bounds))),)
    np.testing.assert_allclose(record.bound, max(bounds))
    assert longer.n_nodes == 3


def test_rows_of_few_exits():
    """Most exits of the model get no row of the new data."""
    X, y, _ = noisy(9)
    few = np.array([[9.0, 9, 9], [9, 9, 9.5], [-9, 9, 9], [9, -9, 9]]), [1, -1, 1, -1]
    for kind in ("exact", "flip", "adatree2"):
        for model in graphs(X, y, kind):
            for how in ({"n_estimators": 3}, {"max_nodes": 3}):
                longer = pb.continue_fit(model, *few, **how)
                np.testing.assert_allclose(
                    pb.certificate(longer, *few), longer.record.certificate[-1], rtol=1e-9
                )


def test_the_callback_may_stop():
    X, y, _ = noisy(10)
    for model in graphs(X, y, "exact"):
        for how in ({"n_estimators": 9}, {"max_nodes": 9}):
            n = model.n_nodes
            longer = pb.continue_fit(
                model, X, y, callback=lambda step, record, n=n: step == n + 2, **how
            )
            assert longer.n_nodes == n + 2
            assert longer.record.stop_reason == "stopped by the callback"


def test_names_and_labels_stay():
    pandas = pytest.importorskip("pandas")
    X, y, _ = noisy(11)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    labels = np.where(y > 0, "yes", "no")
    model = pb.fit_adaboost(frame, labels, n_estimators=3)
    longer = pb.continue_fit(model, frame[["c", "a", "b"]], labels, n_estimators=4)
    assert longer.feature_names == ("a", "b", "c")
    assert longer.classes.tolist() == ["no", "yes"]
    assert_same_bits(longer, pb.fit_adaboost(frame, labels, n_estimators=7))


def test_bad_input():
    X, y, _ = noisy(12)
    model = pb.fit_boosted_tree(X, y, max_nodes=5)
    more = partial(pb.continue_fit, model)
    for sizes in ({}, {"n_estimators": 1, "max_nodes": 1}):
        with pytest.raises(ValueError, match="n_estimators, max_nodes: expected exactly one"):
            more(X, y, **sizes)
    with pytest.raises(ValueError, match="max_nodes: expected an integer from 1"):
        more(X, y, max_nodes=0)
    with pytest.raises(TypeError, match="model: expected a model"):
        pb.continue_fit("model", X, y, max_nodes=1)
    with pytest.raises(ValueError, match=r"X: expected 3 (columns|features), got 2"):
        more(X[:, :2], y, max_nodes=1)
    with pytest.raises(ValueError, match=r"X: expected 3 (columns|features), got 2"):
        more(pb.data.sort_columns(X[:, :2]), y, max_nodes=1)
    with pytest.raises(ValueError, match="y: expected class labels of the model"):
        more(X, y + 5, max_nodes=1)
    with pytest.raises(ValueError, match="growth"):
        more(X, y, n_estimators=1, growth="look_ahead")
    with pytest.raises(ValueError, match="smoothing"):
        more(X, y, max_nodes=1, smoothing=2)
    with pytest.raises(TypeError, match="weak"):
        more(X, y, max_nodes=1, weak_learner="stump")


def test_bins_that_do_not_tell_sides():
    X, y, _ = noisy(13)
    other = noisy(14)
    coarse = pb.weak.stump(search="binned", max_bins=4)
    for model in (pb.fit_adaboost(X, y, n_estimators=5), pb.fit_boosted_tree(X, y, max_nodes=5)):
        with pytest.raises(ValueError, match="inside a bin"):
            pb.continue_fit(model, other.X, other.y, n_estimators=1, weak_learner=coarse)
        with pytest.raises(ValueError, match="inside a bin"):
            pb.continue_fit(model, other.X, other.y, max_nodes=1, weak_learner=coarse)
