"""Weak classifiers that are functions: what they are given, and the models they make."""

import numpy as np
import pytest
from oracle_learners import StumpEstimator, noisy_stump, train_stump
from soft_models import noisy, observation

import pboost as pb

FITS = {
    "chain": (pb.fit_adaboost, {"n_estimators": 6}),
    "tree": (pb.fit_boosted_tree, {"max_nodes": 6}),
    "matryoshka": (pb.fit_matryoshka, {"shape": (3, 2)}),
}
builders = pytest.mark.parametrize("builder", FITS)
SAMPLED = pb.observation.sampled(5)


def fit(builder, X, y, **options):
    build, size = FITS[builder]
    return build(X, y, **(size | {"rng": 0} | options))


def oracle_of(kind):
    if kind == "oracle":
        return pb.weak.oracle(train_stump)
    return pb.weak.from_estimator(StumpEstimator(0.75))


# The same as stumps


@builders
@pytest.mark.parametrize("kind", ["oracle", "estimator"])
@pytest.mark.parametrize("of", ["exact", "flip", "adatree2", "uniform", "half"])
def test_deterministic_answers_are_those_of_stumps(builder, kind, of):
    X, y, weight = noisy(1, n=80)
    weight[::7] = 0
    options = {"observation": observation(of, 0.1), "sample_weight": weight}
    stumps = fit(builder, X, y, **options)
    model = fit(builder, X, y, weak_learner=oracle_of(kind), **options)
    np.testing.assert_array_equal(model.next, stumps.next)
    np.testing.assert_allclose(model.vote, stumps.vote, atol=1e-9)
    np.testing.assert_allclose(model.record.certificate, stumps.record.certificate, rtol=1e-9)
    np.testing.assert_allclose(model.record.cost, stumps.record.cost, rtol=1e-9)
    if of != "exact":
        np.testing.assert_allclose(model.answer, stumps.answer, atol=1e-9)
    for function in (pb.decision_function, pb.prediction_cost):
        np.testing.assert_allclose(function(model, X), function(stumps, X), atol=1e-9)
    np.testing.assert_array_equal(pb.predict(model, X), pb.predict(stumps, X))
    for stage, stump_stage in zip(
        pb.staged_decision_function(model, X),
        pb.staged_decision_function(stumps, X),
        strict=True,
    ):
        np.testing.assert_allclose(stage, stump_stage, atol=1e-9)


@builders
@pytest.mark.parametrize("of", ["exact", "flip", "adatree2"])
def test_the_certificate_of_estimators_is_recomputed(builder, of):
    X, y, weight = noisy(2, n=60)
    options = {"observation": observation(of, 0.1), "sample_weight": weight}
    model = fit(builder, X, y, weak_learner=oracle_of("estimator"), **options)
    bound = pb.certificate(model, X, y, sample_weight=weight)
    assert bound == pytest.approx(model.record.certificate[-1], rel=1e-9)
    reach = pb.inspection.reach(model, X, y)
    mean = np.average(reach.sum(axis=1), weights=weight)
    assert mean == pytest.approx(model.record.cost[-1])
    if of == "flip":
        expected = pb.decision_function(model, X, route="expected")
        drawn = pb.decision_function(model, X, route="sample", rng=0, draws=3000)
        assert np.abs(expected - drawn).max() < 0.15


# Sampled


@pytest.mark.full
@builders
def test_sampled_oracles_approach_the_known_rate(builder):
    X, y, _ = noisy(3, n=80)
    options = {"observation": observation("flip", 0.2), "smoothing": 1e-3}
    known = fit(builder, X, y, **options)
    gaps = []
    for draws in (2, 1500):
        sampled_options = options | {"observation": pb.observation.sampled(draws)}
        model = fit(builder, X, y, weak_learner=pb.weak.oracle(noisy_stump(0.2)), **sampled_options)
        gaps.append(np.abs(model.vote[0] - known.vote[0]).max())
    assert gaps[0] > gaps[1]
    assert gaps[1] < 0.02


@builders
@pytest.mark.parametrize("stop", ["first_increase", 4])
@pytest.mark.parametrize("kind", ["oracle", "estimator"])
def test_the_same_seed_gives_the_same_model(builder, stop, kind):
    X, y, _ = noisy(4, n=60)
    weak = {
        "oracle": pb.weak.oracle(noisy_stump(0.2)),
        "estimator": pb.weak.from_estimator(StumpEstimator(0.8)),
    }[kind]
    options = {"weak_learner": weak, "observation": pb.observation.sampled(stop)}
    first, same, other_seed = (fit(builder, X, y, **options, rng=seed) for seed in (1, 1, 2))
    assert first.vote.tobytes() == same.vote.tobytes()
    assert first.vote.tobytes() != other_seed.vote.tobytes()


def test_an_oracle_is_asked_as_often_as_it_is_told():
    X, y, _ = noisy(5, n=30)
    calls = []

    def train(X, y, weight, rng):
        def answer(X, rng):
            calls.append(len(X))
            return rng.choice([-1, 1], len(X))

        return answer

    for model, count in ((pb.observation.exact(), 1), (pb.observation.sampled(7), 7)):
        calls.clear()
        pb.fit_adaboost(
            X, y, n_estimators=3, weak_learner=pb.weak.oracle(train), observation=model, rng=0
        )
        assert calls == [30] * (3 * count)


@pytest.mark.full
def test_sampled_estimators_are_evaluated_by_their_probabilities():
    X, y, _ = noisy(6, n=60)
    weak = pb.weak.from_estimator(StumpEstimator(0.8))
    for builder in FITS:
        model = fit(builder, X, y, weak_learner=weak, observation=SAMPLED)
        expected = pb.decision_function(model, X, route="expected")
        drawn = pb.decision_function(model, X, route="sample", rng=0, draws=1500)
        assert np.abs(expected - drawn).max() < 0.15
        assert pb.inspection.reach(model, X).shape == (60, model.n_nodes)
        with pytest.raises(ValueError, match="estimate"):
            pb.certificate(model, X, y)


def test_stopwatch_of_oracles():
    X, y, _ = noisy(7, n=30)
    ticks = iter(np.arange(1000.0))
    stopwatch = pb.observation.sampled("stopwatch", clock=ticks.__next__)
    model = pb.fit_adaboost(
        X,
        y,
        n_estimators=4,
        weak_learner=pb.weak.oracle(noisy_stump(0.2)),
        observation=stopwatch,
        rng=0,
    )
    assert model.n_nodes == 4
    assert model.feature.tolist() == [0, 1, 2, 3]
    assert pb.decision_function(model, X).shape == (30,)


# What they are given


def test_what_train_is_given():
    X, y, weight = noisy(8, n=40)
    weight[[3, 10]] = 0
    order = np.setdiff1d(np.arange(40), [3, 10])
    arguments = []

    def train(X_, y_, weight_, rng):
        arguments.append((X_, y_, weight_))
        assert isinstance(rng, np.random.Generator)
        return train_stump(X_, y_, weight_, rng)

    pb.fit_adaboost(X, y, n_estimators=2, weak_learner=pb.weak.oracle(train), sample_weight=weight)
    rows, labels, first = arguments[0]
    np.testing.assert_array_equal(rows, X[order])
    np.testing.assert_array_equal(labels, y[order])
    np.testing.assert_allclose(first, weight[order] / weight.sum(), rtol=1e-12)
    for *_, weights in arguments:
        assert weights.sum() == pytest.approx(1)
        assert (weights > 0).all()


@pytest.mark.parametrize("growth", ["largest_bound", "look_ahead"])
def test_exact_trees_train_on_the_rows_that_arrive(growth):
    X, y, _ = noisy(9, n=60)
    sizes = []

    def train(X_, y_, weight, rng):
        sizes.append(len(X_))
        stump = train_stump(X_, y_, weight, rng)

        def answer(X_, rng):
            sizes.append(len(X_))
            return stump(X_, rng)

        return answer

    model = pb.fit_boosted_tree(
        X, y, max_nodes=None, weak_learner=pb.weak.oracle(train), growth=growth
    )
    assert sizes[0] == 60
    assert min(sizes) < 20
    assert sizes[::2] == sizes[1::2]
    assert (pb.predict(model, X) == y).all()
    assert model.record.stop_reason == "no exit can be split"


def test_answers_that_do_not_split_are_no_node():
    X, y, _ = noisy(10, n=20)
    weak = pb.weak.oracle(lambda *_: lambda X, rng: np.ones(len(X), dtype=int))
    for builder in FITS:
        model = fit(builder, X, y, weak_learner=weak)
        assert model.n_nodes == 0
        assert pb.predict(model, X).shape == (20,)


@builders
@pytest.mark.parametrize("observation", [pb.observation.exact(), SAMPLED], ids=["exact", "sampled"])
def test_strings(builder, observation):
    words = np.array(["ape", "bee", "cat", "dodo", "eel", "fox", "gnu", "hen"] * 4)
    y = np.isin(words, ["bee", "dodo", "eel"])

    def train(X, y, weight, rng):
        assert X.dtype.kind == "U"
        word = max(set(X.tolist()), key=lambda w: abs((weight * y)[w == X].sum()))
        sign = 1 if (weight * y)[word == X].sum() > 0 else -1
        return lambda X, rng: np.where(word == X, sign, -sign)

    for X in (words, words.tolist()):
        model = fit(builder, X, y, weak_learner=pb.weak.oracle(train), observation=observation)
        assert model.n_features == 1
        assert pb.predict(model, X).shape == (32,)
        assert np.mean(pb.predict(model, X) == y) > 0.6
        assert str(pb.explain(model, "bee")) == str(pb.explain(model, ["bee"]))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames(kind):
    frames = pytest.importorskip(kind)
    X, y, _ = noisy(11, n=40)
    frame = frames.DataFrame({"a": X[:, 0], "b": ["x"] * 40, "c": X[:, 1]})

    def train(X, y, weight, rng):
        assert isinstance(X, frames.DataFrame)
        middle = np.average(X["a"].to_numpy(), weights=weight)
        return lambda X, rng: np.where(X["a"].to_numpy() > middle, 1, -1)

    model = pb.fit_boosted_tree(frame, y, max_nodes=3, weak_learner=pb.weak.oracle(train))
    assert model.feature_names == ("a", "b", "c")
    predicted = pb.predict(model, frame[["c", "a", "b"]])
    np.testing.assert_array_equal(predicted, pb.predict(model, frame))
    assert pb.explain(model, frame[2:3]).label == predicted[2]
    with pytest.raises(ValueError, match="missing: b"):
        pb.predict(model, frame[["a", "c"]])


def test_images():
    rng = np.random.default_rng(0)
    y = rng.random(30) < 0.5
    X = rng.normal(size=(30, 4, 4)) + y[:, None, None]

    def train(X, y, weight, rng):
        assert X.shape[1:] == (4, 4)
        return lambda X, rng: np.where(X.mean(axis=(1, 2)) > 0.5, 1, -1)

    model = pb.fit_adaboost(X, y, n_estimators=2, weak_learner=pb.weak.oracle(train))
    assert np.mean(pb.predict(model, X) == y) > 0.8
    assert pb.explain(model, X[0]).label == pb.predict(model, X[:1])[0]
    with pytest.raises(ValueError, match="shape"):
        pb.predict(model, X[:, :, :3])


def test_estimators_are_copied():
    X, y, _ = noisy(12, n=40)
    mine = StumpEstimator()
    model = pb.fit_adaboost(X, y, n_estimators=3, weak_learner=pb.weak.from_estimator(mine))
    assert vars(mine) == {"sure": 1.0}
    assert len({id(f) for f in model.inputs.functions}) == 3


def test_the_order_of_classes_is_the_estimators():
    X, y, _ = noisy(13, n=40)

    class Turned(StumpEstimator):
        def fit(self, X, y, sample_weight):
            super().fit(X, y, sample_weight)
            self.classes_ = np.array([1, -1])

        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    first, turned = (
        pb.fit_adaboost(X, y, n_estimators=5, weak_learner=pb.weak.from_estimator(e))
        for e in (StumpEstimator(0.9), Turned(0.9))
    )
    assert first.vote.tobytes() == turned.vote.tobytes()


@pytest.mark.full
def test_estimators_of_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    tree = pytest.importorskip("sklearn.tree")
    X, y, _ = noisy(14, n=200)
    models = [linear.LogisticRegression(), tree.DecisionTreeClassifier(max_depth=2, random_state=0)]
    for estimator in models:
        weak = pb.weak.from_estimator(estimator)
        for answers in (pb.observation.exact(), pb.observation.sampled(10)):
            model = pb.fit_adaboost(
                X, y, n_estimators=8, weak_learner=weak, observation=answers, rng=0
            )
            assert np.mean(pb.predict(model, X) == y) > 0.7
        assert not hasattr(estimator, "classes_")


@pytest.mark.parametrize("as_frame", [False, True])
def test_rows_with_holes_and_categories_are_given_as_they_are(as_frame):
    r = np.random.default_rng(3)
    X = np.where(r.random((60, 2)) < 0.2, np.nan, r.normal(size=(60, 2)))
    if as_frame:
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(X, columns=["a", "b"])
        X["c"] = pandas.Categorical(r.choice(["u", "v"], 60))
    y = np.nan_to_num(np.asarray(X)[:, 0].astype(float)) > 0
    seen = []

    def train(X, y, weight, rng):
        seen.append(X)
        return lambda X, rng: np.where(np.nan_to_num(np.asarray(X)[:, 0].astype(float)) > 0, 1, -1)

    class Side:
        def fit(self, X, y, sample_weight):
            seen.append(X)

        def predict_proba(self, X):
            above = np.nan_to_num(np.asarray(X)[:, 0].astype(float)) > 0
            return np.column_stack([0.9 - 0.8 * above, 0.1 + 0.8 * above])

    for weak in (pb.weak.oracle(train), pb.weak.from_estimator(Side())):
        seen.clear()
        model = pb.fit_adaboost(X, y, n_estimators=1, weak_learner=weak)
        assert type(seen[0]) is type(X)
        if as_frame:
            assert seen[0].equals(X)
        else:
            np.testing.assert_array_equal(seen[0], X)
        assert (pb.predict(model, X) == y).all()
