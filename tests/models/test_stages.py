"""Stages of matryoshki of a given shape: votes change when a tree is collected by sign."""

import copy
import math
import pickle
from functools import partial

import numpy as np
import pytest
from compare import assert_identical
from soft_models import library, noisy

import pboost as pb

PROBLEM = noisy(111, n=150)
uncertain = pytest.mark.parametrize("observation", ["flip", "uniform", "adatree2"])


def fit(shape, observation="adatree2", collect="sign", **options):
    return library(
        pb.fit_matryoshka,
        PROBLEM,
        shape=shape,
        observation=observation,
        rate=0.1,
        collect=collect,
        **options,
    )


def staged(model):
    return list(pb.staged_decision_function(model, PROBLEM.X))


def decision(model):
    return pb.decision_function(model, PROBLEM.X)


@uncertain
@pytest.mark.parametrize("inner", [(1,), (3,), (2, 2), (1, 3), (2, 1, 2)])
def test_one_stage_for_each_outer_node(observation, inner):
    model = fit((*inner, 5), observation)
    size = math.prod(inner)
    stages = staged(model)
    assert len(stages) == 5
    if size > 1:
        assert model.record.stages.tolist() == list(range(size, 5 * size + 1, size))
    for k, score in enumerate(stages, start=1):
        assert score.tobytes() == decision(fit((*inner, k), observation)).tobytes()
    assert stages[-1].tobytes() == decision(model).tobytes()


@uncertain
def test_chained_trees_have_a_stage_for_each_inner_tree(observation):
    model = fit((2, 3, 4), observation, join="all")
    assert model.record.stages.tolist() == list(range(2, 25, 2))
    stages = dict(zip(model.record.stages.tolist(), staged(model), strict=True))
    for k in range(1, 5):
        small = fit((2, 3, k), observation, join="all")
        assert stages[6 * k].tobytes() == decision(small).tobytes()


@pytest.mark.parametrize("options", [{"collect": "additive"}, {"join": "all"}])
def test_every_node_is_a_stage_where_no_vote_changes(options):
    model = fit((3, 4), **options)
    assert model.record.stages is None
    assert len(staged(model)) == 12


def test_stopped_within_a_tree():
    """Votes of the tree that is not finished are not collected yet."""
    model = fit((3, 4), callback=lambda step, record: step == 8)
    assert model.record.stages.tolist() == [3, 6, 7, 8]
    assert staged(model)[1].tobytes() == decision(fit((3, 2))).tobytes()
    assert staged(model)[-1].tobytes() == decision(model).tobytes()


def test_exact_answers_that_leave_the_shape_incomplete():
    model = fit((4, 40), "exact")
    assert model.record.stop_reason.startswith("the shape is incomplete")
    assert model.record.stages[-1] == model.n_nodes
    assert staged(model)[-1].tobytes() == decision(model).tobytes()


@pytest.mark.parametrize("collect", ["additive", "sign"])
@pytest.mark.parametrize(
    "weak", [pb.weak.separator(4), pb.weak.linear()], ids=["separator", "linear"]
)
def test_validation_of_what_is_trained_at_the_nodes(weak, collect):
    """Validation rows are given numbers that a model's nodes compare, before there is a model."""
    fit_ = partial(pb.fit_matryoshka, shape=(2, 3), collect=collect, weak_learner=weak)
    X, y = PROBLEM.X, PROBLEM.y
    full = fit_(X[::2], y[::2])
    watched = fit_(X[::2], y[::2], validation=(X[1::2], y[1::2]))
    sizes = range(1, full.n_nodes + 1) if full.record.stages is None else full.record.stages
    errors = [
        np.mean((score > 0) != (y[1::2] > 0))
        for score in pb.staged_decision_function(full, X[1::2])
    ]
    np.testing.assert_allclose(watched.record.validation[list(sizes)], errors, rtol=1e-12)
    assert watched.n_nodes == sizes[int(np.argmin(errors))]


def test_stages_survive_files_pickles_and_copies(tmp_path):
    model = fit((3, 4))
    pb.save(model, tmp_path / "model.npz")
    for other in (
        pb.load(tmp_path / "model.npz"),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        assert_identical(model, other)
        assert other.record.stages.dtype == np.int32
        assert not other.record.stages.flags.writeable
        np.testing.assert_array_equal(other.record.stages, model.record.stages)
        for item, two in zip(staged(model), staged(other), strict=True):
            assert item.tobytes() == two.tobytes()
