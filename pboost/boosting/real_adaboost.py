"""AdaBoostR: boosting of real-valued weak hypotheses."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from pboost.data.row_source import RowOptions, rows_here
from pboost.growth.real_chain import (
    CONFIDENCES,
    AnswerScale,
    RealChain,
    StumpChain,
    fit_columns,
    fit_hypotheses,
)
from pboost.models.base import TwoClassModel
from pboost.observation.answers import Exact, check_pair
from pboost.threads import Workers, resolve_threads
from pboost.values import (
    as_generator,
    bar_of,
    check_choice,
    check_instance,
    check_integer,
    vote_rule,
)
from pboost.values.options import FitOptions, builder
from pboost.weak.base import Weak
from pboost.weak.real import Feature, Hypothesis, RealLearner
from pboost.weak.stump_search import Stump


class RealOptions(RowOptions, FitOptions, total=False):
    """The options of `fit_real_adaboost` that other functions also have."""


_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@builder
def fit_real_adaboost(
    X: object,
    y: ArrayLike | None = None,
    *,
    n_estimators: int = 400,
    weak_learner: Weak = _DEFAULT_WEAK,
    answer_scale: AnswerScale | None = None,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    **options: Unpack[RealOptions],
) -> TwoClassModel:
    """Fit real AdaBoost (AdaBoostR): boosting of real-valued weak hypotheses.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features; with stumps also BinnedColumns. A stump sends missing values to the side that
        gives the better split, or to the side with more weight if no value was missing in training.
        With ``weak.feature()`` the output for a missing value is 0.
    y : array_like of shape (n,), optional
        Class labels with two distinct values.
    n_estimators : int
        Maximum number of weak hypotheses.
    weak_learner : Weak
        Weak learner from `pboost.weak`: ``stump()`` for confidence-rated stumps, ``feature()`` for
        the features themselves, or ``hypothesis(train)`` for custom real-valued functions.
        ``affine()``, ``oracle()`` and ``from_estimator()`` are used like a stump.
    answer_scale : {"share", "log_odds", "sign"}, optional
        Output of each side of a stump: the difference of its class shares ("share", the default),
        half the log odds ("log_odds"), or -1 and +1 ("sign", discrete AdaBoost). It must be None
        with ``feature()`` and ``hypothesis(train)``.
    smoothing : float
        Fraction from 0 to 1 that is added to the weights of correct and wrong outputs, and to the
        class weights of a stump, before the log odds are computed. With 0, infinite votes of
        perfect hypotheses are clipped.
    learning_rate : float
        Factor in (0, 1] by which each vote is multiplied.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows. A row with weight k counts like k copies of the row.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Passed to the training function of ``hypothesis(train)``; not used otherwise.
    n_threads : int or None
        Number of threads for the search, -1 for all. None selects the number by the amount of work.
        The model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each round with the number of rounds so far and a
        `pboost.growth.generic_greedy.RoundRecord`. Return True to stop.
    **options
        See `RealOptions`.

    Returns
    -------
    DecisionGraph, LinearModel or FunctionEnsemble
        The model for stumps, features or custom functions, respectively. A FunctionEnsemble cannot
        be saved.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid, or a hypothesis does not return one finite number per
        row; the message names the argument and the round.

    Notes
    -----
    In each round the hypothesis h gets the leverage ``ln((1 + mu) / (1 - mu)) / (2 max|h|)``, where
    mu is the weighted mean of ``y h / max|h|``. The weights are multiplied by ``(1 - mu y h /
    max|h|) / (1 - mu**2)``. The exponential loss is not minimized directly, but it is at most the
    product of all ``sqrt(1 - mu**2)``.

    References
    ----------
    .. [1] C. Henry, R. Nock and F. Nielsen, "Real boosting à la carte with an application to
       boosting oblique decision trees", IJCAI (2007).
    .. [2] R. Nock and F. Nielsen, "A real generalization of discrete AdaBoost", ECAI (2006).

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0], [3.0, 2.0]])
    >>> y = ["low", "high", "low", "high"]
    >>> model = pb.fit_real_adaboost(X, y, n_estimators=50, weak_learner=pb.weak.feature())
    >>> pb.predict(model, X).tolist()
    ['low', 'high', 'low', 'high']
    >>> (model.coefficient > 0).tolist()  # "high" is class -1, the first in sorted order
    [False, False]
    """
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    check_instance("weak_learner", Weak, weak_learner)
    if not isinstance(weak_learner, RealLearner):
        check_pair(weak_learner, _EXACT)
        rated = "share" if answer_scale is None else answer_scale
        answer_scale = check_choice("answer_scale", rated, CONFIDENCES)
    elif answer_scale is not None:
        raise ValueError(f"answer_scale: expected None with {weak_learner!r}, got {answer_scale!r}")
    rule = vote_rule("domain", smoothing, learning_rate)
    generator, n_threads = as_generator(options["rng"]), options["n_threads"]
    settings = {
        "builder": "fit_real_adaboost",
        "n_estimators": n_estimators,
        "answer_scale": answer_scale,
        "smoothing": rule.smoothing,
        "learning_rate": rule.learning_rate,
        "weak_learner": weak_learner.settings(),
    }
    if isinstance(weak_learner, Hypothesis):
        resolve_threads(n_threads, 0)
    if isinstance(weak_learner, Hypothesis) and options["y_proba"] is not None:
        raise ValueError(
            "y_proba: expected None with weak.hypothesis(train), got probabilities; pass y, since "
            "train(X, y, weight, rng) needs one class label per row"
        )
    X, y, sample_weight = rows_here("fit_real_adaboost", X, y, options)
    problem = weak_learner.read(X, y, sample_weight, "")
    with bar_of(options)(n_estimators, "rounds") as on_step:
        if isinstance(weak_learner, Feature | Hypothesis):
            real = RealChain(problem, rule, n_estimators, on_step)
            if isinstance(weak_learner, Hypothesis):
                return fit_hypotheses(real, weak_learner, generator, settings)
            with Workers(n_threads, real.values.size) as workers:
                return fit_columns(real, weak_learner, workers, settings)
        data = weak_learner.arrange(problem, n_threads)
        with Workers(n_threads, data.cells) as workers:
            observer = _EXACT.bind(data, weak_learner, workers, generator)
            chain = StumpChain(data, observer, rule, answer_scale or "share")
            return chain.model(settings, chain.grow(n_estimators, on_step))
