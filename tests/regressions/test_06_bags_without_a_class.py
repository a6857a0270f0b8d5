"""Bags that miss a rare class. `fit_bagging` of a builder that needs every class died, with a
message about weights that nobody gave. Such a member is fitted to the classes that are there; where
there is one, it says that of every row. Bags and all other members are what they were.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import pboost as pb

r = np.random.default_rng(0)
N = 80
X = r.normal(size=(N, 3))
RARE = np.where(np.arange(N) < 2, "yes", "no")
THREE = np.where(np.arange(N) < 2, "yew", np.where(X[:, 0] > 0, "oak", "elm"))
MEMBERS = 16


def train_oracle(X, y, weight, rng):
    return lambda rows, rng: np.where(rows[:, 0] > 0, 1, -1)


weak, see = pb.weak, pb.observation
TWO_CLASS = {
    "adaboost": (partial(pb.fit_adaboost, n_estimators=2), {}),
    "adaboost linear": (partial(pb.fit_adaboost, n_estimators=2), {"weak_learner": weak.linear()}),
    "adaboost real": (partial(pb.fit_real_adaboost, n_estimators=2), {}),
    "tree": (pb.fit_boosted_tree, {"max_nodes": 2}),
    "tree binned": (
        pb.fit_boosted_tree,
        {"max_nodes": 2, "weak_learner": weak.stump(search="binned")},
    ),
    "tree affine": (
        pb.fit_boosted_tree,
        {"max_nodes": 2, "weak_learner": weak.affine(n_directions=4)},
    ),
    "tree oracle": (
        pb.fit_boosted_tree,
        {"max_nodes": 2, "weak_learner": weak.oracle(train_oracle)},
    ),
    "tree flip": (pb.fit_boosted_tree, {"max_nodes": 2, "observation": see.flip(0.1)}),
    "oblique": (pb.fit_oblique_tree, {"max_nodes": 1, "n_stumps": 2}),
    "topdown": (pb.fit_topdown_tree, {"max_nodes": 2}),
    "matryoshka": (pb.fit_matryoshka, {"shape": (2, 2)}),
    "probitboost": (pb.fit_probitboost, {"max_iter": 3}),
}
ANY_CLASSES = {
    "one vs rest": (partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=2), {}),
    "samme": (
        partial(pb.fit_samme, n_estimators=2),
        {"base_learner": partial(pb.fit_cart, max_depth=2)},
    ),
    "samme of one vs rest": (
        partial(pb.fit_samme, n_estimators=2),
        {"base_learner": partial(pb.fit_one_vs_rest, pb.fit_probitboost, max_iter=2)},
    ),
    "bagging": (
        partial(pb.fit_bagging, partial(pb.fit_adaboost, n_estimators=2), n_estimators=2),
        {},
    ),
}


def drawn(members=MEMBERS, n=N):
    """Return the bags of seed 0, as numbers of copies of each row."""
    bags = []

    class Model:
        def predict(self, X):
            return np.zeros(len(X))

    def fit(X, y, sample_weight):
        bags.append(sample_weight)
        return Model()

    options = {"task": "regression", "n_estimators": members, "rng": 0, "n_threads": 1}
    pb.fit_bagging(fit, np.zeros((n, 1)), np.zeros(n), **options)
    return np.array(bags)


BAGS = drawn()


def is_constant(model):
    return isinstance(model, pb.models.DecisionGraph) and model.settings["builder"] == "constant"


@pytest.mark.parametrize("name", [*TWO_CLASS, *ANY_CLASSES])
@pytest.mark.parametrize("weights", ["none", "tiny"])
def test_two_classes(name, weights):
    """Members whose bag holds both classes are fits to it; the others are constants."""
    fit, options = {**TWO_CLASS, **ANY_CLASSES}[name]
    w = np.where(RARE == "yes", 1e-200, 1.0) if weights == "tiny" else None
    bagging = pb.fit_bagging(
        fit, X, RARE, n_estimators=MEMBERS, voting="hard", rng=0, sample_weight=w, **options
    )
    lacks = ~(BAGS[:, RARE == "yes"] > 0).any(axis=1)
    assert 0 < lacks.sum() < MEMBERS
    if name in TWO_CLASS:
        assert [is_constant(member) for member in bagging.models] == lacks.tolist()
    for k in np.flatnonzero(lacks):
        assert (pb.predict(bagging.models[k], X) == "no").all()
    out = BAGS == 0
    assert np.array_equal(bagging.oob.n_estimators, out.sum(axis=0))
    said = np.array([pb.predict(member, X) == "yes" for member in bagging.models])
    seen = out.any(axis=0)
    share = (said & out).sum(axis=0)[seen] / out.sum(axis=0)[seen]
    assert np.allclose(bagging.oob.prediction[seen, 1], share)
    assert np.isfinite(bagging.oob.error)


@pytest.mark.parametrize("threads", [1, 2])
def test_bags_with_every_class_give_the_same_members(threads):
    bagging = pb.fit_bagging(
        pb.fit_boosted_tree, X, RARE, n_estimators=MEMBERS, max_nodes=3, rng=0, n_threads=threads
    )
    for member, bag in zip(bagging.models, BAGS, strict=True):
        if not is_constant(member):
            alone = pb.fit_boosted_tree(X, RARE, max_nodes=3, sample_weight=bag)
            assert np.array_equal(member.vote, alone.vote)
            assert np.array_equal(member.threshold, alone.threshold)
    named = bagging.settings["max_nodes"], bagging.settings["fit"]
    assert named == (3, "fit_boosted_tree")


@pytest.mark.parametrize("name", sorted(ANY_CLASSES.keys() - {"bagging"}))
def test_three_classes(name):
    """A member knows the classes of its bag, and is what a fit to these rows alone would be."""
    fit, options = ANY_CLASSES[name]
    bagging = pb.fit_bagging(fit, X, THREE, n_estimators=MEMBERS, rng=0, **options)
    assert bagging.classes.tolist() == ["elm", "oak", "yew"]
    lacks = ~(BAGS[:, THREE == "yew"] > 0).any(axis=1)
    for member, bag, lacking in zip(bagging.models, BAGS, lacks, strict=True):
        assert member.classes.tolist() == (["elm", "oak"] if lacking else ["elm", "oak", "yew"])
        rows = bag > 0
        alone = fit(X[rows], THREE[rows], sample_weight=bag[rows], **options)
        assert np.array_equal(pb.predict(member, X), pb.predict(alone, X))


def test_bag_of_one_of_three_classes():
    for bag in (1, 2):
        bagging = pb.fit_bagging(
            partial(pb.fit_one_vs_rest, pb.fit_adaboost, n_estimators=1),
            X,
            THREE,
            n_estimators=20,
            max_samples=bag,
            rng=0,
        )
        assert sum(map(is_constant, bagging.models)) >= (20 if bag == 1 else 3)
        assert set(pb.predict(bagging, X)) <= set(THREE)
        assert np.allclose(pb.predict_proba(bagging, X).sum(axis=1), 1)


def test_rows_that_are_held_out():
    """Stopping needs two rows of each class: with one the bag has none for it."""
    bagging = pb.fit_bagging(
        pb.fit_boosted_tree,
        X,
        RARE,
        n_estimators=MEMBERS,
        max_nodes=4,
        rng=0,
        validation=0.3,
        n_iter_no_change=2,
    )
    lacks = (BAGS[:, RARE == "yes"] > 0).sum(axis=1) < 2
    assert 0 < lacks.sum() < MEMBERS
    assert [is_constant(member) for member in bagging.models] == lacks.tolist()


def test_trees_and_models_of_any_classes_are_fitted_as_they_are():
    """They worked, and stay what they were."""
    for fit in (pb.fit_cart, pb.fit_probit_tree):
        bagging = pb.fit_bagging(fit, X, RARE, n_estimators=MEMBERS, rng=0)
        for member, bag in zip(bagging.models, BAGS, strict=True):
            assert type(member) is type(fit(X, RARE))
            assert member.classes.tolist() == ["no", "yes"]
            assert np.array_equal(
                pb.predict(member, X), pb.predict(fit(X, RARE, sample_weight=bag), X)
            )


BAGGED = partial(pb.fit_bagging, partial(pb.fit_adaboost, n_estimators=2), n_estimators=9, rng=0)


@pytest.mark.parametrize(
    "fit",
    [
        partial(pb.fit_random_forest, n_estimators=6, rng=0),
        partial(pb.fit_sbpmt, n_estimators=6, n_boosting_rounds=2, max_samples=0.3, rng=0),
        partial(pb.fit_gradient_boosting, loss="log_loss", n_estimators=4, subsample=0.1, rng=0),
        partial(pb.fit_pruned_cart, cv=3, rng=0),
        partial(pb.fit_one_vs_rest, BAGGED),
        partial(pb.cross_validate, BAGGED, cv=2, rng=0),
    ],
    ids=["forest", "sbpmt", "stagewise", "pruned", "one vs rest", "cross-validation"],
)
@pytest.mark.parametrize("least", [1.0, 1e-200])
def test_others_that_draw_rows(fit, least):
    model = fit(X, RARE == "yes", sample_weight=np.where(RARE == "yes", least, 1.0))
    if not isinstance(model, pb.inspection.CrossValidation):
        assert np.isfinite(pb.predict_proba(model, X)).all()


def test_files_of_constant_members(tmp_path):
    """Also where the first member, or each, is one: the options are named all the same."""
    for bag, item in ((None, 20), (2, 3)):
        bagging = pb.fit_bagging(
            partial(pb.fit_adaboost, n_estimators=2),
            X,
            np.arange(N) == 5,
            n_estimators=item,
            max_samples=bag,
            rng=0,
            weak_learner=weak.stump(),
            validation=(X, np.arange(N) == 5),
        )
        assert any(map(is_constant, bagging.models))
        pb.save(bagging, tmp_path / "model.npz")
        again = pb.load(tmp_path / "model.npz")
        assert np.array_equal(pb.predict_proba(again, X), pb.predict_proba(bagging, X))
        assert "fit_bagging of fit_adaboost" in pb.describe(again)
        constant = next(filter(is_constant, again.models))
        assert pb.describe(constant)
        assert pb.prediction_cost(constant, X).tolist() == [0.0] * N


def test_rows_that_are_no_numbers():
    words = np.array(["ab", "x", "y", "zz"] * 10)

    def train(X, y, weight, rng):
        return lambda rows, rng: np.array([1 if "ab" in row else -1 for row in rows])

    bagging = pb.fit_bagging(
        pb.fit_boosted_tree,
        words,
        np.arange(40) == 0,
        n_estimators=12,
        rng=0,
        max_nodes=1,
        weak_learner=weak.oracle(train),
    )
    assert any(map(is_constant, bagging.models))
    assert pb.predict(bagging, words).dtype == bool


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    for data in (frame, pb.data.sort_columns(frame)):
        bagging = pb.fit_bagging(
            partial(pb.fit_adaboost, n_estimators=2), data, RARE, n_estimators=MEMBERS, rng=0
        )
        assert any(map(is_constant, bagging.models))
        probabilities = pb.predict_proba(bagging, frame[["c", "a", "b"]])
        assert np.array_equal(probabilities, pb.predict_proba(bagging, frame))


def test_a_fit_to_given_weights_still_refuses():
    """It is asked for both classes, and given one."""
    w = np.where(RARE == "yes", 0.0, 1.0)
    for fit, options in TWO_CLASS.values():
        with pytest.raises(ValueError, match=r"^sample_weight: expected"):
            fit(X, RARE, sample_weight=w, **options)
    with pytest.raises(ValueError, match=r"^sample_weight: expected"):
        pb.fit_one_vs_rest(pb.fit_adaboost, X, RARE, sample_weight=w, n_estimators=2)


def test_errors_of_other_kinds_are_passed_on():
    def fit(X, y, sample_weight):
        return pb.fit_adaboost(X, y, n_estimators=1, sample_weight=np.zeros(len(y)))

    with pytest.raises(ValueError, match="all are zero") as caught:
        pb.fit_bagging(fit, X, RARE, n_estimators=4, rng=0)
    assert "fit_bagging: raised by member" in caught.value.__notes__[0]

    def blind(X, y, sample_weight):
        return pb.fit_adaboost(X, y, n_estimators=1, sample_weight=np.where(y == "yes", 0.0, 1.0))

    with pytest.raises(ValueError, match="both classes"):
        pb.fit_bagging(blind, X, np.where(X[:, 0] > 0, "yes", "no"), n_estimators=4, rng=0)
