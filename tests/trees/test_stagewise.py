"""Forward stagewise additive models: the twin, AdaBoost, options, files, bad input."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from reference.stagewise import fit_gradient_boosting
from shallow import fit_shallow

import pboost as pb
from pboost.losses import LOSSES, Loss
from pboost.trees.gradients import working_response

NAMES = [
    name
    for name, loss in LOSSES.items()
    if name == "squared_error" or not (loss.is_regression or name == "softmax")
]


def problem(n=300, d=4, seed=0):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.4 * r.normal(size=n) > 0, "same", "other")


def numbers(n=300, seed=0):
    X, _ = problem(n, seed=seed)
    return X, X[:, 0] ** 2 + X[:, 1] + 0.1 * np.random.default_rng(seed + 1).normal(size=n)


def assert_same_model(a, b):
    for name in ("root", "feature", "threshold", "children", "value", "weight"):
        assert np.array_equal(getattr(a.trees, name), getattr(b.trees, name)), name
    assert a.bias == b.bias
    assert a.loss == b.loss
    assert np.array_equal(a.training_loss, b.training_loss)


@dataclass(frozen=True, slots=True)
class Huber(Loss):
    """Squared near 0, then linear; it has no curvature."""

    name: ClassVar[str] = "huber"
    is_regression: ClassVar[bool] = True

    def value(self, y, f):
        size = np.abs(y - f)
        return np.where(size < 1, size**2 / 2, size - 0.5)

    def gradient(self, y, f):
        return np.clip(f - y, -1, 1)


@pytest.mark.parametrize(("init", "max_delta_step"), [("constant", 0.8), ("zero", None)])
@pytest.mark.parametrize("name", [*NAMES, "numbers"])
def test_equals_the_twin(name, init, max_delta_step):
    r = np.random.default_rng(3)
    X, weight = r.normal(size=(60, 3)), r.uniform(0.5, 2, 60)
    sign = np.where(X[:, 0] + X[:, 1] + r.normal(size=60) > 0.3, 1.0, -1.0)
    y = sign + X[:, 2] if name == "numbers" else sign
    task = "regression" if name == "numbers" else "classification"
    loss = LOSSES["squared_error" if name == "numbers" else name]
    model = pb.fit_gradient_boosting(
        X,
        y,
        loss=loss,
        task=task,
        n_estimators=4,
        learning_rate=0.5,
        max_depth=2,
        min_samples_leaf=3,
        init=init,
        sample_weight=weight,
        max_delta_step=max_delta_step,
        search="exact",
    )
    stages = fit_gradient_boosting(
        X,
        y,
        loss,
        n_estimators=4,
        rate=0.5,
        weight=weight,
        max_depth=2,
        start=init,
        min_samples_leaf=3,
        max_delta_step=np.inf if max_delta_step is None else max_delta_step,
    )
    actual = [np.full(60, model.bias), *pb.staged_decision_function(model, X)]
    losses = [loss.reported * np.average(loss.value(y, f), weights=weight) for f in stages]
    np.testing.assert_allclose(model.training_loss, losses, rtol=1e-6)
    for ours, theirs in zip(actual, stages, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("criterion", ["gini", "kearns_mansour"])
def test_exponential_stumps_are_adaboost(criterion):
    """With Gini always, with another criterion for as long as both find the same splits."""
    X, y = problem(1000)
    boosted = pb.fit_adaboost(
        X,
        y,
        n_estimators=25,
        weak_learner=pb.weak.stump(criterion=criterion),
        votes="domain",
        smoothing=0,
    )
    model = pb.fit_gradient_boosting(
        X,
        y,
        loss="exponential",
        n_estimators=25,
        learning_rate=1,
        max_depth=1,
        init="zero",
        max_delta_step=None,
        search="exact",
    )
    ours = list(pb.staged_decision_function(model, X))
    theirs = list(pb.staged_decision_function(boosted, X))
    splits = [(int(t.feature[0]), float(t.threshold[0])) for t in model.trees]
    of_nodes = list(zip(boosted.feature.tolist(), boosted.threshold.tolist(), strict=True))
    agree = 0
    while agree < 25 and splits[agree] == of_nodes[agree]:
        agree += 1
    assert agree == 25 if criterion == "gini" else agree >= 1
    for a, b in zip(ours[:agree], theirs[:agree], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    # The mean loss of the exponential is the certificate of the chain.
    bound = boosted.record.certificate[: agree + 1]
    np.testing.assert_allclose(model.training_loss[: agree + 1], bound, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_learns_and_lowers_the_loss(name):
    X, y = problem(800)
    new, truth = problem(800, seed=9)
    model = fit_shallow(X, y, loss=name, task="classification", n_estimators=60, learning_rate=0.3)
    assert (np.diff(model.training_loss) <= 1e-12).all()
    assert np.mean(pb.predict(model, new) == truth) > 0.7
    score = pb.decision_function(model, X)
    target = np.where(y == "same", 1.0, -1.0)
    mean = model.loss.reported * model.loss.value(target, score).mean()
    assert mean == pytest.approx(model.training_loss[-1], rel=1e-9)
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == len(model)
    assert np.array_equal(stages[-1], score)
    assert np.array_equal(list(pb.staged_predict(model, X))[-1], pb.predict(model, X))
    assert (pb.prediction_cost(model, X) <= 3 * len(model)).all()
    if name == "hinge":
        with pytest.raises(NotImplementedError, match="do not give probabilities"):
            pb.predict_proba(model, X)
        return
    share = pb.predict_proba(model, X)
    assert np.array_equal(share[:, 1], LOSSES[name].probability(score))
    assert np.array_equal(model.classes[share.argmax(axis=1)], pb.predict(model, X))


@pytest.mark.parametrize("loss", ["squared_error", Huber()], ids=["squared_error", "huber"])
def test_regression(loss):
    X, y = numbers()
    new, truth = numbers(seed=8)
    model = pb.fit_gradient_boosting(X, y, loss=loss, n_estimators=100, max_depth=3)
    assert model.classes is None
    assert np.mean((pb.predict(model, new) - truth) ** 2) < 0.2 * truth.var()
    with pytest.raises(TypeError, match="no probabilities"):
        pb.predict_proba(model, X)
    rise = pb.inspection.permutation_importance(model, X, y, n_repeats=2, rng=0).mean(axis=1)
    assert rise[:2].min() > 10 * rise[2:].max()


def test_squared_is_gradient_boosting_of_scikit_learn():
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = numbers()
    X = X.astype(np.float32).astype(np.float64)
    theirs = ensemble.GradientBoostingRegressor(
        n_estimators=20, learning_rate=0.3, max_depth=2
    ).fit(X, y)
    ours = pb.fit_gradient_boosting(
        X, y, loss="squared_error", n_estimators=20, learning_rate=0.3, max_depth=2, search="exact"
    )
    for a, b in zip(pb.staged_predict(ours, X), theirs.staged_predict(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_same_model_for_threads_columns_and_equal_seeds():
    X, y = problem(3000)
    options = {"loss": "log_loss", "n_estimators": 5, "subsample": 0.5, "search": "exact"}
    model = pb.fit_gradient_boosting(X, y, rng=1, n_threads=1, **options)
    assert_same_model(model, pb.fit_gradient_boosting(X, y, rng=1, n_threads=2, **options))
    options["search"] = "auto"
    assert_same_model(model, pb.fit_gradient_boosting(pb.data.sort_columns(X), y, rng=1, **options))
    other = pb.fit_gradient_boosting(X, y, rng=2, **options)
    assert not np.array_equal(model.training_loss, other.training_loss)
    assert all(1400 < tree.n_rows[0] < 1600 for tree in model.trees)
    binned = pb.fit_gradient_boosting(X, y, rng=1, **{**options, "search": "binned"}, max_bins=32)
    columns = pb.data.bin_columns(X, max_bins=32)
    assert_same_model(binned, pb.fit_gradient_boosting(columns, y, rng=1, **options))


def test_rows_of_weight_0_do_not_matter():
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    used = weight > 0
    options = {"loss": "probit", "n_estimators": 5}
    model = pb.fit_gradient_boosting(X, y, sample_weight=weight, **options)
    other = pb.fit_gradient_boosting(X[used], y[used], sample_weight=weight[used], **options)
    assert_same_model(model, other)


def test_validation_chooses_the_number_of_trees():
    X, y = problem(600)
    new, truth = problem(600, seed=4)
    options = {
        "loss": "log_loss",
        "n_estimators": 300,
        "learning_rate": 0.3,
        "n_iter_no_change": 10,
    }
    model = pb.fit_gradient_boosting(X, y, validation=(new, truth), **options)
    tried = model.validation_loss
    assert len(model) == tried.argmin() == len(tried) - 11
    assert model.stop_reason == "no improvement on the validation set for 10 trees"
    target = np.where(truth == "same", 1.0, -1.0)
    stages = pb.staged_decision_function(model, new)
    losses = [LOSSES["log_loss"].value(target, f).mean() for f in stages]
    np.testing.assert_allclose(losses, tried[1 : len(model) + 1])
    doubled = pb.fit_gradient_boosting(
        X, y, validation=(new, truth, np.full(len(truth), 2.0)), **options
    )
    assert np.allclose(doubled.validation_loss, tried)


def test_rows_held_out_are_not_trained_on():
    X, y = problem()
    model = pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=3, validation=0.25, rng=0)
    assert model.trees[0].n_rows[0] == 225
    assert len(model.validation_loss) == 4
    X, y = numbers()
    assert (
        pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=3, validation=0.25, rng=0)
        .trees[0]
        .n_rows[0]
        == 225
    )


def test_prefix_is_the_model_of_fewer_steps(tmp_path):
    X, y = problem()
    options = {"loss": "log_loss", "subsample": 0.6, "rng": 3}
    model = pb.fit_gradient_boosting(X, y, n_estimators=9, **options)
    for n in (1, 4):
        cut = pb.models.truncate(model, n)
        assert_same_model(cut, pb.fit_gradient_boosting(X, y, n_estimators=n, **options))
        assert cut.stop_reason == f"truncated to the first {n} of 9 trees"
        stages = list(pb.staged_decision_function(model, X))
        assert np.array_equal(pb.decision_function(cut, X), stages[n - 1])
        pb.save(cut, tmp_path / "m.npz")
        assert_same_model(pb.load(tmp_path / "m.npz"), cut)
    assert pb.models.truncate(model, 9) is model
    assert len(model) == 9
    for wrong in (0, 10):
        with pytest.raises(ValueError, match="n_nodes: expected"):
            pb.models.truncate(model, wrong)


def test_staged_probabilities():
    X, y = problem()
    model = pb.fit_gradient_boosting(X, y, loss="probit", n_estimators=5)
    shares = list(pb.staged_predict_proba(model, X))
    for n, share in enumerate(shares, 1):
        assert np.array_equal(share, pb.predict_proba(pb.models.truncate(model, n), X))
    numbers_ = pb.fit_gradient_boosting(X, X[:, 0], loss="squared_error", n_estimators=2)
    with pytest.raises(TypeError, match="no probabilities"):
        next(pb.staged_predict_proba(numbers_, X))


def test_callback_sees_each_step_and_stops():
    X, y = problem()
    seen = []

    def look(step, record):
        seen.append((step, record.n_leaves, record.training_loss, record.validation_loss))
        return step == 3

    model = pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=9, callback=look)
    assert model.stop_reason == "stopped by the callback"
    assert [step for step, *_ in seen] == [1, 2, 3]
    assert [loss for _, _, loss, _ in seen] == model.training_loss[1:].tolist()
    assert [leaves for _, leaves, *_ in seen] == [tree.n_leaves for tree in model.trees]


def test_nothing_to_learn():
    y = np.array([0, 1] * 10)
    model = fit_shallow(np.ones((20, 2)), y, loss="log_loss", n_estimators=10)
    assert model.stop_reason == "no leaf lowers the loss"
    assert len(model) == 1
    assert not pb.decision_function(model, np.ones((2, 2))).any()
    # From 0, the constant is approached by trees of one leaf.
    y = np.array([0, 1, 1, 1] * 5)
    model = pb.fit_gradient_boosting(
        np.ones((20, 1)), y, loss="exponential", n_estimators=60, learning_rate=0.5, init="zero"
    )
    score = pb.decision_function(model, np.ones((1, 1)))[0]
    assert score == pytest.approx(np.log(3) / 2, abs=1e-6)


def test_separable_rows_stay_finite():
    X = np.arange(40.0)[:, None]
    for name in NAMES:
        model = pb.fit_gradient_boosting(
            X,
            X[:, 0] > 17,
            loss=name,
            task="classification",
            n_estimators=400,
            learning_rate=1,
            max_delta_step=None,
        )
        assert (pb.predict(model, X) == (X[:, 0] > 17)).all()
        assert np.isfinite(pb.decision_function(model, X)).all()


def test_newton_steps_are_bounded():
    """Far on the wrong side the curvature of the log loss vanishes, and the gradient does not."""
    loss = LOSSES["log_loss"]
    f = np.array([-700.0, 0.0, 700.0])
    target, weight = working_response(loss, np.ones(3), f, np.ones(3))
    assert target[0] == pytest.approx(loss.limit)
    # Gradients are 1 and 1/2, curvatures 1 / limit and 1/4.
    assert target[0] * weight[0] == pytest.approx(2 * target[1] * weight[1])
    assert weight.max() == 1
    assert target[1] == pytest.approx(2.0)
    assert np.abs(target).max() <= loss.limit
    # An exponential beyond the range of numbers gives no step.
    assert working_response(LOSSES["exponential"], np.ones(3), 2 * f, np.ones(3)) is None


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_pickled(name, tmp_path):
    X, y = problem()
    task, share = "classification", 0.2 if name == "probit" else None
    model = pb.fit_gradient_boosting(
        X, y, loss=name, task=task, n_estimators=4, validation=share, rng=0
    )
    pb.save(model, tmp_path / "m.npz")
    for again in (pb.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert_same_model(model, again)
        assert again.settings == model.settings
        assert again.stop_reason == model.stop_reason
        assert np.array_equal(pb.predict(model, X), pb.predict(again, X))
        assert (again.validation_loss is None) == (share is None)
        assert pb.describe(again) == pb.describe(model)


def test_regression_saved_and_own_loss_refused(tmp_path):
    X, y = numbers()
    model = pb.fit_gradient_boosting(X, y, loss="squared_error", n_estimators=3)
    pb.save(model, tmp_path / "m.npz")
    again = pb.load(tmp_path / "m.npz")
    assert again.classes is None
    assert_same_model(model, again)
    with pytest.raises(TypeError, match="'huber' is a function"):
        pb.save(pb.fit_gradient_boosting(X, y, loss=Huber(), n_estimators=3), tmp_path / "h.npz")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": "cubic"}, ValueError, "loss: expected one of"),
        ({"loss": 3}, TypeError, "loss: "),
        ({"task": "regression"}, ValueError, 'task: expected "classification"'),
        ({"task": "ranking"}, ValueError, "task: "),
        ({"n_estimators": 0}, ValueError, "n_estimators: "),
        ({"n_estimators": 2.5}, TypeError, "n_estimators: "),
        ({"learning_rate": 0.0}, ValueError, "learning_rate: "),
        ({"learning_rate": 1.5}, ValueError, "learning_rate: "),
        ({"subsample": 0.0}, ValueError, "subsample: "),
        ({"subsample": 2.0}, ValueError, "subsample: "),
        ({"init": "one"}, ValueError, "init: "),
        ({"max_depth": 0}, ValueError, "max_depth: "),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf: "),
        ({"max_delta_step": 0}, ValueError, "max_delta_step: "),
        ({"max_delta_step": "none"}, ValueError, "max_delta_step: "),
        ({"max_delta_step": [1]}, TypeError, "max_delta_step: "),
        ({"search": "fast"}, ValueError, "search: "),
        ({"n_iter_no_change": 3}, ValueError, "n_iter_no_change: "),
        ({"validation": 0.7}, ValueError, "validation: "),
        ({"validation": (1,)}, ValueError, "validation: "),
        ({"validation": 0.2, "n_iter_no_change": 0}, ValueError, "n_iter_no_change: "),
        ({"rng": "a"}, TypeError, "rng: "),
        ({"callback": 3}, TypeError, "callback: "),
        ({"sample_weight": np.full(300, -1.0)}, ValueError, "sample_weight: "),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        pb.fit_gradient_boosting(*problem(), **{"loss": "log_loss", **options})


def test_bad_data():
    X, y = problem()
    with pytest.raises(ValueError, match="y: expected two classes, got 3"):
        pb.fit_gradient_boosting(X, np.arange(300) % 3, loss="log_loss")
    with pytest.raises(ValueError, match="y: "):
        pb.fit_gradient_boosting(X, np.zeros(300), loss="log_loss")
    with pytest.raises(ValueError, match="y: expected finite numbers"):
        pb.fit_gradient_boosting(X, np.full(300, np.nan), loss="squared_error")
    with pytest.raises(TypeError, match="y: expected numbers"):
        pb.fit_gradient_boosting(X, y, loss="squared_error")
    model = pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=2)
    with pytest.raises(ValueError, match="X: "):
        pb.predict(model, np.full((2, 4), np.inf))
    with pytest.raises(ValueError, match="y: expected class labels of the model"):
        pb.fit_gradient_boosting(X, y, loss="log_loss", validation=(X, np.arange(300)))


def test_weights_of_very_different_size():
    """Sums of squares bounded by block must not cancel where a side weighs next to nothing."""
    r = np.random.default_rng(3)
    X = r.normal(size=(200, 3))
    y = X[:, 0] - X[:, 1] * X[:, 2] + 0.5 * r.normal(size=200) > 0
    for seed in range(4):
        r = np.random.default_rng(seed)
        for span in (20, 100, 300):
            weight = 10.0 ** r.integers(-span, span + 1, 200)
            for loss in ("log_loss", "squared_error", "hinge"):
                options = {"n_estimators": 5, "learning_rate": 1.0, "task": "classification"}
                model = pb.fit_gradient_boosting(X, y, loss=loss, sample_weight=weight, **options)
                assert np.isfinite(pb.decision_function(model, X)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:0], y[:0]), "X: expected at least one row"),
        (lambda X, y: (X[:, :2], y), "X: expected 3 (columns|features), got 2"),
        (lambda X, y: (X, np.full(20, 7)), "y: expected class labels of the model"),
        (lambda X, y: (X * np.inf, y), "X: expected finite numbers"),
        (lambda X, y: (X, y, np.zeros(20)), "sample_weight: expected at least one weight"),
    ],
)
def test_bad_validation_data(change, message):
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = X[:, 0] > 0
    with pytest.raises(ValueError, match=f"validation: {message}"):
        pb.fit_gradient_boosting(X, y, loss="log_loss", n_estimators=2, validation=change(X, y))


@pytest.mark.parametrize(
    ("y", "options", "loss"),
    [
        (np.arange(40) % 2, {}, "log_loss"),
        (np.arange(40) % 2 * 0.5, {}, "squared_error"),
        (np.where(np.arange(40) % 3, "a", "b"), {}, "log_loss"),
        ((np.arange(40) % 3 / 2).tolist(), {}, "squared_error"),
        (np.arange(40) % 3, {}, "softmax"),
        (np.arange(40) % 3, {"task": "regression"}, "squared_error"),
        (np.arange(40) / 7, {}, "squared_error"),
        (np.arange(40) % 2, {"task": "regression"}, "squared_error"),
        (np.arange(40) % 2, {"task": "classification"}, "log_loss"),
    ],
    ids=str,
)
def test_default_loss(y, options, loss):
    X = np.arange(80.0).reshape(40, 2)
    model = pb.fit_gradient_boosting(X, y, n_estimators=2, **options)
    assert model.settings["loss"] == model.loss.name == loss
    assert (model.classes is None) == (loss == "squared_error")
    same = pb.fit_gradient_boosting(X, y, n_estimators=2, loss=loss, task=model.settings["task"])
    assert np.array_equal(pb.predict(same, X), pb.predict(model, X))


def test_targets_without_a_default_loss():
    X = np.arange(80.0).reshape(40, 2)
    with pytest.raises(ValueError, match="at least two"):
        pb.fit_gradient_boosting(X, np.ones(40))
    full = np.arange(40) % 21
    for y in (full, full.astype(float), full.tolist()):
        with pytest.raises(ValueError, match=r"^y: got more than 20 distinct int") as e:
            pb.fit_gradient_boosting(X, y)
        for said in ('task="classification"', 'task="regression"'):
            assert said in str(e.value)
    assert len(pb.fit_one_vs_rest(pb.fit_gradient_boosting, X, full, n_estimators=2).classes) == 21
    assert pb.fit_gradient_boosting(X, full, loss="squared_error", n_estimators=2).classes is None
    with pytest.raises(ValueError, match="y: missing label in row 1"):
        pb.fit_gradient_boosting(X, [1.0, np.nan] * 20)


@pytest.mark.parametrize("share", [1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize(("loss", "factor"), [("log_loss", 1.0), ("exponential", 0.5)])
def test_light_rows_are_not_dropped(loss, factor, share):
    """A weight far below all others is no number of copies, and the row still has a part."""
    model = pb.fit_gradient_boosting(
        [[0.0], [1.0]], [0, 1], loss=loss, sample_weight=[1.0, share], n_estimators=1
    )
    assert model.bias == pytest.approx(factor * np.log(share), rel=1e-12)
