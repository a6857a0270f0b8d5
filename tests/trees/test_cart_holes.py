"""Trees on columns with holes and categories, against the twin."""

import numpy as np
import pytest
from reference.tables import fit_tree as fit_twin
from special_problems import asked_of, draw, edges_of, problem

from pboost.growth.tree import CartLimits
from pboost.trees.cart import fit_tree

KINDS = [(2, "gini"), (2, "entropy"), (2, "error"), (2, "kearns-mansour"), (0, "squared")]
KINDS += [(3, "gini"), (3, "entropy"), (5, "error"), (7, "gini")]


def limits(criterion, d, **more):
    options = {"depth": 2**31 - 1, "leaves": 2**20, "min_leaf": 1, "min_split": 2, **more}
    return CartLimits(criterion, **options, features=d, growth="depth-first")


def check(seed, n_classes, criterion, max_bins, *, smoothing=0.0, n_threads=1, **drawn):
    """A tree is that of the twin."""
    rng = np.random.default_rng(seed)
    X, y, weight, levels = draw(rng, n_classes, **drawn)
    options = {"min_leaf": int(rng.choice([1, 1, 2, 5])), "min_split": int(rng.choice([2, 2, 6]))}
    depth = int(rng.integers(1, 5)) if rng.random() < 0.5 else 2**31 - 1
    of = problem(X, y, weight, levels, n_classes, max_bins)
    if X.shape[1] == 0:
        return
    own = limits(criterion, X.shape[1], depth=depth, level_smoothing=smoothing, **options)
    tree = fit_tree(of, weight, own, {}, 0, n_threads)
    twin = fit_twin(
        X, y, criterion=criterion, n_classes=n_classes, sample_weight=weight, max_depth=depth,
        edges=edges_of(of.columns, levels), levels=levels, smoothing=smoothing, **options,
    )  # fmt: skip
    expected = [(n.feature, n.threshold, n.missing, n.subset, n.n_rows) for n in twin]
    assert asked_of(tree) == expected, seed
    np.testing.assert_allclose(tree.weight, [n.weight for n in twin], rtol=1e-9)
    np.testing.assert_allclose(tree.value, [n.value for n in twin], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("n_classes", "criterion"), KINDS)
@pytest.mark.parametrize("max_bins", [None, 5, 256])
def test_numbers(n_classes, criterion, max_bins):
    for case in range(20):
        check([91, case, n_classes, len(criterion)], n_classes, criterion, max_bins, categories=0)


@pytest.mark.parametrize(("n_classes", "criterion"), KINDS)
@pytest.mark.parametrize("max_bins", [None, 5])
@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_categories(n_classes, criterion, max_bins, smoothing):
    for case in range(15):
        seed = [92, case, n_classes, len(criterion)]
        check(seed, n_classes, criterion, max_bins, smoothing=smoothing)
