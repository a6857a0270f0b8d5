"""Weak classifiers: what a node of a decision graph is.

What a builder takes as ``weak=``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pboost.values import check_integer, shown, uncalled
from pboost.weak.learners import (
    Affine,
    ColumnLearner,
    FromEstimator,
    Linear,
    Oracle,
    RowLearner,
    Separator,
    Stump,
    Weak,
    checked_columns,
)
from pboost.weak.oblique import linear, separator
from pboost.weak.real import Feature, Hypothesis, RealLearner, feature, hypothesis

__all__ = [
    "Affine",
    "ColumnLearner",
    "Feature",
    "FromEstimator",
    "Hypothesis",
    "Linear",
    "Oracle",
    "RealLearner",
    "RowLearner",
    "Separator",
    "Stump",
    "Weak",
    "affine",
    "feature",
    "from_estimator",
    "hypothesis",
    "linear",
    "oracle",
    "separator",
    "stump",
]


def stump(
    criterion: str = "kearns-mansour",
    search: str = "auto",
    *,
    max_bins: int = 256,
    min_weight: float = 0.0,
    min_count: int = 1,
) -> Stump:
    """Decision stumps: ``x[j] <= threshold`` takes one exit, ``x[j] > threshold`` the other.

    Parameters
    ----------
    criterion : {"kearns-mansour", "gini", "entropy", "error"}
        What the split minimises. With class masses L+, L- below and R+, R- above the cut,
        "kearns-mansour" is 2√(L+ L-) + 2√(R+ R-), the exponential loss after the split; the others
        are the Gini, entropy (base 2) and error impurities of the two sides, weighted by their
        masses.
    search : {"auto", "exact", "binned"}
        "exact" tries every cut between two different values; "binned" only the edges of
        `max_bins` bins of about equal weight. "auto" is exact below 1e7 rows.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.
    min_weight : float
        Least share, 0 to 0.5, of the node's weight on either side of the cut.
    min_count : int
        Least number of training rows on either side.

    Returns
    -------
    Stump
        To be passed as ``weak=`` to a builder.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    Among splits whose criterion agrees to 1e-12 of the node's mass, the lowest feature and then
    the lowest threshold is taken. The threshold lies midway between the two neighbouring values.

    Examples
    --------
    >>> import pboost as pb
    >>> pb.weak.stump("gini", min_count=5)
    Stump(criterion='gini', search='auto', max_bins=256, min_weight=0.0, min_count=5)
    """
    return Stump(*checked_columns(criterion, search, max_bins, min_weight, min_count))


def affine(
    criterion: str = "kearns-mansour",
    search: str = "auto",
    *,
    directions: int = 180,
    terms: int = 2,
    seed: int = 0,
    max_bins: int = 256,
    min_weight: float = 0.0,
    min_count: int = 1,
) -> Affine:
    """Signs of affine functions: a sum of columns, each times a coefficient, and a threshold.

    The threshold is the best one, as that of a stump is. The directions, which are the
    coefficients, are the same at all nodes of a model:

    * Two columns: the grid of the angles ``k * pi / directions``, k = 0, 1, …, with the
      coefficients (cos, sin). The columns must be in comparable units.
    * More columns: the columns themselves, and `directions` random sums of `terms` different
      columns. Their coefficients are standard normal, brought to length 1, and then divided by the
      standard deviation of the column, so that units do not matter. Constant columns are not drawn.
    * One column: the column.

    Parameters
    ----------
    criterion : {"kearns-mansour", "gini", "entropy", "error"}
        What the split minimises, see `stump`.
    search : {"auto", "exact", "binned"}
        See `stump`. "auto" is exact while rows times `directions` are below 1e8.
    directions : int
        Number of directions, at least 1. An even number of a grid contains both columns.
    terms : int
        Number of columns in a random sum, at least 2; all, where there are not as many. Not used
        with two columns.
    seed : int
        Seed, at least 0, of the random directions; equal seeds draw equal directions for columns
        of equal standard deviations.
    max_bins : int
        Number of bins, 2 to 256. It does not change what the exact search finds.
    min_weight : float
        Least share, 0 to 0.5, of the node's weight on either side of the cut.
    min_count : int
        Least number of training rows on either side.

    Returns
    -------
    Affine
        To be passed as ``weak=`` to a builder, which takes X as a matrix, a data frame or
        `SortedColumns`, whose own order is of no use here.

    Raises
    ------
    ValueError, TypeError
        If an option is unknown or out of range.

    Notes
    -----
    An affine weak classifier is a stump on a derived column. Training takes the time and memory
    that stumps take on as many columns as there are directions: 5 bytes per row and direction where
    the search is exact, 1 where it is binned. A model keeps the directions that its nodes use, as
    its ``inputs``, and at a prediction each is made where a node compares it.

    References
    ----------
    .. [1] E. Grossmann, "AdaTree 2: boosting to build decision trees, or improving AdaTree with
       soft splitting rules" (2004), section 5: two columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 0.0], [2.0, 1.0]])
    >>> weak = pb.weak.affine(directions=4)
    >>> model = pb.fit_boosted_tree(X, [0, 0, 1, 1], nodes=1, weak=weak)
    >>> print(pb.describe(model).splitlines()[-1])
    node 0: -0.7071*x[0] + 0.7071*x[1] <= 0: vote +4.2587, out; else vote -4.2587, out
    """
    return Affine(
        *checked_columns(criterion, search, max_bins, min_weight, min_count),
        check_integer("directions", directions, least=1),
        check_integer("terms", terms, least=2),
        check_integer("seed", seed, least=0),
    )


def oracle(train: Callable[..., Callable[..., Any]]) -> Oracle:
    """Your own weak learner, whose classifiers may answer differently each time they are asked.

    Parameters
    ----------
    train : callable
        ``train(X, y, weight, rng)`` returns a weak classifier, a function ``answer(X, rng)``. X
        holds rows in the type and order in which the builder was given them, y (n,) is -1 or +1,
        weight (n,) is positive and sums to 1, rng is a ``numpy.random.Generator``. `answer`
        returns -1 or +1 for each row, (n,). Rows without weight at a node are left out.

    Returns
    -------
    Oracle
        To be passed as ``weak=`` to a builder. X may then be an array of any dtype and of any
        number of dimensions, or a data frame; what it holds is not checked.

    Raises
    ------
    TypeError
        If `train` is not a function.

    Notes
    -----
    With ``observation=pboost.observation.sampled()`` a classifier is asked again and again, to
    estimate how likely its answers are. With any other it is asked once, in training, and that
    answer is taken for the side on which the row lies; where it is the same for all rows, there
    is no split.

    Errors in training give the number of the weak classifier, counted from 0 in the order in which
    they were trained, those that are no nodes in the end included; errors at prediction give the
    node. The generators derive from the `rng` of the builder. Predictions ask with the generator
    ``numpy.random.default_rng(node)``, and so give the same for the same X.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       arXiv:cs/0607110, section 2.

    Examples
    --------
    A coin that errs once in five times, whatever it is asked:

    >>> import numpy as np
    >>> import pboost as pb
    >>> def train(X, y, weight, rng):
    ...     def answer(X, rng):
    ...         return np.where((X[:, 0] > 0.5) ^ (rng.random(len(X)) < 0.2), 1, -1)
    ...     return answer
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = pb.fit_adaboost(X, X[:, 0] > 0.5, rounds=9, rng=0, weak=pb.weak.oracle(train),
    ...                         observation=pb.observation.sampled())
    >>> model.n_nodes
    9
    """
    if not callable(train):
        raise TypeError(f"train: expected a function (X, y, weight, rng), got {shown(train)}")
    return Oracle(train)


def from_estimator(estimator: Any) -> FromEstimator:
    """Any estimator with ``fit(X, y, sample_weight=...)`` and ``predict_proba(X)`` as weak learner.

    Parameters
    ----------
    estimator : object
        Copied (``copy.deepcopy``) and fitted for each node; the object itself is never fitted.
        It is given the labels -1 and +1 and weights of mean 1. If it draws random numbers, set its
        own seed: pboost leaves it as it is.

    Returns
    -------
    FromEstimator
        To be passed as ``weak=`` to a builder; see `oracle` for what X may be.

    Raises
    ------
    TypeError
        If a method is missing, or it is a class.

    Notes
    -----
    The side of a row is the more probable class, +1 where the probability of +1 is above 0.5. With
    ``observation=pboost.observation.sampled()`` answers are drawn with the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> import pboost as pb
    >>> class Centroids:
    ...     def fit(self, X, y, sample_weight):
    ...         low, high = (np.average(X[y == k], axis=0, weights=sample_weight[y == k])
    ...                      for k in (-1, 1))
    ...         self.middle, self.direction = (low + high) / 2, high - low
    ...     def predict_proba(self, X):
    ...         p = 1 / (1 + np.exp(-(X - self.middle) @ self.direction))
    ...         return np.stack([1 - p, p], axis=1)
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [3.0, 3.0], [2.0, 3.0]])
    >>> weak = pb.weak.from_estimator(Centroids())
    >>> model = pb.fit_boosted_tree(X, [0, 0, 0, 1, 1], nodes=3, weak=weak)
    >>> pb.predict(model, X).tolist()
    [0, 0, 0, 1, 1]
    """
    for name in ("fit", "predict_proba"):
        if not callable(getattr(estimator, name, None)):
            raise TypeError(f"estimator: expected an object with {name}(), got {shown(estimator)}")
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator: expected an object with fit() and predict_proba(), got {shown(estimator)}"
            + uncalled(estimator)
        )
    return FromEstimator(estimator)
