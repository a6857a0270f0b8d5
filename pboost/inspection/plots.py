"""Plots of training curves, budgets, decision regions and category splits with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.node_inputs.inputs import ColumnNames, Subsets
from pboost.data.read.check_xy import as_weights, check_has_rows
from pboost.data.read.convert import Features
from pboost.data.read.table import column_label, named_columns, positions
from pboost.inspection.cross_validation import row_errors, truth_for
from pboost.models.as_trees import as_tree_ensemble, tests_of
from pboost.models.base import Model, TwoClassModel, check_model, predict, staged_predict
from pboost.models.evaluate.match_input import count_rows, match_columns, reads_columns
from pboost.models.gradient_boosting import GradientBoostingModel
from pboost.models.graph import DecisionGraph
from pboost.models.probit_trees import ProbitTree
from pboost.models.shares import falls
from pboost.models.single_tree import Tree
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_ensemble import NO_SET
from pboost.values import Array, FloatArray, IntArray, TableLike, check_integer, install_hint, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or axes in a new figure that is not registered with pyplot."""
    if ax is not None:
        if not callable(getattr(ax, "scatter", None)):
            raise TypeError(f"ax: expected matplotlib's axes or None, got {shown(ax)}")
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        hint = install_hint("plot", "matplotlib")
        raise ImportError(f"plots need matplotlib: {hint}") from None
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def plot_budget_curve(model: Model, *, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated error for each budget of `fit_within_budget`.

    Parameters
    ----------
    model : EarlyExitModel, or another model
        A model fitted by `fit_within_budget`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The plot shows errors and standard errors against the mean number of comparisons per row.
        Save it with ``ax.figure.savefig``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If `model` is not a model.
    ValueError
        If the model was not fitted by `fit_within_budget`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = pb.fit_within_budget(X, X[:, 0] * X[:, 1] > 0, mean_comparisons=10, rng=0)
    >>> ax = pb.plot.budget_curve(model)
    >>> ax.get_xlabel()
    'comparisons per row'
    """
    check_model(model)
    curve = getattr(model, "curve", None)
    if curve is None:
        curve = getattr(model, "settings", {}).get("curve")
    if curve is None:
        raise ValueError("model: expected a model fitted by fit_within_budget")
    _, comparisons, error, standard_error = np.asarray(curve, dtype=np.float64).T
    return _error_bars(model, comparisons, error, standard_error, "comparisons per row", ax)


def _error_bars(
    model: Model,
    at: Array,
    error: FloatArray,
    standard_error: FloatArray,
    unit: str,
    ax: Axes | None,
) -> Axes:
    """Draw cross-validated errors with standard errors."""
    ax = axes_or_new(ax, 5, 4)
    ax.errorbar(at, error, yerr=standard_error, marker="o", capsize=3)
    ax.set(xlabel=unit, ylabel=f"cross-validated {_error_name(model)}", xscale="log")
    ax.set_ylim(bottom=0.0)
    return ax


def _error_name(model: Model) -> str:
    return "mean squared error" if model.classes is None else "error"


# Training curves and pruning tables


def plot_training_curve(
    model: Model,
    X: TableLike | None = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the training loss or certificate and the errors after each step with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, GradientBoostingModel or LinearModel
        A fitted model with a training record.
    X : array_like of shape (n, d), or data frame, optional
        Rows whose errors are drawn.
    y : array_like of shape (n,), optional
        Classes or targets of these rows.
    sample_weight : array_like of shape (n,), optional
        Weights of these rows.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The plot has a line for the certificate of a graph or the training loss of gradient
        boosting. Further lines show the validation error or loss, if there was a validation set,
        and the misclassification rate or mean squared error on X.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model has no training record.
    ValueError
        If only one of X and y is passed, or they are invalid.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=7)
    >>> ax = pb.plot.training_curve(model, X, y)
    >>> [line.get_label() for line in ax.lines]
    ['certificate', 'error']
    """
    check_model(model)
    if (X is None) != (y is None):
        raise ValueError("X, y: expected both or neither")
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight: expected None without X, got weights; pass X and y too")
    if isinstance(model, TwoClassModel):
        record = model.record
        lines = {"certificate": record.certificate}
        if record.validation is not None:
            lines["validation error"] = record.validation
        unit = model.counted_in[0]
    elif isinstance(model, GradientBoostingModel):
        lines = {"training loss": model.training_loss}
        if model.validation_loss is not None:
            lines["validation loss"] = model.validation_loss
        unit = "round"
    else:
        raise TypeError(
            f"model: expected a model with a training record, such as a DecisionGraph or a "
            f"GradientBoostingModel, got {shown(model)}"
        )
    errors = None if X is None else _errors(model, X, y, sample_weight)
    ax = axes_or_new(ax, 5, 4)
    drawn: dict[str, tuple[Array, Array]] = {
        name: (np.arange(len(line)), line) for name, line in lines.items()
    }
    if errors is not None:
        drawn[_error_name(model)] = errors
    for name, points in drawn.items():
        ax.plot(*points, label=name, gid=name.replace(" ", "-"))
    ax.set(xlabel=f"{unit}s")
    ax.set_ylim(bottom=min(0.0, *(float(np.min(line)) for line in lines.values())))
    ax.legend()
    return ax


def _errors(
    model: Model, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[IntArray, FloatArray]:
    """Return the number and the error of each step after which the model can predict."""
    n = count_rows(model, X)
    check_has_rows(n)
    assert y is not None
    weight = as_weights(sample_weight, n)
    truth = truth_for(model, y, n)
    errors = [
        float(np.average(row_errors(model, predicted, truth), weights=weight))
        for predicted in staged_predict(model, X)
    ]
    stages = model.record.stages if isinstance(model, TwoClassModel) else None
    at = np.arange(1, len(errors) + 1, dtype=np.int32) if stages is None else stages
    return at, np.array(errors)


def plot_pruning(model: Model, *, ax: Axes | None = None) -> Axes:
    """Draw the cross-validated errors of the subtrees of a pruned tree with matplotlib.

    Parameters
    ----------
    model : Tree
        A tree fitted by `fit_pruned_cart`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        The plot shows errors and standard errors against the number of leaves. A dashed line is one
        standard error above the smallest error: by the rule "1se" of [1]_, subtrees below this line
        are equally good. The selected subtree is marked.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is not a Tree.
    ValueError
        If the tree was not fitted by `fit_pruned_cart`.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), section 3.4.3.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> tree = pb.fit_pruned_cart(X, X[:, 0] + X[:, 1] > 0, rule="1se", rng=0)
    >>> pb.plot.pruning(tree).get_xlabel()
    'leaves'
    """
    check_model(model)
    if not isinstance(model, Tree):
        raise TypeError(f"model: expected a Tree fitted by fit_pruned_cart, got {shown(model)}")
    table = model.pruning
    if table is None:
        raise ValueError("model: expected a tree fitted by fit_pruned_cart, got another tree")
    ax = _error_bars(model, table.n_leaves, table.error, table.standard_error, "leaves", ax)
    best = int(np.argmin(table.error))
    within = float(table.error[best] + table.standard_error[best])
    ax.axhline(within, linestyle="--", color="gray", label="smallest error + standard error")
    chosen = table.n_leaves[table.chosen], table.error[table.chosen]
    ax.plot(*chosen, "o", markersize=12, fillstyle="none", color="C1", label="chosen")
    ax.legend()
    return ax


# Predictions over two features

#: Number of distinct colors.
COLOURS = 10
#: Margin around the range of the rows, as a share of the range.
MARGIN = 0.05


class Axis(NamedTuple):
    """The grid values of a feature along an axis, with names if the feature is categorical."""

    column: int
    at: FloatArray
    levels: list[str] | None


def plot_regions(
    model: Model,
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    features: Sequence[str | int] = (0, 1),
    resolution: int = 150,
    ax: Axes | None = None,
) -> Axes:
    """Draw the predictions of a model over two features with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, or another model
        A fitted model that uses features, not functions of a row.
    X : array_like of shape (n, d), or data frame
        Rows that determine the range of the axes and the values of the other features, which are
        fixed at their median or, for categorical features, at the most frequent category.
    y : array_like of shape (n,), optional
        Classes or targets. If passed, the rows are drawn as points of the matching color.
    features : pair of str or int
        Names or indices of the features on the horizontal and vertical axis.
    resolution : int
        Number of grid values along an axis with a numerical feature.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Regions are colored by predicted class, or by predicted value with a color bar.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError, TypeError
        If `features` are not two different features of the model, if a feature has no finite
        value in X, or if the model uses functions of a row.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=7)
    >>> pb.plot.regions(model, X, y, features=(0, 2)).get_ylabel()
    'x[2]'
    """
    check_model(model)
    check_integer("resolution", resolution, min_value=2)
    if not reads_columns(model):
        raise TypeError(f"model: expected a model that uses features, got {shown(model)}")
    rows = match_columns(model, X)
    check_has_rows(len(rows.values))
    names = ColumnNames(model.feature_names, model.n_features, rows.table)
    across, up = (_axis(rows, names, j, resolution) for j in _two(features, model))
    held = np.array([_held(rows, j) for j in range(rows.n_features)])
    grid = np.tile(held, (len(across.at) * len(up.at), 1))
    grid[:, across.column] = np.tile(across.at, len(up.at))
    grid[:, up.column] = np.repeat(up.at, len(across.at))
    asked = grid if rows.table is None else replace(rows, values=grid)
    predicted = predict(model, asked).reshape(len(up.at), len(across.at))
    truth = None if y is None else truth_for(model, y, len(rows.values))
    ax = axes_or_new(ax, 5, 4)
    if model.classes is None:
        _draw_numbers(ax, across, up, predicted, rows, truth)
    else:
        _draw_labels(ax, across, up, predicted, rows, truth, model.classes)
    for axis, of in ((ax.xaxis, across), (ax.yaxis, up)):
        axis.set_label_text(names[of.column])
        if of.levels is not None:
            axis.set_ticks(of.at, of.levels)
    return ax


def _two(features: Sequence[str | int], model: Model) -> list[int]:
    """Return the indices of two different features in the given order."""
    columns = named_columns("features", features)
    if len(columns) != 2:
        raise ValueError(f"features: expected two features, got {len(columns)}")
    known = model.feature_names, model.n_features
    positions("features", columns, *known)  # raises an error if both are the same
    return [positions("features", [column], *known)[0] for column in columns]


def _axis(rows: Features, names: ColumnNames, column: int, resolution: int) -> Axis:
    """Return the grid values of a feature. They cover its range or its categories."""
    values = _known(rows, column, names[column])
    levels = None if rows.table is None else rows.table.values_of(column)
    if levels is not None and rows.table is not None:
        is_ordered = rows.table.categories[column] is None
        n = len(levels) if is_ordered else int(rows.table.n_levels[column])
        called = [str(levels[k]) if is_ordered else names.level(column, k) for k in range(n)]
        return Axis(column, np.arange(n, dtype=np.float64), called)
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore"):
        if not np.isfinite(2 * (high - low)):
            raise ValueError(f"X: expected values of {names[column]} with a finite range")
    room = MARGIN * (high - low) if high > low else 0.5
    return Axis(column, np.linspace(low - room, high + room, resolution), None)


def _known(rows: Features, column: int, name: str = "") -> FloatArray:
    """Return the finite values of a feature."""
    values = np.asarray(rows.values[:, column], dtype=np.float64)
    known: FloatArray = values[np.isfinite(values)]
    if name and not len(known):
        raise ValueError(f"X: expected a finite value of {name} in at least one row, got none")
    return known


def _held(rows: Features, column: int) -> float:
    """Return the median or most frequent category of a feature, or NaN if it has no values."""
    values = _known(rows, column)
    if not len(values):
        return float("nan")
    if rows.table is not None and rows.table.values_of(column) is not None:
        levels, count = np.unique(values, return_counts=True)
        return float(levels[np.argmax(count)])
    # Return a value of the data, because the mean of two values may overflow or not be an integer.
    return float(np.quantile(values, 0.5, method="lower"))


def _draw_numbers(
    ax: Axes, across: Axis, up: Axis, predicted: FloatArray, rows: Features, truth: Array | None
) -> None:
    """Draw the predicted values, and draw rows in the colors of their targets."""
    both = predicted if truth is None else np.append(predicted, truth)
    low, high = float(both.min()), float(both.max())
    drawn = ax.pcolormesh(
        across.at, up.at, predicted, shading="nearest", gid="regions", vmin=low, vmax=high
    )
    if truth is not None:
        x, y = (rows.values[:, axis.column] for axis in (across, up))
        points = ax.scatter(x, y, 12, c=truth, edgecolors="white", linewidths=0.4, gid="rows")
        points.set_clim(low, high)
    ax.figure.colorbar(drawn, ax=ax, label="prediction")


def _draw_labels(
    ax: Axes,
    across: Axis,
    up: Axis,
    predicted: Array,
    rows: Features,
    truth: Array | None,
    classes: Array,
) -> None:
    """Draw the predicted classes, and draw rows in the colors of their classes."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = [f"C{k % COLOURS}" for k in range(len(classes))]
    ax.pcolormesh(
        across.at,
        up.at,
        np.searchsorted(classes, predicted),
        shading="nearest",
        alpha=0.35,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=len(classes) - 0.5,
        gid="regions",
        linewidth=0,
        rasterized=True,
    )
    if truth is not None:
        for k in np.flatnonzero(np.isin(classes, truth)).tolist():
            x, y = (rows.values[truth == classes[k], axis.column] for axis in (across, up))
            ax.scatter(x, y, 8, color=colours[k], gid=f"rows-{k}")
    if len(classes) <= COLOURS:
        called = zip(classes.tolist(), colours, strict=True)
        ax.legend(handles=[Patch(color=colour, label=str(label)) for label, colour in called])


# Splits on categorical features

#: Maximum number of categories whose names are shown along the axis.
MOST_LEVELS = 60


class SetTests(NamedTuple):
    """The nodes of a model that split on sets of categories.

    The arrays contain, for m nodes, the feature, the set as a mask (m, 256), the name and the gain.
    """

    column: IntArray
    member: NDArray[np.bool_]
    called: list[str]
    gain: FloatArray


def plot_category_splits(
    model: Model, feature: str | int | None = None, *, max_nodes: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the sets of categories at the splits of a model with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest or another model
        A fitted model with splits on sets of categories.
    feature : str or int, optional
        Name or index of a categorical feature. By default, the feature with the largest total gain.
    max_nodes : int
        Maximum number of nodes shown, in decreasing order of gain. The gain is the decrease of the
        certificate in a graph, and the weight of the training rows at the node in a tree.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        One row per node, with the largest gain at the top, and one column per category. Dark cells
        are categories in the set of the node; rows with these categories take exit 1.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is neither a graph nor an ensemble of trees.
    ValueError
        If no node splits on a set of categories, or none on this feature.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 4, (200, 1)).astype(float)
    >>> tree = pb.fit_cart(X, np.isin(X[:, 0], [1, 3]), categorical_features=[0])
    >>> [label.get_text() for label in pb.plot.category_splits(tree).get_xticklabels()]
    ['0.0', '1.0', '2.0', '3.0']
    """
    check_model(model)
    max_nodes = check_integer("max_nodes", max_nodes, min_value=1)
    if feature is not None:
        (feature,) = positions("feature", [feature], model.feature_names, model.n_features)
    tests = _set_tests(model)
    if not len(tests.column):
        raise ValueError("model: expected a model with splits on sets of categories, got none")
    if feature is None:
        feature = int(np.argmax(np.bincount(tests.column, tests.gain + np.finfo(float).tiny)))
    test_nodes = np.flatnonzero(tests.column == feature)
    if not len(test_nodes):
        name = column_label(model.feature_names, feature)
        raise ValueError(
            f"feature: expected a feature with splits on sets of categories, got {name}"
        )
    test_nodes = test_nodes[np.argsort(-tests.gain[test_nodes], kind="stable")][:max_nodes]
    names = ColumnNames(model.feature_names, model.n_features, model.table)
    n_levels = 0 if model.table is None else int(model.table.n_levels[feature])
    # Without a category table, show the categories that occur in the sets.
    n_levels = n_levels or int(np.flatnonzero(tests.member[test_nodes].any(axis=0)).max()) + 1
    ax = axes_or_new(
        ax, max(3.0, 1.5 + 0.25 * min(n_levels, MOST_LEVELS)), 1.5 + 0.25 * len(test_nodes)
    )
    ax.pcolormesh(
        np.arange(n_levels),
        np.arange(len(test_nodes)),
        tests.member[test_nodes, :n_levels].astype(float),
        shading="nearest",
        cmap="Blues",
        vmin=0,
        vmax=1.3,
        edgecolors="white",
        linewidth=1,
        gid="sets",
    )
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(test_nodes)), [tests.called[k] for k in test_nodes])
    if n_levels <= MOST_LEVELS:
        level_names = [names.level(feature, k) for k in range(n_levels)]
        ax.set_xticks(np.arange(n_levels), level_names, rotation=90)
    ax.set_xlabel(names[feature])
    return ax


def _set_tests(model: Model) -> SetTests:
    """Return the nodes of a model that split on sets of categories."""
    if isinstance(model, DecisionGraph):
        arrays = tests_of(model, np.arange(model.n_nodes, dtype=np.int32))
        feature, category_set, sets = arrays["feature"], arrays["category_set"], arrays["sets"]
        gain, root = falls(model.record.certificate), np.array([0, model.n_nodes])
    else:
        if isinstance(model, ProbitTree):
            model = model.partition
        elif isinstance(model, SubaggedProbitTrees):
            model = model.trees
        trees = as_tree_ensemble(model)
        feature, category_set, sets, root = (
            trees.feature,
            trees.category_set,
            trees.sets,
            trees.root,
        )
        gain = np.ones(trees.n_nodes) if trees.weight is None else trees.weight
    nodes = np.flatnonzero(category_set != NO_SET)
    tree = np.searchsorted(root, nodes, side="right") - 1
    called = [
        f"node {node}" if len(root) == 2 else f"tree {t}, node {node}"
        for t, node in zip(tree.tolist(), (nodes - root[tree]).tolist(), strict=True)
    ]
    tests = Subsets(model.n_features, feature[nodes], sets[category_set[nodes]])
    return SetTests(feature[nodes], tests.bits(), called, gain[nodes])
