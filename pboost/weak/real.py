"""Real-valued weak learners: weak hypotheses whose answer is a number, its size the confidence.

What `fit_adaboost_real` takes as ``weak=``; users find it in `pboost.weak`.
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
    """Weak learners whose hypotheses answer with a real number, for `fit_adaboost_real`."""

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
    constant: bool = True


@dataclass(frozen=True, slots=True)
class Hypothesis(RealLearner):
    """Real-valued hypotheses of the user's own; made by `hypothesis`."""

    kind: ClassVar[str] = "hypothesis"

    train: Train
    h_max: float | None = None


@maker
def feature(center: Centering = "mean", *, constant: bool = True) -> Feature:
    """Columns as real-valued weak hypotheses: ``(x[j] - center[j]) / scale[j]``.

    The scale is the largest absolute value over the training rows, so that answers are in [-1, 1]
    there. A missing value answers 0; a category is a column of zeros and ones for each level.
    Boosting them gives a linear model.

    Parameters
    ----------
    center : {"mean", "midrange", "zero"}
        What is subtracted: the weighted mean, the middle between least and largest value, nothing.
    constant : bool
        Whether the constant 1 is a hypothesis, too. Without it the decision boundary goes
        through the center.

    Returns
    -------
    Feature
        To be passed as ``weak=`` to `fit_adaboost_real`.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.weak.feature("midrange")
    Feature(center='midrange', constant=True)
    """
    constant = check_flag("constant", constant)
    return Feature(check_choice("center", center, CENTERS), constant)


@maker
def hypothesis(train: Train, *, h_max: float | None = None) -> Hypothesis:
    """Real-valued weak hypotheses from a function that trains them.

    Parameters
    ----------
    train : callable
        Called as ``train(X, y, weight, rng)`` in each round, with X (n, d), in which NaN is a
        missing value and categories are the numbers of their levels, and, as float64 (n,), y of -1
        and +1 and weights of sum 1; the arrays cannot be written to. It returns a
        function h, and ``h(X)`` returns a real number for each row: its sign is the answer, its
        size the confidence.
    h_max : float, optional
        Bound on the absolute value of h, where one is known. None: the largest value on the
        training rows.

    Returns
    -------
    Hypothesis
        To be passed as ``weak=`` to `fit_adaboost_real`.

    Raises
    ------
    TypeError, ValueError
        If `train` cannot be called, or `h_max` is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> def along_a_random_line(X, y, weight, rng):
    ...     direction = rng.normal(size=X.shape[1])
    ...     return lambda X: np.tanh(X @ direction)
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 3.0]]), [0, 1, 1, 0]
    >>> lines = pb.weak.hypothesis(along_a_random_line, h_max=1.0)
    >>> model = pb.fit_adaboost_real(X, y, rounds=20, weak=lines, rng=0)
    >>> pb.predict(model, X).tolist()
    [0, 1, 1, 0]
    """
    if not callable(train):
        raise TypeError(f"train: expected a function, got {shown(train)}")
    if h_max is not None:
        h_max = check_number("h_max", h_max, least=0.0, open_least=True)
    return Hypothesis(train, h_max)
