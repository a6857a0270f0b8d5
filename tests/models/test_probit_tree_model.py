"""The model of a probit tree: values, probabilities, description, files."""

import pickle
import re
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from probit_problems import problem

import pboost as pb
from pboost.models.linear import log_probability, probabilities
from pboost.models.probit_trees import Equations, values_of
from pboost.models.random_forest import join_trees


def test_probabilities_of_values():
    f = np.array([[0.0], [1e-20], [-1e-20], [9.0], [-40.0], [1e300], [-1e300]])
    share = probabilities(f)
    np.testing.assert_array_equal(share.argmax(axis=1), [0, 1, 0, 1, 0, 1, 0])
    np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(share[4, 1], 3.6558935409150235e-350 + 0.0, atol=1e-300)
    share = probabilities(np.array([[9.0, 10.0, -1.0], [-50.0, -60.0, -50.5], [1e300, 0, 2e300]]))
    np.testing.assert_array_equal(share.argmax(axis=1), [1, 0, 2])
    assert share[0, 1] == np.nextafter(share[0, 0], 1)
    np.testing.assert_allclose(
        share[1, 2],
        np.exp(log_probability(np.array([-50.5]))[0] - log_probability(np.array([-50.0]))[0]),
        rtol=1e-9,
    )


def test_stored_and_restored(tmp_path):
    X, y, weight = problem(12, n=200, classes=3)
    model = pb.fit_probit_tree(X, y, max_depth=2, max_iter=9, sample_weight=weight)
    pb.save(model, tmp_path / "tree.npz")
    for same in (pb.load(tmp_path / "tree.npz"), pickle.loads(pickle.dumps(model))):
        assert repr(same) == repr(model)
        assert pb.describe(same) == pb.describe(model)
        np.testing.assert_array_equal(pb.decision_function(same, X), pb.decision_function(model, X))
    for name, bad in (
        ("coefficient", model.coefficient[1:]),
        ("coefficient", np.full(model.coefficient.shape, np.inf)),
        ("taken", model.taken - 50),
        ("risk", -1 - model.risk),
        ("spread", model.spread[:1]),
    ):
        parts = {n: getattr(model, n) for n in ("coefficient", "taken", "risk", "spread")}
        with pytest.raises(ValueError, match=name):
            pb.models.ProbitTree(model.partition, **{**parts, name: bad})


def test_description():
    X = np.array([[0.0, 1.0]] * 20 + [[1.0, 0.0], [1.0, 2.0]] * 10 + [[1.0, 1.0]] * 2)
    y = ["no"] * 20 + ["no", "yes"] * 10 + ["no", "yes"]
    model = pb.fit_probit_tree(X, y, max_iter=1)
    lines = pb.describe(model).splitlines()
    assert lines[0] == "fit_probit_tree: 2 leaves, depth 1, 2 features, labels ['no', 'yes']"
    assert lines[2] == "P('yes') = Phi(f)"
    assert lines[3:6] == [
        "all rows: (42)",
        "  x[0] <= 0.5: leaf 0 (20)",
        f"    f = {-NormalDist().inv_cdf(20.5 / 21):.6g}, no rows are of the class",
    ]
    assert lines[6] == "  x[0] >  0.5: leaf 1 (22)"
    assert re.fullmatch(r"    f = -1\.\d+ \+ 1\.\d+\*x\[1\]", lines[7])
    assert len(lines) == 8
    assert pb.prediction_cost(model, X[[0, -1]]).tolist() == [1, 2]
    assert pb.prediction_cost(model, X[[0, -1]], unit="features").tolist() == [1, 2]


def test_evaluation_of_many_trees():
    """The kernel gives each tree of a list what it gives the tree alone."""
    X, y, weight = problem(13, n=300, classes=3)
    trees = [
        pb.fit_probit_tree(X, y, max_depth=k, max_iter=5, sample_weight=weight) for k in range(4)
    ]
    parts = [tree.partition for tree in trees]
    first = np.cumsum([0, *(part.n_leaves for part in parts)])
    leaf = np.concatenate([k + part.leaf for k, part in zip(first, parts, strict=False)])
    together = Equations(
        join_trees(parts, {}, None),
        leaf.astype(np.int32),
        np.concatenate([tree.coefficient for tree in trees]),
        np.concatenate([tree.taken for tree in trees]),
    )
    actual = values_of(trees[0], together, X, (4, 3), lambda values: values)
    assert len(actual) == 300
    for t, tree in enumerate(trees):
        np.testing.assert_array_equal(actual[:, t], tree.values(X))
    assert trees[0].values(np.empty((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="X: "):
        pb.predict(trees[0], np.where(X > 2, np.inf, X))


def test_frames():
    pd = pytest.importorskip("pandas")
    X, y, _ = problem(14, n=200)
    frame = pd.DataFrame(X, columns=["length", "width", "weight"])
    model, bare = pb.fit_probit_tree(frame, y, max_depth=1), pb.fit_probit_tree(X, y, max_depth=1)
    assert model.feature_names == ("length", "width", "weight")
    assert model.coefficient.tobytes() == bare.coefficient.tobytes()
    assert "*length" in pb.describe(model)
    turned = frame[["weight", "length", "width"]]
    np.testing.assert_array_equal(pb.predict_proba(model, turned), pb.predict_proba(bare, X))
    assert (
        pb.inspection.coefficients(model, turned).size.tobytes()
        == pb.inspection.coefficients(bare, X).size.tobytes()
    )
    named = pb.fit_probit_tree(frame, np.array(["one", "two"])[y], max_depth=1)
    assert set(pb.predict(named, frame)) == {"one", "two"}


def test_ensembles_of_probit_trees():
    X, y, _ = problem(15, n=300, classes=3)
    bagging = pb.fit_bagging(
        pb.fit_probit_tree, X, y, n_estimators=5, max_depth=1, max_iter=5, rng=0
    )
    samme = pb.fit_samme(
        X, y, base_learner=partial(pb.fit_probit_tree, max_depth=1, max_iter=5), n_estimators=3
    )
    for model in (bagging, samme):
        assert (pb.predict(model, X) == y).mean() > 0.6
    assert bagging.oob.error < 0.5


def test_values_that_overflow():
    X, y, _ = problem(6, n=100)
    model = pb.fit_probit_tree(X, y, max_depth=0, max_iter=20)
    slopes = model.coefficient[0, 0, 1:]
    huge = 1e308 * np.array([[1.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [1.0, -1.0, -1.0]])
    scores = pb.decision_function(model, 1.7 * huge)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(np.sign(scores), np.sign(huge / 1e308 @ slopes))
