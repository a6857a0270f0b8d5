"""Plots of training curves, budgets, decision regions and sets of categories, by matplotlib."""

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
from pboost.models.base import Model, TwoClassModel, check_model, predict, staged_predict
from pboost.models.evaluate.new_rows import count_rows, match_columns, reads_columns
from pboost.models.graph import DecisionGraph
from pboost.models.probit_trees import ProbitTree
from pboost.models.shares import falls
from pboost.models.subagged import SubaggedProbitTrees
from pboost.models.tree_record import NO_SET
from pboost.models.tree_sum import GradientBoostingModel
from pboost.models.trees import Tree
from pboost.models.trees_of import as_tree_ensemble, tests_of
from pboost.values import Array, FloatArray, IntArray, TableLike, check_integer, install_hint, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes given; if None, some in a new figure, which pyplot does not know of."""
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
    """Draw the cross-validated error of what `fit_within_budget` would choose, by budget.

    Parameters
    ----------
    model : EarlyExitModel, or another model
        From `fit_within_budget`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        Errors by the mean comparisons that were made, with their standard errors. Its ``figure``
        can be saved with ``savefig``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If this is no model.
    ValueError
        If the model was not made by `fit_within_budget`.

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
        raise ValueError(
            "model: expected one made by fit_within_budget, which has a curve of budgets"
        )
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
    """Draw cross-validated errors with their standard errors."""
    ax = axes_or_new(ax, 5, 4)
    ax.errorbar(at, error, yerr=standard_error, marker="o", capsize=3)
    ax.set(xlabel=unit, ylabel=f"cross-validated {_error_name(model)}", xscale="log")
    ax.set_ylim(bottom=0.0)
    return ax


def _error_name(model: Model) -> str:
    return "mean squared error" if model.classes is None else "error"


# Training: certificate and errors by step, pruning tables


def plot_training_curve(
    model: Model,
    X: TableLike | None = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the certificate, or the training loss, and errors after each step, with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, GradientBoostingModel or LinearModel
        A fitted model with a record of its steps.
    X : array_like of shape (n, d), or data frame, optional
        Rows whose errors are drawn.
    y : array_like of shape (n,), optional
        Their labels, or targets of a regression.
    sample_weight : array_like of shape (n,), optional
        Their weights.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each: of graphs the certificate, of sums the training loss; what was found on the
        validation rows, where there were some; the share of the rows of X that are misclassified,
        or their mean squared error.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model has no record of steps.
    ValueError
        If one of X and y is given without the other, or they are not as described.

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
        raise ValueError("sample_weight: expected None without X, whose rows it is of")
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
            f"model: expected one with a record of its steps, as a DecisionGraph or a "
            f"GradientBoostingModel has, got {shown(model)}"
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
    """Return the numbers of steps after which the model was what it is now, and errors there."""
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
    """Draw the cross-validated errors of the subtrees of a pruned tree, with matplotlib.

    Parameters
    ----------
    model : Tree
        From `fit_pruned_cart`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        Errors by number of leaves, with their standard errors; a line one standard error above the
        least error, below which lie those that the rule "1se" of [1]_ takes for as good, and the
        subtree that was chosen.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If this is no tree.
    ValueError
        If it was not made by `fit_pruned_cart`.

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
        raise TypeError(f"model: expected a Tree of fit_pruned_cart, got {shown(model)}")
    table = model.pruning
    if table is None:
        raise ValueError("model: expected one made by fit_pruned_cart, which has a pruning table")
    ax = _error_bars(model, table.n_leaves, table.error, table.standard_error, "leaves", ax)
    best = int(np.argmin(table.error))
    within = float(table.error[best] + table.standard_error[best])
    ax.axhline(within, linestyle="--", color="gray", label="least error + standard error")
    chosen = table.n_leaves[table.chosen], table.error[table.chosen]
    ax.plot(*chosen, "o", markersize=12, fillstyle="none", color="C1", label="chosen")
    ax.legend()
    return ax


# Predictions over two columns

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
    X: TableLike,
    y: ArrayLike | None = None,
    *,
    features: Sequence[str | int] = (0, 1),
    resolution: int = 150,
    ax: Axes | None = None,
) -> Axes:
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
    >>> model = pb.fit_boosted_tree(X, y, max_nodes=7)
    >>> pb.plot.regions(model, X, y, features=(0, 2)).get_ylabel()
    'x[2]'
    """
    check_model(model)
    check_integer("resolution", resolution, min_value=2)
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
    """Return the positions of two different columns, in the order given."""
    columns = named_columns("features", features)
    if len(columns) != 2:
        raise ValueError(f"features: expected two columns, got {len(columns)}")
    known = model.feature_names, model.n_features
    positions("features", columns, *known)  # refuses the same column twice
    return [positions("features", [column], *known)[0] for column in columns]


def _axis(rows: Features, names: ColumnNames, column: int, resolution: int) -> Axis:
    """Return where a column is asked: over its range, or at its levels."""
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
            raise ValueError(f"X: expected values of {names[column]} whose range can be drawn")
    room = MARGIN * (high - low) if high > low else 0.5
    return Axis(column, np.linspace(low - room, high + room, resolution), None)


def _known(rows: Features, column: int, name: str = "") -> FloatArray:
    """Return the values of a column that are finite."""
    values = np.asarray(rows.values[:, column], dtype=np.float64)
    known: FloatArray = values[np.isfinite(values)]
    if name and not len(known):
        raise ValueError(f"X: expected a value of {name} in some row, to draw its range")
    return known


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


def _draw_numbers(
    ax: Axes, across: Axis, up: Axis, predicted: FloatArray, rows: Features, truth: Array | None
) -> None:
    """Draw predicted numbers, and rows in the colours of their targets."""
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
    """Draw predicted labels, and rows in the colours of theirs."""
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


# Categories: the levels that nodes send to either side

#: Levels of a column, of which more have no names along the axis.
MOST_LEVELS = 60


class SetTests(NamedTuple):
    """The nodes that ask for sets of levels.

    Columns (m,), whether each level is in the set (m, 256), what they are called, and how much they
    matter (m,).
    """

    column: IntArray
    member: NDArray[np.bool_]
    called: list[str]
    gain: FloatArray


def plot_category_splits(
    model: Model, feature: str | int | None = None, *, max_nodes: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw which levels of a category the nodes of a model send to which side, with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, Tree, RandomForest, GradientBoostingModel, ProbitTree or
    SubaggedProbitTrees
        A fitted model whose nodes ask whether levels are in sets.
    feature : str or int, optional
        Name or position of a column of categories. Default: the one whose nodes matter most.
    max_nodes : int
        Number of nodes shown, those that matter most: in a graph by what each has lowered the
        certificate, in trees by the weight of the training rows that come there.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure, which pyplot does not know of.

    Returns
    -------
    matplotlib.axes.Axes
        A row for each node, the one that matters most on top, and a column for each level; dark
        where the level is in the node's set, so that rows with it take exit 1.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model is no graph and no sum of trees.
    ValueError
        If no node asks for a set of levels, or none for one of this column.

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
        raise ValueError("model: expected one whose nodes ask for sets of levels; no node does")
    if feature is None:
        feature = int(np.argmax(np.bincount(tests.column, tests.gain + np.finfo(float).tiny)))
    test_nodes = np.flatnonzero(tests.column == feature)
    if not len(test_nodes):
        name = column_label(model.feature_names, feature)
        raise ValueError(f"feature: expected one that nodes ask for sets of levels, got {name}")
    test_nodes = test_nodes[np.argsort(-tests.gain[test_nodes], kind="stable")][:max_nodes]
    names = ColumnNames(model.feature_names, model.n_features, model.table)
    n_levels = 0 if model.table is None else int(model.table.n_levels[feature])
    # Of models without a table of levels those that are in sets.
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
    """Return the nodes of a model that ask for sets of levels."""
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
