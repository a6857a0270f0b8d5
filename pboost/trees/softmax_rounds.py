"""Rounds of boosting several classes: a tree for each, which sees the scores before the round.

Along the score of one class the loss of softmax is the log loss of two classes, of that class
against the others together, at the log odds between them. So a tree is one of the log loss.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from pboost._core import boost
from pboost.losses import LOSSES, Loss
from pboost.models.forest import Forest
from pboost.models.trees import Tree
from pboost.trees.steps import Steps
from pboost.values import FloatArray, IntArray


class SoftmaxRounds:
    """A fit of J trees a round, made by rounds of one tree.

    Parameters
    ----------
    label : ndarray of float64, shape (n,)
        The number of the class of each row.
    weight : ndarray of float64, shape (n,)
        Weights of the rows, the largest 1; 0 for rows that take no part.
    f : ndarray of float64, shape (J, n)
        Decision values; they are changed.
    steps : Steps
        Of one class while the others stay.
    make : callable
        ``make(y, loss, weight, f, steps)`` returns the rounds of one tree, of targets -1 and +1.
    """

    def __init__(
        self, label: FloatArray, weight: FloatArray, f: FloatArray, steps: Steps,
        make: Callable[[FloatArray, Loss, FloatArray, FloatArray, Steps], Any],
    ) -> None:  # fmt: skip
        self.label, self.f, self.n_trees = label, f, len(f)
        self.weight = None if (weight == 1).all() else weight
        self.total = float(len(label)) if self.weight is None else boost.exact_sum(weight)
        self.odds, self.loss = np.empty(f.shape), np.empty(len(label))
        self.mean_loss = 0.0
        self.look()
        # What moves all scores of a row at once moves the log odds of two by twice as much.
        rate = steps.rate * (1.0 - 1.0 / len(f))
        target = np.empty(len(label))
        boost.tell(label, 0.0, target)
        steps = steps._replace(rate=rate)
        self.one = make(target, LOSSES["logistic"], weight, self.odds[0], steps)

    @property
    def number(self) -> int:
        """The number of the tree grown last."""
        found: int = self.one.number
        return found

    @number.setter
    def number(self, number: int) -> None:
        self.one.number = number

    def look(self) -> None:
        """Find the log odds of the classes and the mean loss of the decision values as they are."""
        boost.log_odds(self.f, self.label, self.weight, self.odds, self.loss)
        self.mean_loss = boost.exact_sum(self.loss) / self.total

    def grow(self, rows: IntArray) -> list[Any] | None:
        """Grow the trees of a round on the listed rows and add them."""
        found = []
        for k in range(self.n_trees):
            boost.tell(self.label, float(k), self.one.y)
            self.one.f = self.odds[k]
            self.one.look()
            grown = self.one.grown(rows)
            if grown is None:
                return None
            self.one.f = self.f[k]
            self.one.add(grown, rows)
            found.append(grown)
        self.look()
        return found

    def values(self, trees: list[Any]) -> FloatArray:
        """Return what the nodes of the trees of a round add, 0 where they are no leaves."""
        return np.concatenate([self.one.values(tree) for tree in trees])

    def tree(self, trees: list[Any]) -> list[Tree]:
        """Return the trees of a round as models."""
        return [self.one.tree(tree) for tree in trees]

    def forest(self, trees: list[list[Any]]) -> Forest:
        """Return the trees of rounds as a model."""
        found: Forest = self.one.forest(list(chain.from_iterable(trees)))
        return found
