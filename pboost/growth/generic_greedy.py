"""Generic greedy boosting (G²) of real-valued weak hypotheses.

A step depends only on the rows that reach the weak hypothesis, not on the structure of the decision
graph (section 3 of [1]_ in `GenericGreedy`). The same steps therefore fit chains (AdaBoostR), trees
(top-down induction) and other decision graphs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pboost._core.voting import VoteRule, half_log_odds
from pboost.data.read.check_xy import as_labels, as_weights, check_answers, label_array
from pboost.data.targets import SoftLabels, labels_of_rows
from pboost.values import FloatArray, check_number, vote_rule

__all__ = ["GenericGreedy", "GreedyStep", "RoundRecord"]


@dataclass(frozen=True, slots=True)
class GreedyStep:
    """The leverage of a weak hypothesis, and its effect on the weights of the rows that reach it.

    Attributes
    ----------
    mu : float
        Normalized margin of h, the weighted mean of ``y h / max_abs``, in [-1, 1].
    max_abs : float
        Largest absolute value of h on these rows, or an upper bound on it.
    alpha : float
        Leverage: h has the vote ``alpha * h``. ``alpha * max_abs`` is ``0.5 ln((1 + mu) / (1 -
        mu))``, clipped because it would be infinite for a perfect hypothesis.
    shrink : float
        Factor of the bound for these rows, ``sqrt(1 - mu**2)`` if there is no smoothing and the
        learning rate is 1.
    """

    mu: float
    max_abs: float
    alpha: float
    shrink: float

    @property
    def perfect(self) -> bool:
        """Whether all outputs are ± ``max_abs`` and are either all correct or all wrong."""
        return abs(self.mu) == 1.0

    @property
    def vote(self) -> float:
        """Vote for an output of ``max_abs``: ``alpha * max_abs``."""
        return self.alpha * self.max_abs

    def factors(self, u: ArrayLike) -> FloatArray:
        """Return the factors of the weights, given ``u = y h / max_abs``.

        With ``t = tanh(alpha * max_abs)`` a factor is ``(1 - t u) / (1 - t mu)``. Without smoothing
        and with a learning rate of 1, t is mu. The mean factor is 1.
        """
        u = np.asarray(u, dtype=np.float64)
        up, down = math.exp(self.vote), math.exp(-self.vote)
        return ((1 - u) * up + (1 + u) * down) / (2 * self.shrink)


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """Record of a round of `fit_real_adaboost`, as passed to ``callback(step, record)``.

    Attributes
    ----------
    round : int
        Index of the round.
    feature : int or None
        Feature of the hypothesis; -1 for a constant, None for a custom hypothesis.
    mu : float
        Normalized margin.
    alpha : float
        Leverage.
    bound : float
        Bound on the loss after the round, the product of all ``sqrt(1 - mu**2)``.
    certificate : float
        Weighted mean of the loss ``exp(-y H)`` after the round.
    """

    round: int
    feature: int | None
    mu: float
    alpha: float
    bound: float
    certificate: float


def leverage(mu: float, max_abs: float, rule: VoteRule) -> GreedyStep:
    """Return the step for a hypothesis with margin `mu`; Fig. 3 of [1]_ in `GenericGreedy`."""
    mu = min(max(mu, -1.0), 1.0)
    right, wrong = (1 + mu) / 2, (1 - mu) / 2
    vote = rule.learning_rate * half_log_odds(right, wrong, rule.smoothing)
    # Upper bound on the mean of exp(-vote * u), since the exponential is convex.
    shrink = wrong * math.exp(vote) + right * math.exp(-vote)
    alpha = vote / max_abs
    if not math.isfinite(alpha):
        raise ValueError(
            f"h: expected outputs large enough for a finite leverage, got {max_abs} as the largest "
            "absolute value; multiply h by a power of two"
        )
    return GreedyStep(mu, max_abs, alpha, shrink)


class GenericGreedy:
    """The state of G² on a training set: weights, decision values and the bound on the loss.

    Each step takes the outputs of a weak hypothesis on the rows that reach it: all rows in a chain,
    the rows of a node in a tree.

    Parameters
    ----------
    y : array_like of shape (n,), optional
        Class labels with two distinct values; the second in sorted order is the class +1.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows.
    y_proba : array_like of shape (n, 2) or (n,), or data frame, optional
        Class probabilities of each row, in place of `y`. A row counts for each class with its
        weight times the probability. A one-dimensional array contains the probabilities of the
        second class.
    classes : array_like of shape (2,), optional
        The class labels of the columns of `y_proba`. Default: 0 and 1, or the column names.
    smoothing : float
        Fraction from 0 to 1 that is added to the weights of correct and wrong outputs before the
        log odds are computed. The value 0 gives the published formula.
    learning_rate : float
        Factor in (0, 1] by which each vote is multiplied.

    Attributes
    ----------
    weight : ndarray of float64, shape (n,), or (n, 2) with `y_proba`
        Current weights; one per class with `y_proba`. A step does not change the sum of the weights
        of its rows.
    score : ndarray of float64, shape (n,)
        Current decision values H.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007), Fig. 3 and Theorem 1.

    Examples
    --------
    A tree with one split and constant hypotheses. By Theorem 2, the vote of a leaf is half the log
    odds of its rows, for any constants:

    >>> import numpy as np
    >>> import pboost as pb
    >>> state = pb.models.GenericGreedy([0, 0, 0, 1, 0, 1, 1])
    >>> _ = state.step(1.0)
    >>> _ = state.step(-5.0, rows=[0, 1, 2, 3])
    >>> _ = state.step(0.1, rows=[4, 5, 6])
    >>> state.score.round(3).tolist()
    [-0.549, -0.549, -0.549, -0.549, 0.347, 0.347, 0.347]
    >>> round(float(np.log(1 / 3) / 2), 3), round(float(np.log(2 / 1) / 2), 3)
    (-0.549, 0.347)
    """

    def __init__(
        self,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        y_proba: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        smoothing: float = 0.0,
        learning_rate: float = 1.0,
    ) -> None:
        row_labels = labels_of_rows(y, y_proba, classes)
        self._rule = vote_rule("domain", smoothing, learning_rate)
        if isinstance(row_labels, SoftLabels):
            row_labels.check_rows(len(row_labels.share))
            row_labels.check_two()
            n, start = len(row_labels.share), row_labels.share
            self.sign = np.tile([-1.0, 1.0], (n, 1))
        else:
            label_values = label_array(row_labels)
            _, second = as_labels(label_values, label_values.shape[0] if label_values.ndim else 0)
            n, start = len(second), np.ones(len(second))
            self.sign = np.where(second, 1.0, -1.0)
        weights = as_weights(sample_weight, n)
        if weights is not None:
            start = start * self._of_rows(weights / weights.max())
        self._start: FloatArray = start / _sum(start)
        self.weight: FloatArray = self._start.copy()
        self.score: FloatArray = np.zeros(n)
        self._shrink: FloatArray = np.ones(n)

    def margin(
        self, h: ArrayLike, rows: ArrayLike | None = None, max_abs: float | None = None
    ) -> GreedyStep:
        """Return the step for a hypothesis without changing the state.

        The parameters are the same as for `step`.
        """
        return self._look(h, rows, max_abs)[0]

    def step(
        self, h: ArrayLike, rows: ArrayLike | None = None, max_abs: float | None = None
    ) -> GreedyStep:
        """Add a weak hypothesis for the rows that reach it.

        Parameters
        ----------
        h : float or array_like of shape (m,)
            Outputs on these rows, finite and not all 0. A number is a constant hypothesis.
        rows : array_like, optional
            Rows that reach the hypothesis, as a boolean mask or indices. By default, all rows.
        max_abs : float, optional
            Upper bound on the absolute value of h on all rows. By default, the largest absolute
            value on these rows.

        Returns
        -------
        GreedyStep
            Margin and leverage.
        """
        step, at, u, answers = self._look(h, rows, max_abs)
        self.weight[at] *= step.factors(u)
        self.score[at] += step.alpha * answers
        self._shrink[at] *= step.shrink
        return step

    @property
    def bound(self) -> float:
        """Right-hand side of Theorem 1, without the factor that depends on theta.

        The sum over all paths p of ``w(S_p)`` times the product of ``sqrt(1 - mu_t**2)`` over the
        hypotheses t of the path. It is at least `certificate`, and equal if all outputs are ±
        max_abs.
        """
        return _sum(self.weight * self._of_rows(self._shrink))

    @property
    def certificate(self) -> float:
        """Weighted mean of ``exp(-y H)``, an upper bound on the training error."""
        return _sum(self._start * np.exp(-self.sign * self._of_rows(self.score)))

    def _of_rows(self, values: FloatArray) -> FloatArray:
        """Reshape the values of rows so that they broadcast with the weights."""
        return values if self.sign.ndim == 1 else values[:, None]

    def _look(
        self, h: ArrayLike, rows: ArrayLike | None, max_abs: float | None
    ) -> tuple[GreedyStep, Any, FloatArray, FloatArray]:
        """Return the step, the indices of the rows, and their values of ``y h / max_abs`` and h."""
        at = slice(None) if rows is None else np.asarray(rows)
        weight, sign = self.weight[at], self.sign[at]
        mass = _sum(weight)
        if not mass > 0:
            raise ValueError("rows: expected rows with a positive weight, got none")
        answers = check_answers(h, len(weight), "h")
        is_there = weight > 0 if weight.ndim == 1 else (weight > 0).any(axis=1)
        largest = float(np.abs(answers).max(initial=0.0, where=is_there))
        max_abs = largest if max_abs is None else check_bound(max_abs, largest, "h")
        if max_abs == 0:
            raise ValueError("h: expected an output other than 0 on these rows, got only 0")
        u = sign * self._of_rows(answers / max_abs)
        mu = _sum(weight * u) / mass
        if (u == np.sign(mu)).all(where=weight > 0):
            mu = math.copysign(1.0, mu)  # exact, without rounding errors
        return leverage(mu, max_abs, self._rule), at, u, answers


def _sum(values: FloatArray) -> float:
    """Return the sum of all values. The values of each row are added first."""
    return float((values if values.ndim == 1 else values.sum(axis=1)).sum())


def check_bound(max_abs: object, largest: float, what: str) -> float:
    """Return `max_abs` after comparing it with the largest output."""
    bound = check_number("max_abs", max_abs, min_value=0.0, open_min=True)
    if largest > bound:
        raise ValueError(
            f"{what}: expected outputs of at most max_abs={bound} in absolute value, got {largest}"
        )
    return bound
