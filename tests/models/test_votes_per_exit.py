"""Graphs whose exits have several votes: each is a graph of one vote, bit for bit."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from model_files import forge, forge_column, header_of, members_of, refused

import pboost as pb
from pboost._core import walk

RNG = np.random.default_rng(5)
X = RNG.normal(size=(700, 3))
J = 3


def several(chain=False):
    """Return a graph with three votes per exit, and three graphs with one of them each."""
    y = X[:, 0] * X[:, 1] > 0
    fit = (
        partial(pb.fit_adaboost, n_estimators=9)
        if chain
        else partial(pb.fit_boosted_tree, max_nodes=9)
    )
    first_model = fit(X, y)
    votes = RNG.normal(size=(*first_model.vote.shape, J))
    bias = np.array([0.5, 0.0, -2.0])
    singles = [replace(first_model, vote=votes[..., j], bias=float(bias[j])) for j in range(J)]
    return replace(first_model, vote=votes, bias=bias, classes=np.arange(J)), singles


@pytest.fixture(params=[False, True], ids=["tree", "chain"])
def models(request):
    return several(request.param)


def stacked(found):
    return np.stack(list(found), axis=-1)


@pytest.mark.parametrize("rows", [0, 1, 7, 700])
def test_values_are_those_of_graphs_of_one_vote(models, rows):
    model, singles = models
    assert model.n_votes == J
    assert all(single.n_votes == 1 for single in singles)
    scores = pb.decision_function(model, X[:rows])
    assert scores.shape == (rows, J)
    expected = stacked(pb.decision_function(single, X[:rows]) for single in singles)
    assert scores.tobytes() == expected.tobytes()


def test_stages_are_those_of_graphs_of_one_vote(models):
    model, singles = models
    stages = list(pb.staged_decision_function(model, X))
    expected = [
        stacked(s)
        for s in zip(*(pb.staged_decision_function(item, X) for item in singles), strict=True)
    ]
    assert len(stages) == len(expected) == model.n_nodes
    for item, right in zip(stages, expected, strict=True):
        assert item.tobytes() == right.tobytes()


def test_what_does_not_depend_on_votes(models):
    model, singles = models
    for unit in ("nodes", "features", "stumps"):
        cost = pb.prediction_cost(model, X, unit)
        assert np.array_equal(cost, pb.prediction_cost(singles[0], X, unit))
    assert np.array_equal(pb.inspection.reach(model, X[:9]), pb.inspection.reach(singles[0], X[:9]))
    first = pb.models.truncate(model, 4)
    assert np.array_equal(first.vote, model.vote[:4])
    values = [pb.decision_function(pb.models.truncate(single, 4), X) for single in singles]
    assert np.array_equal(pb.decision_function(first, X), stacked(values))
    assert pb.describe(model).splitlines()[0].endswith("labels 0, 1, 2")
    assert "initial vote of every row: +0.5000 +0.0000 -2.0000" in pb.describe(model)


def test_pickles_and_files(models, tmp_path):
    model, singles = models
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz")
    pb.save(loaded, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()
    for same in (loaded, pickle.loads(pickle.dumps(model))):
        for name in ("feature", "threshold", "next", "vote", "bias", "classes"):
            assert getattr(same, name).tobytes() == getattr(model, name).tobytes()
            assert not getattr(same, name).flags.writeable
        expected = stacked(pb.decision_function(single, X) for single in singles)
        assert pb.decision_function(same, X).tobytes() == expected.tobytes()


def test_files_say_that_there_are_several(models, tmp_path):
    """A reader that knows one vote per exit only knows no such column, and refuses it."""
    model, singles = models
    pb.save(model, tmp_path / "several.npz")
    pb.save(singles[0], tmp_path / "one.npz")
    several, first = (header_of(members_of(tmp_path / f"{n}.npz")) for n in ("several", "one"))
    assert "bias" not in several
    assert several["columns"]["bias"]["shape"] == [J]
    assert several["columns"]["vote"]["shape"] == [model.n_nodes, 2, J]
    assert isinstance(first["bias"], float)
    assert "bias" not in first["columns"]
    assert first["columns"]["vote"]["shape"] == [model.n_nodes, 2]


def random_graph(kind, rng):
    """Return a graph that joins now and then, of a kind of inputs, and rows for it."""
    X = rng.normal(size=(900, 4))
    X[:, 3] = rng.integers(0, 5, len(X))
    y = X[:, 0] * X[:, 1] + (X[:, 3] % 2) > 0.3
    options = {"shape": (5, 4), "join": "all"}
    if kind in ("holes", "levels"):
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "levels":
        options["categorical_features"] = [3]
    if kind == "affine":
        options["weak_learner"] = pb.weak.affine(n_directions=8)
    return pb.fit_matryoshka(X, y, **options), X


def wide(model, J, rng):
    votes = rng.normal(size=(*model.vote.shape, J))
    return replace(model, vote=votes, bias=rng.normal(size=J), classes=np.arange(J))


KINDS = ["plain", "holes", "levels", "affine"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("J", [2, 3, 8, 26])
def test_one_walk_adds_what_graphs_of_one_vote_add(kind, J, monkeypatch):
    """Chains of trees, trees and chains; tiles, single rows, other layouts; all variants."""
    rng = np.random.default_rng(J)
    full, X = random_graph(kind, rng)
    after = np.arange(1, full.n_nodes + 1, dtype=np.int32)
    after[-1] = -1
    chain = replace(full, next=np.column_stack([after, after]))
    tree = pb.models.truncate(full, 5)  # the first: a graph without joins
    assert [g.is_chain for g in (full, tree, chain)] == [False, False, True]
    for graph in (full, tree, chain):
        model = wide(graph, J, rng)
        singles = model.by_vote()
        for rows in (
            X,
            X[:300].astype(np.float32),
            np.asfortranarray(X[:70]),
            X[:8],
            X[5:6],
            X[:0],
        ):
            scores = pb.decision_function(model, rows)
            expected = stacked(pb.decision_function(item, rows) for item in singles)
            assert scores.shape == (len(rows), J)
            assert scores.tobytes() == expected.tobytes()
        assert np.array_equal(pb.prediction_cost(model, X), pb.prediction_cost(singles[0], X))
        last = list(pb.staged_decision_function(model, X))[-1]
        assert np.allclose(last, pb.decision_function(model, X), atol=1e-12)
        for level in (0, 1):
            walk.use_simd_level(level)
            try:
                assert (
                    pb.decision_function(model, X).tobytes()
                    == pb.decision_function(model, np.asfortranarray(X)).tobytes()
                )
            finally:
                walk.use_simd_level(2)


def test_bad_rows_are_refused_by_name(models):
    model, _ = models
    for value, said in ((np.inf, "infin|finite"), (np.nan, "missing|NaN|finite")):
        rows = X.copy()
        rows[400, 1] = value
        if np.isinf(value):
            with pytest.raises(ValueError, match=said):
                pb.decision_function(model, rows)
        with pytest.raises(ValueError, match=said):
            pb.decision_function(replace(model, missing=None), rows)


def test_kernels_refuse_arrays_that_do_not_fit(models):
    model, _ = models
    vote = model.vote.reshape(model.n_nodes, -1)
    score = np.empty(3 * J)

    def walk_with(vote, score, several):
        walk.walk(
            X[:3],
            model.feature,
            model.threshold,
            model.next,
            vote,
            False,
            0.0,
            3,
            0,
            3,
            score,
            several=several,
        )

    walk_with(vote, score, (model.bias, None))
    for wrong in (
        (vote, score[:-1], (model.bias, None)),
        (vote[:, :4].copy(), score, (model.bias, None)),
        (vote, score, (model.bias[:2].copy(), None)),
        (vote, score, (model.bias, np.zeros((2, model.n_nodes, 2)))),
        (vote, score, None),
    ):
        with pytest.raises(ValueError, match="arrays of different sizes"):
            walk_with(*wrong)


def test_predictions_are_the_largest_votes(models):
    model, _ = models
    model = replace(model, classes=np.array(["a", "b", "c"]))
    score = pb.decision_function(model, X)
    assert pb.predict(model, X).tolist() == [*map("abc".__getitem__, score.argmax(axis=1))]
    stages = list(pb.staged_predict(model, X))
    assert stages[-1].tolist() == pb.predict(model, X).tolist()
    share = pb.predict_proba(model, X)
    expected = np.exp(score / model.temperature)
    np.testing.assert_allclose(share, expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)
    assert (share.argmax(axis=1) == score.argmax(axis=1)).all()
    assert list(pb.staged_predict_proba(model, X))[-1].tobytes() == share.tobytes()
    for route in ("expected", "sample"):
        assert np.array_equal(pb.decision_function(model, X, route, rng=0), score)
    low = replace(model, vote=model.vote * 0, bias=np.array([-600.0, -599.0, -601.0]))
    share = pb.predict_proba(low, X[:1])[0]
    assert share[1] > share[0] > share[2] > 0
    assert abs(share.sum() - 1) < 1e-15


def test_two_votes_of_opposite_sign_are_one():
    """Certificates, margins, bounds and probabilities are then those of the model of two labels."""
    y = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=len(X)) > 0
    first_model = pb.fit_boosted_tree(X, y, max_nodes=9)
    model = replace(
        first_model,
        vote=np.stack([-first_model.vote, first_model.vote], axis=-1),
        bias=np.array([-first_model.bias, first_model.bias]),
    )
    share = np.column_stack([np.full(len(X), 0.25), np.full(len(X), 0.75)])
    assert np.array_equal(pb.predict(model, X), pb.predict(first_model, X))
    for ask in (
        lambda model: pb.predict_proba(model, X),
        lambda model: pb.certificate(model),
        lambda model: pb.certificate(model, X, y),
        lambda model: pb.certificate(model, X, y_proba=share),
        lambda model: pb.inspection.margins(model, X, y),
        lambda model: pb.inspection.margins(model, X, y, scale="probability"),
        lambda model: pb.inspection.margin_error(model, X, None, [-0.1, 0.0, 0.3], y_proba=share),
        lambda model: pb.inspection.margin_bound(model, X, y, [-0.1, 0.0, 0.3]),
        lambda model: pb.inspection.normalized_margins(model, X, y),
        lambda model: pb.inspection.margin_curve(model, X, y, [0.0, 0.5]),
        lambda model: pb.feature_importances(model),
    ):
        np.testing.assert_allclose(ask(model), ask(first_model), rtol=1e-12)


def test_certificates_and_margins_of_several_labels(models):
    model, _ = models
    y, weight = RNG.integers(0, J, len(X)), RNG.random(len(X))
    score, sign = pb.decision_function(model, X), 2 * np.eye(J)[y] - 1
    loss = np.exp(-sign * score).mean(axis=1)
    bound = pb.certificate(model, X, y, sample_weight=weight)
    assert bound == pytest.approx(np.average(loss, weights=weight), rel=1e-12)
    soft = pb.certificate(model, X, y_proba=np.eye(J)[y], sample_weight=weight)
    assert soft == pytest.approx(bound, rel=1e-12)
    lead = [row[k] - np.delete(row, k).max() for row, k in zip(score, y, strict=True)]
    np.testing.assert_allclose(
        pb.inspection.margins(model, X, y), np.tanh(np.array(lead) / 4), rtol=1e-12
    )
    wrong = np.average(pb.predict(model, X) != y, weights=weight)
    assert (sign * score <= 0).mean() <= pb.certificate(model, X, y)
    assert wrong <= pb.inspection.margin_bound(model, X, y, 0.0, sample_weight=weight)
    for theta in (-0.5, 0.0, 0.5):
        assert pb.inspection.margin_error(model, X, y, theta) <= pb.inspection.margin_bound(
            model, X, y, theta
        )
    with pytest.raises(ValueError, match="expected class labels of the model"):
        pb.certificate(model, X, y + 1)


def test_explanations_name_the_labels(models):
    model, _ = models
    model = replace(model, classes=np.array(["setosa", "versicolor", "virginica"]))
    explanation = pb.explain(model, X[0])
    assert explanation.label == pb.predict(model, X[:1])[0]
    text = str(explanation).splitlines()
    first = explanation.tests[0].vote
    assert f"votes for setosa {first[0]:+.4f}, versicolor {first[1]:+.4f}, virginica" in text[0]
    assert text[-1].startswith("decision values for setosa ")
    assert text[-1].endswith(f": {explanation.label}")
    np.testing.assert_allclose(
        explanation.contributions.sum(axis=0) + explanation.bias, explanation.score, atol=1e-12
    )


def test_members_of_ensembles(models):
    """Labels that a member predicts are those of its largest votes."""
    model, _ = models
    y = np.arange(700) % J

    def fit(X, y, sample_weight):
        return model

    assert pb.inspection.permutation_importance(model, X, y, n_repeats=1, rng=0).shape == (3, 1)
    assert set(pb.predict(pb.fit_bagging(fit, X, y, n_estimators=2, rng=0), X)) <= set(range(J))


def flipped(model):
    answer = np.full((model.n_nodes, 2, max(2, model.n_votes)), 0.25)
    answer[:, 1] = 0.75
    return replace(model, answer=answer)


def test_uncertain_answers_are_those_of_graphs_of_one_vote(models):
    model, singles = flipped(models[0]), [flipped(item) for item in models[1]]
    for route, options in (("expected", {}), ("sample", {"rng": 0, "draws": 3})):
        scores = pb.decision_function(model, X, route, **options)
        expected = stacked(pb.decision_function(item, X, route, **options) for item in singles)
        assert scores.tobytes() == expected.tobytes()
    assert pb.inspection.reach(model, X).tobytes() == pb.inspection.reach(singles[0], X).tobytes()
    y = np.arange(len(X)) % J
    share = np.eye(J)[y] * 0.75 + np.eye(J)[(y + 1) % J] * 0.25
    for hard in (pb.certificate(model, X, y), pb.certificate(model, X, y_proba=np.eye(J)[y])):
        each = [pb.certificate(item, X, y == k) for k, item in enumerate(singles)]
        assert hard == pytest.approx(np.mean(each), rel=1e-12)
    both = pb.certificate(model, X, y_proba=share)
    each = (pb.certificate(model, X, y), pb.certificate(model, X, (y + 1) % J))
    assert both == pytest.approx(0.75 * each[0] + 0.25 * each[1], rel=1e-12)


def test_answers_by_label(models):
    """Rows of a label are answered as where all are of that label."""
    rng = np.random.default_rng(4)
    model = replace(models[0], answer=rng.random((models[0].n_nodes, 2, J)))
    assert model.needs_class
    y = rng.integers(0, J, len(X))
    actual = pb.inspection.reach(model, X, y)
    for k in range(J):
        same = replace(model, answer=np.repeat(model.answer[:, :, k : k + 1], J, axis=2))
        assert not same.needs_class
        assert actual[y == k].tobytes() == pb.inspection.reach(same, X)[y == k].tobytes()
    for route in ("expected", "sample"):
        with pytest.raises(ValueError, match="depends on the class of a row"):
            pb.decision_function(model, X, route, rng=0)
    with pytest.raises(ValueError, match="depends on the class of a row"):
        pb.inspection.reach(model, X)
    with pytest.raises(ValueError, match="expected class labels of the model"):
        pb.inspection.reach(model, X, y + 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": 0.0}, "bias: expected 3 finite numbers"),
        ({"bias": np.zeros(2)}, "bias: expected 3 finite numbers"),
        ({"bias": np.array([0.0, np.nan, 0.0])}, "bias: expected 3 finite numbers"),
        ({"classes": np.array([0, 1])}, r"classes: expected shape \(3,\)"),
        ({"vote": np.zeros((9, 2))}, "classes: expected shape"),
        ({"vote": np.zeros((9, 2, 1))}, "classes: expected shape"),
        ({"vote": np.zeros((9, 3, 3))}, r"vote: expected shape \(9, 2, 3\)"),
        ({"vote": np.full((9, 2, 3), 1e308)}, "vote: .*finite sum along every path"),
        ({"vote": np.full((9, 2, 3), np.inf)}, "vote: expected finite"),
        ({"answer": np.zeros((9, 2, 2))}, r"answer: expected shape \(9, 2, 3\)"),
        ({"answer": np.full((9, 2, 3), 1.5)}, "answer: expected probabilities"),
    ],
)
def test_what_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(several(chain=True)[0], **changes)


def test_files_that_do_not_fit(tmp_path):
    model, singles = several()
    pb.save(model, tmp_path / "model.npz")
    members = members_of(tmp_path / "model.npz")
    refused(tmp_path / "bad.npz", forge_column(members, "bias", np.zeros(2)), "bias: expected 3")
    columns = header_of(members)["columns"]
    members.pop("bias.npy")
    columns.pop("bias")
    refused(tmp_path / "bad.npz", forge(members, columns=columns), "bad value of 'bias'")
    pb.save(singles[0], tmp_path / "one.npz")
    members = forge_column(members_of(tmp_path / "one.npz"), "bias", np.zeros(3))
    refused(tmp_path / "bad.npz", members, "bias: expected a finite number")
