"""AdaBoost: a chain of weak classifiers whose exits all join."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from pboost.boosting.fit import GraphFit, GraphOptions, Learning
from pboost.data.training import reads_columns
from pboost.growth.step import GROWTHS, Chain, TreeLimits
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
    """Fit AdaBoost: a chain of weak classifiers, each trained on the rows the others get wrong.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, SortedColumns or BinnedColumns
        Features. A test sends rows whose value is missing to the exit that lowers the criterion
        most; where no training row at the node was missing, to the exit of larger reach. A category
        is split by a set of its levels. For weak learners that are functions: rows of anything.
    y : array_like of shape (n,), optional
        Labels. Of more than two values exits have a vote for each, see Notes.
    n_estimators : int
        Greatest number of weak classifiers.
    weak_learner : Weak
        The weak learner, from `pboost.weak`.
    votes : {"domain", "symmetric"}
        "domain": each side of a stump votes with half the log odds of its own class masses
        (real-valued votes). "symmetric": both sides vote with the same size, each for its
        majority (discrete AdaBoost).
    observation : Observation
        How sure answers are, from `pboost.observation`; the exits join whatever they are.
    smoothing : float
        Share of the mass, 0 to 1, that is added to each class mass before the log odds are
        taken. 0 gives the textbook formula; infinite votes are then clipped. Of J > 2 labels it is
        a share of 1/J of the mass.
    learning_rate : float
        Factor in (0, 1] of every vote.
    n_iter_no_change : int, optional
        With `validation`: growth ends after so many rounds without a new least error; default 50.
    callback : callable, optional
        Called as ``callback(step, record)`` after each round with the number of rounds so far
        and a `pboost.growth.step.StepRecord`; returning True stops.
    **options
        Those of `GraphOptions`.

    Returns
    -------
    DecisionGraph
        Its ``record.stop_reason`` says why boosting stopped: all rounds done, certificate 0, or
        no split left that changes the weights.

    Raises
    ------
    ValueError, TypeError
        If the data or an option is not as described; the message names the argument.
    NotImplementedError
        If `validation` is given with weak learners that are functions.
    RuntimeError
        If a function of yours fails, a weak learner or an estimator, or the clock of a
        stopwatch; the message says which weak classifier or round.

    Notes
    -----
    Of J > 2 labels each row has a weight for each label, and stumps are chosen by the sum over the
    labels of what they are chosen by of two (AdaBoost.MH, [2]_, sections 7 and 8): a row takes one
    path, whatever the number of labels, and the label of the largest sum of votes is predicted.
    The certificate bounds the Hamming loss, see `certificate`. Columns are searched by bins, with
    ``search="exact"`` of the weak learner in every cut. This takes stumps, also affine ones, of the
    criterion "kearns_mansour", ``votes="domain"``, and answers that are exact or have a table, such
    as `pboost.observation.adatree2`. With others `fit_one_vs_rest` has a model for each label.

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
    """Return the growth of a chain of two labels."""
    observer = fit.observer(workers)
    if isinstance(observer, SampledObserver) and observer.observation.n_draws == "stopwatch":
        observer = StopwatchObserver(observer, fit.rule)
    return Chain(fit.data, observer, fit.rule, rounds)
