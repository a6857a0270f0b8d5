"""Coefficients of linear models and of trees with linear models in the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pboost.data.node_inputs.imputation import column_spread
from pboost.data.node_inputs.inputs import in_sums, names_in_sums
from pboost.data.read.check_xy import check_has_rows
from pboost.inspection.plots import axes_or_new
from pboost.models.base import HasEquations, Model, check_model
from pboost.models.evaluate.match_input import finite_columns
from pboost.values import FloatArray, IntArray, TableLike, check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Linear functions of a model, returned by `coefficients`. ``print`` shows their means.

    Attributes
    ----------
    names : tuple of str
        Feature names, ``x[j]`` if features have no names.
    classes : tuple
        The class of each function; for binary models, only the second class.
    intercept : ndarray of float64, shape (n_leaves, K)
        Intercepts; K is the number of `classes`, or 1 if each class has its own trees.
    slopes : ndarray of float64, shape (n_leaves, K, d)
        Coefficients; 0 if a feature is not used.
    share : ndarray of float64, shape (n_leaves,)
        Share of each leaf in the weight of the training rows. Shares sum to 1, or to 1 for each
        class if each class has its own trees.
    leaf_class : ndarray of int32, shape (n_leaves,), or None
        Index in `classes` of the class of each leaf, if each class has its own trees; else None.
    mean : ndarray of float64, shape (n_classes, d)
        Mean of the coefficients, weighted by `share`.
    size : ndarray of float64, shape (n_classes, d)
        Mean of the absolute coefficients, weighted by `share`.
    """

    names: tuple[str, ...]
    classes: tuple[object, ...]
    intercept: FloatArray
    slopes: FloatArray
    share: FloatArray
    leaf_class: IntArray | None
    mean: FloatArray
    size: FloatArray

    def of_class(self, place: int) -> tuple[FloatArray, FloatArray]:
        """Return the coefficients (leaves, d) of a class and the shares of the leaves."""
        return _of_class(self.slopes, self.share, self.leaf_class, place)

    def order(self) -> list[int]:
        """Return the features in decreasing order of `size`, summed over the classes."""
        order: list[int] = np.argsort(-self.size.sum(axis=0), kind="stable").tolist()
        return order

    def __str__(self) -> str:
        width = max(7, *map(len, self.names))
        titles = [f"{label!r}" for label in self.classes]
        lines = [" " * width + "".join(f"  {title:>23}" for title in titles)]
        lines.append(f"{'feature':<{width}}" + f"  {'mean':>11} {'size':>11}" * len(titles))
        for j in self.order():
            cells = "".join(
                f"  {self.mean[k, j]:>11.4g} {self.size[k, j]:>11.4g}" for k in range(len(titles))
            )
            lines.append(f"{self.names[j]:<{width}}{cells}")
        return "\n".join(lines)


def coefficients(model: Model, X: TableLike | None = None) -> Coefficients:
    """Return the coefficients of a linear model or of the linear models in the leaves of trees.

    Parameters
    ----------
    model : ProbitModel, ProbitTree, SubaggedProbitTrees or LinearModel
        A fitted model. With several trees, all leaves are returned, weighted by their shares of the
        training weight. If each class has its own trees, means are over the leaves of that class.
    X : array_like of shape (n, d), or data frame, optional
        If passed, coefficients are multiplied by the standard deviations of the columns of X, so
        that different features can be compared. By default, coefficients refer to the units of the
        features.

    Returns
    -------
    Coefficients
        The functions of all leaves, and for each feature the mean of the coefficients and of their
        absolute values over the training rows. Leaves with a single class have coefficients 0.

    Raises
    ------
    TypeError
        If the model has no linear functions.
    ValueError
        If X has other features than the training data.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> tree = pb.fit_probit_tree(X, X[:, 1] > 0.1 * X[:, 0] ** 2, max_depth=1, max_iter=10)
    >>> print(pb.inspection.coefficients(tree))
                                True
    feature         mean        size
    x[1]           8.904       8.904
    x[0]        -0.03195      0.3084
    """
    check_model(model)
    if not isinstance(model, HasEquations):
        raise TypeError(f"model: a {type(model).__name__} {model.no_functions}")
    coefficient, share, leaf_class = model.equations()
    slopes = coefficient[:, :, 1:]
    if X is not None:
        features = finite_columns(model, X)
        check_has_rows(len(features.values))
        values = in_sums(features.values, model.table)
        spread = column_spread(values, np.ones(len(values)))
        with np.errstate(over="ignore"):
            slopes = slopes * spread
        if not np.isfinite(slopes).all():
            raise ValueError("X: expected features whose spread times coefficient is finite")
    assert model.classes is not None
    classes = tuple(model.classes.tolist())
    classes = classes[1:] if len(classes) == 2 else classes
    each = [_of_class(slopes, share, leaf_class, k) for k in range(len(classes))]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.array([by @ of_class for of_class, by in each])
        size = np.array([by @ np.abs(of_class) for of_class, by in each])
    if not np.isfinite(size).all():
        raise ValueError("model: expected coefficients with a finite mean")
    names = tuple(names_in_sums(model.feature_names, model.n_features, model.table))
    return Coefficients(names, classes, coefficient[:, :, 0], slopes, share, leaf_class, mean, size)


def _of_class(
    slopes: FloatArray, share: FloatArray, leaf_class: IntArray | None, place: int
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients (leaves, d) of a class and the shares of the leaves."""
    if leaf_class is None:
        return slopes[:, place], share
    in_class = leaf_class == place
    return slopes[in_class, 0], share[in_class]


def plot_coefficients(
    model: Model, X: TableLike | None = None, *, max_features: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw the mean coefficients of a model as bars and the coefficients of the leaves as discs.

    Parameters
    ----------
    model : ProbitModel, ProbitTree, SubaggedProbitTrees or LinearModel
        A fitted model.
    X : array_like of shape (n, d), or data frame, optional
        As in `coefficients`: if passed, coefficients are per standard deviation.
    max_features : int
        Number of features shown: the features with the largest mean absolute coefficient.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on. By default, a new figure is created that is not registered with pyplot.

    Returns
    -------
    matplotlib.axes.Axes
        Save the plot with ``ax.figure.savefig``. The area of a disc is the share of its leaf.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> import pboost as pb
    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0], [5.0, 1.0]]
    >>> line = pb.fit_probitboost(X, [0, 1, 0, 0, 1, 1], max_iter=3)
    >>> pb.plot.coefficients(line).get_xlabel()
    'slope'
    """
    summary = coefficients(model, X)
    shown = summary.order()[: check_integer("max_features", max_features, min_value=1)][::-1]
    ax = axes_or_new(ax, 6.0, 1.2 + 0.3 * len(shown))
    at = np.arange(len(shown), dtype=np.float64)
    height = 0.8 / len(summary.classes)
    for k, label in enumerate(summary.classes):
        place = at + 0.4 - (k + 0.5) * height
        ax.barh(
            place, summary.mean[k, shown], height, alpha=0.5, color=f"C{k % 10}", label=f"{label!r}"
        )
        slopes, share = summary.of_class(k)
        slopes = slopes[:, shown]
        area = np.repeat(400 * height * share, len(shown))
        ax.scatter(slopes.ravel(), np.tile(place, len(slopes)), area, color=f"C{k % 10}", alpha=0.6)
    ax.axvline(0.0, color="gray", linewidth=0.8)
    ax.set_yticks(at, [summary.names[j] for j in shown])
    ax.set_xlabel("slope" if X is None else "slope per standard deviation")
    if len(summary.classes) > 1:
        ax.legend()
    return ax
