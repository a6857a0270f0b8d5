"""Axes to draw on, where matplotlib is installed, and the curve of a budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from pboost.models.base import Model, check_model
from pboost.values import install_hint, shown


def axes_or_new(ax: Any, width: float, height: float) -> Any:
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


def plot_budget_curve(model: Model, *, ax: Any = None) -> Any:
    """Draw the cross-validated error of what `fit_within` would choose, by budget.

    Parameters
    ----------
    model : EarlyExitModel, or another model
        From `fit_within`.
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
        If the model was not made by `fit_within`.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = pb.fit_within(X, X[:, 0] * X[:, 1] > 0, comparisons=10, rng=0)
    >>> ax = pb.plot_budget_curve(model)
    >>> ax.get_xlabel()
    'comparisons per row'
    """
    check_model(model)
    curve = getattr(model, "curve", None)
    if curve is None:
        curve = getattr(model, "settings", {}).get("curve")
    if curve is None:
        raise ValueError("model: expected one made by fit_within, which has a curve of budgets")
    ax = axes_or_new(ax, 5, 4)
    _, comparisons, error, standard_error = np.asarray(curve, dtype=np.float64).T
    ax.errorbar(comparisons, error, yerr=standard_error, marker="o", capsize=3)
    said = "mean squared error" if model.labels is None else "error"
    ax.set(xlabel="comparisons per row", ylabel=f"cross-validated {said}", xscale="log")
    ax.set_ylim(bottom=0.0)
    return ax
