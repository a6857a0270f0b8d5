"""Validation rows of a forward stagewise fit, and the number of trees of least loss on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.features import check_finite, check_has_rows
from pboost.data.splits import PATIENCE
from pboost.data.targets import as_targets, as_weights
from pboost.data.training import Problem
from pboost.losses import Loss
from pboost.models.new_rows import is_second, match_names
from pboost.models.trees import Tree
from pboost.values import FloatArray, check_integer, check_number, shown


class LossWatch:
    """The options `validation` and `patience` of `fit_stagewise`.

    Attributes
    ----------
    weight : ndarray of float64, shape (n,)
        Weights of the training rows, the largest 1; 0 for the rows held out.
    settings : dict
        The options; empty without validation.
    losses : list of float
        Mean loss on the validation rows before the first tree and after each.
    """

    def __init__(
        self,
        validation: Any,
        patience: Any,
        problem: Problem,
        loss: Loss,
        generator: np.random.Generator,
    ) -> None:
        weights = problem.weights
        self.weight = np.ones(problem.n_rows) if weights is None else weights / weights.max()
        self.settings: Mapping[str, Any] = {}
        self.losses: list[float] = []
        self.patience = PATIENCE
        self._loss = loss
        self._rows: NDArray[np.intp] | None = None
        if validation is None:
            if patience is not None:
                given = shown(patience)
                raise ValueError(f"patience: expected None without validation, got {given}")
            return
        if patience is not None:
            self.patience = check_integer("patience", patience, least=1)
        kind: Any = "given"
        if isinstance(validation, tuple | list):
            self._take(validation, problem)
        else:
            kind = check_number("validation", validation, least=0.0, most=0.5, open_least=True)
            self._hold_out(kind, problem, generator)
        self.settings = {"validation": kind, "patience": self.patience}

    def _hold_out(self, share: float, problem: Problem, generator: np.random.Generator) -> None:
        self._rows = replace(problem, weights=self.weight).hold_out(share, generator)
        self._weight = self.weight[self._rows]
        self.weight = self.weight.copy()
        self.weight[self._rows] = 0.0

    def _take(self, validation: Any, problem: Problem) -> None:
        if len(validation) not in (2, 3):
            raise ValueError(
                "validation: expected (X, y), (X, y, sample_weight) or a share of the rows, "
                f"got {len(validation)} items"
            )
        X, y, weight = (*validation, None)[:3]
        try:
            features = match_names(problem.names, problem.n_features, X)
            n = len(features.values)
            check_has_rows(n)
            check_finite(features)
            given, labels = as_weights(weight, n), problem.labels
            self._y = (
                as_targets(y, n) if labels is None else np.where(is_second(labels, y, n), 1.0, -1.0)
            )
        except (TypeError, ValueError) as error:
            raise type(error)(f"validation: {error}") from None
        self._X, self._weight = features.values, np.ones(n) if given is None else given

    @property
    def latest(self) -> float | None:
        """Mean loss on the validation rows after the latest tree."""
        return self.losses[-1] if self.losses else None

    @property
    def best(self) -> int:
        """Number of trees of least loss, the smallest of several."""
        return int(np.argmin(self.losses))

    def begin(self, bias: float, y: FloatArray) -> None:
        """Take in the decision value before the first tree."""
        if not self.settings:
            return
        if self._rows is not None:
            self._y = y[self._rows]
        self._f = np.full(len(self._y), bias)
        self._measure()

    def add(self, tree: Tree, f: FloatArray) -> bool:
        """Take in a tree, and what it makes of the training rows; returns whether to stop."""
        if not self.settings:
            return False
        self._f = f[self._rows] if self._rows is not None else self._f + tree.predict(self._X)
        self._measure()
        return len(self.losses) - 1 - self.best >= self.patience

    def _measure(self) -> None:
        value = self._loss.value(self._y, self._f)
        self.losses.append(float(np.average(value, weights=self._weight)))
