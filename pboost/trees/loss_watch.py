"""The mean loss on rows held out, by which a sum of trees ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pboost.data.check_xy import scaled_weights
from pboost.data.convert import Features
from pboost.data.training import Problem
from pboost.growth.validation import ValidationRows, validation_rows
from pboost.losses import Loss
from pboost.models.trees import Tree
from pboost.values import FloatArray


class LossWatch:
    """The options `validation` and `patience` of `fit_stagewise`.

    Attributes
    ----------
    settings : dict
        The options; empty without validation.
    losses : list of float
        Mean loss on the validation rows before the first tree and after each.
    seen : ndarray of uint64, or None
        Digest of the rows of training and validation.
    """

    def __init__(
        self,
        validation: Any,
        patience: Any,
        problem: Problem,
        loss: Loss,
        generator: np.random.Generator,
        there: Any = None,
    ) -> None:
        """`there` is what has the rows if these are elsewhere: `begin_watch` and `watched`."""
        self.settings: Mapping[str, Any] = {}
        self.losses: list[float] = []
        self._loss = loss
        self.rows = validation_rows(validation, patience, problem, generator)
        self.seen = problem.seen if self.rows is None else self.rows.problem.seen
        self._there = None
        if self.rows is not None:
            self.settings = self.rows.settings
            self._there = None if self.rows.elsewhere is None else there
            try:
                self._check(problem)
            except ValueError as error:
                raise ValueError(f"validation: {error}") from None

    def _check(self, problem: Problem) -> None:
        """Check the targets of the rows, and scale their weights."""
        assert self.rows is not None
        if self._there is not None:
            self._there.begin_watch(self._loss)
            return
        self.rows = replace(self.rows, weight=scaled_weights(self.rows.weight)[0])
        if problem.labels is None:
            y, drawn = self.rows.y, self.rows.drawn
            Loss.check_targets(self._loss, y, drawn if len(drawn) else np.arange(len(y)))

    @property
    def latest(self) -> float | None:
        """Mean loss on the validation rows after the latest tree."""
        return self.losses[-1] if self.losses else None

    @property
    def best(self) -> int:
        """Number of trees of least loss, the smallest of several."""
        return int(np.argmin(self.losses))

    def begin(self, bias: float | FloatArray) -> None:
        """Take in the decision value before the first tree, of softmax one for each class."""
        if self._there is not None:
            self._note(self._there.watched(()))
        elif self.rows is not None:
            y = self.rows.y
            is_two = y.dtype.kind == "b" and not np.ndim(bias)
            self._y = np.where(y, 1.0, -1.0) if is_two else y
            self._f = np.repeat(np.expand_dims(bias, -1), len(y), axis=-1)
            self._measure(self.rows)

    def add(self, made: Callable[[], Tree | list[Tree]], f: FloatArray) -> bool:
        """Take in a round, to be made, and what it makes of the training rows; whether to stop.

        Decision values are (n,) with one tree a round, (J, n) with J.
        """
        rows = self.rows
        if rows is None:
            return False
        if self._there is not None:
            trees = made()
            self._note(self._there.watched(trees if isinstance(trees, list) else [trees]))
        else:
            if rows.X is None:
                self._f = f[..., rows.drawn]
            else:
                self._f = self._f + self._predictions(made(), rows.X)
            self._measure(rows)
        return len(self.losses) - 1 - self.best >= rows.patience

    def _predictions(self, trees: Tree | list[Tree], X: NDArray[Any]) -> FloatArray:
        if isinstance(trees, list):
            return np.stack([self._predictions(tree, X) for tree in trees])
        return trees.predict(Features(X, trees.feature_names, trees.table)).T

    def _measure(self, rows: ValidationRows) -> None:
        value = self._loss.value(self._y, self._f.T)
        self._note(float(np.average(value, weights=rows.weight)))

    def _note(self, mean: float) -> None:
        self.losses.append(self._loss.reported * mean)
