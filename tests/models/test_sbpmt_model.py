"""Subagged boosted probit trees: threads, inputs, files, text, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from subagged import FAST, assert_same_model, problem

import pboost as pb

# Threads, inputs, files


@pytest.mark.parametrize(("classes", "where"), [(2, "leaf"), (3, "leaf"), (3, "tree")])
def test_threads_do_not_matter(classes, where):
    X, y = problem(3000, 6, classes)
    options = {
        "n_estimators": 5,
        "n_boosting_rounds": 2,
        "max_iter": 5,
        "one_vs_rest": where,
        "rng": 3,
    }
    first_model = pb.fit_sbpmt(X, y, n_threads=1, **options)
    assert_same_model(first_model, pb.fit_sbpmt(X, y, n_threads=2, **options))
    assert_same_model(first_model, pb.fit_sbpmt(pb.data.sort_columns(X), y, n_threads=2, **options))
    assert_same_model(first_model, pb.fit_sbpmt(np.asfortranarray(X), y, **options))


def test_data_frames_and_single_precision():
    pandas = pytest.importorskip("pandas")
    X, y = problem(150)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = pb.fit_sbpmt(frame, y, **FAST, rng=0)
    plain = pb.fit_sbpmt(X, y, **FAST, rng=0)
    assert model.feature_names == ("a", "b", "c")
    expected = pb.predict_proba(plain, X)
    assert np.array_equal(pb.predict_proba(model, frame[["c", "a", "b"]]), expected)
    short = X.astype(np.float32)
    long = pb.fit_sbpmt(short.astype(np.float64), y, **FAST, rng=0)
    assert_same_model(pb.fit_sbpmt(short, y, **FAST, rng=0), long)


@pytest.mark.parametrize(("classes", "where"), [(2, "leaf"), (3, "leaf"), (3, "tree")])
def test_pickle_and_files(classes, where, tmp_path):
    X, y = problem(120, classes=classes)
    model = pb.fit_sbpmt(X, y, **FAST, voting="soft", one_vs_rest=where, rng=0)
    assert_same_model(pickle.loads(pickle.dumps(model)), model)
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz")
    assert_same_model(loaded, model)
    assert np.array_equal(pb.predict_proba(loaded, X), pb.predict_proba(model, X))


def test_describe_and_items():
    X, y = problem(120, classes=3)
    model = pb.fit_sbpmt(X, y, **FAST, one_vs_rest="leaf", rng=0)
    text = pb.describe(model)
    assert text.startswith("fit_sbpmt: 4 members, 12 trees, ")
    assert "3 features, labels [0, 1, 2]" in text
    assert "4 members stopped: all rounds are done" in text
    assert f"out-of-bag error {model.oob.error:.6g}" in text
    assert len(model) == 4
    assert [len(member.models) for member in model] == [3] * 4
    assert np.array_equal(model[-1].alpha, model[3].alpha)
    with pytest.raises(IndexError, match="member: expected a number below 4, got 4"):
        model[4]
    assert repr(model) == "<fit_sbpmt: 4 members, 12 trees>"
    cost = pb.prediction_cost(model, X)
    trees = [tree for member in model for tree in member.models]
    np.testing.assert_allclose(cost, sum(pb.prediction_cost(tree, X) for tree in trees))


def test_a_tree_for_each_class():
    X, y = problem(120, classes=3)
    model = pb.fit_sbpmt(X, y, **FAST, one_vs_rest="tree", rng=0)
    assert model.is_tree_per_class
    assert model.trees_per_round == 3
    assert len(model.alpha) == 12
    assert len(model.trees) == 36
    assert repr(model) == "<fit_sbpmt: 4 members, 36 trees>"
    assert "36 trees" in pb.describe(model)
    tree = model[1].models[2].models[0]
    alone = model.tree(15)  # of the second member, third round, first class
    assert np.array_equal(tree.coefficient, alone.coefficient)
    assert tree.classes.tolist() == [False, True]
    cost = sum(pb.prediction_cost(model.tree(t), X) for t in range(36))
    np.testing.assert_allclose(pb.prediction_cost(model, X), cost)
    # Of two classes there is one tree in either case.
    few = pb.fit_sbpmt(X, y > 0, **FAST, one_vs_rest="tree", rng=0)
    same = pb.fit_sbpmt(X, y > 0, **FAST, rng=0)
    assert np.array_equal(few.coefficient, same.coefficient)


def test_coefficients():
    X, y = problem(120, classes=3)
    model = pb.fit_sbpmt(X, y, **FAST, one_vs_rest="leaf", rng=0)
    summary = pb.inspection.coefficients(model)
    assert summary.slopes.shape == (len(model.coefficient), 3, 3)
    assert summary.share.sum() == pytest.approx(1.0)
    trees = [tree for member in model for tree in member.models]
    mean = np.mean([pb.inspection.coefficients(tree).mean for tree in trees], axis=0)
    np.testing.assert_allclose(summary.mean, mean)


def test_coefficients_of_a_tree_for_each_class():
    X, y = problem(120, classes=3)
    model = pb.fit_sbpmt(X, y, **FAST, one_vs_rest="tree", rng=0)
    summary = pb.inspection.coefficients(model, X)
    assert summary.classes == (0, 1, 2)
    assert summary.slopes.shape == (len(model.coefficient), 1, 3)
    assert summary.mean.shape == summary.size.shape == (3, 3)
    for k in range(3):
        of_class = [pb.inspection.coefficients(model.tree(t), X) for t in range(k, 36, 3)]
        np.testing.assert_allclose(summary.mean[k], np.mean([c.mean[0] for c in of_class], axis=0))
        np.testing.assert_allclose(summary.size[k], np.mean([c.size[0] for c in of_class], axis=0))
        own = summary.leaf_class == k
        assert summary.share[own].sum() == pytest.approx(1.0)
        slopes, share = summary.of_class(k)
        assert np.array_equal(slopes, np.concatenate([c.slopes[:, 0] for c in of_class]))
        assert np.array_equal(share, summary.share[own])
    assert len(str(summary).splitlines()) == 5
    pytest.importorskip("matplotlib")
    ax = pb.plot.coefficients(model, X)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(sorted(widths), sorted(summary.mean.ravel()))
    sizes = [len(discs.get_offsets()) for discs in ax.collections]
    assert sizes == [3 * int(np.sum(summary.leaf_class == k)) for k in range(3)]


def test_members_choose_as_the_model_where_probabilities_are_equal(tmp_path):
    X, y = problem(150, classes=3)
    model = pb.fit_sbpmt(
        X, y, **{**FAST, "n_estimators": 1}, voting="hard", one_vs_rest="tree", rng=0
    )
    far = 40 * np.random.default_rng(1).normal(size=(400, 3))
    first = model[0].models[0]
    assert (
        np.sum([pb.predict_proba(tree, far)[:, 1] == 1 for tree in first.models], axis=0).max() > 1
    )
    score = pb.decision_function(first, far)
    assert np.array_equal(pb.predict(first, far), np.argmax(score, axis=1))
    assert np.array_equal(pb.predict(model[0], far), pb.predict(model, far))
    np.testing.assert_allclose(
        pb.predict_proba(first, X),
        np.column_stack([pb.predict_proba(tree, X)[:, 1] for tree in first.models])
        / sum(pb.predict_proba(tree, X)[:, [1]] for tree in first.models),
    )
    pb.save(model[0], tmp_path / "member.npz")
    assert np.array_equal(pb.predict(pb.load(tmp_path / "member.npz"), far), pb.predict(model, far))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_stages_are_models_of_fewer_members(classes, vote):
    X, y = problem(120, classes=classes)
    model = pb.fit_sbpmt(X, y, **FAST, voting=vote, rng=0)
    stages = list(pb.staged_predict_proba(model, X))
    assert len(stages) == len(model)
    for members, share in enumerate(stages, start=1):
        fewer = pb.fit_sbpmt(X, y, **{**FAST, "n_estimators": members}, voting=vote, rng=0)
        np.testing.assert_allclose(share, pb.predict_proba(fewer, X), rtol=1e-12, atol=1e-15)
        assert np.array_equal(model.classes[share.argmax(axis=1)], pb.predict(fewer, X))


def test_members_never_answer_a_class_that_they_have_not_seen():
    X, y = problem(150, classes=3)
    y[:2] = 3
    model = pb.fit_sbpmt(
        X,
        y,
        **{**FAST, "n_estimators": 6},
        voting="hard",
        one_vs_rest="tree",
        max_samples=0.5,
        rng=0,
    )
    far = 40 * np.random.default_rng(1).normal(size=(400, 3))
    by_value = []
    for member, label in model.lost:
        predicted = pb.predict(model[member], far)
        assert label not in predicted
        assert np.array_equal(predicted, np.argmax(model.said_at(member, far), axis=1))
        # By the values of the trees alone it would be.
        first = 4 * int(model.start[member])
        values = [pb.decision_function(model.tree(first + k), far) for k in range(4)]
        by_value += np.argmax(values, axis=0).tolist()
    assert 3 in by_value


def test_published_options():
    X, y = problem(200)
    options = pb.models.published_sbpmt_options()
    assert options == {
        "min_samples_split": 20,
        "min_samples_leaf": 7,
        "complexity": 0.01,
        "tol": 1e-5,
        "safeguard": False,
        "voting": "hard",
        "one_vs_rest": "tree",
    }
    model = pb.fit_sbpmt(X, y, n_estimators=2, rng=0, **options)
    assert options.items() <= model.settings.items()
    assert 0 < np.median(model.taken[model.taken > 0]) < 50
    sizes = model.trees.n_rows
    assert sizes.min() >= 7
    assert sizes[model.trees.feature >= 0].min() >= 20


def test_separable_data_and_wild_columns():
    X, y = problem(150)
    X = np.column_stack([X[:, 0] * 1e150, X[:, 1] * 1e-150, X[:, 2], X[:, 2], np.ones(150)])
    for vote in ("hard", "soft"):
        for truth in (y, X[:, 0] > 0):
            model = pb.fit_sbpmt(X, truth, **FAST, voting=vote, rng=0)
            assert np.isfinite(pb.predict_proba(model, X)).all()
            assert np.mean(pb.predict(model, X) == truth) > 0.8


def test_a_leaf_rule_that_no_split_can_meet():
    X, y = problem(100)
    model = pb.fit_sbpmt(X, y, n_estimators=2, n_boosting_rounds=2, min_samples_leaf=80, rng=0)
    assert (model.trees.feature < 0).all()
    assert np.mean(pb.predict(model, X) == y) > 0.7


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators: expected an integer from 1"),
        ({"n_estimators": 2.5}, TypeError, "n_estimators: expected an integer"),
        ({"n_boosting_rounds": 0}, ValueError, "n_boosting_rounds: expected an integer from 1"),
        ({"max_iter": 0}, ValueError, "max_iter: expected an integer from 1"),
        ({"max_samples": 0.0}, ValueError, "max_samples: expected"),
        ({"max_samples": 1.5}, ValueError, "max_samples: expected"),
        ({"max_samples": float("nan")}, ValueError, "max_samples: expected"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate: expected"),
        ({"learning_rate": 1.5}, ValueError, "learning_rate: expected"),
        ({"voting": "mean"}, ValueError, "voting: expected"),
        ({"one_vs_rest": "node"}, ValueError, "one_vs_rest: expected"),
        ({"stratify": 1}, TypeError, "stratify: expected True or False, got 1"),
        ({"max_depth": -1}, ValueError, "max_depth: expected"),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf: expected"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split: expected"),
        ({"complexity": -0.1}, ValueError, "complexity: expected"),
        ({"tol": -1.0}, ValueError, "tol: expected"),
        ({"safeguard": 2}, TypeError, "safeguard: expected"),
        ({"rng": "seed"}, TypeError, "rng: expected"),
        ({"n_threads": 0}, ValueError, "n_threads: expected"),
        ({"sample_weight": np.zeros(60)}, ValueError, "sample_weight: expected"),
    ],
)
def test_bad_options(options, error, message):
    X, y = problem(60)
    with pytest.raises(error, match=message):
        pb.fit_sbpmt(X, y, **{**FAST, **options})


def test_bad_data():
    X, y = problem(60)
    with pytest.raises(ValueError, match="y: expected"):
        pb.fit_sbpmt(X, np.ones(60), **FAST)
    with pytest.raises(ValueError, match="X: expected finite"):
        pb.fit_sbpmt(np.where(X > 2, np.inf, X), y, **FAST)
    with pytest.raises(TypeError, match=r"X: expected values .*, got BinnedColumns without values"):
        pb.fit_sbpmt(pb.data.bin_columns(X), y, **FAST)


def test_model_refuses_arrays_that_do_not_fit():
    X, y = problem(60)
    model = pb.fit_sbpmt(X, y, **FAST, rng=0)
    for name, value in {
        "coefficient": model.coefficient[:-1],
        "taken": model.taken[:-1],
        "alpha": -model.alpha,
        "start": model.start + 1,
        "error": model.error[:-1],
        "class_rows": model.class_rows[:, 1:],
        "voting": "mean",
    }.items():
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            replace(model, **{name: value})
