"""Plots of Shapley values with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pboost.data.node_inputs.inputs import ColumnNames
from pboost.inspection.plots import axes_or_new
from pboost.inspection.shapley_values import ShapValues
from pboost.values import FloatArray, check_integer, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

#: Number of bins of Shapley values in which points of a beeswarm are stacked.
N_BINS = 100
#: Colors of positive and negative Shapley values, and of missing feature values.
POSITIVE, NEGATIVE, MISSING = "C3", "C0", "0.6"


def plot_shap_summary(
    shap: ShapValues, *, label: object = None, max_features: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the Shapley values of all rows as one point per row and feature.

    Parameters
    ----------
    shap : ShapValues
        The result of `shap_values`.
    label : object, optional
        The class whose values are drawn. It is required if there is a value for each class.
    max_features : int
        Number of features shown: the features with the largest mean absolute Shapley value.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The most important feature is at the top. The color is the rank of the feature value, from
        low (blue) to high (yellow); missing values are gray.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `label` is not one of the classes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 2.0, 5.0, 7.0]
    >>> shap = pb.shap_values(pb.fit_cart(X, y, task="regression"), X)
    >>> ax = pb.plot.shap_summary(shap)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['x[1]', 'x[0]']
    """
    values, _ = values_of_class(shap, label)
    order = most_important(values, max_features)
    ax = axes_or_new(ax, 6.0, 1.2 + 0.35 * len(order))
    for place, feature in enumerate(order.tolist()):
        height = place + stacked(values[:, feature])
        draw_points(ax, values[:, feature], height, shap.data[:, feature], 8)
    ax.axvline(0.0, color="gray", linewidth=0.8)
    ax.set_yticks(np.arange(len(order)), [shap.feature_names[j] for j in order.tolist()])
    ax.set_xlabel(axis_title(shap, label))
    return ax


def plot_shap_bar(
    shap: ShapValues, *, label: object = None, max_features: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the mean absolute Shapley value of each feature as bars.

    Parameters
    ----------
    shap : ShapValues
        The result of `shap_values`.
    label : object, optional
        The class whose values are drawn. It is required if there is a value for each class.
    max_features : int
        Number of features shown: the features with the largest mean absolute Shapley value.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The most important feature is at the top.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `label` is not one of the classes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 2.0, 5.0, 7.0]
    >>> shap = pb.shap_values(pb.fit_cart(X, y, task="regression"), X)
    >>> [round(float(bar.get_width()), 6) for bar in pb.plot.shap_bar(shap).patches]
    [1.0, 2.5]
    """
    values, _ = values_of_class(shap, label)
    order = most_important(values, max_features)
    ax = axes_or_new(ax, 6.0, 1.2 + 0.3 * len(order))
    ax.barh(np.arange(len(order)), np.abs(values).mean(axis=0)[order], color=NEGATIVE)
    ax.set_yticks(np.arange(len(order)), [shap.feature_names[j] for j in order.tolist()])
    ax.set_xlabel(f"mean absolute {axis_title(shap, label)}")
    return ax


def plot_shap_waterfall(
    shap: ShapValues,
    row: int = 0,
    *,
    label: object = None,
    max_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the features of one row lead from the base value to its prediction.

    Parameters
    ----------
    shap : ShapValues
        The result of `shap_values`.
    row : int
        Index of the row.
    label : object, optional
        The class whose values are drawn. It is required if there is a value for each class.
    max_features : int
        Number of features shown: the features with the largest absolute Shapley value. The sum of
        the other features is one bar.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The bars start at the base value at the bottom. The top bar has the largest absolute value
        and ends at the prediction.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `row` is not the index of a row, or `label` is not one of the classes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 2.0, 5.0, 7.0]
    >>> shap = pb.shap_values(pb.fit_cart(X, y, task="regression"), X)
    >>> ax = pb.plot.shap_waterfall(shap, 2)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['x[1] = 0', 'x[0] = 1']
    """
    values, base = values_of_class(shap, label)
    row = check_integer("row", row, min_value=0, max_value=len(values) - 1)
    order = most_important(values[row : row + 1], max_features)
    steps = values[row, order]
    names = [value_text(shap, row, j) for j in order.tolist()]
    rest = np.delete(values[row], order)
    if rest.any():
        steps = np.insert(steps, 0, rest.sum())
        names.insert(0, f"{np.count_nonzero(rest)} other features")
    ends = base + np.cumsum(steps)
    ax = axes_or_new(ax, 6.0, 1.2 + 0.35 * len(steps))
    color = np.where(steps < 0, NEGATIVE, POSITIVE).tolist()
    bars = ax.barh(np.arange(len(steps)), steps, left=ends - steps, color=color)
    ax.bar_label(bars, [f"{step:+.3g}" for step in steps.tolist()], label_type="center")
    for value in (base, base + values[row].sum()):
        ax.axvline(value, color="gray", linewidth=0.8, linestyle=":")
    ax.set_yticks(np.arange(len(steps)), names)
    ax.set_xlabel(shap.explained if label is None else f"{shap.explained} of {label!r}")
    return ax


def plot_shap_dependence(
    shap: ShapValues,
    feature: int | str,
    *,
    color_feature: int | str | None = None,
    label: object = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the Shapley value of a feature against its value, as one point per row.

    Parameters
    ----------
    shap : ShapValues
        The result of `shap_values`.
    feature : int or str
        The feature, by its position or name.
    color_feature : int or str, optional
        A feature whose ranks are shown as colors, from low (blue) to high (yellow).
    label : object, optional
        The class whose values are drawn. It is required if there is a value for each class.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Rows without a value of `feature` are not shown. Categories are shown as their codes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If there is no such feature, or `label` is not one of the classes.

    Examples
    --------
    >>> import pboost as pb
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0.0, 2.0, 5.0, 7.0]
    >>> shap = pb.shap_values(pb.fit_cart(X, y, task="regression"), X)
    >>> ax = pb.plot.shap_dependence(shap, 0)
    >>> ax.collections[0].get_offsets().data.round(6).tolist()
    [[0.0, -2.5], [0.0, -2.5], [1.0, 2.5], [1.0, 2.5]]
    """
    values, _ = values_of_class(shap, label)
    j = column_of(shap, "feature", feature)
    ax = axes_or_new(ax, 5.0, 4.0)
    known = ~np.isnan(shap.data[:, j])
    points = shap.data[known, j], values[known, j]
    if color_feature is None:
        ax.scatter(points[0], points[1], s=12)
    else:
        other = column_of(shap, "color_feature", color_feature)
        drawn = draw_points(ax, *points, shap.data[known, other], 12)
        ax.figure.colorbar(drawn, ax=ax, label=f"rank of {shap.feature_names[other]}")
    ax.set(xlabel=shap.feature_names[j], ylabel=axis_title(shap, label))
    return ax


def values_of_class(shap: ShapValues, label: object) -> tuple[FloatArray, float]:
    """Return the Shapley values (n, d) of a class, and its base value."""
    if not isinstance(shap, ShapValues):
        raise TypeError(f"shap: expected the result of shap_values, got {shown(shap)}")
    if shap.values.ndim == 2:
        if label is not None:
            raise ValueError(f"label: expected None without values per class, got {shown(label)}")
        return shap.values, float(shap.base_values)
    classes = list(shap.classes)
    if label not in classes:
        raise ValueError(f"label: expected one of {classes}, got {shown(label)}")
    place = classes.index(label)
    return shap.values[..., place], float(np.asarray(shap.base_values)[place])


def draw_points(
    ax: Axes, x: FloatArray, y: FloatArray, data: FloatArray, size: float
) -> PathCollection:
    """Draw points whose color is the rank of `data`, or gray if it is missing."""
    known = ~np.isnan(data)
    ax.scatter(x[~known], y[~known], s=size, color=MISSING)
    return ax.scatter(x[known], y[known], s=size, c=ranks(data[known]), vmin=0.0, vmax=1.0)


def most_important(values: FloatArray, max_features: int) -> NDArray[np.intp]:
    """Return the features with the largest mean absolute values, in increasing order."""
    n_shown = check_integer("max_features", max_features, min_value=1)
    size = np.abs(values).mean(axis=0)
    return np.argsort(-size, kind="stable")[:n_shown][::-1]


def stacked(values: FloatArray) -> FloatArray:
    """Return vertical offsets in [-0.4, 0.4], so that points with similar values are stacked."""
    low, span = values.min(), np.ptp(values)
    bins = np.floor((values - low) / (span or 1.0) * (N_BINS - 1e-9)).astype(np.intp)
    order = np.argsort(bins, kind="stable")
    count = np.bincount(bins)
    level = np.empty(len(values))
    level[order] = np.arange(len(values)) - np.repeat(np.cumsum(count) - count, count)
    centered = level - (count[bins] - 1) / 2
    offsets: FloatArray = 0.8 * centered / max(count.max(), 2)
    return offsets


def ranks(values: FloatArray) -> FloatArray:
    """Return the ranks of values in [0, 1]; equal values have equal ranks."""
    distinct, place = np.unique(values, return_inverse=True)
    return np.full(len(values), 0.5) if len(distinct) < 2 else place / (len(distinct) - 1)


def axis_title(shap: ShapValues, label: object) -> str:
    """Return the title of an axis with Shapley values."""
    return "Shapley value" if label is None else f"Shapley value for {label!r}"


def value_text(shap: ShapValues, row: int, feature: int) -> str:
    """Return the name and value of a feature of a row."""
    names, value = shap.feature_names, float(shap.data[row, feature])
    if isinstance(names, ColumnNames):
        return names.value_text(feature, value)
    return f"{names[feature]} = {value:.6g}"


def column_of(shap: ShapValues, name: str, feature: int | str) -> int:
    """Return the position of a feature."""
    n_features = shap.data.shape[1]
    if not isinstance(feature, str):
        return check_integer(name, feature, min_value=0, max_value=n_features - 1)
    names = list(shap.feature_names)
    if feature not in names:
        raise ValueError(f"{name}: expected the name or position of a feature, got {feature!r}")
    return names.index(feature)
