"""Bagging of builders and of other callables."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pboost as pb


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
        (pb.fit_adaboost, {"rounds": 10}),
        (pb.fit_boosted_tree, {"nodes": 8}),
        (pb.fit_boosted_tree, {"nodes": 8, "weak": pb.weak.stump(search="binned")}),
        (pb.fit_boosted_tree, {"nodes": 4, "weak": pb.weak.affine(directions=8)}),
        (pb.fit_matryoshka, {}),
        (pb.fit_cart, {"max_depth": 4, "features_per_split": 2}),
        (pb.fit_pruned_cart, {"folds": 3, "max_depth": 4}),
    ],
)
def test_builders(fit, options):
    X, y = problem()
    one, two = (pb.fit_bagging(fit, X, y, members=6, rng=4, n_threads=k, **options) for k in (1, 2))
    new = problem(100, seed=1)[0]
    votes = sum(
        (pb.predict(model, new)[:, None] == ["no", "yes"]).astype(float) for model in one.models
    )
    assert np.array_equal(pb.predict_proba(one, new), votes / 6)
    assert np.array_equal(pb.predict_proba(one, new), pb.predict_proba(two, new))
    assert np.array_equal(one.oob.prediction, two.oob.prediction, equal_nan=True)
    assert np.array_equal(pb.predict(one, new), one.labels[votes.argmax(axis=1)])
    assert one.oob.error < 0.5


def test_members_are_fits_to_weighted_rows():
    """One member without a draw is the fit itself."""
    X, y = problem()
    bagging = pb.fit_bagging(pb.fit_boosted_tree, X, y, members=1, replace=False, nodes=9)
    model = pb.fit_boosted_tree(X, y, nodes=9)
    assert np.array_equal(bagging.models[0].threshold, model.threshold)
    assert np.array_equal(bagging.models[0].vote, model.vote)
    assert np.isnan(bagging.oob.error)
    assert not bagging.oob.members.any()


@pytest.mark.parametrize(("replace", "bag"), [(True, None), (False, 100)])
def test_any_callable(replace, bag):
    X, _ = problem()
    y = X[:, 0] + 3.0
    w = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    bagging = pb.fit_bagging(
        Mean, X, y, members=5, task="regression", replace=replace, bag=bag, sample_weight=w,
        rng=0, offset=1.0,
    )  # fmt: skip
    assert pb.predict(bagging, X) == pytest.approx(np.mean([m.number for m in bagging.models]))
    drawn = np.array([m.weight for m in bagging.models])
    assert np.array_equal(bagging.oob.members, (drawn == 0).sum(axis=0))
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
    options = {"members": 4, "task": "regression"}
    first, again, other = (
        [m.number for m in pb.fit_bagging(Mean, X, X[:, 0], rng=k, **options).models]
        for k in (1, 1, 2)
    )
    assert first == again
    assert len({*first, *other}) == 8


def test_pickle_describe_and_files(tmp_path):
    X, y = problem()
    bagging = pb.fit_bagging(pb.fit_cart, X, y, members=3, max_depth=2, rng=0)
    copy = pickle.loads(pickle.dumps(bagging))
    assert np.array_equal(pb.predict(copy, X), pb.predict(bagging, X))
    assert pb.describe(bagging).startswith("fit_bagging of fit_cart: 3 members, 4 features")
    pb.save(bagging, tmp_path / "model.npz")
    assert np.array_equal(pb.predict(pb.load(tmp_path / "model.npz"), X), pb.predict(bagging, X))


def test_bag_without_a_class():
    X, _ = problem()
    y = np.zeros(300, dtype=int)
    y[0] = 1
    bagging = pb.fit_bagging(pb.fit_adaboost, X, y, members=10, bag=5, rng=0, rounds=2)
    assert {member.n_nodes for member in bagging.models} == {0}
    assert not pb.predict(bagging, X).any()
    assert bagging.oob.error == 1 / 300


def test_bad_input():
    X, y = problem()
    with pytest.raises(TypeError, match=r"^fit: "):
        pb.fit_bagging("cart", X, y)
    with pytest.raises(ValueError, match=r"^members: "):
        pb.fit_bagging(pb.fit_cart, X, y, members=0)
    with pytest.raises(ValueError, match=r"^task: "):
        pb.fit_bagging(pb.fit_cart, X, y, task="ranking")
    with pytest.raises(ValueError, match=r"^bag: "):
        pb.fit_bagging(pb.fit_cart, X, y, bag=301, replace=False)
    with pytest.raises(TypeError, match=r"^X: "):
        pb.fit_bagging(pb.fit_cart, pb.bin_columns(X), y)
    with pytest.raises(ValueError, match=r"^fit: "):
        pb.fit_bagging(Mean, X, X[:, 0] > 0, members=3, rng=0)


def test_frames_and_sorted_columns():
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    options = {"members": 5, "rng": 0, "nodes": 6}
    plain = pb.fit_bagging(pb.fit_boosted_tree, X, y, **options)
    for data in (frame, pb.sort_columns(frame)):
        named = pb.fit_bagging(pb.fit_boosted_tree, data, y, **options)
        assert named.feature_names == ("a", "b", "c", "d")
        assert np.array_equal(named.oob.prediction, plain.oob.prediction, equal_nan=True)
        found = pb.predict(named, frame[["d", "c", "b", "a"]])
        assert np.array_equal(found, pb.predict(plain, X))


def test_rows_of_any_kind():
    """A weak learner of strings: rows are passed on as they are."""
    words = np.array(["ab", "abc", "xab", "x", "y", "xy", "b", "a"] * 10)
    y = np.array(["ab" in word for word in words])

    def train(X, y, weight, rng):
        return lambda rows, rng: np.array([1 if "ab" in row else -1 for row in rows])

    bagging = pb.fit_bagging(
        pb.fit_boosted_tree, words, y, members=3, rng=0, nodes=1, weak=pb.weak.oracle(train)
    )
    assert np.array_equal(pb.predict(bagging, words), y)
    assert bagging.oob.error == 0
