"""AdaBoostR: generic greedy boosting of real-valued weak hypotheses on a chain."""

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
    """The options of `fit_real_adaboost` that other builders have, too."""


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
    """Fit AdaBoostR: boosting of weak hypotheses that answer with real numbers.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame or SortedColumns
        Features, some of which may be missing; for stumps also BinnedColumns. A stump sends rows
        whose value is missing to the side that lowers its criterion most; where no training row
        was missing, to that of larger weight. A column that is a hypothesis answers 0 for them.
    y : array_like of shape (n,), optional
        Labels, any two values.
    n_estimators : int
        Greatest number of weak hypotheses.
    weak_learner : Weak
        From `pboost.weak`: ``stump()`` for confidence-rated stumps, ``feature()`` for the columns
        themselves, of which each round takes that of largest absolute margin, or
        ``hypothesis(train)`` for real-valued functions of your own. What has two sides may take the
        place of a stump: ``affine()``, ``oracle()``, ``from_estimator()``.
    answer_scale : {"share", "log_odds", "sign"}, optional
        For stumps, and what takes their place: what a side answers. "share", the default: the
        difference of the class shares there. "log_odds": half the log odds. "sign": -1 or +1,
        discrete AdaBoost.
    smoothing : float
        Share, 0 to 1, that is added to the weights of right and wrong answers before the log odds
        are taken, and to the class masses of the sides of a stump. With 0 a perfect hypothesis
        would have an infinite vote, which is clipped.
    learning_rate : float
        Factor in (0, 1] of every vote.
    sample_weight : array_like of shape (n,), optional
        Weights >= 0 of the rows; weight k gives the model of k copies of the row.
    rng : None, int, numpy.random.Generator or numpy.random.RandomState
        Passed on to the training function of ``hypothesis(train)``; the others draw nothing.
    n_threads : int or None
        Threads of the search for stumps and columns, -1 for all; None: as many as are worth it. The
        model does not depend on it.
    callback : callable, optional
        Called as ``callback(step, record)`` after each round with the number of rounds so far
        and a `pboost.growth.generic_greedy.RoundRecord`; returning True stops.
    **options
        Those of `RealOptions`.

    Returns
    -------
    DecisionGraph, LinearModel or FunctionEnsemble
        For stumps, columns and functions of your own. The functions of a model take all three;
        a FunctionEnsemble cannot be saved.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described, or a hypothesis answers anything but one
        finite number per row; the message names the argument and the round.

    Notes
    -----
    A round gives h the leverage ``ln((1 + mu) / (1 - mu)) / (2 max|h|)``, with mu the weighted
    mean of ``y h / max|h|``, and multiplies the weights by ``(1 - mu y h / max|h|) / (1 - mu**2)``.
    No exponential loss is minimised, yet it is at most the product of all ``sqrt(1 - mu**2)``.

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
    >>> (model.coefficient > 0).tolist()  # of the first label in sorted order: "high" is class -1
    [False, False]
    """
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    check_instance("weak_learner", Weak, weak_learner)
    if not isinstance(weak_learner, RealLearner):
        check_pair(weak_learner, _EXACT)
        rated = "share" if answer_scale is None else answer_scale
        answer_scale = check_choice("answer_scale", rated, CONFIDENCES)
    elif answer_scale is not None:
        raise ValueError(
            f"answer_scale: expected None, as {weak_learner!r} has its own, got {answer_scale!r}"
        )
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
            "y_proba: expected y with weak.hypothesis(train), whose train(X, y, weight, rng) is "
            "given one label of each row"
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
