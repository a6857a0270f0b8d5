"""Sums of trees of several classes: models, options, files, bad input."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from round_cases import HELD
from shallow import PLAIN, fit_shallow
from softmax_cases import assert_same_model, data, mean_loss

import pboost as pb
from pboost.losses import LOSSES
from pboost.trees.regularization import RESTRAINTS

SOFTMAX = LOSSES["softmax"]


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
def test_two_classes_are_the_log_loss(search, leaf_update):
    """Either tree goes half of the way."""
    X, y = data(n_classes=2)
    options = {
        "n_estimators": 20,
        "search": search,
        "leaf_update": leaf_update,
        "l2_regularization": 0.0,
        "leaf_shrinkage": 0.0,
        **PLAIN,
    }
    both = pb.fit_gradient_boosting(X, y, loss="softmax", **options)
    first_model = pb.fit_gradient_boosting(X, y, loss="log_loss", **options)
    assert both.n_votes == 2
    assert pb.decision_function(both, X).shape == (300, 2)
    # Newton steps of a binned search are those of words.
    near = 1e-5 if (search, leaf_update) == ("binned", "newton") else 1e-10
    np.testing.assert_allclose(
        pb.predict_proba(both, X), pb.predict_proba(first_model, X), atol=near
    )
    np.testing.assert_allclose(both.training_loss, first_model.training_loss, rtol=near)
    assert pb.predict(both, X, threshold=0.5).tolist() == pb.predict(both, X).tolist()


@pytest.mark.parametrize("search", ["binned", "exact"])
@pytest.mark.parametrize("leaf_update", ["line_search", "newton"])
def test_learns_and_lowers_the_loss(search, leaf_update):
    X, y = data(900)
    new, truth = data(900, seed=9)
    model = pb.fit_gradient_boosting(X, y, n_estimators=50, search=search, leaf_update=leaf_update)
    assert model.settings["loss"] == "softmax"
    assert (np.diff(model.training_loss) <= 0).all()
    assert np.mean(pb.predict(model, new) == truth) > 0.65
    score = pb.decision_function(model, X)
    assert score.shape == (900, 3)
    assert mean_loss(model, y, score) == pytest.approx(model.training_loss[-1], rel=1e-12)
    share = pb.predict_proba(model, X)
    np.testing.assert_allclose(share, SOFTMAX.probability(score), rtol=1e-12)
    assert np.array_equal(model.classes[share.argmax(axis=1)], pb.predict(model, X))
    assert np.array_equal(model.classes[score.argmax(axis=1)], pb.predict(model, X))
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == len(model) == 50
    assert len(model.trees) == 150
    assert np.array_equal(stages[-1], score)
    walked = sum(
        np.array([len(path) - 1 for path in pb.inspection.decision_path(tree, X)])
        for tree in model.trees
    )
    assert pb.prediction_cost(model, X).tolist() == walked.tolist()


def test_trees_of_a_round_see_the_scores_before_it():
    """They are those of each class against the others, at the log odds between them."""
    X, y = data()
    options = {
        "n_estimators": 1,
        "learning_rate": 1,
        "l2_regularization": 0.0,
        "leaf_shrinkage": 0.0,
        "leaf_update": "newton",
        **PLAIN,
    }
    model = pb.fit_gradient_boosting(X, y, **options)
    for k, label in enumerate(model.classes):
        first_model = pb.fit_gradient_boosting(X, y == label, loss="log_loss", **options)
        assert np.array_equal(first_model.trees.feature, model.trees[k].feature)
        np.testing.assert_allclose(model.trees[k].value, first_model.trees.value, atol=2e-5)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(model.bias, np.log(shares), rtol=1e-15)


def test_few_rows_and_many_are_told_the_same():
    """Rows are walked alone, by ranks, and with missing values."""
    X, y = data(500, n_classes=5)
    X[::7, 1] = np.nan
    model = pb.fit_gradient_boosting(X, y, n_estimators=20, max_depth=4)
    score = pb.decision_function(model, X)
    each = np.concatenate([pb.decision_function(model, X[i : i + 1]) for i in range(40)])
    assert np.array_equal(each, score[:40])
    by_hand = model.bias + sum(
        np.column_stack([tree.predict(X) for tree in model.trees[5 * r : 5 * r + 5]])
        for r in range(20)
    )
    np.testing.assert_allclose(score, by_hand, atol=1e-12)


@pytest.mark.parametrize("validation", [None, 0.2])
def test_saved_and_pickled(validation, tmp_path):
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, n_estimators=8, validation=validation, rng=0)
    pb.save(model, tmp_path / "m.npz")
    for again in (pb.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert_same_model(model, again)
        assert again.settings == model.settings
        assert np.array_equal(pb.predict(model, X), pb.predict(again, X))
        assert (again.validation_loss is None) == (validation is None)
        assert pb.describe(again) == pb.describe(model)
        assert not again.bias.flags.writeable


def test_wrong_parts_are_named():
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, n_estimators=3)
    for parts, message in (
        ({"bias": 0.5}, "bias: expected 3 finite numbers"),
        ({"bias": model.bias[:2]}, "bias: expected 3 finite numbers"),
        ({"bias": model.bias * np.nan}, "bias: expected 3 finite numbers"),
        ({"classes": None}, "classes: expected an array|bias: "),
        (
            {"trees": model.trees[:8], "training_loss": model.training_loss[:3]},
            "trees: expected one tree for each of 3 classes",
        ),
        ({"classes": model.classes[:2]}, "bias: expected 2 finite numbers"),
        ({"loss": LOSSES["log_loss"]}, "bias: |classes: expected"),
        ({"training_loss": model.training_loss[:2]}, "training_loss: expected shape"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(model, **parts)


def test_options_change_models_and_are_kept():
    X, y = data(1000)
    models = [
        pb.fit_gradient_boosting(X, y, n_estimators=2, max_depth=5, rng=1, **options)
        for options in (
            {"l2_regularization": 5.0},
            {"min_samples_leaf": 30},
            {"subsample": 0.5},
            *(held for held in HELD if "monotonic_cst" not in held),
        )
    ]
    values = [model.trees.value.tolist() for model in models]
    assert all(a != b for k, a in enumerate(values) for b in values[:k])
    free = models[3]
    assert np.abs(models[0].trees.value).max() < np.abs(free.trees.value).max()
    assert all(tree.n_leaves <= 6 for tree in models[-2].trees)
    for model in models:
        more = pb.continue_fit(model, X, y, n_estimators=1)
        for name in (
            "l2_regularization",
            "min_samples_leaf",
            "subsample",
            "max_leaf_nodes",
            *RESTRAINTS,
        ):
            assert more.settings[name] == model.settings[name]
        assert np.array_equal(more.trees.value[: len(model.trees.value)], model.trees.value)


def test_no_column_is_monotone():
    X, y = data()
    with pytest.raises(NotImplementedError, match=r"monotonic_cst: .*softmax"):
        fit_shallow(X, y, monotonic_cst={1: -1})
    free = fit_shallow(X, y, n_estimators=1, monotonic_cst={1: 0})
    assert_same_model(free, fit_shallow(X, y, n_estimators=1))


def test_validation_chooses_the_number_of_rounds():
    X, y = data(600)
    new, truth = data(600, seed=4)
    options = {"n_estimators": 200, "learning_rate": 0.4, "n_iter_no_change": 8}
    model = pb.fit_gradient_boosting(X, y, validation=(new, truth), **options)
    tried = model.validation_loss
    assert len(model) == tried.argmin() == len(tried) - 9
    assert model.stop_reason == "no improvement on the validation set for 8 rounds"
    stages = pb.staged_decision_function(model, new)
    losses = [mean_loss(model, truth, f) for f in stages]
    np.testing.assert_allclose(losses, tried[1 : len(model) + 1])
    # Classes may be missing there.
    some = truth != "class 1"
    model = pb.fit_gradient_boosting(X, y, validation=(new[some], truth[some]), **options)
    assert model.validation_loss is not None
    with pytest.raises(ValueError, match="validation: y: expected class labels of the model"):
        pb.fit_gradient_boosting(X, y, validation=(new, np.full(600, "other")), **options)


def test_rows_held_out_are_of_every_class():
    X, y = data(n_classes=4)
    model = pb.fit_gradient_boosting(X, y, n_estimators=3, validation=0.25, rng=0)
    assert all(tree.n_rows[0] == model.trees[0].n_rows[0] < 230 for tree in model.trees)
    assert len(model.validation_loss) == 4
    two = pb.fit_gradient_boosting(
        *data(n_classes=2), loss="softmax", n_estimators=3, validation=0.25, rng=0
    )
    assert two.validation_loss[-1] < two.validation_loss[0] + 0.1


def test_prefix_and_continued_fits():
    X, y = data()
    options = {"subsample": 0.6, "rng": 3}
    model = pb.fit_gradient_boosting(X, y, n_estimators=7, **options)
    shares = list(pb.staged_predict_proba(model, X))
    answers = list(pb.staged_predict(model, X))
    for n in (1, 4):
        cut = pb.models.truncate(model, n)
        assert_same_model(cut, pb.fit_gradient_boosting(X, y, n_estimators=n, **options))
        assert cut.stop_reason == f"truncated to the first {n} of 7 rounds"
        assert np.array_equal(pb.predict_proba(cut, X), shares[n - 1])
        assert pb.predict(cut, X).tolist() == answers[n - 1].tolist()
        assert_same_model(pb.continue_fit(cut, X, y, n_estimators=7 - n), model)
    exact = pb.fit_gradient_boosting(X, y, n_estimators=4, search="exact")
    assert_same_model(pb.continue_fit(pb.models.truncate(exact, 2), X, y, n_estimators=2), exact)
    with pytest.raises(ValueError, match="n_nodes: expected"):
        pb.models.truncate(model, 8)


def test_fits_go_on_with_other_rows_of_the_same_labels():
    X, y = data()
    new, truth = data(seed=5)
    model = pb.fit_gradient_boosting(X, y, n_estimators=10)
    more = pb.continue_fit(model, new, truth, n_estimators=30)
    assert len(more) == 40
    assert np.array_equal(more.bias, model.bias)
    score = pb.decision_function(more, new)
    assert mean_loss(more, truth, score) == pytest.approx(more.training_loss[-1], rel=1e-12)
    assert more.training_loss[-1] < 0.8 * more.training_loss[10]
    with pytest.raises(ValueError, match=r"y: expected the (labels|classes) of the model"):
        pb.continue_fit(model, new, np.where(truth == "class 1", "other", truth), n_estimators=1)


def test_weights():
    X, y = data()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y)).astype(float)
    model = pb.fit_gradient_boosting(X, y, n_estimators=5, sample_weight=weight)
    used = np.flatnonzero(weight)
    fewer = pb.fit_gradient_boosting(X[used], y[used], n_estimators=5, sample_weight=weight[used])
    assert_same_model(model, fewer)
    order = rng.permutation(len(y))
    shuffled = pb.fit_gradient_boosting(
        X[order], y[order], n_estimators=5, sample_weight=weight[order]
    )
    assert_same_model(model, shuffled)
    copies = pb.fit_gradient_boosting(
        X.repeat(weight.astype(int), 0), y.repeat(weight.astype(int)), n_estimators=5
    )
    f, g = (pb.decision_function(m, X) for m in (model, copies))
    np.testing.assert_allclose(f, g, atol=1e-3)


def test_soft_labels():
    X, y = data()
    labels = np.unique(y)
    share = (y[:, None] == labels).astype(float)
    hard = pb.fit_gradient_boosting(X, y, n_estimators=5)
    soft = pb.fit_gradient_boosting(X, y_proba=share, classes=labels, n_estimators=5)
    assert soft.settings["loss"] == "softmax"
    assert_same_model(hard, soft)
    mixed = pb.fit_gradient_boosting(X, y_proba=0.7 * share + 0.1, classes=labels, n_estimators=100)
    probabilities = pb.predict_proba(mixed, X)
    assert np.abs(probabilities - 0.7 * share - 0.1).mean() < np.abs(probabilities - share).mean()
    # A row of several labels is so many rows, by their shares.
    share = np.random.default_rng(0).integers(0, 4, (len(y), 3)) + 1.0
    share /= share.sum(axis=1, keepdims=True)
    options = {"n_estimators": 5, "l2_regularization": 0.0}
    soft = pb.fit_gradient_boosting(X, y_proba=share, classes=labels, **options)
    rows, weight = np.repeat(X, 3, axis=0), share.ravel()
    copies = pb.fit_gradient_boosting(
        rows, np.tile(labels, len(y)), sample_weight=weight, **options
    )
    f, g = (pb.decision_function(m, X) for m in (soft, copies))
    np.testing.assert_allclose(f, g, atol=1e-12)
    with pytest.raises(ValueError, match="y_proba: expected every class to have"):
        pb.fit_gradient_boosting(
            X, y_proba=np.column_stack([share, 0 * share[:, 0]]), n_estimators=5
        )


def test_explained():
    X, y = data()
    model = pb.fit_gradient_boosting(X, y, n_estimators=20, **PLAIN)
    explanation = pb.explain(model, X[:1])
    assert explanation.contributions.shape == (4, 3)
    assert explanation.label == pb.predict(model, X[:1])[0]
    np.testing.assert_allclose(
        explanation.bias + explanation.contributions.sum(axis=0),
        pb.decision_function(model, X[:1])[0],
    )
    share = pb.feature_importances(model)
    fall = -np.diff(model.training_loss).repeat(3)  # of the loss, to each tree of a round
    of_trees = np.array([pb.feature_importances(tree) for tree in model.trees])
    np.testing.assert_allclose(share, fall @ of_trees / fall.sum(), rtol=1e-12)
    assert share.sum() == pytest.approx(1.0)
    assert share[:3].min() > 3 * share[3]
    rise = pb.inspection.permutation_importance(model, X, y, n_repeats=2, rng=0).mean(axis=1)
    assert rise[:3].min() > 3 * abs(rise[3])
    text = pb.describe(model)
    assert text.startswith("fit_gradient_boosting: 20 rounds of 3 trees, 4 features")
    assert "round 2, label 'class 1'" in text
    assert repr(model) == "<fit_gradient_boosting: 20 rounds of 3 trees, 4 features, loss softmax>"


def test_callback_sees_each_round_and_stops():
    X, y = data()
    seen = []

    def look(step, record):
        seen.append((step, record.n_leaves, record.training_loss))
        return step == 3

    model = pb.fit_gradient_boosting(X, y, n_estimators=9, callback=look)
    assert model.stop_reason == "stopped by the callback"
    leaves = np.array([tree.n_leaves for tree in model.trees]).reshape(3, 3).sum(axis=1)
    assert seen == list(zip([1, 2, 3], leaves, model.training_loss[1:], strict=True))


def test_nothing_to_learn():
    y = np.array(["a", "b", "c"] * 10)
    model = pb.fit_gradient_boosting(np.ones((30, 2)), y, n_estimators=10)
    np.testing.assert_allclose(pb.predict_proba(model, np.ones((1, 2))), 1 / 3, rtol=1e-12)


def test_separable_rows_stay_finite():
    X = np.arange(40.0)[:, None]
    y = np.array(["a", "b", "c", "d"])[(X[:, 0] // 10).astype(int)]
    model = pb.fit_gradient_boosting(X, y, n_estimators=300, learning_rate=1, max_delta_step=None)
    assert (pb.predict(model, X) == y).all()
    assert np.isfinite(pb.decision_function(model, X)).all()
    assert np.isfinite(model.training_loss).all()


def test_default_loss():
    X, y = data()
    numbers = np.searchsorted(np.unique(y), y)
    assert pb.fit_gradient_boosting(X, y, n_estimators=1).settings["loss"] == "softmax"
    of_numbers = pb.fit_gradient_boosting(X, numbers, n_estimators=1)
    assert of_numbers.settings["loss"] == "softmax"
    assert pb.predict(of_numbers, X).dtype == numbers.dtype
    assert (
        pb.fit_gradient_boosting(X, y == "class 1", n_estimators=1).settings["loss"] == "log_loss"
    )
    assert len(pb.fit_gradient_boosting(X, numbers, n_estimators=1, loss="softmax").classes) == 3


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ("three", {"loss": "softmax", "task": "regression"}, 'task: expected "classification"'),
        ("one", {"loss": "softmax"}, "y: expected at least two classes"),
        ("three", {"loss": "log_loss"}, 'y: expected two classes, got 3.*"softmax"'),
        ("half", {"loss": "softmax"}, "y: "),
    ],
)
def test_bad_labels(y, options, message):
    X, three = data()
    arguments = {"three": three, "one": np.full(300, "a"), "half": X[:, 0]}[y]
    with pytest.raises(ValueError, match=message):
        pb.fit_gradient_boosting(X, arguments, **options)


def test_classes_of_one_row_and_more_classes_than_rows():
    X, y = data()
    y = y.astype("U9")
    y[7] = "single"
    free = {"l2_regularization": 0.0}
    model = fit_shallow(X, y, n_estimators=100, max_depth=4, **free)
    assert pb.predict(model, X)[7] == "single"
    X = np.arange(5.0)[:, None]
    share = np.random.default_rng(0).dirichlet(np.ones(9), 5)
    model = fit_shallow(X, y_proba=share, n_estimators=100, learning_rate=0.5, **free)
    np.testing.assert_allclose(pb.predict_proba(model, X), share, atol=0.05)
    each = fit_shallow(X, list("abcde"), n_estimators=20, **free)
    assert pb.predict(each, X).tolist() == list("abcde")


def test_as_many_classes_as_rows():
    X, y = np.arange(60.0)[:, None], [f"row {i}" for i in range(60)]
    model = pb.fit_gradient_boosting(X, y, n_estimators=2)
    assert len(model.trees) == 120
    share = pb.predict_proba(model, X)
    assert share.shape == (60, 60)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    assert (np.diff(model.training_loss) < 0).all()
    assert model.training_loss[0] == pytest.approx(np.log(60))


@pytest.mark.parametrize("search", ["binned", "exact"])
def test_more_classes_than_there_is_room_for(search, monkeypatch):
    large, empty = (2, 20_000, 20_000), np.empty

    def refused(shape, *more, **options):
        if shape == large:
            raise MemoryError
        return empty(shape, *more, **options)

    monkeypatch.setattr(np, "empty", refused)
    X, y = np.arange(20_000.0)[:, None], np.arange(20_000).astype(str)
    message = "decision values and gradients of 20000 rows and 20000 classes need 6400000000 bytes"
    with pytest.raises(MemoryError, match=f"y: the {message}.*fit_one_vs_rest"):
        pb.fit_gradient_boosting(X, y, search=search)


def test_a_class_without_weight_is_kept_and_is_never_likely():
    X, y = data()
    weight = (y != "class 1").astype(float)
    model = pb.fit_gradient_boosting(X, y, n_estimators=5, sample_weight=weight)
    assert model.classes.tolist() == ["class 0", "class 1", "class 2"]
    assert pb.predict_proba(model, X)[:, 1].max() < 1e-12


def test_classes_that_a_fold_lacks():
    X, y = data()
    y = y.astype("U9")
    y[:2] = "rare"
    with pytest.warns(UserWarning, match="class 'rare' has 2 rows"):
        validated = pb.cross_validate(
            partial(pb.fit_gradient_boosting, n_estimators=5), X, y, cv=5, rng=0
        )
    assert np.isfinite(np.asarray(validated.error)).all()
