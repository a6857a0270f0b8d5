"""Weak learners that return real numbers, for `fit_real_adaboost`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from pboost.data.columns.columns import lacks_values
from pboost.data.read.table import Takes
from pboost.data.resampling import HoldOut
from pboost.data.training_data import Problem
from pboost.values import check_choice, check_flag, check_number, shown
from pboost.weak.base import Weak, maker

#: How features are centered before they become weak hypotheses.
Centering: TypeAlias = Literal["mean", "midrange", "zero"]
CENTERS: tuple[Centering, ...] = get_args(Centering)
#: A function (X, y, weight, rng) that trains a hypothesis and returns it as a function of X.
Train: TypeAlias = Callable[..., Callable[[Any], Any]]


class RealLearner(Weak):
    """Base class of the weak learners that return real numbers."""

    takes: ClassVar[Takes] = Takes(holes=True, levels=True)
    __slots__ = ()

    def read(
        self,
        X: object,
        y: object,
        sample_weight: ArrayLike | None,
        two: str | None,
        hold: HoldOut | None = None,
    ) -> Problem:
        """Return the checked arguments of a fit function."""
        if lacks_values(X):
            raise TypeError(
                "X: expected rows with values, got BinnedColumns; pass X or SortedColumns"
            )
        return super().read(X, y, sample_weight, two, hold)


@dataclass(frozen=True, slots=True)
class Feature(RealLearner):
    """The centered features as weak hypotheses; made by `feature`."""

    kind: ClassVar[str] = "feature"

    center: Centering = "mean"
    include_constant: bool = True


@dataclass(frozen=True, slots=True)
class Hypothesis(RealLearner):
    """Hypotheses from a user's training function; made by `hypothesis`."""

    kind: ClassVar[str] = "hypothesis"

    train: Train
    max_abs: float | None = None


@maker
def feature(center: Centering = "mean", *, include_constant: bool = True) -> Feature:
    """Create a weak learner whose hypotheses are ``(x[j] - center[j]) / scale[j]``.

    The scale is the largest absolute value on the training rows, so the training values are in [-1,
    1]. For a missing value, the hypothesis is 0. Categorical features are one-hot encoded. Boosting
    these hypotheses gives a linear model.

    Parameters
    ----------
    center : {"mean", "midrange", "zero"}
        Value to subtract: the weighted mean, the midpoint of minimum and maximum, or nothing.
    include_constant : bool
        If True, add the constant 1 as a hypothesis. Otherwise the decision boundary passes through
        the center.

    Returns
    -------
    Feature
        A weak learner for the option ``weak_learner`` of `fit_real_adaboost`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.weak.feature("midrange")
    Feature(center='midrange', include_constant=True)
    """
    include_constant = check_flag("include_constant", include_constant)
    return Feature(check_choice("center", center, CENTERS), include_constant)


@maker
def hypothesis(train: Train, *, max_abs: float | None = None) -> Hypothesis:
    """Create a weak learner from a function that trains real-valued hypotheses.

    Parameters
    ----------
    train : callable
        Called as ``train(X, y, weight, rng)`` in each round. `X` (n, d) contains NaN for missing
        values, and indices for categories; `y` (n,) contains -1 and +1; `weight` (n,) sums to 1.
        The arrays are read-only. `train` returns a function h, and ``h(X)`` returns one number per
        row. The sign of the number is the predicted class, and the absolute value is the
        confidence.
    max_abs : float, optional
        Upper bound on the absolute value of h, if known. With None, the largest absolute value on
        the training rows is used.

    Returns
    -------
    Hypothesis
        A weak learner for the option ``weak_learner`` of `fit_real_adaboost`.

    Raises
    ------
    TypeError, ValueError
        If `train` is not callable, or `max_abs` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> def along_a_random_line(X, y, weight, rng):
    ...     direction = rng.normal(size=X.shape[1])
    ...     return lambda X: np.tanh(X @ direction)
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 3.0]]), [0, 1, 1, 0]
    >>> lines = pb.weak.hypothesis(along_a_random_line, max_abs=1.0)
    >>> model = pb.fit_real_adaboost(X, y, n_estimators=20, weak_learner=lines, rng=0)
    >>> pb.predict(model, X).tolist()
    [0, 1, 1, 0]
    """
    if not callable(train):
        raise TypeError(f"train: expected a function, got {shown(train)}")
    if max_abs is not None:
        max_abs = check_number("max_abs", max_abs, min_value=0.0, open_min=True)
    return Hypothesis(train, max_abs)
