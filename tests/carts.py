"""What the tests of classification and regression trees share."""

import numpy as np

import pboost as pb


def assert_equals_twin(tree, nodes, case=""):
    case = f"case {case}"
    np.testing.assert_array_equal(tree.feature, [n.feature for n in nodes], case)
    np.testing.assert_array_equal(tree.threshold, [n.threshold for n in nodes], case)
    np.testing.assert_array_equal(tree.children, [(n.first, n.second) for n in nodes], case)
    np.testing.assert_array_equal(tree.n_rows, [n.n_rows for n in nodes], case)
    for name in ("value", "impurity", "weight"):
        expected = np.array([getattr(n, name) for n in nodes])
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(
            getattr(tree, name), expected, rtol=1e-9, atol=1e-11 * scale, err_msg=case
        )


def targets(rng, X, n_classes):
    n = len(X)
    score = np.argsort(np.argsort(X[:, 0])) / n + rng.choice([0.1, 0.5, 5]) * rng.random(n)
    if n_classes:
        y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
        y[:n_classes] = np.arange(n_classes)
        return y
    return np.round(score, 1) if rng.random() < 0.5 else 100 + score


def assert_identical(one, other):
    for name in pb.models.single_tree.TREE_COLUMNS:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
