"""Subagged boosted probit trees: the twin, rounds and their ends, votes, subsamples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from reference import probit_tree
from reference import sbpmt as reference
from scipy.special import ndtr
from subagged import FAST, assert_same_model, problem

import pboost as pb
from pboost.data.resampling import make_bags
from pboost.values import as_generator


def subsamples(n, size, members, seed):
    """Return the rows of each member of a model whose `rng` was this seed."""
    bags = make_bags(None, n, size, False, as_generator(seed))
    return [np.flatnonzero(bags.draw(i)[0]) for i in range(members)]


def rounds_of(model, member):
    error = model.error[member]
    return error[np.isfinite(error)].tolist()


# The twin


@pytest.mark.full_for("0.5-3-tree", "1.0-3-tree")
@pytest.mark.parametrize(("classes", "where"), [(2, "leaf"), (3, "leaf"), (3, "tree"), (2, "tree")])
@pytest.mark.parametrize("step", [0.5, 1.0])
def test_twin(classes, where, step):
    X, y = problem(100, classes=classes)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    options = {**FAST, "n_estimators": 3, "max_iter": 4, "voting": "hard", "one_vs_rest": where}
    model = pb.fit_sbpmt(X, y, **options, learning_rate=step, sample_weight=weight, rng=5)
    rows = subsamples(len(y), 70, 3, 5)

    def grow(X, y, w, classes=classes):
        if classes > 2 and where == "tree":
            trees = [grow(X, (y == k).astype(int), w, 2) for k in range(classes)]
            return lambda X: np.column_stack([tree(X) for tree in trees])
        model = probit_tree.fit_probit_tree(
            X, y, n_classes=classes, max_depth=2, min_samples_leaf=8, max_iter=4, sample_weight=w
        )

        def value(X):
            values = probit_tree.values(*model, X)
            return values[:, 0] if classes == 2 else values

        return value

    twins = reference.sbpmt(X, y, rows, classes, 3, step, grow, weight)
    for i, (_, votes, errors, _) in enumerate(twins):
        np.testing.assert_allclose(model[i].alpha, votes, rtol=1e-9)
        np.testing.assert_allclose(rounds_of(model, i), errors, atol=1e-12)
    new = np.random.default_rng(9).normal(size=(20, X.shape[1]))
    np.testing.assert_allclose(
        pb.predict_proba(model, new), reference.shares(twins, new, classes), atol=1e-14
    )

    def probability(tree, X):
        value = tree(X)
        if classes == 2:
            return np.column_stack([ndtr(-value), ndtr(value)])
        return ndtr(value) / ndtr(value).sum(axis=1, keepdims=True)

    average = replace(model, voting="soft")
    np.testing.assert_allclose(
        pb.predict_proba(average, new), reference.averages(twins, new, probability), rtol=1e-7
    )


# Rounds


@pytest.mark.parametrize(("classes", "where"), [(2, "leaf"), (4, "leaf"), (4, "tree")])
@pytest.mark.parametrize("step", [0.5, 1.0])
def test_weights_of_the_rounds(classes, where, step):
    """Errors and votes follow from the answers of the trees."""
    X, y = problem(300, classes=classes)
    model = pb.fit_sbpmt(X, y, **FAST, learning_rate=step, one_vs_rest=where, rng=1)
    for i, rows in enumerate(subsamples(300, 210, 4, 1)):
        w = np.ones(len(rows))
        for tree, alpha, error in zip(
            model[i].models, model[i].alpha, rounds_of(model, i), strict=True
        ):
            wrong = pb.predict(tree, X[rows]) != y[rows]
            w /= w.sum()
            assert error == pytest.approx(w[wrong].sum(), abs=1e-12)
            more = math.log(classes - 1) if classes > 2 else 0.0
            assert alpha == pytest.approx(step * math.log((1 - error) / error) + more)
            w[wrong] *= np.exp(alpha)
        if step == 1.0 and classes == 2:
            # The last tree is as good as a guess by the weights after it.
            assert w[wrong].sum() / w.sum() == pytest.approx(0.5)


def test_a_tree_without_error_ends_a_member_and_decides():
    X = np.linspace(-1, 1, 60)[:, None]
    model = pb.fit_sbpmt(
        X, X[:, 0] > 0.2, n_estimators=3, n_boosting_rounds=4, learning_rate=1.0, rng=0
    )
    assert np.diff(model.start).tolist() == [1, 1, 1]
    assert model.error[:, 0].tolist() == [0, 0, 0]
    assert np.isnan(model.error[:, 1:]).all()
    np.testing.assert_allclose(model.alpha, math.log(2**52))
    assert set(model.stop_reasons) == {"a tree without errors determines the prediction"}

    # A tree that errs at first and none later: it has more votes than all before it.
    late = []
    for seed in range(40):
        X, y = problem(60, 2, seed=seed)
        model = pb.fit_sbpmt(
            X,
            y,
            n_estimators=3,
            n_boosting_rounds=5,
            max_depth=3,
            min_samples_leaf=5,
            learning_rate=1.0,
            rng=seed,
        )
        sizes = np.diff(model.start)
        late += [model[i].alpha for i in range(3) if 0 in rounds_of(model, i) and sizes[i] > 1]
    assert len(late) > 2
    for alpha in late:
        assert alpha[-1] == pytest.approx(alpha[:-1].sum() + math.log(2**52))


def test_trees_that_are_not_better_than_chance():
    X = np.ones((40, 2))
    # All trees say the same number. As it is that of guessing, the first is kept, alone.
    y = np.arange(40) % 2
    model = pb.fit_sbpmt(X, y, n_estimators=3, n_boosting_rounds=4, max_samples=1.0)
    assert model.alpha.tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(model.error[:, 0], 0.5)
    assert set(model.stop_reasons) == {"a tree was no better than guessing"}
    assert np.isnan(model.oob.error)
    # After a textbook update a constant is as good as a guess: the second is left out.
    y = (np.arange(40) < 30).astype(int)
    model = pb.fit_sbpmt(
        X, y, n_estimators=2, n_boosting_rounds=4, max_samples=1.0, learning_rate=1.0
    )
    assert np.diff(model.start).tolist() == [1, 1]
    np.testing.assert_allclose(model.error[:, :2], [[0.25, 0.5]] * 2)
    assert set(model.stop_reasons) == {"a tree was no better than guessing"}
    assert pb.predict(model, X).tolist() == [1] * 40
    # Half of the update leaves it better than a guess.
    model = pb.fit_sbpmt(
        X, y, n_estimators=1, n_boosting_rounds=4, max_samples=1.0, learning_rate=0.5
    )
    assert len(model.alpha) == 4
    assert model.error[0, 1] == pytest.approx(1 / (1 + math.sqrt(3)))
    assert model.stop_reasons == ("all rounds are done",)


# Votes


@pytest.mark.parametrize(("classes", "where"), [(2, "leaf"), (3, "leaf"), (3, "tree")])
@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_votes(classes, where, vote):
    X, y = problem(200, classes=classes)
    names = np.array(["a", "b", "c"])[:classes]
    options = {**FAST, "voting": vote, "one_vs_rest": where, "rng": 2}
    model = pb.fit_sbpmt(X, names[y], **options)
    share = pb.predict_proba(model, X)
    expected = np.zeros_like(share)
    for member in model:
        if vote == "hard":
            expected += pb.predict(member, X)[:, None] == names
        else:
            parts = [
                alpha * pb.predict_proba(tree, X)
                for tree, alpha in zip(member.models, member.alpha, strict=True)
            ]
            expected += sum(parts) / member.alpha.sum()
    np.testing.assert_allclose(share, expected / 4, atol=1e-13)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    predicted = pb.predict(model, X)
    assert (predicted == names[share.argmax(axis=1)]).all()
    assert np.mean(predicted == names[y]) > 0.7
    score = pb.decision_function(model, X)
    np.testing.assert_array_equal(score, share[:, 1] - share[:, 0] if classes == 2 else share)
    assert (model.labels_of(score) == predicted).all()
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == 4
    np.testing.assert_allclose(stages[-1], score, atol=1e-15)
    fewer = pb.fit_sbpmt(X, names[y], **{**options, "n_estimators": 2})
    np.testing.assert_allclose(stages[1], pb.decision_function(fewer, X), atol=1e-15)
    assert [len(stage) for stage in pb.staged_predict(model, X)] == [200] * 4


def test_a_tied_vote_is_of_the_first_label():
    X, y = problem(100, seed=4)
    model = pb.fit_sbpmt(X, y, **{**FAST, "n_estimators": 2}, voting="hard", rng=0)
    share = pb.predict_proba(model, X)
    tied = share[:, 0] == 0.5
    assert tied.any()
    assert (pb.predict(model, X)[tied] == 0).all()


def test_one_row_at_a_time():
    X, y = problem(100, classes=3)
    for vote in ("hard", "soft"):
        model = pb.fit_sbpmt(X, y, **FAST, voting=vote, rng=0)
        every = pb.predict_proba(model, X)
        for i in range(0, 100, 7):
            np.testing.assert_array_equal(pb.predict_proba(model, X[i : i + 1])[0], every[i])
        assert pb.predict_proba(model, X[:0]).shape == (0, 3)
        assert len(list(pb.staged_decision_function(model, X[:0]))) == 4
        with pytest.raises(ValueError, match="X: expected finite"):
            pb.predict(model, np.where(np.arange(100)[:, None] == 70, np.inf, X))


# Subsamples


def test_subsamples_and_out_of_bag_record():
    X, y = problem(101)
    model = pb.fit_sbpmt(X, y, **FAST, voting="hard", rng=6)
    rows = subsamples(101, 70, 4, 6)  # the whole part of 0.7 times 101
    counts = np.zeros(101, dtype=int)
    said = np.zeros((101, 2))
    for member, taken in zip(model, rows, strict=True):
        out = np.setdiff1d(np.arange(101), taken)
        counts[out] += 1
        said[out, pb.predict(member, X[out])] += 1
    assert np.array_equal(model.oob.n_estimators, counts)
    seen = counts > 0
    np.testing.assert_allclose(model.oob.prediction[seen], said[seen] / counts[seen, None])
    assert np.isnan(model.oob.prediction[~seen]).all()
    wrong = np.argmax(said[seen], axis=1) != y[seen]
    assert model.oob.error == pytest.approx(wrong.mean())
    assert model.class_rows.sum(axis=1).tolist() == [70] * 4


@pytest.mark.parametrize(("bag", "size"), [(0.29, 29), (0.7, 70), (1.0, 100), (0.001, 1)])
def test_size_of_subsamples(bag, size):
    X, y = problem(100)
    model = pb.fit_sbpmt(
        X, y, n_estimators=2, n_boosting_rounds=1, max_iter=1, max_samples=bag, rng=0
    )
    assert model.class_rows.sum(axis=1).tolist() == [size, size]


def test_rows_without_weight_are_in_no_subsample():
    X, y = problem(100)
    weight = np.where(np.arange(100) < 60, 1.0, 0.0)
    wild = np.where(weight[:, None] > 0, X, 1e6)
    model = pb.fit_sbpmt(wild, y, **FAST, sample_weight=weight, rng=0)
    assert model.class_rows.sum(axis=1).tolist() == [42] * 4
    assert np.array_equal(model.oob.n_estimators[60:], np.full(40, 4))
    few = pb.fit_sbpmt(X[:60], y[:60], **FAST, rng=0)
    assert np.array_equal(model.alpha, few.alpha)
    assert model.oob.error == few.oob.error
    scaled = pb.fit_sbpmt(wild, y, **FAST, sample_weight=weight * 2.0**20, rng=0)
    assert_same_model(model, scaled)


@pytest.mark.parametrize(("classes", "where"), [(2, "leaf"), (3, "leaf"), (3, "tree")])
def test_a_class_that_a_subsample_has_lost(classes, where):
    X, y = problem(120, classes=classes, seed=1)
    y = np.array(["x", "y", "z", "rare"])[y]
    y[7] = "rare"
    if classes == 2:
        y[np.arange(120) != 7] = "x"
    model = pb.fit_sbpmt(X, y, **FAST, max_samples=0.5, one_vs_rest=where, rng=0)
    labels = model.classes.tolist()
    lost = {member for member, label in model.lost if label == "rare"}
    assert {label for _, label in model.lost} == {"rare"}
    assert 0 < len(lost) < 4
    for i, rows in enumerate(subsamples(120, 60, 4, 0)):
        assert (i in lost) == (7 not in rows)
        assert np.array_equal(model.class_rows[i], [np.sum(y[rows] == k) for k in labels])
        if i in lost:
            # Neither this class nor another in its place.
            answers = pb.predict(model[i], X)
            assert "rare" not in answers
            assert np.mean(answers == y) > 0.6
            assert f"member {i} was trained without class 'rare'" in pb.describe(model)
    even = pb.fit_sbpmt(X, y, **FAST, max_samples=0.5, stratify=True, rng=0)
    assert even.lost == ()
    assert (even.class_rows[:, labels.index("rare")] == 1).all()


def test_stratified_subsamples():
    X, y = problem(101, classes=3, seed=2)
    y = np.where(np.arange(101) < 11, 0, np.where(np.arange(101) < 40, 1, 2))
    model = pb.fit_sbpmt(X, y, **FAST, stratify=True, rng=3)
    # 7.7, 20.3 and 42.7 of 70.7 rows: 70 in all.
    assert model.class_rows.tolist() == [[8, 20, 42]] * 4
    assert (model.oob.n_estimators > 0).sum() > 60
    weight = np.where(np.arange(101) < 40, 1.0, 0.0)
    model = pb.fit_sbpmt(X, y, **FAST, stratify=True, sample_weight=weight + (y == 2) * 1e-3, rng=3)
    assert model.class_rows.tolist() == [[8, 20, 42]] * 4
