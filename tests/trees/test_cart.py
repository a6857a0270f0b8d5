"""Classification and regression trees against the twin."""

import numpy as np
import pytest
from carts import assert_equals_twin, assert_identical, targets
from reference.cart import fit_cart
from reference.problems import random_matrix, random_weight
from reference.sort import bin_edges

import pboost as pb

CLASSES = [(2, "gini"), (2, "entropy"), (2, "error"), (2, "kearns_mansour")]
CLASSES += [(3, "gini"), (3, "entropy"), (5, "error"), (7, "gini")]
LESSON = [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]], [9, -4, 2, 4, 2]


def random_options(rng):
    options = {
        "min_samples_leaf": int(rng.choice([1, 1, 2, 5])),
        "min_samples_split": int(rng.choice([2, 2, 6])),
    }
    if rng.random() < 0.5:
        options["max_depth"] = int(rng.integers(1, 5))
    return options


def draw(seed, n_classes):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([8, 12, 30, 70]))
    X = random_matrix(rng, n, int(rng.integers(1, 5)))
    y, weight = targets(rng, X, n_classes), random_weight(rng, n)
    if weight is not None and not weight.any():
        weight = None
    return rng, X, y, weight


def edges_of(X, weight, max_bins):
    """Return the edges of bins, in which rows of weight 0 take no part."""
    if weight is None:
        return bin_edges(X, None, max_bins)
    return bin_edges(X[weight > 0], weight[weight > 0], max_bins)


@pytest.mark.full_for("None-5-error")
@pytest.mark.parametrize(("n_classes", "criterion"), CLASSES)
@pytest.mark.parametrize("max_bins", [None, 5])
def test_random_classes(n_classes, criterion, max_bins):
    for case in range(25):
        rng, X, y, weight = draw([41, case, n_classes], n_classes)
        options = random_options(rng)
        edges = None
        if max_bins is not None:
            edges = edges_of(X, weight, max_bins)
        twin = fit_cart(
            X,
            y,
            criterion=criterion,
            n_classes=n_classes,
            sample_weight=weight,
            edges=edges,
            **options,
        )
        search = {"search": "exact"} if max_bins is None else {"search": "binned"}
        tree = pb.fit_cart(
            X,
            y,
            criterion=criterion,
            sample_weight=weight,
            max_bins=max_bins or 256,
            **search,
            **options,
        )
        assert_equals_twin(tree, twin, case)


@pytest.mark.parametrize("max_bins", [None, 5])
def test_random_numbers(max_bins):
    for case in range(60):
        rng, X, y, weight = draw([42, case], 0)
        options = random_options(rng)
        edges = None if max_bins is None else edges_of(X, weight, max_bins)
        twin = fit_cart(
            X, y, criterion="squared_error", sample_weight=weight, edges=edges, **options
        )
        search = "exact" if max_bins is None else "binned"
        tree = pb.fit_cart(
            X,
            y,
            task="regression",
            sample_weight=weight,
            search=search,
            max_bins=max_bins or 256,
            **options,
        )
        assert_equals_twin(tree, twin, case)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("search", ["exact", "binned"])
def test_segments_of_all_lengths(n_classes, search):
    """Around the lengths at which the searches change their ways."""
    for n in (31, 32, 33, 63, 64, 65, 96, 97, 129, 300):
        rng = np.random.default_rng([43, n])
        X = rng.normal(size=(n, 2))
        y = targets(rng, X, n_classes)
        edges = bin_edges(X, None, 256) if search == "binned" else None
        criterion = "gini" if n_classes else "squared_error"
        twin = fit_cart(X, y, criterion=criterion, n_classes=n_classes, max_depth=3, edges=edges)
        task = "classification" if n_classes else "regression"
        tree = pb.fit_cart(X, y, task=task, max_depth=3, search=search)
        assert_equals_twin(tree, twin, n)


@pytest.mark.full
@pytest.mark.parametrize(
    ("n_classes", "criterion"), [(0, "squared_error"), (3, "gini"), (3, "entropy"), (4, "error")]
)
def test_many_rows(n_classes, criterion):
    rng = np.random.default_rng([54, n_classes])
    X, weight = rng.normal(size=(1500, 2)), rng.exponential(size=1500) ** 2
    y = targets(rng, X, n_classes)
    options = {"criterion": criterion, "sample_weight": weight, "max_depth": 2}
    twin = fit_cart(X, y, n_classes=n_classes, **options)
    task = "classification" if n_classes else "regression"
    assert_equals_twin(pb.fit_cart(X, y, task=task, **options), twin)


def test_long_segments():
    """More rows than the blocks of one round of the coarse pass."""
    rng = np.random.default_rng(44)
    X = rng.normal(size=(9000, 1))
    y = np.where(X[:, 0] > 1.2, 1.0, 0.0) + rng.normal(size=9000)
    tree = pb.fit_cart(X, y, task="regression", max_depth=1)
    order = np.argsort(X[:, 0])
    left = np.cumsum(y[order])[:-1]
    k = np.arange(1, 9000)
    gain = left**2 / k + (y.sum() - left) ** 2 / (9000 - k)
    best = int(np.argmax(gain))
    assert tree.threshold[0] == X[order[best : best + 2], 0].sum() / 2


@pytest.mark.full_for("exact-4")
@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.parametrize("search", ["exact", "binned"])
def test_best_first(n_classes, search):
    for case in range(8):
        rng = np.random.default_rng([45, case])
        X, weight = rng.normal(size=(60, 3)), rng.uniform(0.5, 2, 60)
        y = targets(rng, X, n_classes) + (rng.normal(size=60) if not n_classes else 0)
        criterion = "entropy" if n_classes else "squared_error"
        edges = bin_edges(X, weight, 256) if search == "binned" else None
        twin = fit_cart(
            X,
            y,
            criterion=criterion,
            n_classes=n_classes,
            sample_weight=weight,
            max_leaf_nodes=9,
            edges=edges,
        )
        tree = pb.fit_cart(
            X,
            y,
            task="classification" if n_classes else "regression",
            criterion=criterion,
            sample_weight=weight,
            max_leaf_nodes=9,
            search=search,
        )
        assert tree.settings["growth"] == "best_first"
        assert_equals_twin(tree, twin, case)
        full = pb.fit_cart(X, y, task=tree.task, growth="best_first", search=search)
        assert_identical(full, pb.fit_cart(X, y, task=tree.task, search=search))


def test_weights_are_copies():
    for case in range(20):
        rng = np.random.default_rng([46, case])
        X, copies = rng.integers(0, 6, (40, 3)).astype(float), rng.integers(0, 4, 40)
        rows = np.repeat(np.arange(40), copies)
        for y, task in (
            (rng.integers(0, 3, 40), "classification"),
            (X[:, 0] * X[:, 1], "regression"),
        ):
            if len(np.unique(y[rows])) < 2:
                continue
            weighted = pb.fit_cart(X, y, task=task, sample_weight=copies)
            copied = pb.fit_cart(X[rows], y[rows], task=task)
            for name in ("feature", "threshold", "children"):
                np.testing.assert_array_equal(getattr(weighted, name), getattr(copied, name))
            for name in ("value", "weight", "impurity"):
                np.testing.assert_allclose(
                    getattr(weighted, name)[:, ..., None],
                    getattr(copied, name)[:, ..., None],
                    rtol=1e-12,
                    atol=1e-14,
                )


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_large_offsets(offset):
    """The squares are taken about the mean: far from 0 the same tree grows."""
    rng = np.random.default_rng(47)
    X = rng.normal(size=(500, 3))
    y = np.round(8 * (np.sin(3 * X[:, 0]) + rng.normal(size=500))) / 8
    near = pb.fit_cart(X, y, task="regression", min_samples_leaf=5)
    far = pb.fit_cart(X, y + offset, task="regression", min_samples_leaf=5)
    np.testing.assert_array_equal(near.feature, far.feature)
    np.testing.assert_array_equal(near.threshold, far.threshold)
    np.testing.assert_allclose(
        near.impurity, far.impurity, rtol=1e-3 if offset > 1e9 else 1e-9, atol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-140, 1e-20, 1e149])
def test_scales(scale):
    rng = np.random.default_rng(48)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    near = pb.fit_cart(X, y, task="regression")
    far = pb.fit_cart(X, y / np.abs(y).max() * scale, task="regression")
    np.testing.assert_array_equal(near.feature, far.feature)
    np.testing.assert_array_equal(near.threshold, far.threshold)


def test_small_weights_count():
    """Where little of the weight is left, weights are made anew in finer units."""
    rng = np.random.default_rng(49)
    X, y = rng.normal(size=(400, 2)), rng.normal(size=400)
    light = X[:, 0] > 0
    weight = np.where(light, 1e-9, 1.0) * rng.uniform(0.5, 1, 400)
    for task, z in (("regression", light * (100 + y)), ("classification", light * (1 + (y > 0)))):
        tree = pb.fit_cart(X, z, task=task, sample_weight=weight, min_samples_leaf=8)
        alone = pb.fit_cart(
            X[light], z[light], task=task, sample_weight=weight[light], min_samples_leaf=8
        )
        second = int(tree.children[0, 1])
        assert tree.threshold[0] < X[light, 0].min()
        np.testing.assert_array_equal(tree.feature[second:], alone.feature)
        np.testing.assert_array_equal(tree.threshold[second:], alone.threshold)


@pytest.mark.parametrize("growth", ["depth_first", "best_first"])
@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_threads(growth, search, task, monkeypatch):
    monkeypatch.setattr(pb.threads, "MIN_CELLS", 500)
    monkeypatch.setattr(pb.threads, "available_threads", lambda: 3)
    rng = np.random.default_rng(50)
    X, y = rng.normal(size=(800, 7)), rng.integers(0, 3, 800)
    options = {"task": task, "growth": growth, "search": search, "max_features": 3}
    trees = [pb.fit_cart(X, y, rng=1, n_threads=k, **options) for k in (1, 2, 3)]
    assert_identical(trees[0], trees[1])
    assert_identical(trees[0], trees[2])
    with pytest.raises(AssertionError):
        assert_identical(trees[0], pb.fit_cart(X, y, rng=2, **options))


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_columns_prepared(search):
    rng = np.random.default_rng(51)
    X, y = rng.integers(0, 30, (300, 4)).astype(np.float32), rng.integers(0, 3, 300)
    # Columns that are binned before have all rows, those of weight 0, too.
    weight = rng.integers(0 if search == "exact" else 1, 3, 300)
    columns = (
        pb.data.sort_columns(X)
        if search == "exact"
        else pb.data.bin_columns(X, sample_weight=weight)
    )
    for task in ("classification", "regression"):
        plain = pb.fit_cart(X, y, task=task, search=search, sample_weight=weight)
        for _ in range(2):  # the columns are not changed
            assert_identical(plain, pb.fit_cart(columns, y, task=task, sample_weight=weight))


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_columns_are_drawn(search):
    """Each node is split at one of the columns drawn, the best of them; all get their turn."""
    rng = np.random.default_rng(52)
    X = rng.normal(size=(2000, 6))
    tree = pb.fit_cart(X, rng.integers(0, 2, 2000), max_features=1, rng=0, search=search)
    share = np.bincount(tree.feature[tree.feature >= 0], minlength=6) / (tree.n_leaves - 1)
    assert np.abs(share - 1 / 6).max() < 0.06


@pytest.mark.parametrize("search", ["exact", "binned"])
def test_constant_columns_are_drawn_again(search):
    X = np.zeros((64, 10))
    X[:, 7] = np.arange(64)
    y = np.arange(64) % 2
    for seed in range(5):
        tree = pb.fit_cart(X, y, max_features=1, rng=seed, search=search)
        assert tree.n_leaves == 64


@pytest.mark.parametrize("growth", ["depth_first", "best_first"])
@pytest.mark.parametrize("search", ["exact", "binned"])
@pytest.mark.parametrize("large", [False, True])
def test_callback(growth, search, large, monkeypatch):
    """It sees every split once, when it has just been made."""
    if large:
        monkeypatch.setattr(pb.threads, "CELLS_PER_CALL", 50)
    rng = np.random.default_rng(53)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 3, 120)
    steps = []
    options = {"growth": growth, "search": search}
    tree = pb.fit_cart(X, y, callback=lambda *step: steps.append(step), **options)
    assert_identical(tree, pb.fit_cart(X, y, **options))
    assert [step for step, _ in steps] == list(range(1, tree.n_leaves))
    inner, depth = np.flatnonzero(tree.feature >= 0), tree.node_depth()
    expected = [
        (int(tree.feature[i]), float(tree.threshold[i]), int(depth[i]), int(tree.n_rows[i]))
        for i in inner
    ]
    actual = [(r.feature, r.threshold, r.depth, r.n_rows) for _, r in steps]
    assert sorted(actual) == sorted(expected)
    if growth == "depth_first":
        assert actual == expected
    short = pb.fit_cart(X, y, callback=lambda step, record: step == 5, **options)
    assert (short.n_leaves, short.stop_reason) == (6, "stopped by the callback")


def test_the_lecture_s_tree():
    """Problems 1 of the lecture: five points, squared error."""
    X, y = LESSON
    tree = pb.fit_cart(X, y, task="regression")
    assert_equals_twin(tree, fit_cart(X, np.array(y, float), criterion="squared_error"))
    # x2 <= 1.5: 9; then x1 <= 1.5: the two points of x1 = 1, and those of x1 = 2.
    assert tree.feature.tolist() == [1, -1, 0, 1, -1, -1, 1, -1, -1]
    assert tree.threshold[tree.feature >= 0].tolist() == [1.5, 1.5, 2.5, 2.5]
    assert pb.predict(tree, X).tolist() == y
    assert pb.prune(tree, 20).value.tolist() == [2.6, 9.0, 1.0]


def test_stumps_are_not_weakly_universal():
    """Problems 3 of the lecture: parity, on which every stump errs with half of the weight."""
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    for j in range(2):
        for z in (-1, 0, 1):
            assert ((X[:, j] <= z) == y).mean() == 0.5
    stump = pb.fit_cart(X, y, max_depth=1)
    assert (pb.predict(stump, X) == y).mean() == 0.5
    assert (pb.predict(pb.fit_cart(X, y), X) == y).all()


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e300])
def test_weights_of_any_size(scale):
    """The weights of nodes lose digits below the normal numbers; the tree does not depend on it."""
    r = np.random.default_rng(0)
    X, y = r.normal(size=(40, 3)), r.normal(size=40)
    plain = pb.fit_cart(X, y, task="regression")
    tree = pb.fit_cart(X, y, task="regression", sample_weight=np.full(40, scale))
    for name in ("feature", "threshold"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(plain, name), name)
    for name in ("value", "impurity"):
        np.testing.assert_allclose(getattr(tree, name), getattr(plain, name), atol=1e-12)


@pytest.mark.parametrize("fit", [pb.fit_cart, pb.fit_random_forest, pb.fit_pruned_cart])
def test_targets_of_rows_of_weight_0_have_no_effect(fit):
    """Beside a target of 1e150 those of 1e-10 were rounded to 0, and nothing was split."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(60, 2)), np.ones(60)
    y = 1e-10 * (X[:, 0] + rng.normal(size=60))
    weight[7], large = 0.0, y.copy()
    large[7] = 1e150
    first, other = (
        fit(X, targets, task="regression", sample_weight=weight, rng=0) for targets in (y, large)
    )
    assert len(np.unique(pb.predict(first, X))) > 1
    np.testing.assert_array_equal(pb.predict(first, X), pb.predict(other, X))
