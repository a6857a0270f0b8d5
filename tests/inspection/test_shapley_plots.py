"""Plots of Shapley values: what is drawn, where, and what is refused."""

from __future__ import annotations

import exported
import numpy as np
import pytest
from exported import made

import pboost as pb

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(scope="module")
def shap():
    """Values of three classes; two features are categories, and values are missing."""
    return pb.shap_values(made("softmax"), exported.X)


def offsets(ax):
    parts = [np.asarray(part.get_offsets()) for part in ax.collections]
    return np.concatenate([part for part in parts if len(part)])


def labels(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_summary_has_a_point_for_each_value(shap):
    ax = pb.plot.shap_summary(shap, label="elm", max_features=2)
    values = shap.values[..., 1]
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:2][::-1]
    assert labels(ax) == [f"x[{j}]" for j in order]
    points = offsets(ax)
    for place, j in enumerate(order):
        drawn = points[np.abs(points[:, 1] - place) <= 0.4, 0]
        np.testing.assert_array_equal(np.sort(drawn), np.sort(values[:, j]))
        height = points[np.abs(points[:, 1] - place) <= 0.4, 1]
        np.testing.assert_allclose(height.mean(), place, atol=1e-12)
    missing = sum(np.isnan(exported.X[:, j]).sum() for j in order)
    assert sum(len(part.get_offsets()) for part in ax.collections[::2]) == missing
    shade = ax.collections[-1].get_array()
    assert (shade.min(), shade.max()) == (0.0, 1.0)


def test_bars_are_mean_absolute_values(shap):
    ax = pb.plot.shap_bar(shap, label="ash")
    size = np.sort(np.abs(shap.values[..., 0]).mean(axis=0))
    np.testing.assert_array_equal([bar.get_width() for bar in ax.patches], size)


@pytest.mark.parametrize("max_features", [1, 4])
def test_waterfall_leads_from_the_base_value_to_the_prediction(shap, max_features):
    ax = pb.plot.shap_waterfall(shap, 3, label="oak", max_features=max_features)
    base, values = shap.base_values[2], shap.values[3, :, 2]
    first, last = ax.patches[0], ax.patches[-1]
    np.testing.assert_allclose(first.get_x(), base)
    total = pb.decision_function(made("softmax"), exported.X[3:4])[0, 2]
    np.testing.assert_allclose(last.get_x() + last.get_width(), total)
    np.testing.assert_allclose(sum(bar.get_width() for bar in ax.patches), values.sum())
    for below, bar in zip(ax.patches, ax.patches[1:], strict=False):
        np.testing.assert_allclose(below.get_x() + below.get_width(), bar.get_x())
    name = f"x[{np.abs(values).argmax()}]"
    assert labels(ax)[-1].startswith(name)
    assert (labels(ax)[0] == "3 other features") == (max_features == 1)


def test_dependence_has_a_point_for_each_known_value(shap):
    known = ~np.isnan(exported.X[:, 0])
    expected = np.column_stack([exported.X[known, 0], shap.values[known, 0, 1]])
    ax = pb.plot.shap_dependence(shap, "x[0]", label="elm")
    np.testing.assert_array_equal(offsets(ax), expected)
    ax = pb.plot.shap_dependence(shap, 0, color_feature=3, label="elm")
    rows = {tuple(row) for row in offsets(ax).tolist()}
    assert rows == {tuple(row) for row in expected.tolist()}
    has_color = known & ~np.isnan(exported.X[:, 3])
    assert len(ax.collections[1].get_array()) == has_color.sum()


def test_arguments_that_are_refused(shap):
    single = pb.shap_values(made("cart, numbers"), exported.X[:9])
    with pytest.raises(ValueError, match=r"label: expected one of \['ash', 'elm', 'oak'\], got"):
        pb.plot.shap_bar(shap)
    with pytest.raises(ValueError, match="label: expected None"):
        pb.plot.shap_summary(single, label="ash")
    with pytest.raises(ValueError, match="row: expected an integer"):
        pb.plot.shap_waterfall(single, 9)
    with pytest.raises(ValueError, match="feature: expected the name or position"):
        pb.plot.shap_dependence(single, "age")
    with pytest.raises(TypeError, match="shap: expected the result of shap_values"):
        pb.plot.shap_summary(np.ones((3, 2)))
