"""Select models by their prediction cost, and fit models within a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, takewhile
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import pboost as pb
from pboost.sklearn.base import Estimator, Regressor, Scored
from pboost.sklearn.parameters import refusing
from pboost.values import Array, FloatArray, check_number, shown

#: Default budget: mean number of comparisons per row.
USUAL = 50.0


def cost_scorer(estimator: object, X: object, y: object = None) -> float:
    """Return the negative mean number of comparisons per row for use as a scorer.

    Pass this function as ``scoring=``, together with a score of the predictions:
    ``scoring={"score": "neg_log_loss", "cost": cost_scorer}``.

    Parameters
    ----------
    estimator : estimator of pboost.sklearn, or Pipeline that ends with one
        A fitted estimator.
    X : array-like or data frame of shape (n_samples, n_features)
        Rows to predict.
    y : array-like of shape (n_samples,), default=None
        Ignored, because the cost does not depend on the target.

    Returns
    -------
    float
        Minus the mean of `pboost.prediction_cost`. With early exits, only the comparisons before
        the exit are counted.

    Raises
    ------
    TypeError
        If `estimator` is not an estimator of pboost.sklearn.
    sklearn.exceptions.NotFittedError
        If `estimator` is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pboost.sklearn import AdaBoostClassifier, cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> cost_scorer(AdaBoostClassifier(n_estimators=9).fit(X, y), X)
    -9.0
    """
    if isinstance(estimator, Pipeline):
        check_is_fitted(estimator)
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if not isinstance(estimator, Estimator):
        raise TypeError(
            "estimator: expected an estimator of pboost.sklearn, or a Pipeline that ends with one, "
            f"got {shown(estimator)}"
        )
    X = estimator._rows(X)  # also checks that the estimator is fitted
    return -float(np.mean(pb.prediction_cost(estimator.model_, X)))


def cheapest_within_standard_error(
    score: str = "score", cost: str = "cost", *, standard_errors: float = 1.0
) -> Callable[[Mapping[str, Array]], int]:
    """Return a ``refit=`` function that selects the cheapest candidate close to the best score.

    Parameters
    ----------
    score, cost : str
        Names of two scorers of the search. Higher is better for both; `cost` is the name of
        `cost_scorer`.
    standard_errors : float
        A candidate is eligible if its mean score is at most this many standard errors below the
        best. The standard error is computed from the folds of the best candidate. With 0, only
        candidates with the best score are eligible.

    Returns
    -------
    callable
        ``refit(cv_results)``, which returns the index of the selected candidate.

    Raises
    ------
    ValueError
        If the results of the search do not contain one of the scores.

    References
    ----------
    .. [1] L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and
       regression trees", Wadsworth (1984), section 3.4.3 (the one-standard-error rule).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pboost.sklearn import AdaBoostClassifier, cost_scorer, cheapest_within_standard_error
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(
    ...     AdaBoostClassifier(),
    ...     {"n_estimators": [10, 20, 100, 200]},
    ...     scoring={"score": "accuracy", "cost": cost_scorer},
    ...     refit=cheapest_within_standard_error(),
    ... )
    >>> search.fit(X, y).best_params_
    {'n_estimators': 10}
    """
    error = check_number("standard_errors", standard_errors, min_value=0.0)
    return partial(_cheapest_within_standard_error, score=score, cost=cost, standard_errors=error)


def best_within_budget(
    mean_comparisons: float, score: str = "score", cost: str = "cost"
) -> Callable[[Mapping[str, Array]], int]:
    """Return a ``refit=`` function that selects the best candidate within a budget.

    Parameters
    ----------
    mean_comparisons : float
        The budget: mean number of comparisons per row.
    score, cost : str
        Names of two scorers of the search. Higher is better for both; `cost` is the name of
        `cost_scorer`.

    Returns
    -------
    callable
        ``refit(cv_results)``, which returns the index of the selected candidate. If scores are
        equal, the cheapest candidate is selected.

    Raises
    ------
    ValueError
        If no candidate is within the budget, or if the results of the search do not contain one of
        the scores.

    See Also
    --------
    BudgetClassifier, BudgetRegressor : Select among several types of models within a budget.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pboost.sklearn import AdaBoostClassifier, best_within_budget, cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(
    ...     AdaBoostClassifier(),
    ...     {"n_estimators": [1, 5, 20]},
    ...     scoring={"score": "neg_log_loss", "cost": cost_scorer},
    ...     refit=best_within_budget(10),
    ... )
    >>> search.fit(X, y).best_params_
    {'n_estimators': 5}
    """
    budget = check_number("mean_comparisons", mean_comparisons, min_value=0.0)
    return partial(_best_within_budget, score=score, cost=cost, mean_comparisons=budget)


def _cheapest_within_standard_error(
    cv_results: Mapping[str, Array], *, score: str, cost: str, standard_errors: float
) -> int:
    """Select a candidate as described in `cheapest_within_standard_error`."""
    scores, costs = _means(cv_results, score), -_means(cv_results, cost)
    best = int(np.nanargmax(scores))
    folds = (f"split{k}_test_{score}" for k in count())
    of_best = np.array(
        [cv_results[fold][best] for fold in takewhile(cv_results.__contains__, folds)]
    )
    error = of_best.std(ddof=1) / np.sqrt(len(of_best)) if len(of_best) > 1 else 0.0
    is_good = scores >= scores[best] - standard_errors * error
    return _cheapest(is_good, scores, costs)


def _best_within_budget(
    cv_results: Mapping[str, Array], *, score: str, cost: str, mean_comparisons: float
) -> int:
    """Select a candidate as described in `best_within_budget`."""
    scores, costs = _means(cv_results, score), -_means(cv_results, cost)
    is_within = (costs <= mean_comparisons) & np.isfinite(scores)
    if not is_within.any():
        raise ValueError(
            f"mean_comparisons: expected at least {np.nanmin(costs):.4g}, the cost of the cheapest "
            f"candidate, got {mean_comparisons:.4g}"
        )
    return _cheapest(is_within & (scores == scores[is_within].max()), scores, costs)


def _cheapest(is_one: Array, scores: FloatArray, costs: FloatArray) -> int:
    """Return the index of the cheapest eligible candidate. Equal costs are ranked by score."""
    some = np.flatnonzero(is_one)
    order = np.lexsort((-scores[some], costs[some]))
    return int(some[order[0]])


def _means(cv_results: Mapping[str, Array], name: str) -> FloatArray:
    """Return the mean test score of each candidate."""
    column = cv_results.get(f"mean_test_{name}")
    if column is None:
        start = "mean_test_"
        known = [key.removeprefix(start) for key in cv_results if key.startswith(start)]
        raise ValueError(
            f"score, cost: expected one of {', '.join(map(repr, known))}, got {name!r}"
        )
    scores = np.asarray(column, dtype=np.float64)
    if np.isnan(scores).all():
        raise ValueError(f"score, cost: all values of {name!r} are NaN: every fit or score failed")
    return scores


class Within(Estimator):
    """Base class of estimators with a budget."""

    def _options(self, overrides: Mapping[str, object]) -> dict[str, Any]:
        for name in ("mean_comparisons", "mean_feature_cost"):
            budget = getattr(self, name)
            if isinstance(budget, Sequence | np.ndarray) and not isinstance(budget, str):
                raise TypeError(
                    f"{name}: expected a single budget, got {shown(budget)}; use "
                    "pboost.fit_within_budget to fit models for several budgets"
                )
        if self.mean_comparisons is self.max_comparisons is self.mean_feature_cost is None:
            overrides = {**overrides, "mean_comparisons": USUAL}
        return super()._options(overrides)

    def _build(self, X: object, y: Any, options: dict[str, Any]) -> Any:
        del options["sample_weight"]  # always None
        if len(y) == 1:
            raise ValueError(
                "y: expected at least two samples for cross-validation, got one sample"
            )
        return super()._build(X, y, options)

    @property
    def curve_(self) -> FloatArray:
        """Budget, mean comparisons, error and standard error for each budget, shape (k, 4)."""
        check_is_fitted(self)
        curve = getattr(self.model_, "curve", None)
        table: FloatArray = np.array(
            self.model_.settings["curve"] if curve is None else curve, dtype=np.float64
        )
        return table


class BudgetClassifier(Within, Scored):
    """Classifier with the smallest cross-validated error within a budget of comparisons.

    This is the estimator of `pboost.fit_within_budget`, which compares several types of models by
    cross-validation. Prediction stops early for confident rows. Sample weights, class weights and
    soft labels are not supported.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : EarlyExitModel or DecisionGraph
        The pboost model. ``model_.settings["chosen"]`` is the type of model that was selected.
    curve_ : ndarray of shape (k, 4)
        Budget, mean comparisons, error and standard error of the selected model, for this budget
        and for smaller ones. See `pboost.plot.budget_curve`.
    classes_ : ndarray of shape (n_classes,)
        The class labels, sorted.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from pboost.sklearn import BudgetClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> small = BudgetClassifier(mean_comparisons=5, random_state=0).fit(X[::2], y[::2])
    >>> print(round(small.prediction_cost_, 1), round(small.score(X[1::2], y[1::2]), 2))
    2.1 0.93
    """

    builder = staticmethod(pb.fit_within_budget)
    fixed_options: ClassVar = {"task": "classification"}
    left_out: ClassVar = ("class_weight",)
    class_weight = None

    @refusing
    def fit(self, X: object, y: object) -> Self:  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features. Missing values are NaN; text features and features with a categorical dtype
            are categorical features.
        y : array-like of shape (n_samples,)
            Class labels, with at least two classes.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, None, {})


class BudgetRegressor(Within, Regressor):
    """Regressor with the smallest cross-validated error within a budget of comparisons.

    This is the estimator of `pboost.fit_within_budget`, which compares gradient boosting and single
    trees by cross-validation. Sample weights are not supported.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : GradientBoostingModel, or another model
        The pboost model. ``model_.settings["chosen"]`` is the type of model that was selected.
    curve_ : ndarray of shape (k, 4)
        Budget, mean comparisons, error and standard error of the selected model, for this budget
        and for smaller ones. See `pboost.plot.budget_curve`.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pboost.sklearn import BudgetRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> small = BudgetRegressor(mean_comparisons=10, random_state=0).fit(X, y)
    >>> print(round(small.prediction_cost_, 1))
    10.0
    """

    builder = staticmethod(pb.fit_within_budget)
    fixed_options: ClassVar = {"task": "regression"}

    @refusing
    def fit(self, X: object, y: object) -> Self:  # type: ignore[override]
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features. Missing values are NaN; text features and features with a categorical dtype
            are categorical features.
        y : array-like of shape (n_samples,)
            Target, finite numbers.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, None, {})
