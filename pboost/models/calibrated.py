"""The model of a calibration: a model, and the probabilities that go with its decision values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.models import stored
from pboost.models.base import CostUnit, Model, Route, score_by_route
from pboost.models.early_exit_model import Around
from pboost.models.evaluate.exits import Left
from pboost.models.evaluate.known_values import CalibratedEvaluator
from pboost.models.shares import two_probabilities
from pboost.models.stored import Settings, check_offsets
from pboost.models.text import counted
from pboost.values import FloatArray, TableLike

#: The largest half log odds, of probabilities 0 and 1, which no decision value has.
MOST_HALF = 353.5
#: Decision values are held at this distance from 0, where the straight line would leave float64.
MOST_LINE = 1e300


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibratedModel(Around):
    """A model whose probabilities are those of other rows, made by `calibrate`.

    ``model.model`` is the model as it was fitted. Of two labels the decision value is half the log
    odds of the calibrated probability, of more the logarithm of that of each; labels are those of
    largest calibrated probability. Comparisons, columns read and contributions are those of the
    model.

    Attributes
    ----------
    model : DecisionGraph, RandomForest or another model
        The model that was calibrated. There are K maps from its decision values to probabilities:
        one of two labels, of more one for each.
    slope, intercept : ndarray of float64, shape (K,), or None
        Platt's maps: the probability of decision value f is ``1 / (1 + exp(-(slope * f +
        intercept)))``.
    knot, share : ndarray of float64, shape (m,), or None
        Isotonic maps: probabilities at decision values, with straight lines between them.
    start : ndarray of int32, shape (K + 1,), or None
        Map k has those of ``start[k]`` to ``start[k + 1] - 1``.
    settings : mapping
        The options it was made with; "rows", how many there were of positive weight.
    labels, n_features, feature_names, table
        Those of the model.
    seen : ndarray of uint64, shape (k,), or None
        Digest of the calibration rows, :doc:`/how_to/error_bounds_and_prediction_sets`; ``model.seen`` that of the
        model's.
    """

    settings: Settings = stored.settings("builder")
    slope: Any = stored.column(np.float64, ndim=1, optional=True)
    intercept: Any = stored.column(np.float64, ndim=1, optional=True)
    knot: Any = stored.column(np.float64, ndim=1, optional=True)
    share: Any = stored.column(np.float64, ndim=1, positive=True, optional=True)
    start: Any = stored.column(np.int32, ndim=1, optional=True)

    most_half = MOST_HALF
    no_graph = "which gives the values of one probabilities; model.model is the model itself"
    no_trees = "whose values are calibrated: model.model, the model itself, may be one"
    file_kind, file_stop = "calibrated", "probabilities are calibrated"

    def check_whole(self) -> None:
        """Check that there is a map for each decision value, and that it is one."""
        if self.classes is None:
            raise ValueError("model: expected one of labels")
        is_line = [part is not None for part in (self.slope, self.intercept)]
        is_steps = [part is not None for part in (self.knot, self.share, self.start)]
        if not (all(is_line) and not any(is_steps)) and not (all(is_steps) and not any(is_line)):
            raise ValueError(
                "slope: expected slope and intercept, or knot, share and start, not parts of both"
            )
        if self.slope is not None:
            shapes = self.slope.shape, self.intercept.shape
            if shapes != ((self.n_votes,), (self.n_votes,)):
                raise ValueError(f"slope: expected {self.n_votes} numbers, got shapes {shapes}")
            return
        check_offsets("start", self.start, len(self.knot))
        if len(self.start) != self.n_votes + 1 or self.knot.shape != self.share.shape:
            raise ValueError(
                f"start: expected {self.n_votes + 1} numbers, and one share for each knot, got "
                f"{len(self.start)} and {len(self.share)} for {len(self.knot)}"
            )
        inner = np.delete(np.arange(1, len(self.knot)), self.start[1:-1] - 1)
        if not (self.knot[inner] > self.knot[inner - 1]).all():
            raise ValueError("knot: expected numbers that increase within each map")
        if not ((self.share[inner] >= self.share[inner - 1]).all() and (self.share <= 1).all()):
            raise ValueError("share: expected numbers up to 1 that do not fall within a map")

    def __repr__(self) -> str:
        return f"<calibrate: {self.settings.get('method')}, of {self.model!r}>"

    def chances(self, values: FloatArray) -> FloatArray:
        """Return what the maps say of values (n, K), before they are divided by their sum."""
        if self.slope is not None:
            halves = self._lines(values) / 2
            return two_probabilities(halves.ravel())[:, 1].reshape(values.shape)
        chances = np.empty(values.shape)
        for k, (first, end) in enumerate(pairwise(self.start)):
            chances[:, k] = np.interp(values[:, k], self.knot[first:end], self.share[first:end])
        return np.clip(chances, 0.0, 1.0)

    def _lines(self, values: FloatArray) -> FloatArray:
        """Return the log odds (n, K) of Platt's maps."""
        with np.errstate(over="ignore"):
            log_odds: FloatArray = values * self.slope + self.intercept
        return np.clip(log_odds, -MOST_LINE, MOST_LINE)

    def calibrated(self, score: FloatArray) -> FloatArray:
        """Return decision values, given those (n,) or (n, J) of the model."""
        values = as_values(score, self.n_votes)
        if self.n_votes == 1 and self.slope is not None:
            return self._lines(values)[:, 0] / 2
        chance = self.chances(values)
        with np.errstate(divide="ignore"):  # minus infinity is right
            if self.n_votes == 1:
                halves = (np.log(chance) - np.log1p(-chance))[:, 0] / 2
                return np.clip(halves, -MOST_HALF, MOST_HALF)
            total = chance.sum(axis=1, keepdims=True)
            equal = np.full(chance.shape, 1 / chance.shape[1])
            share = np.divide(chance, total, out=equal, where=total > 0)
            return np.maximum(np.log(share), -2 * MOST_HALF)

    def decision_function(self, X: TableLike) -> FloatArray:
        """Return half the log odds of the second of two labels, or the logarithms of all."""
        return self.calibrated(self.model.values_at_end(X))

    def score_by_route(self, X: TableLike, route: Route) -> FloatArray:
        """Return the decision values that go with those of the model by the route."""
        return self.calibrated(score_by_route(self.model, X, route))

    def staged_decision_function(self, X: TableLike) -> Iterator[FloatArray]:
        """Yield what the maps, which are those of the whole model, say of its stages."""
        return map(self.calibrated, self.model.staged_decision_function(X))

    def prediction_cost(self, X: TableLike, unit: CostUnit) -> FloatArray:
        """Return what each row costs in the model; the map compares no columns."""
        return self.model.prediction_cost(X, unit)

    def reads(self, X: TableLike) -> Iterator[NDArray[np.bool_]]:
        """Yield which columns the model reads of each row."""
        return self.model.reads(X)

    @property
    def without_exits(self) -> Model:
        """The same of the model without exits of its own."""
        full_model = self.model.without_exits
        return self if full_model is self.model else replace(self, model=full_model)

    def leave_proven(self, X: TableLike) -> Left:
        """Return what rows have at the end: labels are settled by the map, not by votes."""
        full_model = self.without_exits
        score, cost = full_model.decision_function(X), full_model.prediction_cost(X, "nodes")
        return Left(score, np.ones(len(cost), dtype=np.intp), cost)

    def inquiry(self, settles: bool) -> CalibratedEvaluator:
        """Return what the model asks of a row, whose values are then calibrated."""
        return CalibratedEvaluator(self, self.model.inquiry(settles))

    def in_words(self, score: FloatArray) -> str:
        """Return what the calibrated probabilities of one row are, given its decision values."""
        share = self.probabilities(score)[0].tolist()
        named = zip(self.classes.tolist(), share, strict=True)
        return "calibrated: " + ", ".join(f"{label!r} {p:.4f}" for label, p in named)

    def describe(self) -> str:
        """Return what the maps are, and the model."""
        rows, method = self.settings.get("rows"), self.settings.get("method")
        folds = self.settings.get("cv")
        of = "on" if folds is None else f"out of {folds} folds of"
        on = "" if rows is None else f", {of} {counted(rows, 'row')}"
        lines = [f"calibrate: {method}{on}", *self._map_lines()]
        return self.around(lines)

    def _map_lines(self) -> list[str]:
        """Return what is said of the map of each label."""
        of = self.classes.tolist()[1:] if self.n_votes == 1 else self.classes.tolist()
        if self.slope is not None:
            return [
                f"log odds of {label!r}: {a:.4g} * value {b:+.4g}"
                for label, a, b in zip(of, self.slope, self.intercept, strict=True)
            ]
        ends = zip(of, self.start[:-1], self.start[1:] - 1, strict=True)
        return [
            f"probability of {label!r}: {self.share[a]:.4g} up to {self.knot[a]:.4g}, "
            f"{self.share[z]:.4g} from {self.knot[z]:.4g} on, {counted(int(z - a + 1), 'knot')}"
            for label, a, z in ends
        ]


def as_values(score: FloatArray, n_votes: int) -> FloatArray:
    """Return decision values as (n, K); of two labels with one each, by how much the second leads.

    `n_votes`: K, 1 of two labels.
    """
    if score.ndim == 1:
        return score[:, None]
    return score[:, 1:] - score[:, :1] if n_votes == 1 else score
