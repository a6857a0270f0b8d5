"""What columns contribute to the values of a row, in models of every builder."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from inspected import EVERY, GRAPHS, THREE, TWO, WORDS, X, made
from oracle_learners import train_stump
from scipy.special import ndtri

import pboost as pb
from pboost.models.shares import shared_out

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
import golden_models as golden

NAMES = ["length", "width", "colour", "weight", "age"]


def answer(model, X):
    """Return what is explained: the decision values or, where there is none, the probabilities."""
    try:
        return pb.decision_function(model, X)
    except TypeError:
        return pb.predict_proba(model, X)


@pytest.mark.full_for("sbpmt, mean")
@pytest.mark.parametrize("kind", EVERY)
def test_contributions_add_up(kind):
    model = made(kind)
    values, labels = answer(model, X), pb.predict(model, X)
    for row in range(0, len(X), 5):
        explanation = pb.explain(model, X[row])
        total = explanation.bias + explanation.contributions.sum(axis=0)
        assert np.shape(total) == values.shape[1:]
        assert np.array_equal(explanation.score, values[row])
        assert (np.abs(total - values[row]) <= 1e-12 * np.maximum(1, np.abs(values[row]))).all()
        assert explanation.label == labels[row]
        assert explanation.contributions.shape == (5, *values.shape[1:])
        assert not explanation.contributions[2].any()  # never read
        assert explanation.classes == (tuple(model.classes.tolist()) if values.ndim > 1 else ())
        assert bool(explanation.tests) == isinstance(model, pb.models.DecisionGraph)


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.stem)
def test_models_of_files(path):
    """One of their columns lies a million times its spread away from 0."""
    model = pb.load(path)
    shares = pb.feature_importances(model).sum()
    assert shares == pytest.approx(1 if model.n_nodes else 0, abs=1e-12)
    # Of calibrated models it is the value of the model inside that is explained.
    values = answer(
        model.model if isinstance(model, pb.models.CalibratedModel) else model, golden.X
    )
    for row in (0, 7):
        explanation = pb.explain(model, golden.X[row])
        size = np.abs(explanation.bias) + np.abs(explanation.contributions).sum(axis=0)
        total = explanation.bias + explanation.contributions.sum(axis=0)
        assert (np.abs(total - values[row]) <= 1e-12 * np.maximum(1, size)).all()
        assert np.array_equal(explanation.score, values[row])
        assert str(explanation)


@pytest.mark.parametrize("kind", EVERY)
def test_one_row_in_any_form(kind):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    model = EVERY[kind](frame)
    explanation = pb.explain(model, frame[7:8])
    mixed = frame[NAMES[::-1]]
    for row in (X[7], X[7:8], X[7].tolist(), mixed[7:8], mixed.iloc[7], mixed.iloc[7].to_dict()):
        assert pb.explain(model, row) == explanation
    assert pb.explain(model, X[8]) != explanation
    assert explanation.names[0] == "length"
    text = str(explanation).splitlines()
    assert (
        str(explanation.label) in text[-1]
        if model.classes is not None
        else "prediction" in text[-1]
    )
    assert text[-1].startswith(explanation.explained)
    if not explanation.tests and explanation.order():
        assert [line.split(" = ")[0] for line in text if " = " in line] == [
            NAMES[j] for j in explanation.order()
        ]
    for wrong in (X[:2], X[:0], X[7, :4], frame[:3]):
        with pytest.raises(ValueError, match=r"^x: expected one row|^X: expected 5 columns|X: "):
            pb.explain(model, wrong)
    with pytest.raises(ValueError, match=r"^X: .*finite|NaN"):
        pb.explain(model, [0.0, np.inf, 0.0, 0.0, 0.0])


def test_row_as_a_mapping():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"length": np.arange(40.0), "colour": ["red", "blue"] * 20})
    model = pb.fit_gradient_boosting(frame, frame["length"] > 20, n_estimators=3)
    row = {"colour": "blue", "length": 3}
    assert pb.explain(model, row) == pb.explain(model, frame[3:4])
    assert row == {"colour": "blue", "length": 3}
    missing = pb.explain(model, {"length": None, "colour": "red"})
    assert missing == pb.explain(model, pandas.DataFrame({"length": [np.nan], "colour": ["red"]}))
    unnamed = pb.fit_cart(X, X[:, 1] > 0)
    backwards = {j: X[7, j] for j in reversed(range(5))}
    assert pb.explain(unnamed, backwards) == pb.explain(unnamed, X[7])
    for refused, message in [
        ({"length": 3}, "missing: colour$"),
        ({**row, "width": 1}, "unknown: width$"),
        ({}, "missing: length, colour$"),
    ]:
        with pytest.raises(ValueError, match=message):
            pb.explain(model, refused)
    with pytest.raises(TypeError, match=r"column 'length' is not numeric: got \[3\]"):
        pb.explain(model, {"length": [3], "colour": ["red"]})


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs_tell_the_nodes(kind):
    model, actual = made(kind), pb.explain(made(kind), X[11])
    assert actual.bias == model.bias
    assert actual.bias + sum(test.vote for test in actual.tests) == pytest.approx(actual.score)
    assert actual.tests[-1].total == actual.score
    assert len(actual.tests) == pb.prediction_cost(model, X[11:12])[0]
    assert str(actual).count("\n") == len(actual.tests)
    if model.inputs is None:
        by_column = np.zeros(5)
        for test in actual.tests:
            by_column[model.feature[test.node]] += test.vote
        assert by_column.tolist() == actual.contributions.tolist()


def along(tree, value, row):
    """Return the contributions of a tree whose nodes have values, comparison by comparison."""
    parts = np.zeros((5, *value.shape[1:]))
    path = pb.inspection.decision_path(tree, row[None])[0]
    for node, child in pairwise(path):
        parts[tree.feature[node]] += value[child] - value[node]
    return value[0], parts


def means(tree, node=0):
    """Return the values of a node and those below: of others than leaves the mean by weight."""
    if tree.feature[node] < 0:
        return {node: tree.value[node]}
    actual, (a, b) = {}, tree.children[node]
    actual |= means(tree, a) | means(tree, b)
    total = tree.weight[a] * actual[a] + tree.weight[b] * actual[b]
    return actual | {node: total / (tree.weight[a] + tree.weight[b])}


def test_trees_and_forests_change_along_the_path():
    for kind in ("cart, three", "cart, numbers"):
        tree = made(kind)
        bias, parts = along(tree, tree.value, X[3])
        explanation = pb.explain(tree, X[3])
        np.testing.assert_array_equal(explanation.bias, bias)
        np.testing.assert_allclose(explanation.contributions, parts, atol=1e-14)
    explanation, two = pb.explain(made("cart"), X[3]), made("cart")
    bias, parts = along(two, two.value[:, 1] - two.value[:, 0], X[3])
    np.testing.assert_allclose(explanation.contributions, parts, atol=1e-14)
    forest = made("forest, numbers")
    each = [along(tree, tree.value, X[3]) for tree in forest]
    explanation = pb.explain(forest, X[3])
    assert explanation.bias == pytest.approx(np.mean([bias for bias, _ in each]))
    np.testing.assert_allclose(
        explanation.contributions, np.mean([p for _, p in each], 0), atol=1e-14
    )


def test_stagewise_nodes_are_means_of_their_leaves():
    model = made("stagewise")
    bias, parts = model.bias, np.zeros(5)
    for tree in model.trees:
        value = np.array([v for _, v in sorted(means(tree).items())])
        start, change = along(tree, value, X[4])
        bias, parts = bias + start, parts + change
    explanation = pb.explain(model, X[4])
    assert explanation.bias == pytest.approx(bias, abs=1e-14)
    np.testing.assert_allclose(explanation.contributions, parts, atol=1e-14)


def test_linear_parts_are_coefficients_times_values():
    model = made("probit")
    explanation = pb.explain(model, X[5])
    np.testing.assert_array_equal(explanation.contributions, model.slopes * X[5])
    assert explanation.bias == model.intercept
    leaf = pb.fit_probit_tree(X, TWO, max_depth=0, max_iter=9)
    of_leaf = pb.explain(leaf, X[5])
    np.testing.assert_array_equal(of_leaf.contributions, leaf.coefficient[0, 0, 1:] * X[5])
    assert of_leaf.bias == pytest.approx(leaf.coefficient[0, 0, 0])
    model = made("columns")
    expected = model.coefficient * (X[5] - model.center)
    np.testing.assert_allclose(pb.explain(model, X[5]).contributions, expected)


def test_probit_trees_add_what_the_splits_say():
    model = made("probit tree")
    tree, n = model.partition, model.partition.n_rows
    share = np.clip(tree.value[:, 1], 0.5 / (n + 1), 1 - 0.5 / (n + 1))
    _, parts = along(tree, ndtri(share), X[6])
    slopes = model.coefficient[pb.inspection.apply(model, X[6:7])[0], 0, 1:]
    explanation = pb.explain(model, X[6])
    np.testing.assert_allclose(explanation.contributions, parts + slopes * X[6], atol=1e-14)


def test_one_against_the_rest_is_an_array_per_class():
    model, actual = made("rest"), pb.explain(made("rest"), X[9])
    for k, member in enumerate(model.models):
        first_explanation = pb.explain(member, X[9])
        np.testing.assert_array_equal(actual.contributions[:, k], first_explanation.contributions)
    assert str(actual).splitlines()[0].split() == ["'ash'", "'elm'", "'oak'"]


def test_votes_go_to_the_columns_that_speak_for_them():
    model, actual = made("bagging"), pb.explain(made("bagging"), X[2])
    assert (actual.contributions >= 0).all()
    shares = []
    for member in model.models:
        winner = np.flatnonzero(model.classes == pb.predict(member, X[2:3])[0])[0]
        first_explanation = pb.explain(member, X[2])
        lead = first_explanation.contributions - first_explanation.contributions.mean(
            axis=1, keepdims=True
        )
        shares.append(np.zeros((5, 3)))
        speaks = np.maximum(lead[:, winner], 0)
        constant = max(first_explanation.bias[winner] - np.mean(first_explanation.bias), 0)
        shares[-1][:, winner] = speaks / (speaks.sum() + constant)
    np.testing.assert_allclose(actual.contributions, np.mean(shares, axis=0), atol=1e-12)


def test_shares_of_a_vote():
    rng = np.random.default_rng(0)
    for _ in range(50):
        share, parts = rng.dirichlet(np.ones(4)), rng.normal(size=(6, 4)) * 10 ** rng.normal()
        actual = shared_out(share, parts)
        assert (actual >= 0).all()
        np.testing.assert_allclose(actual.sum(axis=0), share, rtol=1e-14)
        order = rng.permutation(4)
        np.testing.assert_allclose(shared_out(share[order], parts[:, order]), actual[:, order])
        for scale in (2.0**900, 2.0**-900):
            np.testing.assert_allclose(shared_out(share, parts * scale), actual)
    two = shared_out(np.array([0.25, 0.75]), np.array([1.0, 3.0, -2.0]))
    np.testing.assert_allclose(two, [[0, 0.1875], [0, 0.5625], [0.25, 0]])
    np.testing.assert_array_equal(shared_out(np.array([1, 0]), np.zeros(3))[0], [1, 0])
    # The least number stands for a class that is never the answer; it speaks for no other.
    minimum = np.array([[0.0, 1.0, -np.finfo(float).max], [2.0, 0.0, 0.0]])
    np.testing.assert_allclose(shared_out(np.array([1, 0, 0]), minimum), [[0, 0, 0], [1, 0, 0]])


def test_votes_do_not_depend_on_the_zero_of_a_column():
    for kind in ("bagging of probits", "sbpmt", "sbpmt, mean"):
        shift = [1024.0, 0.0, 0.0, 0.0, -64.0]
        moved = EVERY[kind](X + shift)
        for row in (0, 50, 100):
            explanation = pb.explain(moved, X[row] + shift).contributions
            np.testing.assert_allclose(
                explanation, pb.explain(made(kind), X[row]).contributions, atol=1e-6
            )


def test_classes_that_a_member_has_not_seen():
    y = np.where(np.arange(160) < 3, "rare", np.where(TWO, "a", "b"))
    for each in ("tree", "leaf"):
        model = pb.fit_sbpmt(
            X,
            y,
            n_estimators=4,
            n_boosting_rounds=2,
            max_iter=3,
            min_samples_leaf=20,
            one_vs_rest=each,
            max_samples=0.3,
            rng=0,
        )
        assert (model.class_rows == 0).any()
        for row in range(0, 160, 20):
            explanation = pb.explain(model, X[row])
            np.testing.assert_allclose(
                explanation.bias + explanation.contributions.sum(axis=0), explanation.score
            )


def test_functions():
    fit = partial(pb.fit_adaboost, n_estimators=2, rng=0, weak_learner=pb.weak.oracle(train_stump))
    explanation = pb.explain(fit(X, TWO), X[0])
    assert len(explanation.tests) == 2
    assert explanation.contributions is None
    assert explanation.order() == []
    assert pb.explain(fit(X, TWO), X[0]) == explanation
    bagged = pb.fit_bagging(fit, X, TWO, n_estimators=2, rng=0)
    with pytest.raises(NotImplementedError, match="functions of a row"):
        pb.explain(bagged, X[0])


def test_several_votes_per_exit():
    chain, rng = made("chain"), np.random.default_rng(0)
    votes, bias = rng.normal(size=(*chain.vote.shape, 3)), np.array([0.5, 0.0, -2.0])
    model = replace(chain, vote=votes, bias=bias, classes=np.unique(THREE))
    explanation = pb.explain(model, X[0])
    np.testing.assert_allclose(
        explanation.bias + explanation.contributions.sum(axis=0), explanation.score
    )
    np.testing.assert_array_equal(explanation.score, pb.decision_function(model, X[:1])[0])
    assert explanation.label == pb.predict(model, X[:1])[0]
    assert len(explanation.tests[0].vote) == 3
    assert str(explanation).splitlines()[-1].startswith("decision value ")


def test_models_that_read_nothing():
    samme = pb.fit_samme(X, WORDS, base_learner=partial(pb.fit_cart, max_depth=2), n_estimators=1)
    empty = replace(samme, models=(), alpha=np.empty(0), bias=np.log([0.5, 0.25, 0.25]))
    explanation = pb.explain(empty, X[0])
    assert explanation.score.tolist() == empty.bias.tolist()
    assert (explanation.label, explanation.order()) == ("ash", [])
    constant = pb.fit_adaboost(np.zeros((4, 5)), [0, 1, 1, 1], n_estimators=2)
    assert str(pb.explain(constant, X[0])) == "decision value +0.5492: 1"


def test_rows_too_far_away():
    model = pb.fit_probitboost(X * 1e-200, TWO, max_iter=5)
    far = np.full(5, 1e300)
    assert np.isfinite(pb.decision_function(model, far[None])).all()
    with pytest.raises(ValueError, match=r"^x: lies too far from the training rows"):
        pb.explain(model, far)


def test_explanations_cannot_be_changed():
    explanation = pb.explain(made("cart, three"), X[0])
    for name in ("contributions", "bias", "score", "values"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(explanation, name)[0] = 1.0
    assert explanation != 3


def test_members_that_do_not_know_every_class_and_classes_that_are_numbers():
    y = np.where(X[:, 0] > 2, 7.0, np.where(TWO, 2.0, 1.0))
    fits = iter([pb.fit_cart, partial(pb.fit_adaboost, n_estimators=2)])

    def fit(X, y, sample_weight):
        rows = y < 7
        return next(fits)(X[rows], y[rows], sample_weight=sample_weight[rows])

    model = pb.fit_bagging(fit, X, y, n_estimators=2, rng=0)
    assert len(model.classes) == 3
    explanation = pb.explain(model, X[1])
    np.testing.assert_allclose(
        explanation.bias + explanation.contributions.sum(axis=0), explanation.score
    )
    numbers = replace(model, classes=None, oob=replace(model.oob, prediction=np.zeros(160)))
    explanation = pb.explain(numbers, X[1])
    assert explanation.bias + explanation.contributions.sum() == pytest.approx(explanation.score)
    assert explanation.explained == "prediction"


def test_bagged_probabilities_of_trees_are_means():
    model, actual = made("bagging, mean"), pb.explain(made("bagging, mean"), X[2])
    each = [pb.explain(member, X[2]) for member in model.models]
    np.testing.assert_allclose(actual.contributions, np.mean([e.contributions for e in each], 0))
    np.testing.assert_allclose(actual.bias, np.mean([e.bias for e in each], 0))
