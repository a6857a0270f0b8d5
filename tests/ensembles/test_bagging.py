"""Bagging of builders and of other callables."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import pboost as pb
from pboost.data.resampling import make_bags
from pboost.values import as_generator


def problem(n=300, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 4))
    return X, np.array(["no", "yes"])[(X[:, 0] * X[:, 1] + 0.2 * r.normal(size=n) > 0).astype(int)]


class Mean:
    """Predicts the weighted mean of the targets."""

    def __init__(self, X, y, sample_weight, offset=0.0):
        self.weight = sample_weight
        self.number = np.average(y, weights=sample_weight) + offset

    def predict(self, X):
        return np.full(len(X), self.number)


@pytest.mark.parametrize(
    ("fit", "options"),
    [
        (partial(pb.fit_adaboost, n_estimators=10), {}),
        (pb.fit_boosted_tree, {"max_nodes": 8}),
        (pb.fit_boosted_tree, {"max_nodes": 8, "weak_learner": pb.weak.stump(search="binned")}),
        (pb.fit_boosted_tree, {"max_nodes": 4, "weak_learner": pb.weak.affine(n_directions=8)}),
        (pb.fit_matryoshka, {}),
        (pb.fit_cart, {"max_depth": 4, "max_features": 2}),
        (pb.fit_pruned_cart, {"cv": 3, "max_depth": 4}),
    ],
)
def test_builders(fit, options):
    X, y = problem()
    first, two = (
        pb.fit_bagging(fit, X, y, n_estimators=6, voting="hard", rng=4, n_threads=k, **options)
        for k in (1, 2)
    )
    new = problem(100, seed=1)[0]
    votes = sum(
        (pb.predict(model, new)[:, None] == ["no", "yes"]).astype(float) for model in first.models
    )
    assert np.array_equal(pb.predict_proba(first, new), votes / 6)
    assert np.array_equal(pb.predict_proba(first, new), pb.predict_proba(two, new))
    assert np.array_equal(first.oob.prediction, two.oob.prediction, equal_nan=True)
    assert np.array_equal(pb.predict(first, new), first.classes[votes.argmax(axis=1)])
    assert first.oob.error < 0.5


@pytest.mark.parametrize(
    ("fit", "options"),
    [
        (pb.fit_boosted_tree, {"max_nodes": 8}),
        (pb.fit_cart, {"max_depth": 3}),
        (partial(pb.fit_real_adaboost, n_estimators=4), {"weak_learner": pb.weak.feature()}),
        (partial(pb.fit_gradient_boosting, n_estimators=4), {"loss": "log_loss"}),
        (pb.fit_probit_tree, {"max_iter": 4, "max_depth": 1}),
        (partial(pb.fit_bagging, pb.fit_cart, n_estimators=2, rng=0), {"max_depth": 2}),
    ],
)
def test_probabilities_of_members_are_averaged(fit, options):
    X, y = problem()
    bagging = pb.fit_bagging(fit, X, y, n_estimators=5, rng=4, **options)
    assert bagging.voting == bagging.settings["voting"] == "soft"
    new = problem(100, seed=1)[0]
    share = np.mean([pb.predict_proba(model, new) for model in bagging.models], axis=0)
    np.testing.assert_allclose(pb.predict_proba(bagging, new), share, atol=1e-15)
    assert np.array_equal(pb.predict(bagging, new), bagging.classes[share.argmax(axis=1)])
    np.testing.assert_allclose(
        pb.decision_function(bagging, new), share[:, 1] - share[:, 0], atol=1e-15
    )
    text = "probabilities are averaged over the base learners"
    assert text in pb.describe(bagging).splitlines()
    votes = replace(bagging, voting="hard")
    assert text not in pb.describe(votes)
    labels = np.array([pb.predict(model, new) == "yes" for model in bagging.models])
    assert np.array_equal(pb.predict_proba(votes, new)[:, 1], labels.mean(axis=0))


def test_rows_out_of_bags_are_told_the_same():
    X, y = problem()
    bagging = pb.fit_bagging(pb.fit_cart, X, y, n_estimators=7, max_depth=3, rng=2)
    bags = make_bags(None, 300, None, True, as_generator(2))
    out = np.array([bags.draw(k)[0] == 0 for k in range(7)])
    said = np.array([pb.predict_proba(model, X) for model in bagging.models])
    expected = (said * out[:, :, None]).sum(axis=0)[out.any(axis=0)]
    actual = bagging.oob.prediction[out.any(axis=0)]
    np.testing.assert_allclose(actual, expected / out.sum(axis=0)[out.any(axis=0), None])
    wrong = bagging.classes[actual.argmax(axis=1)] != y[out.any(axis=0)]
    assert bagging.oob.error == pytest.approx(wrong.mean())


class Sign:
    """Says labels, and no probabilities."""

    def __init__(self, X, y, sample_weight):
        self.column = np.argmax(np.abs((X * np.where(y == "yes", 1, -1)[:, None]).sum(axis=0)))

    def predict(self, X):
        return np.where(X[:, self.column] > 0, "yes", "no")


@pytest.mark.parametrize(
    ("fit", "options"),
    [(pb.fit_gradient_boosting, {"loss": "hinge", "n_estimators": 3}), (Sign, {})],
)
def test_members_without_probabilities_vote(fit, options):
    X, y = problem()
    options |= {"n_estimators": 5, "rng": 1}
    average = pb.fit_bagging(fit, X, y, **options)
    majority = pb.fit_bagging(fit, X, y, voting="hard", **options)
    assert np.array_equal(pb.predict_proba(average, X), pb.predict_proba(majority, X))
    assert average.oob.error == majority.oob.error
    assert set(np.unique(pb.predict_proba(average, X) * 5).round(9)) <= set(range(6))


def test_members_that_lack_a_class():
    """They give it no probability; the label is that of the largest mean."""
    X, _ = problem()
    y = np.array(["ash", "elm", "oak"])[(X[:, 0] > 0).astype(int)]
    y[:2] = "oak"
    fit = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3)
    bagging = pb.fit_bagging(fit, X, y, n_estimators=12, max_samples=60, rng=0)
    lacking = [model for model in bagging.models if "oak" not in model.classes]
    assert 0 < len(lacking) < 12
    expected = np.zeros((300, 3))
    for model in bagging.models:
        expected[:, np.searchsorted(bagging.classes, model.classes)] += (
            pb.predict_proba(model, X) / 12
        )
    np.testing.assert_allclose(pb.predict_proba(bagging, X), expected, atol=1e-15)


def test_of_numbers_there_is_no_majority():
    X, _ = problem()
    with pytest.raises(ValueError, match='voting: expected "soft" for regression'):
        pb.fit_bagging(Mean, X, X[:, 0], task="regression", voting="hard", n_estimators=2)
    with pytest.raises(ValueError, match="voting: expected one of 'hard', 'soft'"):
        pb.fit_bagging(pb.fit_cart, X, X[:, 0] > 0, voting="mean")


def test_members_are_fits_to_weighted_rows():
    """One member without a draw is the fit itself."""
    X, y = problem()
    bagging = pb.fit_bagging(
        pb.fit_boosted_tree, X, y, n_estimators=1, bootstrap=False, max_nodes=9
    )
    model = pb.fit_boosted_tree(X, y, max_nodes=9)
    assert np.array_equal(bagging.models[0].threshold, model.threshold)
    assert np.array_equal(bagging.models[0].vote, model.vote)
    assert np.isnan(bagging.oob.error)
    assert not bagging.oob.n_estimators.any()


@pytest.mark.parametrize(("replace", "bag"), [(True, None), (False, 100)])
def test_any_callable(replace, bag):
    X, _ = problem()
    y = X[:, 0] + 3.0
    w = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    bagging = pb.fit_bagging(
        Mean,
        X,
        y,
        n_estimators=5,
        task="regression",
        bootstrap=replace,
        max_samples=bag,
        sample_weight=w,
        rng=0,
        offset=1.0,
    )
    assert pb.predict(bagging, X) == pytest.approx(np.mean([m.number for m in bagging.models]))
    drawn = np.array([m.weight for m in bagging.models])
    assert np.array_equal(bagging.oob.n_estimators, (drawn == 0).sum(axis=0))
    positive = w > 0
    copies = drawn[:, positive] / w[positive]
    assert (copies == np.rint(copies)).all()
    assert (copies.sum(axis=1) == (bag or positive.sum())).all()
    assert not drawn[:, ~positive].any()
    assert replace or copies.max() == 1
    number = np.array([m.number for m in bagging.models])[:, None]
    with np.errstate(invalid="ignore"):
        out = np.where(drawn == 0, number, 0).sum(axis=0) / (drawn == 0).sum(axis=0)
    assert bagging.oob.prediction == pytest.approx(out, nan_ok=True)


def test_bags_differ_and_follow_the_seed():
    X, _ = problem()
    options = {"n_estimators": 4, "task": "regression"}
    first, again, other = (
        [m.number for m in pb.fit_bagging(Mean, X, X[:, 0], rng=k, **options).models]
        for k in (1, 1, 2)
    )
    assert first == again
    assert len({*first, *other}) == 8


def test_pickle_describe_and_files(tmp_path):
    X, y = problem()
    bagging = pb.fit_bagging(pb.fit_cart, X, y, n_estimators=3, max_depth=2, rng=0)
    copy = pickle.loads(pickle.dumps(bagging))
    assert np.array_equal(pb.predict(copy, X), pb.predict(bagging, X))
    assert pb.describe(bagging).startswith("fit_bagging of fit_cart: 3 base learners, 4 features")
    pb.save(bagging, tmp_path / "model.npz")
    assert np.array_equal(pb.predict(pb.load(tmp_path / "model.npz"), X), pb.predict(bagging, X))


def test_bag_without_a_class():
    X, _ = problem()
    y = np.zeros(300, dtype=int)
    y[0] = 1
    bagging = pb.fit_bagging(
        partial(pb.fit_adaboost, n_estimators=2), X, y, n_estimators=10, max_samples=5, rng=0
    )
    assert {member.n_nodes for member in bagging.models} == {0}
    assert not pb.predict(bagging, X).any()
    assert bagging.oob.error == 1 / 300


def test_bad_input():
    X, y = problem()
    with pytest.raises(TypeError, match=r"^fit: "):
        pb.fit_bagging("cart", X, y)
    with pytest.raises(ValueError, match=r"^n_estimators: "):
        pb.fit_bagging(pb.fit_cart, X, y, n_estimators=0)
    with pytest.raises(ValueError, match=r"^task: "):
        pb.fit_bagging(pb.fit_cart, X, y, task="ranking")
    with pytest.raises(ValueError, match=r"^max_samples: "):
        pb.fit_bagging(pb.fit_cart, X, y, max_samples=301, bootstrap=False)
    with pytest.raises(TypeError, match=r"^X: "):
        pb.fit_bagging(pb.fit_cart, pb.data.bin_columns(X), y)
    with pytest.raises(ValueError, match=r"^fit: "):
        pb.fit_bagging(Mean, X, X[:, 0] > 0, n_estimators=3, rng=0)


def test_frames_and_sorted_columns():
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    options = {"n_estimators": 5, "rng": 0, "max_nodes": 6}
    plain = pb.fit_bagging(pb.fit_boosted_tree, X, y, **options)
    for data in (frame, pb.data.sort_columns(frame)):
        named = pb.fit_bagging(pb.fit_boosted_tree, data, y, **options)
        assert named.feature_names == ("a", "b", "c", "d")
        assert np.array_equal(named.oob.prediction, plain.oob.prediction, equal_nan=True)
        predicted = pb.predict(named, frame[["d", "c", "b", "a"]])
        assert np.array_equal(predicted, pb.predict(plain, X))


def test_rows_of_any_kind():
    """A weak learner of strings: rows are passed on as they are."""
    words = np.array(["ab", "abc", "xab", "x", "y", "xy", "b", "a"] * 10)
    y = np.array(["ab" in word for word in words])

    def train(X, y, weight, rng):
        return lambda rows, rng: np.array([1 if "ab" in row else -1 for row in rows])

    bagging = pb.fit_bagging(
        pb.fit_boosted_tree,
        words,
        y,
        n_estimators=3,
        rng=0,
        max_nodes=1,
        weak_learner=pb.weak.oracle(train),
    )
    assert np.array_equal(pb.predict(bagging, words), y)
    assert bagging.oob.error == 0
