"""Calibrated models: a model together with functions that map decision values to probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.models import schema as stored
from pboost.models.base import CostUnit, Model, Route, score_by_route
from pboost.models.early_exit_model import Around
from pboost.models.evaluate.exits import Left
from pboost.models.evaluate.partial_evaluation import CalibratedEvaluator
from pboost.models.schema import Settings, check_offsets
from pboost.models.shares import two_probabilities
from pboost.models.text import counted
from pboost.values import FloatArray, TableLike

#: Absolute decision value for the probabilities 0 and 1, larger than any other.
MOST_HALF = 353.5
#: Largest absolute log odds by Platt's method, to avoid overflow.
MOST_LINE = 1e300


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibratedModel(Around):
    """A model with calibrated probabilities; see `calibrate`.

    ``model.model`` is the uncalibrated model. In the binary case the decision value is half the
    log odds of the calibrated probability; with more classes there is one decision value per
    class, the logarithm of its probability. The predicted class has the largest calibrated
    probability. Costs, features read and contributions are the same as for the uncalibrated model.

    Attributes
    ----------
    model : DecisionGraph, RandomForest or another model
        The uncalibrated model. There are K calibration maps: one in the binary case, otherwise
        one per class.
    slope, intercept : ndarray of float64, shape (K,), or None
        Platt's method: the probability for decision value f is ``1 / (1 + exp(-(slope * f +
        intercept)))``.
    knot, share : ndarray of float64, shape (m,), or None
        Isotonic regression: decision values and their probabilities. Between two knots,
        probabilities are interpolated linearly.
    start : ndarray of int32, shape (K + 1,), or None
        Isotonic map k consists of the knots ``start[k]`` to ``start[k + 1] - 1``.
    settings : mapping
        The options of `calibrate`; "rows" is the number of rows with positive weight.
    classes, n_features, feature_names, table
        Same as for the uncalibrated model.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the calibration rows, see :doc:`/how_to/error_bounds_and_prediction_sets`. The
        digest of the training rows is ``model.seen``.
    """

    settings: Settings = stored.settings("builder")
    slope: Any = stored.column(np.float64, ndim=1, optional=True)
    intercept: Any = stored.column(np.float64, ndim=1, optional=True)
    knot: Any = stored.column(np.float64, ndim=1, optional=True)
    share: Any = stored.column(np.float64, ndim=1, positive=True, optional=True)
    start: Any = stored.column(np.int32, ndim=1, optional=True)

    most_half = MOST_HALF
    no_graph = "which calibrates another model; pass model.model"
    no_trees = "which calibrates another model; pass model.model"
    file_kind, file_stop = "calibrated", "probabilities are calibrated"

    def check_whole(self) -> None:
        """Check that there is a valid calibration map for each decision value."""
        if self.classes is None:
            raise ValueError("model: expected a classifier")
        is_line = [part is not None for part in (self.slope, self.intercept)]
        is_steps = [part is not None for part in (self.knot, self.share, self.start)]
        if not (all(is_line) and not any(is_steps)) and not (all(is_steps) and not any(is_line)):
            raise ValueError("slope: expected either slope and intercept, or knot, share and start")
        if self.slope is not None:
            shapes = self.slope.shape, self.intercept.shape
            if shapes != ((self.n_votes,), (self.n_votes,)):
                raise ValueError(f"slope: expected {self.n_votes} numbers, got shapes {shapes}")
            return
        check_offsets("start", self.start, len(self.knot))
        if len(self.start) != self.n_votes + 1 or self.knot.shape != self.share.shape:
            raise ValueError(
                f"start: expected {self.n_votes + 1} numbers and one share per knot, got "
                f"{len(self.start)} numbers, {len(self.share)} shares and {len(self.knot)} knots"
            )
        inner = np.delete(np.arange(1, len(self.knot)), self.start[1:-1] - 1)
        if not (self.knot[inner] > self.knot[inner - 1]).all():
            raise ValueError("knot: expected increasing numbers in each map")
        if not ((self.share[inner] >= self.share[inner - 1]).all() and (self.share <= 1).all()):
            raise ValueError("share: expected nondecreasing numbers <= 1 in each map")

    def __repr__(self) -> str:
        return f"<calibrate: {self.settings.get('method')}, of {self.model!r}>"

    def chances(self, values: FloatArray) -> FloatArray:
        """Return the calibrated probabilities (n, K) of values (n, K), before normalization."""
        if self.slope is not None:
            halves = self._lines(values) / 2
            return two_probabilities(halves.ravel())[:, 1].reshape(values.shape)
        chances = np.empty(values.shape)
        for k, (first, end) in enumerate(pairwise(self.start)):
            chances[:, k] = np.interp(values[:, k], self.knot[first:end], self.share[first:end])
        return np.clip(chances, 0.0, 1.0)

    def _lines(self, values: FloatArray) -> FloatArray:
        """Return the log odds (n, K) of the probabilities by Platt's method."""
        with np.errstate(over="ignore"):
            log_odds: FloatArray = values * self.slope + self.intercept
        return np.clip(log_odds, -MOST_LINE, MOST_LINE)

    def calibrated(self, score: FloatArray) -> FloatArray:
        """Return calibrated decision values for decision values (n,) or (n, J) of the model."""
        values = as_values(score, self.n_votes)
        if self.n_votes == 1 and self.slope is not None:
            return self._lines(values)[:, 0] / 2
        chance = self.chances(values)
        with np.errstate(divide="ignore"):  # the logarithm of 0 is minus infinity, as intended
            if self.n_votes == 1:
                halves = (np.log(chance) - np.log1p(-chance))[:, 0] / 2
                return np.clip(halves, -MOST_HALF, MOST_HALF)
            total = chance.sum(axis=1, keepdims=True)
            equal = np.full(chance.shape, 1 / chance.shape[1])
            share = np.divide(chance, total, out=equal, where=total > 0)
            return np.maximum(np.log(share), -2 * MOST_HALF)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return half the log odds of the second class, or all log probabilities."""
        return self.calibrated(self.model.values_at_end(X))

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return calibrated decision values for a route other than "hard"."""
        return self.calibrated(score_by_route(self.model, X, route))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield the decision values of each stage, calibrated by the maps of the full model."""
        return map(self.calibrated, self.model.staged_decision_function(X))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return the prediction cost of the model."""
        return self.model.prediction_cost(X, unit)

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask of the features that the model reads."""
        return self.model.reads(X)

    @property
    def without_exits(self) -> Model:
        """The calibrated model without early exits."""
        full_model = self.model.without_exits
        return self if full_model is self.model else replace(self, model=full_model)

    def leave_proven(self, X: TableLike) -> Left:
        """Evaluate the full model, because the calibrated class is final only at the last stage."""
        full_model = self.without_exits
        score, cost = full_model.decision_function(X), full_model.prediction_cost(X, "nodes")
        return Left(score, np.ones(len(cost), dtype=np.intp), cost)

    def inquiry(self, settles: bool) -> CalibratedEvaluator:
        """Return an evaluator for feature acquisition that calibrates decision values."""
        return CalibratedEvaluator(self, self.model.inquiry(settles))

    def in_words(self, score: FloatArray) -> str:
        """Return the calibrated probabilities of one row as text."""
        share = self.probabilities(score)[0].tolist()
        named = zip(self.classes.tolist(), share, strict=True)
        return "calibrated: " + ", ".join(f"{label!r} {p:.4f}" for label, p in named)

    def describe(self) -> str:
        """Describe the calibration maps and the model as text."""
        rows, method = self.settings.get("rows"), self.settings.get("method")
        folds = self.settings.get("cv")
        of = "on" if folds is None else f"{folds}-fold cross-validation on"
        on = "" if rows is None else f", {of} {counted(rows, 'row')}"
        lines = [f"calibrate: {method}{on}", *self._map_lines()]
        return self.around(lines)

    def _map_lines(self) -> list[str]:
        """Describe the calibration map of each class as text."""
        of = self.classes.tolist()[1:] if self.n_votes == 1 else self.classes.tolist()
        if self.slope is not None:
            return [
                f"log odds of {label!r}: {a:.4g} * value {b:+.4g}"
                for label, a, b in zip(of, self.slope, self.intercept, strict=True)
            ]
        ends = zip(of, self.start[:-1], self.start[1:] - 1, strict=True)
        return [
            f"probability of {label!r}: {self.share[a]:.4g} for values <= {self.knot[a]:.4g}, "
            f"{self.share[z]:.4g} for values >= {self.knot[z]:.4g}, "
            f"{counted(int(z - a + 1), 'knot')}"
            for label, a, z in ends
        ]


def as_values(score: FloatArray, n_votes: int) -> FloatArray:
    """Reshape decision values to (n, K), with K = `n_votes`.

    If K = 1 and `score` has one value per class, return the second value minus the first.
    """
    if score.ndim == 1:
        return score[:, None]
    return score[:, 1:] - score[:, :1] if n_votes == 1 else score
