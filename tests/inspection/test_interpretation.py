"""The slopes of models of ProbitBoost."""

import sys

import numpy as np
import pytest

import pboost as pb

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 3)) * [1.0, 100.0, 0.01]
SCORE = X[:, 0] * np.where(X[:, 1] > 0, 1, -1) + 0.5 * RNG.normal(size=300)


def test_averages_of_a_tree():
    weight = RNG.exponential(size=300)
    tree = pb.fit_probit_tree(X, SCORE > 0, max_depth=2, max_iter=20, sample_weight=weight)
    summary = pb.inspection.coefficients(tree)
    assert (summary.names, summary.classes) == (("x[0]", "x[1]", "x[2]"), (True,))
    leaf = pb.inspection.apply(tree, X)
    share = [weight[leaf == k].sum() / weight.sum() for k in range(tree.n_leaves)]
    np.testing.assert_allclose(summary.share, share)
    np.testing.assert_array_equal(summary.slopes, tree.coefficient[:, :, 1:])
    np.testing.assert_array_equal(summary.intercept, tree.coefficient[:, :, 0])
    np.testing.assert_allclose(summary.mean[0], share @ summary.slopes[:, 0])
    np.testing.assert_allclose(summary.size[0], share @ np.abs(summary.slopes[:, 0]))
    lines = str(summary).splitlines()
    assert [line.split()[0] for line in lines[2:]] == [summary.names[j] for j in summary.order()]
    assert summary.order() == np.argsort(-summary.size[0]).tolist()


def test_per_standard_deviation():
    tree = pb.fit_probit_tree(X, SCORE > 0, max_depth=1, max_iter=20)
    plain, summary = pb.inspection.coefficients(tree), pb.inspection.coefficients(tree, X)
    np.testing.assert_allclose(summary.slopes, plain.slopes * X.std(axis=0))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    same = pb.inspection.coefficients(
        pb.fit_probit_tree(standard, SCORE > 0, max_depth=1, max_iter=20)
    )
    np.testing.assert_allclose(summary.slopes, same.slopes, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="X: "):
        pb.inspection.coefficients(tree, X[:, :2])
    with pytest.raises(ValueError, match="X: "):
        pb.inspection.coefficients(tree, X[:0])


def test_other_models():
    line = pb.fit_probitboost(X, SCORE > 0, max_iter=9)
    summary = pb.inspection.coefficients(line)
    np.testing.assert_array_equal(summary.mean[0], line.slopes)
    assert summary.share.tolist() == [1.0]
    three = pb.fit_probit_tree(X, np.digitize(SCORE, [-0.5, 0.5]), max_depth=1, max_iter=5)
    summary = pb.inspection.coefficients(three)
    assert summary.classes == (0, 1, 2)
    assert summary.mean.shape == (3, 3)
    assert len(str(summary).splitlines()) == 5
    with pytest.raises(TypeError, match="model: a Tree has no linear functions"):
        pb.inspection.coefficients(pb.fit_cart(X, SCORE > 0))
    with pytest.raises(TypeError, match="model: a DecisionGraph has no linear functions"):
        pb.inspection.coefficients(pb.fit_boosted_tree(X, SCORE > 0, max_nodes=2))


def test_plot(monkeypatch):
    pytest.importorskip("matplotlib")
    tree = pb.fit_probit_tree(X, SCORE > 0, max_depth=2, max_iter=20)
    ax = pb.plot.coefficients(tree, X, max_features=2)
    summary = pb.inspection.coefficients(tree, X)
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        summary.names[j] for j in summary.order()[1::-1]
    ]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, summary.mean[0, summary.order()[1::-1]])
    assert len(ax.collections[0].get_offsets()) == 2 * tree.n_leaves
    assert ax.get_xlabel() == "slope per standard deviation"
    three = pb.fit_probit_tree(X, np.digitize(SCORE, [-0.5, 0.5]), max_depth=1, max_iter=5)
    assert len(pb.plot.coefficients(three, ax=ax).get_legend().get_texts()) == 4
    with pytest.raises(ValueError, match="max_features: expected"):
        pb.plot.coefficients(tree, max_features=0)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pboosting\[plot\]"):
        pb.plot.coefficients(tree)
