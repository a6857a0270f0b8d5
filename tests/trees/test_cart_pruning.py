"""Weakest-link pruning against all subtrees, and pruning by cross-validation step by step."""

import time

import numpy as np
import pytest
from carts import assert_identical, targets
from reference.cart import best_subtree, fit_cart

import pboost as pb
from pboost.trees.pruning import collapsed

TASKS = [(0, "squared_error"), (2, "gini"), (3, "entropy"), (2, "error"), (2, "kearns_mansour")]


def leaves_kept(tree, pruned):
    """Return the nodes of `tree` that are the leaves of `pruned`."""
    actual, waiting = [], [(0, 0)]
    while waiting:
        a, b = waiting.pop()
        if pruned.feature[b] < 0:
            actual.append(a)
        else:
            waiting += zip(tree.children[a].tolist(), pruned.children[b].tolist(), strict=True)
    return frozenset(actual)


def problem(seed, n_classes, n=12):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 2)), rng.integers(0, 3))
    y = targets(rng, X, n_classes)
    if rng.random() < 0.5:
        y = rng.permutation(y)  # splits that gain nothing, and equal prices
    return X, y, rng.integers(1, 4, n)


@pytest.mark.full_for("0-squared_error")
@pytest.mark.parametrize(("n_classes", "criterion"), TASKS)
def test_every_subtree_is_the_best(n_classes, criterion):
    for case in range(25):
        X, y, weight = problem([61, case], n_classes)
        nodes = fit_cart(X, y, criterion=criterion, n_classes=n_classes, sample_weight=weight)
        tree = pb.fit_cart(
            X,
            y,
            task="classification" if n_classes else "regression",
            criterion=criterion,
            sample_weight=weight,
        )
        path = pb.models.cost_complexity_pruning_path(tree)
        assert path.ccp_alpha[0] == 0.0
        assert path.n_leaves[-1] == 1
        assert (np.diff(path.ccp_alpha) > 0).all()
        assert (np.diff(path.n_leaves) < 0).all()
        between = (path.ccp_alpha[:-1] + path.ccp_alpha[1:]) / 2
        for ccp_alpha in [*path.ccp_alpha, *between, path.ccp_alpha[-1] + 1]:
            pruned = pb.prune(tree, ccp_alpha)
            assert leaves_kept(tree, pruned) == best_subtree(nodes, ccp_alpha), (case, ccp_alpha)
        for k, ccp_alpha in enumerate(path.ccp_alpha):
            pruned = pb.prune(tree, ccp_alpha)
            assert pruned.n_leaves == path.n_leaves[k]
            risk = (pruned.weight * pruned.impurity)[pruned.feature < 0].sum()
            assert abs(risk - path.risk[k]) < 1e-9


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_path_of_given_rows(n_classes):
    """With the training rows it is the path that the tree knows."""
    rng = np.random.default_rng(62)
    X, weight = rng.normal(size=(300, 3)), rng.uniform(0.5, 1, 300)
    y = targets(rng, X, n_classes)
    tree = pb.fit_cart(
        X,
        y,
        task="classification" if n_classes else "regression",
        sample_weight=weight,
        min_samples_leaf=3,
    )
    for criterion in (None, "error") if n_classes else (None, "squared_error"):
        known = pb.models.cost_complexity_pruning_path(tree, criterion=criterion)
        given = pb.models.cost_complexity_pruning_path(
            tree, X, y, sample_weight=weight, criterion=criterion
        )
        np.testing.assert_array_equal(known.n_leaves, given.n_leaves)
        np.testing.assert_allclose(known.ccp_alpha, given.ccp_alpha, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(known.risk, given.risk, rtol=1e-9, atol=1e-9)
    other = pb.models.cost_complexity_pruning_path(tree, X[:100], y[:100])
    risk = 0.0
    for leaf in range(tree.n_leaves):
        rows = np.flatnonzero(pb.inspection.apply(tree, X[:100]) == leaf)
        if len(rows) and not n_classes:
            risk += ((y[rows] - y[rows].mean()) ** 2).sum()
        elif len(rows):
            share = np.bincount(y[rows]) / len(rows)
            risk += len(rows) * (1 - (share**2).sum())
    assert abs(other.risk[0] - risk) < 1e-9


def test_prune_by_another_criterion():
    rng = np.random.default_rng(63)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 3, 200)
    tree = pb.fit_cart(X, y)
    path = pb.models.cost_complexity_pruning_path(tree, criterion="error")
    for ccp_alpha, n_leaves in zip(path.ccp_alpha, path.n_leaves, strict=True):
        assert pb.prune(tree, ccp_alpha, criterion="error").n_leaves == n_leaves
    # Errors are counted, so prices are ratios of small whole numbers.
    assert len(path.ccp_alpha) < len(pb.models.cost_complexity_pruning_path(tree).ccp_alpha)


@pytest.mark.clock
def test_chain_shaped_tree():
    """Its depth is its number of leaves; the pruning does not take its square."""
    n = 3000
    X, y = np.arange(float(n))[:, None], 2.0 ** -np.arange(n)
    tree = pb.fit_cart(X, y, task="regression", min_samples_split=2)
    start = time.process_time()
    path = pb.models.cost_complexity_pruning_path(tree)
    assert time.process_time() - start < 1
    assert path.n_leaves[-1] == 1


def cross_validated(X, y, weight, task, folds, fold, ccp_alpha):
    """Errors and standard errors at each price, from trees pruned and asked one by one."""
    n = len(y)
    losses = np.empty((len(ccp_alpha), n))
    for k in range(folds):
        train, test = fold != k, fold == k
        tree = pb.fit_cart(X, y, task=task, sample_weight=np.where(train, weight, 0))
        for i, price in enumerate(ccp_alpha):
            price = min(price * weight[train].sum(), 1e300)
            predicted = pb.predict(pb.prune(tree, price), X[test])
            losses[i, test] = (
                (predicted - y[test]) ** 2 if task == "regression" else predicted != y[test]
            )
    error = np.average(losses, axis=1, weights=weight)
    variance = np.average((losses - error[:, None]) ** 2, axis=1, weights=weight)
    return error, np.sqrt(variance / n)


@pytest.mark.full_for("1se-0", "min-0")
@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("rule", ["min", "1se"])
def test_cross_validation(n_classes, rule):
    rng = np.random.default_rng([64, n_classes])
    X, weight = rng.normal(size=(150, 3)), rng.uniform(0.5, 1, 150)
    y = targets(rng, X, n_classes)
    if not n_classes:
        y = y + rng.normal(size=150)
    task = "classification" if n_classes else "regression"
    options = {"task": task, "cv": 5, "rule": rule, "sample_weight": weight}
    model = pb.fit_pruned_cart(X, y, rng=3, **options)
    table = model.pruning
    tree = pb.fit_cart(X, y, task=task, sample_weight=weight)
    path = pb.models.cost_complexity_pruning_path(tree)
    np.testing.assert_array_equal(table.ccp_alpha, path.ccp_alpha)
    np.testing.assert_array_equal(table.n_leaves, path.n_leaves)
    # The same folds: classes in order, each shuffled, dealt out.
    draw = np.random.default_rng(3)
    code = y if n_classes else np.zeros(150)
    order = np.concatenate([draw.permutation(np.flatnonzero(code == c)) for c in np.unique(code)])
    fold = np.empty(150, int)
    fold[order] = np.arange(150) % 5
    middle = np.append(np.sqrt(path.ccp_alpha[:-1] * path.ccp_alpha[1:]), np.inf) / weight.sum()
    error, spread = cross_validated(X, y, weight, task, 5, fold, middle)
    np.testing.assert_allclose(table.error, error, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table.standard_error, spread, rtol=1e-7, atol=1e-9)
    best = len(error) - 1 - int(np.argmin(table.error[::-1]))
    if rule == "1se":
        bar = table.error[best] + table.standard_error[best]
        assert (table.error[table.chosen + 1 :] > bar).all()
        assert table.error[table.chosen] <= bar
    else:
        assert table.chosen == best
    assert_identical(model, pb.prune(tree, path.ccp_alpha[table.chosen]))
    assert "chosen" in str(table)


def test_pruned_tree_of_one_leaf():
    rng = np.random.default_rng(65)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    tree = pb.fit_pruned_cart(X, y, task="regression", rule="1se", rng=0)
    assert tree.n_leaves == 1
    np.testing.assert_allclose(pb.predict(tree, X), y.mean())
    same = pb.fit_pruned_cart(pb.data.sort_columns(X), y, task="regression", rule="1se", rng=0)
    assert_identical(tree, same)


def test_collapsed_keeps_the_rest():
    rng = np.random.default_rng(66)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    tree = pb.fit_cart(X, y)
    same = collapsed(tree, np.zeros(tree.n_nodes, bool), {})
    assert_identical(tree, same)
    at = np.zeros(tree.n_nodes, bool)
    at[tree.children[0, 1]] = True
    half = collapsed(tree, at, {})
    rows = X[:, tree.feature[0]] <= tree.threshold[0]
    np.testing.assert_array_equal(pb.predict_proba(half, X)[rows], pb.predict_proba(tree, X)[rows])
    assert len(np.unique(pb.inspection.apply(half, X[~rows]))) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, X, y: pb.prune(t, -1.0), "ccp_alpha"),
        (lambda t, X, y: pb.prune(t, np.nan), "ccp_alpha"),
        (lambda t, X, y: pb.prune(t, "0"), "ccp_alpha"),
        (lambda t, X, y: pb.prune(t, 0, criterion="kearns_mansour"), "criterion"),
        (lambda t, X, y: pb.models.cost_complexity_pruning_path(t, X), "expected both X and y"),
        (
            lambda t, X, y: pb.models.cost_complexity_pruning_path(t, sample_weight=y),
            "sample_weight",
        ),
        (
            lambda t, X, y: pb.models.cost_complexity_pruning_path(t, X, y + 1),
            "(labels|classes) of the model",
        ),
        (lambda t, X, y: pb.models.cost_complexity_pruning_path(t, X, y[1:]), "y: "),
        (lambda t, X, y: pb.models.cost_complexity_pruning_path("tree"), "tree: "),
        (lambda t, X, y: pb.fit_pruned_cart(X, y, rule="max"), "rule"),
        (lambda t, X, y: pb.fit_pruned_cart(X, y, cv=1), "cv"),
        (lambda t, X, y: pb.fit_pruned_cart(X, y, cv=31), "cv"),
        (lambda t, X, y: pb.fit_pruned_cart(X, y, max_dept=3), "max_dept"),
        (lambda t, X, y: pb.fit_pruned_cart(pb.data.bin_columns(X), y), "BinnedColumns"),
    ],
)
def test_bad_input(call, message):
    rng = np.random.default_rng(67)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    with pytest.raises((ValueError, TypeError), match=message):
        call(pb.fit_cart(X, y), X, y)


@pytest.mark.parametrize("size", [1e-155, 1e-161, 1e-180, 1e-250])
def test_targets_whose_squares_are_rounded_to_0_are_refused(size):
    """Their impurities were 0, so that the root was best."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0) * size
    with pytest.raises(ValueError, match=r"y: expected numbers whose weighted squares.*rescale"):
        pb.fit_pruned_cart(X, y, task="regression", cv=4, rng=0)
    tree = pb.fit_pruned_cart(X, y * 2.0**600, task="regression", cv=4, rng=0)
    assert tree.n_leaves == 2


@pytest.mark.parametrize("size", [0.0, 1e-250, 1.0])
def test_equal_targets_of_any_size_are_a_root(size):
    X = np.arange(20.0).reshape(-1, 1)
    tree = pb.fit_pruned_cart(X, np.full(20, size), task="regression", cv=4, rng=0)
    assert tree.n_leaves == 1
    assert pb.predict(tree, X)[0] == size


@pytest.mark.parametrize("factor", [0.1, 0.3, 1e-6, 7.0, 1e6])
@pytest.mark.parametrize("seed", [6, 9])
def test_ties_of_errors_do_not_depend_on_the_unit_of_weights(seed, factor):
    """Of subtrees of equal error the smallest was another one by how sums were rounded."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(150, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] + 2 * rng.normal(size=150) > 5).astype(int)
    first, other = (
        pb.fit_pruned_cart(X, y, sample_weight=np.full(150, w), cv=5, rng=0) for w in (1, factor)
    )
    assert first.n_leaves == other.n_leaves
    np.testing.assert_array_equal(first.threshold, other.threshold)
