"""AdaBoost: a chain of weak classifiers."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from pboost.boosting.graph_fit import GraphFit, GraphOptions, Learning
from pboost.data.training_data import reads_columns
from pboost.growth.graph_growth import GROWTHS, Chain, TreeLimits
from pboost.models.graph import DecisionGraph
from pboost.observation.answers import Exact, Observation
from pboost.observation.sampling import SampledObserver, StopwatchObserver
from pboost.threads import Workers
from pboost.values import VoteKind, check_integer, vote_rule
from pboost.values.options import builder
from pboost.weak.base import Weak
from pboost.weak.stump_search import Stump, stump_search

_DEFAULT_WEAK = Stump()
_EXACT = Exact()


@reads_columns(stump_search)
@builder
def fit_adaboost(
    X: object,
    y: ArrayLike | None = None,
    *,
    n_estimators: int = 200,
    weak_learner: Weak = _DEFAULT_WEAK,
    votes: VoteKind = "domain",
    observation: Observation = _EXACT,
    smoothing: float = 1e-4,
    learning_rate: float = 1.0,
    **options: Unpack[GraphOptions],
) -> DecisionGraph:
    """Fit an AdaBoost classifier.

    Each weak classifier is trained with larger weights on the rows that earlier weak classifiers
    misclassify.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. Missing values go to the exit that gives the better split, or to the exit with
        more training weight if the node had no missing values in training. Categorical features are
        split by a set of categories. With a weak learner that is a function, X can be any sequence
        of rows.
    y : array_like of shape (n,), optional
        Class labels. With more than two classes see Notes.
    n_estimators : int
        Maximum number of weak classifiers.
    weak_learner : Weak
        Weak learner from `pboost.weak`.
    votes : {"domain", "symmetric"}
        "domain": each side of a stump votes with half the log odds of its class weights
        (real-valued votes). "symmetric": both sides have votes of equal size for their majority
        class (discrete AdaBoost).
    observation : Observation
        Observation model from `pboost.observation` for uncertain split outcomes.
    smoothing : float
        Fraction of the total weight, from 0 to 1, that is added to each class weight before the log
        odds are computed. With J > 2 classes it is divided by J. 0 gives the textbook formula, with
        infinite votes clipped.
    learning_rate : float
        Factor in (0, 1] by which each vote is multiplied.
    n_iter_no_change : int, optional
        With `validation`: stop after this number of rounds without improvement. Default: 50.
    callback : callable, optional
        Called as ``callback(step, record)`` after each round with the number of rounds so far and a
        `pboost.growth.graph_growth.StepRecord`. Return True to stop.
    **options
        See `GraphOptions`.

    Returns
    -------
    DecisionGraph
        ``record.stop_reason`` is the reason why boosting stopped: all rounds are done, the
        certificate is 0, or no split changes the weights.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is invalid; the message names the argument.
    NotImplementedError
        If `validation` is given and the weak learner is a function.
    RuntimeError
        If a custom weak learner, an estimator or the clock of a stopwatch fails; the message gives
        the weak classifier or round.

    Notes
    -----
    The sum of many votes is overconfident as half the log odds. `predict_proba` therefore divides
    decision values by ``model.temperature``. With L = -ln(certificate), it is ``1 + L / 2`` for two
    classes, and ``1 + 0.3 max(L - 1, 0)`` for more classes, whose softmax is less confident. It is
    1 for a single stump. Predictions and decision values do not depend on it. Base learners of
    ensembles have the temperature 1. To get probabilities without the temperature, use
    ``dataclasses.replace(model, temperature=1.0)``; to calibrate them on other rows, `calibrate`.

    With more than two classes, each row has one weight per class, and stumps minimize the sum of
    the binary criteria over the classes (AdaBoost.MH, [2]_, sections 7 and 8). Each stump has one
    vote per class, and the class with the largest sum of votes is predicted. The certificate is an
    upper bound on the Hamming loss, see `certificate`. Splits are searched on bins, or at all
    thresholds if the weak learner has ``search="exact"``. The weak learner must be a stump or
    affine stump with the criterion "kearns_mansour", with ``votes="domain"``, and the observation
    model must be exact or have a table, such as `pboost.observation.adatree2`. For other options
    use `fit_one_vs_rest`.

    References
    ----------
    .. [1] Y. Freund and R. E. Schapire, "A decision-theoretic generalization of on-line learning
       and an application to boosting", J. Comput. Syst. Sci. 55 (1997).
    .. [2] R. E. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated
       predictions", Machine Learning 37 (1999), sections 4.1 and 4.2, 7 and 8.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> y = np.array(["a", "b", "b", "a", "a", "a"])
    >>> model = pb.fit_adaboost(X, y, n_estimators=3)
    >>> pb.predict(model, X).tolist()
    ['a', 'b', 'b', 'a', 'a', 'a']
    """
    n_estimators = check_integer("n_estimators", n_estimators, min_value=1)
    rule = vote_rule(votes, smoothing, learning_rate)
    two = "" if votes == "domain" else f"with votes={votes!r}"
    fit = GraphFit(X, y, options, Learning(weak_learner, observation, rule), two=two)
    settings = fit.settings("fit_adaboost", n_estimators=n_estimators, votes=votes)
    with fit.workers() as workers, fit.progress_callback(n_estimators, "rounds") as on_step:
        stumps = fit.label_trees(workers, n_estimators, TreeLimits(1, 1, GROWTHS[0], -1.0))
        return fit.grown(stumps or _chain(fit, n_estimators, workers), settings, on_step)


def _chain(fit: GraphFit, rounds: int, workers: Workers) -> Chain:
    """Return the object that grows a chain for two classes."""
    observer = fit.observer(workers)
    if isinstance(observer, SampledObserver) and observer.observation.n_draws == "stopwatch":
        observer = StopwatchObserver(observer, fit.rule)
    return Chain(fit.data, observer, fit.rule, rounds)
