"""Affine weak classifiers: every builder against its twin on derived columns, and evaluation."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from compare import assert_equals_twin, assert_identical, assert_same_model
from reference import affine as twins
from reference import matryoshka
from reference.adaboost import fit_adaboost
from reference.problems import CRITERIA, Problem, random_problem
from reference.soft import fit_soft_chain, fit_soft_tree
from reference.tree import fit_tree
from reference.walk import evaluate, path
from soft_models import assert_certified, noisy, observation

import pboost as pb
from pboost import threads
from pboost._core import walk
from pboost.data.node_inputs.sums import grid_of_directions, standard_deviations
from pboost.models.evaluate import kernel_walk as hard_evaluate

DIRECTIONS = 12


def weak(problem, max_bins=None, **options):
    bins = {"search": "exact"} if max_bins is None else {"search": "binned", "max_bins": max_bins}
    return pb.weak.affine(n_directions=DIRECTIONS, seed=3, **bins, **options)


def table(problem, terms=2):
    X, _, weight = problem
    if X.shape[1] == 2:
        return twins.half_circle(DIRECTIONS)
    return twins.random_sums(X, weight, DIRECTIONS, terms, 3)


def coefficients(model):
    """Return the coefficients of each projection of a model as a matrix (n_inputs, d)."""
    inputs = model.inputs
    dense = np.zeros((inputs.n_inputs, model.n_features))
    which = np.repeat(np.arange(inputs.n_inputs), np.diff(inputs.start))
    dense[which, inputs.index] = inputs.coefficient
    return dense


def as_stumps(model, directions):
    """Return the model as one of stumps on the columns that the twins derive."""
    summary = coefficients(model)
    distance = np.abs(summary[:, None] - directions).max(axis=2)
    assert (distance.min(axis=1) < 1e-8 * np.abs(summary).max(axis=1)).all()
    feature = distance.argmin(axis=1)[model.feature]
    return dataclasses.replace(
        model, feature=feature, inputs=None, n_features=len(directions), feature_names=None
    )


def check(model, twin, directions):
    stumps = as_stumps(model, directions)
    np.testing.assert_allclose(model.threshold, twin.threshold, rtol=1e-7, atol=1e-8)
    assert_equals_twin(dataclasses.replace(stumps, threshold=twin.threshold), twin)
    return stumps


def problem(d, seed=1, n=90):
    X, y, weight = noisy(seed, n=n, d=d)
    return Problem(X * 10.0 ** np.arange(d), y, weight)


def fits(X, y, weak_, **options):
    """Return a model of each kind."""
    adatree2 = pb.observation.adatree2()
    return {
        "chain": pb.fit_adaboost(X, y, n_estimators=9, weak_learner=weak_, **options),
        "tree": pb.fit_boosted_tree(X, y, max_nodes=9, weak_learner=weak_, **options),
        "soft tree": pb.fit_boosted_tree(
            X, y, max_nodes=9, weak_learner=weak_, observation=pb.observation.flip(0.1), **options
        ),
        "matryoshka": pb.fit_matryoshka(
            X, y, shape=(3, 3), weak_learner=weak_, observation=adatree2, **options
        ),
    }


# Against the twins


@pytest.mark.parametrize("max_bins", [None, 16])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("d", [2, 3, 5])
def test_exact_answers(d, criterion, max_bins):
    data = problem(d)
    X, y, weight = data
    directions = table(data)
    columns = twins.derived(X, directions)
    options = {"criterion": criterion, "max_bins": max_bins, "sample_weight": weight}
    learner = weak(data, max_bins, criterion=criterion)
    model = pb.fit_adaboost(X, y, n_estimators=12, weak_learner=learner, sample_weight=weight)
    check(model, fit_adaboost(columns, y, n_estimators=12, **options), directions)
    model = pb.fit_boosted_tree(X, y, max_nodes=12, weak_learner=learner, sample_weight=weight)
    check(model, fit_tree(columns, y, max_nodes=12, **options), directions)


@pytest.mark.parametrize("max_bins", [None, 16])
@pytest.mark.parametrize("kind", ["flip", "adatree2"])
@pytest.mark.parametrize("d", [2, 4])
def test_uncertain_answers(d, kind, max_bins):
    data = problem(d, seed=2)
    X, y, weight = data
    directions = table(data)
    columns = twins.derived(X, directions)
    twin = {"observation": kind, "rate": 0.1, "max_bins": max_bins, "sample_weight": weight}
    options = {"observation": observation(kind, 0.1), "sample_weight": weight}
    options["weak_learner"] = weak(data, max_bins)
    cases = [
        (
            pb.fit_adaboost(X, y, n_estimators=8, **options),
            fit_soft_chain(columns, y, n_estimators=8, **twin),
        ),
        (
            pb.fit_boosted_tree(X, y, max_nodes=8, **options),
            fit_soft_tree(columns, y, max_nodes=8, **twin),
        ),
        (
            pb.fit_matryoshka(X, y, shape=(2, 3), **options),
            matryoshka.fit_matryoshka(columns, y, shape=(2, 3), **twin),
        ),
    ]
    for model, expected in cases:
        stumps = check(model, expected, directions)
        np.testing.assert_allclose(model.answer, expected.answer, rtol=0, atol=1e-9)
        assert_certified(stumps, Problem(columns, y, weight))
        bound = pb.certificate(model, X, y, sample_weight=weight)
        np.testing.assert_allclose(bound, model.record.certificate[-1], rtol=1e-9)


@pytest.mark.parametrize("terms", [2, 3, 50])
def test_numbers_of_terms(terms):
    data = problem(4, seed=3)
    directions = table(data, terms)
    model = pb.fit_adaboost(
        data.X,
        data.y,
        n_estimators=20,
        weak_learner=weak(data, n_terms=terms),
        sample_weight=data.weight,
    )
    twin = fit_adaboost(
        twins.derived(data.X, directions), data.y, n_estimators=20, sample_weight=data.weight
    )
    check(model, twin, directions)
    assert set(np.diff(model.inputs.start)) <= {1, min(terms, 4)}


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_random_problems(search):
    fitted = 0
    for case in range(40):
        rng = np.random.default_rng([21, case])
        X, y, weight = random_problem(rng)
        if weight is not None:  # rows without weight take no part
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        options = {"search": search, "max_bins": 20}
        learner = pb.weak.affine(n_directions=8, n_terms=3, **options)
        projections = learner.projections(X, np.arange(len(y), dtype=np.int32), weight)
        columns = projections.values(X)
        if not np.isfinite(columns).all():
            with pytest.raises(ValueError, match="finite sums"):
                fits(X, y, learner, sample_weight=weight)
            continue
        fitted += 1
        stumps = fits(columns, y, pb.weak.stump(**options), sample_weight=weight)
        for name, model in fits(X, y, learner, sample_weight=weight).items():
            for column in ("threshold", "vote", "next"):
                actual, expected = getattr(model, column), getattr(stumps[name], column)
                assert actual.tobytes() == expected.tobytes(), (case, name, column)
            again = pb.certificate(model, X, y, sample_weight=weight)
            np.testing.assert_allclose(again, model.record.certificate[-1], rtol=1e-9)
    assert fitted > 30


# What the directions are


@pytest.mark.parametrize("directions", [1, 2, 3, 4, 7, 12, 180])
def test_grid_of_directions(directions):
    grid = grid_of_directions(directions)
    model = dataclasses.make_dataclass("M", ["inputs", "n_features"])(grid, 2)
    np.testing.assert_allclose(coefficients(model), twins.half_circle(directions), atol=1e-15)
    assert coefficients(model)[0].tolist() == [1, 0]
    if directions % 2 == 0:
        assert coefficients(model)[directions // 2].tolist() == [0, 1]
    if directions % 4 == 0:
        a, b = coefficients(model)[[directions // 4, 3 * directions // 4]]
        assert a[0] == a[1] == b[1] == -b[0]


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_two_directions_are_stumps(search):
    X, y, weight = noisy(4, n=300, d=2)
    affine = fits(X, y, pb.weak.affine("gini", search, n_directions=2), sample_weight=weight)
    stumps = fits(X, y, pb.weak.stump("gini", search), sample_weight=weight)
    for name, model in affine.items():
        assert_identical(as_stumps(model, np.eye(2)), stumps[name])


def test_one_column_is_a_stump():
    X, y, _ = noisy(5, d=2)
    X = X[:, :1]
    model = pb.fit_boosted_tree(X, y, max_nodes=9, weak_learner=pb.weak.affine())
    assert_identical(as_stumps(model, np.eye(1)), pb.fit_boosted_tree(X, y, max_nodes=9))


def test_constant_columns_are_not_drawn():
    X, y, _ = noisy(6, d=4)
    X[:, 2] = 7.0
    for columns in ([0, 1, 2, 3], [0, 2, 3], [2, 2, 3]):
        model = pb.fit_adaboost(
            X[:, columns], y, n_estimators=30, weak_learner=pb.weak.affine(n_terms=3)
        )
        assert not np.isin(model.inputs.index, np.flatnonzero(np.array(columns) == 2)).any()


def test_units_do_not_matter():
    X, y, _ = noisy(7, d=5)
    first, other = (
        pb.fit_boosted_tree(
            X * units, y, max_nodes=15, weak_learner=pb.weak.affine(n_directions=40)
        )
        for units in (1.0, np.array([1e-12, 3.0, 1e9, 0.7, 1e200]))
    )
    np.testing.assert_array_equal(first.feature, other.feature)
    np.testing.assert_allclose(first.vote, other.vote, atol=1e-9)


def test_standard_deviations_of_the_largest_numbers():
    largest = np.finfo(np.float64).max
    X = np.array([[largest, 5e-324, -largest], [-largest, 0.0, largest / 3]])
    actual = standard_deviations(X, np.arange(2, dtype=np.int32), None)
    np.testing.assert_allclose(actual, [largest, 0, largest / 3 * 2], rtol=1e-8)


def test_standard_deviations_are_those_of_copies_in_any_order():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, 3)) * [1e-300, 1.0, 1e300]
    X = np.column_stack([X, np.full(50, 0.1), np.linspace(0, 1e-309, 50)])
    weight = rng.integers(1, 4, 50).astype(float)
    rows = np.arange(50, dtype=np.int32)
    actual = standard_deviations(X, rows, weight)
    copies = np.repeat(rows, weight.astype(int))
    np.testing.assert_array_equal(actual, standard_deviations(X, copies, None))
    np.testing.assert_array_equal(actual, standard_deviations(X, rng.permutation(copies), None))
    unit = np.array([1e-300, 1.0, 1e300])
    np.testing.assert_allclose(actual[:3] / unit, np.std(X[copies, :3] / unit, axis=0), rtol=1e-8)
    assert (actual[3:] == 0).all()


def test_seed_chooses_the_directions():
    X, y, _ = noisy(9, d=6)
    first, again, other = (
        pb.fit_adaboost(X, y, n_estimators=12, weak_learner=pb.weak.affine(seed=seed))
        for seed in (1, 1, 2)
    )
    assert_identical(first, again)
    assert coefficients(first).tobytes() == coefficients(again).tobytes()
    assert first.inputs.index.tobytes() != other.inputs.index.tobytes()


# Evaluation


@pytest.mark.parametrize("d", [2, 5])
def test_evaluation_is_that_of_the_derived_columns(d):
    X, y, _ = noisy(10, n=200, d=d)
    for model in fits(X, y, pb.weak.affine(n_directions=40)).values():
        values = model.inputs.values(X)
        np.testing.assert_allclose(values, X @ coefficients(model).T, rtol=1e-12, atol=1e-12)
        graph = (model.feature, model.threshold, model.next)
        score, cost, _ = evaluate(*graph, model.vote, values)
        np.testing.assert_array_equal(pb.decision_function(model, X), score)
        np.testing.assert_array_equal(pb.prediction_cost(model, X), cost)
        nonzero = coefficients(model) != 0
        paths = ([model.feature[node] for node, _ in path(*graph, row)] for row in values)
        read = [np.count_nonzero(nonzero[inputs].any(axis=0)) for inputs in paths]
        np.testing.assert_array_equal(pb.prediction_cost(model, X, "features"), read)
        np.testing.assert_array_equal(list(pb.staged_decision_function(model, X))[-1], score)
        for i in (0, 17):
            np.testing.assert_allclose(pb.explain(model, X[i]).score, score[i], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_and_layouts_give_the_same_bits(dtype):
    X, y, _ = noisy(11, n=200, d=3)
    X = X.astype(dtype)
    for model in fits(X, y, pb.weak.affine(n_directions=40)).values():
        score = pb.decision_function(model, X)
        wide = np.repeat(X, 2, axis=1)[:, ::2]
        for other in (X.astype(np.float64), np.asfortranarray(X), wide, X[::-1][::-1]):
            assert pb.decision_function(model, other).tobytes() == score.tobytes()
        few = [pb.decision_function(model, X[i : i + 3]) for i in range(0, 200, 3)]
        assert np.concatenate(few).tobytes() == score.tobytes()
        counted = hard_evaluate.walk_rows(model, X, True)[0]  # walks a chain row by row
        assert counted.tobytes() == score.tobytes()


def test_training_rows_take_the_side_on_which_they_were():
    rng = np.random.default_rng(12)
    # Neighbouring values of projections, where one rounding more would change sides.
    X = rng.integers(0, 5, (400, 2)) / 5 + rng.integers(0, 3, (400, 2)) * 2.0**-53
    y = rng.choice([-1, 1], 400)
    for dtype in (np.float64, np.float32):
        for model in fits(X.astype(dtype), y, pb.weak.affine(n_directions=36)).values():
            assert abs(pb.certificate(model, X.astype(dtype), y) - pb.certificate(model)) < 1e-12


def test_random_walks_and_reach():
    X, y, _ = noisy(13, d=3)
    model = pb.fit_boosted_tree(
        X, y, max_nodes=9, weak_learner=pb.weak.affine(), observation=pb.observation.flip(0.2)
    )
    stumps = dataclasses.replace(model, inputs=None, n_features=model.n_inputs)
    values = model.inputs.values(X)
    for options in ({"route": "expected"}, {"route": "sample", "rng": 1, "draws": 5}):
        np.testing.assert_array_equal(
            pb.decision_function(model, X, **options),
            pb.decision_function(stumps, values, **options),
        )
    np.testing.assert_array_equal(
        pb.inspection.reach(model, X), pb.inspection.reach(stumps, values)
    )


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_threads_do_not_matter(monkeypatch, search):
    monkeypatch.setattr(threads, "MIN_CELLS", 1)
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    X, y, _ = noisy(14, n=500, d=4)
    learner = pb.weak.affine(search=search, n_directions=30)
    first, three = (fits(X, y, learner, n_threads=n) for n in (1, 3))
    for name, model in first.items():
        assert_identical(model, three[name])
        assert coefficients(model).tobytes() == coefficients(three[name]).tobytes()
        parallel = pb.decision_function(model, X)
        with monkeypatch.context() as patch:
            patch.setattr(threads, "available_threads", lambda: 1)
            assert pb.decision_function(model, X).tobytes() == parallel.tobytes()


@pytest.mark.parametrize("level", [0, 1, 2])
def test_chain_kernels_agree(level):
    X, y, _ = noisy(15, n=150, d=3)
    model = pb.fit_adaboost(X, y, n_estimators=30, weak_learner=pb.weak.affine())
    score = pb.decision_function(model, X)
    walk.use_simd_level(level)
    try:
        assert pb.decision_function(model, X).tobytes() == score.tobytes()
    finally:
        walk.use_simd_level(2)


def test_sorted_columns_stand_for_their_source():
    X, y, weight = noisy(16, d=3)
    for search in ("auto", "exact", "binned"):
        learner = pb.weak.affine(search=search)
        for options in ({}, {"sample_weight": weight}):
            plain = fits(X, y, learner, **options)
            for name, model in fits(pb.data.sort_columns(X), y, learner, **options).items():
                assert_identical(model, plain[name])


def test_weights_are_copies():
    rng = np.random.default_rng(17)
    X, y, _ = noisy(17, d=4)
    weight = rng.integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    for search in ("exact", "binned"):
        learner = pb.weak.affine(search=search, max_bins=20)
        weighted = fits(X, y, learner, sample_weight=weight)
        for name, model in fits(X[copies], y[copies], learner).items():
            assert_same_model(model, weighted[name])


def test_inputs_are_left_alone():
    X, y, _ = noisy(18, d=3)
    before = X.copy()
    X.flags.writeable = False
    for model in fits(X, y, pb.weak.affine()).values():
        pb.decision_function(model, X)
        pb.inspection.reach(model, X, y)
    np.testing.assert_array_equal(X, before)
