"""Weak learners that are user functions or estimators."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pboost.data.node_inputs.functions import Oracles, ask, probability
from pboost.data.read.convert import Features, RowTable
from pboost.data.resampling import HoldOut
from pboost.data.training_data import Problem, TrainingData, boosted_problem
from pboost.threads import Workers
from pboost.values import FloatArray, IntArray, draw_key, hint_missing_call, shown
from pboost.weak.base import NO_WEIGHT, SideCut, SideSearch, Weak, Weights, maker

Counts: TypeAlias = NDArray[np.uint16]
#: Calls a weak classifier with (counts to increment, first draw, end of the draws, fixed-point
#: weights) and returns the weights (draw, class) of the rows that took exit 1.
Invoke: TypeAlias = Callable[[Counts, int, int, NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class OracleCut(SideCut):
    """A trained weak classifier, with the sides of the rows unless they are sampled.

    Attributes
    ----------
    function : callable or fitted estimator
        The classifier.
    generator : numpy.random.Generator
        Generator that is passed to the classifier.
    """

    function: Any
    generator: np.random.Generator


class OracleSearch(SideSearch):
    """Search that trains a user's weak learner.

    Parameters
    ----------
    data : TrainingData
        Training rows and classes.
    weak : RowLearner
        The weak learner.
    workers : Workers
        Threads of the weight update.
    generator : numpy.random.Generator
        Seeds the generators that are passed to the learner.

    Attributes
    ----------
    queries_oracle : bool
        Whether a trained classifier is called once to get the sides of the rows. If False, an
        observation model samples it instead.
    """

    queries_oracle = True
    is_function = True

    def __init__(
        self, data: TrainingData, weak: RowLearner, workers: Workers, generator: np.random.Generator
    ) -> None:
        super().__init__(data, weak, workers)
        assert isinstance(data.problem.columns, RowTable)
        self.source, self.is_oracle = data.problem.columns, weak.is_oracle
        self._key = draw_key(generator)
        self._functions: list[Any] = []
        self.model_columns = self._model_columns

    def best(self, weights: Weights) -> OracleCut | None:
        """Train a weak classifier; return None if all weight is on one side."""
        if min(weights.masses) <= 0:
            return None
        number = len(self._functions)
        training, asking = (
            np.random.default_rng(np.random.SeedSequence(self._key, spawn_key=(number, k)))
            for k in (0, 1)
        )
        rows = self.in_order(weights.fixed > 0)
        y = np.where(rows < self.data.n_negative, -1, 1)
        share = weights.real[rows] / weights.real[rows].sum()
        X = self.source.take(self.data.given_rows[rows])
        function = self.weak.trained(X, y, share, training, self.where(number))
        self._functions.append(function)
        if not self.queries_oracle:
            codes = np.empty(0, dtype=np.uint8)
            return OracleCut(number, ((0.0, 0.0), (0.0, 0.0)), codes, function, asking)
        codes = self.codes(function, number, asking, weights)
        masses = self.masses(codes, weights)
        return None if masses is None else OracleCut(number, masses, codes, function, asking)

    def in_order(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return the chosen rows in the order of the user's X."""
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(self.data.given_rows[rows], kind="stable")]

    def asked(self, weights: Weights, number: int) -> tuple[NDArray[np.intp], Any, str]:
        """Return the rows that reach the node, their X, and the name for error messages."""
        rows = self.in_order(weights.real > NO_WEIGHT)
        return rows, self.source.take(self.data.given_rows[rows]), self.where(number)

    def where(self, number: int) -> str:
        """Return the name of a weak classifier in error messages."""
        return f"weak_learner: weak classifier {number}"

    def codes(
        self, function: Any, number: int, generator: np.random.Generator, weights: Weights
    ) -> NDArray[np.uint8]:
        """Return the side of each row, 0 for rows that do not reach the node."""
        rows, X, where = self.asked(weights, number)
        if self.is_oracle:
            above = ask(function, X, len(rows), generator, where) > 0
        else:
            above = probability(function, X, len(rows), where) > 0.5
        codes = np.zeros(self.data.n_rows, dtype=np.uint8)
        codes[rows] = above
        return codes

    def probabilities(self, cut: OracleCut, weights: Weights) -> FloatArray:
        """Return the estimator's probability of +1 for each row."""
        rows, X, where = self.asked(weights, cut.feature)
        above = np.zeros(self.data.n_rows)
        above[rows] = probability(cut.function, X, len(rows), where)
        return above

    def invoking(self, cut: OracleCut, weights: Weights) -> Invoke:
        """Return a function that repeatedly queries an oracle about all rows at the node."""
        (rows, X, where), middle = self.asked(weights, cut.feature), self.data.n_negative

        def invoke(
            counts: Counts, first: int, last: int, fixed: NDArray[np.int64]
        ) -> NDArray[np.int64]:
            mass = np.empty((last - first, 2), dtype=np.int64)
            for r in range(last - first):
                above = rows[ask(cut.function, X, len(rows), cut.generator, where) > 0]
                counts[above] += 1
                negative = above[above < middle]
                mass[r] = fixed[negative].sum(), fixed[above].sum() - fixed[negative].sum()
            return mass

        return invoke

    def thresholds(self, cuts: Sequence[OracleCut]) -> FloatArray:
        """Return the threshold: 0 for values of -1 and +1, 1/2 for probabilities."""
        return np.full(len(cuts), 0.0 if self.is_oracle else 0.5)

    def _model_columns(self, feature: IntArray) -> dict[str, Any]:
        """Return the fields of a model in which node i calls function i."""
        functions = tuple(self._functions[number] for number in feature)
        return {
            "feature": np.arange(len(feature), dtype=np.int32),
            "inputs": Oracles(functions, self.is_oracle, self.source.row_shape),
        }


@dataclass(frozen=True, slots=True)
class RowLearner(Weak):
    """Base class of the weak learners that receive rows of X unchanged."""

    searches: ClassVar = OracleSearch
    has_answers: ClassVar[bool] = True
    is_oracle: ClassVar[bool] = False

    def read(
        self,
        X: object,
        y: object,
        sample_weight: ArrayLike | None,
        two: str | None,
        hold: HoldOut | None = None,
    ) -> Problem:
        """Return the checked arguments of a fit function."""
        if isinstance(X, Features) and X.table is not None:
            raise ValueError(
                "categorical_features: expected None with a weak learner that is a function or an "
                "estimator, which receives the rows of X unchanged"
            )
        return boosted_problem(X, y, sample_weight, two, as_given=True, hold=hold)

    def arrange(self, problem: Problem, n_threads: int | None) -> TrainingData:
        """Return the training data in the form that the search reads."""
        return problem.as_given()

    def trained(self, X: object, y: object, weight: FloatArray, rng: object, where: str) -> Any:
        """Train a weak classifier on rows whose weights sum to 1."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Oracle(RowLearner):
    """A weak learner with a user's training function; made by `oracle`."""

    kind: ClassVar[str] = "oracle"
    is_oracle: ClassVar[bool] = True

    train: Callable[..., Callable[..., Any]]

    def trained(self, X: object, y: object, weight: FloatArray, rng: object, where: str) -> Any:
        """Train a weak classifier on rows whose weights sum to 1."""
        try:
            answer = self.train(X, y, weight, rng)
        except Exception as error:
            raise RuntimeError(f"{where}: train() failed: {error!r}") from error
        if not callable(answer):
            raise TypeError(f"{where}: train(): expected a function as the result, got {answer!r}")
        return answer


@dataclass(frozen=True, slots=True)
class FromEstimator(RowLearner):
    """An estimator with ``fit`` and ``predict_proba``; made by `from_estimator`."""

    kind: ClassVar[str] = "from_estimator"

    estimator: Any

    def settings(self) -> dict[str, Any]:
        """Return the options as plain values, for the model's training record."""
        return {"kind": self.kind, "estimator": type(self.estimator).__qualname__}

    def trained(self, X: object, y: object, weight: FloatArray, rng: object, where: str) -> Any:
        """Train a weak classifier on rows whose weights sum to 1."""
        estimator = copy.deepcopy(self.estimator)
        try:
            estimator.fit(X, y, sample_weight=weight * len(weight))
        except Exception as error:
            raise RuntimeError(f"{where}: fit() failed: {error!r}") from error
        return estimator


@maker
def oracle(train: Callable[..., Callable[..., Any]]) -> Oracle:
    """Create a weak learner from a training function, whose classifiers may be random.

    Parameters
    ----------
    train : callable
        Called as ``train(X, y, weight, rng)`` at each node. `X` contains rows of the training data
        in the original type and order, `y` (n,) contains -1 and +1, `weight` (n,) is positive and
        sums to 1, and `rng` is a ``numpy.random.Generator``. It returns a weak classifier: a
        function ``answer(X, rng)`` that returns -1 or +1 for each row. Rows without weight at the
        node are not passed.

    Returns
    -------
    Oracle
        A weak learner for the option ``weak_learner`` of a fit function. X may be an array of any
        dtype and number of dimensions, or a data frame; its values are not checked.

    Raises
    ------
    TypeError
        If `train` is not callable.

    Notes
    -----
    With ``observation=pboost.observation.sampled()`` each classifier is called repeatedly to
    estimate its exit probabilities. With any other observation model, it is called once in
    training, and its output is the side of the row. If all outputs are equal, there is no split.

    Error messages in training contain the number of the weak classifier, counted from 0 in the
    order of training, including classifiers that did not become nodes. Error messages in prediction
    contain the number of the node. The generators are created from the `rng` of the fit function.
    Predictions use the generator ``numpy.random.default_rng(node)``, so they are deterministic for
    a given X.

    References
    ----------
    .. [1] E. Grossmann, "A theory of probabilistic boosting, decision trees and matryoshki",
       arXiv:cs/0607110, section 2.

    Examples
    --------
    An oracle that returns the wrong class with probability 0.2:

    >>> import numpy as np
    >>> import pboost as pb
    >>> def train(X, y, weight, rng):
    ...     def answer(X, rng):
    ...         return np.where((X[:, 0] > 0.5) ^ (rng.random(len(X)) < 0.2), 1, -1)
    ...     return answer
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = pb.fit_adaboost(
    ...     X, X[:, 0] > 0.5, n_estimators=9, rng=0, weak_learner=pb.weak.oracle(train),
    ...     observation=pb.observation.sampled())
    >>> model.n_nodes
    9
    """
    if not callable(train):
        raise TypeError(f"train: expected a function (X, y, weight, rng), got {shown(train)}")
    return Oracle(train)


@maker
def from_estimator(estimator: object) -> FromEstimator:
    """Create a weak learner from an estimator with ``fit`` and ``predict_proba``.

    Parameters
    ----------
    estimator : object
        Object with ``fit(X, y, sample_weight=...)`` and ``predict_proba(X)``. It is copied
        (``copy.deepcopy``) and fitted at each node, with the classes -1 and +1 and weights of mean
        1. If the estimator is random, set a seed.

    Returns
    -------
    FromEstimator
        A weak learner for the option ``weak_learner`` of a fit function; see `oracle` for the
        accepted types of X.

    Raises
    ------
    TypeError
        If a method is missing, or if `estimator` is a class instead of an instance.

    Notes
    -----
    A row takes exit 1 if the probability of +1 is above 0.5. With
    ``observation=pboost.observation.sampled()`` exits are drawn with these probabilities.

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
    >>> model = pb.fit_boosted_tree(X, [0, 0, 0, 1, 1], max_nodes=3, weak_learner=weak)
    >>> pb.predict(model, X).tolist()
    [0, 0, 0, 1, 1]
    """
    for name in ("fit", "predict_proba"):
        if not callable(getattr(estimator, name, None)):
            raise TypeError(f"estimator: expected an object with {name}(), got {shown(estimator)}")
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator: expected an object with fit() and predict_proba(), got {shown(estimator)}"
            + hint_missing_call(estimator)
        )
    return FromEstimator(estimator)
