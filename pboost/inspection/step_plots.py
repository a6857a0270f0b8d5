"""Pictures of how models became what they are: certificate and errors by step, pruning tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost.data.check_xy import as_targets, as_weights, check_has_rows, class_codes
from pboost.inspection.plots import axes_or_new
from pboost.models.base import Model, TwoClassModel, check_model, staged_predict
from pboost.models.evaluate.new_rows import count_rows
from pboost.models.tree_sum import StagewiseModel
from pboost.models.trees import Tree
from pboost.values import FloatArray, IntArray, shown


def plot_steps(
    model: Model,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    ax: Any = None,
) -> Any:
    """Draw the certificate, or the training loss, and errors after each step, with matplotlib.

    Parameters
    ----------
    model : DecisionGraph, StagewiseModel or LinearModel
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
    >>> model = pb.fit_boosted_tree(X, y, nodes=7)
    >>> ax = pb.plot_steps(model, X, y)
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
    elif isinstance(model, StagewiseModel):
        lines = {"training loss": model.training_loss}
        if model.validation_loss is not None:
            lines["validation loss"] = model.validation_loss
        unit = "round"
    else:
        raise TypeError(
            f"model: expected one with a record of its steps, as a DecisionGraph or a "
            f"StagewiseModel has, got {shown(model)}"
        )
    errors = None if X is None else _errors(model, X, y, sample_weight)
    ax = axes_or_new(ax, 5, 4)
    for name, line in lines.items():
        ax.plot(np.arange(len(line)), line, label=name, gid=name.replace(" ", "-"))
    if errors is not None:
        name = "mean squared error" if model.labels is None else "error"
        ax.plot(*errors, label=name, gid=name.replace(" ", "-"))
    ax.set(xlabel=f"{unit}s")
    ax.set_ylim(bottom=min(0.0, *(float(np.min(line)) for line in lines.values())))
    ax.legend()
    return ax


def _errors(
    model: Model, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[IntArray, FloatArray]:
    """Return the numbers of steps after which the model was what it is now, and errors there."""
    n = count_rows(model, X)
    check_has_rows(n)
    assert y is not None
    weight = as_weights(sample_weight, n)
    is_number, labels = model.labels is None, model.labels
    truth = as_targets(y, n) if labels is None else labels[class_codes(labels, y, n)]
    errors = [
        float(np.average((found - truth) ** 2 if is_number else found != truth, weights=weight))
        for found in staged_predict(model, X)
    ]
    stages = model.record.stages if isinstance(model, TwoClassModel) else None
    at = np.arange(1, len(errors) + 1, dtype=np.int32) if stages is None else stages
    return at, np.array(errors)


def plot_pruning(model: Model, *, ax: Any = None) -> Any:
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
    >>> pb.plot_pruning(tree).get_xlabel()
    'leaves'
    """
    check_model(model)
    if not isinstance(model, Tree):
        raise TypeError(f"model: expected a Tree of fit_pruned_cart, got {shown(model)}")
    table = model.pruning
    if table is None:
        raise ValueError("model: expected one made by fit_pruned_cart, which has a pruning table")
    ax = axes_or_new(ax, 5, 4)
    ax.errorbar(table.n_leaves, table.error, yerr=table.standard_error, marker="o", capsize=3)
    best = int(np.argmin(table.error))
    within = float(table.error[best] + table.standard_error[best])
    ax.axhline(within, linestyle="--", color="gray", label="least error + standard error")
    chosen = table.n_leaves[table.chosen], table.error[table.chosen]
    ax.plot(*chosen, "o", markersize=12, fillstyle="none", color="C1", label="chosen")
    said = "mean squared error" if model.labels is None else "error"
    ax.set(xlabel="leaves", ylabel=f"cross-validated {said}", xscale="log")
    ax.set_ylim(bottom=0.0)
    ax.legend()
    return ax
