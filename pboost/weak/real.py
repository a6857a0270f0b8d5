"""Real-valued weak learners: weak hypotheses whose answer is a number, its size the confidence.

What `fit_real_adaboost` takes as ``weak_learner=``; users find it in `pboost.weak`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from pboost.data.columns.columns import lacks_values
from pboost.data.read.table import Takes
from pboost.data.splits import HoldOut
from pboost.data.training import Problem
from pboost.values import check_choice, check_flag, check_number, shown
from pboost.weak.base import Weak, maker

#: How columns are centred before they are weak hypotheses.
Centering: TypeAlias = Literal["mean", "midrange", "zero"]
CENTERS: tuple[Centering, ...] = get_args(Centering)
#: Trains a weak hypothesis: (X, y as -1 and +1, weights of sum 1, rng) to a function of X.
Train: TypeAlias = Callable[..., Callable[[Any], Any]]


class RealLearner(Weak):
    """Weak learners whose hypotheses answer with a real number, for `fit_real_adaboost`."""

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
        """Return the arguments of a builder, checked."""
        if lacks_values(X):
            raise TypeError("X: BinnedColumns hold no values; pass X or SortedColumns")
        return super().read(X, y, sample_weight, two, hold)


@dataclass(frozen=True, slots=True)
class Feature(RealLearner):
    """The columns themselves as weak hypotheses; made by `feature`."""

    kind: ClassVar[str] = "feature"

    center: Centering = "mean"
    include_constant: bool = True


@dataclass(frozen=True, slots=True)
class Hypothesis(RealLearner):
    """Real-valued hypotheses of the user's own; made by `hypothesis`."""

    kind: ClassVar[str] = "hypothesis"

    train: Train
    max_abs: float | None = None


@maker
def feature(center: Centering = "mean", *, include_constant: bool = True) -> Feature:
    """Columns as real-valued weak hypotheses: ``(x[j] - center[j]) / scale[j]``.

    The scale is the largest absolute value over the training rows, so that answers are in [-1, 1]
    there. A missing value answers 0; a category is a column of zeros and ones for each level.
    Boosting them gives a linear model.

    Parameters
    ----------
    center : {"mean", "midrange", "zero"}
        What is subtracted: the weighted mean, the middle between least and largest value, nothing.
    include_constant : bool
        Whether the constant 1 is a hypothesis, too. Without it the decision boundary goes
        through the center.

    Returns
    -------
    Feature
        To be passed as ``weak_learner=`` to `fit_real_adaboost`.

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
    """Real-valued weak hypotheses from a function that trains them.

    Parameters
    ----------
    train : callable
        Called as ``train(X, y, weight, rng)`` in each round, with X (n, d), in which NaN is a
        missing value and categories are the numbers of their levels, and, as float64 (n,), y of -1
        and +1 and weights of sum 1; the arrays cannot be written to. It returns a
        function h, and ``h(X)`` returns a real number for each row: its sign is the answer, its
        size the confidence.
    max_abs : float, optional
        Bound on the absolute value of h, where one is known. None: the largest value on the
        training rows.

    Returns
    -------
    Hypothesis
        To be passed as ``weak_learner=`` to `fit_real_adaboost`.

    Raises
    ------
    TypeError, ValueError
        If `train` cannot be called, or `max_abs` is not above 0.

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
