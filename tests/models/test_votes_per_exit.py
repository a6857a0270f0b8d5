"""Graphs whose exits have several votes: each is a graph of one vote, bit for bit."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from model_files import forge, forge_column, header_of, members_of, refused

import pboost as pb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(700, 3))
J = 3


def several(chain=False):
    """Return a graph with three votes per exit, and three graphs with one of them each."""
    y = X[:, 0] * X[:, 1] > 0
    fit = partial(pb.fit_adaboost, rounds=9) if chain else partial(pb.fit_boosted_tree, nodes=9)
    one = fit(X, y)
    votes = RNG.normal(size=(*one.vote.shape, J))
    bias = np.array([0.5, 0.0, -2.0])
    singles = [replace(one, vote=votes[..., j], bias=float(bias[j])) for j in range(J)]
    return replace(one, vote=votes, bias=bias, labels=np.arange(J)), singles


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
    found = pb.decision_function(model, X[:rows])
    assert found.shape == (rows, J)
    expected = stacked(pb.decision_function(single, X[:rows]) for single in singles)
    assert found.tobytes() == expected.tobytes()


def test_stages_are_those_of_graphs_of_one_vote(models):
    model, singles = models
    stages = list(pb.staged_decision_function(model, X))
    expected = [stacked(s) for s in zip(*(pb.staged_decision_function(one, X) for one in singles),
                                        strict=True)]  # fmt: skip
    assert len(stages) == len(expected) == model.n_nodes
    for found, right in zip(stages, expected, strict=True):
        assert found.tobytes() == right.tobytes()


def test_what_does_not_depend_on_votes(models):
    model, singles = models
    for unit in ("nodes", "features", "stumps"):
        cost = pb.evaluation_cost(model, X, unit)
        assert np.array_equal(cost, pb.evaluation_cost(singles[0], X, unit))
    assert np.array_equal(pb.reach(model, X[:9]), pb.reach(singles[0], X[:9]))
    first = pb.prefix(model, 4)
    assert np.array_equal(first.vote, model.vote[:4])
    values = [pb.decision_function(pb.prefix(single, 4), X) for single in singles]
    assert np.array_equal(pb.decision_function(first, X), stacked(values))
    assert pb.describe(model).splitlines()[0].endswith("labels 0, 1, 2")
    assert "every row starts with vote +0.5000 +0.0000 -2.0000" in pb.describe(model)


def test_pickles_and_files(models, tmp_path):
    model, singles = models
    pb.save(model, tmp_path / "model.npz")
    loaded = pb.load(tmp_path / "model.npz")
    pb.save(loaded, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()
    for same in (loaded, pickle.loads(pickle.dumps(model))):
        for name in ("feature", "threshold", "next", "vote", "bias", "labels"):
            assert getattr(same, name).tobytes() == getattr(model, name).tobytes()
            assert not getattr(same, name).flags.writeable
        expected = stacked(pb.decision_function(single, X) for single in singles)
        assert pb.decision_function(same, X).tobytes() == expected.tobytes()


def test_files_say_that_there_are_several(models, tmp_path):
    """A reader that knows one vote per exit only knows no such column, and refuses it."""
    model, singles = models
    pb.save(model, tmp_path / "several.npz")
    pb.save(singles[0], tmp_path / "one.npz")
    several, one = (header_of(members_of(tmp_path / f"{n}.npz")) for n in ("several", "one"))
    assert "bias" not in several
    assert several["columns"]["bias"]["shape"] == [J]
    assert "optional" not in several["columns"]["bias"]
    assert several["columns"]["vote"]["shape"] == [model.n_nodes, 2, J]
    assert isinstance(one["bias"], float)
    assert "bias" not in one["columns"]
    assert one["columns"]["vote"]["shape"] == [model.n_nodes, 2]


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: pb.predict(model, X),
        lambda model: pb.predict_proba(model, X),
        lambda model: list(pb.staged_predict(model, X)),
        lambda model: list(pb.staged_predict_proba(model, X)),
        lambda model: pb.decision_function(model, X, "expected"),
        lambda model: pb.decision_function(model, X, "sample", rng=0),
        lambda model: pb.certificate(model),
        lambda model: pb.certificate(model, X, X[:, 0] > 0),
        lambda model: pb.margins(model, X, X[:, 0] > 0),
        lambda model: pb.normalised_margins(model, X, X[:, 0] > 0),
        lambda model: pb.margin_bound(model, X, X[:, 0] > 0, 0.1),
        lambda model: pb.margin_curve(model, X, X[:, 0] > 0, [0.0]),
        lambda model: pb.continue_fit(model, X, X[:, 0] > 0, nodes=2),
        lambda model: pb.permutation_importance(model, X, np.arange(700) % J),
        lambda model: pb.fit_bagging(lambda X, y, sample_weight: model, X, np.arange(700) % J,
                                     members=2, rng=0),
        lambda model: pb.fit_samme(X, np.arange(700) % J, base=lambda X, y, sample_weight: model,
                                   rounds=1),
    ],
)  # fmt: skip
def test_what_is_not_implemented_says_so(models, ask):
    with pytest.raises(NotImplementedError, match="whose exits have 3 votes is not implemented"):
        ask(models[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": 0.0}, "bias: expected 3 finite numbers"),
        ({"bias": np.zeros(2)}, "bias: expected 3 finite numbers"),
        ({"bias": np.array([0.0, np.nan, 0.0])}, "bias: expected 3 finite numbers"),
        ({"labels": np.array([0, 1])}, r"labels: expected shape \(3,\)"),
        ({"vote": np.zeros((9, 2))}, "labels: expected shape"),
        ({"vote": np.zeros((9, 2, 1))}, "labels: expected shape"),
        ({"vote": np.zeros((9, 3, 3))}, r"vote: expected shape \(9, 2, 3\)"),
        ({"vote": np.full((9, 2, 3), 1e308)}, "vote: .*finite sum along every path"),
        ({"vote": np.full((9, 2, 3), np.inf)}, "vote: expected finite"),
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
