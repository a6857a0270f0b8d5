"""The picture of what a model predicts over two columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.check_xy import as_targets, check_has_rows, class_codes
from pboost.data.convert import Features
from pboost.data.node_inputs import ColumnNames
from pboost.data.table import named_columns, positions
from pboost.inspection.plots import axes_or_new
from pboost.models.base import Model, check_model, predict
from pboost.models.evaluate.new_rows import match_columns, reads_columns
from pboost.values import FloatArray, check_integer, shown

#: Colours that differ.
COLOURS = 10
#: By how much the picture is wider than the range of the rows, as a share of it.
MARGIN = 0.05


class Axis(NamedTuple):
    """A column along an axis: where rows are asked, and of categories how levels are written."""

    column: int
    at: FloatArray
    levels: list[str] | None


def plot_regions(
    model: Model,
    X: Any,
    y: ArrayLike | None = None,
    *,
    features: Any = (0, 1),
    resolution: int = 150,
    ax: Any = None,
) -> Any:
    """Draw what a model predicts over two columns, with matplotlib; others are held where they are.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model that reads columns.
    X : array_like of shape (n, d), or data frame
        Rows that say what part of the plane is drawn, and where the other columns are held: at the
        median of a column of numbers, at the most frequent level of a category.
    y : array_like of shape (n,), optional
        Labels, or targets of a regression: the rows are drawn, in their colours.
    features : pair of str or int
        Names or positions of the columns along the axes, the horizontal one first.
    resolution : int
        Number of places along an axis of numbers.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        Regions have the colours of the predicted labels; of a regression those of a scale.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError, TypeError
        If there are no two such columns, or one has no value in any row; if the model reads rows
        that are no columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> model = pb.fit_boosted_tree(X, y, nodes=7)
    >>> pb.plot_regions(model, X, y, features=(0, 2)).get_ylabel()
    'x[2]'
    """
    check_model(model)
    check_integer("resolution", resolution, least=2)
    if not reads_columns(model):
        raise TypeError(f"model: expected one that reads columns, got {shown(model)}")
    rows = match_columns(model, X)
    check_has_rows(len(rows.values))
    names = ColumnNames(model.feature_names, model.n_features, rows.table)
    across, up = (_axis(rows, names, j, resolution) for j in _two(features, model))
    held = np.array([_held(rows, j) for j in range(rows.n_features)])
    grid = np.tile(held, (len(across.at) * len(up.at), 1))
    grid[:, across.column] = np.tile(across.at, len(up.at))
    grid[:, up.column] = np.repeat(up.at, len(across.at))
    asked = grid if rows.table is None else replace(rows, values=grid)
    found = predict(model, asked).reshape(len(up.at), len(across.at))
    truth = None if y is None else _truth(model, y, len(rows.values))
    ax = axes_or_new(ax, 5, 4)
    if model.labels is None:
        _draw_numbers(ax, across, up, found, rows, truth)
    else:
        _draw_labels(ax, across, up, found, rows, truth, model.labels)
    for axis, of in ((ax.xaxis, across), (ax.yaxis, up)):
        axis.set_label_text(names[of.column])
        if of.levels is not None:
            axis.set_ticks(of.at, of.levels)
    return ax


def _two(features: Any, model: Model) -> list[int]:
    """Return the positions of two different columns, in the order given."""
    given = named_columns("features", features)
    if len(given) != 2:
        raise ValueError(f"features: expected two columns, got {len(given)}")
    known = model.feature_names, model.n_features
    positions("features", given, *known)  # refuses the same column twice
    return [positions("features", [column], *known)[0] for column in given]


def _axis(rows: Features, names: ColumnNames, column: int, resolution: int) -> Axis:
    """Return where a column is asked: over its range, or at its levels."""
    values = _known(rows, column, names[column])
    levels = None if rows.table is None else rows.table.values_of(column)
    if levels is not None and rows.table is not None:
        is_ordered = rows.table.levels[column] is None
        n = len(levels) if is_ordered else int(rows.table.n_levels[column])
        called = [str(levels[k]) if is_ordered else names.level(column, k) for k in range(n)]
        return Axis(column, np.arange(n, dtype=np.float64), called)
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore"):
        if not np.isfinite(2 * (high - low)):
            raise ValueError(f"X: expected values of {names[column]} whose range can be drawn")
    room = MARGIN * (high - low) if high > low else 0.5
    return Axis(column, np.linspace(low - room, high + room, resolution), None)


def _known(rows: Features, column: int, name: str = "") -> FloatArray:
    """Return the values of a column that are finite."""
    values = np.asarray(rows.values[:, column], dtype=np.float64)
    found: FloatArray = values[np.isfinite(values)]
    if name and not len(found):
        raise ValueError(f"X: expected a value of {name} in some row, to draw its range")
    return found


def _held(rows: Features, column: int) -> float:
    """Return where a column is held: at its median or most frequent level, NaN if it has none."""
    values = _known(rows, column)
    if not len(values):
        return float("nan")
    if rows.table is not None and rows.table.values_of(column) is not None:
        levels, count = np.unique(values, return_counts=True)
        return float(levels[np.argmax(count)])
    # A value that a row has, as of numbers that count something; half of two may overflow.
    return float(np.quantile(values, 0.5, method="lower"))


def _truth(model: Model, y: ArrayLike, n: int) -> NDArray[Any]:
    """Return the targets of the rows, or the numbers of their labels."""
    return as_targets(y, n) if model.labels is None else class_codes(model.labels, y, n)


def _draw_numbers(
    ax: Any, across: Axis, up: Axis, found: FloatArray, rows: Features, truth: Any
) -> None:
    """Draw predicted numbers, and rows in the colours of their targets."""
    both = found if truth is None else np.append(found, truth)
    limits = {"vmin": float(both.min()), "vmax": float(both.max())}
    drawn = ax.pcolormesh(across.at, up.at, found, shading="nearest", gid="regions", **limits)
    if truth is not None:
        x, y = (rows.values[:, axis.column] for axis in (across, up))
        ax.scatter(x, y, 12, c=truth, edgecolors="white", linewidths=0.4, gid="rows", **limits)
    ax.figure.colorbar(drawn, ax=ax, label="prediction")


def _draw_labels(
    ax: Any,
    across: Axis,
    up: Axis,
    found: NDArray[Any],
    rows: Features,
    truth: Any,
    labels: NDArray[Any],
) -> None:
    """Draw predicted labels, and rows in the colours of theirs."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = [f"C{k % COLOURS}" for k in range(len(labels))]
    ax.pcolormesh(
        across.at,
        up.at,
        np.searchsorted(labels, found),
        shading="nearest",
        alpha=0.35,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=len(labels) - 0.5,
        gid="regions",
        linewidth=0,
        rasterized=True,
    )
    if truth is not None:
        for k in np.unique(truth).tolist():
            x, y = (rows.values[truth == k, axis.column] for axis in (across, up))
            ax.scatter(x, y, 8, color=colours[k], gid=f"rows-{k}")
    if len(labels) <= COLOURS:
        called = zip(labels.tolist(), colours, strict=True)
        ax.legend(handles=[Patch(color=colour, label=str(label)) for label, colour in called])
