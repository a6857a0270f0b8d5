"""Importances of the columns, of models of every builder."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from inspected import DRAW, EVERY, GRAPHS, THREE, TWO, WORDS, X, made
from oracle_learners import StumpEstimator, train_stump
from reference.importance import importances

import pboost as pb
from pboost.models.random_forest import join_trees

SPREAD = X.std(axis=0)


def shares(sizes):
    return sizes / sizes.sum()


@pytest.mark.parametrize("kind", EVERY)
def test_shares(kind, tmp_path):
    model = made(kind)
    importances = pb.feature_importances(model)
    assert importances.shape == (5,)
    assert (importances >= 0).all()
    assert importances.sum() == pytest.approx(1, abs=1e-12)
    assert importances[2] == 0  # never read
    assert importances[0] > 0
    assert pb.feature_importances(model, None).tobytes() == importances.tobytes()
    pb.save(model, tmp_path / "model.npz")
    assert (
        pb.feature_importances(pb.load(tmp_path / "model.npz")).tobytes() == importances.tobytes()
    )
    of_rows = pb.feature_importances(model, X=X)
    assert of_rows.sum() == pytest.approx(1, abs=1e-12)
    assert of_rows[2] == 0


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind not in DRAW])
def test_columns_in_another_order(kind):
    order = np.array([3, 1, 4, 0, 2])
    importances = pb.feature_importances(EVERY[kind](X[:, order]))
    np.testing.assert_allclose(importances, pb.feature_importances(made(kind))[order], atol=1e-9)


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_as_from_the_rows(kind):
    expected = importances(made(kind), X, TWO)
    np.testing.assert_allclose(pb.feature_importances(made(kind)), expected, atol=1e-9)


def test_projections_share_by_spread_where_it_is_given():
    model = made("affine")
    fall, expected = -np.diff(model.record.certificate), np.zeros(5)
    for node, number in enumerate(model.feature):
        terms = slice(*model.inputs.start[number : number + 2])
        size = np.abs(model.inputs.coefficient[terms]) * SPREAD[model.inputs.index[terms]]
        np.add.at(expected, model.inputs.index[terms], fall[node] * size / size.sum())
    np.testing.assert_allclose(pb.feature_importances(model, X=X), shares(expected))


def test_linear_models():
    model = made("columns")
    by_scale = shares(np.abs(model.coefficient) * model.scale)
    np.testing.assert_allclose(pb.feature_importances(model), by_scale)
    by_rows = shares(np.abs(model.coefficient) * SPREAD)
    np.testing.assert_allclose(pb.feature_importances(model, X=X), by_rows)
    model = made("probit")
    by_rows = shares(np.abs(model.slopes) * SPREAD)
    np.testing.assert_allclose(pb.feature_importances(model, X=X), by_rows)
    by_risk = np.bincount(model.feature, -np.diff(model.risk), 5)
    np.testing.assert_allclose(pb.feature_importances(model), shares(by_risk))


@pytest.mark.parametrize("kind", ["probit tree", "probit tree, three"])
def test_probit_trees_lower_their_loss(kind):
    model, tree = made(kind), made(kind).partition
    share = tree.value[:, 1:] if len(tree.classes) == 2 else tree.value
    loss = tree.weight[:, None] * np.array(
        [[-sum(q * np.log(q) for q in (p, 1 - p) if q > 0) for p in row] for row in share]
    )
    expected = np.zeros(5)
    for node in range(tree.n_nodes):
        if tree.feature[node] >= 0:
            gain = loss[node].sum() - loss[tree.children[node]].sum()
            expected[tree.feature[node]] += gain
            continue
        leaf = tree.leaf[node]
        for k, row in enumerate(model.coefficient[leaf]):
            gain = max(loss[node, k] - tree.weight[node] * model.risk[leaf, k], 0.0)
            size = np.abs(row[1:]) * model.spread
            expected += gain * size / max(size.sum(), 1e-300)
    np.testing.assert_allclose(pb.feature_importances(model), shares(expected))
    assert tree.n_nodes > 1


def test_a_probit_tree_of_one_leaf_reads_columns():
    model = pb.fit_probit_tree(X, TWO, max_depth=0, max_iter=9)
    slopes = np.abs(model.coefficient[0, 0, 1:])
    np.testing.assert_allclose(pb.feature_importances(model), shares(slopes * model.spread))


def test_units_do_not_matter():
    for kind in ("probit", "probit tree", "columns", "linear"):
        importances = pb.feature_importances(EVERY[kind](X * [8.0, 0.25, 1.0, 64.0, 2.0]))
        np.testing.assert_allclose(importances, pb.feature_importances(made(kind)), atol=1e-9)


def test_stagewise_trees_count_by_the_loss():
    model = made("stagewise")
    fall = -np.diff(model.training_loss)
    each = [pb.feature_importances(tree) for tree in model.trees]
    np.testing.assert_allclose(pb.feature_importances(model), shares(fall) @ each)
    first = pb.models.truncate(model, 1)
    np.testing.assert_allclose(pb.feature_importances(first), each[0])
    # A loss that could not be told apart from infinity.
    huge = replace(model, training_loss=[np.inf, 1e308, *[1e-300] * 4])
    np.testing.assert_allclose(
        pb.feature_importances(huge), each[0] * 0.44 + each[1] * 0.56, atol=0.01
    )


def test_ensembles_are_means_by_votes():
    model = made("samme")
    each = [pb.feature_importances(member) for member in model.models]
    expected = shares(model.alpha) @ each
    np.testing.assert_allclose(pb.feature_importances(model), expected)
    members = made("sbpmt")
    each = [pb.feature_importances(member) for member in members]
    np.testing.assert_allclose(pb.feature_importances(members), np.mean(each, axis=0))


def test_members_without_a_split_do_not_count():
    leaf = pb.fit_cart(X, WORDS, max_depth=None, max_leaf_nodes=1)
    tree = made("cart, three")
    assert not pb.feature_importances(leaf).any()
    forest = join_trees([leaf, tree, leaf], {}, None)
    assert pb.feature_importances(forest).tolist() == pb.feature_importances(tree).tolist()
    assert not pb.feature_importances(join_trees([leaf, leaf], {}, None)).any()


def test_kinds():
    tree, forest, chain = made("cart"), made("forest"), made("chain")
    for model in (tree, forest):
        assert (pb.feature_importances(model, "impurity") == pb.feature_importances(model)).all()
    with pytest.raises(
        TypeError, match=r"^model: expected a Tree or a RandomForest .*DecisionGraph"
    ):
        pb.feature_importances(chain, kind="impurity")
    with pytest.raises(ValueError, match=r"^kind: expected one of 'impurity', got 'count'"):
        pb.feature_importances(tree, "count")
    with pytest.raises(TypeError, match=r"^model: expected a model, such as"):
        pb.feature_importances(X)
    with pytest.raises(ValueError, match=r"^X: expected 5 (columns|features), got 4"):
        pb.feature_importances(chain, X=X[:, :4])
    with pytest.raises(ValueError, match=r"^X: expected at least one row"):
        pb.feature_importances(chain, X=X[:0])


class Foreign:
    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] > 0, "oak", "ash")


def test_functions_are_not_known():
    oracle, estimator = pb.weak.oracle(train_stump), pb.weak.from_estimator(StumpEstimator())
    fit = partial(pb.fit_adaboost, n_estimators=2, rng=0)
    foreign = pb.fit_samme(
        X, WORDS, base_learner=lambda X, y, sample_weight: Foreign(), n_estimators=1
    )
    hypotheses = pb.weak.hypothesis(lambda X, y, w, rng: lambda X: X[:, 0] / 9)
    for model in (
        fit(X, TWO, weak_learner=oracle),
        fit(X, TWO, weak_learner=estimator),
        pb.fit_real_adaboost(X, TWO, n_estimators=2, weak_learner=hypotheses, rng=0),
        pb.fit_bagging(
            partial(pb.fit_adaboost, n_estimators=2, weak_learner=oracle),
            X,
            TWO,
            n_estimators=2,
            rng=0,
        ),
        foreign,
    ):
        with pytest.raises(NotImplementedError, match=r"^model: .*functions|Foreign"):
            pb.feature_importances(model)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars", "pyarrow"])
def test_functions_get_shuffled_rows_as_they_are_given(library):
    """Holes, words and names stay what they are, and so does what was passed."""
    rng = np.random.default_rng(0)
    words, numbers = rng.choice(["oak", "ash"], 60), rng.normal(size=60)
    numbers[::7] = np.nan
    X = np.array([*zip(words, numbers, strict=True)], dtype=object)
    column = lambda X, j: X[:, j]  # noqa: E731
    if library != "numpy":
        pd = pytest.importorskip("pandas")
        X = pd.DataFrame({"tree": words, "x": numbers}, index=np.arange(60)[::-1])
        column = lambda X, j: X[["tree", "x"][j]]  # noqa: E731
        if library == "polars":
            X = pytest.importorskip("polars").DataFrame({"tree": words, "x": numbers})
        elif library == "pyarrow":
            X = pytest.importorskip("pyarrow").Table.from_pandas(X, preserve_index=False)

    def train(X, y, weight, rng):
        return lambda X, rng: np.where(np.asarray(column(X, 0)) == "oak", 1, -1)

    before = [np.asarray(column(X, j)).tolist() for j in (0, 1)]
    fit = partial(pb.fit_adaboost, n_estimators=1, rng=0, weak_learner=pb.weak.oracle(train))
    for model in (fit(X, words), pb.fit_bagging(fit, X, words, n_estimators=2, rng=0)):
        rise = pb.inspection.permutation_importance(model, X, words, n_repeats=4, rng=3)
        order, orders = np.random.default_rng(3), []
        orders = [order.permutation(60) for _ in range(4)]
        assert rise[0].tolist() == [np.mean(words[o] != words) for o in orders]
        assert rise[1].tolist() == [0.0] * 4
    assert repr(before) == repr([np.asarray(column(X, j)).tolist() for j in (0, 1)])


def test_shuffled_rows_of_other_shapes():
    X = np.random.default_rng(0).normal(size=(40, 3, 2))
    y = X[:, 1, 0] > 0

    def train(X, y, weight, rng):
        return lambda X, rng: np.where(X[:, 1, 0] > 0, 1, -1)

    model = pb.fit_adaboost(X, y, n_estimators=1, rng=0, weak_learner=pb.weak.oracle(train))
    rise = pb.inspection.permutation_importance(model, X, y, rng=0)
    assert rise.shape == (3, 10)
    assert (rise[1] > 0.2).all()
    assert not rise[[0, 2]].any()
    flat = pb.fit_adaboost(
        X[:, 1, 0],
        y,
        n_estimators=1,
        rng=0,
        weak_learner=pb.weak.oracle(lambda X, y, w, r: lambda X, rng: np.where(X > 0, 1, -1)),
    )
    assert (pb.inspection.permutation_importance(flat, X[:, 1, 0], y, rng=0) > 0.2).all()


def test_several_votes_per_exit():
    chain = made("chain")
    votes = np.random.default_rng(0).normal(size=(*chain.vote.shape, 3))
    model = replace(chain, vote=votes, bias=np.zeros(3), classes=np.unique(THREE))
    assert (pb.feature_importances(model) == pb.feature_importances(chain)).all()
