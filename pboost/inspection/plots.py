"""Axes to draw on, where matplotlib is installed."""

from __future__ import annotations

from typing import Any

from pboost.values import shown


def axes_or_new(ax: Any, width: float, height: float) -> Any:
    """Return the axes given; if None, some in a new figure, which pyplot does not know of."""
    if ax is not None:
        if not callable(getattr(ax, "scatter", None)):
            raise TypeError(f"ax: expected matplotlib's axes or None, got {shown(ax)}")
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "pboost[plot]"') from None
    return Figure(figsize=(width, height), layout="constrained").add_subplot()
