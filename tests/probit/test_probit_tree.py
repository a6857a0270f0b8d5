"""Probit model trees against the twin, the published code's answers, and at their edges."""

import csv
import os
import warnings
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from probit_problems import problem
from reference.probit_tree import fit_probit_tree, in_preorder, undone, values

import pboost as pb
from pboost._core import probit as kernel
from pboost._core.probit import boost_leaves
from pboost.growth.tree import NODE

SHARED = Path(__file__).parents[2] / ".." / "shared"
DATA = Path(os.environ.get("PBOOST_DATA", SHARED / "data"))
GOLDEN = Path(os.environ.get("PBOOST_GOLDEN", SHARED / "golden"))
#: The settings of the published code.
PUBLISHED = {
    "min_samples_split": 20,
    "min_samples_leaf": 7,
    "complexity": 0.01,
    "tol": 1e-5,
    "safeguard": False,
}


def assert_equals_twin(model, twin, X, case=""):
    nodes, equations = twin
    kept = in_preorder(nodes)
    tree = model.partition
    np.testing.assert_array_equal(tree.feature, [nodes[i].feature for i in kept], str(case))
    inner = [nodes[i] for i in kept if nodes[i].feature >= 0]
    np.testing.assert_array_equal(
        tree.threshold[tree.feature >= 0], [node.threshold for node in inner]
    )
    np.testing.assert_array_equal(tree.n_rows, [nodes[i].n_rows for i in kept])
    leaves = [equations[i] for i in kept if nodes[i].feature < 0]
    np.testing.assert_array_equal(model.taken, [[e[2] for e in leaf] for leaf in leaves])
    expected = [[[e[0], *e[1]] for e in leaf] for leaf in leaves]
    np.testing.assert_allclose(model.coefficient, expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.values(X), values(nodes, equations, X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_random_trees(classes):
    for case in range(6):
        X, y, weight = problem(case, classes=classes)
        options = {
            "max_depth": case % 4,
            "min_samples_leaf": 5,
            "max_iter": 5,
            "sample_weight": weight,
            "complexity": 0.02 * (case % 3),
            "safeguard": case % 2 == 0,
        }
        twin = fit_probit_tree(X, y, n_classes=classes, **options)
        model = pb.fit_probit_tree(X, y, **options)
        assert_equals_twin(model, twin, X, case)


def test_tolerance():
    X, y, weight = problem(1, n=80)
    options = {"max_depth": 1, "min_samples_leaf": 20, "tol": 0.5, "sample_weight": weight}
    model = pb.fit_probit_tree(X, y, **options)
    assert (model.taken < 20).all()
    assert_equals_twin(model, fit_probit_tree(X, y, n_classes=2, **options), X)


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_rows_of_leaves(search):
    """The functions are those of ProbitBoost on the rows that `apply` finds in each leaf."""
    X, y, weight = problem(2, n=400)
    model = pb.fit_probit_tree(X, y, max_depth=2, max_iter=30, sample_weight=weight, search=search)
    leaf = pb.inspection.apply(model, X)
    assert model.n_leaves == 4
    for number in range(4):
        rows = leaf == number
        line = pb.fit_probitboost(X[rows], y[rows], max_iter=30, sample_weight=weight[rows])
        assert line.intercept == model.coefficient[number, 0, 0]
        np.testing.assert_array_equal(line.slopes, model.coefficient[number, 0, 1:])
        np.testing.assert_allclose(line.risk[-1], model.risk[number, 0], rtol=1e-12)
        np.testing.assert_array_equal(
            pb.decision_function(line, X[rows]), pb.decision_function(model, X[rows])
        )


def test_depth_0_is_probitboost():
    X, y, weight = problem(3, n=200)
    model = pb.fit_probit_tree(X, y, max_depth=0, max_iter=50, sample_weight=weight)
    line = pb.fit_probitboost(X, y, max_iter=50, sample_weight=weight)
    assert model.n_leaves == 1
    for ask in (pb.decision_function, pb.predict, pb.predict_proba):
        np.testing.assert_array_equal(ask(model, X), ask(line, X))


def test_published_tree():
    """The partition and the probabilities of the published code on the banknotes."""
    golden = GOLDEN / "golden_pmt_banknote.csv"
    if not golden.exists() or not (DATA / "banknote.csv.gz").exists():
        pytest.skip("no published tree, or no data: set PBOOST_GOLDEN and PBOOST_DATA")
    X, y = read(DATA)
    with golden.open() as file:
        rows = list(csv.DictReader(file))
    weight = np.array([float(row["weight"]) for row in rows])
    expected = np.array([float(row["p"]) for row in rows])
    y01 = np.array([int(row["y01"]) for row in rows])
    assert len(set(zip(y, y01, strict=True))) == 2
    model = pb.fit_probit_tree(X, y01, max_depth=6, max_iter=100, sample_weight=weight, **PUBLISHED)
    leaf = pb.inspection.apply(model, X)
    assert len({(leaf[i], rows[i]["leaf"]) for i in range(len(y))}) == model.n_leaves == 10
    probabilities = pb.predict_proba(model, X)[:, 1]
    pure = model.taken[leaf, 0] < 0
    np.testing.assert_allclose(probabilities[~pure], expected[~pure], rtol=1e-10, atol=1e-10)
    assert set(expected[pure]) == {0.0, 1.0}
    np.testing.assert_array_equal(probabilities[pure] > 0.5, expected[pure] == 1)


def read(folder):
    table = np.genfromtxt(folder / "banknote.csv.gz", delimiter=",", skip_header=1)
    return table[:, :-1], table[:, -1]


def test_pruning_rule():
    """Against the recursion of the twin, on trees grown until leaves are pure."""
    sizes = set()
    for case in range(40):
        X, y, weight = problem(case, n=50, d=2, classes=2 + case % 3)
        complexity = [0.005, 0.02, 0.05, 0.2][case % 4]
        options = {"min_samples_leaf": 1, "max_depth": 9, "max_iter": 1, "sample_weight": weight}
        full_model = pb.fit_probit_tree(X, y, **options).partition
        model = pb.fit_probit_tree(X, y, **options, complexity=complexity)
        nodes = [
            Stub(
                int(full_model.feature[i]),
                *full_model.children[i].tolist(),
                full_model.value[i],
                full_model.weight[i],
            )
            for i in range(full_model.n_nodes)
        ]
        leaves = undone(nodes, complexity)
        for i in leaves:
            nodes[i].feature = -1
        expected = in_preorder(nodes)
        np.testing.assert_array_equal(
            model.partition.n_rows, full_model.n_rows[expected], str(case)
        )
        sizes.add(full_model.n_leaves - model.n_leaves)
    assert min(sizes) < 3
    assert max(sizes) > 8


class Stub:
    """A node of the twin."""

    def __init__(self, feature, first, second, value, weight):
        self.feature, self.first, self.second = feature, first, second
        self.value, self.weight = value, weight


def test_pruning_of_a_long_chain():
    n = 20001
    nodes = np.zeros(n, dtype=NODE)
    nodes["child"] = -1
    nodes["child"][: n - 1 : 2] = np.arange(1, n, 2)  # the second child of each pair goes on
    nodes["child"][1:-1:2], nodes["child"][2:-1:2] = -1, np.arange(3, n, 2)
    mass = np.tile(np.arange(n, 0, -1)[:, None], (1, 2))
    mass[1::2] = 1, 0
    state = np.empty((n, kernel.N_STATES_OF_NODE))
    stack, before = np.empty(n + 1, dtype=np.int64), nodes.copy()
    kernel.keep_splits(nodes, mass, 1e-9, state, stack)
    np.testing.assert_array_equal(nodes, before)
    kernel.keep_splits(nodes, mass, 0.4, state, stack)
    # Node 4 may not gain enough; without it the two above do not.
    assert nodes["child"][[0, 2, 4, 6]].tolist() == [-1, -1, -1, 7]


def test_leaves_of_one_class():
    X = np.arange(40.0).reshape(-1, 1)
    model = pb.fit_probit_tree(X, X[:, 0] >= 15, min_samples_leaf=5)
    assert model.taken.tolist() == [[-2], [-1]]
    expected = [-NormalDist().inv_cdf(15.5 / 16), NormalDist().inv_cdf(25.5 / 26)]
    np.testing.assert_allclose(pb.decision_function(model, X[[0, 39]]), expected, rtol=1e-14)
    np.testing.assert_allclose(
        pb.predict_proba(model, X[[0, 39]])[:, 1], [0.5 / 16, 25.5 / 26], rtol=1e-14
    )
    assert "no rows are of the class" in pb.describe(model)


def test_a_class_without_rows_in_a_leaf_never_wins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    X[60:, 0] += 8
    y = np.r_[2 * np.ones(60), rng.integers(1, 3, 60)].astype(int)
    y[:30] = 0
    model = pb.fit_probit_tree(X, y, max_depth=1, max_iter=20)
    assert (model.taken == -2).any()
    far = np.vstack([X, 1e6 * rng.normal(size=(500, 2)), 1e200 * rng.normal(size=(500, 2))])
    absent = model.taken[pb.inspection.apply(model, far)] == -2
    scores = pb.decision_function(model, far)
    assert np.isfinite(scores).all()
    assert not absent[np.arange(len(far)), scores.argmax(axis=1)].any()
    assert (scores[absent.any(axis=1)].min(axis=1) < -1e3).any()  # all others are far below 0


def test_the_prediction_is_the_most_probable():
    for classes in (2, 3):
        X, y, _ = problem(5, n=300, classes=classes)
        model = pb.fit_probit_tree(X, y, max_depth=2, max_iter=50)
        for scale in (1e-20, 1e-8, 1, 1e3, 1e30, 1e305):
            share = pb.predict_proba(model, scale * X)
            assert np.isfinite(share).all()
            np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-15)
            np.testing.assert_array_equal(pb.predict(model, scale * X), share.argmax(axis=1))


def test_threads_and_layouts():
    X, y, weight = problem(7, n=20000, classes=3)
    options = {"max_depth": 4, "max_iter": 10, "sample_weight": weight}
    model = pb.fit_probit_tree(X, y, **options, n_threads=1)
    for other, threads in ((X, 2), (np.asfortranarray(X), 1), (X[::1, ::1].copy(), 4)):
        same = pb.fit_probit_tree(other, y, **options, n_threads=threads)
        assert same.coefficient.tobytes() == model.coefficient.tobytes()
        assert same.partition.threshold.tobytes() == model.partition.threshold.tobytes()
    single = pb.fit_probit_tree(X.astype(np.float32), y, **options)
    np.testing.assert_array_equal(
        pb.decision_function(single, X.astype(np.float32)),
        pb.decision_function(single, X.astype(np.float32).astype(np.float64)),
    )
    columns = pb.data.sort_columns(X)
    same = pb.fit_probit_tree(columns, y, **options)
    assert same.coefficient.tobytes() == model.coefficient.tobytes()
    np.testing.assert_array_equal(
        pb.decision_function(model, X[:7]), pb.decision_function(model, X)[:7]
    )


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_of_columns(scale):
    X, y, _ = problem(8, n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, other = (
            pb.fit_probit_tree(X * s, y, max_depth=2, max_iter=20) for s in (1.0, scale)
        )
        scores = pb.decision_function(other, X * scale)
    np.testing.assert_allclose(scores, pb.decision_function(first, X), rtol=1e-6, atol=1e-9)


def test_hard_data():
    """Identical and constant columns, separable classes, rules that no split can meet."""
    X, y, _ = problem(9, n=120)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first_model = pb.fit_probit_tree(X, y, max_depth=1, max_iter=20)
        both = pb.fit_probit_tree(np.hstack([X, X, np.ones((120, 1))]), y, max_depth=1, max_iter=20)
        np.testing.assert_array_equal(both.coefficient[:, :, :4], first_model.coefficient)
        assert not both.coefficient[:, :, 4:].any()
        split = pb.fit_probit_tree(X, X[:, 0] > 0, max_depth=0, max_iter=1000)
        assert np.isfinite(split.coefficient).all()
        assert (pb.predict(split, X) == (X[:, 0] > 0)).mean() > 0.98
        flat = pb.fit_probit_tree(np.ones((30, 2)), np.arange(30) % 3 == 0)
        assert flat.n_leaves == 1
        np.testing.assert_allclose(pb.predict_proba(flat, [[1.0, 1.0]])[0, 1], 1 / 3, rtol=1e-9)
        large = pb.fit_probit_tree(X, y, min_samples_leaf=61, max_iter=5)
        assert (large.n_leaves, large.stop_reason) == (1, "no node can be split")
        tiny = pb.fit_probit_tree(
            X, y, max_depth=2, sample_weight=np.where(X[:, 0] > 0, 1e-300, 1.0)
        )
        assert np.isfinite(tiny.risk).all()


def test_bad_arguments():
    X, y, _ = problem(10)
    for options, error, message in (
        ({"max_iter": 0}, ValueError, "max_iter: expected an integer from 1"),
        ({"max_iter": 1.5}, TypeError, "max_iter: expected"),
        ({"max_depth": -1}, ValueError, "max_depth: expected an integer from 0"),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf: expected"),
        ({"min_samples_split": 1}, ValueError, "min_samples_split: expected"),
        ({"tol": -1.0}, ValueError, "tol: expected"),
        ({"complexity": -0.1}, ValueError, "complexity: expected"),
        ({"complexity": np.nan}, ValueError, "complexity: expected"),
        ({"safeguard": "yes"}, TypeError, "safeguard: expected True or False"),
        ({"criterion": "squared_error"}, ValueError, "criterion: expected"),
        ({"search": "fast"}, ValueError, "search: expected"),
    ):
        with pytest.raises(error, match=message):
            pb.fit_probit_tree(X, y, **options)
    with pytest.raises(ValueError, match="y: expected"):
        pb.fit_probit_tree(X, np.zeros(60))
    with pytest.raises(ValueError, match="X: "):
        pb.fit_probit_tree(np.where(X > 1, np.inf, X), y)
    with pytest.raises(TypeError, match=r"X: expected values .*, got BinnedColumns without values"):
        pb.fit_probit_tree(pb.data.bin_columns(X), y)


def test_input_is_not_changed():
    X, y, weight = problem(11)
    before = X.tobytes(), y.tobytes(), weight.tobytes()
    model = pb.fit_probit_tree(X, y, sample_weight=weight, min_samples_leaf=5, complexity=0.01)
    pb.predict_proba(model, X)
    assert before == (X.tobytes(), y.tobytes(), weight.tobytes())


def test_threads_end_with_the_caller():
    """What stops one thread, such as Ctrl-C, stops those that see no signals."""
    rng = np.random.default_rng(0)
    X, label = rng.normal(size=(100_000, 2)), rng.integers(0, 2, 100_000).astype(np.int32)
    rows, starts = np.arange(100_000, dtype=np.int32), np.array([0, 100_000], dtype=np.int32)
    actual = np.zeros((1, 1, 3)), np.zeros((1, 1), dtype=np.int32), None, 0, 1
    options = 2, 10_000, 0.0, False
    with pytest.raises(InterruptedError):
        boost_leaves(
            X, rows, starts, label, np.ones(100_000), *options, *actual, np.ones(1, dtype=np.int32)
        )
