"""Calibrations of two labels as walks: sums are above 0 where the probability is above 1/2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pboost.export.c_parts import Line, Maps, Part, Walk
from pboost.models.base import Model
from pboost.models.calibrated import CalibratedModel
from pboost.values import FloatArray, shown


def folded(model: Model, part: Part) -> Part:
    """Return what whole numbers can hold of a calibration, a walk; other parts as they are.

    Of a line it is the walk whose votes are multiplied by the slope: its sums are the decision
    values. Of an isotonic map it is the walk less the value at which the probability crosses 1/2:
    the label is the same.
    """
    if not isinstance(model, CalibratedModel):
        return part
    assert isinstance(part, Line | Maps)
    if len(model.labels) > 2:
        raise NotImplementedError(
            'dtype: "int16" is for calibrations of two labels, where the label is a question of '
            f'one sum; this is one of {len(model.labels)}, which "float64" and "float32" can hold'
        )
    walk = part.part
    if not isinstance(walk, Walk):
        raise NotImplementedError(
            'dtype: "int16" is for calibrations of graphs, trees and sums of trees that all rows '
            'go through to the end; "float64" and "float32" can hold this one'
        )
    if isinstance(part, Line):
        return _times(walk, part.slope / 2, part.intercept / 2)
    return _times(walk, 1.0, -_crossing(model, part))


def _times(walk: Walk, slope: float, intercept: float) -> Walk:
    """Return the walk whose one sum is a line of that of a walk, of two of the second's lead."""

    def times(of: Any) -> Any:
        return None if of is None else slope * of.astype(np.float64)

    start = times(walk.start)
    start[-1] += walk.divisor * intercept
    return replace(
        walk,
        vote=times(walk.vote),
        leaf=times(walk.leaf),
        start=start,
        after=times(walk.after),
        lead=len(start) > 1,
    )


def _crossing(model: CalibratedModel, part: Maps) -> float:
    """Return the largest value whose probability is not above 1/2."""
    knot, share = part.knot, part.share
    assert knot is not None
    assert share is not None
    above = int(np.searchsorted(share, 0.5, side="right"))
    if above in (0, len(share)):
        label = shown(model.labels[int(above == 0)].item())
        raise NotImplementedError(
            'dtype: "int16" is for calibrations whose probabilities cross 1/2; those of this one '
            f'do not, and all rows are {label}; "float64" and "float32" can hold it'
        )
    low, high = float(knot[above - 1]), float(knot[above])
    while (middle := low / 2 + high / 2) not in (low, high):
        if _chance(middle, knot, share) > 0.5:
            high = middle
        else:
            low = middle
    return low


def _chance(value: float, knot: FloatArray, share: FloatArray) -> float:
    return float(np.interp(value, knot, share))
