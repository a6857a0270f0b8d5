"""Axes to draw on, where matplotlib is installed."""

from __future__ import annotations

from typing import Any


def new_axes(width: float, height: float) -> Any:
    """Return axes in a new figure, which pyplot does not know of."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'pboost[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained").add_subplot()
