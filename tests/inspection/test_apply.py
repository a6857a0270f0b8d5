"""apply: the leaves of rows in trees, forests and sums of trees."""

from __future__ import annotations

import numpy as np
import pytest

import pboost as pb

X = np.random.default_rng(0).normal(size=(80, 3))
Z = X[:, 0] * X[:, 1]


@pytest.mark.parametrize(
    ("y", "options", "n_trees"),
    [
        (Z, {}, 5),
        (Z > 0, {}, 5),
        (np.array(["a", "b", "c"])[np.digitize(Z, [-0.3, 0.3])], {}, 15),
        (
            np.array(["a", "b", "c"])[np.digitize(Z, [-0.3, 0.3])],
            {"multi_strategy": "multi_output_tree"},
            5,
        ),
    ],
    ids=["squared_error", "log_loss", "softmax", "one tree"],
)
def test_sums_of_trees(y, options, n_trees):
    model = pb.fit_gradient_boosting(X, y, n_estimators=5, **options)
    leaves = pb.inspection.apply(model, X)
    assert leaves.shape == (80, n_trees)
    assert leaves.dtype == np.int32
    np.testing.assert_array_equal(leaves, pb.inspection.apply(model.trees, X))
    np.testing.assert_array_equal(leaves[:, 3], pb.inspection.apply(model.trees[3], X))
    # The values of these leaves add up to the decision values.
    value = np.stack(
        [tree.value[tree.leaf >= 0][leaves[:, t]] for t, tree in enumerate(model.trees)]
    )
    sums = value.sum(axis=0) if n_trees == 5 else value.reshape(5, 3, 80).sum(axis=0).T
    np.testing.assert_allclose(model.bias + sums, pb.decision_function(model, X), atol=1e-12)


def test_graphs_are_told_what_to_call():
    model = pb.fit_gradient_boosting(X, Z, n_estimators=2)
    with pytest.raises(TypeError, match=r"apply\(model, X\) returns the leaf of each row"):
        pb.inspection.reach(model, X)
