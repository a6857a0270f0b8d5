"""More than two classes: one model per class, and SAMME."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reference import multiclass as reference

import pboost as pb
from pboost.ensembles import shared_rows

STUMPS = partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=3)


class LabelStump:
    """The stump of the twins, as an estimator and as a model."""

    def fit(self, X, y, sample_weight):
        self.stump = reference.best_label_stump(X, y, sample_weight)

    def predict(self, X):
        return reference.answer(self.stump, np.asarray(X))


class Constant:
    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)


def three(n=90, seed=0, labels=("ash", "elm", "oak")):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    code = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.3)
    return X, np.asarray(labels)[code]


def check_consistent(model, X):
    """What holds for all models of several classes."""
    p = pb.predict_proba(model, X)
    assert p.shape == (len(X), len(model.classes))
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    assert (pb.predict(model, X) == model.classes[p.argmax(axis=1)]).all()
    assert pb.decision_function(model, X).shape == p.shape


# One versus rest


@pytest.mark.parametrize(
    "fit",
    [
        partial(pb.fit_adaboost, n_estimators=8),
        partial(pb.fit_boosted_tree, max_nodes=6),
        partial(pb.fit_matryoshka, shape=(2, 2)),
        partial(pb.fit_boosted_tree, max_nodes=4, observation=pb.observation.flip(0.1)),
        partial(
            pb.fit_adaboost, n_estimators=5, weak_learner=pb.weak.stump(search="binned", max_bins=8)
        ),
        partial(pb.fit_adaboost, n_estimators=5, weak_learner=pb.weak.affine(n_directions=5)),
    ],
    ids=["adaboost", "tree", "matryoshka", "soft", "binned", "affine"],
)
def test_members_are_those_of_their_classes(fit):
    X, y = three()
    weight = np.random.default_rng(1).uniform(size=len(y))
    model = pb.fit_one_vs_rest(fit, X, y, sample_weight=weight)
    assert model.classes.tolist() == ["ash", "elm", "oak"]
    for k, (label, member) in enumerate(zip(model.classes, model.models, strict=True)):
        alone = fit(X, y == label, sample_weight=weight)
        for name in ("feature", "threshold", "vote", "next"):
            assert (getattr(member, name) == getattr(alone, name)).all()
        assert (pb.decision_function(model, X)[:, k] == pb.decision_function(alone, X)).all()
    p = np.column_stack([pb.predict_proba(m, X)[:, 1] for m in model.models])
    np.testing.assert_allclose(pb.predict_proba(model, X), p / p.sum(axis=1, keepdims=True))
    cost = sum(pb.prediction_cost(m, X) for m in model.models)
    assert (pb.prediction_cost(model, X) == cost).all()
    check_consistent(model, X)


def test_columns_are_sorted_once(monkeypatch):
    X, y = three()
    calls = []
    monkeypatch.setattr(
        shared_rows,
        "sort_columns",
        lambda *a, **k: calls.append(1) or pb.data.sort_columns(*a, **k),
    )
    pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=2)
    pb.fit_samme(X, y, base_learner=STUMPS, n_estimators=3)
    assert len(calls) == 2
    for fit in (pb.fit_cart, pb.fit_pruned_cart):
        rest = pb.fit_one_vs_rest(partial(fit, min_samples_leaf=5, rng=0), X, y)
        for label, tree in zip(rest.classes, rest.models, strict=True):
            alone = fit(X, y == label, min_samples_leaf=5, rng=0)
            assert (tree.threshold == alone.threshold).all()
            assert (tree.value == alone.value).all()
    assert len(calls) == 4
    pb.fit_one_vs_rest(partial(pb.fit_cart, search="exact"), X, y, search="binned")
    # Elsewhere the builder would not sort, or what it sorts is its own affair.
    for weak in (pb.weak.stump(search="binned"), pb.weak.affine(n_directions=4)):
        pb.fit_one_vs_rest(
            partial(pb.fit_adaboost, weak_learner=pb.weak.stump()),
            X,
            y,
            n_estimators=2,
            weak_learner=weak,
        )
    pb.fit_one_vs_rest(lambda X, y: pb.fit_adaboost(X, y, n_estimators=1), X, y)
    assert len(calls) == 4


@pytest.mark.parametrize("prepare", [pb.data.sort_columns, pb.data.bin_columns, np.float32])
def test_prepared_columns(prepare):
    X, y = three()
    X = X.astype(np.float32)
    model = pb.fit_one_vs_rest(pb.fit_adaboost, prepare(X), y, n_estimators=4)
    weak = pb.weak.stump(search="binned" if prepare is pb.data.bin_columns else "exact")
    plain = pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=4, weak_learner=weak)
    assert (pb.decision_function(model, X) == pb.decision_function(plain, X)).all()


def test_frames_are_put_in_order():
    pd = pytest.importorskip("pandas")
    X, y = three()
    frame = pd.DataFrame(X, columns=list("pqr"))
    for model in (
        pb.fit_one_vs_rest(pb.fit_adaboost, frame, y, n_estimators=4),
        pb.fit_samme(frame, y, base_learner=STUMPS, n_estimators=4),
    ):
        expected = pb.decision_function(model, X)
        assert (pb.decision_function(model, frame[["r", "p", "q"]]) == expected).all()
        with pytest.raises(ValueError, match="expected the features of the training data"):
            pb.predict(model, frame.rename(columns={"p": "z"}))


def test_validation_labels_are_those_of_y():
    X, y = three(200)
    rows = X[120:], y[120:], np.ones(80)
    options = {"n_estimators": 30, "n_iter_no_change": 3}
    model = pb.fit_one_vs_rest(pb.fit_adaboost, X[:120], y[:120], validation=rows, **options)
    for label, member in zip(model.classes, model.models, strict=True):
        alone = pb.fit_adaboost(
            X[:120], y[:120] == label, validation=(X[120:], y[120:] == label), **options
        )
        assert (member.vote == alone.vote).all()
    held = pb.fit_one_vs_rest(pb.fit_adaboost, X, y, validation=0.2, rng=0, **options)
    assert held.models[0].settings["validation"] == 0.2


def test_two_classes_and_other_labels():
    X, y = three()
    two = pb.fit_one_vs_rest(pb.fit_adaboost, X, y == "ash", n_estimators=5)
    assert two.classes.tolist() == [False, True]
    alone = replace(pb.fit_adaboost(X, y == "ash", n_estimators=5), temperature=1.0)
    np.testing.assert_allclose(pb.predict_proba(two, X), pb.predict_proba(alone, X), rtol=1e-9)
    for labels in ((3, 1, 2), (3.0, -1.0, 7.0), ("a", "bb", "ccc")):
        model = pb.fit_one_vs_rest(pb.fit_adaboost, *three(labels=labels), n_estimators=5)
        assert model.classes.tolist() == sorted(labels)
        check_consistent(model, X)


def test_probabilities_below_all_numbers(monkeypatch):
    score = np.array([[-500.0, -400.0, -450.0], [-400, -400, -500], [0, 1, 2], [900, 900, -900]])
    members = []
    for _k in range(3):
        member = pb.fit_adaboost([[0.0], [1.0]], [False, True], n_estimators=1)
        members.append(member)
    model = pb.models.OneVsRest(tuple(members), np.arange(3), {})
    order = {id(member): k for k, member in enumerate(members)}

    def values(member, X):
        return score[np.asarray(X)[:, 0].astype(int), order[id(member)]]

    monkeypatch.setattr(pb.models.ensembles, "decision_function", values)

    def both(s):
        return np.column_stack([1 / (1 + np.exp(2 * s)), 1 / (1 + np.exp(-2 * s))])

    with np.errstate(over="ignore"):
        monkeypatch.setattr(pb.models.ensembles, "predict_proba", lambda m, X: both(values(m, X)))
        for rows in ([0, 1, 2, 3], [0, 1]):
            p = pb.predict_proba(model, np.array(rows, float)[:, None])
            assert p[:2].tolist() == [[0, 1, 0], [0.5, 0.5, 0]]
            np.testing.assert_allclose(p.sum(axis=1), 1)
    assert p.argmax(axis=1).tolist() == [1, 0]


def test_error_is_at_most_the_sum_of_the_errors():
    X, y = three(300)
    model = pb.fit_one_vs_rest(pb.fit_boosted_tree, X, y, max_nodes=12)
    wrong = np.mean(pb.predict(model, X) != y)
    assert wrong <= sum(map(pb.certificate, model.models))
    assert wrong < 0.2


# SAMME


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_samme_is_that_of_the_twin(seed, weighted):
    X, y = three(40, seed)
    weight = np.random.default_rng(seed).integers(0, 4, 40).astype(float) if weighted else None
    model = pb.fit_samme(X, y, base_learner=LabelStump(), n_estimators=12, sample_weight=weight)
    stumps, alpha, errors = reference.samme(X, y, 12, weight)
    np.testing.assert_allclose(model.alpha, alpha, rtol=1e-9)
    np.testing.assert_allclose(model.error, errors, rtol=1e-9)
    assert [m.stump[:2] for m in model.models] == [s[:2] for s in stumps]
    expected = reference.votes(stumps, alpha, X, model.classes)
    np.testing.assert_allclose(pb.decision_function(model, X), expected, rtol=1e-9)
    odds = np.exp(expected / model.temperature)
    np.testing.assert_allclose(
        pb.predict_proba(model, X), odds / odds.sum(axis=1, keepdims=True), rtol=1e-7
    )
    check_consistent(model, X)


@pytest.mark.parametrize("seed", range(4))
def test_two_classes_are_discrete_adaboost(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=60) > 0, "yes", "no")
    weight = rng.uniform(0.5, 2, 60)
    options = {"votes": "symmetric", "smoothing": 0, "weak_learner": pb.weak.stump("error")}
    base = partial(pb.fit_adaboost, n_estimators=1, **options)
    model = pb.fit_samme(X, y, base_learner=base, n_estimators=20, sample_weight=weight)
    chain = pb.fit_adaboost(X, y, n_estimators=20, sample_weight=weight, **options)
    assert len(model.models) == chain.n_nodes > 10
    np.testing.assert_allclose(model.alpha, 2 * np.abs(chain.vote[:, 0]), rtol=1e-8)
    assert (pb.predict(model, X) == pb.predict(chain, X)).all()
    difference = np.diff(pb.decision_function(model, X))[:, 0]
    np.testing.assert_allclose(difference, 2 * pb.decision_function(chain, X), atol=1e-8)
    np.testing.assert_allclose(pb.predict_proba(model, X), pb.predict_proba(chain, X), rtol=1e-7)
    stages = zip(pb.staged_predict(model, X), pb.staged_predict(chain, X), strict=True)
    assert all((item == other).all() for item, other in stages)


def test_samme_of_scikit_learn():
    ensemble = pytest.importorskip("sklearn.ensemble")
    tree = pytest.importorskip("sklearn.tree")
    X, y = three(150)
    base = tree.DecisionTreeClassifier(max_depth=2, random_state=0)
    model = pb.fit_samme(X, y, base_learner=base, n_estimators=15)
    other = ensemble.AdaBoostClassifier(base, n_estimators=15, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.alpha, other.estimator_weights_, rtol=1e-9)
    assert (pb.predict(model, X) == other.predict(X)).all()
    assert not hasattr(base, "tree_")  # it is copied
    assert np.mean(pb.predict(model, X) != y) < 0.15


def test_one_vs_rest_as_base():
    X, y = three(200)
    model = pb.fit_samme(X, y, base_learner=STUMPS, n_estimators=20)
    again = pb.fit_samme(X, y, base_learner=partial(STUMPS, n_threads=2), n_estimators=20)
    assert (model.alpha == again.alpha).all()
    sorted_ = pb.fit_samme(pb.data.sort_columns(X), y, base_learner=STUMPS, n_estimators=20)
    assert (model.alpha == sorted_.alpha).all()
    assert np.mean(pb.predict(model, X) != y) < 0.15
    cost = sum(pb.prediction_cost(m, X) for m in model.models)
    assert (pb.prediction_cost(model, X) == cost).all()


def test_stages_of_samme():
    X, y = three()
    model = pb.fit_samme(X, y, base_learner=LabelStump(), n_estimators=9)
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == len(model.models) > 4
    for t, score in enumerate(stages, 1):
        shorter = pb.fit_samme(X, y, base_learner=LabelStump(), n_estimators=t)
        assert (pb.decision_function(shorter, X) == score).all()
    labels = list(pb.staged_predict(model, X))
    assert (labels[-1] == pb.predict(model, X)).all()


def test_stages_of_one_vs_rest():
    X, y = three()
    model = pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=9)
    sizes = [member.n_nodes for member in model.models]
    stages = list(pb.staged_decision_function(model, X))
    assert len(stages) == max(sizes)
    for t, score in enumerate(stages, 1):
        members = [pb.models.truncate(m, min(t, m.n_nodes)) for m in model.models]
        alone = [pb.decision_function(member, X) for member in members]
        np.testing.assert_array_equal(score, np.column_stack(alone))
    for function in ("decision_function", "predict", "predict_proba"):
        actual = list(getattr(pb, f"staged_{function}")(model, X))
        np.testing.assert_array_equal(actual[-1], getattr(pb, function)(model, X))
    trees = pb.fit_one_vs_rest(pb.fit_cart, X, y)
    with pytest.raises(NotImplementedError, match="a Tree has no stages"):
        pb.staged_predict_proba(trees, X).__next__()


def test_routes_of_one_vs_rest():
    X, y = three()
    noise = pb.observation.gaussian(0.5)
    model = pb.fit_one_vs_rest(pb.fit_adaboost, X, y, n_estimators=5, observation=noise)
    for options in ({"route": "expected"}, {"route": "expected", "sigma": 1.0}):
        scores = pb.decision_function(model, X, **options)
        alone = [pb.decision_function(member, X, **options) for member in model.models]
        np.testing.assert_array_equal(scores, np.column_stack(alone))
    drawn = [pb.decision_function(model, X, "sample", rng=1, draws=2) for _ in range(2)]
    assert drawn[0].shape == (len(X), 3)
    np.testing.assert_array_equal(*drawn)


def test_member_without_error_outweighs():
    X = np.arange(9.0)[:, None]
    y = np.repeat([0, 1, 2], 3)
    rest = Constant(None)
    rest.predict = lambda X: np.where(X[:, 0] < 3, 0, 1)
    first = iter([rest])

    def base(X, y, sample_weight):
        return next(first, None) or STUMPS(X, y, sample_weight=sample_weight)

    model = pb.fit_samme(X, y, base_learner=base, n_estimators=9)
    assert model.stop_reason == "a base learner without errors determines the prediction"
    assert model.error.tolist() == [pytest.approx(1 / 3), 0.0]
    assert model.alpha[0] == pytest.approx(math.log(4))
    assert model.alpha[1] == pytest.approx(math.log(4) + math.log(2.0**52) + math.log(2))
    assert (pb.predict(model, X) == y).all()


def test_member_that_guesses_is_left_out():
    X, y = three(90)
    first = iter([LabelStump()])

    def base(X, y, sample_weight):
        member = next(first, None)
        if member is None:
            return Constant("ash")
        member.fit(X, y, sample_weight)
        return member

    model = pb.fit_samme(X, y, base_learner=base, n_estimators=9)
    kept = [m for m in model.models if isinstance(m, LabelStump)]
    assert model.models[0] is kept[0]
    assert len(model.error) == len(model.models) + 1 < 9
    assert model.error[-1] >= 2 / 3
    assert model.stop_reason == "a base learner was no better than guessing and is left out"


def test_no_member_gives_the_shares():
    X, y = np.zeros((6, 1)), np.array([0, 0, 1, 1, 2, 2])
    weight = np.array([1.0, 1, 1, 4, 1, 2])

    def worst(X, y, sample_weight):
        return Constant(0)

    model = pb.fit_samme(X, y, base_learner=worst, n_estimators=5, sample_weight=weight)
    assert model.error.tolist() == [pytest.approx(0.8)]
    np.testing.assert_allclose(pb.predict_proba(model, X), [[0.2, 0.5, 0.3]] * 6)
    assert pb.predict(model, X).tolist() == [1] * 6
    assert pb.prediction_cost(model, X).tolist() == [0.0] * 6
    assert list(pb.staged_predict(model, X)) == []


def test_ties_go_to_the_first_label():
    labels = np.array(["a", "b", "c"])
    members = Constant("c"), Constant("b"), Constant("a")
    for alpha in ([1.0, 1.0, 0.5], [0.1 + 0.2, 0.3, 0.1], [1e-17, 1e-17, 0.0], [800.0, 800.0, 1.0]):
        model = pb.models.WeightedVote(members, alpha, labels, np.zeros(3), {}, np.zeros(3), "")
        check_consistent(model, np.zeros((2, 1)))
    assert pb.predict(model, np.zeros((1, 1))).tolist() == ["b"]


def test_class_that_is_always_right_does_not_vanish():
    X, y = three(120)
    X[:, 2] = np.where(y == "oak", 5.0, -5.0)
    noise = np.random.default_rng(0).permutation(y[y != "oak"])
    y[y != "oak"] = noise
    base = partial(pb.fit_one_vs_rest, pb.fit_boosted_tree, max_nodes=4)
    model = pb.fit_samme(X, y, base_learner=base, n_estimators=60)
    assert (pb.predict(model, X)[y == "oak"] == "oak").all()


def test_learning_rate_and_callback():
    X, y = three()
    half = pb.fit_samme(X, y, base_learner=LabelStump(), n_estimators=1, learning_rate=0.5)
    full = pb.fit_samme(X, y, base_learner=LabelStump(), n_estimators=1)
    assert half.alpha[0] == full.alpha[0] / 2
    seen = []

    def stop(round_, error):
        return seen.append((round_, error)) or round_ == 3

    model = pb.fit_samme(X, y, base_learner=LabelStump(), n_estimators=9, callback=stop)
    assert seen == [(t + 1, e) for t, e in enumerate(model.error)]
    assert len(model.models) == 3
    assert model.stop_reason == "stopped by the callback"


def test_samme_boosts_small_trees_if_nothing_else_is_said():
    X = np.random.default_rng(5).normal(size=(120, 3))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    model = pb.fit_samme(X, y, n_estimators=4)
    same = pb.fit_samme(X, y, base_learner=partial(pb.fit_cart, max_depth=3), n_estimators=4)
    assert np.array_equal(pb.decision_function(model, X), pb.decision_function(same, X))
    assert model.settings == same.settings
    assert model.settings["base_learner"] == "fit_cart"
